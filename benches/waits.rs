//! What waits wait for, in made-up kernels of growing length.
//!
//! `cargo bench --bench waits`. The code is a loop that copies tiles to LDS a turn ahead, reads
//! them, multiplies and stores, with the waits that LLVM would insert, unrolled as often as the
//! length asks for; every tenth body is left by a branch.
#![allow(missing_docs, reason = "criterion's macro makes an undocumented function")]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use siteline::object::waits::{Entry, Family, Text, analyse};

/// Mnemonic and operands of every instruction.
fn kernel(instructions: usize) -> Vec<(String, String)> {
    let mut code: Vec<(String, String)> = Vec::with_capacity(instructions + 32);
    let mut body = 0;
    while code.len() < instructions {
        let mut push = |mnemonic: &str, operands: String| code.push((mnemonic.into(), operands));
        for copy in 0..4 {
            push(
                "buffer_load_dword",
                format!("v{}, s[8:11], 0 offen offset:{} lds", copy + 1, 4 * copy),
            );
        }
        push("global_load_dwordx2", "v[60:61], v[50:51], off".into());
        push("s_waitcnt", "vmcnt(5)".into());
        push("s_barrier", String::new());
        for read in 0..4 {
            push("ds_read_b64", format!("v[{}:{}], v9", 10 + 2 * read, 11 + 2 * read));
        }
        for product in 0..4 {
            push("s_waitcnt", format!("lgkmcnt({})", 3 - product));
            let pack = format!("v[{}:{}]", 10 + 2 * product, 11 + 2 * product);
            push("v_mfma_f32_32x32x8_f16", format!("a[0:15], {pack}, v[20:21], a[0:15]"));
        }
        push("v_add_u32_e32", "v1, v1, v7".into());
        push("s_waitcnt", "vmcnt(0)".into());
        push("v_add_f32_e32", "v62, v60, v61".into());
        push("global_store_dword", "v[52:53], v62, off".into());
        if body % 10 == 9 {
            push("s_cmp_eq_u32", "s2, s3".into());
            push("s_cbranch_scc1", "3".into());
            push("s_add_i32", "s2, s2, 1".into());
            push("s_nop", "0".into());
            push("v_mov_b32_e32", "v2, v1".into());
        }
        body += 1;
    }
    // Back to the start, as far as a branch's 16 bits reach.
    let back = (code.len() + 1).min(30_000);
    code.push(("s_cbranch_scc0".into(), format!("{}", 65_536 - back)));
    code.push(("s_endpgm".into(), String::new()));
    code
}

fn waits(criterion: &mut Criterion) {
    let family = Family::of_chip("gfx942").expect("a known chip");
    let mut group = criterion.benchmark_group("waits");
    group.sample_size(10);
    for size in [5_000, 20_000, 50_000, 100_000, 200_000] {
        let lines = kernel(size);
        let code: Vec<Text<'_>> = lines
            .iter()
            .enumerate()
            .map(|(at, (mnemonic, operands))| Text { address: 4 * at as u64, mnemonic, operands })
            .collect();
        let found = analyse(&code, family, Entry::Kernel).expect("it can be followed");
        assert!(found.waits.len() > size / 6 && found.hurries.is_empty(), "{:?}", found.hurries);
        group.throughput(Throughput::Elements(code.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter(|| black_box(analyse(&code, family, Entry::Kernel)));
        });
    }
    group.finish();
}

criterion_group!(benches, waits);
criterion_main!(benches);
