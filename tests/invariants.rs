//! DESIGN's invariants, on every example kernel and every lit input: only locations change,
//! rewriting is idempotent, and restoring gives the input back.
#![cfg(feature = "llvm")]

use std::path::{Path, PathBuf};

use siteline::mlir::context::{self, Module, Printing};
use siteline::mlir::infer::infer;
use siteline::mlir::propagate::{Origin, propagate};
use siteline::mlir::{report, restore};
use siteline::site::Settings;

const POLICIES: &[&str] =
    &["distinct", "unique", "innermost", "outermost", "depth:1", "file:*.py", "skip:*.py"];

fn inputs() -> Vec<PathBuf> {
    fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("the folder can be read") {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() {
                collect(&path, files);
            } else if path.extension().is_some_and(|extension| extension == "mlir") {
                files.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&root.join("examples"), &mut files);
    collect(&root.join("test"), &mut files);
    files.sort();
    files
}

fn text(module: &Module<'_>, locations: bool) -> String {
    let printed = module.print(Printing { generic: true, locations });
    String::from_utf8(printed).expect("MLIR prints UTF-8")
}

fn settings(policy: &str) -> Settings {
    Settings { policy: policy.parse().expect("a policy"), ..Settings::default() }
}

fn check(module: &mut Module<'_>, policy: &str, origin: Origin, name: &str) {
    let settings = settings(policy);
    let (code, input) = (text(module, false), text(module, true));
    propagate(module.ir(), &settings, origin);
    let sites = text(module, true);
    infer(module.ir(), &settings, origin);
    let once = text(module, true);
    propagate(module.ir(), &settings, origin);
    infer(module.ir(), &settings, origin);
    assert_eq!(text(module, true), once, "{name}: inferring after {policy} is not idempotent");
    if origin == Origin::Keep {
        restore::restore(module.ir());
        propagate(module.ir(), &settings, origin);
        assert_eq!(text(module, true), sites, "{name}: what was inferred after {policy} stays");
        infer(module.ir(), &settings, origin);
    }
    assert_eq!(text(module, false), code, "{name}: {policy} changed more than locations");
    propagate(module.ir(), &settings, origin);
    assert_eq!(text(module, true), once, "{name}: {policy} is not idempotent");
    if origin == Origin::Keep {
        restore::restore(module.ir());
        assert_eq!(text(module, false), code, "{name}: restore changed more than locations");
        assert_eq!(text(module, true), restored(&input), "{name}: {policy} is not restored");
    }
}

/// What restoring an input gives that may hold sites already: itself where it holds none.
fn restored(input: &str) -> String {
    context::with_module(input.as_bytes(), Path::new("input"), |module, _| {
        restore::restore(module.ir());
        Ok(text(module, true))
    })
    .expect("what MLIR printed can be read")
}

#[test]
fn only_locations_change_and_rewriting_is_idempotent_and_can_be_undone() {
    let inputs = inputs();
    assert!(inputs.len() > 10, "the examples and the lit inputs are there");
    let mut checked = 0;
    for path in inputs {
        let source = std::fs::read(&path).expect("an input can be read");
        let name = path.display().to_string();
        for policy in POLICIES {
            for origin in [Origin::Keep, Origin::Drop] {
                let ran = context::with_module(&source, &path, |module, _| {
                    check(module, policy, origin, &name);
                    Ok(())
                });
                checked += usize::from(ran.is_ok());
            }
        }
    }
    assert!(checked > 100, "{checked} combinations were checked");
}

#[test]
fn distinct_shows_no_leaf_of_the_flash_attention_kernel_on_an_ambiguous_line() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/flash_attention.mlir");
    let source = std::fs::read(&path).expect("the example is there");
    let report = |policy| {
        context::with_module(&source, &path, |module, _| {
            Ok(report::report(module.ir(), &settings(policy)))
        })
        .expect("the example can be read")
    };
    let ambiguous = |report: &report::Report| -> Vec<(&'static str, usize)> {
        let classes = &report.functions[0].classes;
        let leaves = classes.iter().filter(|(name, _)| **name != "other");
        leaves.map(|(name, class)| (*name, class.ambiguous_lines)).collect()
    };
    let distinct = report("distinct");
    assert!(
        ambiguous(&distinct).iter().all(|(_, lines)| *lines == 0),
        "{:?}",
        ambiguous(&distinct)
    );
    let shipped = ambiguous(&report("innermost"));
    for class in ["mfma", "dma", "barrier", "wait", "lds", "sched"] {
        let lines = shipped.iter().find(|(name, _)| *name == class).map(|(_, lines)| *lines);
        assert!(lines.is_some_and(|lines| lines > 0), "{class}: {shipped:?}");
    }
    assert_eq!(distinct.functions[0].classes["mfma"].site_lines, 4);
}
