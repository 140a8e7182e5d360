//! `siteline-propagate`: sets every operation's and block argument's location to its site.

use std::str::FromStr;

use rustc_hash::FxHashMap;

use super::functions::{self, Classifier, Function};
use super::ir::{Ir, Loc, LocKind, Located, Op, Value};
use super::locations::{Locations, Reading, SITE_MARK, Status};
use crate::chain::{ChainId, Line};
use crate::leaf::Class;
use crate::site::{self, Kernel, Settings, SiteModel, Sites};

/// What becomes of the location that a site replaces.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Origin {
    /// It stays as metadata, so that `siteline-restore` can put it back.
    #[default]
    Keep,
    /// It is dropped; a mark stays, so that the site is not chosen again.
    Drop,
}

/// An unknown value of `origin`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown origin '{0}': use keep or drop")]
pub struct ParseOriginError(String);

impl FromStr for Origin {
    type Err = ParseOriginError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "keep" => Ok(Origin::Keep),
            "drop" => Ok(Origin::Drop),
            _ => Err(ParseOriginError(text.into())),
        }
    }
}

/// What one run did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Summary {
    /// Device functions worked on.
    pub functions: usize,
    /// Operations in them.
    pub operations: usize,
    /// Operations whose location changed.
    pub changed: usize,
}

/// Sets the locations of all device functions at and below the root to their sites.
pub fn propagate(ir: Ir<'_>, settings: &Settings, origin: Origin) -> Summary {
    let mut locations = Locations::new(ir);
    let mut classifier = Classifier::new(ir, &settings.table);
    let mut summary = Summary::default();
    for function in functions::device_functions(&ir) {
        let slots = Slots::collect(&ir, &function, &mut classifier);
        let (sites, _) = sites_of(&mut locations, settings, &function, &slots);
        let mut rewriter = Rewriter { locations: &mut locations, settings, origin, sites: &sites };
        let targets: Vec<_> = slots.distinct.iter().map(|slot| rewriter.target(slot)).collect();
        summary.functions += 1;
        summary.operations += slots.op_slots.len();
        summary.changed += slots.apply(&ir, function.op, &targets);
        set_definition(ir, &mut locations, settings, &function, origin);
    }
    summary
}

/// The sites of one function and the line of the function itself.
pub(super) fn sites_of<'m>(
    locations: &mut Locations<'m>,
    settings: &Settings,
    function: &Function<'m>,
    slots: &Slots<'m>,
) -> (Sites, Option<Line>) {
    let definition = definition(locations, settings, function);
    let definition = definition.map(|chain| locations.chains.innermost(chain).line());
    let kernel = Kernel { symbol: function.symbol.as_deref(), definition };
    let outlines = locations.outlines.clone();
    let mut model = SiteModel::new(settings, kernel).with_sources(&outlines);
    locations.reserve(slots.distinct.len());
    for slot in &slots.distinct {
        let reading = locations.read(slot.location);
        for &chain in reading.chains.iter() {
            model.add(&mut locations.chains, chain, slot.class);
        }
    }
    (model.choose(&locations.chains), definition)
}

/// The frame of the kernel function itself, from the function operation's location: where
/// function names are known, the frame named like the kernel; else the innermost one that is
/// not library. A location that is one plain position is taken as it is.
pub(super) fn definition<'m>(
    locations: &mut Locations<'m>,
    settings: &Settings,
    function: &Function<'m>,
) -> Option<ChainId> {
    let reading = locations.read(locations.ir().location(function.op));
    let chain = *reading.chains.first()?;
    let chains = &locations.chains;
    if chains.outer(chain).is_none() {
        return Some(chain);
    }
    let symbol = function.symbol.as_deref().unwrap_or_default();
    let is_kernel = |at: &ChainId| {
        let named = chains.innermost(*at).function;
        named.is_some_and(|name| site::is_kernel_function(chains.str(name), symbol))
    };
    let is_author =
        |at: &ChainId| !settings.library.contains(chains.str(chains.innermost(*at).file));
    chains.suffixes(chain).find(is_kernel).or_else(|| chains.suffixes(chain).find(is_author))
}

/// Sets the location of the function itself to its definition: what is outside of it is host
/// code, and upstream's scope pass would take the outermost frame for the function's place.
fn set_definition<'m>(
    ir: Ir<'m>,
    locations: &mut Locations<'m>,
    settings: &Settings,
    function: &Function<'m>,
    origin: Origin,
) {
    let location = ir.location(function.op);
    let reading = locations.read(location);
    let Some(definition) = definition(locations, settings, function) else { return };
    let is_plain = reading.chains.first().is_some_and(|&c| locations.chains.outer(c).is_none());
    if reading.status != Status::Free || is_plain {
        return;
    }
    let frame = locations.chains.innermost(definition);
    let frame = locations.chains.push(frame, None);
    let target = locations.with_origin(frame, &reading, origin);
    ir.set_location(function.op, target);
}

/// A distinct pair of location and class.
pub(super) struct Slot<'m> {
    pub(super) location: Loc<'m>,
    pub(super) class: Class,
}

/// What holds a location in one function, and the distinct pairs of location and class.
///
/// Four bytes an operation: the operations themselves are found again by a second walk.
#[derive(Default)]
pub(super) struct Slots<'m> {
    /// In the order of the walk.
    op_slots: Vec<u32>,
    arguments: Vec<(Value<'m>, u32)>,
    pub(super) distinct: Vec<Slot<'m>>,
}

/// No slot: there are fewer than 2^32 distinct locations.
const NO_SLOT: u32 = u32::MAX;

/// The slots by location and class.
#[derive(Default)]
struct SlotTable<'m> {
    index: FxHashMap<Loc<'m>, u32>,
    /// Each location once, in the order in which they were met.
    located: Vec<LocationSlots<'m>>,
    /// Where in `located` the location met last is.
    current: usize,
    distinct: Vec<Slot<'m>>,
}

/// The slots of one location, by class.
struct LocationSlots<'m> {
    location: Loc<'m>,
    slots: [u32; Class::ALL.len()],
}

impl<'m> SlotTable<'m> {
    #[inline]
    fn slot(&mut self, location: Loc<'m>, class: Class) -> u32 {
        if !self.is_at(self.current, location) {
            self.current = self.find(location);
        }
        let SlotTable { located, current, distinct, .. } = self;
        let slot = &mut located[*current].slots[class as usize];
        if *slot == NO_SLOT {
            *slot = u32::try_from(distinct.len()).expect("fewer than 2^32 distinct locations");
            distinct.push(Slot { location, class });
        }
        *slot
    }

    fn is_at(&self, at: usize, location: Loc<'m>) -> bool {
        self.located.get(at).is_some_and(|located| located.location == location)
    }

    /// Neighbours often share a location, and an unrolled body has its locations in the order of
    /// the first: both spare a look into the index.
    fn find(&mut self, location: Loc<'m>) -> usize {
        if self.is_at(self.current + 1, location) {
            return self.current + 1;
        }
        let next = self.located.len() as u32;
        let at = *self.index.entry(location).or_insert(next);
        if at == next {
            self.located.push(LocationSlots { location, slots: [NO_SLOT; Class::ALL.len()] });
        }
        at as usize
    }
}

impl<'m> Slots<'m> {
    pub(super) fn collect(
        ir: &Ir<'m>,
        function: &Function<'m>,
        classifier: &mut Classifier<'m, '_>,
    ) -> Self {
        let mut slots = Slots::default();
        let mut table = SlotTable::default();
        let mut arguments = Vec::new();
        functions::walk_located(
            ir,
            function.op,
            |batch| {
                slots.op_slots.extend(batch.iter().map(|&Located { op, location, name }| {
                    table.slot(location, classifier.class(op, name))
                }));
            },
            |argument| arguments.push(argument),
        );
        let with_slot =
            |argument| (argument, table.slot(ir.value_location(argument), Class::Other));
        slots.arguments = arguments.into_iter().map(with_slot).collect();
        slots.distinct = table.distinct;
        slots
    }

    /// By slot: how many operations have it; block arguments are not counted.
    pub(super) fn operations(&self) -> Vec<usize> {
        let mut counts = vec![0; self.distinct.len()];
        self.op_slots.iter().for_each(|&slot| counts[slot as usize] += 1);
        counts
    }

    /// Sets the locations to the targets of their slots; returns how many operations changed.
    fn apply(&self, ir: &Ir<'m>, root: Op<'m>, targets: &[Loc<'m>]) -> usize {
        let targets: Vec<Option<Loc<'m>>> = self
            .distinct
            .iter()
            .zip(targets)
            .map(|(slot, &target)| (slot.location != target).then_some(target))
            .collect();
        let changed = functions::set_locations(ir, root, &self.op_slots, &targets);
        for &(argument, slot) in &self.arguments {
            if let Some(target) = targets[slot as usize] {
                ir.set_argument_location(argument, target);
            }
        }
        changed
    }
}

struct Rewriter<'a, 'm> {
    locations: &'a mut Locations<'m>,
    settings: &'a Settings,
    origin: Origin,
    sites: &'a Sites,
}

impl<'m> Rewriter<'_, 'm> {
    /// The location that a slot gets.
    fn target(&mut self, slot: &Slot<'m>) -> Loc<'m> {
        let reading = self.locations.read(slot.location);
        let stays = reading.status != Status::Free
            || !self.settings.leaves.contains(slot.class)
            || reading.is_plain;
        let site = if stays { None } else { self.site(&reading, slot.class) };
        let Some(site) = site else { return slot.location };
        let is_whole = self.origin == Origin::Keep && reading.chains[..] == [site];
        if is_whole && self.says_so(&reading, site) {
            reading.original
        } else {
            self.locations.with_origin(site, &reading, self.origin)
        }
    }

    /// Whether an original says its chain in the form that survives to DWARF: upstream loses
    /// frames of names around call sites, of call sites in call sites' callees and of unknown
    /// parts. A front end's own metadata is left to it.
    fn says_so(&mut self, reading: &Reading<'m>, chain: ChainId) -> bool {
        let kind = self.locations.ir().kind(reading.original);
        matches!(kind, LocKind::Fused { .. }) || self.locations.build(chain) == reading.original
    }

    /// The one site of all chains; where they differ, their nearest common caller; where there
    /// is none, the site of the first.
    fn site(&self, reading: &Reading<'m>, class: Class) -> Option<ChainId> {
        if let [chain] = reading.chains[..] {
            return self.sites.site(chain, class);
        }
        let sites: Vec<ChainId> =
            reading.chains.iter().filter_map(|&chain| self.sites.site(chain, class)).collect();
        let (&first, rest) = sites.split_first()?;
        self.locations.common(first, rest.iter().copied()).or(Some(first))
    }
}

impl<'m> Locations<'m> {
    /// A chain as a location that keeps or drops the original of a reading.
    fn with_origin(&mut self, site: ChainId, reading: &Reading<'m>, origin: Origin) -> Loc<'m> {
        let metadata = match origin {
            Origin::Keep => self.ir().location_attribute(reading.original),
            Origin::Drop => self.ir().string_attribute(SITE_MARK),
        };
        self.build_with(site, metadata)
    }
}

#[cfg(all(test, feature = "llvm"))]
#[allow(unsafe_code)]
mod tests {
    use super::*;
    use crate::mlir::api::{Api, RawLocation};
    use crate::mlir::context::{Context, Dialects, Module, Printing};

    const KERNEL: &str = include_str!("../../examples/flash_attention.mlir");

    unsafe extern "C" {
        /// `mlir::OpaqueLoc::get`, which neither the syntax nor the C API can make. `TypeID` and
        /// `Location` are one pointer each.
        #[link_name = "_ZN4mlir9OpaqueLoc3getEmNS_6TypeIDENS_8LocationE"]
        fn opaque_loc(underlying: usize, type_id: *const u64, fallback: RawLocation)
        -> RawLocation;
    }

    fn printed(module: &Module<'_>) -> String {
        let printing = Printing { locations: true, ..Printing::default() };
        String::from_utf8(module.print(printing)).unwrap()
    }

    #[test]
    fn the_table_without_bulk_functions_sets_the_same_sites() {
        let in_bulk: &Api = Api::linked();
        assert!(in_bulk.bulk.is_some());
        let one_by_one = Api { bulk: None, ..in_bulk.clone() };
        let settings = Settings::default();
        let results: Vec<_> = [in_bulk, &one_by_one]
            .into_iter()
            .map(|api| {
                let mut context = Context::new(Dialects::Upstream);
                let mut module = context.parse(KERNEL.as_bytes(), "kernel.mlir").unwrap();
                let root = module.ir().root().raw();
                // SAFETY: the module is alive and not used until the summary is there.
                let ir = unsafe { Ir::new(api, root) };
                let summary = propagate(ir, &settings, Origin::Keep);
                (summary, printed(&module))
            })
            .collect();
        assert!(results[0].0.changed > 100, "{:?}", results[0].0);
        assert_eq!(results[0], results[1]);
    }

    #[test]
    fn an_opaque_location_stands_for_its_fallback() {
        static TYPE: u64 = 0;
        let text = r#"
            "dsl.func"() <{function_type = () -> (), sym_name = "k"}> ({
              "rocdl.s.barrier"() : () -> () loc(callsite("h.py":2:1 at "k.py":7:1))
              "rocdl.s.barrier"() : () -> () loc(callsite("h.py":2:1 at "k.py":8:1))
            }) : () -> () loc("k.py":1:1)"#;
        let mut context = Context::new(Dialects::Builtin);
        let mut module = context.parse(text.as_bytes(), "k.mlir").unwrap();
        let ir = module.ir();
        let function = functions::device_functions(&ir).remove(0);
        for op in functions::operations_in(&ir, function.op) {
            // SAFETY: the function has this name and signature in MLIR 22, the type's address is
            // aligned to 8 bytes as type ids are, and the location is of this context.
            unsafe {
                let opaque = opaque_loc(1, &raw const TYPE, ir.location(op).raw());
                (Api::linked().mlirOperationSetLocation)(op.raw(), opaque);
            }
        }
        propagate(ir, &Settings::default(), Origin::Drop);
        let mut locations = Locations::new(ir);
        let shown: Vec<_> = functions::operations_in(&ir, function.op)
            .map(|op| {
                let reading = locations.read(ir.location(op));
                (reading.status, locations.chains.innermost(reading.shown.unwrap()).line)
            })
            .collect();
        assert_eq!(shown, [(Status::Marked, 7), (Status::Marked, 8)]);
    }
}
