//! New ranges for entries, without moving any: `.debug_info` keeps its size.
//!
//! Where the attributes of an entry cannot hold its new ranges, its abbreviation is changed for
//! all entries that use it: the bytes of its addresses then hold the place of a range list.

use std::collections::BTreeMap;

use gimli::DwForm;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::object::error::{Fault, Problem};

use super::abbreviations::{Replacement, Replacements};
use super::leb;
use super::tree::{Field, Node, Tree, section};

type Pieces = Vec<(u64, u64)>;

/// A range of addresses that goes from one innermost node to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) from: Option<u32>,
    pub(crate) to: Option<u32>,
}

/// The sections that hold ranges, to be changed.
pub(super) struct Sections<'s> {
    pub(super) info: &'s mut Vec<u8>,
    pub(super) abbreviations: &'s mut Vec<u8>,
    pub(super) old_lists: &'s mut Vec<u8>,
    pub(super) lists: &'s mut Vec<u8>,
}

fn unsupported(node: &Node, what: &'static str) -> Fault {
    Fault::within(section(), node.entry as u64, Problem::Unsupported(what.into()))
}

/// Moves ranges between nodes, and tells which abbreviations are to be replaced.
pub(super) fn rewrite(
    tree: &Tree,
    moves: &[Move],
    sections: &mut Sections<'_>,
) -> Result<Replacements, Fault> {
    let changed = changed(tree, moves);
    if changed.is_empty() {
        return Ok(Replacements::default());
    }
    let converted = to_convert(tree, &changed);
    let mut writer = Writer { tree, sections, lists: NewLists::default() };
    let parted = writer.part(&changed)?;
    let mut replacements = Replacements::default();
    for (at, node) in tree.nodes.iter().enumerate() {
        let key = (tree.units[node.unit as usize].abbreviations.value, node.code);
        let new = changed.get(&(at as u32));
        if converted.contains(&key) {
            let old = || normalized(tree.pieces(node).to_vec());
            let pieces = new.cloned().unwrap_or_else(old);
            replacements.insert(key, writer.convert(node, &pieces)?);
        } else if let Some(pieces) = new.filter(|_| !parted.contains(&(at as u32))) {
            writer.change(node, pieces)?;
        }
    }
    writer.finish();
    Ok(replacements)
}

/// The new ranges of the nodes that get other ones.
fn changed(tree: &Tree, moves: &[Move]) -> FxHashMap<u32, Pieces> {
    let mut less: FxHashMap<u32, Pieces> = FxHashMap::default();
    let mut more: FxHashMap<u32, Pieces> = FxHashMap::default();
    for &Move { start, end, from, to } in moves {
        let (out, into): (Vec<u32>, Vec<u32>) =
            (tree.around(from).collect(), tree.around(to).collect());
        for node in out.iter().filter(|node| !into.contains(node)) {
            less.entry(*node).or_default().push((start, end));
        }
        for node in into.iter().filter(|node| !out.contains(node)) {
            more.entry(*node).or_default().push((start, end));
        }
    }
    let nodes: FxHashSet<u32> = less.keys().chain(more.keys()).copied().collect();
    let mut changed = FxHashMap::default();
    for node in nodes {
        let old = normalized(tree.pieces(&tree.nodes[node as usize]).to_vec());
        let less = normalized(less.remove(&node).unwrap_or_default());
        let mut new = without(&old, &less);
        new.extend(more.remove(&node).unwrap_or_default());
        let new = normalized(new);
        if new != old {
            changed.insert(node, new);
        }
    }
    changed
}

/// Sorted, without overlaps, and joined where nothing lies between.
fn normalized(mut pieces: Pieces) -> Pieces {
    pieces.sort_unstable();
    let mut joined: Pieces = Vec::with_capacity(pieces.len());
    for (start, end) in pieces {
        match joined.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => joined.push((start, end)),
        }
    }
    joined
}

/// What of `pieces` is not in `less`; both are normalized.
fn without(pieces: &[(u64, u64)], less: &[(u64, u64)]) -> Pieces {
    let mut left = Vec::new();
    for &(mut start, end) in pieces {
        let first = less.partition_point(|&(_, gone)| gone <= start);
        for &(from, to) in less[first..].iter().take_while(|(from, _)| *from < end) {
            if start < from {
                left.push((start, from));
            }
            start = start.max(to);
        }
        if start < end {
            left.push((start, end));
        }
    }
    left
}

/// The abbreviations, by table and code, that cannot hold the new ranges of an entry.
fn to_convert(tree: &Tree, changed: &FxHashMap<u32, Pieces>) -> FxHashSet<(u64, u64)> {
    let too_many = |(node, pieces): &(&u32, &Pieces)| {
        let node = &tree.nodes[**node as usize];
        node.list.is_none() && in_place(node, tree.pieces(node), pieces).is_none()
    };
    let key = |(node, _): (&u32, &Pieces)| {
        let node = &tree.nodes[*node as usize];
        (tree.units[node.unit as usize].abbreviations.value, node.code)
    };
    changed.iter().filter(too_many).map(key).collect()
}

/// What the fields of an entry's first and last address must hold for new ranges.
fn in_place(node: &Node, old: &[(u64, u64)], new: &[(u64, u64)]) -> Option<[(Field, u64); 2]> {
    let (low, high) = (node.low?, node.high?);
    let (start, end) = match new {
        [] => old.first().map(|&(start, _)| (start, start))?,
        [one] => *one,
        _ => return None,
    };
    let keeps_start = old.first().is_some_and(|old| old.0 == start);
    let low_value = match low.form {
        gimli::DW_FORM_addr => start,
        _ if keeps_start => low.value,
        _ => return None,
    };
    let high_value = match high.form {
        gimli::DW_FORM_addr => end,
        form => fixed_size(form).map(|_| end - start)?,
    };
    let fits = |value: u64, size: usize| size >= 8 || value >> (8 * size) == 0;
    fits(high_value, high.size).then_some([(low, low_value), (high, high_value)])
}

fn fixed_size(form: DwForm) -> Option<usize> {
    match form {
        gimli::DW_FORM_data1 => Some(1),
        gimli::DW_FORM_data2 => Some(2),
        gimli::DW_FORM_data4 => Some(4),
        gimli::DW_FORM_data8 => Some(8),
        _ => None,
    }
}

pub(super) fn put(bytes: &mut [u8], at: usize, size: usize, value: u64) -> Option<()> {
    let place = bytes.get_mut(at..at.checked_add(size)?)?;
    place.copy_from_slice(value.to_le_bytes().get(..size)?);
    Some(())
}

/// The lists for DWARF 5 that are added, as one table of their own.
#[derive(Default)]
struct NewLists {
    table: Option<usize>,
    /// Lists that were added, to be used again.
    known: FxHashMap<(bool, u64, Pieces), usize>,
}

/// What becomes of the lists in one table, by their indices.
#[derive(Default)]
struct Table<'p> {
    /// Lists that all their entries leave for the same new one.
    replaced: FxHashMap<u64, &'p Pieces>,
    /// The entries of those, whose index stays.
    stay: Vec<(u32, &'p Pieces)>,
    /// Entries that need another index.
    parted: Vec<(u32, &'p Pieces)>,
}

/// The index by which an entry names its list, if it does.
fn index_of(list: Option<Field>) -> Option<u64> {
    list.filter(|list| list.form == gimli::DW_FORM_rnglistx).map(|list| list.value)
}

/// Appends a table of lists with their offsets in front; gives the place of the offsets.
fn append_table(out: &mut Vec<u8>, address_size: u8, lists: &[Vec<u8>]) -> usize {
    let offsets = 4 * lists.len();
    let length = 8 + offsets + lists.iter().map(Vec::len).sum::<usize>();
    out.extend((length as u32).to_le_bytes());
    out.extend(5u16.to_le_bytes());
    out.extend([address_size, 0]);
    out.extend((lists.len() as u32).to_le_bytes());
    let base = out.len();
    let mut offset = offsets;
    for list in lists {
        out.extend((offset as u32).to_le_bytes());
        offset += list.len();
    }
    lists.iter().for_each(|list| out.extend(list));
    base
}

/// The bytes of the list that starts here, its end included; DWARF 5, section 2.17.3.
fn list_length(bytes: &[u8], address_size: usize) -> Option<usize> {
    let number = |at: usize| {
        let rest = bytes.get(at..)?;
        Some(at + 1 + rest.iter().position(|byte| byte & 0x80 == 0)?)
    };
    let mut at = 0;
    loop {
        let kind = gimli::DwRle(*bytes.get(at)?);
        at += 1;
        at = match kind {
            gimli::DW_RLE_end_of_list => return Some(at),
            gimli::DW_RLE_base_addressx => number(at)?,
            gimli::DW_RLE_startx_endx | gimli::DW_RLE_startx_length | gimli::DW_RLE_offset_pair => {
                number(number(at)?)?
            }
            gimli::DW_RLE_base_address => at + address_size,
            gimli::DW_RLE_start_end => at + 2 * address_size,
            gimli::DW_RLE_start_length => number(at + address_size)?,
            _ => return None,
        };
    }
}

struct Writer<'t, 'w, 's> {
    tree: &'t Tree,
    sections: &'w mut Sections<'s>,
    lists: NewLists,
}

impl Writer<'_, '_, '_> {
    /// Gives an entry new ranges in the attributes that it has.
    fn change(&mut self, node: &Node, pieces: &Pieces) -> Result<(), Fault> {
        let outside = || unsupported(node, "the entry reaches outside its section");
        let Some(list) = node.list else {
            let fields = in_place(node, self.tree.pieces(node), pieces).ok_or_else(outside)?;
            for (field, value) in fields {
                if fixed_size(field.form).is_some() || field.form == gimli::DW_FORM_addr {
                    put(self.sections.info, field.at, field.size, value).ok_or_else(outside)?;
                }
            }
            return Ok(());
        };
        let place = self.list(node, pieces)?;
        if list.form != gimli::DW_FORM_rnglistx {
            put(self.sections.info, list.at, list.size, place as u64).ok_or_else(outside)?;
            return Ok(());
        }
        let unit = &self.tree.units[node.unit as usize];
        let size = if unit.wide { 8 } else { 4 };
        let index = usize::try_from(list.value).ok().and_then(|index| index.checked_mul(size));
        let at = index.and_then(|index| index.checked_add(unit.lists_base)).ok_or_else(outside)?;
        let value = place.checked_sub(unit.lists_base).ok_or_else(outside)?;
        put(self.sections.lists, at, size, value as u64).ok_or_else(outside)
    }

    /// Gives entries that shared a list by its index, and do so no longer, indices of their own,
    /// in a copy of the unit's table that has room for them. Tells which entries are done.
    fn part(&mut self, changed: &FxHashMap<u32, Pieces>) -> Result<FxHashSet<u32>, Fault> {
        let mut users: BTreeMap<(usize, u64), Vec<u32>> = BTreeMap::new();
        for (at, node) in self.tree.nodes.iter().enumerate() {
            if let Some(index) = index_of(node.list) {
                let base = self.tree.units[node.unit as usize].lists_base;
                users.entry((base, index)).or_default().push(at as u32);
            }
        }
        let own = |base: usize, index: u64| {
            let units = self.tree.units.iter();
            units
                .filter(|unit| unit.lists_base == base)
                .any(|unit| index_of(unit.list) == Some(index))
        };
        let mut tables: BTreeMap<usize, Table<'_>> = BTreeMap::new();
        for ((base, index), users) in users {
            let mut new: Vec<(u32, &Pieces)> =
                users.iter().filter_map(|user| Some((*user, changed.get(user)?))).collect();
            let Some(&(_, first)) = new.first() else { continue };
            let table = tables.entry(base).or_default();
            if new.len() == users.len() && !own(base, index) {
                let (stay, part) = new.iter().partition(|(_, pieces)| *pieces == first);
                table.replaced.insert(index, first);
                table.stay.extend::<Vec<(u32, &Pieces)>>(stay);
                new = part;
            }
            table.parted.extend(new);
        }
        let mut done = FxHashSet::default();
        for (base, table) in tables.into_iter().filter(|(_, table)| !table.parted.is_empty()) {
            done.extend(table.stay.iter().chain(&table.parted).map(|(node, _)| *node));
            self.copy_table(base, &table)?;
        }
        Ok(done)
    }

    /// Copies the lists of one table to the end of the section, with those that are replaced and
    /// the new ones, and leads the units and the parted entries there.
    fn copy_table(&mut self, base: usize, table: &Table<'_>) -> Result<(), Fault> {
        let node = &self.tree.nodes[table.parted[0].0 as usize];
        let outside = || unsupported(node, "the table of range lists reaches outside its section");
        let unit = &self.tree.units[node.unit as usize];
        if unit.wide {
            return Err(unsupported(node, "entries of 64-bit DWARF that share a range list"));
        }
        let size = usize::from(unit.address_size).min(8);
        let old = self.sections.lists.clone();
        let word = |at: usize| Some(u32::from_le_bytes(*old.get(at..)?.first_chunk()?));
        let count = base.checked_sub(4).and_then(word).ok_or_else(outside)? as usize;
        let mut lists: Vec<Vec<u8>> = Vec::new();
        for index in 0..count {
            lists.push(match table.replaced.get(&(index as u64)) {
                Some(pieces) => encoded(size, pieces),
                None => {
                    let offset = word(base + 4 * index).ok_or_else(outside)? as usize;
                    let list = old.get(base + offset..).ok_or_else(outside)?;
                    list[..list_length(list, size).ok_or_else(outside)?].to_vec()
                }
            });
        }
        let mut known: FxHashMap<&Pieces, u64> = FxHashMap::default();
        for &(at, pieces) in &table.parted {
            let index = *known.entry(pieces).or_insert_with(|| {
                lists.push(encoded(size, pieces));
                lists.len() as u64 - 1
            });
            let node = &self.tree.nodes[at as usize];
            let field = node.list.ok_or_else(outside)?;
            let place = self.sections.info.get_mut(field.at..field.at + field.size);
            place.and_then(|place| leb::padded(place, index)).ok_or_else(|| {
                unsupported(node, "more parted range lists than the entry can count")
            })?;
        }
        let new_base = append_table(self.sections.lists, unit.address_size, &lists);
        for unit in self.tree.units.iter().filter(|unit| unit.lists_base == base) {
            let Some(field) = unit.lists_base_field else { continue };
            put(self.sections.info, field.at, field.size, new_base as u64).ok_or_else(outside)?;
        }
        Ok(())
    }

    /// Puts the place of a range list where the entry's addresses are, and tells what the
    /// abbreviation must say of the bytes.
    fn convert(&mut self, node: &Node, pieces: &Pieces) -> Result<Replacement, Fault> {
        let unit = &self.tree.units[node.unit as usize];
        let width = if unit.wide { 8 } else { 4 };
        let form = if unit.version < 4 { gimli::DW_FORM_data4 } else { gimli::DW_FORM_sec_offset };
        let (Some(low), Some(high)) = (node.low, node.high) else {
            return Err(unsupported(node, "the entry has a range without a start"));
        };
        let is_fixed =
            |field: &Field| field.form == gimli::DW_FORM_addr || fixed_size(field.form).is_some();
        let fits =
            |field: &Field| is_fixed(field) && (field.size == width || field.size == width + 4);
        let holder = [low, high].into_iter().find(fits).ok_or_else(|| {
            unsupported(node, "the entry has no room for the place of a range list")
        })?;
        let place = self.list(node, pieces)?;
        let outside = || unsupported(node, "the entry reaches outside its section");
        for field in [low, high].iter().filter(|field| is_fixed(field)) {
            put(self.sections.info, field.at, field.size.min(8), 0).ok_or_else(outside)?;
        }
        put(self.sections.info, holder.at, width, place as u64).ok_or_else(outside)?;
        let filler = |field: &Field| match (field.form, field.size) {
            (gimli::DW_FORM_addr, 8) => gimli::DW_FORM_data8,
            (gimli::DW_FORM_addr, _) => gimli::DW_FORM_data4,
            (gimli::DW_FORM_addrx, _) => gimli::DW_FORM_udata,
            (form, _) => form,
        };
        Ok(Replacement {
            list_form: form,
            in_low: holder.at == low.at,
            rest: holder.size > width,
            other: if holder.at == low.at { filler(&high) } else { filler(&low) },
        })
    }

    /// Adds a list, and tells where it is in its section.
    fn list(&mut self, node: &Node, pieces: &Pieces) -> Result<usize, Fault> {
        let unit = &self.tree.units[node.unit as usize];
        let new = unit.version >= 5;
        let key = (new, if new { 0 } else { unit.base }, pieces.clone());
        if let Some(&place) = self.lists.known.get(&key) {
            return Ok(place);
        }
        let size = usize::from(unit.address_size).min(8);
        let place = if new {
            let out = &mut *self.sections.lists;
            if self.lists.table.is_none() {
                self.lists.table = Some(out.len());
                out.extend([0; 4]);
                out.extend(5u16.to_le_bytes());
                out.extend([unit.address_size, 0, 0, 0, 0, 0]);
            }
            let place = out.len();
            new_list(out, size, pieces);
            place
        } else {
            let out = &mut *self.sections.old_lists;
            let place = out.len();
            old_list(out, size, unit.base, pieces);
            place
        };
        if u32::try_from(place).is_err() {
            return Err(unsupported(node, "range lists of more than 4 GiB"));
        }
        self.lists.known.insert(key, place);
        Ok(place)
    }

    fn finish(&mut self) {
        if let Some(table) = self.lists.table {
            let length = (self.sections.lists.len() - table - 4) as u32;
            self.sections.lists[table..table + 4].copy_from_slice(&length.to_le_bytes());
        }
    }
}

/// [`new_list`] by itself.
fn encoded(size: usize, pieces: &Pieces) -> Vec<u8> {
    let mut list = Vec::new();
    new_list(&mut list, size, pieces);
    list
}

/// A list of DWARF 5: a base address, then pairs of distances from it.
fn new_list(out: &mut Vec<u8>, size: usize, pieces: &Pieces) {
    if let Some(&(base, _)) = pieces.first() {
        out.push(gimli::DW_RLE_base_address.0);
        out.extend(&base.to_le_bytes()[..size]);
        for (start, end) in pieces {
            out.push(gimli::DW_RLE_offset_pair.0);
            leb::unsigned(out, start - base);
            leb::unsigned(out, end - base);
        }
    }
    out.push(gimli::DW_RLE_end_of_list.0);
}

/// A list of DWARF 2 to 4: pairs of distances from the unit's start.
fn old_list(out: &mut Vec<u8>, size: usize, base: u64, pieces: &Pieces) {
    let mut put = |start: u64, end: u64| {
        out.extend(&start.to_le_bytes()[..size]);
        out.extend(&end.to_le_bytes()[..size]);
    };
    let below = pieces.iter().any(|(start, _)| *start < base);
    if below {
        put(u64::MAX, 0);
    }
    let base = if below { 0 } else { base };
    pieces.iter().for_each(|(start, end)| put(start - base, end - base));
    put(0, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_parted() {
        assert_eq!(normalized(vec![(8, 12), (0, 4), (4, 6), (9, 10)]), [(0, 6), (8, 12)]);
        assert_eq!(without(&[(0, 10), (20, 30)], &[(2, 4), (8, 22)]), [(0, 2), (4, 8), (22, 30)]);
        assert_eq!(without(&[(0, 10)], &[(0, 10)]), []);
        assert_eq!(without(&[(0, 10)], &[]), [(0, 10)]);
        assert_eq!(without(&[(5, 10)], &[(0, 6), (9, 20)]), [(6, 9)]);
    }

    #[test]
    fn lists_end_where_readers_end() {
        let list = [5, 1, 2, 3, 4, 4, 0x80, 1, 5, 1, 9, 3, 1, 0x81, 1, 7, 1, 2, 3, 4, 8, 0, 99];
        assert_eq!(list_length(&list, 4), Some(22));
        assert_eq!(list_length(&list[..21], 4), None);
        assert_eq!(list_length(&[77, 0], 4), None);
        let mut out = vec![0; 3];
        let base = append_table(&mut out, 8, &[vec![0], vec![7, 7, 0]]);
        let table = [20, 0, 0, 0, 5, 0, 8, 0, 2, 0, 0, 0, 8, 0, 0, 0, 9, 0, 0, 0, 0, 7, 7, 0];
        assert_eq!((base, &out[3..]), (15, &table[..]));
    }

    #[test]
    fn lists_are_as_readers_read_them() {
        let mut out = Vec::new();
        new_list(&mut out, 8, &vec![(16, 20), (32, 300)]);
        assert_eq!(out, [5, 16, 0, 0, 0, 0, 0, 0, 0, 4, 0, 4, 4, 16, 156, 2, 0]);
        let mut out = Vec::new();
        old_list(&mut out, 4, 8, &vec![(16, 20)]);
        assert_eq!(out, [8, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let mut out = Vec::new();
        old_list(&mut out, 4, 8, &vec![(4, 20)]);
        assert_eq!(&out[..16], [255, 255, 255, 255, 0, 0, 0, 0, 4, 0, 0, 0, 20, 0, 0, 0]);
    }
}
