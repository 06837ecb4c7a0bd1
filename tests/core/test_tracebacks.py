"""Tracebacks hold the frames of Python code, those of callbacks too, and none of the compiled core, whose sources a user does not have."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

import tensorrt_lite as trt
from tensorrt_lite import _C

pytestmark = pytest.mark.skipif(_C.TRACEBACKS, reason="this build keeps the core's frames (TENSORRT_LITE_TRACEBACK=full, or debug)")


def raise_error(*_):
    raise KeyError("of this file")


class Raises(trt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, gradient):
        raise_error()


def hooked() -> None:
    y = trt.ones(2, requires_grad=True) * 2
    y.register_hook(raise_error)
    y.sum().backward()


ERRORS = {
    "shapes": lambda: trt.ones(2, 3) + trt.ones(2, 4),
    "argument of a wrong type": lambda: trt.add("x", 1),
    "keyword": lambda: trt.ones(2).sum(axes=1),
    "index": lambda: trt.ones(3)[5],
    "product": lambda: trt.ones(2, 3) @ trt.ones(2, 3),
    "factory": lambda: trt.zeros(-1),
    "singular matrix": lambda: trt.linalg.inv(trt.zeros(2, 2)),
    "layer": lambda: trt.nn.Linear(2, 3)(trt.ones(1, 5)),
    "no history": lambda: trt.ones(()).backward(),
}
CALLBACKS = {"hook": hooked, "Function": lambda: Raises.apply(trt.ones(2, requires_grad=True)).sum().backward()}


def frames(call) -> list[traceback.FrameSummary]:
    try:
        call()
    except Exception as error:
        return traceback.extract_tb(error.__traceback__)
    pytest.fail("nothing was raised")


@pytest.mark.parametrize("name", ERRORS)
def test_no_frame_without_source(name):
    assert [f.filename for f in frames(ERRORS[name]) if not Path(f.filename).exists()] == []


@pytest.mark.parametrize("name", CALLBACKS)
def test_frames_of_callbacks_stay(name):
    found = frames(CALLBACKS[name])
    assert [f.filename for f in found if not Path(f.filename).exists()] == []
    assert found[-1].name == "raise_error"
