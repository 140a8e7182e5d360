//! siteline puts the line a kernel author wrote, not the line of a helper, on every AMDGPU
//! instruction, and proves that this changed no machine code.
//!
//! Locations are read into chains ([`chain`]), a policy chooses the site of each ([`site`]) by
//! what the operation or instruction is ([`leaf`]). [`att`] reads and rewrites ROCprof traces.

pub mod att;
pub mod chain;
pub mod cli;
#[cfg(feature = "llvm")]
pub mod driver;
pub mod files;
#[doc(hidden)]
pub mod fuzzing;
pub mod identity;
pub mod leaf;
#[cfg(feature = "llvm")]
pub mod llvm;
pub mod mlir;
pub mod neighbours;
pub mod object;
pub mod outline;
#[cfg(feature = "llvm")]
pub mod plugin;
pub mod refine;
pub mod require;
pub mod site;
pub mod source;
pub mod verify;

/// The README's examples are compiled as tests.
#[cfg(all(doctest, feature = "llvm"))]
#[doc = include_str!("../README.md")]
struct Readme;
