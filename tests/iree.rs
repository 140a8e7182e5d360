//! The recipe of docs/iree.md, with IREE's own compiler.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

#[path = "support/object.rs"]
mod support;

use support::{json, siteline};

const TARGET: [&str; 3] =
    ["--iree-hal-target-device=hip", "--iree-rocm-target=gfx942", "--iree-rocm-emit-debug-info"];

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// IREE's compiler, from the environment that `tools/venv.sh iree` makes.
fn compiler() -> Option<PathBuf> {
    let folder = std::env::var_os("VENV_ROOT").map_or_else(|| in_repository(".venv"), Into::into);
    let path = folder.join("iree/bin/iree-compile");
    if !path.exists() {
        eprintln!("skipped: no '{}': make it by 'tools/venv.sh iree'", path.display());
        return None;
    }
    Some(path)
}

fn iree(compiler: &Path, input: &Path, arguments: &[&str], out: &Path) {
    let output = Command::new(compiler)
        .arg(input)
        .args(TARGET)
        .args(arguments)
        .arg("-o")
        .arg(out)
        .output()
        .expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles to the end, and gives the one code object that the compiler dumps.
fn dumped(compiler: &Path, input: &Path, arguments: &[&str], folder: &Path) -> PathBuf {
    let dump = format!("--iree-hal-dump-executable-binaries-to={}", folder.display());
    let arguments: Vec<&str> = arguments.iter().copied().chain([&*dump]).collect();
    iree(compiler, input, &arguments, &folder.with_extension("vmfb"));
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files.next().expect("an object is dumped");
    assert_eq!(files.next(), None, "two kernels are linked into one object");
    file
}

/// By kernel: how many MFMA instructions are on each line.
fn mfma_lines(object: &Path) -> Vec<Vec<(String, usize)>> {
    let listing = json(&["lines", object.to_str().unwrap(), "--json"]);
    let kernels = listing["kernels"].as_array().expect("kernels");
    kernels
        .iter()
        .map(|kernel| {
            let mut counts = std::collections::BTreeMap::new();
            for instruction in kernel["instructions"].as_array().expect("instructions") {
                if instruction["class"] == "mfma" {
                    let frame = &instruction["frames"][0];
                    let line = format!("{}:{}", frame["file"].as_str().unwrap(), frame["line"]);
                    *counts.entry(line).or_insert(0) += 1;
                }
            }
            counts.into_iter().collect()
        })
        .collect()
}

#[test]
fn the_recipe_puts_each_layer_on_its_line() {
    let Some(compiler) = compiler() else { return };
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let source = in_repository("examples/iree/dense.mlir");

    let stock = dumped(&compiler, &source, &[], &path("stock"));
    let report = json(&["report", stock.to_str().unwrap(), "--json"]);
    for kernel in report["kernels"].as_array().unwrap() {
        assert!(kernel["lines"].is_null(), "IREE makes a line table now: {kernel}");
    }

    let targets = path("targets.mlir");
    let until = ["--compile-to=executable-targets", "--mlir-print-debuginfo"];
    iree(&compiler, &source, &[until[0], until[1], "--mlir-print-op-generic"], &targets);
    let sites = path("sites.mlir");
    let passes = ["--passes", "propagate,infer,scopes", "--policy", "depth:1"];
    let mut arguments = vec!["opt", targets.to_str().unwrap()];
    arguments.extend(passes.iter().chain(&["-o", sites.to_str().unwrap()]));
    let output = siteline(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let object =
        dumped(&compiler, &sites, &["--compile-from=executable-targets"], &path("objects"));

    let on = |line: u32, count: usize| vec![(format!("dense.py:{line}"), count)];
    assert_eq!(mfma_lines(&object), [on(13, 64), on(14, 128)]);

    let [stock, object] = [&stock, &object].map(|path| path.to_str().unwrap());
    let output = siteline(&["verify", stock, object]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.ends_with("identical\n"), "{said}");

    let refined = path("refined.hsaco");
    let out = refined.to_str().unwrap();
    let output = siteline(&["refine", object, "--policy", "depth:1", "-o", out]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(mfma_lines(&refined), [on(13, 64), on(14, 128)]);
}
