"""vector_math.h on every instruction set this CPU runs: ulp bounds against mpmath, special values, integers, complex, and
that an element's result does not depend on its place in the array."""

from __future__ import annotations

import functools
import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mpmath", reason="the exact values come from mpmath")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "vmath_check"))

from build import FORMS, MARCH, Functions, levels
from reference import BINARY, UNARY, arguments, exact_pairs, walk, worst

INF, NAN = math.inf, math.nan
INTEGERS = ["u8", "i8", "i16", "i32", "i64"]
SIZES = {"u8": "u1", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8"}
FLOATS = {"f32": "f4", "f64": "f8"}


@pytest.fixture(scope="module", params=[level for level in MARCH if level != "avx512_forms"])
def functions(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Functions:
    if request.param not in levels():
        pytest.skip(f"this CPU has no {request.param}")
    return Functions(request.param, tmp_path_factory.mktemp("vmath"))


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Functions:
    if "avx512_forms" not in levels():
        pytest.skip("this CPU has no AVX-512")
    return Functions("avx512_forms", tmp_path_factory.mktemp("vmath"))


@pytest.mark.parametrize("kind", list(FLOATS))
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_error_within_bound(functions: Functions, name: str, kind: str) -> None:
    operands = arguments(name, kind, 400, seed=3)
    error, place = worst(name, kind, functions.call(name, kind, *operands), operands)
    assert error <= (UNARY.get(name) or BINARY[name]).bound[kind], f"{name} {kind}: {error} ulp at {place}"


@functools.cache
def walked(name: str, kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Arguments and the values there, for every level of the processor."""
    x = walk(kind)
    if name in ("sin", "cos", "tan"):
        x = x[np.abs(x) <= 1e6]  # larger ones are the blocks'
    if name in ("digamma", "rsqrt", "reciprocal"):
        x = x[(x > 0) | (name == "reciprocal") & (x != 0)]  # poles are in SPECIAL; left of 0 digamma's zeros have no relative bound
    return x, *exact_pairs(name, x)


@pytest.mark.parametrize("kind", list(FLOATS))
@pytest.mark.parametrize("name", list(UNARY))
def test_every_exponent(functions: Functions, name: str, kind: str) -> None:
    """Subnormal, huge, and where results overflow and underflow: NaN, infinity and ulp as the exact value has them."""
    x, high, low = walked(name, kind)
    got = functions.call(name, kind, x)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = high.astype(FLOATS[kind])
        assert np.isnan(got).tolist() == np.isnan(high).tolist(), x[np.isnan(got) != np.isnan(high)][:5]
        assert (got[np.isinf(rounded)] == rounded[np.isinf(rounded)]).all(), x[np.isinf(rounded) & (got != rounded)][:5]
        error = np.abs((got - high) - low) / np.abs(np.spacing(rounded.astype(FLOATS[kind])))
    over = np.isfinite(rounded) & ~(error <= UNARY[name].bound[kind] + 1e-6)
    assert not over.any(), f"{error[over].max()} ulp at {x[over][error[over].argmax()]!r}, {over.sum()} places"


@pytest.mark.parametrize("kind", list(FLOATS))
@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sines_next_to_their_zeros(functions: Functions, forms: Functions, name: str, kind: str) -> None:
    """The numbers next to multiples of half of pi, where all that is left of the argument is what the parts of pi leave."""
    half_turns = np.concatenate([np.arange(1, 400), np.arange(1, 63_000, 97), -np.arange(1, 63_000, 1009)])
    x = (half_turns * (math.pi / 2)).astype(FLOATS[kind])
    high, low = exact_pairs(name, x)
    for level in (functions, forms):
        error = np.abs((level.call(name, kind, x) - high) - low) / np.abs(np.spacing(high.astype(FLOATS[kind])))
        assert error.max() <= 2, f"{error.max()} ulp at {x[error.argmax()]!r}"


def test_roots_round_as_the_instruction(forms: Functions) -> None:
    """Float: every mantissa of an even and an odd exponent, which are all there are. Double: squares next to the middle between two numbers, and random bits."""
    for exponent in (127, 128):
        x = (np.uint32(exponent << 23) + np.arange(1 << 23, dtype=np.uint32)).view("f4")
        assert (forms.call("sqrt", "f32", x) == np.sqrt(x)).all()
    rng = np.random.default_rng(0)
    roots = (rng.integers(1 << 52, 1 << 53, 20_000)).tolist()
    middles = np.array([float(root * root + root) for root in roots])  # (root + 1/2)^2 less a quarter
    random = rng.integers(0x0600000000000000, 0x7FF0000000000000, 1_000_000).view("f8")
    for x in (np.nextafter(middles, 0), middles, np.nextafter(middles, INF), random):
        assert (forms.call("sqrt", "f64", x) == np.sqrt(x)).all()


@pytest.mark.parametrize("name", [n for n in UNARY if n not in ("erfinv", "lgamma", "digamma", "reciprocal", "sqrt")])
def test_float_agrees_with_double_on_many_arguments(functions: Functions, name: str) -> None:
    (x,) = arguments(name, "f32", 30_000, seed=9)
    got, exact = functions.call(name, "f32", x), functions.call(name, "f64", x.astype("f8"))
    finite = np.isfinite(got)
    assert (np.abs(exact[~finite]) > 3.4e38).all()
    ulp = np.spacing(np.maximum(np.abs(exact[finite]), 1e-44).astype("f4")).astype("f8")
    assert (np.abs(got[finite] - exact[finite]) / ulp).max() <= UNARY[name].bound["f32"] + 0.01


@pytest.mark.parametrize("kind", list(FLOATS))
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_result_is_independent_of_position(functions: Functions, name: str, kind: str) -> None:
    operands = arguments(name, kind, 120, seed=5)
    whole = functions.call(name, kind, *operands)
    for i in range(len(whole)):
        alone = functions.call(name, kind, *(x[i : i + 1] for x in operands))
        assert alone.tobytes() == whole[i : i + 1].tobytes(), f"element {i} of {operands}"
    for start, stop in ((1, 38), (3, 70), (7, 24)):
        part = functions.call(name, kind, *(x[start:stop] for x in operands))
        assert part.tobytes() == whole[start:stop].tobytes()


@pytest.mark.parametrize(("name", "kind"), [form for form in FORMS if form[0] in UNARY])
def test_result_of_a_form_is_independent_of_its_neighbours(forms: Functions, name: str, kind: str) -> None:
    """Ordinary numbers among zeros, subnormals, infinities and negative ones, which some forms leave to an instruction."""
    (ordinary,) = arguments(name, kind, 120, seed=5)
    x = np.random.default_rng(0).permutation(np.concatenate([ordinary, walk(kind)[::29], np.array([0, -0.0, INF, -INF, NAN] * 3, FLOATS[kind])]))
    whole = forms.call(name, kind, x)
    for i in range(len(x)):
        assert forms.call(name, kind, x[i : i + 1]).tobytes() == whole[i : i + 1].tobytes(), f"{x[i]!r} beside {x[i // 8 * 8 : i // 8 * 8 + 16]}"


@pytest.mark.parametrize("kind", list(FLOATS))
def test_where_the_exponential_ends(functions: Functions, kind: str) -> None:
    """expm1 up to infinity without a NaN in between; the tails of sigmoid and silu in which exp(-x) is infinite and they are not 0 yet."""
    top = {"f32": 88.722839, "f64": 709.782712893384}[kind]
    x = np.linspace(top - 1, top + 1, 4001).astype(FLOATS[kind])
    got = functions.call("expm1", kind, x)
    assert not np.isnan(got).any() and (got[1:] >= got[:-1]).all() and np.isinf(got[x > top + 1e-4]).all() and np.isfinite(got[x < top - 1e-4]).all()
    tail = np.linspace(-top, -top + 2, 2001).astype(FLOATS[kind])
    wide = tail.astype(np.longdouble)
    exact = 1 / (1 + np.exp(-wide))
    for name, value in (("sigmoid", exact), ("silu", wide * exact)):
        error = np.abs(functions.call(name, kind, tail) - value) / np.spacing(np.abs(value).astype(FLOATS[kind]))
        assert (error <= UNARY[name].bound[kind] + 0.01).all(), (name, float(error.max()))


SPECIAL = {
    "exp": [(INF, INF), (-INF, 0.0), (0.0, 1.0), (1e4, INF), (-1e4, 0.0)],
    "exp2": [(INF, INF), (-INF, 0.0), (0.0, 1.0), (5.0, 32.0), (-3.0, 0.125), (1e4, INF)],
    "expm1": [(INF, INF), (-INF, -1.0), (0.0, 0.0), (-0.0, -0.0), (1e-40, 1e-40)],
    "log": [(0.0, -INF), (-0.0, -INF), (-1.0, NAN), (INF, INF), (1.0, 0.0), (-INF, NAN)],
    "log2": [(0.0, -INF), (-1.0, NAN), (INF, INF), (1.0, 0.0), (8.0, 3.0), (0.25, -2.0)],
    "log10": [(0.0, -INF), (-1.0, NAN), (INF, INF), (1.0, 0.0), (1000.0, 3.0)],
    "log1p": [(-1.0, -INF), (-2.0, NAN), (INF, INF), (0.0, 0.0), (-0.0, -0.0), (1e-40, 1e-40)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-1.0, NAN), (4.0, 0.5)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (1e-40, 1e-40)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN)],
    "asin": [(0.0, 0.0), (-0.0, -0.0), (1.5, NAN), (-INF, NAN), (1.0, math.pi / 2), (-1.0, -math.pi / 2)],
    "acos": [(1.0, 0.0), (-1.0, math.pi), (1.5, NAN), (-2.0, NAN), (INF, NAN)],
    "atan": [(0.0, 0.0), (-0.0, -0.0), (INF, math.pi / 2), (-INF, -math.pi / 2)],
    "sinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "cosh": [(0.0, 1.0), (INF, INF), (-INF, INF)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (1e30, 1.0), (1e-40, 1e-40)],
    "asinh": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "acosh": [(1.0, 0.0), (0.5, NAN), (-3.0, NAN), (INF, INF), (-INF, NAN)],
    "atanh": [(0.0, 0.0), (-0.0, -0.0), (1.0, INF), (-1.0, -INF), (2.0, NAN), (INF, NAN)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (30.0, 1.0)],
    "erfc": [(0.0, 1.0), (INF, 0.0), (-INF, 2.0), (40.0, 0.0)],
    "erfinv": [(0.0, 0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (-INF, NAN)],
    "lgamma": [(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-3.0, INF), (INF, INF), (-INF, INF)],
    "digamma": [(0.0, -INF), (-0.0, INF), (-1.0, NAN), (-7.0, NAN), (INF, INF)],
    "sigmoid": [(0.0, 0.5), (INF, 1.0), (-INF, 0.0)],
    "logsigmoid": [(INF, 0.0), (-INF, -INF)],
    "log1pexp": [(INF, INF), (-INF, 0.0)],
    "sinc": [(0.0, 1.0), (-0.0, 1.0), (1.0, 0.0), (INF, 0.0)],
    "i0": [(0.0, 1.0), (INF, INF), (-INF, INF)],
    "gelu": [(0.0, 0.0), (INF, INF), (-INF, NAN), (100.0, 100.0), (-100.0, 0.0), (3e38, 3e38), (-3e38, 0.0)],
    "gelu_tanh": [(0.0, 0.0), (INF, INF), (-INF, NAN), (100.0, 100.0), (-100.0, 0.0), (3e38, 3e38), (-3e38, 0.0)],
    "silu": [(0.0, 0.0), (INF, INF), (-INF, NAN), (3e38, 3e38), (-3e38, 0.0)],
    "mish": [(0.0, 0.0), (INF, INF), (-INF, NAN), (1e3, 1e3), (3e38, 3e38), (-3e38, 0.0)],
    "floor": [(2.5, 2.0), (-2.5, -3.0), (-0.0, -0.0), (INF, INF), (1e30, 1e30), (0.99, 0.0), (-0.5, -1.0)],
    "ceil": [(2.5, 3.0), (-2.5, -2.0), (-0.5, -0.0), (-INF, -INF), (8388609.0, 8388609.0)],
    "trunc": [(2.7, 2.0), (-2.7, -2.0), (-0.5, -0.0), (INF, INF), (-1e30, -1e30)],
    "round": [(2.5, 2.0), (3.5, 4.0), (-0.4, -0.0), (-2.5, -2.0), (INF, INF), (8388607.5, 8388608.0)],
    "frac": [(2.5, 0.5), (-2.5, -0.5)],
    "sign": [(3.0, 1.0), (-3.0, -1.0), (0.0, 0.0), (-INF, -1.0)],
    "angle": [(3.0, 0.0), (-3.0, math.pi)],
}


@pytest.mark.parametrize("kind", list(FLOATS))
@pytest.mark.parametrize("name", list(SPECIAL))
def test_special_values(functions: Functions, name: str, kind: str) -> None:
    with np.errstate(over="ignore"):
        x = np.array([a for a, _ in SPECIAL[name]], FLOATS[kind])
        want = np.array([b for _, b in SPECIAL[name]], FLOATS[kind])
    tiny = kind == "f32" and np.array([abs(a) == 1e-40 for a, _ in SPECIAL[name]])
    x, want = (np.repeat(v, 5) for v in (x, want))
    got = functions.call(name, kind, x)
    assert np.isnan(got).tolist() == np.isnan(want).tolist()
    number = ~np.isnan(want)
    np.testing.assert_array_max_ulp(got[number], want[number], 1)
    if name not in ("gelu", "gelu_tanh", "silu", "mish") and not np.any(tiny):
        assert np.signbit(got[number]).tolist() == np.signbit(want[number]).tolist()


@pytest.mark.parametrize("kind", list(FLOATS))
def test_nan_passes_through_every_function(functions: Functions, kind: str) -> None:
    x = np.full(19, NAN, FLOATS[kind])
    for name in UNARY:
        assert np.isnan(functions.call(name, kind, x)).all(), name
    for name in ("atan2", "hypot", "maximum", "minimum", "fmod", "remainder", "logaddexp"):
        for a, b in ((x, np.ones_like(x)), (np.ones_like(x) * 2, x)):
            assert np.isnan(functions.call(name, kind, a, b)).all(), name


@pytest.mark.parametrize("kind", list(FLOATS))
@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("pow", np.power), ("atan2", np.arctan2), ("fmod", np.fmod), ("remainder", np.remainder), ("fmax", np.fmax),
        ("fmin", np.fmin), ("maximum", np.maximum), ("minimum", np.minimum), ("copysign", np.copysign), ("hypot", np.hypot),
        ("nextafter", np.nextafter),
    ],
)
def test_pairs_of_special_values(functions: Functions, name: str, reference: np.ufunc, kind: str) -> None:
    values = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, -3.0, 1.5, -7.25, 1e30, -1e30, 1e-30, INF, -INF, NAN]
    a, b = (np.array(v, FLOATS[kind]) for v in zip(*itertools.product(values, values), strict=True))
    got = functions.call(name, kind, a, b)
    with np.errstate(all="ignore"):
        want = reference(a, b)
    assert np.isnan(got).tolist() == np.isnan(want).tolist()
    number = ~np.isnan(want)
    np.testing.assert_array_max_ulp(got[number], want[number], 2)
    if name in ("pow", "atan2", "fmod", "copysign", "nextafter"):
        assert np.signbit(got[number]).tolist() == np.signbit(want[number]).tolist()


def test_floor_divide_of_floats_is_pythons(functions: Functions) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=500) * 50, rng.normal(size=500)
    assert functions.call("floor_divide", "f64", a, b).tolist() == [x // y for x, y in zip(a, b, strict=True)]
    assert functions.call("remainder", "f64", a, b).tolist() == [x % y for x, y in zip(a, b, strict=True)]
    got = functions.call("floor_divide", "f64", [1.0, -1.0, 0.0], [0.0, 0.0, 0.0])
    assert got[:2].tolist() == [INF, -INF] and np.isnan(got[2])


def test_float_remainder_is_exact(functions: Functions) -> None:
    rng = np.random.default_rng(4)
    a = (rng.normal(size=4000) * 10.0 ** rng.uniform(-20, 20, 4000)).astype("f4")
    b = (rng.normal(size=4000) * 10.0 ** rng.uniform(-20, 20, 4000)).astype("f4")
    assert functions.call("fmod", "f32", a, b).tobytes() == np.fmod(a, b).tobytes()


def test_remainders_of_doubles_are_exact_at_any_quotient(functions: Functions) -> None:
    rng = np.random.default_rng(5)
    a = rng.normal(size=4000) * 10.0 ** rng.uniform(-30, 30, 4000)
    b = rng.normal(size=4000) * 10.0 ** rng.uniform(-30, 30, 4000)
    b[::3] = a[::3] / np.round(rng.uniform(1, 1e6, len(a[::3])))  # quotients next to integers
    assert functions.call("fmod", "f64", a, b).tobytes() == np.fmod(a, b).tobytes()


def test_floor_divide_of_single_floats_is_the_exact_quotients(functions: Functions) -> None:
    from fractions import Fraction

    rng = np.random.default_rng(6)
    b = rng.normal(size=2000).astype("f4")
    a = (b * np.round(rng.uniform(-1e6, 1e6, 2000))).astype("f4")
    exact = [math.floor(Fraction(float(x)) / Fraction(float(y))) for x, y in zip(a, b, strict=True)]
    assert functions.call("floor_divide", "f32", a, b).tolist() == [float(np.float32(q)) for q in exact]


@pytest.mark.parametrize("kind", list(FLOATS))
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_trigonometric_blocks_take_any_argument(functions: Functions, name: str, kind: str) -> None:
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.uniform(-10, 10, 300), 10.0 ** rng.uniform(5, 37, 300), [0.0, 1e6]]).astype(FLOATS[kind])
    want = getattr(np, name)(x.astype("f8"))
    got = functions.call(f"{name}_block", kind, x)
    np.testing.assert_allclose(got, want, rtol=4 * np.finfo(FLOATS[kind]).eps)
    again = x.copy()
    functions.call(f"{name}_block", kind, again, out=again)
    assert again.tobytes() == got.tobytes()


@pytest.mark.parametrize("kind", list(FLOATS))
def test_logaddexp_and_xlogy(functions: Functions, kind: str) -> None:
    eps = np.finfo(FLOATS[kind]).eps
    rng = np.random.default_rng(2)
    a, b = (rng.normal(size=300).astype(FLOATS[kind]) * 20 for _ in range(2))
    want = np.logaddexp(a.astype("f8"), b.astype("f8"))
    assert (np.abs(functions.call("logaddexp", kind, a, b) - want) <= 4 * eps * np.maximum(np.abs(a), np.abs(b))).all()
    assert functions.call("logaddexp", kind, [INF, -INF, INF], [INF, -INF, -INF]).tolist() == [INF, -INF, INF]
    got = functions.call("xlogy", kind, [0.0, 0.0, 2.0, 0.0], [0.0, INF, 1.0, -1.0])
    assert got.tolist() == [0.0, 0.0, 0.0, 0.0]
    assert np.isnan(functions.call("xlogy", kind, [0.0], [NAN])).all()


@pytest.mark.parametrize("kind", list(FLOATS))
def test_predicates(functions: Functions, kind: str) -> None:
    x = np.array([0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-40] * 9, FLOATS[kind])
    for name in ("isnan", "isinf", "isfinite", "signbit"):
        assert functions.call(name, kind, x).tolist() == getattr(np, name)(x).tolist()


@pytest.mark.parametrize("kind", INTEGERS)
def test_integer_division_is_pythons_and_never_traps(functions: Functions, kind: str) -> None:
    info = np.iinfo(SIZES[kind])
    rng = np.random.default_rng(0)
    edges = sorted({info.min, info.min + 1, -7, -3, -2, -1, 0, 1, 2, 3, 7, info.max - 1, info.max} & set(range(-8, 8))
                   | {info.min, info.min + 1, info.max - 1, info.max})
    edges = [e for e in edges if info.min <= e <= info.max]
    pairs = list(itertools.product(edges, edges))
    pairs += list(zip(rng.integers(info.min, info.max, 500).tolist(), rng.integers(info.min, info.max, 500).tolist(), strict=True))
    pairs += list(zip(rng.integers(info.min, info.max, 500).tolist(), rng.integers(0, 100, 500).tolist(), strict=True))
    a, b = (np.array(v, SIZES[kind]) for v in zip(*pairs, strict=True))

    def wrap(values: list[int]) -> list[int]:
        return [((v - info.min) % (info.max - info.min + 1)) + info.min for v in values]

    def truncated(x: int, y: int) -> int:
        return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)

    for name, f in {
        "floor_divide": lambda x, y: x // y,
        "remainder": lambda x, y: x % y,
        "div_trunc": truncated,
        "fmod": lambda x, y: x - y * truncated(x, y),
    }.items():
        assert functions.call(name, kind, a, b).tolist() == wrap([f(x, y) if y else 0 for x, y in pairs]), name
    assert functions.call("gcd", kind, a, b).tolist() == wrap([math.gcd(x, y) for x, y in pairs])
    small = (np.abs(a.astype(object)) < 11) & (np.abs(b.astype(object)) < 11)
    got = functions.call("lcm", kind, a[small], b[small]).tolist()
    assert got == [math.lcm(int(x), int(y)) for x, y in zip(a[small], b[small], strict=True)]


@pytest.mark.parametrize("kind", INTEGERS)
def test_integer_power_and_shifts(functions: Functions, kind: str) -> None:
    info, bits = np.iinfo(SIZES[kind]), np.dtype(SIZES[kind]).itemsize * 8
    low = max(info.min, -5)
    pairs = list(itertools.product(range(low, 6), range(low, 70)))

    def wrap(v: int) -> int:
        return ((v - info.min) % (info.max - info.min + 1)) + info.min

    def power(x: int, y: int) -> int:
        if y >= 0:
            return x**y
        return x**-y if x in (1, -1) else 0

    a, b = (np.array(v, SIZES[kind]) for v in zip(*pairs, strict=True))
    assert functions.call("pow", kind, a, b).tolist() == [wrap(power(x, y)) for x, y in pairs]
    left = [wrap(x << y) if 0 <= y < bits else 0 for x, y in pairs]
    right = [x >> y if 0 <= y < bits else (-1 if x < 0 else 0) for x, y in pairs]
    assert functions.call("lshift", kind, a, b).tolist() == left
    assert functions.call("rshift", kind, a, b).tolist() == right


@pytest.mark.parametrize("kind", INTEGERS)
def test_integer_bits_signs_and_extremes(functions: Functions, kind: str) -> None:
    rng = np.random.default_rng(1)
    info = np.iinfo(SIZES[kind])
    a, b = (rng.integers(info.min, info.max, 130, SIZES[kind], endpoint=True) for _ in range(2))
    a[0] = info.min
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "maximum", "minimum"):
        assert functions.call(name, kind, a, b).tolist() == getattr(np, name)(a, b).tolist(), name
    assert functions.call("bitwise_not", kind, a).tolist() == np.invert(a).tolist()
    assert functions.call("abs", kind, a).tolist() == np.abs(a).tolist()
    assert functions.call("sign", kind, a).tolist() == np.sign(a).tolist()


def test_bool_operations(functions: Functions) -> None:
    a, b = np.array([0, 0, 1, 1] * 9, "u1"), np.array([0, 1, 0, 1] * 9, "u1")
    assert functions.call("bitwise_not", "b8", a).tolist() == (1 - a).tolist()
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "maximum", "minimum"):
        assert functions.call(name, "b8", a, b).tolist() == getattr(np, name)(a, b).tolist()


COMPLEX = {
    "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh, "exp2": lambda z: np.exp(z * np.log(2)), "expm1": np.expm1,
    "log2": lambda z: np.log(z) / np.log(2), "log10": np.log10, "log1p": np.log1p, "reciprocal": lambda z: 1 / z,
    "rsqrt": lambda z: 1 / np.sqrt(z), "sigmoid": lambda z: 1 / (1 + np.exp(-z)), "sign": lambda z: z / np.abs(z),
    "silu": lambda z: z / (1 + np.exp(-z)), "sinc": lambda z: np.sin(np.pi * z) / (np.pi * z), "conj": np.conj,
    "abs": np.abs, "angle": np.angle,
}


@pytest.mark.parametrize("kind", ["c64", "c128"])
@pytest.mark.parametrize("name", list(COMPLEX))
def test_complex_functions(functions: Functions, name: str, kind: str) -> None:
    rng = np.random.default_rng(0)
    z = ((rng.normal(size=301) + 1j * rng.normal(size=301)) * rng.uniform(0.1, 3, 301)).astype({"c64": "c8", "c128": "c16"}[kind])
    want = COMPLEX[name](z.astype("c16"))
    got = functions.call(name, kind, z)
    tolerance = {"c64": 3e-7, "c128": 2e-15}[kind]
    assert (np.abs(got - want) <= tolerance * np.maximum(np.abs(want), 0.2)).all()


@pytest.mark.parametrize("kind", ["c64", "c128"])
def test_complex_arithmetic_does_not_overflow_on_the_way(functions: Functions, kind: str) -> None:
    big = {"c64": 1e38, "c128": 1e308}[kind]
    z = np.array([complex(big, big), complex(big, -big), complex(-big, 0.0)] * 6, {"c64": "c8", "c128": "c16"}[kind])
    np.testing.assert_allclose(functions.call("div", kind, z, z), np.ones(18), rtol=1e-6)
    assert np.isfinite(functions.call("abs", kind, z)).all()
    assert np.isfinite(functions.call("sqrt", kind, z)).all()
    rng = np.random.default_rng(3)
    a, b = (rng.normal(size=99) + 1j * rng.normal(size=99) for _ in range(2))
    tolerance = {"c64": 4e-7, "c128": 1e-15}[kind]
    for name, want in (("mul", a * b), ("div", a / b), ("add", a + b), ("pow", a**b), ("xlogy", a * np.log(b))):
        assert (np.abs(functions.call(name, kind, a, b) - want) <= 4 * tolerance * np.maximum(np.abs(want), 0.5)).all(), name


def test_complex_special_values_follow_c99(functions: Functions) -> None:
    got = functions.call("exp", "c128", [complex(-INF, 1.0), complex(INF, 0.0), complex(0.0, INF)])
    assert got[0] == 0 and got[1].real == INF and np.isnan(got[2].real)
    assert functions.call("log", "c128", [0j])[0].real == -INF
    assert functions.call("sqrt", "c128", [complex(-4.0, -0.0)])[0] == complex(0.0, -2.0)
    assert functions.call("isinf", "c64", [complex(NAN, INF), 1j]).tolist() == [True, False]
    assert functions.call("isnan", "c64", [complex(NAN, INF), 1j]).tolist() == [True, False]


def test_digamma_reflects_and_lgamma_of_negatives(functions: Functions) -> None:
    x = np.array([-0.5, -1.5, -2.25, -10.75])
    from mpmath import digamma, gamma, log

    np.testing.assert_allclose(functions.call("digamma", "f64", x), [float(digamma(v)) for v in x], rtol=1e-14)
    np.testing.assert_allclose(functions.call("lgamma", "f64", x), [float(log(abs(gamma(v)))) for v in x], rtol=1e-13)


# ---- AVX-512's own forms ----------------------------------------------------------------------------------------------------------------

CHECKED_FORMS = [(name, kind) for name, kind in FORMS if name in UNARY]
FOR_HALVES = {"gelu_f16": 2.0**-14, "gelu_bf16": 2.0**-14}


def test_every_form_is_checked() -> None:
    assert {name for name, _ in FORMS} - set(UNARY) == {"abs", *FOR_HALVES}
    assert CHECKED_FORMS


@pytest.mark.parametrize(("name", "kind"), CHECKED_FORMS)
def test_forms_are_within_two_ulp(forms: Functions, name: str, kind: str) -> None:
    (x,) = arguments(name, kind, 1500, seed=4)
    error, place = worst(name, kind, forms.call(name, kind, x), (x,))
    assert error <= 2, f"{name} {kind}: {error} ulp at {place}"
    x, high, low = walked(name, kind)
    got = forms.call(name, kind, x)
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = high.astype(FLOATS[kind])
        assert np.isnan(got).tolist() == np.isnan(high).tolist(), x[np.isnan(got) != np.isnan(high)][:5]
        assert (got[np.isinf(rounded)] == rounded[np.isinf(rounded)]).all(), x[np.isinf(rounded) & (got != rounded)][:5]
        error = np.abs((got - high) - low) / np.abs(np.spacing(rounded))
    over = np.isfinite(rounded) & ~(error <= 2)
    assert not over.any(), f"{error[over].max()} ulp at {x[over][error[over].argmax()]!r}, {over.sum()} places"


@pytest.mark.parametrize(("name", "kind"), CHECKED_FORMS)
def test_forms_of_special_values_and_of_any_count(forms: Functions, name: str, kind: str) -> None:
    special = SPECIAL.get(name, []) + [(NAN, NAN)]
    with np.errstate(over="ignore"):
        x, want = (np.array(v, FLOATS[kind]) for v in zip(*special, strict=True))
    np.testing.assert_array_equal(forms.call(name, kind, x), want)
    (x,) = arguments(name, kind, 60, seed=5)
    whole = forms.call(name, kind, x)
    for count in range(1, 40):
        out = np.full(48, 7, FLOATS[kind])
        forms.call(name, kind, x[:count], out=out)
        assert out[:count].tobytes() == whole[:count].tobytes() and (out[count:] == 7).all(), count


@pytest.mark.parametrize("name", list(FOR_HALVES))
def test_gelu_of_halves_rounds_as_gelu_does(forms: Functions, name: str) -> None:
    x = np.concatenate([np.linspace(-13, 14, 20_001), np.geomspace(1e-30, 1, 2000), -np.geomspace(1e-30, 1, 2000)]).astype("f4")
    got, want = forms.call(name, "f32", x).astype("f8"), forms.call("gelu", "f32", x).astype("f8")
    assert (np.abs(got - want) <= FOR_HALVES[name] * np.abs(want)).all()
    special = np.array([INF, -INF, NAN, 3e38, -3e38, 0.0, 1e-40], "f4")
    np.testing.assert_array_max_ulp(forms.call(name, "f32", special), forms.call("gelu", "f32", special), 8)


@pytest.mark.skipif("avx512" not in levels(), reason="this CPU has no AVX-512")
def test_the_shared_text_has_the_same_bits_with_avx2_and_avx512(tmp_path: Path) -> None:
    """Nothing is contracted, so instruction sets with fused multiply-adds round alike."""
    narrow, wide = (Functions(level, tmp_path) for level in ("avx2", "avx512"))
    for name in (*UNARY, *BINARY):
        for kind in FLOATS:
            operands = arguments(name, kind, 300, seed=6)
            assert narrow.call(name, kind, *operands).tobytes() == wide.call(name, kind, *operands).tobytes(), (name, kind)
