//! What the operations that a wait drains are needed for next.
//!
//! Behind a wait for a count, the first instruction that names a register of a drained load
//! needs that load, and those in front of it, as they return in order. Loads behind it could
//! have stayed in flight until their own consumers: the wait was stricter than needed.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use super::Text;
use super::access::{Access, copies_to_lds};
use super::counter::{Counter, Family};
use super::decode::{Decoded, Flow};
use super::flow::Graph;
use super::solve::{Drain, Wait};
use crate::leaf::{Class, class_of_isa};

/// The first use of what a wait drains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Need {
    /// The nearest instruction behind the wait that needs a drained operation.
    pub consumer: usize,
    /// How it needs it.
    pub by: Consumer,
    /// How many of the drained operations it can do without on every path: the count that the
    /// wait could have waited for is that much higher.
    pub could_stay: u32,
}

/// How an instruction needs an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Consumer {
    /// It reads or overwrites a register that the operation fills.
    Register,
    /// It reads LDS, and the operation fills LDS. Whether it is the same part of LDS is not
    /// known, so all copies are taken to be needed.
    Lds,
}

/// How many instructions behind a wait are looked at.
const WINDOW: usize = 512;

/// Finds the needs of each wait's drained operations.
pub(super) fn find(
    waits: &mut [Wait],
    code: &[Text<'_>],
    accesses: &[Access],
    decoded: &[Decoded],
    graph: &Graph,
    family: Family,
) {
    let seen = FxHashSet::default();
    let mut search = Search { code, accesses, decoded, graph, family, seen };
    for wait in waits {
        for drain in wait.drains.iter_mut().filter(|drain| !drain.drained.is_empty()) {
            drain.need = search.need(wait.at, drain);
            if drain.need.as_ref().is_some_and(|need| need.by == Consumer::Lds) {
                drain.undoes = search.undone(wait.at, drain);
            }
        }
    }
}

struct Search<'a> {
    code: &'a [Text<'a>],
    accesses: &'a [Access],
    decoded: &'a [Decoded],
    graph: &'a Graph,
    family: Family,
    seen: FxHashSet<usize>,
}

impl Search<'_> {
    /// Looks along all paths behind the wait, nearest first, each to its first consumer or to
    /// the next wait that is as strict.
    fn need(&mut self, wait: usize, drain: &Drain) -> Option<Need> {
        self.seen.clear();
        let mut paths = VecDeque::new();
        self.follow(wait, &mut paths);
        let mut found: Option<Need> = None;
        let mut left = WINDOW;
        while let Some(at) = paths.pop_front() {
            if left == 0 {
                found.as_mut()?.could_stay = 0;
                break;
            }
            left -= 1;
            if let Some(need) = self.consumption(at, drain) {
                found = Some(stricter(found, need));
            } else if !self.is_as_strict(at, drain) {
                self.follow(at, &mut paths);
            }
        }
        found
    }

    /// The wait in front that had left operations in flight which this one drains, when the
    /// counter saw nothing between the two.
    fn undone(&self, wait: usize, drain: &Drain) -> Option<usize> {
        let block = &self.graph.blocks[self.graph.block_of[wait]];
        let front = (block.range.start..wait).rev();
        let last = front.take(WINDOW).find(|&at| self.concerns(at, drain.counter))?;
        let mut limits = self.decoded[last].limits.iter();
        let is_weaker =
            |&(counter, limit): &(Counter, u32)| counter == drain.counter && limit > drain.limit;
        (self.decoded[last].is_wait && limits.any(is_weaker)).then_some(last)
    }

    /// Whether an instruction waits for a counter or counts in it.
    fn concerns(&self, at: usize, counter: Counter) -> bool {
        let decoded = &self.decoded[at];
        decoded.limits.iter().any(|(other, _)| *other == counter)
            || decoded.issues.iter().any(|lane| lane.counter(self.family) == counter)
            || decoded.flow == Flow::Call
    }

    /// Adds what may run behind an instruction.
    fn follow(&mut self, at: usize, paths: &mut VecDeque<usize>) {
        let block = &self.graph.blocks[self.graph.block_of[at]];
        if at + 1 < block.range.end {
            return paths.push_back(at + 1);
        }
        for &next in block.next.iter().filter(|next| self.seen.insert(**next)) {
            paths.push_back(self.graph.blocks[next].range.start);
        }
    }

    fn is_as_strict(&self, at: usize, drain: &Drain) -> bool {
        let limits = &self.decoded[at].limits;
        limits.iter().any(|&(counter, limit)| counter == drain.counter && limit <= drain.limit)
    }

    /// How the instruction needs drained operations, if it does.
    fn consumption(&self, at: usize, drain: &Drain) -> Option<Need> {
        let needs = drain.drained.iter().zip(&drain.could_wait_for);
        needs
            .filter_map(|(&operation, &limit)| {
                let by = self.needs(at, operation)?;
                Some(Need { consumer: at, by, could_stay: limit - drain.limit })
            })
            .reduce(|first, other| stricter(Some(first), other))
    }

    fn needs(&self, at: usize, operation: usize) -> Option<Consumer> {
        let results = &self.accesses[operation].writes;
        if results.iter().any(|result| self.accesses[at].touches(*result)) {
            return Some(Consumer::Register);
        }
        let text = &self.code[at];
        let reads_lds = class_of_isa(text.mnemonic, text.operands) == Class::Lds;
        (reads_lds && copies_to_lds(&self.code[operation])).then_some(Consumer::Lds)
    }
}

/// The first found is the nearest; the stricter decides how many operations could stay.
fn stricter(found: Option<Need>, other: Need) -> Need {
    match found {
        Some(first) => Need { could_stay: first.could_stay.min(other.could_stay), ..first },
        None => other,
    }
}
