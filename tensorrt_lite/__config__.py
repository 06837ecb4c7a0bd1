"""How the package was built, under PyTorch's name."""

from __future__ import annotations

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_settings = _LazyModule("tensorrt_lite._functions.settings")


def show() -> str:
    """Compiler, instruction sets, libraries and threads as text."""
    from tensorrt_lite import __version__

    record = _settings._build_info()
    lines = [f"tensorrt_lite {__version__} built with:", f"  - {record['compiler']}", f"  - instruction sets {', '.join(record['instruction_sets'])}"]
    if "blas" in record:
        lines.append(f"  - {record['blas']['config']}")
    return "\n".join([*lines, f"  - CPU capability usage: {record['instruction_set'].upper()}", ""])


def parallel_info() -> str:
    """The OpenMP runtime and its threads as text."""
    record = _settings._build_info()
    return f"OpenMP: {record['openmp_runtime']}\nthreads: {record['openmp_threads']}\n"
