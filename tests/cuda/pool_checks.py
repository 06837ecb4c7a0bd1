"""Pooling and resampling on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

import tensorrt_lite as torch
from device_checks import agree
from tensorrt_lite.nn import functional as F


def images(*shape: int, last: bool = False, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A random tensor that wants a gradient, contiguous or channels_last."""
    x = torch.randn(*shape).to(dtype)
    return (x.to(memory_format=torch.channels_last) if last else x).requires_grad_()


def check_maxima(order: str) -> None:
    """Windows that overlap, leave gaps, are padded and dilated; both layouts; where the maxima were."""
    for window in ({"kernel_size": 2}, {"kernel_size": (3, 2), "stride": (2, 1), "padding": 1}, {"kernel_size": 2, "dilation": 2, "stride": 3}, {"kernel_size": 3, "ceil_mode": True}):
        for last in (False, True):
            agree(F.max_pool2d, images(2, 3, 11, 13, last=last), **window)
        agree(lambda x, w=window: F.max_pool2d(x, return_indices=True, **w), images(3, 9, 10), gradient=False)
    agree(F.max_pool2d, images(1, 2, 8, 8, dtype=torch.bfloat16), kernel_size=2)
    agree(F.max_pool1d, images(2, 3, 31), kernel_size=3, stride=2)
    agree(F.max_pool3d, images(2, 3, 5, 6, 7), kernel_size=2)
    for size in (1, (3, 5), (7, 2)):
        agree(F.adaptive_max_pool2d, images(2, 3, 9, 11), size)
        agree(F.adaptive_max_pool2d, images(2, 3, 9, 11, last=True), size)


def check_averages(order: str) -> None:
    """Divisors of every kind, adaptive windows, both layouts."""
    for window in (
        {"kernel_size": 2}, {"kernel_size": (3, 2), "stride": (2, 1), "padding": 1}, {"kernel_size": 3, "padding": 1, "count_include_pad": False},
        {"kernel_size": 3, "stride": 2, "ceil_mode": True}, {"kernel_size": 2, "divisor_override": 3},
    ):  # fmt: skip
        for last in (False, True):
            agree(F.avg_pool2d, images(2, 3, 11, 13, last=last), **window)
    agree(F.avg_pool1d, images(2, 3, 31), kernel_size=3)
    agree(F.avg_pool3d, images(2, 3, 5, 6, 7, dtype=torch.float64), kernel_size=2)
    for size in (1, (3, 5), (13, 12)):
        agree(F.adaptive_avg_pool2d, images(2, 3, 9, 11), size)
        agree(F.adaptive_avg_pool2d, images(2, 3, 9, 11, last=True), size)


def check_resampling() -> None:
    """interpolate in every mode, up and down, and its gradient."""
    for mode in ("nearest", "nearest-exact", "bilinear", "bicubic"):
        for size in ((14, 9), (5, 21)):
            agree(lambda x, m=mode, s=size: F.interpolate(x, size=s, mode=m), images(2, 3, 7, 10))
        agree(lambda x, m=mode: F.interpolate(x, scale_factor=2, mode=m), images(2, 3, 7, 10, last=True))
    agree(lambda x: F.interpolate(x, size=(3, 4), mode="bilinear", antialias=True), images(1, 2, 11, 13))
    agree(lambda x: F.interpolate(x, size=(9, 8), mode="bilinear", align_corners=True), images(1, 2, 5, 6, dtype=torch.float64))
    agree(lambda x: F.interpolate(x, size=9, mode="linear"), images(1, 2, 5))
    agree(lambda x: F.interpolate(x, size=(9, 3)), torch.randint(0, 256, (2, 3, 5, 6), dtype=torch.uint8))
    agree(lambda x: F.interpolate(x, size=(4, 5, 6), mode="trilinear"), images(1, 2, 3, 7, 5))


def check_resampling_in_a_graph() -> None:
    """The first call of a shape may be recorded, and a table that is kept serves other tensors; an upload would be refused."""
    x = torch.randn(2, 3, 7, 9)
    moved, graph = x.cuda(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = F.interpolate(moved, size=(13, 5), mode="bilinear")
    for _ in range(2):
        moved.copy_(x)
        graph.replay()
        assert torch.allclose(y.cpu(), F.interpolate(x, size=(13, 5), mode="bilinear"), atol=1e-6)
        x = torch.randn(2, 3, 7, 9)
    torch.cuda.set_sync_debug_mode("error")
    try:
        y = F.interpolate(moved, size=(13, 5), mode="bilinear")
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert torch.allclose(y.cpu(), F.interpolate(moved.cpu(), size=(13, 5), mode="bilinear"), atol=1e-6)


def check_windows() -> None:
    """unfold and fold with their gradients."""
    agree(lambda x: F.unfold(x, (3, 2), dilation=(1, 2), padding=1, stride=(2, 1)), images(2, 3, 7, 8))
    agree(lambda x: F.unfold(x, 2, stride=3), images(3, 6, 7, dtype=torch.float64))
    agree(lambda x: F.fold(x, (7, 8), (3, 2), padding=1, stride=(2, 1)), images(2, 12, 36))


def check_grids(order: str) -> None:
    """Sampling at grids: every mode, padding and corner rule, positions outside and NaN, gradients of image and grid, few and many channels."""
    modes = [(2, "bilinear"), (2, "nearest"), (2, "bicubic"), (3, "bilinear")]
    for dims, mode in modes if order == "forward" else modes[:1]:
        for padding in ("zeros", "border", "reflection"):
            for corners in (False, True):
                x, g = images(2, 3, *(5, 7, 4)[:dims]), torch.randn(2, *(3, 6, 5)[:dims], dims).requires_grad_()
                agree(lambda x, g, m=mode, p=padding, c=corners: F.grid_sample(x, g, m, p, align_corners=c), x, g)
    agree(lambda x, g: F.grid_sample(x, g, align_corners=False), images(1, 19, 9, 9, last=True), torch.randn(1, 1, 33, 2).requires_grad_())
    agree(lambda x, g: F.grid_sample(x, g, padding_mode="border", align_corners=True), images(1, 2, 2, 2), torch.randn(1, 40, 40, 2).mul(9).requires_grad_())
    if order == "forward":
        half = torch.float16
        agree(lambda x, g: F.grid_sample(x, g, align_corners=False), images(2, 2, 4, 5, dtype=half), torch.randn(2, 3, 3, 2).to(half).requires_grad_())
        agree(lambda x, g: F.grid_sample(x, g, align_corners=False), torch.randn(1, 2, 3, 3), torch.tensor([[[[float("nan"), 0.0], [3e9, -float("inf")]]]]))
        agree(lambda x, g: F.grid_sample(x, g, align_corners=False), images(2, 3, 4, 4), torch.randn(2, 0, 5, 2).requires_grad_())
        agree(lambda t: F.grid_sample(torch.ones(1, 2, 5, 5, device=t.device), F.affine_grid(t, (1, 2, 4, 4), align_corners=False), align_corners=False), torch.randn(1, 2, 3).requires_grad_())


def check_fractional(order: str) -> None:
    """Windows at random steps, and the gradient of what they found."""
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        x, samples = torch.randn(2, 3, 8, 9).to(dtype).requires_grad_(), torch.rand(2, 3, 2).to(dtype)
        agree(lambda x, s: torch.nn.functional.fractional_max_pool2d(x, 3, (4, 5), None, True, s), x, samples)
        y, samples = torch.randn(2, 5, 8, 4).to(dtype), torch.rand(1, 2, 3).to(dtype)
        agree(lambda x, s: torch.nn.functional.fractional_max_pool3d(x, 2, (3, 5, 2), None, True, s), y, samples)
