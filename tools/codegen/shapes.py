"""The language of `shape`, `dtype` and `require`: sizes and dtypes of a row's results as expressions over its arguments.

It has Python's expression syntax over the argument names and the names of `let`: integers, arithmetic with `//` and `%`, `min` and `max`, comparisons, `and`,
`or`, `not`, `a if condition else b`, lists, slices, `[... for n in list]`, and the functions of tensorrt_lite/_declared/shape_functions.py. `shape` gives a list of
sizes (for several results a list of such texts, for a list of tensors a list of lists), `dtype` a dtype, `require: condition -> message` what is refused,
with `{...}` in the message; `condition -> IndexError: message` names another error than RuntimeError. Pointwise rows have both implicitly.

`out_dtype` is the dtype of the tensor that the call writes to, None of a call that makes its result. Two more keys of structured rows are in the language of
`dtype`: `input_dtype`, to which the kernel casts the operand, and `step_dtype`, which the step computes where it is not the result's.

`to_cython` writes an expression of dtypes for the generated kernel, `python_source` the rules over ints and symbols, `_C/shape_rules.py`, for tensorrt_lite/_declared/shapes.py.
"""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from . import dtypes
from .schema import Argument, DeclarationError, Operator

_NODES = (
    ast.Expression, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod, ast.UnaryOp, ast.USub, ast.Not, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.Eq, ast.NotEq,
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.IsNot, ast.In, ast.NotIn, ast.IfExp, ast.Call, ast.Name, ast.Load, ast.Store, ast.Constant, ast.List, ast.Tuple, ast.Starred,
    ast.Subscript, ast.Slice, ast.ListComp, ast.comprehension,
)  # fmt: skip
_BUILTINS = {"min", "max", "len", "sum", "range", "zip", "all", "any", "enumerate"}
DTYPES = {
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex32", "complex64", "complex128",
}  # fmt: skip
_FUNCTIONS = Path(__file__).parents[2] / "tensorrt_lite" / "_declared" / "shape_functions.py"


def functions() -> frozenset[str]:
    """The functions of the language beside Python's own."""
    tree = ast.parse(_FUNCTIONS.read_text())
    return frozenset(n.name for n in tree.body if isinstance(n, ast.FunctionDef) and not n.name.startswith("_"))


class _Python(ast.NodeTransformer):
    """The expression with functions and dtypes looked up where `_C/shape_rules.py` has them."""

    def __init__(self, known: set[str], where: str):
        self.known, self.where, self.functions = set(known), where, functions()

    def visit_ListComp(self, n: ast.ListComp) -> ast.AST:
        outer = set(self.known)
        for part in n.generators:
            part.iter = self.visit(part.iter)
            self.known |= {x.id for x in ast.walk(part.target) if isinstance(x, ast.Name)}
            part.ifs = [self.visit(x) for x in part.ifs]
        n.elt = self.visit(n.elt)
        self.known = outer
        return n

    def visit_Call(self, n: ast.Call) -> ast.AST:
        if not isinstance(n.func, ast.Name) or n.keywords:
            raise DeclarationError(f"{self.where}: a call of a function by its name, with arguments by position: {ast.unparse(n)}")
        name = n.func.id
        if name not in _BUILTINS | self.functions:
            raise DeclarationError(f"{self.where}: {name} is no function of the language")
        n.args = [self.visit(x) for x in n.args]
        if name not in _BUILTINS:
            n.func = ast.Attribute(ast.Name("_f", ast.Load()), name, ast.Load())
        return n

    def visit_Name(self, n: ast.Name) -> ast.AST:
        if n.id in self.known:
            return ast.Name(python_name(n.id), n.ctx)
        if n.id == "out_dtype":
            return ast.Constant(None)
        if n.id in DTYPES:
            return ast.parse(f"_f.named({n.id!r})", mode="eval").body
        raise DeclarationError(f"{self.where}: {n.id} is no argument")

    def generic_visit(self, n: ast.AST) -> ast.AST:
        if not isinstance(n, _NODES):
            raise DeclarationError(f"{self.where}: {type(n).__name__} is not in the language of shapes")
        return super().generic_visit(n)


def python_name(name: str) -> str:
    return name + "_" if keyword.iskeyword(name) else name


def to_python(text: str, names: Iterable[str], where: str) -> str:
    """Python's text of an expression over the names."""
    try:
        tree = ast.parse(str(text).strip(), mode="eval")
    except SyntaxError as error:
        raise DeclarationError(f"{where}: {text!r}: {error}") from None
    return ast.unparse(ast.fix_missing_locations(_Python(set(names), where).visit(tree)))


_CODES = {row.name: "BOOL" if row.type == "b8" else row.type.upper() for row in dtypes.ALL if row.name in DTYPES}
_OF_CODES = {"real_of": "to_real({})", "complex_of": "to_complex({})", "is_integral": "is_integral_or_bool_type({})", "is_float": "(category[{}] == CAT_FLOAT)",
             "is_complex": "(category[{}] == CAT_COMPLEX)", "promote_types": "promotion[{}][{}]", "float_of": "(default_float_code() if is_integral_or_bool_type({0}) else {0})",
             "label": "dtype_text({})", "total": "(I64 if is_integral_or_bool_type({0}) else {0})"}  # fmt: skip


class _Cython(ast.NodeVisitor):
    """An expression of dtypes over codes, which are ints: -1 for None."""

    def __init__(self, arguments: dict[str, str], local: Collection[str], where: str):
        self.arguments, self.local, self.where = arguments, local, where

    def visit_Name(self, n: ast.Name) -> str:
        if n.id in self.arguments or n.id in self.local:
            return n.id
        if n.id == "out_dtype":
            return "(out.dtype if mode != FRESH else -1)"
        if n.id not in _CODES:
            raise DeclarationError(f"{self.where}: {n.id} is no argument")
        return _CODES[n.id]

    def visit_Constant(self, n: ast.Constant) -> str:
        return "-1" if n.value is None else repr(n.value)

    def visit_IfExp(self, n: ast.IfExp) -> str:
        return f"({self.visit(n.body)} if {self.visit(n.test)} else {self.visit(n.orelse)})"

    def visit_BoolOp(self, n: ast.BoolOp) -> str:
        return "(" + (" and " if isinstance(n.op, ast.And) else " or ").join(map(self.visit, n.values)) + ")"

    def visit_UnaryOp(self, n: ast.UnaryOp) -> str:
        return f"(not {self.visit(n.operand)})" if isinstance(n.op, ast.Not) else f"(-{self.visit(n.operand)})"

    def visit_Compare(self, n: ast.Compare) -> str:
        left, op, right = n.left, n.ops[0], n.comparators[0]
        if isinstance(op, ast.In) and isinstance(right, ast.List):
            return "(" + " or ".join(f"{self.visit(left)} == {self.visit(x)}" for x in right.elts) + ")"
        if isinstance(op, (ast.Is, ast.IsNot)):
            kind = self.arguments.get(left.id, "") if isinstance(left, ast.Name) else ""
            absent = {"int[]?": "{} == NULL", "int?": "{} is None", "Tensor?": "{} is None"}.get(kind, "{} < 0").format(self.visit(left))
            return f"(not ({absent}))" if isinstance(op, ast.IsNot) else f"({absent})"
        sign = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}[type(op)]
        return f"({self.visit(left)} {sign} {self.visit(right)})"

    def visit_BinOp(self, n: ast.BinOp) -> str:
        sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}[type(n.op)]
        return f"({self.visit(n.left)} {sign} {self.visit(n.right)})"

    def part_of(self, n: ast.expr) -> tuple[str, str]:
        """(where sizes are, how many) of `sizes(x)`, `sizes(x)[:-k]` and `sizes(x)[-k:]`."""
        first, count = "0", None
        if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Slice) and n.slice.step is None:
            lower, upper, n = n.slice.lower, n.slice.upper, n.value
            known = [int(ast.literal_eval(x)) for x in (lower, upper) if x is not None]
            if len(known) != 1 or known[0] >= 0:
                raise DeclarationError(f"{self.where}: of sizes the last k, or all but those, have a form in Cython")
            first, count = ("0", known[0]) if lower is None else (str(known[0]), -known[0])
        if not (isinstance(n, ast.Call) and n.func.id == "sizes"):  # type: ignore[attr-defined]
            raise DeclarationError(f"{self.where}: {ast.unparse(n)} has no form in Cython")
        x = self.visit(n.args[0])
        if first != "0":
            return f"{x}.sizes + max({x}.ndim - {count}, 0)", f"min({x}.ndim, {count})"
        return f"{x}.sizes", f"{x}.ndim" if count is None else f"max({x}.ndim - {-count}, 0)"

    def visit_Call(self, n: ast.Call) -> str:
        name = n.func.id  # type: ignore[attr-defined]
        if name in ("dtype", "ndim", "numel"):
            return f"{self.visit(n.args[0])}.{name}"
        if name == "sizes":
            return f"shape_text({self.visit(n.args[0])})"  # in messages
        if name == "same":
            (a, m), (b, k) = map(self.part_of, n.args)
            return f"equal_sizes({a}, {m}, {b}, {k})"
        given = [self.visit(x) for x in n.args]
        if name == "size":
            return f"size_along({', '.join(given)})"
        if name == "given":
            return "(" + " ".join(f"{x} if {x} >= 0 else" for x in given[:-1]) + f" {given[-1]})"
        if name not in _OF_CODES:
            raise DeclarationError(f"{self.where}: {name} has no form in Cython")
        return _OF_CODES[name].format(*given)

    def generic_visit(self, n: ast.AST) -> str:
        raise DeclarationError(f"{self.where}: {type(n).__name__} has no form in Cython")


def to_cython(text: str, op: Operator, local: Collection[str] = ()) -> str:
    """Cython's text of a dtype or condition, over the C arguments of a kernel."""
    return _Cython({a.name: a.type for a in op.arguments}, local, f"{op.family}.yaml: {op.name}").visit(ast.parse(str(text).strip(), mode="eval").body)


_REQUIRE = re.compile(r"^(?P<condition>.+?)\s*->\s*((?P<error>[A-Z]\w*Error):\s*)?(?P<message>.+)$", re.S)


def requirements(op: Operator) -> list[tuple[str, str, str]]:
    """[(condition, error, message)]"""
    found = []
    for text in op.row.get("require", ()):
        m = _REQUIRE.match(str(text))
        if m is None:
            raise DeclarationError(f"{op.family}.yaml: {op.name}: require {text!r} is not 'condition -> message'")
        found.append((m["condition"], m["error"] or "RuntimeError", m["message"].strip()))
    return found


HELPERS = """
cdef inline int append_sizes(int64_t* sizes, int n, const int64_t* given, int count) except -1:
    if n + count > MAX_DIMS:
        raise RuntimeError(f"tensors have at most {MAX_DIMS} dimensions")
    memcpy(sizes + n, given, count * sizeof(int64_t))
    return n + count


cdef inline bint equal_sizes(const int64_t* a, int m, const int64_t* b, int n) noexcept:
    return m == n and memcmp(a, b, m * sizeof(int64_t)) == 0


cdef inline int64_t size_along(TensorBase x, int64_t dim) except -1:
    cdef int d = wrap_dim(dim, x.ndim)
    return x.sizes[d] if x.ndim else 1

"""


def meta_function(op: Operator, parameters: str) -> str:
    """`meta_<op>` of a row that says `meta: generated`: checks what `require` says and makes the result of `shape` and `dtype`, for a kernel written by hand."""
    where = f"{op.family}.yaml: {op.name}"
    found = declared(op)
    if found is None or op.returns != ["Tensor"]:
        raise DeclarationError(f"{where}: a generated meta function makes one tensor, of `shape` and `dtype`")
    visitor = _Cython({a.name: a.type for a in op.arguments}, (), where)
    tree = ast.parse(found[0][0].strip(), mode="eval").body
    lines = [f"cdef TensorBase meta_{op.name}({parameters}):", "    cdef int64_t sizes[MAX_DIMS]", "    cdef int n = 0", *checks_in_cython(op)]
    for x in tree.elts if isinstance(tree, ast.List) else [ast.Starred(tree)]:
        if isinstance(x, ast.Starred):
            start, count = visitor.part_of(x.value)
            lines += [f"    n = append_sizes(sizes, n, {start}, {count})"]
        else:
            lines += [f"    sizes[n] = {visitor.visit(x)}", "    n += 1"]
    place = next(a.name for a in op.arguments if a.type == "Tensor")
    return "\n".join([*lines, f"    return empty_tensor(n, sizes, {to_cython(found[1][0], op)}, place_of({place}))", ""])


def checks_in_cython(op: Operator) -> list[str]:
    """The refusals of a row, at the head of its generated kernel or meta function."""
    lines = []
    for condition, error, message in requirements(op):
        text = re.sub(r"\{([^{}]*)\}", lambda m: "{" + to_cython(m[1], op) + "}", message).replace('"', '\\"')
        lines += [f"    if not {to_cython(condition, op)}:", f'        raise {error}(f"{text}")']
    return lines


def _as_tensors(op: Operator) -> str:
    tensors = [a.name for a in op.tensors]
    return ", ".join(tensors[1:] if op.row.get("first_bool") else tensors)


def pointwise_dtype(op: Operator) -> str:
    """What `promote` says in the language of `dtype`."""
    promote = str(op.row.get("promote", "")).replace(",", " ").split()
    if "bool" in promote:
        return "bool"
    text = f"promote({_as_tensors(op)})" if len(op.tensors) > 1 else f"dtype({op.tensors[0].name})"
    if "float" in promote:
        text = f"float_of({text})"
    return f"real_of({text})" if "real" in promote else text


def declared(op: Operator) -> tuple[list[str], list[str]] | None:
    """(the text of `shape`, that of `dtype`) by result; None of a row that does not say."""
    shape, kind = op.row.get("shape"), op.row.get("dtype")
    if op.kind == "pointwise":
        shape = shape or (f"broadcast({', '.join(a.name for a in op.tensors)})" if len(op.tensors) > 1 else f"sizes({op.tensors[0].name})")
        kind = kind or pointwise_dtype(op)
    if shape is None:
        return None
    where = f"{op.family}.yaml: {op.name}"
    count = len(op.returns) if op.returns not in (["()"], [""]) else 0
    shapes, kinds = shape if isinstance(shape, list) else [shape], kind if isinstance(kind, list) else [kind]
    if len(kinds) == 1:
        kinds = kinds * len(shapes)
    if len(shapes) != count or len(kinds) != count or None in kinds:
        raise DeclarationError(f"{where}: {count} results, shape for {len(shapes)} and dtype for {len([k for k in kinds if k])}")
    return [str(x) for x in shapes], [str(x) for x in kinds]


_PLAIN = {"None", "True", "False"}


def _parameter(a: Argument) -> str:
    """An argument of the Python rule."""
    if a.default is None:
        return python_name(a.name)
    text = a.default.strip()
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError):
        text = "None"
    return f"{python_name(a.name)}={text}"


def rule_source(op: Operator) -> tuple[str, str] | None:
    """(the functions of sizes and of dtypes in Python, the row of RULES)."""
    found = declared(op)
    if found is None:
        return None
    where, names = f"{op.family}.yaml: {op.name}", [a.name for a in op.arguments]
    first_default = next((i for i, a in enumerate(op.arguments) if a.default is not None), len(op.arguments))
    parameters = ", ".join(_parameter(a) + ("=None" if i > first_default and a.default is None else "") for i, a in enumerate(op.arguments))
    local: list[str] = []
    for name, text in (op.row.get("let") or {}).items():
        local.append(f"    {name} = {to_python(text, names, f'{where}: let')}")
        names.append(name)
    checks: list[str] = []
    for condition, error, message in requirements(op):
        text = re.sub(r"\{([^{}]*)\}", lambda m: "{" + to_python(m[1], names, f"{where}: require") + "}", message)
        checks += [f"    if not ({to_python(condition, names, f'{where}: require')}):", f"        raise {error}(f{text!r})"]
    symbol = op.public_name
    lines = []
    for kind, texts, body in (("sizes", found[0], [*checks, *local] if not _needs_let(op) else [*local, *checks]), ("dtypes", found[1], local)):
        values = [to_python(text, names, f"{where}: {'shape' if kind == 'sizes' else 'dtype'}") for text in texts]
        if op.kind == "pointwise" and values[0].startswith("_f.broadcast("):
            values = [values[0].replace("_f.broadcast(", f"_f.broadcast_operands({op.name!r}, ")]
        result = values[0] if len(values) == 1 else f"({', '.join(values)}{',' if len(values) == 1 else ''})"
        if kind == "dtypes":
            used = set(re.findall(r"\w+", " ".join(values)))
            body = local if any(line.split()[0] in used for line in local) else []
        lines += [f"def {kind}_{symbol}({parameters}):", *body, f"    return {result or '()'}", ""]
    count = 0 if op.returns == ["Tensor[]"] else len(found[0]) if found[0] else -1
    return "\n".join(lines), f"    {op.name!r}: (sizes_{symbol}, dtypes_{symbol}, {count}),"


def _needs_let(op: Operator) -> bool:
    """Whether a condition or message reads a name of `let`."""
    local = set(op.row.get("let") or ())
    return any(local & set(re.findall(r"\w+", f"{condition} {message}")) for condition, _, message in requirements(op))


def python_source(operators: Iterable[Operator]) -> str:
    """`_C/shape_rules.py`: by operator the functions of its results' sizes and dtypes."""
    found = [rule for op in operators if op.kind in ("pointwise", "structured", "function") and (rule := rule_source(op)) is not None]
    body, table = "\n".join(text for text, _ in found), "\n".join(row for _, row in found)
    head = '"""Generated from cysrc/ops: sizes and dtypes of results. Read it by tensorrt_lite._declared.shapes."""\n\nfrom tensorrt_lite._declared import shape_functions as _f\n'
    return f"{head}\n\n{body}\n\nRULES = {{\n{table}\n}}\n"


def check(row: dict[str, Any], where: str) -> None:
    """What `shape`, `dtype`, `require` and `let` of a row have to be."""
    if ("dtype" in row) != ("shape" in row) and row.get("kind") not in ("pointwise", None) and "expr" not in row:
        raise DeclarationError(f"{where}: shape and dtype go together")
    if "let" in row and not isinstance(row["let"], dict) or "require" in row and not isinstance(row["require"], list):
        raise DeclarationError(f"{where}: let is a mapping of names, require a list of 'condition -> message'")
