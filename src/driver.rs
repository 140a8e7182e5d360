//! The compiler driver: MLIR or LLVM IR in, a code object out.
#![allow(unsafe_code)]

use std::path::{Path, PathBuf};

use inkwell::context::Context as LlvmContext;
use inkwell::module::Module as LlvmModule;
use inkwell::targets::FileType;

use crate::llvm::codegen::{self, Backend};
use crate::llvm::sites::{Subprograms, Which, place};
use crate::llvm::{device_libs, link};
use crate::mlir::context::{Context, Dialects, Module, Printing};
use crate::mlir::infer::infer;
use crate::mlir::lower;
use crate::mlir::propagate::{Origin, propagate};
use crate::mlir::scopes::scopes;
use crate::refine::{Options, refine};
use crate::site::{Policy, Settings};

/// What the driver stops at.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, clap::ValueEnum)]
pub enum Emit {
    /// MLIR with its sites, before lowering.
    Mlir,
    /// Optimised LLVM IR as text.
    Llvm,
    /// Assembly.
    Asm,
    /// A relocatable object file.
    Obj,
    /// A linked code object.
    #[default]
    Hsaco,
}

/// How sites are set before lowering.
#[derive(Clone, Debug)]
pub struct Sites {
    /// How they are chosen.
    pub settings: Settings,
    /// What becomes of the originals.
    pub origin: Origin,
    /// Whether operations without a usable location get an inferred one, and instructions of the
    /// linked code object that have no line that of the instruction they serve.
    pub infer: bool,
}

/// What to compile for, and how.
#[derive(Clone, Debug)]
pub struct Job {
    /// The chip, such as `gfx942`.
    pub chip: String,
    /// The level of optimisation, 0 to 3.
    pub level: u8,
    /// Whether to make line tables.
    pub debug: bool,
    /// Where to stop.
    pub emit: Emit,
    /// The sites to set; none leaves every location as it is.
    pub sites: Option<Sites>,
    /// The folder of ROCm's bitcode libraries.
    pub device_libs: Option<PathBuf>,
    /// The kernel whose `gpu.module` is compiled, where there are several.
    pub kernel: Option<String>,
}

/// Whether a source is LLVM IR: bitcode by its magic number, text by the file's name. Bytecode
/// of MLIR is not, whatever its name.
pub fn is_llvm_ir(source: &[u8], path: &Path) -> bool {
    if source.starts_with(b"ML\xEFR") {
        return false;
    }
    source.starts_with(b"BC\xC0\xDE")
        || source.starts_with(&[0xDE, 0xC0, 0x17, 0x0B])
        || path.extension().is_some_and(|extension| extension == "ll" || extension == "bc")
}

/// Compiles a source; `path` is what diagnostics call it, and says whether text is LLVM IR.
///
/// # Errors
/// What MLIR, LLVM or the linker refuses, each naming the place.
pub fn compile(source: &[u8], path: &Path, job: &Job) -> anyhow::Result<Vec<u8>> {
    let backend = Backend::new(&job.chip, job.level)?;
    if job.emit == Emit::Hsaco {
        link::find_linker()?;
    }
    let llvm = LlvmContext::create();
    if is_llvm_ir(source, path) {
        if job.emit == Emit::Mlir {
            anyhow::bail!("'{}' is LLVM IR: --emit mlir needs MLIR", path.display());
        }
        let module = codegen::read_module(&llvm, source, &path.display().to_string())?;
        return finish(&llvm, &module, &backend, job, true);
    }
    let mut context = Context::new(Dialects::Upstream);
    let mut mlir = context.parse(source, &path.display().to_string())?;
    if let Some(sites) = &job.sites {
        propagate(mlir.ir(), &sites.settings, sites.origin);
        infer_sites(&mut mlir, sites);
    }
    if job.emit == Emit::Mlir {
        return Ok(mlir.print(Printing { generic: false, locations: true }));
    }
    lower::lower(&mut mlir, &job.chip)?;
    if job.debug {
        add_scopes(&mut mlir, job.sites.as_ref())?;
    }
    let module = translate(&mut mlir, &llvm, job)?;
    finish(&llvm, &module, &backend, job, false)
}

fn infer_sites(mlir: &mut Module<'_>, sites: &Sites) {
    if sites.infer {
        infer(mlir.ir(), &sites.settings, sites.origin);
    }
}

/// Lowering makes operations too, some of them with the function's own location.
fn add_scopes(mlir: &mut Module<'_>, sites: Option<&Sites>) -> anyhow::Result<()> {
    let settings = sites.map(|sites| sites.settings.clone()).unwrap_or_default();
    if let Some(sites) = sites {
        infer_sites(mlir, sites);
    }
    scopes(mlir.ir(), &settings)?;
    Ok(())
}

fn translate<'c>(
    mlir: &mut Module<'_>,
    llvm: &'c LlvmContext,
    job: &Job,
) -> anyhow::Result<LlvmModule<'c>> {
    let op = lower::device_module(mlir, job.kernel.as_deref())?;
    // SAFETY: the operation is one of this module's, and the context is alive.
    let raw = unsafe { mlir.translate(op, llvm.raw().cast()) }?;
    // SAFETY: the translation gives a module of that context, which nobody else owns.
    Ok(unsafe { LlvmModule::new(raw.cast()) })
}

fn finish<'c>(
    llvm: &'c LlvmContext,
    module: &LlvmModule<'c>,
    backend: &Backend,
    job: &Job,
    is_llvm_ir: bool,
) -> anyhow::Result<Vec<u8>> {
    if !job.debug {
        module.strip_debug_info();
    }
    backend.prepare(module);
    device_libs::link(llvm, module, &job.chip, job.device_libs.as_deref())?;
    let subprograms = Subprograms::of(module);
    backend.optimize(module)?;
    if let (Some(sites), true) = (&job.sites, job.debug) {
        let which = if is_llvm_ir { Which::All } else { Which::Inlined(subprograms) };
        place(module, &sites.settings, &which, sites.infer);
    }
    match job.emit {
        Emit::Mlir | Emit::Llvm => Ok(module.print_to_string().to_bytes().to_vec()),
        Emit::Asm => Ok(backend.generate(module, FileType::Assembly)?),
        Emit::Obj => Ok(backend.generate(module, FileType::Object)?),
        Emit::Hsaco => {
            let linked = link::link(&backend.generate(module, FileType::Object)?)?;
            match &job.sites {
                Some(sites) if job.debug && sites.infer => fill(linked, &sites.settings),
                _ => Ok(linked),
            }
        }
    }
}

/// Gives lines to the instructions that code generation makes without one: they have no
/// operation before the link, and only the finished object shows what they serve.
fn fill(object: Vec<u8>, settings: &Settings) -> anyhow::Result<Vec<u8>> {
    // The sites are set: each row keeps the frame it shows, but for those of no use.
    let settings = Settings { policy: Policy::Innermost, ..settings.clone() };
    let text = Box::new(|path: &str| std::fs::read_to_string(path).ok());
    let options = Options { settings, fill: true, text: Some(text), ..Options::default() };
    let (filled, _) = refine("the linked code object", object, &options)?;
    Ok(filled)
}
