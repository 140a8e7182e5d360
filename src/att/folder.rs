//! The folder of a trace: where `code.json` is, and the sources that were saved with it.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use serde_json::{Map, Value};

use super::AttError;
use super::read::read_text;

/// The name of the code table in a trace's folder.
pub const CODE: &str = "code.json";
/// The name of the tree of saved sources in a trace's folder.
pub const SNAPSHOTS: &str = "snapshots.json";
/// The name of the list of per-wave files in a trace's folder.
pub const FILENAMES: &str = "filenames.json";

/// The `code.json` that `path` names: the file itself, the one in the folder, or the one in the
/// folder's only `ui_output_*`.
///
/// # Errors
/// There is none, or several.
pub fn code_json(path: &Path) -> Result<PathBuf, AttError> {
    if !path.is_dir() {
        return Ok(path.into());
    }
    let code = path.join(CODE);
    if code.is_file() {
        return Ok(code);
    }
    let mut found = ui_folders(path);
    match (found.pop(), found.is_empty()) {
        (Some(folder), true) => Ok(folder.join(CODE)),
        (Some(_), false) => Err(folder_error(
            path,
            format!("holds {} traces (ui_output_*): name one of them", found.len() + 1),
        )),
        (None, _) => Err(folder_error(
            path,
            "holds no code.json: name the ui_output_* folder that rocprofv3 --att wrote".into(),
        )),
    }
}

fn folder_error(path: &Path, what: String) -> AttError {
    AttError::Folder { path: path.into(), what }
}

fn ui_folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("ui_output"))
        .map(|entry| entry.path())
        .filter(|folder| folder.join(CODE).is_file())
        .collect()
}

/// The sources that were saved with a trace: `snapshots.json` and the files it names.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Snapshots {
    folder: PathBuf,
    tree: Map<String, Value>,
    /// From the path in the trace to the file's name in the folder.
    names: BTreeMap<String, String>,
    /// Entries that name no plain file of the folder, such as one with `..`; they are not used.
    pub outside: usize,
}

impl Snapshots {
    /// Reads `snapshots.json` in a folder; a folder without one has no saved sources.
    ///
    /// # Errors
    /// The file cannot be read, or is no tree of names.
    pub fn read(folder: &Path) -> Result<Self, AttError> {
        let path = folder.join(SNAPSHOTS);
        let mut snapshots = Snapshots { folder: folder.into(), ..Snapshots::default() };
        if !path.is_file() {
            return Ok(snapshots);
        }
        let text = read_text(&path)?;
        let tree = serde_json::from_str(&text)
            .map_err(|error| AttError::Json { path: path.clone(), reason: error.to_string() })?;
        match tree {
            Value::Object(tree) => snapshots.tree = tree,
            Value::Null => {}
            _ => {
                let what = "expected an object, which is the tree of saved sources".into();
                return Err(AttError::Form { path, what });
            }
        }
        let tree = std::mem::take(&mut snapshots.tree);
        snapshots.collect(&tree, "");
        snapshots.tree = tree;
        Ok(snapshots)
    }

    fn collect(&mut self, tree: &Map<String, Value>, above: &str) {
        for (key, value) in tree {
            let path = match above {
                "" => key.clone(),
                _ if above.ends_with('/') => format!("{above}{key}"),
                _ => format!("{above}/{key}"),
            };
            match value {
                Value::Object(tree) => self.collect(tree, &path),
                Value::String(name) if is_plain_name(name) => {
                    self.names.insert(path, name.clone());
                }
                _ => self.outside += 1,
            }
        }
    }

    /// The saved file of a source, by its path in the trace.
    pub fn file(&self, path: &str) -> Option<PathBuf> {
        self.names.get(path).map(|name| self.folder.join(name))
    }

    /// The saved text of a source, by its path in the trace.
    pub fn text(&self, path: &str) -> Option<String> {
        let bytes = std::fs::read(self.file(path)?).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// The name under which `path` is saved: the one it has, or a new one of rocprofiler's form
    /// that no file of the folder has.
    pub(super) fn name_for(&mut self, path: &str) -> String {
        if let Some(name) = self.names.get(path) {
            return name.clone();
        }
        let base = base_name(path);
        let name = (0_usize..)
            .map(|number| format!("source_{number}_{base}"))
            .find(|name| !self.is_taken(name))
            .unwrap_or_default();
        self.names.insert(path.into(), name.clone());
        insert(&mut self.tree, path, &name);
        name
    }

    fn is_taken(&self, name: &str) -> bool {
        let number = |name: &str| Some(name.strip_prefix("source_")?.split_once('_')?.0.to_owned());
        self.names.values().any(|other| number(other) == number(name))
            || self.folder.join(name).exists()
    }

    /// The tree as `snapshots.json` holds it.
    pub(super) fn to_json(&self) -> String {
        Value::Object(self.tree.clone()).to_string()
    }
}

/// The last component of a path, with nothing in it that could lead elsewhere.
fn base_name(path: &str) -> String {
    let last = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let plain: String = last.chars().filter(|c| !c.is_control()).take(100).collect();
    if is_plain_name(&plain) { plain } else { "source".into() }
}

/// Whether a name is that of a file right in a folder.
fn is_plain_name(name: &str) -> bool {
    let mut components = Path::new(name).components();
    matches!((components.next(), components.next()), (Some(Component::Normal(part)), None)
        if part == name)
}

/// Puts a name at a path into the tree; the root `/` is a level of its own. What
/// stands as a file where a folder is needed, or the other way round, keeps its place.
fn insert(tree: &mut Map<String, Value>, path: &str, name: &str) {
    let (root, rest) = match path.strip_prefix('/') {
        Some(rest) => (Some("/"), rest),
        None => (None, path),
    };
    let mut parts: Vec<&str> =
        root.into_iter().chain(rest.split('/').filter(|part| !part.is_empty())).collect();
    let Some(leaf) = parts.pop() else { return };
    let mut at = tree;
    for part in parts {
        let below = at.entry(part).or_insert_with(|| Value::Object(Map::new()));
        match below {
            Value::Object(below) => at = below,
            _ => return,
        }
    }
    if !at.get(leaf).is_some_and(Value::is_object) {
        at.insert(leaf.into(), Value::String(name.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_read_and_grown_as_rocprofiler_writes_it() {
        let folder = tempfile::tempdir().unwrap();
        let tree = r#"{"/":{"opt":{"..":{"h.h":"source_0_h.h"}},"x":{"evil":"../evil"}},"k.py":"source_2_k.py"}"#;
        std::fs::write(folder.path().join(SNAPSHOTS), tree).unwrap();
        let mut snapshots = Snapshots::read(folder.path()).unwrap();
        assert_eq!(snapshots.file("/opt/../h.h"), Some(folder.path().join("source_0_h.h")));
        assert_eq!(snapshots.file("k.py"), Some(folder.path().join("source_2_k.py")));
        assert_eq!((snapshots.file("/x/evil"), snapshots.outside), (None, 1));
        assert_eq!(snapshots.name_for("/opt/a/b.py"), "source_1_b.py");
        assert_eq!(snapshots.name_for("/opt/../h.h"), "source_0_h.h");
        assert_eq!(snapshots.name_for("/opt/a/.."), "source_3_source");
        let grown: Value = serde_json::from_str(&snapshots.to_json()).unwrap();
        assert_eq!(grown["/"]["opt"]["a"]["b.py"], "source_1_b.py");
        assert_eq!(grown["/"]["x"]["evil"], "../evil");
    }

    #[test]
    fn a_folder_without_a_trace_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let error = code_json(folder.path()).unwrap_err().to_string();
        assert!(error.contains("holds no code.json"), "{error}");
        for name in ["ui_output_agent_1_dispatch_2", "ui_output_agent_1_dispatch_3"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join(CODE), "{}").unwrap();
        }
        let error = code_json(folder.path()).unwrap_err().to_string();
        assert!(error.contains("holds 2 traces"), "{error}");
        let one = folder.path().join("ui_output_agent_1_dispatch_2");
        assert_eq!(code_json(&one).unwrap(), one.join(CODE));
    }
}
