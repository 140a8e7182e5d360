//! How two traces differ: which instructions moved from which line to which.

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::Trace;
use super::align::{self, align};
use super::metrics::{FileLine, share};
use crate::chain::Line;
use crate::leaf::Class;

/// What two traces have in common, and what moved.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Whether both have the same instructions at the same addresses.
    pub same_code: bool,
    /// Instructions of the first trace, padding excluded.
    pub instructions_a: usize,
    /// Instructions of the second trace, padding excluded.
    pub instructions_b: usize,
    /// Instructions that were found in both.
    pub matched: usize,
    /// The share of the longer trace's instructions that were found in both.
    pub matched_share: f64,
    /// Those of them with the same text; the others have the same mnemonic.
    pub same_text: usize,
    /// Matched instructions whose line differs.
    pub moved: usize,
    /// The moves, heaviest first.
    pub moves: Vec<Move>,
}

/// Instructions of one class that moved from one line to another.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Move {
    /// The instructions' class.
    pub class: Class,
    /// Their line in the first trace; `None` where it shows none.
    pub from: Option<FileLine>,
    /// Their line in the second trace.
    pub to: Option<FileLine>,
    /// How many they are.
    pub rows: usize,
    /// Their weight in the first trace.
    pub weight_a: u64,
    /// Their weight in the second trace.
    pub weight_b: u64,
    /// Its share of the second trace's total weight.
    pub weight_b_share: f64,
}

/// One side of a comparison.
pub struct Side<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Indices of the kernels that count, into [`Trace::kernels`].
    pub kernels: &'a [usize],
    /// The weight of each row, by its index.
    pub weights: &'a [u64],
}

/// A move's class and lines; rows with equal keys are one move.
type Key = (Class, Option<Line>, Option<Line>);

/// Compares two traces.
pub fn compare(a: &Side<'_>, b: &Side<'_>) -> Comparison {
    let alignment = align((a.trace, a.kernels), (b.trace, b.kernels));
    let mut texts = SameLine::default();
    let mut moves: FxHashMap<Key, (usize, u64, u64)> = FxHashMap::default();
    for &(at_a, at_b) in &alignment.pairs {
        let (from, to) = (line(a.trace, at_a), line(b.trace, at_b));
        if texts.is_same(a.trace, from, b.trace, to) {
            continue;
        }
        let (rows, weight_a, weight_b) =
            moves.entry((b.trace.rows[at_b].class, from, to)).or_default();
        *rows += 1;
        *weight_a = weight_a.saturating_add(a.weights.get(at_a).copied().unwrap_or(0));
        *weight_b = weight_b.saturating_add(b.weights.get(at_b).copied().unwrap_or(0));
    }
    let (instructions_a, instructions_b) =
        (align::count(a.trace, a.kernels), align::count(b.trace, b.kernels));
    let matched = alignment.pairs.len();
    Comparison {
        same_code: alignment.same_code,
        instructions_a,
        instructions_b,
        matched,
        matched_share: share(matched as u64, instructions_a.max(instructions_b) as u64),
        same_text: alignment.same_text,
        moved: moves.values().map(|(rows, ..)| rows).sum(),
        moves: sorted(a, b, moves),
    }
}

fn line(trace: &Trace, row: usize) -> Option<Line> {
    trace.rows[row].chain.map(|chain| trace.chains.innermost(chain).line())
}

fn sorted(a: &Side<'_>, b: &Side<'_>, moves: FxHashMap<Key, (usize, u64, u64)>) -> Vec<Move> {
    let rows = b.kernels.iter().flat_map(|&kernel| b.trace.kernels[kernel].rows.clone());
    let weights = rows.filter_map(|row| b.weights.get(row).copied());
    let total = weights.fold(0, u64::saturating_add);
    let mut moves: Vec<_> = moves
        .into_iter()
        .map(|((class, from, to), (rows, weight_a, weight_b))| Move {
            class,
            from: from.map(|line| FileLine::of(a.trace, line)),
            to: to.map(|line| FileLine::of(b.trace, line)),
            rows,
            weight_a,
            weight_b,
            weight_b_share: share(weight_b, total),
        })
        .collect();
    moves.sort_by(|x, y| {
        let weight = |m: &Move| (m.weight_b, m.weight_a, m.rows);
        let place = |m: &Move| (m.class, m.from.clone(), m.to.clone());
        weight(y).cmp(&weight(x)).then_with(|| place(x).cmp(&place(y)))
    });
    moves
}

/// Compares lines of two traces by the text of their files, each pair of files once.
#[derive(Default)]
struct SameLine(FxHashMap<(crate::chain::Sym, crate::chain::Sym), bool>);

impl SameLine {
    fn is_same(&mut self, a: &Trace, from: Option<Line>, b: &Trace, to: Option<Line>) -> bool {
        match (from, to) {
            (Some(from), Some(to)) if from.number == to.number => {
                let same = || a.chains.str(from.file) == b.chains.str(to.file);
                *self.0.entry((from.file, to.file)).or_insert_with(same)
            }
            (None, None) => true,
            _ => false,
        }
    }
}
