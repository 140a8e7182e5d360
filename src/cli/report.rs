//! `siteline report`: where the instructions of code objects point.

use std::path::{Path, PathBuf};

#[cfg(feature = "llvm")]
use anyhow::Context;
use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::Outcome;
use super::objects::{Chosen, ObjectOptions, Objects};
use super::show::{Paths, percent, percent_or_unknown, print, print_json, show, table};
use crate::leaf::{Class, LeafRule, LeafTable};
use crate::object::ir::IrChains;
use crate::object::metrics::{self, KernelReport, LeafReport, Measure, SCHEMA};
use crate::require::{Condition, unmet};
use crate::site::{Library, Policy, Settings};

/// Show where the instructions of code objects point
///
/// OBJ is a code object, an offload bundle, a host file with .hip_fatbin, or MLIR holding
/// gpu.binary. For each kernel it counts instructions, lines and effective lines, and for each
/// leaf class how many instructions are on a line that stands for several places.
#[derive(Args)]
pub struct Report {
    /// Code objects; '-' is standard input
    #[arg(value_name = "OBJ", required = true)]
    objects: Vec<PathBuf>,
    /// The kernels' frontend IR, before propagate or after it with origins kept: ambiguity is
    /// measured against its chains
    #[arg(long, value_name = "FILE")]
    ir: Option<PathBuf>,
    /// The policy that the object's sites were chosen by; without it siteline finds out
    #[arg(long, value_name = "P", requires = "ir")]
    policy: Option<Policy>,
    /// Exit with 1 unless every kernel meets a condition such as mfma.on_ambiguous=0; may be
    /// repeated
    #[arg(long, value_name = "COND")]
    require: Vec<Condition>,
    /// Count operations or instructions whose name matches GLOB to a leaf class; may be repeated
    #[arg(long = "leaf", value_name = "CLASS=GLOB")]
    leaf: Vec<LeafRule>,
    /// Paths of code that the kernel's author did not write; may be repeated
    #[arg(long, value_name = "GLOB")]
    library: Vec<String>,
    /// List this many lines and files of each kernel
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    kernels: ObjectOptions,
}

/// What `report --json` prints.
#[derive(Serialize)]
struct Output<'a> {
    schema: u32,
    kernels: &'a [KernelReport],
}

/// Runs the command.
///
/// # Errors
/// A file cannot be read, or has no such kernel or chip.
pub fn run(options: &Report) -> Result<Outcome> {
    let paths: Vec<&Path> = options.objects.iter().map(PathBuf::as_path).collect();
    let mut objects = options.kernels.read(&paths, &options.leaf)?;
    let settings = options.settings()?;
    let ir =
        options.ir.as_deref().map(|path| read_ir(path, &settings, &mut objects)).transpose()?;
    let chosen = std::mem::take(&mut objects.kernels);
    let reports: Vec<KernelReport> = chosen
        .iter()
        .map(|kernel| options.measure(kernel, ir.as_ref(), &settings, &mut objects))
        .collect();
    objects.kernels = chosen;
    objects.warn();
    if options.json {
        print_json(&Output { schema: SCHEMA, kernels: &reports })?;
    } else {
        print(&text(&reports))?;
    }
    gate(&options.require, &reports)
}

/// Checks the conditions on every kernel and says which are not met.
fn gate(conditions: &[Condition], reports: &[KernelReport]) -> Result<Outcome> {
    let mut outcome = Outcome::Done;
    for report in reports {
        for sentence in unmet(conditions, &serde_json::to_value(report)?) {
            eprintln!("siteline: {} in '{}': {sentence}", report.name, report.object);
            outcome = Outcome::CheckFailed;
        }
    }
    Ok(outcome)
}

impl Report {
    fn settings(&self) -> Result<Settings> {
        Ok(Settings {
            policy: self.policy.clone().unwrap_or_default(),
            table: LeafTable::new(self.leaf.clone()),
            library: Library::new(&self.library)?,
            ..Settings::default()
        })
    }

    fn measure(
        &self,
        kernel: &Chosen,
        ir: Option<&IrChains>,
        settings: &Settings,
        objects: &mut Objects,
    ) -> KernelReport {
        let shown = metrics::shown(&kernel.listing);
        let explicit = self.policy.is_some();
        let name = &kernel.function.name;
        let ir = ir.and_then(|ir| ir.kernel(name, &shown, settings, explicit, &mut objects.chains));
        let measure = Measure {
            object: &objects.objects[kernel.object],
            function: &kernel.function,
            listing: &kernel.listing,
            disassembler: objects.disassembler_name(),
            definition: kernel.definition.or_else(|| ir.as_ref()?.definition()),
            library: &settings.library,
            ir: ir.as_ref(),
            top: self.top,
        };
        metrics::measure(&measure, &objects.chains)
    }
}

#[cfg(feature = "llvm")]
fn read_ir(path: &Path, settings: &Settings, objects: &mut Objects) -> Result<IrChains> {
    let source = crate::files::read(path)?;
    let read = crate::mlir::context::with_module(&source, path, |module, _| {
        Ok(crate::mlir::report::collect(module.ir(), settings))
    });
    let (chains, functions) = read.context(
        "--ir cannot be read (MLIR of a front end's own dialects must be in generic form, as \
         --mlir-print-op-generic prints it)",
    )?;
    Ok(IrChains::from_mlir(&chains, functions, &mut objects.chains))
}

#[cfg(not(feature = "llvm"))]
fn read_ir(path: &Path, _: &Settings, _: &mut Objects) -> Result<IrChains> {
    anyhow::bail!(
        "cannot read '{}': this siteline was built without MLIR, which --ir needs; build it with \
         the feature 'llvm'",
        path.display()
    )
}

fn text(reports: &[KernelReport]) -> String {
    let parts: Vec<String> = reports.iter().map(kernel_text).collect();
    parts.join("\n")
}

fn kernel_text(report: &KernelReport) -> String {
    let mut parts = vec![heading(report), totals(report)];
    if report.debug_info {
        parts.push(top_lines(report));
        parts.push(files(report));
    }
    if report.disassembler.is_some() {
        parts.push(leaves(report));
    }
    parts.extend(report.ir.as_ref().map(|lost| {
        format!(
            "of {} chains of the IR the object shows the sites of {}; of their {} frames it lost \
             {} ({}), of {} names {} ({})",
            lost.chains,
            lost.reached,
            lost.levels,
            lost.levels_lost,
            percent(lost.levels_lost_share),
            lost.names,
            lost.names_lost,
            percent(lost.names_lost_share)
        )
    }));
    parts.join("\n\n") + "\n"
}

fn heading(report: &KernelReport) -> String {
    let defined = match &report.lines.definition {
        Some(line) => format!(", defined at {}:{}", line.file, line.line),
        None => String::new(),
    };
    let kind = report.kind;
    format!("object  {}\n{kind:8}{} for {}{defined}", report.object, report.name, report.chip)
}

fn totals(report: &KernelReport) -> String {
    let lines = &report.lines;
    let unit = if report.disassembler.is_some() { "instructions" } else { "words of 4 bytes" };
    let mut table = table(&[]);
    let mut row = |name: &str, count: Option<usize>, share: Option<f64>| {
        let count = count.map_or("unknown".into(), |count| count.to_string());
        table.add_row([name.into(), count, share.map(percent).unwrap_or_default()]);
    };
    row(unit, Some(report.instructions), None);
    row("prologue", Some(report.prologue), None);
    row("padding", Some(report.padding), None);
    if let Some(calls) = report.calls.filter(|calls| *calls > 0) {
        row("calls that stay calls", Some(calls), None);
    }
    if report.debug_info {
        row("distinct lines", lines.lines, None);
        row("no row", lines.unmapped, lines.unmapped_share);
        row("line 0", lines.line_zero, lines.line_zero_share);
        row("definition line", lines.definition_line, lines.definition_line_share);
        row("library code", lines.library, lines.library_share);
        row("inferred", lines.inferred, lines.inferred_share);
        let effective = lines.effective_lines.unwrap_or_default();
        table.add_row(["effective lines", &format!("{effective:.2}"), ""]);
    } else {
        table.add_row(["debug information", "none", ""]);
    }
    show(table, 1)
}

fn top_lines(report: &KernelReport) -> String {
    let paths = Paths::new(report.top_lines.iter().map(|line| line.file.as_str()));
    let mut table = table(&[&format!("line{}", paths.note()), "instructions", "share"]);
    for line in &report.top_lines {
        let (instructions, share) = (line.instructions.to_string(), line.instructions_share);
        table.add_row([paths.show(&line.file, line.line), instructions, percent(share)]);
    }
    show(table, 1)
}

fn files(report: &KernelReport) -> String {
    let mut table = table(&["file", "lines", "instructions", "share"]);
    for file in &report.files {
        let note = if file.library { " (library)" } else { "" };
        table.add_row([
            format!("{}{note}", file.file),
            file.lines.to_string(),
            file.instructions.to_string(),
            percent(file.instructions_share),
        ]);
    }
    show(table, 1)
}

fn leaves(report: &KernelReport) -> String {
    let with_ir = report.ir.is_some();
    let dwarf = ["class", "count", "lines", "ambiguous (DWARF)", "on them", "share"];
    let ir = ["ambiguous (IR)", "on them", "share", "reachable lines"];
    let headings: Vec<&str> = dwarf.into_iter().chain(ir.into_iter().filter(|_| with_ir)).collect();
    let mut table = table(&headings);
    for class in Class::LEAVES {
        let leaf = report.leaves.get(class.name()).and_then(Option::as_ref);
        if let Some(leaf) = leaf.filter(|leaf| leaf.count > 0) {
            table.add_row(leaf_row(class, leaf, with_ir));
        }
    }
    show(table, 1)
}

fn leaf_row(class: Class, leaf: &LeafReport, with_ir: bool) -> Vec<String> {
    let number = |n: Option<usize>| n.map_or("unknown".into(), |n| n.to_string());
    let mut row = vec![
        class.to_string(),
        leaf.count.to_string(),
        number(leaf.lines),
        number(leaf.dwarf_ambiguous_lines),
        number(leaf.on_dwarf_ambiguous),
        percent_or_unknown(leaf.on_dwarf_ambiguous_share),
    ];
    if with_ir {
        row.push(number(leaf.ambiguous_lines));
        row.push(number(leaf.on_ambiguous));
        row.push(percent_or_unknown(leaf.on_ambiguous_share));
        row.push(number(leaf.reachable_lines));
    }
    row
}
