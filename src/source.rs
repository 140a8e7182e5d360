//! Source texts: where the functions in them are.

use std::ops::RangeInclusive;

/// The functions of a source text that `wanted` names: their lines from the first decorator, or
/// the HIP attribute, to the line of the name.
pub fn functions<'t>(
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

/// What HIP and OpenCL C write before a kernel.
const KERNEL_MARKS: [&str; 3] = ["__global__", "__kernel", "kernel"];

/// The name on a line of a kernel in HIP or OpenCL C, with the attribute on it or up to three lines
/// above.
fn hip_kernel<'t>(lines: &[&'t str], at: usize) -> Option<&'t str> {
    let line = lines[at];
    let marks = |line: &&str| line.split_whitespace().any(|word| KERNEL_MARKS.contains(&word));
    let declared = lines[at.saturating_sub(3)..=at].iter().any(marks);
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
        assert_eq!(find("kernel void gemm(global float *a) {\n", "gemm"), [1..=1]);
        assert_eq!(find("void gemm(int a) {\n", "gemm"), []);
    }
}
