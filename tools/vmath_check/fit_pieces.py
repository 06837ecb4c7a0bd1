"""Tables of the functions that AVX-512 looks up by a permutation of two registers, and its polynomials: `vector_math_avx512.h` says how they are used.

Prints cysrc/loops/vector_math_pieces.h. A quarter of an octave of |x| is a piece, from 2^-3 on, with a polynomial about a point near its middle.
The point is chosen among the floats there so that the function's value is as good as a float itself: its rounding costs nothing.

    python tools/vmath_check/fit_pieces.py > cysrc/loops/vector_math_pieces.h
"""

from __future__ import annotations

import struct

from fit import Fit, Function, fits, literal, remez
from mpmath import erf, erfc, mp, mpf

DEGREE = 5
HALF_DEGREE = 3  # for the half types
PIECES = 32
POLYNOMIALS = {"exp_f32", "exp_f64", "exp2_f32", "exp2_f64", "log_f32", "log_f64"}  # of fit.py's
EXP_STEPS = 16  # of an octave
LOG_LOW, LOG_HIGH = -0.034, 0.0635  # what is left of a mantissa by its table's factor, less 1
ERF_WIDTH, ERF_DEGREE = 0.375, 12  # of the 16 pieces of erf in double
BITS = {"f32": 32, "f64": 64}
LOW = (127 - 3) << 2  # exponent and two bits of 2^-3: what is smaller belongs to the first piece
TRIES = 4000


def single(x: mpf) -> mpf:
    return mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def rounded(x: mpf, kind: str) -> mpf:
    return single(x) if kind == "f32" else mpf(float(x))


def middle_of(f: Function, a: mpf, b: mpf) -> mpf:
    """The float near the middle of [a, b] whose value is nearest to a float."""
    middle, step = single((a + b) / 2), (b - a) / 64 / TRIES
    if f(a) == f(b) or f(middle) == 0:
        return middle
    candidates = {single(middle + step * i) for i in range(-TRIES, TRIES)}
    with mp.workdps(20):
        return min(candidates, key=lambda x: abs(f(x) - single(f(x))))


def piece(i: int, f: Function, level: float, odd: bool, degree: int) -> tuple[mpf, list[mpf]]:
    """Middle and coefficients of a piece; beyond `level` only the constant."""
    a, b = mp.ldexp(1 + mpf(i % 4) / 4, i // 4 - 3), mp.ldexp(1 + mpf(i % 4 + 1) / 4, i // 4 - 3)
    if a >= level:
        return single((a + b) / 2), [single(f((a + b) / 2)), *[mpf(0)] * degree]
    if i == 0 and odd:
        fit = Fit("", lambda t: f(t) / t, 1e-9, float(b), degree, lambda t: t / f(t), 32)
        return mpf(0), [mpf(0), *remez(fit)[0]]
    if i == 0:
        a = mpf(0)
    middle = middle_of(f, a, b)
    value = single(f(middle))
    # the constant is given: the others are fitted to what is left, which is 0 in the middle
    low, high = float(a - middle), float(b - middle)

    def rest(t: mpf) -> mpf:
        return mp.diff(f, middle) if abs(t) < mpf(2) ** -40 else (f(middle + t) - f(middle)) / t

    fit = Fit("", rest, low, high, degree, lambda t: (abs(t) + mpf("1e-6")) / abs(f(middle + t)), 32)
    return middle, [value, *remez(fit)[0]]


def table(name: str, f: Function, level: float, odd: bool, slope: int, degree: int = DEGREE) -> None:
    """`slope`: t itself is added by the caller, which keeps the relative error near 0."""
    rows: list[list[str]] = [[""] * PIECES for _ in range(degree + 2)]
    for i in range(PIECES):
        middle, c = piece(i, f, level, odd, degree)
        c[1] -= slope
        for row, value in zip(rows, [middle, *c], strict=True):
            row[(i + LOW) % PIECES] = literal(value, 32)
    print(f"static const f32 {name}[{degree + 2}][{PIECES}] __attribute__((aligned(64))) = {{")
    for row in rows:
        print("    {")
        for k in range(0, PIECES, 8):
            print("        " + ", ".join(row[k : k + 8]) + ",")
        print("    },")
    print("};\n")


def define(fit: Fit, coefficients: list[mpf]) -> None:
    """A polynomial over registers by pairs of terms in x^2, which wait for each other half as long as Horner's rule; square is x * x."""
    name, _, kind = fit.name.rpartition("_")
    constants = [f"ALL_{kind}({literal(c, fit.bits)})" for c in coefficients]
    pairs = [f"FMA({high}, x, {low})" for low, high in zip(constants[::2], constants[1::2])] + constants[len(constants) // 2 * 2 :]
    print(f"INL lanes_{kind} poly_{name}_lanes_{kind}(lanes_{kind} x, lanes_{kind} square)\n{{\n    lanes_{kind} p = {pairs[-1]};")
    for pair in reversed(pairs[:-1]):
        print(f"    p = FMA(p, square, {pair});")
    print("    return p;\n}\n")


def define_array(name: str, kind: str, rows: list[list[mpf]]) -> None:
    """Rows of 16 numbers: a register of float, two of double."""
    dimension = f"[{len(rows)}]" if len(rows) > 1 else ""
    print(f"static const {kind} {name}_{kind}{dimension}[16] __attribute__((aligned(64))) = {{")
    for row in rows:
        print("    {" * (len(rows) > 1))
        for k in range(0, 16, 8):
            print("        " + ", ".join(literal(x, BITS[kind]) for x in row[k : k + 8]) + ",")
        print("    }," * (len(rows) > 1))
    print("};\n")


def factor_near(i: int, f: Function, kind: str) -> mpf:
    """A factor that takes the mantissas of [0.75, 1.5) with the four leading bits `i` to nearly 1, and whose logarithm is nearly a number of the type."""
    if i in (0, 15):
        return mpf(1)  # on both sides of 1, where the logarithm is small
    middle = 1 + (mpf(i) + 0.5) / 16 if i < 8 else mpf(0.5) + (mpf(i) + 0.5) / 32
    candidates = (rounded(1 / middle + mpf(k) / 2**21, kind) for k in range(-1000, 1000))
    with mp.workdps(30):
        return min(candidates, key=lambda c: abs(f(c) - rounded(f(c), kind)) / abs(f(c)))


def logarithm(name: str, f: Function, terms: dict[str, int]) -> None:
    """log(m) = -log(c) + log(1 + r), r = m c - 1: factors, -log(c), and log(1 + r) as r HIGH + r (LOW + r polynomial)."""
    slope = 1 / mp.log(10) if name == "log10" else 1 / mp.log(2) if name == "log2" else mpf(1)
    for kind, count in terms.items():
        factors = [factor_near(i, f, kind) for i in range(16)]
        define_array(f"{name}_factors", kind, [factors])
        define_array(f"{name}_values", kind, [[rounded(-f(c), kind) for c in factors]])

        def rest(r: mpf) -> mpf:
            return slope * (mpf(-0.5) + r / 3 if abs(r) < 1e-12 else (mp.log1p(r) - r) / r**2)

        fit = Fit(f"{name}_rest_{kind}", rest, LOG_LOW, LOG_HIGH, count, lambda r: (r**2 + mpf("1e-9")) / (abs(mp.log1p(r) * slope) + mpf("1e-9")), BITS[kind])
        define(fit, remez(fit)[0])


def erf_double() -> None:
    """Pieces of equal width in |x|, 16 of them, as tables of two registers of doubles; t itself is added by the caller."""
    rows: list[list[mpf]] = [[] for _ in range(ERF_DEGREE + 2)]
    for i in range(16):
        a, b = ERF_WIDTH * i, ERF_WIDTH * (i + 1)
        if i == 0:
            middle, value = mpf(0), mpf(0)
            c = remez(Fit("", lambda t: erf(t) / t, 1e-9, b, ERF_DEGREE, lambda t: t / erf(t), 64))[0]
        else:
            candidates = [mpf(float((a + b) / 2 + k * 2.0**-30)) for k in range(-500, 500)]
            middle = min(candidates, key=lambda x: abs(erf(x) - mpf(float(erf(x)))))
            value = mpf(float(erf(middle)))

            def rest(t: mpf, middle: mpf = middle, value: mpf = value) -> mpf:
                return mp.diff(erf, middle) if abs(t) < mpf(2) ** -60 else (erf(middle + t) - value) / t

            c = remez(Fit("", rest, float(a - middle), float(b - middle), ERF_DEGREE, lambda t, middle=middle: (abs(t) + mpf("1e-6")) / erf(middle + t), 64))[0]
        c = [c[0] - 1, *c[1:]]
        for row, x in zip(rows, [middle, value, *c], strict=True):
            row.append(x)
    define_array("erf_pieces", "f64", rows)


def tail(x: mpf) -> mpf:
    """x P(X > x) e^(x^2 / 2) of a standard normal X."""
    return x * erfc(x / mp.sqrt(2)) / 2 * mp.exp(x * x / 2)


def main() -> None:
    print("/* Pieces of functions for look-ups in registers, middles first, then the coefficients from the constant on. Generated by")
    print(" * tools/vmath_check/fit_pieces.py; included by vector_math_avx512.h only. */")
    print("#ifndef TRT_VECTOR_MATH_PIECES_H\n#define TRT_VECTOR_MATH_PIECES_H\n")
    print(f"enum {{ PIECES_DEGREE = {DEGREE}, PIECES_HALF_DEGREE = {HALF_DEGREE}, PIECES_LOW = {LOW} }};\n")
    for fit in fits():
        if fit.name in POLYNOMIALS:
            define(fit, remez(fit)[0])
    exp2_half = Fit("exp2_half_f32", lambda r: mpf(2) ** r, -0.5001, 0.5001, 5, lambda r: mpf(2) ** -r, 32)
    define(exp2_half, remez(exp2_half)[0])
    # e^r on a sixteenth of an octave
    step = float(mp.log(2) / EXP_STEPS / 2) * 1.001
    for kind, count in (("f32", 2), ("f64", 5)):
        exp_step = Fit(f"exp_step_{kind}", lambda r: mpf(0.5) + r / 6 if abs(r) < 1e-15 else (mp.expm1(r) - r) / r**2, -step, step, count, lambda r: r**2 * mp.exp(-r), BITS[kind])
        define(exp_step, remez(exp_step)[0])
        define_array("exp_steps", kind, [[mpf(2) ** (mpf(i) / EXP_STEPS) for i in range(16)]])

    # up to a sixteenth of half a turn
    def sine_rest(z: mpf) -> mpf:
        x = mp.sqrt(z)
        return mpf(-1) / 6 + z / 120 if z < mpf("1e-12") else (mp.sin(x) - x) / (x * z)

    def cosine_rest(z: mpf) -> mpf:
        return mpf(-0.5) + z / 24 if z < mpf("1e-12") else (mp.cos(mp.sqrt(z)) - 1) / z

    for kind, counts in (("f32", (2, 3)), ("f64", (5, 5))):
        for name, f, count in zip(("sine_rest", "cosine_rest"), (sine_rest, cosine_rest), counts, strict=True):
            turn = Fit(f"{name}_{kind}", f, 0, 0.0388, count, lambda z: z, BITS[kind])
            define(turn, remez(turn)[0])
        define_array("sines", kind, [[mp.sinpi(mpf(i) / 8) for i in range(16)]])
    logarithm("log", mp.log, {"f32": 5, "f64": 9})
    logarithm("log2", lambda x: mp.log(x, 2), {"f32": 5, "f64": 9})
    logarithm("log10", mp.log10, {"f32": 5, "f64": 9})
    erf_double()
    table("tanh_pieces", mp.tanh, 9.5, True, 1)
    table("erf_pieces", erf, 4.0, True, 1)
    table("tail_pieces", tail, 20.0, True, 0)
    table("tail_half_pieces", tail, 20.0, True, 0, HALF_DEGREE)
    print("#endif")


if __name__ == "__main__":
    main()
