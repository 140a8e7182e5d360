//! Steps into rows, and into ranges that move between entries.

use crate::object::dwarf::write::{Editable, Move, Program, Row, Sequence, Tree};

use super::plan::Step;

/// Makes the rows of all programs those of the steps, and tells which ranges of addresses
/// change the entry that they are in.
pub(super) fn apply(editable: &mut Editable, steps: &[Step]) -> Vec<Move> {
    let moves = moves(&editable.tree, steps);
    let tree = &editable.tree;
    for (number, program) in editable.programs.iter_mut().enumerate() {
        for sequence in &mut program.sequences {
            *sequence = rebuild(sequence, steps, number, tree);
        }
        add_missing(program, steps, number);
        program.refined |= !program.sequences.is_empty();
    }
    moves
}

fn moves(tree: &Tree, steps: &[Step]) -> Vec<Move> {
    let root = |node: Option<u32>| tree.around(node).last();
    let mut moves: Vec<Move> = Vec::new();
    for step in steps {
        let (from, to) = (tree.node_at(step.start), step.shown.node);
        if from == to || root(from) != root(to) {
            continue;
        }
        match moves.last_mut() {
            Some(last) if last.end == step.start && (last.from, last.to) == (from, to) => {
                last.end = step.end;
            }
            _ => moves.push(Move { start: step.start, end: step.end, from, to }),
        }
    }
    moves
}

/// A sequence with a row wherever a row was, and wherever what is shown changes. Rows that
/// cover nothing are left out.
fn rebuild(old: &Sequence, steps: &[Step], program: usize, tree: &Tree) -> Sequence {
    let mut sorted = old.rows.clone();
    if !sorted.is_sorted_by_key(|row| row.address) {
        sorted.sort_by_key(|row| row.address);
    }
    let mut rows = Vec::with_capacity(sorted.len() + sorted.len() / 4);
    let mut shown: Option<Option<u32>> = None;
    let (mut prologue_end, mut epilogue_begin) = (false, false);
    for (at, row) in sorted.iter().enumerate() {
        let end = sorted.get(at + 1).map_or(old.end, |next| next.address);
        let (prologue, epilogue) =
            (row.prologue_end | prologue_end, row.epilogue_begin | epilogue_begin);
        if row.address >= end {
            (prologue_end, epilogue_begin) = (prologue, epilogue);
            continue;
        }
        (prologue_end, epilogue_begin) = (false, false);
        let mut row = Row { prologue_end: prologue, epilogue_begin: epilogue, ..*row };
        let first = steps.partition_point(|step| step.end <= row.address);
        let covered = steps[first..].iter().take_while(|step| step.start < end);
        let covered = covered.filter(|step| step.shown.program == program);
        let mut starts = true;
        for step in covered {
            let node = tree.inlined(step.shown.node);
            if starts && step.start > row.address {
                rows.push(row);
                starts = false;
                shown = None;
            }
            let part = Row { address: step.start.max(row.address), place: step.shown.place, ..row };
            if starts {
                rows.push(part);
            } else if rows.last().is_some_and(|last: &Row| last.place != part.place)
                || shown != Some(node)
            {
                rows.push(Row {
                    basic_block: false,
                    prologue_end: false,
                    epilogue_begin: false,
                    ..part
                });
            }
            row.place = part.place;
            starts = false;
            shown = Some(node);
        }
        if starts {
            rows.push(row);
            shown = None;
        }
    }
    match rows.is_empty() {
        true => old.clone(),
        false => Sequence { rows, ..*old },
    }
}

/// Adds sequences for instructions that no row covers.
fn add_missing(program: &mut Program, steps: &[Step], number: usize) {
    let mut open: Option<Sequence> = None;
    for step in steps.iter().filter(|step| step.missing && step.shown.program == number) {
        let row = Row {
            address: step.start,
            place: step.shown.place,
            is_stmt: true,
            basic_block: false,
            prologue_end: false,
            epilogue_begin: false,
            isa: 0,
        };
        match &mut open {
            Some(sequence) if sequence.end == step.start => {
                if sequence.rows.last().is_none_or(|last| last.place != row.place) {
                    sequence.rows.push(row);
                }
                sequence.end = step.end;
            }
            _ => {
                program.sequences.extend(open.take());
                open = Some(Sequence { rows: vec![row], end: step.end, end_isa: 0 });
            }
        }
    }
    program.sequences.extend(open);
}
