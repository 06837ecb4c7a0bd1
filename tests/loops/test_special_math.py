"""special_math.h against mpmath: float32 within an ulp and float64 within two of the exact value (of the amplitude near zeros of what oscillates), over the
domains of tools/vmath_check/reference_special.py, scalar and as the operators' vectors; limits, poles and arguments outside of the domain."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorrt_lite as trt

mpmath = pytest.importorskip("mpmath", reason="the exact values come from mpmath")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "vmath_check"))

from build import Functions
from reference_special import BINARY, UNARY, arguments, worst

LIMITS = {"f32": 1.0, "f64": 2.0}
INF, NAN = math.inf, math.nan


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Functions:
    """Of the lowest instruction set: the one that wheels have these functions for."""
    return Functions("baseline", tmp_path_factory.mktemp("special"))


@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_error_of_scalars(functions: Functions, name: str) -> None:
    for kind in ("f32", "f64"):
        operands = arguments(name, kind, 45, seed=11)
        error, place = worst(name, kind, functions.call(name, kind, *operands), operands)
        assert error <= LIMITS[kind], f"{name} {kind}: {error} ulp at {place}"


OPERATORS = {
    **{name: name for name in ("airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "i0", "i1", "i0e", "i1e", "spherical_bessel_j0", "erfcx", "ndtr", "log_ndtr", "ndtri")},
    **{f"k{n}{e}": f"{'scaled_' * bool(e)}modified_bessel_k{n}" for n in (0, 1) for e in ("", "e")},
}  # fmt: skip


@pytest.mark.parametrize("name", list(OPERATORS))
def test_error_of_operators(name: str) -> None:
    """The loops of this machine's instruction set, with blocks that are no whole number of registers."""
    operator = getattr(trt.special, OPERATORS[name])
    for kind in ("f32", "f64"):
        (x,) = arguments(f"special_{name}", kind, 149, seed=12)
        error, place = worst(f"special_{name}", kind, operator(trt.tensor(x)).numpy(), [x])
        assert error <= LIMITS[kind], f"{name} {kind}: {error} ulp at {place}"


@pytest.mark.parametrize("order", [1, 2, 4])
def test_error_of_polygamma(order: int) -> None:
    """Order 1 has vectors of its own."""
    rng = np.random.default_rng(14)
    for kind, dtype in (("f32", np.float32), ("f64", np.float64)):
        x = np.concatenate([rng.uniform(0.01, 4, 61), rng.uniform(4, 60, 30)]).astype(dtype)
        error, place = worst("special_polygamma", kind, trt.polygamma(order, trt.tensor(x)).numpy(), [np.full_like(x, order), x])
        assert error <= LIMITS[kind], f"order {order} {kind}: {error} ulp at {place}"
    x = -rng.uniform(0.01, 6, 50)
    assert np.allclose(trt.polygamma(1, trt.tensor(x)).numpy(), [float(mpmath.psi(1, float(v))) for v in x], rtol=1e-15, atol=0)


def test_poles_of_trigamma() -> None:
    x = trt.tensor([0.0, -1.0, -3.0, INF, -INF, NAN, 1e-200, 1e300], dtype=trt.float64)
    expected = [INF, INF, INF, 0.0, NAN, NAN, INF, 1e-300]
    assert np.array_equal(trt.polygamma(1, x).numpy(), expected, equal_nan=True)


POLYNOMIALS = {
    **{f"{moved}chebyshev_{k}": f"{moved}chebyshev_polynomial_{k}" for moved in ("", "shifted_") for k in "tuvw"},
    **{"hermite_h": "hermite_polynomial_h", "hermite_he": "hermite_polynomial_he", "laguerre": "laguerre_polynomial_l", "legendre": "legendre_polynomial_p"},
}


@pytest.mark.parametrize("name", list(POLYNOMIALS))
def test_error_of_polynomials(name: str) -> None:
    """Degrees that differ within a block, and blocks of one degree."""
    operator = getattr(trt.special, POLYNOMIALS[name])
    for kind in ("f32", "f64"):
        x, n = arguments(f"special_{name}", kind, 77, seed=13)
        for degrees in (n, np.full_like(n, 11), np.full_like(n, 2)):
            error, place = worst(f"special_{name}", kind, operator(trt.tensor(x), trt.tensor(degrees)).numpy(), [x, degrees])
            assert error <= LIMITS[kind], f"{name} {kind}: {error} ulp at {place}"


def test_high_degrees_leave_their_neighbours_alone() -> None:
    """Degrees beyond those of the blocks are computed by themselves."""
    x, n = np.linspace(-0.9, 0.9, 70), np.arange(70.0) - 2
    expected = trt.special.chebyshev_polynomial_t(trt.tensor(x), trt.tensor(n)).numpy()
    n[[3, 40, 69]] = 513, 1e6, 1e18
    got = trt.special.chebyshev_polynomial_t(trt.tensor(x), trt.tensor(n)).numpy()
    others = np.isin(np.arange(70), [3, 40, 69], invert=True)
    assert np.array_equal(got[others], expected[others])
    assert abs(got[3] - math.cos(513 * math.acos(x[3]))) < 1e-12
    assert np.all(np.abs(got) <= 1 + 1e-12)
    assert np.array_equal(expected[:3], [0.0, 0.0, 1.0])


@pytest.mark.parametrize("name", ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "spherical_bessel_j0"])
def test_angles_beyond_the_vector_reduction(name: str) -> None:
    """A block with large angles: those by the C library, the others as without them."""
    operator = getattr(trt.special, name)
    small = np.linspace(0.1, 90.0, 40)
    large = np.array([2e6, 3.7e9, 1e15, 1e22])
    for kind, dtype in (("f32", np.float32), ("f64", np.float64)):
        x = np.concatenate([small, large]).astype(dtype)
        got = operator(trt.tensor(x)).numpy()
        assert np.array_equal(got[:40], operator(trt.tensor(x[:40])).numpy())
        error, place = worst(f"special_{name}", kind, got[40:], [x[40:]])
        assert error <= LIMITS[kind], f"{name} {kind}: {error} ulp at {place}"


def test_airy_function_stays_within_its_amplitude_far_out():
    """There the rounding error of the phase is many turns."""
    for dtype, exponents in ((trt.float32, range(2, 38)), (trt.float64, range(2, 308))):
        x = trt.tensor([-(10.0**e) * f for e in exponents for f in (1, 2.2)], dtype=dtype)
        assert (trt.special.airy_ai(x).double().abs() <= 1.01 * x.double().abs() ** -0.25 / math.sqrt(math.pi)).all()
    with mpmath.workdps(60):
        for x in (-1e8, -3.3e9, -1e12, -7.7e15):
            error = mpmath.airyai(x) - trt.special.airy_ai(trt.tensor(x, dtype=trt.float64)).item()
            assert abs(error) <= 2.0**-51 * abs(x) ** -0.25 / math.sqrt(math.pi)


VALUES: dict[str, list[tuple[float, ...]]] = {
    "airy_ai": [(0.0, 0.35502805388781723926), (INF, 0.0), (-INF, 0.0), (NAN, NAN), (200.0, 0.0)],
    "bessel_j0": [(0.0, 1.0), (INF, 0.0), (-INF, 0.0), (NAN, NAN), (1e-300, 1.0)],
    "bessel_j1": [(0.0, 0.0), (INF, 0.0), (NAN, NAN), (1e-30, 5e-31)],
    "bessel_y0": [(0.0, -INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)],
    "bessel_y1": [(0.0, -INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)],
    "i0": [(0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN), (1000.0, INF)],
    "i1": [(0.0, 0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (-1000.0, -INF)],
    "i0e": [(0.0, 1.0), (INF, 0.0), (-INF, 0.0), (NAN, NAN)],
    "i1e": [(0.0, 0.0), (INF, 0.0), (NAN, NAN)],
    "k0": [(0.0, INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN), (1e4, 0.0)],
    "k1": [(0.0, INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN), (1e4, 0.0)],
    "k0e": [(0.0, INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)],
    "k1e": [(0.0, INF), (-1.0, NAN), (INF, 0.0), (NAN, NAN)],
    "spherical_bessel_j0": [(0.0, 1.0), (INF, 0.0), (-INF, 0.0), (NAN, NAN)],
    "erfcx": [(0.0, 1.0), (INF, 0.0), (-INF, INF), (NAN, NAN), (-100.0, INF)],
    "ndtr": [(0.0, 0.5), (INF, 1.0), (-INF, 0.0), (NAN, NAN)],
    "log_ndtr": [(INF, 0.0), (-INF, -INF), (NAN, NAN), (-1e30, -5e59)],
    "ndtri": [(0.0, -INF), (1.0, INF), (0.5, 0.0), (-0.1, NAN), (1.1, NAN), (NAN, NAN)],
    "gammainc": [(0.0, 0.0, NAN), (0.0, 1.0, 1.0), (1.0, 0.0, 0.0), (-1.0, 1.0, NAN), (1.0, -1.0, NAN), (INF, 1.0, 0.0), (1.0, INF, 1.0), (INF, INF, NAN), (NAN, 1.0, NAN)],
    "gammaincc": [(0.0, 0.0, NAN), (0.0, 1.0, 0.0), (1.0, 0.0, 1.0), (-1.0, 1.0, NAN), (INF, 1.0, 1.0), (1.0, INF, 0.0), (INF, INF, NAN), (1.0, NAN, NAN)],
    "zeta": [(1.0, 2.0, INF), (0.5, 2.0, NAN), (2.0, 0.0, INF), (2.0, -3.0, INF), (2.5, -0.5, NAN), (NAN, 1.0, NAN), (2.0, NAN, NAN), (INF, 2.0, 0.0), (1e6, 2.0, 0.0)],
    "chebyshev_t": [(0.3, -1.0, 0.0), (0.3, 0.0, 1.0), (0.25, 1.9, 0.25), (-1.0, 3.0, -1.0), (NAN, 2.0, NAN), (1.5, 1e6, INF), (-1.5, 1e6 + 1, -INF), (1.5, NAN, 0.0)],
    "chebyshev_u": [(1.0, 3.0, 4.0), (-1.0, 3.0, -4.0), (0.3, -1.0, 0.0), (2.0, 1e9, INF)],
    "chebyshev_v": [(1.0, 5.0, 1.0), (-1.0, 3.0, -7.0), (-1.0, 2.0, 5.0)],
    "chebyshev_w": [(1.0, 5.0, 11.0), (-1.0, 3.0, -1.0), (-1.0, 2.0, 1.0)],
    "shifted_chebyshev_t": [(0.0, 3.0, -1.0), (1.0, 3.0, 1.0)],
    "hermite_h": [(0.5, -1.0, 0.0), (0.5, 0.0, 1.0), (0.5, 600.0, NAN)],
    "laguerre": [(0.0, 7.0, 1.0), (0.5, 1e9, NAN), (-1e4, 1e4, INF), (0.5, -1.0, 0.0)],
    "legendre": [(1.0, 7.0, 1.0), (-1.0, 7.0, -1.0), (0.5, 1e9, NAN), (-2.0, 1e5 + 1, -INF)],
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n in POLYNOMIALS if n in VALUES])
def test_limits_of_polynomials_in_blocks(name: str) -> None:
    """What the scalar functions give outside of the domain, at infinities and for overflowing recurrences."""
    operator = getattr(trt.special, POLYNOMIALS[name])
    columns = [np.array(c) for c in zip(*VALUES[name], strict=True)]
    got = operator(*(trt.tensor(c) for c in columns[:2])).numpy()
    assert np.allclose(got, columns[2], rtol=1e-15, atol=0, equal_nan=True), (columns, got)


@pytest.mark.parametrize("name", list(VALUES))
def test_limits_and_poles(functions: Functions, name: str) -> None:
    for *arguments_, expected in VALUES[name]:
        got = float(functions.call(f"special_{name}", "f64", *(np.array([x]) for x in arguments_))[0])
        assert got == pytest.approx(expected, rel=1e-15, nan_ok=True) or got == expected, (arguments_, got)


def test_long_intervals_of_incomplete_gamma_meet(functions: Functions) -> None:
    """Series, continued fraction, small arguments and the uniform expansion agree where one gives way to the next: neighbouring arguments, no jump."""
    for a, x in [(1.0, 1.5), (1.0, 1.2), (30.0, 31.0), (1000.0, 1500.0), (1000.0, 1001.0), (1500.0, 750.0), (16.0, 12.0), (16.0, 40.0)]:
        for name in ("special_gammainc", "special_gammaincc"):
            sides = [functions.call(name, "f64", np.array([p]), np.array([q]))[0] for p in (np.nextafter(a, 0), np.nextafter(a, INF)) for q in (np.nextafter(x, 0), np.nextafter(x, INF))]
            assert max(sides) - min(sides) <= 2e-12 * max(sides), (name, a, x)
