"""The C of allocation, threads and loops knows nothing of Python: it compiles without its headers and links without its library."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.codegen.generate import generate

ROOT = Path(__file__).resolve().parents[2]
CORE, LOOPS = ROOT / "cysrc" / "core", ROOT / "cysrc" / "loops"
COMPILER = shutil.which("gcc")
pytestmark = pytest.mark.skipif(COMPILER is None or not CORE.exists(), reason="needs gcc and the sources")

PROGRAM = r"""
#include <math.h>
#include "allocator.h"
#include "parallel.h"
#include "blas.h"
#include "isa.h"
#include "scalar_types.h"
#include "segment_steps.h"

ISA_TASK(segment_reduce)

static void add_one(void* p, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; i++) ((double*)p)[i] += 1;
}

static void* in_a_thread(void* p) {
  trt_block* b = trt_block_alloc(512);
  *(int*)p = b != NULL;
  trt_block_drop(b);
  return NULL;
}

int main(void) {
  enum { N = 1 << 18 };
  trt_heap_init();
  if (trt_parallel_init(2, "", 0)) puts("no OpenMP runtime: one thread");
  trt_block *large = trt_block_alloc(N * sizeof(double)), *small = trt_block_alloc(2 * sizeof(double)), *offsets = trt_block_alloc(3 * sizeof(int64_t));
  if (!large || !small || !offsets) return 1;
  double *data = (double*)large->data, *sums = (double*)small->data;
  memset(data, 0, N * sizeof(double));
  trt_parallel_for(N, 1024, 8, add_one, data);
  int64_t* place = (int64_t*)offsets->data;
  place[0] = 0; place[1] = 10; place[2] = N;
  segment_call call = {.outer = 1, .n = N, .inner = 1, .segments = 2, .data = large->data, .offsets = (void*)place, .out = small->data, .dtype = DT_f64, .operation = SEGMENT_SUM};
  trt_parallel_for(2, 1, 1, segment_reduce(), &call);
  printf("%g %g\n", sums[0], sums[1]);
  pthread_t thread;
  int allocated = 0;
  if (pthread_create(&thread, NULL, in_a_thread, &allocated) || pthread_join(thread, NULL) || !allocated) return 2;
  trt_block_drop(large); trt_block_drop(small); trt_block_drop(offsets);
  trt_empty_cache();
  printf("%ld bytes left\n", (long)trt_figures().allocated);
  return trt_blas_open("/nowhere/libopenblas.so", NULL, 1) == NULL;
}
"""


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    generate(ROOT, folder)
    return folder


def compiled(generated: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    includes = [f"-I{generated}/include", *(f"-I{ROOT}/cysrc/{name}" for name in ("core", "loops", "ops"))]
    flags = ["-D_GNU_SOURCE", "-O1", "-w", "-fopenmp-simd", "-fwrapv", "-march=x86-64", "-DISA=base", *includes]
    done = subprocess.run([str(COMPILER), *flags, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def test_a_program_without_python_allocates_and_runs_loops_in_threads(tmp_path: Path, generated: Path) -> None:
    source, program = tmp_path / "program.c", tmp_path / "program"
    source.write_text(PROGRAM)
    compiled(generated, str(source), str(LOOPS / "segment.c"), "-o", str(program), "-lm", "-ldl", "-lpthread")
    needed = subprocess.run(["readelf", "-d", str(program)], capture_output=True, text=True).stdout
    assert "libpython" not in needed
    ran = subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (0, f"10 {2**18 - 10}\n0 bytes left\n"), ran


def test_no_loop_reads_a_header_of_python(tmp_path: Path, generated: Path) -> None:
    """Those that the generator writes, too; `#include <Python.h>` would be taken from the folder that is put in front here."""
    (tmp_path / "Python.h").write_text("#error a loop includes Python.h\n")
    sources = [*sorted(LOOPS.glob("*.c")), *sorted((generated / "loops").glob("*.c"))]
    assert len(sources) > 50
    compiled(generated, f"-I{tmp_path}", "-M", *map(str, sources))


@pytest.mark.parametrize("header", ["allocator.h", "heap.h", "parallel.h", "blas.h", "locks.h", "block.h", "stage.h", "isa.h", "random_streams.h", "pointwise.h"])
def test_a_header_of_the_core_needs_no_python(header: str, generated: Path, tmp_path: Path) -> None:
    source = tmp_path / "one.c"
    source.write_text(f'#include "{header}"\n')
    read = compiled(generated, "-M", str(source)).stdout
    assert not re.search(r"\bPython\.h|pyconfig", read)
