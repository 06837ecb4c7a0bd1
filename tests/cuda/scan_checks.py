"""Running sums, products and extremes on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

import os

import tensorrt_lite as torch
from device_checks import agree


def check_sums(order: str) -> None:
    """Rows and columns, whole and cut in pieces, of every shape."""
    for shape in ((), (1,), (31,), (9000,), (0,), (3, 0), (33, 7), (4, 300), (300, 4), (4, 5, 6), (600, 2)):
        x = torch.randn(*shape, dtype=torch.float64) if shape else torch.tensor(2.0, dtype=torch.float64)
        for y in (x, x.transpose(0, -1)) if x.dim() > 1 and order == "forward" else (x,):
            for dim in range(-1, max(x.dim(), 1) - 1 if x.dim() else 0):
                agree(torch.cumsum, y, dim=dim)


def check_operators() -> None:
    """Products and extremes with their indices; equal values and NaN."""
    nan = float("nan")
    for x in (torch.randint(0, 9, (40, 30)).float(), torch.randint(0, 50, (6000,)).float(), torch.tensor([1.0, nan, 3.0, nan, 9.0, 9.0])):
        for dim in range(x.dim()):
            agree(torch.cummax, x, dim=dim)
            agree(torch.cummin, x, dim=dim)
    agree(torch.cumprod, torch.rand(30, 40) + 0.5, dim=1)
    agree(torch.cumprod, torch.rand(30, 40) + 0.5, dim=0)


def check_dtypes() -> None:
    """Integers sum to int64 and wrap; dtype= converts; halves keep a float carry."""
    for dtype in (torch.uint8, torch.bool):
        agree(torch.cumsum, torch.randint(0, 100, (5, 40)).to(dtype), dim=1)
    agree(torch.cumprod, torch.randint(-4, 5, (40,)), dim=0)
    agree(torch.cumsum, torch.randint(0, 100, (40,)), dim=0, dtype=torch.float32)
    agree(torch.cumsum, torch.randn(40).half(), dim=0)
    agree(torch.cumsum, torch.randn(4, 40, dtype=torch.complex64), dim=1)
    agree(torch.cummax, torch.randint(0, 100, (5, 40)), dim=1)
    x = torch.randn(4, 40)
    out = torch.empty(40, 4).cuda().t()
    torch.cumsum(x.cuda(), 1, out=out)
    assert torch.allclose(out.cpu(), x.cumsum(1), atol=1e-5)
    moved = x.cuda()
    moved.cumsum_(0)
    assert torch.allclose(moved.cpu(), x.cumsum(0), atol=1e-5)


def check_same_bits() -> None:
    """The same bits in every order of threads and blocks."""
    x, results = torch.randn(30_000).cuda(), []
    for order in ("forward", "reverse", "random"):
        os.environ["CUEMU_ORDER"] = order
        results.append(x.cumsum(0).cpu())
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])
