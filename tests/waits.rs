//! What waits drain, on a real capture and on made-up kernels of every chip family.
//!
//! A kernel of `tests/waits/*.s` names its operations by `// @name`, and says behind each wait
//! what it drains, and what it awaits where that is less. The expected sets are written by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use siteline::att::Trace;
use siteline::att::waves::Wave;
use siteline::leaf::LeafTable;
use siteline::object::waits::{Analysis, Entry, Family, Text, analyse};

#[path = "support/att.rs"]
mod support;

fn texts(trace: &Trace) -> Vec<Text<'_>> {
    trace.rows.iter().skip(1).map(|row| Text::new(row.vaddr, trace.isa(row))).collect()
}

#[test]
fn the_static_sets_equal_those_that_hardware_recorded() {
    let waves = ["after_wave_se0_sm0_sl0_wv0.json", "after_wave_se0_sm0_sl1_wv0.json"];
    let Some(code) = support::capture("after_code.json") else { return };
    let trace = Trace::read(&code, &LeafTable::default()).unwrap();
    let code = texts(&trace);
    let analysis = analyse(&code, Family::infer(&code), Entry::Kernel).unwrap();
    assert_eq!(analysis.family, Family::Gfx9);
    assert_eq!(analysis.waits.len(), 84);
    assert_eq!(analysis.hurries, []);
    let mut recorded: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for name in waves {
        let Some(path) = support::capture(name) else { return };
        for wait in Wave::read(&path).unwrap().waits {
            recorded.entry(wait.row).or_default().extend(wait.awaited);
        }
    }
    let line = |at: usize| trace.rows[at + 1].line_number;
    let found = analysis.waits.iter().map(|wait| {
        (line(wait.at), wait.drained().into_iter().map(line).collect::<BTreeSet<u32>>())
    });
    let found: BTreeMap<_, _> = found.filter(|(row, _)| recorded.contains_key(row)).collect();
    assert_eq!(recorded.len(), 80);
    assert_eq!(found, recorded);
}

/// A made-up kernel.
struct Kernel {
    name: String,
    family: Family,
    entry: Entry,
    lines: Vec<Line>,
}

#[derive(Default)]
struct Line {
    text: String,
    name: Option<String>,
    drains: Option<Vec<String>>,
    awaits: Option<Vec<String>>,
}
