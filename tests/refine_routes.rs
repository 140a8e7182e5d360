//! Refining the object that was compiled without sites, and compiling with sites: two routes
//! to the same lines.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use siteline::chain::{Chains, Line};
use siteline::leaf::{Class, LeafTable};
use siteline::object::{CodeObject, Lister, Role, disasm};
use siteline::refine::{Options, refine};

const KERNELS: [(&str, &str); 5] = [
    ("flash_attention", "gfx942"),
    ("pingpong_gemm", "gfx942"),
    ("wmma_gemm_gfx1100", "gfx1100"),
    ("wmma_gemm_gfx1201", "gfx1201"),
    ("wmma_gemm_gfx1250", "gfx1250"),
];

fn compile(name: &str, chip: &str, extra: &[&str]) -> Vec<u8> {
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(format!("{name}.mlir"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_siteline"));
    command.arg("compile").arg(input).args(["-g", "--chip", chip, "-o", "-"]).args(extra);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The class and line of every instruction of the kernels' own code.
fn lines(bytes: Vec<u8>, chains: &mut Chains) -> Vec<(Class, Option<Line>)> {
    let table = LeafTable::default();
    let lister = Lister { disassembler: disasm::available(), table: &table };
    let mut lines = Vec::new();
    for object in CodeObject::read_all("k", bytes, chains).unwrap() {
        for function in object.kernels() {
            let listing = lister.list(&object, function, chains);
            let code = listing.instructions.into_iter().filter(|at| at.role == Role::Code);
            lines.extend(code.map(|at| {
                let line = at.chain.map(|chain| chains.innermost(chain).line());
                (at.class.unwrap(), line)
            }));
        }
    }
    lines
}

#[test]
fn both_routes_give_the_same_lines() {
    let mut classes: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (name, chip) in KERNELS {
        let mut chains = Chains::new();
        let compiled = lines(compile(name, chip, &[]), &mut chains);
        let whole = compile(name, chip, &["--no-sites"]);
        let (refined, _) =
            refine(name, whole, &Options { fill: true, ..Options::default() }).unwrap();
        let refined = lines(refined, &mut chains);
        assert_eq!(compiled.len(), refined.len());
        for ((class, a), (_, b)) in compiled.into_iter().zip(refined) {
            let counted = classes.entry(class.name()).or_default();
            counted.0 += usize::from(a == b);
            counted.1 += 1;
        }
    }
    for (class, (same, all)) in &classes {
        println!("{class:8} {same} of {all}");
    }
    for class in ["mfma", "dma", "barrier"] {
        let (same, all) = classes[class];
        assert!(same * 100 >= all * 99, "{class}: {same} of {all}");
    }
}
