"""The commands `tensorrt-lite run` and `tensorrt-lite alias`: programs under the alias, and the hook that gives it to programs one cannot start oneself."""

from __future__ import annotations

import os
import re
import runpy
import sys
import sysconfig
import warnings
from pathlib import Path
from typing import Any

from tensorrt_lite.compat.metadata import METADATA, VERSION
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_compat = _LazyModule("tensorrt_lite.compat")
_report = _LazyModule("tensorrt_lite.compat.report")
_run_program = _LazyModule("tensorrt_lite._commands.run_program")

_USAGE = """\
usage: tensorrt-lite run [--report[=FILE]] [--children] program.py [arguments]
       tensorrt-lite run [--report[=FILE]] [--children] -m module [arguments]
       tensorrt-lite run [--report[=FILE]] [--children] -c text [arguments], or - for the standard input
       tensorrt-lite run [--report[=FILE]] [--children] -- command [arguments]

Runs a PyTorch program with tensorrt_lite answering to `import torch`. Processes that the program starts through multiprocessing run in the same way.

  --report      print to stderr, or to FILE, what the program touched, what was missing, and what was missing but never used
  --children    programs that it starts by subprocess, too (through PYTHONPATH and TENSORRT_LITE_ALIAS)
  -- command    an installed command (pytest, accelerate, or python with its arguments) instead of a file
"""

_ALIAS_USAGE = """\
usage: tensorrt-lite alias --install [--always] | --remove

Makes this environment ready for packages that depend on PyTorch, or undoes it:

  - a hook in site-packages. Programs that run with TENSORRT_LITE_ALIAS=1 in their environment have tensorrt_lite answering to `import torch`.
  - an entry for the distribution "torch", so that pip does not download PyTorch for a package that depends on it. In a virtual environment pip.conf
    gets a constraint that keeps it. Neither is written where PyTorch is installed.

  --always    the hook works without the variable; TENSORRT_LITE_ALIAS=0 turns it off for a program
"""

_HOOK = "_tensorrt_lite_alias"
_INSTALLER = "tensorrt-lite"
_CONSTRAINT = "_tensorrt_lite_constraint.txt"


def _run_command(name: str) -> None:
    """Run an installed command in this process: its entry point, else the module of that name, else a Python script on PATH."""
    from importlib.metadata import entry_points
    from importlib.util import find_spec
    from shutil import which

    for entry in entry_points(group="console_scripts", name=name):
        sys.exit(entry.load()())
    if name.isidentifier() and find_spec(name) is not None and find_spec(f"{name}.__main__") is not None:
        runpy.run_module(name, run_name="__main__", alter_sys=True)
        return
    path = which(name)
    if path is None:
        sys.exit(f"tensorrt-lite run: no command {name!r} is installed in this environment")
    runpy.run_path(path, run_name="__main__")


def _is_python(name: str) -> bool:
    """Whether a command is a Python interpreter."""
    return re.fullmatch(r"python(3(\.\d+)?)?", os.path.basename(name)) is not None


def _after_interpreter(arguments: list[str]) -> list[str]:
    """What `python arguments` runs, without the interpreter's options. ValueError for one that cannot be had in a process that runs already."""
    while arguments and arguments[0].startswith("-") and arguments[0] not in ("-m", "-c", "-"):
        option = arguments[0]
        if option == "-u":
            for stream in (sys.stdout, sys.stderr):
                stream.reconfigure(write_through=True)  # type: ignore[union-attr]
        elif option in ("-W", "-X") and len(arguments) > 1:
            arguments = [option + arguments[1], *arguments[2:]]
            continue
        elif option.startswith("-W"):
            warnings._setoption(option[2:])  # type: ignore[attr-defined]  # what the interpreter itself calls
        elif option not in ("-B", "-s", "-q") and not option.startswith("-X"):
            raise ValueError(option)
        arguments = arguments[1:]
    return arguments


def _write_report(target: str) -> None:
    if target:
        Path(target).write_text(_report.report(), encoding="utf-8")
    else:
        print(_report.report(), end="", file=sys.stderr)


def _share_by_environment() -> None:
    """Programs that this one starts find the hook's folder first on their path."""
    folder = str(Path(__file__).parent / "site")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    os.environ["TENSORRT_LITE_ALIAS"] = "1"


def _warn_of_children() -> None:
    """Say once, where PyTorch is installed, that a Python which the program starts by `subprocess` imports that one."""
    from importlib.machinery import PathFinder

    if PathFinder.find_spec("torch") is None:
        return
    said: list[bool] = []

    def hear(event: str, details: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen" and not said and _is_python(os.fsdecode(details[0] or "")):
            said.append(True)
            print("tensorrt-lite run: the program starts another Python, whose `import torch` is the installed PyTorch; with --children it is tensorrt_lite", file=sys.stderr)

    sys.addaudithook(hear)


def main(arguments: list[str]) -> int:
    """Run what the arguments say; the exit status is the program's, 2 for wrong usage."""
    report: str | None = None
    children = False
    while arguments and arguments[0].startswith("--") and arguments[0] != "--":
        option, _, value = arguments[0].partition("=")
        if option == "--report":
            report = value
        elif option == "--children" and not value:
            children = True
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
    command = arguments[0] == "--"
    if command:
        arguments = arguments[1:]
    if _is_python(arguments[0]) and (command or not os.path.exists(arguments[0])):
        try:
            arguments, command = _after_interpreter(arguments[1:]), False
        except ValueError as option:
            print(f"tensorrt-lite run: python's option {option} has no effect on a process that runs already; leave it out", file=sys.stderr)
            return 2
        if not arguments:
            print(_USAGE, end="", file=sys.stderr)
            return 2

    _compat.install()
    if children:
        _share_by_environment()
    else:
        _warn_of_children()
    if report is not None:
        import atexit

        _report.record()
        atexit.register(_write_report, report)
    if command:
        sys.argv = arguments
        _run_command(arguments[0])
    else:
        _run_program.run_program(arguments)
    return 0


def _torch_distribution(folder: Path) -> dict[Path, str]:
    """The files that tell pip that "torch" is installed, which `pip uninstall torch` removes."""
    info = folder / f"torch-{VERSION}.dist-info"
    texts = {
        "METADATA": f"{METADATA}\nInstalled by `tensorrt-lite alias --install`, so that packages that depend on PyTorch find it.\n",
        "INSTALLER": _INSTALLER + "\n",
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: {_INSTALLER}\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    texts["RECORD"] = "".join(f"{info.name}/{name},,\n" for name in (*texts, "RECORD"))
    return {info / name: text for name, text in texts.items()}


def _installed_pytorch(folder: Path) -> Path | None:
    """The entry of a distribution "torch" in a folder of packages that is not ours."""
    for info in folder.glob("torch-*.dist-info"):
        installer = info / "INSTALLER"
        if not installer.exists() or installer.read_text(encoding="utf-8").strip() != _INSTALLER:
            return info
    return None


def alias(arguments: list[str]) -> int:
    """Install or remove the hook and the distribution."""
    if arguments not in (["--install"], ["--install", "--always"], ["--remove"]):
        print(_ALIAS_USAGE, end="", file=sys.stdout if arguments in (["-h"], ["--help"]) else sys.stderr)
        return 0 if arguments in (["-h"], ["--help"]) else 2
    folder = Path(sysconfig.get_path("purelib"))
    hook = (Path(__file__).parent / "site" / "sitecustomize.py").read_text(encoding="utf-8")
    if "--always" in arguments:
        hook = hook.replace('_DEFAULT = "0"', '_DEFAULT = "1"')
    files = {folder / f"{_HOOK}.py": hook, folder / f"{_HOOK}.pth": f"import {_HOOK}\n"}
    pytorch = _installed_pytorch(folder)
    settings, constraint = Path(sys.prefix) / "pip.conf", folder / _CONSTRAINT
    written = f"# Written by `tensorrt-lite alias --install`\n[global]\nconstraint = {constraint}\n"
    keeps = sys.prefix != sys.base_prefix and (not settings.exists() or settings.read_text(encoding="utf-8") == written)
    if pytorch is None:
        files |= _torch_distribution(folder) | {constraint: f"torch=={VERSION}\n"}
        if keeps:
            files[settings] = written
    for path, text in files.items():
        if arguments[0] == "--install":
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        else:
            path.unlink(missing_ok=True)
    for path in sorted({path.parent if path.parent.suffix == ".dist-info" else path for path in files}):
        if arguments[0] == "--remove" and path.is_dir():
            path.rmdir()
        print(f"{'wrote' if arguments[0] == '--install' else 'removed'} {path}")
    if arguments[0] == "--install" and pytorch is not None:
        print(f"PyTorch is installed ({pytorch.name}): its distribution is left as it is")
    elif arguments[0] == "--install" and not keeps:
        print(f"packages that want another version of torch: pip install --constraint {constraint} ...")
    return 0
