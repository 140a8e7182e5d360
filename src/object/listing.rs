//! The instructions of a function with what is known of each.

use crate::chain::{ChainId, Chains};
use crate::leaf::{Class, LeafTable};

use super::CodeObject;
use super::disasm::{Disassembler, Instruction, disassemble};
use super::kernel::Function;
use super::place::Vaddr;

/// A function's instructions, in the order of their addresses.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The instructions, and behind them the fill.
    pub instructions: Vec<Located>,
    /// Whether they were disassembled; else they are words of 4 bytes, and classes are unknown.
    pub decoded: bool,
}

/// An instruction with what is known of it.
#[derive(Clone, Debug)]
pub struct Located {
    /// The instruction.
    pub instruction: Instruction,
    /// What it is to the kernel.
    pub role: Role,
    /// Its leaf class; `None` when it was not disassembled.
    pub class: Option<Class>,
    /// Its line and the calls around it; `None` when no line row covers it.
    pub chain: Option<ChainId>,
    /// Whether siteline chose the line.
    pub inferred: bool,
}

/// What an instruction is to the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The kernel's own code.
    Code,
    /// What the backend made for the kernel's entry.
    Prologue,
    /// Fill that never runs.
    Padding,
}

impl Role {
    /// The role's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Role::Code => "code",
            Role::Prologue => "prologue",
            Role::Padding => "padding",
        }
    }
}

/// How instructions are listed.
#[derive(Clone, Copy)]
pub struct Lister<'a> {
    /// What disassembles; without one, instructions are words of 4 bytes.
    pub disassembler: Option<&'a dyn Disassembler>,
    /// Which mnemonics belong to which class.
    pub table: &'a LeafTable,
}

impl Lister<'_> {
    /// Lists the instructions of a function of a code object, with its fill.
    pub fn list(&self, object: &CodeObject, function: &Function, chains: &mut Chains) -> Listing {
        let code = function.code(&object.elf);
        let wave32 = function.descriptor.is_none_or(|descriptor| descriptor.wave32);
        let mut decoder = self
            .disassembler
            .zip(object.elf.target.as_ref())
            .and_then(|(disassembler, target)| disassembler.decoder(target, wave32));
        let decoded = decoder.is_some();
        let mut instructions = disassemble(code, function.range.start, decoder.as_deref_mut());
        let roles = roles(function, code, &instructions);
        instructions.truncate(roles.len());
        let located = instructions.into_iter().zip(roles);
        let instructions = located
            .map(|(instruction, role)| self.locate(object, instruction, role, decoded, chains))
            .collect();
        Listing { instructions, decoded }
    }

    fn locate(
        &self,
        object: &CodeObject,
        instruction: Instruction,
        role: Role,
        decoded: bool,
        chains: &mut Chains,
    ) -> Located {
        let address = instruction.address;
        let debug = object.debug.as_ref();
        let row = debug.and_then(|debug| debug.row_at(address));
        let class = || self.table.isa_class(&instruction.mnemonic, &instruction.operands);
        Located {
            role,
            class: (decoded && instruction.is_decoded()).then(class),
            chain: debug.and_then(|debug| debug.chain_at(address, chains)),
            inferred: row.is_some_and(|row| row.is_inferred()),
            instruction,
        }
    }
}

/// `s_nop 0`, on every chip.
const NOP: u32 = 0xbf80_0000;
/// `s_code_end`, on gfx10 and later.
const CODE_END: u32 = 0xbf9f_0000;
/// `s_endpgm` before gfx11, and from gfx11 on.
const END_PROGRAM: [u32; 2] = [0xbf81_0000, 0xbfb0_0000];
/// `s_branch` before gfx11, without its distance.
const BRANCH: u32 = 0xbf82_0000;
/// The size of the kernarg preload prologue with its fill, in words.
const PRELOAD_WORDS: usize = 64;

fn words(code: &[u8]) -> impl Iterator<Item = u32> + '_ {
    code.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

/// The role of each instruction up to the last that belongs to the function or is fill.
fn roles(function: &Function, code: &[u8], instructions: &[Instruction]) -> Vec<Role> {
    let start = function.range.start;
    let prologue = prologue_end(function, code, instructions);
    let gap = preload_gap(function, code);
    let last = fill_start(function, code);
    let role = |instruction: &Instruction| {
        let at = instruction.address.bytes_from(start);
        if at >= last || gap.as_ref().is_some_and(|gap| gap.contains(&at)) {
            Role::Padding
        } else if at < prologue {
            Role::Prologue
        } else {
            Role::Code
        }
    };
    let end = listed_end(function, code);
    instructions.iter().take_while(|i| i.address < end).map(role).collect()
}

/// Where the fill at the end starts, in bytes from the function's start: behind the last
/// `s_endpgm` when only fill follows it, else where the symbol ends.
fn fill_start(function: &Function, code: &[u8]) -> u64 {
    let own = function.range.end.bytes_from(function.range.start);
    let all: Vec<u32> = words(&code[..code.len().min(own as usize)]).collect();
    let fill = all.iter().rev().take_while(|&&word| word == NOP || word == CODE_END).count();
    let before = all.len() - fill;
    let ends = before.checked_sub(1).is_some_and(|last| END_PROGRAM.contains(&all[last]));
    if ends { before as u64 * 4 } else { own }
}

/// Where the listing ends: the fill between this function and the next one is part of it, other
/// bytes there are not.
fn listed_end(function: &Function, code: &[u8]) -> Vaddr {
    let own = function.range.end.bytes_from(function.range.start) as usize;
    let behind = words(code.get(own..).unwrap_or_default());
    let fill = behind.take_while(|&word| word == NOP || word == CODE_END).count();
    function.range.end.plus(fill as u64 * 4)
}

/// The fill of a kernarg preload prologue, in bytes from the kernel's start. The prologue loads
/// the arguments on firmware that does not preload them, and branches over the fill.
fn preload_gap(function: &Function, code: &[u8]) -> Option<std::ops::Range<u64>> {
    if function.descriptor.is_some_and(|descriptor| descriptor.preloaded_words == 0) {
        return None;
    }
    let head: Vec<u32> = words(code).take(PRELOAD_WORDS).collect();
    let fill = head.iter().rev().take_while(|&&word| word == NOP).count();
    let branch = head.len().checked_sub(fill + 1)?;
    let full = head.len() == PRELOAD_WORDS && head[branch] == BRANCH | fill as u32;
    full.then_some((branch as u64 + 1) * 4..PRELOAD_WORDS as u64 * 4)
}

/// Where the instructions that the backend made for the entry end, in bytes from the start.
fn prologue_end(function: &Function, code: &[u8], instructions: &[Instruction]) -> u64 {
    if let Some(gap) = preload_gap(function, code) {
        return gap.start;
    }
    let sets_mode = |instruction: &Instruction| {
        instruction.mnemonic.starts_with("s_setreg_imm32")
            && instruction.operands.contains("WAVE_MODE")
    };
    let start = function.range.start;
    match instructions.first() {
        Some(first) if function.descriptor.is_some() && sets_mode(first) => {
            first.end().bytes_from(start)
        }
        _ => 0,
    }
}
