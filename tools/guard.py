"""Runs a command with an allocator that makes an overrun of one byte, and a use after free, of tensors' memory fault at once.

    python -m tools.guard python -m tools.fuzz --mode filters --seconds 60
    python -m tools.guard python -m pytest tests/core/test_safety.py

It needs no build of its own: tools/guard_allocator.c is loaded before the release build, which gives each tensor an allocation of its own
where TENSORRT_LITE_CPU_ALLOCATOR is `system`. Kernels run at their full speed and with the instruction set of the processor; blocks of more
than 4 MiB are not guarded. The sanitized build (tools/sanitize.py) sees stacks and malloc, too, and is slower. Linux with gcc.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

from tools.sanitize import ROOT, interpreter

SOURCE = ROOT / "tools" / "guard_allocator.c"
LIBRARY = ROOT / "build" / "guard" / "guard_allocator.so"


def build() -> None:
    """Compile the library where it is older than its source. Several processes may do so at once."""
    if LIBRARY.exists() and LIBRARY.stat().st_mtime >= SOURCE.stat().st_mtime:
        return
    LIBRARY.parent.mkdir(parents=True, exist_ok=True)
    made = LIBRARY.with_suffix(f".{os.getpid()}")
    compiler = os.environ.get("CC", "gcc").split()
    subprocess.run([*compiler, "-O2", "-g1", "-Wall", "-Wextra", "-fno-builtin", "-shared", "-fPIC", str(SOURCE), "-o", str(made)], check=True)
    made.replace(LIBRARY)


def environment() -> dict[str, str]:
    """What a guarded process needs."""
    return {
        **os.environ, "LD_PRELOAD": str(LIBRARY), "TENSORRT_LITE_CPU_ALLOCATOR": "system", "TENSORRT_LITE_GUARDED": "1", "PYTHONFAULTHANDLER": "1",
    }  # fmt: skip


def main(arguments: list[str]) -> int:
    build()
    if not arguments:
        return 0
    program = interpreter() if arguments[0] in ("python", "python3") else shutil.which(arguments[0]) or arguments[0]
    status = subprocess.run([program, *arguments[1:]], env=environment()).returncode
    return 128 - status if status < 0 else status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
