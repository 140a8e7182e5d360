//! `siteline lines`: every instruction with its line and the calls around it.

use std::collections::{BTreeMap, BTreeSet};
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
use crate::object::waits::report::{Kernel, Place, Shown};
use crate::object::{Located, Role, Vaddr};

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
    /// Show beside each wait what it waits for
    #[arg(long)]
    waits: bool,
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
    /// What a wait waits for; null for other instructions, and left out without `--waits`.
    #[serde(skip_serializing_if = "Option::is_none")]
    awaited: Option<Option<Vec<Place>>>,
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
    let awaited = kernels.iter().map(|kernel| options.awaited(kernel, &objects));
    let awaited = awaited.collect::<Result<Vec<_>>>()?;
    let kernels = kernels.iter().zip(&awaited);
    if options.json {
        let lines = |(kernel, awaited)| kernel_lines(kernel, awaited, &mut objects);
        let kernels = kernels.map(lines).collect();
        print_json(&Output { schema: SCHEMA, kernels })?;
    } else {
        let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
        let style = if colour { Style::COLOUR } else { Style::PLAIN };
        for (kernel, awaited) in kernels {
            print(&listing(kernel, awaited, &mut objects, &style))?;
        }
    }
    Ok(Outcome::Done)
}

/// By the address of a wait, what it waits for.
type Awaited = BTreeMap<Vaddr, Vec<Place>>;

impl Lines {
    /// What each wait waits for; `None` when that was not asked for.
    fn awaited(&self, kernel: &Chosen, objects: &Objects) -> Result<Option<Awaited>> {
        if !self.waits {
            return Ok(None);
        }
        let chip = objects.objects[kernel.object].chip();
        let waits = Kernel::of(&kernel.function, &kernel.listing, chip)?;
        let chains = &objects.chains;
        let site = |located: &Located| located.chain.map(|chain| chains.innermost(chain).line());
        let shown = Shown { kernel: &waits, site: &site, chains };
        let awaited = waits.analysis.waits.iter().map(|wait| {
            let address = waits.instructions[wait.at].instruction.address;
            (address, wait.awaited().into_iter().map(|at| shown.place(at)).collect())
        });
        Ok(Some(awaited.collect()))
    }
}

fn kernel_lines(kernel: &Chosen, awaited: &Option<Awaited>, objects: &mut Objects) -> KernelLines {
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
            .map(|located| instruction_line(located, awaited, &objects.chains, &mut objects.texts))
            .collect(),
    }
}

fn instruction_line(
    located: &Located,
    awaited: &Option<Awaited>,
    chains: &Chains,
    texts: &mut Texts,
) -> InstructionLine {
    let address = located.instruction.address;
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
        awaited: awaited.as_ref().map(|awaited| awaited.get(&address).cloned()),
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

fn listing(
    kernel: &Chosen,
    awaited: &Option<Awaited>,
    objects: &mut Objects,
    style: &Style,
) -> String {
    let object = &objects.objects[kernel.object];
    let Style { heading, reset, .. } = style;
    let (name, label) = (&kernel.function.name, &object.label);
    let mut text = format!("{heading}{name}{reset} for {} in {label}\n", object.chip());
    let instructions = &kernel.listing.instructions;
    let length = |located: &Located| located.instruction.to_string().chars().count();
    let width = instructions.iter().map(length).max().unwrap_or(0).min(WIDEST);
    for located in instructions.iter().filter(|located| located.role != Role::Padding) {
        text.push_str(&line(located, width, &objects.chains, &mut objects.texts, style));
        let address = located.instruction.address;
        if let Some(places) = awaited.as_ref().and_then(|awaited| awaited.get(&address)) {
            text.push_str(&waits_for(places, style));
        }
        text.push('\n');
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
    text
}

/// The awaited lines beside a wait, with the classes or mnemonics that are awaited there.
fn waits_for(places: &[Place], style: &Style) -> String {
    let Style { leaf, reset, .. } = style;
    if places.is_empty() {
        return format!("  {leaf}waits for nothing{reset}");
    }
    let named = places.iter().map(|place| {
        let mnemonic = place.instruction.split(' ').next().unwrap_or_default();
        match &place.site {
            Some(site) => format!("{mnemonic} at {site}"),
            None => mnemonic.to_string(),
        }
    });
    let named: BTreeSet<String> = named.collect();
    let named: Vec<String> = named.into_iter().collect();
    format!("  {leaf}waits for {}{reset}", named.join(", "))
}
