"""Extensions in C, C++ and Cython: compiled by the system's compiler against tensorrt_lite's C interface (tensorrt_lite.h, tensorrt_lite.hpp; docs/extensions.md).

`load` and `load_inline` compile when they are called and import the result; what was compiled is found again by the contents of sources, flags and headers.
`CppExtension` and `BuildExtension` are for a setup.py. Sources written against PyTorch's C++ API (torch/extension.h) cannot be compiled: it is not here.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorrt_lite._C.core.hints import LazyModule

_library = LazyModule("tensorrt_lite.library")
_listing = LazyModule("tensorrt_lite._names.listing")
_missing = LazyModule("tensorrt_lite._names.missing")

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

    BuildExtension: Any  # made by __getattr__

__all__ = ["BuildExtension", "CUDAExtension", "CUDA_HOME", "CppExtension", "check_compiler_is_gcc", "check_compiler_ok_for_platform",
           "get_compiler_abi_compatibility_and_version", "get_cxx_compiler", "get_default_build_root", "include_paths", "is_ninja_available", "library_paths", "load",
           "load_inline", "verify_ninja_availability"]  # fmt: skip

_C_FLAGS = ["-fPIC", "-O2", "-Wall"]
_CPP_FLAGS = [*_C_FLAGS, "-std=c++17", "-fvisibility=hidden"]
_FOREIGN = re.compile(r'^\s*#\s*include\s*[<"](?:torch|ATen|c10|caffe2)/', re.M)
CUDA_HOME: str | None = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or ("/usr/local/cuda" if Path("/usr/local/cuda/bin/nvcc").exists() else None)


class CompileError(RuntimeError):
    """A source that the compiler refuses; the text has what it says."""


# ---- where things are


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """Folders with the headers that an extension includes: ours and Python's; device_type="cuda" adds those of CUDA."""
    found = [str(Path(__file__).resolve().parents[1] / "include")] if torch_include_dirs else []
    found.append(sysconfig.get_paths()["include"])
    if device_type == "cuda":
        found.append(str(Path(_cuda_home()) / "include"))
    elif device_type != "cpu":
        raise ValueError(f"include_paths(): device_type is 'cpu' or 'cuda', not {device_type!r}")
    return found


def library_paths(device_type: str = "cpu", torch_include_dirs: bool = True, cross_target_platform: str | None = None) -> list[str]:
    """Folders with libraries to link: none on the CPU, as an extension reaches the package by a table of functions."""
    return [str(Path(_cuda_home()) / "lib64")] if device_type == "cuda" else []


def _cuda_home() -> str:
    if CUDA_HOME is None or not (Path(CUDA_HOME) / "bin" / "nvcc").exists():
        raise OSError("CUDA_HOME environment variable is not set. Please set it to your CUDA install root: sources in CUDA need its compiler, nvcc.")
    return CUDA_HOME


def get_default_build_root() -> str:
    """The folder that `load` compiles in: TORCH_EXTENSIONS_DIR, else one of the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return os.environ.get("TORCH_EXTENSIONS_DIR") or str(Path(cache) / "tensorrt_lite_extensions")


def get_cxx_compiler() -> str:
    """CXX of the environment, else c++."""
    return os.environ.get("CXX", "c++")


def _compiler(language: str) -> list[str]:
    command = shlex.split(get_cxx_compiler() if language == "c++" else os.environ.get("CC", "cc"))
    if shutil.which(command[0]) is None:
        raise OSError(f"there is no compiler '{command[0]}' on the PATH: extensions need one for {'C++' if language == 'c++' else 'C'} ({'CXX' if language == 'c++' else 'CC'} names another)")
    return command


def check_compiler_ok_for_platform(compiler: str) -> bool:
    """Whether the compiler is there: any that knows C11 or C++17 will do."""
    return shutil.which(shlex.split(compiler)[0]) is not None


def check_compiler_is_gcc(compiler: str) -> bool:
    """Whether it is GNU's."""
    return check_compiler_ok_for_platform(compiler) and "Free Software Foundation" in _version(shlex.split(compiler))


def get_compiler_abi_compatibility_and_version(compiler: str) -> tuple[bool, tuple[str, ...]]:
    """(True, its version): only C crosses the border, so that every compiler is compatible."""
    if not check_compiler_ok_for_platform(compiler):
        return False, ("0", "0", "0")
    numbers = re.search(r"(\d+)\.(\d+)\.(\d+)", _version(shlex.split(compiler)))
    return True, tuple(numbers.groups()) if numbers else ("0", "0", "0")


def _version(command: list[str]) -> str:
    return subprocess.run([*command, "--version"], capture_output=True, text=True).stdout


def is_ninja_available() -> bool:
    """Whether ninja is installed; it is not used."""
    return shutil.which("ninja") is not None


def verify_ninja_availability() -> None:
    """Nothing: ninja is not needed."""


# ---- one source, one library


def _language(source: Path) -> str:
    found = {".c": "c", ".cpp": "c++", ".cc": "c++", ".cxx": "c++", ".pyx": "cython", ".cu": "cuda"}.get(source.suffix)
    if found is None:
        raise ValueError(f"{source}: sources end in .c, .cpp, .cc, .cxx, .pyx or .cu")
    return found


def _refuse_foreign(source: Path, text: str) -> None:
    if _FOREIGN.search(text):
        raise CompileError(
            f"{source}: includes headers of PyTorch's C++ API, which is not here: tensorrt_lite has a C interface of its own, with a header for C++ that is much like it "
            "(#include <tensorrt_lite.hpp>, docs/extensions.md)"
        )


def _run(command: list[str], folder: Path, verbose: bool) -> None:
    if verbose:
        print(shlex.join(command), flush=True)
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode:
        raise CompileError(f"the command failed: {shlex.join(command)}\n{done.stdout.strip()}")
    if verbose and done.stdout.strip():
        print(done.stdout.strip(), flush=True)


def _cythonize(source: Path, target: Path, name: str, includes: Sequence[str]) -> tuple[Path, str]:
    """The C or C++ of a Cython source, and which of them."""
    try:
        from Cython.Compiler import Main
    except ImportError:
        raise ImportError(f"{source}: sources in Cython need the package Cython (pip install cython)") from None
    plus = re.search(r"^#\s*distutils:\s*language\s*=\s*c\+\+", source.read_text(encoding="utf-8"), re.M) is not None
    output = target / f"{source.stem}.{'cpp' if plus else 'c'}"
    options = Main.CompilationOptions(output_file=str(output), include_path=list(includes), cplus=plus, language_level=3)
    result = Main.compile_single(str(source), options, full_module_name=name)
    if result.num_errors:
        raise CompileError(f"{source}: Cython found {result.num_errors} errors, which it has printed")
    return output, "c++" if plus else "c"


def _digest(sources: Sequence[Path], parts: Sequence[Any], include_dirs: Sequence[str]) -> str:
    """Of all that decides what is compiled: contents of sources and of headers beside them or in the folders given, commands, the interface, this Python."""
    h = hashlib.sha256()
    headers = {p for folder in {*(s.parent for s in sources), *map(Path, include_dirs)} for p in folder.glob("*.h*")} | {p for s in sources for p in s.parent.glob("*.px*")}
    own = Path(include_paths()[0])
    for path in [*sources, *sorted(headers), *sorted(own.iterdir())]:
        h.update(str(path.name).encode() + b"\0" + (path.read_bytes() if path.is_file() else b"") + b"\0")
    h.update(repr((parts, sys.version, sysconfig.get_platform())).encode())
    return h.hexdigest()[:16]


def _build(name: str, sources: Sequence[Path], folder: Path, cflags: Sequence[str], cuda_cflags: Sequence[str], ldflags: Sequence[str], include_dirs: Sequence[str],
           is_module: bool, standalone: bool, verbose: bool, keep: bool) -> Path:  # fmt: skip
    suffix = sysconfig.get_config_var("EXT_SUFFIX") if is_module else "" if standalone else ".so"
    languages = [_language(source) for source in sources]
    for source in sources:
        _refuse_foreign(source, source.read_text(encoding="utf-8", errors="replace"))
    if "cuda" in languages:
        _cuda_home()
    commands = {language: _compiler(language) for language in ("c", "c++") if language in languages or "cython" in languages}
    versions = [_version(command) for command in commands.values()]
    key = _digest(sources, [name, cflags, cuda_cflags, ldflags, [str(s) for s in include_dirs], suffix, languages, versions, commands, standalone], include_dirs)
    target = folder / key
    result = target / f"{name}{suffix}"
    if result.exists():
        return result
    target.mkdir(parents=True, exist_ok=True)
    import fcntl

    with open(target / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may be at it
        if result.exists():
            return result
        work = target / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        includes = [flag for folder_ in [*include_dirs, *include_paths()] for flag in ("-I", str(folder_))]
        defines = [f"-DTRTL_EXTENSION_NAME={name}", f"-DTORCH_EXTENSION_NAME={name}"]
        with_cpp = "c++" in languages or "cuda" in languages
        jobs: list[tuple[list[str], Path]] = []
        for i, (source, language) in enumerate(zip(sources, languages)):
            if language == "cython":
                source, language = _cythonize(source, work, name, [*include_dirs, *include_paths()])
                with_cpp |= language == "c++"
                commands.setdefault(language, _compiler(language))
            target_object = work / f"{i}_{source.stem}.o"
            if language == "cuda":
                nvcc = str(Path(_cuda_home()) / "bin" / "nvcc")
                jobs.append(([nvcc, "-Xcompiler", "-fPIC", "-std=c++17", *includes, *defines, *cuda_cflags, "-c", str(source), "-o", str(target_object)], target_object))
            else:
                flags = _CPP_FLAGS if language == "c++" else _C_FLAGS
                jobs.append(([*commands[language], *flags, *includes, *defines, *cflags, "-c", str(source), "-o", str(target_object)], target_object))
        with ThreadPoolExecutor(int(os.environ.get("MAX_JOBS", "0")) or os.cpu_count() or 1) as pool:
            for future in [pool.submit(_run, command, work, verbose) for command, _ in jobs]:
                future.result()
        linker = _compiler("c++" if with_cpp else "c")
        linked = work / f"linked{suffix}"
        _run([*linker, *([] if standalone else ["-shared"]), *(str(o) for _, o in jobs), *ldflags, "-o", str(linked)], work, verbose)
        os.replace(linked, result)
        if not keep:
            shutil.rmtree(work, ignore_errors=True)
    return result


def _import(name: str, path: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[name] = module
    return module


# ---- compiling at run time


def _flags(given: Any, name: str) -> list[str]:
    if given is None:
        return []
    if isinstance(given, str):
        raise TypeError(f"{name} must be a list of flags, not a str")
    return list(given)


def load(name: str, sources: str | Sequence[str], extra_cflags: Sequence[str] | None = None, extra_cuda_cflags: Sequence[str] | None = None,
         extra_sycl_cflags: Sequence[str] | None = None, extra_ldflags: Sequence[str] | None = None, extra_include_paths: Sequence[str] | None = None,
         build_directory: str | None = None, verbose: bool = False, with_cuda: bool | None = None, with_sycl: bool | None = None, is_python_module: bool = True,
         is_standalone: bool = False, keep_intermediates: bool = True) -> Any:  # fmt: skip
    """Compile sources in C, C++, Cython or CUDA (.c, .cpp, .pyx, .cu) and load the result.

    is_python_module: import it as `name` and return the module (TRTL_MODULE, PyInit_name); else load it as a library of operators (`ops.load_library`) and return
    its path; is_standalone: link a program and return its path. What was compiled before from the same contents is loaded at once; `build_directory` and
    TORCH_EXTENSIONS_DIR say where it lies. A name may be loaded again from other sources. CompileError (a RuntimeError) with what the compiler says,
    OSError without a compiler, or without nvcc for .cu.

    >>> module = load("mine", ["mine.cpp"], extra_cflags=["-O3"])    # doctest: +SKIP
    """
    if with_sycl or extra_sycl_cflags:
        raise NotImplementedError("load(): sources in SYCL are not compiled (docs/gaps.md)")
    if not name.isidentifier():
        raise ValueError(f"load(): {name!r} is no name of a module")
    paths = [Path(source).absolute() for source in ([sources] if isinstance(sources, str) else sources)]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"load(): no source {path}")
    folder = Path(build_directory) if build_directory is not None else Path(get_default_build_root()) / name
    result = _build(name, paths, folder, _flags(extra_cflags, "extra_cflags"), _flags(extra_cuda_cflags, "extra_cuda_cflags"),
                    _flags(extra_ldflags, "extra_ldflags"), _flags(extra_include_paths, "extra_include_paths"), is_python_module and not is_standalone,
                    is_standalone, verbose, keep_intermediates)  # fmt: skip
    if is_standalone:
        return str(result)
    if is_python_module:
        return _import(name, result)

    _library.ops.load_library(str(result))
    return str(result)


def load_inline(name: str, cpp_sources: str | Sequence[str], cuda_sources: str | Sequence[str] | None = None, sycl_sources: Any = None,
                functions: Sequence[str] | dict[str, str] | str | None = None, extra_cflags: Sequence[str] | None = None,
                extra_cuda_cflags: Sequence[str] | None = None, extra_sycl_cflags: Sequence[str] | None = None, extra_ldflags: Sequence[str] | None = None,
                extra_include_paths: Sequence[str] | None = None, build_directory: str | None = None, verbose: bool = False, with_cuda: bool | None = None,
                with_sycl: bool | None = None, is_python_module: bool = True, with_pytorch_error_handling: bool = True, keep_intermediates: bool = True,
                use_pch: bool = False, no_implicit_headers: bool = False) -> Any:  # fmt: skip
    """`load` of sources given as text. functions: names of C++ functions, or {name: docstring}, that the module has; their arguments and results are those that
    tensorrt_lite.hpp binds. That header is included first, unless no_implicit_headers.

    >>> module = load_inline("twice", "trtl::Tensor twice(const trtl::Tensor& x) { return trtl::call(\\"aten::mul\\", x, 2.0); }",
    ...                      functions=["twice"])    # doctest: +SKIP
    """
    if sycl_sources or with_sycl:
        raise NotImplementedError("load_inline(): sources in SYCL are not compiled (docs/gaps.md)")
    if not name.isidentifier():
        raise ValueError(f"load_inline(): {name!r} is no name of a module")
    text = "\n".join([cpp_sources] if isinstance(cpp_sources, str) else cpp_sources)
    _refuse_foreign(Path(f"{name}.cpp"), text)
    if not no_implicit_headers:
        text = "#include <tensorrt_lite.hpp>\n" + text
    if functions is not None:
        named = {functions: functions} if isinstance(functions, str) else functions if isinstance(functions, dict) else {f: f for f in functions}
        lines = "".join(f'  m.def("{function}", TRTL_FN({function}), "{_c_text(doc)}");\n' for function, doc in named.items())
        text += f"\nTRTL_MODULE({name}) {{\n{lines}}}\n"
    folder = Path(build_directory) if build_directory is not None else Path(get_default_build_root()) / name
    folder.mkdir(parents=True, exist_ok=True)
    sources = []
    for suffix, content in (("cpp", text), ("cu", "\n".join([cuda_sources] if isinstance(cuda_sources, str) else cuda_sources or []))):
        if content:
            # by contents: another process may write its own at the same time
            source_folder = folder / f"source_{hashlib.sha256(content.encode()).hexdigest()[:16]}"
            source_folder.mkdir(exist_ok=True)
            path = source_folder / f"{name}.{suffix}"
            if not path.exists():
                partial = path.with_suffix(f".{os.getpid()}.part")
                partial.write_text(content, encoding="utf-8")
                os.replace(partial, path)
            sources.append(str(path))
    return load(name, sources, extra_cflags, extra_cuda_cflags, None, extra_ldflags, extra_include_paths, str(folder), verbose, with_cuda, None, is_python_module,
                False, keep_intermediates)  # fmt: skip


def _c_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# ---- setup.py


def CppExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """A setuptools.Extension with this package's headers, for a setup.py with cmdclass={"build_ext": BuildExtension}."""
    from setuptools import Extension

    kwargs["include_dirs"] = [*kwargs.get("include_dirs", []), *include_paths()]
    kwargs.setdefault("language", "c++" if any(_language(Path(source)) in ("c++", "cuda") for source in sources) else None)
    return Extension(name, list(sources), *args, **kwargs)


def CUDAExtension(name: str, sources: Sequence[str], *args: Any, **kwargs: Any) -> Any:
    """The same with CUDA's headers and runtime. OSError where nvcc is not found."""
    home = _cuda_home()
    kwargs["include_dirs"] = [*kwargs.get("include_dirs", []), *include_paths("cuda")]
    kwargs["library_dirs"] = [*kwargs.get("library_dirs", []), str(Path(home) / "lib64")]
    kwargs["libraries"] = [*kwargs.get("libraries", []), "cudart"]
    kwargs.setdefault("language", "c++")
    from setuptools import Extension

    return Extension(name, list(sources), *args, **kwargs)


def _make_build_extension() -> type:
    from setuptools.command.build_ext import build_ext

    class BuildExtension(build_ext):  # type: ignore[misc]
        """setuptools' build_ext with this package's flags: C++17, the extension's name for TRTL_MODULE, Cython, and nvcc for .cu."""

        @classmethod
        def with_options(cls, **options: Any) -> Callable[..., Any]:
            """The command with options; `use_ninja` and `no_python_abi_suffix` are accepted, the former without effect."""

            class WithOptions(cls):  # type: ignore[misc, valid-type]
                def __init__(self, *args: Any, **kwargs: Any) -> None:
                    kwargs.update(options)
                    super().__init__(*args, **kwargs)

            return WithOptions

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("use_ninja", None)
            self.no_python_abi_suffix = kwargs.pop("no_python_abi_suffix", False)
            super().__init__(*args, **kwargs)

        def build_extension(self, extension: Any) -> None:
            name = extension.name.rpartition(".")[2]
            for source in extension.sources:
                _refuse_foreign(Path(source), Path(source).read_text(encoding="utf-8", errors="replace"))
            given = extension.extra_compile_args or []
            by_language = given if isinstance(given, dict) else {"cxx": given, "nvcc": []}
            extension.define_macros = [*extension.define_macros, ("TRTL_EXTENSION_NAME", name), ("TORCH_EXTENSION_NAME", name)]
            work = Path(self.build_temp)
            work.mkdir(parents=True, exist_ok=True)
            sources: list[str] = []
            cpp = extension.language == "c++"
            for source in extension.sources:
                if source.endswith(".pyx"):
                    written, language = _cythonize(Path(source), work, extension.name, extension.include_dirs)
                    sources.append(str(written))
                    cpp |= language == "c++"
                elif source.endswith(".cu"):
                    built = work / (Path(source).stem + "_cuda.o")
                    includes = [flag for folder in extension.include_dirs for flag in ("-I", folder)]
                    macros = [f"-D{key}={value}" if value is not None else f"-D{key}" for key, value in extension.define_macros]
                    nvcc = str(Path(_cuda_home()) / "bin" / "nvcc")
                    _run([nvcc, "-Xcompiler", "-fPIC", "-std=c++17", *includes, *macros, *by_language.get("nvcc", []), "-c", source, "-o", str(built)], Path.cwd(), False)
                    extension.extra_objects = [*(extension.extra_objects or []), str(built)]
                else:
                    sources.append(source)
            extension.sources = sources
            extension.extra_compile_args = [*(["-std=c++17", "-fvisibility=hidden"] if cpp and all(not s.endswith(".c") for s in sources) else []), *by_language.get("cxx", [])]
            super().build_extension(extension)

        def get_ext_filename(self, ext_name: str) -> str:
            filename = super().get_ext_filename(ext_name)
            if self.no_python_abi_suffix:
                parts = filename.split(".")
                filename = ".".join([parts[0], parts[-1]])
            return filename

    BuildExtension.__module__, BuildExtension.__qualname__ = __name__, "BuildExtension"
    return BuildExtension


def __getattr__(name: str) -> Any:
    if name == "BuildExtension":  # setuptools is imported where a setup.py asks
        found = globals()["BuildExtension"] = _make_build_extension()
        return found

    raise _missing.error("utils.cpp_extension", name)


def __dir__() -> list[str]:
    return _listing.public(globals(), ["BuildExtension"])
