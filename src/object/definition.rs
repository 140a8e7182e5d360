//! The definition line of a function: from DWARF, else from its source, else as given.

use rustc_hash::FxHashMap;

use crate::chain::{Chains, Line, Sym};
use crate::site::is_kernel_function;
use crate::source::functions;

use super::{CodeObject, Function, Listing};

/// Where a definition line can be known from besides DWARF.
pub struct Origins<'a> {
    /// The texts of the sources, by their path in the debug information.
    pub text: &'a mut dyn FnMut(&str) -> Option<String>,
    /// A file and a line. The file is a path of the debug information, or its end behind a `/`.
    pub given: Option<(&'a str, u32)>,
}

/// The line of the function itself; `None` where nothing says it.
pub fn of(
    object: &CodeObject,
    function: &Function,
    listing: &Listing,
    origins: &mut Origins<'_>,
    chains: &mut Chains,
) -> Option<Line> {
    let subprogram = object.debug.as_ref()?.subprogram_at(function.range.start);
    if let Some(line) = subprogram.and_then(|subprogram| subprogram.definition) {
        return Some(line);
    }
    let shown = lines_shown(listing, chains);
    in_sources(&function.name, &shown, origins.text, chains)
        .or_else(|| given(origins.given?, &shown, chains))
}

/// The lines of all frames of a listing, with how many instructions have them.
fn lines_shown(listing: &Listing, chains: &Chains) -> FxHashMap<Line, usize> {
    let mut by_chain: FxHashMap<_, usize> = FxHashMap::default();
    for chain in listing.instructions.iter().filter_map(|located| located.chain) {
        *by_chain.entry(chain).or_default() += 1;
    }
    let mut shown = FxHashMap::default();
    for (chain, count) in by_chain {
        chains.lines(chain).for_each(|line| *shown.entry(line).or_default() += count);
    }
    shown
}

fn files(shown: &FxHashMap<Line, usize>) -> Vec<Sym> {
    let mut files: Vec<Sym> = shown.keys().map(|line| line.file).collect();
    files.sort_unstable();
    files.dedup();
    files
}

/// The line of the one function of that name in the sources: its first decorator's or its own,
/// whichever more instructions show.
fn in_sources(
    symbol: &str,
    shown: &FxHashMap<Line, usize>,
    text: &mut dyn FnMut(&str) -> Option<String>,
    chains: &Chains,
) -> Option<Line> {
    let mut found = Vec::new();
    for file in files(shown) {
        let Some(text) = text(chains.str(file)) else { continue };
        for lines in functions(&text, |name| is_kernel_function(name, symbol)) {
            let count = |number: &u32| shown.get(&Line { file, number: *number }).unwrap_or(&0);
            let number = lines.max_by_key(|number| (*count(number), *number))?;
            found.push((*count(&number) > 0, Line { file, number }));
        }
    }
    if found.len() > 1 {
        found.retain(|(is_shown, _)| *is_shown);
    }
    match found[..] {
        [(_, line)] => Some(line),
        _ => None,
    }
}

fn given(
    (path, number): (&str, u32),
    shown: &FxHashMap<Line, usize>,
    chains: &mut Chains,
) -> Option<Line> {
    let ends_so = |file: &Sym| {
        let front = chains.str(*file).strip_suffix(path);
        front.is_some_and(|front| front.is_empty() || front.ends_with('/'))
    };
    let file = files(shown).into_iter().find(ends_so);
    let file = file.unwrap_or_else(|| chains.sym(path));
    Some(Line { file, number })
}
