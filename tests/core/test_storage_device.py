"""A tensor's device, layout and type have one setter each, so that fields and dispatch keys cannot differ from the storage.

tests/cuda/devices_checks.py goes through every way to exchange a storage with two devices."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tensorrt_lite as trt
from tests.free_threading import OBJECT_HEADER

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [p for p in sorted((ROOT / "cysrc").rglob("*")) if p.suffix in {".pyx", ".pxi", ".pxd"}]
# what may assign the field, and who else has a field of that name
OWNERS = {
    "storage": {"core/tensor.pyx", "core/storage.pyx", "ops/creation/creation.pyx",             # creation: NumPy's view of a tensor
                "core/transform.pyx", "ops/view/view.pyx"},                                                 # what stands for a tensor of a functional transform
    "device_type": {"core/tensor.pyx", "core/storage.pyx", "autograd/node.pyx", "core/dlpack.pyx", "core/transform.pyx",
                    "core/sparse.pyx"},     # what a Node and DLPack write down
    "device_index": {"core/tensor.pyx", "core/storage.pyx", "autograd/node.pyx"},
    "layout": {"core/tensor.pyx", "core/sparse.pyx", "autograd/attributes.pyx", "core/transform.pyx"},      # subclasses over the same storage, wrappers of sparse tensors
}  # fmt: skip


@pytest.mark.skipif(not SOURCES, reason="needs the sources")
@pytest.mark.parametrize("field", OWNERS)
def test_fields_have_one_setter(field):
    found = {str(p.relative_to(ROOT / "cysrc")) for p in SOURCES if re.search(rf"\.{field} = ", p.read_text())}
    assert found <= OWNERS[field], f"use set_storage of core/tensor.pxd: {sorted(found - OWNERS[field])}"


def test_the_size_of_a_tensor():
    """The layout's slot lies in what was padding."""
    assert sys.getsizeof(trt.ones(1)) <= 320 + OBJECT_HEADER
    assert sys.getsizeof(trt.ones(0).untyped_storage()) <= 32 + OBJECT_HEADER


def test_layout():
    x = trt.ones(2, 3)
    for t in (x, x.t(), x[0], x.detach(), x.data, trt.empty(0), trt.nn.Parameter(x)):
        assert t.layout is trt.strided


CUSTOM = """
import tensorrt_lite as trt
from tensorrt_lite import backend

backend.register_backend("toy")
x = trt.ones(3).to("toy")
assert x.device.type == x.untyped_storage().device.type == "toy"
assert backend.as_cpu(x).device.type == backend.as_cpu(x).untyped_storage().device.type == "cpu"
backend.as_cpu(x).fill_(2)
assert x.cpu().tolist() == [2, 2, 2]
assert trt.empty(0, device="meta").set_(x).device.type == "toy"
"""


def test_a_custom_devices_storage_says_so():
    subprocess.run([sys.executable, "-c", CUSTOM], check=True, timeout=120)
