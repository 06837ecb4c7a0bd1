"""Fake tensors: the shapes, dtypes, strides and devices that the program would have, and no memory."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite import nn
from tensorrt_lite._subclasses import DataDependentOutputException, DynamicOutputShapeException, FakeTensor, FakeTensorMode
from tensorrt_lite.utils.flop_counter import FlopCounterMode

F = trt.nn.functional


def test_a_program_larger_than_the_machine():
    with FakeTensorMode():
        x = trt.empty(1 << 20, 1 << 20)
        y = (x @ x + 1).relu().sum(1)
    assert isinstance(y, FakeTensor)
    assert y.shape == (1 << 20,) and y.dtype is trt.float32 and y.device.type == "cpu"


def test_a_device_that_is_not_there():
    with FakeTensorMode():
        x = trt.randn(4, 5, device="cuda")
        y = nn.functional.softmax(x * 2, dim=1)
        assert y.device == trt.device("cuda", 0) or y.device.type == "cuda"
        assert y.to("cpu").device.type == "cpu" and y.to(trt.float16).dtype is trt.float16
        with pytest.raises(RuntimeError, match="found two different devices"):
            y + trt.ones(4, 5)
        assert (y + trt.tensor(1.0)).device.type == "cuda"


def test_a_model_runs_forward_and_backward():
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(8 * 16, 10)).eval()
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        x = mode.from_tensor(trt.randn(2, 3, 8, 8))
        y = model(x)
        assert isinstance(y, FakeTensor) and y.shape == (2, 10)
        assert mode.from_tensor(model[0].weight) is mode.from_tensor(model[0].weight)


def test_errors_are_the_real_ones():
    with FakeTensorMode(), pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        trt.ones(2, 3).mm(trt.ones(2, 3))


def test_what_depends_on_elements_raises():
    with FakeTensorMode():
        x = trt.ones(3)
        with pytest.raises(DataDependentOutputException):
            x[0].item()
        with pytest.raises(DataDependentOutputException):
            bool(x.sum() > 0)
        with pytest.raises(DynamicOutputShapeException):
            x.nonzero()


def test_real_tensors_are_refused_unless_allowed():
    real = trt.ones(3)
    with FakeTensorMode(), pytest.raises(AssertionError, match="Please convert all Tensors to FakeTensors"):
        real + trt.ones(3)
    with FakeTensorMode(allow_non_fake_inputs=True):
        assert isinstance(real + trt.ones(3), FakeTensor)
    assert real.tolist() == [1, 1, 1]


def test_gradients_are_fake():
    with FakeTensorMode():
        w = trt.ones(4, 3, requires_grad=True)
        (trt.ones(2, 3) @ w.t()).pow(2).sum().backward()
        assert isinstance(w.grad, FakeTensor) and w.grad.shape == (4, 3)


def test_a_real_tensor_is_made_fake_inside_the_mode():
    with FakeTensorMode() as mode:
        x = mode.from_tensor(trt.ones(3))
        assert not isinstance(x.meta, FakeTensor) and (x * trt.arange(3)).shape == (3,)


def test_views_and_writes():
    with FakeTensorMode():
        x = trt.zeros(2, 6)
        y = x.view(3, 4).t()
        assert y.shape == (4, 3) and y.stride() == (1, 4)
        assert x.add_(1) is x and x._version == 1


def test_operations_are_counted_on_fakes():
    with FakeTensorMode(), FlopCounterMode(display=False) as counter:
        trt.empty(1000, 2000) @ trt.empty(2000, 3000)
    assert counter.get_total_flops() == 2 * 1000 * 2000 * 3000


def test_deep_copies_are_fake():
    import copy

    with FakeTensorMode() as mode:
        layer = trt.nn.Linear(2, 3)
        copied = copy.deepcopy(layer)
        assert type(copied.weight) is FakeTensor
        assert isinstance(copied.weight, trt.nn.Parameter)
        assert copied.weight.fake_mode is mode
        assert copied(trt.ones(1, 2)).shape == (1, 3)
    outside = copy.deepcopy({"a": layer.weight, "b": layer.weight})
    assert outside["a"] is outside["b"] is not layer.weight
    assert outside["a"].requires_grad
