"""The FlyDSL adapter and `python -m siteline run`, on the flash-attention example."""

import json
import pathlib
import re
import shutil
import signal

import pytest

from conftest import EXAMPLES

PACKS = {"gfx942": 2, "gfx950": 1}      # gfx942 takes twice the MFMA for the same product
COPIES = {"gfx942": 16, "gfx950": 4}    # DMA instructions of one `coop_dma`

# By example and class: the lines of the kernel's body that have its instructions, in the order
# of the source, each with what the line says and how many instructions it has.
EXPECTED = {
    "flash_attention": lambda packs, copies: {
        "mfma": [("s_acc_lo = mfma_acc(k_lo", 8 * packs), ("s_acc_hi = mfma_acc(k_hi", 8 * packs),
                 ("o_acc[part] = mfma_acc(v_lo", 8 * packs), ("o_acc[part] = mfma_acc(v_hi", 8 * packs)],
        "barrier": [("_barrier()", 1)] * 3,
        "dma": [("coop_dma_k(fx.Int32(0), buffer)", copies), ("coop_dma_v(tile)", copies),
                ("coop_dma_k(tile + 1, next_buffer)", copies)],
    },
    "pingpong_gemm": lambda packs, copies: {
        "mfma": [("multiply(0)", 16 * packs), ("multiply(1)", 16 * packs)],
        "barrier": [("hand_over(2 * DMA_PER_TILE)", 1), ("_barrier()", 1)] * 2,
        "dma": [("fill(0, fx.Int32(0))", 2 * copies), ("fill(1, pair * 2 + 1)", 2 * copies),
                ("fill(0, pair * 2 + 2)", 2 * copies)],
    },
}
# The waits that the schedule itself asks for; the backend adds others.
WAITS = {
    "flash_attention": ["_waitcnt_vm_n(0)", "_waitcnt_vm_n(2 * DMA_PER_TILE)", "_waitcnt_vm_n(DMA_PER_TILE)",
                        "_wait_lds()"],
    "pingpong_gemm": ["hand_over(2 * DMA_PER_TILE)", "wait_for_lds()", "wait_for_dma(0)",
                      "hand_over(2 * DMA_PER_TILE)", "wait_for_lds()"],
}


def in_source(script, class_lines):
    """The lines that the instructions of a class show, in order: what each says, how many it has."""
    source = script.read_text().splitlines()
    counts = {}
    for place, count in class_lines.items():
        file, line = place.rsplit(":", 1)
        assert file == str(script), place
        counts[int(line)] = count
    return [(source[line - 1].strip(), counts[line]) for line in sorted(counts)]


def saved(folder):
    """The report and the code object of the one kernel that was saved."""
    (kernel,) = folder.iterdir()
    return json.loads((kernel / "report.json").read_text())["kernels"][0], (kernel / "object.hsaco").read_bytes()


SHIPPED = """
import json, sys, runpy, pathlib
from siteline import Settings, _siteline
import flydsl.compiler.jit_function as jit
original = jit.MlirCompiler.compile.__func__
def compile(cls, *args, **kwargs):
    module = original(cls, *args, **kwargs)
    text = module.operation.get_asm().encode()
    pathlib.Path(sys.argv[1]).write_bytes(_siteline.objects(text)[0])
    pathlib.Path(sys.argv[1] + ".json").write_text(_siteline.measure("m", text, Settings()))
    return module
jit.MlirCompiler.compile = classmethod(compile)
runpy.run_path(sys.argv[2], run_name="__main__")
"""


def shipped(environment, tmp_path, script="flash_attention.py", **env):
    """The kernel as FlyDSL makes it without siteline."""
    (tmp_path / "shipped.py").write_text(SHIPPED)
    cache = {"FLYDSL_RUNTIME_CACHE_DIR": str(tmp_path / "shipped-cache")}
    environment.run("shipped.py", "shipped.hsaco", script, cwd=tmp_path, env=cache | env)
    report = json.loads((tmp_path / "shipped.hsaco.json").read_text())[0]
    return report, (tmp_path / "shipped.hsaco").read_bytes()


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
@pytest.mark.parametrize("name", EXPECTED)
def test_every_leaf_shows_its_call_site(flydsl, tmp_path, name, chip):
    script = pathlib.Path(shutil.copy(EXAMPLES / f"{name}.py", tmp_path))
    before, _ = shipped(flydsl, tmp_path, script.name, ARCH=chip, FLYDSL_DEBUG_ENABLE_DEBUG_INFO="1")
    _, table = flydsl.run("-m", "siteline", "run", "--verify", "--save", "saved", script,
                          cwd=tmp_path, env={"ARCH": chip})
    after, _ = saved(tmp_path / "saved")
    mfma = len(EXPECTED[name](1, 1)["mfma"])
    assert re.search(rf"{name}_0 +{chip} .* 1 -> {mfma} +identical", table), table
    for leaf, expected in EXPECTED[name](PACKS[chip], COPIES[chip]).items():
        shown = in_source(script, after["class_lines"][leaf])
        assert len(shown) == len(expected), shown
        for (text, count), (start, wanted) in zip(shown, expected):
            assert text.startswith(start) and count == wanted, shown
    waits = [text for text, _ in in_source(script, after["class_lines"]["wait"])]
    assert [text for text in waits if text in WAITS[name]] == WAITS[name], waits
    assert after["definition_line"] == 0
    unplaced = after["line_zero"] + after["definition_line"] + after["library"]
    print(f"{name} {chip}: {unplaced} of {after['instructions']} without a line, {after['inferred']} inferred")
    assert unplaced <= after["instructions"] / 100
    # 0.5.0 records chains itself and shows their innermost lines, so that its start is better.
    assert len(before["class_lines"]["mfma"]) == 1
    assert after["effective_lines"] > before["effective_lines"]
    if "0.1.8" in str(flydsl.python) and name == "flash_attention":
        assert before["definition_line"] > before["instructions"] / 2
        assert after["effective_lines"] >= 4 * before["effective_lines"]


CONTROL_FLOW = """
import flydsl.compiler as flyc
import flydsl.expr as fx
import torch

@flyc.kernel
def control_flow(a: fx.Tensor, n: fx.Int32):
    def _barrier():
        fx.gpu.barrier()

    count = fx.Int32(0)
    for step in range(fx.Int32(0), n, fx.Int32(1)):
        if step > 3:
            _barrier()  # then
        else:
            _barrier()  # else
            fx.rocdl.s_setprio(1)
        _barrier()  # for
    {}

@flyc.jit
def launch(a: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
    control_flow(a, n).launch(grid=(1, 1, 1), block=(256, 1, 1), stream=stream)

launch(torch.zeros(64), 8)
"""
# FlyDSL 0.1 takes no `while` over its own values.
WHILE = """while count < n:
        _barrier()  # while
        count = count + 1"""


@pytest.mark.parametrize("policy", ["distinct", "outermost"])
def test_bodies_of_statements_belong_to_the_function_around(flydsl, tmp_path, policy):
    script = tmp_path / "control_flow.py"
    old = "0.1.8" in str(flydsl.python)
    script.write_text(CONTROL_FLOW.format("pass" if old else WHILE))
    flydsl.run("-m", "siteline", "run", "--policy", policy, "--save", "saved", script, cwd=tmp_path)
    after, _ = saved(tmp_path / "saved")
    shown = [text for text, _ in in_source(script, after["class_lines"]["barrier"])]
    assert shown == [f"_barrier()  # {statement}" for statement in ["then", "else", "for", "while"][:3 if old else 4]]


@pytest.mark.parametrize("first", ["on", "off"])
def test_one_cache_serves_both_modes(flydsl, example, tmp_path, first):
    code = """
import os, pickle, runpy, sys, json
from siteline import Settings, _siteline
for mode in sys.argv[1].split(","):
    import siteline.flydsl
    siteline.flydsl.enable() if mode == "on" else siteline.flydsl.disable()
    runpy.run_path("flash_attention.py", run_name="__main__")
cache = [os.path.join(at, name) for at, _, names in os.walk("cache") for name in names]
lines = {}
for name in sorted(name for name in cache if name.endswith(".pkl")):
    with open(name, "rb") as file:
        text = pickle.load(file)._ir_text
    lines[name] = json.loads(_siteline.measure(name, text.encode(), Settings()))[0]["lines"]
print(json.dumps(lines))
"""
    (tmp_path / "modes.py").write_text(code)
    order = ["on", "off"] if first == "on" else ["off", "on"]
    counts, contents = [], {}
    for modes in (order[:1], order, order):
        output, _ = flydsl.run("modes.py", ",".join(modes), cwd=tmp_path)
        files = json.loads(output.splitlines()[-1])
        counts.append(len(files))
        for file in files:
            content = (tmp_path / file).read_bytes()
            assert contents.setdefault(file, content) == content
    assert counts == [1, 2, 2]
    without, sites = sorted(files.values(), key=lambda lines: lines or 0)
    assert without is None and sites > 30


def test_off_is_as_if_it_was_never_there(flydsl, example, tmp_path):
    _, plain = shipped(flydsl, tmp_path)
    toggled = "import siteline.flydsl\nsiteline.flydsl.enable()\nsiteline.flydsl.disable()\n" + SHIPPED
    (tmp_path / "toggled.py").write_text(toggled)
    flydsl.run("toggled.py", "toggled.hsaco", "flash_attention.py", cwd=tmp_path)
    assert (tmp_path / "toggled.hsaco").read_bytes() == plain


def test_the_environment_variable_hooks_child_processes(flydsl, example, tmp_path):
    (tmp_path / "parent.py").write_text(
        "import subprocess, sys\n"
        "subprocess.run([sys.executable, 'flash_attention.py'], check=True)\n")
    _, table = flydsl.run("-m", "siteline", "run", "parent.py", cwd=tmp_path)
    assert "flash_attention_0" in table
    (tmp_path / "spawn.py").write_text(
        "import multiprocessing, runpy\n"
        "if __name__ == '__main__':\n"
        "    spawn = multiprocessing.get_context('spawn')\n"
        "    child = spawn.Process(target=runpy.run_path, args=('flash_attention.py', None, '__main__'))\n"
        "    child.start(); child.join(); assert child.exitcode == 0\n")
    cache = {"FLYDSL_RUNTIME_CACHE_DIR": str(tmp_path / "other-cache")}
    _, table = flydsl.run("-m", "siteline", "run", "spawn.py", cwd=tmp_path, env=cache)
    assert "flash_attention_0" in table
    code = "import flydsl.compiler, siteline.flydsl; print(siteline.flydsl.enabled())"
    assert flydsl.run("-c", code, cwd=tmp_path, env={"SITELINE": "1"})[0].endswith("True\n")
    assert flydsl.run("-c", code, cwd=tmp_path)[0].endswith("False\n")


def test_an_unknown_flydsl_is_left_alone(flydsl, tmp_path):
    code = """
import json, warnings, siteline.flydsl
import flydsl.compiler.kernel_function as kernel
original = kernel.create_gpu_func
del kernel.create_gpu_func
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    hooked = siteline.flydsl.enable()
print(json.dumps([hooked, [str(one.message) for one in caught]]))
"""
    hooked, messages = flydsl.evaluate(code, tmp_path)
    assert not hooked
    assert "kernel_function.create_gpu_func" in messages[0]


STATE = """
import atexit
from flydsl._mlir import ir
atexit.register(lambda: print("left on" if ir._globals.loc_tracebacks_enabled() else "restored"))
"""


def test_the_users_own_error_comes_first(flydsl, example, tmp_path):
    script = STATE + example.read_text().replace(
        "    row_max = fx.Float32(-1.0e30)", "    raise KeyError('the user')")
    example.write_text(script)
    output, errors = flydsl.run("-m", "siteline", "run", example, cwd=tmp_path, status=1)
    assert output.strip().endswith("restored")
    assert errors.count("KeyError: 'the user'") == 1
    assert errors.index("KeyError: 'the user'") < errors.index("siteline: no kernel was compiled")
    assert "siteline did not" not in errors and "runpy" not in errors


def test_a_kernel_that_fails_to_compile_fails_as_without_siteline(flydsl, example, tmp_path):
    example.write_text(STATE + example.read_text().replace(
        "    row_max = fx.Float32(-1.0e30)",
        "    from flydsl._mlir.dialects import llvm\n"
        "    llvm.inline_asm(None, [], 'no_instruction', '', has_side_effects=True)\n"
        "    row_max = fx.Float32(-1.0e30)"))
    _, plain = flydsl.run(example, cwd=tmp_path, status=1)
    output, errors = flydsl.run("-m", "siteline", "run", example, cwd=tmp_path, status=1)
    assert output.strip().endswith("restored")
    failure = re.search(r"^\S*CompileError", plain, re.MULTILINE).group()
    assert re.search(f"^{re.escape(failure)}", errors, re.MULTILINE), errors
    assert "no_instruction" in errors and "siteline did not" not in errors
    assert errors.index("no_instruction") < errors.index("siteline: no kernel was compiled")


@pytest.mark.parametrize("ending, status, said", [
    ("sys.exit()", 0, ""), ("sys.exit(3)", 3, ""), ("sys.exit('so it ends')", 1, "so it ends\n"),
    ("raise KeyboardInterrupt", -signal.SIGINT, "KeyboardInterrupt\n"), ("1 +", 1, "SyntaxError: invalid syntax\n"),
])
def test_a_script_ends_as_without_siteline(environments, tmp_path, ending, status, said):
    (tmp_path / "ends.py").write_text(f"import sys\n{ending}\n")
    environment = environments("flydsl-0.5.0")
    _, plain = environment.run("ends.py", cwd=tmp_path, status=status)
    _, errors = environment.run("-m", "siteline", "run", "ends.py", cwd=tmp_path, status=status)
    table = "siteline: no kernel was compiled (each may have come from a cache)\n"
    assert plain.endswith(said) and errors.endswith(said + table)
    assert errors.removesuffix(table).replace(str(tmp_path) + "/", "") == plain.replace(str(tmp_path) + "/", "")


def test_debug_info_is_off_for_one_thread_only(flydsl, tmp_path):
    code = """
import json, os, threading, siteline.flydsl
from flydsl.compiler.jit_function import env
siteline.flydsl.enable()
seen = [env.debug.enable_debug_info]
with siteline.flydsl.without_debug_info():
    seen.append(env.debug.enable_debug_info)
    other = threading.Thread(target=lambda: seen.append(env.debug.enable_debug_info))
    other.start(); other.join()
seen.append(env.debug.enable_debug_info)
siteline.flydsl.disable()
seen.append(env.debug.enable_debug_info)
print(json.dumps(seen))
"""
    assert flydsl.evaluate(code, tmp_path) == [True, False, True, True, False]


def test_an_interrupt_restores_everything(flydsl, example, tmp_path):
    script = STATE + example.read_text().replace(
        "    row_max = fx.Float32(-1.0e30)",
        "    import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "    signal.raise_signal(signal.SIGINT)\n    row_max = fx.Float32(-1.0e30)")
    example.write_text(script)
    process = flydsl.start("-m", "siteline", "run", example, cwd=tmp_path)
    output, errors = process.communicate(timeout=600)
    assert process.returncode in (1, 130, -signal.SIGINT)
    assert "restored" in output and "KeyboardInterrupt" in errors


def test_four_threads_compile_their_own_kernels(flydsl, example, tmp_path):
    shutil.copy(EXAMPLES / "pingpong_gemm.py", tmp_path)
    (tmp_path / "threads.py").write_text("""
import runpy, threading
def work(script):
    runpy.run_path(script)["main"]()
scripts = ["flash_attention.py", "pingpong_gemm.py"] * 2
threads = [threading.Thread(target=work, args=[script]) for script in scripts]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
from flydsl._mlir import ir
print("left on" if ir._globals.loc_tracebacks_enabled() else "restored")
""")
    env = {"FLYDSL_RUNTIME_ENABLE_CACHE": "0"}
    output, table = flydsl.run("-m", "siteline", "run", "threads.py", cwd=tmp_path, env=env)
    assert output.strip().endswith("restored")
    for name, mfma in (("flash_attention_0", 4), ("pingpong_gemm_0", 2)):
        rows = [line for line in table.splitlines() if line.startswith(name)]
        assert len(rows) == 2 and rows[0] == rows[1] and f" 1 -> {mfma}" in rows[0], table


def test_modules_and_arguments(flydsl, tmp_path):
    (tmp_path / "told.py").write_text("import sys; print(sys.argv[1:], __name__)")
    output, errors = flydsl.run("-m", "siteline", "run", "-m", "told", "--policy", "x", cwd=tmp_path)
    assert output == "['--policy', 'x'] __main__\n"
    assert "no kernel was compiled" in errors
    _, errors = flydsl.run("-m", "siteline", "run", "--policy", "x", "told.py", cwd=tmp_path, status=2)
    assert "unknown policy 'x'" in errors
