//! `siteline att report`: where the weight of a trace lies.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::{
    MeasureOptions, paths_of, percent, percent_or_unknown, print, print_json, print_warnings, show,
    table,
};
use crate::att::metrics::{LeafReport, TraceReport};
use crate::cli::Outcome;
use crate::cli::options::FileLine;
use crate::leaf::Class;
use crate::require::{Condition, unmet};

/// The options of `siteline att report`.
#[derive(Args)]
pub struct Options {
    /// A trace's folder, or its code.json
    #[arg(value_name = "DIR|code.json")]
    trace: PathBuf,
    /// Exit with 1 unless the report meets a condition such as mfma.lines>=4; may be repeated
    #[arg(long, value_name = "COND")]
    require: Vec<Condition>,
    /// The line of the kernel function itself, where its source cannot be read
    #[arg(long, value_name = "FILE:LINE")]
    definition: Option<FileLine>,
    #[command(flatten)]
    measure: MeasureOptions,
}

/// Runs the command.
///
/// # Errors
/// The trace cannot be read.
pub fn run(options: &Options) -> Result<Outcome> {
    let measured = options.measure.measure(&options.trace, options.definition.as_ref())?;
    print_warnings(&measured.trace.path, measured.trace.warnings);
    if options.measure.json {
        print_json(&measured.report)?;
    } else {
        print(&text(&measured.report))?;
    }
    let failed = unmet(&options.require, &serde_json::to_value(&measured.report)?);
    for sentence in &failed {
        eprintln!("siteline: {sentence}");
    }
    Ok(if failed.is_empty() { Outcome::Done } else { Outcome::CheckFailed })
}

fn text(report: &TraceReport) -> String {
    let mut heading = format!("trace   {}\n", report.trace);
    for kernel in &report.report.kernels {
        heading.push_str("kernel  ");
        heading.push_str(kernel.name.as_deref().unwrap_or("(no label)"));
        if let Some(line) = &kernel.definition_line {
            heading.push_str(&format!(", defined at {line}"));
        }
        heading.push('\n');
    }
    format!("{heading}\n{}\n\n{}\n\n{}\n", totals(report), top_lines(report), leaves(report))
}

fn totals(report: &TraceReport) -> String {
    let weighed = format!("weight ({})", report.weight_by);
    let report = &report.report;
    let mut table = table(&[]);
    for (name, value) in [
        ("rows", report.rows.to_string()),
        ("rows with a line", report.mapped_rows.to_string()),
        ("rows with a chain", report.chained_rows.to_string()),
        (weighed.as_str(), report.weight.to_string()),
        ("distinct lines", report.lines.to_string()),
        ("effective lines", format!("{:.2}", report.effective_lines)),
        ("heaviest line", percent(report.top1_share)),
        ("two heaviest lines", percent(report.top2_share)),
        ("definition line", percent_or_unknown(report.definition_line_share)),
        ("line 0", percent(report.line_zero_share)),
        ("no line", percent(report.unmapped_share)),
        ("library code", percent(report.library_share)),
    ] {
        table.add_row([name, &value]);
    }
    show(table, 1)
}

fn top_lines(report: &TraceReport) -> String {
    let paths = paths_of(&[&report.report]);
    let mut table = table(&[&format!("line{}", paths.note()), "rows", "weight", "share"]);
    for line in &report.report.top_lines {
        table.add_row([
            paths.show(&line.file, line.line),
            line.rows.to_string(),
            line.weight.to_string(),
            percent(line.weight_share),
        ]);
    }
    show(table, 1)
}

fn leaves(report: &TraceReport) -> String {
    let headings = ["class", "rows", "lines", "effective", "weight", "share", "on definition"];
    let mut table = table(&headings);
    for class in Class::ALL {
        let leaf = report.report.leaves.get(class.name()).and_then(Option::as_ref);
        let Some(leaf) = leaf.filter(|leaf| leaf.rows > 0) else { continue };
        table.add_row(leaf_row(class, leaf));
    }
    show(table, 1)
}

fn leaf_row(class: Class, leaf: &LeafReport) -> [String; 7] {
    [
        class.to_string(),
        leaf.rows.to_string(),
        leaf.lines.to_string(),
        format!("{:.2}", leaf.effective_lines),
        leaf.weight.to_string(),
        percent(leaf.weight_share),
        percent_or_unknown(leaf.definition_line_share),
    ]
}
