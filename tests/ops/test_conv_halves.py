"""Convolutions of half types and in channels_last against float64: depthwise kernels of bfloat16, samples converted some at a time, gradients of weights with few channels."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt

F = trt.nn.functional


def passes(x: trt.Tensor, weight: trt.Tensor, grad: trt.Tensor, options: tuple) -> list[trt.Tensor]:
    """The output and the gradients of input and weight."""
    x, weight = x.detach().requires_grad_(), weight.detach().requires_grad_()
    out = F.conv2d(x, weight, None, *options)
    out.backward(grad)
    return [out.detach(), x.grad, weight.grad]


def check(size: tuple, weight_size: tuple, options: tuple, dtype: trt.dtype, channels_last: bool, tolerance: float) -> None:
    """All passes equal float64's, in the layout of the operands, with the same bits for one thread and two."""
    generator = trt.Generator().manual_seed(size[1] + size[3])
    x, weight = (trt.randn(*s, generator=generator).to(dtype) for s in (size, weight_size))
    grad = trt.randn(*F.conv2d(x.double(), weight.double(), None, *options).shape, generator=generator).to(dtype)
    exact = passes(x.double(), weight.double(), grad.double(), options)
    to = {"memory_format": trt.channels_last} if channels_last else {}
    operands = [t.to(**to) for t in (x, weight, grad)]
    before = trt.get_num_threads()
    results = []
    for threads in (1, 2):
        trt.set_num_threads(threads)
        results.append(passes(*operands, options))
    trt.set_num_threads(before)
    for name, got, other, want in zip(("output", "input", "weight"), *results, exact, strict=True):
        assert trt.equal(got, other), name
        if name != "weight" and size[1] > 1:
            assert got.is_contiguous(memory_format=trt.channels_last if channels_last else trt.contiguous_format), name
        assert float((got.double() - want).norm()) <= tolerance * float(want.norm()), name


DEPTHWISE = [  # samples, channels, height, width, kernel, stride, padding, dilation
    (2, 32, 12, 15, (3, 3), (1, 1), (1, 1), (1, 1)), (3, 40, 11, 12, (3, 3), (2, 2), (1, 1), (1, 1)), (2, 7, 9, 20, (3, 3), (1, 1), (0, 0), (1, 1)), (1, 100, 5, 6, (3, 3), (1, 2), (2, 3), (1, 1)),
    (2, 16, 14, 17, (3, 3), (1, 1), (2, 2), (2, 2)), (2, 24, 13, 13, (5, 5), (1, 1), (2, 2), (1, 1)), (2, 33, 16, 9, (3, 2), (3, 2), (1, 0), (1, 1)), (1, 48, 3, 30, (3, 3), (1, 1), (1, 1), (1, 1)),
    (40, 24, 24, 25, (3, 3), (1, 1), (1, 1), (1, 1)),
]  # fmt: skip


@pytest.mark.parametrize("shape", DEPTHWISE, ids=str)
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", [trt.bfloat16, trt.float16], ids=str)
def test_depthwise_equals_float64(shape: tuple, channels_last: bool, dtype: trt.dtype) -> None:
    n, c, h, w, kernel, *rest = shape
    check((n, c, h, w), (c, 1, *kernel), (*rest, c), dtype, channels_last, 0.004)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("groups", [1, 4])
def test_samples_are_converted_some_at_a_time(channels_last: bool, groups: int) -> None:
    """A batch of several groups of samples, the last of which is smaller; float16, and groups, run in float32."""
    check((37, 16, 30, 30), (24, 16 // groups, 3, 3), (1, 1, 1, groups), trt.float16, channels_last, 0.001)


def test_an_infinity_beside_an_edge_stays_where_kernels_meet_it() -> None:
    """Rows of a 3x3 depthwise kernel beyond the image are left out, not multiplied by zero."""
    x = trt.zeros(1, 32, 6, 12, dtype=trt.bfloat16).to(memory_format=trt.channels_last)
    x[0, 3, 1, 5] = float("inf")
    out = F.conv2d(x, trt.ones(32, 1, 3, 3, dtype=trt.bfloat16), None, 1, 1, 1, 32)
    assert not out.isnan().any() and int(out.isinf().sum()) == 9


FEW = [(3, 16), (1, 6), (6, 16), (32, 3), (70, 9), (5, 130)]


@pytest.mark.parametrize("channels", FEW, ids=str)
@pytest.mark.parametrize("options", [(1, 1, 1), (2, 1, 1), (1, 2, 2), (3, 0, 1)], ids=str)
@pytest.mark.parametrize("dtype", [trt.float32, trt.float64], ids=str)
def test_channels_last_equals_float64(channels: tuple[int, int], options: tuple, dtype: trt.dtype) -> None:
    """First layers and others of few channels, whose weights' gradients sum lines where they lie."""
    for kernel in ((3, 3), (2, 5), (1, 4)):
        check((3, channels[0], 13, 15), (channels[1], channels[0], *kernel), options, dtype, True, 1e-6 if dtype == trt.float32 else 1e-14)
    check((3, 2 * channels[0], 9, 11), (2 * channels[1], channels[0], 3, 3), (*options, 2), dtype, True, 1e-6 if dtype == trt.float32 else 1e-14)
