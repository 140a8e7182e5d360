//! `siteline att diff`: what moved from one trace to another.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::{
    MeasureOptions, Measured, Paths, percent, percent_or_unknown, print, print_json,
    print_warnings, show, table,
};
use crate::att::diff::{Comparison, Side, compare};
use crate::att::metrics::{FileLine as ReportLine, Report, SCHEMA, TraceReport};
use crate::cli::Outcome;
use crate::cli::options::FileLine;
use crate::leaf::Class;

/// The options of `siteline att diff`.
#[derive(Args)]
pub struct Options {
    /// The first trace's folder, or its code.json
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The second trace's folder, or its code.json
    #[arg(value_name = "B")]
    b: PathBuf,
    /// The line of the kernel function itself; given twice, the second is for B
    #[arg(long, value_name = "FILE:LINE")]
    definition: Vec<FileLine>,
    #[command(flatten)]
    measure: MeasureOptions,
}

#[derive(Serialize)]
struct Output<'a> {
    schema: u32,
    a: &'a TraceReport,
    b: &'a TraceReport,
    comparison: &'a Comparison,
}

/// Runs the command.
///
/// # Errors
/// One of the traces cannot be read.
pub fn run(options: &Options) -> Result<Outcome> {
    anyhow::ensure!(
        options.definition.len() <= 2,
        "--definition is given {} times: once for both traces, or once for each",
        options.definition.len()
    );
    let (first, last) = (options.definition.first(), options.definition.last());
    let a = options.measure.measure(&options.a, first)?;
    let b = options.measure.measure(&options.b, last)?;
    for side in [&a, &b] {
        print_warnings(&side.trace.path, side.trace.warnings);
    }
    let comparison = compare(&side(&a), &side(&b));
    if options.measure.json {
        let (a, b) = (&a.report, &b.report);
        print_json(&Output { schema: SCHEMA, a, b, comparison: &comparison })?;
    } else {
        print(&text(&a.report, &b.report, &comparison, options.measure.top))?;
    }
    Ok(if comparison.same_code { Outcome::Done } else { Outcome::CheckFailed })
}

fn side(measured: &Measured) -> Side<'_> {
    let Measured { trace, kernels, weights, .. } = measured;
    Side { trace, kernels, weights }
}

fn text(a: &TraceReport, b: &TraceReport, comparison: &Comparison, top: usize) -> String {
    let (rows, same, other) =
        (comparison.matched, comparison.same_text, comparison.matched - comparison.same_text);
    let code = if comparison.same_code {
        format!("same code: {rows} instructions at the same addresses")
    } else {
        format!(
            "other code: {} of the instructions matched, {same} by text and {other} by mnemonic",
            percent(comparison.matched_share)
        )
    };
    format!(
        "A {}\nB {}\n\n{}\n\n{}\n\n{code}; {} are on another line\n\n{}\n",
        a.trace,
        b.trace,
        totals(&a.report, &b.report),
        leaves(&a.report, &b.report),
        comparison.moved,
        moves(comparison, top)
    )
}

fn totals(a: &Report, b: &Report) -> String {
    let mut table = table(&["", "A", "B"]);
    let mut row = |name: &str, value: &dyn Fn(&Report) -> String| {
        table.add_row([name.into(), value(a), value(b)]);
    };
    row("rows", &|r| r.rows.to_string());
    row("rows with a line", &|r| r.mapped_rows.to_string());
    row("weight", &|r| r.weight.to_string());
    row("distinct lines", &|r| r.lines.to_string());
    row("effective lines", &|r| format!("{:.2}", r.effective_lines));
    row("heaviest line", &|r| percent(r.top1_share));
    row("two heaviest lines", &|r| percent(r.top2_share));
    row("definition line", &|r| percent_or_unknown(r.definition_line_share));
    row("line 0", &|r| percent(r.line_zero_share));
    row("no line", &|r| percent(r.unmapped_share));
    row("library code", &|r| percent(r.library_share));
    show(table, 1)
}

fn leaves(a: &Report, b: &Report) -> String {
    let headings = ["class", "rows A", "rows B", "lines A", "lines B", "share A", "share B"];
    let mut table = table(&headings);
    for class in Class::ALL {
        let leaf = |report: &Report| report.leaves.get(class.name()).cloned().flatten();
        let (Some(a), Some(b)) = (leaf(a), leaf(b)) else { continue };
        if a.rows + b.rows > 0 {
            table.add_row([
                class.to_string(),
                a.rows.to_string(),
                b.rows.to_string(),
                a.lines.to_string(),
                b.lines.to_string(),
                percent(a.weight_share),
                percent(b.weight_share),
            ]);
        }
    }
    show(table, 1)
}

fn moves(comparison: &Comparison, top: usize) -> String {
    let lines = comparison.moves.iter().take(top).flat_map(|m| [&m.from, &m.to]).flatten();
    let paths = Paths::new(lines.map(|line| line.file.as_str()));
    let from = format!("from{}", paths.note());
    let headings = ["class", &from, "to", "rows", "weight A", "weight B", "share B"];
    let mut table = table(&headings);
    let line = |line: &Option<ReportLine>| {
        line.as_ref().map_or("none".into(), |line| paths.show(&line.file, line.line))
    };
    for found in comparison.moves.iter().take(top) {
        table.add_row([
            found.class.to_string(),
            line(&found.from),
            line(&found.to),
            found.rows.to_string(),
            found.weight_a.to_string(),
            found.weight_b.to_string(),
            percent(found.weight_b_share),
        ]);
    }
    show(table, 3)
}
