//! What can be wrong with a file, and where in it.

use std::borrow::Cow;
use std::fmt;

/// A fault in a file: what is wrong, in which section and at which byte.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The section that the fault is in; `None` for the file or bundle around the sections.
    pub section: Option<Cow<'static, str>>,
    /// The offset of the fault, in bytes from the start of its section, or of the file.
    pub offset: u64,
    /// What is wrong.
    pub problem: Problem,
}

/// What is wrong with a file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Problem {
    /// The file is of no kind that holds device code.
    #[error(
        "this is no code object: it is neither ELF, nor an offload bundle, nor MLIR with a gpu.binary"
    )]
    NotRecognised,
    /// A host file without `.hip_fatbin`.
    #[error(
        "this ELF file holds no AMDGPU code: it is for machine {0}, and has no .hip_fatbin section"
    )]
    NotDeviceCode(u16),
    /// Nothing for any AMDGPU is in the bundle, fat binary or module.
    #[error("there is no AMDGPU code object in it")]
    NothingInside,
    /// A table or section is not where the file says.
    #[error("{what} of {size} bytes reaches outside the file")]
    OutOfBounds {
        /// What reaches outside.
        what: Cow<'static, str>,
        /// Its size in bytes, as the file says.
        size: u64,
    },
    /// The data ends in the middle of something.
    #[error("{0} ends too early")]
    EndsEarly(Cow<'static, str>),
    /// The data contradicts its format.
    #[error("{0}")]
    Malformed(Cow<'static, str>),
    /// The DWARF data contradicts its format.
    #[error("{0}")]
    Dwarf(gimli::Error),
    /// Compressed data, or a table, is bigger than siteline reads.
    #[error("{what} takes more than {cap} bytes, the most that siteline reads")]
    TooBig {
        /// What is too big.
        what: Cow<'static, str>,
        /// The cap, in bytes.
        cap: u64,
    },
    /// Reading takes more steps than any file of that size should need.
    #[error("{0} repeats itself beyond what its size can account for")]
    TooMuchWork(&'static str),
    /// A format that siteline does not read.
    #[error("{0}")]
    Unsupported(Cow<'static, str>),
}

impl Fault {
    /// A fault of the file around the sections.
    pub fn new(offset: u64, problem: Problem) -> Self {
        Fault { section: None, offset, problem }
    }

    /// A fault inside a section.
    pub fn within(section: impl Into<Cow<'static, str>>, offset: u64, problem: Problem) -> Self {
        Fault { section: Some(section.into()), offset, problem }
    }

    pub(crate) fn malformed(offset: u64, what: impl Into<Cow<'static, str>>) -> Self {
        Fault::new(offset, Problem::Malformed(what.into()))
    }

    pub(crate) fn out_of_bounds(
        offset: u64,
        what: impl Into<Cow<'static, str>>,
        size: u64,
    ) -> Self {
        Fault::new(offset, Problem::OutOfBounds { what: what.into(), size })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(section) = &self.section {
            write!(f, "section {section}, ")?;
        }
        write!(f, "offset {:#x}: {}", self.offset, self.problem)
    }
}

impl std::error::Error for Fault {}

/// A file, or a part of it, that could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("'{label}': {fault}")]
pub struct ObjectError {
    /// The path, and where the file holds several code objects, which of them.
    pub label: String,
    /// What is wrong, and where.
    pub fault: Fault,
}

impl Fault {
    /// The fault, with the name of the file it is in.
    pub fn of(self, label: impl Into<String>) -> ObjectError {
        ObjectError { label: label.into(), fault: self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_file_section_and_offset() {
        let fault = Fault::within(".debug_line", 0x1f, Problem::EndsEarly("the header".into()));
        assert_eq!(
            fault.of("k.hsaco").to_string(),
            "'k.hsaco': section .debug_line, offset 0x1f: the header ends too early"
        );
    }
}
