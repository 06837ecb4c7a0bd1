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
    [methods] = [{m.name for m in n.body if isinstance(m, ast.FunctionDef)} for n in operators.body if isinstance(n, ast.ClassDef) and n.name == "TensorOperators"]
    assert set(_ops.FUNCTIONS) == functions
    assert set(_ops.METHODS) - {"__delitem__"} <= methods


def declared(path: str, owner: str | None = None) -> set[str]:
    """The names that a stub gives a module, or a class in it."""
    body: list[ast.stmt] = ast.parse((PACKAGE / path).read_text()).body
    if owner is not None:
        [body] = [n.body for n in body if isinstance(n, ast.ClassDef) and n.name == owner]
    found = {n.name for n in body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    found |= {n.target.id for n in body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)}
    return found | {alias.asname or alias.name for n in body if isinstance(n, ast.ImportFrom) for alias in n.names}


def test_every_public_name_has_a_type() -> None:
    """So that a checker can refuse the others: the stubs of the package and of Tensor take no unknown names."""
    assert set(dir(tensorrt_lite)) - declared("__init__.pyi") - declared("_operators.pyi") == set()
    public = {n for n in dir(tensorrt_lite.Tensor) if not n.startswith("_")}
    assert public - declared("tensor.pyi", "Tensor") - declared("_operators.pyi", "TensorOperators") == set()
    assert set(tensorrt_lite.linalg.__all__) - declared("linalg/__init__.pyi") == set()
    assert set(tensorrt_lite.special.__all__) - declared("special/__init__.pyi") == set()


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("max", (0,), "_values_indices"), ("sort", (), "_values_indices"), ("aminmax", (), "_min_max"), ("slogdet", (), "_sign_logabsdet"), ("svd", (), "_U_S_V"),
        ("qr", (), "_Q_R"), ("geqrf", (), "_a_tau"), ("split", (1,), "tuple[Tensor, ...]"), ("chunk", (2,), "tuple[Tensor, ...]"), ("size", (0,), "int"),
        ("var", (), "Tensor"), ("flatten", (), "Tensor"), ("equal", (None,), "builtins.bool"),
    ],
)  # fmt: skip
def test_results_are_of_the_declared_kind(name: str, arguments: tuple[object, ...], expected: str, operators: ast.Module) -> None:
    x = tensorrt_lite.eye(2) * 2
    result = getattr(x, name)(*(x if a is None else a for a in arguments))
    bodies = [n.body for n in operators.body if isinstance(n, ast.ClassDef) and n.name == "TensorOperators"]
    bodies += [n.body for n in ast.parse((PACKAGE / "tensor.pyi").read_text()).body if isinstance(n, ast.ClassDef) and n.name == "Tensor"]
    returns = [ast.unparse(n.returns) for body in bodies for n in body if isinstance(n, ast.FunctionDef) and n.name == name and n.returns]
    assert expected in returns
    if expected.startswith("_"):
        assert "_" + "_".join(result._fields) == expected
    else:
        kind = {"Tensor": tensorrt_lite.Tensor, "builtins.bool": bool, "int": int}.get(expected, tuple)
        assert isinstance(result, kind)


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_type_checker_reads_them() -> None:
    """--warn-unused-ignores makes the mistakes in the program obligatory."""
    command = [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", "--no-incremental", str(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stdout + done.stderr
