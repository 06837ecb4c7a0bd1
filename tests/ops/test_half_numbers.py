"""Products and quotients of halves by one number against PyTorch, to the bit: the number is not rounded to the half type."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

import tensorrt_lite as trt

NUMBERS = [0.1, 1 / 3, -3.3, 65536, 1e5, 1e-8, True, 7]
CALLS = {
    "mul": lambda lib, x, n: x * n,
    "reflected mul": lambda lib, x, n: n * x,
    "div": lambda lib, x, n: x / n,
    "reflected div": lambda lib, x, n: n / x,
    "floor": lambda lib, x, n: x // n,
    "trunc": lambda lib, x, n: lib.div(x, n, rounding_mode="trunc"),
    "in place": lambda lib, x, n: x.clone().mul_(n).div_(n),
    "out": lambda lib, x, n: lib.mul(x, lib.tensor(n, dtype=lib.float64), out=lib.empty(0, dtype=x.dtype)),
    "double tensor": lambda lib, x, n: x / lib.tensor(n, dtype=lib.float64),
    "double tensor first": lambda lib, x, n: lib.mul(lib.tensor(n, dtype=lib.float64), x),
    "foreach": lambda lib, x, n: lib._foreach_div(lib._foreach_mul([x, x], n), n)[0],
}


def layouts(x):
    """Contiguous, strided, transposed, with short rows, one element, none."""
    return [x, x[::3], x[:6000].reshape(60, 100).t(), x[:6000].reshape(1500, 4)[:, :3], x[5], x[7:8], x[:0]]


def bits(t):
    """Those of halves; two tensors without dimensions promote to double."""
    kind = (torch if isinstance(t, torch.Tensor) else trt).int16
    return t.contiguous().view(kind).tolist() if t.element_size() == 2 else t.tolist()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_numbers_beside_halves_are_not_rounded(name, dtype):
    values = torch.randn(100_000, generator=torch.Generator().manual_seed(3)) * 5
    theirs, mine = values.to(getattr(torch, dtype)), trt.from_numpy(values.numpy()).to(getattr(trt, dtype))
    for number in NUMBERS:
        for x, y in zip(layouts(theirs), layouts(mine), strict=True):
            want, got = CALLS[name](torch, x, number), CALLS[name](trt, y, number)
            want, got = want.nan_to_num(nan=3.0), got.nan_to_num(nan=3.0)  # whose sign and payload are no part of it
            assert bits(got) == bits(want), (name, number, tuple(x.shape), x.stride())


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_gradients_multiply_by_the_number_as_it_is(dtype):
    results = []
    for lib in (torch, trt):
        x = lib.linspace(-3, 7, 1000).to(getattr(lib, dtype)).requires_grad_()
        for call in (lambda x: x * 0.1, lambda x: x / 3.3, lambda x, lib=lib: x * lib.tensor(0.1, dtype=lib.float64), lambda x: 0.3 * x.view(10, 100).t()):
            y = call(x)
            y.backward(lib.ones_like(y) / 7)
        results.append(bits(x.grad))
    assert results[0] == results[1]


def test_a_scaled_loss_of_half_is_finite():
    assert (trt.tensor([1e-3]).half() * 65536).item() == 65.5625
    assert (trt.tensor([1000.0]).half() / 1e5).item() == pytest.approx(0.01, rel=1e-3)
