"""The wheel in a clean environment of each front end, outside the tree.

A test names the front end; the front end itself lies in an environment of tools/venv.sh, which
the clean one sees through a `.pth` file.
"""

import json
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
VENVS = pathlib.Path(os.environ.get("VENV_ROOT", ROOT / ".venv")).resolve()
WHEELS = ROOT / "python/target/wheels"
EXAMPLES = ROOT / "examples/flydsl"
FLYDSL = ("flydsl-0.1.8", "flydsl-0.5.0")


class Environment:
    """A clean environment with the wheel and one front end."""

    def __init__(self, name, folder):
        front_end = VENVS / name
        if not front_end.exists():
            pytest.fail(f"{front_end} is missing: run tools/venv.sh {name}")
        wheel = next(WHEELS.glob("siteline-*.whl"), None)
        if wheel is None:
            pytest.fail(f"{WHEELS} has no wheel: run make wheel")
        self.python = folder / "bin/python"
        options = ["--system-site-packages"] if name.startswith("flydsl") else []
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", *options, folder], check=True)
        pip = [front_end / "bin/python", "-m", "pip", "--python", self.python, "--quiet"]
        subprocess.run([*pip, "--disable-pip-version-check", "install", "--no-deps", wheel], check=True)
        packages = next(folder.glob("lib/python*/site-packages"))
        shared = next(front_end.glob("lib/python*/site-packages"))
        (packages / "front_end.pth").write_text(f"{shared}\n")

    def start(self, *arguments, cwd, env=None):
        """Starts Python with a cache of its own unless `env` names one."""
        chip = (env or {}).get("ARCH", "gfx950")
        base = {k: v for k, v in os.environ.items() if not k.startswith(("FLYDSL", "SITELINE", "PYTHON", "TRITON"))}
        whole = base | {
            "COMPILE_ONLY": "1", "ARCH": chip, "FLYDSL_GPU_ARCH": chip,
            "ROCM_PATH": str(VENVS / "rocm"), "FLYDSL_RUNTIME_CACHE_DIR": str(cwd / "cache"),
            "TRITON_CACHE_DIR": str(cwd / "triton-cache"),
            "SITELINE_DISASSEMBLER": "/usr/lib/llvm-22/lib/libLLVM.so.22.1",
        } | (env or {})
        return subprocess.Popen([self.python, *map(str, arguments)], cwd=cwd, env=whole, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *arguments, cwd, env=None, status=0):
        """Runs Python and gives its output and errors."""
        process = self.start(*arguments, cwd=cwd, env=env)
        output, errors = process.communicate(timeout=600)
        assert process.returncode == status, output + errors
        return output, errors

    def evaluate(self, code, cwd, env=None):
        """Runs code that prints JSON as its last line."""
        output, _ = self.run("-c", code, cwd=cwd, env=env)
        return json.loads(output.splitlines()[-1])


@pytest.fixture(scope="session")
def environments(tmp_path_factory):
    made = {}

    def get(name):
        if name not in made:
            made[name] = Environment(name, tmp_path_factory.mktemp(name))
        return made[name]

    return get


@pytest.fixture(params=FLYDSL)
def flydsl(request, environments):
    return environments(request.param)


@pytest.fixture(params=("iree", *FLYDSL))
def binding(request, environments):
    """An environment and the name of its MLIR package."""
    package = "iree.compiler" if request.param == "iree" else "flydsl._mlir"
    return environments(request.param), package


@pytest.fixture
def example(tmp_path):
    """The flash-attention example, copied out of the tree."""
    return pathlib.Path(shutil.copy(EXAMPLES / "flash_attention.py", tmp_path))
