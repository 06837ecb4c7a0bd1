"""What the CUDA tests share: the emulator built once, a process to run checks in, the modules of cysrc/cuda."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from tools.cuda_emulator import compiler


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a compiler the emulator cannot be built."""
    if shutil.which("g++") and os.uname().machine == "x86_64":
        return
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="the emulator needs g++ on x86-64"))


@pytest.fixture(scope="session")
def cache() -> Path:
    """Where compiled things are kept between runs; every file's name is a digest of what it was made from."""
    folder = ROOT / "build" / "cuda_emulator"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def module_path(cache: Path) -> str | None:
    """The folder to put on PYTHONPATH for cysrc/cuda's modules; None where the package is built and has them."""
    try:
        if all(importlib.util.find_spec(f"tensorrt_lite._C.cuda.{name}") for name in ("driver", "pointwise")):
            return None
    except ImportError:
        pass
    pytest.importorskip("Cython", reason="the package is not built, and Cython is not here to build cysrc/cuda alone")
    sources = sorted((ROOT / "cysrc" / "cuda").glob("*.p[yx][xd]"))
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()[:20]
    folder = cache / f"extensions-{digest}-{sys.implementation.cache_tag}"
    if folder.is_dir():
        return str(folder)
    scratch = cache / f"extensions-{os.getpid()}"
    scratch.mkdir()
    for file in sources:
        shutil.copy(file, scratch)
    for name in ("driver", "pointwise"):
        subprocess.run([sys.executable, "-m", "cython", "-3", f"{name}.pyx"], cwd=scratch, check=True)
        include = sysconfig.get_path("include")
        command = ["gcc", "-O1", "-fPIC", "-shared", f"-I{include}", f"{name}.c", "-o", f"{name}.so", "-ldl"]
        subprocess.run(command, cwd=scratch, check=True)
    scratch.rename(folder)
    return str(folder)


class EmulatorProcess:
    """Runs functions of emulated_checks.py with the emulator as the CUDA driver."""

    def __init__(self, cache: Path, modules: str | None) -> None:
        """`modules`: a folder for PYTHONPATH, or None."""
        self.cache = cache
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("CUEMU_")}
        self.environment["TENSORRT_LITE_LIBCUDA"] = str(compiler.build_driver(cache))
        if modules:
            self.environment["PYTHONPATH"] = modules

    def run(self, check: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """The finished process of one check."""
        command = [sys.executable, str(HERE / "emulated_checks.py"), check, *map(str, arguments)]
        environment = {**self.environment, **environment}
        return subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=120)

    def check(self, check: str, *arguments: object, **environment: str) -> None:
        """Runs a check that must pass."""
        result = self.run(check, *arguments, **environment)
        assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture(scope="session")
def emulator(cache: Path, module_path: str | None) -> EmulatorProcess:
    """The driver built, the environment set."""
    return EmulatorProcess(cache, module_path)
