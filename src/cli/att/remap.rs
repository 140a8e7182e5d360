//! `siteline att remap`: the locations of another build of the same code.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;

use super::{out_folder, print_written};
use crate::att::remap::{Mapping, Options as Remap, remap};
use crate::cli::Outcome;
use crate::cli::options::SourceOptions;
use crate::files;

/// The options of `siteline att remap`.
#[derive(Args)]
pub struct Options {
    /// The trace's folder
    #[arg(value_name = "DIR")]
    trace: PathBuf,
    /// The object to take the locations from: a code object, or a container of some
    #[arg(long, value_name = "OBJ")]
    object: PathBuf,
    /// The folder to write; it must not exist yet
    #[arg(short, value_name = "OUT")]
    out: PathBuf,
    /// Write the whole chain of each instruction, not what rocprofiler would write
    #[arg(long)]
    chains: bool,
    /// Only the kernel of this name
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    /// Of several code objects in OBJ, the one for this chip
    #[arg(long, value_name = "CHIP")]
    chip: Option<String>,
    /// Print what was done as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    sources: SourceOptions,
}

/// Runs the command.
///
/// # Errors
/// The trace or the object cannot be read, they are not of the same code, or the folder cannot
/// be written.
pub fn run(options: &Options) -> Result<Outcome> {
    let out = out_folder(&options.out)?;
    let label = options.object.display().to_string();
    let mut mappings = Mapping::read_all(&label, files::read(&options.object)?)?;
    if let Some(chip) = &options.chip {
        mappings.retain(|mapping| mapping.chip.as_deref() == Some(chip));
        if mappings.is_empty() {
            bail!("'{label}' holds no code object for the chip '{chip}'");
        }
    }
    let written = remap(
        &options.trace,
        &mappings,
        &out,
        &Remap {
            chains: options.chains,
            kernel: options.kernel.as_deref(),
            locate: &|path| options.sources.locate(path),
        },
    )?;
    if written.matched < written.instructions {
        eprintln!(
            "siteline: warning: {} instructions are of other kernels than those of '{label}': \
             their Source stays",
            written.instructions - written.matched
        );
    }
    print_written(&out, &written, options.json)?;
    Ok(Outcome::Done)
}
