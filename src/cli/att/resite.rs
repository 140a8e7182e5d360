//! `siteline att resite`: other sites for a trace that has chains.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::{out_folder, print_written, source_text};
use crate::att::folder;
use crate::att::resite::{Options as Resite, resite};
use crate::cli::Outcome;
use crate::cli::options::{FileLine, SiteOptions, SourceOptions};

/// The options of `siteline att resite`.
#[derive(Args)]
pub struct Options {
    /// The trace's folder
    #[arg(value_name = "DIR")]
    trace: PathBuf,
    /// The folder to write; it must not exist yet
    #[arg(short, value_name = "OUT")]
    out: PathBuf,
    /// Only the kernel of this name
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// The line of the kernel function itself, where its source cannot be read
    #[arg(long, value_name = "FILE:LINE")]
    definition: Option<FileLine>,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sites: SiteOptions,
    #[command(flatten)]
    sources: SourceOptions,
}

/// Runs the command.
///
/// # Errors
/// The trace cannot be read, or the folder cannot be written.
pub fn run(options: &Options) -> Result<Outcome> {
    let out = out_folder(&options.out)?;
    let definition = options.definition.as_ref().map(|given| (given.file.as_str(), given.line));
    let mut text = source_text(&folder::code_json(&options.trace)?, &options.sources)?;
    let written = resite(
        &options.trace,
        &out,
        &mut Resite {
            settings: &options.sites.settings()?,
            kernel: options.kernel.as_deref(),
            definition,
            text: &mut text,
            locate: &|path| options.sources.locate(path),
        },
    )?;
    if written.matched == 0 {
        eprintln!(
            "siteline: warning: no row gets another site: its chains may have one frame each"
        );
    }
    print_written(&out, &written, options.json)?;
    Ok(Outcome::Done)
}
