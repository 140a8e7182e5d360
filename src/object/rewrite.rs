//! Sections of an ELF file replaced, with nothing else of it moved.
//!
//! A section that got no bigger is overwritten where it is. A bigger one is put at the end of
//! the file, and its header says so; what was its place is then zero. A section that is new
//! gets a name in a longer string table and a header in a longer table, both at the end.

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

pub(super) const SECTION_SIZE: usize = 64;
const SHT_PROGBITS: u32 = 1;
const PT_LOAD: u64 = 1;
pub(super) const SHF_COMPRESSED: u64 = 1 << 11;
/// Where new data starts, in bytes.
pub(super) const ALIGNMENT: usize = 8;

/// Fields of the ELF header, by offset.
pub(super) mod header {
    pub(in super::super) const SIZE: usize = 64;
    pub(in super::super) const PROGRAM_SIZE: usize = 56;
    pub(in super::super) const PROGRAMS: usize = 32;
    pub(in super::super) const SECTIONS: usize = 40;
    pub(in super::super) const PROGRAM_COUNT: usize = 56;
    pub(in super::super) const SECTION_COUNT: usize = 60;
    pub(in super::super) const NAMES: usize = 62;
}

/// Fields of a section header, by offset.
pub(super) mod entry {
    pub(in super::super) const FLAGS: usize = 8;
    pub(in super::super) const OFFSET: usize = 24;
    pub(in super::super) const SIZE: usize = 32;
    pub(in super::super) const ALIGNMENT: usize = 48;
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
    Ok(file.bytes)
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

pub(super) fn number(bytes: &[u8], at: usize, size: usize) -> Option<u64> {
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
        let tables = meets(0, header::SIZE) || meets(self.table, count * SECTION_SIZE);
        let programs = number(&self.bytes, header::PROGRAMS, 8).unwrap_or(0) as usize;
        let program_count = number(&self.bytes, header::PROGRAM_COUNT, 2).unwrap_or(0) as usize;
        let loaded = (0..program_count).any(|at| {
            let at = programs.saturating_add(at * header::PROGRAM_SIZE);
            let field = |offset: usize, size| number(&self.bytes, at.saturating_add(offset), size);
            let range = |(start, size): (u64, u64)| meets(start as usize, size as usize);
            field(0, 4) == Some(PT_LOAD) && field(8, 8).zip(field(32, 8)).is_some_and(range)
        });
        !(sections || tables || loaded || meets(programs, program_count * header::PROGRAM_SIZE))
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
