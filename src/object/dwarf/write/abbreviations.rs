//! Abbreviations that say something else of the bytes of their entries: that addresses are a
//! range list, or that a function is described in another unit.

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

/// Replacements by table and code.
pub(super) type Replacements = FxHashMap<(u64, u64), Replacement>;

/// What changes in the tables of abbreviations.
#[derive(Default)]
pub(super) struct Changes {
    pub(super) replacements: Replacements,
    /// Abbreviations, by table and code, whose `DW_AT_abstract_origin` may lead to any unit.
    pub(super) global: FxHashSet<(u64, u64)>,
    /// The table and the code of an abbreviation to add: a function that was inlined, by name.
    pub(super) described: Option<(u64, u64)>,
}

fn fault(at: u64, what: &'static str) -> Fault {
    Fault::within(".debug_abbrev", at, Problem::Malformed(what.into()))
}

/// Changes abbreviations in all their tables.
pub(super) fn replace(
    tree: &Tree,
    changes: &Changes,
    sections: &mut Sections<'_>,
) -> Result<(), Fault> {
    if changes.replacements.is_empty() && changes.described.is_none() {
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
        let size = copy_table(&old[start..], table, changes, &mut out)
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

/// Copies a table with the changes in it, and tells its size.
fn copy_table(
    bytes: &[u8],
    table: u64,
    changes: &Changes,
    out: &mut Vec<u8>,
) -> gimli::Result<usize> {
    let all = EndianSlice::new(bytes, LittleEndian);
    let mut rest = all;
    loop {
        let code = rest.read_uleb128()?;
        if code == 0 {
            if let Some((_, code)) = changes.described.filter(|(at, _)| *at == table) {
                describe(code, out);
            }
            out.push(0);
            return Ok(rest.offset_from(all));
        }
        leb::unsigned(out, code);
        leb::unsigned(out, rest.read_uleb128()?);
        out.push(rest.read_u8()?);
        let replacement = changes.replacements.get(&(table, code));
        let global = changes.global.contains(&(table, code));
        while let Some((name, form)) = read_spec(&mut rest)? {
            match (replacement, name) {
                (Some(new), name) if name == u64::from(gimli::DW_AT_low_pc.0) => {
                    new.write(new.in_low, FILLER[1].0, out);
                }
                (Some(new), name) if name == u64::from(gimli::DW_AT_high_pc.0) => {
                    new.write(!new.in_low, FILLER[2].0, out);
                }
                (_, name) if global && name == u64::from(gimli::DW_AT_abstract_origin.0) => {
                    leb::unsigned(out, name);
                    leb::unsigned(out, gimli::DW_FORM_ref_addr.0.into());
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

/// Appends the abbreviation of a function that is described by its name only.
fn describe(code: u64, out: &mut Vec<u8>) {
    leb::unsigned(out, code);
    leb::unsigned(out, gimli::DW_TAG_subprogram.0.into());
    out.push(gimli::DW_CHILDREN_no.0);
    let specs =
        [(gimli::DW_AT_name, gimli::DW_FORM_string), (gimli::DW_AT_inline, gimli::DW_FORM_data1)];
    for (name, form) in specs {
        leb::unsigned(out, name.0.into());
        leb::unsigned(out, form.0.into());
    }
    out.extend([0, 0]);
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
