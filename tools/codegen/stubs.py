"""Stubs and the operator table: `tensorrt_lite/_operators.pyi` for type checkers, docs/operators.md for readers.

A stub line has PyTorch's signature with Python types; the table says per operator which variants exist, which dtypes its
CPU kernel takes, whether it is differentiable and which backends have a kernel.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from pathlib import Path

from .schema import Argument, Operator, load

# Operators are called int, bool and float, too, so the types are spelled in full.
_TYPES = {
    "Tensor": "Tensor", "Tensor?": "Tensor | None", "Tensor[]": "Sequence[Tensor]", "Tensor?[]": "Sequence[Tensor | None]", "int": "builtins.int", "int?": "builtins.int | None", "bool": "builtins.bool", "bool?": "builtins.bool | None",
    "float": "builtins.float", "float?": "builtins.float | None", "Scalar": "Number", "Scalar?": "Number | None", "int[]": "builtins.int | Sequence[builtins.int]", "int[]?": "builtins.int | Sequence[builtins.int] | None",
    "ScalarType": "dtype", "ScalarType?": "dtype | None", "str": "builtins.str", "str?": "builtins.str | None", "Generator?": "Any", "Any": "Any",
}  # fmt: skip
_RESULT = {"Tensor": "Tensor", "Tensor[]": "tuple[Tensor, ...]"}


def python_type(a: Argument, first: bool, pointwise: bool) -> str:
    if pointwise and a.type == "Tensor" and not first:
        return "Tensor | Number"
    return _TYPES.get(a.type, "Any")


def default(a: Argument) -> str:
    return "" if a.default is None else " = ..."


def stub_line(op: Operator, method: bool, inplace: bool = False) -> str:
    """One `def` line."""
    parts, keyword = [], []
    for i, a in enumerate(op.arguments):
        if method and i == 0:
            parts.append("self")
            continue
        name = "input" if a.name == "self" else a.name
        text = f"{name}: {python_type(a, i == 0, op.kind == 'pointwise')}{default(a)}"
        (keyword if a.keyword else parts).append(text)
    if "out" in op.variants and not inplace:
        keyword.append("out: Any = ...")
    if keyword:
        parts += ["*", *keyword]
    return f"def {op.name}{'_' if inplace else ''}({', '.join(parts)}) -> {result_type(op)}: ..."


def result_type(op: Operator) -> str:
    return _RESULT.get(op.returns[0], "Any") if len(op.returns) == 1 else f"tuple[{', '.join(_RESULT.get(r, 'Any') for r in op.returns)}]"


def inspected_line(name: str, function: object, method: bool, result: str) -> str:
    """A `def` line for a function written by hand: its own parameters, of any type."""
    if getattr(function, "__module__", "").endswith(("ops.creation", "ops.random")) and name not in ("numpy", "result_type"):
        result = "Tensor"
    try:
        parameters = list(inspect.signature(function).parameters.values())  # type: ignore[arg-type]
    except (TypeError, ValueError):
        parameters = []
    if not parameters or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return f"def {name}({'self, ' if method else ''}*args: Any, **kwargs: Any) -> {result}: ..."
    parts, after_star = [], False
    for i, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and not after_star:
            parts.append("*")
            after_star = True
        if method and i == 0:
            parts.append("self")
        else:
            parts.append(f"{p.name}: Any" + ("" if p.default is p.empty else " = ..."))
    return f"def {name}({', '.join(parts)}) -> {result}: ..."


_COMPARISONS = {"__eq__", "__ne__"}  # object's own signatures are wider than an operator's
_CONVERSIONS = {"__bool__": "bool", "__int__": "int", "__float__": "float", "__complex__": "complex", "__index__": "int"}


def symbol_line(name: str) -> str:
    """An operator symbol of Tensor."""
    if name in _CONVERSIONS:
        return f"def {name}(self) -> builtins.{_CONVERSIONS[name]}: ..."
    if name in ("__neg__", "__pos__", "__abs__", "__invert__"):
        return f"def {name}(self) -> Tensor: ..."
    if name in _COMPARISONS:
        return f"def {name}(self, other: Any) -> Tensor: ...  # type: ignore[override]"
    if name == "__getitem__":
        return "def __getitem__(self, index: Any) -> Tensor: ..."
    if name == "__setitem__":
        return "def __setitem__(self, index: Any, value: Any) -> None: ..."
    return f"def {name}(self, other: Any) -> Tensor: ..."


def stub_module(operators: list[Operator], functions: dict[str, object], methods: dict[str, object], symbols: Iterable[str]) -> str:
    """The text of `_operators.pyi`: a class with the methods and symbols, and the functions.

    functions, methods: what the built package exports. Declared rows have their declared signature, the others are inspected.
    """
    declared: dict[str, tuple[Operator, bool]] = {}
    results = {op.name: result_type(op) for op in operators if op.row.get("entry") == "manual" and op.returns == ["Tensor"]}
    for op in operators:
        if op.row.get("entry") != "manual":
            declared[op.name] = (op, False)
            if "inplace" in op.variants:
                declared[op.name + "_"] = (op, True)

    def line(name: str, function: object, method: bool) -> str:
        if name.startswith("__"):
            return symbol_line(name)
        if name in declared and declared[name][0].arguments:
            op, inplace = declared[name]
            return stub_line(op, method, inplace)
        return inspected_line(name, function, method, results.get(name.removesuffix("_"), "Any"))

    lines = [
        "# Generated from cysrc/ops/*.yaml and from the functions written by hand.", "import builtins", "from collections.abc import Sequence", "from typing import Any", "",
        "from tensorrt_lite import dtype", "from tensorrt_lite.tensor import Tensor", "", "Number = builtins.bool | builtins.int | builtins.float | builtins.complex", "",
        "class TensorOperators:", "    __hash__: None  # type: ignore[assignment]",
    ]  # fmt: skip
    names = sorted({**methods, **dict.fromkeys(symbols)})
    lines += [f"    {line(n, methods.get(n), True)}" for n in names if n not in ("__delitem__",)] + [""]
    lines += [line(n, functions[n], False) for n in sorted(functions)]
    return "\n".join(lines) + "\n"


def write_stubs(root: Path, folder: Path) -> Path:
    """Write <folder>/tensorrt_lite/_operators.pyi from the declarations and the package built there."""
    sys.path.insert(0, str(folder))
    from tensorrt_lite import _ops

    path = folder / "tensorrt_lite" / "_operators.pyi"
    path.write_text(stub_module(load(root / "cysrc" / "ops"), _ops.FUNCTIONS, _ops.METHODS, _ops.SYMBOLS))
    return path


def documentation_row(op: Operator) -> str:
    """One row of docs/operators.md."""
    variants = ", ".join(v for v in ("function", "method", "inplace", "out", "nn") if v in op.variants) or "internal"
    dtypes = op.row.get("dtypes") or ("all" if len(op.dtypes) == 12 else " ".join(op.dtypes)) if op.kind == "pointwise" else "see kernel"
    if isinstance(dtypes, list):
        dtypes = " ".join(dtypes)
    gradient = "yes" if op.backward else "no"
    cuda = "yes" if op.kind == "pointwise" or op.row.get("view") or op.row.get("composite") else "none"
    return f"| `{op.name}` | {op.family} | {op.kind} | {variants} | {dtypes} | {gradient} | {cuda} |"


def documentation(operators: list[Operator]) -> str:
    """The text of docs/operators.md."""
    head = [
        "# Operators", "",
        "Written by the build, or by `python -m tools.codegen docs`, from the declarations in `cysrc/ops`. Functions that are written by hand over these (factories, `max`, `einsum`,",
        "`__getitem__`, …) are not rows. Every operator has a CPU and a Meta kernel; the last column says whether it runs on CUDA. Calling an operator on a device without",
        "a kernel raises NotImplementedError with the operator's name and the key.", "",
        "| operator | family | kind | variants | dtypes | gradient | CUDA kernel |", "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    return "\n".join(head + [documentation_row(op) for op in sorted(operators, key=lambda op: op.name)]) + "\n"


def write_documentation(root: Path, operators: list[Operator]) -> Path:
    path = root / "docs" / "operators.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(documentation(operators))
    return path
