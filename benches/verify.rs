//! `verify` of the flash-attention example against its slowest leg alone.
//!
//! `cargo bench --bench verify` times each of the three legs and the whole check, in one process;
//! on two cores the check should take at most 2.2 times the slowest leg.
#![allow(missing_docs)]

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use siteline::driver::{self, Emit, Job, Sites};
use siteline::mlir::propagate::Origin;
use siteline::site::Settings;
use siteline::verify::{self, DEBUG_SITES, Leg, PLAIN, SITES};

fn benches(criterion: &mut Criterion) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/flash_attention.mlir");
    let source = std::fs::read(&path).expect("the example is there");
    let compile = |leg: Leg| {
        let sites = Sites { settings: Settings::default(), origin: Origin::Keep, infer: true };
        let job = Job {
            chip: "gfx942".into(),
            level: 3,
            debug: leg.debug,
            emit: Emit::Hsaco,
            sites: leg.sites.then_some(sites),
            device_libs: None,
            kernel: None,
        };
        driver::compile(&source, &path, &job)
    };
    let mut group = criterion.benchmark_group("flash_attention");
    group.sample_size(10);
    for leg in [PLAIN, SITES, DEBUG_SITES] {
        group.bench_function(leg.to_string(), |bencher| {
            bencher.iter(|| black_box(compile(leg).expect("it compiles")));
        });
    }
    group.bench_function("verify", |bencher| {
        bencher.iter(|| black_box(verify::verify(&compile, 8).expect("it compiles")));
    });
    group.finish();
}

criterion_group!(all, benches);
criterion_main!(all);
