//! `siteline att waits`: the weight of waits, given to what they wait for.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;

use super::{
    MeasureOptions, Paths, percent, percent_or_unknown, print, print_json, print_warnings, show,
    table,
};
use crate::att::waits::{Agreement, Awaited, Edge, Options as Awaiting, SCHEMA, WaitReport};
use crate::att::waves::{self, Wave};
use crate::cli::Outcome;
use crate::cli::options::FileLine;
use crate::object::waits::Family;

/// The options of `siteline att waits`.
#[derive(Args)]
pub struct Options {
    /// A trace's folder, or its code.json
    #[arg(value_name = "DIR|code.json")]
    trace: PathBuf,
    /// A per-wave file (se*_sm*_sl*_wv*.json) of the trace, besides those in its folder; may be
    /// repeated
    #[arg(long, value_name = "FILE")]
    wave: Vec<PathBuf>,
    /// Use only the machine code, not what waves recorded
    #[arg(long, conflicts_with = "wave")]
    no_waves: bool,
    /// Give the weight of s_nop, s_delay_alu and their like to the producer they wait for, too
    #[arg(long)]
    nops: bool,
    /// The chip, such as gfx950, where the instructions do not tell it
    #[arg(long, value_name = "CHIP")]
    chip: Option<String>,
    /// The line of the kernel function itself, where its source cannot be read
    #[arg(long, value_name = "FILE:LINE")]
    definition: Option<FileLine>,
    #[command(flatten)]
    measure: MeasureOptions,
}

/// Runs the command.
///
/// # Errors
/// The trace cannot be read, the chip has no known counters, or the control flow is too
/// intricate.
pub fn run(options: &Options) -> Result<Outcome> {
    let report = options.report()?;
    if options.measure.json {
        print_json(&report)?;
    } else {
        print(&text(&report, options.measure.top))?;
    }
    Ok(Outcome::Done)
}

impl Options {
    fn report(&self) -> Result<WaitReport> {
        let measured = self.measure.measure(&self.trace, self.definition.as_ref())?;
        let trace = &measured.trace;
        print_warnings(&trace.path, trace.warnings);
        let awaiting = Awaiting { family: self.family()?, nops: self.nops };
        let mut awaited = Awaited::of(trace, &measured.kernels, awaiting)?;
        for path in self.wave_files(&trace.path)? {
            awaited.record(trace, &Wave::read(&path)?);
        }
        let moves = awaited.moves(trace, &measured.weights);
        let moved = awaited.moved(&measured.weights);
        let after = self.measure.report(trace, &measured.kernels, &moved, &measured.definitions)?;
        Ok(WaitReport {
            schema: SCHEMA,
            trace: measured.report.trace.clone(),
            weight_by: measured.report.weight_by,
            families: awaited.families.clone(),
            waits: moves.waits,
            waits_for_nothing: moves.waits_for_nothing,
            cycles: moves.cycles.0,
            moved_cycles: moves.cycles.1,
            weight: moves.weight.0,
            moved_weight: moves.weight.1,
            agreement: awaited.agreement(trace),
            edges: moves.edges,
            before: measured.report.report,
            after,
        })
    }

    fn family(&self) -> Result<Option<Family>> {
        let Some(chip) = &self.chip else { return Ok(None) };
        match Family::of_chip(chip) {
            Some(family) => Ok(Some(family)),
            None => bail!("the counters of chip '{chip}' are not known: they are from gfx900 on"),
        }
    }

    fn wave_files(&self, code_json: &Path) -> Result<Vec<PathBuf>> {
        if self.no_waves {
            return Ok(Vec::new());
        }
        let folder = code_json.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut files = waves::files(folder.unwrap_or(Path::new(".")))?;
        files.extend(self.wave.iter().cloned());
        Ok(files)
    }
}

fn text(report: &WaitReport, top: usize) -> String {
    let agreement = report.agreement.as_ref().map(agreement).unwrap_or_default();
    format!(
        "trace   {}\nchip    {}\n{agreement}\n{}\n\n{}\n\n{}\n",
        report.trace,
        families(report),
        totals(report),
        edges(report, top),
        lines(report)
    )
}

fn families(report: &WaitReport) -> String {
    let mut names: Vec<&str> = report.families.iter().map(|family| family.name()).collect();
    names.dedup();
    names.join(", ")
}

fn agreement(agreement: &Agreement) -> String {
    let Agreement { waits, equal, executions, differences } = agreement;
    let mut text = format!(
        "waves   {executions} executions of {waits} waits; {equal} of {waits} drain what the \
         machine code says\n"
    );
    for difference in differences.iter().take(10) {
        text.push_str(&format!(
            "        row {}, {}: only by the machine code {:?}, only by the waves {:?}\n",
            difference.row, difference.wait, difference.only_static, difference.only_recorded
        ));
    }
    text
}

fn totals(report: &WaitReport) -> String {
    let mut table = table(&["", "before", "after"]);
    let (before, after) = (&report.before, &report.after);
    let definition =
        |report: &crate::att::metrics::Report| percent_or_unknown(report.definition_line_share);
    for (name, a, b) in [
        ("weight", before.weight.to_string(), after.weight.to_string()),
        (
            "effective lines",
            format!("{:.2}", before.effective_lines),
            format!("{:.2}", after.effective_lines),
        ),
        ("heaviest line", percent(before.top1_share), percent(after.top1_share)),
        ("two heaviest lines", percent(before.top2_share), percent(after.top2_share)),
        ("definition line", definition(before), definition(after)),
    ] {
        table.add_row([name, &a, &b]);
    }
    let of = |part: u64, all: u64| format!("{part} of {all}");
    format!(
        "{}\n\nmoved: stall cycles {}, weight {}; {} of {} waits wait for nothing that is known",
        show(table, 1),
        of(report.moved_cycles, report.cycles),
        of(report.moved_weight, report.weight),
        report.waits_for_nothing,
        report.waits
    )
}

fn edges(report: &WaitReport, top: usize) -> String {
    let shown: Vec<&Edge> = report.edges.iter().take(top).collect();
    let files = shown.iter().flat_map(|edge| [&edge.from, &edge.to]).flatten();
    let paths = Paths::new(files.map(|line| line.file.as_str()));
    let from = format!("waits at{}", paths.note());
    let headings = ["class", "for", &from, "awaited at", "rows", "cycles", "share"];
    let mut table = table(&headings);
    let line = |line: &Option<crate::att::metrics::FileLine>| {
        line.as_ref().map_or("no line".into(), |line| paths.show(&line.file, line.line))
    };
    for edge in shown {
        table.add_row([
            edge.class.to_string(),
            edge.mnemonic.clone(),
            line(&edge.from),
            line(&edge.to),
            edge.rows.to_string(),
            edge.cycles.to_string(),
            percent(edge.cycles_share),
        ]);
    }
    show(table, 4)
}

fn lines(report: &WaitReport) -> String {
    let paths = super::paths_of(&[&report.before, &report.after]);
    let mut table = table(&[&format!("line after the move{}", paths.note()), "weight", "share"]);
    for line in &report.after.top_lines {
        let place = paths.show(&line.file, line.line);
        table.add_row([place, line.weight.to_string(), percent(line.weight_share)]);
    }
    show(table, 1)
}
