//! Kernels and functions: where their code is, from symbols and kernel descriptors.

use std::ops::Range;

use super::elf::{Elf, Section, Symbol, SymbolKind};
use super::place::Vaddr;

/// A piece of code with a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// The symbol; for code without symbols the section.
    pub name: String,
    /// Whether it is a kernel.
    pub kind: FunctionKind,
    /// Its addresses, as its symbol says.
    pub range: Range<Vaddr>,
    /// Where the next function, or the section's end, is: fill behind the code ends there.
    pub limit: Vaddr,
    /// The kernel's descriptor, when it has one.
    pub descriptor: Option<Descriptor>,
    section: usize,
}

/// What a function is for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FunctionKind {
    /// A kernel: it has a descriptor, or nothing says what it is and nothing else is there.
    Kernel,
    /// A device function that kernels call.
    Device,
}

/// What matters here of a kernel descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Descriptor {
    /// How many words of kernel arguments the hardware loads before the kernel starts.
    pub preloaded_words: u8,
    /// Whether waves have 32 lanes.
    pub wave32: bool,
}

/// The size of a kernel descriptor, in bytes.
const DESCRIPTOR_SIZE: usize = 64;

impl Descriptor {
    /// Reads the 64 bytes of a descriptor.
    fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; DESCRIPTOR_SIZE] = bytes.get(..DESCRIPTOR_SIZE)?.try_into().ok()?;
        let properties = u16::from_le_bytes([bytes[56], bytes[57]]);
        let preload = u16::from_le_bytes([bytes[58], bytes[59]]);
        Some(Descriptor {
            preloaded_words: (preload & 0x7f) as u8,
            wave32: properties & (1 << 10) != 0,
        })
    }
}

/// Every function of a code object, by address.
pub fn functions(elf: &Elf) -> Vec<Function> {
    let mut found = Vec::new();
    for (index, section) in elf.sections.iter().enumerate() {
        if section.is_code() {
            found.extend(functions_in(elf, index, section));
        }
    }
    let kernels = found.iter().any(|function| function.kind == FunctionKind::Kernel);
    if !kernels {
        found.iter_mut().for_each(|function| function.kind = FunctionKind::Kernel);
    }
    found.sort_by_key(|function| function.range.start);
    found
}

fn functions_in(elf: &Elf, index: usize, section: &Section) -> Vec<Function> {
    let end = section.address.plus(section.size);
    let inside = |symbol: &&Symbol| {
        symbol.section == index && (section.address..end).contains(&symbol.address)
    };
    let named = |symbol: &&Symbol| {
        let labelled = symbol.kind == SymbolKind::Label && descriptor(elf, &symbol.name).is_some();
        symbol.kind == SymbolKind::Function || labelled
    };
    let mut symbols: Vec<&Symbol> = elf.symbols.iter().filter(inside).filter(named).collect();
    let is_device = |symbol: &&Symbol| descriptor(elf, &symbol.name).is_none();
    symbols.sort_by_key(|symbol| (symbol.address, is_device(symbol)));
    symbols.dedup_by_key(|symbol| symbol.address);
    if symbols.is_empty() && section.size > 0 {
        return vec![Function {
            name: section.name.to_string(),
            kind: FunctionKind::Device,
            range: section.address..end,
            limit: end,
            descriptor: None,
            section: index,
        }];
    }
    let limits = symbols.iter().skip(1).map(|next| next.address).chain([end]);
    let limits: Vec<Vaddr> = limits.collect();
    symbols.iter().zip(limits).map(|(s, limit)| function(elf, index, s, limit)).collect()
}

fn function(elf: &Elf, section: usize, symbol: &Symbol, limit: Vaddr) -> Function {
    let end = match symbol.size {
        0 => limit,
        size => symbol.address.plus(size).min(limit),
    };
    let descriptor = descriptor(elf, &symbol.name);
    let kind = if descriptor.is_some() { FunctionKind::Kernel } else { FunctionKind::Device };
    let name = symbol.name.to_string();
    Function { name, kind, range: symbol.address..end, limit, descriptor, section }
}

/// The descriptor of a kernel: the data that `NAME.kd` names.
fn descriptor(elf: &Elf, name: &str) -> Option<Descriptor> {
    let symbol = elf.symbols.iter().find(|symbol| {
        symbol.kind != SymbolKind::Function && symbol.name.strip_suffix(".kd") == Some(name)
    })?;
    let section = elf.sections.get(symbol.section)?;
    let at = usize::try_from(symbol.address.bytes_from(section.address)).ok()?;
    Descriptor::read(elf.raw(section).get(at..)?)
}

impl Function {
    /// The bytes of the function and of the fill behind it.
    pub fn code<'e>(&self, elf: &'e Elf) -> &'e [u8] {
        let Some(section) = elf.sections.get(self.section) else { return &[] };
        let at = |address: Vaddr| address.bytes_from(section.address) as usize;
        elf.raw(section).get(at(self.range.start)..at(self.limit)).unwrap_or_default()
    }

    #[cfg(test)]
    pub(super) fn for_tests(range: Range<Vaddr>, descriptor: Option<Descriptor>) -> Self {
        let (name, kind) = ("k".into(), FunctionKind::Kernel);
        Function { name, kind, limit: range.end, range, descriptor, section: 0 }
    }

    /// The bytes of the function alone.
    pub fn own_code<'e>(&self, elf: &'e Elf) -> &'e [u8] {
        let size = self.range.end.bytes_from(self.range.start) as usize;
        let code = self.code(elf);
        &code[..size.min(code.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_read() {
        let mut bytes = [0; 64];
        bytes[57] = 4;
        bytes[58] = 0x85;
        let descriptor = Descriptor::read(&bytes).unwrap();
        assert_eq!(descriptor, Descriptor { preloaded_words: 5, wave32: true });
        assert_eq!(Descriptor::read(&bytes[..63]), None);
    }
}
