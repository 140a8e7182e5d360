//! The driver's objects against the frontend IR: each instruction class on the lines that the IR
//! says, as often as the IR says.
#![cfg(feature = "llvm")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use siteline::chain::Chains;
use siteline::driver::{self, Emit, Job, Sites};
use siteline::leaf::{Class, LeafTable};
use siteline::mlir::context;
use siteline::mlir::propagate::Origin;
use siteline::mlir::report;
use siteline::object::{CodeObject, Lister, Role, disasm};
use siteline::site::Settings;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

fn compile(path: &Path, chip: &str, sites: bool) -> Vec<u8> {
    let sites =
        sites.then(|| Sites { settings: Settings::default(), origin: Origin::Keep, infer: true });
    let job = Job {
        chip: chip.into(),
        level: 3,
        debug: true,
        emit: Emit::Hsaco,
        sites,
        device_libs: None,
        kernel: None,
    };
    let source = std::fs::read(path).expect("the example is there");
    driver::compile(&source, path, &job).expect("the example compiles")
}

/// Instructions of a class by line, of the object's only kernel.
fn by_line(object: Vec<u8>, class: Class) -> BTreeMap<u32, usize> {
    let mut chains = Chains::new();
    let objects = CodeObject::read_all("object", object, &mut chains).expect("it can be read");
    let table = LeafTable::default();
    let lister = Lister { disassembler: disasm::available(), table: &table };
    let kernel = objects[0].kernels().next().expect("a kernel");
    let listing = lister.list(&objects[0], kernel, &mut chains);
    assert!(listing.decoded);
    let mut lines = BTreeMap::new();
    for located in &listing.instructions {
        if located.class == Some(class) && located.role == Role::Code {
            let line = located.chain.map_or(0, |chain| chains.innermost(chain).line);
            *lines.entry(line).or_default() += 1;
        }
    }
    lines
}

/// Operations of a class by the line of their site.
fn sites(path: &Path, class: Class) -> BTreeMap<u32, usize> {
    let source = std::fs::read(path).expect("the example is there");
    let report = context::with_module(&source, path, |module, _| {
        Ok(report::report(module.ir(), &Settings::default()))
    });
    let mut lines = BTreeMap::new();
    for chain in &report.expect("it can be read").functions[0].chains {
        if chain.class == class {
            *lines.entry(chain.frames[chain.site].line).or_default() += chain.operations;
        }
    }
    lines
}

const KERNELS: &[(&str, &[&str])] = &[
    ("flash_attention.mlir", &["gfx90a", "gfx942", "gfx950"]),
    ("pingpong_gemm.mlir", &["gfx942", "gfx950"]),
    ("wmma_gemm_gfx1100.mlir", &["gfx1100"]),
    ("wmma_gemm_gfx1201.mlir", &["gfx1201"]),
    ("wmma_gemm_gfx1250.mlir", &["gfx1250"]),
];

/// Loops are not unrolled here, so each operation is one instruction.
#[test]
fn matrix_instructions_and_dma_split_by_call_site_as_the_ir_says() {
    for (name, chips) in KERNELS {
        let path = example(name);
        for chip in *chips {
            let object = compile(&path, chip, true);
            for class in [Class::Mfma, Class::Dma] {
                let expected = sites(&path, class);
                assert_eq!(by_line(object.clone(), class), expected, "{name} {chip} {class}");
            }
        }
    }
}

#[test]
fn the_flash_attention_kernel_has_its_gemms_on_four_lines_and_without_sites_on_one() {
    let path = example("flash_attention.mlir");
    let after = by_line(compile(&path, "gfx942", true), Class::Mfma);
    assert_eq!(after.values().copied().collect::<Vec<_>>(), [16, 16, 16, 16]);
    let before = by_line(compile(&path, "gfx942", false), Class::Mfma);
    assert_eq!(before.values().copied().collect::<Vec<_>>(), [64]);
}

#[test]
fn no_leaf_instruction_is_on_an_ambiguous_line() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, chips) in KERNELS {
        for chip in *chips {
            let path = example(name);
            let object = folder.path().join("k.hsaco");
            std::fs::write(&object, compile(&path, chip, true)).expect("it can be written");
            let mut command = Command::new(env!("CARGO_BIN_EXE_siteline"));
            command
                .arg("report")
                .arg(&object)
                .arg("--ir")
                .arg(&path)
                .args(["--policy", "distinct"]);
            // The GEMMs fetch A and B through two lines of a helper that is itself called from
            // several sites: each line of such a chain is shared by two chains.
            let classes: &[&str] = match *name {
                "flash_attention.mlir" => &["mfma", "wait", "barrier", "dma", "lds", "sched"],
                _ => &["mfma", "wait", "barrier"],
            };
            for class in classes {
                command.arg("--require").arg(format!("{class}.on_ambiguous=0"));
            }
            let ran = command.output().expect("siteline runs");
            let said = String::from_utf8_lossy(&ran.stderr);
            assert!(ran.status.success(), "{name} {chip}: {said}");
        }
    }
}
