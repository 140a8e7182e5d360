//! Nested ranges into edges: at which addresses the innermost scope changes.

use std::cmp::Reverse;

use crate::object::dwarf::{Edge, OUTSIDE};

/// A range of addresses in a scope. Scopes are numbered so that inner ones come after outer.
#[derive(Clone, Copy, Debug)]
pub(in crate::object::dwarf) struct ScopeRange {
    pub(in crate::object::dwarf) start: u64,
    pub(in crate::object::dwarf) end: u64,
    pub(in crate::object::dwarf) scope: u32,
}

/// The edges of a set of ranges. A range that does not nest is cut at the end of the one that
/// it starts in.
pub(in crate::object::dwarf) fn flatten(mut ranges: Vec<ScopeRange>) -> Vec<Edge> {
    ranges.sort_unstable_by_key(|range| (range.start, Reverse(range.end), range.scope));
    let mut edges = Edges(Vec::with_capacity(ranges.len()));
    let mut open: Vec<ScopeRange> = Vec::new();
    for range in ranges {
        close_until(&mut open, range.start, &mut edges);
        let end = open.last().map_or(range.end, |outer| outer.end.min(range.end));
        edges.put(range.start, range.scope);
        open.push(ScopeRange { end, ..range });
    }
    close_until(&mut open, u64::MAX, &mut edges);
    edges.0.shrink_to_fit();
    edges.0
}

/// Ends the open ranges that end at `address` or before.
fn close_until(open: &mut Vec<ScopeRange>, address: u64, edges: &mut Edges) {
    while let Some(range) = open.pop_if(|range| range.end <= address) {
        edges.put(range.end, open.last().map_or(OUTSIDE, |outer| outer.scope));
    }
}

struct Edges(Vec<Edge>);

impl Edges {
    /// Adds an edge; of several at one address the last holds.
    fn put(&mut self, address: u64, scope: u32) {
        match self.0.last_mut() {
            Some(last) if last.address == address => last.scope = scope,
            _ => self.0.push(Edge { address, scope }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(ranges: &[(u64, u64, u32)]) -> Vec<(u64, u32)> {
        let ranges = ranges.iter().map(|&(start, end, scope)| ScopeRange { start, end, scope });
        flatten(ranges.collect()).iter().map(|edge| (edge.address, edge.scope)).collect()
    }

    #[test]
    fn inner_ranges_cover_outer_ones() {
        assert_eq!(
            edges(&[(0, 100, 0), (10, 20, 1), (10, 15, 2), (40, 50, 1)]),
            [(0, 0), (10, 2), (15, 1), (20, 0), (40, 1), (50, 0), (100, OUTSIDE)]
        );
        assert_eq!(edges(&[(0, 8, 0), (0, 8, 1)]), [(0, 1), (8, OUTSIDE)]);
        assert_eq!(edges(&[(0, 8, 0), (8, 16, 1)]), [(0, 0), (8, 1), (16, OUTSIDE)]);
        assert_eq!(edges(&[(0, 4, 0), (8, 12, 1)]), [(0, 0), (4, OUTSIDE), (8, 1), (12, OUTSIDE)]);
    }

    #[test]
    fn ranges_that_do_not_nest_are_cut() {
        assert_eq!(edges(&[(0, 10, 0), (5, 20, 1)]), [(0, 0), (5, 1), (10, OUTSIDE)]);
        assert!(edges(&[]).is_empty());
    }
}
