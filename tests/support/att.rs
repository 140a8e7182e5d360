//! Made-up traces of any size, for tests and benchmarks. Nothing in them was measured.
#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A real capture of the folder that lies beside the repository; `None`, and said, without it.
pub fn capture(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/att").join(name);
    if !path.is_file() {
        eprintln!("skipped: there is no '{}'", path.display());
        return None;
    }
    Some(path)
}

/// Runs `siteline att` with these arguments.
pub fn siteline(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_siteline"));
    command.arg("att").args(arguments).output().expect("the command starts")
}

/// The standard error of a command that must end with `status`.
pub fn fails(arguments: &[&str], status: i32) -> String {
    let output = siteline(arguments);
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    String::from_utf8(output.stderr).expect("messages are UTF-8")
}

/// The JSON that a command prints.
pub fn json(arguments: &[&str]) -> serde_json::Value {
    let output = siteline(arguments);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("--json prints JSON")
}

/// A made-up kernel's source. The kernel starts at line 2; line 5 is a helper's only one.
pub const SOURCE: &str = "import dsl
@dsl.kernel
def made_up(a, b):
    def helper(x):
        return dsl.mfma(x)
    dsl.load(a)
    helper(a)
    dsl.wait()
    helper(b)
    dsl.store(b)
";

/// A made-up trace of two kernels in two code objects, with what real ones have and more:
/// escapes, chains, line 0, null and empty Source, padding, PC sampling, unknown columns and
/// keys, odd spacing.
pub const SMALL: &str = r#"{ "mystery": {"a": [1, 2.50, null]},
"code": [
["; made_up_0", 0, 0, "", 4, 5888, 0, 0, 0, 0, "extra", 0, 0],
["s_load_dword s4, s[0:1], 0x3c", 0, 1, "/src/made_up.py:6", 4, 5888, 10, 40, 0, 5, "e", 1, 0],
["v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]", 0, 2, "/src/made_up.py:5 -> /src/made_up.py:7", 4, 5896, 10, 90, 50, 0, {"x": 1.0}, 2, 3],
["s_waitcnt lgkmcnt(0)", 0, 3, "\/src\/made_up.py:8", 4, 5904, 10, 400, 390, 0, "\u00e9", 0, 9],
["v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]", 0, 4, "/src/made_up.py:5 -> /src/made_up.py:9", 4, 5908, 10, 90, 40, 0, 1e2, 0, 0],
["v_mov_b32_e32 v1, v2", 0, 5, "/src/made_up.py:?", 4, 5916, 10, 10, 0, 0, null, 0, 0],
["v_mov_b32_e32 v1, v2", 0, 6, "/src/made_up.py:2", 4, 5920, 10, 10, 0, 0, null, 0, 0],
["v_mov_b32_e32 v3, v4", 0, 7,    null, 4, 5924, 10, 10, 0, 0, null, 0, 0],
["s_endpgm", 0, 8, "", 4, 5928, 10, 10, 0, 0, null, 0, 0],
["s_nop 0", 0, 9, "", 4, 5932, 0, 0, 0, 0, null, 0, 0],
["s_code_end", 0, 10, "", 4, 5936, 0, 0, 0, 0, null, 0, 0],
["; _Z5otherPi", 0, 11, "void ns::other<4>(int*)", 5, 256, 0, 0, 0, 0, null, 0, 0],
["s_barrier", 0, 12, "/opt/rocm-7.1/lib/../include/hip/b.h:3 -> /src/other.hip:4", 5, 256, 5, 20, 20, 0, null, 0, 0],
["s_endpgm", 0, 13, "/src/other.hip:3", 5, 264, 5, 5, 0, 0, null, 0, 0]
],
"header": ["ISA", "_", "LineNumber", "Source", "Codeobj", "Vaddr", "Hit", "Latency", "Stall", "Idle", "Mystery", "PC_Issued", "PC_Stalled"],
"version": "3.0.0" }
"#;

/// The names of the waves of [`small_folder`].
const WAVES: &str = r#"{"gfxip":9,"note":"made up","wave_filenames":{"0":{"0":{"0":{"0":["se0_sm0_sl0_wv0.json",1,2]}}}}}"#;

/// A made-up trace's folder: [`SMALL`], one saved source, a list of waves, one wave.
pub fn small_folder(folder: &Path) {
    let write = |name: &str, text: &str| {
        std::fs::write(folder.join(name), text).expect("the folder can be written");
    };
    std::fs::create_dir_all(folder.join("deep/er")).expect("the folder can be made");
    write("code.json", SMALL);
    write("source_0_made_up.py", SOURCE);
    write("snapshots.json", r#"{"/":{"src":{"made_up.py":"source_0_made_up.py"}}}"#);
    write("filenames.json", WAVES);
    write("se0_sm0_sl0_wv0.json", r#"{"wave":{"waitcnt":[[3,[[1,0]]]]}}"#);
    write("deep/er/unknown.bin", "\u{0}made up");
}

/// Every file below a folder, by its path there.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn collect(folder: &Path, below: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in std::fs::read_dir(folder.join(below)).expect("the folder can be read") {
            let below = below.join(entry.expect("the entry can be read").file_name());
            let path = folder.join(&below);
            if path.is_dir() {
                collect(folder, &below, found);
            } else {
                found.insert(below, std::fs::read(&path).expect("the file can be read"));
            }
        }
    }
    let mut found = BTreeMap::new();
    collect(folder, Path::new(""), &mut found);
    found
}

/// Instructions that the made-up kernels repeat.
const ISA: &[&str] = &[
    "s_load_dword s4, s[0:1], 0x3c",
    "v_mfma_f32_32x32x16_bf16 a[0:15], v[0:3], v[4:7], a[0:15]",
    "s_waitcnt lgkmcnt(0)",
    "ds_read_b128 v[0:3], v4",
    "buffer_load_dwordx4 v5, s[8:11], 0 offen lds",
    "v_cvt_pk_bf16_f32 v0, v2, v3",
    "s_barrier",
    "s_nop 1",
];

/// The header of every made-up trace.
pub const HEADER: &str = "ISA, _, LineNumber, Source, Codeobj, Vaddr, Hit, Latency, Stall, Idle";

/// A made-up `code.json` with this many instructions, in kernels of 5,000.
pub fn code_json(instructions: usize) -> String {
    let mut text = String::with_capacity(instructions * 140 + 200);
    text.push_str("{\"code\":[");
    let mut row = 0;
    for at in 0..instructions {
        let vaddr = 0x1700 + 8 * at;
        if at % 5_000 == 0 {
            let name = format!("made_up_kernel_{}", at / 5_000);
            write_row(&mut text, row, &format!("; {name}"), "", vaddr, [0; 4]);
            row += 1;
        }
        let isa = format!("{} // {}", ISA[at % ISA.len()], at % 997);
        let source = source(at);
        let at = at as u64;
        let counts = [32, 128 + at % 61, at % 61, at % 7];
        write_row(&mut text, row, &isa, &source, vaddr, counts);
        row += 1;
    }
    let _ = write!(text, "],\"header\":\"{HEADER}\",\"note\":\"made up\",\"version\":\"3.0.0\"}}");
    text
}

fn source(at: usize) -> String {
    let kernel = "/made/up/folder/of/sources/kernels/made_up_kernel.py";
    match at % 5 {
        0 => format!("{kernel}:{}", 100 + at % 900),
        1 => format!("/made/up/helpers.py:{} -> {kernel}:{}", at % 50, 100 + at % 400),
        2 => format!("{kernel}:?"),
        _ => format!("{kernel}:{}", 257 + at % 3),
    }
}

fn write_row(text: &mut String, row: usize, isa: &str, source: &str, vaddr: usize, n: [u64; 4]) {
    let comma = if row == 0 { "" } else { "," };
    let [hit, latency, stall, idle] = n;
    let _ = write!(
        text,
        "{comma}[\"{isa}\",0,{row},\"{source}\",4,{vaddr},{hit},{latency},{stall},{idle}]"
    );
}
