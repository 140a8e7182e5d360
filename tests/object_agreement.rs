//! What siteline reads of code objects equals what LLVM 22's tools read, instruction by
//! instruction and row by row.

use std::path::{Path, PathBuf};

use siteline::chain::{ChainId, Chains};
use siteline::object::{CodeObject, Role, container};
use tempfile::TempDir;

#[path = "support/object.rs"]
mod support;

#[path = "support/generated.rs"]
mod generated;

use support::{ToolFrame, compile, dump_rows, list, normalise, read, run, symbolize};

const CHIPS: [&str; 5] = ["gfx90a", "gfx942", "gfx1100", "gfx1201", "gfx1250"];
const LINKER: &str = "/usr/lib/llvm-22/bin/ld.lld";

fn frames(chain: Option<ChainId>, chains: &Chains) -> Vec<ToolFrame> {
    let frames = chain.into_iter().flat_map(|chain| chains.frames(chain));
    let frame = |frame: siteline::chain::Frame| ToolFrame {
        function: frame.function.map(|name| chains.str(name).to_owned()).unwrap_or_default(),
        file: normalise(chains.str(frame.file)),
        line: frame.line.into(),
        column: frame.column.into(),
    };
    frames.map(frame).collect()
}

/// Compares the chain of every instruction, and tells how many there were.
fn compare_chains(path: &Path, object: &CodeObject, chains: &mut Chains) -> usize {
    let mut instructions = Vec::new();
    for function in &object.functions {
        let listing = list(object, function, chains);
        assert!(listing.decoded);
        instructions.extend(listing.instructions.into_iter().filter(|i| i.role != Role::Padding));
    }
    let addresses: Vec<u64> = instructions.iter().map(|i| i.instruction.address.0).collect();
    let answers = symbolize(path, &addresses);
    let mut compared = 0;
    for (located, mut answer) in instructions.iter().zip(answers) {
        if located.chain.is_none() {
            answer.retain(|frame| !frame.file.is_empty());
        }
        let at = located.instruction.address;
        assert_eq!(frames(located.chain, chains), answer, "{} at {at:x}", path.display());
        compared += 1;
    }
    compared
}

/// Compares every row, and tells how many there were.
fn compare_rows(path: &Path, object: &CodeObject, chains: &Chains) -> usize {
    let debug = object.debug.as_ref().expect("the object has debug information");
    let (mut theirs, mut ends) = dump_rows(path);
    theirs.sort_by_key(|row| row.0);
    ends.sort_unstable();
    let ours: Vec<_> = debug.rows().collect();
    assert_eq!(ours.len(), theirs.len(), "{}", path.display());
    for (row, (address, line, column, file, discriminator, is_stmt)) in ours.iter().zip(theirs) {
        let at = format!("{} at {address:x}", path.display());
        assert_eq!(row.range.start.0, address, "{at}");
        assert_eq!((row.line, row.column, row.is_stmt), (line, column, is_stmt), "{at}");
        assert_eq!(row.discriminator, discriminator, "{at}");
        assert!(Path::new(&normalise(chains.str(row.file))).ends_with(&file), "{at}: {file}");
    }
    let our_ends: Vec<u64> = debug.sequences().map(|addresses| addresses.end.0).collect();
    assert_eq!(our_ends, ends, "{}", path.display());
    ours.len()
}

/// Compares whole objects; how many instructions and rows were equal.
fn compare(paths: &[PathBuf]) -> (usize, usize) {
    let (mut instructions, mut rows) = (0, 0);
    for path in paths {
        let mut chains = Chains::new();
        let objects = read(path, &mut chains);
        assert_eq!(objects.len(), 1);
        instructions += compare_chains(path, &objects[0], &mut chains);
        rows += compare_rows(path, &objects[0], &chains);
    }
    (instructions, rows)
}

/// Nested inlining and a header, for every chip in DWARF 4 and 5.
fn for_every_chip(folder: &Path) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for chip in CHIPS {
        for dwarf in ["-gdwarf-4", "-gdwarf-5"] {
            let path = folder.join(format!("{chip}{dwarf}.hsaco"));
            compile("nested.cl", chip, &["-g", dwarf], &path);
            paths.push(path);
        }
    }
    paths
}

/// Two units of different DWARF versions linked into one object.
fn of_two_units(folder: &Path) -> PathBuf {
    let parts = ["nested.cl", "other.c"].map(|name| folder.join(name).with_extension("o"));
    compile("nested.cl", "gfx942", &["-c", "-g", "-gdwarf-5"], &parts[0]);
    compile("other.c", "gfx942", &["-c", "-g", "-gdwarf-4"], &parts[1]);
    let out = folder.join("units.hsaco");
    let [a, b] = parts.map(|path| path.display().to_string());
    run(LINKER, &["-shared", &a, &b, "-o", out.to_str().unwrap()]);
    out
}

fn compressed(object: &Path, how: &str) -> PathBuf {
    let out = object.with_extension(format!("{how}.hsaco"));
    let flag = format!("--compress-debug-sections={how}");
    run("llvm-objcopy-22", &[&flag, object.to_str().unwrap(), out.to_str().unwrap()]);
    out
}

/// The examples as siteline's driver compiles them, with sites and with whole chains.
fn of_examples(folder: &Path) -> Vec<PathBuf> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut paths = Vec::new();
    for name in ["flash_attention", "pingpong_gemm", "wmma_gemm_gfx1201", "wmma_gemm_gfx1250"] {
        let source = examples.join(name).with_extension("mlir").display().to_string();
        let chip = name.rsplit('_').next().filter(|part| part.starts_with("gfx"));
        for sites in ["--policy=distinct", "--no-sites"] {
            let path = folder.join(format!("{name}{sites}.hsaco"));
            let out = path.to_str().unwrap();
            let chip = chip.unwrap_or("gfx950");
            let arguments = ["compile", &source, "--chip", chip, "-g", sites, "-o", out];
            let output = support::siteline(&arguments);
            assert!(output.status.success(), "{output:?}");
            paths.push(path);
        }
    }
    paths
}

#[test]
fn objects_of_the_driver_agree() {
    let folder = TempDir::new().unwrap();
    let paths = of_examples(folder.path());
    let (instructions, rows) = compare(&paths);
    println!("{} objects: {instructions} instructions and {rows} rows are equal", paths.len());
}

/// FlyDSL's and Triton's own objects, from the folder that `tools/kernels.sh` fills.
#[test]
fn objects_of_real_front_ends_agree() {
    let folder = std::env::var_os("SITELINE_KERNELS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/kernels"),
        PathBuf::from,
    );
    let mut files = Vec::new();
    find_objects(&folder, &mut files);
    if files.is_empty() {
        eprintln!("skipped: no code objects below '{}'", folder.display());
        return;
    }
    let unpacked = TempDir::new().unwrap();
    let mut paths = Vec::new();
    for file in files {
        let label = file.display().to_string();
        for contained in container::read(&label, std::fs::read(&file).unwrap()).unwrap() {
            let path = unpacked.path().join(format!("{}.hsaco", paths.len()));
            std::fs::write(&path, &**contained.elf.data()).unwrap();
            paths.push(path);
        }
    }
    let (instructions, rows) = compare(&paths);
    println!("{} objects: {instructions} instructions and {rows} rows are equal", paths.len());
}

fn find_objects(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        let name = path.to_string_lossy();
        if path.is_dir() {
            find_objects(&path, files);
        } else if name.ends_with(".hsaco") || name.ends_with("gpu_module_to_binary.mlir") {
            files.push(path);
        }
    }
}

#[test]
fn clang_objects_agree() {
    let folder = TempDir::new().unwrap();
    let folder = folder.path();
    let mut paths = for_every_chip(folder);
    let units = of_two_units(folder);
    paths.extend(["zlib", "zstd"].map(|how| compressed(&units, how)));
    paths.push(units);
    let relocatable = folder.join("relocatable.o");
    compile("nested.cl", "gfx942", &["-c", "-g"], &relocatable);
    paths.push(relocatable);
    let lines_only = folder.join("lines-only.hsaco");
    compile("nested.cl", "gfx1100", &["-gline-tables-only"], &lines_only);
    paths.push(lines_only);
    let made_up = folder.join("generated.hsaco");
    std::fs::write(&made_up, generated::object(generated::Size { rows: 800, inlined: 90 }))
        .unwrap();
    run("llvm-dwarfdump-22", &["--verify", made_up.to_str().unwrap()]);
    paths.push(made_up);
    let (instructions, rows) = compare(&paths);
    println!("{} objects: {instructions} instructions and {rows} rows are equal", paths.len());
    assert!(paths.len() >= 12 && instructions > 1000, "{instructions} instructions");
}
