"""The allocator's settings, expandable segments, pools and other allocators. What is read once has a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

import tensorrt_lite as trt
from tensorrt_lite.cuda import _settings

cuda = trt.cuda
MB = 1 << 20


def run(program, **environment):
    """A program in a fresh process; what it prints."""
    text = "import tensorrt_lite as trt\ncuda, MB = trt.cuda, 1 << 20\n" + textwrap.dedent(program)
    result = subprocess.run([sys.executable, "-c", text], env={k: v for k, v in os.environ.items() if "ALLOC_CONF" not in k} | environment, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_settings_are_parsed():
    found = _settings.parse("max_split_size_mb:64, garbage_collection_threshold:0.6,expandable_segments:True,backend:native,release_lock_on_cudamalloc:True")
    assert found == {"max_split_size": 64 * MB, "garbage_collection_threshold": 0.6, "expandable_segments": True, "backend": "native"}
    assert _settings.parse("roundup_power2_divisions:4")["divisions"] == [4] * 16
    assert _settings.parse("roundup_power2_divisions:[256:1,512:2,1024:4,>:8],expandable_segments:False")["divisions"] == [1] * 9 + [2, 4] + [8] * 5
    assert _settings.parse("") == {}


@pytest.mark.parametrize(("text", "words"), [
    ("no_such_option:1", "Unrecognized CachingAllocator option: no_such_option"), ("max_split_size_mb:20", "must be > 20"), ("max_split_size_mb", "name:value"),
    ("garbage_collection_threshold:1.5", "between 0 and 1"), ("expandable_segments:yes", "True or False"), ("backend:other", "Unknown allocator backend"),
    ("roundup_power2_divisions:3", "power of 2"), ("roundup_power2_divisions:[3:2]", "intervals have to be power of 2"), ("max_split_size_mb:x", "expected a number"),
])  # fmt: skip
def test_wrong_settings_are_named(text, words):
    with pytest.raises(RuntimeError, match=words):
        cuda.memory._set_allocator_settings(text)


def test_the_environment_is_read_at_the_first_use():
    program = """
        assert cuda.is_available()
        try:
            trt.ones(2, device="cuda")
        except RuntimeError as error:
            print(error)
    """
    assert "Unrecognized CachingAllocator option: wrong" in run(program, PYTORCH_CUDA_ALLOC_CONF="wrong:1")
    assert "too small" in run(program, PYTORCH_ALLOC_CONF="max_split_size_mb:3", PYTORCH_CUDA_ALLOC_CONF="wrong:1")
    run("""
        a = trt.empty(1200, dtype=trt.uint8, device="cuda")
        b = trt.empty(9 * MB + 1, dtype=trt.uint8, device="cuda")
        assert cuda.memory_allocated() == 1536 + 10 * MB, cuda.memory_allocated()
        assert cuda.memory_stats()["max_split_size"] == 32 * MB
        whole = trt.empty(64 * MB, dtype=trt.uint8, device="cuda")
        address = whole.data_ptr()
        del whole
        other = trt.empty(5 * MB, dtype=trt.uint8, device="cuda")     # the large block is not broken
        assert other.data_ptr() != address and trt.empty(60 * MB, dtype=trt.uint8, device="cuda").data_ptr() == address
        assert cuda.memory_stats()["oversize_segments.current"] == 1 and cuda.memory_stats()["oversize_allocations.allocated"] == 2
    """, PYTORCH_ALLOC_CONF="roundup_power2_divisions:[1:1,8:4,>:4],max_split_size_mb:32")  # fmt: skip


def test_garbage_is_collected_above_the_threshold():
    run("""
        total = cuda.mem_get_info()[1]
        old, new = (trt.empty(total // 4, dtype=trt.uint8, device="cuda") for _ in range(2))
        del old
        del new
        other = trt.empty(total // 3, dtype=trt.uint8, device="cuda")
        stats = cuda.memory_stats()
        assert stats["num_device_free"] == 1 and stats["num_alloc_retries"] == 0, stats
    """, PYTORCH_ALLOC_CONF="garbage_collection_threshold:0.4")  # fmt: skip


def test_expandable_segments():
    run("""
        def blocks():
            return [b for s in cuda.memory_snapshot() if s["is_expandable"] for b in s["blocks"]]

        total = cuda.mem_get_info()[1]
        x = trt.full((25 * MB // 4,), 3.0, device="cuda")
        small = trt.arange(10.0, device="cuda")
        assert cuda.memory_reserved() == 42 * MB and len(cuda.memory_snapshot()) == 2
        start = x.data_ptr()
        y = trt.full((30 * MB // 4,), 4.0, device="cuda")             # continues the range: 55 of 60 MB
        assert y.data_ptr() == start + 25 * MB and cuda.memory_reserved() == 62 * MB
        del x
        z = trt.empty(24 * MB, dtype=trt.uint8, device="cuda")
        assert z.data_ptr() == start
        del z
        cuda.empty_cache()                                             # the first 20 MB and nothing of y
        assert cuda.memory_reserved() == 42 * MB and (y == 4).all() and small.tolist() == list(range(10))
        w = trt.full((50 * MB // 4,), 5.0, device="cuda")              # behind y, or over the hole where it fits
        v = trt.full((10 * MB // 4,), 6.0, device="cuda")
        assert (y == 4).all() and (w == 5).all() and (v == 6).all()
        del w, v, y
        # what three segments could not hold
        pieces = [trt.empty(total // 5, dtype=trt.uint8, device="cuda") for _ in range(4)]
        del pieces
        whole = trt.ones(total // 10 * 9, dtype=trt.uint8, device="cuda")
        assert whole[-1].item() == 1 and cuda.memory_stats()["num_alloc_retries"] == 0
        try:
            trt.empty(total, dtype=trt.uint8, device="cuda")
            raise AssertionError
        except cuda.OutOfMemoryError:
            pass
        del whole, small
        cuda.empty_cache()
        assert cuda.memory_reserved() == 0 and cuda.memory_snapshot() == [] and cuda.memory_stats()["segment.all.current"] == 0
        # random requests: no two blocks share a byte, and nothing is lost
        import random
        random.seed(0)
        held = []
        for step in range(100):
            if held and random.random() < 0.5:
                t, value = held.pop(random.randrange(len(held)))
                assert t[-1].item() == value
            else:
                held.append((trt.full((random.choice((100, 5000, 300_000, 2_000_000, 9_000_000)) + step,), step % 100, dtype=trt.int8, device="cuda"), step % 100))
            if step % 25 == 24:
                cuda.empty_cache()
        assert cuda.memory_stats()["active_bytes.all.current"] == sum(b["size"] for b in blocks() if b["state"] != "inactive") == cuda.memory_allocated()
        assert cuda.memory_reserved() == sum(b["size"] for b in blocks())
        assert cuda.memory_stats()["inactive_split_bytes.all.current"] == sum(b["size"] for b in blocks() if b["state"] == "inactive")
        held.clear(); t = None
        cuda.empty_cache()
        assert cuda.memory_reserved() == 0 and cuda.memory_stats()["inactive_split.all.current"] == 0
    """, PYTORCH_ALLOC_CONF="expandable_segments:True")  # fmt: skip


def test_the_drivers_allocator():
    run("""
        x = trt.ones(1000, device="cuda")
        assert cuda.get_allocator_backend() == "cudaMallocAsync" and cuda.memory_allocated() == 4000
        side = cuda.Stream()
        side.wait_stream(cuda.current_stream())
        with cuda.stream(side):
            y = x * 2 + 1
        x.record_stream(side)
        del x
        z = trt.full((1000,), 9.0, device="cuda")
        cuda.current_stream().wait_stream(side)
        assert y.tolist() == [3.0] * 1000 and z.tolist() == [9.0] * 1000
        del y, z
        assert cuda.memory_allocated() == 0
        try:
            cuda.memory._set_allocator_settings("backend:native")
            raise AssertionError
        except RuntimeError as error:
            assert "already initialized" in str(error)
        try:
            trt.empty(1 << 50, dtype=trt.uint8, device="cuda")
            raise AssertionError
        except cuda.OutOfMemoryError:
            pass
    """, PYTORCH_ALLOC_CONF="backend:cudaMallocAsync", CUEMU_STREAMS="late")  # fmt: skip


LIBRARY = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
/* One allocation of the driver for each request; counts them. */
static void* entry(const char* name) {
  static void* driver;
  if (!driver) driver = dlopen(getenv("DRIVER"), RTLD_NOW);
  return dlsym(driver, name);
}
int taken, given;
void* take(ssize_t size, int device, void* stream) {
  unsigned long long p = 0;
  taken++;
  ((int (*)(unsigned long long*, size_t))entry("cuMemAlloc_v2"))(&p, size);
  return (void*)p;
}
void give(void* p, ssize_t size, int device, void* stream) {
  given++;
  ((int (*)(unsigned long long))entry("cuMemFree_v2"))((unsigned long long)p);
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("allocator")
    (folder / "allocator.c").write_text(LIBRARY)
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(folder / "allocator.so"), str(folder / "allocator.c"), "-ldl"], check=True)
    return folder / "allocator.so"


def driver_path():
    if os.environ.get("TENSORRT_LITE_CUDA") == "emulate":
        from tensorrt_lite.cuda._compiler import emulator_library

        return emulator_library()
    return "libcuda.so.1"


def test_a_plugged_allocator(library):
    run("""
        import ctypes, sys, os
        path = os.environ["LIBRARY"]
        plugged = cuda.memory.CUDAPluggableAllocator(path, "take", "give")
        cuda.memory.change_current_allocator(plugged)
        assert cuda.get_allocator_backend() == "pluggable"
        taken, given = (ctypes.c_int.in_dll(ctypes.CDLL(path), name) for name in ("taken", "given"))
        x = trt.ones(1000, device="cuda")
        y = x * 2
        assert taken.value == 2 and given.value == 0 and y.tolist() == [2.0] * 1000
        del x, y
        assert given.value == 2
        try:
            cuda.memory.change_current_allocator(plugged)
            raise AssertionError
        except RuntimeError as error:
            assert "already initialized" in str(error)
    """, LIBRARY=str(library), DRIVER=str(driver_path()))  # fmt: skip


def test_pools_of_programs(library, monkeypatch):
    import ctypes

    monkeypatch.setenv("DRIVER", str(driver_path()))
    plugged = cuda.CUDAPluggableAllocator(str(library), "take", "give")
    taken = ctypes.c_int.in_dll(ctypes.CDLL(str(library)), "taken")
    given = ctypes.c_int.in_dll(ctypes.CDLL(str(library)), "given")
    pool = cuda.MemPool(plugged.allocator())
    outside = trt.ones(1000, device="cuda")
    with cuda.use_mem_pool(pool):
        assert pool.use_count() == 2
        x, y = trt.ones(1000, device="cuda"), trt.ones(5 * MB, device="cuda")
    assert taken.value == 2 and pool.use_count() == 1
    addresses = [s["address"] for s in pool.snapshot()]
    assert len(addresses) == 2 and all(s["segment_pool_id"] == pool.id for s in pool.snapshot())
    assert (x + outside).sum().item() == 2000 and y.sum().item() == 5 * MB
    del x
    others = [trt.empty(1000, device="cuda") for _ in range(50)]  # outside: from the default pool
    assert all(not a <= t.data_ptr() < a + 2 * MB for t in others for a in addresses)
    del y, pool
    cuda.empty_cache()
    assert given.value == 2
    with pytest.raises(OSError, match="nothing.so"):
        cuda.CUDAPluggableAllocator("nothing.so", "take", "give")
    with pytest.raises(AttributeError):
        cuda.CUDAPluggableAllocator(str(library), "take", "missing")


def test_a_pool_lends_before_a_request_fails():
    cuda.empty_cache()
    total = cuda.mem_get_info()[1]
    pool = cuda.MemPool(use_on_oom=True)
    with cuda.use_mem_pool(pool):
        x = trt.empty(total // 2, dtype=trt.uint8, device="cuda")
    del x
    y = trt.empty(total // 10 * 7, dtype=trt.uint8, device="cuda")  # what the pool caches went back
    del y
    cuda.empty_cache()


def test_figures_of_device_and_host():
    cuda.reset_peak_memory_stats()
    cuda.reset_accumulated_memory_stats()
    before = cuda.memory_allocated()
    x = trt.empty(3 * MB, dtype=trt.uint8, device="cuda")
    del x
    assert cuda.max_memory_allocated() >= before + 3 * MB and cuda.memory_allocated() == before
    stats = cuda.memory_stats()
    assert stats["allocation.large_pool.allocated"] == stats["allocation.large_pool.freed"] == 1
    assert {"num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free", "max_split_size", "oversize_segments.peak"} <= set(stats)
    cuda.memory._host_emptyCache()
    cuda.reset_accumulated_host_memory_stats()
    x = trt.empty(1000, pin_memory=True)
    address = x.data_ptr()
    assert cuda.host_memory_stats()["allocated_bytes.current"] >= 4096
    del x
    x = trt.empty(900, pin_memory=True)
    stats = cuda.host_memory_stats()
    assert x.data_ptr() == address and stats["num_host_alloc"] == 1 and stats["allocation.allocated"] == 2 and stats["allocation.freed"] == 1
    del x
    cuda.memory._host_emptyCache()
    cuda.reset_peak_host_memory_stats()
    stats = cuda.host_memory_stats()
    assert stats["num_host_free"] == 1 and stats["reserved_bytes.peak"] == stats["reserved_bytes.current"]


def test_the_history_of_requests(tmp_path):
    import pickle

    cuda.memory._record_memory_history(max_entries=100, clear_history=True)
    try:
        x = trt.empty(3 * MB, dtype=trt.uint8, device="cuda")
        address = x.data_ptr()
        held = [b for s in cuda.memory_snapshot() for b in s["blocks"] if b["address"] == address]
        assert held[0]["frames"][0]["name"] == "test_the_history_of_requests" and held[0]["frames"][0]["filename"] == __file__
        del x
        cuda.memory._dump_snapshot(str(tmp_path / "snapshot.pickle"))
    finally:
        cuda.memory._record_memory_history(None)
    found = pickle.loads((tmp_path / "snapshot.pickle").read_bytes())
    actions = [(e["action"], e["size"]) for e in found["device_traces"][0] if e["addr"] == address and not e["action"].startswith("segment")]
    assert actions == [("alloc", 3 * MB), ("free_requested", 3 * MB), ("free_completed", 3 * MB)]
    before = len(cuda.memory._snapshot()["device_traces"][0])
    trt.empty(3 * MB, dtype=trt.uint8, device="cuda")
    assert len(cuda.memory._snapshot()["device_traces"][0]) == before
    with pytest.raises(RuntimeError, match="expected enabled"):
        cuda.memory._record_memory_history("some")


def test_caching_can_be_switched_off():
    with cuda.caching_allocator_disabled():
        reserved = cuda.memory_reserved()
        x = trt.ones(MB, device="cuda")
        assert cuda.memory_reserved() == reserved + 4 * MB and (x + 1).sum().item() == 2 * MB
        del x
        assert cuda.memory_reserved() == reserved
    run("""
        x = trt.ones(1000, device="cuda")
        assert cuda.memory_reserved() == 4000
        del x
        assert cuda.memory_reserved() == 0
    """, PYTORCH_NO_CUDA_MEMORY_CACHING="1")  # fmt: skip
