//! Other names for inlined functions.
//!
//! A name is on the description of a function, which many entries share, so that those get
//! descriptions of their own, behind all that is in the last unit: nothing is moved by that. The
//! entries of other units lead there by a reference of the same size that may leave its unit.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::object::error::{Fault, Problem};

use super::abbreviations::Changes;
use super::leb;
use super::ranges::{Sections, put};
use super::tree::{Field, Node, Tree, Unit, section};

/// The names of inlined functions, by node.
pub(crate) type Names = BTreeMap<u32, Box<str>>;

/// The bytes of a reference of DWARF's 32-bit format.
const REFERENCE: usize = 4;

/// The last unit, and where descriptions can be added to it.
pub(super) fn place(tree: &Tree) -> Option<(&Unit, usize)> {
    let last = tree.units.last().filter(|unit| !unit.wide)?;
    Some((last, last.close?))
}

impl Tree {
    /// Whether a node can be described anew.
    pub(crate) fn takes_name(&self, node: u32) -> bool {
        reference(self, &self.nodes[node as usize]).is_some()
    }
}

/// Gives nodes names, and notes what that changes in their abbreviations. Nodes whose
/// references cannot lead to the end of the section keep the names that they have.
pub(super) fn rename(
    tree: &Tree,
    names: &Names,
    sections: &mut Sections<'_>,
    changes: &mut Changes,
) -> Result<(), Fault> {
    let Some((last, close)) = place(tree) else { return Ok(()) };
    let named: Vec<(u32, &str)> = names
        .iter()
        .filter(|(node, _)| reference(tree, &tree.nodes[**node as usize]).is_some())
        .map(|(node, name)| (*node, &**name))
        .collect();
    let (descriptions, places) = describe(&named, last.free_code);
    let end = sections.info.len() + descriptions.len();
    if named.is_empty() || u32::try_from(end).is_err() {
        return Ok(());
    }
    let outside = |at: usize| {
        let what = Problem::EndsEarly("the compilation unit".into());
        Fault::within(section(), at as u64, what)
    };
    changes.described = Some((last.abbreviations.value, last.free_code));
    changes.global = leaving(tree, &named);
    let names: FxHashMap<u32, &str> = named.into_iter().collect();
    for (at, node) in tree.nodes.iter().enumerate() {
        let name = names.get(&(at as u32));
        let global = changes.global.contains(&key(tree, node));
        let Some((field, unit)) = reference(tree, node).filter(|_| name.is_some() || global) else {
            continue;
        };
        let start = if field.form == gimli::DW_FORM_ref_addr { 0 } else { unit.start };
        let to = name.map_or(start as u64 + field.value, |name| (close + places[name]) as u64);
        let from = if global { 0 } else { start };
        put(sections.info, field.at, field.size, to - from as u64)
            .ok_or_else(|| outside(field.at))?;
    }
    let length = sections.info.get(last.start..).and_then(|unit| unit.first_chunk());
    let length = u32::from_le_bytes(*length.ok_or_else(|| outside(last.start))?);
    let length = u64::from(length) + descriptions.len() as u64;
    put(sections.info, last.start, REFERENCE, length).ok_or_else(|| outside(last.start))?;
    if close > sections.info.len() {
        return Err(outside(close));
    }
    sections.info.splice(close..close, descriptions);
    Ok(())
}

fn key(tree: &Tree, node: &Node) -> (u64, u64) {
    (tree.units[node.unit as usize].abbreviations.value, node.code)
}

/// Where a node says which function it is a copy of, if that can lead to another unit.
fn reference<'t>(tree: &'t Tree, node: &Node) -> Option<(Field, &'t Unit)> {
    let unit = tree.units.get(node.unit as usize).filter(|unit| !unit.wide && unit.version >= 3)?;
    let leads = |origin: &Field| {
        origin.size == REFERENCE
            && [gimli::DW_FORM_ref4, gimli::DW_FORM_ref_addr].contains(&origin.form)
    };
    Some((node.origin.filter(leads)?, unit))
}

/// The abbreviations of named nodes outside the last unit.
fn leaving(tree: &Tree, named: &[(u32, &str)]) -> FxHashSet<(u64, u64)> {
    let last = tree.units.len() as u32 - 1;
    let nodes = named.iter().map(|(node, _)| &tree.nodes[*node as usize]);
    nodes.filter(|node| node.unit != last).map(|node| key(tree, node)).collect()
}

/// One description for each name, and where each is among them.
fn describe<'n>(named: &[(u32, &'n str)], code: u64) -> (Vec<u8>, FxHashMap<&'n str, usize>) {
    let (mut out, mut places) = (Vec::new(), FxHashMap::default());
    for &(_, name) in named {
        places.entry(name).or_insert_with(|| {
            let place = out.len();
            leb::unsigned(&mut out, code);
            out.extend(name.bytes().chain([0]));
            out.push(gimli::DW_INL_inlined.0);
            place
        });
    }
    (out, places)
}
