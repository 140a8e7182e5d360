//! Refining objects in-process, with and without the disassembly that it needs.
//!
//! `cargo bench --bench refine`; with LLVM 22's tools there, llvm-objcopy is timed on a copy of
//! the same large object.

#![allow(missing_docs)]

use std::process::Command;
use std::time::Duration;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use siteline::refine::{Options, refine};

#[path = "../tests/support/generated.rs"]
mod generated;

use generated::{Size, object};

/// A real kernel's size: its instructions, and inlined functions as FlyDSL makes them.
const KERNEL: Size = Size { rows: 2_000, inlined: 300 };
const MILLION: Size = Size { rows: 1_000_000, inlined: 100_000 };

fn kernels(c: &mut Criterion) {
    let mut group = c.benchmark_group("refine");
    group.sample_size(10).measurement_time(Duration::from_secs(5));
    for size in [KERNEL, MILLION] {
        let data = object(size);
        group.throughput(Throughput::Elements(size.rows.into()));
        for (name, options) in [
            ("classes", Options::default()),
            ("no disassembler", Options { disassembler: None, ..Options::default() }),
        ] {
            group.bench_function(BenchmarkId::new(name, size.rows), |b| {
                b.iter_batched(
                    || data.clone(),
                    |data| refine("bench", data, &options).expect("it can be refined"),
                    BatchSize::LargeInput,
                );
            });
        }
    }
    group.finish();
}

fn objcopy(c: &mut Criterion) {
    if Command::new("llvm-objcopy-22").arg("--version").output().is_err() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    std::fs::write(&input, object(MILLION)).expect("it can be written");
    let mut group = c.benchmark_group("llvm-objcopy");
    group.sample_size(10);
    group.bench_function(BenchmarkId::from_parameter(MILLION.rows), |b| {
        b.iter(|| {
            let status = Command::new("llvm-objcopy-22").arg(&input).arg(&output).status();
            assert!(status.expect("it starts").success());
        });
    });
    group.finish();
}

criterion_group!(benches, kernels, objcopy);
criterion_main!(benches);
