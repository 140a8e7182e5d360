//! Reading `code.json`.
//!
//! The header stands behind the table in the file, so the text is scanned once for both, and
//! the table is then read row by row with strings borrowed from the text.

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::columns::{Column, Columns};
use super::source::{self, Parsed};
use super::{AttError, folder};
use crate::chain::{ChainId, Chains, Sym};
use crate::files;
use crate::leaf::{Class, LeafTable};

/// What a row of the code table is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RowKind {
    /// `; kernel_name`: the start of a kernel.
    Label,
    /// An instruction.
    Instruction,
    /// Fill behind a kernel's last `s_endpgm`; never counted.
    Padding,
}

/// One row of the code table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// What the row is.
    pub kind: RowKind,
    /// The instruction's leaf class; `other` for labels.
    pub class: Class,
    /// The row's own number, which the per-wave files refer to.
    pub line_number: u32,
    /// The text in the trace's ISA column, interned in [`Trace::chains`].
    pub isa: Sym,
    /// The instruction's location as the trace shows it; `None` where it shows none.
    pub chain: Option<ChainId>,
    /// The profiler's number of the code object.
    pub codeobj: u64,
    /// The address within the code object, as in its ELF file.
    pub vaddr: u64,
    /// How often a wave executed the instruction.
    pub hit: u64,
    /// Cycles of all executions: the stall, and the issue (gfx9) or the execution (gfx10 on).
    pub latency: u64,
    /// Cycles in which the hardware could not issue the instruction, over all executions.
    pub stall: u64,
    /// Cycles between the end of the instruction before and the start, over all executions.
    pub idle: u64,
    /// Samples of PC sampling, issued and stalled; 0 without PC sampling.
    pub samples: u64,
}

/// One kernel of the code table: the rows from its label to the next one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Kernel {
    /// The kernel's symbol; `None` for rows in front of the first label.
    pub name: Option<Sym>,
    /// The kernel's name in its source language, where the trace gives one.
    pub demangled: Option<Sym>,
    /// The profiler's number of the code object.
    pub codeobj: u64,
    /// Indices into [`Trace::rows`], the label's own included.
    pub rows: Range<usize>,
}

/// What was odd in a trace, but could be read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct Warnings {
    /// Negative counts; they are read as 0.
    pub negative_counts: usize,
    /// Rows with text in Source that is no `file:line`; the text is left out.
    pub unreadable_sources: usize,
}

/// A trace's code table.
pub struct Trace {
    /// The `code.json` that was read.
    pub path: PathBuf,
    /// The table of the chains, files and instruction texts of [`Trace::rows`].
    pub chains: Chains,
    /// The rows, in the file's order.
    pub rows: Vec<Row>,
    /// The kernels, in the file's order. Together they hold every row.
    pub kernels: Vec<Kernel>,
    /// Whether the file has columns of PC sampling.
    pub has_samples: bool,
    /// What was odd.
    pub warnings: Warnings,
}

impl Trace {
    /// Reads the trace in a folder, or a lone `code.json`. `table` gives the rows their class.
    ///
    /// # Errors
    /// There is no trace, or it is not of the documented form.
    pub fn read(path: &Path, table: &LeafTable) -> Result<Self, AttError> {
        let path = folder::code_json(path)?;
        let text = read_text(&path)?;
        parse(path, &text, table, false).map(|(trace, _)| trace)
    }

    /// The text in the ISA column of a row.
    pub fn isa(&self, row: &Row) -> &str {
        self.chains.str(row.isa)
    }

    /// The index of each instruction by its LineNumber, which the per-wave files refer to.
    pub fn by_line_number(&self) -> FxHashMap<u32, usize> {
        let is_code = |(_, row): &(usize, &Row)| row.kind == RowKind::Instruction;
        let rows = self.rows.iter().enumerate().filter(is_code);
        rows.map(|(at, row)| (row.line_number, at)).collect()
    }

    /// The name of a kernel, or what stands for it where the trace has no label.
    pub fn kernel_name(&self, kernel: &Kernel) -> &str {
        kernel.name.map_or("(no label)", |name| self.chains.str(name))
    }

    /// The kernels of this name, or all.
    ///
    /// # Errors
    /// No kernel has the name.
    pub fn select(&self, name: Option<&str>) -> Result<Vec<usize>, AttError> {
        let all = 0..self.kernels.len();
        let Some(name) = name else { return Ok(all.collect()) };
        let found: Vec<_> = all.filter(|&at| self.kernel_name(&self.kernels[at]) == name).collect();
        if found.is_empty() {
            let names: Vec<_> =
                self.kernels.iter().map(|k| format!("'{}'", self.kernel_name(k))).collect();
            let what = format!("no kernel '{name}'; the trace has {}", names.join(", "));
            return Err(AttError::Form { path: self.path.clone(), what });
        }
        Ok(found)
    }
}

pub(super) fn read_text(path: &Path) -> Result<String, AttError> {
    String::from_utf8(files::read(path)?).map_err(|error| AttError::Form {
        path: path.into(),
        what: format!("not UTF-8 text, from byte {} on", error.utf8_error().valid_up_to()),
    })
}

/// Where each row's Source cell lies in the text, in bytes; empty where the row has none.
pub(super) type Cells = Vec<Range<usize>>;

/// Reads the text of a `code.json`; with `keep_cells`, says where the Source cells are.
pub(super) fn parse(
    path: PathBuf,
    text: &str,
    table: &LeafTable,
    keep_cells: bool,
) -> Result<(Trace, Cells), AttError> {
    let top = top(&path, text)?;
    let form = |what: String| AttError::Form { path: path.clone(), what };
    let code = top.code.ok_or_else(|| {
        form("'code' is missing or null: the decoder wrote no instructions, capture again".into())
    })?;
    let columns = columns(top.header).map_err(form)?;
    let mut parser = Parser::new(columns, table, text, keep_cells);
    let mut deserializer = serde_json::Deserializer::from_str(code.get());
    let read = CodeSeed(&mut parser).deserialize(&mut deserializer);
    read.map_err(|error| form(parser.place(&error)))?;
    Ok(parser.finish(path))
}

#[derive(Deserialize)]
struct Top<'t> {
    #[serde(borrow)]
    code: Option<&'t RawValue>,
    #[serde(borrow)]
    header: Option<&'t RawValue>,
    #[serde(borrow)]
    version: Option<&'t RawValue>,
}

fn top<'t>(path: &Path, text: &'t str) -> Result<Top<'t>, AttError> {
    serde_json::from_str(text).map_err(|error| top_error(path, &error))
}

/// The `version` of a `code.json`, as its JSON text.
pub(super) fn version(path: &Path, text: &str) -> Result<Option<String>, AttError> {
    Ok(top(path, text)?.version.map(|version| version.get().into()))
}

fn top_error(path: &Path, error: &serde_json::Error) -> AttError {
    if error.is_data() {
        let what = format!("not a code table ({error}): expected {{\"code\": …, \"header\": …}}");
        return AttError::Form { path: path.into(), what };
    }
    AttError::Json { path: path.into(), reason: error.to_string() }
}

fn columns(header: Option<&RawValue>) -> Result<Columns, String> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Header {
        Text(String),
        List(Vec<String>),
    }
    let Some(header) = header else { return Columns::default() };
    match serde_json::from_str(header.get()) {
        Ok(Header::Text(text)) => Columns::of_text(&text),
        Ok(Header::List(names)) => Columns::of_names(names.iter().map(String::as_str)),
        Err(_) => Err("'header' is neither text nor a list of column names".into()),
    }
}

struct Parser<'t> {
    columns: Columns,
    table: &'t LeafTable,
    /// The address of the text's first byte, which cells are found by.
    base: usize,
    cells: Option<Cells>,
    chains: Chains,
    sources: FxHashMap<&'t str, Parsed>,
    rows: Vec<Row>,
    kernels: Vec<Kernel>,
    warnings: Warnings,
    /// The column that is being read.
    column: Option<Column>,
}

/// The cells of a row that is being read; numbers are indexed by column.
#[derive(Default)]
struct RowCells<'t> {
    isa: Cow<'t, str>,
    source: &'t str,
    numbers: [u64; Column::PcStalled as usize + 1],
}

impl<'t> Parser<'t> {
    fn new(columns: Columns, table: &'t LeafTable, text: &str, keep_cells: bool) -> Self {
        Parser {
            columns,
            table,
            base: text.as_ptr() as usize,
            cells: keep_cells.then(Vec::new),
            chains: Chains::new(),
            sources: FxHashMap::default(),
            rows: Vec::new(),
            kernels: Vec::new(),
            warnings: Warnings::default(),
            column: None,
        }
    }

    /// What is wrong with the row and column that were being read.
    fn place(&self, error: &serde_json::Error) -> String {
        let error = error.to_string();
        let what = error.rsplit_once(" at line ").map_or(error.as_str(), |(what, _)| what);
        let row = self.rows.len();
        match self.column {
            Some(column) => format!("row {row} of 'code', column {}: {what}", column.name()),
            None => format!("row {row} of 'code': {what}"),
        }
    }

    fn finish_row(&mut self, cells: &RowCells<'t>) -> Result<(), String> {
        let number = |column: Column| cells.numbers[column as usize];
        let label = cells.isa.strip_prefix(';').map(str::trim);
        let isa = self.chains.sym(&cells.isa);
        let chain = match label {
            Some(name) => {
                self.start_kernel(Some(name), number(Column::Codeobj), cells.source)?;
                None
            }
            None => {
                self.continue_kernel(number(Column::Codeobj));
                self.chain(cells.source)?
            }
        };
        let line_number = u32::try_from(number(Column::LineNumber))
            .map_err(|_| "LineNumber does not fit 32 bits".to_string())?;
        self.rows.push(Row {
            kind: if label.is_some() { RowKind::Label } else { RowKind::Instruction },
            class: if label.is_some() { Class::Other } else { self.class(&cells.isa) },
            line_number,
            isa,
            chain,
            codeobj: number(Column::Codeobj),
            vaddr: number(Column::Vaddr),
            hit: number(Column::Hit),
            latency: number(Column::Latency),
            stall: number(Column::Stall),
            idle: number(Column::Idle),
            samples: number(Column::PcIssued).saturating_add(number(Column::PcStalled)),
        });
        self.keep_cell(cells.source);
        Ok(())
    }

    fn keep_cell(&mut self, source: &str) {
        if let Some(cells) = &mut self.cells {
            let start = (source.as_ptr() as usize).saturating_sub(self.base);
            cells.push(start..start + source.len());
        }
    }

    fn class(&self, isa: &str) -> Class {
        let isa = isa.trim_start();
        let (mnemonic, operands) = isa.split_once(char::is_whitespace).unwrap_or((isa, ""));
        self.table.isa_class(mnemonic, operands)
    }

    fn start_kernel(
        &mut self,
        name: Option<&str>,
        codeobj: u64,
        source: &str,
    ) -> Result<(), String> {
        let demangled = decode(source)?;
        let at = self.rows.len();
        let name = name.map(|name| self.chains.sym(name));
        let demangled =
            Some(demangled).filter(|text| !text.is_empty()).map(|text| self.chains.sym(&text));
        self.kernels.push(Kernel { name, demangled, codeobj, rows: at..at });
        Ok(())
    }

    /// A row without a label in front of it, or of another code object, starts a nameless kernel.
    fn continue_kernel(&mut self, codeobj: u64) {
        if self.kernels.last().is_none_or(|kernel| kernel.codeobj != codeobj) {
            let at = self.rows.len();
            self.kernels.push(Kernel { name: None, demangled: None, codeobj, rows: at..at });
        }
    }

    fn chain(&mut self, source: &'t str) -> Result<Option<ChainId>, String> {
        let parsed = match self.sources.get(source) {
            Some(parsed) => *parsed,
            None => {
                let parsed = source::parse(&decode(source)?, &mut self.chains);
                self.sources.insert(source, parsed);
                parsed
            }
        };
        self.warnings.unreadable_sources += usize::from(parsed.unreadable);
        Ok(parsed.chain)
    }

    fn finish(mut self, path: PathBuf) -> (Trace, Cells) {
        let ends = self.kernels.iter().skip(1).map(|kernel| kernel.rows.start);
        let ends: Vec<_> = ends.chain([self.rows.len()]).collect();
        for (kernel, end) in self.kernels.iter_mut().zip(ends) {
            kernel.rows.end = end;
            mark_padding(&mut self.rows[kernel.rows.clone()], &self.chains);
        }
        self.rows.shrink_to_fit();
        let trace = Trace {
            path,
            chains: self.chains,
            rows: self.rows,
            kernels: self.kernels,
            has_samples: self.columns.has_samples(),
            warnings: self.warnings,
        };
        (trace, self.cells.unwrap_or_default())
    }
}

/// Marks the fill at a kernel's end. Code may stand between it and the last `s_endpgm`, but
/// none that runs into it.
fn mark_padding(rows: &mut [Row], chains: &Chains) {
    let mnemonic = |row: &Row| chains.str(row.isa).split_whitespace().next().unwrap_or_default();
    let is_fill = |row: &&Row| matches!(mnemonic(row), "s_nop" | "s_code_end");
    let fill = rows.iter().rev().take_while(is_fill).count();
    let code = rows.len() - fill;
    if rows[..code].iter().any(|row| mnemonic(row).starts_with("s_endpgm")) {
        rows[code..].iter_mut().for_each(|row| row.kind = RowKind::Padding);
    }
}

/// The text of a Source cell: a JSON string, or null for none.
fn decode(cell: &str) -> Result<Cow<'_, str>, String> {
    if cell == "null" || cell.is_empty() {
        return Ok(Cow::Borrowed(""));
    }
    let text: Text = serde_json::from_str(cell)
        .map_err(|_| "column Source: expected text or null".to_string())?;
    Ok(text.0)
}

struct CodeSeed<'p, 't>(&'p mut Parser<'t>);

impl<'t> DeserializeSeed<'t> for CodeSeed<'_, 't> {
    type Value = ();

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'t> Visitor<'t> for CodeSeed<'_, 't> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("the list of rows")
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut rows: A) -> Result<(), A::Error> {
        while rows.next_element_seed(RowSeed(self.0))?.is_some() {}
        Ok(())
    }
}

struct RowSeed<'p, 't>(&'p mut Parser<'t>);

impl<'t> DeserializeSeed<'t> for RowSeed<'_, 't> {
    type Value = ();

    fn deserialize<D: Deserializer<'t>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'t> Visitor<'t> for RowSeed<'_, 't> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("a row, which is a list of cells")
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut row: A) -> Result<(), A::Error> {
        let parser = self.0;
        let mut cells = RowCells::default();
        let mut index = 0;
        while parser.read_cell(index, &mut cells, &mut row)? {
            index += 1;
        }
        parser.column = None;
        let named = parser.columns.len();
        if index < named {
            let message = format!("it has {index} cells, but the header names {named} columns");
            return Err(A::Error::custom(message));
        }
        parser.finish_row(&cells).map_err(A::Error::custom)
    }
}

impl<'t> Parser<'t> {
    /// Reads the cell at `index`; false behind the last one.
    fn read_cell<A: SeqAccess<'t>>(
        &mut self,
        index: usize,
        cells: &mut RowCells<'t>,
        row: &mut A,
    ) -> Result<bool, A::Error> {
        self.column = self.columns.at(index);
        let Some(column) = self.column else {
            return Ok(row.next_element::<IgnoredAny>()?.is_some());
        };
        match column {
            Column::Isa => Ok(row.next_element()?.map(|text: Text| cells.isa = text.0).is_some()),
            Column::Source => {
                let cell: Option<&RawValue> = row.next_element()?;
                Ok(cell.map(|cell| cells.source = cell.get()).is_some())
            }
            _ => match row.next_element()? {
                None => Ok(false),
                Some(Number::Count(count)) => {
                    cells.numbers[column as usize] = count;
                    Ok(true)
                }
                Some(Number::Negative(_)) if is_count(column) => {
                    self.warnings.negative_counts += 1;
                    Ok(true)
                }
                Some(Number::Negative(count)) => {
                    Err(A::Error::custom(format!("{count} is negative")))
                }
            },
        }
    }
}

fn is_count(column: Column) -> bool {
    !matches!(column, Column::LineNumber | Column::Codeobj | Column::Vaddr)
}

/// Text, borrowed where it has no escapes.
#[derive(Default)]
struct Text<'t>(Cow<'t, str>);

impl<'t> Deserialize<'t> for Text<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'t> Visitor<'t> for TextVisitor {
            type Value = Text<'t>;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("text")
            }

            fn visit_borrowed_str<E>(self, text: &'t str) -> Result<Text<'t>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'t>, E> {
                Ok(Text(Cow::Owned(text.into())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

enum Number {
    Count(u64),
    Negative(i64),
}

impl<'t> Deserialize<'t> for Number {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberVisitor;
        impl Visitor<'_> for NumberVisitor {
            type Value = Number;

            fn expecting(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
                f.write_str("a whole number")
            }

            fn visit_u64<E>(self, number: u64) -> Result<Number, E> {
                Ok(Number::Count(number))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Number, E> {
                Ok(u64::try_from(number).map_or(Number::Negative(number), Number::Count))
            }
        }
        deserializer.deserialize_u64(NumberVisitor)
    }
}
