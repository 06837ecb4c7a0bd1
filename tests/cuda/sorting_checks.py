"""Sorting, selection, distinct elements on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

import tensorrt_lite as torch
from device_checks import agree


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
    agree(torch.bincount, x)
    agree(torch.bincount, x, torch.rand(60).double(), minlength=9)
