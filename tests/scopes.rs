//! What reaches the line tables: on every example kernel and chip, the inlined tree of each
//! instruction is a chain of the frontend IR, frame by frame and name by name.
#![cfg(feature = "llvm")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use siteline::chain::Chains;
use siteline::driver::{self, Emit, Job, Sites};
use siteline::leaf::LeafTable;
use siteline::mlir::context;
use siteline::mlir::propagate::Origin;
use siteline::mlir::report;
use siteline::object::{CodeObject, Lister, Role, disasm};
use siteline::site::Settings;

const SYMBOLIZER: &str = "/usr/lib/llvm-22/bin/llvm-symbolizer";

/// Each example with a chip.
const KERNELS: &[(&str, &str)] = &[
    ("flash_attention.mlir", "gfx90a"),
    ("flash_attention.mlir", "gfx942"),
    ("flash_attention.mlir", "gfx950"),
    ("pingpong_gemm.mlir", "gfx942"),
    ("pingpong_gemm.mlir", "gfx950"),
    ("wmma_gemm_gfx1100.mlir", "gfx1100"),
    ("wmma_gemm_gfx1201.mlir", "gfx1201"),
    ("wmma_gemm_gfx1250.mlir", "gfx1250"),
    ("shared_helpers.mlir", "gfx90a"),
    ("shared_helpers.mlir", "gfx942"),
    ("shared_helpers.mlir", "gfx950"),
    ("shared_helpers_noinline.mlir", "gfx942"),
    ("../test/llvm/Inputs/shared_helpers.mlir", "gfx942"),
];

/// A frame: function, file and line. Functions of frames are compared by name.
type Frame = (String, String, u32);

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

/// All suffixes of all chains in the frontend IR.
struct IrSuffixes(BTreeSet<Vec<Frame>>);

impl IrSuffixes {
    /// Whether the frames are such a suffix; where LLVM inlined a function of the IR, that of
    /// the function inside that of its caller.
    fn contains(&self, frames: &[Frame]) -> bool {
        self.0.contains(frames)
            || (1..frames.len())
                .any(|at| self.0.contains(&frames[..at]) && self.contains(&frames[at..]))
    }
}

fn ir_suffixes(path: &Path) -> IrSuffixes {
    let source = std::fs::read(path).expect("the example is there");
    let report = context::with_module(&source, path, |module, _| {
        Ok(report::report(module.ir(), &Settings::default()))
    });
    let report = report.expect("the example can be read");
    let mut suffixes = BTreeSet::new();
    for function in &report.functions {
        let symbol = function.name.clone().expect("a kernel has a name");
        for chain in &function.chains {
            let frames: Vec<Frame> = chain
                .frames
                .iter()
                .map(|frame| {
                    let name = frame.function.clone().unwrap_or_else(|| symbol.clone());
                    (name, frame.file.clone(), frame.line)
                })
                .collect();
            suffixes.extend((0..frames.len()).map(|at| frames[at..].to_vec()));
        }
    }
    IrSuffixes(suffixes)
}

/// What is known of one instruction.
struct Shown {
    address: u64,
    frames: Vec<Frame>,
}

fn list(object: Vec<u8>) -> Vec<Shown> {
    let mut chains = Chains::new();
    let objects = CodeObject::read_all("object", object, &mut chains).expect("it can be read");
    let table = LeafTable::default();
    let lister = Lister { disassembler: disasm::available(), table: &table };
    let kernel = objects[0].kernels().next().expect("a kernel");
    let listing = lister.list(&objects[0], kernel, &mut chains);
    let code = listing.instructions.iter().filter(|located| located.role == Role::Code);
    code.map(|located| Shown {
        address: located.instruction.address.0,
        frames: located.chain.map_or(Vec::new(), |chain| {
            let text = |sym| chains.str(sym).to_owned();
            let frames = chains.frames(chain);
            frames
                .map(|f| (f.function.map(text).unwrap_or_default(), text(f.file), f.line))
                .collect()
        }),
    })
    .collect()
}

/// The inlined tree of each address as llvm-symbolizer has it.
fn symbolize(object: &Path, shown: &[Shown]) -> Vec<Vec<Frame>> {
    let mut child = Command::new(SYMBOLIZER)
        .args(["--inlines", "--functions=short", "--no-demangle", "--output-style=JSON", "--obj"])
        .arg(object)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("llvm-symbolizer runs");
    let asked: String = shown.iter().map(|shown| format!("{:#x}\n", shown.address)).collect();
    let mut stdin = child.stdin.take().expect("it has an input");
    let writer = std::thread::spawn(move || stdin.write_all(asked.as_bytes()));
    let output = child.wait_with_output().expect("it ends");
    writer.join().expect("no panic").expect("it reads its input");
    let text = String::from_utf8(output.stdout).expect("it prints UTF-8");
    text.lines()
        .map(|line| {
            let answer: serde_json::Value = serde_json::from_str(line).expect("it prints JSON");
            let frames = answer["Symbol"].as_array().expect("it has frames");
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0) as u32;
            frames
                .iter()
                .map(|f| (text(&f["FunctionName"]), text(&f["FileName"]), number(&f["Line"])))
                .collect()
        })
        .collect()
}

#[test]
fn the_inlined_tree_of_every_instruction_is_a_chain_of_the_frontend_ir() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, chip) in KERNELS {
        let path = example(name);
        let suffixes = ir_suffixes(&path);
        for sites in [true, false] {
            let object = compile(&path, chip, sites);
            let file = folder.path().join("k.hsaco");
            std::fs::write(&file, &object).expect("it can be written");
            let shown = list(object);
            let trees = symbolize(&file, &shown);
            assert_eq!(trees.len(), shown.len(), "{name} {chip}: llvm-symbolizer answers all");
            let (mut whole, mut merged, mut definition) = (0, 0, 0);
            for (shown, tree) in shown.iter().zip(&trees) {
                let at = format!("{name} {chip}, sites {sites}, {:#x}", shown.address);
                assert_eq!(&shown.frames, tree, "{at}: both readers say the same");
                let is_definition = !sites && tree.len() == 1 && !suffixes.contains(tree);
                if !sites && tree.iter().any(|frame| frame.2 == 0) {
                    merged += 1;
                } else if is_definition {
                    definition += 1;
                } else {
                    assert!(suffixes.contains(tree), "{at}: {tree:?} is no chain of the IR");
                    whole += 1;
                }
            }
            println!(
                "{name} {chip}, sites {sites}: {whole} chains, {merged} with line 0, {definition} on the definition line"
            );
        }
    }
}

/// What `siteline report` says of the one kernel of an object.
fn report_of(object: &Path) -> serde_json::Value {
    let output = Command::new(env!("CARGO_BIN_EXE_siteline"))
        .args(["report", "--json"])
        .arg(object)
        .output()
        .expect("siteline starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut report: serde_json::Value =
        serde_json::from_slice(&output.stdout).expect("it prints JSON");
    report["kernels"][0].take()
}

#[test]
fn at_most_one_instruction_in_a_hundred_has_no_line_of_the_authors() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, chip) in KERNELS {
        let file = folder.path().join("k.hsaco");
        std::fs::write(&file, compile(&example(name), chip, true)).expect("it can be written");
        let report = report_of(&file);
        let count = |key: &str| report[key].as_u64().expect("it is counted");
        let without = count("line_zero") + count("definition_line") + count("library");
        let all = count("instructions");
        println!(
            "{name} {chip}: {without} of {all} without a line, {} inferred",
            count("inferred")
        );
        assert!(100 * without <= all, "{name} {chip}: {report}");
    }
}

/// The bytes of the debug sections of a code object, by the tool that reads ELF files.
fn debug_bytes(object: &[u8], folder: &Path) -> usize {
    let file = folder.join("sized.hsaco");
    std::fs::write(&file, object).expect("it can be written");
    let output = Command::new("/usr/lib/llvm-22/bin/llvm-size")
        .args(["-A", "-d"])
        .arg(&file)
        .output()
        .expect("llvm-size runs");
    let text = String::from_utf8(output.stdout).expect("it prints UTF-8");
    let sections: BTreeMap<&str, usize> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?.parse().ok()?))
        })
        .collect();
    sections.iter().filter(|(name, _)| name.starts_with(".debug_")).map(|(_, size)| size).sum()
}

#[test]
fn debug_sections_of_a_kernel_with_sites_stay_small() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, chip) in KERNELS {
        let path = example(name);
        let whole = debug_bytes(&compile(&path, chip, false), folder.path());
        let sites = debug_bytes(&compile(&path, chip, true), folder.path());
        println!(
            "{name} {chip}: debug sections {sites} bytes with sites, {whole} with whole chains"
        );
        assert!(sites > 0 && sites < 2 * whole, "{name} {chip}: {sites} against {whole}");
    }
}
