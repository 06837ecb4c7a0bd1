"""The CUDA emulator and the driver module: kernels compiled from CUDA C++, loaded and
launched through `cysrc/cuda`, compared with NumPy; errors that the emulator exists to catch.

Each check runs in a process of its own (emulated_checks.py), since a driver library is opened once per process and some
checks end in a fault.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).resolve().parents[2]
KERNELS = Path(__file__).resolve().parent / "kernels.cu"
sys.path.insert(0, str(ROOT))

from tools.cuda_emulator import compiler

if TYPE_CHECKING:
    from conftest import EmulatorProcess

@pytest.fixture(scope="session")
def kernels(cache: Path) -> Path:
    """kernels.cu compiled for the emulator."""
    return compiler.compile_module(KERNELS, cache)


@pytest.fixture(scope="session")
def sanitized(cache: Path) -> tuple[Path, dict[str, str]]:
    """kernels.cu with the address sanitizer, and the environment it runs in."""
    environment = compiler.sanitizer_environment()
    if environment is None:
        pytest.skip("g++ has no libasan here")
    return compiler.compile_module(KERNELS, cache, sanitize=True), environment


@pytest.mark.parametrize("check", ["block_sum", "matmul", "reverse_block", "divergent_collectives"])
def test_kernels_in_every_thread_order(emulator: EmulatorProcess, kernels: Path, check: str) -> None:
    """Right in every order with all barriers, wrong in every order with one deleted."""
    emulator.check(check, kernels)


def test_half_types_round_to_nearest_even(emulator: EmulatorProcess, kernels: Path) -> None:
    """The emulator's own __half and __nv_bfloat16."""
    emulator.check("half_types", kernels)


def test_mismatched_barriers_are_named_errors(emulator: EmulatorProcess, kernels: Path) -> None:
    """Barriers and warp collectives that threads do not reach together."""
    emulator.check("barrier_errors", kernels)


def test_wild_pointer_in_a_kernel_is_an_error(emulator: EmulatorProcess, kernels: Path) -> None:
    """The process goes on."""
    emulator.check("illegal_address", kernels)


def test_device_memory_and_driver_errors(emulator: EmulatorProcess, kernels: Path) -> None:
    """Allocation, copies, statistics, wrong arguments."""
    emulator.check("memory", kernels)


def test_driver_interface(emulator: EmulatorProcess, kernels: Path) -> None:
    """The calls that programs other than ours make."""
    emulator.check("driver_interface", kernels)


@pytest.mark.parametrize("keys", ["1", "0"])
def test_host_access_to_device_memory_is_caught(emulator: EmulatorProcess, keys: str) -> None:
    """Following a device pointer on the host ends in a fault and says why, with and without protection keys."""
    result = emulator.run("host_access", CUEMU_PROTECTION_KEYS=keys)
    assert result.stdout == "before\n"
    assert result.returncode == -signal.SIGSEGV
    assert "host code accessed device memory" in result.stderr


@pytest.mark.parametrize("offset", [1, 32])
@pytest.mark.parametrize("kernel", ["shared_index", "dynamic_shared_index", "global_index"])
def test_out_of_bounds_under_the_sanitizer(
    emulator: EmulatorProcess, sanitized: tuple[Path, dict[str, str]], kernel: str, offset: int
) -> None:
    """One element too far is found, and the report names the kernel and the file."""
    module, environment = sanitized
    result = emulator.run("out_of_bounds", module, kernel, offset, **environment)
    assert result.stdout == "in bounds\n"
    assert result.returncode != 0
    assert "ERROR: AddressSanitizer" in result.stderr and kernel in result.stderr, result.stderr
    assert "kernels.cu:" in result.stderr, result.stderr


def test_correct_kernels_are_clean_under_the_sanitizer(
    emulator: EmulatorProcess, sanitized: tuple[Path, dict[str, str]]
) -> None:
    """Barriers, shared memory, fibers and abandoned launches raise no false alarm."""
    module, environment = sanitized
    emulator.check("barrier_errors", module, **environment)
    emulator.check("divergent_collectives", module, **environment)


@pytest.mark.parametrize("unit", ["kernels", "float32 add", "bfloat16 gelu", "complex64 tanh", "float64 conversion to int64"])
def test_nvcc_compiles_the_same_text(tmp_path: Path, unit: str) -> None:
    """What the emulator runs is what a GPU would get."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    from tensorrt_lite._C.cuda import source as _source

    f32, bf16, f64, i64, c64 = 8, 7, 9, 5, 10
    texts = {
        "kernels": KERNELS.read_text, "float32 add": lambda: _source.pointwise_source("add", f32), "bfloat16 gelu": lambda: _source.pointwise_source("gelu", bf16),
        "complex64 tanh": lambda: _source.pointwise_source("tanh", c64), "float64 conversion to int64": lambda: _source.copy_source(f64, i64),
    }  # fmt: skip
    source = tmp_path / "unit.cu"
    source.write_text(texts[unit]())
    command = [nvcc, "-std=c++17", "-arch=sm_80", "-cubin", f"-I{ROOT / 'cuda_src'}", f"-I{ROOT / 'cysrc' / 'core'}", "-o", str(tmp_path / "out.cubin")]
    result = subprocess.run([*command, str(source)], check=False, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out.cubin").read_bytes()[:4] == b"\x7fELF"


def test_without_a_driver_cuda_is_absent_quietly(emulator: EmulatorProcess, tmp_path: Path) -> None:
    """available() answers False, every call raises one clear error, nothing is printed."""
    result = emulator.run("absent_driver", TENSORRT_LITE_LIBCUDA=str(tmp_path / "libcuda.so.1"))
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
