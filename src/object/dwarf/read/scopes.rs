//! Functions and inlined functions of a unit: their names, ranges and call sites.

use gimli::{AttributeValue, DebugInfoOffset, DwTag, EntriesRaw, SectionId, UnitOffset};

use crate::chain::{Frame, Line, Sym};
use crate::object::dwarf::{Scope, Subprogram};
use crate::object::error::{Fault, Problem};
use crate::object::place::Vaddr;

use super::edges::ScopeRange;
use super::{Files, Reader, Slice};

type Value<'a> = AttributeValue<Slice<'a>>;

/// The most functions, and the most ranges of them, that are read.
const MOST_SCOPES: usize = 4 << 20;
/// How deeply inlined functions may nest.
const MOST_LEVELS: u32 = 1024;
/// How many references from one description of a function to another are followed.
const MOST_ORIGINS: usize = 16;

/// The attributes of a function that are of use here.
#[derive(Default)]
struct Attributes<'a> {
    name: Option<Value<'a>>,
    origin: Option<Value<'a>>,
    low: Option<Value<'a>>,
    high: Option<Value<'a>>,
    ranges: Option<Value<'a>>,
    call: Position,
    declared: Position,
}

#[derive(Clone, Copy, Default)]
struct Position {
    file: Option<u64>,
    line: u32,
    column: u32,
}

/// A function around the entries that are being read.
struct Open {
    depth: isize,
    levels: u32,
    scope: Scope,
}

impl<'a> Reader<'a, '_> {
    /// Reads the functions of a unit.
    pub(super) fn read_scopes(&mut self, unit: usize, files: &mut Files) -> Result<(), Fault> {
        let dwarf_unit = &self.units[unit];
        let abbreviations = dwarf_unit.abbreviations.clone();
        let header = dwarf_unit.header;
        let base = header.debug_info_offset().map_or(0, |offset| offset.0);
        let mut entries = header
            .entries_raw(&abbreviations, None)
            .map_err(|error| self.fault(error, SectionId::DebugInfo, base))?;
        let mut open = Vec::new();
        while !entries.is_empty() {
            let at = entries.next_offset();
            let depth = entries.next_depth();
            let read = self.read_entry(&mut entries, base + at.0)?;
            let Some((tag, attributes)) = read else { continue };
            while open.pop_if(|scope: &mut Open| scope.depth >= depth).is_some() {}
            let scope = self.enter(unit, files, base + at.0, tag, &attributes, open.last())?;
            open.push(Open { depth, ..scope });
        }
        Ok(())
    }

    /// Reads one entry; its attributes are returned when it is a function.
    fn read_entry(
        &mut self,
        entries: &mut EntriesRaw<'_, Slice<'a>>,
        at: usize,
    ) -> Result<Option<(DwTag, Attributes<'a>)>, Fault> {
        let fault = |reader: &Self, error| reader.fault(error, SectionId::DebugInfo, at);
        let abbreviation = entries.read_abbreviation().map_err(|error| fault(self, error))?;
        let Some(abbreviation) = abbreviation else {
            self.budget.spend(1, SectionId::DebugInfo, at as u64)?;
            return Ok(None);
        };
        let specs = abbreviation.attributes();
        self.budget.spend(specs.len() as u64 + 1, SectionId::DebugInfo, at as u64)?;
        let tag = abbreviation.tag();
        if tag != gimli::DW_TAG_subprogram && tag != gimli::DW_TAG_inlined_subroutine {
            entries.skip_attributes(specs).map_err(|error| fault(self, error))?;
            return Ok(None);
        }
        let mut attributes = Attributes::default();
        for spec in specs {
            let attribute = entries.read_attribute(*spec).map_err(|error| fault(self, error))?;
            attributes.take(attribute.name(), attribute.value());
        }
        Ok(Some((tag, attributes)))
    }

    /// Makes the scope of a function and takes its ranges.
    fn enter(
        &mut self,
        unit: usize,
        files: &mut Files,
        at: usize,
        tag: DwTag,
        attributes: &Attributes<'a>,
        outer: Option<&Open>,
    ) -> Result<Open, Fault> {
        let function = self.function_name(unit, at, attributes)?;
        let inlined = tag == gimli::DW_TAG_inlined_subroutine;
        let levels = if inlined { outer.map_or(0, |outer| outer.levels) + 1 } else { 0 };
        if levels > MOST_LEVELS || self.info.scopes.len() == MOST_SCOPES {
            let what = Problem::TooMuchWork("the tree of inlined functions");
            return Err(Fault::within(".debug_info", at as u64, what));
        }
        let call = if inlined {
            let frame = Frame {
                file: self.position_file(unit, files, attributes.call)?,
                line: attributes.call.line,
                column: attributes.call.column,
                function: outer.and_then(|outer| outer.scope.function),
            };
            Some(self.chains.push(frame, outer.and_then(|outer| outer.scope.call)))
        } else {
            None
        };
        let scope = Scope { function, call };
        let lowest = self.take_ranges(unit, at, attributes)?;
        if let Some(address) = lowest {
            self.info.scopes.push(scope);
            if !inlined {
                let definition = self.definition(unit, files, at, attributes)?;
                let subprogram = Subprogram { address: Vaddr(address), name: function, definition };
                self.info.subprograms.push(subprogram);
            }
        }
        Ok(Open { depth: 0, levels, scope })
    }

    fn position_file(
        &mut self,
        unit: usize,
        files: &mut Files,
        position: Position,
    ) -> Result<Sym, Fault> {
        match position.file {
            Some(file) => self.file(unit, files, file),
            None => Ok(self.chains.sym(super::NO_FILE)),
        }
    }

    /// Adds the ranges of the scope that comes next, and gives the lowest address.
    fn take_ranges(
        &mut self,
        unit: usize,
        at: usize,
        attributes: &Attributes<'a>,
    ) -> Result<Option<u64>, Fault> {
        let scope = self.info.scopes.len() as u32;
        let first = self.ranges.len();
        let ranges = attributes.ranges.map(|value| self.range_list(unit, value));
        match ranges.transpose().map_err(|error| self.fault(error, SectionId::DebugInfo, at))? {
            Some(Some(mut list)) => {
                while let Some(range) =
                    list.next().map_err(|error| self.fault(error, SectionId::DebugRngLists, 0))?
                {
                    self.add_range(ScopeRange { start: range.begin, end: range.end, scope }, at)?;
                }
            }
            _ => {
                let range = self.low_to_high(unit, attributes);
                let range = range.map_err(|error| self.fault(error, SectionId::DebugInfo, at))?;
                if let Some((start, end)) = range {
                    self.add_range(ScopeRange { start, end, scope }, at)?;
                }
            }
        }
        Ok(self.ranges[first..].iter().map(|range| range.start).min())
    }

    fn range_list(
        &self,
        unit: usize,
        value: Value<'a>,
    ) -> gimli::Result<Option<gimli::RngListIter<Slice<'a>>>> {
        self.dwarf.attr_ranges(&self.units[unit], value)
    }

    fn add_range(&mut self, range: ScopeRange, at: usize) -> Result<(), Fault> {
        self.budget.spend(1, SectionId::DebugInfo, at as u64)?;
        if self.ranges.len() == MOST_SCOPES {
            let what = Problem::TooMuchWork("the ranges of inlined functions");
            return Err(Fault::within(".debug_info", at as u64, what));
        }
        if range.start < range.end {
            self.ranges.push(range);
        }
        Ok(())
    }

    fn low_to_high(
        &self,
        unit: usize,
        attributes: &Attributes<'a>,
    ) -> gimli::Result<Option<(u64, u64)>> {
        let unit = &self.units[unit];
        let address = |value| self.dwarf.attr_address(unit, value);
        let (Some(low), Some(high)) = (attributes.low, attributes.high) else { return Ok(None) };
        let Some(low) = address(low)? else { return Ok(None) };
        let high = match high.udata_value() {
            Some(size) => Some(low.saturating_add(size)),
            None => address(high)?,
        };
        Ok(high.map(|high| (low, high)))
    }

    /// The name of a function: its own, or that of the description it refers to.
    fn function_name(
        &mut self,
        unit: usize,
        at: usize,
        attributes: &Attributes<'a>,
    ) -> Result<Option<Sym>, Fault> {
        if let Some(name) = attributes.name {
            return self.text(unit, at, name).map(Some);
        }
        let Some(origin) = attributes.origin.and_then(|origin| self.resolve(unit, origin)) else {
            return Ok(None);
        };
        if let Some(&known) = self.names.get(&origin) {
            return Ok(known);
        }
        let found = self.follow(unit, attributes, |attributes| attributes.name.is_some())?;
        let name = match found {
            Some((unit, attributes)) => {
                attributes.name.map(|name| self.text(unit, at, name)).transpose()?
            }
            None => None,
        };
        self.names.insert(origin, name);
        Ok(name)
    }

    fn definition(
        &mut self,
        unit: usize,
        files: &mut Files,
        _at: usize,
        attributes: &Attributes<'a>,
    ) -> Result<Option<Line>, Fault> {
        let has_line = |attributes: &Attributes<'_>| {
            attributes.declared.line != 0 && attributes.declared.file.is_some()
        };
        let (unit_of, declared) = if has_line(attributes) {
            (unit, attributes.declared)
        } else {
            match self.follow(unit, attributes, has_line)? {
                Some((unit_of, found)) => (unit_of, found.declared),
                None => return Ok(None),
            }
        };
        let file = if unit_of == unit {
            self.position_file(unit, files, declared)?
        } else {
            self.position_file(unit_of, &mut Files::default(), declared)?
        };
        Ok(Some(Line { file, number: declared.line }))
    }

    /// The first description of a function, along its references, that is wanted.
    fn follow(
        &mut self,
        unit: usize,
        attributes: &Attributes<'a>,
        wanted: impl Fn(&Attributes<'a>) -> bool,
    ) -> Result<Option<(usize, Attributes<'a>)>, Fault> {
        let mut place = attributes.origin.and_then(|origin| self.resolve(unit, origin));
        for _ in 0..MOST_ORIGINS {
            let Some(at) = place else { return Ok(None) };
            let Some((unit, found)) = self.description(at)? else { return Ok(None) };
            if wanted(&found) {
                return Ok(Some((unit, found)));
            }
            place = found.origin.and_then(|origin| self.resolve(unit, origin));
        }
        let what = "a function's description refers to itself";
        let at = place.unwrap_or_default() as u64;
        Err(Fault::within(".debug_info", at, Problem::Malformed(what.into())))
    }

    /// The place in `.debug_info` that a reference leads to.
    fn resolve(&self, unit: usize, reference: Value<'a>) -> Option<usize> {
        let header = &self.units[unit].header;
        match reference {
            AttributeValue::UnitRef(UnitOffset(offset)) => {
                header.debug_info_offset()?.0.checked_add(offset)
            }
            AttributeValue::DebugInfoRef(DebugInfoOffset(offset)) => Some(offset),
            _ => None,
        }
    }

    /// The description of a function at a place in `.debug_info`, and its unit.
    fn description(&mut self, at: usize) -> Result<Option<(usize, Attributes<'a>)>, Fault> {
        let start = |unit: &super::Unit<'a>| unit.header.debug_info_offset().map_or(0, |o| o.0);
        let after = self.units.partition_point(|unit| start(unit) <= at);
        let Some(index) = after.checked_sub(1) else { return Ok(None) };
        let unit = &self.units[index];
        let offset = UnitOffset(at - start(unit));
        let abbreviations = unit.abbreviations.clone();
        let header = unit.header;
        let mut entries = header
            .entries_raw(&abbreviations, Some(offset))
            .map_err(|error| self.fault(error, SectionId::DebugInfo, at))?;
        let read = self.read_entry(&mut entries, at)?;
        Ok(read.map(|(_, attributes)| (index, attributes)))
    }

    fn text(&mut self, unit: usize, at: usize, value: Value<'a>) -> Result<Sym, Fault> {
        let text = self.dwarf.attr_string(&self.units[unit], value);
        let text = text.map_err(|error| self.fault(error, SectionId::DebugInfo, at))?;
        self.budget.spend(text.len() as u64, SectionId::DebugInfo, at as u64)?;
        Ok(self.chains.sym(&text.to_string_lossy()))
    }
}

impl<'a> Attributes<'a> {
    fn take(&mut self, name: gimli::DwAt, value: Value<'a>) {
        let number = || value.udata_value().map_or(0, |n| u32::try_from(n).unwrap_or(u32::MAX));
        match name {
            gimli::DW_AT_name => self.name = Some(value),
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => self.origin = Some(value),
            gimli::DW_AT_low_pc => self.low = Some(value),
            gimli::DW_AT_high_pc => self.high = Some(value),
            gimli::DW_AT_ranges => self.ranges = Some(value),
            gimli::DW_AT_call_file => self.call.file = file_index(value),
            gimli::DW_AT_call_line => self.call.line = number(),
            gimli::DW_AT_call_column => self.call.column = number(),
            gimli::DW_AT_decl_file => self.declared.file = file_index(value),
            gimli::DW_AT_decl_line => self.declared.line = number(),
            _ => {}
        }
    }
}

fn file_index(value: Value<'_>) -> Option<u64> {
    match value {
        AttributeValue::FileIndex(index) => Some(index),
        value => value.udata_value(),
    }
}
