"""Minimax polynomial coefficients of the vector math kernels.

Prints cysrc/loops/vector_math_polynomials.h: every row of FITS is fitted with the Remez exchange algorithm in 50-digit
arithmetic and rounded to the kernel's type. Run it after changing a row; the maximum weighted error is in the comments.

    python tools/vmath_check/fit.py > cysrc/loops/vector_math_polynomials.h
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mpmath import erfc, erfinv, mp, mpf

mp.dps = 50
Function = Callable[[mpf], mpf]


@dataclass
class Fit:
    """`name` approximates `f` on [lo, hi] by a polynomial of `terms` coefficients; the error is weighted by `weight`. The `apart` lowest
    coefficients become constants, for callers that take the last steps with their rounding errors; the function then has the others."""

    name: str
    f: Function
    lo: float
    hi: float
    terms: int
    weight: Function
    bits: int  # 32 or 64: type the coefficients are rounded to
    apart: int = 0


def remez(fit: Fit, rounds: int = 12) -> tuple[list[mpf], mpf]:
    """Coefficients (lowest power first) and the largest weighted error of the minimax polynomial."""
    n, lo, hi = fit.terms, mpf(fit.lo), mpf(fit.hi)
    grid = [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * (i + mpf(1) / 2) / (40 * n)) for i in range(40 * n)]
    values = [fit.f(x) for x in grid]
    weights = [fit.weight(x) for x in grid]
    nodes = [min(40 * n - 1, (i * 40 * n) // n + (0 if i < n else -1)) for i in range(n + 1)]
    coefficients: list[mpf] = []
    worst = mpf(0)
    for _ in range(rounds):
        a = mp.matrix(n + 1, n + 1)
        b = mp.matrix(n + 1, 1)
        for row, k in enumerate(nodes):
            power = mpf(1)
            for col in range(n):
                a[row, col] = power
                power *= grid[k]
            a[row, n] = (-1) ** row / weights[k]
            b[row] = values[k]
        solution = mp.lu_solve(a, b)
        coefficients, level = [solution[i] for i in range(n)], abs(solution[n])
        errors = [(mp.polyval(coefficients[::-1], x) - v) * w for x, v, w in zip(grid, values, weights, strict=True)]
        worst = max(abs(e) for e in errors)
        if worst < level * mpf("1.02"):
            break
        extrema: list[int] = []  # one extremum per run of equal sign
        for i, e in enumerate(errors):
            if extrema and (errors[extrema[-1]] > 0) == (e > 0):
                if abs(e) > abs(errors[extrema[-1]]):
                    extrema[-1] = i
            else:
                extrema.append(i)
        while len(extrema) > n + 1:
            extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
        if len(extrema) < n + 1:
            break
        nodes = extrema
    return coefficients, worst


def rational(f: Function, lo: float, hi: float, p: int, q: int) -> tuple[list[mpf], list[mpf], mpf]:
    """Numerator (p terms) and monic-constant denominator (1 + q terms) through Chebyshev points of [lo, hi]."""
    n = p + q
    nodes = [(mpf(lo) + hi) / 2 + (mpf(hi) - lo) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    a, b = mp.matrix(n, n), mp.matrix(n, 1)
    for row, z in enumerate(nodes):
        value = f(z)
        for col in range(p):
            a[row, col] = z**col
        for col in range(q):
            a[row, p + col] = -value * z ** (col + 1)
        b[row] = value
    x = mp.lu_solve(a, b)
    num, den = [x[i] for i in range(p)], [mpf(1)] + [x[p + i] for i in range(q)]
    points = [lo + (mpf(hi) - lo) * (i + mpf(1) / 2) / 500 for i in range(500)]
    worst = max(abs(mp.polyval(num[::-1], z) / mp.polyval(den[::-1], z) - f(z)) for z in points)
    return num, den, worst


def in_sqrt(g: Function) -> Function:
    """`g` as a function of z = x * x."""
    return lambda z: g(mp.sqrt(z))


def one(_: mpf) -> mpf:
    return mpf(1)


def scaled_normal_tail(a: float) -> Function:
    """u -> (x + a) * exp(x^2 / 2) * P(X > x) for a standard normal X, where u = (x - a) / (x + a)."""

    def f(u: mpf) -> mpf:
        x = a * (1 + u) / (1 - u)
        return (x + a) * mp.exp(x * x / 2) * erfc(x / mp.sqrt(2)) / 2

    return f


def scaled_erfc(a: float) -> Function:
    """u -> (x + a) * exp(x^2) * erfc(x), where u = (x - a) / (x + a)."""

    def f(u: mpf) -> mpf:
        x = a * (1 + u) / (1 - u)
        return (x + a) * mp.exp(x * x) * erfc(x)

    return f


def fits() -> Iterator[Fit]:
    """The table of kernels."""
    half_ln2, tiny = 0.34662, mpf("1e-16")
    for bits, sizes in (
        (64, {"exp": 11, "exp2": 11, "log": 7, "sin": 6, "cos": 6, "atan": 11, "asin": 13, "erf": 12, "nle": 20,
              "tail": 27, "erfc": 29}),
        (32, {"exp": 6, "exp2": 6, "log": 9, "sin": 3, "cos": 3, "tanh": 5, "erf": 7, "nle": 9, "tail": 12, "erfc": 13,
              "asin": 5, "tan": 7, "sinh": 4, "atanh": 6}),
    ):
        big = bits == 64

        def row(name: str, f: Function, lo: float, hi: float, weight: Function = one, key: str = "",
                sizes: dict[str, int] = sizes, bits: int = bits) -> Fit:
            return Fit(f"{name}_f{bits}", f, lo, hi, sizes[key or name], weight, bits)

        yield row("exp", lambda r: (mp.expm1(r) - r) / r**2, -half_ln2, half_ln2, lambda r: abs(r) + tiny)
        yield row("exp2", lambda r: mp.expm1(r * mp.ln2) / r, -0.5001, 0.5001, lambda r: abs(r) + tiny)
        if big:
            def log_series(z: mpf) -> mpf:
                s = mp.sqrt(z)
                return (mp.log((1 + s) / (1 - s)) / s - 2) / z
            yield row("log", log_series, 1e-9, 0.1716**2, lambda z: z)
            yield row("atan", in_sqrt(lambda t: (mp.atan(t) - t) / t**3), 1e-8, 0.4143**2, lambda z: z)
            yield row("asin", in_sqrt(lambda t: (mp.asin(t) - t) / t**3), 1e-8, 0.25, lambda z: z)
        else:
            yield row("log", lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, -0.2930, 0.4143, lambda f: f * f + tiny)
            yield row("tanh", in_sqrt(lambda t: (mp.tanh(t) - t) / t**3), 1e-8, 0.36, lambda z: z)
            yield row("asin", in_sqrt(lambda t: (mp.asin(t) - t) / t**3), 1e-8, 0.25, lambda z: z)
            yield row("tan", in_sqrt(lambda t: (mp.tan(t) - t) / t**3), 1e-8, 0.6170, lambda z: z)
            yield row("sinh", in_sqrt(lambda t: (mp.sinh(t) - t) / t**3), 1e-8, 1.0, lambda z: z)
            yield row("atanh", in_sqrt(lambda t: (mp.atanh(t) - t) / t**3), 1e-8, 0.25, lambda z: z)
        yield row("sin", in_sqrt(lambda t: (mp.sin(t) - t) / t**3), 1e-8, 0.6170, lambda z: z)
        yield row("cos", in_sqrt(lambda t: (mp.cos(t) - 1 + t * t / 2) / t**4), 1e-6, 0.6170, lambda z: z * z)
        erf_limit = 1.0 if big else 0.93
        yield row("erf", in_sqrt(lambda t: mp.erf(t) / t - 1), 1e-10, erf_limit**2)
        yield Fit(f"neg_log_erfc_f{bits}", lambda a: -mp.log(erfc(a)), 0.99 if big else 0.92, 6.0 if big else 4.0,
                  sizes["nle"], lambda a: erfc(a), bits)
        if big:
            yield Fit("cdf_f64", in_sqrt(lambda t: mp.erf(t / mp.sqrt(2)) / (2 * t)), 1e-10, 0.25, 8, one, bits)
        a_tail, top = (3.0, 39.0) if big else (2.0, 14.5)
        yield row("tail", scaled_normal_tail(a_tail), -1.0, (top - a_tail) / (top + a_tail))
        a_erfc, top = 1.6, 28.0 if big else 10.2
        yield Fit("erfc_f64" if big else "erfc_short_f64", scaled_erfc(a_erfc), -1.0, (top - a_erfc) / (top + a_erfc), sizes["erfc"], one, 64, 2 * big)


def pow_fits() -> Iterator[Fit]:
    """log2 through s = (m - 1) / (m + 1) and exp2, for float powers (in double) and double powers (in two doubles)."""

    def log2_series(s: mpf) -> mpf:
        return mp.log((1 + s) / (1 - s), 2) / s

    def log2_remainder(z: mpf) -> mpf:
        s = mp.sqrt(z)
        return (log2_series(s) - 2 / mp.ln2 - 2 * z / (3 * mp.ln2)) / z**2

    yield Fit("log2_short_f64", in_sqrt(log2_series), 1e-9, 0.1716**2, 5, one, 64)
    yield Fit("log2_remainder_f64", log2_remainder, 1e-7, 0.1716**2, 7, lambda z: z**2, 64)
    yield Fit("exp2_short_f64", lambda t: mpf(2) ** t, -0.5001, 0.5001, 7, one, 64)


def special_fits() -> Iterator[Fit]:
    """Bessel function i0 and digamma near its positive root."""
    edge = 7.75

    def i0_scaled(u: mpf) -> mpf:
        x = 2 * edge / (u + 1)
        return mp.besseli(0, x) * mp.exp(-x) * mp.sqrt(x)

    def digamma_over_distance(u: mpf) -> mpf:
        x = u + mpf(1.5)
        return mp.digamma(x) / (x - DIGAMMA_ROOT)

    def erfinv_ratio(w: mpf) -> mpf:
        """erfinv(x) / x where w = -log(1 - x^2)"""
        x = mp.sqrt(-mp.expm1(-w))
        return erfinv(x) / x if w < 30 else erfcinv_small(mp.exp(-w) / (1 + x)) / x

    def lgamma_over_roots(u: mpf) -> mpf:
        x = u + mpf(1.5)
        return mp.loggamma(x).real / ((x - 1) * (x - 2))

    for bits, parts in ((32, [(10, 0.0, 5.0), (11, 2.2, 4.1)]), (64, [(24, 0.0, 6.25), (20, 2.5, 4.0), (22, 4.0, 6.1)])):
        (terms, low, high), *tails = parts
        yield Fit(f"erfinv_f{bits}", lambda c, low=low, high=high: erfinv_ratio(c + mpf(high) / 2), 1e-12 - high / 2, high / 2, terms,
                  lambda c, high=high: 1 / erfinv_ratio(c + mpf(high) / 2), bits)
        for name, (terms, low, high) in zip(("tail", "end"), tails):
            middle = (mpf(low) + mpf(high)) / 2
            yield Fit(f"erfinv_{name}_f{bits}", lambda c, m=middle: erfinv_ratio((c + m) ** 2), low - float(middle), high - float(middle), terms,
                      lambda c, m=middle: 1 / erfinv_ratio((c + m) ** 2), bits)
    yield Fit("lgamma_f64", lgamma_over_roots, -0.75, 0.75, 15, one, 64)
    yield Fit("i0_small_f64", lambda z: (mp.besseli(0, 2 * mp.sqrt(z)) - 1) / z, 1e-9, edge**2 / 4, 14,
              lambda z: z / mp.besseli(0, 2 * mp.sqrt(z)), 64, 2)
    yield Fit("i0_large_f64", i0_scaled, -1 + 2 * edge / 800, 1.0, 25, one, 64)
    yield Fit("digamma_series_f64", lambda w: (mp.log(1 / mp.sqrt(w)) - mp.sqrt(w) / 2 - mp.digamma(1 / mp.sqrt(w))) / w, 1e-9, 1 / mpf(16), 12, lambda w: w, 64)
    yield Fit("digamma_root_f64", digamma_over_distance, -0.5001, 0.5001, 24, one, 64, 2)


DIGAMMA_ROOT = mp.findroot(mp.digamma, 1.46)


def erfcinv_small(t: mpf) -> mpf:
    """The y with erfc(y) = t for small t: Newton's steps on log(erfc(y)), which is nearly a parabola."""
    y = mp.sqrt(-mp.log(t))
    for _ in range(8):
        e = erfc(y)
        y += mp.log(e / t) * e * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    return y


def literal(c: mpf, bits: int) -> str:
    """Hexadecimal C constant of `c` rounded to the type."""
    if bits == 64:
        return float(c).hex()
    return struct.unpack("f", struct.pack("f", float(c)))[0].hex() + "f"


def define(name: str, coefficients: list[mpf], bits: int, error: mpf) -> None:
    """One inline function: the polynomial by Horner's rule, so that every multiply-add is contracted alike.

    A long float32 polynomial is two chains, of its even and its odd powers, and so are those of float64 that others wait for: one chain
    waits for its own results.
    """
    t = f"f{bits}"
    first, *rest = [literal(c, bits) for c in reversed(coefficients)]
    print(f"/* error 2^{float(mp.log(error, 2)):.1f} */\nINL {t} poly_{name}({t} x)\n{{")
    if bits == 32 and len(coefficients) >= 12 or name in ("exp_f64", "neg_log_erfc_f64"):
        chains = ("odd", "even") if len(coefficients) % 2 == 0 else ("even", "odd")
        print(f"    {t} z = (x * x), {chains[0]} = {first}, {chains[1]} = {rest[0]};")
        for i, c in enumerate(rest[1:]):
            print(f"    {chains[i % 2]} = fma_{t}({chains[i % 2]}, z, {c});")
        print(f"    return fma_{t}(odd, x, even);\n}}\n")
        return
    print(f"    {t} p = {first};")
    for c in rest:
        print(f"    p = fma_{t}(p, x, {c});")
    print("    return p;\n}\n")


def main() -> None:
    print("/* Minimax polynomials of the vector math kernels. Generated by tools/vmath_check/fit.py; the error is the")
    print(" * largest weighted one before the coefficients are rounded. Included by vector_math.h only. */")
    print("#ifndef TRT_VECTOR_MATH_POLYNOMIALS_H\n#define TRT_VECTOR_MATH_POLYNOMIALS_H")
    for fit in (*fits(), *pow_fits(), *special_fits()):
        coefficients, worst = remez(fit)
        for i, c in enumerate(coefficients[: fit.apart]):
            print(f"#define {fit.name.rpartition('_')[0].upper()}_C{i} {literal(c, fit.bits)}")
        define(fit.name, coefficients[fit.apart :], fit.bits, worst)
    num, den, worst = rational(in_sqrt(lambda t: (mp.tanh(t) / t - 1) / t**2), 1e-8, 0.36, 4, 3)
    define("tanh_num_f64", num, 64, worst)
    define("tanh_den_f64", den, 64, worst)
    high = mpf(float(DIGAMMA_ROOT))
    print(f"#define DIGAMMA_ROOT_HI {literal(high, 64)}\n#define DIGAMMA_ROOT_LO {literal(DIGAMMA_ROOT - high, 64)}\n")
    print("#endif")


if __name__ == "__main__":
    main()
