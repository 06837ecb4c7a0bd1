"""Compile functions.c for one instruction set and call its loops on NumPy arrays. Used by check.py and the tests."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
LOOPS = HERE.parents[1] / "cysrc" / "loops"
FLAGS = ["-O3", "-fopenmp", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-shared", "-fPIC"]
MARCH = {
    "baseline": ["-march=x86-64"],
    "avx2": ["-march=x86-64-v3"],
    "avx512": ["-march=x86-64-v4", "-mprefer-vector-width=512"],
}
# functions of which AVX-512 has an own form: a level by itself, whose library has these alone
FORM = re.compile(r"INL lanes_\S+ (\w+)_lanes_(f32|f64|##T)\(lanes_\S+ x\)")
FORMS = [(name, kind) for name, kinds in FORM.findall((LOOPS / "vector_math_avx512.h").read_text()) for kind in (("f32", "f64") if kinds == "##T" else (kinds,))]
MARCH["avx512_forms"] = [*MARCH["avx512"], "-DFORMS_ONLY", *(f"-DFORM_{name}_{kind}=," for name, kind in FORMS)]
DTYPES = {"b8": "u1", "u8": "u1", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "f32": "f4", "f64": "f8",
          "c64": "c8", "c128": "c16"}
PREDICATES = {"isnan", "isinf", "isfinite", "signbit"}


def levels() -> list[str]:
    """Instruction sets this CPU runs, weakest first."""
    flags = Path("/proc/cpuinfo").read_text().split()
    return [n for n, feature in (("baseline", ""), ("avx2", "avx2"), ("avx512", "avx512bw"), ("avx512_forms", "avx512bw")) if not feature or feature in flags]


class Functions:
    """The loops of functions.c: `call("exp", "f32", x)`."""

    def __init__(self, level: str, folder: Path, compiler: str = "gcc") -> None:
        library = folder / f"vmath_{level}.so"
        command = [compiler, *FLAGS, *MARCH[level], f"-I{LOOPS}", f"-I{LOOPS.parent / 'core'}", str(HERE / "functions.c"), "-o", str(library), "-lm"]
        subprocess.run(command, check=True)
        self.library = ctypes.CDLL(str(library))

    def call(self, name: str, kind: str, *operands: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        arrays = [np.ascontiguousarray(x, DTYPES[kind]) for x in operands]
        result = DTYPES[kind]
        if name in PREDICATES:
            result = "?"
        elif kind in ("c64", "c128") and name in ("abs", "angle"):
            result = {"c64": "f4", "c128": "f8"}[kind]
        out = np.empty(len(arrays[0]), result) if out is None else out
        function = getattr(self.library, f"{'u' if len(arrays) == 1 else 'b'}_{name}_{kind}")
        function.restype = None
        function(ctypes.c_int64(len(arrays[0])), *(ctypes.c_void_p(a.ctypes.data) for a in (*arrays, out)))
        return out
