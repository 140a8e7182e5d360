"""The Triton adapter and `python -m siteline run`, on the examples for Triton."""

import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT

EXAMPLES = ROOT / "examples/triton"
KERNELS = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "build")
CHIPS = {"wmma_matmul": "gfx1201"}


@pytest.fixture
def triton(environments):
    return environments("triton")


@pytest.fixture
def examples(tmp_path):
    """The examples, copied out of the tree."""
    for path in EXAMPLES.glob("*.py"):
        shutil.copy(path, tmp_path)
    return tmp_path


def lines_of(environment, path, cwd):
    """For each class, how many instructions each line has, by what the line says."""
    code = f"""
import json
from siteline import Settings, _siteline
(kernel,) = json.loads(_siteline.measure("object", open({os.fspath(path)!r}, "rb").read(), Settings()))
print(json.dumps(kernel))
"""
    return environment.evaluate(code, cwd)


@pytest.mark.parametrize("name", KERNELS)
def test_every_kernel_is_refined(triton, examples, name):
    chip = CHIPS.get(name, "gfx942")
    triton.run(examples / f"{name}.py", "--chip", chip, "-o", "plain", cwd=examples)
    _, table = triton.run("-m", "siteline", "run", "--save", "saved", "--verify", examples / f"{name}.py",
                          "--chip", chip, "-o", "refined", cwd=examples)
    assert re.search(rf" +{chip} .* identical", table), table
    (plain,) = (examples / "plain").glob("*.hsaco")
    (refined,) = (examples / "refined").glob("*.hsaco")
    (kept,) = (examples / "saved").iterdir()
    assert (kept / "before.hsaco").read_bytes() == plain.read_bytes()
    assert (kept / "object.hsaco").read_bytes() == refined.read_bytes() != plain.read_bytes()
    subprocess.run(["llvm-dwarfdump-22", "--verify", "--quiet", refined], check=True)
    after = lines_of(triton, refined, examples)
    assert after["definition_line"] == after["library"] == after["line_zero"] == 0
    assert not any(leaf and leaf["on_dwarf_ambiguous"] for leaf in after["leaves"].values())


def test_each_product_is_on_its_own_line(triton, examples):
    for run in ([], ["-m", "siteline", "run"]):
        triton.run(*run, examples / "dual_gemm.py", "-o", "refined" if run else "plain", cwd=examples)
    source = (examples / "dual_gemm.py").read_text().splitlines()

    def mfma(folder):
        lines = lines_of(triton, examples / folder / "dual_gemm_gfx942.hsaco", examples)["class_lines"]["mfma"]
        return {source[int(place.rsplit(":", 1)[1]) - 1].split("(")[0].strip(): n for place, n in lines.items()}

    assert mfma("plain") == {"return tl.dot": 24}
    assert mfma("refined") == {"gate = multiply": 12, "value = multiply": 12}

    def names(folder):
        path = examples / folder / "dual_gemm_gfx942.hsaco"
        said = subprocess.run(["llvm-dwarfdump-22", "--debug-info", path], check=True, capture_output=True, text=True)
        return set(re.findall(r'DW_TAG_subprogram\n +DW_AT_name\t\("(\w+)"\)', said.stdout))

    # Triton names every frame after the kernel; siteline reads the helpers' names in the source.
    assert names("plain") == {"dual_gemm"}
    assert names("refined") == {"dual_gemm", "tile", "multiply", "silu", "sigmoid"}


@pytest.mark.parametrize("first", ["on", "off"])
def test_one_cache_serves_both_modes(triton, examples, first):
    code = """
import runpy, siteline.triton, sys
(siteline.triton.enable if sys.argv[1] == "on" else siteline.triton.disable)()
sys.argv[1:] = ["-o", sys.argv[2]]
runpy.run_path("softmax.py", run_name="__main__")
"""
    (examples / "modes.py").write_text(code)
    order = ["on", "off"] if first == "on" else ["off", "on"]
    objects = {"on": set(), "off": set()}
    for at, mode in enumerate(order * 2):
        triton.run("modes.py", mode, f"{mode}-{at}", cwd=examples)
        (path,) = (examples / f"{mode}-{at}").glob("*.hsaco")
        objects[mode].add(path.read_bytes())
    assert len(objects["on"]) == len(objects["off"]) == 1 and objects["on"] != objects["off"]
    cached = list((examples / "triton-cache").rglob("*.hsaco"))
    assert len(cached) == 2, cached
    triton.run(examples / "softmax.py", "-o", "never", cwd=examples)
    (path,) = (examples / "never").glob("*.hsaco")
    assert {path.read_bytes()} == objects["off"]


def test_another_hook_keeps_its_say(triton, examples):
    code = """
import json
import siteline.triton
from triton import knobs
seen = []
def other(*given):
    if not given:
        return "other", "'digest'"
    seen.append(sorted(given[1]))
knobs.runtime.add_stages_inspection_hook = other
siteline.triton.enable()
key, digest = knobs.runtime.add_stages_inspection_hook()
import runpy, sys
sys.argv[1:] = ["-o", "out"]
runpy.run_path("softmax.py", run_name="__main__")
siteline.triton.disable()
print(json.dumps([key, eval(digest), seen, knobs.runtime.add_stages_inspection_hook is other]))
"""
    key, digest, seen, restored = triton.evaluate(code, examples)
    assert key.startswith("other") and "siteline" in key and len(digest) == 64
    assert len(seen) == 1 and "hsaco" in seen[0] and restored


def test_other_back_ends_compile_what_they_did(triton, examples):
    code = """
import json, sys
import triton, siteline.triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from kernel import add
def ptx():
    names = {"a": "*fp32", "b": "*fp32", "N": "constexpr"}
    source = ASTSource(add, names, {(2,): 128})
    return triton.compile(source, target=GPUTarget("cuda", 80, 32)).asm["ptx"]
plain = ptx()
siteline.triton.enable()
print(json.dumps([plain == ptx(), ".version" in plain]))
"""
    (examples / "kernel.py").write_text(
        "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef add(a, b, N: tl.constexpr):\n"
        "    at = tl.arange(0, N)\n    tl.store(b + at, tl.load(a + at) + 1.0)\n")
    assert triton.evaluate(code, examples) == [True, True]


def test_without_a_stage_hook_triton_is_left_alone(triton, tmp_path):
    code = """
import json, types, warnings, siteline.triton
import triton.knobs as knobs
knobs.runtime = types.SimpleNamespace()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    hooked = siteline.triton.enable()
print(json.dumps([hooked, [str(one.message) for one in caught]]))
"""
    hooked, messages = triton.evaluate(code, tmp_path)
    assert not hooked and "add_stages_inspection_hook" in messages[0]
