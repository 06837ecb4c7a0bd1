"""Normalisations against PyTorch: both modes, running statistics, layouts, halves, derivatives of both orders, errors."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch_compare import compare, normal, ours, same, second_order

import tensorrt_lite as trt
from tensorrt_lite.nn import functional as TF

F = torch.nn.functional
SHAPES = [(4, 5), (3, 5, 7), (3, 5, 6, 7), (2, 5, 3, 4, 2)]


def batch_arguments(shape, dtype=torch.float64, last=False):
    c = shape[1]
    return normal(*shape, dtype=dtype, last=last), normal(c, dtype=dtype, seed=5), normal(c, dtype=dtype, seed=7)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_batch_norm(shape, training, dtype):
    x, w, b = batch_arguments(shape, dtype)
    mean, var = normal(shape[1], dtype=dtype, grad=False), normal(shape[1], dtype=dtype, grad=False).abs() + 0.5
    compare(lambda x, w, b: TF.batch_norm(x, ours(mean), ours(var), w, b, training), lambda x, w, b: F.batch_norm(x, mean.clone(), var.clone(), w, b, training), x, w, b)
    compare(lambda x: TF.batch_norm(x, ours(mean), ours(var), training=training), lambda x: F.batch_norm(x, mean.clone(), var.clone(), training=training), x)
    if training:
        compare(lambda x, w, b: TF.batch_norm(x, None, None, w, b, True), lambda x, w, b: F.batch_norm(x, None, None, w, b, True), x, w, b)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_channels_last(training):
    x, w, b = batch_arguments((3, 5, 6, 7), torch.float32, last=True)
    mean, var = torch.zeros(5), torch.ones(5)
    compare(lambda x, w, b: TF.batch_norm(x, ours(mean), ours(var), w, b, training), lambda x, w, b: F.batch_norm(x, mean.clone(), var.clone(), w, b, training), x, w, b)


def test_running_statistics():
    mean, var = torch.full((5,), 0.25), torch.full((5,), 2.0)
    own_mean, own_var = ours(mean), ours(var)
    for step in range(3):
        x = normal(4, 5, 3, 2, dtype=torch.float32, seed=step, grad=False)
        F.batch_norm(x, mean, var, training=True, momentum=0.3)
        TF.batch_norm(ours(x), own_mean, own_var, training=True, momentum=0.3)
    same(own_mean, mean, tolerance=1e-6)
    same(own_var, var, tolerance=1e-6)
    assert own_mean._version == 3


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_second_derivatives(training):
    x, w, b = batch_arguments((3, 2, 4, 3))
    mean, var = torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    second_order(lambda x, w, b: TF.batch_norm(x, ours(mean), ours(var), w, b, training), lambda x, w, b: F.batch_norm(x, mean.clone(), var.clone(), w, b, training), x, w, b)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_halves(dtype):
    x = normal(3, 4, 5, 6, dtype=dtype)
    w, b = normal(4, dtype=torch.float32), normal(4, dtype=torch.float32, seed=3)
    compare(lambda x, w, b: TF.batch_norm(x, None, None, w, b, True), lambda x, w, b: F.batch_norm(x, None, None, w, b, True), x, w, b)
    compare(lambda x: TF.layer_norm(x, [5, 6]), lambda x: F.layer_norm(x, [5, 6]), x)
    compare(lambda x: TF.rms_norm(x, [6]), lambda x: F.rms_norm(x, [6]), x)
    compare(lambda x: TF.group_norm(x, 2), lambda x: F.group_norm(x, 2), x)


@pytest.mark.parametrize("shape,inner", [((4, 9), 1), ((2, 3, 4, 5), 2), ((7,), 1), ((40, 600), 1), ((2, 3, 4), 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_layer_norm_and_rms_norm(shape, inner, dtype):
    size = shape[len(shape) - inner :]
    x, w, b = normal(*shape, dtype=dtype), normal(*size, dtype=dtype, seed=3), normal(*size, dtype=dtype, seed=4)
    compare(lambda x, w, b: trt.layer_norm(x, size, w, b), lambda x, w, b: F.layer_norm(x, size, w, b), x, w, b)
    compare(lambda x: trt.layer_norm(x, size), lambda x: F.layer_norm(x, size), x)
    compare(lambda x, w: trt.rms_norm(x, size, w, 1e-5), lambda x, w: F.rms_norm(x, size, w, 1e-5), x, w)
    compare(lambda x: trt.rms_norm(x, size), lambda x: F.rms_norm(x, size), x)


def test_row_norm_second_derivatives():
    x, w, b = normal(3, 2, 5), normal(2, 5, seed=3), normal(2, 5, seed=4)
    second_order(lambda x, w, b: trt.layer_norm(x, (2, 5), w, b), lambda x, w, b: F.layer_norm(x, (2, 5), w, b), x, w, b)
    second_order(lambda x, w: trt.rms_norm(x, (2, 5), w), lambda x, w: F.rms_norm(x, (2, 5), w), x, w)


@pytest.mark.parametrize("shape,groups", [((2, 6), 3), ((2, 6, 5), 2), ((2, 6, 5, 4), 6), ((2, 6, 3, 4, 2), 1)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_group_norm(shape, groups, dtype):
    x, w, b = batch_arguments(shape, dtype)
    compare(lambda x, w, b: TF.group_norm(x, groups, w, b), lambda x, w, b: F.group_norm(x, groups, w, b), x, w, b)
    compare(lambda x: TF.group_norm(x, groups), lambda x: F.group_norm(x, groups), x)


def test_group_norm_second_derivatives():
    x, w, b = batch_arguments((2, 4, 3, 2))
    second_order(lambda x, w, b: trt.group_norm(x, 2, w, b), lambda x, w, b: F.group_norm(x, 2, w, b), x, w, b)


@pytest.mark.parametrize("stats", [True, False])
def test_instance_norm(stats):
    x, w, b = batch_arguments((3, 5, 6, 7))
    runs = []
    for lib, values in ((torch, (x, w, b)), (trt, (ours(x), ours(w), ours(b)))):
        mean, var = lib.zeros(5, dtype=lib.float64), lib.ones(5, dtype=lib.float64)
        function = F.instance_norm if lib is torch else TF.instance_norm
        y = function(values[0], mean, var, values[1], values[2], stats, 0.2)
        runs.append((y, mean, var))
    same(runs[1], runs[0])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_default_eps_of_rms_norm_is_that_of_the_type_it_computes_in(dtype):
    kind = getattr(trt, str(dtype).rpartition(".")[2])
    for scale in (0.1, 0.01, 1e-4):
        x = torch.tensor([[1.0, 2.0, 3.0, 4.0]]).mul(scale).to(dtype).requires_grad_()
        compare(lambda x: TF.rms_norm(x, [4]), lambda x: F.rms_norm(x, [4]), x)
        compare(lambda x: trt.nn.RMSNorm(4, dtype=kind)(x), lambda x: torch.nn.RMSNorm(4, dtype=x.dtype)(x), x)


def test_native_forms():
    x, w, b = batch_arguments((4, 5, 3))
    compare(lambda x, w, b: trt.native_layer_norm(x, [3], None, None, 1e-5), lambda x, w, b: torch.native_layer_norm(x, [3], None, None, 1e-5), x.detach(), w.detach(), b.detach())
    compare(lambda x, w, b: trt.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5), lambda x, w, b: torch.native_batch_norm(x, w, b, None, None, True, 0.1, 1e-5), x.detach(), w.detach(), b.detach())


@pytest.mark.parametrize(
    "call,text",
    [
        (lambda x: trt.layer_norm(x, []), "at least 1-dimensional"),
        (lambda x: trt.layer_norm(x, [4]), "expected input with shape"),
        (lambda x: trt.layer_norm(x, [5], trt.ones(4)), "Expected weight to be of same shape"),
        (lambda x: trt.group_norm(x, 2), "divisible by num_groups"),
        (lambda x: TF.batch_norm(x, trt.zeros(2), trt.ones(3)), "running_mean should contain 3 elements not 2"),
        (lambda x: TF.batch_norm(x, None, None), "must be defined in evaluation mode"),
        (lambda x: TF.batch_norm(x, None, None, trt.ones(4), training=True), "weight should contain 3 elements not 4"),
    ],
)
def test_errors(call, text):
    with pytest.raises(RuntimeError, match=text):
        call(trt.zeros(2, 3, 5))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_the_gradient_of_one_element_is_zero(dtype):
    """Each element is its own mean: nothing may be left of the rounding of products that cancel."""
    kind = getattr(trt, str(dtype).rpartition(".")[2])
    trt.manual_seed(0)
    weight, bias = (trt.randn(7).to(kind).requires_grad_() for _ in "wb")
    for call in (
        lambda x: trt.layer_norm(x.reshape(-1, 1), (1,), weight[:1], bias[:1]),
        lambda x: trt.group_norm(x, 7, weight, bias),
        lambda x: trt.batch_norm(x[:1], weight, bias, None, None, True, 0.1, 1e-5, False),
        lambda x: trt.native_batch_norm(x[:1], weight, bias, None, None, True, 0.1, 1e-5)[0],
    ):
        x = trt.randn(40, 7).to(kind).requires_grad_()
        y = call(x)
        y.backward(trt.randn(y.shape).to(kind))
        assert not x.grad.count_nonzero()


@pytest.mark.parametrize("shape", [(0, 0), (2, 0), (0, 3), (2, 3, 0), (3,), ()])
def test_statistics_of_nothing_are_refused(shape):
    errors = []
    for lib in (trt, torch):
        with pytest.raises((RuntimeError, IndexError)) as caught:
            lib.batch_norm_update_stats(lib.ones(shape), None, None, 0.1)
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]
