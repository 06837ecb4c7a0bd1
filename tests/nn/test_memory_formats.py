"""Strides of results and gradients are PyTorch's: the rule of suggest_memory_format, operator by operator, over layouts with and without gaps."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from memory_formats import DIFFERENT, LAYOUTS, OPERATORS, layouts_of

import tensorrt_lite as trt

CASES = [(ndim, name) for ndim, operators in OPERATORS.items() for name in operators if ndim == 4 or name not in OPERATORS[4] or name in ("stack", "cat", "index rows")]
POOLS_AND_RESIZES = ("max_pool2d", "max_pool2d indices", "avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d", "nearest", "nearest-exact", "bilinear", "bicubic",
                     "bilinear antialias", "area")  # fmt: skip


def visible(t):
    """The strides without those of dimensions of size 1, which no element tells."""
    return tuple(0 if size == 1 else stride for size, stride in zip(t.shape, t.stride(), strict=True)), tuple(t.shape)


def strides(lib, operator, make, dtype="float32", gradients=True):
    """Strides of the result and of the gradients for cotangents laid out like the result and contiguous; the type of the error if there is one."""
    x = make(lib, dtype)
    lib.manual_seed(0)
    try:
        y = operator(lib, x.requires_grad_(gradients))
        found = [visible(y)]
        if gradients and y.is_floating_point():
            for cotangent in (lib.ones_like(y), lib.ones(tuple(y.shape), dtype=y.dtype)):
                found.append(visible(lib.autograd.grad(operator(lib, x), x, cotangent)[0]))
    except (RuntimeError, ValueError, NotImplementedError) as error:
        return type(error).__name__
    return found


@pytest.mark.parametrize("ndim,name", CASES, ids=lambda value: str(value))
def test_result_and_gradient_have_pytorchs_strides(ndim, name):
    operator = OPERATORS[ndim][name]
    wrong = []
    for layout, make in layouts_of(ndim, name).items():
        want, got = strides(torch, operator, make), strides(trt, operator, make)
        if want != got:
            wrong.append(f"{layout}: {got}, PyTorch {want}")
    assert bool(wrong) == (name in DIFFERENT), "\n".join(wrong) or f"no longer different: {DIFFERENT[name]}"


@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16", "uint8"])
@pytest.mark.parametrize("name", POOLS_AND_RESIZES)
def test_pools_and_resizes_keep_formats_in_every_dtype(name, dtype):
    for layout, make in LAYOUTS[4].items():
        want, got = (strides(lib, OPERATORS[4][name], make, dtype, False) for lib in (torch, trt))
        assert want in (got, "NotImplementedError"), layout  # some types are ours alone


@pytest.mark.parametrize("name", ["nearest to one", "bilinear", "adaptive_avg_pool2d one", "max_pool2d", "avg_pool2d", "batch_norm", "cat", "stack 1", "conv 3x3", "pad cut"])
@pytest.mark.parametrize("layout", ["channels_last", "channels_last sliced", "channels_last one channel of six", "channels_last x[0][None]"])
def test_values_do_not_depend_on_the_format(name, layout):
    x, operator = LAYOUTS[4][layout](trt, "float64"), OPERATORS[4][name]
    a, b = x.clone().requires_grad_(), x.clone(memory_format=trt.contiguous_format).requires_grad_()
    y, z = operator(trt, a), operator(trt, b)
    cotangent = trt.arange(z.numel(), dtype=trt.float64).reshape(z.shape)
    trt.testing.assert_close(y, z)
    trt.testing.assert_close(trt.autograd.grad(y, a, cotangent)[0], trt.autograd.grad(z, b, cotangent)[0])


def test_an_unshuffled_copy_is_no_view():
    x = trt.ones(1, 4, 2, 2)
    for groups in (1, 2, 4):
        trt.nn.functional.channel_shuffle(x, groups).zero_()
    assert bool((x == 1).all())
