//! `siteline att resite`: other sites for a trace that has chains.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::{out_folder, print_written, source_text};
use crate::att::definition::Origin;
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
    let mut text = source_text(&folder::code_json(&options.trace)?, &options.sources)?;
    let definition = match &options.definition {
        Some(given) => Origin::Given(&given.file, given.line),
        None => Origin::Sources(&mut text),
    };
    let settings = &options.sites.settings()?;
    let kernel = options.kernel.as_deref();
    let locate = &|path: &str| options.sources.locate(path);
    let resited = Resite { settings, kernel, definition, locate };
    let written = resite(&options.trace, &out, resited)?;
    if written.matched == 0 {
        eprintln!(
            "siteline: warning: no row gets another site: its chains may have one frame each"
        );
    }
    print_written(&out, &written, options.json)?;
    Ok(Outcome::Done)
}
