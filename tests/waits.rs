//! What waits drain, on a real capture and on made-up kernels of every chip family.
//!
//! A kernel of `tests/waits/*.s` names its operations by `// @name`, and says behind each wait
//! what it drains, and what it awaits where that is less. The expected sets are written by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use siteline::att::Trace;
use siteline::att::waves::Wave;
use siteline::leaf::LeafTable;
use siteline::object::waits::{Drain, Entry, Family, Text, analyse};

#[path = "support/att.rs"]
mod support;

fn texts(trace: &Trace) -> Vec<Text<'_>> {
    trace.rows.iter().skip(1).map(|row| Text::new(row.vaddr, trace.isa(row))).collect()
}

#[test]
fn the_static_sets_equal_those_that_hardware_recorded() {
    let waves = ["after_wave_se0_sm0_sl0_wv0.json", "after_wave_se0_sm0_sl1_wv0.json"];
    let Some(code) = support::capture("after_code.json") else { return };
    let trace = Trace::read(&code, &LeafTable::default()).unwrap();
    let code = texts(&trace);
    let analysis = analyse(&code, Family::infer(&code), Entry::Kernel).unwrap();
    assert_eq!(analysis.family, Family::Gfx9);
    assert_eq!(analysis.waits.len(), 84);
    assert_eq!(analysis.hurries, []);
    let mut recorded: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for name in waves {
        let Some(path) = support::capture(name) else { return };
        for wait in Wave::read(&path).unwrap().waits {
            recorded.entry(wait.row).or_default().extend(wait.awaited);
        }
    }
    let line = |at: usize| trace.rows[at + 1].line_number;
    let found = analysis.waits.iter().map(|wait| {
        (line(wait.at), wait.drained().into_iter().map(line).collect::<BTreeSet<u32>>())
    });
    let found: BTreeMap<_, _> = found.filter(|(row, _)| recorded.contains_key(row)).collect();
    assert_eq!(recorded.len(), 80);
    assert_eq!(found, recorded);
}

/// A made-up kernel.
struct Kernel {
    name: String,
    entry: Entry,
    lines: Vec<Line>,
}

/// An instruction with what the kernel says of it.
#[derive(Default)]
struct Line {
    text: String,
    name: Option<String>,
    expected: Option<Expected>,
}

/// What a wait is expected to do.
#[derive(Default, PartialEq, Debug)]
struct Expected {
    drains: BTreeSet<String>,
    awaits: BTreeSet<String>,
    perhaps: BTreeSet<String>,
    callers: bool,
    reachable: bool,
}

fn words(text: &str) -> BTreeSet<String> {
    text.split_whitespace().filter(|word| *word != "nothing").map(Into::into).collect()
}

impl Expected {
    fn parse(comment: &str) -> Self {
        let mut expected = Expected { reachable: true, ..Expected::default() };
        for part in comment.split(',').map(str::trim) {
            match part.split_once(' ').unwrap_or((part, "")) {
                ("drains", names) => {
                    expected.drains = words(names);
                    expected.awaits = words(names);
                }
                ("awaits", names) => expected.awaits = words(names),
                ("perhaps", names) => expected.perhaps = words(names),
                ("callers", _) => expected.callers = true,
                ("unreachable", _) => expected.reachable = false,
                other => panic!("cannot read the expectation {other:?}"),
            }
        }
        expected
    }
}

/// The chip and the kernels of a file.
fn kernels(file: &Path) -> (String, Vec<Kernel>) {
    let text = std::fs::read_to_string(file).unwrap();
    let chip = text.lines().find_map(|line| line.strip_prefix("// chip: ")).unwrap();
    let mut kernels: Vec<Kernel> = Vec::new();
    let mut labels = BTreeMap::new();
    for line in text.lines() {
        let heading = |start: &str| line.strip_prefix(start).map(str::to_owned);
        if let Some(name) = heading("// kernel: ") {
            kernels.push(Kernel { name, entry: Entry::Kernel, lines: Vec::new() });
        } else if let Some(name) = heading("// function: ") {
            kernels.push(Kernel { name, entry: Entry::Function, lines: Vec::new() });
        } else if let Some(label) = line.strip_suffix(':') {
            labels.insert(label.to_owned(), kernels.last().unwrap().lines.len());
        } else if line.starts_with(' ') {
            kernels.last_mut().unwrap().lines.push(Line::parse(line));
        }
    }
    for kernel in &mut kernels {
        for (at, line) in kernel.lines.iter_mut().enumerate() {
            line.resolve(at, &labels);
        }
    }
    (chip.into(), kernels)
}

impl Line {
    fn parse(line: &str) -> Self {
        let (text, comment) = line.split_once("//").unwrap_or((line, ""));
        let mut parsed = Line { text: text.trim().into(), ..Line::default() };
        match comment.trim() {
            "" => {}
            name if name.starts_with('@') => parsed.name = Some(name[1..].into()),
            expected => parsed.expected = Some(Expected::parse(expected)),
        }
        parsed
    }

    /// Gives a branch the distance of its label, in instructions of 4 bytes.
    fn resolve(&mut self, at: usize, labels: &BTreeMap<String, usize>) {
        if let Some((mnemonic, operand)) = self.text.split_once(' ')
            && let Some(target) = labels.get(operand)
        {
            self.text = format!("{mnemonic} {}", *target as i64 - at as i64 - 1);
        }
    }
}

impl Kernel {
    fn code(&self) -> Vec<Text<'_>> {
        let lines = self.lines.iter().enumerate();
        lines.map(|(at, line)| Text::new(at as u64 * 4, &line.text)).collect()
    }

    /// Compares the analysis of some instructions, which are those of the kernel, with what the
    /// kernel says.
    fn check(&self, chip: &str, code: &[Text<'_>]) {
        let family = Family::of_chip(chip).unwrap();
        let analysis = analyse(code, family, self.entry).unwrap();
        let name = |at: &usize| self.lines[*at].name.clone().unwrap_or_else(|| format!("#{at}"));
        for wait in &analysis.waits {
            let line = &self.lines[wait.at];
            let names = |all: Vec<usize>| all.iter().map(name).collect::<BTreeSet<_>>();
            let each = |list: fn(&Drain) -> &Vec<usize>| {
                names(wait.drains.iter().flat_map(list).copied().collect())
            };
            let found = Expected {
                drains: names(wait.drained()),
                awaits: each(|drain| &drain.awaited),
                perhaps: each(|drain| &drain.perhaps),
                callers: wait.drains.iter().any(|drain| drain.callers),
                reachable: wait.reachable,
            };
            let place = format!("{chip}, {}, {}", self.name, line.text);
            assert_eq!(Some(&found), line.expected.as_ref(), "{place}");
            let idle = found.drains.is_empty() && found.perhaps.is_empty() && !found.callers;
            assert_eq!(wait.is_wasted(), idle && found.reachable, "{place}");
        }
        let waits: Vec<usize> = analysis.waits.iter().map(|wait| wait.at).collect();
        let expected = self.lines.iter().enumerate().filter(|(_, line)| line.expected.is_some());
        assert_eq!(waits, expected.map(|(at, _)| at).collect::<Vec<_>>(), "{}", self.name);
    }
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/waits");
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "s")).collect();
    files.sort();
    files
}

#[test]
fn made_up_kernels_drain_what_they_say() {
    let mut chips = BTreeSet::new();
    for file in files() {
        let (chip, kernels) = kernels(&file);
        kernels.iter().for_each(|kernel| kernel.check(&chip, &kernel.code()));
        chips.insert(Family::of_chip(&chip).unwrap());
    }
    assert_eq!(chips, Family::ALL.into());
}

/// The instructions that a tool printed, with their addresses.
fn disassembly(listing: &str) -> Vec<(u64, &str)> {
    let instructions = listing.lines().filter_map(|line| line.strip_prefix('\t')?.split_once("//"));
    let placed = instructions.filter_map(|(text, comment)| {
        let address = u64::from_str_radix(comment.trim().split(':').next()?, 16).ok()?;
        Some((address, text.trim()))
    });
    placed.collect()
}

fn tool(name: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(name).args(arguments).output() {
        Ok(output) => {
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{name}: {error}");
            Some(String::from_utf8(output.stdout).unwrap())
        }
        Err(_) => {
            eprintln!("skipped: there is no {name}");
            None
        }
    }
}

#[test]
fn assembled_kernels_drain_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let object = folder.path().join("kernels.o");
    let object = object.to_str().unwrap();
    for file in files() {
        let (chip, kernels) = kernels(&file);
        let (file, cpu) = (file.to_str().unwrap(), format!("-mcpu={chip}"));
        let assemble = ["-arch=amdgcn", &cpu, "-filetype=obj", file, "-o", object];
        let Some(_) = tool("llvm-mc-22", &assemble) else { return };
        let Some(listing) = tool("llvm-objdump-22", &["-d", object]) else { return };
        let instructions = disassembly(&listing);
        let mut rest = &instructions[..];
        for kernel in &kernels {
            let (own, behind) = rest.split_at(kernel.lines.len());
            rest = behind;
            let code: Vec<_> =
                own.iter().map(|(address, text)| Text::new(*address, text)).collect();
            kernel.check(&chip, &code);
        }
        assert!(rest.is_empty(), "{file}");
    }
}
