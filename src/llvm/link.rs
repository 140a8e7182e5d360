//! Linking an object file to a code object with `ld.lld`.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What goes wrong in linking.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// No linker.
    #[error("cannot find ld.lld: install lld-22, or set SITELINE_LLD to its path")]
    NoLinker,
    /// The linker that `SITELINE_LLD` names is not there.
    #[error("SITELINE_LLD names '{}', which is not a file: set it to the path of ld.lld", .0.display())]
    NotALinker(PathBuf),
    /// A temporary file cannot be written or read.
    #[error("cannot use a temporary file in '{}': {reason}", folder.display())]
    Temporary {
        /// The folder for temporary files.
        folder: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// The linker cannot be started.
    #[error("cannot run '{}': {reason}", linker.display())]
    Run {
        /// The linker's path.
        linker: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// The linker fails.
    #[error("'{}' failed: {said}", linker.display())]
    Failed {
        /// The linker's path.
        linker: PathBuf,
        /// What it said.
        said: String,
    },
}

/// Where `ld.lld` is looked for after `SITELINE_LLD` and `PATH`.
const KNOWN_PLACES: &[&str] = &["/usr/lib/llvm-22/bin/ld.lld", "/opt/rocm/llvm/bin/ld.lld"];

/// The linker: what `SITELINE_LLD` names, else `ld.lld-22` or `ld.lld` in `PATH`, else where
/// Debian and ROCm install it.
///
/// # Errors
/// There is none, or `SITELINE_LLD` is wrong.
pub fn find_linker() -> Result<PathBuf, LinkError> {
    if let Some(named) = env::var_os("SITELINE_LLD") {
        let named = PathBuf::from(named);
        return if named.is_file() { Ok(named) } else { Err(LinkError::NotALinker(named)) };
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let in_path = ["ld.lld-22", "ld.lld"]
        .into_iter()
        .flat_map(|name| env::split_paths(&path).map(move |folder| folder.join(name)));
    in_path
        .chain(KNOWN_PLACES.iter().map(PathBuf::from))
        .find(|path| path.is_file())
        .ok_or(LinkError::NoLinker)
}

/// Links one object file to a code object.
///
/// # Errors
/// There is no linker, or it refuses the object.
pub fn link(object: &[u8]) -> Result<Vec<u8>, LinkError> {
    let linker = find_linker()?;
    let temporary = |reason| LinkError::Temporary { folder: env::temp_dir(), reason };
    let folder = tempfile::Builder::new().prefix("siteline-").tempdir().map_err(temporary)?;
    let input = folder.path().join("kernel.o");
    let output = folder.path().join("kernel.hsaco");
    std::fs::write(&input, object).map_err(temporary)?;
    run(&linker, &input, &output)?;
    std::fs::read(&output).map_err(temporary)
}

fn run(linker: &Path, input: &Path, output: &Path) -> Result<(), LinkError> {
    let ran = Command::new(linker)
        .args(["-flavor", "gnu", "-shared", "--no-undefined"])
        .arg(input)
        .arg("-o")
        .arg(output)
        .output()
        .map_err(|reason| LinkError::Run { linker: linker.into(), reason })?;
    if ran.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    Err(LinkError::Failed { linker: linker.into(), said })
}
