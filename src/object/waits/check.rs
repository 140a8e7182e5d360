//! The check that every instruction finds its registers ready.

use super::access::Access;
use super::counter::{Counter, Lane};
use super::decode::Decoded;
use super::flow::Graph;
use super::queue::CALLERS;
use super::solve::Solution;

/// An instruction that uses a register while an operation in flight still needs it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Hurry {
    /// The instruction.
    pub at: usize,
    /// The operation that may be in flight.
    pub operation: usize,
    /// The counter that tells when the operation is done.
    pub counter: Counter,
    /// What goes wrong.
    pub kind: HurryKind,
}

/// What goes wrong with a register that is used too early.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HurryKind {
    /// It is read before the operation has written it.
    Read,
    /// It is written, and the operation then overwrites it.
    Overwritten,
    /// It is written before the operation has read it.
    Source,
}

/// Finds every such use.
pub(super) fn find(
    solution: &Solution,
    decoded: &[Decoded],
    graph: &Graph,
    accesses: &[Access],
) -> Vec<Hurry> {
    let mut found = Vec::new();
    solution.visit(decoded, graph, |at, state| {
        let own = &accesses[at];
        if own.writes.is_empty() && own.reads.is_empty() {
            return;
        }
        for (lane, op) in state.all().filter(|(_, op)| op.operation != CALLERS) {
            let operation = op.operation as usize;
            let kind = clash(own, &accesses[operation], lane, decoded[at].issues.contains(lane));
            let counter = lane.counter(solution.family());
            found.extend(kind.map(|kind| Hurry { at, operation, counter, kind }));
        }
    });
    found
}

/// How an instruction clashes with an operation in flight. What an operation of the same ordered
/// lane writes, it writes behind the other one.
fn clash(own: &Access, other: &Access, lane: Lane, same_lane: bool) -> Option<HurryKind> {
    let waits_its_turn = same_lane && lane.is_ordered();
    if lane.holds_sources() {
        let overwrites = own.writes_source_of(other) && !waits_its_turn;
        return overwrites.then_some(HurryKind::Source);
    }
    if own.reads_result_of(other) {
        Some(HurryKind::Read)
    } else if own.writes_result_of(other) && !waits_its_turn {
        Some(HurryKind::Overwritten)
    } else {
        None
    }
}
