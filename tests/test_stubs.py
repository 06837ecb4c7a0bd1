"""The installed stubs describe every operator, and a type checker accepts a right program and refuses a wrong one."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import tensorrt_lite
from tensorrt_lite import _ops

PACKAGE = Path(tensorrt_lite.__file__).parent
PROGRAM = Path(__file__).parent / "typing" / "program.py"


@pytest.fixture(scope="module")
def operators() -> ast.Module:
    return ast.parse((PACKAGE / "_operators.pyi").read_text())


def test_every_operator_has_a_stub(operators: ast.Module) -> None:
    functions = {n.name for n in operators.body if isinstance(n, ast.FunctionDef)}
    [methods] = [{m.name for m in n.body if isinstance(m, ast.FunctionDef)} for n in operators.body if isinstance(n, ast.ClassDef)]
    assert set(_ops.FUNCTIONS) == functions
    assert set(_ops.METHODS) - {"__delitem__"} <= methods


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_type_checker_reads_them() -> None:
    """--warn-unused-ignores makes the two mistakes in the program obligatory."""
    command = [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", "--no-incremental", str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stdout + done.stderr
