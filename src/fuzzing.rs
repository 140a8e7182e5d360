//! Bodies of the fuzz tests, which `cargo test` runs briefly and cargo-fuzz at length: whatever
//! the bytes are, reading ends with a value or an error, soon and without a panic.

use crate::chain::Chains;
use crate::identity::{self, Extent};
use crate::leaf::LeafTable;
use crate::object::{Allowance, CodeObject, Function, Lister, container};
use crate::refine::{Options, refine};

/// What a fuzz test lets a file decompress, in bytes, so that many files are read in a second.
const CAP: u64 = 1 << 20;

/// Reads code objects out of any bytes, with every row, chain and instruction.
pub fn code_objects(data: &[u8]) {
    let mut chains = Chains::new();
    let Ok(contained) = container::read_with("fuzz", data.to_vec(), Allowance::of(CAP)) else {
        return;
    };
    for contained in contained {
        if let Ok(object) = CodeObject::new(contained, &mut chains) {
            look_up_all(&object, &mut chains);
        }
    }
}

/// Refines any bytes: with a value, what is loaded is what it was.
///
/// # Panics
/// Something that is loaded changed, which is a fault of the writer.
pub fn refined(data: &[u8]) {
    let options = Options { fill: true, disassembler: None, ..Options::default() };
    let Ok((new, _)) = refine("fuzz", data.to_vec(), &options) else { return };
    let elfs = |data: Vec<u8>| {
        let contained = container::read_with("fuzz", data, Allowance::of(CAP)).ok();
        contained.map(|all| all.into_iter().map(|one| one.elf).collect::<Vec<_>>())
    };
    let Some(old) = elfs(data.to_vec()) else { return };
    let new = elfs(new).unwrap_or_default();
    assert_eq!(old.len(), new.len(), "code objects were lost");
    for (old, new) in old.iter().zip(&new) {
        let same = identity::compare(old.data(), new.data(), Extent::Loaded);
        assert!(!matches!(same, Ok(Some(_))), "what is loaded changed");
    }
}

fn look_up_all(object: &CodeObject, chains: &mut Chains) {
    if let Some(debug) = &object.debug {
        for row in debug.rows() {
            debug.chain_at(row.range.start, chains);
            debug.row_at(row.range.end);
        }
    }
    let table = LeafTable::default();
    let lister = Lister { disassembler: None, table: &table };
    for function in object.functions.iter().take(16) {
        if size(function) <= CAP {
            lister.list(object, function, chains);
        }
    }
}

fn size(function: &Function) -> u64 {
    function.limit.bytes_from(function.range.start)
}

/// Replaces bytes of a file: each edit is a place, taken from the file's start around its size,
/// and the byte to put there.
pub fn edited(data: &[u8], edits: &[(u16, u8)]) -> Vec<u8> {
    let mut data = data.to_vec();
    let size = data.len();
    for &(at, byte) in edits {
        if let Some(place) = data.get_mut(usize::from(at) % size.max(1)) {
            *place = byte;
        }
    }
    data
}
