"""tools.build_cost: a build from nothing is compared with the saved one by processor time, with the machine's speed divided out."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tools import build_cost

SAVED = {"native": {"seconds": {"cython": 40.0, "modules": 100.0, "loops": 60.0}, "calibration": 1.0}}


def build(factor: float, reused: int = 0, quick: bool = False) -> dict:
    return {"seconds": {name: s * factor for name, s in SAVED["native"]["seconds"].items()}, "reused": reused, "native": True, "quick": quick}


@pytest.mark.parametrize(("factor", "calibration", "passes"), [(1.0, 1.0, True), (2.0, 2.0, True), (1.2, 1.0, True), (2.0, 1.0, False), (1.0, 0.5, False)])
def test_a_build_passes_where_it_costs_no_more_on_an_equal_machine(factor: float, calibration: float, passes: bool) -> None:
    assert build_cost.verdict(build(factor), calibration, SAVED)[0] is passes


def test_a_build_that_reused_results_is_not_compared() -> None:
    passed, why = build_cost.verdict(build(9.0, reused=3), 1.0, SAVED)
    assert passed and "nothing to compare" in why


def test_a_kind_of_build_that_is_not_saved_passes() -> None:
    assert build_cost.verdict(build(9.0, quick=True), 1.0, SAVED)[0]


def test_the_command_fails_for_a_build_that_costs_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "build_cost.json").write_text(json.dumps(build(2.0)))
    (tmp_path / "saved.json").write_text(json.dumps(SAVED))
    monkeypatch.setattr(build_cost, "SAVED", tmp_path / "saved.json")
    monkeypatch.setattr(build_cost, "calibrate", lambda: 1.0)
    assert build_cost.main([str(tmp_path)]) == 1
    assert "2.00 of the saved native build's" in capsys.readouterr().out


def test_the_calibrating_program_compiles() -> None:
    subprocess.run(["gcc", "-O0", "-fsyntax-only", "-x", "c", "-"], input=build_cost.calibration_program(20), text=True, check=True)


def test_the_saved_builds_name_what_they_took() -> None:
    for entry in json.loads(build_cost.SAVED.read_text()).values():
        assert entry["calibration"] > 0 and {"cython", "modules", "loops", "links"} <= set(entry["seconds"])
