//! What `report`, `lines` and `diff` share: choosing code objects and kernels, and the sources
//! beside them.

use std::path::Path;

use anyhow::{Result, bail};
use clap::Args;
use rustc_hash::FxHashMap;

use super::options::{FileLine, SourceOptions};
use crate::chain::{Chains, Line};
use crate::files;
use crate::leaf::{LeafRule, LeafTable};
use crate::object::definition::{self, Origins};
use crate::object::disasm::{self, Disassembler};
use crate::object::{CodeObject, Function, FunctionKind, Lister, Listing, container};

/// Which code objects and kernels of a file are meant, and what is known besides the file.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Kernels")]
pub struct ObjectOptions {
    /// Only the kernel, or device function, of this name
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Only code objects for this chip, such as gfx942
    #[arg(long, value_name = "CHIP")]
    pub chip: Option<String>,
    /// The line of the kernel function itself, where neither the debug information nor the
    /// source says it
    #[arg(long, value_name = "FILE:LINE")]
    pub definition: Option<FileLine>,
    #[command(flatten)]
    pub sources: SourceOptions,
}

/// A kernel that was chosen, with its instructions.
pub struct Chosen {
    /// Its code object's position in the objects that were read.
    pub object: usize,
    /// The kernel.
    pub function: Function,
    /// Its instructions.
    pub listing: Listing,
    /// The line of the kernel itself.
    pub definition: Option<Line>,
}

/// The code objects of some files, and the kernels that are meant.
pub struct Objects {
    /// Where chains, paths and names are.
    pub chains: Chains,
    /// The code objects.
    pub objects: Vec<CodeObject>,
    /// The kernels.
    pub kernels: Vec<Chosen>,
    /// The disassembler that instructions are from.
    pub disassembler: Option<&'static dyn Disassembler>,
    /// Source texts that were read.
    pub texts: Texts,
}

impl ObjectOptions {
    /// Reads files and lists the kernels that are meant.
    ///
    /// # Errors
    /// A file cannot be read, or has no such kernel or chip.
    pub fn read(&self, paths: &[&Path], leaf: &[LeafRule]) -> Result<Objects> {
        let mut objects = Objects {
            chains: Chains::new(),
            objects: Vec::new(),
            kernels: Vec::new(),
            disassembler: disasm::available(),
            texts: Texts::new(self.sources.clone()),
        };
        for path in paths {
            self.read_more(path, leaf, &mut objects)?;
        }
        Ok(objects)
    }

    /// Reads another file into what was read.
    ///
    /// # Errors
    /// The file cannot be read, or has no such kernel or chip.
    pub fn read_more(&self, path: &Path, leaf: &[LeafRule], into: &mut Objects) -> Result<()> {
        self.read_one(path, &LeafTable::new(leaf.to_vec()), into)
    }

    fn read_one(&self, path: &Path, table: &LeafTable, into: &mut Objects) -> Result<()> {
        let contained = container::read(&path.display().to_string(), files::read(path)?)?;
        let chips: Vec<String> = contained
            .iter()
            .map(|c| c.elf.target.as_ref().map_or("unknown".into(), |t| t.chip.clone()))
            .collect();
        let mut names = Vec::new();
        let (before, mut matched) = (into.kernels.len(), false);
        for (contained, chip) in contained.into_iter().zip(&chips) {
            if self.chip.as_ref().is_some_and(|wanted| wanted != chip) {
                continue;
            }
            matched = true;
            let object = CodeObject::new(contained, &mut into.chains)?;
            names.extend(object.kernels().map(|kernel| kernel.name.clone()));
            self.choose(object, table, into);
        }
        if let Some(chip) = self.chip.as_ref().filter(|_| !matched) {
            let there = list(chips);
            bail!("'{}' holds no code for {chip}: --chip can be {there}", path.display());
        }
        if into.kernels.len() == before {
            match &self.kernel {
                Some(kernel) => bail!(
                    "'{}' has no kernel '{kernel}': --kernel can be {}",
                    path.display(),
                    list(names)
                ),
                None => bail!("'{}' holds no code", path.display()),
            }
        }
        Ok(())
    }

    /// Adds an object, and of its functions the one asked for, else the kernels.
    fn choose(&self, object: CodeObject, table: &LeafTable, into: &mut Objects) {
        let is_meant = |function: &&Function| match &self.kernel {
            Some(name) => function.name == *name,
            None => function.kind == FunctionKind::Kernel,
        };
        let lister = Lister { disassembler: into.disassembler, table };
        let index = into.objects.len();
        for function in object.functions.iter().filter(is_meant) {
            let listing = lister.list(&object, function, &mut into.chains);
            let mut text = |path: &str| into.texts.text(path).map(str::to_owned);
            let given = self.definition.as_ref().map(|given| (given.file.as_str(), given.line));
            let mut origins = Origins { text: &mut text, given };
            let definition =
                definition::of(&object, function, &listing, &mut origins, &mut into.chains);
            let function = function.clone();
            into.kernels.push(Chosen { object: index, function, listing, definition });
        }
        into.objects.push(object);
    }
}

fn list(mut names: Vec<String>) -> String {
    names.sort();
    names.dedup();
    match names.is_empty() {
        true => "nothing, as there is none".into(),
        false => names.join(", "),
    }
}

impl Objects {
    /// The name of the disassembler; `None` where code is counted in words.
    pub fn disassembler_name(&self) -> Option<String> {
        self.disassembler.map(Disassembler::name)
    }

    /// Says on standard error what is missing of the objects: debug information, instructions.
    pub fn warn(&self) {
        for object in self.objects.iter().filter(|object| object.debug.is_none()) {
            eprintln!(
                "siteline: warning: '{}' has no debug information: compile it with -g",
                object.label
            );
        }
        if self.kernels.iter().any(|kernel| !kernel.listing.decoded) {
            eprintln!(
                "siteline: warning: no disassembler for the chip was found, so code is counted \
                 in words of 4 bytes and leaf classes are unknown: install libLLVM 19 or newer, \
                 or ROCm's amd_comgr"
            );
        }
    }
}

/// Source files, read when they are asked for.
pub struct Texts {
    sources: SourceOptions,
    texts: FxHashMap<String, Option<String>>,
}

impl Texts {
    pub(super) fn new(sources: SourceOptions) -> Self {
        Texts { sources, texts: FxHashMap::default() }
    }

    /// The text of a source by its path in the debug information; `None` where it cannot be
    /// read. A relative path is one on another machine unless `--source-root` moves it.
    pub fn text(&mut self, path: &str) -> Option<&str> {
        if !self.texts.contains_key(path) {
            let here = self.sources.locate(path);
            let usable = here.is_absolute() || here != Path::new(path);
            let bytes = std::fs::read(&here).ok().filter(|_| usable);
            let text = bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            self.texts.insert(path.into(), text);
        }
        self.texts.get(path)?.as_deref()
    }

    /// One line of a source, from 1, without the space around it.
    pub fn line(&mut self, path: &str, number: u32) -> Option<&str> {
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        self.text(path)?.lines().nth(index).map(str::trim)
    }
}
