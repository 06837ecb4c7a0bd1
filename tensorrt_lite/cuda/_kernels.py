"""Loads what puts tensors on CUDA: the backend, which gives the core its device hooks, and the operator families' kernels."""

from __future__ import annotations

from tensorrt_lite._C.cuda import driver

driver.require()  # before modules are made that could not be made a second time
from tensorrt_lite._C.cuda import backend  # noqa: E402, F401

_FAMILIES: tuple[str, ...] = (
    "attention",
    "conv",
    "indexing",
    "linalg",
    "matmul",
    "norm",
    "optim",
    "pool",
    "random",
    "reduction",
    "scan",
    "softmax",
    "sorting",
)

for _name in _FAMILIES:
    __import__(f"tensorrt_lite._C.cuda.{_name}")

from tensorrt_lite.backends import cuda as _flags  # noqa: E402

_flags._apply()
