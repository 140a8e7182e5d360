//! Instructions: a disassembler where there is one, else words.
//!
//! LLVM's C disassembler is linked with the feature `llvm`, or found at run time: libLLVM 19
//! and newer, or ROCm's amd_comgr. `SITELINE_DISASSEMBLER` names the library to use instead,
//! or `none`.

use std::path::PathBuf;

use super::chip::Target;
use super::place::Vaddr;
use crate::leaf::{Class, class_of_isa};

mod comgr;
mod llvm;

/// An instruction of a code object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instruction {
    /// Its address.
    pub address: Vaddr,
    /// Its size in bytes.
    pub size: u32,
    /// The mnemonic, as LLVM spells it; `.long` where nothing could be decoded.
    pub mnemonic: Box<str>,
    /// The operands, as LLVM spells them.
    pub operands: Box<str>,
}

/// What stands for a mnemonic where nothing was decoded.
pub const UNDECODED: &str = ".long";

impl Instruction {
    /// The instruction from a disassembler's text.
    fn from_text(address: Vaddr, size: u32, text: &str) -> Self {
        let text = text.trim();
        let (mnemonic, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let operands = operands.trim().into();
        Instruction { address, size, mnemonic: mnemonic.into(), operands }
    }

    /// A word that was not decoded.
    fn word(address: Vaddr, bytes: &[u8]) -> Self {
        let value = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
        let operands = format!("{value:#010x}").into();
        Instruction { address, size: bytes.len() as u32, mnemonic: UNDECODED.into(), operands }
    }

    /// The leaf class.
    pub fn class(&self) -> Class {
        class_of_isa(&self.mnemonic, &self.operands)
    }

    /// Whether the disassembler knew the instruction.
    pub fn is_decoded(&self) -> bool {
        &*self.mnemonic != UNDECODED
    }

    /// The address behind it.
    pub fn end(&self) -> Vaddr {
        self.address.plus(self.size.into())
    }
}

impl std::fmt::Display for Instruction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &*self.operands {
            "" => f.write_str(&self.mnemonic),
            operands => write!(f, "{} {operands}", self.mnemonic),
        }
    }
}

/// Decodes the instructions of one target.
pub trait Decoder {
    /// Decodes the instruction that `code` starts with into `text`, and tells its size in bytes;
    /// `None` for what is no instruction.
    fn decode(&mut self, code: &[u8], address: Vaddr, text: &mut String) -> Option<usize>;
}

/// A library that makes decoders.
pub trait Disassembler {
    /// Which library it is, and its version.
    fn name(&self) -> String;

    /// A decoder for a target; `None` for targets that the library does not know. Before gfx10
    /// all waves have 64 lanes, and `wave32` does not matter.
    fn decoder(&self, target: &Target, wave32: bool) -> Option<Box<dyn Decoder + '_>>;
}

/// The disassembler of this process, or `None` where there is none; looked for once.
pub fn available() -> Option<&'static dyn Disassembler> {
    type Found = Option<Box<dyn Disassembler + Send + Sync>>;
    static FOUND: std::sync::OnceLock<Found> = std::sync::OnceLock::new();
    let found = FOUND.get_or_init(|| match std::env::var_os("SITELINE_DISASSEMBLER") {
        Some(name) if name == "none" => None,
        Some(name) => load(&[name.into()]),
        None => linked().or_else(|| load(&candidates())),
    });
    found.as_deref().map(|found| found as &dyn Disassembler)
}

#[cfg(feature = "llvm")]
fn linked() -> Option<Box<dyn Disassembler + Send + Sync>> {
    Some(Box::new(llvm::Llvm::linked()))
}

#[cfg(not(feature = "llvm"))]
fn linked() -> Option<Box<dyn Disassembler + Send + Sync>> {
    None
}

/// The first of some libraries that can disassemble.
fn load(paths: &[PathBuf]) -> Option<Box<dyn Disassembler + Send + Sync>> {
    paths.iter().find_map(|path| open(path))
}

/// Opens a disassembler library: libLLVM 19 or newer, or amd_comgr. `None` when the file is
/// neither, or cannot be loaded.
pub fn open(path: &std::path::Path) -> Option<Box<dyn Disassembler + Send + Sync>> {
    let is_comgr = path.to_string_lossy().contains("comgr");
    if is_comgr {
        Some(Box::new(comgr::Comgr::open(path)?))
    } else {
        Some(Box::new(llvm::Llvm::open(path)?))
    }
}

/// Where libraries are looked for: the loader's path, then ROCm's folders.
fn candidates() -> Vec<PathBuf> {
    let llvm = (llvm::OLDEST..=llvm::OLDEST + 16).rev().flat_map(|major| {
        [
            format!("libLLVM.so.{major}.1"),
            format!("libLLVM-{major}.so"),
            format!("libLLVM.so.{major}.0git"),
        ]
    });
    let comgr = ["libamd_comgr.so.3", "libamd_comgr.so.2", "libamd_comgr.so"];
    let rocm = std::env::var_os("ROCM_PATH").map_or_else(|| "/opt/rocm".into(), PathBuf::from);
    let in_rocm = comgr.map(|name| rocm.join("lib").join(name));
    llvm.map(PathBuf::from).chain(comgr.map(PathBuf::from)).chain(in_rocm).collect()
}

/// Disassembles code that starts at `start`. Without a decoder every instruction is a word of
/// 4 bytes.
pub fn disassemble(
    code: &[u8],
    start: Vaddr,
    mut decoder: Option<&mut (dyn Decoder + '_)>,
) -> Vec<Instruction> {
    let mut instructions = Vec::new();
    let mut text = String::new();
    let mut at = 0;
    while at < code.len() {
        let rest = &code[at..];
        let address = start.plus(at as u64);
        text.clear();
        let size = decoder.as_mut().and_then(|decoder| decoder.decode(rest, address, &mut text));
        let instruction = match size.filter(|size| (1..=rest.len()).contains(size)) {
            Some(size) => Instruction::from_text(address, size as u32, &text),
            None => Instruction::word(address, &rest[..rest.len().min(4)]),
        };
        at += instruction.size as usize;
        instructions.push(instruction);
    }
    instructions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_split_into_mnemonic_and_operands() {
        let instruction = Instruction::from_text(Vaddr(8), 4, "\tv_mov_b32_e32 v1, 0 ");
        assert_eq!((&*instruction.mnemonic, &*instruction.operands), ("v_mov_b32_e32", "v1, 0"));
        assert_eq!(instruction.to_string(), "v_mov_b32_e32 v1, 0");
        assert_eq!(instruction.end(), Vaddr(12));
        assert_eq!(Instruction::from_text(Vaddr(0), 4, "\ts_endpgm").to_string(), "s_endpgm");
    }

    #[test]
    fn without_a_decoder_code_is_words() {
        let words = disassemble(&[0, 0, 0x80, 0xbf, 1, 2], Vaddr(0x100), None);
        let text: Vec<_> = words.iter().map(|word| (word.address.0, word.to_string())).collect();
        assert_eq!(text, [(0x100, ".long 0xbf800000".into()), (0x104, ".long 0x00000201".into())]);
    }

    #[test]
    fn what_cannot_be_decoded_is_a_word() {
        struct Never;
        impl Decoder for Never {
            fn decode(&mut self, _: &[u8], _: Vaddr, _: &mut String) -> Option<usize> {
                Some(100)
            }
        }
        assert_eq!(disassemble(&[0; 8], Vaddr(0), Some(&mut Never)).len(), 2);
    }
}
