"""Operators agree with PyTorch on the types without loops, but for what stored_incomplete.txt lists (two samples of each; `python -m tests.conformance.stored` takes more)."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

from . import opinfo, stored  # noqa: E402


@pytest.mark.parametrize("dtype", stored.DTYPES, ids=stored.name_of)
def test_operators_agree_with_pytorch(dtype: torch.dtype) -> None:
    listed, short = stored.incomplete(), []
    for name, op in opinfo.entries().items():
        entry = f"{name} {stored.name_of(dtype)}"
        if op.name in stored.LEFT_OUT or entry in listed:
            continue
        report = stored.run(op, dtype, 2)
        if report.status != "ok":
            short.append(f"{entry}: {report.text()} {report.failures[:1]}")
    assert not short, "\n".join(short)


def test_the_list_names_operators() -> None:
    known = set(opinfo.entries())
    assert {entry.split()[0] for entry in stored.incomplete()} <= known
