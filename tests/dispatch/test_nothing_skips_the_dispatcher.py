"""Calls that have fast paths of their own go through the dispatcher where a mode or a subclass looks on, and count writes once."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode


class Log(TorchDispatchMode):
    """Notes the operators' names and goes on."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.name().removeprefix("aten::").partition(".")[0])
        return func(*args, **(kwargs or {}))


def assign(x, key, value):
    x[key] = value
    return x


CALLS = {
    "x[1]": (lambda x: x[1], ["select"]),
    "x[:, 1]": (lambda x: x[:, 1], ["select"]),
    "x[0:1, None]": (lambda x: x[0:1, None], ["slice", "unsqueeze"]),
    "x[...]": (lambda x: x[...], ["alias"]),
    "x[[0, 1]]": (lambda x: x[trt.tensor([0, 1])], ["index"]),
    "x[1] = 2": (lambda x: assign(x, 1, 2.0), ["select", "fill_"]),
    "x[1] = y": (lambda x: assign(x, 1, trt.ones(3)), ["select", "copy_"]),
    "x[mask] = 2": (lambda x: assign(x, x > 1, 2.0), ["gt", "masked_fill_"]),
    "detach": (lambda x: x.detach(), ["detach"]),
    "copy_": (lambda x: x.copy_(trt.ones(2, 3)), ["copy_"]),
    "view(dtype)": (lambda x: x.view(trt.int32), ["view"]),
    "fill_": (lambda x: x.fill_(3), ["fill_"]),
    "zero_": (lambda x: x.zero_(), ["zero_"]),
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_a_mode_sees(call, recorded) -> None:
    function, expected = CALLS[call]

    def operand():
        x = trt.arange(6.0).reshape(2, 3).clone()
        return x.requires_grad_() * 1 if recorded else x

    plain, watched = operand(), operand()
    before = watched._version
    first = function(plain)
    with Log() as log:
        second = function(watched)
    made = {"ones", "tensor", "arange", "empty", "lift_fresh"}
    assert [name for name in log.seen if name not in made] == expected
    assert trt.equal(first, second) and trt.equal(plain, watched)
    assert watched._version - before == plain._version - before, "a write counts once"
    assert second.requires_grad == first.requires_grad
    assert type(second.grad_fn) is type(first.grad_fn)


@pytest.mark.parametrize("make", [lambda p: trt.optim.SGD(p, 0.1, momentum=0.9), lambda p: trt.optim.Adam(p, 0.1), lambda p: trt.optim.AdamW(p, 0.1)], ids=["SGD", "Adam", "AdamW"])
def test_a_mode_sees_the_optimizers_steps(make) -> None:
    results = []
    for watched in (False, True):
        w = trt.ones(3, requires_grad=True)
        optimizer = make([w])
        (w * w).sum().backward()
        before = w._version
        if watched:
            with Log() as log:
                optimizer.step()
            assert any(name.startswith("_fused_") for name in log.seen), log.seen
        else:
            optimizer.step()
        results.append((w.tolist(), w._version - before))
    assert results[0] == results[1]


def test_a_mode_sees_the_operators_of_a_fused_derivative() -> None:
    w = trt.tensor([0.5, 2.0], requires_grad=True)
    y = (w * w).sigmoid() + w.relu()
    expected = trt.autograd.grad(y, w, trt.ones(2), retain_graph=True)[0]
    with Log() as log:
        (g,) = trt.autograd.grad(y, w, trt.ones(2))
    assert trt.allclose(g, expected)
    assert "mul" in log.seen and not any("backward" in name for name in log.seen)


def test_fused_derivatives_are_in_the_table() -> None:
    kernels = trt._C.core.dispatch.operator_kernels()
    assert {"CPU", "CUDA", "Meta", "PrivateUse1", "Python", "Autograd", "ForwardAD"} <= set(kernels["mul_backward_self"])
