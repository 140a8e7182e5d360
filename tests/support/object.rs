//! Code objects made by LLVM 22's tools, and what those tools say of them.
#![allow(dead_code, reason = "each test file uses a part")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use siteline::chain::Chains;
use siteline::leaf::LeafTable;
use siteline::object::{CodeObject, Function, Lister, Listing, disasm};

/// The sources that objects are made of.
pub fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/object").join(name)
}

/// Runs a tool, which must succeed.
pub fn run(tool: &str, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(tool).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{tool}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{tool} {arguments:?}: {errors}");
    output.stdout
}

/// Compiles device code with clang 22.
pub fn compile(source_name: &str, chip: &str, flags: &[&str], out: &Path) {
    let source = source(source_name);
    let cpu = format!("-mcpu={chip}");
    let mut arguments = vec!["-target", "amdgcn-amd-amdhsa", &cpu, "-O2", "-nogpulib"];
    if source_name.ends_with(".cl") {
        arguments.extend(["-cl-std=CL2.0", "-Xclang", "-finclude-default-header"]);
    }
    arguments.extend(flags);
    let (source, out) = (source.to_str().unwrap(), out.to_str().unwrap());
    arguments.extend([source, "-o", out]);
    run("clang-22", &arguments);
}

/// The code objects of a file.
pub fn read(path: &Path, chains: &mut Chains) -> Vec<CodeObject> {
    let data = std::fs::read(path).unwrap();
    CodeObject::read_all(&path.display().to_string(), data, chains)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The instructions of a function.
pub fn list(object: &CodeObject, function: &Function, chains: &mut Chains) -> Listing {
    let table = LeafTable::default();
    let lister = Lister { disassembler: disasm::available(), table: &table };
    lister.list(object, function, chains)
}

/// One frame as a tool tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolFrame {
    pub function: String,
    pub file: String,
    pub line: u64,
    pub column: u64,
}

/// The frames that llvm-symbolizer gives for addresses, innermost first.
pub fn symbolize(path: &Path, addresses: &[u64]) -> Vec<Vec<ToolFrame>> {
    let object = format!("--obj={}", path.display());
    let options = ["--inlines", "--functions=short", "--output-style=JSON", &object];
    let mut child = Command::new("llvm-symbolizer-22")
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("llvm-symbolizer-22 starts");
    let input: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<_> = text.lines().map(frames_of).collect();
    assert_eq!(answers.len(), addresses.len());
    answers
}

fn frames_of(answer: &str) -> Vec<ToolFrame> {
    let answer: serde_json::Value = serde_json::from_str(answer).unwrap();
    let frames = answer["Symbol"].as_array().unwrap();
    frames
        .iter()
        .map(|frame| ToolFrame {
            function: frame["FunctionName"].as_str().unwrap().into(),
            file: normalise(frame["FileName"].as_str().unwrap()),
            line: frame["Line"].as_u64().unwrap(),
            column: frame["Column"].as_u64().unwrap(),
        })
        .collect()
}

/// A path without `.`, `..` and doubled slashes.
pub fn normalise(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            "" if !parts.is_empty() => {}
            ".." if parts.last().is_some_and(|last| !last.is_empty() && *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// A row as llvm-dwarfdump tells it: address, line, column, file, discriminator, `is_stmt`.
pub type ToolRow = (u64, u32, u32, String, u32, bool);

/// The rows of llvm-dwarfdump, those that end a sequence left out, and the sequences' ends.
pub fn dump_rows(path: &Path) -> (Vec<ToolRow>, Vec<u64>) {
    let text = run("llvm-dwarfdump-22", &["--debug-line", path.to_str().unwrap()]);
    let text = String::from_utf8(text).unwrap();
    let mut dump = Dump::default();
    text.lines().for_each(|line| dump.take(line.trim()));
    (dump.rows, dump.ends)
}

#[derive(Default)]
struct Dump {
    version: u32,
    directories: Vec<String>,
    names: Vec<(String, usize)>,
    rows: Vec<ToolRow>,
    ends: Vec<u64>,
}

impl Dump {
    fn take(&mut self, line: &str) {
        let quoted = || line.split('"').nth(1).unwrap_or_default().to_owned();
        if line.starts_with("debug_line[") {
            let (rows, ends) = (std::mem::take(&mut self.rows), std::mem::take(&mut self.ends));
            *self = Dump { rows, ends, ..Dump::default() };
        } else if let Some(version) = line.strip_prefix("version: ") {
            self.version = version.parse().unwrap();
        } else if line.starts_with("include_directories[") {
            self.directories.push(quoted());
        } else if line.starts_with("name: ") {
            self.names.push((quoted(), 0));
        } else if let Some(directory) = line.strip_prefix("dir_index: ") {
            self.names.last_mut().unwrap().1 = directory.parse().unwrap();
        } else if line.starts_with("0x") {
            self.row(line);
        }
    }

    fn row(&mut self, line: &str) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let address = u64::from_str_radix(&fields[0][2..], 16).unwrap();
        if fields.contains(&"end_sequence") {
            self.ends.push(address);
            return;
        }
        let number = |at: usize| fields[at].parse::<u32>().unwrap();
        let file = self.file(number(3) as usize);
        let is_stmt = fields.contains(&"is_stmt");
        self.rows.push((address, number(1), number(2), file, number(5), is_stmt));
    }

    /// The file's name below its directory; below the compilation's where there is none.
    fn file(&self, index: usize) -> String {
        let first = usize::from(self.version < 5);
        let (name, directory) = &self.names[index - first];
        let directory = match directory.checked_sub(first) {
            Some(at) => self.directories[at].as_str(),
            None => "",
        };
        if name.starts_with('/') || directory.is_empty() {
            normalise(name)
        } else {
            normalise(&format!("{directory}/{name}"))
        }
    }
}

/// Runs siteline.
pub fn siteline(arguments: &[&str]) -> Output {
    let command = env!("CARGO_BIN_EXE_siteline");
    Command::new(command).args(arguments).output().expect("the command starts")
}

/// The JSON that a siteline command prints.
pub fn json(arguments: &[&str]) -> serde_json::Value {
    let output = siteline(arguments);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("--json prints JSON")
}
