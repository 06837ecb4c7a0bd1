"""vmap over functions that look at numbers, beside PyTorch's; and over numbers of Python beside elements without dimensions."""

from __future__ import annotations

import pytest
import torch

import tensorrt_lite as trt

NUMBERS = (torch.arange(40.0).reshape(4, 10) * 7) % 11
WEIGHTS = torch.arange(40.0).reshape(4, 10) % 3
COUNTS = torch.tensor([[1, 2, 0], [0, 2, 1], [3, 0, 0], [1, 1, 1]])
ROWS = torch.arange(12.0).reshape(4, 3)
EDGES = torch.tensor([0.0, 2.0, 5.0, 10.0])

WORKING = {
    "histc of the data's range": (lambda t, x: t.vmap(lambda a: t.histc(a, bins=5))(x), NUMBERS),
    "histc": (lambda t, x: t.vmap(lambda a: a.histc(5, min=0, max=10))(x), NUMBERS),
    "histc at two levels": (lambda t, x: t.vmap(t.vmap(lambda a: t.histc(a, bins=5)))(x.reshape(2, 2, 10)), NUMBERS),
    "histc along another dimension": (lambda t, x: t.vmap(lambda a: t.histc(a, bins=5), in_dims=1)(x), NUMBERS),
    "gradient of histc": (lambda t, x: t.vmap(t.func.grad(lambda a: t.histc(a, bins=5).sum() + a.sin().sum()))(x), NUMBERS),
    "histogram": (lambda t, x: t.vmap(lambda a: t.histogram(a, 5))(x), NUMBERS),
    "histogram of weights": (lambda t, x, w: t.vmap(lambda a, b: t.histogram(a, 5, range=(0.0, 10.0), weight=b))(x, w), NUMBERS, WEIGHTS),
    "histogram where only weights differ": (lambda t, x, w: t.vmap(lambda b: t.histogram(x[0], 5, weight=b))(w), NUMBERS, WEIGHTS),
    "histogram as density": (lambda t, x: t.vmap(lambda a: t.histogram(a, 5, density=True))(x), NUMBERS),
    "histogram of given edges": (lambda t, x, e: t.vmap(lambda a: t.histogram(a, e))(x), NUMBERS, EDGES),
    "histogram of different edges": (lambda t, x, e: t.vmap(t.histogram)(x, e + t.zeros(4, 1)), NUMBERS, EDGES),
    "bincount": (lambda t, n: t.vmap(lambda a: t.bincount(a, minlength=5))(n), COUNTS),
    "repeat_interleave": (lambda t, x, n: t.vmap(lambda a, r: t.repeat_interleave(a, r, dim=0))(x, n), ROWS, COUNTS),
    "repeat_interleave of a known size": (lambda t, x, n: t.vmap(lambda a, r: a.repeat_interleave(r, 0, output_size=3))(x, n), ROWS, COUNTS),
    "repeat_interleave where only counts differ": (lambda t, x, n: t.vmap(lambda r: t.repeat_interleave(x[0], r))(n), ROWS, COUNTS),
    "repeat_interleave of counts alone": (lambda t, n: t.vmap(lambda r: t.repeat_interleave(r))(n), COUNTS),
    "gradient of repeat_interleave": (lambda t, x, n: t.vmap(t.func.grad(lambda a, r: t.repeat_interleave(a, r).pow(2).sum()))(x, n), ROWS, COUNTS),
    "one_hot of known classes": (lambda t, n: t.vmap(lambda a: t.nn.functional.one_hot(a, 4))(n), COUNTS),
    "nonzero_static": (lambda t, n: t.vmap(lambda a: t.nonzero_static(a, size=3))(n), COUNTS),
    "unravel_index": (lambda t, n: t.vmap(lambda a: t.unravel_index(a, (2, 2)))(n), COUNTS),
    "linspace": (lambda t, x: t.vmap(lambda a: t.linspace(a[0], a[1], 4))(x), ROWS),
}
REFUSED = {
    "one_hot that finds the classes": (lambda t, n: t.vmap(lambda a: t.nn.functional.one_hot(a))(n), COUNTS),
    "counts of different sums": (lambda t, x, n: t.vmap(lambda a, r: t.repeat_interleave(a, r, dim=0))(x, n + t.tensor([[0], [1], [0], [0]])), ROWS, COUNTS),
    "bincount of different sizes": (lambda t, n: t.vmap(lambda a: t.bincount(a))(n), COUNTS),
    "nonzero": (lambda t, n: t.vmap(lambda a: t.nonzero(a))(n), COUNTS),
}


def run(t, case):
    f, *tensors = case
    return f(t, *(x if t is torch else trt.from_numpy(x.numpy().copy()) for x in tensors))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", WORKING)
def test_functions_that_look_at_numbers(name):
    got, wanted = run(trt, WORKING[name]), run(torch, WORKING[name])
    for g, w in zip(got if isinstance(got, tuple) else (got,), wanted if isinstance(wanted, tuple) else (wanted,)):
        torch.testing.assert_close(torch.from_numpy(g.numpy().copy()), w)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REFUSED)
def test_what_pytorch_refuses_too(name):
    with pytest.raises(RuntimeError):
        run(torch, REFUSED[name])
    with pytest.raises(RuntimeError, match="vmap"):
        run(trt, REFUSED[name])


def test_an_empty_batch_has_no_element_to_look_at():
    with pytest.raises(RuntimeError, match="batch of size 0"):
        trt.vmap(lambda a: trt.histc(a, 5))(trt.ones(0, 3))


@pytest.mark.parametrize(
    "f",
    [
        lambda t, a: a.sum() * 0.5,
        lambda t, a: a.sum().long() * 1.5,
        lambda t, a: t.where(a.sum() > 3, a.sum(), 0.0),
        lambda t, a: a.sum().clamp(min=0.5),
        lambda t, a: a.sum() * t.tensor(0.5, dtype=t.float64),
        lambda t, a: a.sum() * t.ones(2, dtype=t.float16),
        lambda t, a: t.trapezoid(a),
    ],
)
def test_a_number_keeps_the_type_of_elements_without_dimensions(f):
    got, wanted = trt.vmap(lambda a: f(trt, a))(trt.ones(4, 3)), torch.vmap(lambda a: f(torch, a))(torch.ones(4, 3))
    assert str(got.dtype) == str(wanted.dtype)
    torch.testing.assert_close(torch.from_numpy(got.numpy().copy()), wanted)
