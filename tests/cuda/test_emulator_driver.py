"""The emulator's driver API: devices, streams that run late, errors that stay, graphs, sharing between processes.

The checks are in driver_checks.py and run in processes of their own, which need ctypes only.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from tools.cuda_emulator import compiler

if TYPE_CHECKING:
    from conftest import EmulatorProcess


@pytest.fixture(scope="session")
def kernels(cache: Path) -> Path:
    """kernels.cu compiled for the emulator."""
    return compiler.compile_module(HERE / "kernels.cu", cache)


def check(emulator: EmulatorProcess, name: str, *arguments: object, **environment: str) -> None:
    """Runs a check that must pass."""
    command = [sys.executable, "-S", str(HERE / "driver_checks.py"), name, *map(str, arguments)]
    environment = {**emulator.environment, **environment}
    result = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr


def test_devices(emulator: EmulatorProcess, kernels: Path) -> None:
    """Two devices with 64 MB each."""
    check(emulator, "devices", kernels, CUEMU_DEVICES="2", CUEMU_MEMORY_MB="64")


@pytest.mark.parametrize("streams", ["eager", "late"])
def test_entries(emulator: EmulatorProcess, kernels: Path, streams: str) -> None:
    """The same answers whenever the work runs."""
    check(emulator, "entries", kernels, CUEMU_STREAMS=streams)


@pytest.mark.parametrize("streams", ["eager", "late"])
def test_rectangles(emulator: EmulatorProcess, tmp_path: Path, streams: str) -> None:
    """cuMemcpy2D."""
    check(emulator, "rectangles", tmp_path / "launched", CUEMU_STREAMS=streams, CUEMU_LAUNCHED=str(tmp_path / "launched"))


def test_misaligned_accesses(emulator: EmulatorProcess, cache: Path) -> None:
    """Which x86 would let pass."""
    check(emulator, "misaligned_accesses", compiler.compile_module(HERE / "kernels.cu", cache))


def test_launched_kernels(emulator: EmulatorProcess, kernels: Path, tmp_path: Path) -> None:
    """CUEMU_LAUNCHED, with unguarded memory."""
    names = str(tmp_path / "launched")
    check(emulator, "launched_kernels", kernels, names, CUEMU_LAUNCHED=names, CUEMU_GUARD="0")


@pytest.mark.parametrize("streams", ["eager", "late"])
def test_host_functions(emulator: EmulatorProcess, streams: str) -> None:
    """cuLaunchHostFunc."""
    check(emulator, "host_functions", CUEMU_STREAMS=streams)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_late_streams_show_missing_synchronisation(emulator: EmulatorProcess, kernels: Path, seed: int) -> None:
    """Wrong results where an event, a wait or a synchronisation is missing, and only there."""
    check(emulator, "late_streams", kernels, CUEMU_STREAMS="late", CUEMU_SEED=str(seed))


@pytest.mark.parametrize("errors, sticky", [("sticky", 1), ("once", 0)])
def test_late_errors(emulator: EmulatorProcess, kernels: Path, errors: str, sticky: int) -> None:
    """CUEMU_ERRORS."""
    check(emulator, "late_errors", kernels, sticky, CUEMU_STREAMS="late", CUEMU_ERRORS=errors)


@pytest.mark.parametrize("streams", ["eager", "late"])
@pytest.mark.parametrize("name", ["graphs", "capture_errors"])
def test_graphs(emulator: EmulatorProcess, kernels: Path, name: str, streams: str) -> None:
    """Stream capture and its rules."""
    check(emulator, name, kernels, CUEMU_STREAMS=streams)


def test_virtual_memory(emulator: EmulatorProcess, kernels: Path) -> None:
    """cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess."""
    check(emulator, "virtual_memory", kernels, CUEMU_MEMORY_MB="64")


@pytest.mark.parametrize("streams", ["eager", "late"])
def test_memory_is_shared_between_processes(emulator: EmulatorProcess, kernels: Path, streams: str) -> None:
    """cuIpcGetMemHandle, cuIpcOpenMemHandle and the calls for events."""
    check(emulator, "share_memory", kernels, CUEMU_STREAMS=streams)
