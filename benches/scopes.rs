//! Debug sections with siteline's scopes against those with upstream's, in bytes.
//!
//! `cargo bench --bench scopes` prints both for every example and chip. The sites are the same, and
//! so is everything else: upstream's `ensure-debug-info-scope-on-llvm-func` takes the place of
//! `siteline-scopes`, and the driver compiles the LLVM IR.
#![allow(unsafe_code, missing_docs)]

use std::path::Path;

use inkwell::context::Context as LlvmContext;
use inkwell::module::Module as LlvmModule;
use siteline::driver::{self, Emit, Job, Sites};
use siteline::mlir::context::{Context, Dialects};
use siteline::mlir::functions;
use siteline::mlir::infer::infer;
use siteline::mlir::ir::Ir;
use siteline::mlir::lower;
use siteline::mlir::propagate::{Origin, propagate};
use siteline::site::Settings;

const KERNELS: &[(&str, &str)] = &[
    ("flash_attention", "gfx90a"),
    ("flash_attention", "gfx942"),
    ("flash_attention", "gfx950"),
    ("pingpong_gemm", "gfx942"),
    ("pingpong_gemm", "gfx950"),
    ("wmma_gemm_gfx1100", "gfx1100"),
    ("wmma_gemm_gfx1201", "gfx1201"),
    ("wmma_gemm_gfx1250", "gfx1250"),
    ("shared_helpers", "gfx942"),
];

const UPSTREAM: &str =
    "builtin.module(ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly})";

fn job(chip: &str, sites: Option<Sites>) -> Job {
    Job {
        chip: chip.into(),
        level: 3,
        debug: true,
        emit: Emit::Hsaco,
        sites,
        device_libs: None,
        kernel: None,
    }
}

/// Upstream's pass crashes on a global of LDS whose location is a call site.
fn forget_globals(ir: Ir<'_>) {
    for module in functions::operations_in(&ir, ir.root()) {
        for op in functions::operations_in(&ir, module) {
            if ir.text(ir.name(op)) == "llvm.mlir.global" {
                ir.set_location(op, ir.unknown());
            }
        }
    }
}

/// The example as LLVM IR with the same sites and upstream's scopes.
fn with_upstream_scopes(source: &[u8], chip: &str) -> String {
    let settings = Settings::default();
    let mut context = Context::new(Dialects::Upstream);
    let mut module = context.parse(source, "example.mlir").expect("it can be read");
    propagate(module.ir(), &settings, Origin::Keep);
    infer(module.ir(), &settings, Origin::Keep);
    lower::lower(&mut module, chip).expect("it can be lowered");
    infer(module.ir(), &settings, Origin::Keep);
    forget_globals(module.ir());
    module.run_pipeline(UPSTREAM).expect("upstream's pass runs");
    let llvm = LlvmContext::create();
    let device = lower::device_module(&mut module, None).expect("one gpu.module");
    // SAFETY: the operation is the module's own, and the context outlives what is made in it.
    let module = unsafe {
        let raw = module.translate(device, llvm.raw().cast()).expect("it can be translated");
        LlvmModule::new(raw.cast())
    };
    module.print_to_string().to_string()
}

/// The bytes of the sections whose names start with `.debug_`.
fn debug_bytes(elf: &[u8]) -> u64 {
    use object::{Object as _, ObjectSection as _};
    let file = object::File::parse(elf).expect("it is an ELF file");
    let debug = file.sections().filter(|s| s.name().is_ok_and(|name| name.starts_with(".debug_")));
    debug.map(|section| section.size()).sum()
}

fn main() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    println!(
        "{:32} {:>10} {:>10} {:>7}",
        "bytes of debug sections", "upstream", "siteline", "times"
    );
    for (name, chip) in KERNELS {
        let path = examples.join(name).with_extension("mlir");
        let source = std::fs::read(&path).expect("the example is there");
        let text = with_upstream_scopes(&source, chip);
        let upstream = driver::compile(text.as_bytes(), Path::new("example.ll"), &job(chip, None));
        let sites = Sites { settings: Settings::default(), origin: Origin::Keep, infer: true };
        let ours = driver::compile(&source, &path, &job(chip, Some(sites)));
        let [upstream, ours] =
            [upstream, ours].map(|object| debug_bytes(&object.expect("it compiles")));
        let times = ours as f64 / upstream as f64;
        println!("{:32} {upstream:>10} {ours:>10} {times:>7.2}", format!("{name} {chip}"));
    }
}
