//! Which instruction of one trace is which of another.
//!
//! Kernels are paired by name, then by name without a trailing number, and the last one of each
//! side without regard to names. Where two have the same instructions at the same addresses, rows
//! are paired one to one; else by the longest common sequence of instruction texts, and what
//! lies between two such pairs by the sequence of mnemonics, so that another register or branch
//! distance does not part two instructions.

use std::collections::VecDeque;

use imara_diff::{Algorithm, Diff, Token};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Kernel, Row, RowKind, Trace};
use crate::site::without_number;

/// What the rows of two traces have in common.
#[derive(Default)]
pub(super) struct Alignment {
    /// Indices of rows that belong together, of the first trace and the second.
    pub(super) pairs: Vec<(usize, usize)>,
    /// How many of the pairs have the same text.
    pub(super) same_text: usize,
    /// Whether all instructions of both are the same, at the same addresses.
    pub(super) same_code: bool,
}

/// Aligns the given kernels of two traces.
pub(super) fn align(a: (&Trace, &[usize]), b: (&Trace, &[usize])) -> Alignment {
    let mut alignment = Alignment { same_code: true, ..Alignment::default() };
    let (mut left, mut right) = (a.1.to_vec(), b.1.to_vec());
    let names: [fn(&str) -> &str; 2] = [|name| name, without_number];
    for name in names {
        pair_off((a.0, &mut left), (b.0, &mut right), name, &mut alignment);
    }
    if left.len() == 1 && right.len() == 1 {
        pair_off((a.0, &mut left), (b.0, &mut right), |_| "", &mut alignment);
    }
    let is_empty = |trace: &Trace, kernels: &[usize]| {
        kernels.iter().all(|&kernel| instructions(trace, &trace.kernels[kernel]).is_empty())
    };
    alignment.same_code &= is_empty(a.0, &left) && is_empty(b.0, &right);
    alignment
}

/// Pairs the kernels that `name` makes the same, in order, and takes them out of the lists.
fn pair_off(
    (a, left): (&Trace, &mut Vec<usize>),
    (b, right): (&Trace, &mut Vec<usize>),
    name: fn(&str) -> &str,
    alignment: &mut Alignment,
) {
    let mut by_name: FxHashMap<&str, VecDeque<usize>> = FxHashMap::default();
    for &kernel in right.iter() {
        by_name.entry(name(b.kernel_name(&b.kernels[kernel]))).or_default().push_back(kernel);
    }
    let mut paired = FxHashSet::default();
    left.retain(|&kernel| {
        let kernel = &a.kernels[kernel];
        let others = by_name.get_mut(name(a.kernel_name(kernel)));
        let Some(other) = others.and_then(VecDeque::pop_front) else { return true };
        paired.insert(other);
        align_kernel(a, kernel, b, &b.kernels[other], alignment);
        false
    });
    right.retain(|kernel| !paired.contains(kernel));
}

fn instructions(trace: &Trace, kernel: &Kernel) -> Vec<usize> {
    let is_instruction = |at: &usize| trace.rows[*at].kind == RowKind::Instruction;
    kernel.rows.clone().filter(is_instruction).collect()
}

fn align_kernel(a: &Trace, kernel_a: &Kernel, b: &Trace, kernel_b: &Kernel, out: &mut Alignment) {
    let (rows_a, rows_b) = (instructions(a, kernel_a), instructions(b, kernel_b));
    let is_same = |(&at_a, &at_b): (&usize, &usize)| {
        let (row_a, row_b) = (&a.rows[at_a], &b.rows[at_b]);
        row_a.vaddr == row_b.vaddr && a.isa(row_a) == b.isa(row_b)
    };
    if rows_a.len() == rows_b.len() && rows_a.iter().zip(&rows_b).all(is_same) {
        out.same_text += rows_a.len();
        out.pairs.extend(rows_a.into_iter().zip(rows_b));
        return;
    }
    out.same_code = false;
    let texts_a: Vec<&str> = rows_a.iter().map(|&at| a.isa(&a.rows[at])).collect();
    let texts_b: Vec<&str> = rows_b.iter().map(|&at| b.isa(&b.rows[at])).collect();
    let (pairs, gaps) = common(&texts_a, &texts_b);
    out.same_text += pairs.len();
    out.pairs.extend(pairs.into_iter().map(|(at_a, at_b)| (rows_a[at_a], rows_b[at_b])));
    for (gap_a, gap_b) in gaps {
        let names_a: Vec<&str> = texts_a[gap_a.clone()].iter().map(|text| mnemonic(text)).collect();
        let names_b: Vec<&str> = texts_b[gap_b.clone()].iter().map(|text| mnemonic(text)).collect();
        let (pairs, _) = common(&names_a, &names_b);
        out.pairs.extend(
            pairs
                .into_iter()
                .map(|(at_a, at_b)| (rows_a[gap_a.start + at_a], rows_b[gap_b.start + at_b])),
        );
    }
}

fn mnemonic(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

type Gap = (std::ops::Range<usize>, std::ops::Range<usize>);

/// The common sequence of two texts by words, and the gaps in it that have something on both
/// sides.
fn common<'t>(a: &[&'t str], b: &[&'t str]) -> (Vec<(usize, usize)>, Vec<Gap>) {
    let mut numbers: FxHashMap<&str, u32> = FxHashMap::default();
    let mut tokens = |words: &[&'t str]| -> Vec<Token> {
        let mut number = |word: &'t str| {
            let next = numbers.len() as u32;
            *numbers.entry(word).or_insert(next)
        };
        words.iter().map(|word| Token(number(word))).collect()
    };
    let (tokens_a, tokens_b) = (tokens(a), tokens(b));
    let mut diff = Diff::default();
    diff.compute_with(Algorithm::Histogram, &tokens_a, &tokens_b, numbers.len() as u32);
    let (mut pairs, mut gaps) = (Vec::new(), Vec::new());
    let (mut at_a, mut at_b) = (0, 0);
    for hunk in diff.hunks() {
        let before = hunk.before.start as usize..hunk.before.end as usize;
        let after = hunk.after.start as usize..hunk.after.end as usize;
        pairs.extend((at_a..before.start).zip(at_b..after.start));
        (at_a, at_b) = (before.end, after.end);
        if !before.is_empty() && !after.is_empty() {
            gaps.push((before, after));
        }
    }
    pairs.extend((at_a..a.len()).zip(at_b..b.len()));
    (pairs, gaps)
}

/// How many of the given kernels' rows are instructions.
pub(super) fn count(trace: &Trace, kernels: &[usize]) -> usize {
    let rows = kernels.iter().flat_map(|&kernel| &trace.rows[trace.kernels[kernel].rows.clone()]);
    rows.filter(|row: &&Row| row.kind == RowKind::Instruction).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_words_and_the_gaps_between_them() {
        let (pairs, gaps) = common(&["a", "b", "c", "d"], &["a", "x", "c", "y", "d"]);
        assert_eq!(pairs, [(0, 0), (2, 2), (3, 4)]);
        assert_eq!(gaps, [(1..2, 1..2)]);
        assert_eq!(common(&[], &["a"]), (vec![], vec![]));
    }
}
