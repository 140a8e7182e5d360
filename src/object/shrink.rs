//! ELF files whose debug sections are packed closely, for places that cannot grow.
//!
//! Debug sections, the names of sections and the table of sections are laid out anew in what the
//! others leave free behind the last loaded byte; so the gaps close that replacing sections
//! leaves. Debug sections can be compressed with zlib, which every reader of compressed sections
//! knows.

use std::io::Write as _;
use std::ops::Range;

use super::elf::Elf;
use super::error::{Fault, Problem};
use super::rewrite::{ALIGNMENT, SECTION_SIZE, SHF_COMPRESSED, entry, header, number};

const SHT_NOBITS: u64 = 8;
const SHF_ALLOC: u64 = 1 << 1;
const ELFCOMPRESS_ZLIB: u32 = 1;
/// What a compressed section is aligned to: its header has numbers of 8 bytes.
const COMPRESSED_ALIGNMENT: u64 = 8;

/// What may be put elsewhere: a section, or the table of sections.
struct Movable {
    /// Where its header is in the table; `None` for the table.
    header: Option<usize>,
    flags: u64,
    alignment: u64,
    data: Vec<u8>,
    compressible: bool,
}

/// What stays and what may be put elsewhere.
struct Layout {
    /// Where the part ends that is loaded, or says what is.
    loaded: usize,
    /// The sections behind it that stay, in order.
    fixed: Vec<Range<usize>>,
    movable: Vec<Movable>,
}

/// The same file with its debug sections packed closely; `None` where its layout does not allow
/// that.
///
/// # Errors
/// A section cannot be compressed.
pub(crate) fn shrink(elf: &Elf, compress: bool) -> Result<Option<Vec<u8>>, Fault> {
    let Some(mut layout) = layout(elf) else { return Ok(None) };
    if compress {
        layout.movable.iter_mut().try_for_each(compressed)?;
    }
    // The largest first, each in the first place with room for it.
    layout.movable.sort_by_key(|part| (std::cmp::Reverse(part.data.len()), part.header));
    Ok(packed(elf.data(), &layout))
}

fn packed(old: &[u8], layout: &Layout) -> Option<Vec<u8>> {
    let mut taken = layout.fixed.clone();
    let mut places = Vec::new();
    for part in &layout.movable {
        let alignment = usize::try_from(part.alignment.max(1)).ok()?;
        let (mut at, mut next) = (layout.loaded.checked_next_multiple_of(alignment)?, 0);
        let end = |at: usize| at.checked_add(part.data.len());
        while let Some(range) = taken.get(next) {
            if end(at)? <= range.start {
                break;
            }
            at = range.end.max(at).checked_next_multiple_of(alignment)?;
            next += 1;
        }
        taken.insert(next, at..end(at)?);
        places.push(at);
    }
    let mut out = old.get(..layout.loaded)?.to_vec();
    out.resize(taken.last()?.end.max(layout.loaded), 0);
    for range in &layout.fixed {
        out.get_mut(range.clone())?.copy_from_slice(old.get(range.clone())?);
    }
    for (part, &at) in layout.movable.iter().zip(&places) {
        out.get_mut(at..at + part.data.len())?.copy_from_slice(&part.data);
    }
    let tables = layout.movable.iter().zip(&places);
    let table = *tables.clone().find(|(part, _)| part.header.is_none())?.1;
    let mut put = |at: usize, value: u64| {
        out.get_mut(at..at + 8).map(|place| place.copy_from_slice(&value.to_le_bytes()))
    };
    put(header::SECTIONS, table as u64)?;
    for (part, &at) in tables {
        let Some(header) = part.header.map(|header| table + header) else { continue };
        put(header + entry::OFFSET, at as u64)?;
        put(header + entry::SIZE, part.data.len() as u64)?;
        put(header + entry::FLAGS, part.flags)?;
        put(header + entry::ALIGNMENT, part.alignment)?;
    }
    Some(out)
}

/// `None` where parts that may move share bytes with others.
fn layout(elf: &Elf) -> Option<Layout> {
    let old: &[u8] = elf.data();
    let field = |at: usize, size: usize| number(old, at, size)?.try_into().ok();
    let table: usize = field(header::SECTIONS, 8)?;
    let names: usize = field(header::NAMES, 2)?;
    let headers = old.get(table..table.checked_add(elf.sections.len() * SECTION_SIZE)?)?;
    let programs: usize = field(header::PROGRAMS, 8)?;
    let count: usize = field(header::PROGRAM_COUNT, 2)?;
    let mut loaded = header::SIZE.max(programs.checked_add(count * header::PROGRAM_SIZE)?);
    for program in (0..count).map(|at| programs + at * header::PROGRAM_SIZE) {
        let (start, size): (usize, usize) = (field(program + 8, 8)?, field(program + 32, 8)?);
        loaded = loaded.max(start.checked_add(size)?);
    }
    let mut fixed = Vec::new();
    let mut movable = vec![Movable {
        header: None,
        flags: 0,
        alignment: ALIGNMENT as u64,
        data: headers.to_vec(),
        compressible: false,
    }];
    let mut all = Vec::from_iter([(table, table + headers.len())]);
    for (index, section) in elf.sections.iter().enumerate() {
        let data = elf.raw(section);
        if u64::from(section.kind) == SHT_NOBITS || data.is_empty() {
            continue;
        }
        let start = usize::try_from(section.offset).ok()?;
        let range = start..start.checked_add(data.len())?;
        if section.flags & SHF_ALLOC != 0 {
            loaded = loaded.max(range.end);
            continue;
        }
        all.push((range.start, range.end));
        let is_debug = section.name.starts_with(".debug_") || section.name.starts_with(".zdebug_");
        if !is_debug && index != names {
            fixed.push(range);
            continue;
        }
        let header = index * SECTION_SIZE;
        movable.push(Movable {
            header: Some(header),
            flags: section.flags,
            alignment: number(headers, header + entry::ALIGNMENT, 8)?,
            data: data.to_vec(),
            compressible: section.name.starts_with(".debug_"),
        });
    }
    all.sort_unstable();
    fixed.sort_unstable_by_key(|range: &Range<usize>| range.start);
    let apart = all.windows(2).all(|pair| pair[0].1 <= pair[1].0);
    let behind = all.iter().all(|(start, _)| *start >= loaded);
    (apart && behind).then_some(Layout { loaded, fixed, movable })
}

/// Compresses a debug section, if that makes it smaller and it is not compressed yet.
fn compressed(section: &mut Movable) -> Result<(), Fault> {
    if !section.compressible || section.flags & SHF_COMPRESSED != 0 {
        return Ok(());
    }
    let mut out = ELFCOMPRESS_ZLIB.to_le_bytes().to_vec();
    out.extend([0; 4]);
    out.extend((section.data.len() as u64).to_le_bytes());
    out.extend(section.alignment.to_le_bytes());
    let mut encoder = flate2::write::ZlibEncoder::new(&mut out, flate2::Compression::best());
    let done = encoder.write_all(&section.data).and_then(|()| encoder.finish().map(|_| ()));
    done.map_err(|error| {
        let what = format!("a section cannot be compressed: {error}");
        Fault::new(0, Problem::Malformed(what.into()))
    })?;
    if out.len() < section.data.len() {
        section.data = out;
        section.alignment = COMPRESSED_ALIGNMENT;
        section.flags |= SHF_COMPRESSED;
    }
    Ok(())
}
