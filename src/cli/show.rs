//! What commands print: tables, shares, paths and JSON.

use std::io::{self, Write};

use anyhow::Result;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

/// Prints JSON to standard output.
pub(super) fn print_json(value: &impl Serialize) -> Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// Prints to standard output; a reader that went away is no error.
pub(super) fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => Ok(result?),
    }
}

/// A table without lines; headings that are all empty are left out.
pub(super) fn table(headings: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    if headings.iter().any(|heading| !heading.is_empty()) {
        table.set_header(headings);
    }
    table
}

/// The table as text, its columns but the first `left` aligned as numbers.
pub(super) fn show(mut table: Table, left: usize) -> String {
    for (at, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if at >= left {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// Shows files without the folders that they all have in common.
pub(super) struct Paths {
    common: String,
}

impl Paths {
    /// The paths of some files.
    pub(super) fn new<'a>(files: impl Iterator<Item = &'a str>) -> Self {
        let folders = files.map(|file| &file[..file.rfind('/').map_or(0, |at| at + 1)]);
        let common = folders.reduce(|a, b| {
            let same =
                a.split_inclusive('/').zip(b.split_inclusive('/')).take_while(|(a, b)| a == b);
            &a[..same.map(|(part, _)| part.len()).sum()]
        });
        Paths { common: common.filter(|common| common.len() > 1).unwrap_or_default().into() }
    }

    /// A file and a line; line 0 is shown as `?`.
    pub(super) fn show(&self, file: &str, line: u32) -> String {
        let file = file.strip_prefix(&self.common).unwrap_or(file);
        if line == 0 { format!("{file}:?") } else { format!("{file}:{line}") }
    }

    /// Says what was left out, for the end of a heading.
    pub(super) fn note(&self) -> String {
        if self.common.is_empty() { String::new() } else { format!(" in {}", self.common) }
    }
}

/// A share in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A share in percent, where it is known.
pub(super) fn percent_or_unknown(share: Option<f64>) -> String {
    share.map_or("unknown".into(), percent)
}
