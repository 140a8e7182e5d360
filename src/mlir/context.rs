//! A context of the linked MLIR, with what was said in it.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::path::Path;

use super::api::{Api, RawOperation, RawStringRef};
use super::ir::Ir;
use crate::plugin::driver;

/// Which dialects a context knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialects {
    /// Every upstream dialect; operations of others are refused.
    Upstream,
    /// Every upstream dialect; operations of others are taken as they are.
    UpstreamAndUnknown,
    /// Only `builtin`; operations of all others are taken as they are, in generic form.
    Builtin,
}

/// MLIR that was refused, with the diagnostics that say where and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}", .diagnostics.join("; "))]
pub struct MlirError {
    /// What MLIR said, `file:line:column: message` each, errors and their notes.
    pub diagnostics: Vec<String>,
}

/// An MLIR context. Its passes run on the calling thread only.
pub struct Context {
    raw: mlir_sys::MlirContext,
    /// Boxed, since MLIR keeps the vector's address.
    #[allow(clippy::box_collection)]
    diagnostics: Box<Vec<String>>,
}

// SAFETY: a context may be used from any one thread at a time, and `Context` is not `Sync`.
unsafe impl Send for Context {}

fn string_ref(text: &str) -> mlir_sys::MlirStringRef {
    mlir_sys::MlirStringRef { data: text.as_ptr().cast(), length: text.len() }
}

unsafe extern "C" fn append(piece: mlir_sys::MlirStringRef, text: *mut c_void) {
    if piece.length > 0 {
        // SAFETY: the caller of the printing function passed a vector, and MLIR a valid piece.
        unsafe {
            let piece = std::slice::from_raw_parts(piece.data.cast::<u8>(), piece.length);
            (*text.cast::<Vec<u8>>()).extend_from_slice(piece);
        }
    }
}

fn printed(print: impl FnOnce(mlir_sys::MlirStringCallback, *mut c_void)) -> Vec<u8> {
    let mut text: Vec<u8> = Vec::new();
    print(Some(append), (&raw mut text).cast());
    text
}

unsafe extern "C" fn note_diagnostic(
    diagnostic: mlir_sys::MlirDiagnostic,
    diagnostics: *mut c_void,
) -> mlir_sys::MlirLogicalResult {
    // SAFETY: `Context::new` registered its own vector, which outlives the context, and the
    // diagnostic is valid during the call.
    unsafe {
        if mlir_sys::mlirDiagnosticGetSeverity(diagnostic)
            == mlir_sys::MlirDiagnosticSeverity_MlirDiagnosticError
        {
            let message = printed(|f, data| mlir_sys::mlirDiagnosticPrint(diagnostic, f, data));
            let location = mlir_sys::mlirDiagnosticGetLocation(diagnostic);
            let location = printed(|f, data| mlir_sys::mlirLocationPrint(location, f, data));
            let text = format!(
                "{}: {}",
                readable_location(&String::from_utf8_lossy(&location)),
                String::from_utf8_lossy(&message)
            );
            (*diagnostics.cast::<Vec<String>>()).push(text);
        }
    }
    mlir_sys::MlirLogicalResult { value: 1 }
}

/// `loc("k.mlir":3:4)` as `k.mlir:3:4`; other locations as MLIR prints them.
fn readable_location(text: &str) -> String {
    let inner = text.strip_prefix("loc(").and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    match inner.strip_prefix('"').and_then(|rest| rest.split_once("\":")) {
        Some((file, place)) if !place.contains('"') => format!("{file}:{place}"),
        _ => inner.into(),
    }
}

impl Context {
    /// A context that knows these dialects.
    pub fn new(dialects: Dialects) -> Self {
        let mut diagnostics = Box::<Vec<String>>::default();
        // SAFETY: plain construction through the C API; the registry is destroyed once its
        // dialects are in the context, and the handler's vector is boxed, so it stays in place.
        let raw = unsafe {
            let registry = mlir_sys::mlirDialectRegistryCreate();
            if dialects != Dialects::Builtin {
                mlir_sys::mlirRegisterAllDialects(registry);
            }
            let raw = mlir_sys::mlirContextCreateWithRegistry(registry, false);
            mlir_sys::mlirDialectRegistryDestroy(registry);
            mlir_sys::mlirContextSetAllowUnregisteredDialects(raw, dialects != Dialects::Upstream);
            if dialects != Dialects::Builtin {
                mlir_sys::mlirRegisterAllLLVMTranslations(raw);
            }
            let data = (&raw mut *diagnostics).cast();
            mlir_sys::mlirContextAttachDiagnosticHandler(raw, Some(note_diagnostic), data, None);
            raw
        };
        Context { raw, diagnostics }
    }

    /// Parses MLIR text or bytecode; `name` is what locations and diagnostics call the input.
    ///
    /// # Errors
    /// What MLIR refuses, with its diagnostics.
    pub fn parse(&mut self, source: &[u8], name: &str) -> Result<Module<'_>, MlirError> {
        let mut text = Vec::with_capacity(source.len() + 1);
        text.extend_from_slice(source);
        text.push(0);
        let op = driver::parse_module(self.raw.ptr as usize, &text[..source.len()], name);
        if op == 0 {
            return Err(self.error());
        }
        let raw = mlir_sys::MlirOperation { ptr: op as *mut c_void };
        Ok(Module { context: self, raw })
    }

    fn error(&mut self) -> MlirError {
        let mut diagnostics = std::mem::take(&mut *self.diagnostics);
        if diagnostics.is_empty() {
            diagnostics.push("MLIR gave no reason".into());
        }
        MlirError { diagnostics }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is alive, and modules borrow it, so there is none.
        unsafe { mlir_sys::mlirContextDestroy(self.raw) }
    }
}

/// How MLIR is printed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Printing {
    /// Whether operations are in generic form.
    pub generic: bool,
    /// Whether locations are printed.
    pub locations: bool,
}

/// A parsed module, which owns its operations.
pub struct Module<'c> {
    context: &'c mut Context,
    raw: mlir_sys::MlirOperation,
}

impl Module<'_> {
    /// The module's IR.
    pub fn ir(&mut self) -> Ir<'_> {
        // SAFETY: the operation is alive as long as `self`, which stays borrowed while the IR
        // is used, and it was made by the library that the linked table belongs to.
        unsafe { Ir::new(Api::linked(), RawOperation(self.raw.ptr)) }
    }

    /// The module as text.
    pub fn print(&self, printing: Printing) -> Vec<u8> {
        // SAFETY: the operation is alive, and the flags are destroyed after use.
        unsafe {
            let flags = mlir_sys::mlirOpPrintingFlagsCreate();
            mlir_sys::mlirOpPrintingFlagsEnableDebugInfo(flags, printing.locations, false);
            if printing.generic {
                mlir_sys::mlirOpPrintingFlagsPrintGenericOpForm(flags);
            }
            let mut text = printed(|callback, data| {
                mlir_sys::mlirOperationPrintWithFlags(self.raw, flags, callback, data);
            });
            mlir_sys::mlirOpPrintingFlagsDestroy(flags);
            if text.last() != Some(&b'\n') {
                text.push(b'\n');
            }
            text
        }
    }

    /// The module as bytecode.
    pub fn bytecode(&self) -> Vec<u8> {
        // SAFETY: the operation is alive.
        printed(|callback, data| unsafe {
            mlir_sys::mlirOperationWriteBytecode(self.raw, callback, data);
        })
    }

    /// Runs a textual pass pipeline, such as `builtin.module(canonicalize)`.
    ///
    /// # Errors
    /// A pipeline that cannot be read, or what a pass says when it fails.
    pub fn run_pipeline(&mut self, pipeline: &str) -> Result<(), MlirError> {
        crate::plugin::register_passes();
        static REGISTER: std::sync::Once = std::sync::Once::new();
        // SAFETY: upstream's passes are registered once, before any pipeline is parsed.
        REGISTER.call_once(|| unsafe { mlir_sys::mlirRegisterAllPasses() });
        let mut said: Vec<u8> = Vec::new();
        // SAFETY: the pass manager is created for this module's context and destroyed after
        // use; the callback gets the vector it expects.
        let ok = unsafe {
            let manager = mlir_sys::mlirPassManagerCreate(self.context.raw);
            let pipeline = mlir_sys::mlirParsePassPipeline(
                mlir_sys::mlirPassManagerGetAsOpPassManager(manager),
                string_ref(pipeline),
                Some(append),
                (&raw mut said).cast(),
            );
            let ok = pipeline.value != 0
                && mlir_sys::mlirPassManagerRunOnOp(manager, self.raw).value != 0;
            mlir_sys::mlirPassManagerDestroy(manager);
            ok
        };
        if ok {
            self.context.diagnostics.clear();
            return Ok(());
        }
        if !said.is_empty() {
            self.context.diagnostics.push(String::from_utf8_lossy(&said).trim().into());
        }
        Err(self.context.error())
    }

    /// Translates a `gpu.module` or a module in the LLVM dialect to LLVM IR in an LLVM context.
    ///
    /// # Errors
    /// What the translation refuses.
    ///
    /// # Safety
    /// `op` must be an operation of this module, and `context` a live LLVM context.
    pub unsafe fn translate(
        &mut self,
        op: RawOperation,
        context: *mut c_void,
    ) -> Result<*mut c_void, MlirError> {
        let op = mlir_sys::MlirOperation { ptr: op.0.cast_mut() };
        // SAFETY: the caller promises both handles.
        let module = unsafe { mlir_sys::mlirTranslateModuleToLLVMIR(op, context.cast()) };
        if module.is_null() { Err(self.context.error()) } else { Ok(module.cast()) }
    }
}

impl Drop for Module<'_> {
    fn drop(&mut self) {
        // SAFETY: the module owns its operation, and nothing else refers to it.
        unsafe { mlir_sys::mlirOperationDestroy(self.raw) }
    }
}

/// A module read from a file of any dialect.
///
/// Calls `work` with the module and whether it must stay in generic form. Upstream's dialects
/// are tried first, then with operations of unknown dialects taken as they are. What both
/// refuse, such as IR of a newer MLIR, is read with `builtin` alone, if it is in generic form.
///
/// # Errors
/// What MLIR refuses in all ways, or `work`'s own error.
pub fn with_module<T>(
    source: &[u8],
    path: &Path,
    work: impl FnOnce(&mut Module<'_>, bool) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let name = path.display().to_string();
    let mut refusals: Vec<MlirError> = Vec::new();
    for dialects in [Dialects::Upstream, Dialects::UpstreamAndUnknown, Dialects::Builtin] {
        let mut context = Context::new(dialects);
        match context.parse(source, &name) {
            Ok(mut module) => return work(&mut module, dialects == Dialects::Builtin),
            Err(refused) => refusals.push(refused),
        }
    }
    // What upstream's dialects say matters most, unless all they say is that one is unknown.
    let known = refusals.iter().find(|refused| !is_unregistered(refused));
    Err(known.unwrap_or(&refusals[0]).clone().into())
}

/// Whether MLIR refuses an operation only because it does not know its dialect.
fn is_unregistered(error: &MlirError) -> bool {
    error.diagnostics.iter().any(|text| text.contains("unregistered dialect"))
}

const _: () = {
    // The table's types stand for those of the C headers.
    assert!(size_of::<RawStringRef>() == size_of::<mlir_sys::MlirStringRef>());
    assert!(size_of::<RawOperation>() == size_of::<mlir_sys::MlirOperation>());
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostics_name_the_place() {
        assert_eq!(readable_location("loc(\"a b.mlir\":3:4)"), "a b.mlir:3:4");
        assert_eq!(readable_location("loc(unknown)"), "unknown");
        let mut context = Context::new(Dialects::Upstream);
        let error = context.parse(b"module {", "k.mlir").err().unwrap();
        assert!(error.to_string().starts_with("k.mlir:1:"), "{error}");
    }

    #[test]
    fn an_input_of_several_operations_gets_a_module() {
        let mut context = Context::new(Dialects::Upstream);
        let module = context.parse(b"gpu.module @a {}\ngpu.module @b {}", "k.mlir").unwrap();
        let text = String::from_utf8(module.print(Printing::default())).unwrap();
        assert!(text.starts_with("module {"), "{text}");
    }
}
