//! `siteline verify`: that sites change no machine code, or that two code objects are the same.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;

use super::Outcome;
use super::compile::CompileOptions;
use crate::driver::{self, Job};
use crate::files;
use crate::identity::{self, CodePlace, Difference, Extent};
use crate::object::chip::Target;
use crate::object::container::{self, Contained};
use crate::object::{Vaddr, disasm};
use crate::verify::{self, Compared, Culprit, Finding, Leg, Verdict};

/// Check that sites change no machine code, or that two code objects are identical
///
/// With one input, compiles it with debug off without and with sites, which must give the same
/// bytes, and with debug on and sites, which must load the same. With two code objects,
/// compares them: byte for byte, or, where one has debug information, in what is loaded.
#[derive(Args)]
pub struct Verify {
    #[command(flatten)]
    what: CompileOptions,
    /// A second code object, to compare IN with
    #[arg(value_name = "B")]
    second: Option<PathBuf>,
    /// How many control legs to run when a difference is found
    #[arg(long, value_name = "N")]
    control: Option<usize>,
}

/// Runs the command.
///
/// # Errors
/// Input that cannot be read, compiled or compared.
pub fn run(options: &Verify) -> anyhow::Result<Outcome> {
    let first = &options.what.input;
    match &options.second {
        Some(second) => compare_objects(first, second),
        None => {
            let source = files::read(first)?;
            if source.starts_with(b"\x7fELF") {
                bail!(
                    "'{}' is a code object: name a second one to compare it with",
                    first.display()
                );
            }
            verify_input(&source, &options.what, options.control)
        }
    }
}

/// Verifies an input and prints the verdict.
pub(super) fn verify_input(
    source: &[u8],
    options: &CompileOptions,
    control: Option<usize>,
) -> anyhow::Result<Outcome> {
    let job = options.job()?;
    let compile = |leg: Leg| {
        let sites = if leg.sites { job.sites.clone() } else { None };
        let job = Job { debug: leg.debug, sites, ..job.clone() };
        driver::compile(source, &options.input, &job)
    };
    let verdict = verify::verify(&compile, control.unwrap_or(verify::CONTROL_LEGS))?;
    match verdict {
        Verdict::Identical(compared) => {
            compared.iter().for_each(|compared| println!("{}", compared_line(compared)));
            println!("identical");
            Ok(Outcome::Done)
        }
        Verdict::Different(finding) => {
            print_finding(&finding, Some(&Target { chip: job.chip.clone(), features: Vec::new() }));
            Ok(Outcome::CheckFailed)
        }
    }
}

fn compared_line(compared: &Compared) -> String {
    let leg = compared.leg.to_string();
    let what = extent_name(compared.extent);
    format!("{leg:26} {what:13} sha256:{}  {} bytes", compared.digest, compared.size)
}

fn extent_name(extent: Extent) -> &'static str {
    match extent {
        Extent::Whole => "whole object",
        Extent::Loaded => "what is loaded",
    }
}

fn print_finding(finding: &Finding, target: Option<&Target>) {
    let [a, b] = finding.legs;
    println!("different: {a} against {b}, {}", extent_name(finding.extent));
    print_difference(&finding.difference, target);
    let [first, second, common] = finding.results;
    let runs = finding.runs;
    println!(
        "of {runs} runs each, the first leg gave {first} distinct results, the second {second}, {common} in common"
    );
    let verdict = match finding.culprit {
        Culprit::Siteline => {
            "setting sites changed the code: this is siteline's doing, please report it"
        }
        Culprit::DebugInfo => {
            "line tables change the code without sites too: this is the compiler's -g"
        }
        Culprit::Compiler => {
            "nondeterministic compiler: a leg differs from itself, which is not siteline's doing"
        }
    };
    println!("{verdict}");
}

fn print_difference(difference: &Difference, target: Option<&Target>) {
    println!("{difference}");
    let Some(code) = &difference.code else { return };
    for (name, bytes) in ["first", "second"].into_iter().zip(&code.bytes) {
        let text = instruction_text(code, bytes, target);
        println!("  {name:6}  {:#x}: {text}", code.address);
    }
}

/// The instruction that holds the first differing byte, disassembled where that can be done.
fn instruction_text(code: &CodePlace, bytes: &[u8], target: Option<&Target>) -> String {
    let decoder = target.and_then(|target| {
        let wave32 = !target.chip.starts_with("gfx9");
        disasm::available()?.decoder(target, wave32)
    });
    let Some(mut decoder) = decoder else {
        return "no disassembler for this chip".into();
    };
    let instructions = disasm::disassemble(bytes, Vaddr(code.start), Some(&mut *decoder));
    let found = instructions.iter().find(|instruction| instruction.end().0 > code.address);
    found.map_or_else(|| "nothing: the code ends before".into(), ToString::to_string)
}

/// A code object in a file, for comparing.
struct Side<'a> {
    path: &'a Path,
    objects: Vec<Contained>,
}

impl<'a> Side<'a> {
    fn read(path: &'a Path) -> anyhow::Result<Self> {
        let label = path.display().to_string();
        Ok(Side { path, objects: container::read(&label, files::read(path)?)? })
    }
}

fn compare_objects(first: &Path, second: &Path) -> anyhow::Result<Outcome> {
    let (a, b) = (Side::read(first)?, Side::read(second)?);
    if a.objects.len() != b.objects.len() {
        let count =
            |side: &Side<'_>| format!("'{}' holds {}", side.path.display(), side.objects.len());
        println!("different: {} code objects, {}", count(&a), count(&b));
        return Ok(Outcome::CheckFailed);
    }
    for (a, b) in a.objects.iter().zip(&b.objects) {
        if !compare_pair(a, b)? {
            return Ok(Outcome::CheckFailed);
        }
    }
    println!("identical");
    Ok(Outcome::Done)
}

/// Compares two code objects and prints what was compared; whether they are identical.
fn compare_pair(a: &Contained, b: &Contained) -> anyhow::Result<bool> {
    if a.entry != b.entry {
        let entry = |object: &Contained| object.entry.clone().unwrap_or_else(|| "no name".into());
        println!("different: '{}' is {}, '{}' is {}", a.label, entry(a), b.label, entry(b));
        return Ok(false);
    }
    let (first, second) = (&a.elf.data()[..], &b.elf.data()[..]);
    let debug = identity::has_debug_info(first) || identity::has_debug_info(second);
    let extent = if debug { Extent::Loaded } else { Extent::Whole };
    for (object, bytes) in [(a, first), (b, second)] {
        let digest = identity::digest(bytes, extent)?;
        println!(
            "{}  {}  sha256:{digest}  {} bytes",
            object.label,
            extent_name(extent),
            bytes.len()
        );
    }
    let Some(difference) = identity::compare(first, second, extent)? else { return Ok(true) };
    println!("different: {}", extent_name(extent));
    print_difference(&difference, a.elf.target.as_ref());
    Ok(false)
}
