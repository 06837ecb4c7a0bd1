"""`autograd.grad` and `backward(inputs=...)` compute the gradients that they were asked for, not those of a Node's other inputs."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode

F = trt.nn.functional


class Called(TorchDispatchMode):
    """The names of operators that ran, and their arguments by position."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, tuple]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append((str(func).split(".")[1], args))
        return func(*args, **(kwargs or {}))


CALLS = {
    "conv2d": (F.conv2d, [(2, 3, 6, 6), (4, 3, 3, 3), (4,)]),
    "conv_transpose1d": (F.conv_transpose1d, [(2, 3, 6), (3, 4, 3)]),
    "linear": (F.linear, [(5, 3), (4, 3), (4,)]),
    "mm": (trt.mm, [(5, 3), (3, 4)]),
    "bmm": (trt.bmm, [(2, 5, 3), (2, 3, 4)]),
    "mul": (trt.mul, [(5, 3), (5, 3)]),
    "addcmul": (trt.addcmul, [(5, 3), (5, 3), (5, 3)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (3,), w, b), [(5, 3), (3,), (3,)]),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, True), [(5, 3), (3,), (3,)]),
    "solve": (trt.linalg.solve, [(3, 3), (3, 2)]),
    "baddbmm": (trt.baddbmm, [(2, 5, 4), (2, 5, 3), (2, 3, 4)]),
    "where": (lambda x, y: trt.where(x > 0, x, y), [(5, 3), (5, 3)]),
}


def operands(shapes):
    trt.manual_seed(3)
    return [trt.randn(shape, dtype=trt.float64, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_one_gradient_is_that_of_all(name, create_graph):
    function, shapes = CALLS[name]
    given = operands(shapes)
    y = function(*given)
    all_of_them = trt.autograd.grad(y, given, trt.ones_like(y), retain_graph=True)
    for x, expected in zip(given, all_of_them, strict=True):
        (found,) = trt.autograd.grad(y, x, trt.ones_like(y), retain_graph=True, create_graph=create_graph)
        assert trt.allclose(found, expected, rtol=1e-12, atol=1e-14)
    y.backward(trt.ones_like(y), inputs=given[1:], retain_graph=True)
    assert given[0].grad is None and trt.equal(given[1].grad, all_of_them[1])
    y.sum().backward()  # the same Nodes, all gradients again
    assert all(x.grad is not None for x in given)


def calls(inputs, y):
    with Called() as mode:
        trt.autograd.grad(y, inputs, trt.ones_like(y), retain_graph=True)
    return mode.calls


def called(inputs, y):
    return [name for name, _ in calls(inputs, y)]


def test_a_convolution_for_its_input_computes_no_weight():
    x, w = operands([(2, 3, 6, 6), (4, 3, 3, 3)])
    y = F.conv2d(x, w)
    for inputs, mask in (([x], [True, False, False]), ([w], [False, True, False]), ([x, w], [True, True, False])):
        assert [call[1][-1] for call in calls(inputs, y) if call[0] == "convolution_backward"] == [mask]


def test_a_product_of_one_matrix():
    a, b = operands([(5, 3), (3, 4)])
    y = a @ b
    assert sum(name == "mm" for name in called([a], y)) == 1
    assert sum(name == "mm" for name in called([a, b], y)) == 2


def test_a_path_through_an_earlier_node_is_wanted():
    """x is asked for: the gradient of the weights, which lie on no path to it, is not computed in either layer."""
    x, w1, w2 = operands([(5, 3), (4, 3), (2, 4)])
    y = F.linear(F.linear(x, w1).tanh(), w2)
    names = called([x], y)
    assert trt.equal(trt.autograd.grad(y.sum(), x, retain_graph=True)[0], trt.autograd.grad(y.sum(), [x, w1, w2])[0])
    assert sum(name in ("mm", "matmul") for name in names) == 2


def test_hooks_of_a_node_see_none():
    x, w = operands([(5, 3), (5, 3)])
    y = x * w
    seen = []
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append([g is None for g in inputs]))
    trt.autograd.grad(y.sum(), x, retain_graph=True)
    y.sum().backward()
    assert seen == [[False, True], [False, False]]


def test_a_failing_pass_leaves_nothing_behind():
    x, w = operands([(5, 3), (5, 3)])
    y = (x * w).sum()

    class Refuses(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if str(func).split(".")[1] == "mul":
                raise ValueError("not this one")
            return func(*args, **(kwargs or {}))

    with pytest.raises(ValueError, match="not this one"), Refuses():
        trt.autograd.grad(y, x, retain_graph=True)
    y.backward()
    assert w.grad is not None and trt.equal(w.grad, x)


def test_a_pass_in_a_pass():
    """A custom Function whose backward pass runs one of its own, for one input, within a pass for one input."""
    x, w = operands([(5, 3), (5, 3)])

    class Inner(trt.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a.sin()

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            with trt.enable_grad():
                b = a.detach().requires_grad_()
                return trt.autograd.grad((b.sin() * w).sum(), b)[0] / w.detach() * g

    y = (Inner.apply(x) * w).sum()
    (found,) = trt.autograd.grad(y, x)
    assert trt.allclose(found, x.cos() * w)


def test_inputs_may_be_a_generator():
    w = [trt.ones(2, requires_grad=True), trt.ones(1, requires_grad=True)]
    grads = trt.autograd.grad((w[0].sum() * 2 + w[1].sum() for _ in range(1)), (p for p in w))
    assert [g.tolist() for g in grads] == [[2.0, 2.0], [1.0]]
