//! Bodies of the fuzz tests, which `cargo test` runs briefly and cargo-fuzz at length: whatever
//! the bytes are, reading ends with a value or an error, soon and without a panic.

use crate::chain::Chains;
use crate::leaf::LeafTable;
use crate::object::{Allowance, CodeObject, Function, Lister, container};

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
