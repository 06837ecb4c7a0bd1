"""Jacobians of complex numbers are refused where PyTorch refuses them."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")

FUNCTIONS = {
    "complex result": (lambda lib: (lambda x: x * 1j), "real"),
    "complex argument": (lambda lib: (lambda z: (z * z).abs()), "complex"),
    "one complex result": (lambda lib: (lambda x: (x * 2, x * 1j)), "real"),
    "all real": (lambda lib: (lambda x: (x * 1j).abs() + x), "real"),
}


def outcome(lib, transform, name):
    make, kind = FUNCTIONS[name]
    x = lib.ones(2, dtype=lib.complex64 if kind == "complex" else lib.float32)
    try:
        found = transform(lib, make(lib), x)
    except RuntimeError as error:
        return str(error).removeprefix("jacobian: ")
    return [[y.item() for y in t.reshape(-1)] for t in (found if isinstance(found, tuple) else (found,))]


TRANSFORMS = {
    "jacrev": lambda lib, f, x: lib.func.jacrev(f)(x),
    "jacfwd": lambda lib, f, x: lib.func.jacfwd(f)(x),
    "hessian": lambda lib, f, x: lib.func.hessian(f)(x),
    "jacobian": lambda lib, f, x: lib.autograd.functional.jacobian(f, x),
    "forward mode": lambda lib, f, x: lib.autograd.functional.jacobian(f, x, strategy="forward-mode", vectorize=True),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_complex_numbers_are_refused_where_pytorch_refuses_them(transform, name) -> None:
    assert outcome(trt, TRANSFORMS[transform], name) == outcome(torch, TRANSFORMS[transform], name)


@pytest.mark.parametrize("transform", ["jacrev", "jacfwd"])
def test_an_argument_that_is_not_differentiated_must_be_real_too(transform) -> None:
    for lib in (trt, torch):
        with pytest.raises(RuntimeError, match="Expected all inputs to be real but received complex tensor at flattened input idx: 1"):
            getattr(lib.func, transform)(lambda x, z: (x * z).abs())(lib.ones(2), lib.ones(2, dtype=lib.complex64))
