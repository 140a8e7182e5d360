//! Choosing sites for a trace whose Source cells already hold chains.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use super::definition::{self, Origin};
use super::rewrite::{Original, Rewrite};
use super::{AttError, RowKind, Trace, Written, source};
use crate::chain::{ChainId, Chains, Frame, Line};
use crate::leaf::Class;
use crate::site::{Kernel, Settings, SiteModel};

/// How a trace is given other sites.
pub struct Options<'a> {
    /// The policy, and what it applies to.
    pub settings: &'a Settings,
    /// Only this kernel.
    pub kernel: Option<&'a str>,
    /// Where the kernels' definition lines are known from; their files are never library code.
    pub definition: Origin<'a>,
    /// Where a source lies on this machine, by its path in the trace.
    pub locate: &'a dyn Fn(&str) -> PathBuf,
}

/// Reads the trace at `path`, gives each row the site that the policy chooses from its chain,
/// with the frames outside the site behind it, and writes the folder `out`.
///
/// # Errors
/// The trace cannot be read, or `out` cannot be written; then there is no `out`.
pub fn resite(path: &Path, out: &Path, options: Options<'_>) -> Result<Written, AttError> {
    let mut original = Original::read(path, &options.settings.table)?;
    let trace = &mut original.trace;
    let kernels = trace.select(options.kernel)?;
    let definitions = definition::lines(trace, options.definition)?;
    let mut sites = vec![None; trace.rows.len()];
    for kernel in kernels {
        choose(trace, kernel, definitions[kernel], options.settings, &mut sites);
    }
    let texts = texts(trace, &sites);
    let sources: Vec<Option<&str>> =
        sites.iter().map(|site| texts.get(&site.as_ref()?.1).map(String::as_str)).collect();
    let rewrite = Rewrite { out, locate: options.locate, gfxip: None };
    rewrite.write(&original, &sources)
}

/// A row's chain and its site.
type Chosen = Option<(ChainId, ChainId)>;

/// Sets the sites of one kernel's rows.
fn choose(
    trace: &mut Trace,
    kernel: usize,
    definition: Option<Line>,
    settings: &Settings,
    sites: &mut [Chosen],
) {
    let kernel = trace.kernels[kernel].clone();
    let symbol = kernel.name.map(|name| trace.chains.str(name).to_owned());
    let site_kernel = Kernel { symbol: symbol.as_deref(), definition };
    let mut model = SiteModel::new(settings, site_kernel);
    let mut usable = FxHashMap::default();
    let code = || kernel.rows.clone().map(|at| (at, trace.rows[at]));
    let rows: Vec<(usize, ChainId, Class)> = code()
        .filter(|(_, row)| row.kind == RowKind::Instruction)
        .filter_map(|(at, row)| Some((at, row.chain?, row.class)))
        .collect();
    for &(_, chain, class) in &rows {
        let chains = &mut trace.chains;
        let chain = *usable.entry(chain).or_insert_with(|| with_lines(chains, chain));
        model.add(chains, chain, class);
    }
    let chosen = model.choose(&trace.chains);
    for (at, chain, class) in rows {
        let site = chosen.site(usable[&chain], class);
        sites[at] = site.map(|site| (chain, site)).filter(|(chain, site)| chain != site);
    }
}

/// A chain without its frames of line 0, unless it has no others.
fn with_lines(chains: &mut Chains, chain: ChainId) -> ChainId {
    let frames: Vec<Frame> = chains.frames(chain).filter(|frame| frame.line != 0).collect();
    chains.intern(frames).unwrap_or(chain)
}

fn texts(trace: &Trace, sites: &[Chosen]) -> FxHashMap<ChainId, String> {
    let mut texts = FxHashMap::default();
    for (_, site) in sites.iter().flatten() {
        texts.entry(*site).or_insert_with(|| source::write(*site, &trace.chains));
    }
    texts
}
