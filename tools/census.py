"""Counts of what the house wants less of: `python -m tools.census` prints them beside the saved ones, `--save` writes docs/census.json.

tests/test_census.py fails where a count is above the saved one. Save after mending, so that what was won stays.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from tools import arrows, contract, package_arrows
from tools.codegen.schema import load

ROOT = Path(__file__).resolve().parent.parent
SAVED = ROOT / "docs" / "census.json"
LONG = 1000  # lines
# A kernel that looks at the device: what a step per device would do without.
_DEVICE_TEST = re.compile(r"device_type\s*(?:[=!]=|<=?|>=?)\s*DEV_|device_type\s+in\b")
_FUNCTION = re.compile(r"^(?:cdef|cpdef|def)\s[^\n]*?\b(\w+)\((?:[^\n]*\n)(?:(?:[ \t][^\n]*)?\n)*", re.M)


def _text(pattern: str) -> Iterable[tuple[Path, str]]:
    for path in sorted((ROOT / "cysrc").rglob(pattern)):
        yield path, path.read_text(encoding="utf-8")


def bodies(text: str) -> dict[str, str]:
    """{name: its definition} of the functions at the margin of a Cython source."""
    return {m[1]: m[0] for m in _FUNCTION.finditer(text)}


def rows_that_choose_a_device() -> list[str]:
    """Function rows whose kernel, or a function of its family that the kernel calls, tests the device."""
    chosen = []
    rows = [op for op in load(ROOT / "cysrc" / "ops") if op.kind in ("structured", "function")]
    for family in sorted({op.family for op in rows}):
        functions: dict[str, str] = {}
        for path, text in _text(f"ops/{family}/*.p*"):
            if path.suffix != ".pxd":
                functions |= bodies(text)
        testing = {name for name, body in functions.items() if _DEVICE_TEST.search(body)}
        called = {name: set(re.findall(r"\b(\w+)\(", re.sub(r'"[^"\n]*"', "", body))) & functions.keys() for name, body in functions.items()}
        for op in rows:
            kernel = op.row.get("meta") or op.row.get("kernel", f"{op.name}_kernel")
            if op.family != family:
                continue
            seen, waiting = set(), [kernel["CPU"] if isinstance(kernel, dict) else kernel]  # where a device has its own, no `if` chooses
            while waiting:
                if (name := waiting.pop()) not in seen:
                    seen.add(name)
                    waiting += called.get(name, ())
            if seen & testing:
                chosen.append(op.name)
    return chosen


def untyped_installers() -> list[str]:
    """Functions that take C pointers as Python integers."""
    return [f"{p.relative_to(ROOT)}: {m}" for p, text in _text("ops/**/*.p*") for m in re.findall(r"^def (_\w+)\([^)]*\bsize_t\b", text, re.M)]


# Public names that are no operators, and why.
NO_ROW = {
    "settings of the process or the thread, which take and make no tensors": """
        are_deterministic_algorithms_enabled autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype
        get_autocast_ipu_dtype is_autocast_ipu_enabled set_autocast_ipu_dtype set_autocast_ipu_enabled
        get_autocast_xla_dtype is_autocast_xla_enabled set_autocast_xla_dtype set_autocast_xla_enabled
        get_autocast_dtype get_autocast_gpu_dtype get_default_device get_default_dtype get_deterministic_debug_mode get_float32_matmul_precision
        get_num_interop_threads get_num_threads get_printoptions is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled
        is_deterministic_algorithms_warn_only_enabled is_grad_enabled is_inference_mode_enabled printoptions set_autocast_cache_enabled
        set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype set_default_device
        set_default_dtype set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision set_flush_denormal
        set_num_interop_threads set_num_threads set_printoptions use_deterministic_algorithms
        compiled_with_cxx11_abi get_file_path init_num_threads is_anomaly_check_nan_enabled is_anomaly_enabled is_vulkan_available
        is_warn_always_enabled set_anomaly_enabled set_warn_always
    """,
    "numbers that stand for sizes": """
        sym_constrain_range sym_constrain_range_for_size sym_float sym_fresh_size sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum
    """,
    "removed from PyTorch: they raise": "eig lstsq matrix_rank solve symeig Tensor.eig Tensor.lstsq Tensor.reinforce Tensor.solve Tensor.symeig",
    "for devices that are not here: they raise": "Tensor.ipu Tensor.mtia Tensor.xpu",
    "deprecated since before schemas": "Tensor.resize",
    "the package's module of a device": "get_device_module",
    "state of the default generator": "get_rng_state initial_seed manual_seed seed set_rng_state thread_safe_generator",
    "questions about dtypes, shapes and any Python object": "broadcast_shapes can_cast is_storage is_tensor promote_types typename",
    "files": "from_file load save",
    "functions of functions": "classproperty cond vmap while_loop",
    "the array API standard's name of `to`": "Tensor.to_device",
}  # fmt: skip


# Public names that take any keyword, and why.
NO_SIGNATURE = {
    "a keyword of Python's is one of PyTorch's arguments (`from`)": "Tensor.random_ Tensor.uniform_",
    "keywords are handed on, as in PyTorch": "load printoptions",
}


def public_functions() -> dict[str, object]:
    """{name: callable} of the package, of Tensor and of nn.functional, linalg and fft."""
    import tensorrt_lite as trt
    from tensorrt_lite import fft, linalg, special
    from tensorrt_lite.nn import functional

    found: dict[str, object] = {}
    for prefix, space in (("", trt), ("Tensor.", trt.Tensor), ("nn.functional.", functional), ("linalg.", linalg), ("fft.", fft), ("special.", special)):
        for name in dir(space):
            value = getattr(space, name, None) if not name.startswith("_") else None
            if callable(value) and not isinstance(value, type):
                found[prefix + name] = value
    return found


def without_docstring() -> list[str]:
    """Public functions, methods and attributes of tensors of which help() says no word."""
    import tensorrt_lite as trt
    from tensorrt_lite._C.core.overrides import PublicProperty

    attributes = {f"Tensor.{name}": p for name in dir(trt.Tensor) if isinstance(p := inspect.getattr_static(trt.Tensor, name), PublicProperty) and name[0] != "_"}
    return [name for name, f in (public_functions() | attributes).items() if not (getattr(f, "__doc__", None) or "").strip()]


def without_row() -> list[str]:
    """Public functions and methods that no row declares, but for those that need none."""
    from tensorrt_lite._declared.declarations import find

    excused = {name for names in NO_ROW.values() for name in names.split()}
    return [name for name in public_functions() if find(name) is None and name not in excused]


def without_signature() -> list[str]:
    """Public functions and methods whose parameters cannot be inspected, or take any keyword."""
    excused = {name for names in NO_SIGNATURE.values() for name in names.split()}
    found = []
    for name, function in public_functions().items():
        if name in excused:
            continue
        try:
            kinds = [p.kind for p in inspect.signature(function).parameters.values()]  # type: ignore[arg-type]
        except (TypeError, ValueError):
            kinds = [inspect.Parameter.VAR_KEYWORD]
        if inspect.Parameter.VAR_KEYWORD in kinds:
            found.append(name)
    return found


def dispatchers() -> list[str]:
    """Places that look up an operator's kernel by a key in a call: the C table, Python kernels by name, `library`'s own table."""
    marks = {"cysrc/core/dispatch.h": "trt_redispatch", "cysrc/core/dispatch.pyx": "_python_kernels", "tensorrt_lite/library.py": "self._kernel(key)"}
    return [path for path, mark in marks.items() if mark in (ROOT / path).read_text(encoding="utf-8")]


def long_files() -> list[str]:
    """Sources and tests of more lines than one job needs."""
    folders = ("cysrc", "cuda_src", "tensorrt_lite", "tools", "tests")
    endings = {".py", ".pyx", ".pxd", ".pxi", ".h", ".c", ".cuh", ".yaml"}
    paths = [p for f in folders for p in (ROOT / f).rglob("*") if p.suffix in endings and "_C" not in p.parts]
    return [str(p.relative_to(ROOT)) for p in sorted(paths) if p.read_bytes().count(b"\n") > LONG]


COUNTS = {
    "function rows that choose a device by if": rows_that_choose_a_device,
    "untyped installers": untyped_installers,
    ".pxi files": lambda: [str(p.relative_to(ROOT)) for p, _ in _text("**/*.pxi")],
    "arrows up": lambda: [f"{source}: {target}" for source, targets in arrows.up().items() for target in targets],
    "imports inside the package's functions": lambda: package_arrows.inside_functions(package_arrows.imports()),
    "lazy modules of the package": lambda: [f"{i.source}: {i.target}" for i in package_arrows.imports() if i.lazy],
    "modules in the package's largest cycle": lambda: package_arrows.cycles(package_arrows.graph(package_arrows.imports()))[0],
    f"files over {LONG} lines": long_files,
    "dispatchers": dispatchers,
    "rows with entry: manual": lambda: [op.name for op in load(ROOT / "cysrc" / "ops") if op.row.get("entry") == "manual"],
    "public functions without a docstring": without_docstring,
    "public functions without a row": without_row,
    "public functions without a signature": without_signature,
    **contract.COUNTS,
}


def main(arguments: list[str] | None = None) -> int:
    """Print the table; exit status 1 where a count grew."""
    parser = argparse.ArgumentParser(prog="python -m tools.census", description=__doc__)
    parser.add_argument("--save", action="store_true", help="write the counts to docs/census.json")
    parser.add_argument("--names", metavar="WORD", help="what is counted, of the counts whose name has WORD in it")
    options = parser.parse_args(arguments)
    found = {name: list(count()) for name, count in COUNTS.items()}
    saved = json.loads(SAVED.read_text()) if SAVED.exists() else {}
    for name, things in found.items():
        print(f"{len(things):5} {name}" + (f" (saved: {saved[name]})" if saved.get(name, len(things)) != len(things) else ""))
        if options.names and options.names in name:
            print(*(f"      {thing}" for thing in things), sep="\n")
    if options.save:
        SAVED.write_text(json.dumps({name: len(things) for name, things in found.items()}, indent=1) + "\n")
        return 0
    return int(any(len(things) > saved.get(name, len(things)) for name, things in found.items()))


if __name__ == "__main__":
    sys.exit(main())
