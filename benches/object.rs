//! Reading code objects and looking up the chain of every instruction; disassembly left out.
//!
//! `cargo bench --bench object`; with LLVM 22's tools there, llvm-symbolizer is timed on the same
//! object and addresses.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use siteline::chain::Chains;
use siteline::object::{CodeObject, Vaddr};

#[path = "../tests/support/generated.rs"]
mod generated;

use generated::{Size, addresses, object};

/// A real kernel's size: its instructions, and inlined functions as FlyDSL makes them.
const KERNEL: Size = Size { rows: 1_900, inlined: 300 };

/// Reads an object and looks every instruction up; how many have a chain.
fn read_whole(data: Vec<u8>, size: Size) -> usize {
    let mut chains = Chains::new();
    let objects = CodeObject::read_all("bench", data, &mut chains).expect("it can be read");
    let debug = objects[0].debug.as_ref().expect("it has debug information");
    addresses(size).filter(|&at| debug.chain_at(Vaddr(at), &mut chains).is_some()).count()
}

fn sizes(c: &mut Criterion) {
    let mut group = c.benchmark_group("read and look up");
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    let grown = [10_000, 100_000, 1_000_000].map(|rows| Size { rows, inlined: rows / 10 });
    for size in [KERNEL].into_iter().chain(grown) {
        let data = object(size);
        group.throughput(Throughput::Elements(size.rows.into()));
        group.bench_function(BenchmarkId::from_parameter(size.rows), |b| {
            b.iter_batched(
                || data.clone(),
                |data| read_whole(data, size),
                criterion::BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

/// The whole of what a user of llvm-symbolizer waits for: its start, and all answers.
fn symbolizer(c: &mut Criterion) {
    if Command::new("llvm-symbolizer-22").arg("--version").output().is_err() {
        return;
    }
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), object(KERNEL)).expect("it can be written");
    let input: String = addresses(KERNEL).map(|at| format!("{at:#x}\n")).collect();
    let mut group = c.benchmark_group("llvm-symbolizer --inlines");
    group.sample_size(10);
    group.bench_function(BenchmarkId::from_parameter(KERNEL.rows), |b| {
        b.iter(|| {
            let mut child = Command::new("llvm-symbolizer-22")
                .arg("--inlines")
                .arg(format!("--obj={}", file.path().display()))
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .spawn()
                .expect("it starts");
            let mut stdin = child.stdin.take().expect("a pipe");
            stdin.write_all(input.as_bytes()).expect("it reads");
            drop(stdin);
            assert!(child.wait().expect("it ends").success());
        });
    });
    group.finish();
}

criterion_group!(benches, sizes, symbolizer);
criterion_main!(benches);
