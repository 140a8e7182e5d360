//! `siteline-report`: the chains, sites and coverage of an IR.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::functions::{self, Classifier};
use super::ir::Ir;
use super::locations::Locations;
use super::propagate::{self, Slots};
use crate::chain::{ChainId, Chains, Line};
use crate::files;
use crate::leaf::Class;
use crate::site::{Settings, effective_lines};

/// The number of the report's form.
pub const SCHEMA: u32 = 1;

/// The chains of an IR's device functions.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Report {
    /// The number of this form.
    pub schema: u32,
    /// The policy that the sites are of.
    pub policy: String,
    /// One for each device function.
    pub functions: Vec<FunctionReport>,
}

impl Report {
    /// Writes the report as JSON to a file, or to standard error for `-`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)? + "\n";
        if files::is_standard_stream(path) {
            eprint!("{text}");
        } else {
            files::write(path, text.as_bytes())?;
        }
        Ok(())
    }
}

/// The chains of one device function.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct FunctionReport {
    /// The function's symbol; null for the body of a `gpu.launch`.
    pub name: Option<String>,
    /// Whether the function is marked as a kernel.
    pub kernel: bool,
    /// The line of the function itself as `file:line`; null where unknown.
    pub definition: Option<String>,
    /// Operations in the function.
    pub operations: usize,
    /// Operations that have at least one chain.
    pub with_chain: usize,
    /// Counts by class.
    pub classes: BTreeMap<&'static str, ClassReport>,
    /// Each distinct chain of each class.
    pub chains: Vec<ChainReport>,
}

/// The operations of one class.
#[derive(Serialize, Clone, PartialEq, Default, Debug)]
pub struct ClassReport {
    /// Operations of the class.
    pub operations: usize,
    /// Distinct chains.
    pub chains: usize,
    /// Distinct lines that the locations show now.
    pub lines: usize,
    /// exp of the entropy of the operations over those lines.
    pub effective_lines: f64,
    /// Distinct lines that are sites.
    pub site_lines: usize,
    /// exp of the entropy of the operations over the sites.
    pub site_effective_lines: f64,
    /// Sites that two or more chains of the class have.
    pub ambiguous_lines: usize,
}

/// One chain of one class.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct ChainReport {
    /// The class of the operations.
    pub class: Class,
    /// How many operations have the chain.
    pub operations: usize,
    /// The frames, innermost first, without host and control-flow frames.
    pub frames: Vec<FrameReport>,
    /// Which of the frames is the site, from 0.
    pub site: usize,
    /// What the location shows now as `file:line`; null for nothing.
    pub shown: Option<String>,
}

/// One frame.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct FrameReport {
    /// The file's path.
    pub file: String,
    /// The line, 0 for none.
    pub line: u32,
    /// The column, 0 for none.
    pub column: u32,
    /// The function; null where unknown.
    pub function: Option<String>,
}

/// What a report is made of: the chains of one function as the core has them.
pub struct FunctionChains {
    /// The function's symbol.
    pub name: Option<String>,
    /// Whether the function is marked as a kernel.
    pub kernel: bool,
    /// The line of the function itself.
    pub definition: Option<Line>,
    /// One entry for each distinct location and class.
    pub uses: Vec<Use>,
}

/// Operations of one class that have one location.
pub struct Use {
    /// The class of the operations.
    pub class: Class,
    /// How many operations.
    pub operations: usize,
    /// The chains of the location, trimmed, each with its site under the settings' policy.
    pub chains: Vec<(ChainId, ChainId)>,
    /// The line that the location shows now.
    pub shown: Option<Line>,
    /// Whether siteline set the location.
    pub is_site: bool,
}

/// Collects the chains of all device functions at and below the root.
pub fn collect(ir: Ir<'_>, settings: &Settings) -> (Chains, Vec<FunctionChains>) {
    let mut locations = Locations::new(ir);
    let mut classifier = Classifier::new(ir, &settings.table);
    let mut collected = Vec::new();
    for function in functions::device_functions(&ir) {
        let slots = Slots::collect(&ir, &function, &mut classifier);
        let (sites, definition) = propagate::sites_of(&mut locations, settings, &function, &slots);
        let counted = slots.distinct.iter().zip(slots.operations());
        let uses = counted.filter(|(_, operations)| *operations > 0).map(|(slot, operations)| {
            let reading = locations.read(slot.location);
            let with_site =
                |&chain: &ChainId| Some((sites.trimmed(chain)?, sites.site(chain, slot.class)?));
            Use {
                class: slot.class,
                operations,
                chains: reading.chains.iter().filter_map(with_site).collect(),
                shown: reading.shown.map(|chain| locations.chains.innermost(chain).line()),
                is_site: reading.original != slot.location,
            }
        });
        let uses = uses.collect();
        let (name, kernel) = (function.symbol, function.is_kernel);
        collected.push(FunctionChains { name, kernel, definition, uses });
    }
    (locations.chains, collected)
}

/// Reports the chains, sites and coverage of all device functions at and below the root.
pub fn report(ir: Ir<'_>, settings: &Settings) -> Report {
    let (chains, functions) = collect(ir, settings);
    let functions = functions.iter().map(|function| function_report(&chains, function)).collect();
    Report { schema: SCHEMA, policy: settings.policy.to_string(), functions }
}

fn function_report(chains: &Chains, function: &FunctionChains) -> FunctionReport {
    let uses = &function.uses;
    let mut classes = BTreeMap::new();
    for class in Class::ALL {
        let of_class: Vec<&Use> = uses.iter().filter(|u| u.class == class).collect();
        if !of_class.is_empty() {
            classes.insert(class.name(), class_report(chains, &of_class));
        }
    }
    FunctionReport {
        name: function.name.clone(),
        kernel: function.kernel,
        definition: function.definition.map(|line| chains.display_line(line).to_string()),
        operations: uses.iter().map(|u| u.operations).sum(),
        with_chain: uses.iter().filter(|u| !u.chains.is_empty()).map(|u| u.operations).sum(),
        classes,
        chains: chain_reports(chains, uses),
    }
}

/// Operations by line; of a location with several chains, by the site of the first.
fn class_report(chains: &Chains, uses: &[&Use]) -> ClassReport {
    let mut shown: BTreeMap<Line, usize> = BTreeMap::new();
    let mut sites: BTreeMap<Line, usize> = BTreeMap::new();
    let mut distinct: Vec<(ChainId, Line)> = Vec::new();
    for u in uses {
        if let Some(line) = u.shown {
            *shown.entry(line).or_default() += u.operations;
        }
        if let Some(&(_, site)) = u.chains.first() {
            *sites.entry(chains.innermost(site).line()).or_default() += u.operations;
        }
        for &(chain, site) in &u.chains {
            if !distinct.iter().any(|&(other, _)| chains.same_lines(other, chain)) {
                distinct.push((chain, chains.innermost(site).line()));
            }
        }
    }
    let shared = |line: &Line| distinct.iter().filter(|(_, site)| site == line).count() > 1;
    let weights = |lines: &BTreeMap<Line, usize>| {
        effective_lines(lines.values().map(|&count| count as f64).collect::<Vec<_>>())
    };
    ClassReport {
        operations: uses.iter().map(|u| u.operations).sum(),
        chains: distinct.len(),
        lines: shown.len(),
        effective_lines: weights(&shown),
        site_lines: sites.len(),
        site_effective_lines: weights(&sites),
        ambiguous_lines: sites.keys().filter(|line| shared(line)).count(),
    }
}

fn chain_reports(chains: &Chains, uses: &[Use]) -> Vec<ChainReport> {
    let mut reports = Vec::new();
    for u in uses {
        for &(chain, site) in &u.chains {
            let frames = chains.frames(chain).map(|frame| FrameReport {
                file: chains.str(frame.file).into(),
                line: frame.line,
                column: frame.column,
                function: frame.function.map(|name| chains.str(name).into()),
            });
            reports.push(ChainReport {
                class: u.class,
                operations: u.operations,
                frames: frames.collect(),
                site: chains.suffixes(chain).position(|at| at == site).unwrap_or(0),
                shown: u.shown.map(|line| chains.display_line(line).to_string()),
            });
        }
    }
    reports
}
