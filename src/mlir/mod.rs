//! MLIR: operations' locations read into chains, sites written back.
//!
//! Everything goes through MLIR's C API as one table of functions ([`api::Api`]), linked in or
//! found in a running process. Work is done once for each distinct location and class.

pub mod api;
#[cfg(feature = "llvm")]
pub mod context;
pub mod functions;
pub mod infer;
pub mod ir;
pub mod locations;
#[cfg(feature = "llvm")]
pub mod lower;
pub mod propagate;
pub mod report;
pub mod restore;
#[cfg(unix)]
pub mod runtime;
pub mod scopes;
