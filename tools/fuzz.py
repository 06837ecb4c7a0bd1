"""Calls every operator with random arguments, good and bad: no call may crash or hang the process, and every refusal is
an exception of a kind that PyTorch raises.

    python -m tools.fuzz [--mode calls] [--seconds 60] [--batch 4000] [--only REGEX] [--seed 0] [--jobs 1]
    python -m tools.fuzz --replay SEED:NUMBER        # one program again, in this process, its calls printed first
    python -m tools.sanitize python -m tools.fuzz    # the same under the address and undefined-behaviour sanitizers
    python -m tools.guard python -m tools.fuzz       # with an allocator that makes overruns fault in the release build

The mode `calls` is described here, `filters`, `threads` and `dispatch` in tools/fuzz_hostile.py, `gradients` in tools/fuzz_gradients.py, `layouts` (sparse, nested and
masked tensors) in tools/fuzz_layouts.py, `indices` (indices that change before the backward pass) in tools/fuzz_indices.py, `answers` and `names` in tools/fuzz_hostile.py.

A program is one to four calls over shared tensors (tools/fuzz_arguments.py); what comes back is read, printed and
differentiated. A batch of programs runs in a child process, which notes the number of each before it starts; a child that
dies by a signal, reports through a sanitizer or overruns the time of a program names its culprit. Everything is drawn from
(seed, number) alone, so that `--replay` needs nothing else. The child's memory is limited: a huge size is answered with
MemoryError or RuntimeError, not with the machine's memory.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import importlib
import inspect
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Iterator

from tools import fuzz_gradients, fuzz_hostile, fuzz_indices, fuzz_layouts
from tools.fuzz_arguments import TENSOR_NAMES, Arguments, quiet

ALLOWED = (TypeError, ValueError, RuntimeError, IndexError, NotImplementedError, OverflowError, MemoryError, AttributeError, BufferError, AssertionError)
DIVIDES = re.compile(r"nn\.functional\.lp_pool\dd$")  # by a norm's order, which may be 0: PyTorch's answer is a ZeroDivisionError, too
CALL_SECONDS = 30
MEMORY_BYTES = 3 << 30  # address space: the libraries' own mappings take about half a GiB of it
LENGTHS = [1, 1, 1, 2, 2, 3, 4]  # of a program, in calls: one of these
MODULES = ("nn.functional", "linalg", "special", "fft", "sparse", "nested", "masked")  # functions of Python on top of the operators

# Outside of the promise (docs/safety.md), or state of the whole process that would make programs depend on each other.
LEFT_OUT = re.compile(
    r"from_blob|data_ptr|_cdata|save|load|manual_seed|seed|set_.*(threads|default|printoptions|determin|flush|rng|grad_enabled|warn)\w*|"
    r"_(set|register|exclude|legacy|by_name|make_subclass)\w*|__getattr__|__dir__|Any|register_hook|register_post\w*|share_memory_|compile|from_file|"
    r"initial_seed|get_rng_state|has_names|names|_backward_hooks"
)
Table = list[tuple[str, Callable]]
Call = tuple[str, Callable, list, dict]
Around = Callable[[Any, Arguments, Callable[[], Any]], Any]  # makes a call of a program
Program = Callable[..., "str | None"]
tables_of_modes: dict[tuple[str, int], Table] = {}
current: Arguments | None = None  # of the program that runs


def targets() -> Table:
    """Every operator by name: declared and hand-written functions, methods, symbols (`__add__`, ...), attributes, modules' functions."""
    import tensorrt_lite as trt
    from tensorrt_lite import _ops

    found: dict[str, Callable] = {}
    seen: set[int] = set()

    def add(name: str, function: Any) -> None:
        if id(function) not in seen and callable(function) and not isinstance(function, type) and not LEFT_OUT.fullmatch(name.split(":")[-1].split(".")[-1]):
            seen.add(id(function))
            found[name] = function

    if "TENSORRT_LITE_FUZZ_PLANT" in os.environ:  # for the test of this tool: a library whose `planted` reads one element too far
        library = ctypes.CDLL(os.environ["TENSORRT_LITE_FUZZ_PLANT"])

        def planted(input: Any) -> None:
            sixteen = trt.zeros(16)
            library.planted(ctypes.c_void_p(sixteen.data_ptr()), ctypes.c_long(16))

        add("planted", planted)
    for name in sorted(dir(_ops._namespace)):
        if not name.startswith("__"):
            add(name, getattr(_ops._namespace, name))
    for kind, table in (("function", _ops.FUNCTIONS), ("method", _ops.METHODS), ("symbol", _ops.SYMBOLS)):
        for name, function in sorted(table.items()):
            add(f"{kind}:{name}", function)
    for name in sorted(dir(trt.Tensor)):
        if not name.startswith("__"):
            attribute = inspect.getattr_static(trt.Tensor, name)
            add(f"Tensor.{name}", attribute.fget if isinstance(attribute, property) else attribute)
    for path in MODULES:
        try:
            module = importlib.import_module(f"tensorrt_lite.{path}")
        except ImportError:
            continue
        for name in sorted(dir(module)):
            if not name.startswith("_"):
                add(f"{path}.{name}", getattr(module, name))
    return sorted(found.items())


def selected(only: str) -> Table:
    """The targets whose name holds the regular expression."""
    return [row for row in targets() if re.search(only, row[0])]


def program(trt: Any, table: Table, seed: int, number: int, kind: type[Arguments] = Arguments) -> Iterator[Call]:
    """The calls of this number. The arguments of a call are drawn when it is asked for, after the calls before it."""
    draw = random.Random(f"{seed}:{number}")
    names = [draw.choice(table) for _ in range(draw.choice(LENGTHS))]
    trt.manual_seed(draw.getrandbits(32))
    global current
    arguments = current = kind(trt, draw)
    for name, function in names:
        yield make_call(name, function, arguments)


def make_call(name: str, function: Callable, arguments: Arguments) -> Call:
    draw = arguments.draw
    args: list = []
    kwargs: dict = {}
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    common = arguments.shape()  # half of all calls have tensors of one shape: most refusals are about shapes
    alike = draw.random() < 0.5
    for position, parameter in enumerate(parameters):
        if parameter.kind is parameter.VAR_POSITIONAL:
            args += arguments.integers() if draw.random() < 0.4 else [arguments.named("size" if draw.random() < 0.5 else "value") for _ in range(draw.choice([0, 1, 1, 2, 3]))]
        elif parameter.kind is parameter.VAR_KEYWORD:
            continue
        else:
            optional = parameter.default is not parameter.empty
            if optional and parameter.name not in arguments.always and draw.random() < 0.6:
                if parameter.kind is not parameter.KEYWORD_ONLY and draw.random() < 0.3:
                    break
                continue
            if name.startswith("_foreach") and parameter.name in ("self", "other", "tensor1", "tensor2") and draw.random() < 0.9:
                value = arguments.tensors()
            elif re.fullmatch(TENSOR_NAMES, parameter.name) and draw.random() < 0.93:
                value = arguments.tensor(shape=common if alike else None)
            else:
                value = arguments.named(parameter.name)
            if parameter.kind is parameter.KEYWORD_ONLY or len(args) < position:
                kwargs[parameter.name] = value
            else:
                args.append(value)
    if draw.random() < 0.02:
        args.append(arguments.anything())
    if draw.random() < 0.02:
        kwargs["nonsense"] = 1
    return name, function, args, kwargs


def use(trt: Any, result: Any, pool: list | None = None, depth: int = 0) -> None:
    """Read what came back, all of it, and walk the graph behind it; further calls may take it."""
    if isinstance(result, (tuple, list)) and depth < 3:
        for part in result[:50]:
            use(trt, part, pool, depth + 1)
        return
    if not isinstance(result, trt.Tensor):
        return
    if pool is not None:
        pool.append(result)
    if result.device.type != "cpu" or result.numel() > 10**6:
        return
    result.detach().clone()
    repr(result)
    if result.requires_grad and result.dtype in (trt.float32, trt.float64):
        loss = result.sum()
        loss.backward(create_graph=len(result.shape) % 2 == 1)


def run_program(trt: Any, table: Table, seed: int, number: int, show: Callable[[str], None] | None = None, kind: type[Arguments] = Arguments, around: Around | None = None) -> str | None:
    """Make the calls, by `around` where it is given; what is wrong if an exception is not of an allowed kind."""
    calls = program(trt, table, seed, number, kind)
    while True:
        # the arguments' own construction is made of calls as well
        try:
            name, function, args, kwargs = next(calls)
        except StopIteration:
            return None
        except ALLOWED:
            return None
        if show:
            shown = [describe(a) for a in args] + [f"{k}={describe(v)}" for k, v in kwargs.items()]
            show(f"{name}({', '.join(shown)})")
        try:
            result = around(trt, current, lambda: function(*args, **kwargs)) if around else function(*args, **kwargs)
            if show:
                show(f"    returned {describe(result)}")
            use(trt, result, current.pool if current else None)
        except ALLOWED as error:
            if show:
                show(f"    {type(error).__name__}: {str(error)[:300]}")
        except Exception as error:
            absent = isinstance(error, ModuleNotFoundError) and not (error.name or "").startswith("tensorrt_lite")  # a package that a call converts to
            if not absent and not (isinstance(error, ZeroDivisionError) and DIVIDES.match(name)):
                return f"{name}: {type(error).__name__}: {error}"


def table_of(mode: str, table: Table) -> Table:
    """The rows that a mode draws from."""
    narrow = {"filters": fuzz_hostile.with_out, "layouts": fuzz_layouts.weighted}.get(mode)
    if narrow is None:
        return table
    key = (mode, id(table))
    if key not in tables_of_modes:
        tables_of_modes[key] = narrow(table)
    return tables_of_modes[key]


def filters(trt: Any, table: Table, seed: int, number: int, show: Callable[[str], None] | None = None) -> str | None:
    return run_program(trt, table_of("filters", table), seed, number, show, fuzz_hostile.FilterArguments)


def threads(trt: Any, table: Table, seed: int, number: int, show: Callable[[str], None] | None = None) -> str | None:
    return run_program(trt, table, seed, number, show, fuzz_hostile.LargeArguments, fuzz_hostile.beside_a_thread)


def dispatch(trt: Any, table: Table, seed: int, number: int, show: Callable[[str], None] | None = None) -> str | None:
    return run_program(trt, table, seed, number, show, around=fuzz_hostile.under_a_dispatch_mode)


def answers(trt: Any, table: Table, seed: int, number: int, show: Callable[[str], None] | None = None) -> str | None:
    return run_program(trt, table, seed, number, show, around=fuzz_hostile.under_an_answering_mode)


def layouts(trt: Any, table: Table, seed: int, number: int, show: Callable[[str], None] | None = None) -> str | None:
    """Every second program has large operands and a thread that changes them."""
    if number % 2:
        return run_program(trt, table_of("layouts", table), seed, number, show, fuzz_layouts.LargeLayoutArguments, fuzz_hostile.beside_a_thread)
    return run_program(trt, table_of("layouts", table), seed, number, show, fuzz_layouts.LayoutArguments)


# What a program of each mode is: (the package, targets, seed, number, where to show its calls) -> what is wrong, or None.
MODES: dict[str, Program] = {"calls": run_program, "filters": filters, "threads": threads, "dispatch": dispatch, "layouts": layouts, "gradients": fuzz_gradients.run_program,
                             "answers": answers, "indices": fuzz_indices.run_program, "names": fuzz_hostile.open_a_name}  # fmt: skip


def seconds_of(mode: str) -> int:
    """How long a program may take: of large tensors, or in the sanitized build, beside other processes, much longer than its few calls need."""
    return CALL_SECONDS * (5 if mode in ("threads", "layouts") or os.environ.get("TENSORRT_LITE_SANITIZED") else 1)


def limit_memory() -> None:
    """The mappings of the sanitizer and of the guard are terabytes; they bound requests themselves."""
    if not os.environ.get("TENSORRT_LITE_SANITIZED") and not os.environ.get("TENSORRT_LITE_GUARDED"):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def prepare(only: str) -> tuple[Any, Table]:
    import tensorrt_lite as trt

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    trt.set_num_threads(2)
    trt._C.core.parallel._split_small_work(64)  # threads on programs' small tensors, too
    quiet(lambda: current)
    limit_memory()
    faulthandler.enable()
    return trt, selected(only)


def child(seed: int, first: int, count: int, only: str, notes: Path, mode: str) -> None:
    """Run the programs `first` to `first + count - 1`, writing each number down before it starts."""
    trt, table = prepare(only)
    sys.setrecursionlimit(400)
    with open(notes, "w", buffering=1) as file:
        for number in range(first, first + count):
            os.pwrite(file.fileno(), f"{number:12d}\n".encode(), 0)
            faulthandler.dump_traceback_later(seconds_of(mode), exit=True)
            if str(number) == os.environ.get("TENSORRT_LITE_FUZZ_DIE_AT"):  # for the test of this tool
                os.abort()
            error = MODES[mode](trt, table, seed, number)
            if error is not None:
                print(f"FAILURE {number} {error}".replace("\n", " ")[:300], flush=True)
    faulthandler.cancel_dump_traceback_later()


def describe(value: Any) -> str:
    if type(value).__name__ in ("Tensor", "Parameter"):
        grad = ", requires_grad" if value.requires_grad else ""
        place = "" if value.device.type == "cpu" else f"{value.device.type} "
        return f"<{place}{value.dtype} {tuple(value.shape)} stride {tuple(value.stride())}{grad}>"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(describe, value))})"
    try:
        return repr(value)[:80]
    except Exception:
        return type(value).__name__


def replay(seed: int, number: int, only: str, mode: str = "calls") -> None:
    """Make the calls of a program in this process, each printed first."""
    trt, table = prepare(only)
    error = MODES[mode](trt, table, seed, number, lambda text: print(text, flush=True))
    if error is not None:
        print(f"FAILURE {error}")


def names_of(seed: int, number: int, only: str, mode: str = "calls") -> str:
    """The operators that a program calls."""
    draw = random.Random(f"{seed}:{number}")
    if mode == "indices":
        return fuzz_indices.name_of(seed, number)
    table = table_of(mode, selected(only))
    return " ".join(draw.choice(table)[0] for _ in range(draw.choice(LENGTHS)))


def calls_of(seed: int, programs: int) -> int:
    """How many calls the first `programs` programs make."""
    return sum(random.Random(f"{seed}:{number}").choice(LENGTHS) for number in range(programs))


def run_batch(seed: int, first: int, count: int, only: str, mode: str = "calls") -> list[str]:
    """Run the calls in children; a line for each failure. A child that dies is followed by one that takes up behind its call."""
    failures: list[str] = []
    end = first + count
    with tempfile.TemporaryDirectory() as folder:
        notes = Path(folder) / "call"
        while first < end:
            notes.write_text("")
            command = [sys.executable, "-m", "tools.fuzz", "--child", f"{seed}:{first}:{end - first}", "--only", only, "--notes", str(notes), "--mode", mode]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=seconds_of(mode) * 20, errors="replace")
                status, output, errors = done.returncode, done.stdout, done.stderr
            except subprocess.TimeoutExpired as expired:
                status, output, errors = -signal.SIGKILL, str(expired.stdout or ""), "the batch hangs"
            failures += [f"{seed}:{line.split(' ', 1)[1]}" for line in output.splitlines() if line.startswith("FAILURE ")]
            if status == 0:
                break
            text = notes.read_text().strip()
            if not text:
                failures.append(f"{seed}:{first} the child does not start: {errors[-600:]}")
                break
            culprit = int(text.split()[0])
            what = f"signal {signal.Signals(-status).name}" if status < 0 else f"overran {seconds_of(mode)} s" if "Timeout" in errors else f"exit {status}"
            failures.append(f"{seed}:{culprit} {names_of(seed, culprit, only, mode)}: {what}\n{report_of(errors)}")
            first = culprit + 1
    return failures


def report_of(errors: str) -> str:
    """The part of a dead child's output that names the place."""
    lines = errors.splitlines()
    start = next((i for i, line in enumerate(lines) if "ERROR: AddressSanitizer" in line or "runtime error:" in line), max(0, len(lines) - 25))
    return "\n".join(lines[start : start + 25])[:3000]


def fuzz(seconds: float, batch: int, only: str, seed: int, jobs: int = 1, mode: str = "calls") -> tuple[int, list[str]]:
    """Batches until the time is up: how many programs were run, and the failures."""
    start, batches, failures = time.monotonic(), 0, []
    with ThreadPoolExecutor(jobs) as workers:
        while True:
            for found in workers.map(lambda k: run_batch(seed, k * batch, batch, only, mode), range(batches, batches + jobs)):
                failures += found
                for line in found:
                    print(line, file=sys.stderr, flush=True)
            batches += jobs
            if time.monotonic() - start >= seconds:
                return batches * batch, failures


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--mode", choices=list(MODES), default="calls", help="what a program is")
    parser.add_argument("--seconds", type=float, default=60, help="no batch begins later")
    parser.add_argument("--batch", type=int, default=4000, help="programs of one child process")
    parser.add_argument("--jobs", type=int, default=1, help="child processes at a time")
    parser.add_argument("--only", default="", help="operators whose name holds this regular expression")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", default=None, metavar="SEED:NUMBER", help="run one program again (with the same --mode and --only)")
    parser.add_argument("--child", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--notes", type=Path, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.replay is not None:
        replay(*map(int, options.replay.split(":")), options.only, options.mode)
        return 0
    if options.child is not None:
        child(*map(int, options.child.split(":")), options.only, options.notes, options.mode)
        return 0
    start = time.monotonic()
    programs, failures = fuzz(options.seconds, options.batch, options.only, options.seed, options.jobs, options.mode)
    rate = programs / (time.monotonic() - start)
    for failure in failures:
        print(f"python -m tools.fuzz --mode {options.mode} --replay {failure.splitlines()[0].split(' ')[0]}" + (f" --only '{options.only}'" if options.only else ""))
    print(f"{options.mode}: {programs} programs ({rate:.0f} a second), {calls_of(options.seed, programs)} calls, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
