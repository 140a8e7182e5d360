//! Sections of an ELF file replaced, with nothing moved that is loaded.
//!
//! A section that got no bigger is overwritten where it is. A bigger one is put at the end of
//! the file, and its header says so; what was its place is then zero. A section that is new
//! gets a name in a longer string table and a header in a longer table, both at the end. At last
//! debug sections close up, so that few holes are left.

use std::borrow::Cow;
use std::io::Write as _;
use std::ops::Range;

use super::elf::{Elf, Section};
use super::error::{Fault, Problem};

/// New data of a section, which need not exist yet. It is not compressed; where the section
/// was, the data is compressed in the same way.
pub(crate) struct Change {
    pub(crate) name: Box<str>,
    pub(crate) data: Vec<u8>,
}

const HEADER_SIZE: usize = 64;
const SECTION_SIZE: usize = 64;
const PROGRAM_SIZE: usize = 56;
const SHT_PROGBITS: u32 = 1;
const PT_LOAD: u64 = 1;
const SHT_NOBITS: u64 = 8;
const SHF_ALLOC: u64 = 1 << 1;
const SHF_COMPRESSED: u64 = 1 << 11;
/// Where new data starts, in bytes.
const ALIGNMENT: usize = 8;
/// More than sections that are not loaded are ever aligned to.
const MOST_ALIGNMENT: usize = 4096;

/// Fields of the ELF header, by offset.
mod header {
    pub(super) const PROGRAMS: usize = 32;
    pub(super) const SECTIONS: usize = 40;
    pub(super) const PROGRAM_COUNT: usize = 56;
    pub(super) const SECTION_COUNT: usize = 60;
    pub(super) const NAMES: usize = 62;
}

/// Fields of a section header, by offset.
mod entry {
    pub(super) const KIND: usize = 4;
    pub(super) const FLAGS: usize = 8;
    pub(super) const OFFSET: usize = 24;
    pub(super) const SIZE: usize = 32;
    pub(super) const ALIGNMENT: usize = 48;
}

/// The file with sections replaced.
///
/// # Errors
/// A section that is loaded would have to change, or the tables leave no room for a new one.
pub(crate) fn rewrite(elf: &Elf, changes: &[Change]) -> Result<Vec<u8>, Fault> {
    let mut file = File { bytes: elf.data().to_vec(), elf, table: 0, moved: Vec::new() };
    if changes.is_empty() {
        return Ok(file.bytes);
    }
    file.table = file.number(header::SECTIONS, 8)?;
    for change in changes {
        match elf.sections.iter().position(|section| section.name == change.name) {
            Some(index) => file.replace(index, &change.data)?,
            None => file.add(change)?,
        }
    }
    let packed = file.without_holes();
    Ok(packed.unwrap_or(file.bytes))
}

/// A section behind the loaded part, or the table of section headers.
struct Part {
    start: usize,
    size: usize,
    alignment: usize,
    section: Option<usize>,
}

struct File<'e> {
    bytes: Vec<u8>,
    elf: &'e Elf,
    /// Where the section headers are.
    table: usize,
    /// Sections that were put at the end.
    moved: Vec<usize>,
}

fn unsupported(what: &'static str) -> Fault {
    Fault::new(0, Problem::Unsupported(what.into()))
}

fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
    let mut number = [0; 8];
    number.get_mut(..size)?.copy_from_slice(bytes.get(at..at.checked_add(size)?)?);
    Some(u64::from_le_bytes(number))
}

impl File<'_> {
    fn number(&self, at: usize, size: usize) -> Result<usize, Fault> {
        let early = || Fault::new(at as u64, Problem::EndsEarly("the ELF header".into()));
        number(&self.bytes, at, size).and_then(|n| usize::try_from(n).ok()).ok_or_else(early)
    }

    fn put(&mut self, at: usize, size: usize, value: usize) -> Result<(), Fault> {
        let place = self.bytes.get_mut(at..at.saturating_add(size));
        let place = place.ok_or_else(|| unsupported("the ELF file's tables are not in it"))?;
        place.copy_from_slice(&(value as u64).to_le_bytes()[..size]);
        Ok(())
    }

    fn replace(&mut self, index: usize, data: &[u8]) -> Result<(), Fault> {
        let section = &self.elf.sections[index];
        if section.is_loaded() {
            return Err(unsupported("the debug information is in a section that is loaded"));
        }
        let raw = self.elf.raw(section);
        let data = packed(section, raw, data)?;
        let old = section.offset as usize..section.offset as usize + raw.len();
        let owned = self.owns(index, &old);
        let header = self.table + index * SECTION_SIZE;
        if owned {
            self.bytes[old.clone()].fill(0);
        }
        let start = if owned && data.len() <= old.len() {
            self.bytes[old.start..old.start + data.len()].copy_from_slice(&data);
            old.start
        } else {
            self.moved.push(index);
            self.append(&data)
        };
        self.put(header + entry::OFFSET, 8, start)?;
        self.put(header + entry::SIZE, 8, data.len())
    }

    /// Whether bytes of the file belong to this section alone.
    fn owns(&self, index: usize, range: &Range<usize>) -> bool {
        let meets = |start: usize, size: usize| {
            start < range.end && start.saturating_add(size) > range.start && size > 0
        };
        let count = number(&self.bytes, header::SECTION_COUNT, 2).unwrap_or(0) as usize;
        let sections = self.elf.sections.iter().enumerate().any(|(other, section)| {
            other != index
                && !self.moved.contains(&other)
                && meets(section.offset as usize, self.elf.raw(section).len())
        });
        let tables = meets(0, HEADER_SIZE) || meets(self.table, count * SECTION_SIZE);
        let programs = number(&self.bytes, header::PROGRAMS, 8).unwrap_or(0) as usize;
        let program_count = number(&self.bytes, header::PROGRAM_COUNT, 2).unwrap_or(0) as usize;
        let loaded = (0..program_count).any(|at| {
            let at = programs.saturating_add(at * PROGRAM_SIZE);
            let field = |offset: usize, size| number(&self.bytes, at.saturating_add(offset), size);
            let range = |(start, size): (u64, u64)| meets(start as usize, size as usize);
            field(0, 4) == Some(PT_LOAD) && field(8, 8).zip(field(32, 8)).is_some_and(range)
        });
        !(sections || tables || loaded || meets(programs, program_count * PROGRAM_SIZE))
    }

    /// The file with its debug sections, and what else was put at the end, in as few bytes as
    /// the sections that stay where they are leave room for. `None` where bytes that are in no
    /// section would be lost, or nothing would be won.
    fn without_holes(&self) -> Option<Vec<u8>> {
        let count = number(&self.bytes, header::SECTION_COUNT, 2)? as usize;
        let (mut loaded, mut fixed, mut movable) =
            (self.end_of_programs()?, Vec::new(), Vec::new());
        for index in 0..count {
            let at = self.table + index * SECTION_SIZE;
            let field = |offset, size| number(&self.bytes, at + offset, size);
            let part = Part {
                start: usize::try_from(field(entry::OFFSET, 8)?).ok()?,
                size: usize::try_from(field(entry::SIZE, 8)?).ok()?,
                alignment: usize::try_from(field(entry::ALIGNMENT, 8)?).ok()?.max(1),
                section: Some(index),
            };
            if part.size == 0 || field(entry::KIND, 4)? == SHT_NOBITS {
                continue;
            }
            if field(entry::FLAGS, 8)? & SHF_ALLOC != 0 {
                loaded = loaded.max(part.start.checked_add(part.size)?);
            } else if part.alignment <= MOST_ALIGNMENT && self.may_move(index) {
                movable.push(part);
            } else {
                fixed.push(part);
            }
        }
        let (start, size) = (self.table, count * SECTION_SIZE);
        let table = Part { start, size, alignment: ALIGNMENT, section: None };
        if self.number(header::SECTIONS, 8).ok()? == self.elf_table() {
            &mut fixed
        } else {
            &mut movable
        }
        .push(table);
        let all = || fixed.iter().chain(&movable).map(|part| part.start..part.start + part.size);
        if !self.holds_all(loaded, all().collect())? {
            return None;
        }
        fixed.retain(|part| part.start >= loaded);
        let mut taken: Vec<Range<usize>> =
            fixed.iter().map(|part| part.start..part.start + part.size).collect();
        taken.sort_unstable_by_key(|range| range.start);
        // The largest first, each in the first place with room for it.
        movable.sort_by_key(|part| (std::cmp::Reverse(part.size), part.section));
        let mut out = self.bytes.get(..loaded)?.to_vec();
        let mut moved = Vec::new();
        for part in &movable {
            let (mut at, mut next) = (loaded.checked_next_multiple_of(part.alignment)?, 0);
            while let Some(range) = taken.get(next).filter(|range| range.start < at + part.size) {
                at = range.end.max(at).checked_next_multiple_of(part.alignment)?;
                next += 1;
            }
            taken.insert(next, at..at + part.size);
            moved.push((at, part));
        }
        moved.extend(fixed.iter().map(|part| (part.start, part)));
        let end = taken.last()?.end;
        if end >= self.bytes.len() {
            return None;
        }
        out.resize(end, 0);
        for (at, part) in &moved {
            let bytes = self.bytes.get(part.start..part.start + part.size)?;
            out.get_mut(*at..at + part.size)?.copy_from_slice(bytes);
        }
        let table = moved.iter().find(|(_, part)| part.section.is_none())?.0;
        for (start, part) in &moved {
            let at = part
                .section
                .map_or(header::SECTIONS, |index| table + index * SECTION_SIZE + entry::OFFSET);
            out.get_mut(at..at + 8)?.copy_from_slice(&(*start as u64).to_le_bytes());
        }
        Some(out)
    }

    /// Where the section headers were.
    fn elf_table(&self) -> usize {
        number(self.elf.data(), header::SECTIONS, 8).unwrap_or(0) as usize
    }

    /// Whether a section may lie anywhere: debug sections, and those that were moved already.
    fn may_move(&self, index: usize) -> bool {
        let is_debug = |section: &Section| {
            section.name.starts_with(".debug_") || section.name.starts_with(".zdebug_")
        };
        self.moved.contains(&index) || self.elf.sections.get(index).is_none_or(is_debug)
    }

    /// Whether all bytes from a place on that are not zero are in one of the ranges, which do
    /// not overlap.
    fn holds_all(&self, from: usize, mut ranges: Vec<Range<usize>>) -> Option<bool> {
        ranges.retain(|range| range.start >= from);
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.push(self.bytes.len()..self.bytes.len());
        let mut at = from;
        for range in ranges {
            if range.start < at || self.bytes.get(at..range.start)?.iter().any(|&b| b != 0) {
                return Some(false);
            }
            at = range.end;
        }
        Some(true)
    }

    /// The end of what the program headers name, and of the headers themselves.
    fn end_of_programs(&self) -> Option<usize> {
        let programs = usize::try_from(number(&self.bytes, header::PROGRAMS, 8)?).ok()?;
        let count = number(&self.bytes, header::PROGRAM_COUNT, 2)? as usize;
        let mut end = HEADER_SIZE.max(programs.checked_add(count * PROGRAM_SIZE)?);
        for at in (0..count).map(|index| programs + index * PROGRAM_SIZE) {
            let (start, size) = (number(&self.bytes, at + 8, 8)?, number(&self.bytes, at + 32, 8)?);
            end = end.max(usize::try_from(start.checked_add(size)?).ok()?);
        }
        Some(end)
    }

    /// Puts data at the end of the file.
    fn append(&mut self, data: &[u8]) -> usize {
        let start = self.bytes.len().next_multiple_of(ALIGNMENT);
        self.bytes.resize(start, 0);
        self.bytes.extend(data);
        start
    }

    fn add(&mut self, change: &Change) -> Result<(), Fault> {
        let count = self.number(header::SECTION_COUNT, 2)?;
        let names = self.number(header::NAMES, 2)?;
        let strings = self.elf.sections.get(names).filter(|strings| !strings.is_loaded());
        let strings = strings
            .filter(|_| (1..0xfeff).contains(&count))
            .ok_or_else(|| unsupported("the ELF file has no room for another section"))?;
        let header = self.table + names * SECTION_SIZE;
        let (start, size) =
            (self.number(header + entry::OFFSET, 8)?, self.number(header + entry::SIZE, 8)?);
        let outside = || Fault::out_of_bounds(start as u64, "the section names", size as u64);
        let old = start..start.checked_add(size).ok_or_else(outside)?;
        let mut texts = self.bytes.get(old.clone()).ok_or_else(outside)?.to_vec();
        let name = texts.len();
        texts.extend(change.name.bytes().chain([0]));
        // Symbols may have their names in the same table, so it only grows.
        debug_assert!(strings.size as usize <= texts.len());
        if self.moved.contains(&names) || self.owns(names, &old) {
            self.bytes[old].fill(0);
        }
        self.moved.push(names);
        let start = self.append(&texts);
        self.put(header + entry::OFFSET, 8, start)?;
        self.put(header + entry::SIZE, 8, texts.len())?;
        let data = self.append(&change.data);
        let old = self.table..self.table + count * SECTION_SIZE;
        let mut table = self.bytes.get(old).ok_or_else(outside)?.to_vec();
        table.extend((name as u32).to_le_bytes());
        table.extend(SHT_PROGBITS.to_le_bytes());
        for field in [0, 0, data as u64, change.data.len() as u64, 0, 1, 0] {
            table.extend(field.to_le_bytes());
        }
        self.table = self.append(&table);
        self.put(header::SECTIONS, 8, self.table)?;
        self.put(header::SECTION_COUNT, 2, count + 1)
    }
}

/// The data as the section holds it: compressed as it was before.
fn packed<'d>(section: &Section, raw: &[u8], data: &'d [u8]) -> Result<Cow<'d, [u8]>, Fault> {
    const ZSTD: u64 = 2;
    let zlib = |mut out: Vec<u8>| {
        let mut encoder = flate2::write::ZlibEncoder::new(&mut out, flate2::Compression::new(6));
        encoder.write_all(data).and_then(|()| encoder.finish().map(|_| ())).map(|()| out)
    };
    let packed = if section.flags & SHF_COMPRESSED != 0 {
        let mut head = raw.get(..24).unwrap_or_default().to_vec();
        head.resize(24, 0);
        head[8..16].copy_from_slice(&(data.len() as u64).to_le_bytes());
        if number(raw, 0, 4) == Some(ZSTD) {
            zstd::stream::encode_all(data, 5).map(|body| [head, body].concat())
        } else {
            zlib(head)
        }
    } else if section.is_old_compressed() && raw.starts_with(b"ZLIB") {
        zlib([&b"ZLIB"[..], &(data.len() as u64).to_be_bytes()].concat())
    } else {
        return Ok(Cow::Borrowed(data));
    };
    packed.map(Cow::Owned).map_err(|error| {
        let what = Problem::Malformed(format!("the data cannot be compressed: {error}").into());
        Fault::within(section.name.to_string(), 0, what)
    })
}
