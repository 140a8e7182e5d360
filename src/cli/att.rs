//! `siteline att`: ROCprof traces.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, Subcommand};

use super::Outcome;
use super::options::{FileLine, SourceOptions};
use super::show::{Paths, percent, percent_or_unknown, print, print_json, show, table};
use crate::att::definition::{self, Origin};
use crate::att::folder::Snapshots;
use crate::att::metrics::{Measure, Report, SCHEMA, TraceReport, WeightBy};
use crate::att::{Trace, Warnings, Written};
use crate::chain::Line;
use crate::leaf::{LeafRule, LeafTable};
use crate::site::Library;

mod diff;
mod remap;
mod report;
mod resite;
mod waits;

/// ROCprof traces: measure, compare and re-map an ATT capture.
#[derive(Subcommand)]
pub enum Command {
    /// Shows where the weight of a trace lies: lines, shares, leaf classes
    Report(report::Options),
    /// Compares two traces, and shows which instructions moved from which line to which
    Diff(diff::Options),
    /// Gives a trace the locations of another build of the same code, and writes a new folder
    Remap(remap::Options),
    /// Chooses sites by policy for a trace whose Source has chains, and writes a new folder
    Resite(resite::Options),
    /// Shows what waits wait for, and gives their weight to it
    Waits(waits::Options),
}

/// Runs one `siteline att` command.
///
/// # Errors
/// Bad usage, or an input that cannot be read.
pub fn run(command: Command) -> Result<Outcome> {
    match command {
        Command::Report(options) => report::run(&options),
        Command::Diff(options) => diff::run(&options),
        Command::Remap(options) => remap::run(&options),
        Command::Resite(options) => resite::run(&options),
        Command::Waits(options) => waits::run(&options),
    }
}

/// Options that say what of a trace is measured, and how.
#[derive(Args, Clone, Debug)]
struct MeasureOptions {
    /// What a row weighs: hit+stall, latency, stall, hit, instructions or samples [default:
    /// hit+stall, or samples where the trace has nothing else]
    #[arg(long, value_name = "W")]
    weight: Option<WeightBy>,
    /// Count only the kernel of this name
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// List this many lines
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Count instructions whose mnemonic matches GLOB to a leaf class; may be repeated
    #[arg(long = "leaf", value_name = "CLASS=GLOB")]
    leaf: Vec<LeafRule>,
    /// Paths of code that the kernel's author did not write; may be repeated
    #[arg(long, value_name = "GLOB")]
    library: Vec<String>,
    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sources: SourceOptions,
}

/// A trace with all that is measured of it.
struct Measured {
    trace: Trace,
    kernels: Vec<usize>,
    weights: Vec<u64>,
    definitions: Vec<Option<Line>>,
    report: TraceReport,
}

impl MeasureOptions {
    fn measure(&self, path: &Path, given: Option<&FileLine>) -> Result<Measured> {
        let trace = Trace::read(path, &LeafTable::new(self.leaf.clone()))?;
        let kernels = trace.select(self.kernel.as_deref())?;
        let weight_by = self.weight.unwrap_or_else(|| WeightBy::suiting(&trace));
        let weights = weight_by.weights(&trace);
        let definitions = definitions(&trace, given, &self.sources)?;
        let report = self.report(&trace, &kernels, &weights, &definitions)?;
        let report = TraceReport {
            schema: SCHEMA,
            trace: trace.path.display().to_string(),
            weight_by,
            report,
            warnings: trace.warnings,
        };
        Ok(Measured { trace, kernels, weights, definitions, report })
    }

    /// The numbers of a trace whose rows weigh `weights`.
    fn report(
        &self,
        trace: &Trace,
        kernels: &[usize],
        weights: &[u64],
        definitions: &[Option<Line>],
    ) -> Result<Report> {
        let library = &Library::new(&self.library)?;
        let measure = Measure { kernels, weights, definitions, library, top: self.top };
        Ok(Report::of(trace, &measure))
    }
}

/// The kernels' definition lines: as given, or from the sources.
fn definitions(
    trace: &Trace,
    given: Option<&FileLine>,
    sources: &SourceOptions,
) -> Result<Vec<Option<Line>>> {
    Ok(match given {
        Some(given) => definition::lines(trace, Origin::Given(&given.file, given.line))?,
        None => {
            let mut text = source_text(&trace.path, sources)?;
            definition::lines(trace, Origin::Sources(&mut text))?
        }
    })
}

/// Finds the text of a source: below a `--source-root`, saved with the trace, or in its place.
fn source_text(
    code_json: &Path,
    sources: &SourceOptions,
) -> Result<impl FnMut(&str) -> Option<String> + use<>> {
    let folder = code_json.parent().unwrap_or(Path::new("")).to_path_buf();
    let snapshots = Snapshots::read(&folder)?;
    let sources = sources.clone();
    Ok(move |path: &str| {
        let here = sources.locate(path);
        let moved = here != Path::new(path);
        let read = || std::fs::read(&here).ok().filter(|_| moved || here.is_absolute());
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        if moved && let Some(bytes) = read() {
            return Some(text(bytes));
        }
        snapshots.text(path).or_else(|| read().map(text))
    })
}

/// The paths of the lines that reports list.
fn paths_of(reports: &[&Report]) -> Paths {
    Paths::new(reports.iter().flat_map(|r| &r.top_lines).map(|line| line.file.as_str()))
}

fn print_warnings(path: &Path, warnings: Warnings) {
    let warn = |count: usize, what: &str| {
        if count > 0 {
            eprintln!("siteline: warning: '{}': {count} {what}", path.display());
        }
    };
    warn(warnings.negative_counts, "negative counts, read as 0");
    warn(warnings.unreadable_sources, "rows with text in Source that is no file:line, left out");
}

/// Says what a rewrite did.
fn print_written(out: &Path, written: &Written, json: bool) -> Result<()> {
    for missing in written.sources_missing.iter().take(10) {
        eprintln!(
            "siteline: warning: source '{missing}' was not found: name its place by --source-root FROM=TO"
        );
    }
    if written.sources_missing.len() > 10 {
        eprintln!("siteline: warning: {} sources were not found", written.sources_missing.len());
    }
    if written.sources_outside > 0 {
        let count = written.sources_outside;
        eprintln!(
            "siteline: warning: {count} entries of snapshots.json name no file of the folder"
        );
    }
    if json {
        return print_json(written);
    }
    let Written { instructions, matched, changed, sources_saved, sources_kept, .. } = written;
    print(&format!(
        "{}: {changed} of {instructions} instructions have another Source ({matched} matched); \
         {sources_saved} sources saved, {sources_kept} kept\n",
        out.display()
    ))
}

/// The folder to write, which standard output cannot be.
fn out_folder(out: &Path) -> Result<PathBuf> {
    if crate::files::is_standard_stream(out) {
        bail!("a trace is a folder, which '-' cannot be: name a new folder by -o");
    }
    Ok(out.into())
}
