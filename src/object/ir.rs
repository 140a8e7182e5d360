//! The frontend IR's chains beside the object's: which lines are ambiguous, and what of the
//! chains was lost on the way.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;

use crate::chain::{ChainId, Chains, Frame, Line, Sym};
use crate::leaf::Class;
use crate::site::{Kernel, Policy, Settings, SiteModel, without_number};

/// The chains of an IR's device functions. They are in the table that the object's are in.
#[derive(Clone, Default, Debug)]
pub struct IrChains {
    /// The device functions.
    pub functions: Vec<IrFunction>,
}

/// The chains of one device function.
#[derive(Clone, Debug)]
pub struct IrFunction {
    /// The symbol; `None` where the IR has none.
    pub name: Option<String>,
    /// Whether it is marked as a kernel.
    pub is_kernel: bool,
    /// The line of the function itself.
    pub definition: Option<Line>,
    /// What holds the chains.
    pub uses: Vec<IrUse>,
}

/// Operations of one class that have one chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IrUse {
    /// The class.
    pub class: Class,
    /// The chain, without host and control-flow frames.
    pub chain: ChainId,
    /// The line that a rewritten location shows; `None` for a location as the front end made it.
    pub rewritten_to: Option<Line>,
}

/// How the site of an IR's chain was decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// The IR was rewritten: the line that it shows.
    Shown,
    /// The policy that was asked for.
    Policy,
    /// The object shows innermost lines only, so the innermost one.
    Innermost,
    /// The policy `distinct`.
    Distinct,
}

/// What an IR says of one kernel of an object.
pub struct IrKernel {
    uses: Vec<IrUse>,
    definition: Option<Line>,
    sites: FxHashMap<(ChainId, Class), Line>,
    holders: FxHashMap<(Line, Class), usize>,
    reachable: BTreeMap<Class, usize>,
    rules: BTreeMap<Class, Rule>,
}

/// How much of the IR's chains the object lost.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Lost {
    /// Distinct chains in the IR.
    pub chains: usize,
    /// Those whose site the object shows; the other numbers are about these.
    pub reached: usize,
    /// Their share.
    pub reached_share: f64,
    /// The frames of the reached chains.
    pub levels: usize,
    /// Those that no object chain with that site has.
    pub levels_lost: usize,
    /// Their share.
    pub levels_lost_share: f64,
    /// The frames of the reached chains whose function the IR names.
    pub names: usize,
    /// Those that the object lost or gives another name.
    pub names_lost: usize,
    /// Their share.
    pub names_lost_share: f64,
    /// How sites were decided, by class.
    pub rules: BTreeMap<&'static str, Rule>,
}

/// What an object shows in one kernel: the chain and class of each instruction.
pub type Shown = [(ChainId, Class)];

impl IrChains {
    /// The chains of an MLIR module, brought from their table into another one.
    #[cfg(feature = "llvm")]
    pub fn from_mlir(
        table: &Chains,
        functions: Vec<crate::mlir::report::FunctionChains>,
        chains: &mut Chains,
    ) -> Self {
        let line = |line: Line, chains: &mut Chains| Line {
            file: chains.sym(table.str(line.file)),
            number: line.number,
        };
        let functions = functions.into_iter().map(|function| IrFunction {
            name: function.name,
            is_kernel: function.kernel,
            definition: function.definition.map(|l| line(l, chains)),
            uses: function
                .uses
                .iter()
                .flat_map(|u| {
                    let shown = u.shown.filter(|_| u.is_site);
                    u.chains.iter().map(move |(chain, _)| (u.class, *chain, shown))
                })
                .filter_map(|(class, chain, shown)| {
                    let chain = copy(chain, table, chains)?;
                    let rewritten_to = shown.map(|l| line(l, chains));
                    Some(IrUse { class, chain, rewritten_to })
                })
                .collect(),
        });
        IrChains { functions: functions.collect() }
    }

    /// The function that a kernel of an object was made of: of the same name, or the only
    /// kernel, or the only function.
    fn find(&self, symbol: &str) -> Option<&IrFunction> {
        let named = |wanted: &str| {
            self.functions.iter().find(|function| {
                function.name.as_deref().is_some_and(|name| without_number(name) == wanted)
            })
        };
        let exact = self.functions.iter().find(|f| f.name.as_deref() == Some(symbol));
        let only = |functions: Vec<&'_ IrFunction>| match functions[..] {
            [function] => Some(function.name.clone()),
            _ => None,
        };
        let kernels = || only(self.functions.iter().filter(|f| f.is_kernel).collect());
        let all = || only(self.functions.iter().collect());
        exact.or_else(|| named(without_number(symbol))).or_else(|| {
            let name = kernels().or_else(all)?;
            self.functions.iter().find(|f| f.name == name)
        })
    }

    /// What the IR says of the kernel named `symbol`; `None` when it has no such kernel.
    ///
    /// `shown` is what the object shows, `explicit` whether the settings' policy was asked for.
    pub fn kernel(
        &self,
        symbol: &str,
        shown: &Shown,
        settings: &Settings,
        explicit: bool,
        chains: &mut Chains,
    ) -> Option<IrKernel> {
        let function = self.find(symbol)?;
        let helpers = self.functions.iter().filter(|f| !f.is_kernel && !std::ptr::eq(*f, function));
        let mut files = Files::of(shown, chains);
        let mut uses = Vec::new();
        let all = function.uses.iter().chain(helpers.flat_map(|helper| &helper.uses));
        for ir_use in all {
            uses.push(files.align(*ir_use, chains));
        }
        let definition = function.definition.map(|line| files.align_line(line, chains));
        let mut kernel = IrKernel {
            uses,
            definition,
            sites: FxHashMap::default(),
            holders: FxHashMap::default(),
            reachable: BTreeMap::new(),
            rules: BTreeMap::new(),
        };
        kernel.choose_sites(symbol, shown, settings, explicit, chains);
        Some(kernel)
    }
}

/// A chain of one table in another one.
#[cfg(feature = "llvm")]
fn copy(chain: ChainId, from: &Chains, to: &mut Chains) -> Option<ChainId> {
    let frames: Vec<Frame> = from
        .frames(chain)
        .map(|frame| {
            let name = frame.function.map(|name| from.str(name));
            to.frame(from.str(frame.file), frame.line, frame.column, name)
        })
        .collect();
    to.intern(frames)
}

impl IrKernel {
    fn choose_sites(
        &mut self,
        symbol: &str,
        shown: &Shown,
        settings: &Settings,
        explicit: bool,
        chains: &mut Chains,
    ) {
        let distinct = Settings { policy: Policy::Distinct, ..settings.clone() };
        let by_distinct = self.sites_by(symbol, &distinct, chains);
        let by_policy = match explicit {
            true => self.sites_by(symbol, settings, chains),
            false => FxHashMap::default(),
        };
        let rewritten = self.uses.iter().any(|u| u.rewritten_to.is_some());
        for class in Class::ALL {
            let uses: Vec<IrUse> = self.uses.iter().filter(|u| u.class == class).copied().collect();
            let rule = if rewritten {
                Rule::Shown
            } else if explicit {
                Rule::Policy
            } else if shows_innermost(&uses, shown, class, chains) {
                Rule::Innermost
            } else {
                Rule::Distinct
            };
            let reachable = uses.iter().filter_map(|u| by_distinct.get(&(u.chain, class)));
            self.reachable.insert(class, reachable.collect::<FxHashSet<_>>().len());
            self.rules.insert(class, rule);
            for u in &uses {
                let innermost = chains.innermost(u.chain).line();
                let site = match rule {
                    Rule::Shown => u.rewritten_to,
                    Rule::Policy => by_policy.get(&(u.chain, class)).copied(),
                    Rule::Innermost => None,
                    Rule::Distinct => by_distinct.get(&(u.chain, class)).copied(),
                };
                self.sites.insert((u.chain, class), site.unwrap_or(innermost));
            }
        }
        self.count_holders(chains);
    }

    fn sites_by(
        &self,
        symbol: &str,
        settings: &Settings,
        chains: &mut Chains,
    ) -> FxHashMap<(ChainId, Class), Line> {
        let kernel = Kernel { symbol: Some(symbol), definition: self.definition };
        let mut model = SiteModel::new(settings, kernel);
        self.uses.iter().for_each(|u| model.add(chains, u.chain, u.class));
        let sites = model.choose(chains);
        let site = |u: &IrUse| {
            let site = sites.site(u.chain, u.class)?;
            Some(((u.chain, u.class), chains.innermost(site).line()))
        };
        self.uses.iter().filter_map(site).collect()
    }

    fn count_holders(&mut self, chains: &Chains) {
        let mut holders: FxHashMap<(Line, Class), FxHashSet<Vec<Line>>> = FxHashMap::default();
        for (&(chain, class), &site) in &self.sites {
            holders.entry((site, class)).or_default().insert(chains.lines(chain).collect());
        }
        self.holders = holders.into_iter().map(|(key, chains)| (key, chains.len())).collect();
    }

    /// Whether the IR has two or more chains of a class whose site is this line.
    pub fn is_ambiguous(&self, line: Line, class: Class) -> bool {
        self.holders.get(&(line, class)).is_some_and(|&chains| chains > 1)
    }

    /// The line of the kernel itself.
    pub fn definition(&self) -> Option<Line> {
        self.definition
    }

    /// How many lines the policy `distinct` would show for a class.
    pub fn reachable_lines(&self, class: Class) -> usize {
        self.reachable.get(&class).copied().unwrap_or(0)
    }

    /// How much of the chains an object lost.
    pub fn lost(&self, shown: &Shown, chains: &Chains) -> Lost {
        let mut by_line: FxHashMap<Line, Vec<ChainId>> = FxHashMap::default();
        let distinct: FxHashSet<ChainId> = shown.iter().map(|(chain, _)| *chain).collect();
        for chain in distinct {
            by_line.entry(chains.innermost(chain).line()).or_default().push(chain);
        }
        let mut sites: FxHashMap<ChainId, Vec<Line>> = FxHashMap::default();
        for (&(chain, _), &site) in &self.sites {
            sites.entry(chain).or_default().push(site);
        }
        let mut lost = Lost { chains: sites.len(), ..Lost::default() };
        for (chain, sites) in sites {
            let candidates = sites.iter().filter_map(|site| by_line.get(site)).flatten();
            lost.add(chain, candidates.copied(), chains);
        }
        lost.reached_share = share(lost.reached, lost.chains);
        lost.levels_lost_share = share(lost.levels_lost, lost.levels);
        lost.names_lost_share = share(lost.names_lost, lost.names);
        let used = |class: &Class| self.uses.iter().any(|u| u.class == *class);
        let rules = self.rules.iter().filter(|(class, _)| used(class));
        lost.rules = rules.map(|(class, rule)| (class.name(), *rule)).collect();
        lost
    }
}

/// A part of a total; 0 of nothing.
pub(crate) fn share(part: usize, total: usize) -> f64 {
    if total == 0 { 0.0 } else { part as f64 / total as f64 }
}

impl Lost {
    fn add(&mut self, chain: ChainId, candidates: impl Iterator<Item = ChainId>, chains: &Chains) {
        let frames: Vec<Frame> = chains.frames(chain).collect();
        let named = frames.iter().filter(|frame| frame.function.is_some()).count();
        let kept = |candidate: ChainId| {
            let other: Vec<Frame> = chains.frames(candidate).collect();
            kept(&frames, &other, chains)
        };
        let Some((levels, names)) = candidates.map(kept).max() else { return };
        self.reached += 1;
        self.levels += frames.len();
        self.levels_lost += frames.len() - levels;
        self.names += named;
        self.names_lost += named - names;
    }
}

/// The most frames of a chain that another one has in the same order, and of those the most
/// whose function has the same name.
fn kept(frames: &[Frame], other: &[Frame], chains: &Chains) -> (usize, usize) {
    let mut best = vec![(0, 0); other.len() + 1];
    for frame in frames {
        let mut diagonal = (0, 0);
        for (at, candidate) in other.iter().enumerate() {
            let here = best[at + 1];
            if frame.line() == candidate.line() {
                let named = same_name(frame.function, candidate.function, chains);
                let longer = (diagonal.0 + 1, diagonal.1 + usize::from(named));
                best[at + 1] = here.max(longer);
            }
            best[at + 1] = best[at + 1].max(best[at]);
            diagonal = here;
        }
    }
    best[other.len()]
}

/// Whether both are named and their last parts are equal.
fn same_name(a: Option<Sym>, b: Option<Sym>, chains: &Chains) -> bool {
    let last = |name: Sym| chains.str(name).rsplit(['.', ':']).next();
    a.zip(b).is_some_and(|(a, b)| last(a) == last(b))
}

/// Whether every line that an object shows for a class is innermost in a chain of the class.
fn shows_innermost(uses: &[IrUse], shown: &Shown, class: Class, chains: &Chains) -> bool {
    let innermost: FxHashSet<Line> =
        uses.iter().map(|u| chains.innermost(u.chain).line()).collect();
    let lines = shown.iter().filter(|(_, c)| *c == class);
    lines
        .map(|(chain, _)| chains.innermost(*chain).line())
        .filter(|line| line.number != 0)
        .all(|line| innermost.contains(&line))
}

/// The files of an object, for finding the ones that an IR means.
struct Files {
    object: Vec<Sym>,
    known: FxHashMap<Sym, Sym>,
}

impl Files {
    fn of(shown: &Shown, chains: &Chains) -> Self {
        let files = shown.iter().flat_map(|(chain, _)| chains.frames(*chain)).map(|f| f.file);
        let mut object: Vec<Sym> = files.collect::<FxHashSet<_>>().into_iter().collect();
        object.sort_unstable();
        Files { object, known: FxHashMap::default() }
    }

    /// The object's file that is the same as one of the IR: of the same path but for `.` and
    /// `..`, or the only one that ends so.
    fn file(&mut self, file: Sym, chains: &Chains) -> Sym {
        if let Some(&known) = self.known.get(&file) {
            return known;
        }
        let wanted = normalise(chains.str(file));
        let same = |other: &&Sym| normalise(chains.str(**other)) == wanted;
        let ends_so = |other: &&Sym| {
            let other = normalise(chains.str(**other));
            let is_end = |long: &[&str], short: &[&str]| !short.is_empty() && long.ends_with(short);
            is_end(&other, &wanted) || is_end(&wanted, &other)
        };
        let mut ends = self.object.iter().filter(ends_so);
        let only = match (ends.next(), ends.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        };
        let found = self.object.iter().find(same).or(only).copied().unwrap_or(file);
        self.known.insert(file, found);
        found
    }

    fn align_line(&mut self, line: Line, chains: &Chains) -> Line {
        Line { file: self.file(line.file, chains), ..line }
    }

    fn align(&mut self, ir_use: IrUse, chains: &mut Chains) -> IrUse {
        let frames: Vec<Frame> = chains.frames(ir_use.chain).collect();
        let aligned: Vec<Frame> = frames
            .into_iter()
            .map(|frame| Frame { file: self.file(frame.file, chains), ..frame })
            .collect();
        let chain = chains.intern(aligned).unwrap_or(ir_use.chain);
        let rewritten_to = ir_use.rewritten_to.map(|line| self.align_line(line, chains));
        IrUse { chain, rewritten_to, ..ir_use }
    }
}

/// The parts of a path without `.`, and with `..` taken away.
fn normalise(path: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !["", ".."].contains(last)) => {
                parts.pop();
            }
            "" if !parts.is_empty() => {}
            part => parts.push(part),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Example {
        chains: Chains,
    }

    impl Example {
        fn chain(&mut self, file: &str, lines: &[u32]) -> ChainId {
            let frames: Vec<_> =
                lines.iter().map(|&l| self.chains.frame(file, l, 0, Some("f"))).collect();
            self.chains.intern(frames).unwrap()
        }

        fn ir(&mut self, chains: &[&[u32]], rewritten: Option<u32>) -> IrChains {
            let file = self.chains.sym("k.py");
            let rewritten_to = rewritten.map(|number| Line { file, number });
            let uses = chains.iter().map(|lines| IrUse {
                class: Class::Mfma,
                chain: self.chain("k.py", lines),
                rewritten_to,
            });
            let uses = uses.collect();
            let name = Some("k_0".into());
            let function = IrFunction { name, is_kernel: true, definition: None, uses };
            IrChains { functions: vec![function] }
        }

        fn kernel(&mut self, ir: &IrChains, shown: &[u32], explicit: Option<Policy>) -> IrKernel {
            let shown: Vec<_> =
                shown.iter().map(|&l| (self.chain("/src/k.py", &[l, 99]), Class::Mfma)).collect();
            let is_explicit = explicit.is_some();
            let settings = Settings { policy: explicit.unwrap_or_default(), ..Settings::default() };
            ir.kernel("k", &shown, &settings, is_explicit, &mut self.chains).unwrap()
        }

        fn line(&mut self, number: u32) -> Line {
            Line { file: self.chains.sym("/src/k.py"), number }
        }
    }

    fn example() -> Example {
        Example { chains: Chains::new() }
    }

    #[test]
    fn an_object_that_shows_the_helper_is_ambiguous() {
        let mut e = example();
        let ir = e.ir(&[&[11, 21], &[11, 22]], None);
        let kernel = e.kernel(&ir, &[11], None);
        let helper = e.line(11);
        assert_eq!(kernel.rules[&Class::Mfma], Rule::Innermost);
        assert!(kernel.is_ambiguous(helper, Class::Mfma));
        assert!(!kernel.is_ambiguous(helper, Class::Wait));
        assert_eq!(kernel.reachable_lines(Class::Mfma), 2);
    }

    #[test]
    fn an_object_that_shows_call_sites_is_not() {
        let mut e = example();
        let ir = e.ir(&[&[11, 21], &[11, 22]], None);
        let kernel = e.kernel(&ir, &[21, 22], None);
        assert_eq!(kernel.rules[&Class::Mfma], Rule::Distinct);
        let site = e.line(21);
        assert!(!kernel.is_ambiguous(site, Class::Mfma));
    }

    #[test]
    fn a_policy_that_was_asked_for_decides() {
        let mut e = example();
        let ir = e.ir(&[&[11, 21, 30], &[11, 22, 30]], None);
        let kernel = e.kernel(&ir, &[11], Some(Policy::Outermost));
        assert_eq!(kernel.rules[&Class::Mfma], Rule::Policy);
        let outermost = e.line(30);
        assert!(kernel.is_ambiguous(outermost, Class::Mfma));
    }

    #[test]
    fn a_rewritten_ir_says_its_sites_itself() {
        let mut e = example();
        let ir = e.ir(&[&[11, 21], &[11, 22]], Some(21));
        let kernel = e.kernel(&ir, &[11], None);
        assert_eq!(kernel.rules[&Class::Mfma], Rule::Shown);
        let site = e.line(21);
        assert!(kernel.is_ambiguous(site, Class::Mfma));
    }

    #[test]
    fn lost_levels_and_names_are_counted() {
        let mut e = example();
        let ir = e.ir(&[&[11, 21, 30]], None);
        let shown = [(e.chain("/src/k.py", &[11, 30]), Class::Mfma)];
        let settings = Settings::default();
        let kernel = ir.kernel("k", &shown, &settings, false, &mut e.chains).unwrap();
        let lost = kernel.lost(&shown, &e.chains);
        assert_eq!((lost.chains, lost.reached), (1, 1));
        assert_eq!((lost.levels, lost.levels_lost), (3, 1));
        assert_eq!((lost.names, lost.names_lost), (3, 1));
    }

    #[test]
    fn paths_are_normalised() {
        assert_eq!(normalise("/a/./b/../c"), ["", "a", "c"]);
        assert_eq!(normalise("../a"), ["..", "a"]);
        assert_eq!(normalise("a//b"), ["a", "b"]);
    }
}
