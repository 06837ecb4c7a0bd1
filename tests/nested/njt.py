"""PyTorch's samples of operators on jagged tensors, run by both libraries. Called by the tests; `python -m tests.nested.njt` counts and lists what differs."""

from __future__ import annotations

import random
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.testing._internal.opinfo.definitions.nested import njt_op_db

import tensorrt_lite as trt
from tests.conformance.library import Library, Missing, bare_name

# Values from the generator or of unset memory.
UNCOMPARED = {"empty_like", "rand_like", "randn_like", "randint_like", "bernoulli", "new_empty", "nn.functional.dropout", "normal"}


def operators() -> dict[str, Any]:
    return {op.full_name: op for op in njt_op_db if op.supports_njt and not op.name.startswith("jiterator")}


class Carrier:
    """Arguments of one call on their way to tensorrt_lite: equal tensors stay one tensor, equal offsets one structure."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}
        self._kept: list[Any] = []

    def dense(self, t: torch.Tensor) -> Any:
        if id(t) not in self._made:
            self._kept.append(t)
            self._made[id(t)] = trt.tensor(t.detach().contiguous().numpy()).as_strided(t.shape, trt.empty(t.shape).stride())
        return self._made[id(t)]

    def __call__(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor) and value.is_nested:
            values = trt.tensor(value._values.detach().numpy().copy())
            lengths = value._lengths
            made = trt.nested.nested_tensor_from_jagged(
                values, self.dense(value._offsets), None if lengths is None else self.dense(lengths), value._ragged_idx
            )
            return made.requires_grad_(value.requires_grad)
        if isinstance(value, torch.Tensor):
            return self.dense(value).clone().requires_grad_(value.requires_grad)
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return getattr(trt, bare_name(value))
        if isinstance(value, torch.device):
            return trt.device(str(value))
        if isinstance(value, torch.SymInt):
            raise NotImplementedError("a symbolic size")
        if isinstance(value, (list, tuple)):
            return type(value)([self(v) for v in value])
        return {k: self(v) for k, v in value.items()} if isinstance(value, dict) else value


def leaf(t: Any) -> Any:
    return t.detach().clone().requires_grad_() if t.is_nested and isinstance(t, torch.Tensor) else t


def tensors_of(value: Any) -> Iterator[Any]:
    if isinstance(value, (torch.Tensor, trt.Tensor)):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from tensors_of(v)
    elif isinstance(value, dict):
        yield from tensors_of(list(value.values()))


def sequences(t: Any) -> list[np.ndarray]:
    """The elements: of each sequence, or of the dense tensor."""
    parts = t.detach().unbind() if t.is_nested else [t.detach()]
    return [np.asarray(p.tolist()) if not p.dtype.is_complex else np.asarray(p.tolist(), dtype=complex) for p in parts]


def weighted_sum(module: Any, results: list[Any]) -> Any:
    total: Any = 0
    for t in results:
        if t.requires_grad:
            for part in t.unbind() if t.is_nested else [t]:
                weights = module.cos(module.arange(part.numel(), dtype=part.real.dtype if part.dtype.is_complex else part.dtype)).reshape(part.shape)
                total = total + (part.abs() if part.dtype.is_complex else part).mul(weights).sum()
    return total


def differences(expected: Any, actual: Any, tolerance: float = 1e-5) -> str | None:
    theirs, ours = list(tensors_of(expected)), list(tensors_of(actual))
    if len(theirs) != len(ours):
        return f"{len(ours)} results, expected {len(theirs)}"
    if not theirs:
        return None if expected == actual else f"{actual}, expected {expected}"
    for a, b in zip(theirs, ours, strict=True):
        if a.is_nested != b.is_nested:
            return f"nested {b.is_nested}, expected {a.is_nested}"
        if bare_name(a.dtype) != bare_name(b.dtype):
            return f"{b.dtype}, expected {a.dtype}"
        if a.is_nested and (a.dim() != b.dim() or a._ragged_idx != b._ragged_idx):
            return f"ragged dimension {b._ragged_idx} of {b.dim()}, expected {a._ragged_idx} of {a.dim()}"
        x, y = sequences(a), sequences(b)
        if len(x) != len(y):
            return f"{len(y)} sequences, expected {len(x)}"
        for i, j in zip(x, y, strict=True):
            if i.shape != j.shape:
                return f"shape {j.shape}, expected {i.shape}"
            if not np.allclose(i, j, rtol=tolerance, atol=tolerance, equal_nan=True):
                return f"differs by {np.abs(i - j).max()}"
    return None


@dataclass
class Count:
    """passed and failed samples; refused: those for which PyTorch raises or counts holes."""

    passed: int = 0
    failed: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)


def run(op: Any, gradient: bool, dtype: torch.dtype = torch.float64) -> Count:
    count = Count()
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    try:
        mine = Library(trt).function(op)
    except Missing:
        mine = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in op.sample_inputs("cpu", dtype, requires_grad=gradient, set_seed=False):
            if "holes" in sample.name and "full reduction with keepdim" in sample.name:
                count.refused += 1  # PyTorch counts the elements in the holes, too
                continue
            arguments = [leaf(t) if gradient and isinstance(t, torch.Tensor) and t.requires_grad else t for t in (sample.input, *sample.args)]
            carry = Carrier()
            try:
                carried = carry(tuple(arguments)), {k: carry(v) for k, v in sample.kwargs.items()}
            except NotImplementedError:
                continue
            try:
                expected = op.op(*arguments, **sample.kwargs)
                if gradient:
                    inputs = [t for t in tensors_of([arguments, sample.kwargs]) if t.requires_grad and t.is_leaf]
                    expected = torch.autograd.grad(weighted_sum(torch, list(tensors_of(expected))), inputs, allow_unused=True)
                    expected = [torch.zeros(()) if g is None else g for g in expected]
            except Exception:
                count.refused += 1
                continue
            try:
                if mine is None:
                    raise Missing(op.name)
                actual = mine(*carried[0], **carried[1])
                if gradient:
                    inputs = [t for t in tensors_of([list(carried[0]), carried[1]]) if t.requires_grad and t.is_leaf]
                    actual = trt.autograd.grad(weighted_sum(trt, list(tensors_of(actual))), inputs, allow_unused=True)
                    actual = [trt.zeros(()) if g is None else g for g in actual]
                found = None if op.name in UNCOMPARED else differences(expected, actual)
            except Exception as error:
                found = f"{type(error).__name__}: {str(error)[:200]}"
            if found is None:
                count.passed += 1
            else:
                count.failed += 1
                count.failures.append(f"{sample.name}: {found}")
    return count


# Their backward pass in PyTorch ends the process for some samples.
CRASHING = {"max.reduction_with_dim", "min.reduction_with_dim", "amax", "amin", "max", "min", "mean", "argmax", "argmin", "sum", "prod", "std", "var", "std.unbiased", "var.unbiased", "nanmean",
            "nansum", "linalg.vector_norm", "select", "narrow", "split", "split_with_sizes", "squeeze", "masked_select", "index_put"}  # fmt: skip


if __name__ == "__main__":
    total: Counter[str] = Counter()
    for full_name, operator in operators().items():
        if len(sys.argv) > 1 and full_name not in sys.argv[1:]:
            continue
        for with_gradient in (False, True) if operator.supports_autograd else (False,):
            kind = "gradient" if with_gradient else "forward"
            if with_gradient and full_name in CRASHING:
                continue
            counted = run(operator, with_gradient)
            total.update({f"{kind} passed": counted.passed, f"{kind} failed": counted.failed, f"{kind} refused by PyTorch": counted.refused})
            if counted.failed:
                print(full_name, kind, counted.passed, counted.failed, counted.failures[0], flush=True)
    print(dict(total))
