"""A few programs of tools/memory_workloads.py hold little more memory than their tensors: by the allocator's figures, which no other process changes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tensorrt_lite as trt

MiB = 1 << 20
PROGRAM = """
import gc, json, sys
import tensorrt_lite as trt
from tools.memory_workloads import WORKLOADS
trt.set_num_threads(1)
WORKLOADS[sys.argv[1]](trt)
gc.collect()
print(json.dumps(trt.cpu.memory_stats()))
"""


# name: what slabs, headers and rounding may add to the bytes of the tensors. The header of a block is half of what ten floats take.
FACTORS = {
    "growing_80_to_108_mb": 1.1, "zigzag": 1.1, "medium_kept": 1.1, "many_sizes": 1.1, "many_small": 1.55, "exceptions": 1.1, "exceptions_in_backward": 1.1, "lstm": 1.1, "cnn": 1.1,
}  # fmt: skip


@pytest.mark.skipif(trt.cpu.memory_stats()["allocator"] != "caching", reason="every block has its own allocation")
@pytest.mark.parametrize("name", FACTORS)
def test_memory_of(name):
    found = subprocess.run([sys.executable, "-c", PROGRAM, name], cwd=Path(__file__).resolve().parents[1], capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    s = json.loads(found.stdout)
    assert s["active_bytes.peak"] <= FACTORS[name] * s["allocated_bytes.peak"] + 4 * MiB
    # free spans that could not serve a request
    assert s["reserved_bytes.peak"] <= s["active_bytes.peak"] + 12 * MiB
    # a quarter of the peak plus 64 MiB, more where rounds needed again what had gone back
    assert s["cached_bytes.current"] <= s["cache_bound_bytes"]
    assert s["allocated_bytes.current"] <= 0.05 * s["allocated_bytes.peak"] + MiB
