//! MLIR locations to chains and back, each distinct location once.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use super::ir::{Attribute, Identifier, Ir, Loc, LocKind};
use crate::chain::{ChainId, Chains, Frame, Sym};

/// How many chains one location may stand for; of more, the first ones are kept.
///
/// A fused location stands for the chains of all its children, and nested ones multiply.
const MAX_CHAINS: usize = 16;

/// Metadata of a location whose site was set and whose original was not kept.
pub const SITE_MARK: &str = "siteline.site";

/// Metadata of a location that was chosen for an operation without one.
pub const INFERRED_MARK: &str = "siteline.inferred";

/// What one location says.
#[derive(Clone, Debug)]
pub struct Reading<'m> {
    /// The chains that the location stands for: none for an unknown location, several for a
    /// fused one. Those of the original, where siteline keeps it.
    pub chains: Rc<[ChainId]>,
    /// The chain that the location shows now. Differs from `chains` where a site was set.
    pub shown: Option<ChainId>,
    /// The location as it was before siteline set a site.
    pub original: Loc<'m>,
    /// What siteline or the compiler fixed about the location.
    pub status: Status,
    /// Set when this is the `fused<original>[frame]` that siteline makes, possibly named.
    origin: Option<Loc<'m>>,
}

/// What siteline or the compiler fixed about a location.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Nothing: a front end's location, or one with a site and its original.
    Free,
    /// A site was set and the original was dropped.
    Marked,
    /// The location was inferred for an operation that had none.
    Inferred,
    /// The location already carries a debug-info scope.
    Scoped,
}

/// The locations of one IR, read and built through a memo.
pub struct Locations<'m> {
    ir: Ir<'m>,
    /// The chains of all locations read so far.
    pub chains: Chains,
    readings: FxHashMap<Loc<'m>, Reading<'m>>,
    syms: FxHashMap<Identifier<'m>, Sym>,
    positions: FxHashMap<(Sym, u32, u32), Loc<'m>>,
    built: FxHashMap<ChainId, Loc<'m>>,
}

impl<'m> Locations<'m> {
    /// An empty memo for an IR.
    pub fn new(ir: Ir<'m>) -> Self {
        Locations {
            ir,
            chains: Chains::new(),
            readings: FxHashMap::default(),
            syms: FxHashMap::default(),
            positions: FxHashMap::default(),
            built: FxHashMap::default(),
        }
    }

    /// The IR that the locations are of.
    pub fn ir(&self) -> Ir<'m> {
        self.ir
    }

    /// Reads a location. Nesting of any depth is read without recursion.
    pub fn read(&mut self, location: Loc<'m>) -> Reading<'m> {
        let mut open = vec![location];
        while let Some(&next) = open.last() {
            if self.readings.contains_key(&next) {
                open.pop();
                continue;
            }
            let kind = self.ir.kind(next);
            let parts = self.parts(next, kind);
            let unread = open.len();
            open.extend(parts.iter().filter(|part| !self.readings.contains_key(part)));
            if open.len() == unread {
                open.pop();
                let reading = self.combine(next, kind, &parts);
                self.readings.insert(next, reading);
            }
        }
        self.readings[&location].clone()
    }

    /// The locations that a location is made of.
    fn parts(&self, location: Loc<'m>, kind: LocKind<'m>) -> Vec<Loc<'m>> {
        match kind {
            LocKind::Unknown | LocKind::File { .. } => Vec::new(),
            LocKind::Name { child, .. } | LocKind::Alias(child) => vec![child],
            LocKind::CallSite { callee, caller } => vec![callee, caller],
            LocKind::Fused { metadata } => {
                let mut parts = self.ir.fused_children(location);
                if let [_] = parts[..] {
                    parts.extend(metadata.and_then(|metadata| self.ir.as_location(metadata)));
                }
                parts
            }
        }
    }

    fn combine(&mut self, location: Loc<'m>, kind: LocKind<'m>, parts: &[Loc<'m>]) -> Reading<'m> {
        let parts: Vec<Reading<'m>> =
            parts.iter().map(|part| self.readings[part].clone()).collect();
        match kind {
            LocKind::Unknown => self.plain(location, None),
            LocKind::File { file, line, column } => {
                let file = self.sym(file);
                self.positions.entry((file, line, column)).or_insert(location);
                let frame = Frame { file, line, column, function: None };
                let chain = self.chains.push(frame, None);
                self.plain(location, Some(chain))
            }
            LocKind::Alias(_) => Reading { original: location, ..parts[0].clone() },
            LocKind::Name { name, child } => self.combine_name(location, name, child, &parts[0]),
            LocKind::CallSite { .. } => self.combine_call(location, &parts[0], &parts[1]),
            LocKind::Fused { metadata } => self.combine_fused(location, metadata, &parts),
        }
    }

    fn plain(&self, location: Loc<'m>, chain: Option<ChainId>) -> Reading<'m> {
        Reading {
            chains: chain.into_iter().collect(),
            shown: chain,
            original: location,
            status: Status::Free,
            origin: None,
        }
    }

    /// A name belongs to the innermost frame, whether it is around that frame or around the
    /// whole call site.
    fn combine_name(
        &mut self,
        location: Loc<'m>,
        name: Identifier<'m>,
        child: Loc<'m>,
        reading: &Reading<'m>,
    ) -> Reading<'m> {
        let function = self.sym(name);
        let original = if reading.origin.is_some() {
            reading.original
        } else if reading.original == child {
            location
        } else {
            self.ir.named(&self.ir.text(name), reading.original)
        };
        // What siteline keeps as the original has its own names.
        let chains = match reading.origin {
            Some(_) => reading.chains.clone(),
            None => reading.chains.iter().map(|&chain| self.with_name(chain, function)).collect(),
        };
        let shown = reading.shown.map(|chain| self.with_name(chain, function));
        Reading { chains, shown, original, ..reading.clone() }
    }

    fn with_name(&mut self, chain: ChainId, function: Sym) -> ChainId {
        let mut frame = self.chains.innermost(chain);
        if frame.function.is_some() {
            return chain;
        }
        frame.function = Some(function);
        self.chains.push(frame, self.chains.outer(chain))
    }

    fn combine_call(
        &mut self,
        location: Loc<'m>,
        callee: &Reading<'m>,
        caller: &Reading<'m>,
    ) -> Reading<'m> {
        let shown = self.append(callee.shown, caller.shown);
        if callee.origin.is_some() && self.is_within(&caller.chains, &callee.chains) {
            return Reading { shown, origin: None, ..callee.clone() };
        }
        let mut chains = Vec::new();
        for inner in optional(&callee.chains) {
            for outer in optional(&caller.chains) {
                chains.extend(self.append(inner, outer));
            }
        }
        let original = self.ir.call_site(callee.original, caller.original);
        let unchanged = self.ir.kind(location)
            == LocKind::CallSite { callee: callee.original, caller: caller.original };
        Reading {
            chains: limited(chains),
            shown,
            original: if unchanged { location } else { original },
            status: callee.status,
            origin: None,
        }
    }

    /// Whether the frames outside a site were taken from its original: they are then lines of
    /// it, in its order. Otherwise somebody inlined the operation into a further caller.
    fn is_within(&self, caller: &[ChainId], original: &[ChainId]) -> bool {
        let Some(&caller) = caller.first() else { return false };
        original.iter().any(|&chain| {
            let mut lines = self.chains.lines(chain);
            self.chains.lines(caller).all(|line| lines.any(|other| other == line))
        })
    }

    fn combine_fused(
        &mut self,
        location: Loc<'m>,
        metadata: Option<Attribute<'m>>,
        parts: &[Reading<'m>],
    ) -> Reading<'m> {
        let children = self.ir.fused_children(location);
        if let ([_], [child, original]) = (&children[..], parts) {
            return Reading {
                shown: child.shown,
                origin: Some(original.original),
                ..original.clone()
            };
        }
        let status = metadata.map_or(Status::Free, |metadata| self.status_of(metadata));
        let original = if parts.iter().map(|part| part.original).eq(children.iter().copied()) {
            location
        } else {
            let originals: Vec<_> = parts.iter().map(|part| part.original).collect();
            self.ir.fused(&originals, metadata)
        };
        Reading {
            chains: limited(parts.iter().flat_map(|part| part.chains.iter().copied())),
            shown: parts.iter().find_map(|part| part.shown),
            original: match status {
                Status::Inferred => self.ir.unknown(),
                _ => original,
            },
            status,
            origin: None,
        }
    }

    fn status_of(&self, metadata: Attribute<'m>) -> Status {
        if let Some(text) = self.ir.string(metadata) {
            return match &*text {
                SITE_MARK => Status::Marked,
                INFERRED_MARK => Status::Inferred,
                _ => Status::Free,
            };
        }
        if self.ir.attribute_text(metadata).starts_with("#llvm.di_") {
            Status::Scoped
        } else {
            Status::Free
        }
    }

    fn append(&mut self, inner: Option<ChainId>, outer: Option<ChainId>) -> Option<ChainId> {
        let frames: Vec<Frame> = inner.map(|c| self.chains.frames(c).collect()).unwrap_or_default();
        self.chains.intern_inside(frames, outer)
    }

    fn sym(&mut self, identifier: Identifier<'m>) -> Sym {
        let Locations { ir, chains, syms, .. } = self;
        *syms.entry(identifier).or_insert_with(|| chains.sym(&ir.text(identifier)))
    }

    /// The location of a frame alone: as the front end made it where the position was read.
    fn frame_location(&self, frame: Frame) -> Loc<'m> {
        let position = (frame.file, frame.line, frame.column);
        let location = self.positions.get(&position).copied().unwrap_or_else(|| {
            self.ir.file_loc(self.chains.str(frame.file), frame.line, frame.column)
        });
        match frame.function {
            Some(function) => self.ir.named(self.chains.str(function), location),
            None => location,
        }
    }

    /// A chain as nested call sites.
    pub fn build(&mut self, chain: ChainId) -> Loc<'m> {
        if let Some(&built) = self.built.get(&chain) {
            return built;
        }
        let suffixes: Vec<ChainId> = self.chains.suffixes(chain).collect();
        let mut outer = None;
        for at in suffixes.into_iter().rev() {
            let built = match self.built.get(&at) {
                Some(&built) => built,
                None => self.inside(self.frame_location(self.chains.innermost(at)), outer),
            };
            self.built.insert(at, built);
            outer = Some(built);
        }
        outer.expect("a chain has at least one frame")
    }

    fn inside(&self, location: Loc<'m>, outer: Option<Loc<'m>>) -> Loc<'m> {
        match outer {
            Some(outer) => self.ir.call_site(location, outer),
            None => location,
        }
    }

    /// A chain as nested call sites, with metadata in a one-child fused location around the
    /// innermost frame only: around a call site it would lose the site on the way to DWARF.
    pub fn build_with(&mut self, chain: ChainId, metadata: Attribute<'m>) -> Loc<'m> {
        let frame = self.frame_location(self.chains.innermost(chain));
        let marked = self.ir.fused(&[frame], Some(metadata));
        let outer = self.chains.outer(chain).map(|outer| self.build(outer));
        self.inside(marked, outer)
    }
}

/// The chains, or the absence of one, so that a call site keeps what is known of its parts.
fn optional(chains: &[ChainId]) -> Vec<Option<ChainId>> {
    match chains {
        [] => vec![None],
        _ => chains.iter().copied().map(Some).collect(),
    }
}

fn limited(chains: impl IntoIterator<Item = ChainId>) -> Rc<[ChainId]> {
    let mut kept: Vec<ChainId> = Vec::new();
    for chain in chains {
        if kept.len() == MAX_CHAINS {
            break;
        }
        if !kept.contains(&chain) {
            kept.push(chain);
        }
    }
    kept.into()
}
