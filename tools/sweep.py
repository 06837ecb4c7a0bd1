"""Which calls take longer than PyTorch's: every operator of its database with enlarged samples, and everyday calls, values and gradients.

    python -m tools.sweep [--ops add,sort] [--calls REGEX] [--dtypes float32,bfloat16] [--threads 2] [--limit 1.05] [--json FILE]

Samples of the database have every size above one multiplied alike until the largest tensor has --bytes (tools/scratch.py); the everyday calls of
tools/sweep_calls.py state their shapes. Both libraries run in one process on equal values, block by block in turns; a figure is the least
of the blocks, in one thread of its processor time, so that other work on the machine counts little. A row above the limit is measured again, longer,
and is printed where it stays above. Gradients are timed alone (`autograd.grad` of all outputs to all inputs, over a graph that is kept). Rows are sorted by the ratio, the
package's time over PyTorch's. Each operator has a process of its own.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tools.scratch import enlarged
from tools.sweep_calls import CALLS

Pair = tuple[Callable[[], Any], Callable[[], Any]]
BLOCK = 2e-4  # seconds of calls between two readings of the clock
DTYPES = "float32,bfloat16,int64"


def least(pair: Pair, seconds: float, clock: Callable[[], float]) -> tuple[float, float]:
    """The least time of a call of each of the two, in turns for about `seconds` (at least five turns)."""
    numbers = []
    for call in pair:
        call()
        start = clock()
        call()
        numbers.append(max(1, min(1000, int(BLOCK / max(clock() - start, 1e-7)))))
    best = [float("inf"), float("inf")]
    end, turns = clock() + seconds, 0
    while turns < 5 or (clock() < end and turns < 200):
        for i in (0, 1) if turns % 2 else (1, 0):
            call, number = pair[i], numbers[i]
            start = clock()
            for _ in range(number):
                call()
            best[i] = min(best[i], (clock() - start) / number)
        turns += 1
    return best[0], best[1]


def compare(pair: Pair, options: argparse.Namespace) -> tuple[float, float]:
    """(ours, PyTorch's) seconds; twice measured again where the first ratio is above the limit, and the least ratio kept."""
    clock = time.thread_time if options.threads == 1 else time.perf_counter
    found = least(pair, 0.004, clock)
    for _ in range(2):
        if found[0] <= options.limit * found[1]:
            break
        found = min(found, least(pair, 0.08, clock), key=lambda times: times[0] / times[1])
    return found


def gradient(library: Any, run: Callable[[], Any], leaves: list[Any]) -> Callable[[], Any] | None:
    """A call that differentiates what `run` returned once; None where nothing requires a gradient."""
    outputs = [t for t in library.tensors(run()) if t.requires_grad]
    if not outputs or not leaves:
        return None
    ones = [library.module.ones_like(t) for t in outputs]
    return functools.partial(library.module.autograd.grad, outputs, leaves, ones, retain_graph=True, allow_unused=True)


def rows_of(libraries: list[Any], runs: list[Callable[..., Any]], values: tuple[Any, ...]) -> Iterator[tuple[str, Pair]]:
    """("value", pair) and, where there is a floating input, ("gradient", pair); the libraries' `runs` take copies of `values`."""
    import torch

    sides = [functools.partial(run, *library.arguments(*values)) for library, run in zip(libraries, runs, strict=True)]
    yield "value", (sides[0], sides[1])
    given, differentiated = [library.arguments(*values) for library in libraries], []
    for library, run, arguments in zip(libraries, runs, given, strict=True):
        leaves = [t for t in library.tensors(arguments) if t.is_floating_point() or t.is_complex()]
        for leaf in leaves:
            leaf.requires_grad_()
        with torch.random.fork_rng():
            differentiated.append(gradient(library, functools.partial(run, *arguments), leaves))
    if None not in differentiated:
        yield "gradient", (differentiated[0], differentiated[1])


def measured(rows: Iterator[tuple[str, Pair]], name: str, options: argparse.Namespace, report: Any) -> bool:
    """Adds each row as JSON to the report; whether the call worked on both sides at all."""
    worked = False
    try:
        for kind, pair in rows:
            ours, theirs = compare(pair, options)
            report.failures.append(json.dumps([name, kind, ours, theirs]))
            worked = True
    except Exception as error:
        if worked:
            report.failures.append(json.dumps([name, f"{type(error).__name__}: {str(error)[:100]}", 0, 0]))
    return worked


def sides(threads: int) -> list[Any]:
    """Both libraries of the comparison, ours first."""
    import torch

    import tensorrt_lite
    from tests.conformance.library import Library

    warnings.simplefilter("ignore")
    for module in (tensorrt_lite, torch):
        module.set_num_threads(threads)
    return [Library(tensorrt_lite), Library(torch)]


def sweep_operator(op: Any, options: argparse.Namespace) -> Any:
    """A Report whose failures are rows of the operator's first samples of each dtype that grow."""
    import torch

    from tests.conformance import opinfo
    from tests.conformance.runner import Report
    from tools.scratch import tensors_of

    libraries, report = sides(options.threads), Report()
    definite = op.name.startswith("linalg.") or "cholesky" in op.name or op.name in ("ormqr", "logdet", "inverse", "pinverse")
    functions = [library.function(op) for library in libraries]

    def runner(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda first, args, kwargs: function(first, *args, **kwargs)

    for dtype in (getattr(torch, name) for name in options.dtypes.split(",")):
        done: set[Any] = set()
        if not op.supports_dtype(dtype, "cpu"):
            continue
        for sample in itertools.islice(opinfo.samples(op, dtype), 60):
            values = (sample.input, list(sample.args), dict(sample.kwargs))
            largest = max(tensors_of(values, torch.Tensor), key=torch.Tensor.numel, default=None)
            label = re.sub(r"tensor\(.*?\)", "T", opinfo.describe(sample), flags=re.DOTALL)[:160]
            if largest is None or largest.numel() < 2 or label in done or len(done) == options.samples:
                continue
            grown = sum(n > 1 for n in largest.shape)
            for target in (options.bytes, options.bytes >> 4):
                try:
                    given = enlarged(values, (target / largest.element_size() / largest.numel()) ** (1 / grown), definite)
                except Exception:
                    continue
                shapes = " ".join("x".join(map(str, t.shape)) for t in tensors_of(given, torch.Tensor)[:4])
                name = f"{opinfo.key(op)} {str(dtype)[6:]} [{shapes}] of {label}"
                if measured(rows_of(libraries, [runner(f) for f in functions], given), name, options, report):
                    done.add(label)
                    break
    return report


def sweep_call(text: str, spec: dict[str, Any], options: argparse.Namespace) -> Any:
    """A Report of one everyday call: Python over `torch`, `F` and the named tensors."""
    import torch

    from tests.conformance.runner import Report

    libraries, report = sides(options.threads), Report()
    code = compile(text, "<call>", "eval")

    def runner(module: Any) -> Callable[..., Any]:
        return lambda named: eval(code, {"torch": module, "F": module.nn.functional, **named})

    for dtype in options.dtypes.split(","):
        torch.manual_seed(0)
        named = {name: tensor_of(what, dtype) for name, what in spec.items()}
        measured(rows_of(libraries, [runner(library.module) for library in libraries], (named,)), f"{text} {dtype}", options, report)
        if all(isinstance(what, str) and "dtype" not in what for what in spec.values()):
            break  # the same call in every dtype
    return report


def tensor_of(what: Any, dtype: str) -> Any:
    """A tensor of normal numbers of a shape; or what an expression over `torch` and `dtype` makes."""
    import torch

    kind = getattr(torch, dtype)
    if isinstance(what, str):
        return eval(what, {"torch": torch, "dtype": kind})
    return torch.randn(what, dtype=kind) if kind.is_floating_point else torch.randint(-9, 9, what, dtype=kind)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", help="comma-separated names of the database; 'none' for none of them")
    parser.add_argument("--calls", default="", help="regular expression over everyday calls; all when left out, without --ops")
    parser.add_argument("--dtypes", default=DTYPES)
    parser.add_argument("--samples", type=int, default=2, help="samples of an operator and dtype")
    parser.add_argument("--bytes", type=int, default=1 << 17, help="size of a sample's largest tensor")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=float, default=1.05)
    parser.add_argument("--timeout", type=float, default=120.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)

    import torch  # noqa: F401  (before the forks)

    import tensorrt_lite  # noqa: F401
    from tests.conformance import opinfo
    from tests.conformance.runner import run_isolated

    tasks: list[tuple[Any, Callable[[], Any]]] = []
    if options.ops != "none" and (options.ops or not options.calls):
        tasks += [(name, functools.partial(sweep_operator, op, options)) for name, op in opinfo.entries(options.ops.split(",") if options.ops else ["database"]).items()]
    if options.calls or not options.ops or options.ops == "none":
        tasks += [(text, functools.partial(sweep_call, text, spec, options)) for text, spec in CALLS.items() if re.search(options.calls, text)]
    found, unmeasured = [], []
    for name, report in run_isolated(tasks, options.timeout, options.jobs):
        rows = [json.loads(row) for row in report.failures] if report.status == "ok" else []
        found += [row for row in rows if row[3] > 0]
        if not rows:
            unmeasured.append(f"{name} ({report.status}{': ' + report.failures[0] if report.failures else ''})")
    over = sorted((row for row in found if row[2] > options.limit * row[3]), key=lambda row: row[3] / row[2])
    for name, kind, ours, theirs in over:
        print(f"{ours / theirs:6.2f} {kind:8s} {ours * 1e6:10.1f} us, PyTorch {theirs * 1e6:10.1f}  {name}", flush=True)
    print(f"{len(found)} rows measured, {len(over)} above {options.limit} of PyTorch's time; {len(unmeasured)} not measured: {', '.join(unmeasured)}")
    if options.json:
        table = [{"call": name, "kind": kind, "ours": ours, "torch": theirs} for name, kind, ours, theirs in found]
        options.json.write_text(json.dumps(table, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
