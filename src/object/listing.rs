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

/// Where the fill at the end starts, in bytes from the function's start. Code does not fall off
/// its end, so whatever the last instruction is, `s_endpgm` or a branch, fill behind it never
/// runs.
fn fill_start(function: &Function, code: &[u8]) -> u64 {
    let own = function.range.end.bytes_from(function.range.start);
    let all: Vec<u32> = words(&code[..code.len().min(own as usize)]).collect();
    let fill = all.iter().rev().take_while(|word| is_fill(**word)).count();
    if fill == all.len() { own } else { own - fill as u64 * 4 }
}

fn is_fill(word: u32) -> bool {
    word == NOP || word == CODE_END
}

/// Where the listing ends: the fill between this function and the next one is part of it, other
/// bytes there are not.
fn listed_end(function: &Function, code: &[u8]) -> Vaddr {
    let own = function.range.end.bytes_from(function.range.start) as usize;
    let behind = words(code.get(own..).unwrap_or_default());
    let fill = behind.take_while(|word| is_fill(*word)).count();
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
    if function.descriptor.is_none() {
        return 0;
    }
    let mut count = 0;
    while let Some(size) = entry_code(&instructions[count..]) {
        count += size;
    }
    let last = count.checked_sub(1).and_then(|last| instructions.get(last));
    last.map_or(0, |last| last.end().bytes_from(function.range.start))
}

/// How many instructions belong to one of the things that the gfx1250 backend starts a kernel
/// with: setting a mode of the wave, and a prefetch of address 0.
fn entry_code(instructions: &[Instruction]) -> Option<usize> {
    let is = |at: usize, mnemonic: &str, operands: &str| {
        instructions.get(at).is_some_and(|instruction| {
            instruction.mnemonic.starts_with(mnemonic) && instruction.operands.contains(operands)
        })
    };
    if is(0, "s_setreg_imm32_b32", "HW_REG_WAVE_MODE")
        || is(0, "s_setreg_imm32_b32", "HW_REG_WAVE_SCHED_MODE")
    {
        Some(1)
    } else if is(0, "s_mov_b64", "], 0") && is(1, "v_nop", "") && is(2, "global_prefetch_b8", "") {
        Some(3)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::kernel::Descriptor;

    const MOVE: u32 = 0x7e00_0280;
    const END: u32 = 0xbf81_0000;

    fn instructions(texts: &[&str]) -> Vec<Instruction> {
        let place = |(at, text): (usize, &&str)| {
            let (mnemonic, operands) = text.split_once(' ').unwrap_or((text, ""));
            let address = Vaddr(at as u64 * 4);
            Instruction { address, size: 4, mnemonic: mnemonic.into(), operands: operands.into() }
        };
        texts.iter().enumerate().map(place).collect()
    }

    fn kernel(words: &[u32], preloaded_words: u8) -> (Function, Vec<u8>) {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let end = Vaddr(code.len() as u64);
        let descriptor = Some(Descriptor { preloaded_words, wave32: false });
        (Function::for_tests(Vaddr(0)..end, descriptor), code)
    }

    fn roles_of(words: &[u32], preloaded_words: u8) -> Vec<Role> {
        let (function, code) = kernel(words, preloaded_words);
        let texts = vec![".long"; words.len()];
        roles(&function, &code, &instructions(&texts))
    }

    #[test]
    fn fill_behind_the_end_is_padding() {
        use Role::{Code, Padding};
        let branch = BRANCH | 0xfff0;
        assert_eq!(roles_of(&[MOVE, END, NOP, NOP], 0), [Code, Code, Padding, Padding]);
        assert_eq!(roles_of(&[MOVE, branch, CODE_END], 0), [Code, Code, Padding]);
        assert_eq!(roles_of(&[END, NOP, END], 0), [Code; 3]);
        assert_eq!(roles_of(&[NOP, NOP], 0), [Code; 2]);
    }

    #[test]
    fn the_preload_prologue_ends_at_its_branch() {
        let mut words = vec![MOVE, BRANCH | 62];
        words.resize(PRELOAD_WORDS, NOP);
        words.push(END);
        let roles = roles_of(&words, 3);
        assert_eq!(roles[..2], [Role::Prologue; 2]);
        assert_eq!(roles[2..64], [Role::Padding; 62]);
        assert_eq!(roles[64], Role::Code);
        assert_eq!(roles_of(&words, 0), [Role::Code; 65]);
    }

    #[test]
    fn entry_code_of_gfx1250_is_prologue() {
        let entry = instructions(&[
            "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 1",
            "s_mov_b64 s[64:65], 0",
            "v_nop",
            "global_prefetch_b8 v0, s[64:65] scope:SCOPE_SE",
            "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_SCHED_MODE, 0, 2), 2",
            "s_mov_b64 s[2:3], 0",
        ]);
        let (function, code) = kernel(&[0; 6], 0);
        assert_eq!(prologue_end(&function, &code, &entry), 20);
    }
}
