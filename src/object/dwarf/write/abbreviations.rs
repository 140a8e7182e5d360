//! Abbreviations that say of the bytes of an entry's addresses that they are a range list.

use gimli::{DwForm, EndianSlice, LittleEndian, Reader as _};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::object::error::{Fault, Problem};

use super::leb;
use super::ranges::{Sections, put};
use super::tree::{FILLER, Tree, section};

/// What takes the place of `DW_AT_low_pc` and `DW_AT_high_pc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Replacement {
    /// The form of `DW_AT_ranges`.
    pub(super) list_form: DwForm,
    /// Whether it is in the bytes of the first address.
    pub(super) in_low: bool,
    /// Whether 4 bytes more belong to that.
    pub(super) rest: bool,
    /// The form of the other address's bytes.
    pub(super) other: DwForm,
}

fn fault(at: u64, what: &'static str) -> Fault {
    Fault::within(".debug_abbrev", at, Problem::Malformed(what.into()))
}

/// Changes abbreviations, which are given by table and code.
pub(super) fn replace(
    tree: &Tree,
    replacements: &FxHashMap<(u64, u64), Replacement>,
    sections: &mut Sections<'_>,
) -> Result<(), Fault> {
    if replacements.is_empty() {
        return Ok(());
    }
    let used: FxHashSet<u64> = tree.units.iter().map(|unit| unit.abbreviations.value).collect();
    let mut tables: Vec<u64> = used.into_iter().collect();
    tables.sort_unstable();
    let old = std::mem::take(sections.abbreviations);
    let mut out = Vec::with_capacity(old.len() + 64);
    let mut moved = FxHashMap::default();
    let mut done = 0;
    for table in tables {
        let start = usize::try_from(table).ok().filter(|start| (done..=old.len()).contains(start));
        let start = start.ok_or_else(|| fault(table, "tables of abbreviations overlap"))?;
        out.extend(&old[done..start]);
        moved.insert(table, out.len() as u64);
        let size = copy_table(&old[start..], table, replacements, &mut out)
            .map_err(|_| fault(table, "a table of abbreviations is malformed"))?;
        done = start + size;
    }
    out.extend(&old[done..]);
    *sections.abbreviations = out;
    for unit in &tree.units {
        let field = unit.abbreviations;
        put(sections.info, field.at, field.size, moved[&field.value]).ok_or_else(|| {
            let what = Problem::EndsEarly("the unit's header".into());
            Fault::within(section(), field.at as u64, what)
        })?;
    }
    Ok(())
}

/// Copies a table with the replacements in it, and tells its size.
fn copy_table(
    bytes: &[u8],
    table: u64,
    replacements: &FxHashMap<(u64, u64), Replacement>,
    out: &mut Vec<u8>,
) -> gimli::Result<usize> {
    let all = EndianSlice::new(bytes, LittleEndian);
    let mut rest = all;
    loop {
        let code = rest.read_uleb128()?;
        leb::unsigned(out, code);
        if code == 0 {
            return Ok(rest.offset_from(all));
        }
        leb::unsigned(out, rest.read_uleb128()?);
        out.push(rest.read_u8()?);
        let replacement = replacements.get(&(table, code));
        while let Some((name, form)) = read_spec(&mut rest)? {
            match (replacement, name) {
                (Some(new), name) if name == u64::from(gimli::DW_AT_low_pc.0) => {
                    new.write(new.in_low, FILLER[1].0, out);
                }
                (Some(new), name) if name == u64::from(gimli::DW_AT_high_pc.0) => {
                    new.write(!new.in_low, FILLER[2].0, out);
                }
                _ => {
                    leb::unsigned(out, name);
                    leb::unsigned(out, form);
                    if form == u64::from(gimli::DW_FORM_implicit_const.0) {
                        leb::signed(out, rest.read_sleb128()?);
                    }
                }
            }
        }
        out.extend([0, 0]);
    }
}

fn read_spec(rest: &mut EndianSlice<'_, LittleEndian>) -> gimli::Result<Option<(u64, u64)>> {
    let spec = (rest.read_uleb128()?, rest.read_uleb128()?);
    Ok((spec != (0, 0)).then_some(spec))
}

impl Replacement {
    fn write(&self, holds_list: bool, filler: u16, out: &mut Vec<u8>) {
        let mut spec = |name: u16, form: DwForm| {
            leb::unsigned(out, name.into());
            leb::unsigned(out, form.0.into());
        };
        if !holds_list {
            return spec(filler, self.other);
        }
        spec(gimli::DW_AT_ranges.0, self.list_form);
        if self.rest {
            spec(FILLER[0].0, gimli::DW_FORM_data4);
        }
    }
}
