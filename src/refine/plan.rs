//! What every instruction shall show, from the sites of its function's chains.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::chain::{ChainId, Chains, Frame, Line, Sym};
use crate::leaf::Class;
use crate::object::dwarf::INFERRED_DISCRIMINATOR;
use crate::object::dwarf::write::{Editable, Names, Place, Program};
use crate::object::{CodeObject, Lister, Listing, Located, Role, definition};
use crate::site::{Kernel, SiteModel, Sites};

use super::names::Namer;
use super::{Options, Summary, fill};

/// What the addresses of an instruction shall show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) shown: Shown,
    /// Whether no row covers the instruction yet.
    pub(super) missing: bool,
}

/// A row's place, and the innermost entry that its callers are shown from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shown {
    pub(super) place: Place,
    pub(super) node: Option<u32>,
    pub(super) program: usize,
}

/// An instruction while its function is planned.
pub(super) struct Planned<'l> {
    pub(super) located: &'l Located,
    pub(super) shown: Option<Shown>,
    /// Whether what is shown is of use: neither line 0, nor library, nor the definition line.
    pub(super) usable: bool,
    pub(super) missing: bool,
}

/// The steps of all functions of an object, by address, and the names of helpers.
pub(super) fn steps(
    object: &CodeObject,
    editable: &Editable,
    options: &Options,
    chains: &mut Chains,
    summary: &mut Summary,
) -> (Vec<Step>, Names) {
    let index = RowIndex::of(&editable.programs);
    let lister = Lister { disassembler: options.disassembler, table: &options.settings.table };
    let mut steps = Vec::new();
    let mut namer =
        options.text.as_deref().filter(|_| editable.takes_names(&object.elf)).map(Namer::new);
    for function in &object.functions {
        let listing = lister.list(object, function, chains);
        if let Some(namer) = &mut namer {
            namer.add(editable, function, &listing, chains);
        }
        let given = options.definition.as_ref().map(|(file, line)| (file.as_str(), *line));
        let mut text = |path: &str| options.text.as_ref()?(path);
        let mut origins = definition::Origins { text: &mut text, given };
        let definition = definition::of(object, function, &listing, &mut origins, chains);
        let kernel = Kernel { symbol: Some(&function.name), definition };
        let mut planner =
            Planner { editable, index: &index, options, chains, usable: FxHashMap::default() };
        let mut planned = planner.plan(&listing, kernel);
        summary.decoded &= listing.decoded || listing.instructions.is_empty();
        summary.instructions += planned.len();
        if options.fill {
            summary.filled += fill::fill(&mut planned);
        }
        steps.extend(planned.iter().filter_map(|planned| {
            let start = planned.located.instruction.address.0;
            let end = planned.located.instruction.end().0;
            let Planned { shown, missing, .. } = *planned;
            shown.map(|shown| Step { start, end, shown, missing })
        }));
    }
    steps.sort_by_key(|step| step.start);
    steps.dedup_by_key(|step| step.start);
    (steps, namer.map(Namer::finish).unwrap_or_default())
}

struct Planner<'p> {
    editable: &'p Editable,
    index: &'p RowIndex<'p>,
    options: &'p Options,
    chains: &'p mut Chains,
    /// Chains without their frames on line 0, by chain.
    usable: FxHashMap<ChainId, Option<ChainId>>,
}

impl Planner<'_> {
    fn plan<'l>(&mut self, listing: &'l Listing, kernel: Kernel<'_>) -> Vec<Planned<'l>> {
        let code = || listing.instructions.iter().filter(|located| located.role == Role::Code);
        let mut model = SiteModel::new(&self.options.settings, kernel);
        for located in code() {
            if let Some(chain) = located.chain.and_then(|chain| self.without_line_zero(chain)) {
                model.add(self.chains, chain, class(located));
            }
        }
        let sites = model.choose(self.chains);
        code().map(|located| self.plan_one(located, &sites, kernel.definition)).collect()
    }

    fn without_line_zero(&mut self, chain: ChainId) -> Option<ChainId> {
        let chains = &mut *self.chains;
        *self.usable.entry(chain).or_insert_with(|| {
            if chains.frames(chain).all(|frame| frame.line != 0) {
                return Some(chain);
            }
            let frames: Vec<Frame> = chains.frames(chain).filter(|f| f.line != 0).collect();
            chains.intern(frames)
        })
    }

    fn plan_one<'l>(
        &mut self,
        located: &'l Located,
        sites: &Sites,
        definition: Option<Line>,
    ) -> Planned<'l> {
        let address = located.instruction.address.0;
        let Some((program, place)) = self.index.find(address) else {
            return Planned { located, shown: None, usable: false, missing: true };
        };
        let node = self.editable.tree.node_at(address);
        let own = Shown { place, node, program };
        let chain = located.chain.and_then(|chain| self.without_line_zero(chain));
        let Some(chain) = chain else {
            return Planned { located, shown: Some(own), usable: false, missing: false };
        };
        // Rows that are sites already stay what they are.
        let site = match self.editable.programs[program].refined {
            true => located.chain,
            false => sites.site(chain, class(located)),
        };
        let site = site.unwrap_or(chain);
        let levels = located.chain.map_or(0, |whole| self.levels(whole, site));
        let shown = self.shown(own, levels);
        let line = self.chains.innermost(site).line();
        // What was filled before is not weighed again, so that filling twice changes nothing.
        let of_use = Some(line) != definition && !sites.is_library(line.file);
        let usable = line.number != 0 && (of_use || self.index.filled[program]);
        Planned { located, shown: Some(shown), usable, missing: false }
    }

    /// How many frames of a chain are inside its site.
    fn levels(&self, whole: ChainId, site: ChainId) -> usize {
        if whole == site {
            return 0;
        }
        type Keys = SmallVec<[(Sym, u32, u32); 16]>;
        let key = |frame: Frame| (frame.file, frame.line, frame.column);
        let whole: Keys = self.chains.frames(whole).map(key).collect();
        let site: Keys = self.chains.frames(site).map(key).collect();
        let mut level = whole.len();
        for frame in site.iter().rev() {
            match whole[..level].iter().rposition(|other| other == frame) {
                Some(at) => level = at,
                None => break,
            }
        }
        if level == whole.len() { 0 } else { level }
    }

    /// What is shown when this many levels of calls are left out.
    fn shown(&self, own: Shown, levels: usize) -> Shown {
        let tree = &self.editable.tree;
        let Some(last) = levels.checked_sub(1) else { return own };
        let mut calls = tree.around(own.node).filter_map(|node| {
            let node_ref = &tree.nodes[node as usize];
            Some((node, node_ref.parent, node_ref.call?))
        });
        match calls.nth(last) {
            Some((node, parent, place)) if tree.program(node) == Some(own.program) => {
                // A chain that was inferred stays marked, whichever of its frames is shown.
                let discriminator = match own.place.discriminator {
                    INFERRED_DISCRIMINATOR => INFERRED_DISCRIMINATOR,
                    _ => place.discriminator,
                };
                let place = Place { discriminator, ..place };
                Shown { place, node: parent, program: own.program }
            }
            _ => own,
        }
    }
}

/// The class that an instruction is counted in; without a disassembler all are `other`.
fn class(located: &Located) -> Class {
    located.class.unwrap_or(Class::Other)
}

fn has_inferred(program: &Program) -> bool {
    let mut rows = program.sequences.iter().flat_map(|sequence| &sequence.rows);
    rows.any(|row| row.place.discriminator == INFERRED_DISCRIMINATOR)
}

/// The rows of all programs by address.
struct RowIndex<'p> {
    programs: &'p [Program],
    /// Start, end, program and sequence.
    sequences: Vec<(u64, u64, usize, usize)>,
    /// By program: whether its rows are sites, and some are inferred.
    filled: Vec<bool>,
}

impl<'p> RowIndex<'p> {
    fn of(programs: &'p [Program]) -> Self {
        let mut sequences = Vec::new();
        for (program, lines) in programs.iter().enumerate() {
            for (at, sequence) in lines.sequences.iter().enumerate() {
                if let Some(first) = sequence.rows.first().filter(|row| row.address < sequence.end)
                {
                    sequences.push((first.address, sequence.end, program, at));
                }
            }
        }
        sequences.sort_unstable();
        let filled = programs.iter().map(|program| program.refined && has_inferred(program));
        RowIndex { programs, sequences, filled: filled.collect() }
    }

    /// The program and the place of the row that covers an address.
    fn find(&self, address: u64) -> Option<(usize, Place)> {
        let after = self.sequences.partition_point(|sequence| sequence.0 <= address);
        let &(_, end, program, at) = self.sequences[..after].last()?;
        let rows = &self.programs[program].sequences[at].rows;
        let after = rows.partition_point(|row| row.address <= address);
        let row = rows[..after].last().filter(|_| address < end)?;
        Some((program, row.place))
    }
}
