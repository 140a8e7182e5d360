//! What the instructions that wait for the pipeline keep apart.
//!
//! `s_nop`, `s_wait_alu` and `s_waitcnt_depctr` stand between a producer and a consumer that
//! the hardware does not keep apart by itself; they name neither, so both are found by their
//! registers. `s_delay_alu` names its producers by their distance.

use serde::Serialize;

use super::Text;
use super::access::{Access, immediate};
use crate::leaf::{Class, class_of_isa};

/// An instruction that only waits for the pipeline.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Nop {
    /// The instruction.
    pub at: usize,
    /// What it keeps apart; empty where nothing within the hazard window depends on something.
    pub pairs: Vec<Pair>,
}

/// A producer and a consumer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// The instruction that must have come far enough.
    pub producer: usize,
    /// The instruction that needs it.
    pub consumer: usize,
    /// How they depend on each other.
    pub by: Dependence,
}

/// How a consumer depends on a producer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Dependence {
    /// It reads a result of a matrix instruction.
    Matrix,
    /// It reads another result.
    Result,
    /// It writes what the producer writes.
    Overwrites,
    /// It writes what the producer reads.
    Source,
    /// The instruction says so.
    Named,
}

/// The longest wait that a matrix instruction can ask for, in wait states.
const MATRIX_WINDOW: u32 = 20;
/// The longest that another instruction can ask for.
const WINDOW: u32 = 6;
/// How far back `s_wait_alu` and `s_waitcnt_depctr` are taken to look, in instructions.
const COUNTER_WINDOW: u32 = 64;
/// How far behind an `s_nop` its consumer can be.
const CONSUMERS: usize = 4;

/// Finds what each nop keeps apart.
pub(super) fn find(code: &[Text<'_>], accesses: &[Access]) -> Vec<Nop> {
    let finder = Finder { code, accesses };
    let pairs = |at: usize| match code[at].mnemonic {
        "s_nop" => Some(finder.around(at, MATRIX_WINDOW, WINDOW)),
        "s_wait_alu" | "s_waitcnt_depctr" => {
            Some(finder.around(at, COUNTER_WINDOW, COUNTER_WINDOW))
        }
        "s_delay_alu" => Some(finder.named(at)),
        _ => None,
    };
    let nops = (0..code.len()).filter_map(|at| Some(Nop { at, pairs: pairs(at)? }));
    nops.collect()
}

struct Finder<'a> {
    code: &'a [Text<'a>],
    accesses: &'a [Access],
}

impl Finder<'_> {
    /// The pair around a nop: its nearest consumer that depends on a producer in the window.
    fn around(&self, nop: usize, matrix: u32, window: u32) -> Vec<Pair> {
        let behind = (nop + 1..self.code.len()).take_while(|&at| !self.ends_run(at - 1));
        let consumers = behind.filter(|&at| !is_filler(self.code[at].mnemonic)).take(CONSUMERS);
        let pair = consumers
            .scan(0, |between, at| Some((std::mem::replace(between, *between + 1), at)))
            .find_map(|(between, at)| self.producer(nop, at, between, matrix, window));
        pair.into_iter().collect()
    }

    /// The strongest dependence of a consumer on an instruction in front of the nop, and of
    /// those the nearest.
    fn producer(
        &self,
        nop: usize,
        consumer: usize,
        between: u32,
        matrix: u32,
        window: u32,
    ) -> Option<Pair> {
        let mut states = between + self.states(nop);
        let mut best: Option<Pair> = None;
        for producer in (0..nop).rev().take_while(|&at| !self.ends_run(at)) {
            if states > matrix {
                break;
            }
            if let Some(by) = self.dependence(producer, consumer)
                && (is_matrix(&self.code[producer]) || states <= window)
                && best.is_none_or(|best| rank(by) < rank(best.by))
            {
                best = Some(Pair { producer, consumer, by });
            }
            states += self.states(producer);
        }
        best
    }

    fn dependence(&self, producer: usize, consumer: usize) -> Option<Dependence> {
        let (first, second) = (&self.accesses[producer], &self.accesses[consumer]);
        if second.reads_result_of(first) {
            let matrix = is_matrix(&self.code[producer]);
            Some(if matrix { Dependence::Matrix } else { Dependence::Result })
        } else if second.writes_result_of(first) {
            Some(Dependence::Overwrites)
        } else if second.writes_source_of(first) {
            Some(Dependence::Source)
        } else {
            None
        }
    }

    /// How many wait states an instruction takes at least.
    fn states(&self, at: usize) -> u32 {
        let text = &self.code[at];
        match text.mnemonic {
            "s_nop" => immediate(text).unwrap_or(0).saturating_add(1),
            _ => 1,
        }
    }

    /// Whether control never goes on from an instruction to the next.
    fn ends_run(&self, at: usize) -> bool {
        let mnemonic = self.code[at].mnemonic;
        ["s_branch", "s_endpgm", "s_setpc", "s_set_pc"].iter().any(|end| mnemonic.starts_with(end))
    }

    /// The producers that `s_delay_alu` names, and the instructions that it delays.
    fn named(&self, at: usize) -> Vec<Pair> {
        let mut pairs = Vec::new();
        let mut consumer = at + 1;
        for part in self.code[at].operands.split('|').map(str::trim) {
            let Some((field, value)) = part.strip_suffix(')').and_then(|p| p.split_once('('))
            else {
                continue;
            };
            match field {
                "instskip" => consumer = at + 1 + skipped(value),
                _ if consumer < self.code.len() => {
                    let producer = self.named_producer(consumer, value);
                    let by = Dependence::Named;
                    pairs.extend(producer.map(|producer| Pair { producer, consumer, by }));
                }
                _ => {}
            }
        }
        pairs
    }

    /// The instruction of a kind, such as `VALU_DEP_2`, that many back from the consumer.
    fn named_producer(&self, consumer: usize, name: &str) -> Option<usize> {
        let (kind, distance) = name.rsplit_once('_')?;
        let distance: usize = distance.parse().ok()?;
        let is_kind: fn(&str) -> bool = match kind {
            "VALU_DEP" => |mnemonic| mnemonic.starts_with("v_"),
            "TRANS32_DEP" => is_transcendental,
            "SALU_CYCLE" => |mnemonic| mnemonic.starts_with("s_") && !is_filler(mnemonic),
            _ => return None,
        };
        let distance = if kind == "SALU_CYCLE" { 1 } else { distance };
        let front = (0..consumer).rev().take_while(|&at| !self.ends_run(at));
        front.filter(|&at| is_kind(self.code[at].mnemonic)).nth(distance.checked_sub(1)?)
    }
}

fn rank(by: Dependence) -> u8 {
    by as u8
}

fn is_matrix(text: &Text<'_>) -> bool {
    text.mnemonic.starts_with("v_") && class_of_isa(text.mnemonic, text.operands) == Class::Mfma
}

/// Instructions that neither produce nor consume.
fn is_filler(mnemonic: &str) -> bool {
    matches!(mnemonic, "s_nop" | "s_delay_alu" | "s_clause" | "s_setprio" | "s_set_vgpr_msb")
        || mnemonic.starts_with("s_wait")
}

fn is_transcendental(mnemonic: &str) -> bool {
    let stem = mnemonic.strip_prefix("v_s_").or(mnemonic.strip_prefix("v_"));
    let kinds = ["exp_", "log_", "rcp_", "rsq_", "sqrt_", "sin_", "cos_", "tanh_"];
    stem.is_some_and(|stem| kinds.iter().any(|kind| stem.starts_with(kind)))
}

/// How many instructions lie between the two that an `s_delay_alu` delays.
fn skipped(value: &str) -> usize {
    match value {
        "SAME" => 0,
        "NEXT" => 1,
        _ => value.strip_prefix("SKIP_").and_then(|n| n.parse::<usize>().ok()).map_or(1, |n| n + 1),
    }
}
