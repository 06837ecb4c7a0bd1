"""The three forms of a pointwise kernel on every kind of operand, beside the CPU."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt

DTYPES = (
    trt.float32, trt.float64, trt.float16, trt.bfloat16, trt.uint8, trt.int8, trt.int16, trt.int32, trt.int64, trt.complex64, trt.complex128,
)  # fmt: skip


def pairs(base: trt.Tensor):
    """(x, y) of shapes that broadcast: contiguous, transposed, stepped, reversed dimensions, broadcast, of 8 dimensions and more, 0-dimensional,
    empty, and not aligned to 16 bytes. base: (64, 48)."""
    x, y = base, base.flip(0) + 1
    yield x, y
    yield x.t(), y.t()
    yield x.t(), y.t().contiguous()
    yield x[::3, ::2], y[::3, ::2]
    yield x, y[:, :1]
    yield x[0], y
    yield x, y[3, 7]
    yield x[5, 5], y[3, 7]
    yield x[:0], y[:0]
    yield x.reshape(-1)[1:1000], y.reshape(-1)[3:1002]
    deep = (2, 2, 2, 2, 3, 2, 2, 2, 2)
    yield x.reshape(-1)[:768].reshape(deep).permute(8, 0, 7, 1, 6, 2, 5, 3, 4), y.reshape(-1)[:768].reshape(*(2,) * 8, 3)
    wide = (2,) * 10
    yield x.reshape(-1)[:1024].reshape(wide).permute(9, 1, 7, 3, 5, 4, 6, 2, 8, 0), y.reshape(-1)[:1024].reshape(wide)[..., :1, :]


@pytest.mark.parametrize("dtype", DTYPES)
def test_operands_of_every_form(dtype):
    base = (trt.arange(64 * 48).reshape(64, 48) % 23).to(dtype)
    on = base.cuda()
    for (a, b), (x, y) in zip(pairs(base), pairs(on)):
        assert x.stride() == a.stride()
        trt.testing.assert_close((x + y).cpu(), a + b, rtol=0, atol=0)
        assert (x + y).stride() == (a + b).stride()
        trt.testing.assert_close((x * 2).cpu(), a * 2, rtol=0, atol=0)  # a number of the host
        trt.testing.assert_close(trt.where(x == y, x, y).cpu(), trt.where(a == b, a, b), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [trt.float16, trt.bfloat16])
def test_numbers_beside_halves_are_not_rounded(dtype):
    """Products and quotients take the number in float32, as the CPU; sums take it in the tensor's type."""
    base = ((trt.arange(64 * 48).reshape(64, 48) - 1500) * 0.37).to(dtype)
    on = base.cuda()
    for number in (0.1, 65536, -1e5, True):
        for x, y in ((base, on), (base.t()[::3], on.t()[::3]), (base.reshape(-1)[1:], on.reshape(-1)[1:])):
            for call in (
                lambda x, n: x * n, lambda x, n: n * x, lambda x, n: x / n, lambda x, n: n / x, lambda x, n: x // n, lambda x, n: trt.div(x, n, rounding_mode="trunc"),
                lambda x, n: x * trt.tensor(n, dtype=trt.float64), lambda x, n: x.clone().mul_(n), lambda x, n: x + n, lambda x, n: trt.maximum(x, trt.tensor(n).to(dtype)),
            ):  # fmt: skip
                trt.testing.assert_close(call(y, number).cpu(), call(x, number), rtol=0, atol=0, equal_nan=True)
    assert (trt.tensor([1e-3]).to(trt.float16).cuda() * 65536).item() == 65.5625


def test_results_go_where_they_are_asked_to():
    x = trt.arange(60.0).reshape(5, 12).cuda()
    out = trt.zeros(12, 5, device="cuda").t()
    assert trt.add(x, 1, out=out) is out and trt.equal(out.cpu(), trt.arange(60.0).reshape(5, 12) + 1)
    wide = trt.zeros(5, 12, dtype=trt.float64, device="cuda")
    trt.add(x, 1, out=wide)  # another type: converted as it is stored
    assert trt.equal(wide.cpu(), out.cpu().double())
    view = x[:, ::2]
    view.mul_(2)
    assert x[1].tolist() == [(12.0 + i) * (2 if i % 2 == 0 else 1) for i in range(12)]
    flat = x.reshape(-1)
    flat[1:].add_(1)  # not aligned
    assert flat[0].item() == 0 and flat[1].item() == 2
    with pytest.raises(RuntimeError, match="single memory location"):
        trt.add(flat[1:], 1, out=flat[:-1])
    with pytest.raises(RuntimeError, match="must match the size"):
        x + trt.ones(7, device="cuda")


def test_types_promote_as_on_the_cpu():
    values = [trt.ones(3), trt.ones(3, dtype=trt.int32), trt.ones(3, dtype=trt.bool), trt.ones(3, dtype=trt.float16), trt.ones((), dtype=trt.float64), trt.ones(3, dtype=trt.complex64)]
    for a in values:
        for b in (*values, 2, 2.5, True, 1j):
            expected = a + b
            result = a.cuda() + (b.cuda() if isinstance(b, trt.Tensor) else b)
            assert result.dtype == expected.dtype and trt.equal(result.cpu(), expected)
