//! How fast traces are read, measured and compared. The traces are made up.
//!
//! The whole-process targets (300 KB in under 30 ms, 100 MB in under 2 s and 600 MB) are
//! measured by `process`, on the binary that cargo built; with more than 600 MB of address space
//! it fails.
#![allow(missing_docs, reason = "criterion's macro makes an undocumented function")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use siteline::att::Trace;
use siteline::att::diff::{Side, compare};
use siteline::att::metrics::WeightBy;
use siteline::leaf::LeafTable;

#[path = "../tests/support/att.rs"]
mod support;

/// Instructions in a trace of about 300 KB.
const SMALL: usize = 2_200;
/// Instructions in a trace of about 100 MB.
const LARGE: usize = 770_000;

fn read(path: &Path) -> Trace {
    Trace::read(path, &LeafTable::default()).expect("a made-up trace can be read")
}

fn att(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, instructions) in [("300KB", SMALL), ("100MB", LARGE)] {
        let text = support::code_json(instructions);
        let path = folder.path().join(format!("{name}.json"));
        std::fs::write(&path, &text).expect("the made-up trace can be written");
        let mut group = criterion.benchmark_group("att");
        group.throughput(Throughput::Bytes(text.len() as u64));
        group.sample_size(10).measurement_time(Duration::from_secs(10));
        drop(text);
        group.bench_function(format!("read/{name}"), |bencher| bencher.iter(|| read(&path)));
        group.bench_function(format!("process/{name}"), |bencher| bencher.iter(|| report(&path)));
        let trace = read(&path);
        let weights = WeightBy::HitAndStall.weights(&trace);
        let kernels: Vec<usize> = (0..trace.kernels.len()).collect();
        let side = || Side { trace: &trace, kernels: &kernels, weights: &weights };
        group.bench_function(format!("diff/{name}"), |bencher| {
            bencher.iter(|| compare(&side(), &side()))
        });
    }
}

/// One whole `siteline att report`, through a shell that limits its memory.
fn report(path: &Path) {
    let status = Command::new("sh")
        .args(["-c", "ulimit -v 600000 && exec \"$0\" att report --json \"$1\""])
        .arg(env!("CARGO_BIN_EXE_siteline"))
        .arg(path)
        .stdout(Stdio::null())
        .status()
        .expect("the command starts");
    assert!(status.success());
}

criterion_group!(benches, att);
criterion_main!(benches);
