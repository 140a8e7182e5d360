//! On real kernels no instruction uses what an operation in flight has not delivered: LLVM put its
//! waits in so, and the static answer must see that they suffice.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

#[path = "support/object.rs"]
mod support;

use support::{json, siteline};

const KERNELS: &[(&str, &[&str])] = &[
    ("flash_attention", &["gfx90a", "gfx942", "gfx950"]),
    ("pingpong_gemm", &["gfx942", "gfx950"]),
    ("shared_helpers", &["gfx90a", "gfx942", "gfx950"]),
    ("shared_helpers_noinline", &["gfx90a", "gfx942", "gfx950"]),
    ("wmma_gemm_gfx1100", &["gfx1100"]),
    ("wmma_gemm_gfx1201", &["gfx1201"]),
    ("wmma_gemm_gfx1250", &["gfx1250"]),
];

fn in_repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Checks the kernels of an object; how many waits they have.
fn check(object: &Path) -> usize {
    let report = json(&["waits", "--json", object.to_str().unwrap()]);
    let kernels = report["kernels"].as_array().expect("kernels");
    assert!(!kernels.is_empty(), "{}", object.display());
    let mut waits = 0;
    for kernel in kernels {
        let name = format!("{} in {}", kernel["name"], object.display());
        assert_eq!(kernel["hurries"], Value::Array(Vec::new()), "{name}");
        assert_eq!(kernel["unknown_branches"], Value::Array(Vec::new()), "{name}");
        assert_eq!(kernel["unreachable"], 0, "{name}");
        for wait in kernel["waits"].as_array().expect("waits") {
            waits += 1;
            if wait["note"] == "wasted" {
                println!("{name}: {} at {} drains nothing", wait["instruction"], wait["address"]);
            }
        }
    }
    waits
}

#[test]
fn consumers_of_the_examples_find_their_operands_complete() {
    let folder = TempDir::new().unwrap();
    let object = folder.path().join("k.hsaco");
    for (name, chips) in KERNELS {
        let source = in_repository("examples").join(name).with_extension("mlir");
        for chip in *chips {
            let arguments = ["compile", source.to_str().unwrap(), "--chip", chip, "-g", "-o"];
            let output = siteline(&[&arguments[..], &[object.to_str().unwrap()]].concat());
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let waits = check(&object);
            println!("{name} {chip}: {waits} waits");
            assert!(waits > 0, "{name} {chip}");
        }
    }
}

#[test]
fn consumers_of_real_front_ends_find_their_operands_complete() {
    let folder = std::env::var_os("SITELINE_KERNELS")
        .map_or_else(|| in_repository("target/kernels"), PathBuf::from);
    let mut checked = 0;
    for front_end in ["flydsl-0.1.8", "flydsl-0.5.0", "triton"] {
        let Ok(entries) = std::fs::read_dir(folder.join(front_end)) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.extension().is_some_and(|extension| extension == "hsaco") {
                println!("{}: {} waits", path.display(), check(&path));
                checked += 1;
            }
        }
    }
    if checked == 0 {
        eprintln!("skipped: no code objects in '{}': run tools/kernels.sh", folder.display());
    }
}

/// The keys of an object and of all that is in it, but for those below the keys to leave out.
fn keys(value: &Value, leave: &[&str], into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            into.insert(key.clone());
            if !leave.contains(&key.as_str()) {
                keys(value, leave, into);
            }
        }),
        Value::Array(items) => items.iter().for_each(|item| keys(item, leave, into)),
        _ => {}
    }
}

#[test]
fn every_key_is_documented() {
    let folder = TempDir::new().unwrap();
    let object = folder.path().join("k.hsaco");
    let source = in_repository("examples/flash_attention.mlir");
    let arguments = ["compile", source.to_str().unwrap(), "--chip", "gfx942", "-g", "-o"];
    let output = siteline(&[&arguments[..], &[object.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let trace = folder.path().join("code.json");
    let rows = r#"{"code": [
        ["global_load_dword v1, v[2:3], off", 0, 1, "k.py:1", 0, 0, 1, 4, 0, 0],
        ["s_waitcnt vmcnt(0)", 0, 2, "k.py:2", 0, 8, 1, 9, 5, 0],
        ["s_endpgm", 0, 3, "k.py:3", 0, 12, 1, 4, 0, 0]], "version": "3.0.0"}"#;
    std::fs::write(&trace, rows).unwrap();
    let mut all = BTreeSet::new();
    keys(&json(&["waits", "--json", object.to_str().unwrap()]), &[], &mut all);
    let moved = json(&["att", "waits", "--json", trace.to_str().unwrap()]);
    assert_eq!(moved["moved_cycles"], 5, "{moved}");
    keys(&moved, &["before", "after"], &mut all);
    let docs = std::fs::read_to_string(in_repository("docs/waits.md")).unwrap();
    for key in all {
        let named = [format!("`{key}`"), format!("\"{key}\"")];
        assert!(named.iter().any(|name| docs.contains(name)), "{key} is not in docs/waits.md");
    }
}
