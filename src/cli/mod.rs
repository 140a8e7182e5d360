//! The command line: one file per subcommand.
//!
//! Exit status: 0 done, 1 a check failed, 2 bad usage or unreadable input.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub mod att;
#[cfg(feature = "llvm")]
pub mod compile;
pub mod diff;
pub mod lines;
mod objects;
#[cfg(feature = "llvm")]
pub mod opt;
pub mod options;
pub mod refine;
pub mod report;
mod show;
#[cfg(feature = "llvm")]
pub mod verify;
pub mod waits;

/// Puts the kernel author's line on every AMDGPU instruction, and proves that no machine code
/// changed.
#[derive(Parser)]
#[command(name = "siteline", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Report(Box<report::Report>),
    Lines(Box<lines::Lines>),
    Diff(Box<diff::Diff>),
    Refine(Box<refine::Refine>),
    Waits(Box<waits::Waits>),
    #[command(subcommand)]
    Att(Box<att::Command>),
    #[cfg(feature = "llvm")]
    Opt(Box<opt::Opt>),
    #[cfg(feature = "llvm")]
    Compile(Box<compile::Compile>),
    #[cfg(feature = "llvm")]
    Verify(Box<verify::Verify>),
}

/// How a command ended when nothing went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Exit status 0.
    Done,
    /// The check that was asked for failed: exit status 1.
    CheckFailed,
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(Outcome::Done) => ExitCode::SUCCESS,
        Ok(Outcome::CheckFailed) => ExitCode::from(1),
        Err(error) => {
            eprintln!("siteline: error: {}", one_sentence(&error));
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> anyhow::Result<Outcome> {
    match command {
        Command::Report(options) => report::run(&options),
        Command::Lines(options) => lines::run(&options),
        Command::Diff(options) => diff::run(&options),
        Command::Refine(options) => refine::run(&options),
        Command::Waits(options) => waits::run(&options),
        Command::Att(command) => att::run(*command),
        #[cfg(feature = "llvm")]
        Command::Opt(options) => opt::run(&options),
        #[cfg(feature = "llvm")]
        Command::Compile(options) => compile::run(&options),
        #[cfg(feature = "llvm")]
        Command::Verify(options) => verify::run(&options),
    }
}

/// The error and its causes on one line, a cause that its parent already tells left out.
pub(crate) fn one_sentence(error: &anyhow::Error) -> String {
    let mut sentence = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if sentence.is_empty() {
            sentence = cause;
        } else if !sentence.contains(&cause) {
            sentence = format!("{sentence}: {cause}");
        }
    }
    sentence
}
