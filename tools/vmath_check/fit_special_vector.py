"""Polynomials of the vectorised special functions (cysrc/loops/special_vector.h): Chebyshev series in 50 digits, cut where the rest no longer shows and
written as powers. Each is fitted twice, for float64 and, as `_short`, for float32 evaluated in double.

    python tools/vmath_check/fit_special_vector.py > cysrc/loops/special_polynomials.h

Formulas: DLMF 10 (Bessel functions), 5 (polygamma).
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from fit_special import J0, J1, between, modulus, over_zeros, reciprocal, regular_y0, regular_y1, zero
from mpmath import mp, mpf

Function = Callable[[mpf], mpf]
NODES = 72
LONGEST = 18                # coefficients of a chain
TAIL = {"": mpf(2) ** -58, "_short": mpf(2) ** -34}


def chebyshev(f: Function) -> list[mpf]:
    """Coefficients of f on [-1, 1], lowest order first, the first one halved."""
    angles = [mp.pi * (2 * i + 1) / (2 * NODES) for i in range(NODES)]
    values = [f(mp.cos(a)) for a in angles]
    found = [2 * sum(v * mp.cos(k * a) for v, a in zip(values, angles, strict=True)) / NODES for k in range(NODES)]
    found[0] /= 2
    return found


def powers(series: list[mpf]) -> list[mpf]:
    """The same polynomial in powers of its argument."""
    before, current = [mpf(1)], [mpf(0), mpf(1)]
    total = [mpf(0)] * len(series)
    total[0] = series[0]
    for c in series[1:]:
        for i, v in enumerate(current):
            total[i] += c * v
        following = [mpf(0), *(2 * v for v in current)]
        for i, v in enumerate(before):
            following[i] -= v
        before, current = current, following
    return total


def moved(values: list[mpf], scale: mpf) -> list[mpf]:
    """A polynomial of t = scale z - 1 in powers of z."""
    total = [mpf(0)] * len(values)
    for c in reversed(values):
        shifted = [mpf(0), *(scale * v for v in total[:-1])]
        total = [a - b for a, b in zip(shifted, total, strict=True)]
        total[0] += c
    return total


def ndtri_at(p: mpf) -> mpf:
    """The x with P(X > x) = p of a standard normal X, p below 1 / 2."""
    t = mp.sqrt(-2 * mp.log(p))
    x = t - mp.log(t * t * 2 * mp.pi) / (2 * t) if p < mpf("1e-3") else mp.sqrt(2) * mp.erfinv(1 - 2 * p)
    for _ in range(6):  # Newton's steps on the logarithm, which is nearly a parabola
        tail = mp.erfc(x / mp.sqrt(2)) / 2
        x += (mp.log(tail) - mp.log(p)) * tail / (mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi))
    return x


def ndtri_centre(square: mpf) -> mpf:
    q = mp.sqrt(square)
    return mp.sqrt(2) * mp.erfinv(2 * q) / q


def ndtri_tail(s: mpf) -> mpf:
    return ndtri_at(mp.exp(-s * s / 2)) / s


def ndtri_slope(t: mpf) -> mpf:
    return mp.diff(ndtri_mapped, t, h=mpf("1e-8"))


def i1_small(z: mpf) -> mpf:
    return (mp.besseli(1, 2 * mp.sqrt(z)) / mp.sqrt(z) - 1) / z


def i0_small(z: mpf) -> mpf:
    return (mp.besseli(0, 2 * mp.sqrt(z)) - 1) / z


def k0_regular(z: mpf) -> mpf:
    """K0(x) + (log(x / 2) + gamma) I0(x) over z = x^2 / 4."""
    x = 2 * mp.sqrt(z)
    return (mp.besselk(0, x) + (mp.log(x / 2) + mp.euler) * mp.besseli(0, x)) / z


def k1_regular(z: mpf) -> mpf:
    """(1 / x + log(x / 2) I1(x) - K1(x)) / (x / 4)."""
    x = 2 * mp.sqrt(z)
    return (1 / x + mp.log(x / 2) * mp.besseli(1, x) - mp.besselk(1, x)) / (x / 4)


def trigamma_near(x: mpf) -> mpf:
    return x * x * mp.psi(1, x)


def trigamma_far(w: mpf) -> mpf:
    """(psi'(x) - 1 / x - 1 / (2 x^2)) x^3, w = 1 / x^2."""
    x = 1 / mp.sqrt(w)
    return (mp.psi(1, x) - 1 / x - 1 / (2 * x * x)) * x**3


NEAR = 4  # Bessel functions have series up to here
ZERO_J0, ZERO_J1 = zero(J0, 2.4), zero(J1, 3.8)
EDGE = mpf(31) / 4
NDTRI_EDGE, NDTRI_TOP = mpf(2), mpf("38.7")


def ndtri_mapped(t: mpf) -> mpf:
    """1 / (s + 3) runs linearly."""
    low, high = 1 / (NDTRI_TOP + 3), 1 / (NDTRI_EDGE + 3)
    return ndtri_tail(1 / ((high - low) / 2 * t + (high + low) / 2) - 3)


def over_root_pi(f: Function) -> Function:
    return lambda x: f(x) / mp.sqrt(mp.pi)


# in powers of the argument itself, [0, 2 / scale], whose coefficients are all positive
FROM_ZERO = {"i1_small": 8 / EDGE**2}
# corrections, of which two digits suffice
ROUGH = {"ndtri_slope"}

# name, function on [-1, 1], coefficients that the caller adds itself, size relative to which the rest counts
FITS: list[tuple[str, Function, int, float]] = [
    ("ndtri_centre", between(0, mpf("0.1332"), ndtri_centre), 2, 2.5),
    ("ndtri_tail", ndtri_mapped, 2, 0.6),
    ("i1_small", between(0, EDGE**2 / 4, i1_small), 2, 0.5),
    ("ndtri_slope", ndtri_slope, 0, 0.5),
    ("i1_large", reciprocal(EDGE, lambda x: mp.sqrt(x) * mp.exp(-x) * mp.besseli(1, x)), 2, 0.38),
    ("i0_scaled", reciprocal(EDGE, lambda x: mp.sqrt(x) * mp.exp(-x) * mp.besseli(0, x)), 2, 0.4),
    ("k0_near", between(0, 0.25, k0_regular), 0, 4),
    ("k1_near", between(0, 0.25, k1_regular), 0, 4),
    ("ik0", between(0, 0.25, i0_small), 0, 4),
    ("ik1", between(0, 0.25, i1_small), 0, 2),
    ("k0_far", reciprocal(1, lambda x: mp.sqrt(x) * mp.exp(x) * mp.besselk(0, x)), 2, 1.1),
    ("k1_far", reciprocal(1, lambda x: mp.sqrt(x) * mp.exp(x) * mp.besselk(1, x)), 2, 1.2),
    ("j0_near", between(0, NEAR**2, over_zeros(J0, [ZERO_J0], False)), 2, 0.04),
    ("j1_near", between(0, NEAR**2, over_zeros(J1, [ZERO_J1], True)), 2, 0.013),
    ("y0_near", between(0, NEAR**2, regular_y0), 2, 0.3),
    ("y1_near", between(0, NEAR**2, regular_y1), 2, 0.08),
    ("p0", reciprocal(NEAR, over_root_pi(modulus(0, "p")), 2), 2, 0.55),
    ("q0", reciprocal(NEAR, over_root_pi(modulus(0, "q")), 2), 0, 2),
    ("p1", reciprocal(NEAR, over_root_pi(modulus(1, "p")), 2), 2, 0.55),
    ("q1", reciprocal(NEAR, over_root_pi(modulus(1, "q")), 2), 0, 2),
    ("trigamma_near", between(0, 2, trigamma_near), 2, 1),
    ("trigamma_far", between(0, 0.25, trigamma_far), 0, 1.5),
]  # fmt: skip


def literal(v: mpf) -> str:
    return float(v).hex().replace("0x1.0000000000000p", "0x1p")


def horner(values: list[mpf], x: str) -> str:
    return textwrap.fill(f"HORNER_{len(values)}({x}, {', '.join(literal(v) for v in values)})", 148, subsequent_indent=" " * 8)


def define(name: str, values: list[mpf]) -> None:
    """Long ones as two chains, in the even and the odd powers: half of the latency."""
    print(f"INL f64 poly_{name}(f64 x)\n{{")
    if len(values) > 9:
        print(f"    const f64 z = x * x;\n    const f64 even = {horner(values[::2], 'z')};\n    const f64 odd = {horner(values[1::2], 'z')};")
        print("    return fma_f64(odd, x, even);\n}")
    else:
        print(f"    return {horner(values, 'x')};\n}}")


def define_horner(longest: int) -> None:
    """Macros, since every coefficient must be a constant of the loop that a polynomial is inlined into."""
    print("/* Horner's rule; coefficients from the constant one up. */\n#define HORNER_2(x, a, b) fma_f64(b, x, a)")
    for n in range(3, longest + 1):
        print(f"#define HORNER_{n}(x, a, ...) fma_f64(HORNER_{n - 1}(x, __VA_ARGS__), x, a)")
    print()


def main() -> None:
    print("/* Written by tools/vmath_check/fit_special_vector.py: polynomials of special_vector.h on [-1, 1]. The ones with constants C0 and C1 leave these")
    print(" * to the caller. `_short`: for float32. */")
    print("#ifndef TRT_SPECIAL_POLYNOMIALS_H\n#define TRT_SPECIAL_POLYNOMIALS_H\n")
    define_horner(LONGEST)
    for name, f, apart, size in FITS:
        series = chebyshev(f)
        for suffix, tail in TAIL.items() if name not in ROUGH else [("", mpf(2) ** -8)]:
            count = max(k for k in range(NODES) if abs(series[k]) > tail * size) + 1
            if count > NODES - 8:
                raise ValueError(f"{name}: {NODES} nodes are too few")
            values = powers(series[:count])
            if name in FROM_ZERO:
                values = moved(values, FROM_ZERO[name])
            for i in range(apart):
                print(f"#define {(name + suffix).upper()}_C{i} {literal(values[i])}")
            define(name + suffix, values[apart:])
    for name, value in (("J0_SQUARE", ZERO_J0), ("J1_SQUARE", ZERO_J1)):
        square = value * value
        high = mpf(float(square))
        print(f"#define {name}_HI {literal(high)}\n#define {name}_LO {literal(square - high)}")
    low, high = 1 / (NDTRI_TOP + 3), 1 / (NDTRI_EDGE + 3)
    print(f"#define NDTRI_SCALE {literal(2 / (high - low))}\n#define NDTRI_SHIFT {literal((high + low) / (high - low))}")
    print("\n#endif")


if __name__ == "__main__":
    main()
