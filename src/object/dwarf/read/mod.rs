//! Reading DWARF 2 to 5 with gimli into the tables of [`DebugInfo`].
//!
//! A hostile file can make a little data stand for a lot of work, by sharing tables, lists and
//! names. Every step is therefore paid from a [`Budget`] that grows with the size of the file.

use std::borrow::Cow;

use gimli::{EndianSlice, LittleEndian, Section as _, SectionId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::chain::{Chains, Sym};
use crate::object::elf::{Elf, Section};
use crate::object::error::{Fault, Problem};
use crate::object::inflate::Allowance;

use super::DebugInfo;

mod abbreviations;
pub(super) mod edges;
mod rows;
mod scopes;

pub(super) type Slice<'a> = EndianSlice<'a, LittleEndian>;
pub(super) type Dwarf<'a> = gimli::Dwarf<Slice<'a>>;
pub(super) type Unit<'a> = gimli::Unit<Slice<'a>>;

/// The most that compressed debug sections of one code object may take, in bytes.
pub(super) const DEBUG_CAP: u64 = 128 << 20;
/// The most compilation units that are read.
pub(super) const MOST_UNITS: usize = 1 << 16;
/// What reading a unit costs besides what is in it.
const UNIT_COST: u64 = 64;

/// Reads the debug information of an ELF file.
pub(super) fn read(elf: &Elf, chains: &mut Chains) -> Result<Option<DebugInfo>, Fault> {
    let mut allowance = Allowance::of(DEBUG_CAP);
    let mut total = 0;
    let sections = gimli::DwarfSections::load(|id| {
        let data = section_data(elf, id, &mut allowance)?;
        total += data.len() as u64;
        Ok::<_, Fault>(data)
    })?;
    let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
    if dwarf.debug_info.reader().is_empty() {
        return Ok(None);
    }
    let mut reader = Reader::new(dwarf, Budget::for_size(total), chains)?;
    reader.read_units()?;
    Ok(Some(reader.finish()))
}

pub(super) fn section_data<'a>(
    elf: &'a Elf,
    id: SectionId,
    allowance: &mut Allowance,
) -> Result<Cow<'a, [u8]>, Fault> {
    match section_of(elf, id) {
        Some(section) => elf.contents(section, allowance),
        None => Ok(Cow::Borrowed(&[])),
    }
}

/// The section of a kind, by its name or by the one of old compressed sections.
pub(super) fn section_of(elf: &Elf, id: SectionId) -> Option<&Section> {
    let old_name = id.name().replacen(".debug_", ".zdebug_", 1);
    elf.section(id.name()).or_else(|| elf.section(&old_name))
}

/// How many steps may still be taken.
struct Budget {
    left: u64,
}

impl Budget {
    fn for_size(bytes: u64) -> Self {
        Budget { left: bytes.saturating_mul(64).saturating_add(1 << 20) }
    }

    fn spend(&mut self, steps: u64, section: SectionId, offset: u64) -> Result<(), Fault> {
        let short =
            || Fault::within(section.name(), offset, Problem::TooMuchWork("the debug information"));
        self.left = self.left.checked_sub(steps).ok_or_else(short)?;
        Ok(())
    }
}

struct Reader<'a, 'c> {
    dwarf: Dwarf<'a>,
    units: Vec<Unit<'a>>,
    budget: Budget,
    chains: &'c mut Chains,
    info: DebugInfo,
    ranges: Vec<edges::ScopeRange>,
    programs: FxHashSet<usize>,
    names: FxHashMap<usize, Option<Sym>>,
}

impl<'a, 'c> Reader<'a, 'c> {
    fn new(
        mut dwarf: Dwarf<'a>,
        mut budget: Budget,
        chains: &'c mut Chains,
    ) -> Result<Self, Fault> {
        abbreviations::check(&dwarf, &mut budget)?;
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::All);
        Ok(Reader {
            dwarf,
            units: Vec::new(),
            budget,
            chains,
            info: DebugInfo::default(),
            ranges: Vec::new(),
            programs: FxHashSet::default(),
            names: FxHashMap::default(),
        })
    }

    fn read_units(&mut self) -> Result<(), Fault> {
        let mut headers = self.dwarf.units();
        let mut at = 0;
        while let Some(header) =
            headers.next().map_err(|error| self.fault(error, SectionId::DebugInfo, at))?
        {
            at = header.debug_info_offset().map_or(at, |offset| offset.0);
            self.budget.spend(UNIT_COST, SectionId::DebugInfo, at as u64)?;
            if self.units.len() == MOST_UNITS {
                let what = Problem::TooMuchWork("the list of compilation units");
                return Err(Fault::within(".debug_info", at as u64, what));
            }
            let unit = self.dwarf.unit(header);
            let unit = unit.map_err(|error| self.fault(error, SectionId::DebugInfo, at))?;
            self.units.push(unit);
        }
        for index in 0..self.units.len() {
            let mut files = Files::default();
            self.read_rows(index, &mut files)?;
            self.read_scopes(index, &mut files)?;
        }
        Ok(())
    }

    fn finish(mut self) -> DebugInfo {
        self.info.edges = edges::flatten(self.ranges);
        self.info.rows.shrink_to_fit();
        self.info.scopes.shrink_to_fit();
        self.info.sequences.sort_by_key(|sequence| sequence.addresses.start);
        self.info.subprograms.sort_by_key(|subprogram| subprogram.address);
        self.info
    }

    /// A fault from gimli's error: where the data ends too early, at the exact place; else at
    /// the given one.
    fn fault(&self, error: gimli::Error, section: SectionId, offset: usize) -> Fault {
        if let gimli::Error::UnexpectedEof(id) = error {
            let what = || Problem::EndsEarly("the debug information".into());
            return match self.dwarf.lookup_offset_id(id) {
                Some((_, section, offset)) => Fault::within(section.name(), offset as u64, what()),
                None => Fault::within(section.name(), offset as u64, what()),
            };
        }
        Fault::within(section.name(), offset as u64, Problem::Dwarf(error))
    }

    /// The path of a file of a unit's line table.
    fn file(&mut self, unit: usize, files: &mut Files, index: u64) -> Result<Sym, Fault> {
        if let Some(&known) = files.0.get(&index) {
            return Ok(known);
        }
        let path = self.path(unit, index);
        let path = path.map_err(|error| self.fault(error, SectionId::DebugLine, 0))?;
        self.budget.spend(path.len() as u64 + 1, SectionId::DebugLine, 0)?;
        let sym = self.chains.sym(&path);
        files.0.insert(index, sym);
        Ok(sym)
    }

    fn path(&self, unit: usize, index: u64) -> gimli::Result<String> {
        let unit = &self.units[unit];
        let header = unit.line_program.as_ref().map(|program| program.header());
        let Some((header, file)) = header.and_then(|header| Some((header, header.file(index)?)))
        else {
            return Ok(NO_FILE.into());
        };
        let text = |value| self.dwarf.attr_string(unit, value).map(|text| text.to_string_lossy());
        let name = text(file.path_name())?;
        let directory = match file.directory(header) {
            Some(directory) => text(directory)?,
            None => Cow::Borrowed(""),
        };
        let base = unit.comp_dir.map(|base| base.to_string_lossy()).unwrap_or_default();
        Ok([directory, name].iter().fold(base.into_owned(), |path, part| join(&path, part)))
    }
}

/// The paths of one unit's files, by index.
#[derive(Default)]
struct Files(FxHashMap<u64, Sym>);

/// The path of a file that is not in the line table.
const NO_FILE: &str = "<unknown>";

fn join(base: &str, path: &str) -> String {
    if path.starts_with('/') || base.is_empty() {
        path.into()
    } else if path.is_empty() || base == path {
        base.into()
    } else {
        format!("{}/{path}", base.trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_as_compilers_mean_them() {
        assert_eq!(join("/build", "src/k.c"), "/build/src/k.c");
        assert_eq!(join("/build", "/src/k.c"), "/src/k.c");
        assert_eq!(join("", "k.c"), "k.c");
        assert_eq!(join("/build/", "k.c"), "/build/k.c");
        assert_eq!(join("/build", ""), "/build");
    }
}
