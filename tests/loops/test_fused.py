"""Sums of products round as they are written: nothing is contracted, on any instruction set, and FMA() rounds once where there is the
instruction. Registers of halves (lanes.h) convert as single numbers do."""

from __future__ import annotations

import ctypes
import subprocess

import numpy as np
import pytest

from tests.loops.test_casts import MARCH, bf16_bits, cpu_runs
from tools.build_core import COMMON, ROOT

LOOPS = ROOT / "cysrc" / "loops"
SOURCE = """
#include "fused.h"
#include "lanes.h"
#define FOR_TYPE(T) \\
  void written_##T(int64_t n, const T* a, const T* b, const T* c, T* y) { _Pragma("omp simd") for (int64_t i = 0; i < n; i++) y[i] = a[i] * b[i] + c[i]; } \\
  void difference_##T(int64_t n, const T* a, const T* b, const T* c, T* y) { for (int64_t i = 0; i < n; i++) y[i] = c[i] - a[i] * b[i]; } \\
  void fused_##T(int64_t n, const T* a, const T* b, const T* c, T* y) { for (int64_t i = 0; i < n; i++) y[i] = FMA(a[i], b[i], c[i]); } \\
  typedef T four_##T __attribute__((vector_size(16))); typedef T eight_##T __attribute__((vector_size(32))); \\
  void vectors_##T(int64_t n, const T* a, const T* b, const T* c, T* y) { \\
    for (int64_t i = 0; i + 32 / (int)sizeof(T) <= n; i += 32 / (int)sizeof(T)) { \\
      eight_##T p, q, r; memcpy(&p, a + i, 32); memcpy(&q, b + i, 32); memcpy(&r, c + i, 32); r = FMA(p, q, r); memcpy(y + i, &r, 32); \\
    } } \\
  void register_written_##T(int64_t n, const T* a, const T* b, const T* c, T* y) { \\
    for (int64_t i = 0; i + 16 / (int)sizeof(T) <= n; i += 16 / (int)sizeof(T)) { \\
      four_##T p, q, r; memcpy(&p, a + i, 16); memcpy(&q, b + i, 16); memcpy(&r, c + i, 16); r = p * q + r; memcpy(y + i, &r, 16); \\
    } }
FOR_TYPE(f32) FOR_TYPE(f64)
#ifdef __AVX2__
/* runs of numbers may lie in another order (lanes.h): place[i] is where number i of a run went */
#define RUNS(T) \\
  static void places_##T(int* place) { \\
    T x[RUN_##T]; f32 t[RUN_##T]; for (int i = 0; i < RUN_##T; i++) x[i] = st_##T(i); \\
    take_##T(t, x, RUN_##T); for (int i = 0; i < RUN_##T; i++) place[(int)t[i]] = i; } \\
  void widen_##T(int64_t n, const T* x, f32* y) { \\
    int place[RUN_##T]; places_##T(place); \\
    for (int64_t i = 0; i < n; i += RUN_##T) { f32 t[RUN_##T]; take_##T(t, x + i, n - i); for (int k = 0; k < RUN_##T; k++) y[i + k] = t[place[k]]; } } \\
  void narrow_##T(int64_t n, const f32* x, T* y) { \\
    int place[RUN_##T]; places_##T(place); \\
    for (int64_t i = 0; i < n; i += RUN_##T) { f32 t[RUN_##T]; for (int k = 0; k < RUN_##T; k++) t[place[k]] = x[i + k]; put_##T(y + i, t, n - i); } } \\
  void chosen_##T(int64_t n, const b8* c, const T* x, T* y) { \\
    for (int64_t i = 0; i < n; i += RUN_##T) { \\
      b8 b[RUN_##T]; f32 t[RUN_##T]; take_b8_##T(b, c + i, n - i); take_##T(t, x + i, n - i); \\
      for (int k = 0; k < RUN_##T; k++) t[k] = b[k] ? t[k] : 0; put_##T(y + i, t, n - i); } } \\
  void even_##T(int64_t n, const T* x, b8* y) { \\
    for (int64_t i = 0; i < n; i += RUN_##T) { \\
      b8 b[RUN_##T]; f32 t[RUN_##T]; take_##T(t, x + i, n - i); \\
      for (int k = 0; k < RUN_##T; k++) b[k] = (int)t[k] % 2 == 0; put_b8_##T(y + i, b, n - i); } } \\
  void read_##T##_(int64_t n, const T* x, f32* y) { for (int64_t i = 0; i < n; i += LANES_##T) { lanes_f32 v = read_##T(x + i, n - i); memcpy(y + i, &v, sizeof v); } } \\
  void write_##T##_(int64_t n, const f32* x, T* y) { for (int64_t i = 0; i < n; i += LANES_##T) { lanes_f32 v; memcpy(&v, x + i, sizeof v); write_##T(y + i, v, n - i); } }
RUNS(f16) RUNS(bf16)
#endif
"""


@pytest.fixture(scope="module", params=list(MARCH))
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ctypes.CDLL]:
    if not cpu_runs(request.param):
        pytest.skip(f"this CPU has no {request.param}")
    folder = tmp_path_factory.mktemp("fused")
    (folder / "fused.c").write_text(SOURCE)
    flags = ["-O2", "-ftree-loop-vectorize", *COMMON, *MARCH[request.param], f"-I{LOOPS}", f"-I{LOOPS.parent / 'core'}"]
    subprocess.run(["gcc", *flags, "-shared", str(folder / "fused.c"), "-o", str(folder / "fused.so"), "-lm"], check=True)
    return request.param, ctypes.CDLL(str(folder / "fused.so"))


def call(library: ctypes.CDLL, name: str, *arrays: np.ndarray, count: int | None = None) -> None:
    getattr(library, name)(ctypes.c_int64(len(arrays[0]) if count is None else count), *(ctypes.c_void_p(a.ctypes.data) for a in arrays))


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_what_is_written_as_product_and_sum_rounds_twice(library: tuple[str, ctypes.CDLL], kind: str) -> None:
    _, kernels = library
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(4096).astype(kind.replace("f32", "f4").replace("f64", "f8")) for _ in range(2))
    c = -(a * b) * (1 + 2 * np.finfo(a.dtype).eps)  # what the product's rounding lost is a third of the sum
    y = np.empty_like(a)
    for name in ("written", "register_written"):
        call(kernels, f"{name}_{kind}", a, b, c, y)
        assert y.tobytes() == (a * b + c).tobytes(), name
    call(kernels, f"difference_{kind}", a, b, -c, y)
    assert y.tobytes() == (-c - a * b).tobytes()


def test_fma_rounds_once_where_there_is_the_instruction(library: tuple[str, ctypes.CDLL]) -> None:
    level, kernels = library
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(4096).astype("f4") for _ in range(2))
    c = -(a * b)
    exact, twice, y = (a.astype("f8") * b + c).astype("f4"), a * b + c, np.empty_like(a)
    assert (exact != twice).any()
    for name in ("fused", "vectors"):
        call(kernels, f"{name}_f32", a, b, c, y)
        assert y.tobytes() == (twice if level == "baseline" else exact).tobytes(), name
    double = [x.astype("f8") for x in (a, b, c)]
    y = np.empty(4096)
    for name in ("fused", "vectors"):
        call(kernels, f"{name}_f64", *double, y)
        assert (y == a.astype("f8") * b + c).all(), name


def test_registers_of_halves_convert_as_numbers_do(library: tuple[str, ctypes.CDLL]) -> None:
    level, kernels = library
    if level == "baseline":
        pytest.skip("loops of halves have registers from AVX2 on")
    bits = np.arange(65536, dtype="u2")
    wide = np.empty(65536, "f4")
    want = bits.view("f2").astype("f4")
    for name in ("widen_f16", "read_f16_"):
        call(kernels, name, bits, wide)
        assert (np.isnan(wide) == np.isnan(want)).all() and (wide[~np.isnan(want)] == want[~np.isnan(want)]).all(), name
    for name in ("widen_bf16", "read_bf16_"):
        call(kernels, name, bits, wide)
        assert (wide.view("u4") == bits.astype("u4") << 16).all(), name
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.integers(0, 1 << 32, 40_000, dtype="u8").astype("u4"), np.arange(0, 1 << 32, 65537 * 3, dtype="u8").astype("u4"), (bits.astype("u4") << 16) + 0x8000]).view("f4")
    x = x[: len(x) // 16 * 16]
    got = np.empty(len(x), "u2")
    for name in ("narrow_bf16", "write_bf16_"):
        call(kernels, name, x, got)
        assert (got == bf16_bits(x)).all(), name
    with np.errstate(over="ignore"):
        want = x.astype("f2")
    number = ~np.isnan(x)
    for name in ("narrow_f16", "write_f16_"):
        call(kernels, name, x, got)
        assert (got[number] == want.view("u2")[number]).all() and np.isnan(got.view("f2")[~number]).all(), name


def test_registers_end_with_the_elements(library: tuple[str, ctypes.CDLL]) -> None:
    level, kernels = library
    if level == "baseline":
        pytest.skip("loops of halves have registers from AVX2 on")
    x = np.arange(1, 49, dtype="f4")
    for kind, want in (("f16", x.astype("f2").view("u2")), ("bf16", bf16_bits(x))):
        for count in range(1, 40):
            got, wide = np.full(64, 9, "u2"), np.full(64, 5, "f4")
            call(kernels, f"narrow_{kind}", x, got, count=count)
            assert (got[:count] == want[:count]).all() and (got[count:] == 9).all(), (kind, count)
            call(kernels, f"widen_{kind}", want[:count].copy(), wide, count=count)
            assert (wide[:count] == x[:count]).all(), (kind, count)
            condition, chosen, even = np.arange(count, dtype="u1") % 3 % 2, np.full(64, 9, "u2"), np.full(64, 9, "u1")
            call(kernels, f"chosen_{kind}", condition, want[:count].copy(), chosen, count=count)
            assert (chosen[:count] == want[:count] * condition).all() and (chosen[count:] == 9).all(), (kind, count)
            call(kernels, f"even_{kind}", want[:count].copy(), even, count=count)
            assert (even[:count] == (x[:count] % 2 == 0)).all() and (even[count:] == 9).all(), (kind, count)


def test_one_operator_has_the_bits_of_its_steps() -> None:
    trt = pytest.importorskip("tensorrt_lite")
    trt.manual_seed(0)
    for dtype in (trt.float32, trt.float64):
        x, a, b = (trt.randn(4099, dtype=dtype) for _ in range(3))
        for value in (1, 0.5, -3):
            assert trt.equal(trt.addcmul(x, a, b, value=value), x + value * a * b)
            assert trt.equal(trt.add(x, a, alpha=value), x + value * a)
            assert trt.equal(trt.sub(x, a, alpha=value), x - value * a)
