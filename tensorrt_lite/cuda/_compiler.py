"""From CUDA C++ text to loadable code, by the compiler that _toolchain.py finds or for the emulator; kept on disk and shared between processes.

`TENSORRT_LITE_CUDA_CACHE` names the folder (~/.cache/tensorrt_lite/cuda otherwise). A file's name is a digest of the text, the headers, the
architecture and the compiler; it is put in place by a rename, so that processes may share the folder.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from tensorrt_lite import _root as tensorrt_lite
from tensorrt_lite._C.cuda.driver import device_attribute as _device_attribute
from tensorrt_lite._C.cuda.driver import driver_version as _driver_version
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_cuda_toolchain = _LazyModule("tensorrt_lite.cuda._toolchain")

HEADERS = Path(tensorrt_lite.__file__).parent / "_C" / "cuda" / "src"
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
_TEMPORARY = ".unfinished-"


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
def _capability(device: int) -> int:
    """90 for a device of capability 9.0."""
    return 10 * _device_attribute(_MAJOR, device) + _device_attribute(_MINOR, device)


@functools.cache
def _device_compiler() -> Any:
    return _cuda_toolchain.find(_driver_version())


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

    compiler = _device_compiler()
    arch = _cuda_toolchain.target(compiler, _capability(device))
    kept = cache_folder() / image_name(source, arch, compiler.label, include)
    try:
        return kept.read_bytes()
    except OSError:  # absent, or another user's and closed to this one
        image: bytes = compiler.compile(source, arch, [*include, HEADERS])
    store(kept, image)
    return image


def image_name(source: str, arch: str, label: str, include: tuple[Path, ...] = ()) -> str:
    """The file in the cache of a unit compiled for an architecture by the compiler of this label."""
    own = [file.read_bytes() for folder in include for file in sorted(folder.glob("*")) if file.suffix in (".h", ".hpp", ".cuh")]
    key = hashlib.sha256(b"\0".join([source.encode(), _headers_digest(), arch.encode(), label.encode(), *own])).hexdigest()[:32]
    return f"{key}.{'cubin' if arch.startswith('sm_') else 'ptx'}"


def store(path: Path, image: bytes) -> None:
    """Put a file into a cache that processes and users may share. A folder that cannot be written is no error: the image is compiled again next time."""
    _remove_leftovers(path.parent)
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=_TEMPORARY, delete=False) as file:
            try:
                file.write(image)
                file.flush()
                os.chmod(file.name, 0o644)  # not the 0600 of temporary files: other users read it
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError:
        pass


@functools.cache
def _remove_leftovers(folder: Path) -> None:
    """Temporary files of processes that were killed: those that nobody has written for an hour."""
    for file in folder.glob(f"{_TEMPORARY}*"):
        try:
            if time.time() - file.stat().st_mtime > 3600:
                file.unlink()
        except OSError:  # another process was faster, or it is another user's
            continue


def note_launch(source: str, entry: str) -> None:
    """Append what an entry of a unit calls to the file that TENSORRT_LITE_CUDA_TRACE names: the tests' list of kernels that have run."""
    import re

    body = re.search(rf"\b{entry}\s*\(.*?\{{(.*?)\n?\}}", source, re.DOTALL)
    names = sorted(set(re.findall(r"\btrt::(\w+)", body[1] if body else source)))
    with open(os.environ["TENSORRT_LITE_CUDA_TRACE"], "a") as file:
        file.write(" ".join(names) + "\n")
