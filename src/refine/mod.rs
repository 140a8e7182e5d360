//! Finished code objects whose every line row shows the site of its chain.
//!
//! A row becomes the site that the policy picks for its instruction; the calls between the site
//! and the instruction are taken out of the ranges of the inlined functions, so that a reader
//! prints the site once and then its callers. Nothing that is loaded changes, which
//! [`identity`] checks before a result is given.

use crate::chain::Chains;
use crate::identity::{self, Extent};
use crate::object::disasm::{self, Disassembler};
use crate::object::dwarf::write::Editable;
use crate::object::{CodeObject, Contained, ObjectError, repack};
use crate::site::Settings;

mod fill;
mod names;
mod plan;
mod rows;

/// Gives the text of a source by its path; `None` where it cannot be read.
pub type SourceText = dyn Fn(&str) -> Option<String> + Send + Sync;

/// How objects are refined.
pub struct Options {
    /// How sites are chosen.
    pub settings: Settings,
    /// Whether instructions without a line of use get that of the instruction they serve.
    pub fill: bool,
    /// The file and line of the kernel function, where the debug information does not say it.
    pub definition: Option<(String, u32)>,
    /// The text of a source by its path in the debug information, to find the kernel function
    /// in where nothing else says where it is, and the names of helpers that are named after it.
    pub text: Option<Box<SourceText>>,
    /// What tells the classes of instructions; without it, all count as `other`.
    pub disassembler: Option<&'static dyn Disassembler>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            settings: Settings::default(),
            fill: false,
            definition: None,
            text: None,
            disassembler: disasm::available(),
        }
    }
}

/// What was done to a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Code objects with line tables.
    pub objects: usize,
    /// Code objects without, which stay as they are.
    pub without_debug: usize,
    /// Code objects whose rows were sites before, and stay so.
    pub refined_before: usize,
    /// Instructions of all functions, without fill and prologues.
    pub instructions: usize,
    /// Instructions that got another one's line.
    pub filled: usize,
    /// Inlined functions that got the name that their source has, instead of the kernel's.
    pub named: usize,
    /// Line rows before.
    pub rows_before: usize,
    /// Line rows after.
    pub rows_after: usize,
    /// Whether every function could be disassembled.
    pub decoded: bool,
}

impl Default for Summary {
    fn default() -> Self {
        Summary {
            objects: 0,
            without_debug: 0,
            refined_before: 0,
            instructions: 0,
            filled: 0,
            named: 0,
            rows_before: 0,
            rows_after: 0,
            decoded: true,
        }
    }
}

/// Why a file was not refined.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RefineError {
    /// The file cannot be read, or holds what cannot be rewritten.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// What was written differs in what is loaded: siteline's own fault, so nothing is given.
    #[error("'{label}': refining it would change what is loaded: {difference}")]
    NotIdentical {
        /// The code object.
        label: String,
        /// Where it differs.
        difference: String,
    },
}

/// Refines every code object in a file, whatever its kind, and gives the whole file anew.
///
/// `label` is the file's name, which errors start with.
///
/// # Errors
/// The file is of no known kind, is damaged, or is of a kind that cannot be rewritten.
pub fn refine(
    label: &str,
    bytes: Vec<u8>,
    options: &Options,
) -> Result<(Vec<u8>, Summary), RefineError> {
    let mut summary = Summary::default();
    let refined = repack::rewrite(label, bytes, &mut |contained| {
        refine_object(contained, options, &mut summary)
    })?;
    Ok((refined, summary))
}

fn refine_object(
    contained: Contained,
    options: &Options,
    summary: &mut Summary,
) -> Result<Vec<u8>, RefineError> {
    let label = contained.label.clone();
    let mut chains = Chains::new();
    let object = CodeObject::new(contained, &mut chains)?;
    let old = object.elf.data().clone();
    let editable = Editable::read(&object.elf).map_err(|fault| fault.of(&*label))?;
    let Some(mut editable) = editable else {
        summary.without_debug += 1;
        return Ok(old.to_vec());
    };
    summary.objects += 1;
    summary.rows_before += count_rows(&editable);
    summary.refined_before += usize::from(editable.programs.iter().all(|program| program.refined));
    let (steps, names) = plan::steps(&object, &editable, options, &mut chains, summary);
    summary.named += names.len();
    let moves = rows::apply(&mut editable, &steps);
    summary.rows_after += count_rows(&editable);
    let new = editable.write(&object.elf, &moves, &names).map_err(|fault| fault.of(&*label))?;
    let difference = match identity::compare(&old, &new, Extent::Loaded) {
        Ok(None) => return Ok(new),
        Ok(Some(difference)) => difference.to_string(),
        Err(error) => error.to_string(),
    };
    Err(RefineError::NotIdentical { label, difference })
}

fn count_rows(editable: &Editable) -> usize {
    let sequences = editable.programs.iter().flat_map(|program| &program.sequences);
    sequences.map(|sequence| sequence.rows.len()).sum()
}
