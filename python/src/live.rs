//! Live operations: rewriting, restoring and reporting.
#![allow(unsafe_code)]

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use siteline::leaf::{ClassSet, LeafRule, LeafTable};
use siteline::mlir::api::RawOperation;
use siteline::mlir::infer::infer as infer_sites;
use siteline::mlir::ir::Ir;
use siteline::mlir::propagate::{Origin, propagate};
use siteline::mlir::runtime::{self, Provider};
use siteline::site::{self, Library};

use crate::{ProviderError, invalid};

/// How sites are chosen; made once, used for many operations and by many threads.
#[pyclass(frozen, module = "siteline")]
pub struct Settings {
    pub(crate) sites: site::Settings,
    origin: Origin,
    infer: bool,
    library: Vec<String>,
    description: String,
}

#[pymethods]
impl Settings {
    /// Reads the settings as the command line has them.
    #[new]
    #[pyo3(signature = (*, policy="distinct", leaves="all", library=vec![], leaf=vec![], origin="keep", infer=true))]
    fn new(
        policy: &str,
        leaves: &str,
        library: Vec<String>,
        leaf: Vec<String>,
        origin: &str,
        infer: bool,
    ) -> PyResult<Self> {
        let rules = leaf.iter().map(|rule| rule.parse().map_err(invalid));
        let sites = site::Settings {
            policy: policy.parse().map_err(invalid)?,
            leaves: leaves.parse::<ClassSet>().map_err(invalid)?,
            table: LeafTable::new(rules.collect::<PyResult<Vec<LeafRule>>>()?),
            library: Library::new(&library).map_err(invalid)?,
        };
        let origin_value = origin.parse().map_err(invalid)?;
        let description = format!(
            "siteline {} policy={policy:?} leaves={leaves:?} library={library:?} leaf={leaf:?} origin={origin:?} infer={infer}",
            env!("CARGO_PKG_VERSION"),
        );
        Ok(Settings { sites, origin: origin_value, infer, library, description })
    }

    /// The globs of `library`.
    #[getter]
    fn library(&self) -> Vec<String> {
        self.library.clone()
    }

    /// Whether operations without a usable location get one.
    #[getter]
    fn infer(&self) -> bool {
        self.infer
    }

    /// The settings in words: equal for equal settings of one version of siteline.
    fn __repr__(&self) -> &str {
        &self.description
    }
}

/// What a rewrite did.
#[pyclass(frozen, get_all, module = "siteline")]
pub struct Rewritten {
    /// Device functions worked on.
    functions: usize,
    /// Operations in them.
    operations: usize,
    /// Operations whose location changed.
    changed: usize,
    /// Operations without a usable location that got an inferred one.
    inferred: usize,
    /// The library whose MLIR was used.
    library: String,
}

#[pymethods]
impl Rewritten {
    fn __repr__(&self) -> String {
        let Rewritten { functions, operations, changed, inferred, library } = self;
        format!(
            "Report(functions={functions}, operations={operations}, changed={changed}, inferred={inferred}, library={library:?})"
        )
    }
}

/// An operation of a capsule, and the library that made it. Both stay alive while the caller's
/// Python objects do; the pointers go to another thread only within one call.
struct Live {
    provider: &'static Provider,
    operation: RawOperation,
}

// SAFETY: the pointer is used only inside the call that it was made for, by one thread at a
// time; MLIR's operations are not bound to a thread.
unsafe impl Send for Live {}
// SAFETY: as above; nothing is shared, `Sync` is only what borrowing across `detach` asks for.
unsafe impl Sync for Live {}

impl Live {
    fn new(capsule: &Bound<'_, PyCapsule>) -> PyResult<Live> {
        let (pointer, package) = operation_pointer(capsule)?;
        let provider = find(capsule.py(), &package)?;
        Ok(Live { provider, operation: RawOperation(pointer) })
    }

    /// Works on the IR without the GIL.
    fn with<T: Send>(self, py: Python<'_>, work: impl Send + FnOnce(Ir<'_>) -> T) -> T {
        py.detach(move || {
            let live = self;
            // SAFETY: the caller of the Python function holds the operation, whose context it
            // keeps alive; siteline's documentation asks, as MLIR's bindings do for passes,
            // that no other thread uses it meanwhile. The provider is the package's own.
            work(unsafe { Ir::new(&live.provider.api, live.operation) })
        })
    }
}

/// The pointer in the capsule of an operation, and the package that the capsule's name says.
fn operation_pointer(
    capsule: &Bound<'_, PyCapsule>,
) -> PyResult<(*const std::ffi::c_void, String)> {
    let wrong =
        |what: &str| PyTypeError::new_err(format!("not the capsule of an operation: {what}"));
    let name = capsule.name()?.ok_or_else(|| wrong("it has no name"))?;
    let text = name.to_string_lossy();
    let package = text.strip_suffix(".ir.Operation._CAPIPtr").ok_or_else(|| wrong(&text))?;
    match capsule.pointer() {
        pointer if pointer.is_null() => Err(wrong("it is empty")),
        pointer => Ok((pointer.cast_const(), package.into())),
    }
}

/// The provider that belongs to a package.
fn find(py: Python<'_>, package: &str) -> PyResult<&'static Provider> {
    let folders: Vec<PathBuf> = py.import(package)?.getattr("__path__")?.extract()?;
    let mut found = folders.iter().map(|folder| runtime::provider(folder));
    let first = found.next().ok_or_else(|| {
        ProviderError::new_err(format!("the package '{package}' has no folder to look in"))
    })?;
    first.or_else(|error| found.find_map(Result::ok).ok_or(error)).map_err(|error| {
        ProviderError::new_err(format!("the MLIR of '{package}' cannot be used: {error}"))
    })
}

/// Sets the locations at and below an operation to their sites.
#[pyfunction]
pub fn rewrite(
    capsule: &Bound<'_, PyCapsule>,
    settings: &Bound<'_, Settings>,
) -> PyResult<Rewritten> {
    let live = Live::new(capsule)?;
    let library = live.provider.library.display().to_string();
    let settings = settings.get();
    let (summary, inferred) = live.with(capsule.py(), |ir| {
        let summary = propagate(ir, &settings.sites, settings.origin);
        let infer = |_| infer_sites(ir, &settings.sites, settings.origin).inferred;
        (summary, settings.infer.then_some(()).map_or(0, infer))
    });
    Ok(Rewritten {
        functions: summary.functions,
        operations: summary.operations,
        changed: summary.changed,
        inferred,
        library,
    })
}

/// Puts the original locations back; returns how many operations changed.
#[pyfunction]
pub fn restore(capsule: &Bound<'_, PyCapsule>) -> PyResult<usize> {
    let live = Live::new(capsule)?;
    Ok(live.with(capsule.py(), siteline::mlir::restore::restore))
}

/// Gives the device functions of the LLVM dialect their debug-info scopes, after what lowering
/// left without a line has got one; returns how many functions got scopes.
#[pyfunction]
pub fn scopes(capsule: &Bound<'_, PyCapsule>, settings: &Bound<'_, Settings>) -> PyResult<usize> {
    let live = Live::new(capsule)?;
    let settings = settings.get();
    let made = live.with(capsule.py(), |ir| {
        if settings.infer {
            infer_sites(ir, &settings.sites, settings.origin);
        }
        siteline::mlir::scopes::scopes(ir, &settings.sites)
    });
    made.map(|summary| summary.functions).map_err(invalid)
}

/// The chains, sites and coverage of the device functions, as JSON.
#[pyfunction]
pub fn report(capsule: &Bound<'_, PyCapsule>, settings: &Bound<'_, Settings>) -> PyResult<String> {
    let live = Live::new(capsule)?;
    let settings = &settings.get().sites;
    let text = live.with(capsule.py(), |ir| {
        serde_json::to_string(&siteline::mlir::report::report(ir, settings))
    });
    text.map_err(invalid)
}

/// The library whose MLIR is used for a package, such as `flydsl._mlir`.
#[pyfunction]
pub fn provider(py: Python<'_>, package: &str) -> PyResult<PathBuf> {
    Ok(find(py, package)?.library.clone())
}
