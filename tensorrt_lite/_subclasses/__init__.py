"""Tensor subclasses that stand for others: `FakeTensorMode` runs a program on shapes, dtypes and devices alone."""

from __future__ import annotations

from tensorrt_lite._subclasses.fake_tensor import (
    DataDependentOutputException, DynamicOutputShapeException, FakeTensor, FakeTensorMode, UnsupportedFakeTensorException, UnsupportedOperatorException,
)  # fmt: skip

__all__ = [
    "DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException", "UnsupportedOperatorException",
]  # fmt: skip
