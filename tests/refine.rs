//! `siteline refine`: sites in the line tables of finished code objects.
//!
//! The objects come from clang-22; LLVM's own tools and a comparison of chains, made from the
//! object before and after, say whether the result is right.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use siteline::chain::{ChainId, Chains};
use siteline::identity::{self, Extent};
use siteline::leaf::{Class, LeafTable};
use siteline::object::{CodeObject, Elf, Lister, Role, disasm};
use siteline::refine::{Options, refine};

const SOURCE: &str = "\
typedef float f4 __attribute__((ext_vector_type(4)));
#define INLINE static __attribute__((always_inline))
INLINE float leaf(float a, float b) {
  float t = a * b;
  return t + a;
}
INLINE float mid(float a, float b) {
  float x = leaf(a, b);
  float y = leaf(b, a + 1.0f);
  return x * y;
}
INLINE f4 mma(float a, float b, f4 c) {
  return __builtin_amdgcn_mfma_f32_16x16x4f32(a, b, c, 0, 0, 0);
}
INLINE f4 stage(float a, float b, f4 c) {
  c = mma(a, b, c);
  return mma(b, a, c);
}
__kernel void NAME(__global float *p, __global float *q, int n) {
  f4 acc = {0, 0, 0, 0};
  for (int i = 0; i < n; i++) {
    float v = mid(p[i], q[i]);
    acc = stage(v, q[i], acc);
    acc = stage(q[i], mid(v, q[i+1]), acc);
    __builtin_amdgcn_s_barrier();
  }
  p[0] = acc.x + acc.y + mid(acc.z, acc.w);
}
";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// The source compiled for gfx942, once for each kernel name, and linked.
    fn object(&self, version: u8, kernels: &[&str]) -> Vec<u8> {
        let source = self.write("k.cl", SOURCE);
        let mut parts = Vec::new();
        for kernel in kernels {
            let part = self.path(&format!("{kernel}.o"));
            run(clang()
                .arg(format!("-gdwarf-{version}"))
                .arg(format!("-DNAME={kernel}"))
                .arg("-c")
                .arg(&source)
                .arg("-o")
                .arg(&part));
            parts.push(part);
        }
        let out = self.path("k.hsaco");
        run(Command::new("ld.lld-22").arg("-shared").args(parts).arg("-o").arg(&out));
        fs::read(out).unwrap()
    }
}

fn clang() -> Command {
    let mut command = Command::new("clang-22");
    command.args(["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx942", "-O2", "-nogpulib"]);
    command
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn text(command: &mut Command) -> String {
    String::from_utf8(run(command).stdout).unwrap()
}

fn filled() -> Options {
    Options { fill: true, ..Options::default() }
}

/// What `llvm-readelf -a` says of all but the debug sections and the place of the headers.
fn outside_debug(path: &Path) -> String {
    let all = text(Command::new("llvm-readelf-22").arg("-a").arg(path));
    let skipped = ["File:", "section headers", "debug_", "String table", ".shstrtab"];
    let kept = all.lines().filter(|line| !skipped.iter().any(|skip| line.contains(skip)));
    kept.collect::<Vec<_>>().join("\n")
}

/// Checks what must hold of any refined object, and gives it.
fn check(bytes: &[u8], options: &Options) -> Vec<u8> {
    let (new, summary) = refine("k", bytes.to_vec(), options).unwrap();
    assert!(summary.objects > 0);
    assert_eq!(identity::compare(bytes, &new, Extent::Loaded), Ok(None));
    assert_eq!(refine("k", bytes.to_vec(), options).unwrap().0, new, "not deterministic");
    let (again, summary) = refine("k", new.clone(), options).unwrap();
    assert!(again == new, "refining again changes something");
    assert_eq!(summary.refined_before, summary.objects);
    let folder = Folder::new();
    let (a, b) = (folder.write("a", bytes), folder.write("b", &new));
    run(Command::new("llvm-dwarfdump-22").arg("--verify").arg(&b));
    assert_eq!(outside_debug(&a), outside_debug(&b));
    compare_chains(bytes, &new);
    new
}

/// The chain of every instruction of the kernels' own code, and whether its line is inferred.
fn chains_of(bytes: &[u8], chains: &mut Chains) -> Vec<(u64, Option<ChainId>, bool)> {
    let table = LeafTable::default();
    let lister = Lister { disassembler: disasm::available(), table: &table };
    let mut all = Vec::new();
    for object in CodeObject::read_all("k", bytes.to_vec(), chains).unwrap() {
        for function in &object.functions {
            let listing = lister.list(&object, function, chains);
            let code = listing.instructions.iter().filter(|at| at.role == Role::Code);
            all.extend(code.map(|at| (at.instruction.address.0, at.chain, at.inferred)));
        }
    }
    all
}

/// A line that is not inferred is one of the instruction's own frames, with all its callers and
/// nothing else.
fn compare_chains(old: &[u8], new: &[u8]) {
    let mut chains = Chains::new();
    let (old, new) = (chains_of(old, &mut chains), chains_of(new, &mut chains));
    assert_eq!(old.len(), new.len());
    for ((address, before, _), (_, after, inferred)) in old.into_iter().zip(new) {
        let (Some(before), Some(after)) = (before, after) else { continue };
        let own = chains.suffixes(before).any(|suffix| chains.same_lines(suffix, after));
        assert!(
            own || inferred,
            "{address:#x}: {} became {}",
            chains.display(before),
            chains.display(after)
        );
    }
}

/// The lines that llvm-symbolizer prints for the first matrix instructions.
fn symbolized(bytes: &[u8]) -> Vec<Vec<String>> {
    let folder = Folder::new();
    let object = folder.write("k", bytes);
    let code = text(Command::new("llvm-objdump-22").arg("-d").arg(&object));
    let mfma = code.lines().filter(|line| line.contains("v_mfma"));
    let address = |line: &str| {
        let hex = line.split("// ").nth(1).unwrap().split(':').next().unwrap();
        format!("0x{}", hex.trim_start_matches('0'))
    };
    let addresses: Vec<String> = mfma.map(address).collect();
    assert!(addresses.len() >= 4);
    let out = text(
        Command::new("llvm-symbolizer-22")
            .args(["--inlines", "-s", "--obj"])
            .arg(&object)
            .args(&addresses),
    );
    let frames = |part: &str| {
        let places = part.lines().skip(1).step_by(2);
        places.map(|place| place.split(':').nth(1).unwrap().to_owned()).collect()
    };
    out.trim().split("\n\n").map(frames).collect()
}

/// What rocprofiler writes of an instruction: its row's line, then the call of each inlined
/// function around it. In the order of the addresses of the matrix instructions.
fn rocprofiler_texts(bytes: &[u8]) -> Vec<String> {
    let mut chains = Chains::new();
    let table = LeafTable::default();
    let lister = Lister { disassembler: disasm::available(), table: &table };
    let mut texts = Vec::new();
    for object in CodeObject::read_all("k", bytes.to_vec(), &mut chains).unwrap() {
        let debug = object.debug.as_ref().unwrap();
        for function in &object.functions {
            let listing = lister.list(&object, function, &mut chains);
            let matrix = listing.instructions.iter().filter(|at| at.class == Some(Class::Mfma));
            for located in matrix {
                let chain = debug.chain_at(located.instruction.address, &mut chains).unwrap();
                let lines: Vec<String> =
                    chains.lines(chain).map(|line| chains.display_line(line).to_string()).collect();
                let names = lines.iter().map(|line| line.rsplit('/').next().unwrap());
                texts.push(names.collect::<Vec<_>>().join(" -> "));
            }
        }
    }
    texts
}

#[test]
fn profilers_show_the_site_once() {
    for version in [4, 5] {
        let bytes = Folder::new().object(version, &["k"]);
        let before = rocprofiler_texts(&bytes);
        assert!(before.len() >= 4 && before.iter().all(|text| text.starts_with("k.cl:13 -> ")));
        assert!(before.contains(&"k.cl:13 -> k.cl:16 -> k.cl:23".to_owned()), "{before:?}");
        let after = rocprofiler_texts(&check(&bytes, &Options::default()));
        for (before, after) in before.iter().zip(&after) {
            // A part of what was there, so that a reader of the first part sees the site, and
            // one that counts each frame counts it once.
            assert!(before.ends_with(&format!(" -> {after}")), "{before} became {after}");
            let frames: Vec<&str> = after.split(" -> ").collect();
            assert!(["k.cl:23", "k.cl:24"].contains(&frames[0]), "{after}");
            assert_eq!(frames.iter().filter(|frame| **frame == frames[0]).count(), 1);
        }
    }
}

#[test]
fn three_inline_levels_become_one_site_with_its_callers() {
    for version in [4, 5] {
        let bytes = Folder::new().object(version, &["k"]);
        let before = symbolized(&bytes);
        assert!(before.iter().all(|frames| frames[0] == "13"), "{before:?}");
        assert!(before.iter().all(|frames| frames.len() >= 3), "{before:?}");
        let after = symbolized(&check(&bytes, &Options::default()));
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(after[..], before[before.len() - after.len()..], "DWARF {version}");
            assert!(["23", "24"].contains(&after[0].as_str()), "{after:?}");
        }
    }
}

/// The examples as the driver compiles them, with whole chains and with sites.
#[cfg(feature = "llvm")]
#[test]
fn all_examples_are_refined() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let folder = Folder::new();
    let out = folder.path("example.hsaco");
    for (name, chips) in [
        ("flash_attention", &["gfx90a", "gfx942", "gfx950"][..]),
        ("pingpong_gemm", &["gfx942", "gfx950"]),
        ("shared_helpers", &["gfx90a", "gfx942", "gfx950"]),
        ("shared_helpers_noinline", &["gfx942"]),
        ("wmma_gemm_gfx1100", &["gfx1100"]),
        ("wmma_gemm_gfx1201", &["gfx1201"]),
        ("wmma_gemm_gfx1250", &["gfx1250"]),
    ] {
        for (chip, sites) in
            chips.iter().flat_map(|chip| [(chip, None), (chip, Some("--no-sites"))])
        {
            let mut compile = siteline();
            compile.arg("compile").arg(examples.join(name).with_extension("mlir"));
            run(compile.args(["--chip", chip, "-g", "-o"]).arg(&out).args(sites));
            let object = fs::read(&out).unwrap();
            check(&object, &Options::default());
            check(&object, &filled());
        }
    }
}

/// FlyDSL's and Triton's own objects, from the folder that `tools/kernels.sh` fills.
#[test]
fn objects_of_real_front_ends_are_refined() {
    let folder = std::env::var_os("SITELINE_KERNELS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/kernels"),
        PathBuf::from,
    );
    let mut checked = 0;
    for front_end in ["flydsl-0.1.8", "flydsl-0.5.0", "triton"] {
        let Ok(entries) = fs::read_dir(folder.join(front_end)) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.extension().is_some_and(|extension| extension == "hsaco") {
                let object = fs::read(&path).unwrap();
                check(&object, &Options::default());
                check(&object, &filled());
                checked += 1;
            }
        }
    }
    if checked == 0 {
        eprintln!("skipped: no code objects in '{}': run tools/kernels.sh", folder.display());
    }
    println!("{checked} objects");
}

const HELPERS: &str = "\
def leaf(a):
    return a * 3


def mid(a):
    return leaf(a) + 1


def KERNEL(p):
    p[0] = mid(p[0])
";

/// LLVM IR with one function in its debug information, as MLIR makes it: `leaf` in `mid` in the
/// kernel, all named after the kernel.
fn one_function(kernel: &str, version: u8, folder: &str, index: &str) -> String {
    format!(
        r#"target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @{kernel}(ptr addrspace(1) %p) !dbg !4 {{
  %a = load volatile float, ptr addrspace(1) %p, !dbg !8
  %b = fmul float %a, 3.0, !dbg !11
  %c = fadd float %b, 1.0, !dbg !10
  store volatile float %c, ptr addrspace(1) %p, !dbg !8
  ret void, !dbg !8
}}
!llvm.dbg.cu = !{{!0}}
!llvm.module.flags = !{{!2, !3}}
!0 = distinct !DICompileUnit(language: DW_LANG_C, file: !1, emissionKind: LineTablesOnly, nameTableKind: {index})
!1 = !DIFile(filename: "{kernel}.py", directory: "{folder}")
!2 = !{{i32 2, !"Debug Info Version", i32 3}}
!3 = !{{i32 7, !"Dwarf Version", i32 {version}}}
!4 = distinct !DISubprogram(name: "{kernel}", file: !1, line: 9, type: !5, unit: !0, spFlags: DISPFlagDefinition | DISPFlagOptimized)
!5 = !DISubroutineType(types: !6)
!6 = !{{}}
!7 = !DILexicalBlockFile(scope: !4, file: !1, discriminator: 0)
!8 = !DILocation(line: 10, column: 5, scope: !4)
!9 = distinct !DILocation(line: 10, column: 12, scope: !4)
!10 = !DILocation(line: 6, column: 12, scope: !7, inlinedAt: !9)
!11 = !DILocation(line: 2, column: 12, scope: !7, inlinedAt: !12)
!12 = distinct !DILocation(line: 6, column: 12, scope: !7, inlinedAt: !9)
"#
    )
}

impl Folder {
    /// One unit for each kernel, with its source beside it.
    fn helpers(&self, version: u8, kernels: &[&str], index: &str) -> Vec<u8> {
        let mut parts = Vec::new();
        for kernel in kernels {
            self.write(&format!("{kernel}.py"), HELPERS.replace("KERNEL", kernel));
            let text = one_function(kernel, version, self.0.path().to_str().unwrap(), index);
            let (source, part) =
                (self.write(&format!("{kernel}.ll"), text), self.path(&format!("{kernel}.o")));
            run(clang().arg("-c").arg(source).arg("-o").arg(&part));
            parts.push(part);
        }
        let out = self.path("helpers.hsaco");
        run(Command::new("ld.lld-22").arg("-shared").args(parts).arg("-o").arg(&out));
        fs::read(out).unwrap()
    }
}

/// What llvm-symbolizer prints for every multiplication: function, file and line of each frame.
fn named_frames(bytes: &[u8]) -> Vec<Vec<String>> {
    let folder = Folder::new();
    let object = folder.write("k", bytes);
    let code = text(Command::new("llvm-objdump-22").arg("-d").arg(&object));
    let multiplies = code.lines().filter(|line| line.contains("v_mul_f32"));
    let addresses: Vec<String> = multiplies
        .map(|line| format!("0x{}", line.split("// ").nth(1).unwrap().split(':').next().unwrap()))
        .collect();
    let symbolizer = "llvm-symbolizer-22";
    let out = text(
        Command::new(symbolizer).args(["--inlines", "-s", "--obj"]).arg(&object).args(addresses),
    );
    let frames = |part: &str| {
        let lines: Vec<&str> = part.lines().collect();
        let frame = |pair: &[&str]| {
            let place: Vec<&str> = pair[1].split(':').collect();
            format!("{} {}:{}", pair[0], place[0], place[1])
        };
        lines.chunks(2).map(frame).collect()
    };
    out.trim().split("\n\n").map(frames).collect()
}

fn reading_sources() -> Options {
    let mut options =
        Options { text: Some(Box::new(|path| fs::read_to_string(path).ok())), ..filled() };
    options.settings.policy = "innermost".parse().unwrap();
    options
}

#[test]
fn helpers_named_after_the_kernel_get_the_names_in_their_source() {
    for version in [4, 5] {
        for kernels in [&["first"][..], &["first", "second", "third"]] {
            let folder = Folder::new();
            let bytes = folder.helpers(version, kernels, "None");
            let expected = |names: [Option<&str>; 2]| -> Vec<Vec<String>> {
                let frames = |kernel: &&str| {
                    let [leaf, mid] = names.map(|name| name.unwrap_or(kernel));
                    vec![
                        format!("{leaf} {kernel}.py:2"),
                        format!("{mid} {kernel}.py:6"),
                        format!("{kernel} {kernel}.py:10"),
                    ]
                };
                kernels.iter().map(frames).collect()
            };
            assert_eq!(named_frames(&bytes), expected([None, None]), "the compiler names them now");
            let new = check(&bytes, &reading_sources());
            assert_eq!(named_frames(&new), expected([Some("leaf"), Some("mid")]));
            let (_, summary) = refine("k", bytes.clone(), &reading_sources()).unwrap();
            assert_eq!(summary.named, 2 * kernels.len());
            // With sites outside the helpers nothing is shown by those names, and all holds.
            check(&bytes, &Options { text: reading_sources().text, ..Options::default() });
            // Without the sources, names stay; sources that moved are found by the command.
            for kernel in kernels {
                let source = format!("{kernel}.py");
                fs::create_dir_all(folder.path("moved")).unwrap();
                fs::rename(folder.path(&source), folder.path("moved").join(&source)).unwrap();
            }
            assert_eq!(named_frames(&check(&bytes, &reading_sources())), expected([None, None]));
            let (input, out) = (folder.path("helpers.hsaco"), folder.path("out"));
            let moved = format!("{0}={0}/moved", folder.0.path().display());
            run(siteline()
                .args(["refine", "--policy", "innermost", "--source-root", &moved, "-o"])
                .arg(&out)
                .arg(input));
            let named = named_frames(&fs::read(out).unwrap());
            assert_eq!(named, expected([Some("leaf"), Some("mid")]));
        }
    }
}

#[test]
fn names_of_their_own_and_names_in_an_index_stay() {
    let folder = Folder::new();
    // The description of the helpers is apart from the kernel's, and named.
    let text = one_function("k", 5, folder.0.path().to_str().unwrap(), "None");
    let own = "!13 = distinct !DISubprogram(name: \"own\", file: !1, line: 9, type: !5, unit: !0, \
               spFlags: DISPFlagDefinition | DISPFlagOptimized)\n";
    let text =
        text.replace("!7 = !DILexicalBlockFile(scope: !4", "!7 = !DILexicalBlockFile(scope: !13");
    let (source, out) = (folder.write("own.ll", text + own), folder.path("own.hsaco"));
    run(clang().arg(source).arg("-o").arg(&out));
    let index = folder.helpers(5, &["k"], "Default");
    for (bytes, name) in [(fs::read(out).unwrap(), "own"), (index, "k")] {
        let new = check(&bytes, &reading_sources());
        let frames = [format!("{name} k.py:2"), format!("{name} k.py:6"), "k k.py:10".to_owned()];
        assert_eq!(named_frames(&new), [frames]);
        assert_eq!(refine("k", bytes, &reading_sources()).unwrap().1.named, 0);
    }
}

#[test]
fn compressed_sections_stay_compressed() {
    let folder = Folder::new();
    for version in [4, 5] {
        folder.object(version, &["k"]);
        let plain = check(&fs::read(folder.path("k.hsaco")).unwrap(), &Options::default());
        for kind in ["zlib", "zstd"] {
            let packed = folder.path("packed");
            run(Command::new("llvm-objcopy-22")
                .arg(format!("--compress-debug-sections={kind}"))
                .arg(folder.path("k.hsaco"))
                .arg(&packed));
            let new = folder.write("new", check(&fs::read(&packed).unwrap(), &Options::default()));
            let sections = text(Command::new("llvm-readelf-22").arg("-S").arg(&new));
            let line = sections.lines().find(|line| line.contains(".debug_line ")).unwrap();
            assert!(line.contains(" C "), "{line}");
            assert_eq!(symbolized(&fs::read(&new).unwrap()), symbolized(&plain));
        }
    }
}

#[test]
fn several_units_are_refined() {
    for version in [4, 5] {
        let bytes = Folder::new().object(version, &["k", "other", "third"]);
        let new = check(&bytes, &filled());
        assert_eq!(symbolized(&new).len(), symbolized(&bytes).len());
    }
}

#[test]
fn every_policy_gives_a_valid_object() {
    let bytes = Folder::new().object(5, &["k"]);
    for policy in ["distinct", "unique", "innermost", "outermost", "depth:1", "skip:*/nothing"] {
        let mut options = filled();
        options.settings.policy = policy.parse().unwrap();
        let new = check(&bytes, &options);
        if policy == "innermost" {
            assert_eq!(symbolized(&new), symbolized(&bytes));
        }
    }
}

#[test]
fn fill_leaves_no_instruction_without_a_line() {
    for version in [4, 5] {
        let bytes = Folder::new().object(version, &["k"]);
        let new = check(&bytes, &filled());
        let mut chains = Chains::new();
        let found = chains_of(&new, &mut chains);
        for (address, chain, _) in &found {
            let line = chain.map(|chain| chains.innermost(chain).line);
            assert!(line.is_some_and(|line| line != 0), "{address:#x}: {line:?}");
        }
        // What was filled is marked, and filling an object refined without it does the same.
        let (plain, _) = refine("k", bytes, &Options::default()).unwrap();
        let later = check(&plain, &filled());
        let lines = |bytes: &[u8], chains: &mut Chains| -> Vec<String> {
            let found = chains_of(bytes, chains);
            found.iter().map(|(_, chain, _)| chains.display(chain.unwrap()).to_string()).collect()
        };
        assert_eq!(lines(&later, &mut chains), lines(&new, &mut chains));
    }
}

fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut bytes = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    bytes.extend((entries.len() as u64).to_le_bytes());
    let mut at = 4096;
    for (id, data) in entries {
        for number in [at, data.len(), id.len()] {
            bytes.extend((number as u64).to_le_bytes());
        }
        bytes.extend(id.bytes());
        at = (at + data.len()).next_multiple_of(4096);
    }
    for (_, data) in entries {
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        bytes.extend(*data);
    }
    bytes
}

const ENTRIES: [&str; 3] = [
    "host-x86_64-unknown-linux-gnu",
    "hipv4-amdgcn-amd-amdhsa--gfx942",
    "hipv4-amdgcn-amd-amdhsa--gfx942:sramecc+",
];

#[test]
fn bundles_are_rewritten_around_their_code_objects() {
    let object = Folder::new().object(5, &["k"]);
    let (new, _) = refine("k", object.clone(), &Options::default()).unwrap();
    let entries = |object| [(ENTRIES[0], &b""[..]), (ENTRIES[1], object), (ENTRIES[2], object)];
    let plain = bundle(&entries(&object));
    assert_eq!(refine("k", plain.clone(), &Options::default()).unwrap().0, bundle(&entries(&new)));
    let (repacked, summary) = refine("k", compressed(&plain), &Options::default()).unwrap();
    assert_eq!(summary.objects, 2);
    assert!(repacked.starts_with(b"CCOB\x03\0\x01\0"));
    let mut chains = Chains::new();
    let read = CodeObject::read_all("k", repacked.clone(), &mut chains).unwrap();
    assert!(read.iter().all(|object| **object.elf.data() == *new));
    assert!(refine("k", repacked.clone(), &Options::default()).unwrap().0 == repacked);
}

/// A host object whose `.hip_fatbin` holds `bundle` and as much fill behind it.
fn host(folder: &Folder, bundle: &[u8], fill: usize) -> Vec<u8> {
    let path = folder.write("bundle", bundle);
    let source = format!(
        ".section .hip_fatbin,\"a\",@progbits\n.p2align 12\n.incbin \"{}\"\n.zero {fill}\n",
        path.display()
    );
    let (source, out) = (folder.write("host.s", source), folder.path("host.o"));
    run(Command::new("clang-22")
        .args(["-target", "x86_64-linux-gnu", "-c"])
        .arg(source)
        .arg("-o")
        .arg(&out));
    fs::read(out).unwrap()
}

#[test]
fn fat_binaries_are_rewritten_in_place() {
    let folder = Folder::new();
    let object = folder.object(5, &["k"]);
    let host_file = host(&folder, &bundle(&[(ENTRIES[1], &object)]), 8192);
    let (new, _) = refine("k", host_file.clone(), &Options::default()).unwrap();
    assert_eq!(new.len(), host_file.len());
    let mut chains = Chains::new();
    let read = CodeObject::read_all("k", new, &mut chains).unwrap();
    let (refined, _) = refine("k", object, &Options::default()).unwrap();
    assert!(**read[0].elf.data() == *refined);
}

/// A compressed bundle, as clang makes them.
fn compressed(bundle: &[u8]) -> Vec<u8> {
    let body = zstd::encode_all(bundle, 3).unwrap();
    let sizes = [body.len() as u64 + 32, bundle.len() as u64].map(u64::to_le_bytes).concat();
    [&b"CCOB\x03\0\x01\0"[..], &sizes, &[0; 8], &body].concat()
}

#[test]
fn a_bundle_without_room_in_a_fat_binary_is_packed() {
    let folder = Folder::new();
    for version in [4, 5] {
        let object = folder.object(version, &["k", "other"]);
        let (alone, _) = refine("k", object.clone(), &filled()).unwrap();
        assert!(alone.len() > object.len(), "this test needs an object that grows");
        let plain = bundle(&[(ENTRIES[1], &object), (ENTRIES[2], &object)]);
        for bundle in [&plain, &compressed(&plain), &object] {
            let host_file = host(&folder, bundle, 0);
            let (new, summary) = refine("k", host_file.clone(), &filled()).unwrap();
            assert_eq!(new.len(), host_file.len());
            assert!(refine("k", new.clone(), &filled()).unwrap().0 == new, "not the same again");
            let mut chains = Chains::new();
            let read = CodeObject::read_all("k", new.clone(), &mut chains).unwrap();
            assert_eq!(read.len(), summary.objects);
            for found in read {
                let (a, b) = (folder.write("a", &object), folder.write("b", &**found.elf.data()));
                run(Command::new("llvm-dwarfdump-22").arg("--verify").arg(&b));
                assert_eq!(outside_debug(&a), outside_debug(&b));
                assert_eq!(identity::compare(&object, found.elf.data(), Extent::Loaded), Ok(None));
                assert_eq!(symbolized(found.elf.data()), symbolized(&alone));
            }
            // What is around the fat binary stays.
            let elf = Elf::parse(host_file.clone().into()).unwrap();
            let section = elf.section(".hip_fatbin").unwrap();
            let place = section.offset as usize..(section.offset + section.size) as usize;
            assert!(new[..place.start] == host_file[..place.start]);
            assert!(new[place.end..] == host_file[place.end..]);
        }
    }
}

#[test]
fn a_fat_binary_without_room_is_refused() {
    let folder = Folder::new();
    folder.object(5, &["k"]);
    // Nothing is left to be compressed, and no fill is behind the last section.
    let packed = folder.path("packed");
    run(Command::new("llvm-objcopy-22")
        .arg("--compress-debug-sections=zlib")
        .arg(folder.path("k.hsaco"))
        .arg(&packed));
    let host_file = host(&folder, &bundle(&[(ENTRIES[1], &fs::read(&packed).unwrap())]), 0);
    let refined = refine("k", host_file.clone(), &filled());
    let error = refined.map(|(_, summary)| summary).unwrap_err().to_string();
    assert!(error.contains("has room for") && error.contains("before it is linked"), "{error}");
    let (input, out) = (folder.write("host", &host_file), folder.path("out"));
    let output =
        siteline().args(["refine", "--fill", "-o"]).arg(&out).arg(&input).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(!out.exists() && fs::read(&input).unwrap() == host_file);
}

#[test]
fn the_object_in_a_gpu_binary_is_rewritten() {
    let object = Folder::new().object(5, &["k"]);
    let escaped: String = object.iter().map(|byte| format!("\\{byte:02X}")).collect();
    let escaped = escaped.replacen("\\45\\4C\\46", "ELF", 1);
    let module = |text: &str| format!("gpu.binary @k [#gpu.object<#rocdl.target, \"{text}\">]\n");
    let (new, _) = refine("k", module(&escaped).into(), &Options::default()).unwrap();
    let mut chains = Chains::new();
    let read = CodeObject::read_all("k", new, &mut chains).unwrap();
    assert!(**read[0].elf.data() == *refine("k", object, &Options::default()).unwrap().0);
}

#[test]
fn damaged_objects_give_errors_and_never_other_code() {
    let bytes = Folder::new().object(5, &["k"]);
    let start = (0..bytes.len()).step_by(61);
    for end in start.clone() {
        let _ = refine("k", bytes[..end].to_vec(), &filled());
    }
    for at in start {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            if let Ok((new, _)) = refine("k", damaged.clone(), &filled()) {
                assert_eq!(identity::compare(&damaged, &new, Extent::Loaded), Ok(None));
            }
        }
    }
}

fn siteline() -> Command {
    Command::new(env!("CARGO_BIN_EXE_siteline"))
}

#[test]
fn what_cannot_be_refined_leaves_no_output() {
    let folder = Folder::new();
    let bytes = folder.object(5, &["k"]);
    let relocatable = fs::read(folder.path("k.o")).unwrap();
    let stripped = folder.path("stripped");
    run(Command::new("llvm-objcopy-22")
        .arg("--strip-debug")
        .arg(folder.path("k.hsaco"))
        .arg(&stripped));
    for (name, bytes, message) in [
        ("text", b"hello".to_vec(), "this is no code object"),
        ("cut", bytes[..bytes.len() / 2].to_vec(), "reaches outside the file"),
        ("relocatable", relocatable, "link it, then refine it"),
        ("stripped", fs::read(&stripped).unwrap(), "compile it with -g"),
    ] {
        let (input, out) = (folder.write(name, &bytes), folder.path("out"));
        let output = siteline().arg("refine").arg(&input).arg("-o").arg(&out).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(message) && error.contains(name), "{error}");
        assert!(!out.exists());
        assert_eq!(fs::read(&input).unwrap(), bytes);
    }
}

#[test]
fn a_write_that_fails_leaves_no_output_or_the_old_one() {
    let folder = Folder::new();
    folder.object(5, &["k"]);
    let input = folder.path("k.hsaco");
    let fails = |command: &mut Command| {
        let output = command.output().unwrap();
        assert!(!output.status.success());
    };
    fails(siteline().arg("refine").arg(&input).arg("-o").arg(folder.path("no/folder/out")));
    fails(siteline().arg("refine").arg(&input).args(["-o", "/dev/full"]));
    // A limit on the size of files stops the write at every number of blocks.
    let size = refine("k", fs::read(&input).unwrap(), &Options::default()).unwrap().0.len();
    let places = || fs::read_dir(folder.0.path()).unwrap().count();
    let before = places();
    for old in [None, Some("old")] {
        for blocks in 0..size / 512 {
            let out = folder.path("out");
            let script = format!("ulimit -f {blocks}; trap '' XFSZ; exec \"$@\"");
            old.inspect(|old| fs::write(&out, old).unwrap());
            fails(
                Command::new("sh")
                    .args(["-c", &script, "sh", env!("CARGO_BIN_EXE_siteline"), "refine"])
                    .arg(&input)
                    .arg("-o")
                    .arg(&out),
            );
            assert_eq!(fs::read_to_string(&out).ok().as_deref(), old);
        }
    }
    assert_eq!(places(), before + 1);
    run(siteline().arg("refine").arg(&input).arg("-o").arg(&input));
    assert_eq!(fs::metadata(&input).unwrap().len() as usize, size);
}
