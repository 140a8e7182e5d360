//! What `siteline waits` says of a kernel.

use serde::Serialize;

use super::hazard::Dependence;
use super::need::Consumer;
use super::{
    Analysis, Counter, Drain, Entry, Family, HurryKind, Need, Note, Text, TooComplex, Wait, analyse,
};
use crate::chain::{Chains, Line};
use crate::leaf::Class;
use crate::object::metrics::FileLine;
use crate::object::{Function, FunctionKind, Listing, Located, Role};

/// The version of the JSON that `siteline waits` prints.
pub const SCHEMA: u32 = 1;

/// A kernel's instructions without its padding, and what its waits wait for.
pub struct Kernel<'a> {
    /// The instructions. The indices of [`Analysis`] are into these.
    pub instructions: Vec<&'a Located>,
    /// What waits wait for.
    pub analysis: Analysis,
}

/// A kernel whose waits cannot be found.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WaitsError {
    /// The instructions were not disassembled.
    #[error(
        "waits of '{kernel}' cannot be read without a disassembler for {chip}: install libLLVM 19 \
         or newer, or ROCm's amd_comgr"
    )]
    NotDecoded {
        /// The kernel.
        kernel: String,
        /// The chip.
        chip: String,
    },
    /// The chip's counters are not known.
    #[error("the counters of chip '{chip}' are not known: they are from gfx900 on")]
    Chip {
        /// The chip.
        chip: String,
    },
    /// The control flow is too intricate.
    #[error("kernel '{kernel}': {reason}")]
    TooComplex {
        /// The kernel.
        kernel: String,
        /// What is too complex.
        reason: TooComplex,
    },
}

impl<'a> Kernel<'a> {
    /// Analyses the instructions of a function for a chip such as `gfx942`.
    ///
    /// # Errors
    /// The instructions were not disassembled, the chip's counters are not known, or the control
    /// flow is too intricate.
    pub fn of(function: &Function, listing: &'a Listing, chip: &str) -> Result<Self, WaitsError> {
        let kernel = || function.name.clone();
        if !listing.decoded {
            return Err(WaitsError::NotDecoded { kernel: kernel(), chip: chip.into() });
        }
        let family = Family::of_chip(chip).ok_or_else(|| WaitsError::Chip { chip: chip.into() })?;
        let is_code = |located: &&Located| located.role != Role::Padding;
        let instructions: Vec<&Located> = listing.instructions.iter().filter(is_code).collect();
        let code: Vec<Text<'_>> = instructions.iter().map(|located| text(located)).collect();
        let entry = match function.kind {
            FunctionKind::Kernel => Entry::Kernel,
            FunctionKind::Device => Entry::Function,
        };
        let analysis = analyse(&code, family, entry)
            .map_err(|reason| WaitsError::TooComplex { kernel: kernel(), reason })?;
        Ok(Kernel { instructions, analysis })
    }
}

fn text(located: &Located) -> Text<'_> {
    let instruction = &located.instruction;
    Text {
        address: instruction.address.0,
        mnemonic: &instruction.mnemonic,
        operands: &instruction.operands,
    }
}

/// The waits of one kernel.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct KernelWaits {
    /// The family whose rules were applied.
    pub family: Family,
    /// Waits in all.
    pub total: usize,
    /// Waits that never wait for anything.
    pub wasted: usize,
    /// Waits that wait for younger operations than their next consumer needs.
    pub too_strict: usize,
    /// Waits that drain copies to LDS that a wait right in front of them had left in flight.
    pub undoing: usize,
    /// Waits that no control flow leads to.
    pub unreachable: usize,
    /// The waits, by address.
    pub waits: Vec<WaitReport>,
    /// The instructions that only wait for the pipeline, by address.
    pub nops: Vec<NopReport>,
    /// Instructions that touch a register which an operation in flight may still need.
    pub hurries: Vec<HurryReport>,
    /// The addresses of branches that leave the code, or whose target is not known.
    pub unknown_branches: Vec<u64>,
}

/// An instruction of a report.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Place {
    /// Its address.
    pub address: u64,
    /// Its text.
    pub instruction: String,
    /// Its leaf class.
    pub class: Option<Class>,
    /// Its line; null where there is none.
    pub site: Option<FileLine>,
}

/// A wait.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WaitReport {
    /// The wait.
    #[serde(flatten)]
    pub place: Place,
    /// What there is to say about it; null for nothing.
    pub note: Option<Note>,
    /// What it really waits for, of all counters.
    pub awaited: Vec<Place>,
    /// What it does to each counter that it names.
    pub counters: Vec<CounterReport>,
}

/// What a wait does to a counter. Operations are addresses.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CounterReport {
    /// The counter.
    pub counter: Counter,
    /// The count that is waited for.
    pub limit: u32,
    /// Operations that have returned behind the wait because of it, on some path.
    pub drained: Vec<u64>,
    /// Those of them that it really waits for.
    pub awaited: Vec<u64>,
    /// Operations of which it waits for some, in whatever order they return.
    pub perhaps: Vec<u64>,
    /// Operations that may stay in flight.
    pub kept: Vec<u64>,
    /// Whether operations of a caller or of a called function may be drained.
    pub callers: bool,
    /// The first use of a drained operation; null where none is found.
    pub need: Option<NeedReport>,
    /// The wait right in front that had left drained copies to LDS in flight; null for none.
    pub undoes: Option<Place>,
}

/// The first use of what a wait drains.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NeedReport {
    /// The nearest consumer.
    pub consumer: Place,
    /// How it needs a drained operation.
    pub by: Consumer,
    /// How many more operations could have stayed in flight until then.
    pub could_stay: u32,
}

/// An instruction that only waits for the pipeline.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NopReport {
    /// The instruction.
    #[serde(flatten)]
    pub place: Place,
    /// What it keeps apart; empty where that is not found.
    pub pairs: Vec<PairReport>,
}

/// A producer and a consumer that are kept apart.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PairReport {
    /// The producer.
    pub producer: Place,
    /// The consumer.
    pub consumer: Place,
    /// How they depend on each other.
    pub by: Dependence,
}

/// An instruction that touches a register which an operation in flight may still need.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HurryReport {
    /// The instruction.
    #[serde(flatten)]
    pub place: Place,
    /// The operation.
    pub operation: Place,
    /// The counter that tells when it is done.
    pub counter: Counter,
    /// What goes wrong.
    pub kind: HurryKind,
}

/// What a report is made of.
pub struct Shown<'a> {
    /// The kernel.
    pub kernel: &'a Kernel<'a>,
    /// The line to show for an instruction.
    pub site: &'a dyn Fn(&Located) -> Option<Line>,
    /// The table of the lines.
    pub chains: &'a Chains,
}

impl Shown<'_> {
    /// The waits, nops and the rest.
    pub fn report(&self) -> KernelWaits {
        let analysis = &self.kernel.analysis;
        let waits: Vec<WaitReport> = analysis.waits.iter().map(|wait| self.wait(wait)).collect();
        let count = |note: Note| waits.iter().filter(|wait| wait.note == Some(note)).count();
        KernelWaits {
            family: analysis.family,
            total: waits.len(),
            wasted: count(Note::Wasted),
            too_strict: count(Note::TooStrict),
            undoing: count(Note::Undoes),
            unreachable: count(Note::Unreachable),
            nops: self.nops(),
            hurries: self.hurries(),
            unknown_branches: self.addresses(&analysis.unknown_branches),
            waits,
        }
    }

    /// What is shown of an instruction.
    pub fn place(&self, at: usize) -> Place {
        let located = self.kernel.instructions[at];
        Place {
            address: located.instruction.address.0,
            instruction: located.instruction.to_string(),
            class: located.class,
            site: (self.site)(located).map(|line| FileLine::of(line, self.chains)),
        }
    }

    fn addresses(&self, indices: &[usize]) -> Vec<u64> {
        indices.iter().map(|&at| self.kernel.instructions[at].instruction.address.0).collect()
    }

    fn wait(&self, wait: &Wait) -> WaitReport {
        WaitReport {
            place: self.place(wait.at),
            note: wait.note(),
            awaited: wait.awaited().into_iter().map(|at| self.place(at)).collect(),
            counters: wait.drains.iter().map(|drain| self.counter(drain)).collect(),
        }
    }

    fn counter(&self, drain: &Drain) -> CounterReport {
        CounterReport {
            counter: drain.counter,
            limit: drain.limit,
            drained: self.addresses(&drain.drained),
            awaited: self.addresses(&drain.awaited),
            perhaps: self.addresses(&drain.perhaps),
            kept: self.addresses(&drain.kept),
            callers: drain.callers,
            need: drain.need.as_ref().map(|need| self.need(need)),
            undoes: drain.undoes.map(|at| self.place(at)),
        }
    }

    fn need(&self, need: &Need) -> NeedReport {
        let consumer = self.place(need.consumer);
        NeedReport { consumer, by: need.by, could_stay: need.could_stay }
    }

    fn nops(&self) -> Vec<NopReport> {
        let nops = self.kernel.analysis.nops.iter().map(|nop| NopReport {
            place: self.place(nop.at),
            pairs: nop
                .pairs
                .iter()
                .map(|pair| PairReport {
                    producer: self.place(pair.producer),
                    consumer: self.place(pair.consumer),
                    by: pair.by,
                })
                .collect(),
        });
        nops.collect()
    }

    fn hurries(&self) -> Vec<HurryReport> {
        let hurries = self.kernel.analysis.hurries.iter().map(|hurry| HurryReport {
            place: self.place(hurry.at),
            operation: self.place(hurry.operation),
            counter: hurry.counter,
            kind: hurry.kind,
        });
        hurries.collect()
    }
}
