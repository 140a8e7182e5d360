//! Finished code objects: comparing them and measuring their lines.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};
use siteline::chain::Chains;
use siteline::identity::{self, Extent};
use siteline::leaf::LeafTable;
use siteline::object::metrics::{self, Measure};
use siteline::object::waits::report::{Kernel, Shown};
use siteline::object::{CodeObject, Function, FunctionKind, Lister, Listing, Located, Role};
use siteline::object::{definition, disasm};
use siteline::refine::Options;
use siteline::site::Settings as Sites;

use crate::invalid;
use crate::live::Settings;

/// The first difference of two code objects in words; None when they are identical. `loaded`
/// compares only what the loader sees.
#[pyfunction]
#[pyo3(signature = (a, b, *, loaded=false))]
pub fn compare(py: Python<'_>, a: &[u8], b: &[u8], loaded: bool) -> PyResult<Option<String>> {
    let extent = if loaded { Extent::Loaded } else { Extent::Whole };
    let found = py.detach(|| identity::compare(a, b, extent)).map_err(invalid)?;
    Ok(found.map(|difference| difference.to_string()))
}

/// The kernels of a code object as `siteline report` counts them, each with the instructions of
/// each class by line, as JSON.
#[pyfunction]
pub fn measure(
    py: Python<'_>,
    label: &str,
    object: Vec<u8>,
    settings: &Bound<'_, Settings>,
) -> PyResult<String> {
    let settings = &settings.get().sites;
    py.detach(|| measured(label, object, settings)).map_err(invalid)
}

/// The same file with every line row at its site; `fill` gives the line of the instruction that
/// they serve to those that have none.
#[pyfunction]
#[pyo3(signature = (content, settings, *, fill=false, label="module"))]
pub fn refine<'py>(
    py: Python<'py>,
    content: Vec<u8>,
    settings: &Bound<'_, Settings>,
    fill: bool,
    label: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let settings = settings.get().sites.clone();
    let refined = py.detach(|| {
        let text = Box::new(|path: &str| std::fs::read_to_string(path).ok());
        let options = Options { settings, fill, text: Some(text), ..Options::default() };
        siteline::refine::refine(label, content, &options)
    });
    let (bytes, _) = refined.map_err(invalid)?;
    Ok(PyBytes::new(py, &bytes))
}

/// What the waits of every kernel wait for, as `siteline waits --json` has it, as JSON.
#[pyfunction]
#[pyo3(signature = (content, settings, *, label="module"))]
pub fn waits(
    py: Python<'_>,
    content: Vec<u8>,
    settings: &Bound<'_, Settings>,
    label: &str,
) -> PyResult<String> {
    let table = &settings.get().sites.table;
    py.detach(|| waiting(label, content, table)).map_err(invalid)
}

fn waiting(label: &str, content: Vec<u8>, table: &LeafTable) -> Result<String, String> {
    let mut chains = Chains::new();
    let objects = CodeObject::read_all(label, content, &mut chains).map_err(|e| e.to_string())?;
    let disassembler = disasm::available();
    let lister = Lister { disassembler, table };
    let mut kernels = Vec::new();
    for object in &objects {
        for function in object.kernels() {
            let listing = lister.list(object, function, &mut chains);
            let kernel =
                Kernel::of(function, &listing, object.chip()).map_err(|e| e.to_string())?;
            let site = |located: &Located| Some(chains.innermost(located.chain?).line());
            let shown = Shown { kernel: &kernel, site: &site, chains: &chains }.report();
            let mut report = serde_json::to_value(shown).map_err(|error| error.to_string())?;
            report["name"] = json!(function.name);
            report["chip"] = json!(object.chip());
            report["disassembler"] = json!(disassembler.map(|found| found.name()));
            kernels.push(report);
        }
    }
    Ok(Value::Array(kernels).to_string())
}

/// The code objects in a file's content, as ELF files.
#[pyfunction]
pub fn objects<'py>(py: Python<'py>, content: Vec<u8>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let mut chains = Chains::new();
    let found = py.detach(|| CodeObject::read_all("module", content, &mut chains));
    let found = found.map_err(invalid)?;
    Ok(found.iter().map(|object| PyBytes::new(py, object.elf.data())).collect())
}

fn measured(label: &str, object: Vec<u8>, settings: &Sites) -> Result<String, String> {
    let mut chains = Chains::new();
    let objects = CodeObject::read_all(label, object, &mut chains).map_err(|e| e.to_string())?;
    let mut reports = Vec::new();
    for object in &objects {
        let kernels = object.functions.iter().filter(|f| f.kind == FunctionKind::Kernel);
        for function in kernels {
            reports.push(kernel(object, function, settings, &mut chains)?);
        }
    }
    Ok(Value::Array(reports).to_string())
}

fn kernel(
    object: &CodeObject,
    function: &Function,
    settings: &Sites,
    chains: &mut Chains,
) -> Result<Value, String> {
    let disassembler = disasm::available();
    let table: &LeafTable = &settings.table;
    let listing = Lister { disassembler, table }.list(object, function, chains);
    let mut text = |path: &str| std::fs::read_to_string(path).ok();
    let mut origins = definition::Origins { text: &mut text, given: None };
    let definition = definition::of(object, function, &listing, &mut origins, chains);
    let report = metrics::measure(
        &Measure {
            object,
            function,
            listing: &listing,
            disassembler: disassembler.map(|found| found.name()),
            definition,
            library: &settings.library,
            ir: None,
            top: 10,
        },
        chains,
    );
    let mut report = serde_json::to_value(report).map_err(|error| error.to_string())?;
    report["class_lines"] = json!(class_lines(&listing, chains));
    Ok(report)
}

/// For each class, how many instructions each line has, as `file:line`.
fn class_lines(
    listing: &Listing,
    chains: &Chains,
) -> BTreeMap<&'static str, BTreeMap<String, usize>> {
    let mut classes: BTreeMap<&'static str, BTreeMap<String, usize>> = BTreeMap::new();
    for located in listing.instructions.iter().filter(|located| located.role == Role::Code) {
        let Some(class) = located.class else { continue };
        let line = located.chain.map(|chain| chains.innermost(chain).line());
        let line = line.map_or("?".into(), |line| chains.display_line(line).to_string());
        *classes.entry(class.name()).or_default().entry(line).or_default() += 1;
    }
    classes
}
