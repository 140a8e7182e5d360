//! ROCprof thread traces (ATT): read, measure, compare, and give them other source locations.
//!
//! A trace is the folder `ui_output_agent_*_dispatch_*` that rocprofv3 writes, or its
//! `code.json` alone. [`Trace`] holds the code table: one [`Row`] per instruction with its
//! address in the code object (the ELF's own addresses, not load addresses), its counts, its
//! cycles, and its source location as a chain. [`metrics`] says where the weight lies,
//! [`diff`] how two traces differ, [`remap`] and [`resite`] write a new folder in which
//! nothing but the source locations differs. [`waves`] reads what single waves waited for, and
//! [`waits`] gives the weight of waits to what they wait for.
//!
//! Memory is bound by the code table; the other files of the folder are read one at a time, or
//! not at all.

use std::path::PathBuf;

use crate::files::FileError;
use crate::object::ObjectError;

mod align;
mod columns;
pub mod definition;
pub mod diff;
pub mod folder;
pub mod metrics;
mod object;
mod read;
pub mod remap;
pub mod resite;
mod rewrite;
mod source;
pub mod waits;
pub mod waves;

pub use read::{Kernel, Row, RowKind, Trace, Warnings};
pub use rewrite::Written;
pub use source::{SEPARATOR, write as source_text};

/// A trace that could not be read, or not be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum AttError {
    /// A file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A code object could not be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The folder holds no trace, or several.
    #[error("'{}' {what}", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong, and the mend.
        what: String,
    },
    /// The file is not JSON, or ends too soon.
    #[error("'{}' is not complete JSON ({reason}): was the trace or its copy cut short?", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// The parser's reason, with line and column.
        reason: String,
    },
    /// The file is JSON, but not of the documented form.
    #[error("'{}': {what}", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong, where (rows count from 0), and the mend.
        what: String,
    },
    /// The trace and the object do not fit together.
    #[error("{0}")]
    Mismatch(String),
}
