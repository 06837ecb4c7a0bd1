"""autograd.functional against closed forms and against PyTorch."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite.autograd import functional as F


def cube(lib):
    def f(x):
        return (x * x * x).sum()

    return f


def product(a, b):
    return a * b * b


def numbers(result):
    return [numbers(r) for r in result] if isinstance(result, (tuple, list)) else result.tolist()


def test_hessian_of_a_cube_is_diagonal() -> None:
    x = trt.tensor([1.0, 2.0, 3.0], dtype=trt.float64)
    assert F.hessian(cube(trt), x).tolist() == [[6.0, 0.0, 0.0], [0.0, 12.0, 0.0], [0.0, 0.0, 18.0]]


def run(lib):
    functional = lib.autograd.functional
    x = lib.tensor([1.0, 2.0], dtype=lib.float64)
    y = lib.tensor([3.0, 5.0], dtype=lib.float64)
    v = lib.tensor([1.0, -1.0], dtype=lib.float64)
    return [
        numbers(functional.vjp(product, (x, y), v)),
        numbers(functional.jvp(product, (x, y), (v, v))),
        numbers(functional.jacobian(product, (x, y))),
        numbers(functional.jacobian(lambda a: (a * 2, a.sum()), x)),
        numbers(functional.hessian(cube(lib), x)),
        numbers(functional.hessian(lambda a, b: product(a, b).sum(), (x, y))),
        numbers(functional.vhp(cube(lib), x, v)),
        numbers(functional.hvp(cube(lib), x, v)),
        numbers(functional.hvp(lambda a, b: product(a, b).sum(), (x, y), (v, v))),
        functional.jacobian(lambda a: a * 2, x).requires_grad,
        functional.jacobian(lambda a: a * a, x.clone().requires_grad_(), create_graph=True).requires_grad,
    ]


def test_like_pytorch() -> None:
    torch = pytest.importorskip("torch")
    assert run(trt) == run(torch)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda lib, x: lib.autograd.functional.vjp(lambda a: a * 2, x), RuntimeError, "The vector v can only be None"),
        (lambda lib, x: lib.autograd.functional.vjp(lambda a: a * 2, x, x.sum()), RuntimeError, "v has invalid size"),
        (lambda lib, x: lib.autograd.functional.hessian(lambda a: a * 2, x), RuntimeError, "should contain a single element"),
        (lambda lib, x: lib.autograd.functional.jacobian(lambda a: 3, x), TypeError, "must be either a Tensor or a tuple"),
        (lambda lib, x: lib.autograd.functional.jacobian(lambda a: lib.ones(2), x, strict=True), RuntimeError, "independent of"),
    ],
)
def test_errors(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call(trt, trt.ones(2))
