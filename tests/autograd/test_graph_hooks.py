"""Hooks on several gradients, callbacks at the end of a pass, and writes to what Nodes saved, beside PyTorch's."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

LIBRARIES = [torch, trt]


def values(x):
    return None if x is None else [round(v, 4) for v in x.detach().reshape(-1).tolist()]


def multi_grad(lib, mode):
    """What hooks see in passes over all, over some and over none of the tensors, and with inputs=."""
    seen = []
    a, b = (lib.tensor([float(k), 2.0], requires_grad=True) for k in (1, 3))
    c = a * b
    d = b.exp()
    handle = lib.autograd.graph.register_multi_grad_hook((a, b, c, d), (lambda grads: seen.append([values(g) for g in grads])) if mode == "all" else lambda g: seen.append(values(g) is not None), mode=mode)
    c.sum().backward(retain_graph=True)
    (c.sum() + d.sum()).backward(retain_graph=True)
    (a * 2).sum().backward()
    c.sum().backward(inputs=[b], retain_graph=True)
    handle.remove()
    c.sum().backward()
    return seen


@pytest.mark.parametrize("mode", ["all", "any"])
def test_hooks_on_several_gradients(mode):
    assert multi_grad(trt, mode) == multi_grad(torch, mode)
    a = trt.ones(2, requires_grad=True)
    seen = []
    trt.autograd.graph.register_multi_grad_hook((a,), seen.append)  # where PyTorch raises
    trt.autograd.grad((a * 3).sum(), [a])
    assert [values(g) for g in seen[0]] == [[3.0, 3.0]]
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        trt.autograd.graph.register_multi_grad_hook((), print, mode="some")


def test_callbacks_run_after_the_last_node():
    for lib in LIBRARIES:
        order = []
        x = lib.ones(2, requires_grad=True)
        y = x * 2
        engine = lib.autograd.Variable._execution_engine

        def hook(grad):
            engine.queue_callback(lambda: order.append(values(x.grad)))
            engine.queue_callback(lambda: engine.queue_callback(lambda: order.append("late")))

        y.register_hook(hook)
        x.register_hook(lambda grad: order.append("x"))
        y.sum().backward()
        assert order == ["x", [2.0, 2.0], "late"]
    with pytest.raises(RuntimeError, match="during backward pass"):
        trt.autograd.Variable._execution_engine.queue_callback(print)


def test_a_callback_that_raises_ends_the_pass():
    x = trt.ones(2, requires_grad=True)
    y = x * 2

    def fail():
        raise KeyError("mine")

    y.register_hook(lambda grad: trt.autograd.Variable._execution_engine.queue_callback(fail))
    with pytest.raises(KeyError, match="mine"):
        y.sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 5.0]


def mutated(lib):
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
        y = x.clone()
        first = (y * y).sum()
        y.mul_(3)
        second = (y.sin() * y).sum()
        y.zero_()
        (first + second).backward()
        return values(x.grad), values(y)


def test_writes_to_saved_tensors_are_allowed():
    assert mutated(trt) == mutated(torch)
    # through a view and by out=, which PyTorch does not see: beside the same without writes
    gradients = []
    for writes in (False, True):
        with trt.autograd.graph.allow_mutation_on_saved_tensors():
            x = trt.tensor([1.0, 2.0, 3.0], requires_grad=True)
            y = x * 3
            second = y.sin()
            third = y * second
            if writes:
                y[1] = 0.0
                trt.add(second.detach(), 1, out=second.detach())
                y.detach().zero_()
            third.sum().backward()
            gradients.append(values(x.grad))
    assert gradients[0] == gradients[1]
    with pytest.raises(RuntimeError, match="cannot be nested"), trt.autograd.graph.allow_mutation_on_saved_tensors():
        with trt.autograd.graph.allow_mutation_on_saved_tensors():
            pass
    with trt.autograd.graph.allow_mutation_on_saved_tensors():
        x = trt.ones(2, requires_grad=True)
        y = (x * x).sum()
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors' context"):
        y.backward()
