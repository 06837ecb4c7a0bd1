"""The command `tensorrt-lite`, also `python -m tensorrt_lite`: hands its arguments to the command."""

from __future__ import annotations

import sys

_USAGE = """\
usage: tensorrt-lite <command> [options]

commands:
  info      show the build, CPU features, BLAS, threads, CUDA and the environment variables that matter
  doctor    find what makes programs slow here: variables, OpenMP runtimes, a container's limits, huge pages
  bench     measure the library, alone or beside others; draw and compare saved runs (tensorrt-lite bench --help)
  profile   run a program and show where its time goes: table, trace, flame graph (tensorrt-lite profile program.py)
  run       run a PyTorch program with tensorrt_lite answering to `import torch` (tensorrt-lite run program.py)
  alias     make an environment ready for packages that depend on PyTorch, without PyTorch
  missing   show what of PyTorch is missing, or what is known of one name (tensorrt-lite missing torch.export)

examples:
  tensorrt-lite run train.py --epochs 1            a PyTorch program, unchanged
  tensorrt-lite run --report train.py              and which names it missed
  tensorrt-lite doctor sklearn                     as a program that imports scikit-learn finds it
  tensorrt-lite profile train.py                   a table of its operators, trace.json and flame.svg
  tensorrt-lite bench overhead --against torch --plot
  tensorrt-lite missing torch.export               what is known of a missing name

tensorrt-lite --version prints the version.
"""


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit status: 0 when it succeeded, 1 when it failed, 2 for wrong usage."""
    arguments = sys.argv[1:] if argv is None else argv
    command, rest = (arguments[0], arguments[1:]) if arguments else ("", [])
    if command == "info":
        from .info import main as info

        return info(rest)
    if command == "doctor":
        from tensorrt_lite._commands.doctor import main as doctor

        return doctor(rest)
    if command == "bench":
        from .bench.cli import main as bench

        return bench(rest)
    if command == "missing":
        from tensorrt_lite._names.gaps import main as missing

        return missing(rest)
    if command == "run":
        from .compat.run import main as run

        return run(rest)
    if command == "profile":
        from .profiler.command import main as profile

        return profile(rest)
    if command == "alias":
        from .compat.run import alias

        return alias(rest)
    if command in ("-V", "--version"):
        from . import __version__

        print(f"tensorrt-lite {__version__}")
        return 0
    asked = command in ("", "-h", "--help", "help")
    print(_USAGE, end="", file=sys.stdout if asked else sys.stderr)
    if not asked:
        import difflib

        near = difflib.get_close_matches(command, ("info", "doctor", "bench", "profile", "run", "alias", "missing"), 1)
        print(f"tensorrt-lite: unknown command {command!r}" + (f"; did you mean {near[0]!r}?" if near else ""), file=sys.stderr)
    return 0 if asked else 2


if __name__ == "__main__":
    sys.exit(main())
