"""vmap of every operator of PyTorch's database, compared with a loop over the batch in this library, whose single calls the other kinds compare with PyTorch.

    python -m tests.conformance.vmap                      # all, with a table; --json saves
    python -m tests.conformance.vmap --ops add,mm

Of each sample every tensor is batched along the first or the last dimension, the first tensor alone, or all but the first; forward, in place, and the gradients
of a random projection. What an operator refuses because its result's shape depends on values, or because it writes a batch to what is none, PyTorch refuses,
too. `vmap_incomplete.txt` lists what falls short, and which operators loop.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import multiprocessing.connection
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo

import tensorrt_lite as trt

from . import opinfo
from .library import Library, Missing

LISTED = Path(__file__).parent / "vmap_incomplete.txt"
SIZE = 2
# Families that are other storeys' (sparse, quantized), and results without values to compare.
LEFT_OUT = {"to_sparse", "sparse.mm", "sparse.sampled_addmm"}
# The shape of the result depends on values, or the result is no tensor.
DYNAMIC = {"nonzero", "masked_select", "unique", "unique_consecutive", "argwhere", "combinations", "repeat_interleave", "item", "allclose", "equal", "tolist", "histogramdd", "is_nonzero"}
_REFUSALS = ("dynamic operator", "is not possible because there exists a Tensor", ".item() on a Tensor", "data-dependent control flow", "needs the numbers of one tensor", "no tensor varies", "were not batched")


@dataclass
class Report:
    """passed, failed and refused count calls of vmap; loops those that had no rule."""

    passed: int = 0
    failed: int = 0
    refused: int = 0
    loops: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.failed

    def fail(self, text: str) -> None:
        self.failed += 1
        if len(self.failures) < 4:
            self.failures.append(text)


class Sample:
    """A sample's tensors as a library's, and the call of the operator with others in their place."""

    def __init__(self, library: Library, sample: Any) -> None:
        self.first, self.args, self.kwargs = library.sample(sample)
        self.tensors: list[Any] = []
        self.kind = library.Tensor
        self._collect((self.first, self.args, self.kwargs))

    def _collect(self, value: Any) -> None:
        if isinstance(value, self.kind):
            if not any(value is t for t in self.tensors):
                self.tensors.append(value)
        elif isinstance(value, (list, tuple)):
            for x in value:
                self._collect(x)
        elif isinstance(value, dict):
            self._collect(list(value.values()))

    def call(self, function: Callable[..., Any], tensors: Any) -> Any:
        places = {id(old): new for old, new in zip(self.tensors, tensors, strict=True)}

        def placed(value: Any) -> Any:
            if isinstance(value, self.kind):
                return places[id(value)]
            if isinstance(value, (list, tuple)):
                parts = [placed(x) for x in value]
                return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
            return {k: placed(x) for k, x in value.items()} if isinstance(value, dict) else value

        return function(placed(self.first), *placed(self.args), **placed(self.kwargs))


def results_of(value: Any, kind: Any = trt.Tensor) -> list[Any]:
    """The tensors of a result, flat. kind: the library's class of tensors."""
    if isinstance(value, kind):
        return [value]
    if isinstance(value, (list, tuple)):
        return [x for part in value for x in results_of(part, kind)]
    return []


def batch_of(x: trt.Tensor, dim: int) -> trt.Tensor:
    """x and a slightly smaller x, along a new dimension; numbers without a fraction are repeated."""
    x = x.detach()
    scale = 1 - 1 / 64 if x.is_floating_point() or x.is_complex() else None
    return trt.stack([x if i == 0 or scale is None else x * scale for i in range(SIZE)], dim).contiguous()


def layouts(sample: Sample) -> Iterator[list[int | None]]:
    """For each tensor the batch's dimension, in several mixes."""
    n = len(sample.tensors)
    found = [[0] * n, [-1] * n, [0] + [None] * (n - 1), [None] + [-1] * (n - 1)]
    for i, dims in enumerate(found):
        if any(d is not None for d in dims) and dims not in found[:i]:
            yield dims


def agree(a: trt.Tensor, b: trt.Tensor) -> str:
    if a.shape != b.shape:
        return f"shape {tuple(a.shape)} instead of {tuple(b.shape)}"
    if a.dtype is not b.dtype:
        return f"{a.dtype} instead of {b.dtype}"
    if a.is_floating_point() or a.is_complex():
        tolerance = 1e-6 if a.dtype in (trt.float64, trt.complex128) else 1e-4
        if not trt.allclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True):
            return "values differ"
    elif not trt.equal(a, b):
        return "values differ"
    return ""


def compare(report: Report, label: str, sample: Sample, function: Callable[..., Any], dims: list[int | None], random: bool, inplace: bool, gradients: bool) -> None:
    given = [x.detach() if d is None else batch_of(x, d) for x, d in zip(sample.tensors, dims)]
    wanted = [gradients and (x.is_floating_point() or x.is_complex()) for x in given]

    def start() -> list[trt.Tensor]:
        return [x.clone().requires_grad_(w) for x, w in zip(given, wanted)]

    def one(*tensors: trt.Tensor) -> Any:
        if inplace:
            tensors = (tensors[0].clone(), *tensors[1:])
        trt.manual_seed(3)
        return tuple(results_of(sample.call(function, tensors)))

    leaves = start()
    try:
        parts = [one(*(x if d is None else x.select(d, i).clone() for x, d in zip(leaves, dims))) for i in range(SIZE)]
        if not parts[0] or any(a.shape != b.shape for a, b in zip(*parts)) or any(len(p) != len(parts[0]) for p in parts):
            return
        expected = [trt.stack(list(x)) for x in zip(*parts)]
    except Exception:  # noqa: BLE001 (what single calls refuse is not vmap's)
        return
    from tensorrt_lite._transforms.batching import fallbacks

    before = fallbacks.copy()
    mapped = start()
    try:
        actual = trt.vmap(one, in_dims=tuple(dims), randomness="different" if random else "error")(*mapped)
    except Exception as error:  # noqa: BLE001
        if not random and "randomness error mode" in str(error):
            return compare(report, label, sample, function, dims, True, inplace, False)
        if any(text in str(error) for text in _REFUSALS):
            report.refused += 1
        else:
            report.fail(f"{label} in_dims={dims}: {type(error).__name__}: {str(error)[:300]}")
        return
    for name, count in (fallbacks - before).items():
        report.loops[name] = report.loops.get(name, 0) + count
    if random:
        wrong = "" if [x.shape for x in actual] == [x.shape for x in expected] else "shapes differ"
    else:
        wrong = next(filter(None, (agree(a, e) for a, e in zip(actual, expected, strict=True))), "")
    if not wrong and gradients and not random:
        wrong = compare_gradients(leaves, mapped, expected, actual)
    if wrong:
        report.fail(f"{label} in_dims={dims}: {wrong}")
    else:
        report.passed += 1


def compare_gradients(leaves: list[trt.Tensor], mapped: list[trt.Tensor], expected: list[trt.Tensor], actual: Any) -> str:
    pairs = [(e, a) for e, a in zip(expected, actual) if e.requires_grad]
    if not pairs:
        return ""
    if not all(a.requires_grad for _, a in pairs):
        return "the result does not require a gradient"
    random = trt.Generator().manual_seed(5)
    weights = [trt.randn(e.shape, dtype=e.dtype, generator=random) for e, _ in pairs]
    inputs = [i for i, x in enumerate(leaves) if x.requires_grad]
    try:
        first = trt.autograd.grad([e for e, _ in pairs], [leaves[i] for i in inputs], weights, allow_unused=True, materialize_grads=True)
    except (RuntimeError, NotImplementedError):
        return ""
    second = trt.autograd.grad([a for _, a in pairs], [mapped[i] for i in inputs], weights, allow_unused=True, materialize_grads=True)
    for a, b in zip(second, first):
        if wrong := agree(a, b):
            return f"gradient: {wrong}"
    return ""


def run(op: OpInfo, limit: int) -> Report:
    report, library = Report(), Library(trt)
    random = op.name in opinfo.RANDOM or op.name in opinfo.UNINITIALISED
    dtype = next((d for d in (torch.float64, torch.float32, torch.complex128, torch.int64, torch.bool) if op.supports_dtype(d, "cpu")), None)
    if dtype is None:
        return report
    gradients = op.supports_autograd and dtype is torch.float64
    ways = [("", lambda: library.function(op), False)]
    if op.inplace_variant is not None:
        ways.append(("in place ", lambda: library.method(op.inplace_variant), True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for prefix, resolve, inplace in ways:
            try:
                function = resolve()
            except (Missing, AttributeError):
                continue
            for torch_sample in itertools.islice(opinfo.samples(op, dtype), limit):
                sample = Sample(library, torch_sample)
                if not sample.tensors or inplace and (torch_sample.broadcasts_input or not isinstance(torch_sample.input, torch.Tensor)):
                    continue
                for dims in layouts(sample):
                    if ("as_strided" in op.name or op.name == "view_as_complex") and -1 in dims:
                        continue  # what its strides mean depends on how an element lies in memory
                    label = f"{prefix}({opinfo.describe(torch_sample)})"
                    compare(report, label[:200], sample, function, dims, random, inplace, gradients)
    return report


def listed(path: Path) -> dict[str, str]:
    """{operator: reason} of a list of what falls short."""
    found = {}
    for line in path.read_text().splitlines():
        name, _, reason = line.partition("#")
        if name.strip():
            found[name.strip()] = reason.strip()
    return found


def incomplete() -> dict[str, str]:
    """{operator: reason} of vmap_incomplete.txt."""
    return listed(LISTED)


def run_all(table: dict[str, OpInfo], limit: int, jobs: int, timeout: float, work: Callable[[OpInfo, int], Report] = run) -> Iterator[tuple[str, Report]]:
    """The reports, each made in a forked process: a crash or a hang is its operator's."""
    waiting, running = list(reversed(table.items())), {}
    context = multiprocessing.get_context("fork")
    while waiting or running:
        while waiting and len(running) < jobs:
            name, op = waiting.pop()
            receiver, sender = context.Pipe(duplex=False)
            process = context.Process(target=_send_report, args=(work, op, limit, sender))
            process.start()
            sender.close()
            running[receiver] = name, process, time.monotonic() + timeout
        ready = set(multiprocessing.connection.wait(list(running), timeout=1))
        for receiver, (name, process, end) in list(running.items()):
            if receiver not in ready and time.monotonic() < end:
                continue
            report = Report()
            try:
                report = receiver.recv() if receiver in ready else report
            except EOFError:
                process.join()
                report.fail(f"crashed with exit code {process.exitcode}")
            if receiver not in ready:
                report.fail("timeout")
                process.kill()
            process.join()
            del running[receiver]
            yield name, report


def _send_report(work: Callable[[OpInfo, int], Report], op: OpInfo, limit: int, sender: Any) -> None:
    trt.set_num_threads(1)
    torch.set_num_threads(1)
    try:
        report = work(op, limit)
    except Exception as error:  # noqa: BLE001 (a sampler's or the harness's own)
        report = Report()
        report.fail(f"{type(error).__name__}: {error}")
    sender.send(report)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", help="comma-separated names; default: all that users call")
    parser.add_argument("--samples", type=int, default=8)
    parser.add_argument("--failures", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds per operator")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args(arguments)
    operators = {name: op for name, op in opinfo.entries(given.ops.split(",") if given.ops else ["database"]).items() if op.name not in LEFT_OUT}
    table: dict[str, Report] = {}
    if given.jobs == 0:
        table.update({name: run(op, given.samples) for name, op in operators.items()})
    else:
        table.update(run_all(operators, given.samples, given.jobs, given.timeout))
    for name, report in sorted(table.items()):
        if not report.ok:
            print(f"{name}: {report.failed} of {report.failed + report.passed} fail", *report.failures[: given.failures], sep="\n    ", flush=True)
    counted = {name: r for name, r in table.items() if r.passed + r.failed}
    short = {name for name, r in counted.items() if not r.ok}
    loops = {name: r.loops for name, r in counted.items() if r.loops}
    print(f"{len(counted) - len(short)} of {len(counted)} operators ({(len(counted) - len(short)) / max(len(counted), 1):.1%}), {sum(r.passed for r in counted.values())} of "
          f"{sum(r.passed + r.failed for r in counted.values())} calls; {sum(r.refused for r in table.values())} refused as PyTorch refuses them")
    print(f"{len(loops)} operators loop ({len(loops) / max(len(counted), 1):.1%}):", *(f"{name} ({', '.join(found)})" for name, found in sorted(loops.items())))
    if given.json:
        given.json.write_text(json.dumps({name: asdict(r) for name, r in sorted(table.items())}, indent=1) + "\n")
    listed = incomplete() if LISTED.exists() else {}
    new = sorted(short - set(listed))
    print("short and not listed:", *new)
    print("listed and complete:", *sorted(name for name in listed if name in counted and name not in short))
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
