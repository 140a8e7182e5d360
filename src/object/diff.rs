//! Two objects of one kernel: which instructions are on another line, or where the code differs.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::chain::{Chains, Line};

use super::metrics::FileLine;
use super::{CodeObject, Function, Instruction, Listing, Role, Vaddr};

/// One side of a comparison.
pub struct Side<'a> {
    /// The code object.
    pub object: &'a CodeObject,
    /// The kernel.
    pub function: &'a Function,
    /// Its instructions.
    pub listing: &'a Listing,
}

/// What a comparison found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Whether the kernels have the same bytes.
    pub same_code: bool,
    /// Where they first differ.
    pub difference: Option<Difference>,
    /// Instructions that are on another line; null for different code.
    pub moved: Option<usize>,
    /// Those, from line to line, most first.
    pub moves: Vec<Move>,
}

/// The first place where two kernels differ.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Difference {
    /// How far it is from the start of the kernels, in bytes.
    pub offset: u64,
    /// What the first has there; null behind its end.
    pub a: Option<Placed>,
    /// What the second has there; null behind its end.
    pub b: Option<Placed>,
}

/// An instruction and its address.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Placed {
    /// The address.
    pub address: u64,
    /// The instruction.
    pub instruction: String,
}

/// Instructions that were on one line and are on another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Move {
    /// The line in the first object; null for none.
    pub from: Option<FileLine>,
    /// The line in the second object; null for none.
    pub to: Option<FileLine>,
    /// How many instructions.
    pub instructions: usize,
}

/// Compares two objects of one kernel.
pub fn compare(a: &Side<'_>, b: &Side<'_>, chains: &Chains) -> Comparison {
    let difference = difference(a, b);
    if difference.is_some() {
        return Comparison { same_code: false, difference, moved: None, moves: Vec::new() };
    }
    let moves = moves(a.listing, b.listing, chains);
    let moved = Some(moves.iter().map(|m| m.instructions).sum());
    Comparison { same_code: true, difference: None, moved, moves }
}

fn difference(a: &Side<'_>, b: &Side<'_>) -> Option<Difference> {
    let codes = [a, b].map(|side| side.function.own_code(&side.object.elf));
    if codes[0] == codes[1] {
        return None;
    }
    let same = codes[0].iter().zip(codes[1]).take_while(|(a, b)| a == b).count() as u64;
    let at = |side: &Side<'_>| {
        let address = side.function.range.start.plus(same);
        instruction_at(&side.listing.instructions, address)
            .map(|i| Placed { address: i.address.0, instruction: i.to_string() })
    };
    Some(Difference { offset: same, a: at(a), b: at(b) })
}

fn instruction_at(listing: &[super::Located], address: Vaddr) -> Option<&Instruction> {
    let after = listing.partition_point(|located| located.instruction.address <= address);
    let located = listing[..after].last()?;
    (address < located.instruction.end()).then_some(&located.instruction)
}

fn moves(a: &Listing, b: &Listing, chains: &Chains) -> Vec<Move> {
    let line = |located: &super::Located| located.chain.map(|c| chains.innermost(c).line());
    let mut counts: BTreeMap<[Option<Line>; 2], usize> = BTreeMap::new();
    for (a, b) in a.instructions.iter().zip(&b.instructions) {
        let lines = [line(a), line(b)];
        if a.role != Role::Padding && lines[0] != lines[1] {
            *counts.entry(lines).or_default() += 1;
        }
    }
    let mut moves: Vec<Move> = counts
        .into_iter()
        .map(|([from, to], instructions)| Move {
            from: from.map(|line| FileLine::of(line, chains)),
            to: to.map(|line| FileLine::of(line, chains)),
            instructions,
        })
        .collect();
    moves.sort_by(|a, b| (b.instructions, &a.from, &a.to).cmp(&(a.instructions, &b.from, &b.to)));
    moves
}
