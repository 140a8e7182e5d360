//! The debug information of a code object: line rows and inlined functions, by address.
//!
//! Everything is read once, into tables that binary search finds a place in. Addresses are
//! those of the ELF file. Memory is 20 bytes for a row, and 8 for an inlined function besides
//! its frame in [`Chains`].

use std::ops::Range;

use crate::chain::{ChainId, Chains, Frame, Line, Sym};

use super::elf::Elf;
use super::error::Fault;
use super::place::Vaddr;

pub(crate) mod read;
pub(crate) mod write;

/// The discriminator of rows whose line siteline chose for an instruction that had none.
pub const INFERRED_DISCRIMINATOR: u32 = 0x0517_e11e;

/// The discriminator that is set before the first row of a line program whose rows are sites,
/// and then set back to 0, so that no row has it.
pub const REFINED_DISCRIMINATOR: u32 = 0x0517_e11d;

/// The line rows and inlined functions of one code object.
#[derive(Debug, Default)]
pub struct DebugInfo {
    rows: Vec<StoredRow>,
    sequences: Vec<Sequence>,
    scopes: Vec<Scope>,
    edges: Vec<Edge>,
    subprograms: Vec<Subprogram>,
}

/// One row of a line table: what the table says of a range of addresses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The addresses from this row's to the next one's; empty where two rows share one.
    pub range: Range<Vaddr>,
    /// The file's path: the table's entry, below its directory and the compilation's.
    pub file: Sym,
    /// The line, from 1; 0 for none.
    pub line: u32,
    /// The column, from 1; 0 for none.
    pub column: u32,
    /// The discriminator, 0 for none.
    pub discriminator: u32,
    /// Whether the row starts a statement.
    pub is_stmt: bool,
}

impl Row {
    /// Whether siteline chose the line.
    pub fn is_inferred(&self) -> bool {
        self.discriminator == INFERRED_DISCRIMINATOR
    }
}

/// A function that has code of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Subprogram {
    /// Its lowest address.
    pub address: Vaddr,
    /// `DW_AT_name`.
    pub name: Option<Sym>,
    /// `DW_AT_decl_file` and `DW_AT_decl_line`.
    pub definition: Option<Line>,
}

/// A row in 20 bytes: the address is an offset in the sequence.
#[derive(Clone, Copy, Debug)]
struct StoredRow {
    offset: u32,
    file: Sym,
    line: u32,
    /// The column, with [`NOT_STMT`] set on rows that start no statement.
    column: u32,
    discriminator: u32,
}

const NOT_STMT: u32 = 1 << 31;

/// Rows of rising addresses without a gap between them.
#[derive(Clone, Debug)]
struct Sequence {
    addresses: Range<u64>,
    rows: Range<u32>,
}

/// A function, inlined or not, that code is in.
#[derive(Clone, Copy, Debug)]
struct Scope {
    function: Option<Sym>,
    /// Where it was inlined; `None` for functions of their own.
    call: Option<ChainId>,
}

/// From this address to the next edge's, code is in this scope.
#[derive(Clone, Copy, Debug)]
struct Edge {
    address: u64,
    scope: u32,
}

/// No scope.
const OUTSIDE: u32 = u32::MAX;

impl DebugInfo {
    /// Reads the debug information of an ELF file; `None` where it has none. File and function
    /// names and the frames of inlined functions go into `chains`.
    ///
    /// # Errors
    /// The debug information contradicts its format, or is bigger than siteline reads.
    pub fn read(elf: &Elf, chains: &mut Chains) -> Result<Option<Self>, Fault> {
        read::read(elf, chains)
    }

    /// How many rows there are; those that end a sequence are not counted.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// How many functions, inlined or not, there are.
    pub fn scope_count(&self) -> usize {
        self.scopes.len()
    }

    /// Every row, by address; rows that share an address in the order of the table.
    pub fn rows(&self) -> impl Iterator<Item = Row> + '_ {
        self.sequences.iter().flat_map(|sequence| {
            sequence.rows.clone().map(|index| self.row(sequence, index as usize))
        })
    }

    /// The addresses of each unbroken run of rows, in order.
    pub fn sequences(&self) -> impl Iterator<Item = Range<Vaddr>> + '_ {
        self.sequences.iter().map(|s| Vaddr(s.addresses.start)..Vaddr(s.addresses.end))
    }

    /// The row that covers an address: of several at one address the last.
    pub fn row_at(&self, address: Vaddr) -> Option<Row> {
        let (sequence, index) = self.find(address)?;
        Some(self.row(sequence, index))
    }

    fn find(&self, address: Vaddr) -> Option<(&Sequence, usize)> {
        let after = self.sequences.partition_point(|s| s.addresses.start <= address.0);
        let sequence = self.sequences[..after].last()?;
        if address.0 >= sequence.addresses.end {
            return None;
        }
        let offset = address.0 - sequence.addresses.start;
        let rows = &self.rows[sequence.rows.start as usize..sequence.rows.end as usize];
        let after = rows.partition_point(|row| u64::from(row.offset) <= offset);
        Some((sequence, sequence.rows.start as usize + after.checked_sub(1)?))
    }

    fn row(&self, sequence: &Sequence, index: usize) -> Row {
        let start = sequence.addresses.start;
        let at = |row: &StoredRow| start + u64::from(row.offset);
        let row = &self.rows[index];
        let next = index + 1;
        let end = if next < sequence.rows.end as usize {
            at(&self.rows[next])
        } else {
            sequence.addresses.end
        };
        Row {
            range: Vaddr(at(row))..Vaddr(end),
            file: row.file,
            line: row.line,
            column: row.column & !NOT_STMT,
            discriminator: row.discriminator,
            is_stmt: row.column & NOT_STMT == 0,
        }
    }

    /// The chain at an address: its row's line, then where each inlined function around it was
    /// called, innermost first. `None` where no row covers the address.
    pub fn chain_at(&self, address: Vaddr, chains: &mut Chains) -> Option<ChainId> {
        let (_, index) = self.find(address)?;
        let row = &self.rows[index];
        let scope = self.scope_at(address);
        let frame = Frame {
            file: row.file,
            line: row.line,
            column: row.column & !NOT_STMT,
            function: scope.and_then(|scope| scope.function),
        };
        Some(chains.push(frame, scope.and_then(|scope| scope.call)))
    }

    fn scope_at(&self, address: Vaddr) -> Option<Scope> {
        let after = self.edges.partition_point(|edge| edge.address <= address.0);
        let edge = self.edges[..after].last()?;
        self.scopes.get(edge.scope as usize).copied()
    }

    /// The function that starts at an address.
    pub fn subprogram_at(&self, address: Vaddr) -> Option<&Subprogram> {
        let at = self.subprograms.binary_search_by_key(&address, |s| s.address).ok()?;
        self.subprograms.get(at)
    }
}
