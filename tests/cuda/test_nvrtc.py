"""The kernels compiled by NVRTC where its wheels are installed (`pip install tensorrt-lite[nvrtc]`), which needs no GPU. One text of each kernel;
all of them, for every architecture, is tools/compile_kernels.py's work."""

from __future__ import annotations

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tensorrt_lite._C.cuda import source as _source
from tensorrt_lite.cuda import _compiler, _toolchain
from tools import compile_kernels

pytestmark = pytest.mark.skipif(not shutil.which("g++") or os.uname().machine != "x86_64", reason="the units are listed on the emulator, which needs g++ on x86-64")
F16, F32, F64 = 6, 8, 9


@pytest.fixture(scope="module")
def nvrtc() -> Any:
    """NVRTC of CUDA 13 or 12, with headers."""
    for major in (13, 12):
        headers = _toolchain.headers_in(_toolchain.places(), major)
        for library in _toolchain.nvrtc_in(_toolchain.places(), major) if headers else ():
            return _toolchain.Nvrtc(library, headers)
    pytest.skip("NVRTC and its headers are not installed (nvidia-cuda-nvrtc, nvidia-cuda-runtime)")


@pytest.fixture(scope="module")
def units() -> list[compile_kernels.Unit]:
    return compile_kernels.units()


def test_every_kernel_compiles(nvrtc: Any, units: list[compile_kernels.Unit]) -> None:
    """To PTX: what the assembler does is left to the tool. NVRTC does not hold the GIL."""

    def refusal(unit: compile_kernels.Unit) -> str | None:
        try:
            nvrtc.compile(unit.source, "compute_90", [_compiler.HEADERS])
        except RuntimeError as error:
            return f"{unit.family}: {error}\n{unit.source}"
        return None

    chosen = compile_kernels.sample(units)
    assert {unit.family for unit in chosen} == {unit.family for unit in units}
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        refused = [text for text in pool.map(refusal, chosen) if text]
    assert not refused, "\n".join(refused)


def test_units_are_listed_once_and_use_every_header(units: list[compile_kernels.Unit]) -> None:
    texts = [unit.source for unit in units]
    assert len(texts) == len(set(texts)) > 2000
    direct = set(re.findall(r'#include "(\w+\.cuh)"', "".join(texts)))
    reached = direct | {name for file in _compiler.HEADERS.glob("*.cuh") for name in re.findall(r'#include "(\w+\.cuh)"', file.read_text())}
    assert reached == {file.name for file in _compiler.HEADERS.glob("*.cuh")}


def test_images(nvrtc: Any) -> None:
    """A cubin for a card that the compiler knows, PTX of its newest architecture for a newer one."""
    source = _source.pointwise_source("add", F32)
    assert nvrtc.compile(source, _toolchain.target(nvrtc, 90), [_compiler.HEADERS])[:4] == b"\x7fELF"
    ptx = nvrtc.compile(source, _toolchain.target(nvrtc, 999), [_compiler.HEADERS])
    assert f".target sm_{nvrtc.architectures[-1]}".encode() in ptx and ptx[-1:] == b"\0"
    with pytest.raises(RuntimeError, match="unit.cu"):
        nvrtc.compile("__global__ void broken( {", "sm_90", [])


def test_normal_numbers_come_from_the_functions_that_curand_uses(nvrtc: Any, units: list[compile_kernels.Unit]) -> None:
    """The approximate sine and cosine of float: with the precise ones the last digits are not PyTorch's."""
    source = next(unit.source for unit in units if "const float" not in unit.source and "float* out" in unit.source and "fill_normal" in unit.source)
    ptx = nvrtc.compile(source, "compute_90", [_compiler.HEADERS])
    assert b"sin.approx" in ptx and b"cos.approx" in ptx


def test_functions_without_annotations_run_on_the_device(nvrtc: Any) -> None:
    """So that generic lambdas are accepted, by CUDA 12's NVRTC too."""
    source = """
        template <int n> struct Count { static constexpr int value = n; };
        int twice(int x) { return 2 * x; }
        extern "C" __global__ void kernel(int* out) {
            const auto put = [&](auto count) { out[decltype(count)::value] = twice(3); };
            put(Count<1>());
        }"""
    assert nvrtc.compile(source, "sm_90", [])[:4] == b"\x7fELF"


def test_filled_cache(nvrtc: Any, units: list[compile_kernels.Unit], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The tool's files have the names that the library looks for."""
    log = tmp_path / "log"
    assert compile_kernels.main(["--family", "radix", "--arch", "sm_90,compute_90", "--jobs", "1", "--fill", str(tmp_path / "cache"), "--log", str(log)]) == 0
    sources = [unit.source for unit in units if unit.family == "radix"]
    names = {_compiler.image_name(source, arch, nvrtc.label) for source in sources for arch in ("sm_90", "compute_90")}
    assert {file.name for file in (tmp_path / "cache").iterdir()} == names
    printed = capsys.readouterr().out
    assert f"{len(sources)} units: radix {len(sources)}" in printed and f"| {nvrtc.label} | sm_90 | {len(sources)} | 0 |" in printed
