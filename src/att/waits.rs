//! The weight of a trace's waits given to what they wait for.
//!
//! A wait's own line says nothing about why a wave stands still. The machine code says which
//! operations a wait drains ([`crate::object::waits`]), and the files of single waves say which
//! ones it did drain; the wait's weight and its stall go to the rows of those that it really
//! waits for. Nothing is lost: the sums before and after are equal.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::metrics::{FileLine, Report, WeightBy, share};
use super::waves::Wave;
use super::{AttError, Kernel, RowKind, Trace};
use crate::chain::Line;
use crate::leaf::Class;
use crate::object::waits::{Analysis, Entry, Family, Text, analyse};

/// The version of the JSON that `att waits` prints.
pub const SCHEMA: u32 = 1;

/// What is moved.
#[derive(Clone, Copy, Default, Debug)]
pub struct Options {
    /// The chip family, where it is known; else it is inferred from the instructions.
    pub family: Option<Family>,
    /// Whether `s_nop` and its like give their weight to the producer that they wait for.
    pub nops: bool,
}

/// For each waiting row the rows that it waits for, and how much of it is each one's.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Awaited {
    /// The family whose rules were applied to each kernel.
    pub families: Vec<Family>,
    /// By the waiting row's index: indices of awaited rows, with their parts.
    targets: BTreeMap<usize, Vec<(usize, u64)>>,
    /// By the waiting row's index: all rows that the machine code says are drained.
    drained: BTreeMap<usize, BTreeSet<usize>>,
    /// By the waiting row's index: the rows that waves recorded as drained.
    recorded: BTreeMap<usize, Recorded>,
}

/// What waves recorded of one wait.
#[derive(Clone, PartialEq, Debug, Default)]
struct Recorded {
    executions: u64,
    drained: BTreeSet<usize>,
    awaited: BTreeMap<usize, u64>,
}

impl Awaited {
    /// Finds what the waits of some kernels wait for, from the machine code alone.
    ///
    /// # Errors
    /// The control flow of a kernel is too intricate.
    pub fn of(trace: &Trace, kernels: &[usize], options: Options) -> Result<Self, AttError> {
        let mut awaited = Awaited::default();
        for &kernel in kernels {
            awaited.add(trace, &trace.kernels[kernel], options)?;
        }
        Ok(awaited)
    }

    fn add(&mut self, trace: &Trace, kernel: &Kernel, options: Options) -> Result<(), AttError> {
        let is_code = |at: &usize| trace.rows[*at].kind == RowKind::Instruction;
        let rows: Vec<usize> = kernel.rows.clone().filter(is_code).collect();
        let text = |&at: &usize| Text::new(trace.rows[at].vaddr, trace.isa(&trace.rows[at]));
        let code: Vec<Text<'_>> = rows.iter().map(text).collect();
        let family = options.family.unwrap_or_else(|| Family::infer(&code));
        let analysis = analyse(&code, family, Entry::Kernel).map_err(|error| {
            let what = format!("kernel '{}': {error}", trace.kernel_name(kernel));
            AttError::Form { path: trace.path.clone(), what }
        })?;
        self.families.push(family);
        self.add_waits(trace, &analysis, &rows);
        if options.nops {
            self.add_nops(&analysis, &rows);
        }
        Ok(())
    }

    fn add_waits(&mut self, trace: &Trace, analysis: &Analysis, rows: &[usize]) {
        for wait in &analysis.waits {
            let drained = wait.drained().into_iter().map(|at| rows[at]).collect();
            self.drained.insert(rows[wait.at], drained);
            let targets: Vec<usize> = wait.awaited().into_iter().map(|at| rows[at]).collect();
            let hits = targets.iter().map(|&row| trace.rows[row].hit);
            let no_hits = hits.clone().all(|hit| hit == 0);
            let parts = hits.map(|hit| if no_hits { 1 } else { hit });
            let targets: Vec<_> = targets.iter().copied().zip(parts).collect();
            if !targets.is_empty() {
                self.targets.insert(rows[wait.at], targets);
            }
        }
    }

    fn add_nops(&mut self, analysis: &Analysis, rows: &[usize]) {
        for nop in analysis.nops.iter().filter(|nop| !nop.pairs.is_empty()) {
            let producers: BTreeSet<usize> =
                nop.pairs.iter().map(|pair| rows[pair.producer]).collect();
            let targets = producers.into_iter().map(|row| (row, 1)).collect();
            self.targets.insert(rows[nop.at], targets);
        }
    }

    /// Takes in what a wave recorded. Of the drained operations it is the last one of those that
    /// the machine code says to be awaited; where that says none of them, the last.
    pub fn record(&mut self, trace: &Trace, wave: &Wave) {
        let rows = trace.by_line_number();
        for wait in &wave.waits {
            let Some(&row) = rows.get(&wait.row) else { continue };
            if !self.drained.contains_key(&row) {
                continue;
            }
            let drained: Vec<usize> =
                wait.awaited.iter().filter_map(|number| rows.get(number).copied()).collect();
            self.record_one(row, &drained);
        }
    }

    fn record_one(&mut self, wait: usize, drained: &[usize]) {
        let expected = self.targets.get(&wait).map(Vec::as_slice).unwrap_or_default();
        let is_expected = |row: &&usize| expected.iter().any(|(target, _)| target == *row);
        let mut awaited: Vec<usize> = drained.iter().filter(is_expected).copied().collect();
        if awaited.is_empty() {
            awaited.extend(drained.last());
        }
        let recorded = self.recorded.entry(wait).or_default();
        recorded.executions += 1;
        recorded.drained.extend(drained);
        for row in awaited {
            *recorded.awaited.entry(row).or_default() += 1;
        }
    }

    /// The rows that a waiting row waits for, with their parts: as recorded, else as the machine
    /// code says.
    pub fn targets(&self, wait: usize) -> Vec<(usize, u64)> {
        match self.recorded.get(&wait).filter(|recorded| !recorded.awaited.is_empty()) {
            Some(recorded) => recorded.awaited.iter().map(|(row, part)| (*row, *part)).collect(),
            None => self.targets.get(&wait).cloned().unwrap_or_default(),
        }
    }

    /// The rows that wait: those that have something to wait for, and all waits for counters.
    pub fn waiting(&self) -> impl Iterator<Item = usize> + '_ {
        let rows: BTreeSet<usize> =
            self.targets.keys().chain(self.drained.keys()).copied().collect();
        rows.into_iter()
    }

    /// How far the machine code and the records agree; `None` without records.
    pub fn agreement(&self, trace: &Trace) -> Option<Agreement> {
        if self.recorded.is_empty() {
            return None;
        }
        let mut agreement = Agreement {
            waits: self.recorded.len(),
            equal: 0,
            executions: self.recorded.values().map(|recorded| recorded.executions).sum(),
            differences: Vec::new(),
        };
        for (&wait, recorded) in &self.recorded {
            let drained = &self.drained[&wait];
            if *drained == recorded.drained {
                agreement.equal += 1;
                continue;
            }
            let numbers = |rows: Vec<&usize>| {
                rows.into_iter().map(|&row| trace.rows[row].line_number).collect()
            };
            agreement.differences.push(Difference {
                row: trace.rows[wait].line_number,
                wait: trace.isa(&trace.rows[wait]).into(),
                only_static: numbers(drained.difference(&recorded.drained).collect()),
                only_recorded: numbers(recorded.drained.difference(drained).collect()),
            });
        }
        Some(agreement)
    }

    /// The weights behind the move, by the row's index. Their sum is that of `weights`.
    pub fn moved(&self, weights: &[u64]) -> Vec<u64> {
        let mut moved = weights.to_vec();
        for wait in self.waiting() {
            let targets = self.targets(wait);
            let weight = weights.get(wait).copied().unwrap_or(0);
            if targets.is_empty() || weight == 0 {
                continue;
            }
            moved[wait] -= weight;
            for ((row, _), part) in targets.iter().zip(split(weight, &targets)) {
                moved[*row] = moved[*row].saturating_add(part);
            }
        }
        moved
    }
}

/// Splits an amount by parts so that nothing is lost: what rounding leaves over goes to the
/// largest remainders, the first of equal ones.
fn split(amount: u64, targets: &[(usize, u64)]) -> Vec<u64> {
    let total: u128 = targets.iter().map(|(_, part)| u128::from(*part)).sum();
    if total == 0 {
        return Vec::new();
    }
    let exact = |part: u64| u128::from(amount) * u128::from(part);
    let mut shares: Vec<u64> =
        targets.iter().map(|(_, part)| (exact(*part) / total) as u64).collect();
    let mut by_remainder: Vec<usize> = (0..targets.len()).collect();
    by_remainder.sort_by_key(|&at| std::cmp::Reverse(exact(targets[at].1) % total));
    let left = amount - shares.iter().sum::<u64>();
    by_remainder.iter().take(left as usize).for_each(|&at| shares[at] += 1);
    shares
}

/// How far the machine code and what waves recorded agree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Agreement {
    /// Waits that waves recorded.
    pub waits: usize,
    /// Those of them whose drained operations are the same by both.
    pub equal: usize,
    /// How often the waits were executed.
    pub executions: u64,
    /// The others.
    pub differences: Vec<Difference>,
}

/// A wait that drains other operations by the machine code than by the records. Rows are
/// LineNumbers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// The wait.
    pub row: u32,
    /// Its instruction.
    pub wait: String,
    /// What only the machine code says; waves may just not have gone all ways.
    pub only_static: Vec<u32>,
    /// What only the records say.
    pub only_recorded: Vec<u32>,
}

/// What waits of one line wait for on another.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Edge {
    /// The line of the waits; null without a location.
    pub from: Option<FileLine>,
    /// The line of what they wait for; null without a location.
    pub to: Option<FileLine>,
    /// The leaf class of what they wait for.
    pub class: Class,
    /// Its mnemonic.
    pub mnemonic: String,
    /// How many waiting rows.
    pub rows: usize,
    /// Their stall cycles.
    pub cycles: u64,
    /// Their part of the stall cycles of all waiting rows.
    pub cycles_share: f64,
    /// The weight that was moved.
    pub weight: u64,
    /// Its part of the total weight of the trace.
    pub weight_share: f64,
}

/// What `att waits` says of a trace.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WaitReport {
    /// The version of this form.
    pub schema: u32,
    /// The `code.json`.
    pub trace: String,
    /// What a row weighs.
    pub weight_by: WeightBy,
    /// The family whose rules were applied to each kernel.
    pub families: Vec<Family>,
    /// Waiting rows.
    pub waits: usize,
    /// Waiting rows for which nothing is known that they wait for; they keep their weight.
    pub waits_for_nothing: usize,
    /// Stall cycles of the waiting rows.
    pub cycles: u64,
    /// Stall cycles that were moved.
    pub moved_cycles: u64,
    /// The weight of the waiting rows.
    pub weight: u64,
    /// The weight that was moved.
    pub moved_weight: u64,
    /// How far waves agree with the machine code; null without records of waves.
    pub agreement: Option<Agreement>,
    /// What waits for what, by cycles.
    pub edges: Vec<Edge>,
    /// The trace as it is.
    pub before: Report,
    /// The trace behind the move.
    pub after: Report,
}

/// The sums of what was moved.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Moves {
    /// By cycles.
    pub edges: Vec<Edge>,
    /// Waiting rows.
    pub waits: usize,
    /// Those with nothing to wait for.
    pub waits_for_nothing: usize,
    /// Stall cycles of waiting rows, and of those that were moved.
    pub cycles: (u64, u64),
    /// The weight of waiting rows, and of those that were moved.
    pub weight: (u64, u64),
}

/// An edge's identity: both lines, class and mnemonic of what is awaited.
type EdgeKey<'t> = (Option<Line>, Option<Line>, Class, &'t str);

#[derive(Default)]
struct EdgeSum {
    rows: BTreeSet<usize>,
    cycles: u64,
    weight: u64,
}

impl Awaited {
    /// Sums up what is moved between lines.
    pub fn moves(&self, trace: &Trace, weights: &[u64]) -> Moves {
        let mut moves = Moves::default();
        let mut sums: FxHashMap<EdgeKey<'_>, EdgeSum> = FxHashMap::default();
        for wait in self.waiting() {
            let (stall, weight) = (trace.rows[wait].stall, weights.get(wait).copied().unwrap_or(0));
            let targets = self.targets(wait);
            moves.waits += 1;
            moves.waits_for_nothing += usize::from(targets.is_empty());
            add_moved(&mut moves.cycles, stall, !targets.is_empty());
            add_moved(&mut moves.weight, weight, !targets.is_empty());
            let parts = split(stall, &targets).into_iter().zip(split(weight, &targets));
            for (&(row, _), (cycles, weight)) in targets.iter().zip(parts) {
                let sum = sums.entry(edge_key(trace, wait, row)).or_default();
                sum.rows.insert(wait);
                sum.cycles = sum.cycles.saturating_add(cycles);
                sum.weight = sum.weight.saturating_add(weight);
            }
        }
        let total: u64 = weights.iter().fold(0, |sum, weight| sum.saturating_add(*weight));
        let edge = |(key, sum): (EdgeKey<'_>, EdgeSum)| edge(trace, key, &sum, &moves, total);
        let mut edges: Vec<Edge> = sums.into_iter().map(edge).collect();
        edges.sort_by(|a, b| {
            let key = |edge: &Edge| (edge.from.clone(), edge.to.clone(), edge.mnemonic.clone());
            (b.cycles, b.weight).cmp(&(a.cycles, a.weight)).then_with(|| key(a).cmp(&key(b)))
        });
        moves.edges = edges;
        moves
    }
}

fn add_moved(sums: &mut (u64, u64), amount: u64, is_moved: bool) {
    sums.0 = sums.0.saturating_add(amount);
    if is_moved {
        sums.1 = sums.1.saturating_add(amount);
    }
}

fn edge_key(trace: &Trace, wait: usize, target: usize) -> EdgeKey<'_> {
    let line = |row: usize| trace.rows[row].chain.map(|chain| trace.chains.innermost(chain).line());
    let row = &trace.rows[target];
    let mnemonic = trace.isa(row).split_whitespace().next().unwrap_or_default();
    (line(wait), line(target), row.class, mnemonic)
}

fn edge(trace: &Trace, key: EdgeKey<'_>, sum: &EdgeSum, moves: &Moves, total: u64) -> Edge {
    let (from, to, class, mnemonic) = key;
    let line = |line: Option<Line>| line.map(|line| FileLine::of(trace, line));
    Edge {
        from: line(from),
        to: line(to),
        class,
        mnemonic: mnemonic.into(),
        rows: sum.rows.len(),
        cycles: sum.cycles,
        cycles_share: share(sum.cycles, moves.cycles.0),
        weight: sum.weight,
        weight_share: share(sum.weight, total),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_in_a_split() {
        assert_eq!(split(10, &[(0, 1), (1, 1), (2, 1)]), [4, 3, 3]);
        assert_eq!(split(10, &[(0, 0), (1, 3)]), [0, 10]);
        assert_eq!(split(u64::MAX, &[(0, u64::MAX), (1, 1)]).iter().sum::<u64>(), u64::MAX);
        assert!(split(3, &[]).is_empty());
    }
}
