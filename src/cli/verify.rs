//! `siteline verify`: that sites change no machine code, or that two code objects are the same.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;

use super::Outcome;
use super::compile::CompileOptions;
use crate::driver::{self, Job};
use crate::files;
use crate::identity::{self, Difference, Extent};
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
            print_finding(&finding, &job.chip);
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

fn print_finding(finding: &Finding, chip: &str) {
    let [a, b] = finding.legs;
    println!("different: {a} against {b}, {}", extent_name(finding.extent));
    print_difference(&finding.difference, chip);
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

fn print_difference(difference: &Difference, _chip: &str) {
    println!("{difference}");
}

fn compare_objects(first: &Path, second: &Path) -> anyhow::Result<Outcome> {
    let (a, b) = (files::read(first)?, files::read(second)?);
    let debug = identity::has_debug_info(&a) || identity::has_debug_info(&b);
    let extent = if debug { Extent::Loaded } else { Extent::Whole };
    for (path, object) in [(first, &a), (second, &b)] {
        let digest = identity::digest(object, extent)
            .map_err(|error| anyhow::anyhow!("'{}': {error}", path.display()))?;
        println!(
            "{:26} {:13} sha256:{digest}  {} bytes",
            path.display(),
            extent_name(extent),
            object.len()
        );
    }
    match identity::compare(&a, &b, extent)? {
        None => {
            println!("identical");
            Ok(Outcome::Done)
        }
        Some(difference) => {
            println!("different: {}", extent_name(extent));
            print_difference(&difference, "");
            Ok(Outcome::CheckFailed)
        }
    }
}
