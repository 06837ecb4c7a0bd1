"""Comparison of one operator with PyTorch: values, gradients, strides. Used by the tests of layers (PyTorch must be installed)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")

KINDS = {torch.float32: "float32", torch.float64: "float64", torch.int64: "int64", torch.bool: "bool", torch.uint8: "uint8", torch.int32: "int32",
         torch.int8: "int8", torch.int16: "int16", torch.float16: "float16", torch.bfloat16: "bfloat16", torch.complex64: "complex64", torch.complex128: "complex128"}  # fmt: skip
TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-10, torch.float16: 2e-2, torch.bfloat16: 4e-2, torch.complex64: 1e-4, torch.complex128: 1e-10}


def ours(t: Any) -> Any:
    """This library's tensor with the same values, dtype and memory format."""
    if not isinstance(t, torch.Tensor):
        return t
    last = t.dim() == 4 and not t.is_contiguous() and t.is_contiguous(memory_format=torch.channels_last)
    r = trt.tensor(t.detach().tolist(), dtype=getattr(trt, KINDS[t.dtype])).reshape(tuple(t.shape))
    if last:
        r = r.contiguous(memory_format=trt.channels_last)
    return r.requires_grad_() if t.requires_grad else r


def same(a: Any, e: Any, what: str = "value", tolerance: float | None = None) -> None:
    """Shapes, dtypes, channels_last and values agree."""
    if isinstance(e, (tuple, list)):
        assert len(a) == len(e), what
        for i, (x, y) in enumerate(zip(a, e, strict=True)):
            same(x, y, f"{what}[{i}]", tolerance)
        return
    if e is None:
        assert a is None, what
        return
    e = e.detach()
    assert tuple(a.shape) == tuple(e.shape), what
    assert str(a.dtype).split(".")[-1] == KINDS[e.dtype], what
    if e.dim() == 4 and min(e.shape) > 1:
        assert a.is_contiguous(memory_format=trt.channels_last) == e.is_contiguous(memory_format=torch.channels_last), what
    got = torch.tensor(a.detach().tolist(), dtype=e.dtype).reshape(e.shape)
    t = tolerance if tolerance is not None else TOLERANCE.get(e.dtype, 0)
    torch.testing.assert_close(got, e.contiguous(), rtol=t, atol=t, equal_nan=True, msg=lambda m: f"{what}: {m}")


def compare(actual: Callable[..., Any], expected: Callable[..., Any], *args: Any, tolerance: float | None = None, **kwargs: Any) -> None:
    """Forward, and gradients of a fixed cotangent where an argument requires them."""
    mine = [ours(a) for a in args]
    own_kwargs = {k: ours(v) for k, v in kwargs.items()}
    e, a = expected(*args, **kwargs), actual(*mine, **own_kwargs)
    same(a, e, "result", tolerance)
    first_e, first_a = (e[0], a[0]) if isinstance(e, (tuple, list)) else (e, a)
    leaves = [(x, y) for x, y in zip(args, mine, strict=True) if isinstance(x, torch.Tensor) and x.requires_grad]
    if leaves:
        g = torch.randn(first_e.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64).to(first_e.dtype)
        want = torch.autograd.grad(first_e, [x for x, _ in leaves], g)
        got = trt.autograd.grad(first_a, [y for _, y in leaves], ours(g))
        same(got, want, "gradient", tolerance)


def second_order(actual: Callable[..., Any], expected: Callable[..., Any], *args: Any, tolerance: float = 1e-8, **kwargs: Any) -> None:
    """Gradients of the gradients, to the inputs and the cotangent."""
    mine = [ours(a) for a in args]
    results = []
    for lib, function, values, extra in ((torch, expected, args, kwargs), (trt, actual, mine, {k: ours(v) for k, v in kwargs.items()})):
        y = function(*values, **extra)
        y = y[0] if isinstance(y, (tuple, list)) else y
        leaves = [v for v in values if isinstance(v, lib.Tensor) and v.requires_grad]
        g = torch.randn(tuple(y.shape), generator=torch.Generator().manual_seed(2), dtype=torch.float64)
        g = (g if lib is torch else ours(g)).requires_grad_()
        first = lib.autograd.grad(y, leaves, g, create_graph=True)
        total = sum((f * f).sum() + (f * 3).sum() for f in first)
        results.append(lib.autograd.grad(total, [*leaves, g], allow_unused=True))
    want, got = results
    for i, (w, r) in enumerate(zip(want, got, strict=True)):
        if w is None or r is None:
            assert r is None or bool((r == 0).all())
            assert w is None or bool((w == 0).all())
        else:
            same(r, w, f"second gradient {i}", tolerance)


def normal(*shape: int, dtype: Any = torch.float64, grad: bool = True, seed: int = 0, last: bool = False) -> Any:
    """Normal values in a fixed order; `last` lays them out in channels_last."""
    t = torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)), dtype=torch.float64).to(dtype)
    if last:
        t = t.contiguous(memory_format=torch.channels_last)
    return t.requires_grad_(grad)
