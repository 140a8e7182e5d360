//! The fixpoint over the control flow, and what each wait drains.

use std::collections::BTreeSet;

use serde::Serialize;

use super::counter::{Counter, Family};
use super::decode::{Decoded, Flow};
use super::flow::Graph;
use super::need::Need;
use super::queue::{CALLERS, State, drained_ages};
use super::{Entry, TooComplex};

/// A wait for memory operations.
#[derive(Clone, PartialEq, Debug)]
pub struct Wait {
    /// The wait.
    pub at: usize,
    /// Whether control can reach it.
    pub reachable: bool,
    /// What it does to each counter that it names, in the counters' order.
    pub drains: Vec<Drain>,
}

/// What a wait does to one counter. Operations are instructions, in the order of the code.
#[derive(Clone, PartialEq, Debug)]
pub struct Drain {
    /// The counter.
    pub counter: Counter,
    /// The count that is waited for.
    pub limit: u32,
    /// The operations that have returned behind the wait, on some path to it, because of it.
    pub drained: Vec<usize>,
    /// Those of them that the wait really waits for: on some path the youngest drained one of
    /// those that return in order; all that return in any order.
    pub awaited: Vec<usize>,
    /// Operations that return in any order while the count is not 0: the wait may be for some
    /// of them, but none is sure to have returned.
    pub perhaps: Vec<usize>,
    /// Operations that may stay in flight.
    pub kept: Vec<usize>,
    /// For each drained operation the highest count that would drain it as well, on every path.
    pub(super) could_wait_for: Vec<u32>,
    /// Whether operations of a caller or of a called function may be among those drained.
    pub callers: bool,
    /// What the drained operations are needed for next; `None` where no instruction that can
    /// follow names one of their registers or reads the LDS that they fill.
    pub need: Option<Need>,
    /// Where the operations fill LDS: the wait right in front, with no operation of the counter
    /// between, that had left drained operations in flight.
    pub undoes: Option<usize>,
}

impl Drain {
    fn is_idle(&self) -> bool {
        self.drained.is_empty() && self.perhaps.is_empty() && !self.callers
    }
}

impl Wait {
    /// Whether the wait can be reached and never waits for anything.
    pub fn is_wasted(&self) -> bool {
        self.reachable && self.drains.iter().all(Drain::is_idle)
    }

    /// All operations that have returned behind the wait because of it, in the order of the
    /// code.
    pub fn drained(&self) -> Vec<usize> {
        merged(self.drains.iter().flat_map(|drain| &drain.drained))
    }

    /// All operations that it really waits for; where there are none, those that it may wait
    /// for.
    pub fn awaited(&self) -> Vec<usize> {
        let awaited = merged(self.drains.iter().flat_map(|drain| &drain.awaited));
        match awaited.is_empty() {
            true => merged(self.drains.iter().flat_map(|drain| &drain.perhaps)),
            false => awaited,
        }
    }
}

fn merged<'a>(operations: impl Iterator<Item = &'a usize>) -> Vec<usize> {
    let mut all: Vec<usize> = operations.copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// What may be in flight at the start of each block.
pub(super) struct Solution {
    family: Family,
    /// `None` for blocks that cannot be reached.
    states: Vec<Option<State>>,
}

/// How often an operation in a state may be looked at, for each instruction and in all.
const WORK_PER_INSTRUCTION: usize = 4096;
const WORK_AT_LEAST: usize = 1 << 24;

/// Follows the operations in flight along every path.
///
/// # Errors
/// The work exceeds what code of this size should need.
pub(super) fn solve(
    decoded: &[Decoded],
    graph: &Graph,
    family: Family,
    entry: Entry,
) -> Result<Solution, TooComplex> {
    let mut solution = Solution { family, states: vec![None; graph.blocks.len()] };
    let Some(&first) = graph.order.first() else { return Ok(solution) };
    solution.states[first] = Some(match entry {
        Entry::Kernel => State::default(),
        Entry::Function => State::of_callers(),
    });
    let mut work = WORK_AT_LEAST.max(decoded.len().saturating_mul(WORK_PER_INSTRUCTION));
    let mut place = vec![0; graph.blocks.len()];
    graph.order.iter().enumerate().for_each(|(at, &block)| place[block] = at);
    let mut dirty = BTreeSet::from([0]);
    while let Some(at) = dirty.pop_first() {
        let block = graph.order[at];
        let Some(state) = solution.states[block].clone() else { continue };
        let end = solution.run(state, decoded, graph, block, &mut work)?;
        for &next in &graph.blocks[block].next {
            let is_new = match &mut solution.states[next] {
                Some(known) => known.merge(&end),
                unknown => {
                    *unknown = Some(end.clone());
                    true
                }
            };
            if is_new {
                dirty.insert(place[next]);
            }
        }
    }
    Ok(solution)
}

impl Solution {
    /// The family whose rules were applied.
    pub(super) fn family(&self) -> Family {
        self.family
    }

    fn run(
        &self,
        mut state: State,
        decoded: &[Decoded],
        graph: &Graph,
        block: usize,
        work: &mut usize,
    ) -> Result<State, TooComplex> {
        for at in graph.blocks[block].range.clone().filter(|&at| decoded[at].matters()) {
            let looked_at = state.len() + 1;
            *work = work.checked_sub(looked_at).ok_or(TooComplex)?;
            step(&mut state, at, &decoded[at], self.family);
        }
        Ok(state)
    }

    /// Calls `see` with each instruction that can be reached and what may be in flight at it.
    pub(super) fn visit(
        &self,
        decoded: &[Decoded],
        graph: &Graph,
        mut see: impl FnMut(usize, &State),
    ) {
        for (block, state) in graph.blocks.iter().zip(&self.states) {
            let Some(mut state) = state.clone() else { continue };
            for at in block.range.clone() {
                see(at, &state);
                step(&mut state, at, &decoded[at], self.family);
            }
        }
    }

    /// What each wait drains.
    pub(super) fn waits(&self, decoded: &[Decoded], graph: &Graph) -> Vec<Wait> {
        let all = decoded.iter().enumerate().filter(|(_, decoded)| decoded.is_wait);
        let mut waits: Vec<Wait> =
            all.map(|(at, _)| Wait { at, reachable: false, drains: Vec::new() }).collect();
        self.visit(decoded, graph, |at, state| {
            if decoded[at].is_wait
                && let Ok(index) = waits.binary_search_by_key(&at, |wait| wait.at)
            {
                waits[index].reachable = true;
                let limits = decoded[at].limits.iter();
                waits[index].drains =
                    limits.map(|&(counter, limit)| self.drain(state, counter, limit)).collect();
            }
        });
        waits
    }

    fn drain(&self, state: &State, counter: Counter, limit: u32) -> Drain {
        let mut drain = Drain {
            counter,
            limit,
            drained: Vec::new(),
            awaited: Vec::new(),
            perhaps: Vec::new(),
            kept: Vec::new(),
            could_wait_for: Vec::new(),
            callers: false,
            need: None,
            undoes: None,
        };
        let mut drained = Vec::new();
        for lane in counter.lanes(self.family) {
            let returned = drained_ages(lane, limit);
            let last = if lane.is_ordered() { 1 << limit } else { returned };
            for op in state.lane(lane) {
                if op.operation == CALLERS {
                    drain.callers |= op.ages & returned != 0 || !lane.is_ordered();
                    continue;
                }
                let operation = op.operation as usize;
                if op.ages & returned != 0 {
                    let youngest = (op.ages & returned).trailing_zeros();
                    drained.push((operation, if lane.is_ordered() { youngest } else { limit }));
                }
                let add = |when: bool, list: &mut Vec<usize>| {
                    if when {
                        list.push(operation);
                    }
                };
                add(op.ages & last != 0, &mut drain.awaited);
                add(op.ages & !returned != 0, &mut drain.kept);
                add(!lane.is_ordered() && limit > 0, &mut drain.perhaps);
            }
        }
        drained.sort_unstable();
        (drain.drained, drain.could_wait_for) = drained.into_iter().unzip();
        for list in [&mut drain.awaited, &mut drain.perhaps, &mut drain.kept] {
            list.sort_unstable();
        }
        drain
    }
}

/// What is in flight behind an instruction.
pub(super) fn step(state: &mut State, at: usize, decoded: &Decoded, family: Family) {
    for &(counter, limit) in &decoded.limits {
        state.wait(counter, limit, family);
    }
    for lane in decoded.issues.iter() {
        state.issue(lane, at as u32, family);
    }
    if decoded.flow == Flow::Call {
        state.call(family);
    }
}

/// Why a wait is worth a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// Nothing can be in flight that it waits for.
    Wasted,
    /// It waits for younger operations than the next consumer needs.
    TooStrict,
    /// It drains copies to LDS that a wait right in front of it had left in flight.
    Undoes,
    /// No control flow leads to it.
    Unreachable,
}

impl Wait {
    /// What there is to say about the wait.
    pub fn note(&self) -> Option<Note> {
        let could_stay = |drain: &Drain| drain.need.as_ref().is_some_and(|n| n.could_stay > 0);
        if !self.reachable {
            Some(Note::Unreachable)
        } else if self.is_wasted() {
            Some(Note::Wasted)
        } else if self.drains.iter().any(|drain| drain.undoes.is_some()) {
            Some(Note::Undoes)
        } else {
            self.drains.iter().any(could_stay).then_some(Note::TooStrict)
        }
    }
}
