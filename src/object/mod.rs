//! Code objects: AMDGPU ELF files in whatever container, their kernels and instructions, and
//! the lines and inlined calls of each instruction.
//!
//! Reading needs no LLVM and trusts nothing in a file: every fault is an [`ObjectError`] that
//! names the file, the section and the offset. Addresses ([`Vaddr`]) are those of the code
//! object's ELF file, wherever it is loaded later. Files are read whole; what is decompressed,
//! and every table made of a file, is capped, so that reading takes less than 1 GiB.

pub mod bundle;
mod bytes;
pub mod chip;
pub mod container;
pub mod definition;
pub mod diff;
pub mod disasm;
pub mod dwarf;
pub mod elf;
mod embedded;
mod error;
mod inflate;
pub mod ir;
pub mod kernel;
pub mod listing;
pub mod metrics;
mod place;
pub(crate) mod repack;
pub(crate) mod rewrite;
pub(crate) mod shrink;
pub mod waits;

use crate::chain::Chains;

pub use bytes::Bytes;
pub use container::Contained;
pub use disasm::Instruction;
pub use dwarf::{DebugInfo, Row};
pub use elf::Elf;
pub use error::{Fault, ObjectError, Problem};
pub use inflate::{Allowance, DECOMPRESSED_CAP};
pub use kernel::{Function, FunctionKind};
pub use listing::{Lister, Listing, Located, Role};
pub use place::Vaddr;

/// A code object: its functions and, where it has any, its debug information.
#[derive(Debug)]
pub struct CodeObject {
    /// The file's name, and inside a container the place in it.
    pub label: String,
    /// The id of the bundle entry, or the name of the `gpu.binary`, that holds it.
    pub entry: Option<String>,
    /// The ELF file.
    pub elf: Elf,
    /// Kernels and device functions, by address.
    pub functions: Vec<Function>,
    /// Lines and inlined functions; `None` for an object without debug information.
    pub debug: Option<DebugInfo>,
}

impl CodeObject {
    /// Reads the functions and the debug information of a code object.
    ///
    /// # Errors
    /// The debug information contradicts its format, or is bigger than siteline reads.
    pub fn new(contained: Contained, chains: &mut Chains) -> Result<Self, ObjectError> {
        let Contained { label, entry, elf } = contained;
        let debug = DebugInfo::read(&elf, chains).map_err(|fault| fault.of(&*label))?;
        let functions = kernel::functions(&elf);
        Ok(CodeObject { label, entry, elf, functions, debug })
    }

    /// Every code object in a file, in its order.
    ///
    /// # Errors
    /// The file is of no known kind, is damaged, or holds no AMDGPU code object.
    pub fn read_all(
        label: &str,
        data: Vec<u8>,
        chains: &mut Chains,
    ) -> Result<Vec<Self>, ObjectError> {
        let contained = container::read(label, data)?;
        contained.into_iter().map(|contained| CodeObject::new(contained, chains)).collect()
    }

    /// The kernels.
    pub fn kernels(&self) -> impl Iterator<Item = &Function> {
        self.functions.iter().filter(|function| function.kind == FunctionKind::Kernel)
    }

    /// The chip, such as `gfx942`; `unknown` where the header names none that is known.
    pub fn chip(&self) -> &str {
        self.elf.target.as_ref().map_or("unknown", |target| &target.chip)
    }
}
