//! `siteline-restore`: puts the locations back that siteline replaced.

use super::functions;
use super::ir::Ir;
use super::locations::Locations;

/// Restores every location at and below the root whose original was kept; returns how many
/// operations changed. A site whose original was dropped stays.
pub fn restore(ir: Ir<'_>) -> usize {
    let locations = std::cell::RefCell::new(Locations::new(ir));
    let original = |location| locations.borrow_mut().read(location).original;
    let mut changed = 0;
    let mut restore_op = |op| {
        let location = ir.location(op);
        let original = original(location);
        if original != location {
            ir.set_location(op, original);
            changed += 1;
        }
    };
    restore_op(ir.root());
    functions::walk(&ir, ir.root(), restore_op, |argument| {
        let location = ir.value_location(argument);
        let original = original(location);
        if original != location {
            ir.set_argument_location(argument, original);
        }
    });
    changed
}
