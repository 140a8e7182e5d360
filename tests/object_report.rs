//! `report`, `lines` and `diff` on fixtures, with whatever disassembler is there, or none.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use siteline::chain::Chains;
use siteline::object::{CodeObject, Vaddr, container};

fn fixture(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("test/fixtures/object");
    folder.join(name).display().to_string()
}

/// Runs siteline without a disassembler, so that every machine prints the same.
fn siteline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_siteline"))
        .args(arguments)
        .env("SITELINE_DISASSEMBLER", "none")
        .output()
        .expect("the command starts")
}

fn json(arguments: &[&str]) -> Value {
    let output = siteline(arguments);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("--json prints JSON")
}

/// The message of a command that must end with `status`.
fn fails(arguments: &[&str], status: i32) -> String {
    let output = siteline(arguments);
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn read(name: &str, chains: &mut Chains) -> Vec<CodeObject> {
    CodeObject::read_all(name, std::fs::read(fixture(name)).unwrap(), chains).unwrap()
}

/// Which kernels for which chips a file holds.
fn kernels(name: &str) -> Vec<String> {
    let objects = read(name, &mut Chains::new());
    let kernels = objects.iter().flat_map(|object| {
        object.kernels().map(|kernel| format!("{} {}", object.chip(), kernel.name))
    });
    kernels.collect()
}

#[test]
fn every_container_gives_its_kernels() {
    let gfx942 = ["gfx942 add", "gfx942 exchange"];
    let both = [&gfx942[..], &["gfx1100 add", "gfx1100 exchange"]].concat();
    assert_eq!(kernels("nested.gfx942.hsaco"), gfx942);
    assert_eq!(kernels("zstd.hipfb"), both);
    assert_eq!(kernels("zstd2.hipfb"), both);
    assert_eq!(kernels("fat.o"), [&both[..], &both].concat());
    assert_eq!(kernels("gemms.mlir"), ["gfx942 gemms"]);
    assert_eq!(kernels("gemms.mlirbc"), ["gfx942 gemms"]);
}

#[test]
fn the_same_object_is_read_out_of_every_container() {
    let plain = std::fs::read(fixture("nested.gfx942.hsaco")).unwrap();
    for name in ["zstd.hipfb", "zstd2.hipfb", "fat.o"] {
        let contained = container::read(name, std::fs::read(fixture(name)).unwrap()).unwrap();
        assert_eq!(&**contained[0].elf.data(), &*plain, "{name}");
    }
    let text = container::read("a", std::fs::read(fixture("gemms.mlir")).unwrap()).unwrap();
    let code = container::read("b", std::fs::read(fixture("gemms.mlirbc")).unwrap()).unwrap();
    assert_eq!(&**text[0].elf.data(), &**code[0].elf.data());
    assert_eq!(text[0].label, "a, gpu.binary @gemms");
}

#[test]
fn chips_and_kernels_are_selected() {
    let fat = fixture("fat.o");
    let report = json(&["report", "--json", &fat, "--chip", "gfx1100", "--kernel", "add"]);
    let kernels = report["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 2);
    assert!(kernels.iter().all(|kernel| kernel["name"] == "add" && kernel["chip"] == "gfx1100"));
    let message = fails(&["report", &fat, "--chip", "gfx950"], 2);
    assert!(message.contains("holds no code for gfx950: --chip can be gfx1100, gfx942"));
    let message = fails(&["report", &fat, "--kernel", "gemm"], 2);
    assert!(message.contains("has no kernel 'gemm': --kernel can be add, exchange"), "{message}");
}

#[test]
fn device_functions_are_left_to_those_who_ask() {
    let object = fixture("nested.gfx942.hsaco");
    let report = json(&["report", "--json", &object, "--kernel", "apart"]);
    assert_eq!(report["kernels"][0]["kind"], "function");
}

#[test]
fn a_prologue_and_its_gap_are_counted_apart() {
    let object = fixture("preload.gfx942.hsaco");
    let report = json(&["report", "--json", &object, "--kernel", "exchange"]);
    let kernel = &report["kernels"][0];
    assert_eq!(kernel["definition_line"], 0);
    // In words: the loads take two each.
    assert_eq!((&kernel["prologue"], &kernel["padding"]), (&6.into(), &58.into()));
}

#[test]
fn without_debug_information_lines_are_unknown() {
    let object = fixture("bare.gfx942.hsaco");
    let output = siteline(&["report", "--json", &object]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let kernel = &report["kernels"][0];
    assert_eq!(kernel["debug_info"], false);
    for key in ["lines", "effective_lines", "line_zero", "definition_line", "library"] {
        assert_eq!(kernel[key], Value::Null, "{key}");
    }
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("has no debug information: compile it with -g"), "{message}");
    assert!(message.contains("code is counted in words of 4 bytes"), "{message}");
    let message = fails(&["report", &object, "--require", "line_zero=0"], 1);
    assert!(message.contains("not met: line_zero=0, it is not known"), "{message}");
}

#[test]
fn conditions_gate_every_kernel() {
    let object = fixture("nested.gfx942.hsaco");
    assert!(siteline(&["report", &object, "--require", "lines>=5"]).status.success());
    let message = fails(&["report", &object, "--require", "lines>100"], 1);
    assert!(message.contains("add in '") && message.contains("exchange in '"), "{message}");
    let message = fails(&["report", &object, "--require", "mfma.count>=0"], 1);
    assert!(message.contains("not met: mfma.count>=0, it is not known"), "{message}");
    fails(&["report", &object, "--require", "lines"], 2);
}

#[test]
fn a_report_adds_up() {
    let report = json(&["report", "--json", "--top", "1000", &fixture("fat.o")]);
    for kernel in report["kernels"].as_array().unwrap() {
        let number = |key: &str| kernel[key].as_u64().unwrap();
        let sum = |list: &str| -> u64 {
            let items = kernel[list].as_array().unwrap().iter();
            items.map(|item| item["instructions"].as_u64().unwrap()).sum()
        };
        let mapped = number("instructions") - number("unmapped");
        assert_eq!(sum("files"), mapped);
        assert_eq!(sum("top_lines"), mapped - number("line_zero"));
        assert_eq!(kernel["top_lines"].as_array().unwrap().len() as u64, number("lines"));
        assert!(kernel["effective_lines"].as_f64().unwrap() <= number("lines") as f64);
        let share = kernel["line_zero_share"].as_f64().unwrap();
        assert_eq!(share, number("line_zero") as f64 / number("instructions") as f64);
    }
}

#[test]
fn lines_have_the_chain_and_rocprofilers_text() {
    let object = fixture("nested.gfx942.hsaco");
    let listing = json(&["lines", "--json", &object, "--kernel", "exchange"]);
    let kernel = &listing["kernels"][0];
    assert_eq!(kernel["definition"]["line"], 30);
    let mut texts = BTreeMap::new();
    for instruction in kernel["instructions"].as_array().unwrap() {
        let frames = instruction["frames"].as_array().unwrap();
        let parts: Vec<String> = frames
            .iter()
            .map(|f| format!("{}:{}", f["file"].as_str().unwrap(), f["line"]))
            .collect();
        let expected = parts.join(" -> ").replace(":0", ":?");
        assert_eq!(instruction["rocprofiler"], expected.as_str());
        texts.insert(expected, frames.len());
    }
    assert_eq!(texts["/src/nested.cl:6 -> /src/nested.cl:34 -> /src/nested.cl:30"], 3);
}

#[test]
fn rocprofilers_text_ends_where_rows_end() {
    let mut chains = Chains::new();
    let objects = read("nested.gfx942.hsaco", &mut chains);
    let debug = objects[0].debug.as_ref().unwrap();
    let zero: Vec<_> = debug.rows().filter(|row| row.line == 0).collect();
    let at = zero[0].range.start;
    let chain = debug.chain_at(at, &mut chains).unwrap();
    assert!(siteline::att::source_text(chain, &chains).starts_with("/src/nested.cl:?"));
    for sequence in debug.sequences() {
        let last = Vaddr(sequence.end.0 - 1);
        assert!(debug.chain_at(sequence.start, &mut chains).is_some());
        assert!(debug.chain_at(last, &mut chains).is_some());
        let next = debug.sequences().any(|other| other.start == sequence.end);
        assert_eq!(debug.chain_at(sequence.end, &mut chains).is_some(), next);
    }
    assert_eq!(debug.chain_at(Vaddr(0), &mut chains), None);
}

#[test]
fn sources_are_shown_where_they_are_moved_to() {
    let object = fixture("nested.gfx942.hsaco");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/object");
    let moved = format!("/src={}", sources.display());
    let output = siteline(&["lines", &object, "--kernel", "exchange", "--source-root", &moved]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("/src/nested.cl:32 <- /src/nested.cl:30  | t[i] = a[i];"), "{text}");
    assert!(!text.contains('\x1b'), "no colour in a pipe");
}

#[test]
fn a_diff_groups_the_moves() {
    let (a, b) = (fixture("nested.gfx942.hsaco"), fixture("moved.gfx942.hsaco"));
    let diff = json(&["diff", "--json", &a, &b, "--kernel", "exchange"]);
    let comparison = &diff["kernels"][0]["comparison"];
    assert_eq!(comparison["same_code"], true);
    let moves = comparison["moves"].as_array().unwrap();
    let from_helper = moves.iter().find(|m| m["from"]["line"] == 6).unwrap();
    assert_eq!(from_helper["to"]["line"], 101);
    let counts = moves.iter().map(|m| m["instructions"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), comparison["moved"].as_u64().unwrap());
    let same = json(&["diff", "--json", &a, &a]);
    assert_eq!(same["kernels"][1]["comparison"]["moved"], 0);
}

#[test]
fn a_diff_of_other_code_says_where() {
    let (a, b) = (fixture("nested.gfx942.hsaco"), fixture("preload.gfx942.hsaco"));
    let output = siteline(&["diff", &a, &b]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("different code, first at byte"), "{text}");
    let message = fails(&["diff", &a, &fixture("gemms.mlir")], 2);
    assert!(message.contains("have no kernel of the same name and chip"), "{message}");
}

#[test]
fn what_is_no_code_object_is_one_sentence() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml").display().to_string();
    let message = fails(&["report", &path], 2);
    assert_eq!(message.lines().count(), 1, "{message}");
    assert!(message.contains(&path) && message.contains("this is no code object"), "{message}");
}

/// The keys of an object and of all that is in it.
fn keys(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            into.insert(key.clone());
            keys(value, into);
        }),
        Value::Array(items) => items.iter().for_each(|item| keys(item, into)),
        _ => {}
    }
}

#[test]
fn every_key_is_documented() {
    let (a, b) = (fixture("nested.gfx942.hsaco"), fixture("moved.gfx942.hsaco"));
    let mut all = BTreeSet::new();
    keys(&json(&["report", "--json", &a]), &mut all);
    keys(&json(&["lines", "--json", &a]), &mut all);
    keys(&json(&["diff", "--json", &a, &b]), &mut all);
    let leaf = siteline::object::metrics::LeafReport::default();
    keys(&serde_json::to_value(leaf).unwrap(), &mut all);
    keys(&serde_json::to_value(siteline::object::ir::Lost::default()).unwrap(), &mut all);
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/report.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    for key in all {
        let named = [format!("`{key}`"), format!("\"{key}\"")];
        assert!(named.iter().any(|name| docs.contains(name)), "{key} is not in docs/report.md");
    }
}
