//! Files out again: every code object of a file replaced, whatever contains it.
//!
//! What is around a code object stays as it is but for sizes and places. A bundle's entries
//! keep their order and their alignment; a compressed bundle is compressed in the same way. In
//! a host's fat binary, whose place in memory is fixed, a bundle must fit where it was: one that
//! got too big is packed more closely, and if need be its debug sections are compressed.

use std::borrow::Cow;
use std::io::Write as _;

use md5::{Digest as _, Md5};

use super::bundle;
use super::bytes::Bytes;
use super::container::Contained;
use super::elf::{self, Elf};
use super::embedded;
use super::error::{Fault, ObjectError, Problem};
use super::inflate::{Allowance, Compression};
use super::shrink::shrink;
use crate::identity::{self, Extent};

/// The most that entries of a bundle are aligned to.
const PAGE: u64 = 4096;

/// The file with what `new` makes of each code object in it, in the order of the file.
///
/// # Errors
/// As [`read`](super::container::read), what `new` fails with, or a new object has no room.
pub(crate) fn rewrite<E: From<ObjectError>>(
    label: &str,
    data: Vec<u8>,
    new: &mut dyn FnMut(Contained) -> Result<Vec<u8>, E>,
) -> Result<Vec<u8>, E> {
    let mut repacker = Repacker::new(new);
    let out = repacker.file(label, None, &data.into())?;
    match repacker.count {
        0 => Err(Fault::new(0, Problem::NothingInside).of(label).into()),
        _ => Ok(out),
    }
}

struct Repacker<'n, E> {
    allowance: Allowance,
    new: &'n mut dyn FnMut(Contained) -> Result<Vec<u8>, E>,
    count: usize,
    /// Whether everything is to be as small as can be.
    smallest: bool,
}

impl<'n, E: From<ObjectError>> Repacker<'n, E> {
    fn new(new: &'n mut dyn FnMut(Contained) -> Result<Vec<u8>, E>) -> Self {
        Repacker { allowance: Allowance::default(), new, count: 0, smallest: false }
    }

    fn file(&mut self, label: &str, entry: Option<&str>, data: &Bytes) -> Result<Vec<u8>, E> {
        if elf::is_elf(data) {
            self.elf(label, entry, data)
        } else if bundle::is_bundle(data) {
            self.bundle(label, data).map(|(out, _)| out)
        } else if embedded::is_module(data) {
            self.module(label, data)
        } else {
            Err(Fault::new(0, Problem::NotRecognised).of(label).into())
        }
    }

    fn elf(&mut self, label: &str, entry: Option<&str>, data: &Bytes) -> Result<Vec<u8>, E> {
        let elf = Elf::parse(data.clone()).map_err(|fault| fault.of(label))?;
        if elf.is_amdgpu() {
            self.count += 1;
            return (self.new)(Contained {
                label: label.into(),
                entry: entry.map(str::to_owned),
                elf,
            });
        }
        let mut out = data.to_vec();
        let is_fat = |name: &str| name.starts_with(".hip_fatbin") && name != ".hip_fatbin_segment";
        let fat: Vec<_> = elf.sections.iter().filter(|s| is_fat(&s.name)).collect();
        if fat.is_empty() {
            return Err(Fault::new(18, Problem::NotDeviceCode(elf.machine)).of(label).into());
        }
        for section in fat {
            let end = section.offset.saturating_add(section.size);
            let outside =
                || Fault::out_of_bounds(section.offset, "the fat binary", section.size).of(label);
            let data = data.slice(section.offset..end).ok_or_else(outside)?;
            let new = self.fat_binary(label, section.offset, &data)?;
            out[section.offset as usize..end as usize].copy_from_slice(&new);
        }
        Ok(out)
    }

    /// The bundles of a fat binary, each where it was. What follows one up to the next is fill,
    /// which it may grow into.
    fn fat_binary(&mut self, label: &str, offset: u64, data: &Bytes) -> Result<Vec<u8>, E> {
        let outside =
            || Fault::out_of_bounds(offset, "the fat binary", data.len() as u64).of(label);
        let next = |from: usize| {
            let fill = data[from..].iter().position(|&byte| byte != 0);
            fill.map_or(data.len(), |fill| from + fill)
        };
        let mut out = vec![0; data.len()];
        let mut at = next(0);
        while at < data.len() {
            let rest = data.slice(at as u64..data.len() as u64).ok_or_else(outside)?;
            let place = format!("{label}, .hip_fatbin at offset {:#x}", offset + at as u64);
            let (new, size) = if bundle::is_bundle(&rest) {
                self.bundle(&place, &rest)?
            } else if elf::is_elf(&rest) {
                let end = elf::extent(&rest).unwrap_or(rest.len() as u64).max(1);
                let part = rest.slice(0..end).ok_or_else(outside)?;
                (self.elf(&place, None, &part)?, end)
            } else {
                let what = "neither an offload bundle nor ELF is in the fat binary here";
                return Err(Fault::malformed(offset + at as u64, what).of(label).into());
            };
            let room = next(at + size as usize) - at;
            let new = fitted(&place, new, room)?;
            out[at..at + new.len()].copy_from_slice(&new);
            at += room;
        }
        Ok(out)
    }

    /// The new bundle, and the size of the old one.
    fn bundle(&mut self, label: &str, data: &Bytes) -> Result<(Vec<u8>, u64), E> {
        let fault = |fault: Fault| E::from(fault.of(label));
        if !data.starts_with(bundle::COMPRESSED) {
            return self.plain_bundle(label, data);
        }
        let (inner, end) = bundle::decompress(data, &mut self.allowance).map_err(fault)?;
        if !inner.starts_with(bundle::PLAIN) {
            let what = "the compressed bundle holds no offload bundle";
            return Err(fault(Fault::malformed(0, what)));
        }
        let (new, _) = self.plain_bundle(label, &inner.clone().into())?;
        if new == inner && !self.smallest {
            return Ok((data[..end as usize].to_vec(), end));
        }
        let packed = bundle::read_header(data).map_err(fault)?;
        let version = u16::from_le_bytes([data[4], data[5]]);
        let out = compress(&data[..8], version, packed.compression, self.smallest, &new);
        Ok((out.map_err(|what| fault(Fault::new(0, Problem::Unsupported(what.into()))))?, end))
    }

    fn plain_bundle(&mut self, label: &str, data: &Bytes) -> Result<(Vec<u8>, u64), E> {
        let bundle =
            bundle::read(data, &mut self.allowance).map_err(|fault| E::from(fault.of(label)))?;
        let mut entries = bundle.entries;
        entries.sort_by_key(|entry| entry.range.start);
        let first = entries.first().map_or(bundle.end, |entry| entry.range.start);
        let mut out = data[..first as usize].to_vec();
        for entry in &entries {
            let is_code = !entry.id.starts_with("host") && elf::is_elf(&entry.data);
            let new: Cow<'_, [u8]> = if is_code {
                let label = format!("{label}, entry {}", entry.id);
                self.elf(&label, Some(&entry.id), &entry.data)?.into()
            } else {
                Cow::Borrowed(&entry.data)
            };
            let alignment = 1 << entry.range.start.trailing_zeros().min(PAGE.trailing_zeros());
            let start = (out.len() as u64).max(1).next_multiple_of(alignment);
            let start = if self.smallest { start } else { start.max(entry.range.start) };
            out.resize(start as usize, 0);
            out.extend(&*new);
            let listed = entry.listed as usize;
            out[listed..listed + 8].copy_from_slice(&start.to_le_bytes());
            out[listed + 8..listed + 16].copy_from_slice(&(new.len() as u64).to_le_bytes());
        }
        out.resize(out.len().max(if entries.is_empty() { first as usize } else { 0 }), 0);
        Ok((out, bundle.end))
    }

    fn module(&mut self, label: &str, data: &Bytes) -> Result<Vec<u8>, E> {
        let parts = embedded::read(data).map_err(|fault| E::from(fault.of(label)))?;
        let mut out = Vec::with_capacity(data.len() + data.len() / 8);
        let mut done = 0;
        for part in parts {
            let place = match &part.name {
                Some(name) => format!("{label}, gpu.binary @{name}"),
                None => format!("{label}, code object at offset {:#x}", part.offset),
            };
            let start = part.offset as usize;
            out.extend(&data[done..start]);
            done = start + part.size as usize;
            let new = self.file(&place, part.name.as_deref(), &part.data)?;
            if !part.quoted && new.len() as u64 != part.size {
                let what = "a code object in MLIR bytecode cannot get another size: write the \
                            module as text";
                return Err(Fault::new(0, Problem::Unsupported(what.into())).of(place).into());
            }
            if new == *part.data {
                out.extend(&data[start..done]);
            } else if part.quoted {
                quote(&new, &mut out);
            } else {
                out.extend(new);
            }
        }
        out.extend(&data[done..]);
        Ok(out)
    }
}

/// A bundle or code object that fits into a place, made smaller where it has to be.
fn fitted(label: &str, new: Vec<u8>, room: usize) -> Result<Vec<u8>, ObjectError> {
    if new.len() <= room {
        return Ok(new);
    }
    let data = Bytes::from(new);
    let mut least = data.len();
    for compress in [false, true] {
        let mut smaller = |contained: Contained| -> Result<Vec<u8>, ObjectError> {
            let old: &[u8] = contained.elf.data();
            let new =
                shrink(&contained.elf, compress).map_err(|fault| fault.of(contained.label))?;
            let same = |new: &Vec<u8>| identity::compare(old, new, Extent::Loaded) == Ok(None);
            Ok(new.filter(same).unwrap_or_else(|| old.to_vec()))
        };
        let mut repacker = Repacker { smallest: true, ..Repacker::new(&mut smaller) };
        let new = repacker.file(label, None, &data)?;
        if new.len() <= room {
            return Ok(new);
        }
        least = least.min(new.len());
    }
    let what = format!(
        "the refined code takes {least} bytes at the least and has room for {room}: refine it \
         before it is linked into the host's file"
    );
    Err(Fault::new(0, Problem::Unsupported(what.into())).of(label))
}

/// A compressed bundle of a version, whose first 8 bytes are given.
fn compress(
    start: &[u8],
    version: u16,
    compression: Compression,
    smallest: bool,
    inner: &[u8],
) -> Result<Vec<u8>, String> {
    let body = match compression {
        Compression::Zstd => zstd::stream::encode_all(inner, if smallest { 19 } else { 3 }),
        Compression::Zlib => {
            let level = flate2::Compression::new(if smallest { 9 } else { 6 });
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
            encoder.write_all(inner).and_then(|()| encoder.finish())
        }
    };
    let body = body.map_err(|error| format!("the bundle cannot be compressed: {error}"))?;
    let mut out = start.to_vec();
    let header = [0, 20, 24, 32][usize::from(version.min(3))];
    let total = (header + body.len()) as u64;
    let narrow = |size: u64| {
        let size = u32::try_from(size).map(u32::to_le_bytes);
        size.map_err(|_| "a compressed bundle of this version has at most 4 GiB".to_string())
    };
    match version {
        1 => out.extend(narrow(inner.len() as u64)?),
        2 => {
            out.extend(narrow(total)?);
            out.extend(narrow(inner.len() as u64)?);
        }
        _ => {
            out.extend(total.to_le_bytes());
            out.extend((inner.len() as u64).to_le_bytes());
        }
    }
    out.extend(&Md5::digest(inner)[..8]);
    out.extend(body);
    Ok(out)
}

/// Appends bytes as a quoted string of MLIR.
fn quote(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in bytes {
        match byte {
            b'"' => out.extend(b"\\22"),
            b'\\' => out.extend(b"\\\\"),
            0x20..=0x7e => out.push(byte),
            _ => out.extend(format!("\\{byte:02X}").bytes()),
        }
    }
    out.push(b'"');
}
