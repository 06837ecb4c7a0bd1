"""Operators of every origin take one road: custom operators are seen by modes and subclasses, the library's own take kernels from Python."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite import library
from tests.dispatch.test_python_key import Log, Wrapper


@pytest.fixture(scope="module")
def triple():
    @library.custom_op("spine::triple", mutates_args=())
    def triple(x: trt.Tensor) -> trt.Tensor:
        return x * 3

    triple.register_autograd(lambda ctx, g: g * 3)
    return triple


def test_a_mode_sees_custom_operators(triple):
    x = trt.ones(2, requires_grad=True)
    with Log() as log:
        y = triple(x)
    assert log.seen[0] == str(trt.ops.spine.triple.default)
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_a_custom_operator_runs_in_a_wrapper_class(triple):
    Wrapper.calls.clear()
    y = triple(Wrapper(trt.ones(2)))
    assert type(y) is Wrapper and y.inner.tolist() == [3, 3]
    assert Wrapper.calls == [str(trt.ops.spine.triple.default)]


def test_a_kernel_in_the_place_of_the_own():
    lib = library.Library("aten", "IMPL")
    seen = []

    def mm(a, b):
        seen.append(tuple(a.shape))
        return trt.full((a.shape[0], b.shape[1]), 7.0)

    def sub(a, b, *, alpha=1):
        seen.append(alpha)
        return a.clone().zero_()

    a = trt.ones(2, 3, requires_grad=True)
    lib.impl("mm", mm, "CPU")
    lib.impl("sub.Tensor", sub, "CPU")
    try:
        y = a.mm(trt.ones(3, 4))
        assert y.tolist() == [[7] * 4] * 2 and y.grad_fn is not None
        out = trt.empty(2, 4)
        assert trt.mm(trt.ones(2, 3), trt.ones(3, 4), out=out) is out and out.tolist() == [[7] * 4] * 2
        assert trt.sub(trt.ones(2), 1, alpha=2).tolist() == [0, 0]
        x = trt.ones(2)
        x -= 5
        assert x.tolist() == [0, 0] and x._version == 1
        assert seen == [(2, 3), (2, 3), 2, 1]
    finally:
        lib._destroy()
    assert trt.ones(2, 3).mm(trt.ones(3, 4)).tolist() == [[3] * 4] * 2
    assert (trt.ones(2) - 1).tolist() == [0, 0] and (trt.ones(2) - 3).tolist() == [-2, -2]


def test_what_cannot_be_replaced_says_so():
    with pytest.raises(NotImplementedError, match="aten::chunk is composed"):
        library.impl("aten::chunk", "Autograd", lambda a, n: a)
    with pytest.raises((ValueError, RuntimeError, AttributeError)):
        library.impl("aten::no_such_operator", "CPU", lambda a: a)
