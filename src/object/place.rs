//! Addresses.

use std::fmt;

/// An address as the code object's own ELF file counts them: 0 is the start of its image. In a
/// relocatable file it is the offset in the code section.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Vaddr(pub u64);

impl Vaddr {
    /// The address this many bytes further on; the last address there is where that overflows.
    pub fn plus(self, bytes: u64) -> Vaddr {
        Vaddr(self.0.saturating_add(bytes))
    }

    /// How many bytes this address lies behind `start`; 0 where it lies before.
    pub fn bytes_from(self, start: Vaddr) -> u64 {
        self.0.saturating_sub(start.0)
    }
}

impl fmt::Display for Vaddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}

impl fmt::LowerHex for Vaddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}
