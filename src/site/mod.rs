//! Sites: which frame of a chain a profiler should show.
//!
//! [`SiteModel`] is given the chains of one kernel with the classes of what holds them, and
//! answers with [`Sites`]. This is the only module that knows a policy, what a host, library or
//! control-flow frame is, and what makes a line ambiguous.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::str::FromStr;

use globset::{Glob, GlobMatcher, GlobSet, GlobSetBuilder};
use rustc_hash::FxHashMap;

use crate::chain::{ChainId, Chains, Frame, Line, Sym};
use crate::leaf::{Class, ClassSet, LeafTable};
use crate::outline::{Outline, Outlines};

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

/// What stands for code without a file: Python's names, such as `<frozen importlib._bootstrap>`,
/// and MLIR's `-` for text that a front end parsed.
fn is_generated(path: &str) -> bool {
    path == "-" || (path.starts_with('<') && path.ends_with('>'))
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

/// Cuts the frames outside the outermost one whose function is the kernel; frames are given
/// innermost first.
pub fn cut_host_frames(chains: &Chains, symbol: &str, frames: &mut Vec<Frame>) {
    let is_kernel =
        |frame: &Frame| frame.function.is_some_and(|f| is_kernel_function(chains.str(f), symbol));
    if let Some(body) = frames.iter().rposition(is_kernel) {
        frames.truncate(body + 1);
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
    files: LibraryFiles<'a>,
    /// By chain: the chain without host and control-flow frames.
    trimmed: Vec<Option<ChainId>>,
    /// Trimmed chains with their classes, each once.
    uses: Vec<(ChainId, Class)>,
    /// By trimmed chain: the classes it was added for, as bits.
    added: Vec<u8>,
    sources: Option<Sources<'a>>,
}

/// The sources that control-flow frames without names are recognised in.
struct Sources<'a> {
    outlines: &'a RefCell<Outlines>,
    /// By file.
    known: Vec<Option<Rc<Outline>>>,
}

impl Sources<'_> {
    fn outline(&mut self, chains: &Chains, file: Sym) -> &Outline {
        entry(&mut self.known, file.index())
            .get_or_insert_with(|| self.outlines.borrow_mut().of(chains.str(file)))
    }

    /// Whether a chain has several frames, and one of them is in a file with control flow.
    fn concern(&mut self, chains: &Chains, chain: ChainId) -> bool {
        chains.outer(chain).is_some()
            && chains.frames(chain).any(|frame| self.outline(chains, frame.file).has_statements())
    }

    fn is_around(&mut self, chains: &Chains, statement: Frame, inner: Frame) -> bool {
        statement.file == inner.file
            && self.outline(chains, inner.file).is_around(statement.line, inner.line)
    }
}

/// The entry of a dense table, which grows as needed.
fn entry<T: Clone + Default>(table: &mut Vec<T>, at: usize) -> &mut T {
    if at >= table.len() {
        table.resize(at + 1, T::default());
    }
    &mut table[at]
}

/// Which files are library, each path looked at once.
struct LibraryFiles<'a> {
    library: &'a Library,
    /// The kernel's own file, which never is.
    own: Option<Sym>,
    known: Vec<Option<bool>>,
}

impl LibraryFiles<'_> {
    fn contains(&mut self, chains: &Chains, file: Sym) -> bool {
        if self.own == Some(file) {
            return false;
        }
        let library = self.library;
        *entry(&mut self.known, file.index())
            .get_or_insert_with(|| library.contains(chains.str(file)))
    }
}

impl<'a> SiteModel<'a> {
    /// A model without chains for one kernel.
    pub fn new(settings: &'a Settings, kernel: Kernel<'a>) -> Self {
        let own = kernel.definition.map(|line| line.file);
        let files = LibraryFiles { library: &settings.library, own, known: Vec::new() };
        let (trimmed, uses, added) = (Vec::new(), Vec::new(), Vec::new());
        SiteModel { settings, kernel, files, trimmed, uses, added, sources: None }
    }

    /// Also recognises control-flow frames that have no function names, from the sources: a line
    /// that starts an `if`, `for` or `while`, right outside a line of that statement's body.
    pub fn with_sources(mut self, outlines: &'a RefCell<Outlines>) -> Self {
        self.sources = Some(Sources { outlines, known: Vec::new() });
        self
    }

    /// Counts a chain that something of `class` holds. Adding it again changes nothing.
    pub fn add(&mut self, chains: &mut Chains, chain: ChainId, class: Class) {
        let chain = self.trim(chains, chain);
        let added = entry(&mut self.added, chain.index());
        if *added & class.bit() == 0 {
            *added |= class.bit();
            self.uses.push((chain, class));
        }
    }

    /// The chain without its host frames and control-flow frames.
    fn trim(&mut self, chains: &mut Chains, chain: ChainId) -> ChainId {
        if let Some(trimmed) = *entry(&mut self.trimmed, chain.index()) {
            return trimmed;
        }
        // Both kinds of frames are known by the names of functions.
        let trimmed = if chains.frames(chain).any(|frame| frame.function.is_some()) {
            let mut frames: Vec<Frame> = chains.frames(chain).collect();
            self.cut_host_frames(chains, &mut frames);
            self.drop_control_flow_frames(chains, &mut frames);
            self.drop_statements(chains, &mut frames);
            chains.intern(frames).unwrap_or(chain)
        } else if self.sources.as_mut().is_some_and(|sources| sources.concern(chains, chain)) {
            let mut frames: Vec<Frame> = chains.frames(chain).collect();
            let before = frames.len();
            self.drop_statements(chains, &mut frames);
            if frames.len() == before { chain } else { chains.intern(frames).unwrap_or(chain) }
        } else {
            chain
        };
        self.trimmed[chain.index()] = Some(trimmed);
        trimmed
    }

    fn cut_host_frames(&self, chains: &Chains, frames: &mut Vec<Frame>) {
        if let Some(symbol) = self.kernel.symbol {
            cut_host_frames(chains, symbol, frames);
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
                (level + 1..frames.len()).find(|&at| !self.files.contains(chains, frames[at].file));
            if let Some(statement) = statement {
                frames[level].function = frames[statement].function;
                frames.drain(level + 1..=statement);
            }
        }
    }

    /// The same for bodies whose generated functions have no names, by the sources.
    fn drop_statements(&mut self, chains: &Chains, frames: &mut Vec<Frame>) {
        let SiteModel { files, sources: Some(sources), .. } = self else { return };
        let mut level = frames.len();
        while level > 0 {
            level -= 1;
            let inner = frames[level];
            if inner.function.is_some() || files.contains(chains, inner.file) {
                continue;
            }
            let statement =
                (level + 1..frames.len()).find(|&at| !files.contains(chains, frames[at].file));
            if let Some(statement) = statement
                && sources.is_around(chains, frames[statement], inner)
            {
                frames[level].function = frames[statement].function;
                frames.drain(level + 1..=statement);
            }
        }
    }

    /// Chooses the sites.
    pub fn choose(mut self, chains: &Chains) -> Sites {
        let mut uses = std::mem::take(&mut self.uses);
        uses.sort_unstable();
        let counts = Counts::of(chains, &uses);
        let mut sites: [Vec<Option<ChainId>>; Class::ALL.len()] = Default::default();
        let mut holders = vec![[0; Class::ALL.len()]; counts.lines.len()];
        let mut held = vec![0; counts.sequence_count()];
        for &(chain, class) in &uses {
            let site = if self.settings.leaves.contains(class) {
                self.choose_one(chains, &counts, chain, class)
            } else {
                chain
            };
            *entry(&mut sites[class as usize], chain.index()) = Some(site);
            let held: &mut u8 = &mut held[counts.sequence(chain) as usize];
            if *held & class.bit() == 0 {
                *held |= class.bit();
                holders[counts.line(site) as usize][class as usize] += 1;
            }
        }
        let known = self.files.known;
        Sites { trimmed: self.trimmed, sites, holders, lines: counts.lines, library_files: known }
    }

    fn choose_one(
        &mut self,
        chains: &Chains,
        counts: &Counts,
        chain: ChainId,
        class: Class,
    ) -> ChainId {
        let SiteModel { settings, files, .. } = self;
        let mut is_author = |at: &ChainId| !files.contains(chains, chains.innermost(*at).file);
        let authors: smallvec::SmallVec<[ChainId; 16]> =
            chains.suffixes(chain).filter(|at| is_author(at)).collect();
        if authors.is_empty() {
            return pick(settings, chains, counts, class, || chains.suffixes(chain));
        }
        pick(settings, chains, counts, class, || authors.iter().copied())
    }
}

/// Picks one of the candidates, which are given innermost first and are at least one.
fn pick<I: Iterator<Item = ChainId>>(
    settings: &Settings,
    chains: &Chains,
    counts: &Counts,
    class: Class,
    candidates: impl Fn() -> I,
) -> ChainId {
    let path = |at: &ChainId| chains.str(chains.innermost(*at).file);
    let chosen = match &settings.policy {
        // The last of equals is the outermost.
        Policy::Distinct => candidates().reduce(|best, at| {
            if counts.key(at, class) <= counts.key(best, class) { at } else { best }
        }),
        Policy::Unique => candidates().find(|&at| counts.is_unique(at)),
        Policy::Innermost => candidates().next(),
        Policy::Outermost => None,
        Policy::File(glob) => candidates().find(|at| glob.matches(path(at))),
        Policy::Skip(glob) => candidates().find(|at| !glob.matches(path(at))),
        Policy::Depth(depth) => {
            candidates().count().checked_sub(depth + 1).and_then(|at| candidates().nth(at))
        }
    };
    chosen.unwrap_or_else(|| candidates().last().expect("a chain has at least one frame"))
}

/// In how many chains each line occurs, and with which lines outside it. Lines and sequences of
/// lines are numbered, so that all tables are dense.
#[derive(Default)]
struct Counts {
    /// By chain: the number of its innermost line and of its sequence of lines.
    numbers: Vec<Option<Numbers>>,
    /// The numbers of lines.
    lines: FxHashMap<Line, u32>,
    /// The numbers of sequences, by their first line and the sequence outside it; 0 is the
    /// empty one.
    sequences: FxHashMap<(u32, u32), u32>,
    /// By line: chains of each class.
    by_class: Vec<[u32; Class::ALL.len()]>,
    /// By line: chains of all leaf classes together.
    by_leaf: Vec<u32>,
    /// By line: the one sequence of lines outside it, [`UNSEEN`] or [`SEVERAL`].
    outer: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Numbers {
    line: u32,
    sequence: u32,
}

const UNSEEN: u32 = u32::MAX;
const SEVERAL: u32 = u32::MAX - 1;

impl Counts {
    fn of(chains: &Chains, uses: &[(ChainId, Class)]) -> Self {
        let mut counts = Counts { numbers: vec![None; chains.len()], ..Counts::default() };
        counts.sequences.reserve(uses.len());
        for &(chain, _) in uses {
            counts.number(chains, chain);
        }
        let lines = counts.lines.len();
        counts.by_class = vec![[0; Class::ALL.len()]; lines];
        counts.by_leaf = vec![0; lines];
        counts.outer = vec![UNSEEN; lines];
        counts.count(chains, uses);
        counts
    }

    /// Numbers a chain and the chains outside its frames.
    fn number(&mut self, chains: &Chains, chain: ChainId) {
        let mut open: smallvec::SmallVec<[ChainId; 16]> = smallvec::SmallVec::new();
        let mut outer = 0;
        for at in chains.suffixes(chain) {
            if let Some(known) = self.numbers[at.index()] {
                outer = known.sequence;
                break;
            }
            open.push(at);
        }
        for at in open.into_iter().rev() {
            let next_line = self.lines.len() as u32;
            let line = *self.lines.entry(chains.innermost(at).line()).or_insert(next_line);
            let next_sequence = self.sequences.len() as u32 + 1;
            outer = *self.sequences.entry((line, outer)).or_insert(next_sequence);
            self.numbers[at.index()] = Some(Numbers { line, sequence: outer });
        }
    }

    fn count(&mut self, chains: &Chains, uses: &[(ChainId, Class)]) {
        // By sequence: the classes it was counted for, and by line: the last use that had it.
        let mut counted = vec![0u8; self.sequence_count()];
        let mut last = vec![UNSEEN; self.lines.len()];
        for (number, &(chain, class)) in uses.iter().enumerate() {
            let before = &mut counted[self.sequence(chain) as usize];
            let new_of_class = *before & class.bit() == 0;
            let new_of_leaf = class.is_leaf() && *before & !Class::Other.bit() == 0;
            *before |= class.bit();
            if !new_of_class {
                continue;
            }
            for at in chains.suffixes(chain) {
                let line = self.line(at) as usize;
                if last[line] != number as u32 {
                    last[line] = number as u32;
                    self.by_class[line][class as usize] += 1;
                    self.by_leaf[line] += u32::from(new_of_leaf);
                }
                self.note_outer(chains, at);
            }
        }
    }

    fn note_outer(&mut self, chains: &Chains, at: ChainId) {
        let outer = chains.outer(at).map_or(0, |outer| self.sequence(outer));
        let known = &mut self.outer[self.numbers[at.index()].map_or(0, |n| n.line) as usize];
        match *known {
            UNSEEN => *known = outer,
            same if same == outer => {}
            _ => *known = SEVERAL,
        }
    }

    fn numbers(&self, chain: ChainId) -> Numbers {
        self.numbers[chain.index()].expect("every used chain is numbered")
    }

    fn line(&self, chain: ChainId) -> u32 {
        self.numbers(chain).line
    }

    fn sequence(&self, chain: ChainId) -> u32 {
        self.numbers(chain).sequence
    }

    fn sequence_count(&self) -> usize {
        self.sequences.len() + 1
    }

    /// In how many chains of the class the innermost line of `at` occurs, and in how many of
    /// all leaf classes; for `other`, of `other`.
    fn key(&self, at: ChainId, class: Class) -> (u32, u32) {
        let line = self.line(at) as usize;
        let own = self.by_class[line][class as usize];
        (own, if class.is_leaf() { self.by_leaf[line] } else { own })
    }

    fn is_unique(&self, at: ChainId) -> bool {
        self.outer[self.line(at) as usize] != SEVERAL
    }
}

/// The sites of one kernel's chains.
pub struct Sites {
    trimmed: Vec<Option<ChainId>>,
    /// By class and trimmed chain.
    sites: [Vec<Option<ChainId>>; Class::ALL.len()],
    /// By line and class: how many chains have the line as their site.
    holders: Vec<[u32; Class::ALL.len()]>,
    lines: FxHashMap<Line, u32>,
    library_files: Vec<Option<bool>>,
}

impl Sites {
    /// The site of a chain that was added for `class`: the chain from the site outwards, so its
    /// innermost frame is the site. Host and control-flow frames are gone. `None` for a chain
    /// that was not added.
    pub fn site(&self, chain: ChainId, class: Class) -> Option<ChainId> {
        let trimmed = self.trimmed(chain)?;
        self.sites[class as usize].get(trimmed.index()).copied().flatten()
    }

    /// An added chain without its host and control-flow frames.
    pub fn trimmed(&self, chain: ChainId) -> Option<ChainId> {
        self.trimmed.get(chain.index()).copied().flatten()
    }

    /// How many chains of `class` have `line` as their site: two or more make it ambiguous.
    pub fn chains_at(&self, line: Line, class: Class) -> usize {
        self.lines
            .get(&line)
            .map_or(0, |&line| self.holders[line as usize][class as usize] as usize)
    }

    /// Whether a line is shown for two or more chains of `class`.
    pub fn is_ambiguous(&self, line: Line, class: Class) -> bool {
        self.chains_at(line, class) > 1
    }

    /// Every line that is the site of a chain of `class`, in no particular order.
    pub fn lines(&self, class: Class) -> impl Iterator<Item = Line> + '_ {
        let holders = move |line: u32| self.holders[line as usize][class as usize];
        self.lines.iter().filter(move |(_, at)| holders(**at) > 0).map(|(line, _)| *line)
    }

    /// Whether a file of an added chain is library code.
    pub fn is_library(&self, file: Sym) -> bool {
        self.library_files.get(file.index()).copied().flatten().unwrap_or(false)
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
