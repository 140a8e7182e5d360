//! Writing traces anew: remap and resite.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use siteline::att::remap::{MappedInstruction, MappedKernel, Mapping, Options, remap};

#[path = "support/att.rs"]
mod support;

use support::{SMALL, SOURCE, capture, contents, fails, json, siteline, small_folder};

/// The cells of a `code.json`, each as the bytes that stand there.
fn cells(path: &Path) -> Vec<Vec<Box<RawValue>>> {
    #[derive(serde::Deserialize)]
    struct File {
        code: Vec<Vec<Box<RawValue>>>,
    }
    serde_json::from_slice::<File>(&fs::read(path).unwrap()).unwrap().code
}

/// A mapping made of a trace: what an object of the same code with its Sources would give.
fn mapping_of(text: &str) -> Mapping {
    let file: Value = serde_json::from_str(text).unwrap();
    let mut kernels = Vec::new();
    for row in file["code"].as_array().unwrap() {
        let isa = row[0].as_str().unwrap();
        if let Some(symbol) = isa.strip_prefix("; ") {
            kernels.push(MappedKernel { symbol: symbol.into(), instructions: Vec::new() });
            continue;
        }
        let source: Arc<str> = row[3].as_str().unwrap_or_default().into();
        kernels.last_mut().unwrap().instructions.push(MappedInstruction {
            vaddr: row[5].as_u64().unwrap(),
            text: format!("\t{isa} // 0A: BF8C").into(),
            chain: format!("{source} -> outer.py:1").into(),
            source,
        });
    }
    Mapping { name: "made_up.hsaco".into(), chip: Some("gfx950".into()), kernels }
}

fn here(path: &str) -> PathBuf {
    path.into()
}

fn options(chains: bool) -> Options<'static> {
    Options { chains, kernel: None, locate: &here }
}

#[test]
fn the_seed_s_before_with_the_map_of_after_has_the_sources_of_after() {
    let (Some(before), Some(after)) = (capture("before_code.json"), capture("after_code.json"))
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mapping = mapping_of(&fs::read_to_string(&after).unwrap());
    let written = remap(&before, &[mapping], &out, &options(false)).unwrap();
    assert_eq!((written.instructions, written.matched, written.changed), (2069, 2069, 2062));
    let (before, after, new) = (cells(&before), cells(&after), cells(&out.join("code.json")));
    assert_eq!(new.len(), 2070);
    for ((before, after), new) in before.iter().zip(&after).zip(&new) {
        for (column, cell) in new.iter().enumerate() {
            let expected = if column == 3 { after } else { before };
            assert_eq!(cell.get(), expected[column].get());
        }
    }
    viewer(&out);
}

/// A reader of the format that shares nothing with siteline's: the columns by position, as the
/// published viewer reads them. Gives the files that the rows and the tree of sources name.
fn viewer(folder: &Path) -> BTreeMap<String, PathBuf> {
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(folder.join(name)).unwrap()).unwrap()
    };
    let code = read("code.json");
    for row in code["code"].as_array().unwrap() {
        assert!(row[0].is_string(), "ISA");
        assert!(row[2].as_i64().is_some_and(|line| i32::try_from(line).is_ok()), "LineNumber");
        let source = row[3].as_str().unwrap_or_default();
        assert!(row[3].is_null() || row[3].is_string(), "Source");
        for (column, name) in [(4, "Codeobj"), (5, "Vaddr"), (7, "Latency")] {
            assert!(row[column].is_i64(), "{name}");
        }
        assert!(row[6].as_i64().is_some_and(|hit| i32::try_from(hit).is_ok()), "Hit");
        assert!(row[8].is_i64() && row[9].is_i64(), "Stall, Idle");
        if row[0].as_str().unwrap().starts_with(';') || source.is_empty() {
            continue;
        }
        for frame in source.split(" -> ") {
            let (file, line) = frame.rsplit_once(':').expect("file:line");
            assert!(!file.is_empty() && (line == "?" || line.parse::<u32>().is_ok()), "{frame}");
        }
    }
    assert!(read("filenames.json").get("wave_filenames").is_some());
    let mut sources = BTreeMap::new();
    collect(&read("snapshots.json"), "", folder, &mut sources);
    sources
}

fn collect(tree: &Value, above: &str, folder: &Path, sources: &mut BTreeMap<String, PathBuf>) {
    for (key, value) in tree.as_object().unwrap() {
        let slash = if above.is_empty() || above.ends_with('/') { "" } else { "/" };
        let path = format!("{above}{slash}{key}");
        match value.as_str() {
            Some(name) => _ = sources.insert(path, folder.join(name)),
            None => collect(value, &path, folder, sources),
        }
    }
}

/// A made-up mapping for the first kernel of the small folder, whose lines lie elsewhere.
fn small_mapping() -> Mapping {
    let mut mapping = mapping_of(SMALL);
    mapping.kernels.remove(1);
    for instruction in &mut mapping.kernels[0].instructions {
        instruction.source = format!("/else/where/new.py:{}", instruction.vaddr % 100 + 1).into();
        instruction.chain = format!("{} -> /src/made_up.py:9", instruction.source).into();
    }
    mapping
}

#[test]
fn what_is_not_source_stays_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = (folder.path().join("trace"), folder.path().join("out"));
    small_folder(&trace);
    let written = remap(&trace, &[small_mapping()], &out, &options(false)).unwrap();
    assert_eq!((written.instructions, written.matched, written.changed), (10, 8, 8));
    assert_eq!(written.sources_missing.len(), 3, "{written:?}");

    let mut expected = SMALL.to_string();
    for (old, vaddr) in [
        (r#""/src/made_up.py:6""#, 5888),
        (r#""/src/made_up.py:5 -> /src/made_up.py:7""#, 5896),
        (r#""\/src\/made_up.py:8""#, 5904),
        (r#""/src/made_up.py:5 -> /src/made_up.py:9""#, 5908),
        (r#""/src/made_up.py:?""#, 5916),
        (r#""/src/made_up.py:2""#, 5920),
        ("null", 5924),
        (r#""""#, 5928),
    ] {
        let new = format!("\"/else/where/new.py:{}\", 4, {vaddr}", vaddr % 100 + 1);
        expected = expected.replacen(&format!("{old}, 4, {vaddr}"), &new, 1);
        assert!(expected.contains(&new));
    }
    assert_eq!(fs::read_to_string(out.join("code.json")).unwrap(), expected);

    let (before, mut after) = (contents(&trace), contents(&out));
    after.insert("code.json".into(), SMALL.into());
    assert_eq!(before, after);
    viewer(&out);
}

#[test]
fn the_same_mapping_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = (folder.path().join("trace"), folder.path().join("out"));
    small_folder(&trace);
    let written = remap(&trace, &[mapping_of(SMALL)], &out, &options(false)).unwrap();
    assert_eq!((written.matched, written.changed), (10, 0));
    assert_eq!(contents(&trace), contents(&out));
}

#[test]
fn whole_chains_are_written_when_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = (folder.path().join("trace"), folder.path().join("out"));
    small_folder(&trace);
    remap(&trace, &[small_mapping()], &out, &options(true)).unwrap();
    let rows = cells(&out.join("code.json"));
    assert_eq!(rows[1][3].get(), "\"/else/where/new.py:89 -> /src/made_up.py:9\"");
    assert_eq!(viewer(&out).len(), 1);
}

#[test]
fn sources_are_saved_and_listed() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = (folder.path().join("trace"), folder.path().join("out"));
    small_folder(&trace);
    let place = folder.path().join("found.py");
    fs::write(&place, "made up").unwrap();
    let locate = |path: &str| match path {
        "/else/where/new.py" => place.clone(),
        _ => path.into(),
    };
    let options = Options { locate: &locate, ..options(true) };
    let written = remap(&trace, &[small_mapping()], &out, &options).unwrap();
    assert_eq!((written.sources_saved, written.sources_kept), (1, 1));
    let sources = viewer(&out);
    assert_eq!(fs::read(&sources["/else/where/new.py"]).unwrap(), b"made up");
    assert_eq!(sources["/else/where/new.py"], out.join("source_1_new.py"));
    assert_eq!(fs::read(&sources["/src/made_up.py"]).unwrap(), SOURCE.as_bytes());
}

#[test]
fn a_source_below_a_source_root_replaces_a_saved_one() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = (folder.path().join("trace"), folder.path().join("out"));
    small_folder(&trace);
    let root = folder.path().join("newer");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("made_up.py"), "newer").unwrap();
    let root = format!("/src={}", root.display());
    let (trace, out) = (trace.to_str().unwrap(), out.to_str().unwrap());
    let written = json(&["resite", trace, "-o", out, "--json", "--source-root", &root]);
    assert_eq!(written["sources_saved"], 1);
    assert_eq!(fs::read(Path::new(out).join("source_0_made_up.py")).unwrap(), b"newer");
}

#[test]
fn a_lone_code_table_becomes_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (code, out) = (folder.path().join("code.json"), folder.path().join("out"));
    fs::write(&code, SMALL).unwrap();
    remap(&code, &[small_mapping()], &out, &options(false)).unwrap();
    let names: Vec<_> = contents(&out).into_keys().collect();
    assert_eq!(names, ["code.json", "filenames.json", "snapshots.json"].map(PathBuf::from));
    let list: Value =
        serde_json::from_slice(&fs::read(out.join("filenames.json")).unwrap()).unwrap();
    assert_eq!((&list["gfxip"], &list["version"]), (&9.into(), &"3.0.0".into()));
    viewer(&out);
}

/// The message of a remap that must fail, which leaves nothing behind.
fn refused(mapping: &Mapping, options: &Options<'_>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = (folder.path().join("trace"), folder.path().join("out"));
    small_folder(&trace);
    let error =
        remap(&trace, std::slice::from_ref(mapping), &out, options).unwrap_err().to_string();
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    error
}

#[test]
fn other_code_is_refused_with_its_first_difference() {
    let mut mapping = small_mapping();
    mapping.kernels[0].instructions[2].text = "s_waitcnt   vmcnt(0)".into();
    let error = refused(&mapping, &options(false));
    assert!(error.contains("at address 0x1710 of kernel 'made_up_0' (row 3 of 'code')"), "{error}");
    assert!(error.contains("the trace has 's_waitcnt lgkmcnt(0)'"), "{error}");
    assert!(error.contains("the object has 's_waitcnt vmcnt(0)'"), "{error}");

    let mut mapping = small_mapping();
    mapping.kernels[0].instructions.remove(0);
    let error = refused(&mapping, &options(false));
    assert!(error.contains("0x1700") && error.contains("the object has no instruction"), "{error}");

    let mut mapping = mapping_of(SMALL);
    mapping.kernels[0].symbol = "_Z5otherPi".into();
    mapping.kernels[1].symbol = "made_up_0".into();
    let error = refused(&mapping, &options(false));
    assert!(error.contains("(row 0 of 'code') the trace has '; made_up_0'"), "{error}");

    let mut mapping = small_mapping();
    mapping.kernels[0].symbol = "another".into();
    let error = refused(&mapping, &options(false));
    assert!(error.contains("the object has 'another'"), "{error}");

    let other = Options { kernel: Some("none"), ..options(false) };
    let error = refused(&small_mapping(), &other);
    assert!(error.contains("no kernel 'none'"), "{error}");
}

#[test]
fn a_place_that_is_taken_or_inside_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    small_folder(&trace);
    let before = contents(&trace);
    let path = trace.to_str().unwrap();
    for (out, part) in [
        (trace.clone(), "exists already"),
        (trace.join("code.json"), "exists already"),
        (trace.join("out"), "in the trace's own folder"),
        (trace.join("deep/er/out"), "in the trace's own folder"),
        (folder.path().join("no/such/out"), "cannot write"),
        (PathBuf::from("-"), "a trace is a folder"),
    ] {
        let error = fails(&["resite", path, "-o", out.to_str().unwrap()], 2);
        assert!(error.contains(part), "{error}");
        assert_eq!(contents(&trace), before);
    }
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(siteline(&["resite", path, "-o", empty.to_str().unwrap()]).status.success());
    viewer(&empty);
}

#[test]
fn names_that_lead_elsewhere_write_nothing_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("in");
    let (trace, out) = (inner.join("trace"), inner.join("out"));
    small_folder(&trace);
    fs::write(trace.join("snapshots.json"), r#"{"/":{"src":{"made_up.py":"../../evil"}}}"#)
        .unwrap();
    let place = folder.path().join("found");
    fs::write(&place, "made up").unwrap();
    let mut mapping = small_mapping();
    for (instruction, name) in mapping.kernels[0].instructions.iter_mut().zip([
        "../../../up.py",
        "/abs/../../../up.py",
        "/",
        "..",
        "/a/..",
        "c:\\back\\..\\slash.py",
        "/nul\u{1}/co\u{7}ntrol.py",
        "/long/name.py",
    ]) {
        let long = "x".repeat(5_000);
        instruction.source = format!("{}:3", name.replace("long", &long)).into();
    }
    let before = contents(&trace);
    let locate = |_: &str| place.clone();
    let options = Options { locate: &locate, ..options(false) };
    let written = remap(&trace, &[mapping], &out, &options).unwrap();
    assert_eq!(written.sources_outside, 1);
    assert!(written.sources_saved >= 8, "{written:?}");
    assert_eq!(contents(&trace), before);
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(fs::read_dir(&inner).unwrap().count(), 2);
    for (name, path) in viewer(&out) {
        if name != "/src/made_up.py" {
            assert_eq!(path.parent(), Some(out.as_path()), "{name}");
            assert!(path.is_file(), "{name}");
        }
    }
}

#[test]
fn a_link_or_a_pipe_in_the_folder_is_handled() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = (folder.path().join("trace"), folder.path().join("out"));
    small_folder(&trace);
    std::os::unix::fs::symlink("source_0_made_up.py", trace.join("link")).unwrap();
    let path = trace.to_str().unwrap();
    assert!(siteline(&["resite", path, "-o", out.to_str().unwrap()]).status.success());
    assert_eq!(fs::read(out.join("link")).unwrap(), SOURCE.as_bytes());
    std::os::unix::fs::symlink(folder.path(), trace.join("loop")).unwrap();
    let again = folder.path().join("again");
    let error = fails(&["resite", path, "-o", again.to_str().unwrap()], 2);
    assert!(error.contains("neither a file nor a folder"), "{error}");
    assert!(!again.exists());
}

/// The Source of each row after `resite` with these arguments.
fn resited(arguments: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = (folder.path().join("trace"), folder.path().join("out"));
    small_folder(&trace);
    let mut all = vec!["resite", trace.to_str().unwrap(), "-o", out.to_str().unwrap()];
    all.extend(arguments);
    let output = siteline(&all);
    assert!(output.status.success(), "{output:?}");
    viewer(&out);
    let text = |cell: &RawValue| -> String {
        serde_json::from_str::<Option<String>>(cell.get()).unwrap().unwrap_or_default()
    };
    cells(&out.join("code.json")).iter().map(|row| text(&row[3])).collect()
}

#[test]
fn sites_are_chosen_among_the_frames_of_the_trace() {
    let sources = resited(&[]);
    assert_eq!(sources[2], "/src/made_up.py:7", "a helper's line gives way to its call sites");
    assert_eq!(sources[4], "/src/made_up.py:9");
    assert_eq!(sources[5], "/src/made_up.py:?");
    assert_eq!(sources[12], "/src/other.hip:4", "a library's line gives way");
    assert_eq!(sources[3], "/src/made_up.py:8");
    assert_eq!(sources[11], "void ns::other<4>(int*)", "labels stay");

    let sources = resited(&["--policy", "innermost", "--library", "/src/*"]);
    assert_eq!(sources[2], "/src/made_up.py:5 -> /src/made_up.py:7", "the kernel's own file");
    let sources = resited(&["--leaves", "barrier"]);
    assert_eq!(sources[2], "/src/made_up.py:5 -> /src/made_up.py:7");
    assert_eq!(sources[12], "/src/other.hip:4");
    let sources = resited(&["--kernel", "made_up_0"]);
    assert_eq!(sources[12], "/opt/rocm-7.1/lib/../include/hip/b.h:3 -> /src/other.hip:4");
}

#[test]
fn resiting_twice_changes_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    small_folder(Path::new(&place("trace")));
    let first = json(&["resite", &place("trace"), "-o", &place("one"), "--json"]);
    let second = json(&["resite", &place("one"), "-o", &place("two"), "--json"]);
    assert_eq!((&first["changed"], &second["changed"]), (&3.into(), &0.into()));
    assert_eq!(contents(Path::new(&place("one"))), contents(Path::new(&place("two"))));
}
