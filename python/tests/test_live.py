"""rewrite, restore, report and capture on live operations of several packages."""

import os
import subprocess

import pytest

from conftest import ROOT, VENVS, WHEELS

BUILD = """
import json, siteline
from {package} import ir
from {package}.dialects import arith, func

def helper(value):
    return arith.addi(value, value)

def kernel(value):
    first = helper(value)
    second = helper(value)
    func.ReturnOp([arith.addi(first, second)])

def build():
    module = ir.Module.create()
    with ir.InsertionPoint(module.body):
        type = ir.IntegerType.get_signless(32)
        function = func.FuncOp("kernel", ([type], [type]))
        with siteline.capture(ir) as reports, ir.InsertionPoint(function.add_entry_block()):
            kernel(function.arguments[0])
    return module, reports
"""


def evaluate(binding, tmp_path, code):
    environment, package = binding
    (tmp_path / "built.py").write_text(BUILD.format(package=package) + code)
    return environment.evaluate("import runpy; runpy.run_path('built.py')", tmp_path)


def test_rewriting_shows_the_call_sites_and_can_be_undone(binding, tmp_path):
    found = evaluate(binding, tmp_path, """
with ir.Context(), ir.Location.unknown():
    module, _ = build()
    text = lambda: module.operation.get_asm(enable_debug_info=True)
    plain = lambda: module.operation.get_asm()
    before, before_plain = text(), plain()
    first = siteline.rewrite(module)
    after, after_plain = text(), plain()
    again = siteline.rewrite(module)
    report = siteline.report(module)["functions"][0]
    shown = [chain["shown"] for chain in report["chains"]]
    idempotent = after == text()
    siteline.restore(module)
    print(json.dumps([first.functions, first.changed > 0, again.changed, idempotent,
                      before == text(), before_plain == after_plain, shown]))
""")
    functions, changed, again, idempotent, restored, only_locations, shown = found
    assert (functions, changed, again) == (1, True, 0)
    assert idempotent and restored and only_locations
    numbers = sorted(int(line.rsplit(":", 1)[1]) for line in shown if "built.py" in line)
    assert numbers[:2] == [10, 11], shown


def test_capture_restores_the_settings_and_reports(binding, tmp_path):
    found = evaluate(binding, tmp_path, """
settings = lambda: (ir._globals.loc_tracebacks_enabled(), ir._globals.loc_tracebacks_frame_limit())
before = settings()
with ir.Context(), ir.Location.unknown():
    with siteline.capture(ir):
        inside = settings()
        with siteline.capture() as reports:
            pass
        still = settings()
    try:
        with siteline.capture(ir):
            raise KeyError
    except KeyError:
        pass
print(json.dumps([before == settings(), inside == still == (True, 512), reports[0].enabled,
                  reports[0].overrides_explicit, reports[0].limits]))
""")
    restored, unlimited, enabled, overrides, limits = found
    assert restored and unlimited and enabled
    assert overrides == (not limits)


def test_errors_are_exceptions_with_the_reason(binding, tmp_path):
    found = evaluate(binding, tmp_path, """
errors = []
def error(work):
    try:
        work()
    except Exception as raised:
        errors.append([type(raised).__name__, str(raised)])
with ir.Context(), ir.Location.unknown():
    module, _ = build()
    error(lambda: siteline.rewrite(3))
    error(lambda: siteline.rewrite(module, policy="outer"))
    error(lambda: siteline.rewrite(module, siteline.Settings(), policy="unique"))
    error(lambda: siteline.restore(type("Fake", (), {"_CAPIPtr": module.context._CAPIPtr})()))
error(lambda: siteline.provider("json"))
print(json.dumps(errors))
""")
    kinds = [kind for kind, _ in found]
    assert kinds == ["TypeError", "ValueError", "TypeError", "TypeError", "ProviderError"]
    assert "unknown policy 'outer'" in found[1][1]
    assert "json" in found[4][1]


def test_a_library_that_lacks_functions_is_refused_by_name(environments, tmp_path):
    package = tmp_path / "half"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (tmp_path / "half.c").write_text(
        "void *mlirOperationGetContext(void *op) { return op; }\n"
        "void *mlirOperationGetLocation(void *op) { return op; }\n")
    library = package / "libHalf.so"
    subprocess.run(["clang-22", "-shared", "-fPIC", "-o", library, tmp_path / "half.c"], check=True)
    code = f"""
import ctypes, json, sys, types
import half, siteline
ctypes.CDLL({os.fspath(library)!r})
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
name = ctypes.create_string_buffer(b"half.ir.Operation._CAPIPtr")
op = types.SimpleNamespace(_CAPIPtr=new(1, name, None))
try:
    siteline.rewrite(op)
except siteline.ProviderError as error:
    print(json.dumps(str(error)))
"""
    error = environments("iree").evaluate(code, tmp_path)
    assert os.fspath(library) in error and "mlirOperationSetLocation" in error and "'half'" in error
    assert "mlirOperationGetContext" not in error


def test_threads_rewrite_their_own_contexts(binding, tmp_path):
    found = evaluate(binding, tmp_path, """
import threading
changed = []
def work():
    for _ in range(20):
        with ir.Context(), ir.Location.unknown():
            changed.append(siteline.rewrite(build()[0]).changed)
threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print(json.dumps([len(changed), len(set(changed)), ir._globals.loc_tracebacks_enabled()]))
""")
    assert found == [80, 1, False]


def test_a_finished_object_is_refined(environments, tmp_path):
    # Its helper of line 2 of helpers.h is called from lines 6 and 7 there.
    object_ = ROOT / "test/fixtures/object/nested.gfx942.hsaco"
    code = f"""
import json, pathlib, siteline
from siteline import _siteline
def lines(content):
    kernels = json.loads(_siteline.measure("x", content, siteline.Settings()))
    (kernel,) = [kernel for kernel in kernels if kernel["name"] == "add"]
    return {{line.rsplit("/", 1)[1]: n for line, n in kernel["class_lines"]["other"].items()}}
before = pathlib.Path({os.fspath(object_)!r}).read_bytes()
after = siteline.refine(before)
again = siteline.refine(after)
try:
    siteline.refine(before[:100])
    error = None
except ValueError as raised:
    error = str(raised)
same = _siteline.compare(before, after, loaded=True) is None
print(json.dumps([lines(before), lines(after), same, after == again, error]))
"""
    before, after, same, stable, error = environments("iree").evaluate(code, tmp_path)
    helper = [{line: n for line, n in side.items() if line.startswith("helpers.h")} for side in (before, after)]
    assert helper == [{"helpers.h:2": 5}, {"helpers.h:6": 2, "helpers.h:7": 3}]
    assert same and stable
    assert error.startswith("'module'") or error.startswith("module"), error


def test_a_verdict_says_whose_difference_it_is(environments, tmp_path):
    object_ = ROOT / "test/fixtures/object/nested.gfx942.hsaco"
    code = f"""
import json, pathlib, struct
from siteline._record import CONTROL_LEGS, verdict_of
code = pathlib.Path({os.fspath(object_)!r}).read_bytes()
def section(name):
    table, = struct.unpack_from("<Q", code, 40)
    size, count, names = struct.unpack_from("<HHH", code, 58)
    heads = [struct.unpack_from("<IIQQQQ", code, table + at * size) for at in range(count)]
    strings = heads[names][4]
    for head in heads:
        if code[strings + head[0]:].startswith(name + b"\\0"):
            return head[4]
def changed(name):
    at = section(name)
    return code[:at] + bytes([code[at] ^ 1]) + code[at + 1:]
text, debug = changed(b".text"), changed(b".debug_line")
legs = []
def leg(*results):
    count = iter(range(100))
    def compiled():
        legs.append(results)
        return [results[next(count) % len(results)]]
    return compiled
same = leg(code)
def verdict(**given):
    legs.clear()
    return verdict_of(**(dict(without=same, sites=same, debug=same, made=[code], shipped=[code]) | given)), len(legs)
print(json.dumps([
    verdict(),
    verdict(made=[debug], debug=leg(debug)),
    verdict(sites=leg(debug)),
    verdict(made=[text], debug=leg(text)),
    verdict(made=[text], debug=leg(text), shipped=[text]),
    verdict(sites=leg(text, code)),
    verdict(made=[text], debug=leg(code, text)),
    verdict(made=[code, text]),
    verdict(made=[code, text], debug=lambda: [code, text]),
]))
"""
    verdicts = environments("iree").evaluate(code, tmp_path)
    said = [verdict.split(":")[0] for verdict, _ in verdicts]
    assert said == [
        "identical", "identical", "different with sites", "different with -g and sites",
        "different with -g, also without sites", "nondeterministic compiler",
        "nondeterministic compiler", "nondeterministic compiler", "different with -g and sites"]
    # Of 9 compilations of either side, the first is no control leg.
    assert [count for _, count in verdicts][:4] == [2, 2, 2 + 2 * 8, 2 + 2 * 8]
    assert ".text" in verdicts[3][0] and ".debug_line" in verdicts[2][0]
    assert verdicts[5][0].endswith("1 and 2 results in 9 compilations each")
    assert verdicts[8][0].endswith("1 code objects against 2")


def test_waits_say_what_they_wait_for(environments, tmp_path):
    object_ = ROOT / "test/fixtures/object/nested.gfx942.hsaco"
    code = f"""
import json, pathlib, siteline
print(json.dumps(siteline.waits(pathlib.Path({os.fspath(object_)!r}).read_bytes())))
"""
    kernels = environments("iree").evaluate(code, tmp_path)
    (exchange,) = [kernel for kernel in kernels if kernel["name"] == "exchange"]
    assert exchange["chip"] == "gfx942" and exchange["total"] == 4 and exchange["hurries"] == []
    awaited = [place["instruction"].split()[0] for wait in exchange["waits"] for place in wait["awaited"]]
    assert any(name.startswith("s_load") for name in awaited) and any(name.startswith("ds_") for name in awaited)
    failing = code.replace("print(json.dumps(", "try: siteline.waits(b'no object')\nexcept ValueError as error: print(json.dumps(str(error)))\n#")
    assert "no code object" in environments("iree").evaluate(failing, tmp_path)


def test_the_extension_links_no_llvm(tmp_path):
    wheel = next(WHEELS.glob("siteline-*.whl"))
    subprocess.run(["/usr/bin/python3", "-m", "zipfile", "-e", wheel, tmp_path], check=True)
    library = tmp_path / "siteline/_siteline.abi3.so"
    dump = ["llvm-readelf-22", "--dyn-syms", "--needed-libs", library]
    symbols = subprocess.run(dump, check=True, capture_output=True, text=True).stdout
    names = [line.split()[-1] for line in symbols.splitlines() if line.split()]
    assert names and not [n for n in names if n.startswith(("mlir", "LLVM", "libLLVM", "libMLIR"))]


@pytest.mark.parametrize("first", ["flydsl", "iree"])
def test_of_several_mlirs_the_packages_own_is_used(environments, tmp_path, first):
    # FlyDSL's and IREE's Python extensions refuse to be loaded together (each has its own
    # nanobind under one name), but their libraries can be, and a system's libMLIR as well.
    iree = next((VENVS / "iree").glob("lib/python*/site-packages"))
    flydsl = next((VENVS / "flydsl-0.5.0").glob("lib/python*/site-packages"))
    others = {
        "flydsl": iree / "iree/compiler/_mlir_libs/libIREECompiler.so",
        "iree": next(flydsl.glob("flydsl/_mlir/_mlir_libs/libFlyPythonCAPI.so*")),
    }
    package = {"flydsl": "flydsl._mlir", "iree": "iree.compiler"}[first]
    code = f"""
import ctypes, importlib, json, siteline
for path in ({os.fspath(others[first])!r}, "/usr/lib/llvm-22/lib/libMLIR.so.22.1"):
    ctypes.CDLL(path)
ir = importlib.import_module({package!r} + ".ir")
with ir.Context(), ir.Location.unknown():
    report = siteline.rewrite(ir.Module.create())
print(json.dumps([report.library, str(siteline.provider({package!r}))]))
"""
    name = {"flydsl": "flydsl-0.5.0", "iree": "iree"}[first]
    used, provider = environments(name).evaluate(code, tmp_path)
    assert used == provider
    assert {"flydsl": "libFlyPythonCAPI", "iree": "libIREECompiler"}[first] in used
