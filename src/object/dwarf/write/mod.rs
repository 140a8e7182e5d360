//! Rewriting line tables and the ranges of inlined functions in a linked code object.
//!
//! The mirror of [`read`](super::read). Line programs are encoded anew behind headers that stay
//! as they are; entries of `.debug_info` are patched where they lie. What is not changed is
//! written as it was, so that rewriting without a change gives the same rows.

use gimli::{EndianSlice, LittleEndian, Section as _, SectionId};
use rustc_hash::FxHashMap;

use crate::object::elf::Elf;
use crate::object::error::{Fault, Problem};
use crate::object::inflate::Allowance;
use crate::object::rewrite::{Change, rewrite};

use super::read::{DEBUG_CAP, MOST_UNITS, section_data, section_of};

mod abbreviations;
mod leb;
pub(crate) mod lines;
mod names;
mod ranges;
pub(crate) mod tree;

pub(crate) use lines::{Place, Program, Row, Sequence};
pub(crate) use names::Names;
pub(crate) use ranges::Move;
pub(crate) use tree::Tree;

/// Sections whose offsets into a rewritten one siteline does not patch.
const POINTING: [&str; 3] = [".debug_types", ".debug_macro", ".debug_tu_index"];

/// Sections that list the names in `.debug_info`, which cannot change then.
const INDICES: [&str; 3] = [".debug_names", ".debug_pubnames", ".debug_gnu_pubnames"];

/// The line programs and entries of a code object, to be changed.
pub(crate) struct Editable {
    pub(crate) programs: Vec<Program>,
    pub(crate) tree: Tree,
    sections: FxHashMap<SectionId, Vec<u8>>,
}

fn dwarf_fault(section: SectionId, at: usize, error: gimli::Error) -> Fault {
    Fault::within(section.name(), at as u64, Problem::Dwarf(error))
}

impl Editable {
    /// Reads the debug information of an ELF file; `None` where it has no line tables.
    ///
    /// # Errors
    /// It contradicts its format, or is of a kind that siteline does not rewrite.
    pub(crate) fn read(elf: &Elf) -> Result<Option<Self>, Fault> {
        if elf.section(".debug_info").or_else(|| elf.section(".zdebug_info")).is_none() {
            return Ok(None);
        }
        let unsupported = |what: &'static str| Fault::new(0, Problem::Unsupported(what.into()));
        if elf.relocatable {
            return Err(unsupported("the object is not linked yet: link it, then refine it"));
        }
        if POINTING.iter().any(|name| elf.section(name).is_some()) {
            return Err(unsupported(
                "debug information with type units of DWARF 4, or with macros, is not rewritten",
            ));
        }
        let mut allowance = Allowance::of(DEBUG_CAP);
        let sections = gimli::DwarfSections::load(|id| section_data(elf, id, &mut allowance))?;
        let mut dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::All);
        let mut programs = Vec::new();
        let mut numbers: FxHashMap<usize, usize> = FxHashMap::default();
        let mut units = Vec::new();
        let mut headers = dwarf.units();
        let fault = |error| dwarf_fault(SectionId::DebugInfo, 0, error);
        while let Some(header) = headers.next().map_err(fault)? {
            if units.len() == MOST_UNITS {
                let what = Problem::TooMuchWork("the list of compilation units");
                return Err(Fault::within(".debug_info", 0, what));
            }
            let mut unit = dwarf.unit(header).map_err(fault)?;
            let number = match unit.line_program.take() {
                Some(program) => {
                    let at = program.header().offset().0;
                    let known = numbers.get(&at).copied();
                    Some(match known {
                        Some(number) => number,
                        None => {
                            programs.push(lines::read(program, *dwarf.debug_line.reader())?);
                            numbers.insert(at, programs.len() - 1);
                            programs.len() - 1
                        }
                    })
                }
                None => None,
            };
            units.push((unit, number));
        }
        if programs.is_empty() {
            return Ok(None);
        }
        let tree = Tree::read(&dwarf, &units)?;
        let kept = [
            SectionId::DebugInfo,
            SectionId::DebugAbbrev,
            SectionId::DebugLine,
            SectionId::DebugRanges,
            SectionId::DebugRngLists,
        ];
        let copy = |id| {
            let data: &[u8] = match id {
                SectionId::DebugInfo => dwarf.debug_info.reader().slice(),
                SectionId::DebugAbbrev => dwarf.debug_abbrev.reader().slice(),
                SectionId::DebugLine => dwarf.debug_line.reader().slice(),
                SectionId::DebugRanges => dwarf.ranges.debug_ranges().reader().slice(),
                _ => dwarf.ranges.debug_rnglists().reader().slice(),
            };
            (id, data.to_vec())
        };
        let sections = kept.into_iter().map(copy).collect();
        Ok(Some(Editable { programs, tree, sections }))
    }

    /// Whether inlined functions can get other names: the last unit has room, and no index of
    /// names would contradict them.
    pub(crate) fn takes_names(&self, elf: &Elf) -> bool {
        INDICES.iter().all(|name| elf.section(name).is_none()) && names::place(&self.tree).is_some()
    }

    /// The ELF file with the programs as they now are, with ranges moved between entries, and
    /// with other names for inlined functions.
    ///
    /// # Errors
    /// An entry cannot hold its new ranges.
    pub(crate) fn write(
        mut self,
        elf: &Elf,
        moves: &[Move],
        names: &Names,
    ) -> Result<Vec<u8>, Fault> {
        let before = self.sections.clone();
        let mut take = |id| self.sections.remove(&id).unwrap_or_default();
        let mut info = take(SectionId::DebugInfo);
        let mut abbreviations = take(SectionId::DebugAbbrev);
        let mut old_lists = take(SectionId::DebugRanges);
        let mut lists = take(SectionId::DebugRngLists);
        let (line, moved) = lines::rebuild(&take(SectionId::DebugLine), &self.programs)?;
        for unit in &self.tree.units {
            let Some(field) = unit.stmt_list else { continue };
            let to = usize::try_from(field.value).ok().and_then(|at| moved.get(&at));
            if let Some(&to) = to.filter(|to| **to as u64 != field.value) {
                ranges::put(&mut info, field.at, field.size, to as u64).ok_or_else(|| {
                    let what = Problem::EndsEarly("the compilation unit".into());
                    Fault::within(tree::section(), field.at as u64, what)
                })?;
            }
        }
        let mut sections = ranges::Sections {
            info: &mut info,
            abbreviations: &mut abbreviations,
            old_lists: &mut old_lists,
            lists: &mut lists,
        };
        let replacements = ranges::rewrite(&self.tree, moves, &mut sections)?;
        let mut changes = abbreviations::Changes { replacements, ..Default::default() };
        names::rename(&self.tree, names, &mut sections, &mut changes)?;
        abbreviations::replace(&self.tree, &changes, &mut sections)?;
        let after = [
            (SectionId::DebugInfo, info),
            (SectionId::DebugAbbrev, abbreviations),
            (SectionId::DebugLine, line),
            (SectionId::DebugRanges, old_lists),
            (SectionId::DebugRngLists, lists),
        ];
        let changes = after.into_iter().filter(|(id, data)| before.get(id) != Some(data));
        let changes = changes.map(|(id, data)| {
            let name = section_of(elf, id).map_or_else(|| id.name().into(), |s| s.name.clone());
            Change { name, data }
        });
        rewrite(elf, &changes.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    const SOURCE: &str = "
        static __attribute__((always_inline)) float f(float a) { return a * a + 1.0f; }
        static __attribute__((always_inline)) float g(float a) { return f(a) - f(a + 2.0f); }
        __kernel void k(__global float *p) { p[0] = g(p[1]); if (p[0] > 3.0f) p[2] = g(p[3]); }
    ";

    fn object(version: u8) -> Elf {
        let folder = tempfile::tempdir().unwrap();
        let (source, object) = (folder.path().join("k.cl"), folder.path().join("k.hsaco"));
        std::fs::write(&source, SOURCE).unwrap();
        let status = Command::new("clang-22")
            .args(["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx942", "-O2", "-nogpulib"])
            .arg(format!("-gdwarf-{version}"))
            .arg(&source)
            .arg("-o")
            .arg(&object)
            .status();
        assert!(status.unwrap().success());
        Elf::parse(std::fs::read(object).unwrap().into()).unwrap()
    }

    #[test]
    fn writing_without_a_change_gives_the_same_rows() {
        for version in [4, 5] {
            let elf = object(version);
            let read = |elf: &Elf| {
                let editable = Editable::read(elf).unwrap().unwrap();
                editable.programs.into_iter().map(|p| p.sequences).collect::<Vec<_>>()
            };
            let before = read(&elf);
            assert!(before.iter().flatten().any(|sequence| sequence.rows.len() > 4));
            let editable = Editable::read(&elf).unwrap().unwrap();
            let bytes = editable.write(&elf, &[], &Names::new()).unwrap();
            assert_eq!(read(&Elf::parse(bytes.into()).unwrap()), before, "DWARF {version}");
        }
    }

    #[test]
    fn rows_of_every_kind_come_back() {
        let elf = object(5);
        let mut editable = Editable::read(&elf).unwrap().unwrap();
        let start = editable.programs[0].sequences[0].rows[0];
        let mut rows = Vec::new();
        for (at, (step, line)) in
            [(0, 1), (4, 1), (4, 70_000), (400, 3), (2, 3), (0, 0), (70_000, 9)]
                .into_iter()
                .enumerate()
        {
            let address = rows.last().map_or(start.address, |row: &Row| row.address) + step;
            rows.push(Row {
                address,
                place: Place { file: at as u32 % 2, line, column: 300, discriminator: at as u32 },
                is_stmt: at % 2 == 0,
                basic_block: at == 1,
                prologue_end: at == 2,
                epilogue_begin: at == 3,
                isa: at as u32 / 2,
            });
        }
        let end = rows[rows.len() - 1].address + 6;
        let sequence = Sequence { rows, end, end_isa: 1 };
        editable.programs[0].sequences = vec![sequence.clone(), sequence.clone()];
        let bytes = editable.write(&elf, &[], &Names::new()).unwrap();
        let again = Editable::read(&Elf::parse(bytes.into()).unwrap()).unwrap().unwrap();
        assert_eq!(again.programs[0].sequences, [sequence.clone(), sequence]);
    }
}
