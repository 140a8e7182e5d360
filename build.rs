//! Builds the C++ shim and tells the linker where LLVM and MLIR are.
//!
//! Debian ships MLIR's C API as static archives only, while mlir-sys, told to link MLIR
//! dynamically, asks for one `libMLIR-C`. A linker script of that name stands for all of them.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "llvm")]
    llvm::build();
}

#[cfg(feature = "llvm")]
mod llvm {
    use std::env;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    pub fn build() {
        println!("cargo:rerun-if-env-changed=MLIR_SYS_220_PREFIX");
        for path in ["cpp", "passes", "src/plugin.rs"] {
            println!("cargo:rerun-if-changed={path}");
        }
        let prefix: PathBuf =
            env::var_os("MLIR_SYS_220_PREFIX").unwrap_or_else(|| "/usr/lib/llvm-22".into()).into();
        let out: PathBuf = env::var_os("OUT_DIR").expect("cargo sets OUT_DIR").into();
        write_linker_script(&prefix, &out);
        generate_passes(&prefix, &out);
        compile_shim(&prefix, &out);
        println!("cargo:rustc-link-search=native={}", prefix.join("lib").display());
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", prefix.join("lib").display());
        println!("cargo:rustc-link-lib=dylib=MLIR");
        println!("cargo:rustc-link-lib=dylib=LLVM");
    }

    fn write_linker_script(prefix: &Path, out: &Path) {
        let folder = prefix.join("lib");
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| {
            panic!("cannot read '{}' ({error}): install libmlir-22-dev", folder.display())
        });
        let mut archives: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.path().to_str().map(String::from))
            .filter(|path| path.contains("/libMLIRCAPI") && path.ends_with(".a"))
            .collect();
        assert!(
            !archives.is_empty(),
            "'{}' has no libMLIRCAPI*.a: install libmlir-22-dev",
            folder.display()
        );
        archives.sort();
        let script = format!("INPUT({})\n", archives.join(" "));
        fs::write(out.join("libMLIR-C.so"), script).expect("OUT_DIR can be written");
        println!("cargo:rustc-link-search=native={}", out.display());
    }

    fn generate_passes(prefix: &Path, out: &Path) {
        let tool = prefix.join("bin/mlir-tblgen");
        let status = Command::new(&tool)
            .args(["-gen-pass-decls", "-name", "Siteline", "passes/Passes.td", "-I"])
            .arg(prefix.join("include"))
            .arg("-o")
            .arg(out.join("Passes.h.inc"))
            .status()
            .unwrap_or_else(|error| {
                panic!("cannot run '{}' ({error}): install mlir-22-tools", tool.display())
            });
        assert!(status.success(), "'{}' failed on passes/Passes.td", tool.display());
    }

    fn compile_shim(prefix: &Path, out: &Path) {
        cxx_build::bridge("src/plugin.rs")
            .file("cpp/passes.cpp")
            .file("cpp/driver.cpp")
            .file("cpp/walk.cpp")
            .include("cpp")
            .include(out)
            .flag("-isystem")
            .flag(prefix.join("include").to_str().expect("the prefix is UTF-8"))
            .std("c++17")
            .flag("-fno-rtti")
            .flag("-Wno-unused-parameter")
            .flag("-fvisibility=hidden")
            .compile("siteline-shim");
    }
}
