"""Every operator of operators.txt agrees with PyTorch in every kind of call: one test per operator and kind.

TENSORRT_LITE_CONFORMANCE_MODULE names another library to test; with TENSORRT_LITE_CONFORMANCE_ALLOW_MISSING=1 an
operator that the library lacks is skipped and not failed.
"""

from __future__ import annotations

import importlib
import os

import pytest

pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

from . import opinfo, runner  # noqa: E402
from .kinds import KINDS, applies  # noqa: E402

MODULE = os.environ.get("TENSORRT_LITE_CONFORMANCE_MODULE", "tensorrt_lite")
ALLOW_MISSING = os.environ.get("TENSORRT_LITE_CONFORMANCE_ALLOW_MISSING") == "1"
OPERATORS = opinfo.entries()


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, op in OPERATORS.items() for kind in KINDS if applies(op, kind)]
)
def test_agrees_with_pytorch(name: str, kind: str) -> None:
    module = importlib.import_module(MODULE)
    report = runner.isolated(lambda: runner.run(OPERATORS[name], kind, module), timeout=300.0)
    if report.status == "missing" and ALLOW_MISSING:
        pytest.skip(report.failures[0])
    described = "\n  ".join(report.failures)
    assert report.status == "ok", f"{name} {kind}: {report.text()}\n  {described}"
    assert report.total > 0, f"{name} {kind}: no samples"
