"""Coefficients of the special functions (cysrc/loops/special_functions.h), for 64-bit mantissas: Chebyshev series whose tails are
below 2^-70 of the function, and power series with exact coefficients.

    python tools/vmath_check/fit_special.py > cysrc/loops/special_coefficients.h

Every value is computed by mpmath with 60 digits at the Chebyshev nodes. Formulas: DLMF 10 (Bessel functions), 9 (Airy), 8.12 (incomplete gamma
function, uniform expansion), 25.11 (zeta).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from mpmath import mp, mpf

mp.dps = 60
Function = Callable[[mpf], mpf]
TAIL = mpf(2) ** -70


def chebyshev(f: Function, nodes: int = 64) -> list[mpf]:
    """Coefficients of f on [-1, 1], as many as are above the tail; the first one halved."""
    angles = [mp.pi * (2 * i + 1) / (2 * nodes) for i in range(nodes)]
    values = [f(mp.cos(a)) for a in angles]
    found = [2 * sum(v * mp.cos(k * a) for v, a in zip(values, angles)) / nodes for k in range(nodes)]
    found[0] /= 2
    size = max(abs(v) for v in values)
    count = max(k for k in range(nodes) if abs(found[k]) > TAIL * size) + 1
    if count > nodes - 6:
        raise ValueError(f"{nodes} nodes are too few")
    return found[:count]


def between(low: float, high: float, f: Function) -> Function:
    """f on [low, high] as a function on [-1, 1]."""
    return lambda t: f((mpf(high) - low) / 2 * t + (mpf(high) + low) / 2)


def reciprocal(start: float, f: Function, power: int = 1) -> Function:
    """f on [start, inf) as a function of t = 2 (start / x)^power - 1; t = -1, infinity, is no node."""
    return lambda t: f(start / mp.root((t + 1) / 2, power))


def zero(f: Function, near: float) -> mpf:
    return mp.findroot(f, near)


J0, J1 = (lambda x: mp.besselj(0, x)), (lambda x: mp.besselj(1, x))
Y0, Y1 = (lambda x: mp.bessely(0, x)), (lambda x: mp.bessely(1, x))


def modulus(order: int, wanted: str) -> Function:
    """P or x Q with J = sqrt(2 / (pi x)) (P cos c - Q sin c), Y = ... (P sin c + Q cos c), c = x - (order / 2 + 1 / 4) pi."""

    def f(x: mpf) -> mpf:
        c, size = x - (mpf(order) / 2 + mpf(1) / 4) * mp.pi, mp.sqrt(mp.pi * x / 2)
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        return size * (j * mp.cos(c) + y * mp.sin(c)) if wanted == "p" else x * size * (y * mp.cos(c) - j * mp.sin(c))

    return f


def airy_modulus(wanted: str) -> Function:
    """P or zeta Q of Ai(-z) = (P sin c - Q cos c) / (sqrt(pi) z^(1/4)), c = zeta + pi / 4, as functions of zeta = 2 / 3 z^(3/2)."""

    def f(zeta: mpf) -> mpf:
        z = (mpf(3) / 2 * zeta) ** (mpf(2) / 3)
        c, size = zeta + mp.pi / 4, mp.sqrt(mp.pi) * z ** mpf("0.25")
        a, b = mp.airyai(-z), mp.airybi(-z)
        return size * (a * mp.sin(c) + b * mp.cos(c)) if wanted == "p" else zeta * size * (b * mp.sin(c) - a * mp.cos(c))

    return f


def airy_decay(zeta: mpf) -> mpf:
    z = (mpf(3) / 2 * zeta) ** (mpf(2) / 3)
    return 2 * mp.sqrt(mp.pi) * z ** mpf("0.25") * mp.exp(zeta) * mp.airyai(z)


def over_zeros(f: Function, zeros: list[mpf], odd: bool) -> Function:
    """f(x) / ((x^2 - r1^2) (x^2 - r2^2)), and over x where f is odd, as a function of x^2."""

    def g(square: mpf) -> mpf:
        x = mp.sqrt(square)
        return f(x) / (x if odd else 1) / mp.fprod(square - r * r for r in zeros)

    return g


def regular_y0(square: mpf) -> mpf:
    x = mp.sqrt(square)
    return Y0(x) - 2 / mp.pi * mp.log(x) * J0(x)


def regular_y1(square: mpf) -> mpf:
    x = mp.sqrt(square)
    return (Y1(x) - 2 / mp.pi * (mp.log(x) * J1(x) - 1 / x)) / x


ERFCX_CENTRE = 2
SERIES: list[tuple[str, str, Function]] = [
    ("i0_far", "sqrt(x) e^-x I0(x), t = 16 / x - 1", reciprocal(8, lambda x: mp.sqrt(x) * mp.exp(-x) * mp.besseli(0, x))),
    ("i1_far", "sqrt(x) e^-x I1(x), t = 16 / x - 1", reciprocal(8, lambda x: mp.sqrt(x) * mp.exp(-x) * mp.besseli(1, x))),
    ("k0_far", "sqrt(x) e^x K0(x), t = 4 / x - 1", reciprocal(2, lambda x: mp.sqrt(x) * mp.exp(x) * mp.besselk(0, x))),
    ("k1_far", "sqrt(x) e^x K1(x), t = 4 / x - 1", reciprocal(2, lambda x: mp.sqrt(x) * mp.exp(x) * mp.besselk(1, x))),
    ("j0_near", "J0(x) over its two zeros, t = x^2 / 32 - 1", between(0, 64, over_zeros(J0, [zero(J0, 2.4), zero(J0, 5.5)], False))),
    ("j1_near", "J1(x) / x over its two zeros, t = x^2 / 32 - 1", between(0, 64, over_zeros(J1, [zero(J1, 3.8), zero(J1, 7.0)], True))),
    ("y0_near", "Y0(x) - 2 / pi log(x) J0(x), t = x^2 / 32 - 1", between(0, 64, regular_y0)),
    ("y1_near", "(Y1(x) - 2 / pi (log(x) J1(x) - 1 / x)) / x, t = x^2 / 32 - 1", between(0, 64, regular_y1)),
    ("p0", "P of order 0, t = 128 / x^2 - 1", reciprocal(8, modulus(0, "p"), 2)),
    ("q0", "x Q of order 0", reciprocal(8, modulus(0, "q"), 2)),
    ("p1", "P of order 1", reciprocal(8, modulus(1, "p"), 2)),
    ("q1", "x Q of order 1", reciprocal(8, modulus(1, "q"), 2)),
    ("airy_middle", "Ai(x) on [-4.5, 2]", between(-4.5, 2, mp.airyai)),
    ("airy_decay", "2 sqrt(pi) x^(1/4) e^z Ai(x), z = 2 / 3 x^(3/2), t = 3.5 / z - 1", reciprocal(1.75, airy_decay)),
    ("airy_p", "P of Ai(-x), t = 72 / z^2 - 1", reciprocal(6, airy_modulus("p"), 2)),
    ("airy_q", "z Q of Ai(-x)", reciprocal(6, airy_modulus("q"), 2)),
    ("erfcx_series", f"(x + {ERFCX_CENTRE}) e^(x^2) erfc(x), t = (x - {ERFCX_CENTRE}) / (x + {ERFCX_CENTRE})",
     lambda t: (lambda x: (x + ERFCX_CENTRE) * scaled_erfc(x))(ERFCX_CENTRE * (1 + t) / (1 - t))),
    ("lgamma1p", "lgamma(1 + a) / a, t = 2 a - 1", between(0, 1, lambda a: mp.loggamma(1 + a) / a)),
]  # fmt: skip


def scaled_erfc(x: mpf) -> mpf:
    """e^(x^2) erfc(x), from where mpmath would take for ever on by the asymptotic series."""
    if x < 1000:
        return mp.exp(x * x) * mp.erfc(x)
    term = total = mpf(1)
    for k in range(1, 12):
        term *= -(2 * k - 1) / (2 * x * x)
        total += term
    return total / (x * mp.sqrt(mp.pi))


# ---- power series: exact coefficients --------------------------------------------------------------------------------


def harmonic(n: int) -> Fraction:
    return sum((Fraction(1, k) for k in range(1, n + 1)), Fraction(0))


def factorial(n: int) -> int:
    return n * factorial(n - 1) if n else 1


def multiply(a: list[Fraction], b: list[Fraction]) -> list[Fraction]:
    return [sum((a[i] * b[k - i] for i in range(k + 1)), Fraction(0)) for k in range(min(len(a), len(b)))]


def stirling(count: int) -> list[Fraction]:
    """g_k of Gamma(a) ~ sqrt(2 pi / a) (a / e)^a (g_0 + g_1 / a + ...): the exponential of the Bernoulli series (DLMF 5.11.3)."""
    logarithm = [Fraction(0)] * (count + 1)
    for j in range(1, count // 2 + 2):
        if 2 * j - 1 <= count:
            numerator, denominator = mp.bernfrac(2 * j)
            logarithm[2 * j - 1] = Fraction(int(numerator), int(denominator)) / (2 * j * (2 * j - 1))
    g = [Fraction(1)]
    for n in range(1, count + 1):
        g.append(sum((k * logarithm[k] * g[n - k] for k in range(1, n + 1)), Fraction(0)) / n)
    return g


def temme(rows: int, columns: int) -> list[list[Fraction]]:
    """The Taylor coefficients of c_k(eta) (DLMF 8.12.10 to 8.12.12): c_0 = 1 / mu - 1 / eta, c_k = c_(k-1)' / eta + (-1)^k g_k / mu, where
    eta^2 / 2 = mu - log(1 + mu)."""
    n = columns + 2 * rows + 4
    # mu = eta + a_2 eta^2 + ...: from mu mu' = eta (1 + mu)
    a = [Fraction(0), Fraction(1)]
    for k in range(2, n + 2):
        rest = a[k - 1] - sum((a[i] * (k + 1 - i) * a[k + 1 - i] for i in range(2, k)), Fraction(0))
        a.append(rest / (k + 1))
    # 1 / mu = (b_0 + b_1 eta + ...) / eta
    b = [Fraction(1)]
    for k in range(1, n):
        b.append(-sum((a[i + 1] * b[k - i] for i in range(1, k + 1)), Fraction(0)))
    g = stirling(rows)
    # all of c_k from eta^-1 on
    c = [Fraction(0), *b[1:]]
    found = [c[1 : columns + 1]]
    for k in range(1, rows):
        derivative = [(i + 1) * c[i + 2] for i in range(len(c) - 2)]  # of eta^0, eta^1, ...
        shifted = derivative  # over eta: index 0 is eta^-1
        c = [x + (-1) ** k * g[k] * y for x, y in zip(shifted, b)]
        if c[0] != 0:
            raise ValueError(f"c_{k} has a pole")
        found.append(c[1 : columns + 1])
    return found


def digits(value: mpf | Fraction) -> str:
    value = mpf(value.numerator) / value.denominator if isinstance(value, Fraction) else value
    return f"K({mp.nstr(value, 24, strip_zeros=False, min_fixed=0, max_fixed=0)})"


def table(name: str, values: list, comment: str) -> None:
    print(f"/* {comment} */")
    print(f"TABLE({name}) = {{")
    texts = [digits(v) for v in values]
    for i in range(0, len(texts), 4):
        print("    " + ", ".join(texts[i : i + 4]) + ("," if i + 4 < len(texts) else ""))
    print("};")


def split(name: str, value: mpf) -> None:
    """A constant as a number of 24 bits and the rest."""
    shift = 23 - int(mp.floor(mp.log(abs(value), 2)))
    high = mp.nint(mp.ldexp(value, shift)) / mpf(2) ** shift
    print(f"#define {name}_HI K({mp.nstr(high, 24)})")
    print(f"#define {name}_LO {digits(value - high)}")


def main() -> None:
    print("/* Written by tools/vmath_check/fit_special.py: Chebyshev series (lowest order first) and power series of special_functions.h, which")
    print(" * includes this once for each type that it computes in. */")
    for name, comment, f in SERIES:
        table(name, chebyshev(f, 96), comment)
    k0 = [harmonic(k) / factorial(k) ** 2 for k in range(18)]
    table("k0_series", k0, "H_k / k!^2: K0(x) = -(log(x / 2) + gamma) I0(x) + sum over k of this (x / 2)^(2 k)")
    table("i0_series", [Fraction(1, factorial(k) ** 2) for k in range(30)], "1 / k!^2")
    table("i1_series", [Fraction(1, factorial(k) * factorial(k + 1)) for k in range(30)], "1 / (k! (k + 1)!)")
    k1 = [(mp.psi(0, k + 1) + mp.psi(0, k + 2)) / (factorial(k) * factorial(k + 1)) for k in range(18)]
    table("k1_series", k1, "(psi(k + 1) + psi(k + 2)) / (k! (k + 1)!)")
    bernoulli = [mp.bernoulli(2 * j) / mp.factorial(2 * j) for j in range(1, 14)]
    table("bernoulli", bernoulli, "B_2j / (2 j)!, j = 1, ...")
    table("stirling", [mp.bernoulli(2 * j) / (2 * j * (2 * j - 1)) for j in range(1, 13)], "B_2j / (2 j (2 j - 1)), j = 1, ...")
    rows, columns = 7, 26
    table("temme", [v for row in temme(rows, columns) for v in row], f"c_k(eta) of DLMF 8.12, {rows} rows of {columns} Taylor coefficients")
    for name, f, near in (("J0_ZERO_1", J0, 2.4), ("J0_ZERO_2", J0, 5.5), ("J1_ZERO_1", J1, 3.8), ("J1_ZERO_2", J1, 7.0)):
        split(name, zero(f, near))


if __name__ == "__main__":
    main()
