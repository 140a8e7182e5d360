//! Files in, code objects out: ELF, offload bundles, fat binaries and MLIR.

use super::bundle;
use super::bytes::Bytes;
use super::elf::{self, Elf};
use super::embedded;
use super::error::{Fault, ObjectError, Problem};
use super::inflate::Allowance;

/// A code object and where it was found.
#[derive(Debug)]
pub struct Contained {
    /// The file's name, and inside a container the place in it.
    pub label: String,
    /// The id of the bundle entry, or the name of the `gpu.binary`, that holds it.
    pub entry: Option<String>,
    /// The code object.
    pub elf: Elf,
}

/// What is left to read: the fault names a place in the innermost file.
struct Reader {
    allowance: Allowance,
    found: Vec<Contained>,
}

/// Every AMDGPU code object in a file, in the order of the file.
///
/// `label` is the file's name; errors and [`Contained::label`] start with it.
///
/// # Errors
/// The file is of no known kind, is damaged, or holds no AMDGPU code object.
pub fn read(label: &str, data: Vec<u8>) -> Result<Vec<Contained>, ObjectError> {
    read_with(label, data, Allowance::default())
}

/// Like [`read`], with another cap on what may be decompressed.
///
/// # Errors
/// As [`read`].
pub fn read_with(
    label: &str,
    data: Vec<u8>,
    allowance: Allowance,
) -> Result<Vec<Contained>, ObjectError> {
    let mut reader = Reader { allowance, found: Vec::new() };
    reader.read(label, None, &data.into())?;
    if reader.found.is_empty() {
        return Err(Fault::new(0, Problem::NothingInside).of(label));
    }
    Ok(reader.found)
}

impl Reader {
    fn read(&mut self, label: &str, entry: Option<&str>, data: &Bytes) -> Result<(), ObjectError> {
        if elf::is_elf(data) {
            self.read_elf(label, entry, data)
        } else if bundle::is_bundle(data) {
            self.read_bundle(label, data).map(|_| ())
        } else if embedded::is_module(data) {
            self.read_module(label, data)
        } else {
            Err(Fault::new(0, Problem::NotRecognised).of(label))
        }
    }

    fn read_elf(
        &mut self,
        label: &str,
        entry: Option<&str>,
        data: &Bytes,
    ) -> Result<(), ObjectError> {
        let elf = Elf::parse(data.clone()).map_err(|fault| fault.of(label))?;
        if elf.is_amdgpu() {
            let entry = entry.map(str::to_owned);
            self.found.push(Contained { label: label.into(), entry, elf });
            return Ok(());
        }
        let mut fat = elf.sections.iter().filter(|s| s.name.starts_with(".hip_fatbin")).peekable();
        fat.peek().ok_or_else(|| Fault::new(18, Problem::NotDeviceCode(elf.machine)).of(label))?;
        fat.filter(|section| &*section.name != ".hip_fatbin_segment")
            .try_for_each(|section| self.read_fat_binary(label, data, section.offset, section.size))
    }

    /// The bundles of a fat binary, with padding between them.
    fn read_fat_binary(
        &mut self,
        label: &str,
        file: &Bytes,
        offset: u64,
        size: u64,
    ) -> Result<(), ObjectError> {
        let outside = || Fault::out_of_bounds(offset, "the fat binary", size).of(label);
        let data = file.slice(offset..offset.saturating_add(size)).ok_or_else(outside)?;
        let mut at = 0;
        while let Some(padding) = data[at as usize..].iter().position(|&byte| byte != 0) {
            at += padding as u64;
            let rest = data.slice(at..size).ok_or_else(outside)?;
            let place = format!("{label}, .hip_fatbin at offset {:#x}", offset + at);
            at += if bundle::is_bundle(&rest) {
                self.read_bundle(&place, &rest)?
            } else if elf::is_elf(&rest) {
                let end = elf::extent(&rest).unwrap_or(size);
                let part = rest.slice(0..end).ok_or_else(outside)?;
                self.read_elf(&place, None, &part)?;
                end.max(1)
            } else {
                let what = "neither an offload bundle nor ELF is in the fat binary here";
                return Err(Fault::malformed(offset + at, what).of(label));
            };
        }
        Ok(())
    }

    /// Reads a bundle, and tells how many bytes it takes.
    fn read_bundle(&mut self, label: &str, data: &Bytes) -> Result<u64, ObjectError> {
        let bundle = bundle::read(data, &mut self.allowance).map_err(|fault| fault.of(label))?;
        for entry in bundle.entries {
            if !entry.id.starts_with("host") && elf::is_elf(&entry.data) {
                let label = format!("{label}, entry {}", entry.id);
                self.read_elf(&label, Some(&entry.id), &entry.data)?;
            }
        }
        Ok(bundle.end)
    }

    fn read_module(&mut self, label: &str, data: &Bytes) -> Result<(), ObjectError> {
        let parts = embedded::read(data).map_err(|fault| fault.of(label))?;
        for part in parts {
            let place = match &part.name {
                Some(name) => format!("{label}, gpu.binary @{name}"),
                None => format!("{label}, code object at offset {:#x}", part.offset),
            };
            self.read(&place, part.name.as_deref(), &part.data)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(data: &[u8]) -> Problem {
        read("k", data.to_vec()).unwrap_err().fault.problem
    }

    #[test]
    fn what_is_no_code_object_is_said() {
        assert_eq!(problem(b""), Problem::NotRecognised);
        assert_eq!(problem(b"hello"), Problem::NotRecognised);
        assert_eq!(problem(b"gpu.binary @k []"), Problem::NothingInside);
        assert!(matches!(problem(b"\x7fELF"), Problem::EndsEarly(_)));
        assert!(matches!(problem(b"CCOB"), Problem::EndsEarly(_)));
    }
}
