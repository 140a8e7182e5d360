//! The `siteline` command; see [`siteline::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    siteline::cli::main()
}
