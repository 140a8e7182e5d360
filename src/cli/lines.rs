//! `siteline lines`: every instruction with its line and the calls around it.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use super::Outcome;
use super::objects::{Chosen, ObjectOptions, Objects, Texts};
use super::show::{print, print_json};
use crate::att::source_text;
use crate::chain::{ChainId, Chains};
use crate::leaf::{Class, LeafRule};
use crate::object::metrics::{FileLine, SCHEMA};
use crate::object::{Located, Role};

/// List every instruction with its line and the calls around it
///
/// Where the sources can be read, the line's text is shown beside it.
#[derive(Args)]
pub struct Lines {
    /// A code object; '-' is standard input
    #[arg(value_name = "OBJ")]
    object: PathBuf,
    /// Count instructions whose mnemonic matches GLOB to a leaf class; may be repeated
    #[arg(long = "leaf", value_name = "CLASS=GLOB")]
    leaf: Vec<LeafRule>,
    /// Print JSON instead of a listing
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    kernels: ObjectOptions,
}

/// What `lines --json` prints.
#[derive(Serialize)]
struct Output {
    schema: u32,
    kernels: Vec<KernelLines>,
}

/// The instructions of a kernel.
#[derive(Serialize)]
struct KernelLines {
    object: String,
    name: String,
    chip: String,
    debug_info: bool,
    disassembler: Option<String>,
    definition: Option<FileLine>,
    instructions: Vec<InstructionLine>,
}

#[derive(Serialize)]
struct InstructionLine {
    address: u64,
    size: u32,
    mnemonic: String,
    operands: String,
    role: &'static str,
    class: Option<Class>,
    inferred: bool,
    /// Innermost first; empty where no row covers the instruction.
    frames: Vec<FrameLine>,
    /// What rocprofiler writes for the row; null where it writes nothing.
    rocprofiler: Option<String>,
    /// The text of the innermost frame's line; null where it cannot be read.
    source: Option<String>,
}

#[derive(Serialize)]
struct FrameLine {
    file: String,
    line: u32,
    column: u32,
    function: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// The file cannot be read, or has no such kernel or chip.
pub fn run(options: &Lines) -> Result<Outcome> {
    let path: &Path = &options.object;
    let mut objects = options.kernels.read(&[path], &options.leaf)?;
    objects.warn();
    let kernels = std::mem::take(&mut objects.kernels);
    if options.json {
        let kernels = kernels.iter().map(|kernel| kernel_lines(kernel, &mut objects)).collect();
        print_json(&Output { schema: SCHEMA, kernels })?;
    } else {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let style = if colour { Style::COLOUR } else { Style::PLAIN };
        for kernel in &kernels {
            print(&listing(kernel, &mut objects, &style))?;
        }
    }
    Ok(Outcome::Done)
}

fn kernel_lines(kernel: &Chosen, objects: &mut Objects) -> KernelLines {
    let object = &objects.objects[kernel.object];
    let disassembler = objects.disassembler_name().filter(|_| kernel.listing.decoded);
    let located = kernel.listing.instructions.iter();
    KernelLines {
        object: object.label.clone(),
        name: kernel.function.name.clone(),
        chip: object.chip().into(),
        debug_info: object.debug.is_some(),
        disassembler,
        definition: kernel.definition.map(|line| FileLine::of(line, &objects.chains)),
        instructions: located
            .map(|located| instruction_line(located, &objects.chains, &mut objects.texts))
            .collect(),
    }
}

fn instruction_line(located: &Located, chains: &Chains, texts: &mut Texts) -> InstructionLine {
    let frames = located.chain.into_iter().flat_map(|chain| chains.frames(chain));
    InstructionLine {
        address: located.instruction.address.0,
        size: located.instruction.size,
        mnemonic: located.instruction.mnemonic.to_string(),
        operands: located.instruction.operands.to_string(),
        role: located.role.name(),
        class: located.class,
        inferred: located.inferred,
        frames: frames
            .map(|frame| FrameLine {
                file: chains.str(frame.file).into(),
                line: frame.line,
                column: frame.column,
                function: frame.function.map(|name| chains.str(name).into()),
            })
            .collect(),
        rocprofiler: located.chain.map(|chain| source_text(chain, chains)),
        source: located.chain.and_then(|chain| source_line(chain, chains, texts)),
    }
}

/// The text of the innermost frame's line.
fn source_line(chain: ChainId, chains: &Chains, texts: &mut Texts) -> Option<String> {
    let line = chains.innermost(chain).line();
    texts.line(chains.str(line.file), line.number).map(str::to_owned)
}

/// How parts of a listing are set off on a terminal.
struct Style {
    heading: &'static str,
    leaf: &'static str,
    place: &'static str,
    faint: &'static str,
    reset: &'static str,
}

impl Style {
    const PLAIN: Style = Style { heading: "", leaf: "", place: "", faint: "", reset: "" };
    const COLOUR: Style = Style {
        heading: "\x1b[1m",
        leaf: "\x1b[33m",
        place: "\x1b[36m",
        faint: "\x1b[2m",
        reset: "\x1b[0m",
    };
}

/// The widest that the column of instructions gets.
const WIDEST: usize = 56;

fn listing(kernel: &Chosen, objects: &mut Objects, style: &Style) -> String {
    let object = &objects.objects[kernel.object];
    let Style { heading, reset, .. } = style;
    let (name, label) = (&kernel.function.name, &object.label);
    let mut text = format!("{heading}{name}{reset} for {} in {label}\n", object.chip());
    let instructions = &kernel.listing.instructions;
    let length = |located: &Located| located.instruction.to_string().chars().count();
    let width = instructions.iter().map(length).max().unwrap_or(0).min(WIDEST);
    for located in instructions.iter().filter(|located| located.role != Role::Padding) {
        text.push_str(&line(located, width, &objects.chains, &mut objects.texts, style));
    }
    let padding = instructions.iter().filter(|located| located.role == Role::Padding).count();
    if padding > 0 {
        text.push_str(&format!("{}and {padding} of padding{reset}\n", style.faint));
    }
    text + "\n"
}

fn line(
    located: &Located,
    width: usize,
    chains: &Chains,
    texts: &mut Texts,
    style: &Style,
) -> String {
    let Style { leaf, place, faint, reset, .. } = style;
    let class = match (located.role, located.class) {
        (Role::Prologue, _) => "prologue",
        (_, Some(class)) if class.is_leaf() => class.name(),
        _ => "",
    };
    let address = located.instruction.address;
    let instruction = located.instruction.to_string();
    let mut text = format!("{address:8x}  {instruction:width$}  {leaf}{class:8}{reset}  {place}");
    match located.chain {
        Some(chain) => {
            text.push_str(&chains.display(chain).to_string());
            let note = if located.inferred { " (inferred)" } else { "" };
            text.push_str(&format!("{reset}{note}"));
            if let Some(source) = source_line(chain, chains, texts) {
                text.push_str(&format!("  {faint}| {source}{reset}"));
            }
        }
        None => text.push_str(&format!("-{reset}")),
    }
    text + "\n"
}
