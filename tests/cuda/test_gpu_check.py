"""tools/gpu_check.py without a card: that it says so, and a rehearsal of its first steps on the emulator."""

from __future__ import annotations

from pathlib import Path

import pytest

import tensorrt_lite as trt
from tools import gpu_check


def test_rehearsal(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORRT_LITE_CUDA_CACHE", str(cache))
    r = gpu_check.main(["--emulator", "--no-tests", "--no-bench", "--out", str(tmp_path)])
    report = (tmp_path / "gpu_report.md").read_text()
    assert r == 0 and "arange, add and sum: right" in report and report.rstrip().endswith("Everything passed."), report


def test_failures_are_counted_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = gpu_check.Run(gpu_check.parser().parse_args(["--emulator", "--out", str(tmp_path)]))
    run.several("Families", {"good": ["-c", "print('fine')"], "bad": ["-c", "raise SystemExit('broken')"]})
    assert run.failed and "1 of 2 pass: good" in run.report.path.read_text() and "### bad: exit status 1" in run.report.path.read_text()
    assert not run.step("Step", "-c", "1 / 0") and "ZeroDivisionError" in run.report.path.read_text()


@pytest.mark.skipif(trt.cuda.is_available(), reason="there is a card")
def test_without_a_card(tmp_path: Path) -> None:
    assert gpu_check.main(["--out", str(tmp_path)]) == 1
    assert "nothing was run" in (tmp_path / "gpu_report.md").read_text()
