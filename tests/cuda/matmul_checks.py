"""Matrix products on CUDA beside the CPU's; run by test_matmul.py through device_checks.py."""

from __future__ import annotations

import tensorrt_lite as torch
from device_checks import agree, raises

SIZES = [(1, 1, 1), (31, 33, 5), (64, 64, 64), (130, 7, 65), (3, 200, 70), (65, 129, 17), (1, 1, 5000), (9, 9, 3000), (40, 40, 1500), (12, 13, 0)]


def randn(*shape: int, grad: bool = False, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Small numbers, so that half types keep their sums apart from their rounding."""
    return (torch.randn(shape, dtype=torch.float64) / 4).to(dtype).requires_grad_(grad)


def check_sizes(order: str) -> None:
    """Tiles with edges, few columns, deep products, nothing to sum."""
    for m, n, k in SIZES:
        agree(torch.mm, randn(m, k), randn(k, n), gradient=False)
    agree(torch.mm, randn(70, 40, grad=True), randn(40, 66, grad=True))


def check_transpositions() -> None:
    """All four, odd leading strides, and matrices whose lines are not dense."""
    for m, n, k in ((70, 66, 40), (20, 1, 100), (100, 5, 33), (3, 50, 31)):
        for a in (randn(m, k), randn(k, m).t(), randn(m, k + 3)[:, 1 : k + 1], randn(m, 2 * k)[:, ::2], randn(1, k).expand(m, k)):
            for b in (randn(k, n), randn(n, k).t(), randn(k + 1, 2 * n)[1:, ::2]):
                agree(torch.mm, a, b)
    out = torch.empty(66, 70, device="cuda").t()
    a, b = randn(70, 40), randn(40, 66)
    torch.mm(a.cuda(), b.cuda(), out=out)
    assert torch.allclose(out.cpu(), a @ b, atol=1e-5)
    wide = torch.zeros(70, 132, device="cuda")[:, ::2]
    torch.mm(a.cuda(), b.cuda(), out=wide)
    assert torch.allclose(wide.cpu(), a @ b, atol=1e-5)
    square = randn(40, 40).cuda()
    expected = square.cpu() @ square.cpu()
    torch.mm(square, square, out=square)
    assert torch.allclose(square.cpu(), expected, atol=1e-5)


def check_dtypes() -> None:
    """Every type, with wrapping integers; a tile and a vector of each."""
    for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128):
        agree(torch.mm, randn(35, 40, dtype=dtype), randn(40, 37, dtype=dtype))
        agree(torch.mv, randn(35, 400, dtype=dtype), randn(400, dtype=dtype))
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
        agree(torch.mm, torch.randint(0, 100, (35, 40)).to(dtype), torch.randint(0, 100, (40, 37)).to(dtype))
    raises(RuntimeError, "not implemented for 'Bool'", torch.mm, *[torch.ones(2, 2, device="cuda") > 0] * 2)


def check_tensor_cores(order: str) -> None:
    """Half types: all transpositions, aligned and not, edges in every dimension, slices of a deep product, an addend."""
    for m, n, k in ((64, 64, 64), (70, 130, 40), (33, 17, 21), (20, 24, 2000)):
        agree(torch.mm, randn(m, k, dtype=torch.bfloat16), randn(k, n, dtype=torch.bfloat16))
        agree(torch.mm, randn(k, m, dtype=torch.float16).t(), randn(n, k, dtype=torch.float16).t())
    agree(torch.mm, randn(40, 70, dtype=torch.float16).t(), randn(40, 66, dtype=torch.float16))
    agree(torch.bmm, randn(3, 70, 48, dtype=torch.float16), randn(3, 66, 48, dtype=torch.float16).transpose(1, 2))
    agree(torch.nn.functional.linear, randn(40, 64, dtype=torch.float16), randn(66, 64, dtype=torch.float16), randn(66, dtype=torch.float16))
    with_large_tiles = randn(300, 20, dtype=torch.float16), randn(20, 280, dtype=torch.float16)
    agree(torch.mm, *with_large_tiles)
    agree(torch.mm, *[x.float() for x in with_large_tiles])


def check_with_addend(order: str) -> None:
    """addmm, baddbmm, addmv, linear: addends that broadcast, alpha and beta, in place."""
    for shape in ((70, 66), (66,), (70, 1), (1, 66), ()):
        agree(torch.addmm, randn(*shape, grad=True), randn(70, 40, grad=True), randn(40, 66, grad=True), beta=0.5, alpha=2, gradient=shape == (70, 66))
    agree(torch.addmm, torch.full((66,), float("nan")), randn(70, 40), randn(40, 66), beta=0)
    agree(torch.addmm, randn(9, 9), randn(9, 3000), randn(3000, 9), beta=2)
    agree(torch.baddbmm, randn(3, 1, 20), randn(3, 10, 30), randn(3, 30, 20), beta=0.25)
    agree(torch.addmv, randn(50), randn(50, 600), randn(600), alpha=3)
    agree(torch.addmv, randn(1), randn(600, 50).t(), randn(600), beta=3)
    agree(lambda c, a, b: c.addmm_(a, b, beta=2), randn(20, 20), randn(20, 30), randn(30, 20))
    agree(lambda c, a, b: c.addmm_(a, b), randn(20, 20).t(), randn(20, 30), randn(30, 20))
    for bias in (randn(66), randn(), None):
        agree(torch.nn.functional.linear, randn(3, 5, 40), randn(66, 40), bias)
    agree(torch.nn.functional.linear, randn(2, 40), randn(66, 40), randn(66))
    agree(torch.nn.functional.linear, randn(2, 40), randn(40), randn())


def check_batches() -> None:
    """bmm, broadcast batches, matmul of every pair of dimensions."""
    agree(torch.bmm, randn(5, 33, 20, grad=True), randn(5, 20, 35, grad=True))
    agree(torch.bmm, randn(5, 20, 33).transpose(1, 2), randn(20, 5, 35).transpose(0, 1))
    for a, b in (((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 3, 4), (4,)), ((4,), (2, 4, 5)), ((2, 1, 3, 4), (7, 4, 5)), ((0, 4), (4, 5))):
        agree(torch.matmul, randn(*a), randn(*b))
    agree(torch.dot, randn(100000), randn(100000))
    agree(torch.vdot, randn(1000, dtype=torch.complex64), randn(1000, dtype=torch.complex64))
    agree(torch.dot, randn(2000)[::2], randn(2000)[1::2])
    agree(torch.dot, randn(0), randn(0))
    agree(torch.einsum, "bij,bjk->bik", randn(3, 4, 5), randn(3, 5, 6))
    agree(torch.outer, randn(5), randn(7))


def check_errors() -> None:
    """The CPU's messages."""
    a, b = torch.ones(2, 3, device="cuda"), torch.ones(4, 5, device="cuda")
    raises(RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", torch.mm, a, b)
    raises(RuntimeError, "Expected all tensors to be on the same device", torch.mm, a, torch.ones(3, 3))
    raises(RuntimeError, "expected m1 and m2 to have the same dtype", torch.mm, a, torch.ones(3, 3, device="cuda", dtype=torch.float64))


def check_tf32(order: str) -> None:
    """Float on tensor cores where the flag allows it: within tf32's rounding, exactly where the factors have few bits; all transpositions, edges, slices."""
    flags = torch.backends.cuda.matmul
    flags.allow_tf32 = True
    try:
        for m, n, k in ((64, 64, 64), (70, 130, 40), (33, 17, 21), (20, 24, 2000)):
            for a in (randn(m, k), randn(k, m).t()):
                for b in (randn(k, n), randn(n, k).t()):
                    result, expected = (a.cuda() @ b.cuda()).cpu(), a @ b
                    assert torch.allclose(result, expected, rtol=0, atol=2e-3 * expected.abs().max().item())
                    assert not torch.allclose(result, expected, rtol=0, atol=1e-6)
            agree(torch.mm, randn(m, k).bfloat16().float(), randn(k, n).bfloat16().float())
        agree(torch.mm, randn(300, 20).bfloat16().float(), randn(20, 280).bfloat16().float())
        agree(torch.bmm, randn(3, 70, 48).bfloat16().float(), randn(3, 66, 48).bfloat16().float().transpose(1, 2))
    finally:
        flags.allow_tf32 = False
