//! Objects against their frontend IR, and the disassemblers that can be found at run time.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use siteline::chain::Chains;
use siteline::leaf::{Class, LeafTable};
use siteline::object::disasm::Disassembler;
use siteline::object::{Lister, Vaddr, disasm};
use tempfile::TempDir;

#[path = "support/object.rs"]
mod support;

use support::{json, siteline, source};

/// Compiles the example of two GEMMs, which call one helper.
fn gemms(folder: &TempDir, options: &[&str]) -> String {
    let out = folder.path().join(format!("gemms{}.hsaco", options.concat()));
    let source = source("gemms.mlir").display().to_string();
    let out = out.display().to_string();
    let mut arguments = vec!["compile", &source, "--chip", "gfx942", "-g", "-o", &out];
    arguments.extend(options);
    let output = siteline(&arguments);
    assert!(output.status.success(), "{output:?}");
    out
}

fn report(object: &str, ir: &Path, options: &[&str]) -> Value {
    let ir = ir.display().to_string();
    let mut arguments = vec!["report", "--json", object, "--ir", &ir];
    arguments.extend(options);
    json(&arguments)["kernels"][0].clone()
}

fn numbers(leaf: &Value, keys: [&str; 4]) -> [u64; 4] {
    keys.map(|key| leaf[key].as_u64().unwrap_or_else(|| panic!("{key} of {leaf}")))
}

const KEYS: [&str; 4] = ["lines", "ambiguous_lines", "on_ambiguous", "reachable_lines"];

#[test]
fn a_helpers_line_is_ambiguous_and_its_sites_are_not() {
    let folder = TempDir::new().unwrap();
    let before = report(&gemms(&folder, &["--no-sites"]), &source("gemms.mlir"), &[]);
    assert_eq!(numbers(&before["leaves"]["mfma"], KEYS), [1, 1, 2, 2]);
    assert_eq!(before["leaves"]["mfma"]["on_ambiguous_share"], 1.0);
    assert_eq!(before["ir"]["rules"]["mfma"], "innermost");
    assert_eq!(before["ir"]["levels_lost"], 0);
    let after = report(&gemms(&folder, &[]), &source("gemms.mlir"), &[]);
    assert_eq!(numbers(&after["leaves"]["mfma"], KEYS), [2, 0, 0, 2]);
    assert_eq!(after["ir"]["rules"]["mfma"], "distinct");
    let asked = report(&gemms(&folder, &[]), &source("gemms.mlir"), &["--policy", "innermost"]);
    assert_eq!(asked["ir"]["rules"]["mfma"], "policy");
}

#[test]
fn a_rewritten_ir_says_its_own_sites() {
    let folder = TempDir::new().unwrap();
    let rewritten = folder.path().join("rewritten.mlir");
    let source = source("gemms.mlir").display().to_string();
    let output = siteline(&["opt", &source, "-o", rewritten.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let after = report(&gemms(&folder, &[]), &rewritten, &[]);
    assert_eq!(after["ir"]["rules"]["mfma"], "shown");
    assert_eq!(numbers(&after["leaves"]["mfma"], KEYS), [2, 0, 0, 2]);
    let before = report(&gemms(&folder, &["--no-sites"]), &rewritten, &[]);
    assert_eq!(before["leaves"]["mfma"]["on_ambiguous"], 0);
}

#[test]
fn the_gate_tells_the_kernels_apart() {
    let folder = TempDir::new().unwrap();
    let ir = source("gemms.mlir").display().to_string();
    let gate = |object: &str| {
        siteline(&["report", object, "--ir", &ir, "--require", "mfma.on_ambiguous=0"]).status.code()
    };
    assert_eq!(gate(&gemms(&folder, &["--no-sites"])), Some(1));
    assert_eq!(gate(&gemms(&folder, &[])), Some(0));
}

/// Address, mnemonic and class of every instruction of a fixture as one disassembler tells them.
/// Operands are spelled otherwise from version to version.
fn disassembled(path: &Path, disassembler: &dyn Disassembler) -> Option<Vec<Told>> {
    let mut chains = Chains::new();
    let objects = support::read(path, &mut chains);
    let table = LeafTable::default();
    let lister = Lister { disassembler: Some(disassembler), table: &table };
    let mut told = Vec::new();
    for function in &objects[0].functions {
        let listing = lister.list(&objects[0], function, &mut chains);
        if !listing.decoded {
            return None;
        }
        told.extend(listing.instructions.into_iter().map(|located| {
            (located.instruction.address, located.instruction.mnemonic, located.class)
        }));
    }
    Some(told)
}

type Told = (Vaddr, Box<str>, Option<Class>);

/// The libraries of this machine that can disassemble.
fn libraries() -> Vec<PathBuf> {
    let names = ["libLLVM.so.19.1", "libLLVM.so.22.1", "libamd_comgr.so.2", "libamd_comgr.so.3"];
    let mut libraries: Vec<PathBuf> = names.map(PathBuf::from).into();
    libraries.extend(std::env::var_os("SITELINE_TEST_DISASSEMBLER").map(PathBuf::from));
    libraries
}

#[test]
fn disassemblers_found_at_run_time_say_what_the_linked_one_says() {
    let linked = disasm::available().expect("a disassembler is linked");
    assert!(linked.name().ends_with("(linked)"), "{}", linked.name());
    let folder = TempDir::new().unwrap();
    let objects = ["gfx90a", "gfx942", "gfx1100"].map(|chip| {
        let path = folder.path().join(chip);
        support::compile("nested.cl", chip, &[], &path);
        path
    });
    let mut found = 0;
    for library in libraries() {
        let Some(other) = disasm::open(&library) else {
            eprintln!("skipped: no '{}'", library.display());
            continue;
        };
        found += 1;
        for path in &objects {
            let (chip, name) = (path.file_name().unwrap().display(), other.name());
            let Some(told) = disassembled(path, &*other) else {
                eprintln!("skipped: {name} does not know {chip}");
                continue;
            };
            let expected = disassembled(path, linked).unwrap();
            assert_eq!(told.len(), expected.len(), "{name} {chip}");
            for (told, expected) in told.iter().zip(&expected) {
                assert_eq!(told, expected, "{name} {chip}");
            }
        }
    }
    assert!(found > 0, "LLVM 22 itself can be found at run time");
}

#[test]
fn an_older_llvm_is_not_trusted_with_a_newer_chip() {
    assert!(disasm::open(Path::new("libLLVM-15.so.1")).is_none());
    let Some(old) = disasm::open(Path::new("libLLVM.so.19.1")) else { return };
    let target =
        |chip: &str| siteline::object::chip::Target { chip: chip.into(), features: vec![] };
    assert!(old.decoder(&target("gfx942"), false).is_some());
    assert!(old.decoder(&target("gfx1250"), true).is_none());
}

#[test]
fn the_library_can_be_named() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("test/fixtures/object/nested.gfx942.hsaco")
        .display()
        .to_string();
    let output = Command::new(env!("CARGO_BIN_EXE_siteline"))
        .args(["report", "--json", &fixture])
        .env("SITELINE_DISASSEMBLER", "libLLVM.so.22.1")
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let name = report["kernels"][0]["disassembler"].as_str().unwrap();
    assert!(name.starts_with("LLVM 22.") && name.ends_with("(loaded)"), "{name}");
}
