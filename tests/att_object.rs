//! A trace of an example kernel without sites gets the locations of its build with sites.
//!
//! The traces are made up by the tests: real instructions and addresses, invented counts.
//! What each row must show is taken from LLVM's own tools, which share nothing with siteline.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

#[path = "support/att.rs"]
mod support;

use support::{fails, json, siteline};

const TOOLS: &str = "/usr/lib/llvm-22/bin";

/// Compiles an example, and gives the object's path.
fn compile(folder: &Path, example: &str, chip: &str, sites: bool) -> PathBuf {
    let object = folder.join(format!("{example}-{sites}.hsaco"));
    let mut command = Command::new(env!("CARGO_BIN_EXE_siteline"));
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    command.args(["compile", &format!("examples/{example}.mlir"), "--chip", chip, "-g"]);
    if !sites {
        command.arg("--no-sites");
    }
    let output = command.arg("-o").arg(&object).output().expect("the command starts");
    assert!(output.status.success(), "{output:?}");
    object
}

/// What LLVM's tool prints, given some input.
fn tool(name: &str, arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(Path::new(TOOLS).join(name))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the tool starts");
    let mut stdin = child.stdin.take().expect("the input is a pipe");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("the tool ends");
    writer.join().expect("the writer ends").expect("the input is read");
    String::from_utf8(output.stdout).expect("tools print UTF-8")
}

/// A kernel's name, and its instructions with their addresses, as LLVM's tool lists them.
fn disassemble(object: &Path) -> (String, Vec<(u64, String)>) {
    let listing = tool("llvm-objdump", &["-d", "--no-show-raw-insn", object.to_str().unwrap()], "");
    let mut name = String::new();
    let mut code = Vec::new();
    for line in listing.lines() {
        if let Some(symbol) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
            name = symbol.1.into();
        } else if let Some((text, rest)) = line.split_once("//") {
            let address = rest.trim().split(':').next().unwrap_or_default();
            code.push((u64::from_str_radix(address, 16).unwrap(), text.trim().to_owned()));
        }
    }
    (name, code)
}

/// The Source of each address, as LLVM's tool finds it.
fn symbolize(object: &Path, code: &[(u64, String)]) -> Vec<String> {
    let addresses: String = code.iter().map(|(address, _)| format!("{address:#x}\n")).collect();
    let object = format!("--obj={}", object.display());
    let found = tool("llvm-symbolizer", &[&object, "--inlines", "--output-style=JSON"], &addresses);
    let source = |line: &str| {
        let found: Value = serde_json::from_str(line).unwrap();
        let frame = |frame: &Value| match frame["Line"].as_u64() {
            None | Some(0) => format!("{}:?", frame["FileName"].as_str().unwrap()),
            Some(line) => format!("{}:{line}", frame["FileName"].as_str().unwrap()),
        };
        let frames: Vec<_> = found["Symbol"].as_array().unwrap().iter().map(frame).collect();
        frames.join(" -> ")
    };
    found.lines().map(source).collect()
}

/// Writes a made-up trace of an object's kernel with these Sources.
fn write_trace(folder: &Path, object: &Path, sources: &[String]) {
    let (name, code) = disassemble(object);
    let mut rows =
        vec![serde_json::json!([format!("; {name}"), 0, 0, "", 7, code[0].0, 0, 0, 0, 0])];
    for (at, ((address, text), source)) in code.iter().zip(sources).enumerate() {
        let (hit, stall) = (32, at % 61);
        let row = [hit, hit + stall, stall, at % 7];
        let [hit, latency, stall, idle] = row;
        rows.push(serde_json::json!([
            text,
            0,
            at + 1,
            source,
            7,
            address,
            hit,
            latency,
            stall,
            idle
        ]));
    }
    let file = serde_json::json!({
        "code": rows, "header": support::HEADER, "note": "made up", "version": "3.0.0",
    });
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("code.json"), file.to_string()).unwrap();
}

/// The Source of each instruction of a trace.
fn sources(folder: &Path) -> Vec<String> {
    let file: Value = serde_json::from_slice(&fs::read(folder.join("code.json")).unwrap()).unwrap();
    let rows = file["code"].as_array().unwrap();
    rows[1..].iter().map(|row| row[3].as_str().unwrap().to_owned()).collect()
}

fn tools_are_there() -> bool {
    let there =
        ["llvm-objdump", "llvm-symbolizer"].iter().all(|t| Path::new(TOOLS).join(t).exists());
    if !there {
        eprintln!("skipped: llvm-objdump and llvm-symbolizer are not in {TOOLS}");
    }
    there
}

/// Remaps a trace of the example without sites, and without any location, to its build with
/// sites.
fn round_trip(example: &str, chip: &str) {
    if !tools_are_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let plain = compile(folder.path(), example, chip, false);
    let sited = compile(folder.path(), example, chip, true);
    let (_, code) = disassemble(&plain);
    assert_eq!(code, disassemble(&sited).1, "sites change no code");
    let is_fill = |(_, text): &&(u64, String)| text == "s_nop 0" || text == "s_code_end";
    let own = code.len() - code.iter().rev().take_while(is_fill).count();
    let (before, after) = (symbolize(&plain, &code), symbolize(&sited, &code));
    assert_ne!(before, after);
    // The line tables name the sources as the kernels' front end does: without a folder.
    let roots: Vec<String> = ["flash_attention.py", "pingpong_gemm.py", "wmma_gemm.py"]
        .iter()
        .map(|name| format!("{name}={}/examples/{name}", env!("CARGO_MANIFEST_DIR")))
        .collect();
    for (number, old) in [before, vec![String::new(); code.len()]].iter().enumerate() {
        let trace = folder.path().join(format!("trace-{number}"));
        write_trace(&trace, &plain, old);
        for (name, flags) in [("plain", &[][..]), ("chains", &["--chains"][..])] {
            let out = folder.path().join(format!("out-{name}-{number}"));
            let mut arguments = vec!["remap", trace.to_str().unwrap()];
            for root in &roots {
                arguments.extend(["--source-root", root]);
            }
            arguments.extend(["--object", sited.to_str().unwrap()]);
            arguments.extend(["-o", out.to_str().unwrap(), "--json"]);
            arguments.extend(flags);
            let written = json(&arguments);
            assert_eq!((&written["matched"], &written["instructions"]), (&own.into(), &own.into()));
            assert_eq!(written["sources_missing"], serde_json::json!([]));
            let new = sources(&out);
            let expected = after[..own].iter().chain(&old[own..]);
            for ((new, expected), (address, text)) in new.iter().zip(expected).zip(&code) {
                assert_eq!(new, expected, "{text} at {address:#x}");
            }
            let report = json(&["report", out.to_str().unwrap(), "--json"]);
            assert_eq!(
                report["weight"],
                json(&["report", trace.to_str().unwrap(), "--json"])["weight"]
            );
            assert!(report["leaves"]["mfma"]["lines"].as_u64() >= Some(2), "{report}");
        }
    }
    let trace = folder.path().join("trace-0");
    let back = folder.path().join("back");
    let (trace, back) = (trace.to_str().unwrap(), back.to_str().unwrap());
    let written =
        json(&["remap", trace, "--object", plain.to_str().unwrap(), "-o", back, "--json"]);
    assert_eq!(written["changed"], 0, "its own object gives what it has");
}

#[test]
fn flash_attention_gets_its_sites() {
    round_trip("flash_attention", "gfx950");
}

#[test]
fn pingpong_gemm_gets_its_sites() {
    round_trip("pingpong_gemm", "gfx942");
}

#[test]
fn wmma_gemm_gets_its_sites() {
    round_trip("wmma_gemm_gfx1201", "gfx1201");
}

#[test]
fn another_chip_s_object_is_refused() {
    if !tools_are_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let plain = compile(folder.path(), "flash_attention", "gfx950", false);
    let trace = folder.path().join("trace");
    write_trace(&trace, &plain, &vec![String::new(); disassemble(&plain).1.len()]);
    let (trace, out) = (trace.to_str().unwrap(), folder.path().join("out"));
    let out = out.to_str().unwrap();
    let other = compile(folder.path(), "flash_attention", "gfx942", true);
    let error = fails(&["remap", trace, "--object", other.to_str().unwrap(), "-o", out], 2);
    assert!(error.contains("are not of the same code: at address 0x"), "{error}");
    let other = compile(folder.path(), "pingpong_gemm", "gfx950", true);
    let error = fails(&["remap", trace, "--object", other.to_str().unwrap(), "-o", out], 2);
    assert!(error.contains("holds no kernel of"), "{error}");
    let error = fails(&["remap", trace, "--object", trace, "-o", out], 2);
    assert!(error.contains("cannot read"), "{error}");
    let error = fails(
        &["remap", trace, "--object", other.to_str().unwrap(), "-o", out, "--chip", "gfx1"],
        2,
    );
    assert!(error.contains("no code object for the chip 'gfx1'"), "{error}");
    assert!(!Path::new(out).exists());
    assert!(siteline(&["remap", "--help"]).status.success());
}
