//! MLIR locations to chains and back, each distinct location once.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::ir::{Attribute, Identifier, Ir, Loc, LocKind};
use crate::chain::{ChainId, Chains, Frame, Sym};
use crate::outline::Outlines;

/// How many chains one location may stand for; of more, the first ones are kept.
///
/// A fused location stands for the chains of all its children, and nested ones multiply.
const MAX_CHAINS: usize = 16;

/// Metadata of a location whose site was set and whose original was not kept.
pub const SITE_MARK: &str = "siteline.site";

/// Metadata of a location that was chosen for an operation without one.
pub const INFERRED_MARK: &str = "siteline.inferred";

/// The chains that one location stands for, each once, and of many the first.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ChainList(List);

/// Nearly every location stands for one chain, so that one costs no allocation and no count.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
enum List {
    #[default]
    Empty,
    One(ChainId),
    Several(Rc<[ChainId]>),
}

impl Deref for ChainList {
    type Target = [ChainId];

    fn deref(&self) -> &[ChainId] {
        match &self.0 {
            List::Empty => &[],
            List::One(chain) => std::slice::from_ref(chain),
            List::Several(chains) => chains,
        }
    }
}

impl From<Option<ChainId>> for ChainList {
    fn from(chain: Option<ChainId>) -> Self {
        ChainList(chain.map_or(List::Empty, List::One))
    }
}

impl FromIterator<ChainId> for ChainList {
    fn from_iter<I: IntoIterator<Item = ChainId>>(chains: I) -> Self {
        let mut kept: SmallVec<[ChainId; MAX_CHAINS]> = SmallVec::new();
        for chain in chains {
            if kept.len() < MAX_CHAINS && !kept.contains(&chain) {
                kept.push(chain);
            }
        }
        match kept[..] {
            [] | [_] => kept.first().copied().into(),
            _ => ChainList(List::Several(kept.as_slice().into())),
        }
    }
}

/// What one location says.
#[derive(Clone, Debug)]
pub struct Reading<'m> {
    /// The chains that the location stands for: none for an unknown location, several for a
    /// fused one. Those of the original, where siteline keeps it.
    pub chains: ChainList,
    /// The chain that the location shows now. Differs from `chains` where a site was set.
    pub shown: Option<ChainId>,
    /// The location as it was before siteline set a site.
    pub original: Loc<'m>,
    /// What siteline or the compiler fixed about the location.
    pub status: Status,
    /// Whether the original is a plain file position, which somebody set explicitly.
    pub is_plain: bool,
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
    /// What the sources that they name say of their lines.
    pub outlines: Rc<RefCell<Outlines>>,
    /// The position of each location's reading, apart so that looking up touches little memory.
    index: FxHashMap<Loc<'m>, u32>,
    readings: Vec<Reading<'m>>,
    syms: FxHashMap<Identifier<'m>, Sym>,
    positions: FxHashMap<(Sym, u32, u32), Loc<'m>>,
    /// By chain: its nested call sites, where they were read or built.
    built: Vec<Option<Loc<'m>>>,
    /// By chain: its innermost frame alone, where it was read or built.
    frames: Vec<Option<Loc<'m>>>,
}

impl<'m> Locations<'m> {
    /// An empty memo for an IR.
    pub fn new(ir: Ir<'m>) -> Self {
        Locations {
            ir,
            chains: Chains::new(),
            outlines: Rc::default(),
            index: FxHashMap::default(),
            readings: Vec::new(),
            syms: FxHashMap::default(),
            positions: FxHashMap::default(),
            built: Vec::new(),
            frames: Vec::new(),
        }
    }

    /// The IR that the locations are of.
    pub fn ir(&self) -> Ir<'m> {
        self.ir
    }

    /// Makes room for reading this many distinct locations.
    pub fn reserve(&mut self, locations: usize) {
        // A call chain is made of a few locations, most of them shared.
        self.index.reserve(2 * locations);
        self.readings.reserve(2 * locations);
        self.chains.reserve(2 * locations);
    }

    /// Reads a location. Nesting of any depth is read without recursion.
    pub fn read(&mut self, location: Loc<'m>) -> Reading<'m> {
        let at = self.read_index(location);
        self.readings[at as usize].clone()
    }

    fn read_index(&mut self, location: Loc<'m>) -> u32 {
        if let Some(&at) = self.index.get(&location) {
            return at;
        }
        let mut open: SmallVec<[Open<'m>; 8]> = SmallVec::new();
        open.push(self.take_apart(location));
        let mut last = 0;
        while let Some(mut next) = open.pop() {
            while let Some(part) = next.parts.get(next.read.len()) {
                match self.index.get(part) {
                    Some(&at) => next.read.push(at),
                    None => break,
                }
            }
            match next.parts.get(next.read.len()).copied() {
                Some(unread) => {
                    open.push(next);
                    open.push(self.take_apart(unread));
                }
                None => {
                    let reading = self.combine(&next);
                    last = self.readings.len() as u32;
                    self.readings.push(reading);
                    self.index.insert(next.location, last);
                }
            }
        }
        last
    }

    /// A location's kind and the locations that it is made of.
    fn take_apart(&self, location: Loc<'m>) -> Open<'m> {
        let kind = self.ir.kind(location);
        let parts = match kind {
            LocKind::Unknown | LocKind::File { .. } => Parts::new(),
            LocKind::Name { child, .. } | LocKind::Alias(child) => smallvec![child],
            LocKind::CallSite { callee, caller } => smallvec![callee, caller],
            LocKind::Fused { metadata } => {
                let mut parts: Parts<'m> = self.ir.fused_children(location).into();
                if let [_] = parts[..] {
                    parts.extend(metadata.and_then(|metadata| self.ir.as_location(metadata)));
                }
                parts
            }
        };
        Open { location, kind, parts, read: SmallVec::new() }
    }

    fn combine(&mut self, open: &Open<'m>) -> Reading<'m> {
        let location = open.location;
        let parts: SmallVec<[Reading<'m>; 2]> =
            open.read.iter().map(|&at| self.readings[at as usize].clone()).collect();
        match open.kind {
            LocKind::Unknown => self.single(location, None),
            LocKind::File { file, line, column } => {
                let file = self.sym(file);
                self.positions.entry((file, line, column)).or_insert(location);
                let chain = self.chains.push(Frame { file, line, column, function: None }, None);
                self.note_frame(chain, location);
                Reading { is_plain: true, ..self.single(location, Some(chain)) }
            }
            LocKind::Alias(_) => Reading { original: location, ..parts[0].clone() },
            LocKind::Name { name, child } => self.combine_name(location, name, child, &parts[0]),
            LocKind::CallSite { callee, caller } => {
                self.combine_call(location, [callee, caller], &parts[0], &parts[1])
            }
            LocKind::Fused { metadata } => self.combine_fused(location, metadata, &parts),
        }
    }

    fn single(&self, location: Loc<'m>, chain: Option<ChainId>) -> Reading<'m> {
        Reading {
            chains: chain.into(),
            shown: chain,
            original: location,
            status: Status::Free,
            is_plain: false,
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
        let shown = reading.shown.map(|chain| self.with_name(chain, function));
        if reading.origin.is_some() || reading.status == Status::Inferred {
            // What siteline keeps as the original has its own names.
            return Reading { shown, ..reading.clone() };
        }
        let original = if reading.original == child {
            location
        } else {
            self.ir.named(&self.ir.text(name), reading.original)
        };
        let chains: ChainList =
            reading.chains.iter().map(|&chain| self.with_name(chain, function)).collect();
        let is_plain = reading.is_plain && reading.original == child;
        if let [chain] = chains[..]
            && is_plain
        {
            self.note_frame(chain, location);
        }
        Reading { chains, shown, original, is_plain, ..reading.clone() }
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
        [inner, outer]: [Loc<'m>; 2],
        callee: &Reading<'m>,
        caller: &Reading<'m>,
    ) -> Reading<'m> {
        let shown = self.append(callee.shown, caller.shown);
        if callee.status == Status::Inferred {
            // Nothing was kept where the original is the location itself.
            let original = if callee.original == inner { location } else { callee.original };
            return Reading { shown, original, ..callee.clone() };
        }
        if callee.origin.is_some() && self.is_within(&caller.chains, &callee.chains) {
            return Reading { shown, origin: None, ..callee.clone() };
        }
        let is_original = callee.original == inner && caller.original == outer;
        let chains = self.append_all(&callee.chains, &caller.chains);
        if let ([chain], [frame], [_]) = (&chains[..], &callee.chains[..], &caller.chains[..])
            && is_original
            && callee.is_plain
        {
            // The location is what `build` would make, so it need not be made again.
            let frame = self.frames[frame.index()];
            *entry(&mut self.frames, chain.index()) = frame;
            entry(&mut self.built, chain.index()).get_or_insert(location);
        }
        let original = if is_original {
            location
        } else {
            self.ir.call_site(callee.original, caller.original)
        };
        let status = callee.status;
        Reading { chains, shown, original, status, is_plain: false, origin: None }
    }

    /// Each inner chain inside each outer one. Where one side has none, the other's are kept.
    fn append_all(&mut self, inner: &ChainList, outer: &ChainList) -> ChainList {
        match (&**inner, &**outer) {
            ([], _) => outer.clone(),
            (_, []) => inner.clone(),
            (&[inner], &[outer]) => self.append(Some(inner), Some(outer)).into(),
            (inner, outer) => inner
                .iter()
                .flat_map(|&inner| outer.iter().map(move |&outer| (inner, outer)))
                .filter_map(|(inner, outer)| self.append(Some(inner), Some(outer)))
                .collect(),
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
            let origin = Some(original.original);
            return Reading { shown: child.shown, origin, ..original.clone() };
        }
        let status = metadata.map_or(Status::Free, |metadata| self.status_of(metadata));
        let shown = self.shown_of(parts);
        if status == Status::Inferred {
            return self.inferred(location, shown, parts);
        }
        let is_whole = status == Status::Scoped;
        let original =
            if is_whole || parts.iter().map(|part| part.original).eq(children.iter().copied()) {
                location
            } else {
                let originals: Vec<_> = parts.iter().map(|part| part.original).collect();
                self.ir.fused(&originals, metadata)
            };
        let chains = parts.iter().flat_map(|part| part.chains.iter().copied()).collect();
        Reading { chains, shown, original, status, is_plain: false, origin: None }
    }

    /// What several locations in one show: their one line; where they differ, their nearest
    /// common caller; where they have none, the first.
    fn shown_of(&self, parts: &[Reading<'m>]) -> Option<ChainId> {
        let mut shown = parts.iter().filter_map(|part| part.shown);
        let first = shown.next()?;
        self.common(first, shown).or(Some(first))
    }

    /// The first chain, if all show its line; else the nearest common caller.
    pub fn common(
        &self,
        first: ChainId,
        rest: impl Iterator<Item = ChainId> + Clone,
    ) -> Option<ChainId> {
        let line = |at| self.chains.innermost(at).line();
        if rest.clone().all(|other| line(other) == line(first)) {
            return Some(first);
        }
        let mut rest = rest;
        rest.try_fold(first, |common, other| self.chains.common_suffix(common, other))
    }

    /// An inferred location stands for the original that it keeps, if any.
    fn inferred(
        &self,
        location: Loc<'m>,
        shown: Option<ChainId>,
        parts: &[Reading<'m>],
    ) -> Reading<'m> {
        let (chains, original) = match parts {
            [part] if part.origin.is_some() => (part.chains.clone(), part.original),
            _ => (ChainList::default(), location),
        };
        let status = Status::Inferred;
        Reading { chains, shown, original, status, is_plain: false, origin: None }
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
        let Some(inner) = inner else { return outer };
        if self.chains.outer(inner).is_none() {
            return Some(self.chains.push(self.chains.innermost(inner), outer));
        }
        let frames: SmallVec<[Frame; 8]> = self.chains.frames(inner).collect();
        self.chains.intern_inside(frames, outer)
    }

    fn sym(&mut self, identifier: Identifier<'m>) -> Sym {
        let Locations { ir, chains, syms, .. } = self;
        *syms.entry(identifier).or_insert_with(|| chains.sym(&ir.text(identifier)))
    }

    fn note_frame(&mut self, chain: ChainId, location: Loc<'m>) {
        *entry(&mut self.frames, chain.index()) = Some(location);
        *entry(&mut self.built, chain.index()) = Some(location);
    }

    /// The location of a chain's innermost frame alone: as the front end made it where the
    /// position was read.
    pub fn frame_location(&mut self, chain: ChainId) -> Loc<'m> {
        if let Some(known) = *entry(&mut self.frames, chain.index()) {
            return known;
        }
        let frame = self.chains.innermost(chain);
        let position = (frame.file, frame.line, frame.column);
        let location = self.positions.get(&position).copied().unwrap_or_else(|| {
            self.ir.file_loc(self.chains.str(frame.file), frame.line, frame.column)
        });
        let location = match frame.function {
            Some(function) => self.ir.named(self.chains.str(function), location),
            None => location,
        };
        self.frames[chain.index()] = Some(location);
        location
    }

    /// A chain as nested call sites.
    pub fn build(&mut self, chain: ChainId) -> Loc<'m> {
        let mut open: SmallVec<[ChainId; 8]> = SmallVec::new();
        let mut outer = None;
        for at in self.chains.suffixes(chain) {
            outer = self.built.get(at.index()).copied().flatten();
            if outer.is_some() {
                break;
            }
            open.push(at);
        }
        for at in open.into_iter().rev() {
            let frame = self.frame_location(at);
            outer = Some(self.inside(frame, outer));
            *entry(&mut self.built, at.index()) = outer;
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
        let frame = self.frame_location(chain);
        let marked = self.ir.fused(&[frame], Some(metadata));
        let outer = self.chains.outer(chain).map(|outer| self.build(outer));
        self.inside(marked, outer)
    }

    /// A chain as nested call sites, marked as inferred, with the original where it is kept.
    pub fn build_inferred(&mut self, chain: ChainId, original: Option<Loc<'m>>) -> Loc<'m> {
        let mut frame = self.frame_location(chain);
        if let Some(original) = original {
            frame = self.ir.fused(&[frame], Some(self.ir.location_attribute(original)));
        }
        let mark = self.ir.string_attribute(INFERRED_MARK);
        let marked = self.ir.fused(&[frame], Some(mark));
        let outer = self.chains.outer(chain).map(|outer| self.build(outer));
        self.inside(marked, outer)
    }
}

/// A location that is being read: what it is made of, and which of that is read already.
struct Open<'m> {
    location: Loc<'m>,
    kind: LocKind<'m>,
    parts: Parts<'m>,
    read: SmallVec<[u32; 2]>,
}

/// The locations that a location is made of.
type Parts<'m> = SmallVec<[Loc<'m>; 2]>;

/// The entry of a table by chain, which grows as needed.
fn entry<T: Copy>(table: &mut Vec<Option<T>>, at: usize) -> &mut Option<T> {
    if at >= table.len() {
        table.resize(at + 1, None);
    }
    &mut table[at]
}
