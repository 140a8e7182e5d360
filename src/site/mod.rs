//! Sites: which frame of a chain a profiler should show.
//!
//! [`SiteModel`] is given the chains of one kernel with the classes of what holds them, and
//! answers with [`Sites`]. This is the only module that knows a policy, what a host, library or
//! control-flow frame is, and what makes a line ambiguous.

use std::fmt;
use std::str::FromStr;

use globset::{Glob, GlobMatcher, GlobSet, GlobSetBuilder};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::chain::{ChainId, Chains, Frame, Line, Sym};
use crate::leaf::{Class, ClassSet, LeafTable};

/// How the site of a chain is chosen. See each variant; library frames are left out of all.
#[derive(Clone, Default, Debug)]
pub enum Policy {
    /// The frame whose line occurs in the fewest chains of the operation's own leaf class;
    /// among equals, in the fewest chains of all leaf classes (for `other`: of `other`); among
    /// equals, the outermost.
    #[default]
    Distinct,
    /// The innermost frame whose line always has the same lines outside it; else the outermost.
    Unique,
    /// The innermost frame.
    Innermost,
    /// The outermost frame.
    Outermost,
    /// The innermost frame in a file that the glob matches; else the outermost.
    File(PathGlob),
    /// The innermost frame not in a file that the glob matches; else the outermost.
    Skip(PathGlob),
    /// This many frames in from the outermost, which is 0; where the chain has fewer, the
    /// outermost.
    Depth(usize),
}

/// A glob over whole file paths, in which `*` also crosses `/`.
#[derive(Clone, Debug)]
pub struct PathGlob(GlobMatcher);

impl PathGlob {
    /// Whether the glob matches the whole of `path`.
    pub fn matches(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

/// A policy or a path glob that could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParsePolicyError {
    /// The word names no policy.
    #[error(
        "unknown policy '{0}': use distinct, unique, innermost, outermost, file:GLOB, skip:GLOB or depth:N"
    )]
    Policy(String),
    /// `depth:` without a number behind it.
    #[error("policy '{0}': depth takes a whole number of frames, counted in from the outermost")]
    Depth(String),
    /// A malformed glob.
    #[error("glob '{glob}': {reason}")]
    Glob {
        /// The glob as given.
        glob: String,
        /// What is wrong with it.
        reason: String,
    },
}

fn glob(text: &str) -> Result<Glob, ParsePolicyError> {
    if text.is_empty() {
        return Err(ParsePolicyError::Glob { glob: text.into(), reason: "it is empty".into() });
    }
    Glob::new(text).map_err(|error| ParsePolicyError::Glob {
        glob: text.into(),
        reason: error.kind().to_string(),
    })
}

impl FromStr for PathGlob {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(PathGlob(glob(text)?.compile_matcher()))
    }
}

impl FromStr for Policy {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once(':') {
            None => match text {
                "distinct" => Ok(Policy::Distinct),
                "unique" => Ok(Policy::Unique),
                "innermost" => Ok(Policy::Innermost),
                "outermost" => Ok(Policy::Outermost),
                _ => Err(ParsePolicyError::Policy(text.into())),
            },
            Some(("file", glob)) => Ok(Policy::File(glob.parse()?)),
            Some(("skip", glob)) => Ok(Policy::Skip(glob.parse()?)),
            Some(("depth", depth)) => {
                depth.parse().map(Policy::Depth).map_err(|_| ParsePolicyError::Depth(text.into()))
            }
            Some(_) => Err(ParsePolicyError::Policy(text.into())),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Distinct => f.write_str("distinct"),
            Policy::Unique => f.write_str("unique"),
            Policy::Innermost => f.write_str("innermost"),
            Policy::Outermost => f.write_str("outermost"),
            Policy::File(glob) => write!(f, "file:{}", glob.0.glob()),
            Policy::Skip(glob) => write!(f, "skip:{}", glob.0.glob()),
            Policy::Depth(depth) => write!(f, "depth:{depth}"),
        }
    }
}

/// Which paths hold code that the kernel's author did not write.
#[derive(Clone, Debug)]
pub struct Library {
    globs: GlobSet,
}

/// Packages that are library wherever they are installed.
const PACKAGES: &[&str] =
    &["flydsl", "iree", "jax", "jaxlib", "mlir", "numpy", "torch", "triton", "siteline"];

/// Folders that Python packages are installed in.
const PACKAGE_FOLDERS: &[&str] = &["site-packages", "dist-packages", "python_packages"];

/// Headers of the HIP and clang tool chains.
const HEADERS: &[&str] = &["*/include/hip/*", "*/lib/clang/*/include/*", "*/opt/rocm*/include/*"];

impl Library {
    /// The built-in library paths and those of `--library`.
    ///
    /// # Errors
    /// A malformed glob.
    pub fn new<S: AsRef<str>>(
        extra: impl IntoIterator<Item = S>,
    ) -> Result<Self, ParsePolicyError> {
        let mut set = GlobSetBuilder::new();
        for folder in PACKAGE_FOLDERS {
            for package in PACKAGES {
                set.add(glob(&format!("*/{folder}/{package}/*"))?);
            }
        }
        for header in HEADERS {
            set.add(glob(header)?);
        }
        for text in extra {
            set.add(glob(text.as_ref())?);
        }
        let globs = set.build().map_err(|error| ParsePolicyError::Glob {
            glob: error.glob().unwrap_or_default().into(),
            reason: error.kind().to_string(),
        })?;
        Ok(Library { globs })
    }

    /// Whether `path` is library code.
    pub fn contains(&self, path: &str) -> bool {
        is_generated(path) || is_standard_library(path) || self.globs.is_match(path)
    }
}

impl Default for Library {
    fn default() -> Self {
        Library::new::<&str>([]).expect("the built-in globs are well-formed")
    }
}

/// Python's names for code without a file, such as `<frozen importlib._bootstrap>`.
fn is_generated(path: &str) -> bool {
    path.starts_with('<') && path.ends_with('>')
}

/// Python's standard library: below `lib/python3.N`, but not in a folder of packages.
fn is_standard_library(path: &str) -> bool {
    path.match_indices("/lib/python3").any(|(at, _)| {
        let rest = &path[at + "/lib/python3".len()..];
        let version = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit() || c == 't');
        version
            .strip_prefix('/')
            .is_some_and(|rest| !PACKAGE_FOLDERS.iter().any(|folder| rest.starts_with(folder)))
    })
}

/// What is asked for: the policy and what it applies to.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// How sites are chosen.
    pub policy: Policy,
    /// The classes that get a site; the others keep their location.
    pub leaves: ClassSet,
    /// Which operations belong to which class.
    pub table: LeafTable,
    /// Which paths are library code.
    pub library: Library,
}

/// What is known of the kernel that the chains belong to.
#[derive(Clone, Copy, Default, Debug)]
pub struct Kernel<'a> {
    /// The kernel's symbol. Host frames are found by it.
    pub symbol: Option<&'a str>,
    /// The line of the kernel function itself. Its file is never library.
    pub definition: Option<Line>,
}

/// Whether a frame's function is the kernel: the last part of its qualified name equals the
/// symbol, or the symbol without a trailing `_N`.
pub fn is_kernel_function(function: &str, symbol: &str) -> bool {
    let last = last_part(function);
    last == symbol || last == without_number(symbol)
}

fn last_part(function: &str) -> &str {
    function.rsplit(['.', ':']).next().unwrap_or(function)
}

/// A symbol without a trailing `_N`.
pub(crate) fn without_number(symbol: &str) -> &str {
    match symbol.rsplit_once('_') {
        Some((stem, digits))
            if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) =>
        {
            stem
        }
        _ => symbol,
    }
}

/// Whether a front end generated this function out of the body of an `if`, `for` or `while`:
/// FlyDSL's `__then_4`, `__else_4`, `__for_body_7`, `__while_before_9`, `__while_after_9`.
pub fn is_control_flow_function(function: &str) -> bool {
    const STEMS: &[&str] = &["__then", "__else", "__for_body", "__while_before", "__while_after"];
    let last = last_part(function);
    let stem = without_number(last);
    stem.len() < last.len() && STEMS.contains(&stem)
}

/// The chains of one kernel, collected before any site can be chosen.
pub struct SiteModel<'a> {
    settings: &'a Settings,
    kernel: Kernel<'a>,
    library_files: FxHashMap<Sym, bool>,
    trimmed: FxHashMap<ChainId, ChainId>,
    uses: FxHashSet<(ChainId, Class)>,
}

impl<'a> SiteModel<'a> {
    /// A model without chains for one kernel.
    pub fn new(settings: &'a Settings, kernel: Kernel<'a>) -> Self {
        SiteModel {
            settings,
            kernel,
            library_files: FxHashMap::default(),
            trimmed: FxHashMap::default(),
            uses: FxHashSet::default(),
        }
    }

    /// Counts a chain that something of `class` holds. Adding it again changes nothing.
    pub fn add(&mut self, chains: &mut Chains, chain: ChainId, class: Class) {
        let chain = self.trim(chains, chain);
        self.uses.insert((chain, class));
    }

    /// The chain without its host frames and control-flow frames.
    fn trim(&mut self, chains: &mut Chains, chain: ChainId) -> ChainId {
        if let Some(&trimmed) = self.trimmed.get(&chain) {
            return trimmed;
        }
        let mut frames: Vec<Frame> = chains.frames(chain).collect();
        self.cut_host_frames(chains, &mut frames);
        self.drop_control_flow_frames(chains, &mut frames);
        let trimmed = chains.intern(frames).unwrap_or(chain);
        self.trimmed.insert(chain, trimmed);
        trimmed
    }

    fn cut_host_frames(&self, chains: &Chains, frames: &mut Vec<Frame>) {
        let Some(symbol) = self.kernel.symbol else { return };
        let is_kernel = |frame: &Frame| {
            frame.function.is_some_and(|f| is_kernel_function(chains.str(f), symbol))
        };
        if let Some(body) = frames.iter().rposition(is_kernel) {
            frames.truncate(body + 1);
        }
    }

    /// The frame of an `if` or `for` statement is outside the body's generated function, with
    /// the front end's dispatch in library frames between them.
    fn drop_control_flow_frames(&mut self, chains: &Chains, frames: &mut Vec<Frame>) {
        let mut level = frames.len();
        while level > 0 {
            level -= 1;
            let generated =
                frames[level].function.is_some_and(|f| is_control_flow_function(chains.str(f)));
            if !generated {
                continue;
            }
            let statement =
                (level + 1..frames.len()).find(|&at| !self.is_library(chains, frames[at].file));
            if let Some(statement) = statement {
                frames[level].function = frames[statement].function;
                frames.drain(level + 1..=statement);
            }
        }
    }

    fn is_library(&mut self, chains: &Chains, file: Sym) -> bool {
        if self.kernel.definition.is_some_and(|line| line.file == file) {
            return false;
        }
        let library = &self.settings.library;
        *self.library_files.entry(file).or_insert_with(|| library.contains(chains.str(file)))
    }

    /// Chooses the sites.
    pub fn choose(mut self, chains: &Chains) -> Sites {
        let mut uses: Vec<_> = std::mem::take(&mut self.uses).into_iter().collect();
        uses.sort_unstable();
        let counts = Counts::of(chains, &uses);
        let mut sites = FxHashMap::default();
        for &(chain, class) in &uses {
            sites.insert((chain, class), self.choose_one(chains, &counts, chain, class));
        }
        let mut holders: FxHashMap<(Line, Class), Vec<ChainId>> = FxHashMap::default();
        for &(chain, class) in &uses {
            let line = chains.innermost(sites[&(chain, class)]).line();
            let chains_here = holders.entry((line, class)).or_default();
            if !chains_here.iter().any(|&other| chains.same_lines(other, chain)) {
                chains_here.push(chain);
            }
        }
        let holders = holders.into_iter().map(|(key, chains)| (key, chains.len())).collect();
        Sites { trimmed: self.trimmed, sites, holders, library_files: self.library_files }
    }

    fn choose_one(
        &mut self,
        chains: &Chains,
        counts: &Counts,
        chain: ChainId,
        class: Class,
    ) -> ChainId {
        if !self.settings.leaves.contains(class) {
            return chain;
        }
        let mut candidates: Vec<ChainId> = chains
            .suffixes(chain)
            .filter(|&at| !self.is_library(chains, chains.innermost(at).file))
            .collect();
        if candidates.is_empty() {
            candidates = chains.suffixes(chain).collect();
        }
        let outermost = candidates[candidates.len() - 1];
        let path = |at: &ChainId| chains.str(chains.innermost(*at).file);
        let chosen = match &self.settings.policy {
            Policy::Distinct => candidates
                .iter()
                .rev()
                .min_by_key(|&&at| counts.key(chains.innermost(at).line(), class))
                .copied(),
            Policy::Unique => candidates.iter().find(|&&at| counts.is_unique(chains, at)).copied(),
            Policy::Innermost => candidates.first().copied(),
            Policy::Outermost => None,
            Policy::File(glob) => candidates.iter().find(|at| glob.matches(path(at))).copied(),
            Policy::Skip(glob) => candidates.iter().find(|at| !glob.matches(path(at))).copied(),
            Policy::Depth(depth) => candidates.iter().rev().nth(*depth).copied(),
        };
        chosen.unwrap_or(outermost)
    }
}

/// In how many chains each line occurs, and with which lines outside it.
struct Counts {
    by_class: FxHashMap<(Line, Class), u32>,
    by_leaf: FxHashMap<(Line, bool), u32>,
    /// The one sequence of lines outside a line, or `None` where there are several.
    outer: FxHashMap<Line, Option<Sequence>>,
    sequences: Sequences,
}

impl Counts {
    fn of(chains: &Chains, uses: &[(ChainId, Class)]) -> Self {
        let mut counts = Counts {
            by_class: FxHashMap::default(),
            by_leaf: FxHashMap::default(),
            outer: FxHashMap::default(),
            sequences: Sequences::default(),
        };
        let mut seen_class = FxHashSet::default();
        let mut seen_leaf = FxHashSet::default();
        for &(chain, class) in uses {
            let sequence = counts.sequences.of(chains, chain);
            let mut lines: Vec<Line> = chains.lines(chain).collect();
            lines.sort_unstable();
            lines.dedup();
            if seen_class.insert((sequence, class)) {
                lines.iter().for_each(|&l| *counts.by_class.entry((l, class)).or_default() += 1);
            }
            if seen_leaf.insert((sequence, class.is_leaf())) {
                let leaf = class.is_leaf();
                lines.iter().for_each(|&l| *counts.by_leaf.entry((l, leaf)).or_default() += 1);
            }
            counts.note_outer(chains, chain);
        }
        counts
    }

    fn note_outer(&mut self, chains: &Chains, chain: ChainId) {
        let suffixes: Vec<_> = chains.suffixes(chain).collect();
        for at in suffixes {
            let outer = self.sequences.outer_of(chains, at);
            self.outer
                .entry(chains.innermost(at).line())
                .and_modify(|known| {
                    if *known != Some(outer) {
                        *known = None;
                    }
                })
                .or_insert(Some(outer));
        }
    }

    fn key(&self, line: Line, class: Class) -> (u32, u32) {
        (self.by_class[&(line, class)], self.by_leaf[&(line, class.is_leaf())])
    }

    fn is_unique(&self, chains: &Chains, at: ChainId) -> bool {
        self.outer[&chains.innermost(at).line()].is_some()
    }
}

/// A sequence of lines; 0 is the empty one.
type Sequence = u32;

/// Numbers chains so that two have the same number when their lines are the same.
#[derive(Default)]
struct Sequences {
    of_chain: FxHashMap<ChainId, Sequence>,
    of_lines: FxHashMap<(Line, Sequence), Sequence>,
}

impl Sequences {
    fn of(&mut self, chains: &Chains, chain: ChainId) -> Sequence {
        let mut unknown = Vec::new();
        let mut sequence = 0;
        for at in chains.suffixes(chain) {
            if let Some(&known) = self.of_chain.get(&at) {
                sequence = known;
                break;
            }
            unknown.push(at);
        }
        for at in unknown.into_iter().rev() {
            let next = self.of_lines.len() as Sequence + 1;
            let key = (chains.innermost(at).line(), sequence);
            sequence = *self.of_lines.entry(key).or_insert(next);
            self.of_chain.insert(at, sequence);
        }
        sequence
    }

    fn outer_of(&mut self, chains: &Chains, chain: ChainId) -> Sequence {
        chains.outer(chain).map_or(0, |outer| self.of(chains, outer))
    }
}

/// The sites of one kernel's chains.
pub struct Sites {
    trimmed: FxHashMap<ChainId, ChainId>,
    sites: FxHashMap<(ChainId, Class), ChainId>,
    holders: FxHashMap<(Line, Class), usize>,
    library_files: FxHashMap<Sym, bool>,
}

impl Sites {
    /// The site of a chain that was added for `class`: the chain from the site outwards, so its
    /// innermost frame is the site. Host and control-flow frames are gone. `None` for a chain
    /// that was not added.
    pub fn site(&self, chain: ChainId, class: Class) -> Option<ChainId> {
        let trimmed = self.trimmed.get(&chain)?;
        self.sites.get(&(*trimmed, class)).copied()
    }

    /// An added chain without its host and control-flow frames.
    pub fn trimmed(&self, chain: ChainId) -> Option<ChainId> {
        self.trimmed.get(&chain).copied()
    }

    /// How many chains of `class` have `line` as their site: two or more make it ambiguous.
    pub fn chains_at(&self, line: Line, class: Class) -> usize {
        self.holders.get(&(line, class)).copied().unwrap_or(0)
    }

    /// Whether a line is shown for two or more chains of `class`.
    pub fn is_ambiguous(&self, line: Line, class: Class) -> bool {
        self.chains_at(line, class) > 1
    }

    /// Every line that is the site of a chain of `class`.
    pub fn lines(&self, class: Class) -> impl Iterator<Item = Line> + '_ {
        self.holders.keys().filter(move |(_, c)| *c == class).map(|(line, _)| *line)
    }

    /// Whether a file of an added chain is library code.
    pub fn is_library(&self, file: Sym) -> bool {
        self.library_files.get(&file).copied().unwrap_or(false)
    }
}

/// Effective lines: exp of the Shannon entropy of the weights, 0 when they sum to 0.
pub fn effective_lines(weights: impl IntoIterator<Item = f64> + Clone) -> f64 {
    let total: f64 = weights.clone().into_iter().sum();
    if total <= 0.0 {
        return 0.0;
    }
    let entropy: f64 = weights
        .into_iter()
        .filter(|weight| *weight > 0.0)
        .map(|weight| weight / total)
        .map(|share| -share * share.ln())
        .sum();
    entropy.exp()
}

#[cfg(test)]
mod tests;
