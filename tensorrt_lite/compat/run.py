"""The commands `tensorrt-lite run` and `tensorrt-lite alias`: programs under the alias, and the hook that gives it to programs one cannot start oneself."""

from __future__ import annotations

import os
import runpy
import sys
import sysconfig
from pathlib import Path

_USAGE = """\
usage: tensorrt-lite run [--report[=FILE]] [--children] program.py [arguments]
       tensorrt-lite run [--report[=FILE]] [--children] -m module [arguments]
       tensorrt-lite run [--report[=FILE]] [--children] -c text [arguments], or - for the standard input
       tensorrt-lite run [--report[=FILE]] [--children] -- command [arguments]

Runs a PyTorch program with tensorrt_lite answering to `import torch`. Processes that the program starts through multiprocessing run in the same way.

  --report      print to stderr, or to FILE, what the program touched, what was missing, and what was missing but never used
  --children    programs that it starts by subprocess, too (through PYTHONPATH and TENSORRT_LITE_ALIAS)
  -- command    an installed command (pytest, accelerate) instead of a file
"""

_ALIAS_USAGE = """\
usage: tensorrt-lite alias --install | --remove

Puts a hook into this environment's site-packages, or takes it away. With it, and with TENSORRT_LITE_ALIAS=1 in the environment, every program of the
environment has tensorrt_lite answering to `import torch`; without the variable the hook does nothing.
"""

_HOOK = "_tensorrt_lite_alias"


def _run_command(name: str) -> None:
    """Run an installed command in this process: its entry point, else the module of that name, else a Python script on PATH."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec
    from shutil import which

    for entry in entry_points(group="console_scripts", name=name):
        sys.exit(entry.load()())
    if find_spec(f"{name}.__main__" if name.isidentifier() and find_spec(name) else "no.such") is not None:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
        return
    path = which(name)
    if path is None:
        sys.exit(f"tensorrt-lite run: no command {name!r} is installed in this environment")
    runpy.run_path(path, run_name="__main__")


def _write_report(target: str) -> None:
    from tensorrt_lite.compat import report

    if target:
        Path(target).write_text(report(), encoding="utf-8")
    else:
        print(report(), end="", file=sys.stderr)


def _share_by_environment() -> None:
    """Programs that this one starts find the hook's folder first on their path."""
    folder = str(Path(__file__).parent / "site")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    os.environ["TENSORRT_LITE_ALIAS"] = "1"


def main(arguments: list[str]) -> int:
    """Run what the arguments say; the exit status is the program's, 2 for wrong usage."""
    report: str | None = None
    while arguments and arguments[0].startswith("--") and arguments[0] != "--":
        option, _, value = arguments[0].partition("=")
        if option == "--report":
            report = value
        elif option == "--children" and not value:
            _share_by_environment()
        else:
            print(_USAGE, end="", file=sys.stdout if option == "--help" else sys.stderr)
            return 0 if option == "--help" else 2
        arguments = arguments[1:]
    if not arguments or arguments[0] in ("-m", "-c", "--") and len(arguments) < 2 or arguments[0].startswith("-") and arguments[0] not in ("-m", "-c", "-", "--", "-h"):
        print(_USAGE, end="", file=sys.stderr)
        return 2
    if arguments[0] == "-h":
        print(_USAGE, end="")
        return 0
    from tensorrt_lite._run_program import run_program
    from tensorrt_lite.compat import install

    install()
    if report is not None:
        import atexit

        from tensorrt_lite.compat.report import record

        record()
        atexit.register(_write_report, report)
    if arguments[0] == "--":
        sys.argv = arguments[1:]
        _run_command(arguments[1])
    else:
        run_program(arguments)
    return 0


def alias(arguments: list[str]) -> int:
    """Install or remove the hook."""
    if arguments not in (["--install"], ["--remove"]):
        print(_ALIAS_USAGE, end="", file=sys.stdout if arguments in (["-h"], ["--help"]) else sys.stderr)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    folder = Path(sysconfig.get_path("purelib"))
    files = {folder / f"{_HOOK}.py": (Path(__file__).parent / "site" / "sitecustomize.py").read_text(encoding="utf-8"), folder / f"{_HOOK}.pth": f"import {_HOOK}\n"}
    for path, text in files.items():
        if arguments == ["--install"]:
            path.write_text(text, encoding="utf-8")
        else:
            path.unlink(missing_ok=True)
        print(f"{'wrote' if arguments == ['--install'] else 'removed'} {path}")
    return 0
