//! The bridge to MLIR's pass manager, and the entry point that `--load-pass-plugin` looks for.
//!
//! `cpp/README.md` is the contract of this boundary.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::leaf::LeafTable;
use crate::mlir::api::{Api, RawOperation};
use crate::mlir::ir::Ir;
use crate::mlir::{infer, propagate, report, restore, scopes};
use crate::site::{Library, Settings};

#[cxx::bridge(namespace = "siteline")]
mod bridge {
    /// The options of a pass that chooses sites.
    struct SiteOptions {
        policy: String,
        leaves: String,
        leaf: Vec<String>,
        library: Vec<String>,
    }

    /// What a pass function has to say.
    struct Report {
        ok: bool,
        message: String,
    }

    extern "Rust" {
        fn run_propagate(op: usize, options: SiteOptions, origin: String) -> Report;
        fn run_infer(op: usize, library: Vec<String>, origin: String) -> Report;
        fn run_restore(op: usize) -> Report;
        fn run_scopes(op: usize, library: Vec<String>) -> Report;
        fn run_report(op: usize, options: SiteOptions, output: String) -> Report;
    }

    unsafe extern "C++" {
        include!("passes.h");
        include!("driver.h");
        include!("walk.h");

        type Walk;
        fn next(self: Pin<&mut Walk>, batch: &mut [usize]) -> usize;
        fn arguments(self: &Walk) -> &[usize];
        fn walk_below(op: usize) -> UniquePtr<Walk>;
        fn set_locations(self: Pin<&mut Walk>, slots: &[u32], targets: &[usize]) -> i64;

        fn register_passes();
        fn parse_module(context: usize, source: &[u8], name: &str) -> usize;
        fn is_amdgpu_chip(chip: &str) -> bool;
    }
}

/// What the driver needs and no C API has.
pub(crate) mod driver {
    pub(crate) use super::bridge::{is_amdgpu_chip, parse_module};
}

/// What the passes do for many operations at once.
pub(crate) mod bulk {
    use crate::mlir::api::{RawOperation, RawValue};

    /// How many operations cross the bridge at a time: few enough for the nearest cache.
    const BATCH: usize = 1024;

    /// See [`crate::mlir::api::Bulk::walk`].
    ///
    /// # Safety
    /// The operation must be alive, of the MLIR that is linked, and not changed meanwhile.
    pub(crate) unsafe fn walk(
        root: RawOperation,
        visit_ops: &mut dyn FnMut(&[usize]),
        visit_argument: &mut dyn FnMut(RawValue),
    ) {
        let mut batch = vec![0; 3 * BATCH];
        let mut walk = super::bridge::walk_below(root.0 as usize);
        loop {
            let count = walk.pin_mut().next(&mut batch);
            visit_ops(&batch[..3 * count]);
            if count < BATCH {
                break;
            }
        }
        for &argument in walk.arguments() {
            visit_argument(RawValue(argument as *const _));
        }
    }

    /// See [`crate::mlir::api::Bulk::set_locations`].
    ///
    /// # Safety
    /// As of [`walk`]; the targets must be locations of the operation's context, or 0.
    pub(crate) unsafe fn set_locations(
        root: RawOperation,
        slots: &[u32],
        targets: &[usize],
    ) -> Option<usize> {
        let mut walk = super::bridge::walk_below(root.0 as usize);
        usize::try_from(walk.pin_mut().set_locations(slots, targets)).ok()
    }
}

use bridge::{Report, SiteOptions};

/// Registers the passes and the `siteline` pipelines with the MLIR that is linked.
pub fn register_passes() {
    bridge::register_passes();
}

/// Runs a pass function so that nothing unwinds into C++.
fn guarded(run: impl FnOnce() -> anyhow::Result<()>) -> Report {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => Report { ok: true, message: String::new() },
        Ok(Err(error)) => Report { ok: false, message: crate::cli::one_sentence(&error) },
        Err(_) => Report {
            ok: false,
            message: "internal error; please report it with the input that shows it".into(),
        },
    }
}

/// The IR below an operation that the pass manager handed to a pass.
fn ir(op: usize) -> Ir<'static> {
    let op = RawOperation(op as *const _);
    // SAFETY: the shim passes the operation that its pass runs on. The pass manager keeps it
    // alive and leaves it to the pass until the pass returns, which is after the `Ir` is gone.
    unsafe { Ir::new(Api::linked(), op) }
}

fn settings(options: &SiteOptions) -> anyhow::Result<Settings> {
    let rules = options.leaf.iter().map(|rule| rule.parse()).collect::<Result<_, _>>()?;
    Ok(Settings {
        policy: options.policy.parse()?,
        leaves: options.leaves.parse()?,
        table: LeafTable::new(rules),
        library: Library::new(&options.library)?,
    })
}

fn run_propagate(op: usize, options: SiteOptions, origin: String) -> Report {
    guarded(|| {
        propagate::propagate(ir(op), &settings(&options)?, origin.parse()?);
        Ok(())
    })
}

fn run_restore(op: usize) -> Report {
    guarded(|| {
        restore::restore(ir(op));
        Ok(())
    })
}

/// The settings of a pass that chooses no sites, but must know what is library code.
fn library_settings(library: &[String]) -> anyhow::Result<Settings> {
    Ok(Settings { library: Library::new(library)?, ..Settings::default() })
}

fn run_infer(op: usize, library: Vec<String>, origin: String) -> Report {
    guarded(|| {
        infer::infer(ir(op), &library_settings(&library)?, origin.parse()?);
        Ok(())
    })
}

fn run_scopes(op: usize, library: Vec<String>) -> Report {
    guarded(|| {
        scopes::scopes(ir(op), &library_settings(&library)?)?;
        Ok(())
    })
}

fn run_report(op: usize, options: SiteOptions, output: String) -> Report {
    guarded(|| {
        report::report(ir(op), &settings(&options)?).write(Path::new(&output))?;
        Ok(())
    })
}

/// `mlir::PassPluginLibraryInfo` of `mlir/Tools/Plugins/PassPlugin.h`.
#[repr(C)]
pub struct PassPluginLibraryInfo {
    api_version: u32,
    plugin_name: *const c_char,
    plugin_version: *const c_char,
    register_callback: extern "C" fn(),
}

/// `MLIR_PLUGIN_API_VERSION` of MLIR 22.
const API_VERSION: u32 = 1;

/// A version that no MLIR has, by which a host refuses the plugin.
const REFUSED: u32 = u32::MAX;

const NAME: &CStr = c"siteline";

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("the package's version has no NUL"),
    };

extern "C" fn register_in_host() {
    register_passes();
}

/// What `mlir-opt --load-pass-plugin` calls first.
///
/// In a process that has another major of MLIR or LLVM loaded, the plugin says so and refuses.
// SAFETY: MLIR prescribes the name, and nothing else in this library has it.
#[unsafe(no_mangle)]
pub extern "C" fn mlirGetPassPluginInfo() -> PassPluginLibraryInfo {
    let foreign = foreign_library();
    if let Some(library) = &foreign {
        eprintln!(
            "siteline: error: this plugin is built for MLIR 22, but the host has loaded \
             '{library}': use mlir-opt-22, or build siteline for the host's MLIR"
        );
    }
    PassPluginLibraryInfo {
        api_version: if foreign.is_some() { REFUSED } else { API_VERSION },
        plugin_name: NAME.as_ptr(),
        plugin_version: VERSION.as_ptr(),
        register_callback: register_in_host,
    }
}

/// A loaded libMLIR or libLLVM of another major than the one this plugin is built for.
fn foreign_library() -> Option<String> {
    loaded_libraries().into_iter().find(|path| {
        let name = path.rsplit('/').next().unwrap_or_default();
        ["libMLIR", "libLLVM"]
            .iter()
            .any(|stem| name.strip_prefix(stem).is_some_and(is_foreign_version))
    })
}

/// Whether what follows `libMLIR` or `libLLVM` in a file name is another major's version:
/// `.so.19.1` and `-16.so.1` are, `.so.22.1` is not.
fn is_foreign_version(rest: &str) -> bool {
    let version = rest.strip_prefix(".so.").or_else(|| rest.strip_prefix('-'));
    let major = version.and_then(|version| version.split(['.', '-']).next());
    major.and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major != 22)
}

fn loaded_libraries() -> Vec<String> {
    unsafe extern "C" fn note(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        paths: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: the loader passes a valid entry, and `loaded_libraries` its own vector.
        let (info, paths) = unsafe { (&*info, &mut *paths.cast::<Vec<String>>()) };
        if !info.dlpi_name.is_null() {
            // SAFETY: the loader keeps the name of a loaded object as a C string.
            let name = unsafe { CStr::from_ptr(info.dlpi_name) };
            paths.push(name.to_string_lossy().into_owned());
        }
        0
    }
    let mut paths: Vec<String> = Vec::new();
    // SAFETY: the callback has the signature asked for and does not outlive the call.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut paths).cast()) };
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_majors_are_told_by_their_file_names() {
        for (rest, foreign) in [
            (".so.22.1", false),
            (".so.19.1", true),
            ("-16.so.1", true),
            ("-22.so", false),
            (".so", false),
            ("Support.so.19", false),
        ] {
            assert_eq!(is_foreign_version(rest), foreign, "{rest}");
        }
    }

    #[test]
    fn a_panic_does_not_leave_the_guard() {
        let report = guarded(|| panic!("inside"));
        assert!(!report.ok && report.message.starts_with("internal error"));
    }
}
