//! ELF files with what is not loaded packed closely, for places that cannot grow.
//!
//! What is behind the last loaded byte is laid out anew, without the gaps that replacing
//! sections leaves, and debug sections can be compressed with zlib, which every reader of
//! compressed sections knows.

use std::io::Write as _;

use super::elf::Elf;
use super::error::{Fault, Problem};
use super::rewrite::{SECTION_SIZE, SHF_COMPRESSED, entry, header, number};

const SHT_NOBITS: u64 = 8;
const SHF_ALLOC: u64 = 1 << 1;
const ELFCOMPRESS_ZLIB: u32 = 1;
/// What a compressed section is aligned to: its header has numbers of 8 bytes.
const COMPRESSED_ALIGNMENT: u64 = 8;

/// A section whose data may be put elsewhere.
struct Movable {
    header: usize,
    alignment: u64,
    data: Vec<u8>,
    /// The flags and alignment that its header gets, where it is compressed anew.
    compressed: Option<(u64, u64)>,
}

/// The same file with what is not loaded packed closely; `None` where its layout does not allow
/// that.
///
/// # Errors
/// A section cannot be compressed.
pub(crate) fn shrink(elf: &Elf, compress: bool) -> Result<Option<Vec<u8>>, Fault> {
    let old: &[u8] = elf.data();
    let Some((fixed, mut movable)) = layout(elf, old) else { return Ok(None) };
    if compress {
        movable.iter_mut().try_for_each(compressed)?;
    }
    let Some(table) = number(old, header::SECTIONS, 8).map(|at| at as usize) else {
        return Ok(None);
    };
    let size = elf.sections.len() * SECTION_SIZE;
    let mut headers = old[table..table + size].to_vec();
    let mut out = old[..fixed].to_vec();
    for section in &movable {
        let start = (out.len() as u64).next_multiple_of(section.alignment.max(1));
        out.resize(start as usize, 0);
        out.extend(&section.data);
        let mut put = |field: usize, value: u64| {
            let at = section.header + field;
            headers[at..at + 8].copy_from_slice(&value.to_le_bytes());
        };
        put(entry::OFFSET, start);
        put(entry::SIZE, section.data.len() as u64);
        if let Some((flags, alignment)) = section.compressed {
            put(entry::FLAGS, flags);
            put(entry::ALIGNMENT, alignment);
        }
    }
    if table >= fixed {
        out.resize(out.len().next_multiple_of(8), 0);
        let place = (out.len() as u64).to_le_bytes();
        out[header::SECTIONS..header::SECTIONS + 8].copy_from_slice(&place);
        out.extend(&headers);
    } else {
        out[table..table + size].copy_from_slice(&headers);
    }
    Ok(Some(out))
}

/// Where the part ends that stays as it is, and the sections behind it, in their order there.
fn layout(elf: &Elf, old: &[u8]) -> Option<(usize, Vec<Movable>)> {
    let field = |at: usize, size: usize| number(old, at, size).map(|value| value as usize);
    let table = field(header::SECTIONS, 8)?;
    let at = |index: usize| table + index * SECTION_SIZE;
    old.get(table..at(elf.sections.len()))?;
    let programs = field(header::PROGRAMS, 8)?;
    let count = field(header::PROGRAM_COUNT, 2)?;
    let mut fixed = header::SIZE.max(programs.checked_add(count * header::PROGRAM_SIZE)?);
    for program in 0..count {
        let program = programs + program * header::PROGRAM_SIZE;
        fixed = fixed.max(field(program + 8, 8)?.checked_add(field(program + 32, 8)?)?);
    }
    let number = |index: usize, field: usize| number(old, at(index) + field, 8);
    let mut movable = Vec::new();
    for (index, section) in elf.sections.iter().enumerate() {
        if u64::from(section.kind) == SHT_NOBITS || elf.raw(section).is_empty() {
            continue;
        }
        let (start, flags) = (section.offset as usize, section.flags);
        let end = start.checked_add(elf.raw(section).len())?;
        if flags & SHF_ALLOC != 0 {
            fixed = fixed.max(end);
        } else {
            movable.push((start, end, index, number(index, entry::ALIGNMENT)?));
        }
    }
    old.get(..fixed)?;
    movable.sort_unstable();
    // Sections that share bytes, or reach into what stays, are not taken apart.
    let apart = movable.windows(2).all(|pair| pair[0].1 <= pair[1].0);
    if !apart || movable.iter().any(|section| section.0 < fixed) {
        return None;
    }
    let overlaps = |&(start, end, ..): &(usize, usize, usize, u64)| {
        start < at(elf.sections.len()) && table < end
    };
    if movable.iter().any(overlaps) || (table < fixed && at(elf.sections.len()) > fixed) {
        return None;
    }
    let sections = movable.into_iter().map(|(start, end, index, alignment)| Movable {
        header: index * SECTION_SIZE,
        alignment,
        data: old[start..end].to_vec(),
        compressed: Some((elf.sections[index].flags, alignment))
            .filter(|_| elf.sections[index].name.starts_with(".debug_")),
    });
    Some((fixed, sections.collect()))
}

/// Compresses a debug section, if that makes it smaller and it is not compressed yet.
fn compressed(section: &mut Movable) -> Result<(), Fault> {
    let Some((flags, alignment)) = section.compressed.filter(|(f, _)| f & SHF_COMPRESSED == 0)
    else {
        return Ok(());
    };
    let mut out = ELFCOMPRESS_ZLIB.to_le_bytes().to_vec();
    out.extend([0; 4]);
    out.extend((section.data.len() as u64).to_le_bytes());
    out.extend(alignment.to_le_bytes());
    let mut encoder = flate2::write::ZlibEncoder::new(&mut out, flate2::Compression::best());
    encoder.write_all(&section.data).and_then(|()| encoder.finish().map(|_| ())).map_err(
        |error| {
            let what = format!("a section cannot be compressed: {error}");
            Fault::new(0, Problem::Malformed(what.into()))
        },
    )?;
    if out.len() < section.data.len() {
        section.data = out;
        section.alignment = COMPRESSED_ALIGNMENT;
        section.compressed = Some((flags | SHF_COMPRESSED, COMPRESSED_ALIGNMENT));
    }
    Ok(())
}
