//! The operations that may be in flight at one place of the code.
//!
//! For each lane the state holds which operations may be in flight on any path to the place,
//! and for each of them the set of its possible ages: how many younger operations of its lane
//! are in flight behind it. On one path the ages in a lane are 0, 1, 2 and so on without a gap,
//! so a wait for the count N drains those of age N and more, and the one of age N is the last of
//! them to return. Ages of one operation do not depend on the other operations that the set of
//! paths has, so nothing is lost where paths meet.

use super::counter::{Counter, Family, LANES, Lane};

/// The operation that stands for those of the caller.
pub(super) const CALLERS: u32 = u32::MAX;

/// An operation that may be in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct InFlight {
    /// The instruction.
    pub(super) operation: u32,
    /// Its possible ages, one bit each; in an unordered lane only the first.
    pub(super) ages: u64,
}

/// The operations that may be in flight, by lane, each lane by instruction.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct State {
    lanes: [Vec<InFlight>; LANES],
}

impl State {
    /// What is in flight in a lane.
    pub(super) fn lane(&self, lane: Lane) -> &[InFlight] {
        &self.lanes[lane as usize]
    }

    /// All that is in flight, with its lane.
    pub(super) fn all(&self) -> impl Iterator<Item = (Lane, InFlight)> + '_ {
        Lane::ALL.into_iter().flat_map(|lane| self.lane(lane).iter().map(move |op| (lane, *op)))
    }

    /// How many operations the state holds.
    pub(super) fn len(&self) -> usize {
        self.lanes.iter().map(Vec::len).sum()
    }

    /// Starts an operation.
    pub(super) fn issue(&mut self, lane: Lane, operation: u32, family: Family) {
        self.let_translations_pass(lane);
        let queue = &mut self.lanes[lane as usize];
        if lane.is_ordered() {
            let held = (1_u64 << lane.counter(family).limit(family)) - 1;
            queue.iter_mut().for_each(|op| op.ages = op.ages << 1 & held);
            queue.retain(|op| op.ages != 0);
        }
        add(queue, InFlight { operation, ages: 1 });
    }

    /// The hardware lets all translations of one kind pass before one of the other kind.
    fn let_translations_pass(&mut self, lane: Lane) {
        match lane {
            Lane::VectorAddress => self.lanes[Lane::ScalarAddress as usize].clear(),
            Lane::ScalarAddress => self.lanes[Lane::VectorAddress as usize].clear(),
            _ => {}
        }
    }

    /// Lets everything return that a wait for a count waits for.
    pub(super) fn wait(&mut self, counter: Counter, limit: u32, family: Family) {
        for lane in counter.lanes(family) {
            let drained = drain(&mut self.lanes[lane as usize], lane, limit);
            if counter != Counter::X && family == Family::Gfx1250 {
                self.forget_translations(&drained);
            }
        }
    }

    /// What has returned has also been translated.
    fn forget_translations(&mut self, returned: &[u32]) {
        for lane in [Lane::VectorAddress, Lane::ScalarAddress] {
            let queue = &mut self.lanes[lane as usize];
            queue.retain(|op| returned.binary_search(&op.operation).is_err());
        }
    }

    /// A function was called: it waits for everything at its entry and before it returns, but
    /// not for stores that have their own counter, nor for copies.
    pub(super) fn call(&mut self, family: Family) {
        for lane in Lane::ALL {
            match lane.counter(family) {
                Counter::Vs | Counter::Store => {
                    add(&mut self.lanes[lane as usize], InFlight { operation: CALLERS, ages: 1 });
                }
                Counter::Async | Counter::Tensor | Counter::X => {}
                _ => self.lanes[lane as usize].clear(),
            }
        }
    }

    /// The state at the entry of a function: anything may be in flight.
    pub(super) fn of_callers() -> Self {
        let mut state = State::default();
        let anything = InFlight { operation: CALLERS, ages: u64::MAX };
        state.lanes.iter_mut().for_each(|queue| queue.push(anything));
        state
    }

    /// Takes in what may be in flight on another path; whether that was anything new.
    pub(super) fn merge(&mut self, other: &State) -> bool {
        let mut is_new = false;
        for (queue, other) in self.lanes.iter_mut().zip(&other.lanes) {
            is_new |= merge(queue, other);
        }
        is_new
    }
}

/// Puts an operation into a lane. It mostly is the youngest by its place in the code, too.
fn add(queue: &mut Vec<InFlight>, new: InFlight) {
    let at = match queue.last() {
        Some(last) if last.operation >= new.operation => {
            queue.partition_point(|op| op.operation < new.operation)
        }
        _ => queue.len(),
    };
    match queue.get_mut(at) {
        Some(op) if op.operation == new.operation => op.ages |= new.ages,
        _ => queue.insert(at, new),
    }
}

/// The ages of a lane that a wait for a count lets return.
pub(super) fn drained_ages(lane: Lane, limit: u32) -> u64 {
    match (lane.is_ordered(), limit) {
        (_, 0) => u64::MAX,
        (true, _) => u64::MAX.checked_shl(limit).unwrap_or(0),
        (false, _) => 0,
    }
}

/// Lets operations return; those that have returned on every path.
fn drain(queue: &mut Vec<InFlight>, lane: Lane, limit: u32) -> Vec<u32> {
    let returned = drained_ages(lane, limit);
    let gone = queue.iter().filter(|op| op.ages & !returned == 0).map(|op| op.operation).collect();
    queue.iter_mut().for_each(|op| op.ages &= !returned);
    queue.retain(|op| op.ages != 0);
    gone
}

fn merge(queue: &mut Vec<InFlight>, other: &[InFlight]) -> bool {
    let is_known = |new: &InFlight| {
        let found = queue.binary_search_by_key(&new.operation, |op| op.operation);
        found.is_ok_and(|at| queue[at].ages & new.ages == new.ages)
    };
    if other.iter().all(is_known) {
        return false;
    }
    let mut merged = Vec::with_capacity(queue.len() + other.len());
    let (mut own, mut new) = (queue.iter().peekable(), other.iter().peekable());
    loop {
        let next = match (own.peek(), new.peek()) {
            (Some(a), Some(b)) if a.operation == b.operation => {
                let ages = a.ages | b.ages;
                let both = InFlight { operation: a.operation, ages };
                own.next();
                new.next();
                Some(both)
            }
            (Some(a), Some(b)) if a.operation > b.operation => new.next().copied(),
            (Some(_), _) => own.next().copied(),
            (None, _) => new.next().copied(),
        };
        match next {
            Some(next) => merged.push(next),
            None => break,
        }
    }
    *queue = merged;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ages(state: &State, lane: Lane) -> Vec<(u32, u64)> {
        state.lane(lane).iter().map(|op| (op.operation, op.ages)).collect()
    }

    #[test]
    fn a_wait_leaves_the_youngest() {
        let mut state = State::default();
        (0..3).for_each(|op| state.issue(Lane::Load, op, Family::Gfx9));
        assert_eq!(ages(&state, Lane::Load), [(0, 4), (1, 2), (2, 1)]);
        state.wait(Counter::Vm, 1, Family::Gfx9);
        assert_eq!(ages(&state, Lane::Load), [(2, 1)]);
    }

    #[test]
    fn only_a_wait_for_none_drains_scalar_loads() {
        let mut state = State::default();
        (0..2).for_each(|op| state.issue(Lane::Scalar, op, Family::Gfx9));
        state.issue(Lane::Lds, 2, Family::Gfx9);
        state.issue(Lane::Lds, 3, Family::Gfx9);
        state.wait(Counter::Lgkm, 1, Family::Gfx9);
        assert_eq!(ages(&state, Lane::Scalar), [(0, 1), (1, 1)]);
        assert_eq!(ages(&state, Lane::Lds), [(3, 1)]);
        state.wait(Counter::Lgkm, 0, Family::Gfx9);
        assert_eq!(state, State::default());
    }

    #[test]
    fn the_hardware_holds_no_more_than_its_limit() {
        let mut state = State::default();
        (0..100).for_each(|op| state.issue(Lane::Load, op, Family::Gfx9));
        assert_eq!(state.len(), 63);
    }

    #[test]
    fn paths_meet() {
        let (mut a, mut b) = (State::default(), State::default());
        (0..2).for_each(|op| a.issue(Lane::Load, op, Family::Gfx9));
        b.issue(Lane::Load, 0, Family::Gfx9);
        assert!(a.merge(&b));
        assert_eq!(ages(&a, Lane::Load), [(0, 3), (1, 1)]);
        assert!(!a.merge(&b));
    }

    #[test]
    fn returning_implies_translation() {
        let mut state = State::default();
        state.issue(Lane::Load, 0, Family::Gfx1250);
        state.issue(Lane::VectorAddress, 0, Family::Gfx1250);
        state.wait(Counter::Load, 0, Family::Gfx1250);
        assert_eq!(state, State::default());
        state.issue(Lane::VectorAddress, 1, Family::Gfx1250);
        state.issue(Lane::ScalarAddress, 2, Family::Gfx1250);
        assert_eq!(ages(&state, Lane::VectorAddress), []);
    }
}
