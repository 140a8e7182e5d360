//! Writing a trace's folder anew with other Source cells, and nothing else changed.
//!
//! The cells are replaced in the text of `code.json`, so every other byte of it stays. The new
//! folder is made beside its place and renamed into it, so it appears whole or not at all, and
//! nothing is written outside it.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::value::RawValue;

use super::folder::{CODE, FILENAMES, SNAPSHOTS, Snapshots};
use super::read::{self, Cells, read_text};
use super::{AttError, RowKind, Trace, folder, source};
use crate::chain::Chains;
use crate::files::FileError;
use crate::leaf::LeafTable;

/// What was written, and what could not be.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Written {
    /// Instructions of the trace, padding excluded.
    pub instructions: usize,
    /// Those whose Source was to be set.
    pub matched: usize,
    /// Those whose Source differs from before.
    pub changed: usize,
    /// Sources copied from this machine.
    pub sources_saved: usize,
    /// Sources that the trace's folder already had.
    pub sources_kept: usize,
    /// Sources found nowhere, by their path in the trace.
    pub sources_missing: Vec<String>,
    /// Entries of `snapshots.json` that name no file of the folder; they stay as they were.
    pub sources_outside: usize,
}

/// A trace with what is needed to write it anew.
pub(super) struct Original {
    pub(super) trace: Trace,
    text: String,
    cells: Cells,
    /// The folder, where not just a `code.json` was named.
    folder: Option<PathBuf>,
}

impl Original {
    pub(super) fn read(path: &Path, table: &LeafTable) -> Result<Self, AttError> {
        let code = folder::code_json(path)?;
        let folder = path.is_dir().then(|| code.parent().unwrap_or(path).to_path_buf());
        let text = read_text(&code)?;
        let (trace, cells) = read::parse(code, &text, table, true)?;
        Ok(Original { trace, text, cells, folder })
    }
}

/// How a trace is written anew.
pub(super) struct Rewrite<'a> {
    /// The new folder.
    pub(super) out: &'a Path,
    /// Where a source lies on this machine, by its path in the trace.
    pub(super) locate: &'a dyn Fn(&str) -> PathBuf,
    /// The major number of the chip, where it is known and the folder does not say it.
    pub(super) gfxip: Option<u32>,
}

impl Rewrite<'_> {
    /// Writes the folder; `sources` has the new text of each row's Source, by the row's index,
    /// or `None` where it stays.
    pub(super) fn write(
        &self,
        original: &Original,
        sources: &[Option<&str>],
    ) -> Result<Written, AttError> {
        let trace = &original.trace;
        let is_code = |at: &usize| trace.rows[*at].kind == RowKind::Instruction;
        let mut written = Written {
            instructions: (0..trace.rows.len()).filter(is_code).count(),
            matched: sources.iter().flatten().count(),
            ..Written::default()
        };
        let code = splice(original, sources, &mut written)?;
        let entries = self.entries(original)?;
        let write_error = |reason| FileError::Write { path: self.out.into(), reason };
        let temporary = self.temporary().map_err(write_error)?;
        let place = temporary.path();
        for entry in &entries {
            entry
                .copy(place)
                .map_err(|reason| FileError::Write { path: self.out.join(&entry.name), reason })?;
        }
        self.save_sources(original, &used_files(trace, sources), place, &mut written)?;
        self.list_waves(original, place)?;
        fs::write(place.join(CODE), code).map_err(write_error)?;
        fs::rename(place, self.out).map_err(write_error)?;
        let _ = temporary.keep();
        Ok(written)
    }

    /// The folder beside the place of the new one. Its permissions are those of a new folder.
    fn temporary(&self) -> io::Result<tempfile::TempDir> {
        let parent = self.out.parent().filter(|parent| !parent.as_os_str().is_empty());
        tempfile::Builder::new()
            .prefix(".siteline-")
            .permissions(fs::Permissions::from_mode(0o777))
            .tempdir_in(parent.unwrap_or(Path::new(".")))
    }

    /// What is copied. Refuses a place that is taken, or inside the folder that is read.
    fn entries(&self, original: &Original) -> Result<Vec<Entry>, AttError> {
        let refuse = |what: &str| AttError::Folder { path: self.out.into(), what: what.into() };
        let is_empty = |folder: &Path| fs::read_dir(folder).is_ok_and(|mut e| e.next().is_none());
        if self.out.symlink_metadata().is_ok() && !is_empty(self.out) {
            return Err(refuse("exists already: name a new folder to write"));
        }
        let Some(folder) = &original.folder else { return Ok(Vec::new()) };
        if is_inside(self.out, folder) {
            return Err(refuse("lies in the trace's own folder: name one outside it"));
        }
        let mut entries = Vec::new();
        list(folder, Path::new(""), &mut entries)?;
        Ok(entries)
    }

    /// Copies the sources that the rows name and the folder has not, and grows
    /// `snapshots.json` by them. One below a `--source-root` replaces one that was saved.
    fn save_sources(
        &self,
        original: &Original,
        files: &BTreeSet<String>,
        place: &Path,
        written: &mut Written,
    ) -> Result<(), AttError> {
        let mut snapshots = match &original.folder {
            Some(folder) => Snapshots::read(folder)?,
            None => Snapshots::default(),
        };
        written.sources_outside = snapshots.outside;
        for file in files {
            let kept = snapshots.file(file).is_some_and(|saved| saved.is_file());
            let found = (self.locate)(file);
            let moved = found != Path::new(file);
            let usable = (found.is_absolute() || moved) && found.is_file();
            if usable && (moved || !kept) {
                let to = place.join(snapshots.name_for(file));
                fs::copy(&found, &to).map_err(|reason| FileError::Write { path: to, reason })?;
                written.sources_saved += 1;
            } else if kept {
                written.sources_kept += 1;
            } else {
                written.sources_missing.push(file.clone());
            }
        }
        if written.sources_saved > 0 || !place.join(SNAPSHOTS).exists() {
            let path = place.join(SNAPSHOTS);
            make_way(&path)
                .and_then(|()| fs::write(&path, snapshots.to_json()))
                .map_err(|reason| FileError::Write { path, reason })?;
        }
        Ok(())
    }

    /// Writes a `filenames.json` without waves where there is none, since viewers ask for it.
    fn list_waves(&self, original: &Original, place: &Path) -> Result<(), AttError> {
        let path = place.join(FILENAMES);
        if path.exists() {
            return Ok(());
        }
        let version = read::version(&original.trace.path, &original.text)?;
        let mut fields = vec![r#""counter_names":[]"#.to_string()];
        if let Some(gfxip) = self.gfxip {
            let family = if gfxip > 9 { "navi" } else { "vega" };
            fields.push(format!(r#""gfxip":{gfxip},"gfxv":"{family}""#));
        }
        fields.push(r#""global_begin_time":0"#.into());
        fields.extend(version.map(|version| format!(r#""version":{version}"#)));
        fields.push(r#""wave_filenames":null"#.into());
        let text = format!("{{{}}}", fields.join(","));
        Ok(fs::write(&path, text).map_err(|reason| FileError::Write { path, reason })?)
    }
}

/// Takes away a copied file that is to be replaced, as it may be read-only.
fn make_way(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The text of `code.json` with the new cells. A cell whose text stays keeps its bytes.
fn splice(
    original: &Original,
    sources: &[Option<&str>],
    written: &mut Written,
) -> Result<String, AttError> {
    let text = original.text.as_str();
    let mut out = String::with_capacity(text.len());
    let mut end = 0;
    for (cell, source) in original.cells.iter().zip(sources) {
        let Some(source) = source else { continue };
        let old: Option<String> = serde_json::from_str(&text[cell.clone()]).unwrap_or_default();
        if old.unwrap_or_default() == *source {
            continue;
        }
        let new = json_text(source)
            .map_err(|reason| AttError::Json { path: original.trace.path.clone(), reason })?;
        out.push_str(&text[end..cell.start]);
        out.push_str(new.get());
        end = cell.end;
        written.changed += 1;
    }
    out.push_str(&text[end..]);
    Ok(out)
}

fn json_text(text: &str) -> Result<Box<RawValue>, String> {
    serde_json::value::to_raw_value(text).map_err(|error| error.to_string())
}

/// The files of all frames that the new rows show.
fn used_files(trace: &Trace, sources: &[Option<&str>]) -> BTreeSet<String> {
    let mut files = BTreeSet::new();
    let mut old = BTreeSet::new();
    let mut new = BTreeSet::new();
    for (row, source) in trace.rows.iter().zip(sources) {
        match source {
            Some(source) => _ = new.insert(*source),
            None => old.extend(row.chain),
        }
    }
    for chain in old {
        files.extend(trace.chains.lines(chain).map(|line| trace.chains.str(line.file).to_owned()));
    }
    let mut chains = Chains::new();
    for source in new {
        let Some(chain) = source::parse(source, &mut chains).chain else { continue };
        files.extend(chains.lines(chain).map(|line| chains.str(line.file).to_owned()));
    }
    files
}

/// A file or folder to copy.
struct Entry {
    /// Its place below the trace's folder, made of plain names.
    name: PathBuf,
    from: PathBuf,
    is_folder: bool,
}

impl Entry {
    fn copy(&self, place: &Path) -> io::Result<()> {
        let to = place.join(&self.name);
        if self.is_folder { fs::create_dir(to) } else { fs::copy(&self.from, to).map(|_| ()) }
    }
}

/// Everything below a folder but its `code.json`; a folder stands in front of what is in it.
fn list(root: &Path, below: &Path, entries: &mut Vec<Entry>) -> Result<(), AttError> {
    let folder = root.join(below);
    let read_error = |reason| FileError::Read { path: folder.clone(), reason };
    for entry in fs::read_dir(&folder).map_err(read_error)? {
        let entry = entry.map_err(read_error)?;
        let (name, from) = (below.join(entry.file_name()), entry.path());
        if name == Path::new(CODE) {
            continue;
        }
        let own = entry.file_type().map_err(read_error)?;
        if !own.is_dir() && !from.is_file() {
            let what = "is neither a file nor a folder: take it out of the trace's folder".into();
            return Err(AttError::Folder { path: from, what });
        }
        let is_folder = own.is_dir();
        entries.push(Entry { name: name.clone(), from, is_folder });
        if is_folder {
            list(root, &name, entries)?;
        }
    }
    Ok(())
}

/// Whether a place that may not exist yet lies in a folder, or is it.
fn is_inside(place: &Path, folder: &Path) -> bool {
    let Ok(folder) = fs::canonicalize(folder) else { return false };
    let absolute = std::path::absolute(place).unwrap_or_else(|_| place.into());
    let existing = absolute.ancestors().find_map(|above| fs::canonicalize(above).ok());
    existing.is_some_and(|above| above.starts_with(&folder))
}
