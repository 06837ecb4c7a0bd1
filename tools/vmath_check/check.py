"""Print the largest error in ulp of every real function of vector_math.h and special_math.h, and nanoseconds per element.

    python tools/vmath_check/check.py [--level avx512] [--samples 3000] [--speed] [name ...]

The exact values come from mpmath with 45 digits; exits with 1 when a function exceeds its bound.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import reference
import reference_special
from build import FORMS, MARCH, Functions, levels
from reference import BINARY, UNARY


def nanoseconds(functions: Functions, name: str, kind: str) -> float:
    """Best time per element over 4,096 ordinary arguments."""
    rng = np.random.default_rng(0)
    dtype = "f4" if kind == "f32" else "f8"
    count = 1 if name in UNARY or name in reference_special.UNARY else 2
    low, high = (1.0, 3.0) if name in ("acosh", "log") else (0.05, 0.95)
    operands = [rng.uniform(low, high, 4096).astype(dtype) for _ in range(count)]
    out = np.empty(4096, dtype)
    best = float("inf")
    for _ in range(30):
        start = time.perf_counter_ns()
        for _ in range(20):
            functions.call(name, kind, *operands, out=out)
        best = min(best, (time.perf_counter_ns() - start) / 20)
    return best / 4096


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="functions to check (default: all)")
    parser.add_argument("--level", choices=list(MARCH), default=levels()[-1])
    parser.add_argument("--samples", type=int, default=3000)
    parser.add_argument("--speed", action="store_true", help="also time each function")
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        functions = Functions(options.level, Path(folder))
        for name, spec in {**UNARY, **BINARY, **reference_special.UNARY, **reference_special.BINARY}.items():
            if options.names and name not in options.names:
                continue
            judge = reference_special if name.startswith("special_") else reference
            for kind in ("f32", "f64"):
                if options.level == "avx512_forms" and (name, kind) not in FORMS:
                    continue
                operands = judge.arguments(name, kind, options.samples)
                error, place = judge.worst(name, kind, functions.call(name, kind, *operands), operands)
                bad = not error <= spec.bound[kind]
                failed += bad
                speed = f"{nanoseconds(functions, name, kind):8.2f} ns" if options.speed else ""
                print(f"{name:28s} {kind} {error:9.3f} ulp at {place}{speed}{'   ABOVE THE BOUND' if bad else ''}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
