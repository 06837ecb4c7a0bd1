"""The CPU allocator: blocks split, join and serve nearby sizes; what is free is bounded, goes back after a second, and survives forks."""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import tensorrt_lite as trt
from tensorrt_lite.cpu import memory
from tests.free_threading import OBJECT_HEADER

MiB = 1 << 20
SLACK = 64 * MiB
pooled = pytest.mark.skipif(memory.memory_stats()["allocator"] != "caching", reason="every block has its own allocation")


def run(code: str, **environment: str) -> str:
    """The output of code in a fresh interpreter that has `trt` and `stats`."""
    before = "import tensorrt_lite as trt\nfrom tensorrt_lite.cpu import memory\ndef stats(name): return memory.memory_stats()[name]\n"
    found = subprocess.run([sys.executable, "-c", before + textwrap.dedent(code)], env={**os.environ, **environment}, capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


def consistent() -> dict[str, int]:
    s = memory.memory_stats()
    assert s["reserved_bytes.current"] == s["active_bytes.current"] + s["cached_bytes.current"]
    assert s["allocated_bytes.current"] <= s["active_bytes.current"]
    assert s["cached_bytes.current"] <= s["cache_bound_bytes"]
    return s


@pooled
def test_growing_sizes_reuse_what_is_free():
    """Eight rounds of 80 to 108 MB: the peak is that of the live tensors, and the end is within the bound."""
    code = """
    for i in range(8):
        x = trt.ones(20_000_000 + i * 1_000_000) * 2 + 1
        del x
    print(stats("reserved_bytes.peak") - stats("active_bytes.peak"), stats("reserved_bytes.current"), stats("active_bytes.peak"))
    """
    beyond, reserved, active = map(int, run(code).split())
    assert beyond <= 16 * MiB
    assert reserved <= active // 4 + SLACK + 8 * MiB < 400 * 10**6


@pooled
@pytest.mark.parametrize("limit", [20_000, 500_000, 3_000_000])
def test_random_sizes_stay_consistent_and_bounded(limit):
    rng, kept = random.Random(limit), {}
    for step in range(3000):
        key = rng.randrange(60)
        if key in kept:
            value, x = kept.pop(key)
            assert x[0] == value and x[-1] == value
        else:
            x = trt.empty(rng.randrange(1, limit))
            x[0] = x[-1] = float(step)
            kept[key] = (float(step), x)
            assert x.data_ptr() % 64 == 0
        if step % 100 == 0:
            consistent()
    kept.clear()
    trt.cpu.empty_cache()
    assert consistent()["cached_bytes.current"] == 0


@pooled
def test_blocks_split_and_join():
    trt.cpu.empty_cache()
    before = consistent()
    large = trt.empty(8 * MiB)
    address = large.data_ptr()
    del large
    quarters = [trt.empty(2 * MiB - 16384) for _ in range(4)]
    assert sum(address <= q.data_ptr() < address + 32 * MiB for q in quarters) == 4
    del quarters
    again = trt.empty(8 * MiB)
    after = consistent()
    assert again.data_ptr() == address
    assert after["mappings"] - before["mappings"] <= 1
    assert after["splits"] > before["splits"] and after["joins"] > before["joins"]


@pooled
def test_a_loop_with_fresh_outputs_maps_nothing_new():
    a, b = trt.ones(4_000_000), trt.ones(4_000_000)
    c = a + b
    c = a + b
    before = memory.memory_stats()["mappings"]
    for _ in range(20):
        c = a + b
    assert memory.memory_stats()["mappings"] == before
    assert c[0] == 2


@pooled
def test_an_idle_process_gives_back():
    code = """
    import os, time
    def resident(): return int(open("/proc/self/statm").read().split()[1]) * 4096
    x = [trt.ones(5_000_000) for _ in range(3)]
    before = resident()
    del x
    kept, end = stats("cached_bytes.current"), time.monotonic() + 20
    threads = len(os.listdir("/proc/self/task"))
    while (stats("cached_bytes.current") or len(os.listdir("/proc/self/task")) == threads) and time.monotonic() < end:
        time.sleep(0.1)
    print(kept > 50e6, stats("cached_bytes.current"), stats("returned_bytes.idle") >= kept, before - resident() > 50e6, len(os.listdir("/proc/self/task")) < threads)
    """
    assert run(code) == "True 0 True True True"


@pooled
def test_what_a_busy_process_does_not_need_goes_back():
    code = """
    import time
    x = [trt.ones(5_000_000) for _ in range(3)]
    del x
    end = time.monotonic() + 20
    while stats("cached_bytes.current") > 9 << 20 and time.monotonic() < end:
        (trt.ones(1_000_000) + 1).sum()
    print(stats("cached_bytes.current") <= 9 << 20, stats("returned_bytes.idle") > 50e6)
    """
    assert run(code) == "True True"


@pooled
def test_what_went_back_too_soon_is_kept_longer():
    """Steps that free half a gigabyte and need it again: after some, nothing goes back between them, and no more than their peak is held."""
    code = """
    def step():
        x = [trt.ones(16 << 20) for _ in range(8)]
        return stats("mappings")
    step()
    first = stats("mappings")
    for _ in range(16): step()
    bound, mapped = stats("cache_bound_bytes"), stats("mappings")
    step()
    print(mapped > first, stats("mappings") == mapped, bound >= 512 << 20, stats("reserved_bytes.peak") <= stats("active_bytes.peak") + (16 << 20))
    """
    assert run(code) == "True True True True"


@pooled
def test_small_programs_have_no_thread():
    assert run("x = trt.ones(1_000_000) + 1\ndel x\nimport os\nprint(len(os.listdir('/proc/self/task')))", OMP_NUM_THREADS="1") == "1"


@pooled
def test_forked_children_have_a_heap_of_their_own():
    """Forks while the thread that gives back runs and while other Python threads allocate."""
    code = """
    import os, threading, time
    stop = False
    def work():
        while not stop:
            (trt.ones(1_500_000) + 1, trt.ones(10), trt.ones(30_000))
    x = [trt.ones(5_000_000) for _ in range(3)]
    t = threading.Thread(target=work); t.start()
    for i in range(8):
        y = trt.ones(6_000_000); del y
        child = os.fork()
        if child == 0:
            assert x[1].sum().item() == 5e6
            z = [trt.full((6_000_000,), 3.0) for _ in range(2)]
            assert z[1][-1].item() == 3
            del z
            end = time.monotonic() + 10
            while i == 0 and stats("cached_bytes.current") > 16 << 20 and time.monotonic() < end: time.sleep(0.1)
            os._exit(1 if i == 0 and stats("cached_bytes.current") > 16 << 20 else 0)
        assert os.waitpid(child, 0)[1] == 0
    stop = True
    t.join()
    print(x[0].sum().item())
    """
    assert run(code, OMP_NUM_THREADS="1") == "5000000.0"


@pooled
def test_address_space_limits():
    """What is cached goes back before a request fails; a failed one leaves everything usable."""
    code = """
    import resource
    trt.set_num_threads(1)
    used = int(open("/proc/self/statm").read().split()[0]) * 4096
    resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20),) * 2)
    small = [trt.ones(30_000) for _ in range(600)]
    del small
    x = trt.ones(50 << 18)
    del x
    y = trt.ones(220 << 18)
    try:
        trt.ones(200 << 18)
    except RuntimeError as error:
        print("can't allocate memory" in str(error))
    del y
    print(trt.ones(200 << 18)[-1].item(), trt.ones(10).sum().item())
    """
    assert run(code).split() == ["True", "1.0", "10.0"]


@pooled
def test_bytes_of_small_tensors():
    """A tensor of ten floats, its storage and its block: less than PyTorch's 520 bytes, the reference that keeps it included."""
    code = """
    import sys
    def resident(): return int(open("/proc/self/statm").read().split()[1]) * 4096
    trt.ones(10)
    before = resident()
    kept = [trt.ones(10) for _ in range(100_000)]
    print((resident() - before) / len(kept))
    """
    assert float(run(code)) <= 510 + 4 * (OBJECT_HEADER - 16)


def test_the_cache_can_be_bounded():
    memory.set_cache_bound(3 * MiB)
    try:
        x = trt.ones(4 * MiB)
        del x
        assert memory.memory_stats()["cached_bytes.current"] <= 3 * MiB
        assert memory.memory_stats()["cache_bound_bytes"] == 3 * MiB
    finally:
        memory.set_cache_bound(None)
    assert memory.memory_stats()["cache_bound_bytes"] >= SLACK
    with pytest.raises(ValueError, match="must not be negative"):
        memory.set_cache_bound(-1)
    assert run("x = trt.ones(1 << 22)\ndel x\nprint(stats('cached_bytes.current'), stats('cache_bound_bytes'))", TENSORRT_LITE_CPU_CACHE="0") == "0 0"


def test_peaks_start_anew():
    x = trt.ones(MiB)
    del x
    memory.reset_peak_memory_stats()
    s = memory.memory_stats()
    assert s["allocated_bytes.peak"] == s["allocated_bytes.current"] == memory.memory_allocated() == memory.max_memory_allocated()
    if s["allocator"] == "caching":
        assert s["reserved_bytes.peak"] == s["reserved_bytes.current"] == memory.memory_reserved() == memory.max_memory_reserved()


def test_external_memory_keeps_its_owner():
    numpy = pytest.importorskip("numpy")
    array = numpy.ones(1000)
    before = sys.getrefcount(array)
    t = trt.from_numpy(array)
    view = t[3:]
    assert sys.getrefcount(array) > before
    del t
    assert sys.getrefcount(array) > before and view.sum().item() == 997
    del view
    assert sys.getrefcount(array) == before


# ---- others in its place -------------------------------------------------------------------------------------------------


def test_python_callables_as_allocator():
    libc, held, freed = ctypes.CDLL(None), {}, []
    libc.aligned_alloc.restype = ctypes.c_void_p
    libc.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]

    def allocate(nbytes: int, alignment: int) -> int:
        if nbytes == 4 * 12345:
            return 0
        address = libc.aligned_alloc(alignment, nbytes)
        held[address] = nbytes
        return address

    def free(address: int, nbytes: int) -> None:
        assert held.pop(address) == nbytes
        freed.append(nbytes)
        libc.free(address)

    before = trt.ones(100)
    memory.change_current_allocator(memory.CPUPluggableAllocator(allocate, free))
    try:
        x = trt.ones(1000)
        assert x.data_ptr() in held and held[x.data_ptr()] == 4000
        assert memory.memory_stats()["allocator"] == "replaced"
        with pytest.raises(RuntimeError, match="can't allocate memory"):
            trt.empty(12345)
        y = (x + before.sum()).sum()
        del before
    finally:
        memory.change_current_allocator(None)
    address = x.data_ptr()
    z = x * 2
    assert z.data_ptr() not in held and y.item() == 101_000
    del x
    assert address not in held and 4000 in freed
    del y
    assert not held
    with pytest.raises(TypeError):
        memory.change_current_allocator(allocate)
    with pytest.raises(TypeError):
        memory.CPUPluggableAllocator("lib.so", free)


SOURCE = """
#include <stdlib.h>
#include "trt_allocator.h"
static long count;
static void* allocate(size_t bytes, size_t alignment, void* context) { ++*(long*)context; return aligned_alloc(alignment, bytes); }
static void release(void* p, size_t bytes, void* context) { --*(long*)context; free(p); }
const trt_allocator trt_cpu_allocator = {allocate, release, &count};
static long named;
void* named_allocate(size_t bytes, size_t alignment, void* context) { named += 1; return aligned_alloc(alignment, bytes); }
void named_free(void* p, size_t bytes, void* context) { named -= 1; free(p); }
long counted(void) { return count; }
long counted_by_name(void) { return named; }
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_a_shared_library_as_allocator(tmp_path):
    source, library = tmp_path / "allocator.c", tmp_path / "liballocator.so"
    source.write_text(SOURCE)
    include = Path(trt.__file__).parent / "_C" / "core"
    subprocess.run(["cc", "-shared", "-fPIC", "-I", str(include), str(source), "-o", str(library)], check=True)
    code = f"""
    import ctypes
    library = ctypes.CDLL({str(library)!r})
    first = library.counted()
    x = [trt.ones(10), trt.ones(10_000), trt.ones(1_000_000)]
    grown = library.counted() - first
    memory.change_current_allocator(memory.CPUPluggableAllocator({str(library)!r}, "named_allocate", "named_free"))
    y = trt.ones(10)
    named = library.counted_by_name()
    del x, y
    print(first > 0, grown, named, library.counted() - first, library.counted_by_name())
    """
    assert run(code, TENSORRT_LITE_CPU_ALLOCATOR=str(library)) == "True 3 1 0 0"
    with pytest.raises(AttributeError):
        memory.CPUPluggableAllocator(str(library), "absent", "named_free")


def test_the_systems_allocator_by_the_environment():
    code = """
    x, y = trt.ones(10), trt.ones(3_000_000)
    print(stats("allocator"), stats("allocated_bytes.current") >= 12_000_040, stats("active_bytes.current") == stats("allocated_bytes.current"), (x + y[:10]).sum().item())
    """
    assert run(code, TENSORRT_LITE_CPU_ALLOCATOR="system") == "system True True 20.0"


@pytest.mark.parametrize("value, reason", [("tcmalloc", "none of caching, system"), ("/dev/null", "TENSORRT_LITE_CPU_ALLOCATOR=/dev/null")])
def test_a_wrong_allocator_in_the_environment(value, reason):
    with pytest.raises(AssertionError, match=reason):
        run("", TENSORRT_LITE_CPU_ALLOCATOR=value)


def test_threads_allocate_side_by_side():
    """Operators that release the GIL hold blocks while other threads free and take them."""
    wrong = []

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(150):
            n = rng.choice((10, 5000, 70_000, 400_000))
            if trt.full((n,), float(seed)).sum().item() != seed * n:
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(i + 1,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == []
