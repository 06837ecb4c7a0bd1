"""Recomputation on a device draws the forward pass's random numbers."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils.checkpoint import checkpoint


@pytest.mark.parametrize("reentrant", [False, True])
def test_dropout_is_drawn_again(reentrant):
    x = trt.ones(1000, device="cuda", requires_grad=True)
    y = checkpoint(trt.nn.Dropout(0.5), x, use_reentrant=reentrant)
    after = trt.cuda.get_rng_state()
    y.sum().backward()
    assert (y == x.grad).all()
    assert 300 < (y != 0).sum().item() < 700
    assert trt.cuda.get_rng_state().tolist() == after.tolist()
