//! `siteline-propagate` against upstream's `strip-debuginfo`, both through the pass manager.
//!
//! `cargo bench --bench propagate` times both on synthetic modules of 10 thousand to 10 million
//! operations with at most 20,000 distinct locations, and prints the memory that the pass takes
//! beyond the IR. The pass manager runs MLIR's verifier after each pass unless told otherwise, as
//! mlir-opt does; both ways are timed.
#![allow(unsafe_code, missing_docs)]

use std::cell::{Cell, LazyCell};
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use mlir_sys::*;

const DISTINCT: usize = 20_000;

fn text(text: &str) -> MlirStringRef {
    MlirStringRef { data: text.as_ptr().cast(), length: text.len() }
}

/// A kernel of operations that are known by name only, as an unknown front end would make it.
struct Synthetic {
    context: MlirContext,
    module: MlirModule,
    originals: Vec<(MlirOperation, MlirLocation)>,
}

impl Synthetic {
    fn new(operations: usize) -> Self {
        // SAFETY: plain construction through the C API, each handle used once by its owner.
        unsafe {
            let context = mlirContextCreate();
            mlirContextSetAllowUnregisteredDialects(context, true);
            let unknown = mlirLocationUnknownGet(context);
            let module = mlirModuleCreateEmpty(unknown);
            let body = function(context, module, unknown);
            let locations = locations(context, operations.min(DISTINCT));
            let names =
                ["rocdl.s.waitcnt", "rocdl.mfma.f32.32x32x8f16", "arith.addi", "arith.muli"];
            let mut originals = Vec::with_capacity(operations);
            for at in 0..operations {
                // One line of a kernel makes a handful of operations.
                let location = locations[at / 5 % locations.len()];
                let name = if at % 16 < 2 { names[at % 2] } else { names[2 + at % 2] };
                let mut state = mlirOperationStateGet(text(name), location);
                let op = mlirOperationCreate(&raw mut state);
                mlirBlockAppendOwnedOperation(body, op);
                originals.push((op, location));
            }
            Synthetic { context, module, originals }
        }
    }

    fn reset(&self) {
        for &(op, location) in &self.originals {
            // SAFETY: the operations are alive as long as the module.
            unsafe { mlirOperationSetLocation(op, location) };
        }
    }

    /// The time of one run of a pass, in a pass manager made for it.
    fn run(&self, pass: &str, verify: bool) -> Duration {
        self.reset();
        // SAFETY: the pass manager is destroyed after use, and the pipeline's text is valid.
        unsafe {
            let manager = mlirPassManagerCreate(self.context);
            mlirPassManagerEnableVerifier(manager, verify);
            let parsed = mlirParsePassPipeline(
                mlirPassManagerGetAsOpPassManager(manager),
                text(&format!("builtin.module({pass})")),
                None,
                std::ptr::null_mut(),
            );
            assert_ne!(parsed.value, 0, "the pass is registered");
            let start = Instant::now();
            let ran = mlirPassManagerRunOnOp(manager, mlirModuleGetOperation(self.module));
            let time = start.elapsed();
            assert_ne!(ran.value, 0, "the pass succeeds");
            mlirPassManagerDestroy(manager);
            time
        }
    }
}

impl Drop for Synthetic {
    fn drop(&mut self) {
        // SAFETY: both are owned, the module before its context.
        unsafe {
            mlirModuleDestroy(self.module);
            mlirContextDestroy(self.context);
        }
    }
}

/// A function-like operation in the module; returns its body's block.
unsafe fn function(context: MlirContext, module: MlirModule, location: MlirLocation) -> MlirBlock {
    // SAFETY: as of the caller.
    unsafe {
        let attribute = |name: &str, value: &str| {
            let name = mlirIdentifierGet(context, text(name));
            mlirNamedAttributeGet(name, mlirAttributeParseGet(context, text(value)))
        };
        let attributes = [attribute("sym_name", "\"k\""), attribute("function_type", "() -> ()")];
        let block = mlirBlockCreate(0, std::ptr::null(), std::ptr::null());
        let region = mlirRegionCreate();
        mlirRegionAppendOwnedBlock(region, block);
        let mut state = mlirOperationStateGet(text("dsl.func"), location);
        mlirOperationStateAddAttributes(&raw mut state, 2, attributes.as_ptr());
        mlirOperationStateAddOwnedRegions(&raw mut state, 1, &raw const region);
        mlirBlockAppendOwnedOperation(
            mlirModuleGetBody(module),
            mlirOperationCreate(&raw mut state),
        );
        block
    }
}

/// Chains of three frames: kernel lines that call helpers, which call helpers of ten lines.
fn locations(context: MlirContext, count: usize) -> Vec<MlirLocation> {
    // SAFETY: the context is alive, and file names are copied.
    let file = |line: usize| unsafe {
        mlirLocationFileLineColGet(context, text("kernel.py"), line as u32, 1)
    };
    let chain = |at: usize| {
        let call = at / 10;
        let helper = call % 97 * 10 + at % 10;
        let (middle, kernel) = (1000 + call % 1013, 10_000 + call);
        // SAFETY: the locations are of this context.
        unsafe {
            let outer = mlirLocationCallSiteGet(file(middle), file(kernel));
            mlirLocationCallSiteGet(file(helper + 1), outer)
        }
    };
    (0..count).map(chain).collect()
}

/// A line of `/proc/self/status` in bytes.
fn status(key: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with(key)).expect("the key is there");
    line.split_whitespace().nth(1).and_then(|n| n.parse::<usize>().ok()).expect("a number") * 1024
}

/// Prints the peak of memory during one run, above what is resident before it.
fn print_memory(module: &Synthetic, operations: usize) {
    module.reset();
    std::fs::write("/proc/self/clear_refs", "5").expect("the peak can be reset");
    let before = status("VmRSS:");
    module.run("siteline-propagate", false);
    let bytes = status("VmHWM:").saturating_sub(before);
    let each = bytes as f64 / operations as f64;
    println!("memory beyond the IR, {operations} operations: {each:.1} bytes an operation");
}

fn propagate(criterion: &mut Criterion) {
    siteline::plugin::register_passes();
    // SAFETY: registering is done once, before any use.
    unsafe { mlirRegisterAllPasses() };
    for operations in [10_000, 100_000, 1_000_000, 10_000_000] {
        // Made when a benchmark that was asked for needs it.
        let module = LazyCell::new(|| Synthetic::new(operations));
        let memory_printed = Cell::new(false);
        for (name, verify) in [("pass-alone", false), ("pass-and-verifier", true)] {
            let mut group = criterion.benchmark_group(name);
            group.sample_size(10).warm_up_time(Duration::from_millis(500));
            for pass in ["strip-debuginfo", "siteline-propagate"] {
                group.bench_function(BenchmarkId::new(pass, operations), |bencher| {
                    if pass == "siteline-propagate" && !memory_printed.replace(true) {
                        print_memory(&module, operations);
                    }
                    bencher.iter_custom(|times| (0..times).map(|_| module.run(pass, verify)).sum());
                });
            }
            group.finish();
        }
    }
}

criterion_group!(benches, propagate);
criterion_main!(benches);
