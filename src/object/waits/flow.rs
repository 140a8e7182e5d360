//! The control flow of a kernel: basic blocks from branches and their targets.

use std::ops::Range;

use smallvec::SmallVec;

use super::Text;
use super::access::Registers;
use super::decode::{Decoded, Flow, number};

/// A stretch of instructions without a branch into or out of its middle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Block {
    /// Its instructions.
    pub(super) range: Range<usize>,
    /// The blocks that may follow.
    pub(super) next: SmallVec<[usize; 2]>,
}

/// The blocks of a piece of code.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(super) struct Graph {
    /// In the order of the code. The first is the entry.
    pub(super) blocks: Vec<Block>,
    /// The block of each instruction.
    pub(super) block_of: Vec<usize>,
    /// The blocks that can be reached, each before those that only follow it.
    pub(super) order: Vec<usize>,
    /// See [`super::Analysis::unknown_branches`].
    pub(super) unknown_branches: Vec<usize>,
}

impl Graph {
    /// Finds the blocks of some code.
    pub(super) fn of(code: &[Text<'_>], decoded: &[Decoded]) -> Self {
        let targets = Targets::of(code, decoded);
        let mut graph = Graph { unknown_branches: targets.unknown.clone(), ..Graph::default() };
        graph.split(code.len(), decoded, &targets);
        graph.link(decoded, &targets);
        graph.order = graph.reverse_postorder();
        graph
    }

    fn split(&mut self, len: usize, decoded: &[Decoded], targets: &Targets) {
        let mut is_start = vec![false; len + 1];
        targets.of.iter().flatten().for_each(|&target| is_start[target] = true);
        for (at, decoded) in decoded.iter().enumerate() {
            if !matches!(decoded.flow, Flow::Next | Flow::Call) {
                is_start[at + 1] = true;
            }
        }
        let mut start = 0;
        for (at, &starts) in is_start.iter().enumerate().skip(1) {
            if at == len || starts {
                let block = self.blocks.len();
                self.blocks.push(Block { range: start..at, next: SmallVec::new() });
                self.block_of.resize(at, block);
                start = at;
            }
        }
    }

    fn link(&mut self, decoded: &[Decoded], targets: &Targets) {
        for block in 0..self.blocks.len() {
            let last = self.blocks[block].range.end - 1;
            let target = targets.of[last].map(|target| self.block_of[target]);
            let behind = Some(block + 1).filter(|&next| next < self.blocks.len());
            let next = match decoded[last].flow {
                Flow::Next | Flow::Call => [behind, None],
                Flow::Branch(_) => [behind, target],
                Flow::Jump(_) | Flow::Indirect => [target, None],
                Flow::End => [None, None],
            };
            self.blocks[block].next.extend(next.into_iter().flatten());
        }
    }

    fn reverse_postorder(&self) -> Vec<usize> {
        let mut order = Vec::with_capacity(self.blocks.len());
        if self.blocks.is_empty() {
            return order;
        }
        let mut seen = vec![false; self.blocks.len()];
        seen[0] = true;
        let mut stack = vec![(0, 0)];
        while let Some((block, followed)) = stack.last_mut() {
            match self.blocks[*block].next.get(*followed) {
                Some(&next) => {
                    *followed += 1;
                    if !std::mem::replace(&mut seen[next], true) {
                        stack.push((next, 0));
                    }
                }
                None => {
                    order.push(*block);
                    stack.pop();
                }
            }
        }
        order.reverse();
        order
    }
}

/// The targets of branches.
struct Targets {
    /// The instruction that each instruction may jump to.
    of: Vec<Option<usize>>,
    unknown: Vec<usize>,
}

impl Targets {
    fn of(code: &[Text<'_>], decoded: &[Decoded]) -> Self {
        let mut targets = Targets { of: vec![None; code.len()], unknown: Vec::new() };
        for (at, decoded) in decoded.iter().enumerate() {
            let address = match decoded.flow {
                Flow::Jump(distance) | Flow::Branch(distance) => distance
                    .map(|words| behind(code, at).wrapping_add_signed(words.wrapping_mul(4))),
                Flow::Indirect => far_target(code, at),
                Flow::Next | Flow::Call | Flow::End => continue,
            };
            let index = address.and_then(|address| index_at(code, address));
            targets.of[at] = index;
            let is_return = decoded.flow == Flow::Indirect && address.is_none();
            if index.is_none() && !is_return {
                targets.unknown.push(at);
            }
        }
        targets
    }
}

/// The address behind an instruction. Branches have one word, with a literal two.
fn behind(code: &[Text<'_>], at: usize) -> u64 {
    let one_word = code[at].address.wrapping_add(4);
    let next = code.get(at + 1).map(|next| next.address);
    next.filter(|next| (1..=12).contains(&next.wrapping_sub(code[at].address))).unwrap_or(one_word)
}

fn index_at(code: &[Text<'_>], address: u64) -> Option<usize> {
    code.binary_search_by_key(&address, |text| text.address).ok()
}

/// How far in front of an indirect jump its address is computed.
const FAR_JUMP_WINDOW: usize = 16;

/// The target of a jump too far for a branch: `s_getpc_b64`, then constants are added to both
/// halves or to the whole, then `s_setpc_b64`.
fn far_target(code: &[Text<'_>], jump: usize) -> Option<u64> {
    let pair = register(code[jump].operands)?;
    let mut offset = 0_u64;
    for at in (jump.saturating_sub(FAR_JUMP_WINDOW)..jump).rev() {
        let text = &code[at];
        let mut operands = text.operands.split(',');
        let Some(written) = operands.next().and_then(register) else { continue };
        if !written.overlaps(pair) {
            continue;
        }
        let added = || number(operands.clone().nth(1)?).map(|added| added as u64);
        match text.mnemonic {
            "s_getpc_b64" | "s_get_pc_i64" => {
                return Some(behind(code, at).wrapping_add(offset));
            }
            "s_add_u32" | "s_add_co_u32" => {
                offset = offset.wrapping_add(added()? & 0xffff_ffff);
            }
            "s_addc_u32" | "s_add_co_ci_u32" => offset = offset.wrapping_add(added()? << 32),
            "s_add_nc_u64" | "s_add_u64" => offset = offset.wrapping_add(added()?),
            _ => return None,
        }
    }
    None
}

fn register(operand: &str) -> Option<Registers> {
    Registers::parse(operand.trim())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::waits::counter::Family;
    use crate::object::waits::decode::decode;

    fn graph(lines: &[&str]) -> Graph {
        let code: Vec<_> =
            lines.iter().enumerate().map(|(at, line)| Text::new(at as u64 * 4, line)).collect();
        let decoded: Vec<_> = code.iter().map(|text| decode(text, Family::Gfx9)).collect();
        Graph::of(&code, &decoded)
    }

    fn next(graph: &Graph) -> Vec<Vec<usize>> {
        graph.blocks.iter().map(|block| block.next.to_vec()).collect()
    }

    #[test]
    fn a_loop_has_a_back_edge() {
        let graph = graph(&["s_nop 0", "s_nop 0", "s_cbranch_scc1 65534", "s_endpgm", "s_nop 0"]);
        let ranges: Vec<_> = graph.blocks.iter().map(|block| block.range.clone()).collect();
        assert_eq!(ranges, [0..1, 1..3, 3..4, 4..5]);
        assert_eq!(next(&graph), [vec![1], vec![2, 1], vec![], vec![]]);
        assert_eq!(graph.order, [0, 1, 2]);
    }

    #[test]
    fn branches_out_of_the_code_are_known_as_such() {
        let graph = graph(&["s_cbranch_scc0 100", "s_branch .L1", "s_setpc_b64 s[30:31]"]);
        assert_eq!(graph.unknown_branches, [0, 1]);
        assert_eq!(next(&graph), [vec![1], vec![], vec![]]);
    }

    #[test]
    fn far_jumps_are_followed() {
        let graph = graph(&[
            "s_getpc_b64 s[4:5]",
            "s_add_u32 s4, s4, 16",
            "s_addc_u32 s5, s5, 0",
            "s_setpc_b64 s[4:5]",
            "s_endpgm",
            "s_endpgm",
        ]);
        assert_eq!(next(&graph)[0], [2]);
        assert!(graph.unknown_branches.is_empty());
    }

    #[test]
    fn no_code_has_no_blocks() {
        assert_eq!(graph(&[]), Graph::default());
    }
}
