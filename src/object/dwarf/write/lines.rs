//! Line programs: read into rows with every register, and encoded anew behind their headers.
//!
//! A header is kept byte for byte but for the length in front of it, so that file and directory
//! numbers stay what `DW_AT_call_file` and `DW_AT_decl_file` take them for.

use std::ops::Range;

use gimli::{ColumnType, Format, LineInstruction, LineProgramHeader};
use rustc_hash::FxHashMap;

use crate::object::error::{Fault, Problem};

use super::super::{REFINED_DISCRIMINATOR, read::Slice};
use super::leb;

/// The most rows that are rewritten.
const MOST_ROWS: usize = 8 << 20;

/// One row with all registers that say something of the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Row {
    pub(crate) address: u64,
    pub(crate) place: Place,
    pub(crate) is_stmt: bool,
    pub(crate) basic_block: bool,
    pub(crate) prologue_end: bool,
    pub(crate) epilogue_begin: bool,
    pub(crate) isa: u32,
}

/// What a row shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The number of the file in the program's own table.
    pub(crate) file: u32,
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) discriminator: u32,
}

/// Rows up to the address at which they end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Sequence {
    pub(crate) rows: Vec<Row>,
    pub(crate) end: u64,
    /// The instruction set of the row that ends the sequence.
    pub(crate) end_isa: u32,
}

/// A line program.
#[derive(Debug)]
pub(crate) struct Program {
    /// From its length field to its end, in the section.
    pub(crate) range: Range<usize>,
    /// Where its first opcode is, in the section.
    opcodes: usize,
    encoding: Encoding,
    pub(crate) sequences: Vec<Sequence>,
    /// Whether the rows already are sites.
    pub(crate) refined: bool,
}

#[derive(Clone, Copy, Debug)]
struct Encoding {
    wide: bool,
    address_size: u8,
    min_length: u64,
    line_base: i64,
    line_range: u64,
    opcode_base: u8,
    default_is_stmt: bool,
}

fn fault(at: usize, problem: Problem) -> Fault {
    Fault::within(".debug_line", at as u64, problem)
}

fn unsupported(at: usize, what: &'static str) -> Fault {
    fault(at, Problem::Unsupported(what.into()))
}

/// Reads the program of a unit.
pub(super) fn read(
    program: gimli::IncompleteLineProgram<Slice<'_>>,
    section: Slice<'_>,
) -> Result<Program, Fault> {
    let header = program.header().clone();
    let at = header.offset().0;
    let length_size = usize::from(header.format().initial_length_size());
    let opcodes = header.raw_program_buf().offset_from(section);
    let range = at..at + length_size + header.unit_length();
    let encoding = Encoding::of(&header)?;
    let refined = check_instructions(&header)?;
    let sequences = read_sequences(program, at)?;
    Ok(Program { range, opcodes, encoding, sequences, refined })
}

/// Whether the program starts with the mark of siteline's rows.
fn check_instructions(header: &LineProgramHeader<Slice<'_>>) -> Result<bool, Fault> {
    let at = header.offset().0;
    let mut instructions = header.instructions();
    let mut first = true;
    let mut refined = false;
    loop {
        let next = instructions.next_instruction(header);
        match next.map_err(|error| fault(at, Problem::Dwarf(error)))? {
            None => return Ok(refined),
            Some(LineInstruction::DefineFile(_)) => {
                return Err(unsupported(at, "line programs that define files among their rows"));
            }
            Some(LineInstruction::SetDiscriminator(number)) if first => {
                refined = number == u64::from(REFINED_DISCRIMINATOR);
            }
            Some(_) => {}
        }
        first = false;
    }
}

fn read_sequences(
    program: gimli::IncompleteLineProgram<Slice<'_>>,
    at: usize,
) -> Result<Vec<Sequence>, Fault> {
    let mut sequences = Vec::new();
    let mut open: Vec<Row> = Vec::new();
    let mut count = 0;
    let mut rows = program.rows();
    while let Some((_, row)) = rows.next_row().map_err(|error| fault(at, Problem::Dwarf(error)))? {
        count += 1;
        if count > MOST_ROWS {
            return Err(fault(at, Problem::TooMuchWork("the line program")));
        }
        if row.end_sequence() {
            let (end, end_isa) = (row.address(), row.isa() as u32);
            sequences.push(Sequence { rows: std::mem::take(&mut open), end, end_isa });
        } else {
            open.push(Row::of(row).ok_or_else(|| unsupported(at, "rows with numbers over 2^32"))?);
        }
    }
    match open.is_empty() {
        true => Ok(sequences),
        false => {
            let what = "the last sequence of the line program does not end";
            Err(fault(at, Problem::Malformed(what.into())))
        }
    }
}

impl Row {
    fn of(row: &gimli::LineRow) -> Option<Row> {
        let column = match row.column() {
            ColumnType::LeftEdge => 0,
            ColumnType::Column(column) => column.get(),
        };
        Some(Row {
            address: row.address(),
            place: Place {
                file: row.file_index().try_into().ok()?,
                line: row.line().map_or(0, |line| line.get()).try_into().ok()?,
                column: column.try_into().ok()?,
                discriminator: row.discriminator().try_into().ok()?,
            },
            is_stmt: row.is_stmt(),
            basic_block: row.basic_block(),
            prologue_end: row.prologue_end(),
            epilogue_begin: row.epilogue_begin(),
            isa: row.isa().try_into().ok()?,
        })
    }
}

impl Encoding {
    fn of(header: &LineProgramHeader<Slice<'_>>) -> Result<Self, Fault> {
        const LENGTHS: [u8; 12] = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
        let at = header.offset().0;
        let base = header.opcode_base();
        let lengths = header.standard_opcode_lengths().slice();
        let usual = lengths.iter().zip(LENGTHS).all(|(have, want)| *have == want);
        if base < 10 || !usual {
            return Err(unsupported(at, "line programs whose standard opcodes are not the usual"));
        }
        if header.maximum_operations_per_instruction() > 1 {
            return Err(unsupported(at, "line programs with several operations per instruction"));
        }
        if ![4, 8].contains(&header.address_size()) {
            return Err(unsupported(at, "line programs with addresses of other than 4 or 8 bytes"));
        }
        Ok(Encoding {
            wide: header.format() == Format::Dwarf64,
            address_size: header.address_size(),
            min_length: header.minimum_instruction_length().max(1).into(),
            line_base: header.line_base().into(),
            line_range: header.line_range().max(1).into(),
            opcode_base: base,
            default_is_stmt: header.default_is_stmt(),
        })
    }
}

/// The section with every program encoded anew, and where each program then starts.
pub(super) fn rebuild(
    section: &[u8],
    programs: &[Program],
) -> Result<(Vec<u8>, FxHashMap<usize, usize>), Fault> {
    let mut order: Vec<&Program> = programs.iter().collect();
    order.sort_by_key(|program| program.range.start);
    let mut out = Vec::with_capacity(section.len() + section.len() / 4);
    let mut moved = FxHashMap::default();
    let mut done = 0;
    for program in order {
        let Range { start, end } = program.range;
        if start < done || program.opcodes > end || end > section.len() {
            let what = "line programs overlap".into();
            return Err(fault(start, Problem::Malformed(what)));
        }
        out.extend(&section[done..start]);
        let new_start = out.len();
        moved.insert(start, new_start);
        out.extend(&section[start..program.opcodes]);
        program.encode(&mut out);
        let length = out.len() - new_start;
        if program.encoding.wide {
            let length = (length as u64 - 12).to_le_bytes();
            out[new_start + 4..new_start + 12].copy_from_slice(&length);
        } else {
            let length = u32::try_from(length - 4).ok().filter(|length| *length < 0xffff_fff0);
            let length =
                length.ok_or_else(|| unsupported(start, "line programs of more than 4 GiB"))?;
            out[new_start..new_start + 4].copy_from_slice(&length.to_le_bytes());
        }
        done = end;
    }
    out.extend(&section[done..]);
    Ok((out, moved))
}

mod op {
    pub(super) const COPY: u8 = 1;
    pub(super) const ADVANCE_PC: u8 = 2;
    pub(super) const ADVANCE_LINE: u8 = 3;
    pub(super) const SET_FILE: u8 = 4;
    pub(super) const SET_COLUMN: u8 = 5;
    pub(super) const NEGATE_STMT: u8 = 6;
    pub(super) const SET_BASIC_BLOCK: u8 = 7;
    pub(super) const CONST_ADD_PC: u8 = 8;
    pub(super) const SET_PROLOGUE_END: u8 = 10;
    pub(super) const SET_EPILOGUE_BEGIN: u8 = 11;
    pub(super) const SET_ISA: u8 = 12;
    pub(super) const END_SEQUENCE: u8 = 1;
    pub(super) const SET_ADDRESS: u8 = 2;
    pub(super) const SET_DISCRIMINATOR: u8 = 4;
}

impl Program {
    fn encode(&self, out: &mut Vec<u8>) {
        if self.refined {
            set_discriminator(out, REFINED_DISCRIMINATOR);
            set_discriminator(out, 0);
        }
        for sequence in &self.sequences {
            let mut encoder = Encoder::new(self.encoding, out);
            sequence.rows.iter().for_each(|row| encoder.row(row));
            encoder.end(sequence);
        }
    }
}

fn set_discriminator(out: &mut Vec<u8>, number: u32) {
    let mut value = Vec::with_capacity(5);
    leb::unsigned(&mut value, number.into());
    out.extend([0, value.len() as u8 + 1, op::SET_DISCRIMINATOR]);
    out.extend(value);
}

/// The registers of the state machine as readers have them after what was written.
struct Encoder<'o> {
    encoding: Encoding,
    out: &'o mut Vec<u8>,
    address: Option<u64>,
    place: Place,
    is_stmt: bool,
    isa: u32,
}

impl<'o> Encoder<'o> {
    fn new(encoding: Encoding, out: &'o mut Vec<u8>) -> Self {
        let place = Place { file: 1, line: 1, column: 0, discriminator: 0 };
        let is_stmt = encoding.default_is_stmt;
        Encoder { encoding, out, address: None, place, is_stmt, isa: 0 }
    }

    fn row(&mut self, row: &Row) {
        let Place { file, column, discriminator, .. } = row.place;
        if file != self.place.file {
            self.operand(op::SET_FILE, file.into());
        }
        if column != self.place.column {
            self.operand(op::SET_COLUMN, column.into());
        }
        if discriminator != 0 {
            set_discriminator(self.out, discriminator);
        }
        self.set_isa(row.isa);
        if row.is_stmt != self.is_stmt {
            self.out.push(op::NEGATE_STMT);
            self.is_stmt = row.is_stmt;
        }
        for (flag, opcode) in [
            (row.basic_block, op::SET_BASIC_BLOCK),
            (row.prologue_end, op::SET_PROLOGUE_END),
            (row.epilogue_begin, op::SET_EPILOGUE_BEGIN),
        ] {
            if flag && opcode < self.encoding.opcode_base {
                self.out.push(opcode);
            }
        }
        let steps = self.steps_to(row.address);
        self.advance(steps, i64::from(row.place.line) - i64::from(self.place.line));
        self.address = Some(row.address);
        self.place = row.place;
    }

    fn set_isa(&mut self, isa: u32) {
        if isa != self.isa && op::SET_ISA < self.encoding.opcode_base {
            self.operand(op::SET_ISA, isa.into());
            self.isa = isa;
        }
    }

    fn operand(&mut self, opcode: u8, operand: u64) {
        self.out.push(opcode);
        leb::unsigned(self.out, operand);
    }

    /// How many instructions' lengths further an address is; where it cannot be said so, the
    /// address is set first.
    fn steps_to(&mut self, address: u64) -> u64 {
        let distance = self.address.and_then(|from| address.checked_sub(from));
        match distance {
            Some(distance) if distance.is_multiple_of(self.encoding.min_length) => {
                distance / self.encoding.min_length
            }
            _ => {
                let size = self.encoding.address_size;
                self.out.extend([0, size + 1, op::SET_ADDRESS]);
                self.out.extend(&address.to_le_bytes()[..usize::from(size)]);
                0
            }
        }
    }

    /// Advances address and line, and makes a row.
    fn advance(&mut self, steps: u64, mut lines: i64) {
        let Encoding { line_base, line_range, opcode_base, .. } = self.encoding;
        let last = (line_range as i64 - 1).min(255 - i64::from(opcode_base));
        let fits = |lines: i64| (line_base..=line_base + last).contains(&lines);
        if !fits(lines) {
            self.out.push(op::ADVANCE_LINE);
            leb::signed(self.out, lines);
            lines = 0;
        }
        if !fits(lines) {
            // The special opcodes of this header cannot leave the line as it is.
            if steps != 0 {
                self.operand(op::ADVANCE_PC, steps);
            }
            return self.out.push(op::COPY);
        }
        if steps == 0 && lines == 0 {
            return self.out.push(op::COPY);
        }
        let base = u64::from(opcode_base);
        let special = |steps: u64| {
            let opcode = (lines - line_base) as u64 + base;
            line_range.checked_mul(steps)?.checked_add(opcode).filter(|opcode| *opcode <= 255)
        };
        let constant = (255 - base) / line_range;
        if let Some(opcode) = special(steps) {
            self.out.push(opcode as u8);
        } else if let Some(opcode) = steps.checked_sub(constant).and_then(special) {
            self.out.extend([op::CONST_ADD_PC, opcode as u8]);
        } else {
            self.operand(op::ADVANCE_PC, steps);
            self.out.push(special(0).map_or(op::COPY, |opcode| opcode as u8));
        }
    }

    fn end(&mut self, sequence: &Sequence) {
        self.set_isa(sequence.end_isa);
        let steps = self.steps_to(sequence.end);
        if steps != 0 {
            self.operand(op::ADVANCE_PC, steps);
        }
        self.out.extend([0, 1, op::END_SEQUENCE]);
    }
}
