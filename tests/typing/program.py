"""A program as a user of a type checker would write it; checked against the installed stubs, never run."""

from typing import assert_type

import tensorrt_lite as trt
from tensorrt_lite import nn


def step(model: nn.Module, x: trt.Tensor, y: trt.Tensor) -> float:
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return float(loss)


a = trt.ones(2, 3, dtype=trt.float32)
b = trt.add(a, 1)
assert_type(b, trt.Tensor)
assert_type(a + b, trt.Tensor)
assert_type(2 * a, trt.Tensor)
assert_type(a.relu().exp_(), trt.Tensor)
assert_type(a[0], trt.Tensor)
assert_type(a.dtype, trt.dtype)
assert_type(a.numel(), int)
assert_type(a.grad, trt.Tensor | None)
with trt.no_grad():
    c = a.sigmoid()
for row in c:
    assert_type(row, trt.Tensor)
trt.add("x", 1)  # type: ignore[arg-type]  # an error that a checker must see
a.exp(1, 2, 3)  # type: ignore[call-arg]
