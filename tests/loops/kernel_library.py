"""Compiles the tables of cysrc/loops with gcc and opens it through ctypes, for the kernel tests.

The instruction set is the machine's best one, or what KERNEL_TEST_ISA names (base, avx2, avx512). The kernels are
reached exactly as the core reaches them: through the exported tables.
"""

from __future__ import annotations

import ctypes
import functools
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tools.codegen import dtypes, schema, steps

LOOPS = Path(__file__).resolve().parents[2] / "cysrc" / "loops"
SOURCES = [LOOPS / f"{name}.c" for name in ("norm_tables", "reduction_reduce", "reduction_scan_sums", "reduction_softmax", "loss_cross_entropy", "pool_tables", "conv")]
FLAGS = "-O2 -ftree-loop-vectorize -fvect-cost-model=dynamic -fopenmp -fno-math-errno -fno-trapping-math -ffp-contract=off -fPIC".split()
MACHINE = {"base": ["-march=x86-64"], "avx2": ["-march=x86-64-v3"]}
MACHINE["avx512"] = ["-march=x86-64-v4", "-mprefer-vector-width=512"]

DTYPES = schema.DTYPES
NUMPY = dict(zip(DTYPES, "bool uint8 int8 int16 int32 int64 float16 uint16 float32 float64 complex64 complex128".split()))
FLOATS = ["f16", "bf16", "f32", "f64"]
REALS = DTYPES[1:10]
# relative tolerance of one rounding into the dtype with room for a few more
TOLERANCE = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 2e-6, "f64": 1e-13, "c64": 2e-6, "c128": 1e-13}

i64, pointer = ctypes.c_int64, ctypes.c_void_p


def instruction_set() -> str:
    """The name of the instruction set under test."""
    if "KERNEL_TEST_ISA" in os.environ:
        return os.environ["KERNEL_TEST_ISA"]
    flags = Path("/proc/cpuinfo").read_text().split()
    if "avx512dq" in flags and "avx512vl" in flags:
        return "avx512"
    return "avx2" if "avx2" in flags and "fma" in flags else "base"


@functools.cache
def library() -> ctypes.CDLL:
    """Builds the kernels into a temporary shared object, once per process."""
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "kernels.so")
        flags = [*FLAGS, *MACHINE[instruction_set()], f"-I{LOOPS}", f"-I{LOOPS.parent / 'core'}", f"-I{folder}"]
        for family in steps.load(LOOPS.parent / "ops"):
            if family.has_header:
                Path(folder, f"{family.name}_steps.h").write_text(steps.header(family))
        running = []
        for source in SOURCES:
            made = os.path.join(folder, source.stem + ".o")
            running.append((made, subprocess.Popen(["gcc", *flags, f"-DISA={instruction_set()}", "-c", str(source), "-o", made])))
        failed = [made for made, compiler in running if compiler.wait()]
        if failed:
            raise RuntimeError(f"gcc could not make {', '.join(failed)}")
        subprocess.run(["gcc", *flags, "-shared", *(made for made, _ in running), "-o", target, "-lm"], check=True)
        return ctypes.CDLL(target)


def table(name: str, rows: int, fields: int) -> list[list[list[int]]]:
    """Function addresses of an exported table: [operator][dtype][field]; 0 stands for no kernel."""
    flat = (ctypes.c_size_t * (rows * len(dtypes.ALL) * fields)).in_dll(library(), f"{name}_{instruction_set()}")
    return np.array(flat, dtype=np.uint64).reshape(rows, len(dtypes.ALL), fields).astype(object).tolist()


@functools.cache
def operations(family: str, prefix: str) -> list[str]:
    """The loops' names of a family's operations, in the order of their table."""
    declared = next(f for f in steps.load(LOOPS.parent / "ops") if f.name == family)
    return [name.lower() for o in declared.operations if o.prefix == prefix for name in o.names]


def flat_table(name: str, fields: int) -> list[int]:
    """The first `fields` addresses of an exported table that is not ordered by dtype."""
    return list((ctypes.c_size_t * fields).in_dll(library(), f"{name}_{instruction_set()}"))


def function(address: int, *argtypes):
    """A callable for a kernel of the given C argument types."""
    return ctypes.CFUNCTYPE(None, *argtypes)(address)


def address(array: np.ndarray | None) -> int | None:
    return None if array is None else array.ctypes.data


def narrow_to_bf16(values: np.ndarray) -> np.ndarray:
    """float -> bfloat16 bits (round to nearest even), as uint16."""
    bits = np.asarray(values, dtype=np.float32).view(np.uint32)
    rounded = ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(np.asarray(values, dtype=np.float32)), np.uint16(0x7FC0), rounded)


def encode(values: np.ndarray, dtype: str) -> np.ndarray:
    """Stores values in the memory format of a kernel dtype."""
    if dtype == "bf16":
        return narrow_to_bf16(values)
    return np.asarray(values).astype(NUMPY[dtype])


def decode(stored: np.ndarray, dtype: str) -> np.ndarray:
    """The values of an array in kernel memory format, as float64, complex128 or the integer type itself."""
    if dtype == "bf16":
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype in ("f16", "f32", "f64"):
        return stored.astype(np.float64)
    return stored.astype(np.complex128) if dtype in ("c64", "c128") else stored


def sample(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Random input of a dtype in memory format."""
    if dtype in ("c64", "c128"):
        return encode(rng.standard_normal(shape) + 1j * rng.standard_normal(shape), dtype)
    if dtype in FLOATS:
        return encode(rng.standard_normal(shape), dtype)
    if dtype == "b8":
        return rng.integers(0, 2, shape).astype(bool)
    low = 0 if dtype == "u8" else -100
    return rng.integers(low, 100, shape).astype(NUMPY[dtype])


def assert_close(actual: np.ndarray, expected: np.ndarray, dtype: str, scale: float = 1.0) -> None:
    """Compares with a float64 reference; `scale` widens the tolerance for sums of many terms."""
    tolerance = TOLERANCE.get(dtype, 0) * scale
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def splits(n: int) -> list[list[tuple[int, int]]]:
    """Several ways to cut [0, n) into ranges."""
    return [[(0, n)], [(i, i + 1) for i in range(n)], [(0, n // 3), (n // 3, n)], [(0, n - 1), (n - 1, n)]]
