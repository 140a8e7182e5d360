//! Input and output files: `-` for the standard streams, and output that appears whole or not
//! at all.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// An input that could not be read or an output that could not be written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The input could not be read.
    #[error("cannot read '{}': {reason}", path.display())]
    Read {
        /// The input's path.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
    /// The output could not be written; there is no part of it.
    #[error("cannot write '{}': {reason}", path.display())]
    Write {
        /// The output's path.
        path: PathBuf,
        /// The system's reason.
        reason: io::Error,
    },
}

/// Whether a path stands for standard input or output.
pub fn is_standard_stream(path: &Path) -> bool {
    path == Path::new("-")
}

/// Reads a whole file, or standard input for `-`.
///
/// # Errors
/// The input cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let bytes = if is_standard_stream(path) {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(path)
    };
    bytes.map_err(|reason| FileError::Read { path: path.into(), reason })
}

/// Writes a file so that it appears whole or not at all, or standard output for `-`.
///
/// A regular file is replaced by a rename from the same folder and keeps its permissions; other
/// kinds of file, such as `/dev/null`, are written in place.
///
/// # Errors
/// The output cannot be written. What was at `path` before is still there.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let written = if is_standard_stream(path) {
        let mut out = io::stdout().lock();
        out.write_all(bytes).and_then(|()| out.flush())
    } else {
        write_file(path, bytes)
    };
    written.map_err(|reason| FileError::Write { path: path.into(), reason })
}

/// What can fail when a file is replaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Create,
    Write,
    Replace,
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_in_steps(path, bytes, &mut |_| Ok(()))
}

/// Writes a file, and asks before each step whether it may be done.
fn write_in_steps(
    path: &Path,
    bytes: &[u8],
    may: &mut dyn FnMut(Step) -> io::Result<()>,
) -> io::Result<()> {
    let path = &std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let old = std::fs::metadata(path).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return File::options().write(true).open(path)?.write_all(bytes);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".siteline-");
    let permissions = old.map_or_else(new_file_permissions, |old| old.permissions());
    may(Step::Create)?;
    let mut file =
        builder.permissions(permissions).tempfile_in(folder.unwrap_or(Path::new(".")))?;
    may(Step::Write)?;
    file.write_all(bytes)?;
    may(Step::Replace)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// What a plain `File::create` would ask for; the process's umask still applies.
fn new_file_permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o666)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_that_fails_leaves_the_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("no/such/folder");
        let error = write(&missing, b"new").unwrap_err();
        assert!(error.to_string().starts_with("cannot write '"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_step_that_fails_leaves_the_old_file_or_none() {
        for old in [None, Some(&b"old"[..])] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("out");
            old.inspect(|old| std::fs::write(&path, old).unwrap());
            let count = || std::fs::read_dir(folder.path()).unwrap().count();
            for fails in [Step::Create, Step::Write, Step::Replace] {
                let before = count();
                let mut may = |step| match step == fails {
                    true => Err(io::Error::from(io::ErrorKind::StorageFull)),
                    false => Ok(()),
                };
                let error = write_in_steps(&path, b"new", &mut may).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{fails:?}");
                assert_eq!(std::fs::read(&path).ok().as_deref(), old, "{fails:?}");
                assert_eq!(count(), before, "{fails:?} leaves a file");
            }
            write(&path, b"new").unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"new");
        }
    }

    #[test]
    fn a_file_is_replaced_and_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        std::fs::write(&path, b"old").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        write(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_device_is_written_in_place() {
        write(Path::new("/dev/null"), b"gone").unwrap();
    }
}
