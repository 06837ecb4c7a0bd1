"""Compiles CUDA C++ for the emulator with g++, and builds the emulator's own libcuda.so.1.

`compile_module` turns the text of a `.cu` file into a shared object that the stand-in driver loads where a real one
loads a cubin; `build_driver` makes the driver. Both keep their results in a folder under a name that is a digest of
everything that went in, and put files in place atomically, so that several processes may share the folder.

Command line: `python compiler.py kernel.cu -o kernel.so [--sanitize]`, `python compiler.py --driver FOLDER`.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
INCLUDE = HERE / "include"
INTERFACE = INCLUDE / "cuemu_runtime.h"  # between modules and the driver; a module stays valid while it does not change
DRIVER_SOURCES = sorted([*(HERE / "runtime").glob("*.cpp"), *(HERE / "driver").glob("*.cpp")])

# Kernels are compiled more often than they run for long: -O1 compiles in two thirds of the time of -O2. The last two keep
# statics of templates (shared memory among them) from being one object for all loaded modules.
_OPTIONS = ["-std=c++17", "-O1", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", "-w"]
_OPTIONS += ["-fno-gnu-unique", "-fvisibility=hidden"]
# Misaligned accesses, which x86 allows and a GPU does not: a trap that the driver turns into an error, or a report.
_ALIGNMENT = ["-fsanitize=alignment", "-fsanitize-undefined-trap-on-error"]
_SANITIZER = ["-fsanitize=address,alignment", "-fno-sanitize-recover=alignment", "-fno-omit-frame-pointer", "-g1"]

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
# extern __shared__ [__align__(n)] T name[];
_DYNAMIC_SHARED = re.compile(
    r"extern\s+__shared__\s+((?:__align__|alignas)\s*\(\s*\d+\s*\)\s*)?([\w:<>, ]+?)\s+(\w+)\s*\[\s*\]\s*;"
)
# A variable of the module: no parenthesis before the semicolon, the initialiser or the bound. Exported, so that
# cuModuleGetGlobal finds it.
_VARIABLE = re.compile(r"\b__(?:device|constant)__(?=[^();={}\[]*[;=\[{])")
_BOUNDS = r"(?:__launch_bounds__\s*\([^)]*\)\s*)?"
_KERNEL = re.compile(r'extern\s+"C"\s+__global__\s+' + _BOUNDS + r"void\s+" + _BOUNDS + r"(\w+)\s*\(")


class CompileError(RuntimeError):
    """g++ refused the source; the text is its output."""


def _digest(*parts: str | bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()[:20]


def _compiler() -> str:
    return os.environ.get("CXX", "g++")


@functools.cache
def _compiler_version() -> str:
    return subprocess.run([_compiler(), "--version"], check=True, capture_output=True, text=True).stdout


def _run(command: list[str]) -> None:
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode:
        raise CompileError(f"{' '.join(command)}\n{result.stderr}{result.stdout}")


def _all_options(sanitize: bool) -> list[str]:
    if sanitize:
        return [*_OPTIONS, *_SANITIZER]
    return [*_OPTIONS, *(_ALIGNMENT if os.environ.get("CUEMU_ALIGNMENT", "1") != "0" else [])]


def _without_comments(text: str) -> str:
    return _COMMENT.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def kernel_names(text: str) -> list[str]:
    """The names of the `extern "C" __global__` functions of a source, in order."""
    return list(dict.fromkeys(_KERNEL.findall(_without_comments(text))))


def rewrite(text: str) -> str:
    """Makes each `extern __shared__ T name[];` a pointer to the block's dynamic shared memory, and exports variables."""

    def pointer(match: re.Match[str]) -> str:
        kind, name = match.group(2), match.group(3)
        lines = "\n" * match.group().count("\n")  # line numbers stay
        return f"{kind}* {name} = reinterpret_cast<{kind}*>(cuemu_current->dynamic_shared);{lines}"

    return _VARIABLE.sub(r"\g<0> CUEMU_VARIABLE", _DYNAMIC_SHARED.sub(pointer, text))


def _quoted_includes(text: str, folders: list[Path], found: dict[str, Path]) -> None:
    """Adds to `found` the project files that `text` includes, directly or through others, by the name used."""
    for name in _INCLUDE.findall(text):
        path = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if path is not None and name not in found:
            found[name] = path
            _quoted_includes(path.read_text(), [path.parent, *folders], found)


def compile_module(
    source: str | Path,
    cache: Path,
    include: list[Path] | None = None,
    sanitize: bool | None = None,
    flags: list[str] | None = None,
) -> Path:
    """Compiles CUDA C++ (`source`: a path, or the text itself) and returns the module's path inside `cache`.

    `include` are folders for `#include "..."`; `sanitize` adds the address sanitizer, by default where CUEMU_SANITIZE is 1.
    Raises CompileError.
    """
    if sanitize is None:
        sanitize = os.environ.get("CUEMU_SANITIZE") == "1"
    path = source if isinstance(source, Path) else None
    text = path.read_text() if path else str(source)
    folders = [*([path.resolve().parent] if path else []), *(include or [])]
    headers: dict[str, Path] = {}
    _quoted_includes(text, folders, headers)

    options = [*_all_options(sanitize), *(flags or [])]
    driver = build_driver(cache)
    emulator = b"".join(file.read_bytes() for file in sorted(INCLUDE.glob("*.h")))
    project = b"".join(file.read_bytes() for file in headers.values())
    key = _digest(text, str(path), emulator, project, *options)
    output = cache / f"{path.stem if path else 'kernel'}-{key}.so"
    if output.exists():
        return output

    with tempfile.TemporaryDirectory(dir=cache) as scratch_name:
        scratch = Path(scratch_name)
        for name, file in headers.items():
            copy = scratch / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(f'#line 1 "{file}"\n{rewrite(file.read_text())}')
        exports = "".join(f"CUEMU_EXPORT({name})\n" for name in kernel_names(text))
        origin = path.resolve() if path else "kernel.cu"
        main = scratch / "cuemu_translation_unit.cpp"
        main.write_text(f'#line 1 "{origin}"\n{rewrite(text)}\n{exports}')
        result = scratch / "module.so"
        # A precompiled header is for one set of options; g++ 12 crashes where it is used with others.
        precompiled = [] if flags else [_precompiled_header(cache, sanitize)]
        includes = [f"-I{folder}" for folder in (scratch, *precompiled, INCLUDE, *folders)]
        link = ["-shared", f"-L{driver.parent}", "-l:libcuda.so.1", *([] if sanitize else ["-Wl,-z,defs"])]
        _run([_compiler(), *options, *includes, "-include", "cuemu.h", str(main), "-o", str(result), *link])
        os.replace(result, output)
    return output


def _precompiled_header(cache: Path, sanitize: bool) -> Path:
    """The folder of the precompiled cuemu.h, which takes four fifths of the time off a small module's compilation."""
    options = _all_options(sanitize)
    key = _digest(*(file.read_bytes() for file in sorted(INCLUDE.glob("*.h"))), str(INCLUDE), _compiler_version(), *options)
    folder = cache / f"header-{key}"
    output = folder / "cuemu.h.gch"
    if not output.exists():
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            result = Path(scratch) / "cuemu.h.gch"
            _run([_compiler(), *options, "-x", "c++-header", str(INCLUDE / "cuemu.h"), "-o", str(result)])
            os.replace(result, output)
        # Each takes 35 MB. A process that loses the one it uses falls back to the header itself.
        folders = sorted(cache.glob("header-*"), key=lambda path: path.stat().st_mtime)
        for stale in folders[:-4]:
            shutil.rmtree(stale, ignore_errors=True)
    return folder


def build_driver(cache: Path) -> Path:
    """Builds the stand-in libcuda.so.1 if `cache` does not hold it yet; returns its path."""
    cache.mkdir(parents=True, exist_ok=True)
    headers = [INTERFACE, *sorted((HERE / "runtime").glob("*.h")), *sorted((HERE / "driver").glob("*.h"))]
    options = ["-std=c++17", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-pthread"]
    key = _digest(*(file.read_bytes() for file in [*DRIVER_SOURCES, *headers]), *options)
    folder = cache / f"driver-{key}"
    output = folder / "libcuda.so.1"
    if output.exists():
        return output
    with tempfile.TemporaryDirectory(dir=cache) as scratch:

        def compile_source(source: Path) -> str:
            optimisation = "-O2" if source.parent.name == "runtime" else "-O1"
            result = f"{scratch}/{source.parent.name}-{source.stem}.o"
            _run([_compiler(), *options, optimisation, "-c", str(source), "-o", result])
            return result

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(compile_source, DRIVER_SOURCES))
        result = Path(scratch) / "libcuda.so.1"
        command = [_compiler(), "-shared", "-pthread", "-Wl,-soname,libcuda.so.1", "-o", str(result)]
        _run([*command, *objects, "-ldl"])
        folder.mkdir(exist_ok=True)
        os.replace(result, output)
    return output


def build_cublaslt(cache: Path, interface: Path) -> Path:
    """Builds the stand-in for cuBLASLt (cublaslt/) over the header `interface` (cysrc/cuda/cublaslt.h); returns its path."""
    folder = HERE / "cublaslt"
    driver, module = build_driver(cache), compile_module(folder / "product.cu", cache, sanitize=False)
    source, options = folder / "cublaslt.cpp", ["-std=c++17", "-O1", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unused-variable"]
    options += [f'-DCUBLASLT_DRIVER="{driver.resolve()}"', f'-DCUBLASLT_MODULE="{module.resolve()}"', f"-I{interface.parent}"]
    output = cache / f"libcublasLt-{_digest(source.read_bytes(), (folder / 'product.h').read_bytes(), interface.read_bytes(), *options)}.so.13"
    if not output.exists():
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            result = Path(scratch) / "libcublasLt.so.13"
            _run([_compiler(), *options, "-o", str(result), str(source), "-ldl"])
            os.replace(result, output)
    return output


def sanitizer_environment() -> dict[str, str] | None:
    """Environment variables for a process that loads modules compiled with `sanitize`; None without libasan."""
    command = [_compiler(), "-print-file-name=libasan.so"]
    query = subprocess.run(command, check=False, capture_output=True, text=True)
    library = query.stdout.strip()
    if not os.path.isabs(library):
        return None
    # Interpreters leak by design; the rest of the sanitizer's checks stay on.
    return {"LD_PRELOAD": os.path.realpath(library), "ASAN_OPTIONS": "detect_leaks=0"}


def main() -> None:
    """Runs the command line described at the head of this file."""
    parser = argparse.ArgumentParser(description="compile CUDA C++ for the CPU emulator")
    parser.add_argument("source", nargs="?", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("-I", "--include", action="append", type=Path, default=[])
    parser.add_argument("--sanitize", action="store_true")
    parser.add_argument("--driver", type=Path, metavar="FOLDER", help="build libcuda.so.1 in FOLDER and print its path")
    arguments = parser.parse_args()
    if arguments.driver:
        print(build_driver(arguments.driver))
    if arguments.source:
        output = arguments.output or arguments.source.with_suffix(".so")
        cache = arguments.driver or output.parent
        shutil.copy(compile_module(arguments.source, cache, arguments.include, arguments.sanitize or None), output)


if __name__ == "__main__":
    main()
