"""Results that own their memory are no views: they can be detached in place, and nothing else shares their version."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")

CALLS = {
    "nonzero": lambda m: m.nonzero(m.eye(3)),
    "nonzero of a vector": lambda m: m.nonzero(m.tensor([1, 0, 2])),
    "argwhere": lambda m: m.argwhere(m.eye(3)),
    "stack of channels_last": lambda m: m.stack([m.ones(2, 4, 3, 3).contiguous(memory_format=m.channels_last)] * 2, 1),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_fresh_result_is_no_view(name):
    ours, theirs = CALLS[name](trt), CALLS[name](torch)
    assert not theirs._is_view() and not ours._is_view() and ours._base is None
    assert ours.tolist() == theirs.tolist()
    ours.detach_()
