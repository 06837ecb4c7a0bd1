"""The compilers of CUDA C++ that a machine has: NVRTC (of NVIDIA's wheels or the toolkit) and nvcc, as objects with one method.

What a driver can load decides: code of CUDA 13 needs a driver of CUDA 13, so the driver's major version is looked for first, then older
ones, and newer ones never. NVRTC counts only where headers of its major version are found too (its wheel has none).
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_OLDEST = 12  # older ones are not tried
_WHEELS = {12: "nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12"}


class Nvrtc:
    """NVIDIA's run-time compiler, opened from `library`; `headers` is the folder of cuda_fp16.h. OSError where it cannot be opened."""

    def __init__(self, library: str, headers: Path | None = None) -> None:
        self._nvrtc = ctypes.CDLL(library)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.major, self.library, self.headers = major.value, library, headers
        self.label = f"nvrtc {major.value}.{minor.value}"

    @functools.cached_property
    def architectures(self) -> list[int]:
        """What it compiles for, ascending: 90 is sm_90."""
        count = ctypes.c_int()
        self._nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        found = (ctypes.c_int * count.value)()
        self._nvrtc.nvrtcGetSupportedArchs(found)
        return sorted(found)

    def compile(self, source: str, arch: str, include: Iterable[Path]) -> bytes:
        """A cubin for arch "sm_90", PTX for "compute_90". RuntimeError with what the compiler printed."""
        program = ctypes.c_void_p()

        def check(status: int) -> None:
            if status:
                size = ctypes.c_size_t()
                self._nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
                log = ctypes.create_string_buffer(max(size.value, 1))
                self._nvrtc.nvrtcGetProgramLog(program, log)
                raise RuntimeError(f"NVRTC error {status}:\n{log.value.decode(errors='replace')}")

        folders = [*include, *([self.headers] if self.headers else [])]
        # generic lambdas are host functions to NVRTC 12 unless functions belong to the device by default
        options = [f"-arch={arch}", "-std=c++17", "-default-device", *(f"-I{folder}" for folder in folders)]
        kind = "CUBIN" if arch.startswith("sm_") else "PTX"
        check(self._nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"unit.cu", 0, None, None))
        try:
            array = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
            check(self._nvrtc.nvrtcCompileProgram(program, len(options), array))
            size = ctypes.c_size_t()
            check(getattr(self._nvrtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size)))
            image = ctypes.create_string_buffer(size.value)
            check(getattr(self._nvrtc, f"nvrtcGet{kind}")(program, image))
            return image.raw
        finally:
            self._nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


class Nvcc:
    """The toolkit's compiler. OSError or subprocess.CalledProcessError where it does not run."""

    def __init__(self, path: str) -> None:
        printed = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
        release = re.search(r"release (\d+)\.(\d+)", printed)
        self.path, self.major = path, int(release[1]) if release else 0
        self.label = f"nvcc {printed.strip().splitlines()[-1]}"

    @functools.cached_property
    def architectures(self) -> list[int]:
        """What it compiles for, ascending."""
        printed = subprocess.run([self.path, "--list-gpu-code"], capture_output=True, text=True, check=True).stdout
        return sorted(int(number) for number in re.findall(r"\bsm_(\d+)\b", printed))

    def compile(self, source: str, arch: str, include: Iterable[Path]) -> bytes:
        """As Nvrtc.compile."""
        kind = "-cubin" if arch.startswith("sm_") else "-ptx"
        with tempfile.TemporaryDirectory() as folder:
            unit, image = Path(folder) / "unit.cu", Path(folder) / "unit.image"
            unit.write_text(source)
            command = [self.path, kind, f"-arch={arch}", "-std=c++17", "-O3", *(f"-I{folder}" for folder in include), "-o", str(image), str(unit)]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
            if result.returncode:
                raise RuntimeError(f"nvcc refused a kernel:\n{result.stderr}")
            return image.read_bytes() + (b"" if kind == "-cubin" else b"\0")


def target(compiler: Any, number: int) -> str:
    """What a compiler is asked for on a card of capability `number` (90 for 9.0): sm_90, or the PTX of its newest architecture before that
    one, which the driver compiles. RuntimeError where the compiler no longer has so old a card."""
    known = compiler.architectures
    if number in known:
        return f"sm_{number}"
    older = [n for n in known if n < number]
    if not older:
        raise RuntimeError(f"{compiler.label} compiles for sm_{known[0]} and newer, and the card is sm_{number}: an older major version of CUDA has it")
    return f"compute_{older[-1]}"


def headers_in(folders: Iterable[Path], major: int) -> Path | None:
    """The first of these folders with cuda_fp16.h of this major version (in an installation of wheels: of the folders below)."""
    for folder in folders:
        for place in [folder, folder / "include", folder / "targets" / "x86_64-linux" / "include", *sorted(folder.glob("nvidia/*/include"))]:
            if (place / "cuda_fp16.h").exists() and _version_of(place) == major:
                return place
    return None


def _version_of(include: Path) -> int | None:
    """The major version of CUDA that a folder of headers belongs to."""
    try:
        found = re.search(r"#define\s+CUDA_VERSION\s+(\d+)", (include / "cuda.h").read_text(errors="replace"))
    except OSError:
        return None
    return int(found[1]) // 1000 if found else None


def nvrtc_in(folders: Iterable[Path], major: int) -> Iterator[str]:
    """Paths of NVRTC of this major version in wheels' and toolkits' folders."""
    for folder in folders:
        for part in ("lib64", "lib", "targets/x86_64-linux/lib", "nvidia/*/lib"):
            yield from (str(path) for path in sorted(folder.glob(f"{part}/libnvrtc.so.{major}")))


def places() -> list[Path]:
    """Where wheels and toolkits are installed, in the order of the search."""
    named = [os.environ.get(name) for name in ("CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX")]
    return [*(Path(p) for p in sys.path if (Path(p) / "nvidia").is_dir()), *(Path(n) for n in named if n), Path("/usr/local/cuda"), Path("/usr")]


def find(driver_version: int) -> Nvrtc | Nvcc:
    """The compiler for a driver (1000 * major + 10 * minor, as it reports itself). RuntimeError naming what was found and what is missing."""
    newest = max(driver_version // 1000, _OLDEST)
    rejected: list[str] = []
    for major in range(newest, _OLDEST - 1, -1):
        headers = headers_in(places(), major)
        for library in [*nvrtc_in(places(), major), f"libnvrtc.so.{major}"]:
            try:
                nvrtc = Nvrtc(library, headers)
            except OSError:
                continue
            if headers is not None:
                return nvrtc
            rejected.append(f"{nvrtc.label} ({library}) without headers of CUDA {major}")
    for path in nvcc_paths():
        try:
            nvcc = Nvcc(path)
        except (OSError, subprocess.CalledProcessError):
            continue
        if _OLDEST <= nvcc.major <= newest:
            return nvcc
        rejected.append(f"nvcc of CUDA {nvcc.major} ({path}), the driver is for CUDA {newest}")
    for major in range(newest + 1, newest + 3):
        rejected += [f"NVRTC {major} ({library}), whose code needs a driver of CUDA {major}" for library in nvrtc_in(places(), major)]
    wheels = _WHEELS.get(newest, "nvidia-cuda-nvrtc nvidia-cuda-runtime")
    seen = f" (found: {'; '.join(rejected)})" if rejected else ""
    raise RuntimeError(f"CUDA kernels are compiled at first use, and neither NVRTC with its headers nor nvcc was found for a driver of CUDA {newest}{seen}: "
                       f"pip install {wheels}")


def nvcc_paths() -> list[str]:
    """Where nvcc may be: on PATH, in the toolkit's folders."""
    found = [shutil.which("nvcc"), *(str(folder / "bin" / "nvcc") for folder in places())]
    return [path for path in dict.fromkeys(found) if path and os.access(path, os.X_OK)]
