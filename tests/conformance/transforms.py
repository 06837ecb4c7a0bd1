"""Derivatives inside of `vmap`, of every differentiable operator of PyTorch's database, compared with a loop over the batch.

    python -m tests.conformance.transforms                      # all, with a table
    python -m tests.conformance.transforms --ops prod,det

Of each sample (float64) the results are projected on fixed numbers; the gradient of that by the floating-point tensors is compared, batched along the first dimension of every tensor and of
the first alone, with `autograd.grad` of each element (vmap of grad), the derivative along tangents with that of each element (vmap of jvp, where PyTorch has forward mode), and
the derivative of the gradient along tangents with two backward passes (jvp of grad, and vmap of that). Where the two differ, what PyTorch's transform gives is right, too. What is refused here counts as refused where PyTorch refuses it, too.
`transforms_incomplete.txt` lists what falls short.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.func
from torch.testing._internal.opinfo.core import OpInfo

import tensorrt_lite as trt

from . import opinfo, vmap
from .library import Library, Missing

LISTED = Path(__file__).parent / "transforms_incomplete.txt"
SIZE = vmap.SIZE
KINDS = ("vmap of grad", "vmap of jvp", "jvp of grad", "vmap of jvp of grad")


class Case:
    """One sample in one library: the scalar function of its floating-point tensors, and numbers to give it."""

    def __init__(self, library: Library, function: Callable[..., Any], sample: Any) -> None:
        self.t = library.module
        self.sample = vmap.Sample(library, sample)
        self.function = function
        self.given = [x.detach() for x in self.sample.tensors]
        self.wanted = [i for i, x in enumerate(self.given) if x.is_floating_point()]

    def value(self, *tensors: Any) -> Any:
        """The results' projection, a number."""
        self.t.manual_seed(3)
        total = 0.0
        for k, y in enumerate(vmap.results_of(self.sample.call(self.function, tensors), self.t.Tensor)):
            if y.is_floating_point() or y.is_complex():
                total = total + (self._numbers(y, k) * (y.abs() if y.is_complex() else y)).sum()
        return total

    def _numbers(self, like: Any, seed: int) -> Any:
        count = like.numel()
        return (self.t.arange(count, dtype=self.t.float64) * 0.7 + seed + 1).cos().reshape(tuple(like.shape))

    def batch(self, dims: list[int | None]) -> list[Any]:
        return [x if d is None else self.t.stack([x, x * (1 - 1 / 64) if x.is_floating_point() else x]) for x, d in zip(self.given, dims)]

    def tangents(self, given: list[Any]) -> list[Any]:
        return [self._numbers(given[i], i + 5).to(given[i].dtype) for i in self.wanted]

    def partial(self, tensors: Any) -> Callable[..., Any]:
        """The function of the wanted tensors alone."""

        def call(*chosen: Any) -> Any:
            every = list(tensors)
            for i, x in zip(self.wanted, chosen):
                every[i] = x
            return self.value(*every)

        return call

    # ---- the transforms

    def run(self, kind: str, dims: list[int | None]) -> list[Any]:
        func, n = self.t.func, len(self.given)
        wanted = tuple(self.wanted)

        def grads(*tensors: Any) -> Any:
            return func.grad(self.partial(tensors), argnums=tuple(range(len(wanted))))(*[tensors[i] for i in wanted])

        def tangent(*both: Any) -> Any:
            return func.jvp(self.partial(both[:n]), tuple(both[i] for i in wanted), tuple(both[n:]))[1]

        def curved(*both: Any) -> Any:
            gradient = func.grad(self.partial(both[:n]), argnums=tuple(range(len(wanted))))
            return func.jvp(gradient, tuple(both[i] for i in wanted), tuple(both[n:]))[1]

        if kind == "jvp of grad":
            return list(curved(*self.given, *self.tangents(self.given)))
        batch = self.batch(dims)
        along = self.tangents(batch)
        if kind == "vmap of grad":
            return list(self.t.vmap(grads, in_dims=tuple(dims))(*batch))
        every = (*dims, *(dims[i] for i in wanted))
        found = self.t.vmap(tangent if kind == "vmap of jvp" else curved, in_dims=every)(*batch, *along)
        return list(found) if isinstance(found, tuple) else [found]

    def expected(self, kind: str, dims: list[int | None]) -> list[Any]:
        """The same by autograd, for each element."""
        if kind == "jvp of grad":
            return self._by_autograd(kind, self.given, self.tangents(self.given))
        batch = self.batch(dims)
        along = self.tangents(batch)
        parts = [
            self._by_autograd(kind, [x if d is None else x[k] for x, d in zip(batch, dims)], [v if dims[i] is None else v[k] for v, i in zip(along, self.wanted)]) for k in range(SIZE)
        ]
        return [self.t.stack(list(values)) for values in zip(*parts)]

    def _by_autograd(self, kind: str, tensors: list[Any], tangents: list[Any]) -> list[Any]:
        leaves = [x.clone().requires_grad_(i in self.wanted) for i, x in enumerate(tensors)]
        chosen = [leaves[i] for i in self.wanted]
        value = self.value(*leaves)
        second = kind.endswith("jvp of grad")
        first = self.t.autograd.grad(value, chosen, create_graph=second, allow_unused=True, materialize_grads=True)
        if kind == "vmap of grad":
            return list(first)
        along = sum((g * v).sum() for g, v in zip(first, tangents))
        if kind == "vmap of jvp":
            return [along.detach()]
        if not along.requires_grad:
            return [self.t.zeros_like(x) for x in chosen]
        return list(self.t.autograd.grad(along, chosen, allow_unused=True, materialize_grads=True))


def compare(report: vmap.Report, label: str, ours: Case, theirs: Case, kind: str, dims: list[int | None]) -> None:
    try:
        expected = ours.expected(kind, dims)
    except Exception:  # noqa: BLE001 (what has no derivative has none in a batch)
        return
    try:
        actual = ours.run(kind, dims)
    except Exception as error:  # noqa: BLE001
        try:
            theirs.run(kind, dims)
        except Exception:  # noqa: BLE001
            report.refused += 1
        else:
            report.fail(f"{kind}, {label} in_dims={dims}: {type(error).__name__}: {str(error)[:200]}")
        return
    wrong = next(filter(None, (vmap.agree(a, e) for a, e in zip(actual, expected, strict=True))), "")
    if wrong and agrees_with_pytorch(actual, theirs, kind, dims):
        wrong = ""  # two backward passes are another formula there: at kinks, of matrices without full rank, of no elements
    if wrong:
        report.fail(f"{kind}, {label} in_dims={dims}: {wrong}")
    else:
        report.passed += 1


def agrees_with_pytorch(actual: list[Any], theirs: Case, kind: str, dims: list[int | None]) -> bool:
    try:
        found = theirs.run(kind, dims)
    except Exception:  # noqa: BLE001
        return False
    return all(not vmap.agree(a, trt.tensor(b.detach().numpy())) for a, b in zip(actual, found, strict=True))


def run(op: OpInfo, limit: int) -> vmap.Report:
    report = vmap.Report()
    if not op.supports_autograd or not op.supports_dtype(torch.float64, "cpu") or op.name in opinfo.RANDOM or op.name in opinfo.UNINITIALISED:
        return report
    libraries = Library(trt), Library(torch)
    try:
        functions = [library.function(op) for library in libraries]
    except Missing:
        return report
    kinds = [kind for kind in KINDS if ("of grad" not in kind or "jvp" not in kind or op.supports_gradgrad and op.supports_fwgrad_bwgrad) and (kind != "vmap of jvp" or op.supports_forward_ad)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in itertools.islice(opinfo.samples(op, torch.float64), limit):
            ours, theirs = (Case(library, function, sample) for library, function in zip(libraries, functions))
            if not ours.wanted or sum(x.numel() for x in ours.given) > 5000:
                continue
            n = len(ours.given)
            label = opinfo.describe(sample)[:160]
            for kind in kinds:
                for dims in [[0] * n] + ([[0] + [None] * (n - 1)] if n > 1 and 0 in ours.wanted and kind != "jvp of grad" else []):
                    compare(report, label, ours, theirs, kind, dims)
    return report


def incomplete() -> dict[str, str]:
    """{operator: reason} of transforms_incomplete.txt."""
    return dict(vmap.listed(LISTED))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", help="comma-separated names; default: all that users call")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--failures", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds per operator")
    given = parser.parse_args(arguments)
    operators = {name: op for name, op in opinfo.entries(given.ops.split(",") if given.ops else ["database"]).items() if op.name not in vmap.LEFT_OUT}
    table = dict(vmap.run_all(operators, given.samples, given.jobs, given.timeout, run)) if given.jobs else {name: run(op, given.samples) for name, op in operators.items()}
    counted = {name: r for name, r in table.items() if r.passed + r.failed}
    for name, report in sorted(counted.items()):
        if not report.ok:
            print(f"{name}: {report.failed} of {report.failed + report.passed} fail", *report.failures[: given.failures], sep="\n    ", flush=True)
    short = {name for name, r in counted.items() if not r.ok}
    passed, failed = sum(r.passed for r in counted.values()), sum(r.failed for r in counted.values())
    print(f"{len(counted) - len(short)} of {len(counted)} operators, {passed} of {passed + failed} calls; {sum(r.refused for r in table.values())} refused as PyTorch refuses them")
    new = sorted(short - set(incomplete()))
    print("short and not listed:", *new)
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
