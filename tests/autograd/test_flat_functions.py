"""Functions of straight pieces: their gradients are differentiable, with second derivatives that are zeros and not absent."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt

F = trt.nn.functional
FUNCTIONS = [
    F.relu, F.leaky_relu, F.relu6, F.hardtanh, F.softshrink, F.hardshrink, lambda y: F.threshold(y, 0.1, 0.2), lambda y: F.prelu(y, trt.tensor([0.3])),
    lambda y: F.rrelu(y, 0.1, 0.3),
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_second_derivatives_are_zeros(function):
    y = trt.tensor([1.0, -2.0, 0.3], requires_grad=True)
    [first] = trt.autograd.grad(function(y).sum(), y, create_graph=True)
    [plain] = trt.autograd.grad(function(y).sum(), y)
    assert first.requires_grad and trt.equal(first.detach(), plain)
    [second] = trt.autograd.grad((first * first).sum(), y)
    assert second.tolist() == [0, 0, 0]


def test_a_gradient_penalty_reaches_every_bias_before_the_last():
    model = trt.nn.Sequential(trt.nn.Linear(3, 4), trt.nn.ReLU(), trt.nn.Linear(4, 1))
    x = trt.ones(2, 3, requires_grad=True)
    [g] = trt.autograd.grad(model(x).sum(), x, create_graph=True)
    g.pow(2).sum().backward()
    weights = list(model.parameters())
    assert weights[1].grad.tolist() == [0] * 4 and weights[3].grad is None and x.grad.tolist() == [[0] * 3] * 2


def test_the_gradient_keeps_what_is_not_finite():
    y = trt.tensor([float("inf"), 1.0], requires_grad=True)
    [first] = trt.autograd.grad(F.relu(y).sum(), y, create_graph=True)
    assert first.tolist() == [1, 1]


# What is linear in its input, or linear where it is differentiable: no tensor is kept for the zeros.
X = [[[1.0, 5.0, 2.0, 7.0, 3.0, 4.0]]]
LINEAR = {
    "max_pool1d": lambda m, x: m.nn.functional.max_pool1d(x, 2),
    "max_pool2d": lambda m, x: m.nn.functional.max_pool2d(x.unsqueeze(0), (1, 2)),
    "max_pool3d": lambda m, x: m.nn.functional.max_pool3d(x.reshape(1, 1, 1, 1, 6), (1, 1, 2)),
    "adaptive_max_pool3d": lambda m, x: m.nn.functional.adaptive_max_pool3d(x.reshape(1, 1, 1, 1, 6), (1, 1, 2)),
    "avg_pool1d": lambda m, x: m.nn.functional.avg_pool1d(x, 2),
    "avg_pool2d": lambda m, x: m.nn.functional.avg_pool2d(x.unsqueeze(0), (1, 2)),
    "avg_pool3d": lambda m, x: m.nn.functional.avg_pool3d(x.reshape(1, 1, 1, 1, 6), (1, 1, 2)),
    "adaptive_max_pool1d": lambda m, x: m.nn.functional.adaptive_max_pool1d(x, 2),
    "adaptive_avg_pool1d": lambda m, x: m.nn.functional.adaptive_avg_pool1d(x, 2),
    "nll_loss": lambda m, x: m.nn.functional.nll_loss(x[0], m.tensor([2])),
    "nll_loss of images": lambda m, x: m.nn.functional.nll_loss(x.reshape(1, 6, 1, 1), m.tensor([[[2]]])),
    "nll_loss of each": lambda m, x: m.nn.functional.nll_loss(x[0], m.tensor([2]), reduction="none"),
}


def second(m, function, cotangent: bool, through: bool):
    """By the input, a leaf or what a leaf became; with a cotangent that requires a gradient, too."""
    leaf = m.tensor(X, dtype=m.float64, requires_grad=True)
    x = leaf * leaf if through else leaf
    y = function(m, x)
    c = m.full_like(y, 0.5).requires_grad_(cotangent)
    (g,) = m.autograd.grad(y, x, c, create_graph=True)
    wanted = [leaf, c] if cotangent else [leaf]
    return [None if d is None else d.tolist() for d in m.autograd.grad((g * g).sum(), wanted, allow_unused=True)]


@pytest.mark.parametrize("name", LINEAR)
def test_second_derivatives_of_linear_functions_are_pytorchs(name: str) -> None:
    torch = pytest.importorskip("torch")
    for cotangent in (False, True):
        for through in (False, True):
            assert second(trt, LINEAR[name], cotangent, through) == second(torch, LINEAR[name], cotangent, through), (cotangent, through)


def test_first_derivatives_have_no_node_in_between() -> None:
    x = trt.tensor(X, requires_grad=True)
    (g,) = trt.autograd.grad(trt.nn.functional.avg_pool1d(x, 2).sum(), x)
    assert g.grad_fn is None and not g.requires_grad
