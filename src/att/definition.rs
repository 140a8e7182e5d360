//! The definition line of a trace's kernels: a trace does not name it, so it is given, or read
//! from the kernel's source.

use std::ops::RangeInclusive;

use rustc_hash::FxHashMap;

use super::{AttError, Kernel, Trace};
use crate::chain::{Line, Sym};
use crate::site::is_kernel_function;

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

/// The functions of a source text that `wanted` names: their lines from the first decorator, or
/// the HIP attribute, to the line of the name.
fn functions<'t>(
    text: &'t str,
    wanted: impl Fn(&str) -> bool + 't,
) -> impl Iterator<Item = RangeInclusive<u32>> + 't {
    let lines: Vec<&str> = text.lines().collect();
    (0..lines.len()).filter_map(move |at| {
        let start = match python_function(lines[at]) {
            Some(name) => wanted(name).then(|| first_decorator(&lines, at))?,
            None => hip_kernel(&lines, at).filter(|name| wanted(name)).map(|_| at)?,
        };
        Some(u32::try_from(start + 1).ok()?..=u32::try_from(at + 1).ok()?)
    })
}

fn python_function(line: &str) -> Option<&str> {
    identifier(line.trim_start().strip_prefix("def ")?.trim_start())
}

fn identifier(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0 && text[end..].trim_start().starts_with('(')).then_some(&text[..end])
}

/// The first of the decorators right above a Python function.
fn first_decorator(lines: &[&str], function: usize) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let depth = indent(lines[function]);
    let mut first = function;
    for at in (0..function).rev() {
        let line = lines[at];
        let inside = indent(line) > depth || line.trim_start().starts_with([')', ']']);
        if line.trim().is_empty() || indent(line) < depth {
            break;
        }
        if indent(line) == depth && line.trim_start().starts_with('@') {
            first = at;
        } else if !inside {
            break;
        }
    }
    first
}

/// The name on a line of a `__global__` function, with the attribute on it or up to three lines
/// above.
fn hip_kernel<'t>(lines: &[&'t str], at: usize) -> Option<&'t str> {
    let line = lines[at];
    let declared = lines[at.saturating_sub(3)..=at].iter().any(|l| l.contains("__global__"));
    let open = line.find('(').filter(|_| declared)?;
    let front = line[..open].trim_end();
    let start = front
        .rfind(|c: char| !c.is_alphanumeric() && c != '_')
        .map_or(0, |at| at + front[at..].chars().next().map_or(1, char::len_utf8));
    (start < front.len() && !front.ends_with("__launch_bounds__")).then(|| &front[start..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str, wanted: &str) -> Vec<RangeInclusive<u32>> {
        functions(text, |name| name == wanted).collect()
    }

    #[test]
    fn python_functions_start_at_their_decorators() {
        let text = "x = 1\n@a\n@flyc.kernel(\n    chip=1,\n)\ndef k(a):\n  pass\n\ndef other():\n";
        assert_eq!(find(text, "k"), [2..=6]);
        assert_eq!(find(text, "other"), [9..=9]);
        assert_eq!(find("  @a\n  def k(\n", "k"), [1..=2]);
        assert_eq!(find("y = f(\n  2)\ndef k():\n", "k"), [3..=3]);
    }

    #[test]
    fn hip_kernels_are_found_by_their_attribute() {
        let text = "template <int N>\n__global__ void\n__launch_bounds__(256)\ngemm(int a) {\n";
        assert_eq!(find(text, "gemm"), [4..=4]);
        assert_eq!(find("void gemm(int a) {\n", "gemm"), []);
        assert_eq!(function_name("void ns::gemm<4>(int, float*)"), "gemm");
        assert_eq!(function_name("gemm"), "gemm");
    }
}
