"""cdist and pdist: values and gradients of every norm beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorrt_lite as trt
from tensorrt_lite import _ops
from tensorrt_lite.autograd import gradcheck, gradgradcheck

torch = pytest.importorskip("torch")

NORMS = (0.0, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, float("inf"))
DIRECT = "donot_use_mm_for_euclid_dist"
# of cdist: few rows, rows of several packed pieces, one query, rows of one element and of none, batches that broadcast
SHAPES = [((5, 7), (6, 7)), ((2, 5, 70), (2, 40, 70)), ((1, 130), (50, 130)), ((3, 1), (40, 1)), ((4, 0), (3, 0)), ((0, 3), (4, 3)), ((2, 1, 5, 3), (7, 9, 3))]
SETS = [(2, 3), (5, 7), (40, 70), (70, 1), (33, 16), (1, 4), (4, 0)]  # PyTorch crashes in the gradient of (0, 3)
TOLERANCE = {"float32": {"rtol": 2e-4, "atol": 1e-4}, "float64": {"rtol": 1e-10, "atol": 1e-11}}


def compare(call: Callable[..., Any], values: list[Any], dtype: str, what: str) -> None:
    """The value, the gradient of a step of its own and the recorded one."""
    found = []
    for library in (trt, torch):
        leaves = [library.tensor(v.tolist(), dtype=getattr(library, dtype)).reshape(tuple(v.shape)).requires_grad_() for v in values]
        y = call(library, *leaves)
        g = (library.arange(y.numel()) % 5).to(y.dtype).reshape(y.shape) - 1
        grads = library.autograd.grad(y, leaves, g, retain_graph=True)
        recorded = library.autograd.grad(y, leaves, g, create_graph=True) if library is trt else grads
        found.append([torch.tensor(t.tolist(), dtype=getattr(torch, dtype)).reshape(tuple(t.shape)) for t in (y.detach(), *grads, *(r.detach() for r in recorded))])
    for got, want in zip(*found, strict=True):
        torch.testing.assert_close(got, want, **TOLERANCE[dtype], msg=lambda m: f"{what}: {m}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", NORMS)
def test_cdist_is_pytorchs(p: float, dtype: str) -> None:
    g = torch.Generator().manual_seed(2)
    for one, other in SHAPES:
        a, b = torch.randn(one, generator=g, dtype=torch.float64), torch.randn(other, generator=g, dtype=torch.float64)
        if a.dim() == 2 and a.numel():
            a[0], b[-1, 0] = b[0], a[-1, 0]  # rows that are equal, elements that are
        compare(lambda library, x, y: library.cdist(x, y, p, compute_mode=DIRECT), [a, b], dtype, f"{one} {other}")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [n for n in NORMS if n != 4.0])
def test_pdist_is_pytorchs(p: float, dtype: str) -> None:
    g = torch.Generator().manual_seed(2)
    for n, d in SETS:
        a = torch.randn(n, d, generator=g, dtype=torch.float64)
        if n > 4 and d:
            a[0] = a[3]
        compare(lambda library, x: library.nn.functional.pdist(x, p), [a], dtype, f"{n} {d}")


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0, 3.0, float("inf")])
def test_derivatives_of_all_kinds(p: float) -> None:
    x, y = trt.randn(4, 3, dtype=trt.float64, requires_grad=True), trt.randn(5, 3, dtype=trt.float64, requires_grad=True)
    assert gradcheck(lambda a, b: trt.cdist(a, b, p), (x, y), check_forward_ad=True, check_batched_grad=True)
    assert gradcheck(lambda a: trt.nn.functional.pdist(a, p), (x,), check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(lambda a, b: trt.cdist(a, b, p), (x, y)) and gradgradcheck(lambda a: trt.nn.functional.pdist(a, p), (x,))


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.0, float("inf")])
def test_nan_is_kept(p: float) -> None:
    x = trt.randn(40, 5)
    x[7, 3] = float("nan")
    expected = 1.0 if p == 0 else float("nan")
    for distances in (trt.cdist(x, x, p, compute_mode=DIRECT), trt.cdist(x[7:8], x, p)):
        row = distances[7] if distances.shape[0] > 1 else distances[0]
        assert all(v >= expected if p == 0 else v != v for v in row.tolist())


def test_results_do_not_depend_on_threads() -> None:
    x, y, before, results = trt.randn(200, 37, requires_grad=True), trt.randn(130, 37, requires_grad=True), trt.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            trt.set_num_threads(threads)
            found = []
            for p in (1.0, 2.5, float("inf")):
                for out in (trt.cdist(x, y, p), trt.nn.functional.pdist(x, p)):
                    found += [out.detach(), *(g for g in trt.autograd.grad(out.sum(), [x, y], allow_unused=True) if g is not None)]
            results.append(found)
    finally:
        trt.set_num_threads(before)
    assert all(trt.equal(a, b) for other in results[1:] for a, b in zip(results[0], other, strict=True))


def test_no_room_for_differences() -> None:
    x = trt.randn(300, 64, requires_grad=True)
    for call in (lambda: trt.cdist(x, x, 1.0), lambda: trt.nn.functional.pdist(x, 1.0)):
        trt.cpu.reset_peak_memory_stats()
        before = trt.cpu.memory_allocated()
        call().sum().backward()
        assert trt.cpu.max_memory_allocated() - before < 4 * 300 * 300 * 4  # differences of all rows would take 64 times the distances
        x.grad = None


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(RuntimeError, match="same number of columns"):
        trt.cdist(trt.zeros(2, 3), trt.zeros(2, 4), 1.0)
    with pytest.raises(RuntimeError, match="must match the size of tensor b"):
        trt.cdist(trt.zeros(2, 2, 3), trt.zeros(3, 2, 3), 1.0)
    with pytest.raises(RuntimeError, match="do not fit|differ"):
        _ops._row_distances(trt.zeros(2, 2, 3), trt.zeros(3, 2, 3), 1.0)
