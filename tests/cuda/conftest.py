"""What the CUDA tests share: the emulator built once, a process to run checks in, the modules of cysrc/cuda."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT))

from tools.cuda_emulator import compiler


_WITHOUT_EMULATOR = ("test_toolchain.py", "test_cublas_header.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a compiler the emulator cannot be built; tests of a device may have a real one, and some need none."""
    if shutil.which("g++") and os.uname().machine == "x86_64":
        return
    for item in items:
        if HERE in item.path.parents and HERE / "device" not in item.path.parents and item.path.name not in _WITHOUT_EMULATOR:
            item.add_marker(pytest.mark.skip(reason="the emulator needs g++ on x86-64"))


@pytest.fixture(scope="session")
def cache() -> Path:
    """Where compiled things are kept between runs; every file's name is a digest of what it was made from."""
    folder = ROOT / "build" / "cuda_emulator"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class EmulatorProcess:
    """Runs functions of emulated_checks.py with the emulator as the CUDA driver."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith("CUEMU_")}
        self.environment["TENSORRT_LITE_LIBCUDA"] = str(compiler.build_driver(cache))

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
def emulator(cache: Path) -> EmulatorProcess:
    """The driver built, the environment set."""
    return EmulatorProcess(cache)
