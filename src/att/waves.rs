//! The per-wave files of a trace: what the waits of single waves really waited for.
//!
//! Rows are named by their LineNumber; see [`super::Trace::by_line_number`].

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::AttError;
use super::folder::FILENAMES;
use super::read::read_text;

/// One execution of a wait, as ROCprof's decoder matched it with what it waited for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wait {
    /// The LineNumber of the wait.
    pub row: u32,
    /// The LineNumbers of the operations that it waited for, in their order.
    pub awaited: Vec<u32>,
}

/// One wave's file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wave {
    /// The waits that the wave executed, in the file's order.
    pub waits: Vec<Wait>,
}

#[derive(Deserialize)]
struct File {
    wave: Option<Body>,
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    waitcnt: Option<Vec<Record>>,
}

/// `[row, [[row of an operation, _], …]]`; more cells are let through.
struct Record(Wait);

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (row, operations) = <(u32, Vec<Vec<Value>>)>::deserialize(deserializer)?;
        let awaited = operations.iter().map(|operation| {
            let row = operation.first().and_then(Value::as_u64);
            row.and_then(|row| u32::try_from(row).ok())
        });
        let awaited = awaited.collect::<Option<_>>().ok_or_else(|| {
            serde::de::Error::custom(format!("an operation that row {row} awaits has no row"))
        })?;
        Ok(Record(Wait { row, awaited }))
    }
}

impl Wave {
    /// Reads a per-wave file. A file without `wave.waitcnt` has no waits.
    ///
    /// # Errors
    /// The file cannot be read, or is not of the documented form.
    pub fn read(path: &Path) -> Result<Self, AttError> {
        let text = read_text(path)?;
        let file: File = serde_json::from_str(&text).map_err(|error| {
            let path = path.into();
            if error.is_data() {
                AttError::Form { path, what: format!("not the file of a wave: {error}") }
            } else {
                AttError::Json { path, reason: error.to_string() }
            }
        })?;
        let records = file.wave.and_then(|wave| wave.waitcnt).unwrap_or_default();
        Ok(Wave { waits: records.into_iter().map(|record| record.0).collect() })
    }
}

/// The per-wave files of a trace's folder, by name: those that `filenames.json` lists and that
/// exist, or without it all of the form `se*_sm*_sl*_wv*.json`.
///
/// # Errors
/// The folder or its `filenames.json` cannot be read.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>, AttError> {
    let listed = folder.join(FILENAMES);
    let mut names = if listed.is_file() {
        let text = read_text(&listed)?;
        let list: Value = serde_json::from_str(&text)
            .map_err(|error| AttError::Json { path: listed, reason: error.to_string() })?;
        let mut names = Vec::new();
        collect_names(&list["wave_filenames"], &mut names);
        names
    } else {
        let entries = std::fs::read_dir(folder)
            .map_err(|reason| crate::files::FileError::Read { path: folder.into(), reason })?;
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    names.retain(|name| is_wave_file(name));
    names.sort_unstable();
    names.dedup();
    Ok(names.iter().map(|name| folder.join(name)).filter(|path| path.is_file()).collect())
}

/// The names in a tree whose leaves are `[name, begin, end]`.
fn collect_names(tree: &Value, names: &mut Vec<String>) {
    match tree {
        Value::Object(levels) => levels.values().for_each(|level| collect_names(level, names)),
        Value::Array(leaf) => names.extend(leaf.first().and_then(Value::as_str).map(Into::into)),
        _ => {}
    }
}

fn is_wave_file(name: &str) -> bool {
    let stem = name.strip_suffix(".json").unwrap_or_default();
    let parts: Vec<_> = stem.split('_').collect();
    let is_part = |(part, front): (&&str, &str)| {
        let number = part.strip_prefix(front).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    };
    parts.len() == 4 && parts.iter().zip(["se", "sm", "sl", "wv"]).all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Wave, AttError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("se0_sm0_sl0_wv0.json");
        std::fs::write(&path, text).unwrap();
        Wave::read(&path)
    }

    #[test]
    fn waits_are_read() {
        let wave =
            read(r#"{"wave":{"waitcnt":[[3,[[1,0]]],[9,[[4,0],[5,7]]]],"cu":1},"name":"SE0"}"#);
        let waits = [Wait { row: 3, awaited: vec![1] }, Wait { row: 9, awaited: vec![4, 5] }];
        assert_eq!(wave.unwrap().waits, waits);
        assert_eq!(read("{}").unwrap(), Wave::default());
        assert_eq!(read(r#"{"wave":{"waitcnt":null}}"#).unwrap(), Wave::default());
    }

    #[test]
    fn broken_wave_files_are_said() {
        for text in [r#"{"wave":{"waitcnt":[[3,[["x"]]]]}}"#, r#"{"wave":{"waitcnt":[3]}}"#] {
            assert!(matches!(read(text), Err(AttError::Form { .. })), "{text}");
        }
        assert!(matches!(read(r#"{"wave":"#), Err(AttError::Json { .. })));
    }

    #[test]
    fn wave_files_are_found_with_and_without_a_list() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["se0_sm1_sl2_wv3.json", "se0_perfcounter.json", "code.json"] {
            std::fs::write(folder.path().join(name), "{}").unwrap();
        }
        let expected = [folder.path().join("se0_sm1_sl2_wv3.json")];
        assert_eq!(files(folder.path()).unwrap(), expected);
        let list = r#"{"wave_filenames":{"0":{"1":{"2":{"3":["se0_sm1_sl2_wv3.json",1,2],
            "4":["../se0_sm0_sl0_wv0.json",1,2]}}}}}"#;
        std::fs::write(folder.path().join(FILENAMES), list).unwrap();
        assert_eq!(files(folder.path()).unwrap(), expected);
    }
}
