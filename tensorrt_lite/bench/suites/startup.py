"""What loading a library costs over bare Python: time, modules, memory; each round in fresh interpreters, with bytecode as an installed package has."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
import time
from typing import TYPE_CHECKING

from ..rows import Row

if TYPE_CHECKING:
    from ..rows import Work

_COUNT_MODULES = "import sys; before = len(sys.modules); import {}; print(len(sys.modules) - before)"
# The resident size of the new address space; ru_maxrss would carry the parent's peak across fork.
_RESIDENT = (
    "import {}; print(next(int(s.split()[1]) for s in open('/proc/self/status') if s.startswith('VmRSS')) * 1024)"
)


@functools.cache
def _bytecode_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="bench-bytecode-")


def _run(code: str) -> str:
    """What a fresh interpreter that finds the same packages as this one prints."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    if environ.pop("PYTHONDONTWRITEBYTECODE", ""):
        # otherwise every round would compile the sources of an editable install, which nobody meets twice
        environ["PYTHONPYCACHEPREFIX"] = _bytecode_folder().name
    command = [sys.executable, "-P", "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environ).stdout


def _wall(code: str) -> float:
    start = time.perf_counter()
    _run(code)
    return time.perf_counter() - start


def _import_time(library: str, threads: int) -> Work:
    _run(f"import {library}")
    return lambda: _wall(f"import {library}") - _wall("pass")


def _modules(library: str, threads: int) -> Work:
    return lambda: float(_run(_COUNT_MODULES.format(library)))


def _memory(library: str, threads: int) -> Work:
    if sys.platform != "linux":
        raise NotImplementedError("reads /proc/self/status")
    _run(f"import {library}")
    bare = float(_run(_RESIDENT.format("sys")))
    return lambda: float(_run(_RESIDENT.format(library))) - bare


def rows() -> list[Row]:
    return [
        Row("import", "startup", _import_time, numpy=_import_time, own_clock=True, limit_seconds=0.050),
        Row("modules loaded", "startup", _modules, numpy=_modules, unit="modules", own_clock=True),
        Row("memory after import", "startup", _memory, numpy=_memory, unit="bytes", own_clock=True),
    ]
