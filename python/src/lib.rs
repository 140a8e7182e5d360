//! The Python module `siteline._siteline`: siteline on the MLIR that the host package loaded.
//!
//! Nothing of LLVM or MLIR is linked. An operation comes as the capsule that MLIR's Python
//! bindings give for it (`_CAPIPtr`) with the folder of the package that made it; its functions
//! are found in the process. The public functions, with their defaults, are in `siteline/`.
#![warn(missing_docs)]

mod live;
mod objects;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    siteline,
    ProviderError,
    PyRuntimeError,
    "The package's MLIR cannot be used: it is not loaded, hides the C API, or lacks functions."
);

/// The error of an argument, with its reason.
fn invalid(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymodule]
fn _siteline(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("ProviderError", module.py().get_type::<ProviderError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<live::Settings>()?;
    module.add_class::<live::Rewritten>()?;
    module.add_function(wrap_pyfunction!(live::rewrite, module)?)?;
    module.add_function(wrap_pyfunction!(live::restore, module)?)?;
    module.add_function(wrap_pyfunction!(live::report, module)?)?;
    module.add_function(wrap_pyfunction!(live::provider, module)?)?;
    module.add_function(wrap_pyfunction!(live::scopes, module)?)?;
    module.add_function(wrap_pyfunction!(objects::refine, module)?)?;
    module.add_function(wrap_pyfunction!(objects::waits, module)?)?;
    module.add_function(wrap_pyfunction!(objects::compare, module)?)?;
    module.add_function(wrap_pyfunction!(objects::measure, module)?)?;
    module.add_function(wrap_pyfunction!(objects::objects, module)?)
}
