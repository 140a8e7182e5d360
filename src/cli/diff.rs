//! `siteline diff`: two objects of one kernel.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use serde::Serialize;

use super::Outcome;
use super::objects::{Chosen, ObjectOptions, Objects};
use super::show::{Paths, percent, print, print_json, show, table};
use crate::leaf::{Class, LeafRule};
use crate::object::diff::{Comparison, Difference, Side, compare};
use crate::object::metrics::{FileLine, KernelReport, Measure, SCHEMA, measure};
use crate::site::Library;

/// Compare two objects of one kernel: which instructions are on another line
///
/// Exits with 1 when the code differs, and says where.
#[derive(Args)]
pub struct Diff {
    /// The first code object
    #[arg(value_name = "A")]
    a: PathBuf,
    /// The second code object
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Count instructions whose mnemonic matches GLOB to a leaf class; may be repeated
    #[arg(long = "leaf", value_name = "CLASS=GLOB")]
    leaf: Vec<LeafRule>,
    /// Paths of code that the kernel's author did not write; may be repeated
    #[arg(long, value_name = "GLOB")]
    library: Vec<String>,
    /// List this many moves and lines
    #[arg(long, value_name = "N", default_value_t = 20)]
    top: usize,
    /// Print JSON instead of tables
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    kernels: ObjectOptions,
}

/// What `diff --json` prints.
#[derive(Serialize)]
struct Output {
    schema: u32,
    kernels: Vec<Pair>,
    /// Kernels that only the first has.
    only_a: Vec<String>,
    /// Kernels that only the second has.
    only_b: Vec<String>,
}

/// A kernel that both have.
#[derive(Serialize)]
struct Pair {
    name: String,
    chip: String,
    comparison: Comparison,
    a: KernelReport,
    b: KernelReport,
}

/// Runs the command.
///
/// # Errors
/// A file cannot be read, or the two have no kernel in common.
pub fn run(options: &Diff) -> Result<Outcome> {
    let paths: [&Path; 2] = [&options.a, &options.b];
    let mut objects = options.kernels.read(&paths[..1], &options.leaf)?;
    let split = objects.kernels.len();
    options.kernels.read_more(paths[1], &options.leaf, &mut objects)?;
    objects.warn();
    let library = Library::new(&options.library)?;
    let output = pair_up(&objects, split, &library, options.top);
    if output.kernels.is_empty() {
        bail!(
            "'{}' and '{}' have no kernel of the same name and chip in common",
            paths[0].display(),
            paths[1].display()
        );
    }
    if options.json {
        print_json(&output)?;
    } else {
        print(&text(&output, options.top))?;
    }
    let same = output.kernels.iter().all(|pair| pair.comparison.same_code);
    let paired = output.only_a.is_empty() && output.only_b.is_empty();
    Ok(if same && paired { Outcome::Done } else { Outcome::CheckFailed })
}

fn key<'a>(objects: &'a Objects, kernel: &'a Chosen) -> (&'a str, &'a str) {
    (objects.objects[kernel.object].chip(), &kernel.function.name)
}

/// Pairs the kernels of both files by chip and name; `split` is where the second file's start.
fn pair_up(objects: &Objects, split: usize, library: &Library, top: usize) -> Output {
    let (all_a, all_b) = objects.kernels.split_at(split);
    let names = |all: &[Chosen], others: &[Chosen]| -> Vec<String> {
        let has = |kernel: &&Chosen| {
            others.iter().any(|other| key(objects, other) == key(objects, kernel))
        };
        all.iter().filter(|k| !has(k)).map(|k| k.function.name.clone()).collect()
    };
    let mut kernels = Vec::new();
    for a in all_a {
        let Some(b) = all_b.iter().find(|b| key(objects, b) == key(objects, a)) else { continue };
        let (chip, name) = key(objects, a);
        kernels.push(Pair {
            name: name.into(),
            chip: chip.into(),
            comparison: compare(&side(objects, a), &side(objects, b), &objects.chains),
            a: report(objects, a, library, top),
            b: report(objects, b, library, top),
        });
    }
    let (only_a, only_b) = (names(all_a, all_b), names(all_b, all_a));
    Output { schema: SCHEMA, kernels, only_a, only_b }
}

fn side<'a>(objects: &'a Objects, kernel: &'a Chosen) -> Side<'a> {
    let object = &objects.objects[kernel.object];
    Side { object, function: &kernel.function, listing: &kernel.listing }
}

fn report(objects: &Objects, kernel: &Chosen, library: &Library, top: usize) -> KernelReport {
    let what = Measure {
        object: &objects.objects[kernel.object],
        function: &kernel.function,
        listing: &kernel.listing,
        disassembler: objects.disassembler_name(),
        definition: kernel.definition,
        library,
        ir: None,
        top,
    };
    measure(&what, &objects.chains)
}

fn text(output: &Output, top: usize) -> String {
    let mut text: Vec<String> = output.kernels.iter().map(|pair| pair_text(pair, top)).collect();
    text.extend(output.only_a.iter().map(|name| format!("kernel {name} is only in A\n")));
    text.extend(output.only_b.iter().map(|name| format!("kernel {name} is only in B\n")));
    text.join("\n")
}

fn pair_text(pair: &Pair, top: usize) -> String {
    let (a, b) = (&pair.a, &pair.b);
    let comparison = &pair.comparison;
    let code = match &comparison.difference {
        Some(difference) => difference_text(difference),
        None => {
            let moved = comparison.moved.unwrap_or(0);
            let count = a.instructions + a.prologue;
            format!("same code; of {count} instructions {moved} are on another line")
        }
    };
    let mut parts = vec![
        format!("kernel {} for {}\nA {}\nB {}", pair.name, pair.chip, a.object, b.object),
        totals(a, b),
        leaves(a, b),
        code,
    ];
    if !comparison.moves.is_empty() {
        parts.push(moves(comparison, top));
    }
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n") + "\n"
}

fn difference_text(difference: &Difference) -> String {
    let side = |name, placed: &Option<crate::object::diff::Placed>| match placed {
        Some(placed) => format!("{name} {:x}: {}", placed.address, placed.instruction),
        None => format!("{name} ends there"),
    };
    format!(
        "different code, first at byte {} of the kernel\n{}\n{}",
        difference.offset,
        side("A", &difference.a),
        side("B", &difference.b)
    )
}

fn totals(a: &KernelReport, b: &KernelReport) -> String {
    let mut table = table(&["", "A", "B"]);
    let number = |n: Option<usize>| n.map_or("unknown".into(), |n| n.to_string());
    let mut row = |name: &str, value: &dyn Fn(&KernelReport) -> String| {
        table.add_row([name.into(), value(a), value(b)]);
    };
    row("instructions", &|r| r.instructions.to_string());
    row("prologue", &|r| r.prologue.to_string());
    row("padding", &|r| r.padding.to_string());
    row("distinct lines", &|r| number(r.lines.lines));
    row("effective lines", &|r| {
        r.lines.effective_lines.map_or("unknown".into(), |lines| format!("{lines:.2}"))
    });
    row("no row", &|r| number(r.lines.unmapped));
    row("line 0", &|r| number(r.lines.line_zero));
    row("definition line", &|r| number(r.lines.definition_line));
    row("library code", &|r| number(r.lines.library));
    row("inferred", &|r| number(r.lines.inferred));
    show(table, 1)
}

fn leaves(a: &KernelReport, b: &KernelReport) -> String {
    let headings =
        ["class", "count A", "count B", "lines A", "lines B", "on ambiguous (DWARF) A", "B"];
    let mut table = table(&headings);
    let number = |n: Option<usize>| n.map_or("unknown".into(), |n| n.to_string());
    let mut any = false;
    for class in Class::LEAVES {
        let leaf = |report: &KernelReport| report.leaves.get(class.name()).cloned().flatten();
        let Some((a, b)) = leaf(a).zip(leaf(b)) else { continue };
        if a.count + b.count > 0 {
            any = true;
            table.add_row([
                class.to_string(),
                a.count.to_string(),
                b.count.to_string(),
                number(a.lines),
                number(b.lines),
                number(a.on_dwarf_ambiguous),
                number(b.on_dwarf_ambiguous),
            ]);
        }
    }
    if any { show(table, 1) } else { String::new() }
}

fn moves(comparison: &Comparison, top: usize) -> String {
    let listed = || comparison.moves.iter().take(top);
    let lines = listed().flat_map(|m| [&m.from, &m.to]).flatten();
    let paths = Paths::new(lines.map(|line| line.file.as_str()));
    let line = |line: &Option<FileLine>| {
        line.as_ref().map_or("none".into(), |line| paths.show(&line.file, line.line))
    };
    let total = comparison.moved.unwrap_or(0).max(1) as f64;
    let from = format!("from{}", paths.note());
    let mut table = table(&[&from, "to", "instructions", "share"]);
    for m in listed() {
        let share = percent(m.instructions as f64 / total);
        table.add_row([line(&m.from), line(&m.to), m.instructions.to_string(), share]);
    }
    show(table, 2)
}
