"""Functions of `torch.masked` beside PyTorch's: every sample of its operator database in float32 and float64, values and gradients."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

import torch  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402

import tensorrt_lite as trt  # noqa: E402
from tests.conformance import opinfo, runner  # noqa: E402

OPERATORS = {op.name: op for op in op_db if op.name.startswith("masked.")}


@pytest.mark.parametrize("name", sorted(OPERATORS))
@pytest.mark.parametrize("kind", ["forward", "grad"])
def test_samples_of_the_database_equal_pytorch(name, kind, monkeypatch):
    monkeypatch.setattr(opinfo, "DTYPES", (torch.float32, torch.float64, torch.int64))
    report = runner.run(OPERATORS[name], kind, trt)
    assert not report.failures and report.passed == report.total
    assert report.total > 10 or kind == "grad" and name in ("masked.argmax", "masked.argmin")


def test_every_public_name_of_pytorch_is_here():
    assert sorted(trt.masked.__all__) == sorted(torch.masked.__all__)
    assert all(hasattr(trt.masked, name) for name in torch.masked.__all__)


def test_masks_are_checked():
    x = trt.ones(3)
    with pytest.raises(IndexError, match="broadcastable mask"):
        trt.masked.sum(x, mask=trt.ones(2, 3, dtype=trt.bool))
    with pytest.raises(RuntimeError):
        trt.masked.sum(x, mask=trt.ones(2, dtype=trt.bool))
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        trt.masked.mean(trt.ones(3, dtype=trt.int64))
    with pytest.raises(ValueError, match="fully masked out"):
        trt.masked.median(trt.ones(3, dtype=trt.int64), 0, mask=trt.zeros(3, dtype=trt.bool))
    with pytest.raises(IndexError, match="out of range"):
        trt.masked.sum(x, 2)
    with pytest.raises(RuntimeError, match="appears multiple times"):
        trt.masked.sum(x, (0, 0))
