//! The mapping of a code object: what rocprofiler would write for its instructions.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::AttError;
use super::remap::{MappedInstruction, MappedKernel, Mapping};
use super::source;
use crate::chain::{ChainId, Chains};
use crate::leaf::LeafTable;
use crate::object::disasm::{self, Disassembler};
use crate::object::{CodeObject, DebugInfo, Function, Lister, Vaddr};

impl Mapping {
    /// The mappings of all code objects in a file, which may be a container; `label` is the
    /// file's name.
    ///
    /// rocprofiler writes one text for all instructions of a line row: that of the row's first
    /// address. The whole chain is that of the instruction's own address.
    ///
    /// # Errors
    /// The file holds no code object that can be read, one has no debug information, or there is
    /// no disassembler for its instructions.
    pub fn read_all(label: &str, data: Vec<u8>) -> Result<Vec<Self>, AttError> {
        let mut chains = Chains::new();
        let objects = CodeObject::read_all(label, data, &mut chains)?;
        objects.iter().map(|object| Mapping::of(object, disasm::available(), &mut chains)).collect()
    }

    /// The mapping of one code object.
    ///
    /// # Errors
    /// As [`Mapping::read_all`].
    pub fn of(
        object: &CodeObject,
        disassembler: Option<&dyn Disassembler>,
        chains: &mut Chains,
    ) -> Result<Self, AttError> {
        let refuse = |what: &str| AttError::Mismatch(format!("'{}' {what}", object.label));
        let debug = object
            .debug
            .as_ref()
            .ok_or_else(|| refuse("has no debug information: compile it with line tables (-g)"))?;
        let table = LeafTable::default();
        let lister = Lister { disassembler, table: &table };
        let mut texts = Texts::default();
        let mut kernels = Vec::new();
        for function in &object.functions {
            let listing = lister.list(object, function, chains);
            if !listing.decoded {
                return Err(refuse(
                    "cannot be compared with a trace, as there is no disassembler for its chip: \
                     install libLLVM 19 or newer, or name one by SITELINE_DISASSEMBLER",
                ));
            }
            let addresses = listing.instructions.iter().map(|located| &located.instruction);
            let instructions = addresses
                .map(|instruction| MappedInstruction {
                    vaddr: instruction.address.0,
                    text: instruction.to_string().into(),
                    source: texts.at(row_start(debug, instruction.address), debug, chains),
                    chain: texts.at(Some(instruction.address), debug, chains),
                })
                .collect();
            kernels.push(mapped(function, instructions));
        }
        Ok(Mapping { name: object.label.clone(), chip: Some(object.chip().into()), kernels })
    }
}

fn mapped(function: &Function, instructions: Vec<MappedInstruction>) -> MappedKernel {
    MappedKernel { symbol: function.name.clone(), instructions }
}

/// The first address of the line row that covers an address.
fn row_start(debug: &DebugInfo, address: Vaddr) -> Option<Vaddr> {
    debug.row_at(address).map(|row| row.range.start)
}

/// Source texts, each made once.
#[derive(Default)]
struct Texts(FxHashMap<ChainId, Arc<str>>);

impl Texts {
    fn at(&mut self, address: Option<Vaddr>, debug: &DebugInfo, chains: &mut Chains) -> Arc<str> {
        let Some(chain) = address.and_then(|address| debug.chain_at(address, chains)) else {
            return "".into();
        };
        let text = || source::write(chain, chains).into();
        self.0.entry(chain).or_insert_with(text).clone()
    }
}
