//! Locations in the form that upstream's scope pass can take.
//!
//! `ensure-debug-info-scope-on-llvm-func` of MLIR 22 crashes on a call site outside a function,
//! such as that of an LDS array which a helper declares, and on `callsite(unknown at x)`.

use super::functions;
use super::ir::{Ir, Loc, LocKind};
use super::locations::Locations;

/// Replaces the locations at and below the root that upstream's scope pass crashes on: outside
/// functions by the innermost frame, elsewhere by the frames that are known.
pub fn normalize(ir: Ir<'_>) {
    let mut locations = Locations::new(ir);
    let mut open = vec![ir.root()];
    while let Some(op) = open.pop() {
        let location = ir.location(op);
        if let Some(target) = outside_function(&mut locations, location) {
            ir.set_location(op, target);
        }
        if ir.text(ir.name(op)) == "llvm.func" {
            functions::walk(&ir, op, |op| inside_function(&mut locations, op), |_| ());
        } else {
            open.extend(functions::operations_in(&ir, op));
        }
    }
}

fn outside_function<'m>(locations: &mut Locations<'m>, location: Loc<'m>) -> Option<Loc<'m>> {
    let LocKind::CallSite { .. } = locations.ir().kind(location) else { return None };
    let shown = locations.read(location).shown;
    Some(match shown {
        Some(chain) => locations.frame_location(chain),
        None => locations.ir().unknown(),
    })
}

fn inside_function<'m>(locations: &mut Locations<'m>, op: super::ir::Op<'m>) {
    let ir = locations.ir();
    let location = ir.location(op);
    if has_unknown_callee(ir, location) {
        let target = match locations.read(location).shown {
            Some(chain) => locations.build(chain),
            None => ir.unknown(),
        };
        ir.set_location(op, target);
    }
}

/// Whether a call site, however deep, has no place of its own.
fn has_unknown_callee<'m>(ir: Ir<'m>, location: Loc<'m>) -> bool {
    let mut open = vec![location];
    while let Some(next) = open.pop() {
        match ir.kind(next) {
            LocKind::CallSite { callee, caller } => {
                if ir.kind(callee) == LocKind::Unknown {
                    return true;
                }
                open.extend([callee, caller]);
            }
            LocKind::Name { child, .. } => open.push(child),
            LocKind::Fused { .. } => open.extend(ir.fused_children(next)),
            LocKind::Unknown | LocKind::File { .. } | LocKind::Alias(_) => {}
        }
    }
    false
}
