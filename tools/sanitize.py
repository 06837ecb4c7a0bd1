"""Runs a command in the sanitized build: the debug build with gcc's address and undefined-behaviour sanitizers, or with its thread sanitizer.

    python -m tools.sanitize                          # build (TENSORRT_LITE_SANITIZE=address,undefined)
    python -m tools.sanitize python -m pytest tests/core
    python -m tools.sanitize python -m tools.fuzz --seconds 600
    TENSORRT_LITE_SANITIZE=thread python -m tools.sanitize python -m pytest -s tests/core/test_threads.py

The command runs in build/sanitize/checkout, a checkout of links with a core of its own, so the build in place stays as it is.
The first report ends a process with status REPORTED. docs/safety.md says what the build checks.

The thread sanitizer has a folder of its own, build/thread, and needs an interpreter configured with --with-thread-sanitizer (and --disable-gil, else
there is little to see): one that is not instrumented would hide how its threads wait for each other. Its process goes on after a report and ends with
REPORTED. libgomp and OpenBLAS are not instrumented, so there is one thread of each; tools/thread_sanitizer.txt names what else of others is left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = os.environ.get("TENSORRT_LITE_SANITIZE") or "address,undefined"
THREADS = NAMES == "thread"
CHECKOUT = ROOT / "build" / ("thread" if THREADS else "sanitize") / "checkout"
REPORTED = 99
# CPython keeps what it allocated until the end, so leaks are not looked for. A request that no machine could serve has to come
# back as a null pointer, as malloc's does. Other people's libraries (BLAS, NumPy) are seen through the allocator alone.
ADDRESS = (
    f"exitcode={REPORTED}:halt_on_error=1:detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2048:quarantine_size_mb=32:"
    "malloc_context_size=12:detect_stack_use_after_return=0:alloc_dealloc_mismatch=0:strict_string_checks=1:check_initialization_order=0"
)
UNDEFINED = f"exitcode={REPORTED}:halt_on_error=1:print_stacktrace=1"
THREAD = f"exitcode={REPORTED}:halt_on_error=0:second_deadlock_stack=1:history_size=4:suppressions={ROOT / 'tools' / 'thread_sanitizer.txt'}"


def libraries() -> list[str]:
    """The sanitizers' libraries, which must be in the process before Python is."""
    compiler = os.environ.get("CC", "gcc").split()[0]
    wanted = [f"lib{'asan' if name == 'address' else 'ubsan'}.so" for name in NAMES.split(",") if name in ("address", "undefined")]
    found = [subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip() for name in wanted]
    return [path for path in found if Path(path).is_absolute()]


def interpreter() -> str:
    """The interpreter itself: a launcher script in its place (pyenv's) would lose the libraries on the way."""
    own = Path(sysconfig.get_config_var("BINDIR") or "") / f"python{sysconfig.get_config_var('VERSION')}"
    return sys.executable if sys.prefix != sys.base_prefix or not own.exists() else str(own)


def environment() -> dict[str, str]:
    """What a process of the sanitized build needs. Python allocates with malloc, so that its objects are checked, too; without a GIL it knows its own
    allocator alone."""
    if THREADS:
        options = ":".join(filter(None, (THREAD, os.environ.get("TSAN_OPTIONS"))))  # the last word counts
        return {**os.environ, "TSAN_OPTIONS": options, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(CHECKOUT), "TENSORRT_LITE_SANITIZED": "1"}
    allocation = {} if sysconfig.get_config_var("Py_GIL_DISABLED") else {"PYTHONMALLOC": "malloc"}
    return {
        **os.environ, **allocation, "LD_PRELOAD": ":".join(libraries()), "ASAN_OPTIONS": ADDRESS, "UBSAN_OPTIONS": UNDEFINED,
        "PYTHONPATH": str(CHECKOUT), "TENSORRT_LITE_SANITIZED": "1",
    }  # fmt: skip


def build() -> None:
    if THREADS and "--with-thread-sanitizer" not in (sysconfig.get_config_var("CONFIG_ARGS") or ""):
        raise SystemExit(f"{sys.executable} has no thread sanitizer: configure CPython with --disable-gil --with-thread-sanitizer (docs/safety.md)")
    subprocess.run([sys.executable, "-m", "tools.build_core"], cwd=ROOT, env={**os.environ, "TENSORRT_LITE_SANITIZE": NAMES}, check=True)


def main(arguments: list[str]) -> int:
    build()
    if not arguments:
        return 0
    program = interpreter() if arguments[0] in ("python", "python3") else shutil.which(arguments[0]) or arguments[0]
    return subprocess.run([program, *arguments[1:]], cwd=CHECKOUT, env=environment()).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
