//! `siteline opt`: the passes without mlir-opt.

use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;

use super::Outcome;
use super::options::{OriginOption, SiteOptions};
use crate::files;
use crate::mlir::context::{self, Module, Printing};
use crate::mlir::infer::infer;
use crate::mlir::propagate::propagate;
use crate::mlir::scopes::scopes;
use crate::mlir::{report, restore};
use crate::site::Settings;

/// Run siteline's passes on MLIR of any dialect
///
/// IR that upstream's dialects refuse, such as that of a newer MLIR, is taken in generic form
/// and written in generic form.
#[derive(Args)]
pub struct Opt {
    /// MLIR, text or bytecode; '-' is standard input
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where to write the result; '-' is standard output
    #[arg(short, value_name = "OUT", default_value = "-")]
    output: PathBuf,
    /// Passes in their order, separated by commas: propagate, infer, scopes, restore, report
    #[arg(long, value_name = "LIST", default_value = "propagate,infer", value_delimiter = ',')]
    passes: Vec<PassName>,
    /// Write bytecode
    #[arg(long)]
    emit_bytecode: bool,
    /// Where the report pass writes its JSON; '-' is standard error
    #[arg(long, value_name = "FILE", default_value = "-")]
    report_output: PathBuf,
    #[command(flatten)]
    sites: SiteOptions,
    #[command(flatten)]
    origin: OriginOption,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum PassName {
    Propagate,
    Infer,
    Scopes,
    Restore,
    Report,
}

/// Runs the command.
///
/// # Errors
/// Input that cannot be read, or output that cannot be written.
pub fn run(options: &Opt) -> anyhow::Result<Outcome> {
    let settings = options.sites.settings()?;
    let source = files::read(&options.input)?;
    if crate::driver::is_llvm_ir(&source, &options.input) {
        bail!("'{}' is LLVM IR: opt takes MLIR; use siteline compile", options.input.display());
    }
    let output = context::with_module(&source, &options.input, |module, is_generic| {
        for pass in &options.passes {
            run_pass(module, *pass, &settings, options.origin, &options.report_output)?;
        }
        Ok(match options.emit_bytecode {
            true => module.bytecode(),
            false => module.print(Printing { generic: is_generic, locations: true }),
        })
    })?;
    files::write(&options.output, &output)?;
    Ok(Outcome::Done)
}

fn run_pass(
    module: &mut Module<'_>,
    pass: PassName,
    settings: &Settings,
    origin: OriginOption,
    report_output: &Path,
) -> anyhow::Result<()> {
    match pass {
        PassName::Propagate => {
            propagate(module.ir(), settings, origin.origin);
        }
        PassName::Infer if origin.no_infer => {}
        PassName::Infer => {
            infer(module.ir(), settings, origin.origin);
        }
        PassName::Scopes => {
            scopes(module.ir(), settings)?;
        }
        PassName::Restore => {
            restore::restore(module.ir());
        }
        PassName::Report => report::report(module.ir(), settings).write(report_output)?,
    }
    Ok(())
}
