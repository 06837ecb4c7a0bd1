"""Sequences of operators, recorded calls issued again, and fake tensors, over the first sample of every operator and the models' steps.

`python -m tests.recording` takes all samples; lists/ names what falls short, and a name that no longer does fails here.
"""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

from tests.conformance import opinfo  # noqa: E402

from . import kinds, lists, models  # noqa: E402

GROUPS = 12
OPERATORS = {name: op for name, op in opinfo.entries(["database"]).items() if op.name not in kinds.SKIPPED}


def check(kind: str, what: str, reports: dict[str, kinds.Report]) -> None:
    """Nothing fails that is not listed, and what is listed fails."""
    listed = lists.read(kind, what)
    new = {name: report.failures for name, report in reports.items() if not report.ok and not listed.get(name)}
    stale = [name for name, report in reports.items() if report.ok and listed.get(name)]
    assert not new, new
    assert not stale, f"these are complete: take them off {lists.path_of(kind, what).name}: {stale}"


@pytest.mark.parametrize("group", range(GROUPS))
def test_operators(group: int) -> None:
    found = {name: kinds.run_operator(op, lists.SUITE, kinds.OPERATOR_KINDS) for name, op in list(OPERATORS.items())[group::GROUPS]}
    for kind in kinds.OPERATOR_KINDS:
        check(kind, "operators", {name: reports[kind] for name, reports in found.items()})


@pytest.mark.parametrize("kind", kinds.MODEL_KINDS)
def test_models(kind: str) -> None:
    check(kind, "models", {name: kinds.MODEL_KINDS[kind](name) for name in models.MODELS})


def test_modules_on_fake_tensors() -> None:
    check("fake", "modules", {name: kinds.fake_of_module(info, lists.SUITE) for name, info in kinds.modules().items()})


def test_the_lists_name_operators_and_models() -> None:
    for path in lists.FOLDER.glob("*.txt"):
        kind, _, what = path.stem.rpartition("_")
        assert set(lists.read(kind, what)) <= set({"operators": OPERATORS, "models": models.MODELS, "modules": kinds.modules()}[what])
