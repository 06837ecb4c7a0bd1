"""Sorting, selection, distinct elements on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

import tensorrt_lite as torch
from device_checks import agree, raises


def check_sort(order: str) -> None:
    """Lines of a block and longer ones, both directions, ties, along every dimension; every type."""
    for shape in ((1,), (31,), (5, 33), (3, 1000), (2, 2100), (7, 3, 5)):
        x = torch.randn(*shape).mul(4).round().requires_grad_()
        for dim in range(len(shape)):
            agree(torch.sort, x, dim, exact=True)
            agree(torch.sort, x, dim, True, exact=True)
    agree(torch.sort, torch.tensor(3.0), exact=True)
    agree(torch.sort, torch.randn(0, 3), exact=True)
    agree(torch.sort, torch.randn(40, 9).t(), 0, exact=True)
    special = torch.tensor([0.0, float("nan"), -0.0, float("inf"), -1.0, float("-inf"), float("nan"), 1e-40])
    agree(torch.sort, special)
    agree(torch.argsort, special, descending=True)


def check_types() -> None:
    """Keys of every type."""
    for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        agree(torch.sort, torch.randint(-9, 99, (3, 40)).to(dtype), exact=True)
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        agree(torch.sort, torch.randn(2, 50).to(dtype), descending=True, exact=True)
    agree(torch.sort, torch.randint(-(2**60), 2**60, (2, 2100)), exact=True)
    agree(torch.sort, torch.randn(2100).half(), exact=True)


def check_selection(order: str) -> None:
    """topk, kthvalue, median, nanmedian."""
    x = torch.randn(4, 70, requires_grad=True)
    for k in (0, 1, 7, 70):
        agree(torch.topk, x, k, exact=True)
        agree(torch.topk, x, min(k, 4), 0, False, exact=True)
    agree(torch.topk, torch.randn(3, 3000), 5, exact=True)
    agree(torch.kthvalue, x, 3, exact=True)
    agree(torch.median, x, 0, exact=True)
    agree(torch.median, x.detach(), exact=True)
    holes = torch.where(torch.rand(5, 9) > 0.7, torch.tensor(float("nan")), torch.randn(5, 9))
    agree(lambda t: torch.median(t, 1)[0], holes)
    agree(lambda t: torch.nanmedian(t, 1)[0], holes)


def check_distinct() -> None:
    """unique with what comes along, of elements and of rows; bincount."""
    x = torch.randint(0, 7, (60,))
    agree(lambda t: torch.unique(t, return_inverse=True, return_counts=True), x)
    agree(lambda t: torch.unique(t, return_inverse=True, return_counts=True), x.reshape(5, 12).float())
    agree(lambda t: torch.unique_consecutive(t, return_inverse=True, return_counts=True), x.sort()[0].reshape(6, 10))
    agree(lambda t: torch.unique(t, dim=0, return_inverse=True, return_counts=True), x.reshape(20, 3) % 2)
    agree(lambda t: torch.unique(t, dim=1), x.reshape(3, 20) % 2)
    agree(torch.unique, torch.randn(0))
    assert torch.isin(x.cuda(), 3).cpu().sum() == (x == 3).sum() and torch.isin(3, x.cuda()).is_cuda and torch.isin(x.cuda(), x[:0].cuda()).is_cuda
    agree(torch.bincount, x)
    agree(torch.bincount, x, torch.rand(60).double(), minlength=9)


def check_modes(order: str) -> None:
    """The most frequent element: ties, NaN, lines of every length, gradients."""
    for shape in ((1,), (31,), (5, 33), (3, 1000), (2, 2100)):
        x = torch.randint(0, max(shape[-1] // 4, 2), shape).float().requires_grad_()
        for dim in range(len(shape)):
            agree(torch.mode, x, dim, exact=True)
    agree(torch.mode, torch.randint(0, 3, (4, 300)), keepdim=True, exact=True)
    agree(torch.mode, torch.ones(2500), exact=True)
    agree(torch.mode, torch.tensor([float("nan"), 2.0, float("nan"), 2.0, -0.0, 0.0]))


def check_histograms() -> None:
    """histc, histogram, histogramdd and bincount: equal bins and given edges, weights, elements outside, more bins than shared memory holds."""
    x = torch.randn(700)
    agree(torch.histc, x, 10)
    agree(torch.histc, x.reshape(7, 100).t().double(), 5000, -1, 2)
    agree(torch.histc, torch.tensor([3.0, 3.0]), 4)
    assert torch.equal(torch.histc(torch.arange(10).cuda(), 5).cpu(), torch.full((5,), 2))
    edges = torch.tensor([-2.0, -0.5, 0.1, 1.5])
    agree(torch.histogram, x, 9, range=(-2.0, 2.0))
    agree(torch.histogram, x, 9, density=True)
    agree(torch.histogram, x, edges, weight=torch.rand(700))
    agree(torch.histogramdd, torch.randn(60, 3), [3, 4, 2], weight=torch.rand(60))
    agree(torch.histogramdd, torch.randn(60, 2), [edges, edges], density=True)
    agree(torch.bincount, torch.tensor([3, 3, 9000]))
    agree(torch.bincount, torch.tensor([3, 3, 1]), torch.tensor([0.5, 1.0, 2.0]))
    agree(torch.bincount, torch.zeros(0, dtype=torch.int64), minlength=3)
    raises(RuntimeError, "same device", torch.histogram, x.cuda(), edges)
    raises(RuntimeError, "same device", torch.bincount, torch.ones(2, dtype=torch.int64).cuda(), torch.ones(2))
