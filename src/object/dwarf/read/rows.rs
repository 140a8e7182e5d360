//! Line programs into rows and sequences.

use std::num::NonZeroU64;

use gimli::{ColumnType, SectionId};

use crate::object::dwarf::{NOT_STMT, Sequence, StoredRow};
use crate::object::error::{Fault, Problem};

use super::{Files, Reader};

/// The most rows that are read.
const MOST_ROWS: usize = 8 << 20;

impl Reader<'_, '_> {
    /// Reads the line program of a unit, unless another unit has the same one.
    pub(super) fn read_rows(&mut self, unit: usize, files: &mut Files) -> Result<(), Fault> {
        let Some(program) = self.units[unit].line_program.clone() else { return Ok(()) };
        let at = program.header().offset().0;
        if !self.programs.insert(at) {
            return Ok(());
        }
        let mut rows = program.rows();
        let mut sequence = OpenSequence::new(self.info.rows.len());
        while let Some((_, row)) =
            rows.next_row().map_err(|error| self.fault(error, SectionId::DebugLine, at))?
        {
            let row = *row;
            self.budget.spend(1, SectionId::DebugLine, at as u64)?;
            if row.end_sequence() {
                let first = self.info.rows.len();
                let sequence = std::mem::replace(&mut sequence, OpenSequence::new(first));
                self.close(sequence, row.address());
                continue;
            }
            let stored = self.store(unit, files, &sequence, &row)?;
            sequence.note(row.address());
            self.info.rows.push(stored);
        }
        if self.info.rows.len() > sequence.first {
            let what = "the last sequence of the line program does not end";
            return Err(Fault::within(".debug_line", at as u64, Problem::Malformed(what.into())));
        }
        Ok(())
    }

    fn store(
        &mut self,
        unit: usize,
        files: &mut Files,
        sequence: &OpenSequence,
        row: &gimli::LineRow,
    ) -> Result<StoredRow, Fault> {
        let too_big = |what: &'static str, cap: u64| {
            Fault::within(".debug_line", 0, Problem::TooBig { what: what.into(), cap })
        };
        if self.info.rows.len() == MOST_ROWS {
            let cap = (MOST_ROWS * size_of::<StoredRow>()) as u64;
            return Err(too_big("the table of lines", cap));
        }
        let offset = row.address().wrapping_sub(sequence.start.unwrap_or(row.address()));
        let offset = u32::try_from(offset)
            .map_err(|_| too_big("the code of one sequence", u32::MAX.into()))?;
        let column = match row.column() {
            ColumnType::LeftEdge => 0,
            ColumnType::Column(column) => narrow(column).min(NOT_STMT - 1),
        };
        Ok(StoredRow {
            offset,
            file: self.file(unit, files, row.file_index())?,
            line: row.line().map_or(0, narrow),
            column: if row.is_stmt() { column } else { column | NOT_STMT },
            discriminator: u32::try_from(row.discriminator()).unwrap_or(u32::MAX),
        })
    }

    fn close(&mut self, sequence: OpenSequence, end: u64) {
        let start = sequence.start.unwrap_or(end);
        let rows = &mut self.info.rows[sequence.first..];
        if start >= end || rows.is_empty() {
            self.info.rows.truncate(sequence.first);
            return;
        }
        if !rows.is_sorted_by_key(|row| row.offset) {
            rows.sort_by_key(|row| row.offset);
        }
        let rows = sequence.first as u32..self.info.rows.len() as u32;
        self.info.sequences.push(Sequence { addresses: start..end, rows });
    }
}

fn narrow(number: NonZeroU64) -> u32 {
    u32::try_from(number.get()).unwrap_or(u32::MAX)
}

/// A sequence whose end was not read yet.
struct OpenSequence {
    first: usize,
    start: Option<u64>,
}

impl OpenSequence {
    fn new(first: usize) -> Self {
        OpenSequence { first, start: None }
    }

    fn note(&mut self, address: u64) {
        self.start.get_or_insert(address);
    }
}
