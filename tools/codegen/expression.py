"""The scalar expressions of the declarations: one text becomes C, CUDA and differentiable operators.

The language is Python's expression syntax over the argument names, `result` and `grad`: arithmetic, comparisons, `and`,
`or`, `not`, `where(condition, a, b)` and the functions of the vector math header.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Collection

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_C_NAMES = {"sgn": "sign"}
_OPERATOR_NAMES = {"sel": "where", "real_part": "real", "pow_number": "pow", "log1pexp": "softplus", "special_polygamma": "polygamma", "special_frexp_exponent": "_frexp_exponent", "special_ldexp": "_ldexp_of_integers"}
TRIGONOMETRIC = {"sin", "cos", "tan", "special_bessel_j0", "special_bessel_j1", "special_bessel_y0", "special_bessel_y1", "special_spherical_bessel_j0"}
OF_COMPLEX = {"conj", "real_part"}  # of real numbers themselves
QUOTIENTS = {"fmod", "remainder", "floor_divide"}
_REAL = {"c64": "f32", "c128": "f64"}
COMPUTE = {"f16": "f32", "bf16": "f32"}


def compute_type(dtype: str) -> str:
    return COMPUTE.get(dtype, dtype)


def parse(text: str) -> ast.expr:
    return ast.parse(str(text).strip(), mode="eval").body


# the questions about a text are asked for each of its types, sets and forms

@functools.cache
def names(text: str) -> frozenset[str]:
    """Variables that an expression reads (not the functions it calls)."""
    tree = parse(text)
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called)


@functools.cache
def functions(text: str) -> frozenset[str]:
    """Functions that an expression of real numbers calls, `where` aside."""
    return frozenset(n.func.id for n in ast.walk(parse(text)) if isinstance(n, ast.Call)) - {"where"} - OF_COMPLEX  # type: ignore[attr-defined]


class _C(ast.NodeVisitor):
    def __init__(self, dtype: str, suffix: bool, exact: bool = False):
        self.exact = exact
        self.t = compute_type(dtype)
        self.suffix = suffix

    def number(self, v: object) -> str:
        if isinstance(v, bool):
            return "1" if v else "0"
        return f"(({self.t}){v!r})" if self.suffix else f"T({v!r})"

    def visit_Constant(self, n: ast.Constant) -> str:
        return self.number(n.value)

    def visit_Name(self, n: ast.Name) -> str:
        if n.id in ("inf", "nan"):
            value = "INFINITY" if n.id == "inf" else "NAN"
            return f"(({self.t}){value})" if self.suffix else f"T({value})"
        return "v_" + n.id

    def visit_UnaryOp(self, n: ast.UnaryOp) -> str:
        op = {ast.USub: "-", ast.UAdd: "+", ast.Not: "!", ast.Invert: "~"}[type(n.op)]
        return f"({op}{self.visit(n.operand)})"

    def visit_BinOp(self, n: ast.BinOp) -> str:
        if type(n.op) not in _BINARY:
            raise ValueError(f"operator {type(n.op).__name__} is not in the expression language")
        left, right = self.visit(n.left), self.visit(n.right)
        if self.suffix and self.t in ("c64", "c128") and isinstance(n.op, (ast.Mult, ast.Div)):
            # C's own operators repair infinities through a library call per element
            return f"{'mul' if isinstance(n.op, ast.Mult) else 'div'}_{self.t}({left}, {right})"
        return f"({left} {_BINARY[type(n.op)]} {right})"

    def visit_Compare(self, n: ast.Compare) -> str:
        if len(n.ops) != 1:
            raise ValueError("write chained comparisons with 'and'")
        left, right = n.left, n.comparators[0]
        if self.t in _REAL and not isinstance(n.ops[0], (ast.Eq, ast.NotEq)) and isinstance(right, ast.Constant):
            # an order exists between real parts only
            return f"({self.visit(left)} {_COMPARE[type(n.ops[0])]} {f'(({_REAL[self.t]}){right.value!r})' if self.suffix else f'real_t<T>({right.value!r})'})"
        return f"({self.visit(left)} {_COMPARE[type(n.ops[0])]} {self.visit(right)})"

    def visit_BoolOp(self, n: ast.BoolOp) -> str:
        # & and | keep loops free of branches
        return "(" + (" & " if isinstance(n.op, ast.And) else " | ").join(self.truth(v) for v in n.values) + ")"

    def truth(self, n: ast.expr) -> str:
        text = self.visit(n)
        return text if isinstance(n, (ast.Compare, ast.BoolOp)) else f"({text} != 0)"

    def visit_Call(self, n: ast.Call) -> str:
        f = _C_NAMES.get(n.func.id, n.func.id)  # type: ignore[attr-defined]
        if self.exact and f in TRIGONOMETRIC | QUOTIENTS:
            f = "any_" + f
        a = [self.visit(x) for x in n.args]
        if f == "where":
            return f"({self.truth(n.args[0])} ? {a[1]} : {a[2]})"
        if f == "real_part":
            return (f"real_{self.t}({a[0]})" if self.suffix else f"real({a[0]})") if self.t.startswith("c") else a[0]
        return f"{f}_{self.t}({', '.join(a)})" if self.suffix else f"{f}({', '.join(a)})"

    def generic_visit(self, n: ast.AST) -> str:
        raise ValueError(f"{type(n).__name__} is not in the expression language")


class _Lanes(_C):
    """Over registers of numbers; a comparison is a register of bits."""

    def number(self, v: object) -> str:
        return f"ALL_{self.t}({v!r})"

    def visit_Name(self, n: ast.Name) -> str:
        return f"ALL_{self.t}({'INFINITY' if n.id == 'inf' else 'NAN'})" if n.id in ("inf", "nan") else "v_" + n.id

    def visit_UnaryOp(self, n: ast.UnaryOp) -> str:
        return f"(~{self.truth(n.operand)})" if isinstance(n.op, ast.Not) else super().visit_UnaryOp(n)

    def visit_Call(self, n: ast.Call) -> str:
        a = [self.visit(x) for x in n.args]
        if n.func.id in OF_COMPLEX:  # type: ignore[attr-defined]
            return a[0]
        if n.func.id == "where":  # type: ignore[attr-defined]
            return f"select_lanes_{self.t}({self.truth(n.args[0])}, {a[1]}, {a[2]})"
        return f"{n.func.id}_lanes_{self.t}({', '.join(a)})"  # type: ignore[attr-defined]


def to_lanes(text: str, dtype: str) -> str:
    """C text over registers of one element type, for expressions whose functions all have a form of vector_math_avx512.h."""
    return _Lanes(dtype, True).visit(parse(text))


def to_c(text: str, dtype: str, exact: bool = False) -> str:
    """C text for one element type; functions get the compute type as suffix. `exact`: angles and quotients of any size."""
    return _C(dtype, True, exact).visit(parse(text))


@functools.cache
def angles(text: str) -> frozenset[str]:
    """Variables that enter angles: the vector forms of these are accurate for moderate angles only."""
    found: set[str] = set()
    for n in ast.walk(parse(text)):
        if isinstance(n, ast.Call) and n.func.id in TRIGONOMETRIC:  # type: ignore[attr-defined]
            found |= {v.id for v in ast.walk(n) if isinstance(v, ast.Name)} - {n.func.id}  # type: ignore[attr-defined]
    return frozenset(found)


@functools.cache
def divisions(text: str) -> frozenset[tuple[str, str]]:
    """Pairs of variables whose remainder is taken: the vector forms are exact for moderate quotients only."""
    calls = [n for n in ast.walk(parse(text)) if isinstance(n, ast.Call) and n.func.id in QUOTIENTS]  # type: ignore[attr-defined]
    return frozenset(tuple(v.id for v in n.args) for n in calls)  # type: ignore[attr-defined, misc]


def to_cuda(text: str, dtype: str) -> str:
    """CUDA text: the functions are overloads, T is the type it computes in."""
    return _C(dtype, False).visit(parse(text))


class _Composed(ast.NodeTransformer):
    def __init__(self, params: Collection[str] = ()):
        self.params = params

    def visit_Call(self, n: ast.Call) -> ast.AST:
        self.generic_visit(n)
        if n.func.id == "conj" and isinstance(n.args[0], ast.Name) and n.args[0].id in self.params:  # type: ignore[attr-defined]
            return ast.Call(ast.Attribute(n.args[0], "conjugate", ast.Load()), [], [])
        name = n.func.id  # type: ignore[attr-defined]
        n.func = ast.Attribute(ast.Name("_ops", ast.Load()), _OPERATOR_NAMES.get(name, name), ast.Load())
        return n

    def visit_BoolOp(self, n: ast.BoolOp) -> ast.AST:
        self.generic_visit(n)
        op = ast.BitAnd() if isinstance(n.op, ast.And) else ast.BitOr()
        result = n.values[0]
        for v in n.values[1:]:
            result = ast.BinOp(result, op, v)
        return result

    def visit_UnaryOp(self, n: ast.UnaryOp) -> ast.AST:
        self.generic_visit(n)
        if isinstance(n.op, ast.Not):
            return ast.Call(ast.Attribute(ast.Name("_ops", ast.Load()), "logical_not", ast.Load()), [n.operand], [])
        return n

    def visit_Name(self, n: ast.Name) -> ast.AST:
        if n.id in ("inf", "nan"):
            return ast.Call(ast.Name("float", ast.Load()), [ast.Constant(n.id)], [])
        return n


def to_composed(text: str, params: Collection[str] = ()) -> str:
    """The same expression over tensors, by public operators (differentiable to any order); `params` are Python numbers."""
    tree = parse(text)
    if isinstance(tree, ast.Constant) and tree.value == 0:
        tree = parse("zeros_like(grad)")
    tree = ast.Expression(_Composed(params).visit(tree))
    return ast.unparse(ast.fix_missing_locations(tree))
