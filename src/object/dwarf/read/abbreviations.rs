//! What the abbreviation tables of all units cost to read, before any is read.

use gimli::{Reader as _, Section as _, SectionId};
use rustc_hash::FxHashSet;

use crate::object::error::Fault;

use super::{Budget, Dwarf, Slice};

/// `DW_FORM_implicit_const`, the one form with a value in the table itself.
const IMPLICIT_CONST: u64 = 0x21;

/// Walks every table that a unit names, once. Tables may overlap, which makes a small section
/// stand for a lot of reading. Malformed tables are left to their reader.
pub(super) fn check(dwarf: &Dwarf<'_>, budget: &mut Budget) -> Result<(), Fault> {
    let mut seen = FxHashSet::default();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let offset = header.debug_abbrev_offset();
        if seen.insert(offset.0) {
            let mut table = *dwarf.debug_abbrev.reader();
            let steps = table.skip(offset.0).map_or(0, |()| table_size(table));
            budget.spend(steps, SectionId::DebugAbbrev, offset.0 as u64)?;
        }
    }
    Ok(())
}

/// The bytes up to the end of a table, or up to where it is malformed.
fn table_size(table: Slice<'_>) -> u64 {
    let mut rest = table;
    while let Ok(Some(())) = skip_entry(&mut rest) {}
    (table.len() - rest.len()) as u64
}

fn skip_entry(table: &mut Slice<'_>) -> gimli::Result<Option<()>> {
    if table.read_uleb128()? == 0 {
        return Ok(None);
    }
    table.read_uleb128()?;
    table.read_u8()?;
    loop {
        let (name, form) = (table.read_uleb128()?, table.read_uleb128()?);
        if form == IMPLICIT_CONST {
            table.read_sleb128()?;
        }
        if (name, form) == (0, 0) {
            return Ok(Some(()));
        }
    }
}
