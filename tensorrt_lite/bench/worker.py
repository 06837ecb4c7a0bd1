"""One library in a process of its own, for when two OpenMP runtimes must not share one.

The parent writes one JSON object a line to the worker's standard input and reads one back; a worker answers every
request exactly once. Between requests the worker is stopped (SIGSTOP), so that neither a spinning thread pool nor a
background thread of the idle library disturbs the other. Standard output of the worker proper goes to standard error:
what a library prints cannot break the protocol. The kernel kills a worker whose parent died.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_info = _LazyModule("tensorrt_lite.info")
_measure = _LazyModule("tensorrt_lite.bench.measure")
_rows = _LazyModule("tensorrt_lite.bench.rows")

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .rows import Row

_PR_SET_PDEATHSIG = 1

# Runs the worker without running `tensorrt_lite/__init__`: in the process of another library a bare package object
# stands in its place, so that only one library and one OpenMP runtime are loaded there.
_BOOT = """\
import sys, types
library, folder = sys.argv[1:3]
if library != "tensorrt_lite":
    package = types.ModuleType("tensorrt_lite")
    package.__path__ = [folder]
    sys.modules["tensorrt_lite"] = package
from tensorrt_lite.bench.worker import serve
serve(library)
"""


class WorkerSide:
    """A library in a worker process; the methods of `measure.Side`.

    The process is stopped whenever no request is under way, and ended by `close`.
    """

    def __init__(self, name: str, environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self._environment = dict(os.environ if environment is None else environment)
        # The worker must find the same tensorrt_lite and the same libraries as this process, wherever they came from.
        self._environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(path for path in sys.path if path))
        self._start()

    def _start(self) -> None:
        package = Path(__file__).resolve().parent.parent
        # -P: a source folder in the working directory must not stand before the installed package.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _BOOT, self.name, str(package)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._environment,
            text=True,
            # Ctrl-C is the parent's to handle: it ends the workers itself.
            start_new_session=True,
        )
        try:
            ready = self._receive()
        except BaseException:
            self.close()
            raise
        self.pid: int = ready["pid"]
        self._process.send_signal(signal.SIGSTOP)

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {self.name} ended with status {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _ask(self, request: str, **arguments: Any) -> Any:
        assert self._process.stdin is not None
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.stdin.write(json.dumps({"request": request, **arguments}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise RuntimeError(f"the worker of {self.name} ended with status {self._process.wait()}") from None
        answer = self._receive()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGSTOP)
        if "error" in answer:
            raise RuntimeError(f"{self.name}: {answer['error']}")
        return answer["value"]

    def facts(self) -> dict[str, Any]:
        """The library's version and the OpenMP runtimes of its process."""
        facts: dict[str, Any] = self._ask("facts")
        return facts

    def build(self, row: Row, threads: int) -> str:
        if self._process.poll() is not None:
            # The previous row killed the process; the rows after it are still to be measured.
            self.close()
            self._start()
        return str(self._ask("build", suite=row.suite, row=row.key, threads=threads))

    def once(self) -> float:
        return float(self._ask("once"))

    def block(self, number: int) -> float:
        return float(self._ask("block", number=number))

    def close(self) -> None:
        process = self._process
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                # Unsent bytes to a process that is gone are no loss.
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        if process.poll() is None:
            process.kill()
        process.wait()


def serve(library: str) -> None:
    """The worker's main loop: answer requests until the parent closes the pipe."""
    _die_with_parent()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    side = _measure.LocalSide(library)
    rows: dict[str, Row] = {}

    def answer(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    answer({"pid": os.getpid()})
    for line in sys.stdin:
        message = json.loads(line)
        request = message["request"]
        try:
            value: Any
            if request == "build":
                if message["row"] not in rows:
                    rows.update((row.key, row) for row in _rows.load([message["suite"]]))
                value = side.build(rows[message["row"]], message["threads"])
            elif request == "once":
                value = side.once()
            elif request == "block":
                value = side.block(message["number"])
            elif request == "facts":
                side.load()
                version = str(getattr(side.module, "__version__", "unknown"))
                value = {"version": version, "openmp_runtimes": _info.openmp_runtimes()}
            else:
                raise ValueError(f"unknown request {request!r}")
        except Exception as error:
            answer({"error": f"{type(error).__name__}: {error}"})
        else:
            answer({"value": value})


def _die_with_parent() -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
