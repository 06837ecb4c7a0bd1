"""What the functions of special_math.h should return, as reference.py says it of vector_math.h; `amplitude` gives those that oscillate the size in
whose last place errors near a zero are counted. Used by check.py and tests/loops/test_special_math.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from mpmath import mp, mpf
from reference import Function, sample, ulp_error

LIMITS = {"f32": 4.0, "f64": 2.0}


@dataclass
class Special(Function):
    """`integers`: places among the operands that hold degrees."""

    amplitude: Callable[..., mpf] | None = None
    integers: tuple[int, ...] = ()


def special(f: Callable[..., mpf], *ranges: tuple[float, float], double: list[tuple[float, float]] | None = None, **extra) -> Special:
    return Special(f, {"f32": list(ranges), "f64": double or list(ranges)}, extra.pop("bound", LIMITS), **extra)


def scaled(f: Callable[[mpf], mpf], sign: int) -> Callable[[mpf], mpf]:
    return lambda x: f(x) * mp.exp(sign * abs(x))


def _ndtr(x: mpf) -> mpf:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _erfcx(x: mpf) -> mpf:
    if x < 1000:
        return mp.exp(x * x) * mp.erfc(x)
    return mp.hyp2f0(mpf("0.5"), 1, -1 / (x * x)) / (x * mp.sqrt(mp.pi)) if x < 1e100 else 1 / (x * mp.sqrt(mp.pi))


def _ndtri(y: mpf) -> mpf:
    if y > mpf("0.5"):
        return -_ndtri(1 - y)
    if y > mpf("1e-4"):
        return mp.sqrt(2) * mp.erfinv(2 * y - 1)
    t = mp.sqrt(-2 * mp.log(y))
    return mp.findroot(lambda x: mp.log(_ndtr(x)) - mp.log(y), -t + mp.log(t * t * 2 * mp.pi) / (2 * t))


def _airy_amplitude(x: mpf) -> mpf:
    return mp.hypot(mp.airyai(x), mp.airybi(x)) if x < -1 else mpf(0)


def _bessel_amplitude(order: int) -> Callable[[mpf], mpf]:
    return lambda x: mp.hypot(mp.besselj(order, abs(x)), mp.bessely(order, abs(x))) if abs(x) > (mpf("0.3") if order == 0 else 1) else mpf(0)


def _phase_amplitude(x: mpf) -> mpf:
    return 1 / abs(x) if abs(x) > 2 else mpf(0)


def _gamma(upper: bool) -> Callable[[mpf, mpf], mpf]:
    def f(a: mpf, x: mpf) -> mpf:
        return mp.gammainc(a, x, mp.inf, regularized=True) if upper else mp.gammainc(a, 0, x, regularized=True)

    return f


def _zeta(s: mpf, q: mpf) -> mpf:
    return mp.zeta(s, q)


def _polygamma(n: mpf, x: mpf) -> mpf:
    return mp.psi(int(n), x)


def recurrence(first: Callable[[mpf], mpf], step: Callable[[mpf, int, mpf, mpf], mpf]) -> tuple[Callable[..., mpf], Callable[..., mpf]]:
    """A polynomial by its recurrence in many digits, and the size of the neighbouring degrees as its amplitude."""

    def pair(x: mpf, n: mpf) -> tuple[mpf, mpf]:
        before, current = mpf(1), first(x)
        for k in range(1, int(n)):
            before, current = current, step(x, k, before, current)
        return (before, current) if n > 0 else (mpf(0), mpf(1))

    def amplitude(x: mpf, n: mpf) -> mpf:
        return max(abs(v) for v in pair(x, n))

    return lambda x, n: pair(x, n)[1], amplitude


def _chebyshev(first: Callable[[mpf], mpf], shifted: bool, *ranges: tuple[float, float]) -> Special:
    moved = (lambda x: 2 * x - 1) if shifted else (lambda x: x)
    f, amplitude = recurrence(lambda x: first(moved(x)), lambda x, k, before, current: 2 * moved(x) * current - before)
    return special(f, *ranges, (0, 40), amplitude=amplitude, integers=(1,))


def _polynomial(first, step, low: float, high: float) -> Special:
    f, amplitude = recurrence(first, step)
    return special(f, (low, high), (0, 30), amplitude=amplitude, integers=(1,))


KINDS = {"t": lambda x: x, "u": lambda x: 2 * x, "v": lambda x: 2 * x - 1, "w": lambda x: 2 * x + 1}
J, Y, I, K = mp.besselj, mp.bessely, mp.besseli, mp.besselk
SMALL = (1e-30, 1.0)
UNARY: dict[str, Special] = {
    "special_airy_ai": special(mp.airyai, (-40, 8), (-3, 3), (1e-3, 10), double=[(-200, 30), (-6, 3), (2, 103)], amplitude=_airy_amplitude),
    "special_bessel_j0": special(lambda x: J(0, x), (-8, 8), (8, 400), (1, 1e6), SMALL, amplitude=_bessel_amplitude(0)),
    "special_bessel_j1": special(lambda x: J(1, x), (-8, 8), (8, 400), (1, 1e6), SMALL, amplitude=_bessel_amplitude(1)),
    "special_bessel_y0": special(lambda x: Y(0, x), (1e-3, 8), (8, 400), (1, 1e6), SMALL, amplitude=_bessel_amplitude(0)),
    "special_bessel_y1": special(lambda x: Y(1, x), (1e-3, 8), (8, 400), (1, 1e6), SMALL, amplitude=_bessel_amplitude(1)),
    "special_i0": special(lambda x: I(0, x), (-9, 9), (-90, 90), double=[(-9, 9), (-712, 712)]),
    "special_i1": special(lambda x: I(1, x), (-9, 9), (-90, 90), SMALL, double=[(-9, 9), (-712, 712), SMALL]),
    "special_i0e": special(scaled(lambda x: I(0, x), -1), (-9, 9), (-90, 90), (1, 1e5)),
    "special_i1e": special(scaled(lambda x: I(1, x), -1), (-9, 9), (-90, 90), (1, 1e5), SMALL),
    "special_k0": special(lambda x: K(0, x), (1e-3, 3), (1, 80), SMALL, double=[(1e-3, 3), (1, 700), SMALL]),
    "special_k1": special(lambda x: K(1, x), (1e-3, 3), (1, 80), SMALL, double=[(1e-3, 3), (1, 700), SMALL]),
    "special_k0e": special(scaled(lambda x: K(0, x), 1), (1e-3, 3), (1, 80), (1, 1e5), SMALL),
    "special_k1e": special(scaled(lambda x: K(1, x), 1), (1e-3, 3), (1, 80), (1, 1e5), SMALL),
    "special_spherical_bessel_j0": special(lambda x: mp.sinc(x), (-5, 5), (-500, 500), SMALL, amplitude=_phase_amplitude),
    "special_erfcx": special(_erfcx, (-9, 30), (-1, 4), (1, 1e30), SMALL, double=[(-26, 100), (-1, 4), (1, 1e200), SMALL]),
    "special_ndtr": special(_ndtr, (-13, 8), (-2, 2), double=[(-38, 8), (-2, 2)]),
    "special_log_ndtr": special(lambda x: mp.log1p(-_ndtr(-x)) if x > 0 else mp.log(_ndtr(x)), (-13, 8), (-2, 2), (-1000, 0), double=[(-38, 37), (-2, 2), (-1000, 0)]),
    "special_ndtri": special(_ndtri, (0.001, 0.999), (0.4, 0.6), (1e-36, 0.1), double=[(0.001, 0.999), (0.4, 0.6), (1e-300, 0.1)]),
}  # fmt: skip
BINARY: dict[str, Special] = {
    "special_gammainc": special(_gamma(False), (0.001, 30), (0.001, 30)),
    "special_gammaincc": special(_gamma(True), (0.001, 30), (0.001, 30)),
    "special_zeta": special(_zeta, (1.01, 30), (0.01, 30)),
    "special_polygamma": special(_polygamma, (1, 12), (0.01, 30), integers=(0,)),
    **{f"special_chebyshev_{k}": _chebyshev(first, False, (-1.5, 1.5)) for k, first in KINDS.items()},
    **{f"special_shifted_chebyshev_{k}": _chebyshev(first, True, (-0.2, 1.2)) for k, first in KINDS.items()},
    "special_hermite_h": _polynomial(lambda x: 2 * x, lambda x, k, b, c: 2 * (x * c - k * b), -6, 6),
    "special_hermite_he": _polynomial(lambda x: x, lambda x, k, b, c: x * c - k * b, -6, 6),
    "special_laguerre": _polynomial(lambda x: 1 - x, lambda x, k, b, c: ((2 * k + 1 - x) * c - k * b) / (k + 1), -5, 20),
    "special_legendre": _polynomial(lambda x: x, lambda x, k, b, c: ((2 * k + 1) * x * c - k * b) / (k + 1), -1.5, 1.5),
}
# Second ranges of the incomplete gamma functions: both operands close to each other, and small a.
NEAR = {"special_gammainc": [(50, 5000)], "special_gammaincc": [(50, 5000)]}


def arguments(name: str, kind: str, count: int, seed: int = 0) -> list[np.ndarray]:
    """Samples for each operand of `name`."""
    rng = np.random.default_rng(seed)
    if name in UNARY:
        ranges = UNARY[name].ranges[kind]
        return [np.concatenate([sample(lo, hi, count // len(ranges), kind, rng) for lo, hi in ranges])]
    row = BINARY[name]
    drawn = [sample(lo, hi, count, kind, rng) for lo, hi in row.ranges[kind]]
    for i in row.integers:
        drawn[i] = np.floor(drawn[i])
    if name in NEAR:
        low, high = NEAR[name][0]
        a = sample(low, high, count // 3, "f64", rng)
        x = a * (1 + rng.normal(0, 2, count // 3) / np.sqrt(a))
        small = np.exp(rng.uniform(np.log(1e-8), 0, count // 3))
        drawn = [np.concatenate([d, n, s]).astype(drawn[0].dtype) for d, n, s in zip(drawn, (a, x), (small, rng.uniform(1e-3, 3, count // 3)), strict=True)]
    return drawn


def worst(name: str, kind: str, got: np.ndarray, operands: list[np.ndarray]) -> tuple[float, tuple[float, ...]]:
    """Largest error and the arguments where it occurs: in ulp of the value, or of the amplitude where that is larger."""
    row = UNARY.get(name) or BINARY[name]
    digits = 24 if kind == "f32" else 53
    largest, place = 0.0, tuple(float(x[0]) for x in operands)
    for y, *args in zip(got.tolist(), *(x.tolist() for x in operands), strict=True):
        exact = row.f(*(mpf(a) for a in args))
        size = row.amplitude(*(mpf(a) for a in args)) if row.amplitude else mpf(0)
        if size > abs(exact) and np.isfinite(y):
            error = float(abs(mpf(y) - exact) / mpf(2) ** (int(mp.floor(mp.log(size, 2))) - digits + 1))
        else:
            error = ulp_error(y, exact, kind)
        if not error <= largest:
            largest, place = error, tuple(args)
    return largest, place
