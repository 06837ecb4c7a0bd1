"""What the builder refuses before it compiles, and which interpreters the wheel tool takes."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

build_core = pytest.importorskip("tools.build_core", reason="an installed package has no builder")


def test_a_free_threaded_interpreter_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = sysconfig.get_config_var
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: 1 if name == "Py_GIL_DISABLED" else known(name))
    with pytest.raises(SystemExit, match="free-threaded Python.*docs/gaps.md"):
        build_core.Builder(tmp_path / "build", tmp_path).run()
    assert not list(tmp_path.iterdir())


def test_absent_interpreters_are_named_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    from tools.wheels.__main__ import present

    assert present([sys.executable, "/nowhere/python3.99"]) == [sys.executable]
    assert capsys.readouterr().out == "/nowhere/python3.99: not there, left out\n"
