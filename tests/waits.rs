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
use siteline::object::waits::{
    Analysis, Consumer, Dependence, Drain, Entry, Family, HurryKind, Note, Text, analyse,
};

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

fn analysis(lines: &[&str], chip: &str) -> Analysis {
    let lines = lines.iter().enumerate();
    let code: Vec<_> = lines.map(|(at, line)| Text::new(at as u64 * 4, line)).collect();
    analyse(&code, Family::of_chip(chip).unwrap(), Entry::Kernel).unwrap()
}

#[test]
fn a_wait_for_more_than_the_next_consumer_needs_is_said() {
    let found = analysis(
        &[
            "global_load_dword v1, v[2:3], off",
            "global_load_dword v4, v[2:3], off offset:4",
            "global_load_dword v5, v[2:3], off offset:8",
            "s_waitcnt vmcnt(0)",
            "s_nop 0",
            "v_add_f32_e32 v9, v1, v1",
            "v_add_f32_e32 v9, v4, v5",
            "s_endpgm",
        ],
        "gfx942",
    );
    let need = found.waits[0].drains[0].need.clone().unwrap();
    assert_eq!((need.consumer, need.by, need.could_stay), (5, Consumer::Register, 2));
    assert_eq!(found.waits[0].note(), Some(Note::TooStrict));
}

#[test]
fn the_stricter_path_decides_what_could_stay() {
    let found = analysis(
        &[
            "global_load_dword v1, v[2:3], off",
            "global_load_dword v4, v[2:3], off offset:4",
            "s_waitcnt vmcnt(0)",
            "s_cbranch_scc1 2",
            "v_add_f32_e32 v9, v1, v1",
            "s_endpgm",
            "v_add_f32_e32 v9, v4, v4",
            "s_endpgm",
        ],
        "gfx942",
    );
    assert_eq!(found.waits[0].drains[0].need.as_ref().unwrap().could_stay, 0);
    assert_eq!(found.waits[0].note(), None);
}

#[test]
fn a_wait_that_undoes_the_double_buffering_is_said() {
    let found = analysis(
        &[
            "buffer_load_dword v2, s[8:11], 0 offen lds",
            "buffer_load_dword v3, s[8:11], 0 offen lds",
            "s_waitcnt vmcnt(1)",
            "s_barrier",
            "s_waitcnt vmcnt(0)",
            "ds_read_b32 v1, v0",
            "s_waitcnt lgkmcnt(0)",
            "s_endpgm",
        ],
        "gfx942",
    );
    let drain = &found.waits[1].drains[0];
    assert_eq!((drain.need.as_ref().unwrap().by, drain.undoes), (Consumer::Lds, Some(2)));
    assert_eq!(found.waits[1].note(), Some(Note::Undoes));
    assert_eq!(found.waits[2].note(), None);
}

#[test]
fn registers_that_are_used_too_early_are_found() {
    let hurries = |lines: &[&str], chip: &str| {
        let found = analysis(lines, chip).hurries;
        found.iter().map(|h| (h.at, h.operation, h.kind)).collect::<Vec<_>>()
    };
    let load = "global_load_dword v1, v[2:3], off";
    let read = hurries(&[load, "v_add_f32_e32 v9, v1, v1"], "gfx942");
    assert_eq!(read, [(1, 0, HurryKind::Read)]);
    let overwritten = hurries(&[load, "v_mov_b32_e32 v1, 0"], "gfx942");
    assert_eq!(overwritten, [(1, 0, HurryKind::Overwritten)]);
    assert_eq!(hurries(&[load, load], "gfx942"), []);
    assert_eq!(hurries(&[load, "v_mov_b32_e32 v3, 0"], "gfx942"), []);
    let load = "global_load_b32 v1, v[2:3], off";
    let source = hurries(&[load, "v_mov_b32_e32 v3, 0"], "gfx1250");
    assert_eq!(source, [(1, 0, HurryKind::Source)]);
    let export = "exp mrt0 v0, v1, v2, v3 done";
    let source = hurries(&[export, "v_mov_b32_e32 v3, 0"], "gfx1100");
    assert_eq!(source, [(1, 0, HurryKind::Source)]);
}

#[test]
fn nops_keep_a_producer_and_a_consumer_apart() {
    let pairs = |lines: &[&str], chip: &str| {
        let nops = analysis(lines, chip).nops;
        let pairs = nops.iter().flat_map(|nop| &nop.pairs);
        pairs.map(|pair| (pair.producer, pair.consumer, pair.by)).collect::<Vec<_>>()
    };
    let mfma = "v_mfma_f32_32x32x8_f16 v[0:15], v[20:21], v[22:23], v[0:15]";
    for (lines, chip, expected) in [
        (
            &[mfma, "v_mov_b32_e32 v40, v41", "s_nop 15", "v_max_f32_e32 v50, v3, v40"][..],
            "gfx942",
            vec![(0, 3, Dependence::Matrix)],
        ),
        (
            &["s_mov_b32 m0, s7", "s_nop 0", "buffer_load_dword v2, s[8:11], 0 offen lds"],
            "gfx950",
            vec![(0, 2, Dependence::Result)],
        ),
        (
            &["v_readfirstlane_b32 s4, v1", "s_nop 4", "buffer_load_dword v2, off, s[4:7], 0"],
            "gfx90a",
            vec![(0, 2, Dependence::Result)],
        ),
        (&["v_mov_b32_e32 v1, v2", "s_nop 7", "s_nop 7", "v_mov_b32_e32 v3, v1"], "gfx90a", vec![]),
        (&["s_nop 0", "s_endpgm"], "gfx90a", vec![]),
        (
            &[
                "v_exp_f32_e32 v1, v2",
                "v_add_f32_e32 v3, v4, v5",
                "s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(TRANS32_DEP_1)",
                "v_mul_f32_e32 v6, v3, v3",
                "v_mul_f32_e32 v7, v1, v1",
            ],
            "gfx1100",
            vec![(1, 3, Dependence::Named), (0, 4, Dependence::Named)],
        ),
        (
            &["v_cmp_eq_u32_e32 vcc_lo, v0, v1", "s_wait_alu 0xfffd", "s_cbranch_vccz 0"],
            "gfx1201",
            vec![(0, 2, Dependence::Result)],
        ),
    ] {
        assert_eq!(pairs(lines, chip), expected, "{lines:?}");
    }
}

#[test]
fn any_text_can_be_analysed() {
    arbtest::arbtest(|u| {
        let words = [
            "s_waitcnt",
            "s_wait_idle",
            "s_cbranch_scc1",
            "s_branch",
            "s_setpc_b64",
            "s_endpgm",
            "s_getpc_b64",
            "s_add_u32",
            "flat_load_dword",
            "s_load_dword",
            "ds_read_b32",
            "s_nop",
            "s_delay_alu",
            "v_interp_p10_f32",
            "s_swappc_b64",
            "global_load_dword",
            "exp",
            "s_wait_loadcnt_dscnt",
            "s_wait_xcnt",
            "v_mfma_",
            "tensor_load_to_lds",
            "",
        ];
        let operands = [
            "0",
            "-1",
            "65533",
            "0xffffffffffffffff",
            "vmcnt(0)",
            "vmcnt(",
            "lgkmcnt(99999)",
            "s[4:5]",
            "s[4:5], s4, -8",
            "v[3:1]",
            "v1, v[2:3], off",
            "é[",
            "instid0(VALU_DEP_0)",
            "instskip(SKIP_99999999999)",
            "wait_exp:9",
            "null, 0x0",
            "v[1",
            "::",
            "/*v1*/",
            "",
        ];
        let mut code: Vec<(u64, String)> = Vec::new();
        for _ in 0..u.int_in_range(0..=60)? {
            let address = if u.ratio(9, 10)? { code.len() as u64 * 4 } else { u.arbitrary()? };
            code.push((address, format!("{} {}", u.choose(&words)?, u.choose(&operands)?)));
        }
        let code: Vec<Text<'_>> = code.iter().map(|(at, text)| Text::new(*at, text)).collect();
        for family in Family::ALL {
            for entry in [Entry::Kernel, Entry::Function] {
                let found = analyse(&code, family, entry);
                assert!(found.is_ok());
            }
        }
        Ok(())
    });
}
