//! Frames and chains: the one form that every kind of source location is turned into.
//!
//! A [`Frame`] is a file, a line, a column and, when known, a function. A chain is the frames
//! of one instruction or operation, innermost first, ending in the kernel's own body. Chains
//! are hash-consed in a [`Chains`] table from the outermost frame inwards, so a [`ChainId`]
//! stands for a chain, and the chain without its innermost frame is again a `ChainId`.
//!
//! Lines and columns are those of the source formats: lines count from 1 and 0 is "no line",
//! columns count from 1 and 0 is "no column".

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::num::NonZeroU32;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// An interned string of a [`Chains`] table: a file path or a function name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Sym(NonZeroU32);

/// A line of a file: what a profiler shows for an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Line {
    /// The file's path, as the producer wrote it.
    pub file: Sym,
    /// The line, from 1; 0 where the producer gave none.
    pub number: u32,
}

/// One level of a chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Frame {
    /// The file's path, as the producer wrote it.
    pub file: Sym,
    /// The line, from 1; 0 where the producer gave none.
    pub line: u32,
    /// The column, from 1; 0 where the producer gave none.
    pub column: u32,
    /// The function that the line is in, when the producer says so.
    pub function: Option<Sym>,
}

impl Frame {
    /// The frame's file and line.
    pub fn line(self) -> Line {
        Line { file: self.file, number: self.line }
    }
}

/// A chain of at least one frame, interned in a [`Chains`] table.
///
/// Two ids of one table are equal when all their frames are, columns and function names
/// included; [`Chains::same_lines`] compares as the site model does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ChainId(NonZeroU32);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Node {
    frame: Frame,
    outer: Option<ChainId>,
}

/// The table that chains, file paths and function names are interned in.
#[derive(Default)]
pub struct Chains {
    nodes: Vec<Node>,
    node_ids: HashTable<ChainId>,
    strings: Vec<Box<str>>,
    string_ids: HashTable<Sym>,
}

fn hash(value: impl Hash) -> u64 {
    FxBuildHasher.hash_one(value)
}

fn next_id(len: usize) -> NonZeroU32 {
    u32::try_from(len + 1)
        .ok()
        .and_then(NonZeroU32::new)
        .expect("a table of chains holds fewer than 2^32 entries")
}

impl Chains {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Interns a file path or a function name.
    pub fn sym(&mut self, text: &str) -> Sym {
        let strings = &self.strings;
        let key = hash(text);
        if let Some(&sym) = self.string_ids.find(key, |s| &*strings[index(s.0)] == text) {
            return sym;
        }
        let sym = Sym(next_id(self.strings.len()));
        self.strings.push(text.into());
        let strings = &self.strings;
        self.string_ids.insert_unique(key, sym, |s| hash(&*strings[index(s.0)]));
        sym
    }

    /// The symbol of `text` if it was interned before.
    pub fn find_sym(&self, text: &str) -> Option<Sym> {
        self.string_ids.find(hash(text), |s| self.str(*s) == text).copied()
    }

    /// The text of a symbol of this table.
    pub fn str(&self, sym: Sym) -> &str {
        &self.strings[index(sym.0)]
    }

    /// The chain that has `frame` inside `outer`; without `outer`, the chain of `frame` alone.
    pub fn push(&mut self, frame: Frame, outer: Option<ChainId>) -> ChainId {
        let node = Node { frame, outer };
        let key = hash(node);
        let nodes = &self.nodes;
        if let Some(&id) = self.node_ids.find(key, |id| nodes[index(id.0)] == node) {
            return id;
        }
        let id = ChainId(next_id(self.nodes.len()));
        self.nodes.push(node);
        let nodes = &self.nodes;
        self.node_ids.insert_unique(key, id, |id| hash(nodes[index(id.0)]));
        id
    }

    /// Interns frames given innermost first; `None` for no frames.
    pub fn intern<I>(&mut self, innermost_first: I) -> Option<ChainId>
    where
        I: IntoIterator<Item = Frame>,
        I::IntoIter: DoubleEndedIterator,
    {
        self.intern_inside(innermost_first, None)
    }

    /// Interns frames given innermost first inside the chain `outer`.
    pub fn intern_inside<I>(
        &mut self,
        innermost_first: I,
        outer: Option<ChainId>,
    ) -> Option<ChainId>
    where
        I: IntoIterator<Item = Frame>,
        I::IntoIter: DoubleEndedIterator,
    {
        innermost_first.into_iter().rev().fold(outer, |outer, frame| Some(self.push(frame, outer)))
    }

    /// A frame from texts and numbers, its strings interned.
    pub fn frame(&mut self, file: &str, line: u32, column: u32, function: Option<&str>) -> Frame {
        Frame { file: self.sym(file), line, column, function: function.map(|f| self.sym(f)) }
    }

    /// The innermost frame of a chain.
    pub fn innermost(&self, chain: ChainId) -> Frame {
        self.nodes[index(chain.0)].frame
    }

    /// The chain without its innermost frame.
    pub fn outer(&self, chain: ChainId) -> Option<ChainId> {
        self.nodes[index(chain.0)].outer
    }

    /// The suffixes of a chain: itself, then itself without its innermost frame, and so on.
    pub fn suffixes(&self, chain: ChainId) -> impl Iterator<Item = ChainId> + '_ {
        std::iter::successors(Some(chain), |&id| self.outer(id))
    }

    /// The frames of a chain, innermost first.
    pub fn frames(&self, chain: ChainId) -> impl Iterator<Item = Frame> + '_ {
        self.suffixes(chain).map(|id| self.innermost(id))
    }

    /// The lines of a chain, innermost first.
    pub fn lines(&self, chain: ChainId) -> impl Iterator<Item = Line> + '_ {
        self.frames(chain).map(Frame::line)
    }

    /// Whether two chains have the same sequence of files and lines.
    pub fn same_lines(&self, a: ChainId, b: ChainId) -> bool {
        a == b || self.lines(a).eq(self.lines(b))
    }

    /// The longest common suffix of two chains by file and line: their nearest common caller
    /// first. The frames are those of `a`.
    pub fn common_suffix(&self, a: ChainId, b: ChainId) -> Option<ChainId> {
        let (a, b): (Vec<_>, Vec<_>) = (self.suffixes(a).collect(), self.suffixes(b).collect());
        a.iter()
            .rev()
            .zip(b.iter().rev())
            .take_while(|(a, b)| self.innermost(**a).line() == self.innermost(**b).line())
            .last()
            .map(|(a, _)| *a)
    }

    /// Makes room for this many more chains.
    pub fn reserve(&mut self, chains: usize) {
        self.nodes.reserve(chains);
        let nodes = &self.nodes;
        self.node_ids.reserve(chains, |id| hash(nodes[index(id.0)]));
    }

    /// How many chains the table holds; ids are dense, so tables keyed by chain can be vectors.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether no chain was interned yet.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A chain as `file:line <- file:line`, innermost first; line 0 is shown as `?`.
    pub fn display(&self, chain: ChainId) -> impl fmt::Display + '_ {
        DisplayChain { chains: self, chain }
    }

    /// A line as `file:line`; line 0 is shown as `?`.
    pub fn display_line(&self, line: Line) -> impl fmt::Display + '_ {
        DisplayLine { chains: self, line }
    }
}

impl Sym {
    /// The position of this symbol in its table, from 0.
    pub fn index(self) -> usize {
        index(self.0)
    }
}

impl ChainId {
    /// The position of this chain in its table, from 0.
    pub fn index(self) -> usize {
        index(self.0)
    }
}

fn index(id: NonZeroU32) -> usize {
    id.get() as usize - 1
}

struct DisplayLine<'a> {
    chains: &'a Chains,
    line: Line,
}

impl fmt::Display for DisplayLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.chains.str(self.line.file);
        match self.line.number {
            0 => write!(f, "{file}:?"),
            number => write!(f, "{file}:{number}"),
        }
    }
}

struct DisplayChain<'a> {
    chains: &'a Chains,
    chain: ChainId,
}

impl fmt::Display for DisplayChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (level, line) in self.chains.lines(self.chain).enumerate() {
            let arrow = if level == 0 { "" } else { " <- " };
            write!(f, "{arrow}{}", self.chains.display_line(line))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(chains: &mut Chains, lines: &[u32]) -> ChainId {
        let frames: Vec<_> = lines.iter().map(|&l| chains.frame("k.py", l, 1, None)).collect();
        chains.intern(frames).unwrap()
    }

    #[test]
    fn interning_gives_one_id_per_chain() {
        let mut chains = Chains::new();
        let a = chain(&mut chains, &[1, 2, 3]);
        let b = chain(&mut chains, &[1, 2, 3]);
        let c = chain(&mut chains, &[2, 3]);
        assert_eq!(a, b);
        assert_eq!(chains.outer(a), Some(c));
        assert_eq!(chains.len(), 3);
        assert_eq!(chains.display(a).to_string(), "k.py:1 <- k.py:2 <- k.py:3");
    }

    #[test]
    fn no_frames_make_no_chain() {
        assert_eq!(Chains::new().intern([]), None);
    }

    #[test]
    fn columns_and_names_part_ids_but_not_lines() {
        let mut chains = Chains::new();
        let a = chains.frame("k.py", 1, 1, None);
        let b = chains.frame("k.py", 1, 9, Some("f"));
        let (a, b) = (chains.push(a, None), chains.push(b, None));
        assert_ne!(a, b);
        assert!(chains.same_lines(a, b));
    }

    #[test]
    fn the_common_suffix_is_the_nearest_common_caller() {
        let mut chains = Chains::new();
        let a = chain(&mut chains, &[1, 5, 9]);
        let b = chain(&mut chains, &[2, 5, 9]);
        let common = chain(&mut chains, &[5, 9]);
        assert_eq!(chains.common_suffix(a, b), Some(common));
        let other = chain(&mut chains, &[1, 8]);
        assert_eq!(chains.common_suffix(a, other), None);
        assert_eq!(chains.common_suffix(a, common), Some(common));
    }

    #[test]
    fn line_zero_is_shown_as_a_question_mark() {
        let mut chains = Chains::new();
        let id = chain(&mut chains, &[0, 7]);
        assert_eq!(chains.display(id).to_string(), "k.py:? <- k.py:7");
    }
}
