"""From CUDA C++ text to loadable code: by NVRTC, by nvcc, or for the emulator; kept on disk and shared between processes.

`TENSORRT_LITE_CUDA_CACHE` names the folder (~/.cache/tensorrt_lite/cuda otherwise). A file's name is a digest of the text, the headers, the
architecture and the compiler; it is put in place by a rename, so that processes may share the folder.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorrt_lite

HEADERS = Path(tensorrt_lite.__file__).parent / "_C" / "cuda" / "src"
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*


def cache_folder() -> Path:
    """Where compiled code is kept."""
    named = os.environ.get("TENSORRT_LITE_CUDA_CACHE")
    base = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tensorrt_lite" / "cuda"
    base.mkdir(parents=True, exist_ok=True)
    return base


@functools.cache
def _emulator() -> Any:
    """The emulator's compiler: of the checkout, or what the build put into the package."""
    package = Path(tensorrt_lite.__file__).resolve().parent
    path = package.parent / "tools" / "cuda_emulator" / "compiler.py"
    if not path.exists():
        path = package / "_C" / "cuda" / "emulator" / "compiler.py"
    import importlib.util

    spec = importlib.util.spec_from_file_location("tensorrt_lite_cuda_emulator_compiler", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def emulator_library() -> str:
    """The emulator's libcuda.so.1, built at first use."""
    return str(_emulator().build_driver(cache_folder()))


def is_emulated() -> bool:
    """Whether the driver is the emulator of tools/cuda_emulator."""
    return os.environ.get("TENSORRT_LITE_CUDA") == "emulate" or "cuda_emulator" in os.environ.get("TENSORRT_LITE_LIBCUDA", "")


@functools.cache
def architecture(device: int) -> str:
    """The device's architecture as compilers name it: sm_90."""
    from tensorrt_lite._C.cuda.driver import device_attribute

    return f"sm_{device_attribute(_MAJOR, device)}{device_attribute(_MINOR, device)}"


@functools.cache
def _headers_digest() -> bytes:
    digest = hashlib.sha256()
    for file in sorted(HEADERS.glob("*.cuh")):
        digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.digest()


def compile_unit(source: str, device: int, include: tuple[Path, ...] = ()) -> bytes:
    """The loadable image of a unit of CUDA C++ for a device. RuntimeError with the compiler's output when it is refused.

    include: folders for its headers besides the library's; what lies in them counts as part of the source.
    """
    if is_emulated():
        path = _emulator().compile_module(source, cache_folder(), [*include, HEADERS])
        return Path(path).read_bytes()
    arch = architecture(device)
    label, compile_ = _device_compiler()
    own = [file.read_bytes() for folder in include for file in sorted(folder.glob("*")) if file.suffix in (".h", ".hpp", ".cuh")]
    key = hashlib.sha256(b"\0".join([source.encode(), _headers_digest(), arch.encode(), label.encode(), *own])).hexdigest()[:32]
    kept = cache_folder() / f"{key}.cubin"
    if kept.exists():
        return kept.read_bytes()
    image = compile_(source, arch, [*include, HEADERS])
    with tempfile.NamedTemporaryFile(dir=kept.parent, delete=False) as file:
        file.write(image)
    os.replace(file.name, kept)
    return image


@functools.cache
def _device_compiler() -> tuple[str, Callable[[str, str, list[Path]], bytes]]:
    nvrtc = _open_nvrtc()
    if nvrtc is not None:
        major, minor = ctypes.c_int(), ctypes.c_int()
        nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        return f"nvrtc {major.value}.{minor.value}", functools.partial(_compile_nvrtc, nvrtc)
    nvcc = shutil.which("nvcc") or next((str(p) for p in [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin" / "nvcc"] if p.exists()), None)
    if nvcc is None:
        raise RuntimeError("CUDA kernels are compiled at first use, and neither NVRTC (pip install nvidia-cuda-nvrtc) nor nvcc was found")
    version = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[-1]
    return f"nvcc {version}", functools.partial(_compile_nvcc, nvcc)


def _open_nvrtc() -> Any:
    """NVRTC from NVIDIA's wheel or the toolkit; None without one."""
    import sys

    names = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"]
    folders = [Path(p) / "nvidia" for p in sys.path if (Path(p) / "nvidia").is_dir()]
    found = [str(f) for folder in folders for name in names for f in sorted(folder.glob(f"*/lib/{name}"))]
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    for candidate in [*found, *names, *(f"{home}/lib64/{name}" for name in names)]:
        try:
            return ctypes.CDLL(candidate)
        except OSError:
            continue
    return None


def _toolkit_includes() -> list[str]:
    """Folders with cuda_fp16.h: of NVIDIA's wheels or the toolkit."""
    import sys

    found = [str(f) for p in sys.path for f in sorted((Path(p) / "nvidia").glob("*/include")) if (f / "cuda_fp16.h").exists()]
    home = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"
    return found or ([str(home)] if home.exists() else [])


def _compile_nvrtc(nvrtc: Any, source: str, arch: str, include: list[Path]) -> bytes:
    program = ctypes.c_void_p()

    def check(status: int) -> None:
        if status:
            size = ctypes.c_size_t()
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            raise RuntimeError(f"NVRTC error {status}:\n{log.value.decode(errors='replace')}")

    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"unit.cu", 0, None, None))
    try:
        options = [f"-arch={arch}", "-std=c++17", *(f"-I{folder}" for folder in include), *(f"-I{folder}" for folder in _toolkit_includes())]
        array = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
        check(nvrtc.nvrtcCompileProgram(program, len(options), array))
        size = ctypes.c_size_t()
        check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
        image = ctypes.create_string_buffer(size.value)
        check(nvrtc.nvrtcGetCUBIN(program, image))
        return image.raw
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _compile_nvcc(nvcc: str, source: str, arch: str, include: list[Path]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        unit, image = Path(folder) / "unit.cu", Path(folder) / "unit.cubin"
        unit.write_text(source)
        result = subprocess.run(
            [nvcc, "-cubin", f"-arch={arch}", "-std=c++17", "-O3", *(f"-I{folder}" for folder in include), "-o", str(image), str(unit)], capture_output=True, text=True, check=False
        )
        if result.returncode:
            raise RuntimeError(f"nvcc refused a kernel:\n{result.stderr}")
        return image.read_bytes()


def note_launch(source: str, entry: str) -> None:
    """Append what an entry of a unit calls to the file that TENSORRT_LITE_CUDA_TRACE names: the tests' list of kernels that have run."""
    import re

    body = re.search(rf"\b{entry}\s*\(.*?\{{(.*?)\n?\}}", source, re.DOTALL)
    names = sorted(set(re.findall(r"\btrt::(\w+)", body[1] if body else source)))
    with open(os.environ["TENSORRT_LITE_CUDA_TRACE"], "a") as file:
        file.write(" ".join(names) + "\n")
