"""What each loop gains by AVX2 and AVX-512: `python -m tools.measure_isa [--save FILE] [--only NAME]`.

Needs a build for all instruction sets (TENSORRT_LITE_NATIVE unset): its objects are linked into one library, so that the loops of the sets run in
turns in one process on the same memory. Times are minima over contiguous operands of 8,192 elements, which lie in the caches of a core: larger
operands only ever gain less. The saved run says which loops of
cysrc/loops/sets.yaml, and which sources beside it, have fewer sets (docs/decisions.md).
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.codegen.pointwise import loops_of_family
from tools.codegen.schema import DTYPES, load

ROOT = Path(__file__).resolve().parents[1]
SETS = ("base", "avx2", "avx512")
COUNT = 8192
GAIN = 0.8      # a set is worth its compile time and its bytes where it takes a fifth off
DRIVER = """
#include <time.h>
#include "core/pointwise.h"
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
double measure(loop_t loop, char** data, const int64_t* strides, int64_t n, const Scalar* params, int rounds) {
  double best = 1e30;
  for (int i = 0; i < rounds; i++) {
    double start = now();
    loop(data, strides, n, params);
    double took = now() - start;
    if (took < best) best = took;
  }
  return best;
}
Scalar numbers[8];
void fill_numbers(void) { for (int i = 0; i < 8; i++) numbers[i] = (Scalar){.kind = SCALAR_FLOAT, .d = 2, .i = 2}; }
"""
# What runs the loops of each source that is not generated: statements of 20 µs to some ms on operands within the caches. A source may have them
# itself, in comments `/* Measured: statement; statement */`.
SETUP = """
import tensorrt_lite as trt, tensorrt_lite.nn.functional as F
trt.set_num_threads(1); trt.manual_seed(0)
m = trt.randn(256, 256); d = m.double(); h = m.half(); c = trt.complex(m, m); n = (m * 40).long(); k = n.int(); u = (m * 40).byte(); s = (m * 40).short(); w = m > 0
row = trt.randn(65536); image = trt.randn(4, 16, 32, 32); last = image.to(memory_format=trt.channels_last); weight = trt.randn(16, 16, 3, 3); deep = trt.randn(16, 1, 3, 3)
small = trt.randn(64, 8, 8); small = small @ small.mT + 8 * trt.eye(8); at = trt.randint(0, 256, (256, 256)); lines = trt.randint(0, 256, (256,)); target = trt.randint(0, 256, (256,))
q = trt.randn(1, 4, 128, 64); grid = trt.rand(4, 32, 32, 2) * 2 - 1; p = trt.randn(65536, requires_grad=True); p.grad = trt.randn(65536); b = (image * 40).byte(); labels = trt.randint(0, 16, (4, 32, 32))
lstm = trt.nn.LSTM(64, 64); sequence = trt.randn(20, 8, 64); scores = trt.randn(50, 8, 20).log_softmax(2); spoken = trt.randint(1, 20, (8, 10)); spans = trt.full((256,), 256)
sparse = m.masked_fill(m < 2, 0).to_sparse_csr()
adam = trt.optim.Adam([p], fused=True) if "fused" in trt.optim.Adam.__init__.__code__.co_varnames else trt.optim.Adam([p])
"""
OPERATORS = {
    "reduction_reduce": ["m.sum()", "m.sum(1)", "m.sum(0)", "d.sum(0)", "h.sum(1)", "m.amax(1)", "m.argmax(1)", "m.var(1)", "m.logsumexp(1)", "m.norm()", "w.any(1)", "w.sum()",
                       "n.sum(0)", "k.sum(1)", "k.amax(0)", "s.sum(1)", "s.amax(0)", "u.sum()", "u.sum(0)", "u.amax(1)", "n.argmax(0)", "c.sum(1)"],
    "reduction_scan_sums": ["m.cumsum(1)", "m.cumsum(0)"],
    "reduction_softmax": ["m.softmax(1)", "m.log_softmax(1)", "m.softmax(0)", "h.softmax(1)"],
    "loss_cross_entropy": ["F.cross_entropy(m, target)"],
    "norm_tables": ["F.layer_norm(m, (256,))", "F.rms_norm(m, (256,))", "F.group_norm(image, 4)", "F.batch_norm(image, None, None, training=True)", "F.batch_norm(last, None, None, training=True)"],
    "pool_tables": ["F.max_pool2d(image, 2)", "F.max_pool2d(last, 2)", "F.avg_pool2d(image, 2)", "F.avg_pool2d(last, 2)", "F.max_pool2d(image, 3, 1, 1)", "F.adaptive_avg_pool2d(image, 7)"],
    "pool": ["F.adaptive_max_pool2d(image, 7)"],
    "iteration_casts": ["m.double()", "d.float()", "m.half()", "h.float()", "k.float()", "u.float()", "m.to(trt.int32)", "n.int()", "w.float()", "c.real.to(trt.float64)"],
    "indexing": ["m[at[0]]", "m.gather(1, at)", "m.scatter(1, at, m)", "m.scatter_add(1, at, m)", "m.index_select(0, lines)", "m.index_add(0, lines, m)", "m.masked_fill(w, 0)", "m[w]",
                 "m.nonzero()", "F.one_hot(lines, 256)", "trt.searchsorted(row[:256].sort()[0], m)", "trt.bincount(lines)"],
    "sorting": ["m.sort(1)", "m.topk(8)", "n.sort(1)", "k.sort(1)", "row.sort()", "n.unique()", "m.histc(64)", "m.median(1)"],
    "joining": ["trt.cat([m, m])", "trt.cat([m, m], 1)", "trt.stack([m, m], 2)", "m.roll(3, 1)", "F.pad(image, (1, 1, 1, 1))", "m.triu()"],
    "resize": ["F.interpolate(image, scale_factor=2, mode='bilinear')", "F.interpolate(last, scale_factor=2, mode='bilinear')", "F.interpolate(image, scale_factor=2)",
               "F.interpolate(b, scale_factor=2, mode='bilinear', antialias=True)", "F.grid_sample(image, grid, align_corners=False)", "F.unfold(image, 3)"],
    "fft": ["trt.fft.fft(c)", "trt.fft.rfft(m)", "trt.fft.fft(row[:65521])", "trt.fft.fft2(c)"],
    "conv": ["F.conv2d(image, weight, padding=1)", "F.conv2d(last, weight, padding=1)", "F.conv2d(image, deep, padding=1, groups=16)", "F.conv2d(image, weight, stride=2)"],
    "matmul": ["m[:2] @ m", "m[:16, :16] @ m[:16, :16]", "k @ k", "m @ m[0]", "c[:8, :8] @ c[:8, :8]"],
    "matmul_packed": ["m @ m", "m @ m.t()", "m.t() @ m", "d @ d", "h @ h.t()", "m.bfloat16() @ m.bfloat16()"],
    "recurrent": ["lstm(sequence)", "lstm(sequence)[0].sum().backward()"],
    "sparse": ["sparse @ m"],
    "sparse_product": ["sparse @ sparse"],
    "loss_ctc": ["F.ctc_loss(scores, spoken, trt.full((8,), 50), trt.full((8,), 10))"],
    "linalg": ["trt.linalg.solve(small, small)", "trt.linalg.cholesky(small)", "trt.linalg.inv(small)"],
    "attention": ["F.scaled_dot_product_attention(q, q, q)"],
    "optim": ["adam.step()"],
    "loss": ["F.cross_entropy(image, labels)"],
    "creation": ["trt.arange(65536)", "trt.linspace(0, 1, 65536)"],
    "random": ["F.dropout(m, 0.5)"],
    "random_kernels": ["trt.randn(65536)", "trt.rand(65536)", "trt.empty(65536).exponential_()"],
    "reduction_scan": ["m.cummax(1)", "m.cummax(0)", "n.cummin(1)"],
}
for _path in (ROOT / "cysrc" / "loops").glob("*.c"):
    if _measured := re.search(r"/\* Measured: (.*?) \*/", _path.read_text()):
        OPERATORS[_path.stem] = _measured[1].split("; ")
WORKER = SETUP + """
import sys, time
for line in sys.stdin:
    code = compile(line, "statement", "exec")
    exec(code); exec(code)
    best, end = 1e9, time.perf_counter() + 0.02
    while time.perf_counter() < end:
        start = time.perf_counter()
        exec(code)
        best = min(best, time.perf_counter() - start)
    print(best * 1e9, flush=True)
"""
FORMATS = {"b8": "B", "u8": "B", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "f16": "e", "f32": "f", "f64": "d", "c64": "ff", "c128": "dd"}


def link(objects: Path, folder: Path) -> ctypes.CDLL:
    """One library of all pointwise loops and the driver."""
    (folder / "driver.c").write_text(DRIVER)
    found = [str(p) for p in sorted(objects.glob("loops_*_*.o"))]
    missing = [p for p in found if not all(Path(p.rpartition("_")[0] + f"_{name}.o").exists() for name in SETS)]
    if missing or not found:
        raise SystemExit(f"{objects}: not built for all instruction sets")
    subprocess.run(["gcc", "-O2", "-shared", "-fPIC", f"-I{ROOT}/cysrc", str(folder / "driver.c"), *found, "-o", str(folder / "loops.so"), "-lm"], check=True)
    return ctypes.CDLL(str(folder / "loops.so"))


def samples(dtype: str, seed: int) -> ctypes.Array:
    """COUNT elements that every operator takes: reals in (-0.9, 0.9), integers from 1 to 7, True and False."""
    rng = random.Random(seed)
    kind = FORMATS.get(dtype, "f")
    if dtype == "bf16":
        raw = b"".join(struct.pack("<f", rng.uniform(-0.9, 0.9))[2:] for _ in range(COUNT))
    elif kind in ("B", "b", "h", "i", "q"):
        raw = struct.pack(f"<{COUNT}{kind}", *(rng.randint(0, 1) if dtype == "b8" else rng.randint(1, 7) for _ in range(COUNT)))
    else:
        raw = struct.pack(f"<{COUNT * len(kind)}{kind[0]}", *(rng.uniform(-0.9, 0.9) for _ in range(COUNT * len(kind))))
    return ctypes.create_string_buffer(raw + b"\0" * 64)


def pointwise(objects: Path, only: str = "", rounds: int = 15) -> list[dict]:
    """[{loop, dtype, ns by set}] of every loop of the declared operators."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        library = link(objects, Path(name))
        library.measure.restype = ctypes.c_double
        library.fill_numbers()
        numbers = ctypes.c_char.in_dll(library, "numbers")
        inputs: dict[tuple[str, int], ctypes.Array] = {}
        output = ctypes.create_string_buffer(16 * COUNT + 64)
        operators = [op for op in load(ROOT / "cysrc" / "ops") if op.kind == "pointwise"]
        for family in sorted({op.family for op in operators}):
            for part, loops in enumerate(loops_of_family([op for op in operators if op.family == family])):
                size = len(loops) * len(DTYPES)
                tables = {s: (ctypes.c_size_t * size).in_dll(library, f"loops_{family}_{part}_{s}") for s in SETS}
                for at, loop in enumerate(loops):
                    if only not in loop.name:
                        continue
                    for dtype in loop.dtypes:
                        cell = at * len(DTYPES) + DTYPES.index(dtype)
                        types = [loop.operand_type(n, dtype) for n in loop.operands]
                        data = [inputs.setdefault((t, k), samples(t, k)) for k, t in enumerate(types)]
                        pointers = (ctypes.c_void_p * 8)(*[ctypes.addressof(x) for x in (output, *data)])
                        strides = (ctypes.c_int64 * 8)(*[16] * 8)
                        best = dict.fromkeys(SETS, 1e30)
                        for _ in range(3):  # the sets in turns
                            for s in SETS:
                                took = library.measure(ctypes.c_void_p(tables[s][cell]), pointers, strides, ctypes.c_int64(COUNT), ctypes.byref(numbers), rounds)
                                best[s] = min(best[s], took)
                        rows.append({"family": family, "loop": loop.name, "dtype": dtype, **{s: round(best[s]) for s in SETS}})
    return rows


def loop_sets(rows: list[dict]) -> str:
    """The highest set of each loop and dtype that takes at most GAIN of the time of the next lower one it has, where that is not the last."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        highest = "base"
        for s in SETS[1:]:
            if row[s] <= GAIN * row[highest]:
                highest = s
        if highest != SETS[-1]:
            found.setdefault(row["loop"], {}).setdefault(highest, []).append(row["dtype"])
    text = "# Loops that gain nothing by higher instruction sets, and the highest one that they are compiled for in wheels: written by\n"
    text += f"# `python -m tools.measure_isa --sets`, from loops that take more than {GAIN} of the next lower set's time (docs/decisions.md).\n"
    for name in sorted(found):
        text += f"{name}: {{{', '.join(f'{s}: {chr(32).join(found[name][s])}' for s in SETS if s in found[name])}}}\n"
    return text


def operators(package: Path, only: str = "", turns: int = 3) -> list[dict]:
    """[{source, statement, ns by set}]: one process per instruction set, in turns."""
    workers = {}
    for s in SETS:
        environment = {**os.environ, "TENSORRT_LITE_ISA": s, "PYTHONPATH": str(package)}
        workers[s] = subprocess.Popen([sys.executable, "-c", WORKER], env=environment, cwd=package, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    rows = []
    for source, statements in OPERATORS.items():
        for statement in statements if only in source else []:
            best = dict.fromkeys(SETS, 1e30)
            for _ in range(turns):
                for s, worker in workers.items():
                    worker.stdin.write(statement + "\n")
                    worker.stdin.flush()
                    answer = worker.stdout.readline()
                    if not answer:
                        raise SystemExit(f"{statement} failed on {s}")
                    best[s] = min(best[s], float(answer))
            rows.append({"source": source, "statement": statement, **{s: round(best[s]) for s in SETS}})
    for worker in workers.values():
        worker.stdin.close()
        worker.wait()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.measure_isa", description="Measure what loops gain by instruction sets.")
    parser.add_argument("--checkout", type=Path, default=ROOT, help="the checkout whose build is measured")
    parser.add_argument("--only", default="", help="loops and sources whose name has this in it")
    parser.add_argument("--save", type=Path, help="write the rows as JSON")
    parser.add_argument("--sets", type=Path, help="write the list that the generator reads (cysrc/loops/sets.yaml)")
    options = parser.parse_args()
    loops, others = pointwise(options.checkout / "build" / "core" / "objects", options.only), operators(options.checkout, options.only)
    for row in loops + others:
        name = f"{row['loop']} {row['dtype']}" if "loop" in row else f"{row['source']}: {row['statement']}"
        print(f"{name:72} {row['base']:10} {row['avx2']:10} {row['avx512']:10} ns {row['base'] / row['avx2']:6.2f} {row['avx2'] / row['avx512']:6.2f}")
    if options.sets:
        options.sets.write_text(loop_sets(loops))
    if options.save:
        options.save.write_text("[\n" + ",\n".join(json.dumps(row) for row in loops + others) + "\n]\n")


if __name__ == "__main__":
    main()
