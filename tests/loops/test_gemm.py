"""The packed GEMM (cysrc/loops/gemm) against float64, for every kernel and every instruction set that this processor runs; AMX's tiles
by their emulation in C, and by the processor where it has them. Shapes end inside panels, blocks of the depth and vectors; strides are of all kinds."""

from __future__ import annotations

import ctypes
import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tensorrt_lite._C.ops.matmul.packed import bf16_kernel
from tests.loops.test_casts import MARCH, bf16_bits, cpu_runs

LOOPS = Path(__file__).resolve().parents[2] / "cysrc" / "loops"
EMULATION = Path(__file__).with_name("tile_emulation.h")
FLAGS = "-O2 -fopenmp -fno-math-errno -fno-trapping-math -ffp-contract=off -fwrapv -shared -fPIC -DISA=base".split()
SOURCE = """
#include "matmul_packed.c"
int has(int kernel) { return trt_gemm_base[0].kernels[kernel] != 0; }
static gemm_plan plan;
int64_t begin(int kernel, const gemm_matrices* g, int threads) {
  trt_gemm_base[0].plan(&plan, trt_gemm_base[0].kernels[kernel], g, threads);
  return plan.packed_bytes;
}
/* all of it at once, or panels and tasks three at a time as threads might take them */
void run(char* packed, int pieces) {
  const gemm_table* t = trt_gemm_base;
  plan.packed = packed;
  if (!pieces) { t->whole(&plan); return; }
  while (t->next(&plan)) {
    int64_t panels = (plan.columns + plan.kernel->width - 1) / plan.kernel->width, tasks = plan.row_panels * plan.column_tasks;
    for (int64_t i = 0; i < panels; i++) t->pack(&plan, i, i + 1);
    for (int64_t i = 0; i < tasks; i += 3) t->run(&plan, i, i + 3 < tasks ? i + 3 : tasks);
  }
}
"""
F32, F64, BF16, F16, I64, BF16_PAIRS, BF16_TILES, F16_SPLIT, F32_SPLIT, F32_ROUNDED = range(10)
NAMES = {F32: "f32", F64: "f64", BF16: "bf16", F16: "f16", BF16_PAIRS: "bf16_pairs", BF16_TILES: "bf16_tiles",
         F16_SPLIT: "f16_split", F32_SPLIT: "f32_split", F32_ROUNDED: "f32_rounded"}  # int64: tests/ops/test_matmul.py  # fmt: skip
TILES = (BF16_TILES, F16_SPLIT, F32_SPLIT, F32_ROUNDED)
STORED = {F32: np.float32, F64: np.float64, BF16: np.uint16, F16: np.float16, BF16_PAIRS: np.uint16, BF16_TILES: np.uint16,
          F16_SPLIT: np.float16, F32_SPLIT: np.float32, F32_ROUNDED: np.float32}  # fmt: skip
TOLERANCE = {F32: 1e-6, F64: 1e-15, BF16: 4e-3, F16: 5e-4, BF16_PAIRS: 4e-3, BF16_TILES: 4e-3,
             F16_SPLIT: 5e-4, F32_SPLIT: 1.2e-5, F32_ROUNDED: 8e-3}  # of the sum of the terms' magnitudes  # fmt: skip
SIDES = [1, 2, 3, 7, 13, 14, 15, 16, 17, 31, 32, 33, 65, 100]
DEPTHS = [1, 2, 3, 15, 17, 31, 33, 64, 255, 385, 513, 600, 1025, 1100]


class Matrices(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("m", "n", "k")),
        *((name, ctypes.c_void_p) for name in ("a", "b", "d", "c")),
        *((name, ctypes.c_int64) for name in ("ars", "acs", "brs", "bcs", "crs", "ccs", "drs", "dcs")),
        ("alpha", ctypes.c_double), ("beta", ctypes.c_double), ("activation", ctypes.c_int),
        ("integer_alpha", ctypes.c_int64), ("integer_beta", ctypes.c_int64),
    ]  # fmt: skip


PROCESSORS_TILES = "avx512 with the processor's tiles"


@pytest.fixture(scope="module", params=[*MARCH, PROCESSORS_TILES])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    tiles = request.param == PROCESSORS_TILES
    if tiles and bf16_kernel() != "tiles":
        pytest.skip("this processor has no tiles")
    if not tiles and not cpu_runs(request.param):
        pytest.skip(f"this CPU has no {request.param}")
    folder = tmp_path_factory.mktemp("gemm")
    (folder / "gemm.c").write_text(SOURCE)
    level = MARCH["avx512"] if tiles else [*MARCH[request.param], f'-DGEMM_TILES="{EMULATION}"']
    command = ["gcc", *FLAGS, *level, f"-I{LOOPS}", f"-I{LOOPS.parent / 'core'}", str(folder / "gemm.c"), "-o", str(folder / "gemm.so")]
    subprocess.run(command, check=True)
    lib = ctypes.CDLL(str(folder / "gemm.so"))
    lib.emulated = not tiles
    lib.begin.restype = ctypes.c_int64
    lib.begin.argtypes = [ctypes.c_int, ctypes.POINTER(Matrices), ctypes.c_int]
    lib.run.argtypes = [ctypes.c_void_p, ctypes.c_int]
    return lib


def stored(x: np.ndarray, kernel: int) -> np.ndarray:
    return bf16_bits(x) if STORED[kernel] is np.uint16 else x.astype(STORED[kernel])


def values(x: np.ndarray) -> np.ndarray:
    return (x.astype(np.uint32) << 16).view(np.float32).astype(np.float64) if x.dtype == np.uint16 else x.astype(np.float64)


class Operand:
    """A matrix in guarded memory: numbers around it that no result may show, and that must stay."""

    def __init__(self, rng: np.random.Generator, draw: random.Random, kernel: int, rows: int, cols: int, any_strides: bool = True) -> None:
        self.turned, gap, step = draw.random() < 0.5, draw.choice([0, 0, 1, 5]), draw.choice([1, 1, 1, 2]) if any_strides else 1
        lines, length = (cols, rows) if self.turned else (rows, cols)
        self.row = length * step + gap
        self.memory = stored(np.full(lines * self.row + 64, np.nan), kernel)
        self.step, self.shape = step, (rows, cols)
        self.view = np.lib.stride_tricks.as_strided(self.memory[32:], (lines, length), (self.row * self.memory.itemsize, step * self.memory.itemsize))
        if self.turned:
            self.view = self.view.T
        self.view[...] = stored(rng.standard_normal((rows, cols)), kernel)

    def strides(self) -> tuple[int, int]:
        return (self.step, self.row) if self.turned else (self.row, self.step)

    def address(self) -> int:
        return self.memory.ctypes.data + 32 * self.memory.itemsize


def run(lib: ctypes.CDLL, kernel: int, seed: int, m: int, n: int, k: int, pieces: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """(the result, what float64 says, the tolerance of each element, a description)."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    a, b, c = Operand(rng, draw, kernel, m, k), Operand(rng, draw, kernel, k, n), Operand(rng, draw, kernel, m, n, any_strides=False)
    addend = draw.choice(["none", "none", "c", "row", "matrix"])
    d = c if addend == "c" else Operand(rng, draw, kernel, 1 if addend == "row" else m, n) if addend != "none" else None
    alpha, beta, relu = draw.choice([1.0, 1.0, 0.5, -1.0]), draw.choice([1.0, -0.75]), draw.random() < 0.3
    g = Matrices(m, n, k, a.address(), b.address(), d.address() if d else None, c.address(), *a.strides(), *b.strides(), *c.strides(),
                 *((d.strides() if addend != "row" else (0, d.strides()[1])) if d else (0, 0)), alpha, beta if d else 0.0, int(relu))  # fmt: skip
    va, vb = values(a.view), values(b.view)
    want, size = alpha * (va @ vb), np.abs(va) @ np.abs(vb) + 1
    if d:
        want, size = want + beta * values(d.view), size + np.abs(values(d.view))
    if relu:
        want = np.maximum(want, 0)
    around = c.memory.copy()
    packed = np.empty(lib.begin(kernel, ctypes.byref(g), 4 if pieces else 1) + 64, np.uint8)
    lib.run((packed.ctypes.data + 63) // 64 * 64, pieces)
    got = values(c.view).copy()
    c.view[...] = stored(np.zeros((m, n)), kernel)
    untouched = np.lib.stride_tricks.as_strided(around[32:], c.view.shape, c.view.strides)
    untouched[...] = c.view
    assert np.array_equal(around.view(np.uint8), c.memory.view(np.uint8)), "written beyond C"
    what = f"{NAMES[kernel]} ({m}, {k}) x ({k}, {n}), seed {seed}: addend {addend}, alpha {alpha}, beta {beta}, relu {relu}, A {a.strides()}, B {b.strides()}, C {c.strides()}"
    return got, want, size * TOLERANCE[kernel], what


def skip_what_cannot_run(library: ctypes.CDLL, kernel: int) -> None:
    if not library.has(kernel):
        pytest.skip("not in this instruction set")
    if kernel == BF16_PAIRS and "avx512_bf16" not in Path("/proc/cpuinfo").read_text():
        pytest.skip("this processor has no AVX512-BF16")


@pytest.mark.parametrize("kernel", NAMES, ids=NAMES.values())
def test_products_of_all_kinds_equal_float64(library: ctypes.CDLL, kernel: int) -> None:
    skip_what_cannot_run(library, kernel)
    for seed in range(60 if kernel in TILES and library.emulated else 300):
        draw = random.Random(1000 + seed)
        m, n, k = draw.choice(SIDES), draw.choice(SIDES), draw.choice(DEPTHS)
        got, want, tolerance, what = run(library, kernel, seed, m, n, k, pieces=seed % 2 == 1)
        assert (np.abs(got - want) <= tolerance + np.abs(want) * TOLERANCE[kernel]).all(), what


@pytest.mark.parametrize("kernel", [F32, BF16, *TILES], ids=lambda kernel: NAMES[kernel])
def test_bits_do_not_depend_on_how_the_work_is_cut(library: ctypes.CDLL, kernel: int) -> None:
    if not library.has(kernel):
        pytest.skip("not in this instruction set")
    for seed, (m, n, k) in enumerate([(100, 65, 1100), (15, 33, 600), (129, 200, 40)]):
        whole, *_ = run(library, kernel, seed, m, n, k, pieces=False)
        cut, _, _, what = run(library, kernel, seed, m, n, k, pieces=True)
        assert np.array_equal(whole, cut), what


def test_columns_beyond_the_workspace_are_packed_in_turn(library: ctypes.CDLL) -> None:
    """4 MB of B are packed at once."""
    got, want, tolerance, what = run(library, F32, 3, 15, 4500, 300, pieces=True)
    assert (np.abs(got - want) <= tolerance + np.abs(want) * 1e-6).all(), what


@pytest.mark.parametrize("kernel", NAMES, ids=NAMES.values())
def test_deep_products_take_parts_of_the_depth_in_turn(library: ctypes.CDLL, kernel: int) -> None:
    """Where B's columns of the whole depth would be few at a time; A's rows lie pages apart in half of them."""
    skip_what_cannot_run(library, kernel)
    for seed in range(4 if kernel in TILES and library.emulated else 12):
        m, n, k = [(30, 400, 3000), (300, 130, 2100), (16, 700, 1100), (570, 90, 2600)][seed % 4]
        results = []
        for pieces in (False, True):
            got, want, tolerance, what = run(library, kernel, seed, m, n, k, pieces)
            assert (np.abs(got - want) <= tolerance + np.abs(want) * TOLERANCE[kernel]).all(), what
            results.append(got)
        assert np.array_equal(*results), what


def product(lib: ctypes.CDLL, kernel: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b of contiguous matrices."""
    (m, k), n = a.shape, b.shape[1]
    c = np.zeros((m, n), STORED[kernel])
    g = Matrices(m, n, k, a.ctypes.data, b.ctypes.data, None, c.ctypes.data, k, 1, n, 1, n, 1, 0, 0, 1.0, 0.0, 0)
    packed = np.empty(lib.begin(kernel, ctypes.byref(g), 1) + 64, np.uint8)
    lib.run((packed.ctypes.data + 63) // 64 * 64, False)
    return c


@pytest.mark.parametrize("kernel", [F16_SPLIT, F32_SPLIT, F32_ROUNDED], ids=lambda kernel: NAMES[kernel])
def test_numbers_without_parts_are_multiplied_as_they_are(library: ctypes.CDLL, kernel: int) -> None:
    """Infinities, NaN, the greatest and the least numbers in some panels of either factor: tiles would make NaN, infinities and zeros of them."""
    skip_what_cannot_run(library, kernel)
    rng = np.random.default_rng(7)
    half = STORED[kernel] is np.float16
    greatest, least, denormal = (65504, 6e-5, 6e-8) if half else (3.4e38, 2e-38, 1e-44)
    cases = [("infinity", np.inf, 1), ("minus infinity", -np.inf, 1), ("NaN", np.nan, 1)]
    cases += [("greatest", greatest, 1e-3), ("least", least, 1), ("denormal", denormal, 1)]
    if not half:
        cases += [("small", 1e-25, 1e-15), ("large", 1e25, 1e-25), ("both are small", 3e-19, 1e-18)]
    with np.errstate(all="ignore"):
        for name, special, scale in cases:
            for side in range(2):
                a, b = rng.standard_normal((70, 100)), rng.standard_normal((100, 75))
                one, other = (a, b) if side == 0 else (b, a)
                other *= scale
                places = rng.random(one.shape) < 0.02
                one[places] = special if not np.isfinite(special) else special * rng.choice([-1, 1], places.sum())
                a, b = a.astype(STORED[kernel]), b.astype(STORED[kernel])
                wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
                got, want = product(library, kernel, a, b).astype(np.float64), (wide_a @ wide_b).astype(STORED[kernel]).astype(np.float64)
                assert np.array_equal(np.isnan(got), np.isnan(want)), name
                finite = np.isfinite(want)
                assert np.array_equal(got[~finite], want[~finite], equal_nan=True), name
                size = np.abs(np.nan_to_num(wide_a, posinf=0, neginf=0)) @ np.abs(np.nan_to_num(wide_b, posinf=0, neginf=0))
                tiny = 6e-8 if half else 1e-44
                assert (np.abs(got - want)[finite] <= (size * TOLERANCE[kernel] + np.abs(want) * TOLERANCE[kernel] + tiny)[finite]).all(), name


@pytest.mark.parametrize("kernel", [F16_SPLIT, F32_SPLIT], ids=lambda kernel: NAMES[kernel])
def test_parts_multiply_integers_of_sixteen_bits_exactly_by_one(library: ctypes.CDLL, kernel: int) -> None:
    skip_what_cannot_run(library, kernel)
    rng = np.random.default_rng(8)
    a = rng.integers(-2000, 2000, (64, 64)) if kernel == F16_SPLIT else rng.integers(-60000, 60000, (64, 64))
    a = a.astype(STORED[kernel])
    assert np.array_equal(product(library, kernel, a, np.eye(64, dtype=STORED[kernel])), a)
