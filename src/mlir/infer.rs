//! `siteline-infer`: gives operations without a usable location the site of the operation that
//! they belong to.
//!
//! A location is not usable when it is unknown, has only library frames, or is the line of the
//! function itself. The site comes from the first of these that has one, and each step sees what
//! the steps before it found:
//!
//! 1. the only user: a constant, or index arithmetic, is made for what it feeds, and belongs to
//!    the leaf at the end of such a line of users;
//! 2. the last of the operations in the same block that define the operands: a conversion of a
//!    result belongs to what made the result;
//! 3. the nearest operation in the block, of two the one behind: what is left prepares something
//!    more often than it finishes something;
//! 4. the operation around the region;
//! 5. the nearest operation in the function, for blocks in which nothing has a location.
//!
//! Sites are taken only from locations that were there, so a second run changes nothing.

use rustc_hash::FxHashMap;

use super::functions::{self, Function};
use super::ir::{Ir, Loc, Op, Value};
use super::locations::{Locations, Status};
use super::propagate::{self, Origin};
use crate::chain::{ChainId, Line};
use crate::neighbours;
use crate::site::Settings;

/// What one run did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Summary {
    /// Operations without a usable location.
    pub without: usize,
    /// Those of them that got a site.
    pub inferred: usize,
}

/// Infers sites in all device functions at and below the root that have no debug-info scope yet.
pub fn infer(ir: Ir<'_>, settings: &Settings, origin: Origin) -> Summary {
    let mut locations = Locations::new(ir);
    let mut summary = Summary::default();
    for function in functions::device_functions(&ir) {
        if locations.read(ir.location(function.op)).status == Status::Scoped {
            continue;
        }
        let body = Body::collect(&ir, function.op);
        let usable = Usable::new(&mut locations, settings, &function).all(&body);
        let without: Vec<usize> = (0..usable.len()).filter(|at| usable[*at].is_none()).collect();
        if without.is_empty() {
            continue;
        }
        let sites = body.infer(&ir, usable);
        let mut built = FxHashMap::default();
        for &at in &without {
            let Some(site) = sites[at] else { continue };
            let location = ir.location(body.nodes[at].op);
            let target = *built
                .entry((location, site))
                .or_insert_with(|| inferred_location(&mut locations, location, site, origin));
            ir.set_location(body.nodes[at].op, target);
            summary.inferred += 1;
        }
        summary.without += without.len();
    }
    summary
}

fn inferred_location<'m>(
    locations: &mut Locations<'m>,
    location: Loc<'m>,
    site: ChainId,
    origin: Origin,
) -> Loc<'m> {
    let reading = locations.read(location);
    let was_dropped = reading.status == Status::Inferred && reading.original == location;
    let keeps = origin == Origin::Keep && !was_dropped;
    locations.build_inferred(site, keeps.then_some(reading.original))
}

/// Which locations are usable, each distinct one looked at once.
struct Usable<'a, 'm> {
    locations: &'a mut Locations<'m>,
    settings: &'a Settings,
    definition: Option<Line>,
    known: FxHashMap<Loc<'m>, Option<ChainId>>,
}

impl<'a, 'm> Usable<'a, 'm> {
    fn new(
        locations: &'a mut Locations<'m>,
        settings: &'a Settings,
        function: &Function<'m>,
    ) -> Self {
        let definition = propagate::definition(locations, settings, function);
        let definition = definition.map(|chain| locations.chains.innermost(chain).line());
        Usable { locations, settings, definition, known: FxHashMap::default() }
    }

    /// By operation: the chain that its location shows, where that is usable.
    fn all(mut self, body: &Body<'m>) -> Vec<Option<ChainId>> {
        let ir = self.locations.ir();
        body.nodes.iter().map(|node| self.chain(ir.location(node.op))).collect()
    }

    fn chain(&mut self, location: Loc<'m>) -> Option<ChainId> {
        if let Some(&known) = self.known.get(&location) {
            return known;
        }
        let reading = self.locations.read(location);
        let chain = reading.shown.filter(|&chain| match reading.status {
            Status::Inferred => false,
            Status::Scoped => true,
            Status::Free | Status::Marked => self.says_something(chain),
        });
        self.known.insert(location, chain);
        chain
    }

    fn says_something(&self, chain: ChainId) -> bool {
        let chains = &self.locations.chains;
        let line = chains.innermost(chain).line();
        let own = self.definition.map(|line| line.file);
        let is_author = |line: Line| {
            Some(line.file) == own || !self.settings.library.contains(chains.str(line.file))
        };
        line.number != 0 && Some(line) != self.definition && chains.lines(chain).any(is_author)
    }
}

/// An operation in a function.
struct Node<'m> {
    op: Op<'m>,
    block: usize,
    /// The operation around its region; `None` for the function.
    parent: Option<usize>,
}

/// The operations of a function in the order of its text.
struct Body<'m> {
    nodes: Vec<Node<'m>>,
    /// By block: its operations.
    blocks: Vec<Vec<usize>>,
    /// Where each result is made.
    made: FxHashMap<Value<'m>, usize>,
}

impl<'m> Body<'m> {
    fn collect(ir: &Ir<'m>, function: Op<'m>) -> Self {
        let mut body = Body { nodes: Vec::new(), blocks: Vec::new(), made: FxHashMap::default() };
        let mut open = Vec::new();
        body.open_blocks(ir, function, None, &mut open);
        while let Some((op, block, parent)) = open.pop() {
            let at = body.nodes.len();
            body.nodes.push(Node { op, block, parent });
            body.blocks[block].push(at);
            body.made.extend(ir.results(op).map(|result| (result, at)));
            open.extend(ir.next_op(op).map(|next| (next, block, parent)));
            body.open_blocks(ir, op, Some(at), &mut open);
        }
        body
    }

    fn open_blocks(
        &mut self,
        ir: &Ir<'m>,
        op: Op<'m>,
        parent: Option<usize>,
        open: &mut Vec<(Op<'m>, usize, Option<usize>)>,
    ) {
        let first = open.len();
        let regions = std::iter::successors(ir.first_region(op), |region| ir.next_region(*region));
        for region in regions {
            let blocks =
                std::iter::successors(ir.first_block(region), |block| ir.next_block(*block));
            for block in blocks {
                open.extend(ir.first_op(block).map(|op| (op, self.blocks.len(), parent)));
                self.blocks.push(Vec::new());
            }
        }
        open[first..].reverse();
    }

    /// The sites of all operations, from those of some.
    fn infer(&self, ir: &Ir<'m>, mut sites: Vec<Option<ChainId>>) -> Vec<Option<ChainId>> {
        self.take_from_users(ir, &mut sites);
        self.take_from_operands(ir, &mut sites);
        for block in &self.blocks {
            neighbours::fill(block, &mut sites);
        }
        for at in 0..self.nodes.len() {
            if sites[at].is_none() {
                sites[at] = self.nodes[at].parent.and_then(|parent| sites[parent]);
            }
        }
        neighbours::fill(&(0..self.nodes.len()).collect::<Vec<_>>(), &mut sites);
        sites
    }

    /// Users come behind what they use, so going backwards follows whole lines of users.
    fn take_from_users(&self, ir: &Ir<'m>, sites: &mut [Option<ChainId>]) {
        let users = self.users(ir);
        for at in (0..sites.len()).rev() {
            if let (None, User::One(user)) = (sites[at], users[at]) {
                sites[at] = sites[user];
            }
        }
    }

    fn users(&self, ir: &Ir<'m>) -> Vec<User> {
        let mut users = vec![User::None; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            for maker in ir.operands(node.op).filter_map(|operand| self.made.get(&operand)) {
                users[*maker] = match users[*maker] {
                    User::None => User::One(at),
                    User::One(same) if same == at => User::One(at),
                    User::One(_) | User::Several => User::Several,
                };
            }
        }
        users
    }

    fn take_from_operands(&self, ir: &Ir<'m>, sites: &mut [Option<ChainId>]) {
        for (at, node) in self.nodes.iter().enumerate() {
            if sites[at].is_some() {
                continue;
            }
            let makers = ir.operands(node.op).filter_map(|operand| self.made.get(&operand));
            let in_block = makers.filter(|maker| self.nodes[**maker].block == node.block);
            sites[at] =
                in_block.filter(|maker| sites[**maker].is_some()).max().and_then(|m| sites[*m]);
        }
    }
}

/// What uses the results of an operation.
#[derive(Clone, Copy)]
enum User {
    None,
    One(usize),
    Several,
}
