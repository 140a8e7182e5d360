//! `siteline compile`: the driver.

use std::path::{Path, PathBuf};

use clap::Args;

use super::options::{OriginOption, SiteOptions};
use super::{Outcome, verify};
use crate::driver::{self, Emit, Job, Sites};
use crate::files;

/// Compile MLIR or LLVM IR to a code object, with every instruction on its site
#[derive(Args)]
pub struct Compile {
    #[command(flatten)]
    pub(super) what: CompileOptions,
    /// Make line tables
    #[arg(short = 'g')]
    debug: bool,
    /// Where to write the result; '-' is standard output. Default: standard output for text,
    /// else IN's name with the ending of what is made
    #[arg(short, value_name = "OUT")]
    output: Option<PathBuf>,
    /// What to make
    #[arg(long, value_name = "KIND", default_value = "hsaco")]
    emit: Emit,
    /// Choose no sites: keep every location as it is
    #[arg(long)]
    no_sites: bool,
    /// Check that sites change no machine code; without identity nothing is written
    #[arg(long)]
    verify: bool,
}

/// What is compiled, for what, and how: the options that `compile` and `verify` share.
#[derive(Args, Clone)]
pub struct CompileOptions {
    /// MLIR, text or bytecode, or LLVM IR (.ll, .bc); '-' is standard input
    #[arg(value_name = "IN")]
    pub(super) input: PathBuf,
    /// The chip, such as gfx942
    #[arg(long, value_name = "CHIP")]
    pub(super) chip: Option<String>,
    /// The level of optimisation
    #[arg(short = 'O', value_name = "N", default_value = "3", value_parser = clap::value_parser!(u8).range(0..=3))]
    level: u8,
    /// The folder of ROCm's bitcode libraries (ocml.bc, ockl.bc)
    #[arg(long, value_name = "DIR")]
    device_libs: Option<PathBuf>,
    /// Compile the gpu.module that holds this kernel
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
    #[command(flatten)]
    sites: SiteOptions,
    #[command(flatten)]
    origin: OriginOption,
}

impl CompileOptions {
    /// A job with sites, without line tables, that makes a code object.
    pub(super) fn job(&self) -> anyhow::Result<Job> {
        let Some(chip) = self.chip.clone() else {
            anyhow::bail!("no chip to compile for: pass --chip, such as --chip gfx942");
        };
        Ok(Job {
            chip,
            level: self.level,
            debug: false,
            emit: Emit::Hsaco,
            sites: Some(Sites {
                settings: self.sites.settings()?,
                origin: self.origin.origin,
                infer: !self.origin.no_infer,
            }),
            device_libs: self.device_libs.clone(),
            kernel: self.kernel.clone(),
        })
    }
}

/// Runs the command.
///
/// # Errors
/// Input that cannot be read or compiled, or output that cannot be written.
pub fn run(options: &Compile) -> anyhow::Result<Outcome> {
    let mut job = options.what.job()?;
    let source = files::read(&options.what.input)?;
    if options.verify && verify::verify_input(&source, &options.what, None)? != Outcome::Done {
        return Ok(Outcome::CheckFailed);
    }
    job.debug = options.debug;
    job.emit = options.emit;
    if options.no_sites {
        job.sites = None;
    }
    let output = driver::compile(&source, &options.what.input, &job)?;
    let path =
        options.output.clone().unwrap_or_else(|| default_output(&options.what.input, job.emit));
    files::write(&path, &output)?;
    Ok(Outcome::Done)
}

fn default_output(input: &Path, emit: Emit) -> PathBuf {
    let ending = match emit {
        Emit::Mlir | Emit::Llvm | Emit::Asm => return "-".into(),
        Emit::Obj => "o",
        Emit::Hsaco => "hsaco",
    };
    match input.file_name() {
        Some(name) if !files::is_standard_stream(input) => Path::new(name).with_extension(ending),
        _ => "-".into(),
    }
}
