//! ROCm's device libraries: `__ocml_*` and `__ockl_*` functions that code calls.

use std::path::{Path, PathBuf};

use inkwell::AddressSpace;
use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use inkwell::values::{BasicValue, FunctionValue, IntValue};

use super::codegen::{self, CodegenError};

/// A library that is needed and cannot be linked.
#[derive(Debug, thiserror::Error)]
pub enum DeviceLibError {
    /// Functions without a definition, and no libraries to look in.
    #[error("the code calls {}, which the module does not define: pass --device-libs with the folder of ROCm's bitcode (ocml.bc, ockl.bc)", .0.join(", "))]
    Missing(Vec<String>),
    /// Functions without a definition in the libraries either.
    #[error("the code calls {}, which neither the module nor the device libraries define", .0.join(", "))]
    Undefined(Vec<String>),
    /// A library that is not there.
    #[error("cannot read '{}': {reason}", path.display())]
    Read {
        /// The library's path.
        path: PathBuf,
        /// The system's reason.
        reason: std::io::Error,
    },
    /// A library that LLVM refuses.
    #[error(transparent)]
    Library(#[from] CodegenError),
    /// Linking failed.
    #[error("cannot link '{}': {reason}", path.display())]
    Link {
        /// The library's path.
        path: PathBuf,
        /// What LLVM says.
        reason: String,
    },
}

/// Libraries by the prefix of the functions they define.
const LIBRARIES: &[(&str, &str)] = &[("__ocml_", "ocml.bc"), ("__ockl_", "ockl.bc")];

/// Links the device libraries that a module needs from a folder, if it needs any.
///
/// # Errors
/// A call of a function that nothing defines, or a library that cannot be read.
pub fn link<'c>(
    context: &'c Context,
    module: &Module<'c>,
    chip: &str,
    folder: Option<&Path>,
) -> Result<(), DeviceLibError> {
    let missing = undefined(module);
    if missing.is_empty() {
        return Ok(());
    }
    let Some(folder) = folder else { return Err(DeviceLibError::Missing(missing)) };
    for (prefix, file) in LIBRARIES {
        if undefined(module).iter().any(|name| name.starts_with(prefix)) {
            link_library(context, module, &folder.join(file))?;
        }
    }
    add_control_variables(module, chip);
    let missing = undefined(module);
    if missing.is_empty() { Ok(()) } else { Err(DeviceLibError::Undefined(missing)) }
}

fn functions<'c>(module: &Module<'c>) -> Vec<FunctionValue<'c>> {
    module.get_functions().collect()
}

fn name(function: FunctionValue<'_>) -> String {
    function.get_name().to_string_lossy().into_owned()
}

/// Called functions that are neither defined nor intrinsics.
fn undefined(module: &Module<'_>) -> Vec<String> {
    functions(module)
        .into_iter()
        .filter(|function| function.count_basic_blocks() == 0)
        .filter(|function| function.as_global_value().as_pointer_value().get_first_use().is_some())
        .map(name)
        .filter(|name| !name.starts_with("llvm."))
        .collect()
}

/// Links a whole library and makes what it defines internal, so that what is not called goes.
fn link_library<'c>(
    context: &'c Context,
    module: &Module<'c>,
    path: &Path,
) -> Result<(), DeviceLibError> {
    let bytes =
        std::fs::read(path).map_err(|reason| DeviceLibError::Read { path: path.into(), reason })?;
    let library = codegen::read_module(context, &bytes, &path.display().to_string())?;
    library.set_triple(&module.get_triple());
    library.set_data_layout(&module.get_data_layout());
    let own: Vec<String> = functions(module).into_iter().map(name).collect();
    let linked = module.link_in_module(library);
    linked
        .map_err(|error| DeviceLibError::Link { path: path.into(), reason: error.to_string() })?;
    for function in functions(module) {
        let is_new = !own.contains(&name(function)) || name(function).starts_with("__oc");
        if is_new && function.count_basic_blocks() > 0 {
            function.set_linkage(Linkage::Internal);
        }
    }
    Ok(())
}

/// The constants by which ROCm's libraries know how to compute, with hipcc's defaults.
fn add_control_variables(module: &Module<'_>, chip: &str) {
    let context = module.get_context();
    let wave64 = u64::from(chip.starts_with("gfx9"));
    let bytes = [
        ("__oclc_finite_only_opt", 0),
        ("__oclc_unsafe_math_opt", 0),
        ("__oclc_daz_opt", 0),
        ("__oclc_correctly_rounded_sqrt32", 1),
        ("__oclc_wavefrontsize64", wave64),
    ];
    for (name, value) in bytes {
        define(module, name, context.i8_type().const_int(value, false));
    }
    let words = [("__oclc_ISA_version", isa_version(chip)), ("__oclc_ABI_version", 600)];
    for (name, value) in words {
        define(module, name, context.i32_type().const_int(value, false));
    }
}

fn define<'c>(module: &Module<'c>, name: &str, value: IntValue<'c>) {
    const CONSTANT_MEMORY: u16 = 4;
    let Some(old) = module.get_global(name) else { return };
    let space = Some(AddressSpace::from(CONSTANT_MEMORY));
    let new = module.add_global(value.get_type(), space, &format!("{name}.value"));
    new.set_initializer(&value);
    new.set_constant(true);
    new.set_linkage(Linkage::Internal);
    old.as_pointer_value().replace_all_uses_with(new.as_pointer_value());
}

/// The libraries' number of a chip: 1000 times the major version, 100 times the minor one, and
/// the stepping, a hexadecimal digit. `gfx90a` is 9010, `gfx1201` is 12001.
fn isa_version(chip: &str) -> u64 {
    let digits = chip.trim_start_matches("gfx");
    if !digits.is_ascii() || digits.len() < 3 {
        return 0;
    }
    let (major, rest) = digits.split_at(digits.len() - 2);
    let (minor, stepping) = rest.split_at(1);
    let number = |text: &str, radix| u64::from_str_radix(text, radix).unwrap_or(0);
    number(major, 10) * 1000 + number(minor, 10) * 100 + number(stepping, 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_have_the_libraries_numbers() {
        for (chip, version) in
            [("gfx90a", 9010), ("gfx942", 9402), ("gfx1100", 11000), ("gfx1201", 12001)]
        {
            assert_eq!(isa_version(chip), version, "{chip}");
        }
    }
}
