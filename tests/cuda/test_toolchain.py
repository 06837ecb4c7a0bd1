"""Which compiler and which libraries a driver gets, and the cache of compiled code: with stand-ins for NVIDIA's files."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tensorrt_lite.cuda import _compiler, _libraries, _toolchain

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="the stand-ins are compiled with gcc")


def make_nvrtc(folder: Path, major: int, minor: int = 0) -> None:
    """A libnvrtc.so.<major> that answers what it is."""
    folder.mkdir(parents=True, exist_ok=True)
    text = f"""
        int nvrtcVersion(int* major, int* minor) {{ *major = {major}; *minor = {minor}; return 0; }}
        int nvrtcGetNumSupportedArchs(int* n) {{ *n = 3; return 0; }}
        int nvrtcGetSupportedArchs(int* to) {{ to[0] = 90; to[1] = 80; to[2] = 100; return 0; }}
    """
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / f"libnvrtc.so.{major}")], input=text, text=True, check=True)


def make_headers(folder: Path, major: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cuda_fp16.h").write_text("")
    (folder / "cuda.h").write_text(f"#define CUDA_VERSION {major}0{major % 10}0\n")


def make_wheels(place: Path, major: int, headers: bool = True) -> None:
    """As NVIDIA's wheels are laid out: one folder from CUDA 13 on, one for each wheel before."""
    make_nvrtc(place / "nvidia" / (f"cu{major}" if major >= 13 else "cuda_nvrtc") / "lib", major)
    if headers:
        make_headers(place / "nvidia" / (f"cu{major}" if major >= 13 else "cuda_runtime") / "include", major)


def make_nvcc(place: Path, major: int) -> None:
    path = place / "bin" / "nvcc"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\n[ "$1" = --list-gpu-code ] && echo "sm_80\nsm_90" || echo "Cuda compilation tools, release {major}.1, V{major}.1.80"\n')
    path.chmod(0o755)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where anything is installed."""
    monkeypatch.setattr(_toolchain, "places", lambda: [tmp_path])
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(_toolchain.shutil, "which", lambda name: None)
    return tmp_path


@needs_gcc
def test_the_drivers_major_version_decides(place: Path) -> None:
    for major in (12, 13):
        make_wheels(place, major)
    assert _toolchain.find(13000).label == "nvrtc 13.0"
    assert _toolchain.find(12080).label == "nvrtc 12.0"
    assert "cuda_runtime" in str(_toolchain.find(12080).headers)
    assert _toolchain.find(14010).label == "nvrtc 13.0"  # older code runs on newer drivers


@needs_gcc
def test_newer_than_the_driver_is_never_taken(place: Path) -> None:
    make_wheels(place, 13)
    make_nvcc(place, 13)
    with pytest.raises(RuntimeError, match="NVRTC 13 .* needs a driver of CUDA 13") as error:
        _toolchain.find(12040)
    assert "pip install nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12" in str(error.value) and "nvcc of CUDA 13" in str(error.value)


@needs_gcc
def test_without_headers_nvcc_takes_over(place: Path) -> None:
    make_wheels(place, 13, headers=False)
    with pytest.raises(RuntimeError, match="without headers of CUDA 13.*pip install nvidia-cuda-nvrtc nvidia-cuda-runtime$"):
        _toolchain.find(13000)
    make_headers(place / "nvidia" / "cuda_runtime" / "include", 12)  # of another version: not these
    with pytest.raises(RuntimeError, match="without headers of CUDA 13"):
        _toolchain.find(13000)
    make_nvcc(place, 13)
    found = _toolchain.find(13000)
    assert isinstance(found, _toolchain.Nvcc) and found.major == 13 and found.architectures == [80, 90]


def test_nothing_installed(place: Path) -> None:
    with pytest.raises(RuntimeError, match="neither NVRTC with its headers nor nvcc .*: pip install nvidia-cuda-nvrtc nvidia-cuda-runtime$"):
        _toolchain.find(13000)


@needs_gcc
def test_cards_that_the_compiler_does_not_know(place: Path) -> None:
    """Newer ones get PTX of the newest architecture before them, older ones an error."""
    make_wheels(place, 13)
    compiler = _toolchain.find(13000)
    assert compiler.architectures == [80, 90, 100]
    assert [_toolchain.target(compiler, n) for n in (80, 86, 90, 100, 103, 120)] == ["sm_80", "compute_80", "sm_90", "sm_100", "compute_100", "compute_100"]
    with pytest.raises(RuntimeError, match="sm_80 and newer, and the card is sm_75"):
        _toolchain.target(compiler, 75)


def test_libraries_go_with_the_driver(tmp_path: Path) -> None:
    for major in (12, 13):
        (tmp_path / f"libcublasLt.so.{major}").write_text("")
    assert _libraries.find("cublasLt", [tmp_path], 13000) == str(tmp_path / "libcublasLt.so.13")
    assert _libraries.find("cublasLt", [tmp_path], 12040) == str(tmp_path / "libcublasLt.so.12")
    (tmp_path / "libcublasLt.so.12").unlink()
    assert _libraries.find("cublasLt", [tmp_path], 12040) is None


class OneByteCompiler:
    """Counts what it is asked for."""

    label, architectures = "counting 1.0", [90]

    def __init__(self) -> None:
        self.calls: list[str] = []

    def compile(self, source: str, arch: str, include: Any) -> bytes:
        self.calls.append(arch)
        return source[:1].encode()


@pytest.fixture
def compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OneByteCompiler:
    made = OneByteCompiler()
    monkeypatch.setenv("TENSORRT_LITE_CUDA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(_compiler, "is_emulated", lambda: False)
    monkeypatch.setattr(_compiler, "_device_compiler", lambda: made)
    monkeypatch.setattr(_compiler, "_capability", lambda device: (90, 120)[device])
    return made


def test_compiled_once_and_readable_by_others(tmp_path: Path, compiler: OneByteCompiler) -> None:
    assert _compiler.compile_unit("x", 0) == _compiler.compile_unit("x", 0) == b"x" and compiler.calls == ["sm_90"]
    assert _compiler.compile_unit("x", 1) == b"x" and compiler.calls == ["sm_90", "compute_90"]
    files = sorted((tmp_path / "cache").iterdir())
    assert [f.suffix for f in files] == sorted(f.suffix for f in files) or {f.suffix for f in files} == {".cubin", ".ptx"}
    assert {f.name for f in files} == {_compiler.image_name("x", arch, compiler.label) for arch in ("sm_90", "compute_90")}
    assert all(stat.S_IMODE(f.stat().st_mode) == 0o644 for f in files)


def test_a_file_that_cannot_be_read_counts_as_absent(tmp_path: Path, compiler: OneByteCompiler) -> None:
    kept = tmp_path / "cache" / _compiler.image_name("x", "sm_90", compiler.label)
    kept.parent.mkdir()
    kept.mkdir()  # cannot be read as a file, whoever runs the tests; nor replaced by one
    assert _compiler.compile_unit("x", 0) == b"x"
    assert [f.name for f in kept.parent.iterdir()] == [kept.name]  # no temporary file stays
    kept.rmdir()
    kept.write_bytes(b"y")
    if os.geteuid():
        kept.chmod(0)
        assert _compiler.compile_unit("x", 0) == b"x" and kept.read_bytes() == b"x"


def test_leftovers_of_killed_compilers_go(tmp_path: Path, compiler: OneByteCompiler) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    old, young = cache / f"{_compiler._TEMPORARY}old", cache / f"{_compiler._TEMPORARY}young"
    for file in (old, young):
        file.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    _compiler.compile_unit("x", 0)
    assert not old.exists() and young.exists()  # the young one may be somebody's who is at work


@needs_gcc
@pytest.mark.parametrize("name", ["libnvToolsExt.so.1", "libnvtx3interop.so.1"])
def test_ranges_for_profilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """CUDA 12's library, and what CUDA 13 has in its place."""
    from tensorrt_lite.cuda import nvtx

    folder = tmp_path / "nvidia" / "nvtx" / "lib"
    folder.mkdir(parents=True)
    text = "static int depth; int nvtxRangePushA(const char* s) { return depth++; } int nvtxRangePop(void) { return --depth; } void nvtxMarkA(const char* s) {}"
    subprocess.run(["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / name)], input=text, text=True, check=True)
    monkeypatch.setattr(_toolchain, "places", lambda: [tmp_path])
    monkeypatch.setattr(nvtx, "_library", None)
    with nvtx.range("step {}", 1):
        assert nvtx.range_push("inside") == 1 and nvtx.range_pop() == 1
    nvtx.mark("end")
    assert nvtx._library._name == str(folder / name)


def test_ranges_without_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tensorrt_lite.cuda import nvtx, runtime

    def refuse(path: str) -> None:
        raise OSError(path)

    monkeypatch.setattr(_toolchain, "places", lambda: [tmp_path])
    monkeypatch.setattr(nvtx, "_library", None)
    monkeypatch.setattr(runtime.ctypes, "CDLL", refuse)
    with pytest.raises(RuntimeError, match="NVTX functions not installed: neither libnvToolsExt.so.1 nor libnvtx3interop.so.1"):
        nvtx.range_push("step")
