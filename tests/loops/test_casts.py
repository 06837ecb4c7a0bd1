"""casts.h and scalar_types.h against NumPy: every dtype pair, half rounding bit for bit, strided and contiguous runs alike."""

from __future__ import annotations

import ctypes
import itertools
import subprocess
from pathlib import Path

import numpy as np
import pytest

LOOPS = Path(__file__).resolve().parents[2] / "cysrc" / "loops"
FLAGS = ["-O3", "-fopenmp", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-shared", "-fPIC"]
MARCH = {
    "baseline": ["-march=x86-64"],
    "avx2": ["-march=x86-64-v3"],
    "avx512": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
}
SOURCE = """
#include "casts.h"
#include "stage.h"
void cast(int from, int to, char *dst, int64_t ds, const char *src, int64_t ss, int64_t n)
{ trt_convert(cast_table, to, dst, ds, from, src, ss, n); }
int64_t par_int(int kind, double d, int64_t i) { Scalar s = {kind, 0, d, 0.0, i}; return par_i64(&s); }
double par_real(int kind, double d, int64_t i) { Scalar s = {kind, 0, d, 0.0, i}; return par_f64(&s); }
"""
NAMES = ["b8", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "c64", "c128"]
STORAGE = dict(
    zip(NAMES, ["?", "u1", "i1", "i2", "i4", "i8", "f2", "u2", "f4", "f8", "c8", "c16"], strict=True)
)


def cpu_runs(level: str) -> bool:
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    return {"baseline": True, "avx2": " avx2 " in flags, "avx512": " avx512bw " in flags}[level]


@pytest.fixture(scope="module", params=list(MARCH))
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if not cpu_runs(request.param):
        pytest.skip(f"this CPU has no {request.param}")
    folder = tmp_path_factory.mktemp("casts")
    (folder / "casts.c").write_text(SOURCE)
    command = ["gcc", *FLAGS, *MARCH[request.param], f"-I{LOOPS}", f"-I{LOOPS.parent / 'core'}", str(folder / "casts.c"), "-o", str(folder / "c.so")]
    subprocess.run(command, check=True)
    lib = ctypes.CDLL(str(folder / "c.so"))
    i64, ptr = ctypes.c_int64, ctypes.c_void_p
    lib.cast.argtypes = [ctypes.c_int, ctypes.c_int, ptr, i64, ptr, i64, i64]
    lib.cast.restype = None
    lib.par_int.argtypes = lib.par_real.argtypes = [ctypes.c_int, ctypes.c_double, i64]
    lib.par_int.restype, lib.par_real.restype = i64, ctypes.c_double
    return lib


def bf16_bits(x: np.ndarray) -> np.ndarray:
    """Round a float32 array to bfloat16 bits, to nearest even."""
    bits = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FC0), rounded)


def run(lib: ctypes.CDLL, source: str, target: str, src: np.ndarray, step: int = 1) -> np.ndarray:
    wide = np.zeros(len(src) * step, src.dtype)
    wide[::step] = src
    dst = np.zeros(len(src) * step, STORAGE[target])
    lib.cast(
        NAMES.index(source), NAMES.index(target), dst.ctypes.data, dst.itemsize * step, wide.ctypes.data,
        wide.itemsize * step, len(src),
    )
    return dst[::step]


def samples(name: str) -> np.ndarray:
    rng = np.random.default_rng(7)
    kind = STORAGE[name]
    if name == "b8":
        return rng.integers(0, 2, 131).astype("?")
    if kind[0] in "ui" and name != "bf16":
        info = np.iinfo(kind)
        return np.concatenate([rng.integers(info.min, info.max, 128, dtype=kind), np.array([0, info.min, info.max], kind)])
    values = np.concatenate([rng.uniform(-120, 120, 120), [0.0, -0.0, 0.5, -0.5, 0.25, 1e-7, 3.0, 100.5, 127.0, 2.0**-24, -1.0]])
    if name == "bf16":
        return bf16_bits(values)
    return (values + 1j * values[::-1]).astype(kind) if kind[0] == "c" else values.astype(kind)


def expected(source: str, target: str, src: np.ndarray) -> np.ndarray:
    value = (src.astype(np.uint32) << 16).view(np.float32) if source == "bf16" else src
    if target == "b8":
        return value != 0
    if value.dtype.kind == "c" and STORAGE[target][0] != "c":
        value = value.real
    if value.dtype.kind == "f" and STORAGE[target][0] in "ui" and target != "bf16":
        return value.astype(np.int64).astype(STORAGE[target])
    if target == "bf16":
        return bf16_bits(value.astype(np.float32))
    if target == "f16":
        return value.astype(np.float32).astype(np.float16)  # half types compute in float32
    return value.astype(STORAGE[target])


@pytest.mark.parametrize(("source", "target"), list(itertools.product(NAMES, NAMES)))
def test_every_pair(library: ctypes.CDLL, source: str, target: str) -> None:
    src = samples(source)
    with np.errstate(over="ignore"):
        want = expected(source, target, src)
    for step in (1, 3):
        got = run(library, source, target, src, step)
        assert got.tobytes() == np.ascontiguousarray(want).tobytes(), f"{source} -> {target}, step {step}"


def test_half_to_float_is_exact_for_all_65536(library: ctypes.CDLL) -> None:
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    for step in (1, 2):
        got = np.ascontiguousarray(run(library, "f16", "f32", halves, step))
        number = ~np.isnan(halves)
        assert (got.view(np.uint32)[number] == halves.astype(np.float32).view(np.uint32)[number]).all()
        assert np.isnan(got[~number]).all()


@pytest.mark.parametrize("target", ["f16", "bf16"])
def test_float_to_half_rounds_to_nearest_even(library: ctypes.CDLL, target: str) -> None:
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 2**32, 300_000, dtype=np.uint64).astype(np.uint32)
    near = np.arange(65536, dtype=np.uint16).view(np.float16).astype(np.float32).view(np.uint32)
    ties = np.concatenate([near + np.uint32(d) for d in (0, 0xFFF, 0x1000, 0x1001, 0x1FFF)])
    edges = np.array([65519.996, 65520, 65536, 2.0**-25, 2.0**-24, 6e-8, 6.1e-5, np.inf, -np.inf], np.float32)
    x = np.concatenate([bits, ties, edges.view(np.uint32)]).view(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        want = x.astype(np.float16).view(np.uint16) if target == "f16" else bf16_bits(x)
    number = ~np.isnan(x)
    for step in (1, 2):
        got = np.ascontiguousarray(run(library, "f32", target, x, step)).view(np.uint16)
        assert (got[number] == want[number]).all()
        assert ((got[~number] & 0x7FFF) > (0x7C00 if target == "f16" else 0x7F80)).all()


def test_parameters_convert(library: ctypes.CDLL) -> None:
    assert library.par_int(1, 0.0, 2**62 + 1) == 2**62 + 1
    assert library.par_int(2, -3.7, 0) == -3
    assert library.par_real(1, 0.0, 5) == 5.0
    assert library.par_real(2, 0.25, 0) == 0.25
