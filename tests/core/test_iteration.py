"""Pointwise operators whose rows have a few elements: the bits of the same call on contiguous operands."""

from __future__ import annotations

import pytest

import tensorrt_lite as torch

DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool, torch.complex64, torch.complex128)
LENGTHS = (1, 2, 3, 4, 5, 8, 17, 24, 25, 64, 65)


def numbers(*shape, dtype=torch.float32):
    x = torch.randn(*shape, dtype=torch.float64) * 3
    return (x > 0) if dtype == torch.bool else x.abs().to(dtype) if dtype == torch.uint8 else x.to(dtype)


def layouts(n, dtype):
    """(name, operands that broadcast to one shape), each with rows of n elements that do not continue one another."""
    a, b = numbers(7, n, dtype=dtype), numbers(300, n, dtype=dtype)
    yield "pairs", a[:, None], b[None]
    yield "a number a row", numbers(500, n, dtype=dtype), numbers(500, 1, dtype=dtype)
    yield "slices", numbers(500, 2 * n + 1, dtype=dtype)[:, :n], numbers(500, 2 * n + 1, dtype=dtype)[:, n : 2 * n]
    yield "steps", numbers(500, 3 * n, dtype=dtype)[:, ::3], numbers(1, n, dtype=dtype)
    yield "kron", numbers(9, 1, 40, 1, dtype=dtype), numbers(1, 6, 1, n, dtype=dtype)
    yield "channels", numbers(3, 50, n, dtype=dtype), numbers(50, 1, dtype=dtype)
    yield "transposed", numbers(n, 500, dtype=dtype).t(), numbers(500, 1, dtype=dtype)
    yield "one number", numbers(500, 2 * n, dtype=dtype)[:, :n], numbers(1, 1, dtype=dtype)


def assert_same(call, *operands, what):
    shape = torch.broadcast_shapes(*[x.shape for x in operands])
    got, want = call(*operands), call(*[x.expand(shape).contiguous() for x in operands])
    assert got.dtype == want.dtype and got.shape == want.shape and torch.equal(got.nan_to_num() if got.is_floating_point() else got,
                                                                             want.nan_to_num() if want.is_floating_point() else want), what  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_broadcast_rows(dtype):
    for n in LENGTHS:
        for name, a, b in layouts(n, dtype):
            what = f"{name}, rows of {n}, {dtype}"
            assert_same(torch.mul, a, b, what=f"mul {what}")
            assert_same(torch.eq, a, b, what=f"eq {what}")
            assert_same(torch.where, numbers(*a.shape[:-1], 1) > 0, a, b, what=f"where {what}")
            if dtype in (torch.float32, torch.int64):
                assert_same(torch.true_divide, a, b, what=f"divide {what}")
                assert_same(torch.addcmul, a, b, numbers(*b.shape[:-1], 1, dtype=dtype), what=f"addcmul {what}")


def test_types_that_are_converted_on_the_way():
    for n in LENGTHS:
        for name, a, b in layouts(n, torch.float32):
            for x in (b.to(torch.int32), b.double(), b > 0, b.to(torch.complex64), b.half()):
                assert_same(torch.add, a, x, what=f"{name}, rows of {n}, {x.dtype}")


def test_outputs_between_other_columns():
    """In place and out=, where rows of the output do not continue one another; nothing beside them is written."""
    for n in LENGTHS:
        for dtype in (torch.float32, torch.int16, torch.complex128):
            whole, factor = numbers(400, n + 3, dtype=dtype), numbers(400, 1, dtype=dtype)
            want = whole.clone()
            want[:, 1 : n + 1] = whole[:, 1 : n + 1].contiguous() * factor.expand(400, n).contiguous()
            got = whole.clone()
            got[:, 1 : n + 1].mul_(factor)
            assert torch.equal(got, want), (n, dtype)
            got = whole.clone()
            torch.mul(whole[:, 1 : n + 1], factor, out=got[:, 1 : n + 1])
            assert torch.equal(got, want), (n, dtype)
        other = torch.zeros(400, n + 3, dtype=torch.float64)
        torch.add(numbers(400, 1), 1.5 * torch.ones(n), out=other[:, :n])
        assert torch.equal(other[:, n:], torch.zeros(400, 3, dtype=torch.float64)) and bool((other[:, :n] != 0).all())


def test_threads_and_small_operands():
    torch.set_num_threads(2)
    try:
        for rows in (4, 5, 100, 5000, 40_000):
            a, b = numbers(rows, 3), numbers(rows, 1)
            assert_same(torch.mul, a, b, what=rows)
            assert_same(torch.sub, a[:, None], numbers(5, 3)[None], what=rows)
    finally:
        torch.set_num_threads(1)
