"""fractional_max_pool2d and 3d beside PyTorch: values, places, gradients, random samples from the seed, errors."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite.autograd import gradcheck, gradgradcheck
from torch_compare import compare, ours, same, torch

F = torch.nn.functional
CASES = [
    (2, (2, 3, 8, 9), 3, (4, 5)),
    (2, (3, 8, 9), (2, 3), (7, 1)),
    (2, (2, 3, 5, 5), 1, (5, 5)),
    (3, (2, 3, 6, 8, 9), 2, (3, 4, 5)),
    (3, (3, 6, 5, 4), (2, 1, 3), (2, 4, 1)),
]  # fmt: skip


def test_values_places_gradients():
    for n, shape, kernel, size in CASES:
        actual, expected = (getattr(lib.nn.functional, f"fractional_max_pool{n}d") for lib in (trt, torch))
        batch, channels = (shape[0], shape[1]) if len(shape) == n + 2 else (1, shape[0])
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            rng = torch.Generator().manual_seed(len(shape))
            x = torch.randn(shape, generator=rng).to(dtype)
            x.flatten()[3] = float("nan") if dtype is torch.float32 else 9
            samples = torch.rand(batch, channels, n, generator=rng).to(dtype)
            compare(lambda x, s: actual(x, kernel, size, None, True, s), lambda x, s: expected(x, kernel, size, None, True, s), x.requires_grad_(), samples)


def test_the_seed_gives_pytorchs_windows():
    x = torch.randn(2, 3, 20, 14)
    for ratio in ((0.5, 0.7), 0.4):
        torch.manual_seed(5)
        trt.manual_seed(5)
        expected = F.fractional_max_pool2d_with_indices(x, 3, output_ratio=ratio if isinstance(ratio, tuple) else (ratio, ratio))
        same(trt.nn.functional.fractional_max_pool2d_with_indices(ours(x), 3, output_ratio=ratio), expected)
    y = torch.randn(1, 2, 6, 7, 8)
    torch.manual_seed(6)
    trt.manual_seed(6)
    same(trt.nn.FractionalMaxPool3d(2, output_size=3)(ours(y)), torch.nn.FractionalMaxPool3d(2, output_size=3)(y))


def test_derivatives():
    x, samples = trt.randn(1, 2, 5, 6, dtype=trt.float64, requires_grad=True), trt.rand(1, 2, 2, dtype=trt.float64)
    call = lambda t: trt.nn.functional.fractional_max_pool2d(t, 2, (3, 4), _random_samples=samples)  # noqa: E731
    assert gradcheck(call, (x,), check_forward_ad=True) and gradgradcheck(call, (x,))


def test_meta_and_errors():
    pool = trt.nn.functional.fractional_max_pool2d
    assert pool(trt.empty(2, 3, 8, 9, device="meta"), 3, (4, 5)).shape == (2, 3, 4, 5)
    x, samples = trt.zeros(2, 3, 8, 9), trt.zeros(2, 3, 2)
    cases = [
        (lambda: pool(x, 2, (8, 5)), "pool height 2 too large relative to input height 8"),
        (lambda: pool(x, (2, 3), (4, 9)), "pool width 3 too large relative to input width 9"),
        (lambda: pool(x[0, 0], 2, (4, 5), _random_samples=samples), "Expected 3D or 4D tensor"),
        (lambda: pool(x, 2, (4, 5), _random_samples=samples[:, :, :1]), "size\\(2\\) equals to 2; got 1"),
        (lambda: pool(x, 2, (4, 5), _random_samples=samples.double()), "same dtype as input"),
        (lambda: pool(x, 2, (4, 5), _random_samples=samples[:1]), "no less then input batch size"),
        (lambda: pool(x, 2, (4, 5), _random_samples=samples[:, :2]), "equals to input channel size"),
        (lambda: pool(x, (2, 3, 4), (4, 5), _random_samples=samples), "kernel_size must either be"),
    ]
    for call, message in cases:
        with pytest.raises(RuntimeError, match=message):
            call()
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        pool(x.int(), 2, (4, 5), _random_samples=samples.int())
