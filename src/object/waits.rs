//! What waits wait for: the memory operations that a kernel has in flight, from its machine
//! code alone.
//!
//! The hardware counts outstanding operations in a few counters, and a wait names a counter and
//! the count it may fall to. From the instructions' text this module finds the control flow
//! (`flow`), and for every instruction the operations that may be in flight on any path to it,
//! with how many younger ones are behind them (`queue`). That tells which operations a wait
//! drains, and which of them it really waits for: the youngest of those that return in order.
//!
//! Addresses are the code object's own. Instructions are named by their index in the slice that
//! was analysed. The rules and their sources are in `docs/waits.md`.

mod access;
mod check;
mod counter;
mod decode;
mod flow;
mod hazard;
mod need;
mod queue;
pub mod report;
mod solve;

pub use access::{Access, Registers};
pub use check::{Hurry, HurryKind};
pub use counter::{Counter, Family};
pub use hazard::{Dependence, Nop, Pair};
pub use need::{Consumer, Need};
pub use solve::{Drain, Note, Wait};

use decode::Decoded;

pub(in crate::object) use decode::is_call;

/// An instruction as a disassembler prints it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Text<'a> {
    /// The address.
    pub address: u64,
    /// The mnemonic.
    pub mnemonic: &'a str,
    /// The operands and modifiers.
    pub operands: &'a str,
}

impl<'a> Text<'a> {
    /// An instruction from one text, its mnemonic first.
    pub fn new(address: u64, text: &'a str) -> Self {
        let text = text.trim();
        let (mnemonic, operands) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        Text { address, mnemonic, operands: operands.trim() }
    }
}

/// Who starts the code that is analysed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// The hardware: nothing is in flight.
    Kernel,
    /// A caller, which may have anything in flight.
    Function,
}

/// The control flow is too intricate to be followed in reasonable time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "the operations in flight cannot be followed: too many branches meet with too many of them"
)]
pub struct TooComplex;

/// What the waits and nops of a piece of code wait for.
#[derive(Clone, PartialEq, Debug)]
pub struct Analysis {
    /// The chip family whose rules were applied.
    pub family: Family,
    /// The waits for memory operations, in the order of the code.
    pub waits: Vec<Wait>,
    /// The instructions that only wait for the pipeline, in the order of the code.
    pub nops: Vec<Nop>,
    /// Instructions that touch a register which an operation in flight still needs.
    pub hurries: Vec<Hurry>,
    /// Branches whose target is not in the code, or not known; they are taken to leave it.
    pub unknown_branches: Vec<usize>,
}

/// Analyses the instructions of one kernel or function, in the order of their addresses.
///
/// # Errors
/// The control flow is too intricate.
pub fn analyse(code: &[Text<'_>], family: Family, entry: Entry) -> Result<Analysis, TooComplex> {
    let decoded: Vec<Decoded> = code.iter().map(|text| decode::decode(text, family)).collect();
    let accesses: Vec<Access> = code.iter().map(Access::of).collect();
    let graph = flow::Graph::of(code, &decoded);
    let solution = solve::solve(&decoded, &graph, family, entry)?;
    let mut waits = solution.waits(&decoded, &graph);
    need::find(&mut waits, code, &accesses, &decoded, &graph, family);
    Ok(Analysis {
        family,
        waits,
        nops: hazard::find(code, &accesses),
        hurries: check::find(&solution, &decoded, &graph, &accesses),
        unknown_branches: graph.unknown_branches,
    })
}
