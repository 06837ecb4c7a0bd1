"""Run a program as `python` would, for `tensorrt-lite run` and `tensorrt-lite profile`."""

from __future__ import annotations

import builtins
import os
import runpy
import sys
import types
import zipfile
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


def _run_text(text: str | bytes, name: str, file: str | None = None) -> None:
    """Run source text as the module `__main__`, which stays, so that what the program leaves to atexit finds its globals."""
    main = types.ModuleType("__main__")
    main.__builtins__ = builtins
    if file is not None:
        main.__file__ = file
    sys.modules["__main__"] = main
    exec(compile(text, name, "exec", dont_inherit=True), main.__dict__)


def run_program(words: list[str]) -> None:
    """Run `program.py arguments`, `-m module arguments`, `-c text arguments` or `- arguments` (from the standard input) as `__main__`. SystemExit where there is
    no such file."""
    if words[0] in ("-c", "-"):
        text, name = (words[1], "<string>") if words[0] == "-c" else (sys.stdin.read(), "<stdin>")
        sys.argv = [words[0], *words[2 if words[0] == "-c" else 1 :]]
        sys.path[0] = ""
        run: Callable[[], object] = lambda: _run_text(text, name)
    elif words[0] == "-m":
        sys.argv = words[1:]
        sys.path[0] = os.getcwd()
        run = lambda: runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        path = Path(words[0])
        if not path.exists():
            where = "" if path.is_absolute() else f" in {os.getcwd()}"
            print(f"tensorrt-lite: can't open file {words[0]!r}: no such file{where}", file=sys.stderr)
            raise SystemExit(2)
        sys.argv = words
        sys.path[0] = str(path.resolve().parent)
        absolute = os.path.abspath(words[0])
        # runpy would put the file's path into sys.argv, where Python leaves what was typed; it is for folders and archives
        run = (lambda: _run_text(path.read_bytes(), absolute, absolute)) if path.is_file() and not zipfile.is_zipfile(path) else (lambda: runpy.run_path(absolute, run_name="__main__"))
    with program_tracebacks():
        run()
