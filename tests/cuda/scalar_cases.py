"""What each function of cuda_src/scalar_math.cuh must compute: an expression of x and y, and its reference in float64 or
in NumPy's integers. Shared by test_scalar_math.py, which compiles the expressions, and emulated_checks.py, which runs
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Case(NamedTuple):
    """`reference` takes float64 arrays (integers: arrays of the dtype); arguments are drawn between low and high."""

    expression: str
    nin: int
    reference: Callable[..., np.ndarray]
    low: float = -4.0
    high: float = 4.0
    tolerance: float = 0.0  # of the reference itself


def _each(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    return np.vectorize(function, otypes=[np.float64])


def _digamma(x: float) -> float:
    return (math.lgamma(x + 1e-4) - math.lgamma(x - 1e-4)) / 2e-4


def _unary(
    name: str, reference: Callable[..., np.ndarray], low: float = -4.0, high: float = 4.0, t: float = 0.0
) -> Case:
    return Case(f"{name}(x)", 1, reference, low, high, t)


def _binary(name: str, reference: Callable[..., np.ndarray], low: float = -4.0, high: float = 4.0) -> Case:
    return Case(f"{name}(x, y)", 2, reference, low, high)


_erf, _erfc = _each(math.erf), _each(math.erfc)

REAL: dict[str, Case] = {
    **{name: _unary(name, getattr(np, name)) for name in ("exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh")},
    **{name: _unary(name, getattr(np, name)) for name in ("tanh", "ceil", "floor", "trunc", "abs", "sign", "sinc")},
    **{name: _unary(name, getattr(np, name), 0.01, 9.0) for name in ("log", "log2", "log10", "log1p", "sqrt")},
    **{f"arc{name}": _unary(f"a{name}", getattr(np, f"arc{name}"), -0.99, 0.99) for name in ("sin", "cos", "tanh")},
    **{f"arc{name}": _unary(f"a{name}", getattr(np, f"arc{name}"), 1.01, 9.0) for name in ("tan", "sinh", "cosh")},
    **{name: _binary(name, getattr(np, name)) for name in ("maximum", "minimum", "fmax", "fmin", "fmod", "hypot")},
    **{name: _binary(name, getattr(np, name)) for name in ("remainder", "floor_divide", "copysign", "logaddexp")},
    "round": _unary("round", np.rint),
    "rsqrt": _unary("rsqrt", lambda x: 1 / np.sqrt(x), 0.01, 9.0),
    "erf": _unary("erf", _erf),
    "erfc": _unary("erfc", _erfc),
    "lgamma": _unary("lgamma", _each(math.lgamma), 0.5, 20.0),
    "digamma": _unary("digamma", _each(_digamma), 0.5, 20.0, 1e-7),
    "digamma_negative": _unary("digamma", _each(_digamma), -2.9, -2.1, 1e-5),
    "erfinv": Case("erfinv(erf(x))", 1, lambda x: x, -2.0, 2.0, 2e-5),
    "i0": _unary("i0", np.i0, t=1e-8),
    "atan2": _binary("atan2", np.arctan2),
    "pow": _binary("pow", np.power, 0.1, 4.0),
    "div_trunc": _binary("div_trunc", lambda x, y: np.trunc(x / y)),
    "xlogy": _binary("xlogy", lambda x, y: x * np.log(y), 0.01, 9.0),
    "fma": Case("fma(x, y, x)", 2, lambda x, y: x * y + x),
    "frac": _unary("frac", lambda x: x - np.trunc(x)),
    "square": _unary("square", np.square),
    "reciprocal": _unary("reciprocal", np.reciprocal, 0.1, 4.0),
    "relu": _unary("relu", lambda x: np.maximum(x, 0)),
    "sigmoid": _unary("sigmoid", lambda x: 1 / (1 + np.exp(-x)), -30.0, 30.0),
    "silu": _unary("silu", lambda x: x / (1 + np.exp(-x)), -30.0, 30.0),
    "softplus": _unary("softplus", lambda x: np.logaddexp(x, 0), -30.0, 30.0),
    "log1pexp": _unary("log1pexp", lambda x: np.logaddexp(x, 0), -30.0, 30.0),
    "logsigmoid": _unary("logsigmoid", lambda x: -np.logaddexp(-x, 0), -30.0, 30.0),
    "mish": _unary("mish", lambda x: x * np.tanh(np.logaddexp(x, 0))),
    "gelu": _unary("gelu", lambda x: x * 0.5 * _erfc(-x / math.sqrt(2))),
    "gelu_f16": _unary("gelu_f16", lambda x: x * 0.5 * _erfc(-x / math.sqrt(2))),
    "gelu_bf16": _unary("gelu_bf16", lambda x: x * 0.5 * _erfc(-x / math.sqrt(2))),
    "gelu_tanh": _unary("gelu_tanh", lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    "angle": _unary("angle", lambda x: np.where(x < 0, np.pi, 0.0)),
    "parts": Case("conj(x) + real(y) + imag(x)", 2, lambda x, y: x + y),
    "clamp": Case("clamp(x, T(-1), T(2))", 1, lambda x: np.clip(x, -1, 2)),
    "where": Case("sel(x < y, x, y * 2)", 2, lambda x, y: np.where(x < y, x, y * 2)),
    "tests": Case(
        "isnan(x / (x - x)) + 2 * isinf(x / T(0)) + 4 * isfinite(x) + 8 * signbit(x)",
        1,
        lambda x: 6.0 + 8 * np.signbit(x),
        0.5,
    ),
}


def _exactly(function: Callable[[int, int], int]) -> Callable[..., np.ndarray]:
    """The function in Python's integers, wrapped to the dtype, 0 where y is 0."""

    def wrapped(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        values = [function(int(a), int(b)) % (1 << 64) if b else 0 for a, b in zip(x, y, strict=True)]
        return np.array(values, np.uint64).astype(x.dtype)

    return wrapped


def _div_trunc(x: int, y: int) -> int:
    return abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1)


def _pow(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    bits = 8 * x.itemsize
    return np.array([pow(int(a), int(b) % 16, 1 << bits) for a, b in zip(x, y, strict=True)], np.uint64).astype(x.dtype)


def _lcm(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Wrapped where it does not fit, and then made positive; NumPy's own lcm wraps last."""
    wide = x.astype(np.int64) // np.maximum(np.gcd(x, y).astype(np.int64), 1) * y.astype(np.int64)
    return np.abs(np.abs(wide).astype(x.dtype))


def _shift(x: np.ndarray, y: np.ndarray, left: bool) -> np.ndarray:
    bits, wide = 8 * x.itemsize, [int(a) for a in x]
    inside = [0 <= int(n) < bits for n in y]
    if left:
        values = [(a << int(n)) % (1 << bits) if ok else 0 for a, n, ok in zip(wide, y, inside, strict=True)]
    else:
        values = [a >> (int(n) if ok else 64) for a, n, ok in zip(wide, y, inside, strict=True)]
    return np.array([v % (1 << 64) for v in values], np.uint64).astype(x.dtype)


INTEGER: dict[str, Case] = {
    **{name: _binary(name, getattr(np, name)) for name in ("maximum", "minimum", "bitwise_and", "bitwise_or")},
    **{name: _binary(name, getattr(np, name)) for name in ("bitwise_xor", "gcd")},
    "lcm": _binary("lcm", _lcm),
    "remainder": _binary("remainder", _exactly(lambda x, y: x % y)),
    "floor_divide": _binary("floor_divide", _exactly(lambda x, y: x // y)),
    "fmod": _binary("fmod", _exactly(lambda x, y: x - _div_trunc(x, y) * y)),
    "div_trunc": _binary("div_trunc", _exactly(_div_trunc)),
    "abs": _unary("abs", np.abs),
    "sign": _unary("sign", np.sign),
    "square": _unary("square", lambda x: x * x),
    "bitwise_not": _unary("bitwise_not", np.invert),
    "rounding": Case("floor(x) + ceil(x) - trunc(x) - round(x)", 1, lambda x: x * 0),
    "pow": Case("pow(x, bitwise_and(y, T(15)))", 2, _pow),
    "lshift": _binary("lshift", lambda x, y: _shift(x, y, True)),
    "rshift": _binary("rshift", lambda x, y: _shift(x, y, False)),
}
