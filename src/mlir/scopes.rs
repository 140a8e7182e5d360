//! `siteline-scopes`: gives the functions of the LLVM dialect their debug-info scopes, one for
//! each function of each chain, so that every level of a chain reaches the line tables.
//!
//! `callsite(h at callsite(g at k))` becomes a call site of the same shape in which every frame
//! is `fused<scope>[frame]`: MLIR's translation makes one `inlinedAt` of each such caller. The
//! outermost frame is in the function's own subprogram, as LLVM's verifier demands.
//!
//! Debug-info attributes have no constructor that is the same in all versions of the C API, so
//! they are parsed, all in one text: each parse makes new distinct ids.

use std::fmt::Write as _;

use rustc_hash::FxHashMap;

use super::functions::{self, Function};
use super::ir::{Attribute, Ir, Loc, Op};
use super::locations::{Locations, Status};
use super::propagate;
use crate::chain::{ChainId, Frame, Sym};
use crate::object::dwarf::INFERRED_DISCRIMINATOR;
use crate::site::{self, Settings};

/// MLIR refuses the debug-info attributes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("this MLIR does not read LLVM debug-info attributes in the form that siteline writes")]
pub struct ScopesError;

/// What one run did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Summary {
    /// Functions that got a scope.
    pub functions: usize,
    /// Subprograms made, for these functions and for what is inlined in them.
    pub subprograms: usize,
}

/// The path that stands for a file nobody knows.
const NO_FILE: &str = "<unknown>";

/// Gives the device functions of the LLVM dialect at and below the root their scopes. Those
/// that have one stay as they are.
///
/// # Errors
/// MLIR refuses the debug-info attributes, as one without the LLVM dialect does.
pub fn scopes(ir: Ir<'_>, settings: &Settings) -> Result<Summary, ScopesError> {
    let mut maker = Maker::new(ir);
    let mut functions = functions::device_functions(&ir);
    functions.retain(|function| is_open(&mut maker.locations, function.op));
    let plans: Vec<Plan<'_>> =
        functions.iter().map(|function| maker.plan(function, settings)).collect();
    if plans.is_empty() {
        return Ok(Summary::default());
    }
    let attributes = ir.parse_array(&maker.text()).ok_or(ScopesError)?;
    for plan in &plans {
        maker.apply(plan, &attributes);
    }
    Ok(Summary { functions: plans.len(), subprograms: maker.subprograms.len() })
}

/// Whether a function of the LLVM dialect has a body and no scope.
fn is_open<'m>(locations: &mut Locations<'m>, op: Op<'m>) -> bool {
    let ir = locations.ir();
    ir.text(ir.name(op)) == "llvm.func"
        && ir.first_region(op).and_then(|region| ir.first_block(region)).is_some()
        && locations.read(ir.location(op)).status != Status::Scoped
}

/// What tells subprograms apart.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key<'m> {
    /// A function that is there.
    Function(Op<'m>),
    /// One that was inlined, by its name and file; without a name, by the line.
    Inlined { name: Option<Sym>, file: Sym, line: u32 },
}

struct Subprogram {
    name: String,
    file: String,
    line: u32,
}

/// A scope of locations: a subprogram, or a part of it in another file or marked.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Scope {
    subprogram: usize,
    file: Sym,
    inferred: bool,
}

/// What one function gets.
struct Plan<'m> {
    op: Op<'m>,
    /// The scope of the function itself, and its line.
    own: usize,
    line: u32,
    file: Sym,
    /// By distinct location: its frames, innermost first, each with its scope.
    targets: FxHashMap<Loc<'m>, Vec<(Frame, usize)>>,
}

struct Maker<'m> {
    locations: Locations<'m>,
    subprograms: Vec<Subprogram>,
    keys: FxHashMap<Key<'m>, usize>,
    scopes: Vec<Scope>,
    scope_keys: FxHashMap<Scope, usize>,
}

impl<'m> Maker<'m> {
    fn new(ir: Ir<'m>) -> Self {
        Maker {
            locations: Locations::new(ir),
            subprograms: Vec::new(),
            keys: FxHashMap::default(),
            scopes: Vec::new(),
            scope_keys: FxHashMap::default(),
        }
    }

    fn plan(&mut self, function: &Function<'m>, settings: &Settings) -> Plan<'m> {
        let ir = self.locations.ir();
        let mut distinct = Vec::new();
        let mut seen = rustc_hash::FxHashSet::default();
        functions::walk(
            &ir,
            function.op,
            |op| {
                let location = ir.location(op);
                if seen.insert(location) {
                    distinct.push(location);
                }
            },
            |_| (),
        );
        let symbol = function.symbol.as_deref().unwrap_or_default();
        let chains: Vec<_> =
            distinct.into_iter().map(|location| (location, self.chain(location, symbol))).collect();
        let (subprogram, file, line) = self.add_function(function, settings, &chains);
        let own = self.scope(Scope { subprogram, file, inferred: false });
        let mut targets = FxHashMap::default();
        for (location, chain) in chains {
            let Some(chain) = chain else { continue };
            let inferred = self.locations.read(location).status == Status::Inferred;
            targets.insert(location, self.frames(chain, subprogram, inferred));
        }
        Plan { op: function.op, own, line, file, targets }
    }

    /// The chain that a location shows, without host frames.
    fn chain(&mut self, location: Loc<'m>, symbol: &str) -> Option<ChainId> {
        let shown = self.locations.read(location).shown?;
        let chains = &mut self.locations.chains;
        let mut frames: Vec<Frame> = chains.frames(shown).collect();
        site::cut_host_frames(chains, symbol, &mut frames);
        chains.intern(frames)
    }

    /// The subprogram of a function that is there, with its file and line.
    fn add_function(
        &mut self,
        function: &Function<'m>,
        settings: &Settings,
        chains: &[(Loc<'m>, Option<ChainId>)],
    ) -> (usize, Sym, u32) {
        let definition = propagate::definition(&mut self.locations, settings, function);
        let chains_of = &mut self.locations.chains;
        let symbol = function.symbol.clone().unwrap_or_default();
        let outermost = |&(_, chain): &(Loc<'m>, Option<ChainId>)| {
            Some(chains_of.innermost(chains_of.suffixes(chain?).last()?))
        };
        let named = chains.iter().filter_map(outermost).find_map(|frame| {
            let name = chains_of.str(frame.function?);
            site::is_kernel_function(name, &symbol).then(|| name.to_owned())
        });
        let (file, line) = match definition.map(|chain| chains_of.innermost(chain)) {
            Some(frame) => (frame.file, frame.line),
            None => (chains_of.sym(NO_FILE), 0),
        };
        let subprogram =
            Subprogram { name: named.unwrap_or(symbol), file: chains_of.str(file).into(), line };
        self.keys.insert(Key::Function(function.op), self.subprograms.len());
        self.subprograms.push(subprogram);
        (self.subprograms.len() - 1, file, line)
    }

    fn frames(&mut self, chain: ChainId, own: usize, inferred: bool) -> Vec<(Frame, usize)> {
        let frames: Vec<Frame> = self.locations.chains.frames(chain).collect();
        let last = frames.len() - 1;
        let scoped = frames.into_iter().enumerate().map(|(level, frame)| {
            let subprogram = if level == last { own } else { self.inlined(frame) };
            let inferred = inferred && level == 0;
            (frame, self.scope(Scope { subprogram, file: frame.file, inferred }))
        });
        scoped.collect()
    }

    /// The subprogram that an inlined frame is in: named as the location says, else as the
    /// source says, else after the line.
    fn inlined(&mut self, frame: Frame) -> usize {
        let chains = &mut self.locations.chains;
        let outline = self.locations.outlines.borrow_mut().of(chains.str(frame.file));
        let known = match frame.function {
            Some(name) => outline.named(chains.str(name), frame.line),
            None => outline.enclosing(frame.line),
        };
        let line = known.map_or(0, |function| function.line);
        let name = frame.function.or_else(|| known.map(|known| chains.sym(&known.name)));
        let key_line = if name.is_some() { line } else { frame.line };
        let key = Key::Inlined { name, file: frame.file, line: key_line };
        let subprograms = &mut self.subprograms;
        *self.keys.entry(key).or_insert_with(|| {
            let place = || chains.display_line(frame.line()).to_string();
            subprograms.push(Subprogram {
                name: name.map_or_else(place, |name| chains.str(name).into()),
                file: chains.str(frame.file).into(),
                line: key_line,
            });
            subprograms.len() - 1
        })
    }

    fn scope(&mut self, scope: Scope) -> usize {
        let Maker { scopes, scope_keys, .. } = self;
        *scope_keys.entry(scope).or_insert_with(|| {
            scopes.push(scope);
            scopes.len() - 1
        })
    }

    /// All scopes as the text of one array attribute.
    fn text(&self) -> String {
        let unit = format!(
            "#llvm.di_compile_unit<id = distinct[0]<>, sourceLanguage = DW_LANG_C, \
             file = {}, producer = \"siteline\", isOptimized = true, \
             emissionKind = Full, nameTableKind = None>",
            file_text(&self.subprograms[0].file)
        );
        let mut text = String::from("[");
        for (at, scope) in self.scopes.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            let subprogram = &self.subprograms[scope.subprogram];
            let of = subprogram.text(scope.subprogram + 1, &unit);
            let file = self.locations.chains.str(scope.file);
            let discriminator = if scope.inferred { INFERRED_DISCRIMINATOR } else { 0 };
            let written = if file == subprogram.file && !scope.inferred {
                write!(text, "{separator}{of}")
            } else {
                write!(
                    text,
                    "{separator}#llvm.di_lexical_block_file<scope = {of}, file = {}, \
                     discriminator = {discriminator}>",
                    file_text(file)
                )
            };
            written.expect("a string takes any text");
        }
        text + "]"
    }

    fn apply(&mut self, plan: &Plan<'m>, attributes: &[Attribute<'m>]) {
        let ir = self.locations.ir();
        let function = ir.location(plan.op);
        ir.set_location(plan.op, ir.fused(&[function], Some(attributes[plan.own])));
        let own = ir.file_loc(self.locations.chains.str(plan.file), plan.line, 0);
        let own = ir.fused(&[own], Some(attributes[plan.own]));
        let mut built: FxHashMap<Loc<'m>, Loc<'m>> = FxHashMap::default();
        functions::walk(
            &ir,
            plan.op,
            |op| {
                let location = ir.location(op);
                match plan.targets.get(&location) {
                    Some(frames) => {
                        let build = || self.build(location, frames, attributes);
                        ir.set_location(op, *built.entry(location).or_insert_with(build));
                    }
                    // LLVM's verifier wants a line on every call that could be inlined.
                    None if ir.text(ir.name(op)).starts_with("llvm.") && is_call(&ir, op) => {
                        ir.set_location(op, own);
                    }
                    None => ir.set_location(op, ir.unknown()),
                }
            },
            |_| (),
        );
    }

    /// Nested call sites of scoped frames. What the location was stays as metadata, unless the
    /// result says the same.
    fn build(
        &mut self,
        location: Loc<'m>,
        frames: &[(Frame, usize)],
        attributes: &[Attribute<'m>],
    ) -> Loc<'m> {
        let ir = self.locations.ir();
        let original = self.locations.read(location).original;
        let chains = &self.locations.chains;
        let keeps =
            matches!(ir.kind(location), super::ir::LocKind::Fused { .. }) || original != location;
        let mut outer = None;
        for (level, &(frame, scope)) in frames.iter().enumerate().rev() {
            let place = ir.file_loc(chains.str(frame.file), frame.line, frame.column);
            let place = match frame.function {
                Some(function) => ir.named(chains.str(function), place),
                None => place,
            };
            let place = if level == 0 && keeps {
                ir.fused(&[place], Some(ir.location_attribute(original)))
            } else {
                place
            };
            let scoped = ir.fused(&[place], Some(attributes[scope]));
            outer = Some(match outer {
                Some(outer) => ir.call_site(scoped, outer),
                None => scoped,
            });
        }
        outer.expect("a chain has at least one frame")
    }
}

fn is_call<'m>(ir: &Ir<'m>, op: Op<'m>) -> bool {
    matches!(&*ir.text(ir.name(op)), "llvm.call" | "llvm.invoke")
}

impl Subprogram {
    fn text(&self, id: usize, unit: &str) -> String {
        let Subprogram { name, file, line } = self;
        let file = file_text(file);
        format!(
            "#llvm.di_subprogram<id = distinct[{id}]<>, compileUnit = {unit}, scope = {file}, \
             name = {}, file = {file}, line = {line}, scopeLine = {line}, \
             subprogramFlags = \"Definition|Optimized\", type = #llvm.di_subroutine_type<>>",
            quoted(name),
        )
    }
}

/// A file without a directory: a path in a line table is then the path that the front end wrote,
/// whatever the directory of the compilation unit.
fn file_text(path: &str) -> String {
    format!("#llvm.di_file<{} in \"\">", quoted(path))
}

/// A text as a string of MLIR's syntax.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b' '..=b'~' if byte != b'"' && byte != b'\\' => quoted.push(byte.into()),
            _ => write!(quoted, "\\{byte:02X}").expect("a string takes any text"),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_mlir_reads_them() {
        assert_eq!(quoted("a\"b\\c\u{e9}\n"), "\"a\\22b\\5Cc\\C3\\A9\\0A\"");
    }
}
