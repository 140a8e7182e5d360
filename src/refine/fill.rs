//! Lines for instructions that have none of use: from the instruction that they serve.

use crate::object::dwarf::INFERRED_DISCRIMINATOR;
use crate::object::dwarf::write::Place;

use super::plan::{Planned, Shown};

/// How control leaves an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    /// A conditional branch.
    Either,
    /// What follows is reached from elsewhere.
    Away,
}

fn flow(planned: &Planned<'_>) -> Flow {
    match &*planned.located.instruction.mnemonic {
        "s_branch" | "s_setpc_b64" | "s_set_pc_i64" | "s_endpgm" | "s_endpgm_saved" => Flow::Away,
        name if name.starts_with("s_cbranch") => Flow::Either,
        _ => Flow::Next,
    }
}

/// Gives every instruction without a line of use that of another one, and tells how many got
/// one. For a branch or the end of the program that is the nearest before. For all else it is
/// the nearest after that control always comes to, else the nearest before, else the nearest
/// after.
pub(super) fn fill(planned: &mut [Planned<'_>]) -> usize {
    let source =
        |planned: &Planned<'_>| planned.shown.filter(|_| planned.usable && !is_inferred(planned));
    let mut before: Vec<Option<Shown>> = Vec::with_capacity(planned.len());
    for one in planned.iter() {
        let last = before.last().copied().flatten();
        before.push(source(one).or(last));
    }
    let mut filled = 0;
    let (mut run, mut after) = (None, None);
    for (at, one) in planned.iter_mut().enumerate().rev() {
        let flow = flow(one);
        if flow != Flow::Next {
            run = None;
        }
        if let Some(own) = source(one) {
            (run, after) = (Some(own), Some(own));
        } else if !one.usable {
            let ends = flow != Flow::Next;
            let served = if ends { None } else { run };
            if let Some(from) = served.or(before[at]).or(after) {
                one.shown = Some(inferred(from, one.shown));
                filled += 1;
            }
        }
    }
    filled
}

fn is_inferred(planned: &Planned<'_>) -> bool {
    planned.shown.is_some_and(|shown| shown.place.discriminator == INFERRED_DISCRIMINATOR)
}

/// What an instruction shows that gets the line of another.
fn inferred(from: Shown, own: Option<Shown>) -> Shown {
    let place = Place { discriminator: INFERRED_DISCRIMINATOR, ..from.place };
    match own {
        Some(own) if own.program != from.program => own,
        _ => Shown { place, ..from },
    }
}
