//! The definition line of a trace's kernels: a trace does not name it, so it is given, or read
//! from the kernel's source.

use rustc_hash::FxHashMap;

use super::{AttError, Kernel, Trace};
use crate::chain::{Line, Sym};
use crate::site::is_kernel_function;
use crate::source::functions;

/// Where the definition line is known from.
pub enum Origin<'a> {
    /// A file and a line. The file is a path of the trace, or its end behind a `/`.
    Given(&'a str, u32),
    /// The texts of the sources, by their path in the trace.
    Sources(&'a mut dyn FnMut(&str) -> Option<String>),
}

/// The definition line of each kernel of the trace; `None` where it is not known.
///
/// In Python a function starts at its first decorator, or at its `def`, whichever the front end
/// wrote; the one that the trace shows is taken.
///
/// # Errors
/// No row of the trace lies in the given file.
pub fn lines(trace: &Trace, origin: Origin<'_>) -> Result<Vec<Option<Line>>, AttError> {
    match origin {
        Origin::Given(file, number) => {
            let file = find_file(trace, file)?;
            Ok(vec![Some(Line { file, number }); trace.kernels.len()])
        }
        Origin::Sources(text) => {
            let mut texts = FxHashMap::default();
            let kernels = trace.kernels.iter();
            Ok(kernels.map(|kernel| in_sources(trace, kernel, &mut texts, text)).collect())
        }
    }
}

fn find_file(trace: &Trace, file: &str) -> Result<Sym, AttError> {
    let files = rows_by_line(trace, 0..trace.rows.len()).into_keys().map(|line| line.file);
    files
        .filter(|&sym| {
            let front = trace.chains.str(sym).strip_suffix(file);
            front.is_some_and(|front| front.is_empty() || front.ends_with('/'))
        })
        .min()
        .ok_or_else(|| AttError::Form {
            path: trace.path.clone(),
            what: format!("no row lies in the file '{file}' of the definition line"),
        })
}

/// The lines of all frames of some rows, each with the number of rows.
fn rows_by_line(trace: &Trace, rows: std::ops::Range<usize>) -> FxHashMap<Line, usize> {
    let mut chains: FxHashMap<_, usize> = FxHashMap::default();
    for chain in trace.rows[rows].iter().filter_map(|row| row.chain) {
        *chains.entry(chain).or_default() += 1;
    }
    let mut lines = FxHashMap::default();
    for (chain, rows) in chains {
        trace.chains.lines(chain).for_each(|line| *lines.entry(line).or_default() += rows);
    }
    lines
}

fn in_sources(
    trace: &Trace,
    kernel: &Kernel,
    texts: &mut FxHashMap<Sym, Option<String>>,
    text: &mut dyn FnMut(&str) -> Option<String>,
) -> Option<Line> {
    let symbol = trace.chains.str(kernel.name?);
    let name = kernel.demangled.map_or(symbol, |name| function_name(trace.chains.str(name)));
    let shown = rows_by_line(trace, kernel.rows.clone());
    let mut files: Vec<Sym> = shown.keys().map(|line| line.file).collect();
    files.sort_unstable();
    files.dedup();
    let mut found = Vec::new();
    for file in files {
        let text = texts.entry(file).or_insert_with(|| text(trace.chains.str(file)));
        let Some(text) = text else { continue };
        for lines in
            functions(text, |function| is_kernel_function(function, symbol) || function == name)
        {
            let rows = |number: u32| shown.get(&Line { file, number }).copied().unwrap_or(0);
            let number = lines.clone().max_by_key(|&number| (rows(number), number));
            let number = number.unwrap_or(*lines.end());
            found.push((rows(number) > 0, Line { file, number }));
        }
    }
    if found.len() > 1 {
        found.retain(|(shown, _)| *shown);
    }
    match found[..] {
        [(_, line)] => Some(line),
        _ => None,
    }
}

/// The function's own name in a demangled signature such as `void ns::gemm<4>(int)`.
fn function_name(signature: &str) -> &str {
    let front = signature.split(['(', '<']).next().unwrap_or_default();
    front.rsplit([' ', ':', '*', '&']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demangled_signatures_have_a_name() {
        assert_eq!(function_name("void ns::gemm<4>(int, float*)"), "gemm");
        assert_eq!(function_name("gemm"), "gemm");
    }
}
