"""Importing a package without its compiled core says how to build it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import tensorrt_lite

PACKAGE = Path(tensorrt_lite.__file__).parent
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the package's Python files, and no core."""
    shutil.copytree(PACKAGE, tmp_path / "tensorrt_lite", ignore=shutil.ignore_patterns("_C", "__pycache__"))
    return tmp_path


def message(checkout: Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"}
    # without site: an editable installation would lend its core
    done = subprocess.run([sys.executable, "-S", "-c", "import tensorrt_lite"], env=environment, cwd=checkout, capture_output=True, text=True)
    last = done.stderr.splitlines()[-1]
    assert last.startswith("ImportError: tensorrt_lite: "), done.stderr
    assert "During handling" not in done.stderr
    return last


def test_a_checkout_that_is_not_built(checkout):
    (checkout / "setup.py").touch()
    said = message(checkout)
    assert "is not built" in said
    assert f"{sys.executable} -m pip install -e {checkout}" in said


def test_collections_are_as_they_were_after_an_import(checkout):
    """The import runs without them; also one that fails, and where they were off before."""
    program = "import gc\n{}\ntry:\n    import tensorrt_lite\nexcept ImportError:\n    pass\nprint(gc.isenabled())"
    for folder in (checkout, PACKAGE.parent):
        for before in ("", "gc.disable()"):
            done = subprocess.run([sys.executable, "-S", "-c", program.format(before)], env={**os.environ, "PYTHONPATH": str(folder)}, cwd=checkout, capture_output=True, text=True)
            assert done.stdout.split() == [str(before == "")], done.stderr


@pytest.mark.parametrize(
    ("suffix", "expected"),
    [
        pytest.param(".cpython-399-x86_64-linux-gnu.so", f"is for another Python (.cpython-399-x86_64-linux-gnu.so; this one loads {SUFFIX})", id="another Python"),
        pytest.param(SUFFIX, "is older than the package (No module named 'tensorrt_lite._C.core.overrides'", id="older sources"),
    ],
)
def test_a_core_that_does_not_fit(checkout, suffix, expected):
    (checkout / "setup.py").touch()
    core = checkout / "tensorrt_lite" / "_C"
    for folder in (core, core / "core", core / "ops"):
        folder.mkdir()
        (folder / "__init__.py").write_text("FAMILIES = []")
    (core / "core" / ("dtype" + suffix)).touch()
    said = message(checkout)
    assert expected in said
    assert "-m pip install -e" in said


def test_an_installation_without_its_core(checkout):
    assert "pip install --force-reinstall tensorrt-lite" in message(checkout)
