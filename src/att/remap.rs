//! Giving a trace the source locations of another build of the same code.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::rewrite::{Original, Rewrite};
use super::{AttError, Kernel, RowKind, Trace, Written};
use crate::leaf::LeafTable;

/// Where the instructions of a code object come from.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Mapping {
    /// What the mapping is of, for messages: the object's path.
    pub name: String,
    /// The chip, such as `gfx950`, where it is known.
    pub chip: Option<String>,
    /// The object's kernels, and its other functions.
    pub kernels: Vec<MappedKernel>,
}

impl Mapping {
    /// The chip's major number, such as 9, as a trace's `filenames.json` has it.
    fn gfxip(&self) -> Option<u32> {
        let digits = self.chip.as_deref()?.strip_prefix("gfx")?;
        let digits = digits.split('-').next()?;
        let major = if digits.len() > 2 { &digits[..digits.len() - 2] } else { digits };
        major.parse().ok()
    }
}

/// One kernel of a [`Mapping`].
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MappedKernel {
    /// The kernel's symbol.
    pub symbol: String,
    /// The kernel's instructions, in any order.
    pub instructions: Vec<MappedInstruction>,
}

/// One instruction of a [`Mapping`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MappedInstruction {
    /// The address, as in the object's ELF file.
    pub vaddr: u64,
    /// The instruction, disassembled. Spacing and a comment behind `//` do not matter.
    pub text: Arc<str>,
    /// The text that rocprofiler writes as Source for the object; empty for none.
    pub source: Arc<str>,
    /// The instruction's whole chain in the same form, see [`super::SEPARATOR`].
    pub chain: Arc<str>,
}

/// How a trace is remapped.
pub struct Options<'a> {
    /// Write whole chains instead of what rocprofiler writes.
    pub chains: bool,
    /// Only this kernel.
    pub kernel: Option<&'a str>,
    /// Where a source lies on this machine, by its path in the trace.
    pub locate: &'a dyn Fn(&str) -> PathBuf,
}

/// Reads the trace at `path`, gives each row the Source that the first mapping of its code has
/// for it, and writes the folder `out`.
///
/// # Errors
/// The trace cannot be read, its code is that of no mapping, or `out` cannot be written; then
/// there is no `out`.
pub fn remap(
    path: &Path,
    mappings: &[Mapping],
    out: &Path,
    options: &Options<'_>,
) -> Result<Written, AttError> {
    let original = Original::read(path, &LeafTable::default())?;
    let mut fitting = mappings.iter().map(|mapping| {
        sources(&original.trace, mapping, options).map(|sources| (mapping, sources))
    });
    let first = fitting.next().ok_or_else(|| {
        AttError::Mismatch("there is no code object to take the locations from".into())
    })?;
    let (mapping, sources) = first.or_else(|error| fitting.find_map(Result::ok).ok_or(error))?;
    let rewrite = Rewrite { out, locate: options.locate, gfxip: mapping.gfxip() };
    rewrite.write(&original, &sources)
}

/// The new Source of each row, by its index; `None` for rows that the mapping is not of.
///
/// # Errors
/// No kernel of the trace is one of the mapping, or the code differs.
pub fn sources<'m>(
    trace: &Trace,
    mapping: &'m Mapping,
    options: &Options<'_>,
) -> Result<Vec<Option<&'m str>>, AttError> {
    let mut objects: BTreeMap<u64, Vec<&Kernel>> = BTreeMap::new();
    for at in trace.select(options.kernel)? {
        objects.entry(trace.kernels[at].codeobj).or_default().push(&trace.kernels[at]);
    }
    let index = Index::of(mapping);
    let mut sources = vec![None; trace.rows.len()];
    let (mut matched, mut difference) = (false, None);
    for kernels in objects.values() {
        match index.code_object(trace, kernels) {
            Ok(found) => {
                matched |= !found.is_empty();
                for (row, mapped) in found {
                    sources[row] =
                        Some(if options.chains { &*mapped.chain } else { &*mapped.source });
                }
            }
            Err(found) => difference = difference.or(Some(found)),
        }
    }
    match difference {
        Some(difference) if !matched => Err(mismatch(trace, mapping, &difference)),
        None if !matched => Err(no_kernel(trace, mapping)),
        _ => Ok(sources),
    }
}

/// A mapping by symbol and by address.
struct Index<'m> {
    /// The first and the last address of each kernel.
    kernels: FxHashMap<&'m str, RangeInclusive<u64>>,
    instructions: FxHashMap<u64, &'m MappedInstruction>,
}

impl<'m> Index<'m> {
    fn of(mapping: &'m Mapping) -> Self {
        let range = |kernel: &MappedKernel| {
            let addresses = || kernel.instructions.iter().map(|at| at.vaddr);
            addresses().min().unwrap_or(1)..=addresses().max().unwrap_or(0)
        };
        let kernels = mapping.kernels.iter();
        let instructions = mapping.kernels.iter().flat_map(|kernel| &kernel.instructions);
        Index {
            kernels: kernels.map(|kernel| (kernel.symbol.as_str(), range(kernel))).collect(),
            instructions: instructions.map(|at| (at.vaddr, at)).collect(),
        }
    }

    /// The rows of one code object with what the mapping has for each: all rows, or none where
    /// none of its kernels is of the mapping.
    ///
    /// # Errors
    /// The first difference, where some kernels are of the mapping and some row does not fit.
    fn code_object(
        &self,
        trace: &Trace,
        kernels: &[&Kernel],
    ) -> Result<Vec<(usize, &'m MappedInstruction)>, Difference> {
        let name = |kernel: &Kernel| kernel.name.map(|name| trace.chains.str(name));
        if !kernels.iter().any(|k| name(k).is_none_or(|name| self.kernels.contains_key(name))) {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for kernel in kernels {
            let start = trace.rows[kernel.rows.start].vaddr;
            let here = |name| self.kernels.get(name).is_some_and(|range| range.contains(&start));
            if !name(kernel).is_none_or(here) {
                return Err(Difference { row: kernel.rows.start, text: None });
            }
            self.rows(trace, kernel, &mut found)?;
        }
        Ok(found)
    }

    /// Adds the rows of one kernel, each with the instruction at its address.
    fn rows(
        &self,
        trace: &Trace,
        kernel: &Kernel,
        found: &mut Vec<(usize, &'m MappedInstruction)>,
    ) -> Result<(), Difference> {
        let code = kernel.rows.clone().filter(|&at| trace.rows[at].kind == RowKind::Instruction);
        for row in code {
            let mapped = self.instructions.get(&trace.rows[row].vaddr).copied();
            match mapped {
                Some(mapped) if same_text(trace.isa(&trace.rows[row]), &mapped.text) => {
                    found.push((row, mapped));
                }
                _ => {
                    let text = mapped.map(|mapped| mapped.text.to_string());
                    return Err(Difference { row, text });
                }
            }
        }
        Ok(())
    }
}

/// The first row of a kernel at which trace and object differ.
struct Difference {
    row: usize,
    /// The object's text, where it has an instruction at the address.
    text: Option<String>,
}

/// Whether two disassembled instructions are the same, whatever their spacing and comments.
fn same_text(a: &str, b: &str) -> bool {
    fn words(text: &str) -> impl Iterator<Item = &str> {
        text.split("//").next().unwrap_or_default().split_whitespace()
    }
    a == b || words(a).eq(words(b))
}

fn mismatch(trace: &Trace, mapping: &Mapping, difference: &Difference) -> AttError {
    let row = &trace.rows[difference.row];
    let kernel = trace.kernels.iter().find(|kernel| kernel.rows.contains(&difference.row));
    let object = match &difference.text {
        Some(text) => format!("has '{}'", text.split_whitespace().collect::<Vec<_>>().join(" ")),
        None => "has no instruction".into(),
    };
    AttError::Mismatch(format!(
        "'{}' and '{}' are not of the same code: at address {:#x} of kernel '{}' (row {} of \
         'code') the trace has '{}', the object {object}; compile the same kernel for the same \
         chip with the same compiler",
        trace.path.display(),
        mapping.name,
        row.vaddr,
        kernel.map_or("?", |kernel| trace.kernel_name(kernel)),
        difference.row,
        trace.isa(row),
    ))
}

fn no_kernel(trace: &Trace, mapping: &Mapping) -> AttError {
    let names = |names: Vec<String>| match names.len() {
        0 => "none".to_string(),
        _ => names.join(", "),
    };
    let quoted = |name: &str| format!("'{name}'");
    AttError::Mismatch(format!(
        "'{}' holds no kernel of '{}': the trace has {}, the object has {}",
        mapping.name,
        trace.path.display(),
        names(trace.kernels.iter().map(|kernel| quoted(trace.kernel_name(kernel))).collect()),
        names(mapping.kernels.iter().map(|kernel| quoted(&kernel.symbol)).collect()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_have_a_major_number() {
        for (chip, major) in [
            ("gfx950", Some(9)),
            ("gfx90a", Some(9)),
            ("gfx1201", Some(12)),
            ("gfx9-4-generic", Some(9)),
            ("gfx12-generic", Some(12)),
            ("unknown", None),
        ] {
            let mapping = Mapping { chip: Some(chip.into()), ..Mapping::default() };
            assert_eq!(mapping.gfxip(), major, "{chip}");
        }
    }
}
