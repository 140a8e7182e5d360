//! What `siteline report` says of a kernel.
//!
//! The line of an instruction is its row's, which is what profilers show. Prologue and padding
//! count nowhere but in their own numbers. What is not known is `None`, null in JSON: the
//! classes where nothing was disassembled, the lines of an object without debug information.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::chain::{ChainId, Chains, Line, Sym};
use crate::leaf::Class;
use crate::site::{Library, effective_lines};

use super::ir::{IrKernel, Lost, share};
use super::{CodeObject, Function, FunctionKind, Listing, Located, Role, waits};

/// The version of the JSON that `siteline report`, `lines` and `diff` print.
pub const SCHEMA: u32 = 1;

/// The classes that a report has, in its order; code has no `asm`.
const LEAVES: [Class; 6] =
    [Class::Mfma, Class::Wait, Class::Barrier, Class::Dma, Class::Lds, Class::Sched];

/// What is measured, and how.
pub struct Measure<'a> {
    /// The code object.
    pub object: &'a CodeObject,
    /// The kernel.
    pub function: &'a Function,
    /// Its instructions.
    pub listing: &'a Listing,
    /// The disassembler that they are from.
    pub disassembler: Option<String>,
    /// The line of the kernel itself.
    pub definition: Option<Line>,
    /// Which paths are library code.
    pub library: &'a Library,
    /// What the frontend IR says of the kernel.
    pub ir: Option<&'a IrKernel>,
    /// How many lines to list.
    pub top: usize,
}

/// The mapping of one kernel.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KernelReport {
    /// The file, and inside a container the place in it.
    pub object: String,
    /// The symbol.
    pub name: String,
    /// `kernel`, or `function` for a device function.
    pub kind: &'static str,
    /// The chip.
    pub chip: String,
    /// Whether the object has debug information. Without it, all about lines is null.
    pub debug_info: bool,
    /// The disassembler; null where there was none, and code was counted in words of 4 bytes.
    pub disassembler: Option<String>,
    /// Instructions of the kernel's own code.
    pub instructions: usize,
    /// Instructions that the backend made for the entry.
    pub prologue: usize,
    /// Instructions of fill.
    pub padding: usize,
    /// Calls of functions that stayed functions: what is in those keeps its own lines, and is
    /// reported by itself. Null where nothing was disassembled.
    pub calls: Option<usize>,
    /// What is known of the lines.
    #[serde(flatten)]
    pub lines: LineReport,
    /// By leaf class; null where nothing was disassembled, and always for `asm`.
    pub leaves: BTreeMap<&'static str, Option<LeafReport>>,
    /// How much of the frontend IR's chains the object lost; null without `--ir`.
    pub ir: Option<Lost>,
    /// The files that have most instructions.
    pub files: Vec<FileReport>,
    /// The lines that have most instructions.
    pub top_lines: Vec<TopLine>,
}

/// The lines of a kernel.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LineReport {
    /// Distinct lines, line 0 excluded.
    pub lines: Option<usize>,
    /// exp of the entropy of the instructions over those lines.
    pub effective_lines: Option<f64>,
    /// Instructions that no row covers.
    pub unmapped: Option<usize>,
    /// Their share.
    pub unmapped_share: Option<f64>,
    /// Instructions on line 0.
    pub line_zero: Option<usize>,
    /// Their share.
    pub line_zero_share: Option<f64>,
    /// Instructions on the definition line; null where that is not known.
    pub definition_line: Option<usize>,
    /// Their share.
    pub definition_line_share: Option<f64>,
    /// The definition line.
    pub definition: Option<FileLine>,
    /// Instructions in library code.
    pub library: Option<usize>,
    /// Their share.
    pub library_share: Option<f64>,
    /// Instructions whose line siteline chose.
    pub inferred: Option<usize>,
    /// Their share.
    pub inferred_share: Option<f64>,
}

/// A file and a line.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct FileLine {
    /// The path, as the debug information has it.
    pub file: String,
    /// The line, from 1; 0 for none.
    pub line: u32,
}

impl FileLine {
    /// A line of a table of chains.
    pub fn of(line: Line, chains: &Chains) -> Self {
        FileLine { file: chains.str(line.file).into(), line: line.number }
    }
}

impl std::fmt::Display for FileLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "{}:?", self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// One leaf class of a kernel.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct LeafReport {
    /// Instructions of the class.
    pub count: usize,
    /// Their share of the kernel's instructions.
    pub count_share: f64,
    /// Distinct lines, line 0 excluded.
    pub lines: Option<usize>,
    /// Lines with two or more of the IR's chains; null without `--ir`.
    pub ambiguous_lines: Option<usize>,
    /// Instructions on them.
    pub on_ambiguous: Option<usize>,
    /// Their share of the class.
    pub on_ambiguous_share: Option<f64>,
    /// Lines that the policy `distinct` would show for the IR; null without `--ir`.
    pub reachable_lines: Option<usize>,
    /// Lines with two or more of the object's own chains: a lower bound of the ambiguous ones.
    pub dwarf_ambiguous_lines: Option<usize>,
    /// Instructions on them.
    pub on_dwarf_ambiguous: Option<usize>,
    /// Their share of the class.
    pub on_dwarf_ambiguous_share: Option<f64>,
}

/// A source file of a kernel.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FileReport {
    /// The path, as the debug information has it.
    pub file: String,
    /// Instructions on its lines, line 0 included.
    pub instructions: usize,
    /// Their share of the kernel's.
    pub instructions_share: f64,
    /// Distinct lines, line 0 excluded.
    pub lines: usize,
    /// Whether it is library code.
    pub library: bool,
}

/// A line of a kernel.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TopLine {
    /// The path, as the debug information has it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// Instructions on it.
    pub instructions: usize,
    /// Their share of the kernel's.
    pub instructions_share: f64,
}

/// An instruction of the kernel's own code, as it is counted.
struct Counted {
    class: Option<Class>,
    chain: Option<ChainId>,
    line: Option<Line>,
    inferred: bool,
}

impl Counted {
    fn of(located: &Located, chains: &Chains) -> Self {
        let line = located.chain.map(|chain| chains.innermost(chain).line());
        let Located { class, chain, inferred, .. } = *located;
        Counted { class, chain, line, inferred }
    }

    /// The line, unless it is line 0.
    fn numbered(&self) -> Option<Line> {
        self.line.filter(|line| line.number != 0)
    }
}

/// The chain and class of each instruction of a kernel that has both.
pub fn shown(listing: &Listing) -> Vec<(ChainId, Class)> {
    let code = listing.instructions.iter().filter(|located| located.role == Role::Code);
    code.filter_map(|located| Some((located.chain?, located.class?))).collect()
}

/// Measures one kernel.
pub fn measure(measure: &Measure<'_>, chains: &Chains) -> KernelReport {
    let all = &measure.listing.instructions;
    let count = |role: Role| all.iter().filter(|located| located.role == role).count();
    let code: Vec<Counted> = all
        .iter()
        .filter(|located| located.role == Role::Code)
        .map(|located| Counted::of(located, chains))
        .collect();
    let has_debug = measure.object.debug.is_some();
    let lines = if has_debug { line_report(measure, &code, chains) } else { Default::default() };
    KernelReport {
        object: measure.object.label.clone(),
        name: measure.function.name.clone(),
        kind: match measure.function.kind {
            FunctionKind::Kernel => "kernel",
            FunctionKind::Device => "function",
        },
        chip: measure.object.chip().into(),
        debug_info: has_debug,
        disassembler: measure.disassembler.clone().filter(|_| measure.listing.decoded),
        instructions: code.len(),
        prologue: count(Role::Prologue),
        padding: count(Role::Padding),
        calls: measure.listing.decoded.then(|| {
            let calls = all.iter().filter(|located| waits::is_call(&located.instruction.mnemonic));
            calls.count()
        }),
        lines,
        leaves: leaves(measure, &code, has_debug, chains),
        ir: measure.ir.map(|ir| ir.lost(&shown(measure.listing), chains)),
        files: files(measure, &code, chains),
        top_lines: top_lines(measure, &code, chains),
    }
}

fn is_library(measure: &Measure<'_>, file: Sym, chains: &Chains) -> bool {
    let is_kernels_own = measure.definition.is_some_and(|line| line.file == file);
    !is_kernels_own && measure.library.contains(chains.str(file))
}

fn line_report(measure: &Measure<'_>, code: &[Counted], chains: &Chains) -> LineReport {
    let count = |wanted: &dyn Fn(&Counted) -> bool| code.iter().filter(|c| wanted(c)).count();
    let of_all = |part: usize| Some(share(part, code.len()));
    let by_line = by_line(code);
    let weights: Vec<f64> = by_line.iter().map(|(_, count)| *count as f64).collect();
    let unmapped = count(&|c| c.line.is_none());
    let line_zero = count(&|c| c.line.is_some_and(|line| line.number == 0));
    let definition = measure.definition.map(|line| count(&|c| c.line == Some(line)));
    let library = library_count(measure, code, chains);
    let inferred = count(&|c| c.inferred);
    LineReport {
        lines: Some(by_line.len()),
        effective_lines: Some(effective_lines(weights)),
        unmapped: Some(unmapped),
        unmapped_share: of_all(unmapped),
        line_zero: Some(line_zero),
        line_zero_share: of_all(line_zero),
        definition_line: definition,
        definition_line_share: definition.and_then(of_all),
        definition: measure.definition.map(|line| FileLine::of(line, chains)),
        library: Some(library),
        library_share: of_all(library),
        inferred: Some(inferred),
        inferred_share: of_all(inferred),
    }
}

fn library_count(measure: &Measure<'_>, code: &[Counted], chains: &Chains) -> usize {
    let mut by_file: FxHashMap<Sym, usize> = FxHashMap::default();
    code.iter().filter_map(|c| c.line).for_each(|l| *by_file.entry(l.file).or_default() += 1);
    let library = by_file.iter().filter(|(file, _)| is_library(measure, **file, chains));
    library.map(|(_, count)| count).sum()
}

/// The numbered lines with their instructions, most first.
fn by_line(code: &[Counted]) -> Vec<(Line, usize)> {
    let mut counts: FxHashMap<Line, usize> = FxHashMap::default();
    code.iter().filter_map(Counted::numbered).for_each(|l| *counts.entry(l).or_default() += 1);
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable_by_key(|(line, count)| (std::cmp::Reverse(*count), *line));
    counts
}

fn leaves(
    measure: &Measure<'_>,
    code: &[Counted],
    has_debug: bool,
    chains: &Chains,
) -> BTreeMap<&'static str, Option<LeafReport>> {
    let mut leaves = BTreeMap::from([(Class::Asm.name(), None)]);
    for class in LEAVES {
        let of_class: Vec<&Counted> = code.iter().filter(|c| c.class == Some(class)).collect();
        let leaf = measure.listing.decoded.then(|| {
            let mut leaf = LeafReport {
                count: of_class.len(),
                count_share: share(of_class.len(), code.len()),
                ..LeafReport::default()
            };
            if has_debug {
                leaf.add_lines(&of_class, chains);
                leaf.add_ir(measure.ir, class, &of_class);
            }
            leaf
        });
        leaves.insert(class.name(), leaf);
    }
    leaves
}

impl LeafReport {
    fn add_lines(&mut self, of_class: &[&Counted], chains: &Chains) {
        let mut by_line: FxHashMap<Line, (usize, Vec<ChainId>)> = FxHashMap::default();
        for counted in of_class {
            let Some((line, chain)) = counted.numbered().zip(counted.chain) else { continue };
            let (count, distinct) = by_line.entry(line).or_default();
            *count += 1;
            if !distinct.iter().any(|&other| chains.same_lines(other, chain)) {
                distinct.push(chain);
            }
        }
        let ambiguous = || by_line.values().filter(|(_, distinct)| distinct.len() > 1);
        let on_ambiguous = ambiguous().map(|(count, _)| count).sum();
        self.lines = Some(by_line.len());
        self.dwarf_ambiguous_lines = Some(ambiguous().count());
        self.on_dwarf_ambiguous = Some(on_ambiguous);
        self.on_dwarf_ambiguous_share = Some(share(on_ambiguous, of_class.len()));
    }

    fn add_ir(&mut self, ir: Option<&IrKernel>, class: Class, of_class: &[&Counted]) {
        let Some(ir) = ir else { return };
        let is_ambiguous = |line: &Line| ir.is_ambiguous(*line, class);
        let on: Vec<Line> =
            of_class.iter().filter_map(|c| c.numbered()).filter(is_ambiguous).collect();
        self.on_ambiguous = Some(on.len());
        self.on_ambiguous_share = Some(share(on.len(), of_class.len()));
        self.ambiguous_lines = Some(on.into_iter().collect::<FxHashSet<_>>().len());
        self.reachable_lines = Some(ir.reachable_lines(class));
    }
}

fn files(measure: &Measure<'_>, code: &[Counted], chains: &Chains) -> Vec<FileReport> {
    let mut by_file: FxHashMap<Sym, (usize, FxHashSet<u32>)> = FxHashMap::default();
    for line in code.iter().filter_map(|counted| counted.line) {
        let (count, numbers) = by_file.entry(line.file).or_default();
        *count += 1;
        if line.number != 0 {
            numbers.insert(line.number);
        }
    }
    let mut files: Vec<FileReport> = by_file
        .into_iter()
        .map(|(file, (instructions, numbers))| FileReport {
            file: chains.str(file).into(),
            instructions,
            instructions_share: share(instructions, code.len()),
            lines: numbers.len(),
            library: is_library(measure, file, chains),
        })
        .collect();
    files.sort_by(|a, b| (b.instructions, &a.file).cmp(&(a.instructions, &b.file)));
    files.truncate(measure.top);
    files
}

fn top_lines(measure: &Measure<'_>, code: &[Counted], chains: &Chains) -> Vec<TopLine> {
    let lines = by_line(code).into_iter().take(measure.top);
    let top = |(line, instructions): (Line, usize)| TopLine {
        file: chains.str(line.file).into(),
        line: line.number,
        instructions,
        instructions_share: share(instructions, code.len()),
    };
    lines.map(top).collect()
}
