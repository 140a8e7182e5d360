//! Runs the lit tests below `test/`, one named test per file.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Failed, Trial};

const LIT: &str = "/usr/lib/llvm-22/bin/lit";

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("test");
    build_plugin();
    let mut files = Vec::new();
    collect(&folder, &mut files);
    files.sort();
    assert!(!files.is_empty(), "no lit tests below '{}'", folder.display());
    let trials = files
        .into_iter()
        .map(|file| {
            let name = file.strip_prefix(&folder).unwrap_or(&file).display().to_string();
            Trial::test(name, move || run(&file))
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Builds the plugin: cargo makes the library that tests link, but no plugin beside it.
fn build_plugin() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--lib"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    if !cfg!(debug_assertions) {
        cargo.arg("--release");
    }
    let status = cargo.status().expect("cargo can be run");
    assert!(status.success(), "the plugin cannot be built");
}

/// The files that lit takes for tests; the same rules as in `test/lit.cfg.py`.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("the folder of lit tests can be read");
    for path in entries.map(|entry| entry.expect("an entry can be read").path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !["fixtures", "Inputs"].contains(&name) {
            collect(&path, files);
        } else if [".mlir", ".ll", ".test"].iter().any(|ending| name.ends_with(ending)) {
            files.push(path);
        }
    }
}

fn run(file: &Path) -> Result<(), Failed> {
    let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
    let output = Command::new("/usr/bin/python3")
        .arg(LIT)
        .arg("-v")
        .arg(file)
        .env("SITELINE_PROFILE", profile)
        .output()
        .map_err(|error| format!("cannot run '{LIT}' ({error}): install llvm-22-tools"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    // A file that lit does not run at all would pass; it must say that one test passed.
    let ran = said.contains("Passed") || said.contains("Unsupported");
    if output.status.success() && ran {
        return Ok(());
    }
    Err(format!("{said}{}", String::from_utf8_lossy(&output.stderr)).into())
}
