//! Clang's offload bundles, plain and compressed (`CCOB`).

use super::bytes::{Bytes, Cursor};
use super::error::{Fault, Problem};
use super::inflate::{Allowance, Compression};

pub(super) const PLAIN: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
pub(super) const COMPRESSED: &[u8] = b"CCOB";

/// The most entries that a bundle may have.
const MOST_ENTRIES: u64 = 1 << 16;

/// One entry of a bundle.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where its data is, in bytes from the start of the bundle, decompressed.
    pub(super) range: std::ops::Range<u64>,
    /// Where the list of entries says so.
    pub(super) listed: u64,
    /// What it is for, such as `hipv4-amdgcn-amd-amdhsa--gfx942`.
    pub id: String,
    /// Its data.
    pub data: Bytes,
}

/// A bundle and how many bytes of the file it takes.
#[derive(Debug)]
pub struct Bundle {
    /// The entries that have data.
    pub entries: Vec<Entry>,
    /// Where the bundle ends, in bytes from its start.
    pub end: u64,
}

/// Whether data starts as a bundle does.
pub fn is_bundle(data: &[u8]) -> bool {
    data.starts_with(PLAIN) || data.starts_with(COMPRESSED)
}

/// Reads the bundle that `data` starts with.
///
/// # Errors
/// The bundle is cut off or damaged, its entries overlap, or it takes too much to decompress.
pub fn read(data: &Bytes, allowance: &mut Allowance) -> Result<Bundle, Fault> {
    if !data.starts_with(COMPRESSED) {
        return read_plain(data);
    }
    let (inner, end) = decompress(data, allowance)?;
    if !inner.starts_with(PLAIN) {
        return Err(Fault::malformed(0, "the compressed bundle holds no offload bundle"));
    }
    Ok(Bundle { end, ..read_plain(&inner.into())? })
}

fn read_plain(data: &Bytes) -> Result<Bundle, Fault> {
    let mut cursor = Cursor::new(data);
    let cut = |at: u64| Fault::new(at, Problem::EndsEarly("the bundle's list of entries".into()));
    cursor.take(PLAIN.len() as u64).ok_or_else(|| cut(0))?;
    let count = cursor.u64().ok_or_else(|| cut(PLAIN.len() as u64))?;
    if count > MOST_ENTRIES {
        return Err(Fault::malformed(
            PLAIN.len() as u64,
            format!("a bundle of {count} entries is no bundle"),
        ));
    }
    let mut entries = Vec::new();
    let mut places = Vec::new();
    for _ in 0..count {
        let at = cursor.offset();
        let (place, id) = read_entry(&mut cursor).ok_or_else(|| cut(at))?;
        let size = place.end.saturating_sub(place.start);
        let entry = data
            .slice(place.clone())
            .ok_or_else(|| Fault::out_of_bounds(at, format!("the entry '{id}'"), size))?;
        if size > 0 {
            places.push((place.clone(), id.clone()));
            entries.push(Entry { range: place, listed: at, id, data: entry });
        }
    }
    check_overlap(&mut places, cursor.offset())?;
    let end = places.last().map_or(0, |(place, _)| place.end).max(cursor.offset());
    Ok(Bundle { entries, end })
}

fn read_entry(cursor: &mut Cursor<'_>) -> Option<(std::ops::Range<u64>, String)> {
    let start = cursor.u64()?;
    let size = cursor.u64()?;
    let length = cursor.u64()?;
    let id = String::from_utf8_lossy(cursor.take(length)?).into_owned();
    Some((start..start.saturating_add(size), id))
}

/// Refuses entries that share bytes with each other or with the list. Sorts them by place.
fn check_overlap(
    places: &mut [(std::ops::Range<u64>, String)],
    list_end: u64,
) -> Result<(), Fault> {
    places.sort_by_key(|(place, _)| place.start);
    let mut end = (list_end, "the list of entries");
    for (place, id) in places.iter() {
        if place.start < end.0 {
            let what = format!("the entry '{id}' overlaps {}", end.1);
            return Err(Fault::malformed(place.start, what));
        }
        end = (place.end, id);
    }
    Ok(())
}

pub(super) struct Packed {
    pub(super) compression: Compression,
    /// The whole bundle's size with its header; version 1 does not say.
    file_size: Option<u64>,
    size: u64,
    header: u64,
}

/// The decompressed bundle, and where the compressed one ends.
pub(super) fn decompress(data: &Bytes, allowance: &mut Allowance) -> Result<(Vec<u8>, u64), Fault> {
    let packed = read_header(data)?;
    let end = packed.file_size.unwrap_or(data.len() as u64);
    let body = data
        .slice(packed.header..end)
        .ok_or_else(|| Fault::out_of_bounds(0, "the compressed bundle", end))?;
    let inner = allowance
        .inflate(packed.compression, &body, packed.size)
        .map_err(|fault| Fault { offset: fault.offset + packed.header, ..fault })?;
    Ok((inner, end))
}

pub(super) fn read_header(data: &[u8]) -> Result<Packed, Fault> {
    let mut cursor = Cursor::new(data);
    let cut = || {
        Fault::new(data.len() as u64, Problem::EndsEarly("the compressed bundle's header".into()))
    };
    cursor.take(COMPRESSED.len() as u64).ok_or_else(cut)?;
    let version = cursor.u16().ok_or_else(cut)?;
    let method = cursor.u16().ok_or_else(cut)?;
    let (file_size, size) = match version {
        1 => (None, cursor.u32().map(u64::from)),
        2 => (Some(cursor.u32().map(u64::from).ok_or_else(cut)?), cursor.u32().map(u64::from)),
        3 => (Some(cursor.u64().ok_or_else(cut)?), cursor.u64()),
        _ => {
            let what = format!("compressed bundles of version {version}: versions 1 to 3 are read");
            return Err(Fault::new(4, Problem::Unsupported(what.into())));
        }
    };
    let size = size.ok_or_else(cut)?;
    let _hash = cursor.u64().ok_or_else(cut)?;
    let compression = match method {
        0 => Compression::Zlib,
        1 => Compression::Zstd,
        _ => return Err(Fault::malformed(6, "the compression is neither zlib nor zstd")),
    };
    Ok(Packed { compression, file_size, size, header: cursor.offset() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let list: usize = entries.iter().map(|(id, _)| 24 + id.len()).sum();
        let mut at = PLAIN.len() + 8 + list;
        let mut bytes = PLAIN.to_vec();
        bytes.extend((entries.len() as u64).to_le_bytes());
        for (id, data) in entries {
            for number in [at, data.len(), id.len()] {
                bytes.extend((number as u64).to_le_bytes());
            }
            bytes.extend(id.bytes());
            at += data.len();
        }
        entries.iter().for_each(|(_, data)| bytes.extend(*data));
        bytes
    }

    fn packed(version: u16, method: u16, inner: &[u8], claimed: u64) -> Vec<u8> {
        use std::io::Write;
        let body = match method {
            0 => {
                let level = flate2::Compression::fast();
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
                encoder.write_all(inner).unwrap();
                encoder.finish().unwrap()
            }
            _ => zstd::encode_all(inner, 3).unwrap(),
        };
        let mut bytes = COMPRESSED.to_vec();
        bytes.extend(version.to_le_bytes());
        bytes.extend(method.to_le_bytes());
        match version {
            1 => bytes.extend((claimed as u32).to_le_bytes()),
            2 => {
                bytes.extend((body.len() as u32 + 24).to_le_bytes());
                bytes.extend((claimed as u32).to_le_bytes());
            }
            _ => {
                bytes.extend((body.len() as u64 + 32).to_le_bytes());
                bytes.extend(claimed.to_le_bytes());
            }
        }
        bytes.extend([0; 8]);
        bytes.extend(body);
        bytes
    }

    fn read_all(bytes: Vec<u8>) -> Result<Bundle, Fault> {
        read(&bytes.into(), &mut Allowance::default())
    }

    #[test]
    fn entries_come_out_of_every_kind_of_bundle() {
        let inner = plain(&[("host", b""), ("gfx942", b"code"), ("gfx950", b"other")]);
        let mut kinds = vec![inner.clone()];
        for version in 1..=3 {
            kinds.extend([0, 1].map(|method| packed(version, method, &inner, inner.len() as u64)));
        }
        for bytes in kinds {
            let size = bytes.len() as u64;
            let bundle = read_all(bytes).unwrap();
            let entries: Vec<_> =
                bundle.entries.iter().map(|entry| (&*entry.id, entry.data.to_vec())).collect();
            assert_eq!(entries, [("gfx942", b"code".to_vec()), ("gfx950", b"other".to_vec())]);
            assert_eq!(bundle.end, size);
        }
    }

    #[test]
    fn a_bundle_cut_anywhere_is_an_error() {
        let inner = plain(&[("gfx942", b"code")]);
        for bytes in [inner.clone(), packed(2, 0, &inner, inner.len() as u64)] {
            for end in 0..bytes.len() {
                assert!(read_all(bytes[..end].to_vec()).is_err(), "{end} of {}", bytes.len());
            }
        }
    }

    #[test]
    fn overlapping_entries_are_refused() {
        let mut bytes = plain(&[("a", b"code"), ("b", b"code")]);
        let first = PLAIN.len() + 8;
        let place: [u8; 8] = bytes[first..first + 8].try_into().unwrap();
        bytes[first + 25..first + 33].copy_from_slice(&place);
        let fault = read_all(bytes).unwrap_err();
        assert!(fault.to_string().ends_with("the entry 'b' overlaps a"), "{fault}");
    }

    #[test]
    fn a_bomb_is_refused_with_the_cap() {
        let inner = plain(&[("gfx942", &[0; 1000])]);
        let mut allowance = Allowance::of(500);
        let bytes = packed(3, 1, &inner, inner.len() as u64);
        let fault = read(&bytes.into(), &mut allowance).unwrap_err();
        assert!(fault.to_string().contains("more than 500 bytes"), "{fault}");
        for claimed in [0, 10, u64::MAX] {
            assert!(read_all(packed(3, 1, &inner, claimed)).is_err());
        }
    }
}
