"""Run a program as `python` would, for `tensorrt-lite run` and `tensorrt-lite profile`."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

# Files whose frames lie between the command and the program.
_OURS = (__file__, contextmanager.__code__.co_filename, runpy.run_path.__code__.co_filename)


@contextmanager
def program_tracebacks() -> Iterator[None]:
    """What ends the program inside is shown from the program's first frame on, as `python program.py` shows it: the command's own frames are left out.
    The error passes on, so that `finally` blocks run and the interpreter chooses the exit status; `sys.excepthook`, which the program may have set, shows it."""
    try:
        yield
    except SystemExit:
        raise
    except BaseException as error:
        ended, first = error, _programs_part(error.__traceback__)
        shown = sys.excepthook

        def show(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
            if value is ended:
                value.__traceback__ = trace = first
            shown(kind, value, trace)

        sys.excepthook = show
        raise


def _programs_part(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename in _OURS:
        trace = trace.tb_next
    return trace


def run_program(words: list[str]) -> None:
    """Run `program.py arguments` or `-m module arguments` as `__main__`. SystemExit where there is no such file."""
    if words[0] == "-m":
        sys.argv = words[1:]
        sys.path[0] = os.getcwd()
        run: Callable[[], object] = lambda: runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        path = Path(words[0])
        if not path.exists():
            print(f"tensorrt-lite: can't open file {words[0]!r}: there is none in {os.getcwd()}" if not path.is_absolute()
                  else f"tensorrt-lite: can't open file {words[0]!r}", file=sys.stderr)  # fmt: skip
            raise SystemExit(2)
        sys.argv = words
        sys.path[0] = str(path.resolve().parent)
        run = lambda: runpy.run_path(words[0], run_name="__main__")
    with program_tracebacks():
        run()
