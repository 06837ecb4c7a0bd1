"""What every real function of vector_math.h should return: an mpmath expression, the domain to sample, the ulp bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from mpmath import mp, mpf

mp.dps = 45
SQRT_2_OVER_PI = mp.sqrt(2 / mp.pi)


@dataclass
class Function:
    """`domain` holds ranges (low, high); `log` ones are sampled evenly in the exponent, both signs if low is negative."""

    f: Callable[..., mpf]
    ranges: dict[str, list[tuple[float, float]]]
    bound: dict[str, float]


def _both(single: list[tuple[float, float]], double: list[tuple[float, float]] | None = None) -> dict:
    return {"f32": single, "f64": double or single}


def _beyond(limit: float, f: Callable[[mpf], mpf], high: mpf | int, low: mpf | int) -> Callable[[mpf], mpf]:
    """f, and its limits beyond +-limit, where mpmath would take for ever."""
    return lambda x: mpf(high) if x > limit else mpf(low) if x < -limit else f(x)


_exp = _beyond(1e4, mp.exp, mp.inf, 0)
_erfc = _beyond(1e4, mp.erfc, 0, 2)


def _tail(x: mpf) -> mpf:
    return _erfc(x / mp.sqrt(2)) / 2


def _sigmoid(x: mpf) -> mpf:
    return 1 / (1 + _exp(-x))


def _log1pexp(x: mpf) -> mpf:
    return max(x, mpf(0)) + mp.log1p(_exp(-abs(x)))


def _times(x: mpf, factor: mpf) -> mpf:
    return mpf(0) if factor == 0 else x * factor


def _silu(x: mpf) -> mpf:
    return _times(x, _sigmoid(x))


def _gelu_tanh(x: mpf) -> mpf:
    return _times(x, _sigmoid(2 * SQRT_2_OVER_PI * (x + mpf("0.044715") * x**3)))


def _mish(x: mpf) -> mpf:
    return _times(x, mp.tanh(_log1pexp(x)))


def _lgamma(x: mpf) -> mpf:
    if x > 0:
        return mp.loggamma(x)
    return mp.inf if x == mp.floor(x) else mp.log(mp.pi / abs(mp.sinpi(x))) - mp.loggamma(1 - x)


def _sinc(x: mpf) -> mpf:
    return mpf(1) if x == 0 else mp.sinpi(x) / (mp.pi * x)


TWO = {"f32": 2.0, "f64": 2.0}
QUOTIENT = {"f32": 2.5, "f64": 2.0}  # the plain quotient x / (1 + e^-x)
TAIL = {"f32": 2.5, "f64": 2.5}  # e^-x^2 times a quotient: five roundings
FOUR = {"f32": 4.0, "f64": 4.0}
TINY = (1e-38, 1.0)  # sampled in the exponent: see samples()
UNARY: dict[str, Function] = {
    "exp": Function(_exp, _both([(-104, 89), (-1, 1)], [(-746, 710), (-1, 1)]), TWO),
    "exp2": Function(lambda x: _exp(x * mp.log(2)), _both([(-150, 128), (-1, 1)], [(-1075, 1024), (-1, 1)]), TWO),
    "expm1": Function(_beyond(1e4, mp.expm1, mp.inf, -1), _both([(-20, 89), (-1, 1), TINY], [(-45, 710), (-1, 1), TINY]), TWO),
    "log": Function(mp.log, _both([(1e-45, 3e38), (0.5, 2)], [(1e-320, 1e308), (0.5, 2)]), TWO),
    "log2": Function(lambda x: mp.log(x, 2), _both([(1e-45, 3e38), (0.5, 2)], [(1e-320, 1e308), (0.5, 2)]), TWO),
    "log10": Function(mp.log10, _both([(1e-45, 3e38), (0.5, 2)], [(1e-320, 1e308), (0.5, 2)]), TWO),
    "log1p": Function(mp.log1p, _both([(1e-40, 3e38), (-0.999999, 2), TINY], [(1e-310, 1e308), (-0.99999999, 2)]), TWO),
    "sqrt": Function(mp.sqrt, _both([(1e-45, 3e38)], [(1e-320, 1e308)]), {"f32": 0.5, "f64": 0.5}),
    "rsqrt": Function(lambda x: 1 / mp.sqrt(x), _both([(1e-45, 3e38)], [(1e-320, 1e308)]), TWO),
    "reciprocal": Function(lambda x: 1 / x, _both([(1e-38, 1e38)], [(1e-307, 1e307)]), {"f32": 0.5, "f64": 0.5}),
    "sin": Function(mp.sin, _both([(-1e5, 1e5), (-4, 4), TINY]), TWO),
    "cos": Function(mp.cos, _both([(-1e5, 1e5), (-4, 4), TINY]), TWO),
    "tan": Function(mp.tan, _both([(-1e5, 1e5), (-4, 4), TINY]), TWO),
    "asin": Function(mp.asin, _both([(-1, 1), TINY]), TWO),
    "acos": Function(mp.acos, _both([(-1, 1), (0.99, 1)]), TWO),
    "atan": Function(mp.atan, _both([(-5, 5), (1e-38, 1e38)]), TWO),
    "sinh": Function(_beyond(1e4, mp.sinh, mp.inf, -mp.inf), _both([(-89, 89), (-1, 1), TINY], [(-710, 710), (-30, 30), (-1, 1), TINY]), TWO),
    "cosh": Function(_beyond(1e4, mp.cosh, mp.inf, mp.inf), _both([(-89, 89), (-1, 1)], [(-710, 710), (-1, 1)]), TWO),
    "tanh": Function(_beyond(1e4, mp.tanh, 1, -1), _both([(-10, 10), (-1, 1), TINY], [(-22, 22), (-1, 1), TINY]), TWO),
    "asinh": Function(mp.asinh, _both([(-5, 5), (1e-38, 3e38)], [(-5, 5), (1e-300, 1e308)]), TWO),
    "acosh": Function(mp.acosh, _both([(1, 5), (1, 3e38)], [(1, 5), (1, 1e308)]), TWO),
    "atanh": Function(mp.atanh, _both([(-1, 1), TINY]), TWO),
    "erf": Function(_beyond(1e4, mp.erf, 1, -1), _both([(-6, 6), (-1, 1), TINY]), TWO),
    "erfc": Function(_erfc, _both([(-6, 10.1), (-1, 1)], [(-6, 27.2), (-1, 1)]), TAIL),
    "erfinv": Function(mp.erfinv, _both([(-1, 1), (0.999, 1), (1e-30, 1e-3)]), FOUR),
    "lgamma": Function(_lgamma, _both([(0.01, 0.9), (2.1, 80), (3, 1e5)]), {"f32": 2.0, "f64": 4.0}),  # in double the C library's
    "digamma": Function(mp.digamma, _both([(0.01, 100), (1.2, 1.75), (1e-30, 1e30)]), TWO),
    "sigmoid": Function(_sigmoid, _both([(-104, 20), (-1, 1)], [(-746, 40), (-1, 1)]), QUOTIENT),
    "logsigmoid": Function(lambda x: -_log1pexp(-x), _both([(-100, 80), (-1, 1)], [(-700, 700), (-1, 1)]), TWO),
    "log1pexp": Function(_log1pexp, _both([(-80, 100), (-1, 1)], [(-700, 700), (-1, 1)]), TWO),
    "sinc": Function(_sinc, _both([(-20, 20), (1e-30, 1e3)]), TWO),
    "i0": Function(_beyond(1e4, lambda x: mp.besseli(0, x), mp.inf, mp.inf), _both([(-90, 90), (-8, 8)], [(-712, 712), (-8, 8)]), TWO),
    "gelu": Function(lambda x: _times(x, _tail(-x)), _both([(-14.3, 20), (-1, 1), TINY], [(-38, 20), (-1, 1), TINY]), {"f32": 3.5, "f64": 2.5}),
    "gelu_tanh": Function(_gelu_tanh, _both([(-10.7, 10), (-1, 1), TINY], [(-19, 20), (-1, 1), TINY]), QUOTIENT),
    "silu": Function(_silu, _both([(-108, 50), (-1, 1), TINY], [(-740, 50), (-1, 1), TINY]), QUOTIENT),
    "mish": Function(_mish, _both([(-87, 50), (-1, 1), TINY], [(-740, 50), (-1, 1), TINY]), TWO),
}
BINARY: dict[str, Function] = {
    "pow": Function(lambda x, y: mp.power(x, y), _both([(1e-10, 1e10), (-8, 8)], [(1e-30, 1e30), (-10, 10)]), TWO),
    "atan2": Function(mp.atan2, _both([(-10, 10), (-10, 10)]), TWO),
    "hypot": Function(mp.hypot, _both([(1e-30, 1e38), (1e-30, 1e38)], [(1e-300, 1e308), (1e-300, 1e308)]), TWO),
}


def sample(low: float, high: float, count: int, kind: str, rng: np.random.Generator) -> np.ndarray:
    """Evenly spread numbers, or evenly spread exponents when the range spans more than three decades above 0."""
    if low > 0 and high / low > 1e3:
        x = np.exp(rng.uniform(np.log(low), np.log(high), count))
    else:
        x = rng.uniform(low, high, count)
    return x.astype("f4" if kind == "f32" else "f8")


def arguments(name: str, kind: str, count: int, seed: int = 0) -> list[np.ndarray]:
    """Samples for each operand of `name`, over all ranges of its domain."""
    rng = np.random.default_rng(seed)
    if name in UNARY:
        ranges = UNARY[name].ranges[kind]
        return [np.concatenate([sample(lo, hi, count // len(ranges), kind, rng) for lo, hi in ranges])]
    return [sample(lo, hi, count, kind, rng) for lo, hi in BINARY[name].ranges[kind]]


def walk(kind: str) -> np.ndarray:
    """Numbers of every binary exponent, subnormal ones too, of both signs, and a fine grid where exponentials leave the range."""
    if kind == "f32":
        digits, exponents, grid = 24, np.arange(-149, 128), np.arange(-112, 112, 1 / 16)
    else:  # every exponent around 1 and at the ends, every fifth between
        digits, exponents = 53, np.arange(-1074, 1024)
        exponents = exponents[(np.abs(exponents) < 70) | (np.abs(exponents + 25) > 990) | (exponents % 5 == 0)]
        grid = np.concatenate([np.arange(-768, -700, 1 / 4), np.arange(-700, 700, 1.0), np.arange(700, 768, 1 / 4)])
    magnitudes = np.concatenate([np.ldexp(m, exponents) for m in (1.0, 1.4375, 2 - 2.0 ** (1 - digits))])
    return np.unique(np.concatenate([magnitudes, -magnitudes, grid, [0.0]]).astype("f4" if kind == "f32" else "f8"))


def exact_pairs(name: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The exact values of a unary function as sums of two doubles; NaN outside of its domain."""
    pairs = []
    for value in x.tolist():
        try:
            y = UNARY[name].f(mpf(value))
        except (ValueError, ZeroDivisionError):  # poles
            y = mp.nan
        high = float(y) if isinstance(y, mpf) else np.nan
        pairs.append((high, float(y - high) if np.isfinite(high) else 0.0))
    high, low = np.array(pairs).T
    return high, low


def ulp_error(got: float, exact: mpf, kind: str) -> float:
    """Distance from the exact value in units of the last place of the result (of the smallest normal below it)."""
    limit, digits, lowest = (mpf(2) ** 128, 24, -149) if kind == "f32" else (mpf(2) ** 1024, 53, -1074)
    if abs(exact) >= limit * (1 - mpf(2) ** (-digits - 1)):
        return 0.0 if np.isinf(got) and (got > 0) == (exact > 0) else float("inf")
    if not np.isfinite(got):
        return float("inf")
    exponent = int(mp.floor(mp.log(abs(exact), 2))) - digits + 1 if exact != 0 else lowest
    return float(abs(mpf(float(got)) - exact) / mpf(2) ** max(exponent, lowest))


def worst(name: str, kind: str, got: np.ndarray, operands: list[np.ndarray]) -> tuple[float, tuple[float, ...]]:
    """Largest ulp error and the arguments where it occurs."""
    f = (UNARY.get(name) or BINARY[name]).f
    largest, place = 0.0, tuple(float(x[0]) for x in operands)
    for y, *args in zip(got.tolist(), *(x.tolist() for x in operands), strict=True):
        error = ulp_error(y, f(*(mpf(a) for a in args)), kind)
        if not error <= largest:
            largest, place = error, tuple(args)
    return largest, place
