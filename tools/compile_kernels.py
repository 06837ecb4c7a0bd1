"""Compiles every kernel unit of the library without a GPU: what NVRTC or nvcc refuses shows before a card is there, and the results fill
a cache that can be carried to one.

    python -m tools.compile_kernels [--compiler PLACE ...] [--arch sm_80,sm_90] [--family NAME,...] [--sample] [--skip N] [--jobs N] [--log FILE] [--fill FOLDER]
                                       [--units FILE]
    python -m tools.compile_kernels --list

PLACE is a folder with NVIDIA's wheels (pip install --target PLACE nvidia-cuda-nvrtc nvidia-cuda-runtime), a toolkit's folder, or the path of
nvcc; without one, what is installed. --skip goes on with a run that ended early. --fill writes the images under the names that the library looks
for (TENSORRT_LITE_CUDA_CACHE=FOLDER); a name holds the unit's text, the headers, the architecture and the compiler's version, so that the same
version has to be installed where they are used. --list prints the units as JSON lines, --units reads them from such a file. Exit status 1 when a unit
is refused.

The units are those that the renderers of tensorrt_lite.cuda make for all dtypes (`_load_all` of each family, run on the emulator, which needs g++,
with nothing compiled for it), the declared pointwise operators and the conversions.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Unit(NamedTuple):
    """A text that is compiled on its own, and the family that asks for it."""

    family: str
    source: str


def units() -> list[Unit]:
    """Every unit, from a process of its own: recording spoils a process for launches."""
    environment = {**os.environ, "TENSORRT_LITE_CUDA": "emulate", "PYTHONPATH": str(ROOT)}
    environment.pop("TENSORRT_LITE_LIBCUDA", None)
    printed = subprocess.run([sys.executable, "-m", "tools.compile_kernels", "--list"], cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout
    return read_units(printed)


def read_units(lines: str) -> list[Unit]:
    """The units that --list printed."""
    return [Unit(**json.loads(line)) for line in lines.splitlines()]


def _recorded() -> Iterator[Unit]:
    """The units of this process's library, each once."""
    import importlib

    import tensorrt_lite as trt
    from tensorrt_lite._C.cuda import source as _source
    from tensorrt_lite._C.declared_loops import LOOPS
    from tensorrt_lite import _C
    from tensorrt_lite.cuda import _kernels

    texts: list[str] = []
    seen: set[str] = set()
    _kernels.backend._record_units(texts)

    def new(family: str) -> Iterator[Unit]:
        for text in texts:
            if text not in seen:
                seen.add(text)
                yield Unit(family, text)
        texts.clear()

    for name in ("radix", *_C.CUDA_FAMILIES):
        family = importlib.import_module(f"tensorrt_lite._C.cuda.{name}")
        for tf32 in (False, True) if name == "matmul" else (False,):
            trt.backends.cuda.matmul.allow_tf32 = tf32
            family._load_all(0)
        yield from new(name)
    codes = {_source.TYPES[code][0]: code for code in _source.LOOPS}
    for loop in sorted(LOOPS):
        texts += [_source.pointwise_source(loop, codes[suffix]) for dtypes in LOOPS[loop][3] for suffix in dtypes]
    yield from new("pointwise")
    every = range(len(_source.TYPES))
    texts += [_source.copy_source(source, destination) for source in every for destination in every]
    yield from new("copy")


_TYPES = re.compile(r"(trt::)?complex<\w+>|\b(unsigned (long long|char|short)|signed char|long long|unsigned|short|bool|int|float|double|__half|__nv_bfloat16)\b|\b\d+\b|true|false")


def sample(given: list[Unit]) -> list[Unit]:
    """One unit of each text that differs in more than types and numbers: of half types where there are such, else of float32. Pointwise operators
    all go into one text, each in one form, and another one for complex numbers."""
    chosen: dict[tuple[str, str], Unit] = {}
    for unit in given:
        if unit.family != "pointwise":
            group = unit.family, _TYPES.sub("?", unit.source)
            if group not in chosen or _rank(unit.source) > _rank(chosen[group].source):
                chosen[group] = unit
    merged = [_merged([unit.source for unit in given if unit.family == "pointwise" and unit.source.split("\n")[0].endswith(suffix)]) for suffix in (", f32", ", c64")]
    return [*chosen.values(), *(Unit("pointwise", text) for text in merged if text)]


def _rank(source: str) -> int:
    return 2 if "__half" in source else 1 if "float" in source and "complex" not in source else 0


def _merged(sources: list[str]) -> str:
    """Pointwise units as one, without all forms but the contiguous one."""
    parts = [source[: source.index('\nextern "C" __global__ void __launch_bounds__(256) strided')] for source in sources]
    return "".join(re.sub(r"\bcontiguous\(", f"contiguous_{i}(", re.sub(r"\bFunctor\b", f"Functor_{i}", part)) for i, part in enumerate(parts))


def compiler_of(place: str | None) -> Any:
    """The compiler at a place, of whichever major version it is. ValueError where there is none."""
    from tensorrt_lite.cuda import _toolchain

    if place is None:
        return _toolchain.find(13_000)
    path = Path(place)
    if path.is_file():
        return _toolchain.Nvcc(place)
    for major in (13, 12):
        for library in _toolchain.nvrtc_in([path], major):
            return _toolchain.Nvrtc(library, _toolchain.headers_in([path], major))
    if (path / "bin" / "nvcc").exists():
        return _toolchain.Nvcc(str(path / "bin" / "nvcc"))
    raise ValueError(f"{place} has neither libnvrtc.so.12 or .13 nor bin/nvcc")


class Result(NamedTuple):
    seconds: float
    nbytes: int
    error: str | None


_compilers: dict[str | None, Any] = {}  # of a worker process


def compile_one(place: str | None, arch: str, source: str, fill: str | None) -> Result:
    """Compile a unit, and keep the image where `fill` names a folder."""
    from tensorrt_lite.cuda import _compiler

    compiler = _compilers.get(place)
    if compiler is None:
        compiler = _compilers[place] = compiler_of(place)
    start = time.perf_counter()
    try:
        image = compiler.compile(source, arch, [_compiler.HEADERS])
    except RuntimeError as error:
        return Result(time.perf_counter() - start, 0, str(error))
    if fill is not None:
        _compiler.store(Path(fill) / _compiler.image_name(source, arch, compiler.label), image)
    return Result(time.perf_counter() - start, len(image), None)


def run(place: str | None, arch: str, chosen: list[Unit], jobs: int, fill: str | None, log: Any) -> tuple[str, int]:
    """Compile units for one architecture by one compiler; (a row of the table, how many were refused)."""
    label = compiler_of(place).label
    start, refused, nbytes, slowest = time.perf_counter(), 0, 0, 0.0
    with ProcessPoolExecutor(jobs) as pool:
        sources = [unit.source for unit in chosen]
        n = len(chosen)
        results = pool.map(compile_one, [place] * n, [arch] * n, sources, [fill] * n, chunksize=4)
        for done, (unit, result) in enumerate(zip(chosen, results), 1):
            nbytes += result.nbytes
            slowest = max(slowest, result.seconds)
            if result.error:
                refused += 1
                print(f"REFUSED {label} {arch} {unit.family}\n{result.error[:4000]}\n--- the unit\n{unit.source}", file=log, flush=True)
            if done % 100 == 0:
                print(f"{label} {arch}: {done} of {n}, {refused} refused, {time.perf_counter() - start:.0f} s", file=log, flush=True)
    seconds = time.perf_counter() - start
    return f"| {label} | {arch} | {n - refused} | {refused} | {nbytes / 1e6:.1f} | {seconds:.0f} | {slowest:.1f} |", refused


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", action="append", help="a folder of wheels, a toolkit or nvcc; repeatable")
    parser.add_argument("--arch", default="sm_80,sm_90,sm_100,sm_120")
    parser.add_argument("--family", help="names as --list gives them, with commas")
    parser.add_argument("--sample", action="store_true", help="one unit of each kernel, whatever its types")
    parser.add_argument("--containing", help="only units whose text has this in it")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N units: an earlier run's log has them")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--log", type=Path, help="progress and refusals; stderr by default")
    parser.add_argument("--fill", type=Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--units", type=Path, help="what --list printed elsewhere: nothing but a compiler is needed then")
    given = parser.parse_args(arguments)
    if given.list:
        for unit in _recorded():
            print(json.dumps(unit._asdict()))
        return 0
    if given.fill:
        given.fill.mkdir(parents=True, exist_ok=True)
    chosen = read_units(given.units.read_text()) if given.units else units()
    if given.sample:
        chosen = sample(chosen)
    if given.family:
        chosen = [unit for unit in chosen if unit.family in given.family.split(",")]
    if given.containing:
        chosen = [unit for unit in chosen if given.containing in unit.source]
    chosen = chosen[given.skip :]
    counts = {family: sum(unit.family == family for unit in chosen) for family in dict.fromkeys(unit.family for unit in chosen)}
    print(f"{len(chosen)} units: {', '.join(f'{family} {count}' for family, count in counts.items())}\n")
    print("| compiler | architecture | compiled | refused | MB | seconds | slowest |\n|---|---|---|---|---|---|---|", flush=True)
    failed = 0
    with open(given.log, "w") if given.log else open(os.dup(2), "w") as log:
        for place in given.compiler or [None]:
            for arch in given.arch.split(","):
                row, refused = run(place, arch, chosen, given.jobs, str(given.fill) if given.fill else None, log)
                failed += refused
                print(row, flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
