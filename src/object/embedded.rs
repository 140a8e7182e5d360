//! Code objects inside MLIR: the strings of `gpu.binary`, in text or bytecode.
//!
//! No MLIR is needed for that. Text and most bytecode hold the object as a quoted string whose
//! odd bytes are written `\XX`; bytecode may also hold it as it is. Both are found by how a
//! code object or bundle starts.

use super::bundle;
use super::bytes::Bytes;
use super::elf;
use super::error::{Fault, Problem};

/// The first bytes of MLIR bytecode.
const BYTECODE: &[u8] = b"ML\xefR";
/// How an ELF file or a bundle starts inside a quoted string.
const QUOTED: [&[u8]; 3] = [b"\"\\7FELF", b"\"__CLANG_OFFLOAD_BUNDLE__", b"\"CCOB"];

/// What was found in a module.
#[derive(Debug)]
pub struct Embedded {
    /// The name of the `gpu.binary`, where it is text.
    pub name: Option<String>,
    /// The code object or bundle.
    pub data: Bytes,
    /// Where it starts in the module, in bytes.
    pub offset: u64,
    /// How many bytes it takes there.
    pub(super) size: u64,
    /// Whether it is a quoted string.
    pub(super) quoted: bool,
}

/// Whether data could be MLIR that holds code objects.
pub fn is_module(data: &[u8]) -> bool {
    data.starts_with(BYTECODE)
        || find(data, b"gpu.binary").is_some()
        || QUOTED.iter().any(|start| find(data, start).is_some())
}

fn find(data: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut from = 0;
    while let Some(at) = data[from..].iter().position(|&byte| byte == first) {
        if data[from + at..].starts_with(wanted) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}

/// Every code object and bundle in a module, in their order there.
///
/// # Errors
/// A string that does not end, or has a malformed escape.
pub fn read(data: &Bytes) -> Result<Vec<Embedded>, Fault> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < data.len() {
        let rest = &data[at..];
        if QUOTED.iter().any(|start| rest.starts_with(start)) {
            let (bytes, size) = unquote(rest, at as u64)?;
            let name = binary_name(&data[..at]);
            found.push(Embedded {
                name,
                data: bytes.into(),
                offset: at as u64,
                size: size as u64,
                quoted: true,
            });
            at += size;
        } else if elf::is_elf(rest) {
            let size = elf::extent(rest).unwrap_or(rest.len() as u64);
            let end = (at as u64).saturating_add(size);
            let part = data.slice(at as u64..end).ok_or_else(|| {
                Fault::out_of_bounds(at as u64, "the code object in the bytecode", size)
            })?;
            found.push(Embedded { name: None, data: part, offset: at as u64, size, quoted: false });
            at += size.max(1) as usize;
        } else {
            at += 1;
        }
    }
    found.retain(|part| elf::is_elf(&part.data) || bundle::is_bundle(&part.data));
    Ok(found)
}

/// The bytes of the quoted string that `text` starts with, and the string's size in the text.
fn unquote(text: &[u8], offset: u64) -> Result<(Vec<u8>, usize), Fault> {
    let mut bytes = Vec::new();
    let mut at = 1;
    loop {
        let fault = || {
            let what = "the string of a gpu.binary".into();
            Fault::new(offset + at as u64, Problem::EndsEarly(what))
        };
        match *text.get(at).ok_or_else(fault)? {
            b'"' => return Ok((bytes, at + 1)),
            b'\\' => {
                let (byte, size) = unescape(&text[at + 1..]).ok_or_else(fault)?;
                bytes.push(byte);
                at += 1 + size;
            }
            byte => {
                bytes.push(byte);
                at += 1;
            }
        }
    }
}

/// What the escape behind a backslash stands for, and its size.
fn unescape(text: &[u8]) -> Option<(u8, usize)> {
    match *text.first()? {
        b'n' => Some((b'\n', 1)),
        b't' => Some((b'\t', 1)),
        byte @ (b'\\' | b'"') => Some((byte, 1)),
        _ => {
            let digits = std::str::from_utf8(text.get(..2)?).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, 2))
        }
    }
}

/// The name behind the last `gpu.binary @` before a string.
fn binary_name(before: &[u8]) -> Option<String> {
    const OPERATION: &[u8] = b"gpu.binary @";
    let near = &before[before.len().saturating_sub(4096)..];
    let at = near.windows(OPERATION.len()).rposition(|window| window == OPERATION)?;
    let name = near[at + OPERATION.len()..].iter();
    let name: Vec<u8> =
        name.copied().take_while(|b| b.is_ascii_alphanumeric() || b"_$.-".contains(b)).collect();
    String::from_utf8(name).ok().filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<Embedded>, Fault> {
        read(&text.as_bytes().to_vec().into())
    }

    #[test]
    fn strings_are_unescaped_and_named() {
        let found = read_text(
            "gpu.binary @a [#gpu.object<#rocdl.target, \"\\7FELF\\00\\\\\\22x\">]\n\
             gpu.binary @b_1 [#gpu.object<#rocdl.target, bin = \"CCOB\\01\">]",
        )
        .unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].name.as_deref(), Some("a"));
        assert_eq!(&*found[0].data, b"\x7fELF\0\\\"x");
        assert_eq!(found[1].name.as_deref(), Some("b_1"));
        assert_eq!(&*found[1].data, b"CCOB\x01");
    }

    #[test]
    fn a_string_that_does_not_end_is_an_error() {
        for text in ["\"\\7FELF", "\"\\7FELF\\", "\"\\7FELF\\0", "\"\\7FELF\\zz\""] {
            assert!(read_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn other_text_holds_nothing() {
        assert!(!is_module(b"hello"));
        assert!(read_text("module { \"x\"() : () -> () }").unwrap().is_empty());
    }
}
