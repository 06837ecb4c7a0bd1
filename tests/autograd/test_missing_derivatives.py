"""Operators that have no derivative: what they return requires grad as in PyTorch, and the backward pass raises PyTorch's error."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt


def symmetric(lib):
    return lib.tensor([[2.0, 1.0], [1.0, 3.0]], requires_grad=True)


def factored(lib):
    f = lib.linalg.ldl_factor(symmetric(lib).detach())
    return f.LD, f.pivots


CALLS = {
    "geqrf": lambda lib: lib.geqrf(symmetric(lib)),
    "ldl_factor": lambda lib: lib.linalg.ldl_factor(symmetric(lib)),
    "ldl_factor_ex": lambda lib: lib.linalg.ldl_factor_ex(symmetric(lib)),
    "ldl_solve, the factors": lambda lib: lib.linalg.ldl_solve(factored(lib)[0].requires_grad_(), factored(lib)[1], lib.ones(2, 1)),
    "ldl_solve, the right side": lambda lib: lib.linalg.ldl_solve(*factored(lib), lib.ones(2, 1, requires_grad=True)),
    "histogram": lambda lib: lib.histogram(lib.tensor([1.0, 2.0, 4.0], requires_grad=True), 2),
    "histogram, weights": lambda lib: lib.histogram(lib.tensor([1.0, 2.0, 4.0]), 2, weight=lib.ones(3, requires_grad=True)),
    "histogramdd": lambda lib: lib.histogramdd(lib.tensor([[1.0, 2.0], [4.0, 1.0]], requires_grad=True), [2, 2]),
    "bincount": lambda lib: lib.bincount(lib.tensor([0, 1, 1]), weights=lib.tensor([1.0, 2.0, 4.0], requires_grad=True)),
    "bincount, double": lambda lib: lib.bincount(lib.tensor([0, 1, 1]), weights=lib.ones(3, dtype=lib.float64, requires_grad=True)),
}


def outcome(lib, call):
    results = call(lib)
    results = (results,) if isinstance(results, lib.Tensor) else results
    first = results[0]
    described = [(t.requires_grad, None if t.grad_fn is None else type(t.grad_fn).__name__) for t in results if isinstance(t, lib.Tensor)]
    try:
        first.sum().backward()
    except RuntimeError as error:
        return described, type(error).__name__, str(error)
    return described, None, None


@pytest.mark.parametrize("name", CALLS)
def test_backward_raises(name) -> None:
    torch = pytest.importorskip("torch")
    assert outcome(trt, CALLS[name]) == outcome(torch, CALLS[name])


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_recorded_without_recording(name) -> None:
    with trt.no_grad():
        results = CALLS[name](trt)
    results = (results,) if isinstance(results, trt.Tensor) else results
    assert not any(t.requires_grad for t in results if isinstance(t, trt.Tensor))


@pytest.mark.parametrize("name", ["geqrf", "ldl_factor"])
def test_forward_mode_raises(name) -> None:
    function = trt.geqrf if name == "geqrf" else trt.linalg.ldl_factor
    a = symmetric(trt).detach()
    with trt.autograd.forward_ad.dual_level(), pytest.raises(NotImplementedError, match=f"forward AD with .*{name}"):
        function(trt.autograd.forward_ad.make_dual(a, a))


def test_atan2_at_the_origin() -> None:
    torch = pytest.importorskip("torch")

    def gradients(lib):
        y, x = (lib.tensor(v, requires_grad=True) for v in ([0.0, 0.0, 1.0, -2.0, 1e-30], [0.0, 2.0, 0.0, 1.0, 1e-30]))
        lib.atan2(y, x).sum().backward()
        return y.grad.tolist() + x.grad.tolist()

    assert gradients(trt) == pytest.approx(gradients(torch))
