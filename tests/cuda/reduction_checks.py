"""Reductions on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

import tensorrt_lite as torch
from device_checks import agree, flat, raises

SHAPES = [(), (1,), (31,), (1000,), (0,), (3, 0), (33, 7), (5, 1000), (1000, 5), (4, 5, 6), (100, 64), (2, 3, 100, 3)]


def views(x: torch.Tensor) -> list[torch.Tensor]:
    """The tensor, turned, with gaps, from an odd start, repeated."""
    if x.dim() < 2 or not x.numel():
        return [x]
    return [x, x.transpose(0, -1), x[..., ::2], x[1:, 1:], x[:1].expand(x.shape)]


def dims_of(x: torch.Tensor) -> list[dict[str, object]]:
    """Every dimension, all, and some together."""
    some = [{"dim": (0, x.dim() - 1)}, {"dim": (-1, 1), "keepdim": True}] if x.dim() > 2 else []
    return [{}, *({"dim": d} for d in range(-1, x.dim())), *some]


def numbers(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normal numbers, or small integers."""
    return (torch.randn(*shape) * 3).to(dtype) if shape else (torch.randn(1) * 3).to(dtype).reshape(())


def check_shapes(order: str) -> None:
    """Both block shapes, several outputs in a block, runs cut in pieces: sums in every thread order."""
    for shape in SHAPES:
        for x in views(numbers(*shape))[: None if order == "forward" else 2]:
            for dims in dims_of(x):
                agree(torch.sum, x, **dims)
    long = numbers(30_000)
    for x in (long, long[1:], long[::3], long.reshape(3, 10_000), long.reshape(10_000, 3), long.reshape(10_000, 3).t()):
        agree(torch.sum, x)
        if x.dim() > 1:
            agree(torch.sum, x, dim=0)
            agree(torch.sum, x, dim=1)


def check_operators() -> None:
    """Every operator with its gradient, in float32."""
    for shape in ((), (31,), (33, 7), (4, 5, 6), (2, 1000)):
        for x in views(numbers(*shape).requires_grad_()):
            for dims in dims_of(x):
                for op in (torch.sum, torch.mean, torch.amax, torch.amin):
                    agree(op, x, **dims)
                agree(torch.var, x, **dims)
                agree(torch.std, x, correction=0, **dims)
                agree(torch.logsumexp, x, **{"dim": tuple(range(x.dim())), **dims})
                for op in (torch.all, torch.any, torch.count_nonzero):
                    agree(op, (x.detach() > -2).to(torch.float32), **{k: v for k, v in dims.items() if op is not torch.count_nonzero or k == "dim"})
                for order in (2, 0, 3.5, float("inf")):
                    agree(torch.linalg.vector_norm, x, order, **dims, gradient=not (order == 0 or x.dim() == 0))
                if isinstance(dims.get("dim", 0), int):
                    agree(torch.prod, x / 3, **dims, gradient=False)
                    agree(torch.argmax, x, **dims)
                    agree(torch.argmin, x, **dims)
                if isinstance(dims.get("dim"), int):
                    agree(torch.max, x, **dims, gradient=False)
                    agree(torch.min, x, **dims, gradient=False)


def check_dtypes() -> None:
    """The types of results, wrapping integers, conversion as elements are loaded."""
    integers = (torch.uint8, torch.int64, torch.bool)
    for dtype in (torch.float64, torch.float16, torch.complex64, *integers):
        for shape in ((3, 37), (37, 3)):
            x = torch.randint(0, 100, shape).to(dtype) if dtype in integers else numbers(*shape, dtype=dtype)
            for dim in (0, 1):
                agree(torch.sum, x, dim=dim)
                if dtype in (torch.float16, torch.int64):
                    agree(torch.argmax, x, dim=dim)
                    agree(torch.amin, x, dim=dim)
                if dtype in (torch.complex64, torch.bool):
                    agree(torch.count_nonzero, x, dim=dim)
    agree(torch.prod, torch.randint(1, 9, (40,)))
    agree(torch.sum, torch.randint(0, 9, (40,)), dtype=torch.float32)
    agree(torch.mean, torch.randint(0, 9, (40, 3)), dim=0, dtype=torch.float64)
    agree(torch.sum, numbers(7, 30, dtype=torch.float16), dim=1, dtype=torch.float32)
    agree(torch.all, torch.ones(3, 4, dtype=torch.uint8), dim=1)
    agree(torch.linalg.vector_norm, numbers(5, 40, dtype=torch.complex64), 2, dim=1)
    agree(torch.var, numbers(5, 40, dtype=torch.complex64), dim=1)


def check_special_values() -> None:
    """NaN wins, the first of equals is named, infinities and no elements."""
    nan, inf = float("nan"), float("inf")
    x = torch.tensor([[1.0, nan, 3.0, nan], [inf, inf, -inf, 2.0], [-inf, -inf, -inf, -inf], [7.0, 7.0, 7.0, 7.0]])
    for dim in (0, 1):
        for op in (torch.max, torch.min):
            values, indices = (r.cpu() for r in flat(agree(op, x, dim=dim)))
            assert values.shape == indices.shape == (4,)
        for op in (torch.amax, torch.amin, torch.logsumexp, torch.sum, torch.var):
            agree(op, x, dim=dim)
    equal = torch.ones(5000)
    assert agree(torch.argmax, equal).item() == 0 and agree(torch.argmin, equal).item() == 0
    for at in (0, 17, 4999):
        equal[at] = nan
        equal[4999] = nan
        assert torch.argmax(equal.cuda()).item() == at == torch.argmin(equal.cuda()).item()
        equal[at] = 1
    empty = torch.empty(3, 0)
    for op in (torch.sum, torch.mean, torch.prod, torch.all, torch.any, torch.var):
        agree(op, empty, dim=1)
        agree(op, empty)
    agree(torch.logsumexp, empty, dim=1)
    raises(IndexError, "Expected reduction dim 1 to have non-zero size", torch.amax, empty.cuda(), dim=1)
    raises(IndexError, "Dimension out of range", torch.sum, empty.cuda(), dim=2)


def check_outputs() -> None:
    """out= of another type, shape and stride; errors of devices."""
    x = numbers(6, 50)
    for out in (torch.empty(6), torch.empty(6, dtype=torch.float64), torch.empty(0), torch.empty(12)[::2]):
        given = out.cuda() if out.is_contiguous() else torch.empty(12).cuda()[::2]
        assert torch.sum(x.cuda(), 1, out=given) is given
        assert torch.allclose(given.cpu().float(), x.sum(1), atol=1e-5)
    values, indices = torch.empty(50).cuda(), torch.empty(50, dtype=torch.int64).cuda()
    torch.max(x.cuda(), 0, out=(values, indices))
    assert torch.equal(values.cpu(), x.max(0).values) and torch.equal(indices.cpu(), x.max(0).indices)
    raises(RuntimeError, "Expected all tensors to be on the same device", torch.sum, x.cuda(), 1, out=torch.empty(6))
    raises(RuntimeError, "must be either a floating point or complex", torch.mean, torch.ones(3, dtype=torch.int64).cuda())


def check_same_bits() -> None:
    """A sum has the same bits in every order of threads and blocks."""
    import os

    x = numbers(3, 8_000).cuda()
    results = []
    for order in ("forward", "reverse", "random"):
        os.environ["CUEMU_ORDER"] = order
        results.append([t.cpu() for t in (x.sum(), x.sum(0), x.sum(1), x.var(1), x.t().logsumexp(0))])
    assert all(torch.equal(a, b) for other in results[1:] for a, b in zip(results[0], other))
