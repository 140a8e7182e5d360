//! Lowering to the LLVM dialect with upstream's passes.

use super::api::RawOperation;
use super::context::{MlirError, Module};
use super::functions;
use super::ir::Ir;

/// What is wrong with the shape of a module that is to be compiled.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ShapeError {
    /// No GPU code in the module.
    #[error("no gpu.module and no function in the LLVM dialect: nothing to compile for a GPU")]
    NoDeviceCode,
    /// Several `gpu.module`s, and none chosen.
    #[error("several gpu.modules ({}): choose one with --kernel and the name of a kernel in it", .0.join(", "))]
    SeveralModules(Vec<String>),
    /// The kernel asked for is not there.
    #[error("no kernel '{asked}': there is {}", .kernels.join(", "))]
    NoSuchKernel {
        /// The name asked for.
        asked: String,
        /// The names of the kernels that are there.
        kernels: Vec<String>,
    },
}

/// The upstream passes that lower what a `gpu.module` may hold to the LLVM dialect. No pass
/// among them merges operations, so each keeps its own location.
fn gpu_module_pipeline(chip: &str) -> String {
    let passes = [
        format!("convert-amdgpu-to-rocdl{{chipset={chip}}}"),
        "convert-vector-to-scf".into(),
        "lower-affine".into(),
        "convert-scf-to-cf".into(),
        "expand-strided-metadata".into(),
        "lower-affine".into(),
        format!("convert-gpu-to-rocdl{{chipset={chip} runtime=HIP}}"),
        "convert-vector-to-llvm".into(),
        "convert-to-llvm".into(),
        "reconcile-unrealized-casts".into(),
    ];
    format!("builtin.module(gpu.module({}))", passes.join(","))
}

/// Lowers a module's GPU code to the LLVM dialect.
///
/// # Errors
/// What an upstream pass refuses.
pub fn lower(module: &mut Module<'_>, chip: &str) -> Result<(), MlirError> {
    module.run_pipeline(&gpu_module_pipeline(chip))
}

/// The operation to translate: the `gpu.module` that has the kernel asked for, or the only one;
/// without any, the whole module if it has functions in the LLVM dialect.
///
/// # Errors
/// There is none, or several and none was chosen.
pub fn device_module(
    module: &mut Module<'_>,
    kernel: Option<&str>,
) -> Result<RawOperation, ShapeError> {
    let ir = module.ir();
    let gpu_modules: Vec<_> = functions::operations_in(&ir, ir.root())
        .filter(|op| ir.text(ir.name(*op)) == "gpu.module")
        .collect();
    let candidates = if gpu_modules.is_empty() { vec![ir.root()] } else { gpu_modules };
    let symbols = |op| -> Vec<String> {
        let functions = functions::operations_in(&ir, op).filter(|inner| {
            ir.text(ir.name(*inner)) == "llvm.func" && ir.first_region(*inner).is_some()
        });
        functions.filter_map(|function| symbol(&ir, function)).collect()
    };
    if let Some(asked) = kernel {
        return candidates
            .iter()
            .find(|op| symbols(**op).iter().any(|name| name == asked))
            .map(|op| op.raw())
            .ok_or_else(|| ShapeError::NoSuchKernel {
                asked: asked.into(),
                kernels: candidates.iter().flat_map(|op| symbols(*op)).collect(),
            });
    }
    match candidates[..] {
        [only] if only != ir.root() || !symbols(only).is_empty() => Ok(only.raw()),
        [_] => Err(ShapeError::NoDeviceCode),
        _ => {
            let names = candidates.iter().filter_map(|op| symbol(&ir, *op));
            Err(ShapeError::SeveralModules(names.collect()))
        }
    }
}

fn symbol<'m>(ir: &Ir<'m>, op: super::ir::Op<'m>) -> Option<String> {
    Some(ir.string(ir.attribute(op, "sym_name")?)?.into_owned())
}
