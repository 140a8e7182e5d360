//! `siteline refine`: sites in the line table of a finished code object.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use super::Outcome;
use super::objects::Texts;
use super::options::{FileLine, SiteOptions, SourceOptions};
use crate::files;
use crate::refine::{self, Summary};

/// Put every line row of finished code objects on its site
#[derive(Args)]
pub struct Refine {
    /// A code object, an offload bundle, a file with .hip_fatbin, or MLIR with gpu.binary; '-'
    /// is standard input
    #[arg(value_name = "OBJ")]
    object: PathBuf,
    /// Where to write the file with refined code objects; '-' is standard output
    #[arg(short, value_name = "OUT")]
    output: PathBuf,
    /// Give instructions without a line of use that of the instruction they serve
    #[arg(long)]
    fill: bool,
    /// The line of the kernel function itself, where the debug information does not say it
    #[arg(long, value_name = "FILE:LINE")]
    definition: Option<FileLine>,
    #[command(flatten)]
    sites: SiteOptions,
    #[command(flatten)]
    sources: SourceOptions,
}

/// Runs the command.
///
/// # Errors
/// The object cannot be read or rewritten, or the output cannot be written; then there is none.
pub fn run(options: &Refine) -> Result<Outcome> {
    let label = options.object.display().to_string();
    let sources = options.sources.clone();
    let text = move |path: &str| Texts::new(sources.clone()).text(path).map(str::to_owned);
    let settings = refine::Options {
        settings: options.sites.settings()?,
        fill: options.fill,
        definition: options.definition.clone().map(|place| (place.file, place.line)),
        text: Some(Box::new(text)),
        ..refine::Options::default()
    };
    let bytes = files::read(&options.object)?;
    let (refined, summary) = refine::refine(&label, bytes, &settings)?;
    if summary.objects == 0 {
        bail!("'{label}' has no line tables to refine: compile it with -g");
    }
    warn(&label, &summary);
    files::write(&options.output, &refined)?;
    Ok(Outcome::Done)
}

fn warn(label: &str, summary: &Summary) {
    if summary.refined_before > 0 {
        eprintln!(
            "siteline: note: {} of {} code objects of '{label}' were refined before: their sites \
             stay",
            summary.refined_before, summary.objects
        );
    }
    if summary.without_debug > 0 {
        eprintln!(
            "siteline: warning: {} code objects of '{label}' have no line tables and stay as \
             they are",
            summary.without_debug
        );
    }
    if !summary.decoded {
        eprintln!(
            "siteline: warning: no disassembler for the chip was found, so all instructions \
             count as one class: install libLLVM 19 or newer, or ROCm's amd_comgr"
        );
    }
}
