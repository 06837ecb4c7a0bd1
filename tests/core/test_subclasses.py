"""What the classes of tensors that programs define are made of: __new__ decides, as in PyTorch."""

import copy

import pytest
import torch

import tensorrt_lite as trt

LIBRARIES = pytest.mark.parametrize("lib", [trt, torch], ids=["ours", "PyTorch"])


def values(t):
    return type(t).__name__, t.tolist(), t.requires_grad


@LIBRARIES
def test_what_new_returns_is_final(lib):
    class Scaled(lib.Tensor):
        @staticmethod
        def __new__(cls, data):
            return (lib.as_tensor(data) * 2).as_subclass(cls)

    class Filled(lib.Tensor):
        @staticmethod
        def __new__(cls, n):
            return lib.full((n,), 7.0).as_subclass(cls)

    class Normalized(lib.Tensor):
        @staticmethod
        def __new__(cls, data):
            return lib.Tensor._make_subclass(cls, lib.softmax(data, 0))

    assert values(Scaled(lib.ones(2))) == ("Scaled", [2, 2], False)
    assert values(Filled(3)) == ("Filled", [7, 7, 7], False)
    assert values(Normalized(lib.zeros(2))) == ("Normalized", [0.5, 0.5], False)
    w = lib.ones(2, requires_grad=True)
    Scaled(w).sum().backward()
    assert w.grad.tolist() == [2, 2]


@LIBRARIES
def test_new_calls_that_of_tensor(lib):
    class Tagged(lib.Tensor):
        @staticmethod
        def __new__(cls, data, tag=None):
            return super().__new__(cls, data)

        def __init__(self, data, tag=None):
            super().__init__()
            self.tag = tag

    t = Tagged([1.0, 2.0], tag="a")
    assert values(t) == ("Tagged", [1, 2], False) and t.tag == "a"
    assert copy.copy(t).tag == "a"


@LIBRARIES
def test_classes_without_new(lib):
    class Plain(lib.Tensor):
        pass

    class Initialized(lib.Tensor):
        def __init__(self, data):
            super().__init__(data)

    assert values(Plain([1.0, 2.0])) == ("Plain", [1, 2], False)
    assert Plain(2, 3).shape == (2, 3) and Plain().shape == (0,)
    assert values(lib.Tensor.__new__(Plain, [4.0])) == ("Plain", [4], False)
    w = lib.ones(2, requires_grad=True)
    alias = Plain(w)
    assert alias.data_ptr() == w.data_ptr() and alias.requires_grad and not alias.is_leaf
    with pytest.raises(TypeError, match="new\\(\\) received an invalid combination"):
        Plain([1.0], tag=1)
    with pytest.raises(TypeError, match="exactly one argument"):
        Initialized([1.0])


@LIBRARIES
def test_subclasses_of_parameter(lib):
    class Named(lib.nn.Parameter):
        def __new__(cls, data, requires_grad=True, name=None):
            made = super().__new__(cls, data, requires_grad)
            made.label = name
            return made

    class Extra(lib.nn.Parameter):
        def __init__(self, data, requires_grad=True):
            self.extra = 5

    assert Named(lib.ones(2), name="w").label == "w"
    assert Extra(lib.ones(2), False).extra == 5 and not Extra(lib.ones(2), False).requires_grad


@LIBRARIES
def test_results_of_a_class_with_torch_dispatch_are_what_it_returns(lib):
    class Wrapper(lib.Tensor):
        @staticmethod
        def __new__(cls, inner, scale):
            return lib.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype)

        def __init__(self, inner, scale):
            self.inner, self.scale = inner, scale

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*[a.inner * a.scale if isinstance(a, cls) else a for a in args], **(kwargs or {}))

    class Derived(Wrapper):
        pass

    for kind in (Wrapper, Derived):
        assert values(kind(lib.ones(2), 3) + 1) == ("Tensor", [4, 4], False)
