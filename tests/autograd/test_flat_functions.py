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
