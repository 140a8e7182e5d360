//! Refining the object that was compiled without sites, and compiling with sites: two routes
//! to the same lines.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use siteline::chain::{ChainId, Chains, Line};
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

/// An instruction of a kernel's own code.
struct Shown {
    class: Class,
    chain: Option<ChainId>,
    inferred: bool,
}

impl Shown {
    fn line(&self, chains: &Chains) -> Option<Line> {
        self.chain.map(|chain| chains.innermost(chain).line())
    }
}

fn shown(bytes: Vec<u8>, chains: &mut Chains) -> Vec<Shown> {
    let table = LeafTable::default();
    let lister = Lister { disassembler: disasm::available(), table: &table };
    let mut shown = Vec::new();
    for object in CodeObject::read_all("k", bytes, chains).unwrap() {
        for function in object.kernels() {
            let listing = lister.list(&object, function, chains);
            let code = listing.instructions.into_iter().filter(|at| at.role == Role::Code);
            shown.extend(code.map(|at| Shown {
                class: at.class.unwrap(),
                chain: at.chain,
                inferred: at.inferred,
            }));
        }
    }
    shown
}

/// Why the routes differ for an instruction, from its whole chain and what each route shows.
fn cause(whole: &Shown, compiled: &Shown, refined: &Shown, chains: &Chains) -> &'static str {
    let own = |shown: &Shown| {
        let line = shown.line(chains);
        whole.chain.is_some_and(|chain| chains.lines(chain).any(|own| Some(own) == line))
    };
    if whole.line(chains).is_none_or(|line| line.number == 0) {
        "without a line in the object"
    } else if compiled.inferred || refined.inferred {
        "inferred by one route"
    } else if own(compiled) && own(refined) {
        "another frame of the same chain"
    } else {
        "a line outside its chain"
    }
}

#[test]
fn both_routes_give_the_same_lines() {
    let mut classes: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut causes: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (name, chip) in KERNELS {
        let mut chains = Chains::new();
        let compiled = shown(compile(name, chip, &[]), &mut chains);
        let bytes = compile(name, chip, &["--no-sites"]);
        let whole = shown(bytes.clone(), &mut chains);
        let options = Options { fill: true, ..Options::default() };
        let refined = shown(refine(name, bytes, &options).unwrap().0, &mut chains);
        assert_eq!((compiled.len(), whole.len()), (refined.len(), refined.len()));
        for ((compiled, whole), refined) in compiled.iter().zip(&whole).zip(&refined) {
            let class = compiled.class.name();
            let counted = classes.entry(class).or_default();
            counted.1 += 1;
            if compiled.line(&chains) == refined.line(&chains) {
                counted.0 += 1;
            } else {
                let cause = cause(whole, compiled, refined, &chains);
                *causes.entry((class, cause)).or_insert(0) += 1;
            }
        }
    }
    for (class, (same, all)) in &classes {
        println!("{class:8} {same} of {all}");
        for ((_, cause), count) in causes.iter().filter(|((of, _), _)| of == class) {
            println!("         {count} {cause}");
        }
    }
    let rest: usize = classes.values().map(|(same, all)| all - same).sum();
    assert_eq!(causes.values().sum::<usize>(), rest, "each difference has a cause");
    let invented = causes.keys().filter(|(_, cause)| *cause == "a line outside its chain");
    assert_eq!(invented.collect::<Vec<_>>(), [] as [&(&str, &str); 0]);
    for class in ["mfma", "dma", "barrier"] {
        let (same, all) = classes[class];
        assert!(same * 100 >= all * 99, "{class}: {same} of {all}");
    }
}
