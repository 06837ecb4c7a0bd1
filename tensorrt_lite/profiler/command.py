"""The command `tensorrt-lite profile`: a program's table, trace and flame graph."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from tensorrt_lite._commands.run_program import run_program
from tensorrt_lite.profiler import profile as _profile
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_alias = _LazyModule("tensorrt_lite.compat.alias")
_compat = _LazyModule("tensorrt_lite.compat")
_flame = _LazyModule("tensorrt_lite.profiler._flame")
_profiler_util = _LazyModule("tensorrt_lite.autograd.profiler_util")

_EPILOG = """\
examples:
  tensorrt-lite profile train.py --epochs 1
  tensorrt-lite profile --as-torch --stacks --graph flame.svg train.py      # a PyTorch program
  tensorrt-lite profile --sort-by cpu_memory_usage --memory memory.html -m package.module
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tensorrt-lite profile", usage="tensorrt-lite profile [options] (program.py | -m module) [arguments]", epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Run a program, print what its time goes to by operator, and write a trace (chrome://tracing, Perfetto) and a flame graph.",
    )  # fmt: skip
    parser.add_argument("--trace", default="trace.json", metavar="FILE", help="where the trace goes, '' for nowhere (default: %(default)s)")
    parser.add_argument("--graph", default="flame.svg", metavar="FILE", help="where the flame graph goes, '' for nowhere (default: %(default)s)")
    parser.add_argument("--memory", default="", metavar="FILE", help="record memory and write a page (.html) or numbers (.json) of it")
    parser.add_argument("--sort-by", default="self_cpu_time_total", metavar="KEY", help="order of the table (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=20, metavar="N", help="rows of the table (default: %(default)s)")
    parser.add_argument("--shapes", action="store_true", help="a row for each shape of arguments")
    parser.add_argument("--stacks", action="store_true", help="record Python's frames: the flame graph has them")
    parser.add_argument("--flops", action="store_true", help="count floating-point operations")
    parser.add_argument("--as-torch", action="store_true", help="tensorrt_lite answers to `import torch`, as in tensorrt-lite run")
    parser.add_argument("-m", dest="module", default=None, help=argparse.SUPPRESS)
    return parser


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Options, and the program with its own arguments behind them."""
    takes = {"--trace", "--graph", "--memory", "--sort-by", "--rows"}
    at = 0
    while at < len(arguments) and arguments[at].startswith("-") and arguments[at] != "-m":
        at += 2 if arguments[at] in takes else 1
    return arguments[:at], arguments[at:]


class _AbsentTorch:
    """The last finder: `import torch` in an environment without PyTorch gets tensorrt_lite, which is all that such a program can run on."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> Any:
        # programs that only ask whether there is a PyTorch (`importlib.util.find_spec`) hear that there is none
        if fullname != "torch" or _alias.is_installed() or not _alias._importing():
            return None
        print("tensorrt-lite profile: PyTorch is not installed; tensorrt_lite answers to `import torch`, as with --as-torch", file=sys.stderr)
        _alias.install()
        return _alias._current.find_spec(fullname) if _alias._current is not None else None


def main(arguments: list[str]) -> int:
    """Run and report; the exit status is the program's, 2 for wrong usage."""
    options_given, program = _split(arguments)
    parser = _parser()
    try:
        options = parser.parse_args(options_given)
    except SystemExit as ended:
        return int(ended.code or 0)
    if not program or program == ["-m"]:
        parser.print_usage(sys.stderr)
        return 2
    if options.as_torch:
        _compat.install()
    elif _AbsentTorch not in sys.meta_path:
        sys.meta_path.append(_AbsentTorch)  # a class with the method is a finder

    if not hasattr(_profiler_util.FunctionEventAvg(), options.sort_by.replace("cuda", "device")):
        print(f"tensorrt-lite profile: rows have no {options.sort_by!r}; try self_cpu_time_total, cpu_time_total, count, cpu_memory_usage", file=sys.stderr)
        return 2
    recorded = _profile(record_shapes=options.shapes or options.flops, with_flops=options.flops, profile_memory=bool(options.memory), with_stack=options.stacks)
    status = 0
    recorded.start()
    try:
        run_program(program)
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
    finally:
        recorded.stop()
        _report(recorded, options)
    return status


def _report(recorded: Any, options: argparse.Namespace) -> None:
    averages = recorded.key_averages(group_by_input_shape=options.shapes)

    functions = {event.key for event in recorded.events() if _flame.is_call(event)}
    averages[:] = [average for average in averages if average.key not in functions]  # those are for the trace and the flame graph
    if averages:
        print(averages.table(sort_by=options.sort_by, row_limit=options.rows))
    else:
        others = "torch" in sys.modules and not _compat.is_installed()
        print(("no operator" if functions else "nothing") + " was recorded" + (": the program imported PyTorch itself; --as-torch puts tensorrt_lite in its place" if others else ""))
        if not functions:
            return
    if options.trace:
        recorded.export_chrome_trace(options.trace)
        print(f"trace: {options.trace} (chrome://tracing, https://ui.perfetto.dev)")
    if options.graph:
        recorded.export_flame_graph(options.graph)
        print(f"flame graph: {options.graph}")
    if options.memory:
        recorded.export_memory_timeline(options.memory)
        print(f"memory: {options.memory}")
