//! The byte-identity check.
//!
//! Debug off, two code objects are identical when all their bytes are. Debug on against debug
//! off, they are when their program headers and every allocated section are equal: what the
//! loader sees. This module reads ELF with its own few lines, so that it shares no code with
//! what it checks; it trusts nothing in a file and reads nothing outside it.

use std::fmt;
use std::ops::Range;

use sha2::{Digest, Sha256};

/// How much of two code objects is compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Every byte.
    Whole,
    /// The program headers and every allocated section.
    Loaded,
}

/// A code object that cannot be compared.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IdentityError {
    /// Not an ELF file of the kind that AMDGPU code objects are.
    #[error("not a 64-bit little-endian ELF file")]
    NotElf,
    /// A table or section reaches outside the file.
    #[error("{what} (at offset {offset:#x}) reaches outside the file of {size} bytes")]
    OutOfBounds {
        /// The table or section.
        what: String,
        /// Its offset in the file, in bytes.
        offset: u64,
        /// The file's size in bytes.
        size: usize,
    },
}

/// The first place where two code objects differ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The section, or what else of the file it is in.
    pub section: String,
    /// The offset of the first differing byte from the section's start, in bytes.
    pub offset: usize,
    /// The symbol there and the byte's offset from it.
    pub symbol: Option<(String, u64)>,
    /// Where code differs: what to disassemble.
    pub code: Option<CodePlace>,
}

/// The code around a difference, in each of the two objects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodePlace {
    /// The address of the function, or of the section where no function is known.
    pub start: u64,
    /// The address of the first differing byte.
    pub address: u64,
    /// The bytes from `start` to the end of the section, of the first object and the second.
    pub bytes: [Vec<u8>; 2],
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} differs at offset {:#x}", self.section, self.offset)?;
        match &self.symbol {
            Some((name, offset)) => write!(f, ", in {name}+{offset:#x}"),
            None => Ok(()),
        }
    }
}

/// Compares two code objects; `None` when they are identical.
///
/// # Errors
/// An object that is not ELF or whose tables reach outside it. For [`Extent::Whole`], equal
/// bytes are identical whatever they are.
pub fn compare(a: &[u8], b: &[u8], extent: Extent) -> Result<Option<Difference>, IdentityError> {
    if a == b {
        return Ok(None);
    }
    let (a, b) = (Elf::read(a)?, Elf::read(b)?);
    Ok(match extent {
        Extent::Whole => Some(a.first_difference(&b)),
        Extent::Loaded => a.first_loaded_difference(&b),
    })
}

/// The SHA-256 of what is compared of an object, in hexadecimal.
///
/// # Errors
/// For [`Extent::Loaded`], an object that cannot be read.
pub fn digest(object: &[u8], extent: Extent) -> Result<String, IdentityError> {
    let mut hash = Sha256::new();
    match extent {
        Extent::Whole => hash.update(object),
        Extent::Loaded => {
            let elf = Elf::read(object)?;
            hash.update(elf.program_headers);
            for section in elf.sections.iter().filter(|section| section.is_allocated()) {
                hash.update(section.identity());
                hash.update(section.data);
            }
        }
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether an object has debug information, so that only its loaded parts can be compared with
/// one that has none.
pub fn has_debug_info(object: &[u8]) -> bool {
    Elf::read(object)
        .is_ok_and(|elf| elf.sections.iter().any(|section| section.name.starts_with(".debug_")))
}

struct Elf<'a> {
    bytes: &'a [u8],
    program_headers: &'a [u8],
    sections: Vec<Section<'a>>,
}

struct Section<'a> {
    name: String,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
    data: &'a [u8],
}

const SHT_SYMTAB: u32 = 2;
const SHT_NOBITS: u32 = 8;
const SHT_DYNSYM: u32 = 11;
const SHF_ALLOC: u64 = 2;
const SHF_EXECINSTR: u64 = 4;
const SECTION_HEADER_SIZE: u64 = 64;
const PROGRAM_HEADER_SIZE: u64 = 56;
const SYMBOL_SIZE: usize = 24;

/// A little-endian number at a place that the caller knows is there.
fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(number)
}

fn part<'a>(
    bytes: &'a [u8],
    what: &str,
    offset: u64,
    size: u64,
) -> Result<&'a [u8], IdentityError> {
    let range = || -> Option<Range<usize>> {
        let start = usize::try_from(offset).ok()?;
        Some(start..start.checked_add(usize::try_from(size).ok()?)?)
    };
    range().and_then(|range| bytes.get(range)).ok_or_else(|| IdentityError::OutOfBounds {
        what: what.into(),
        offset,
        size: bytes.len(),
    })
}

/// A NUL-terminated name in a string table.
fn name(strings: &[u8], at: u64) -> String {
    let rest = usize::try_from(at).ok().and_then(|at| strings.get(at..)).unwrap_or_default();
    let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
    String::from_utf8_lossy(&rest[..end]).into_owned()
}

impl<'a> Section<'a> {
    fn is_allocated(&self) -> bool {
        self.flags & SHF_ALLOC != 0
    }

    /// What of the section header the loader may see.
    fn identity(&self) -> Vec<u8> {
        let mut identity = self.name.clone().into_bytes();
        identity.push(0);
        for number in [u64::from(self.kind), self.flags, self.address, self.size] {
            identity.extend(number.to_le_bytes());
        }
        identity
    }

    fn holds_offset(&self, offset: usize) -> bool {
        let start = self.offset as usize;
        offset >= start && offset - start < self.data.len()
    }
}

impl<'a> Elf<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, IdentityError> {
        let header = bytes.get(..64).ok_or(IdentityError::NotElf)?;
        if &header[..6] != b"\x7fELF\x02\x01" {
            return Err(IdentityError::NotElf);
        }
        let programs = number::<2>(header, 56) * PROGRAM_HEADER_SIZE;
        let program_headers =
            part(bytes, "the program headers", number::<8>(header, 32), programs)?;
        let count = number::<2>(header, 60);
        let table = part(
            bytes,
            "the section headers",
            number::<8>(header, 40),
            count * SECTION_HEADER_SIZE,
        )?;
        let entries: Vec<&[u8]> = table.chunks_exact(SECTION_HEADER_SIZE as usize).collect();
        let names = match entries.get(number::<2>(header, 62) as usize) {
            Some(entry) => {
                let (offset, size) = (number::<8>(entry, 24), number::<8>(entry, 32));
                part(bytes, "the section names", offset, size)?
            }
            None => &[],
        };
        let sections = entries.into_iter().map(|entry| Elf::read_section(bytes, entry, names));
        Ok(Elf { bytes, program_headers, sections: sections.collect::<Result<_, _>>()? })
    }

    fn read_section(
        bytes: &'a [u8],
        entry: &[u8],
        names: &[u8],
    ) -> Result<Section<'a>, IdentityError> {
        let name = name(names, number::<4>(entry, 0));
        let kind = number::<4>(entry, 4) as u32;
        let (offset, size) = (number::<8>(entry, 24), number::<8>(entry, 32));
        let in_file = if kind == SHT_NOBITS || kind == 0 { 0 } else { size };
        let data = part(bytes, &format!("section '{name}'"), offset, in_file)?;
        Ok(Section {
            name,
            kind,
            flags: number::<8>(entry, 8),
            address: number::<8>(entry, 16),
            offset,
            size,
            link: number::<4>(entry, 40) as u32,
            data,
        })
    }

    fn first_difference(&self, other: &Elf<'_>) -> Difference {
        let common = self.bytes.iter().zip(other.bytes).position(|(a, b)| a != b);
        let offset = common.unwrap_or(self.bytes.len().min(other.bytes.len()));
        match self.sections.iter().position(|section| section.holds_offset(offset)) {
            Some(at) => self.difference_in(other, at, offset - self.sections[at].offset as usize),
            None => Difference {
                section: self.part_without_section(offset).into(),
                offset,
                symbol: None,
                code: None,
            },
        }
    }

    fn part_without_section(&self, offset: usize) -> &'static str {
        if offset < 64 {
            return "the ELF header";
        }
        let table = number::<8>(self.bytes, 32) as usize;
        if offset >= table && offset - table < self.program_headers.len() {
            return "the program header table";
        }
        if offset >= number::<8>(self.bytes, 40) as usize {
            return "the section header table";
        }
        "the fill between sections"
    }

    fn first_loaded_difference(&self, other: &Elf<'_>) -> Option<Difference> {
        let named =
            |section: String, offset| Difference { section, offset, symbol: None, code: None };
        if self.program_headers != other.program_headers {
            let pairs = self.program_headers.iter().zip(other.program_headers);
            let offset = pairs.take_while(|(a, b)| a == b).count();
            return Some(named("the program header table".into(), offset));
        }
        let loaded = |elf: &Elf<'_>| -> Vec<usize> {
            (0..elf.sections.len()).filter(|&at| elf.sections[at].is_allocated()).collect()
        };
        let (ours, theirs) = (loaded(self), loaded(other));
        for (&at, &there) in ours.iter().zip(&theirs) {
            let (a, b) = (&self.sections[at], &other.sections[there]);
            if a.data != b.data && a.name == b.name {
                let offset = a.data.iter().zip(b.data).take_while(|(a, b)| a == b).count();
                return Some(self.difference_in(other, at, offset));
            }
            if a.identity() != b.identity() {
                return Some(named(format!("the header of section {}", a.name), 0));
            }
        }
        let extra = ours.get(theirs.len()).map(|&at| &self.sections[at]);
        let extra = extra.or_else(|| theirs.get(ours.len()).map(|&at| &other.sections[at]));
        extra.map(|section| {
            named(format!("section {}, which only one object has,", section.name), 0)
        })
    }

    fn difference_in(&self, other: &Elf<'_>, at: usize, offset: usize) -> Difference {
        let section = &self.sections[at];
        let address = section.address + offset as u64;
        let symbol = self.symbol_at(at, address);
        let code = (section.flags & SHF_EXECINSTR != 0).then(|| {
            let start = symbol.as_ref().map_or(section.address, |(_, offset)| address - offset);
            CodePlace {
                start,
                address,
                bytes: [self.code_from(at, start), other.code_from(at, start)],
            }
        });
        let section = section.name.clone();
        Difference { section, offset, symbol, code }
    }

    /// The bytes of a section from an address on; none where there is no such section.
    fn code_from(&self, at: usize, address: u64) -> Vec<u8> {
        let code = self.sections.get(at).and_then(|section| {
            let from = usize::try_from(address.checked_sub(section.address)?).ok()?;
            section.data.get(from..)
        });
        code.unwrap_or_default().to_vec()
    }

    /// The nearest named symbol at or before an address of a section, and how far before.
    fn symbol_at(&self, section: usize, address: u64) -> Option<(String, u64)> {
        let mut nearest: Option<(String, u64)> = None;
        for table in self.sections.iter().filter(|s| s.kind == SHT_SYMTAB || s.kind == SHT_DYNSYM) {
            let strings = self.sections.get(table.link as usize).map_or(&[][..], |s| s.data);
            for symbol in table.data.chunks_exact(SYMBOL_SIZE) {
                let value = number::<8>(symbol, 8);
                let name = name(strings, number::<4>(symbol, 0));
                let here = number::<2>(symbol, 6) as usize == section;
                if !here || name.is_empty() || value > address {
                    continue;
                }
                let distance = address - value;
                if nearest.as_ref().is_none_or(|(_, nearest)| distance < *nearest) {
                    nearest = Some((name, distance));
                }
            }
        }
        nearest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bytes_are_identical_whatever_they_are() {
        assert_eq!(compare(b"x", b"x", Extent::Whole), Ok(None));
        assert_eq!(compare(b"x", b"y", Extent::Whole), Err(IdentityError::NotElf));
    }

    #[test]
    fn tables_outside_the_file_are_refused() {
        let mut elf = vec![0; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
        elf[60] = 1;
        let error = compare(&elf, b"", Extent::Loaded).unwrap_err();
        assert!(matches!(error, IdentityError::OutOfBounds { .. }), "{error}");
    }
}
