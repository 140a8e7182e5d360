//! Options that several subcommands share.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::Args;

use crate::leaf::{ClassSet, LeafRule, LeafTable};
use crate::mlir::propagate::Origin;
use crate::site::{Library, Policy, Settings};

/// Options that say how sites are chosen.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Sites")]
pub struct SiteOptions {
    /// How the site of a chain is chosen: distinct, unique, innermost, outermost, file:GLOB,
    /// skip:GLOB or depth:N
    #[arg(long, value_name = "P", default_value = "distinct")]
    pub policy: Policy,
    /// Classes that get a site, separated by commas: mfma, wait, barrier, dma, lds, sched, asm,
    /// other, all
    #[arg(long, value_name = "LIST", default_value = "all")]
    pub leaves: ClassSet,
    /// Count operations whose name matches GLOB to a leaf class; may be repeated
    #[arg(long = "leaf", value_name = "CLASS=GLOB")]
    pub leaf: Vec<LeafRule>,
    /// Paths of code that the kernel's author did not write; may be repeated
    #[arg(long, value_name = "GLOB")]
    pub library: Vec<String>,
}

impl SiteOptions {
    /// The settings that the options ask for.
    ///
    /// # Errors
    /// A malformed `--library` glob.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        Ok(Settings {
            policy: self.policy.clone(),
            leaves: self.leaves,
            table: LeafTable::new(self.leaf.clone()),
            library: Library::new(&self.library)?,
        })
    }
}

/// What becomes of original locations, and of operations without a usable one.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Sites")]
pub struct OriginOption {
    /// What becomes of original locations: keep (as metadata) or drop
    #[arg(long, value_name = "WHAT", default_value = "keep")]
    pub origin: Origin,
    /// Leave operations without a usable location as they are; else they get the site of the
    /// operation that they belong to, marked as inferred
    #[arg(long)]
    pub no_infer: bool,
}

/// One `--source-root FROM=TO`: where sources lie that were compiled elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceRoot {
    from: PathBuf,
    to: PathBuf,
}

impl FromStr for SourceRoot {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((from, to)) if !from.is_empty() => {
                Ok(SourceRoot { from: from.into(), to: to.into() })
            }
            _ => Err(format!("'{text}' is not of the form FROM=TO")),
        }
    }
}

/// Where source files are looked for.
#[derive(Args, Clone, Default, Debug)]
#[command(next_help_heading = "Sources")]
pub struct SourceOptions {
    /// Look for sources whose path starts with FROM below TO instead; may be repeated, the
    /// first that matches is used
    #[arg(long = "source-root", value_name = "FROM=TO")]
    pub source_root: Vec<SourceRoot>,
}

impl SourceOptions {
    /// Where the source file named `path` in debug information should be on this machine.
    pub fn locate(&self, path: &str) -> PathBuf {
        self.source_root
            .iter()
            .find_map(|root| {
                let rest = Path::new(path).strip_prefix(&root.from).ok()?;
                // Joining nothing would make a folder of a file that is named whole.
                let is_whole = rest.as_os_str().is_empty();
                Some(if is_whole { root.to.clone() } else { root.to.join(rest) })
            })
            .unwrap_or_else(|| path.into())
    }
}

/// A `FILE:LINE`, as `--definition` takes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileLine {
    /// The file's path.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl FromStr for FileLine {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.rsplit_once(':')
            .filter(|(file, _)| !file.is_empty())
            .and_then(|(file, line)| Some(FileLine { file: file.into(), line: line.parse().ok()? }))
            .filter(|place| place.line > 0)
            .ok_or_else(|| format!("'{text}' is not of the form FILE:LINE"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_matching_source_root_moves_a_path() {
        let sources = SourceOptions {
            source_root: ["/build=/src", "/build/a=/other"].map(|r| r.parse().unwrap()).into(),
        };
        assert_eq!(sources.locate("/build/a/k.py"), Path::new("/src/a/k.py"));
        assert_eq!(sources.locate("/builder/k.py"), Path::new("/builder/k.py"));
        assert_eq!(sources.locate("/build").as_os_str(), "/src");
    }

    #[test]
    fn file_lines_are_read_from_the_right() {
        let place: FileLine = "C:/k.py:12".parse().unwrap();
        assert_eq!((place.file.as_str(), place.line), ("C:/k.py", 12));
        assert!("k.py".parse::<FileLine>().is_err());
        assert!("k.py:0".parse::<FileLine>().is_err());
    }
}
