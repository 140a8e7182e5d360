//! Where the weight of a trace lies: the numbers of `att report`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use super::{Row, RowKind, Trace, Warnings};
use crate::chain::{Line, Sym};
use crate::leaf::Class;
use crate::site::{Library, effective_lines};

/// The version of the JSON that `att report` and `att diff` print.
pub const SCHEMA: u32 = 1;

/// What a row weighs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum WeightBy {
    /// Executions plus stalled cycles.
    #[serde(rename = "hit+stall")]
    HitAndStall,
    /// Cycles.
    #[serde(rename = "latency")]
    Latency,
    /// Stalled cycles.
    #[serde(rename = "stall")]
    Stall,
    /// Executions.
    #[serde(rename = "hit")]
    Hit,
    /// 1 for each instruction, executed or not.
    #[serde(rename = "instructions")]
    Instructions,
    /// Samples of PC sampling.
    #[serde(rename = "samples")]
    Samples,
}

impl WeightBy {
    const NAMES: [(&'static str, WeightBy); 6] = [
        ("hit+stall", WeightBy::HitAndStall),
        ("latency", WeightBy::Latency),
        ("stall", WeightBy::Stall),
        ("hit", WeightBy::Hit),
        ("instructions", WeightBy::Instructions),
        ("samples", WeightBy::Samples),
    ];

    /// What suits a trace when nothing was asked for: `hit+stall`, or `samples` where the trace
    /// has PC sampling and nothing else.
    pub fn suiting(trace: &Trace) -> Self {
        let traced = trace.rows.iter().any(|row| row.hit > 0 || row.stall > 0);
        if trace.has_samples && !traced { WeightBy::Samples } else { WeightBy::HitAndStall }
    }

    /// The weight of one row; 0 for labels and padding.
    pub fn of(self, row: &Row) -> u64 {
        if row.kind != RowKind::Instruction {
            return 0;
        }
        match self {
            WeightBy::HitAndStall => row.hit.saturating_add(row.stall),
            WeightBy::Latency => row.latency,
            WeightBy::Stall => row.stall,
            WeightBy::Hit => row.hit,
            WeightBy::Instructions => 1,
            WeightBy::Samples => row.samples,
        }
    }

    /// The weights of all rows of a trace, by the row's index.
    pub fn weights(self, trace: &Trace) -> Vec<u64> {
        trace.rows.iter().map(|row| self.of(row)).collect()
    }
}

impl fmt::Display for WeightBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = WeightBy::NAMES.iter().find(|(_, by)| by == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

impl FromStr for WeightBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = WeightBy::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, by)| *by).ok_or_else(|| {
            let names: Vec<_> = WeightBy::NAMES.iter().map(|(name, _)| *name).collect();
            format!("unknown weight '{text}': use {}", names.join(", "))
        })
    }
}

/// What is measured, and how.
pub struct Measure<'a> {
    /// Indices of the kernels that count, into [`Trace::kernels`].
    pub kernels: &'a [usize],
    /// The weight of each row, by its index; sums of more than 2^64 saturate.
    pub weights: &'a [u64],
    /// The definition line of each kernel, by its index; see [`super::definition::lines`].
    pub definitions: &'a [Option<Line>],
    /// Which paths are library code.
    pub library: &'a Library,
    /// How many lines to list.
    pub top: usize,
}

/// Where the weight of a trace lies. The line of a row is that of its innermost frame, which is
/// what profilers show first; rows of padding are never counted.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The kernels that were counted.
    pub kernels: Vec<KernelReport>,
    /// Rows, labels included.
    pub rows: usize,
    /// Rows with a location, line 0 included.
    pub mapped_rows: usize,
    /// Rows whose location has more than one frame.
    pub chained_rows: usize,
    /// Rows of padding, which no other number counts.
    pub padding_rows: usize,
    /// Distinct lines, line 0 excluded, executed or not.
    pub lines: usize,
    /// The total weight.
    pub weight: u64,
    /// The share of the heaviest line.
    pub top1_share: f64,
    /// The share of the two heaviest lines together.
    pub top2_share: f64,
    /// exp of the entropy of the weight over the lines, line 0 excluded.
    pub effective_lines: f64,
    /// The share on the kernels' definition lines; `None` where one is not known.
    pub definition_line_share: Option<f64>,
    /// The share on line 0, which is no line.
    pub line_zero_share: f64,
    /// The share of rows without a location.
    pub unmapped_share: f64,
    /// The share whose innermost frame is library code.
    pub library_share: f64,
    /// The heaviest lines, heaviest first.
    pub top_lines: Vec<TopLine>,
    /// The same for each leaf class; `asm` is `None`, as finished code has no such class.
    pub leaves: BTreeMap<&'static str, Option<LeafReport>>,
}

/// One kernel of a report.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KernelReport {
    /// The kernel's symbol; `None` for rows without a label.
    pub name: Option<String>,
    /// The profiler's number of the code object.
    pub codeobj: u64,
    /// The kernel's rows, its label included.
    pub rows: usize,
    /// The kernel's weight.
    pub weight: u64,
    /// The kernel's definition line, where it is known.
    pub definition_line: Option<FileLine>,
}

/// A file and a line of a report.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct FileLine {
    /// The path, as the trace has it.
    pub file: String,
    /// The line, from 1; 0 where there is none.
    pub line: u32,
}

impl FileLine {
    pub(super) fn of(trace: &Trace, line: Line) -> Self {
        FileLine { file: trace.chains.str(line.file).into(), line: line.number }
    }
}

impl fmt::Display for FileLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}:?", self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// A line of a report.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TopLine {
    /// The path, as the trace has it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The rows on the line.
    pub rows: usize,
    /// Their weight.
    pub weight: u64,
    /// Its share of the total.
    pub weight_share: f64,
}

/// One leaf class of a report.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LeafReport {
    /// The rows of the class.
    pub rows: usize,
    /// Their distinct lines.
    pub lines: usize,
    /// Their weight.
    pub weight: u64,
    /// Its share of the total.
    pub weight_share: f64,
    /// exp of the entropy of the class's weight over its lines.
    pub effective_lines: f64,
    /// The part of the total that is the class's and on the definition line.
    pub definition_line_share: Option<f64>,
}

#[derive(Default)]
struct Tally {
    rows: usize,
    weight: u64,
    definition: u64,
    /// Rows and weight of each line with a number.
    lines: FxHashMap<Line, (usize, u64)>,
}

impl Tally {
    fn add(&mut self, weight: u64, line: Option<Line>, definition: bool) {
        self.rows += 1;
        self.weight = self.weight.saturating_add(weight);
        if definition {
            self.definition = self.definition.saturating_add(weight);
        }
        if let Some(line) = line.filter(|line| line.number != 0) {
            let (rows, sum) = self.lines.entry(line).or_default();
            *rows += 1;
            *sum = sum.saturating_add(weight);
        }
    }

    /// Effective lines, summed in one order so that they are the same in every run.
    fn effective_lines(&self) -> f64 {
        let mut lines: Vec<_> = self.lines.iter().collect();
        lines.sort_unstable();
        effective_lines(lines.into_iter().map(|(_, (_, weight))| *weight as f64))
    }
}

/// Counts over all rows, and what shares are made of.
struct Counts<'a> {
    trace: &'a Trace,
    measure: &'a Measure<'a>,
    all: Tally,
    classes: BTreeMap<Class, Tally>,
    mapped: usize,
    chained: usize,
    padding: usize,
    unmapped: u64,
    line_zero: u64,
    library: u64,
    library_files: FxHashMap<Sym, bool>,
    kernel_files: FxHashSet<Sym>,
}

impl Report {
    /// Measures a trace.
    pub fn of(trace: &Trace, measure: &Measure<'_>) -> Report {
        let kernel_files = measure.definitions.iter().flatten().map(|line| line.file).collect();
        let mut counts = Counts {
            trace,
            measure,
            all: Tally::default(),
            classes: Class::ALL.into_iter().map(|class| (class, Tally::default())).collect(),
            mapped: 0,
            chained: 0,
            padding: 0,
            unmapped: 0,
            line_zero: 0,
            library: 0,
            library_files: FxHashMap::default(),
            kernel_files,
        };
        let kernels = measure.kernels.iter().map(|&kernel| counts.add_kernel(kernel)).collect();
        counts.report(kernels)
    }
}

impl Counts<'_> {
    fn add_kernel(&mut self, kernel: usize) -> KernelReport {
        let definition = self.measure.definitions.get(kernel).copied().flatten();
        let kernel = &self.trace.kernels[kernel];
        let before = (self.all.rows, self.all.weight);
        for at in kernel.rows.clone() {
            let weight = self.measure.weights.get(at).copied().unwrap_or(0);
            self.add(&self.trace.rows[at], weight, definition);
        }
        KernelReport {
            name: kernel.name.map(|name| self.trace.chains.str(name).into()),
            codeobj: kernel.codeobj,
            rows: self.all.rows - before.0,
            weight: self.all.weight - before.1,
            definition_line: definition.map(|line| FileLine::of(self.trace, line)),
        }
    }

    fn add(&mut self, row: &Row, weight: u64, definition: Option<Line>) {
        if row.kind == RowKind::Padding {
            self.padding += 1;
            return;
        }
        let chains = &self.trace.chains;
        let line = row.chain.map(|chain| chains.innermost(chain).line());
        self.mapped += usize::from(line.is_some());
        self.chained += usize::from(row.chain.is_some_and(|chain| chains.outer(chain).is_some()));
        let add = |sum: &mut u64, when: bool| {
            *sum = sum.saturating_add(if when { weight } else { 0 });
        };
        add(&mut self.unmapped, line.is_none());
        add(&mut self.line_zero, line.is_some_and(|line| line.number == 0));
        let library = line.is_some_and(|line| self.is_library(line.file));
        add(&mut self.library, library);
        let on_definition = line.is_some() && line == definition;
        self.all.add(weight, line, on_definition);
        if row.kind == RowKind::Instruction {
            self.classes.entry(row.class).or_default().add(weight, line, on_definition);
        }
    }

    fn is_library(&mut self, file: Sym) -> bool {
        if self.kernel_files.contains(&file) {
            return false;
        }
        let (library, chains) = (self.measure.library, &self.trace.chains);
        *self.library_files.entry(file).or_insert_with(|| library.contains(chains.str(file)))
    }

    /// Whether the share on the definition lines is known: it is of every kernel with weight.
    fn knows_definitions(&self, kernels: &[KernelReport]) -> bool {
        let unknown = |kernel: &&KernelReport| kernel.definition_line.is_none();
        let some_known = kernels.iter().any(|kernel| !unknown(&kernel));
        some_known && kernels.iter().filter(unknown).all(|kernel| kernel.weight == 0)
    }

    fn report(&self, kernels: Vec<KernelReport>) -> Report {
        let total = self.all.weight;
        let known = self.knows_definitions(&kernels);
        let definition = |tally: &Tally| known.then(|| share(tally.definition, total));
        let mut top = self.top_lines();
        let heaviest = |count: usize| {
            share(
                top.iter().take(count).map(|line| line.weight).fold(0, u64::saturating_add),
                total,
            )
        };
        let (top1_share, top2_share) = (heaviest(1), heaviest(2));
        top.truncate(self.measure.top);
        Report {
            kernels,
            rows: self.all.rows,
            mapped_rows: self.mapped,
            chained_rows: self.chained,
            padding_rows: self.padding,
            lines: self.all.lines.len(),
            weight: total,
            top1_share,
            top2_share,
            effective_lines: self.all.effective_lines(),
            definition_line_share: definition(&self.all),
            line_zero_share: share(self.line_zero, total),
            unmapped_share: share(self.unmapped, total),
            library_share: share(self.library, total),
            top_lines: top,
            leaves: self
                .classes
                .iter()
                .map(|(class, tally)| {
                    let leaf = LeafReport {
                        rows: tally.rows,
                        lines: tally.lines.len(),
                        weight: tally.weight,
                        weight_share: share(tally.weight, total),
                        effective_lines: tally.effective_lines(),
                        definition_line_share: definition(tally),
                    };
                    (class.name(), Some(leaf).filter(|_| *class != Class::Asm))
                })
                .collect(),
        }
    }

    fn top_lines(&self) -> Vec<TopLine> {
        let mut lines: Vec<_> = self
            .all
            .lines
            .iter()
            .map(|(line, (rows, weight))| {
                let FileLine { file, line } = FileLine::of(self.trace, *line);
                let weight_share = share(*weight, self.all.weight);
                TopLine { file, line, rows: *rows, weight: *weight, weight_share }
            })
            .collect();
        lines.sort_by(|a, b| {
            b.weight.cmp(&a.weight).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line)))
        });
        lines
    }
}

/// The part of a total, 0 of nothing.
pub(super) fn share(part: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { part as f64 / total as f64 }
}

/// A report with what belongs to the file it is of: what `att report --json` prints.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TraceReport {
    /// The version of this form.
    pub schema: u32,
    /// The `code.json`.
    pub trace: String,
    /// What a row weighs.
    pub weight_by: WeightBy,
    /// The numbers.
    #[serde(flatten)]
    pub report: Report,
    /// What was odd in the file.
    pub warnings: Warnings,
}
