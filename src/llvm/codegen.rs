//! Optimising and generating code with the AMDGPU backend.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::sync::Once;

use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::llvm_sys;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{FlagBehavior, Module};
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{
    CodeModel, FileType, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple,
};

use crate::plugin::driver;

/// The triple of code objects for ROCm.
pub const TRIPLE: &str = "amdgcn-amd-amdhsa";

/// What LLVM refuses.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CodegenError {
    /// The chip is not one of the backend's.
    #[error(
        "unknown chip '{0}': use one of LLVM's AMDGPU processors, such as gfx90a, gfx942, gfx950, gfx1100, gfx1201 or gfx1250"
    )]
    UnknownChip(String),
    /// LLVM IR that cannot be read.
    #[error("'{path}' is not LLVM IR that LLVM 22 can read: {reason}")]
    Read {
        /// The input's path.
        path: String,
        /// What LLVM says.
        reason: String,
    },
    /// A pass, the verifier or the code generator refuses the module.
    #[error("LLVM cannot compile the module for {chip}: {reason}")]
    Compile {
        /// The chip.
        chip: String,
        /// What LLVM says.
        reason: String,
    },
}

/// The AMDGPU backend for one chip at one level of optimisation.
pub struct Backend {
    machine: TargetMachine,
    chip: String,
    level: u8,
}

fn initialize() {
    static INITIALIZE: Once = Once::new();
    INITIALIZE.call_once(|| {
        Target::initialize_amd_gpu(&InitializationConfig::default());
        // SAFETY: the handler has the signature that LLVM asks for.
        unsafe { llvm_sys::error_handling::LLVMInstallFatalErrorHandler(Some(fatal)) };
    });
}

/// LLVM calls this instead of aborting. It must not return, and LLVM's state is not usable any
/// more, so the process ends as on any input that cannot be compiled.
extern "C" fn fatal(reason: *const c_char) {
    // SAFETY: LLVM passes a C string.
    let reason = unsafe { CStr::from_ptr(reason) }.to_string_lossy();
    eprintln!("siteline: error: LLVM gave up: {reason}");
    std::process::exit(2);
}

/// Whether the AMDGPU backend knows the chip.
pub fn is_chip(chip: &str) -> bool {
    initialize();
    driver::is_amdgpu_chip(chip)
}

impl Backend {
    /// A backend for a chip; `level` is 0 to 3, as of `-O`.
    ///
    /// # Errors
    /// A chip that LLVM does not know.
    pub fn new(chip: &str, level: u8) -> Result<Self, CodegenError> {
        if !is_chip(chip) {
            return Err(CodegenError::UnknownChip(chip.into()));
        }
        let triple = TargetTriple::create(TRIPLE);
        let refused = |reason: String| CodegenError::Compile { chip: chip.into(), reason };
        let optimization = match level {
            0 => OptimizationLevel::None,
            1 => OptimizationLevel::Less,
            2 => OptimizationLevel::Default,
            _ => OptimizationLevel::Aggressive,
        };
        let machine = Target::from_triple(&triple)
            .map_err(|error| refused(error.to_string()))?
            .create_target_machine(
                &triple,
                chip,
                "",
                optimization,
                RelocMode::PIC,
                CodeModel::Default,
            )
            .ok_or_else(|| refused("no target machine".into()))?;
        Ok(Backend { machine, chip: chip.into(), level })
    }

    /// The chip.
    pub fn chip(&self) -> &str {
        &self.chip
    }

    /// Gives a module the triple and data layout of the target.
    pub fn prepare(&self, module: &Module<'_>) {
        module.set_triple(&TargetTriple::create(TRIPLE));
        module.set_data_layout(&self.machine.get_target_data().get_data_layout());
        let code_object = "amdhsa_code_object_version";
        set_flag(module, code_object, FlagBehavior::Error, CODE_OBJECT_VERSION);
        set_flag(module, "Dwarf Version", FlagBehavior::Warning, DWARF_VERSION);
    }

    fn refused(&self, reason: impl Into<String>) -> CodegenError {
        CodegenError::Compile { chip: self.chip.clone(), reason: reason.into() }
    }

    /// Verifies and optimises a module.
    ///
    /// # Errors
    /// A module that LLVM's verifier refuses.
    pub fn optimize(&self, module: &Module<'_>) -> Result<(), CodegenError> {
        module.verify().map_err(|error| self.refused(error.to_string().trim()))?;
        let passes = format!("default<O{}>", self.level);
        let said = Diagnostics::of(module);
        module
            .run_passes(&passes, &self.machine, PassBuilderOptions::create())
            .map_err(|error| self.refused(error.to_string()))?;
        said.result().map_err(|reason| self.refused(reason))
    }

    /// Generates an object file or assembly from an optimised module.
    ///
    /// # Errors
    /// What the code generator cannot do.
    pub fn generate(&self, module: &Module<'_>, kind: FileType) -> Result<Vec<u8>, CodegenError> {
        let said = Diagnostics::of(module);
        let code = self
            .machine
            .write_to_memory_buffer(module, kind)
            .map_err(|error| self.refused(error.to_string()))?;
        said.result().map_err(|reason| self.refused(reason))?;
        let code = code.as_slice();
        // A memory buffer counts the NUL that LLVM puts behind its contents.
        Ok(code.strip_suffix(&[0]).filter(|_| kind == FileType::Assembly).unwrap_or(code).to_vec())
    }
}

/// Code object version 6, in hundreds: what LLVM 22's clang and MLIR make by default.
const CODE_OBJECT_VERSION: u64 = 600;

/// The version of DWARF where the module does not say one: that of clang for AMDGPU, whose range
/// lists take a fifth of the bytes that version 4's do.
const DWARF_VERSION: u64 = 5;

/// Sets a flag of a module that has none of that name.
fn set_flag(module: &Module<'_>, name: &str, behavior: FlagBehavior, value: u64) {
    if module.get_flag(name).is_none() {
        let value = module.get_context().i32_type().const_int(value, false);
        module.add_basic_value_flag(name, behavior, value);
    }
}

/// Reads LLVM IR, text or bitcode.
///
/// # Errors
/// What LLVM cannot read.
pub fn read_module<'c>(
    context: &'c Context,
    source: &[u8],
    path: &str,
) -> Result<Module<'c>, CodegenError> {
    let buffer = MemoryBuffer::create_from_memory_range_copy(source, path);
    context.create_module_from_ir(buffer).map_err(|error| CodegenError::Read {
        path: path.into(),
        reason: one_line(&error.to_string()),
    })
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Errors that LLVM reports through a module's context while it works on it. LLVM keeps the
/// vector's address, so it is boxed.
#[allow(clippy::box_collection)]
struct Diagnostics {
    context: llvm_sys::prelude::LLVMContextRef,
    errors: Box<Vec<String>>,
}

impl Diagnostics {
    fn of(module: &Module<'_>) -> Self {
        let mut errors = Box::<Vec<String>>::default();
        // SAFETY: the module's context is alive while `self` is, and the vector is boxed, so it
        // stays in place; `drop` takes the handler off again.
        let context = unsafe {
            let context = llvm_sys::core::LLVMGetModuleContext(module.as_mut_ptr());
            let data = (&raw mut *errors).cast();
            llvm_sys::core::LLVMContextSetDiagnosticHandler(context, Some(note), data);
            context
        };
        Diagnostics { context, errors }
    }

    fn result(self) -> Result<(), String> {
        if self.errors.is_empty() { Ok(()) } else { Err(self.errors.join("; ")) }
    }
}

impl Drop for Diagnostics {
    fn drop(&mut self) {
        // SAFETY: the context is alive.
        unsafe {
            llvm_sys::core::LLVMContextSetDiagnosticHandler(
                self.context,
                None,
                std::ptr::null_mut(),
            );
        }
    }
}

extern "C" fn note(diagnostic: llvm_sys::prelude::LLVMDiagnosticInfoRef, errors: *mut c_void) {
    use llvm_sys::LLVMDiagnosticSeverity::LLVMDSError;
    // SAFETY: LLVM passes a live diagnostic and the vector that `Diagnostics` registered; the
    // description is a C string that this function owns.
    unsafe {
        if llvm_sys::core::LLVMGetDiagInfoSeverity(diagnostic) == LLVMDSError {
            let text = llvm_sys::core::LLVMGetDiagInfoDescription(diagnostic);
            let description = one_line(&CStr::from_ptr(text).to_string_lossy());
            llvm_sys::core::LLVMDisposeMessage(text);
            (*errors.cast::<Vec<String>>()).push(description);
        }
    }
}
