"""lit's configuration; see README.md beside this file."""

import os
import shutil

import lit.formats

config.name = "siteline"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".ll", ".test"]
config.excludes = ["fixtures", "Inputs"]
config.test_source_root = os.path.dirname(__file__)

root = os.path.dirname(config.test_source_root)
profile = os.environ.get("SITELINE_PROFILE", "debug")
target = os.environ.get("CARGO_TARGET_DIR", os.path.join(root, "target"))
built = os.path.join(target, profile)
config.test_exec_root = os.path.join(target, "lit")
llvm = os.environ.get("MLIR_SYS_220_PREFIX", "/usr/lib/llvm-22")

config.environment["PATH"] = os.pathsep.join(
    [os.path.join(llvm, "bin"), config.environment["PATH"]])
plugin = os.path.join(built, "libsiteline.so")
config.substitutions += [
    ("%siteline-opt", f"{llvm}/bin/mlir-opt --load-pass-plugin={plugin}"),
    ("%siteline", os.path.join(built, "siteline")),
    ("%plugin", plugin),
    ("%examples", os.path.join(root, "examples")),
    ("%fixtures", os.path.join(config.test_source_root, "fixtures")),
]

# Another major of mlir-opt, where one is installed, for the plugin's refusal.
for major in (19, 16, 15, 14):
    other = shutil.which(f"mlir-opt-{major}")
    if other:
        config.available_features.add("other-mlir")
        config.substitutions.append(("%other-mlir-opt", other))
        break
