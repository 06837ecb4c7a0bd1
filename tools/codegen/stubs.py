"""Stubs and the operator table: `_operators.pyi`, `_nn_operators.pyi` and `linalg/__init__.pyi`, `special/__init__.pyi` of the package for type checkers,
docs/operators.md for readers.

A stub line has PyTorch's signature with Python types; the table says per operator which variants exist, which dtypes its
CPU kernel takes, whether it is differentiable and which backends have a kernel.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .entries import has_entry
from .help import read_help
from . import dtypes
from .schema import DTYPES, Argument, Operator, aliases, load

# Operators are called int, bool and float, too, so the types are spelled in full.
_TYPES = {
    "Tensor": "Tensor", "Tensor?": "Tensor | None", "Tensor[]": "Sequence[Tensor]", "Tensor?[]": "Sequence[Tensor | None]", "int": "builtins.int", "int?": "builtins.int | None", "bool": "builtins.bool", "bool?": "builtins.bool | None",
    "float": "builtins.float", "float?": "builtins.float | None", "Scalar": "Number", "Scalar?": "Number | None", "int[]": "builtins.int | Sequence[builtins.int]", "int[]?": "builtins.int | Sequence[builtins.int] | None",
    "ScalarType": "dtype", "ScalarType?": "dtype | None", "str": "builtins.str", "str?": "builtins.str | None", "Generator?": "Any", "float[]": "Sequence[builtins.float]", "float[]?": "Sequence[builtins.float] | None",
}  # fmt: skip
_RESULT = {
    "Tensor": "Tensor", "Tensor[]": "tuple[Tensor, ...]", "bool": "builtins.bool", "int": "builtins.int", "ScalarType": "dtype",
    "Scalar": "builtins.bool | builtins.int | builtins.float",  # of complex tensors complex, which would make every use of the others an error
}  # fmt: skip
# Results with names, by operator; the operators of _ALSO_TENSOR return one tensor where no dimension is given.
_NAMED = {
    **dict.fromkeys("cummax cummin kthvalue max median min mode nanmedian sort topk".split(), ("values", "indices")),
    "aminmax": ("min", "max"), "geqrf": ("a", "tau"), "histogram": ("hist", "bin_edges"), "qr": ("Q", "R"), "slogdet": ("sign", "logabsdet"), "svd": ("U", "S", "V"),
    "triangular_solve": ("solution", "cloned_coefficient"),
    "linalg_cholesky_ex": ("L", "info"), "linalg_eig": ("eigenvalues", "eigenvectors"), "linalg_eigh": ("eigenvalues", "eigenvectors"), "linalg_inv_ex": ("inverse", "info"),
    "linalg_ldl_factor": ("LD", "pivots"), "linalg_ldl_factor_ex": ("LD", "pivots", "info"), "linalg_lstsq": ("solution", "residuals", "rank", "singular_values"),
    "linalg_lu": ("P", "L", "U"), "linalg_lu_factor": ("LU", "pivots"), "linalg_lu_factor_ex": ("LU", "pivots", "info"), "linalg_qr": ("Q", "R"),
    "linalg_slogdet": ("sign", "logabsdet"), "linalg_solve_ex": ("result", "info"), "linalg_svd": ("U", "S", "Vh"),
}  # fmt: skip
_ALSO_TENSOR = ("max", "median", "min", "nanmedian")


def python_type(a: Argument, first: bool, pointwise: bool) -> str:
    if pointwise and a.type == "Tensor" and not first:
        return "Tensor | Number"
    words = [_TYPES.get(part, "Any") for part in a.type.split("|")]
    return "Any" if "Any" in words else " | ".join(dict.fromkeys(w for word in words for w in word.split(" | ")))


def default(a: Argument) -> str:
    return "" if a.default is None else " = ..."


_STARRED = {"Tensor[]": "Tensor | Sequence[Tensor]", "int[]": "builtins.int"}


def stub_lines(op: Operator, method: bool, inplace: bool = False) -> list[str]:
    """The `def` line; two where an argument may be written as several."""
    starred = op.row.get("starred")
    if starred and op.row.get("spellings", {}).get(starred) == "*" or op.kind == "factory" and starred:
        return ["@overload", stub_line(op, method, inplace, starred), "@overload", stub_line(op, method, inplace)]
    return [stub_line(op, method, inplace, starred)]


def stub_line(op: Operator, method: bool, inplace: bool = False, starred: str | None = None) -> str:
    """One `def` line."""
    parts: list[str] = []
    keyword: list[str] = []
    for i, a in enumerate(op.arguments):
        if method and i == 0:
            parts.append("self")
            continue
        name = "input" if a.name == "self" else a.name
        if a.name == starred:
            parts.append(f"*{name}: {_STARRED.get(a.type, 'Any')}")
            continue
        text = f"{name}: {python_type(a, i == 0, op.kind == 'pointwise')}{default(a)}"
        (keyword if a.keyword else parts).append(text)
    if "out" in op.variants and not inplace:
        keyword.append("out: Any = ...")
    if keyword:
        parts += [*([] if starred else ["*"]), *keyword]
    return f"def {op.name}{'_' if inplace else ''}({', '.join(parts)}) -> {result_type(op)}: ..."


def result_class(fields: tuple[str, ...]) -> str:
    return "_" + "_".join(fields)


def result_classes() -> list[str]:
    """The classes of results with names."""
    lines = []
    for fields in sorted(set(_NAMED.values())):
        lines += [f"class {result_class(fields)}(NamedTuple):", *(f"    {field}: Tensor" for field in fields), ""]
    return lines


def result_type(op: Operator) -> str:
    if op.name in _NAMED:
        return result_class(_NAMED[op.name])
    if not op.returns:
        return "None"
    return _RESULT.get(op.returns[0], "Any") if len(op.returns) == 1 else f"tuple[{', '.join(_RESULT.get(r, 'Any') for r in op.returns)}]"


def overloads(name: str, method: bool) -> list[str]:
    """max(input), max(input, dim, keepdim) and max(input, other)."""
    first = "self" if method else "input: Tensor"
    named = result_class(_NAMED[name])
    lines = [
        "@overload", f"def {name}({first}, *, out: Any = ...) -> Tensor: ...",
        "@overload", f"def {name}({first}, dim: builtins.int, keepdim: builtins.bool = ..., *, out: Any = ...) -> {named}: ...",
    ]  # fmt: skip
    if name in ("max", "min"):
        lines += ["@overload", f"def {name}({first}, other: Tensor, *, out: Any = ...) -> Tensor: ..."]
    return lines


def inspected_line(name: str, function: object, method: bool, result: str) -> str:
    """A `def` line for a function written by hand: its own parameters, of any type."""
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
_INPLACE = {f"__i{name}__" for name in "add sub mul truediv floordiv mod pow and or xor lshift rshift".split()}
_CONVERSIONS = {"__bool__": "bool", "__int__": "int", "__float__": "float", "__complex__": "complex", "__index__": "int"}


def symbol_line(name: str) -> str:
    """An operator symbol of Tensor."""
    if name in _CONVERSIONS:
        return f"def {name}(self) -> builtins.{_CONVERSIONS[name]}: ..."
    if name in ("__neg__", "__pos__", "__abs__", "__invert__"):
        return f"def {name}(self) -> Tensor: ..."
    if name in _INPLACE:
        return f"def {name}(self, other: Any) -> Self: ..."
    if name in _COMPARISONS:
        return f"def {name}(self, other: Any) -> Tensor: ...  # type: ignore[override]"
    if name == "__getitem__":
        return "def __getitem__(self, index: Any) -> Tensor: ..."
    if name == "__setitem__":
        return "def __setitem__(self, index: Any, value: Any) -> None: ..."
    return f"def {name}(self, other: Any) -> Tensor: ..."


_IMPORTS = [
    "# Generated from cysrc/ops/*/*.yaml and from the functions written by hand.", "import builtins", "from collections.abc import Sequence",
    "from typing import Any, NamedTuple, Self, overload", "", "from tensorrt_lite import dtype", "from tensorrt_lite.tensor import Tensor", "",
    "Number = builtins.bool | builtins.int | builtins.float | builtins.complex", "",
]  # fmt: skip


class StubLines:
    """The lines of functions and methods: declared rows have their declared signature, the others are inspected."""

    def __init__(self, operators: list[Operator]) -> None:
        self.declared: dict[str, tuple[Operator, bool]] = {}
        for op in operators:
            for name in (op.name, *aliases(op)):
                if op.variants != {"inplace"}:
                    self.declared[name] = (op, False)
                if "inplace" in op.variants:
                    self.declared[name + "_"] = (op, True)

    def of(self, name: str, function: object, method: bool = False) -> list[str]:
        if name.startswith("__"):
            return [symbol_line(name)]
        if name in _ALSO_TENSOR:
            return overloads(name, method)
        op, inplace = self.declared.get(name, (None, False))
        if op is None:
            return [inspected_line(name, function, method, "Any")]
        if not has_entry(op) or "public" in op.row:
            return [inspected_line(name, function, method, result_type(op))]
        return [line.replace(f"def {op.name}", f"def {name.removesuffix('_') if inplace else name}", 1) for line in stub_lines(op, method, inplace)]


def stub_module(operators: list[Operator], functions: dict[str, object], methods: dict[str, object], symbols: Iterable[str]) -> str:
    """The text of `_operators.pyi`: a class with the methods and symbols, and the functions.

    functions, methods: what the built package exports.
    """
    stubs = StubLines(operators)
    lines = [*_IMPORTS, *result_classes(), "class TensorOperators:", "    __hash__: None  # type: ignore[assignment]"]
    for name in sorted({*methods, *symbols} - {"__delitem__"}):
        lines += [f"    {line}" for line in stubs.of(name, methods.get(name), method=True)]
    lines.append("")
    for name in sorted(functions):
        lines += stubs.of(name, functions[name])
    lines += [f"{row.name}: dtype" for row in dtypes.ALL if not row.has_loops]
    return "\n".join(lines) + "\n"


def stub_renamed(operators: list[Operator], functions: dict[str, tuple[str, object]], also: Iterable[str] = ()) -> str:
    """A module of operators under other names than their own. functions: {public name: (operator's name, function)}."""
    stubs = StubLines(operators)
    lines = [*_IMPORTS, *also, *result_classes()]
    for public, (name, function) in sorted(functions.items()):
        lines += [line.replace(f"def {name}(", f"def {public}(", 1) for line in stubs.of(name, function)]
    return "\n".join(lines) + "\n"


_LINALG_ERROR = ["class LinAlgError(RuntimeError): ...", ""]


def write_stubs(root: Path, folder: Path) -> Path:
    """Write the stubs of operators in <folder>/tensorrt_lite from the declarations and the package built there."""
    sys.path.insert(0, str(folder))
    from tensorrt_lite import _ops, linalg, special
    from tensorrt_lite.nn import functional

    operators = load(root / "cysrc" / "ops")
    package = folder / "tensorrt_lite"
    path = package / "_operators.pyi"
    path.write_text(stub_module(operators, _ops.FUNCTIONS, _ops.METHODS, _ops.SYMBOLS))
    # what nn.functional takes from the operators on first use
    compiled = {n: functional._RENAMED.get(n, n) for n in functional.__all__ if n not in vars(functional)}
    text = stub_renamed(operators, {n: (name, getattr(_ops, name)) for n, name in compiled.items()})
    (package / "_nn_operators.pyi").write_text(text)
    own = {n: f"linalg_{n}" if hasattr(_ops, f"linalg_{n}") else n for n in linalg.__all__ if n != "LinAlgError"}
    text = stub_renamed(operators, {n: (name, getattr(_ops, name)) for n, name in own.items()}, _LINALG_ERROR)
    (package / "linalg" / "__init__.pyi").write_text(text)
    own = {n: special._ALIASES.get(n, f"special_{n}") for n in special.__all__}
    (package / "special" / "__init__.pyi").write_text(stub_renamed(operators, {n: (name, getattr(_ops, name)) for n, name in own.items()}))
    return path


def example_cell(op: Operator, examples: dict[str, Any]) -> str:
    """The call of the operator in its example, for a table: the first one."""
    text = examples.get(op.public_name, {}).get("example", "")
    name = re.sub(r"^.*\.|^(linalg|fft|special)_", "", op.public_name)
    calls = [line[4:] for line in text.splitlines() if line.startswith(">>> ") and f"{name}(" in line]
    return f"`{calls[0]}`".replace("|", "\\|") if calls else ""


def documentation_row(op: Operator, examples: dict[str, Any]) -> str:
    """One row of docs/operators.md."""
    example = example_cell(op, examples)
    variants = ", ".join(v for v in ("function", "method", "inplace", "out", "nn", "linalg", "fft", "special") if v in op.variants) or ("function" if "." in op.name else "internal")
    if op.kind in ("composed", "factory"):
        return f"| `{op.name}` | {op.family} | {variants} | {example} |"
    dtypes = op.row.get("dtypes") or ("all" if len(op.dtypes) == len(DTYPES) else " ".join(op.dtypes)) if op.kind == "pointwise" else "see kernel"
    if isinstance(dtypes, list):
        dtypes = " ".join(dtypes)
    gradient = "yes" if any(not formula.startswith(("missing_derivative", "formulas().not_implemented")) for formula in op.backward.values()) else "no"
    cuda = "yes" if not isinstance(op.row.get("kernel"), dict) else "none"
    return f"| `{op.public_name}` | {op.family} | {variants} | {dtypes} | {gradient} | {cuda} | {example} |"


_KERNEL = ("| operator | family | variants | dtypes | gradient | CUDA kernel | example |", "|---|---|---|---|---|---|---|")
_BODY = ("| function | family | variants | example |", "|---|---|---|---|")
_KINDS = (
    ("Pointwise", "pointwise", "An expression over elements: one row gives the loops of all devices, gradients and tests.", _KERNEL),
    ("Views", "view", "New geometry over the same memory.", _KERNEL),
    ("Structured", "structured", "A meta function, which checks and makes the result, and a step per device.", _KERNEL),
    ("With kernels", "function", "Kernels written by hand behind generated dispatch.", _KERNEL),
    ("Factories", "factory", "They make tensors out of none, or like their first argument.", _BODY),
    ("Composed", "composed", "Written over the operators above, whose dtypes, gradients and devices they have.", _BODY),
)  # fmt: skip


def documentation(operators: list[Operator], examples: dict[str, Any] | None = None) -> str:
    """The text of docs/operators.md. examples: by function what help() adds, with an `example`."""
    lines = [
        "# Operators", "",
        "Written by the build, or by `python -m tools.codegen docs`, from the declarations in `cysrc/ops`; `help()` of each has its docstring, parameters and an example. Every operator with a",
        "kernel has a CPU and a Meta kernel; a column says whether it runs on CUDA. Calling an operator on a device without a kernel raises",
        "NotImplementedError with the operator's name and the key.", "",
    ]  # fmt: skip
    for title, kind, what, head in _KINDS:
        rows = [op for op in operators if ("view" if op.kind == "function" and op.row.get("view") else op.kind) == kind]
        lines += [f"## {title}", "", what, "", *head, *(documentation_row(op, examples or {}) for op in sorted(rows, key=lambda op: op.public_name)), ""]
    return "\n".join(lines)


def write_documentation(root: Path, operators: list[Operator]) -> Path:
    path = root / "docs" / "operators.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(documentation(operators, read_help(root / "cysrc" / "ops", operators)["functions"]))
    return path
