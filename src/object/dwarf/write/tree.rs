//! The entries of `.debug_info` that have addresses, with the places of what may be patched.

use gimli::{AttributeValue, DwAt, DwForm, EntriesRaw, Format, SectionId};

use crate::object::error::{Fault, Problem};

use super::super::read::edges::{ScopeRange, flatten};
use super::super::read::{Dwarf, Slice, Unit as GimliUnit};
use super::super::{Edge, OUTSIDE};
use super::lines::Place;

/// The most entries, and the most ranges of them, that are rewritten.
const MOST_NODES: usize = 4 << 20;

/// An entry with addresses: a function, an inlined function or a block in one.
#[derive(Debug)]
pub(crate) struct Node {
    /// The entry with addresses around it.
    pub(crate) parent: Option<u32>,
    pub(super) unit: u32,
    pub(super) entry: usize,
    /// The code of its abbreviation.
    pub(super) code: u64,
    pub(super) low: Option<Field>,
    pub(super) high: Option<Field>,
    pub(super) list: Option<Field>,
    /// Where the entry says which function it is a copy of.
    pub(super) origin: Option<Field>,
    /// Where an inlined function was called.
    pub(crate) call: Option<Place>,
    first: u32,
    last: u32,
}

/// An attribute's value in `.debug_info`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub(super) at: usize,
    pub(super) size: usize,
    pub(super) form: DwForm,
    /// The number of forms that are one.
    pub(super) value: u64,
}

/// What matters of a unit.
#[derive(Debug)]
pub(super) struct Unit {
    /// Where it starts in `.debug_info`.
    pub(super) start: usize,
    /// Where the list of its outermost entries ends.
    pub(super) close: Option<usize>,
    /// A code that its abbreviations leave free.
    pub(super) free_code: u64,
    pub(super) version: u16,
    pub(super) wide: bool,
    pub(super) address_size: u8,
    /// Where the unit's header says where its abbreviations are.
    pub(super) abbreviations: Field,
    pub(super) stmt_list: Option<Field>,
    /// What addresses in range lists count from.
    pub(super) base: u64,
    pub(super) lists_base: usize,
    /// Where the unit says `lists_base`.
    pub(super) lists_base_field: Option<Field>,
    /// Where the unit names the list of its own addresses.
    pub(super) list: Option<Field>,
    /// Its line program, by number.
    pub(super) program: Option<usize>,
}

/// The entries of all units.
#[derive(Default, Debug)]
pub(crate) struct Tree {
    pub(super) units: Vec<Unit>,
    pub(crate) nodes: Vec<Node>,
    pieces: Vec<(u64, u64)>,
    edges: Vec<Edge>,
}

fn malformed(at: usize, error: gimli::Error) -> Fault {
    Fault::within(".debug_info", at as u64, Problem::Dwarf(error))
}

impl Tree {
    /// The entries of units, which are given with the numbers of their line programs.
    pub(super) fn read(
        dwarf: &Dwarf<'_>,
        units: &[(GimliUnit<'_>, Option<usize>)],
    ) -> Result<Self, Fault> {
        let mut tree = Tree::default();
        for (unit, program) in units {
            tree.read_unit(dwarf, unit, *program)?;
        }
        let ranges = tree.nodes.iter().enumerate().flat_map(|(scope, node)| {
            let scope = scope as u32;
            tree.pieces(node).iter().map(move |&(start, end)| ScopeRange { start, end, scope })
        });
        tree.edges = flatten(ranges.collect());
        Ok(tree)
    }

    /// The addresses of a node, as they are written.
    pub(super) fn pieces(&self, node: &Node) -> &[(u64, u64)] {
        &self.pieces[node.first as usize..node.last as usize]
    }

    fn read_unit(
        &mut self,
        dwarf: &Dwarf<'_>,
        unit: &GimliUnit<'_>,
        program: Option<usize>,
    ) -> Result<(), Fault> {
        let header = unit.header;
        let start = header.debug_info_offset().map_or(0, |offset| offset.0);
        let wide = header.format() == Format::Dwarf64;
        let before = usize::from(header.format().initial_length_size())
            + if header.version() >= 5 { 4 } else { 2 };
        let abbreviations = Field {
            at: start + before,
            size: if wide { 8 } else { 4 },
            form: gimli::DW_FORM_sec_offset,
            value: header.debug_abbrev_offset().0 as u64,
        };
        let table = unit.abbreviations.clone();
        let free_code = (1..).find(|code| table.get(*code).is_none()).unwrap_or_default();
        self.units.push(Unit {
            start,
            close: None,
            free_code,
            version: header.version(),
            wide,
            address_size: header.address_size(),
            abbreviations,
            stmt_list: None,
            base: unit.low_pc,
            lists_base: unit.rnglists_base.0,
            lists_base_field: None,
            list: None,
            program,
        });
        let mut entries =
            header.entries_raw(&table, None).map_err(|error| malformed(start, error))?;
        let mut open: Vec<(isize, u32)> = Vec::new();
        let mut close = None;
        while !entries.is_empty() {
            let depth = entries.next_depth();
            let at = start + entries.next_offset().0;
            let node = self.read_entry(dwarf, unit, &mut entries, start);
            let Some(mut node) = node.map_err(|error| malformed(at, error))? else {
                if (depth, entries.next_depth()) == (1, 0) {
                    close.get_or_insert(at);
                }
                continue;
            };
            while open.pop_if(|(outer, _)| *outer >= depth).is_some() {}
            if self.nodes.len() == MOST_NODES || self.pieces.len() > MOST_NODES {
                let what = Problem::TooMuchWork("the tree of inlined functions");
                return Err(Fault::within(".debug_info", at as u64, what));
            }
            node.parent = open.last().map(|(_, node)| *node);
            open.push((depth, self.nodes.len() as u32));
            self.nodes.push(node);
        }
        if let Some(unit) = self.units.last_mut() {
            unit.close = close;
        }
        Ok(())
    }

    /// Reads one entry; it is a node when it has a range of addresses and is not the unit.
    fn read_entry<'a>(
        &mut self,
        dwarf: &Dwarf<'a>,
        unit: &GimliUnit<'a>,
        entries: &mut EntriesRaw<'_, Slice<'a>>,
        start: usize,
    ) -> gimli::Result<Option<Node>> {
        let entry = start + entries.next_offset().0;
        let Some(abbreviation) = entries.read_abbreviation()? else { return Ok(None) };
        let is_unit = entry == start + unit.header.root_offset().0;
        let specs = abbreviation.attributes();
        let has = |name| specs.iter().any(|spec| spec.name() == name);
        let wanted = has(gimli::DW_AT_ranges) || has(gimli::DW_AT_high_pc);
        if !is_unit && !wanted {
            entries.skip_attributes(specs)?;
            return Ok(None);
        }
        let first = self.pieces.len() as u32;
        let (mut low, mut high, mut list) = (None, None, None);
        let (mut stmt_list, mut lists_base, mut origin) = (None, None, None);
        let (mut low_value, mut high_value, mut list_value) = (None, None, None);
        let mut call = Place { file: 0, line: 0, column: 0, discriminator: 0 };
        for spec in specs {
            let at = start + entries.next_offset().0;
            let attribute = entries.read_attribute(*spec)?;
            let size = start + entries.next_offset().0 - at;
            let value = attribute.value();
            let number = number(&attribute.raw_value());
            let narrow = u32::try_from(number).unwrap_or(u32::MAX);
            let field = Some(Field { at, size, form: attribute.form(), value: number });
            match attribute.name() {
                gimli::DW_AT_low_pc => (low, low_value) = (field, Some(value)),
                gimli::DW_AT_high_pc => (high, high_value) = (field, Some(value)),
                gimli::DW_AT_ranges => (list, list_value) = (field, Some(value)),
                gimli::DW_AT_stmt_list => stmt_list = field,
                gimli::DW_AT_rnglists_base => lists_base = field,
                gimli::DW_AT_abstract_origin => origin = field,
                gimli::DW_AT_call_file => call.file = narrow,
                gimli::DW_AT_call_line => call.line = narrow,
                gimli::DW_AT_call_column => call.column = narrow,
                _ => {}
            }
        }
        if is_unit {
            if let Some(unit) = self.units.last_mut() {
                unit.stmt_list = stmt_list;
                unit.lists_base_field = lists_base;
                unit.list = list;
            }
            return Ok(None);
        }
        let lists = list_value.map(|value| dwarf.attr_ranges(unit, value)).transpose()?;
        if let Some(Some(mut ranges)) = lists {
            while let Some(range) = ranges.next()? {
                if range.begin < range.end && self.pieces.len() <= MOST_NODES {
                    self.pieces.push((range.begin, range.end));
                }
            }
        } else if let (Some(low), Some(high)) = (low_value, high_value) {
            let start = dwarf.attr_address(unit, low)?;
            let end = match high.udata_value() {
                Some(size) => start.map(|start| start.saturating_add(size)),
                None => dwarf.attr_address(unit, high)?,
            };
            if let (Some(start), Some(end)) = (start, end) {
                self.pieces.extend((start < end).then_some((start, end)));
            }
        }
        let inlined = abbreviation.tag() == gimli::DW_TAG_inlined_subroutine;
        Ok(Some(Node {
            parent: None,
            unit: self.units.len() as u32 - 1,
            entry,
            code: abbreviation.code(),
            low,
            high,
            list,
            origin,
            call: inlined.then_some(call),
            first,
            last: self.pieces.len() as u32,
        }))
    }

    /// The innermost node at an address.
    pub(crate) fn node_at(&self, address: u64) -> Option<u32> {
        let after = self.edges.partition_point(|edge| edge.address <= address);
        let scope = self.edges[..after].last()?.scope;
        (scope != OUTSIDE).then_some(scope)
    }

    /// A node and those around it, innermost first.
    pub(crate) fn around(&self, node: Option<u32>) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(node, |&node| self.nodes[node as usize].parent)
    }

    /// The innermost inlined function at or around a node.
    pub(crate) fn inlined(&self, node: Option<u32>) -> Option<u32> {
        self.around(node).find(|&node| self.nodes[node as usize].call.is_some())
    }

    /// The number of the line program that a node's file numbers are for.
    pub(crate) fn program(&self, node: u32) -> Option<usize> {
        self.units[self.nodes[node as usize].unit as usize].program
    }
}

/// The number that a value is or stands for; 0 for other values.
fn number(value: &AttributeValue<Slice<'_>>) -> u64 {
    match *value {
        AttributeValue::DebugLineRef(offset) => offset.0 as u64,
        AttributeValue::SecOffset(offset) => offset as u64,
        AttributeValue::RangeListsRef(offset) => offset.0 as u64,
        AttributeValue::DebugRngListsIndex(index) => index.0 as u64,
        AttributeValue::DebugAddrIndex(index) => index.0 as u64,
        AttributeValue::FileIndex(index) => index,
        AttributeValue::Addr(address) => address,
        AttributeValue::UnitRef(offset) => offset.0 as u64,
        AttributeValue::DebugInfoRef(offset) => offset.0 as u64,
        ref other => other.udata_value().unwrap_or(0),
    }
}

/// What attribute names a patch may add: fillers that no reader knows, each once in an entry.
pub(super) const FILLER: [DwAt; 3] = [DwAt(0x3e50), DwAt(0x3e51), DwAt(0x3e52)];

/// The section that a fault in a patch is in.
pub(super) fn section() -> &'static str {
    SectionId::DebugInfo.name()
}
