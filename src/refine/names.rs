//! Names of helpers that the compiler named after the kernel, from the frames' source.
//!
//! MLIR's way to DWARF, which Triton takes as well, describes one function for a whole kernel, so
//! that every inlined frame has the kernel's name.

use rustc_hash::FxHashMap;

use crate::chain::{ChainId, Chains, Frame, Sym};
use crate::object::dwarf::write::{Editable, Names};
use crate::object::{Function, Listing, Role};
use crate::outline::Outline;
use crate::site::is_kernel_function;

use super::SourceText;

/// Finds the names of a code object's inlined functions.
pub(super) struct Namer<'t> {
    text: &'t SourceText,
    outlines: FxHashMap<Sym, Outline>,
    names: FxHashMap<u32, Option<Box<str>>>,
}

impl<'t> Namer<'t> {
    pub(super) fn new(text: &'t SourceText) -> Self {
        Namer { text, outlines: FxHashMap::default(), names: FxHashMap::default() }
    }

    /// Names the inlined functions that the code of a function is in. Those of a line table
    /// that was refined before stay: their lines moved away.
    pub(super) fn add(
        &mut self,
        editable: &Editable,
        function: &Function,
        listing: &Listing,
        chains: &Chains,
    ) {
        let tree = &editable.tree;
        let code = listing.instructions.iter().filter(|located| located.role == Role::Code);
        for located in code {
            let Some(chain) = located.chain else { continue };
            let node = tree.node_at(located.instruction.address.0);
            let refined = |node| tree.program(node).is_none_or(|at| editable.programs[at].refined);
            let calls = tree.around(node).filter(|&node| tree.nodes[node as usize].call.is_some());
            let kernel = outermost(chains, chain);
            for (node, frame) in calls.zip(chains.frames(chain)) {
                let known = self.names.contains_key(&node);
                if frame.line != 0 && !known && !refined(node) && tree.takes_name(node) {
                    let name = self.name(frame, kernel, &function.name, chains);
                    self.names.insert(node, name);
                }
            }
        }
    }

    /// The name that the source has for the function around a frame, where the frame is named
    /// after the kernel and is not in it.
    fn name(
        &mut self,
        frame: Frame,
        kernel: Frame,
        symbol: &str,
        chains: &Chains,
    ) -> Option<Box<str>> {
        if frame.function != kernel.function {
            return None;
        }
        let text = self.text;
        let outline = self.outlines.entry(frame.file).or_insert_with(|| {
            let path = Some(chains.str(frame.file)).filter(|path| path.ends_with(".py"));
            path.and_then(text).map(|text| Outline::of_python(&text)).unwrap_or_default()
        });
        let found = outline.enclosing(frame.line)?;
        (!is_kernel_function(&found.name, symbol)).then(|| found.name.as_str().into())
    }

    pub(super) fn finish(self) -> Names {
        self.names.into_iter().filter_map(|(node, name)| Some((node, name?))).collect()
    }
}

fn outermost(chains: &Chains, chain: ChainId) -> Frame {
    chains.frames(chain).last().unwrap_or_else(|| chains.innermost(chain))
}
