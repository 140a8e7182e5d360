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
pub mod dwarf;
pub mod elf;
mod embedded;
mod error;
mod inflate;
mod place;

pub use bytes::Bytes;
pub use container::Contained;
pub use dwarf::{DebugInfo, Row};
pub use elf::Elf;
pub use error::{Fault, ObjectError, Problem};
pub use inflate::{Allowance, DECOMPRESSED_CAP};
pub use place::Vaddr;
