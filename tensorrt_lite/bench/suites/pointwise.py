"""Large elementwise operators: into fresh outputs, into existing ones, and through transposed operands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..rows import Builder, Work

SIZES = {"1M": 1024, "16M": 4096}  # elements by the side of the square matrix that holds them

_AT_OR_UNDER = 1.05
_THIRD = 1 / 3
_HALF = 0.5


def _unary(function: Callable[[Any], Callable[[Any], object]]) -> Callable[[int], Builder]:
    def sized(side: int) -> Builder:
        def build(lib: Any, threads: int) -> Work:
            a, f = lib.randn(side, side), function(lib)
            return lambda: f(a)

        return build

    return sized


def _binary(function: Callable[[Any], Callable[[Any, Any], object]]) -> Callable[[int], Builder]:
    def sized(side: int) -> Builder:
        def build(lib: Any, threads: int) -> Work:
            a, b, f = lib.randn(side, side), lib.randn(side, side), function(lib)
            return lambda: f(a, b)

        return build

    return sized


def _numpy(function: str, inputs: int) -> Callable[[int], Builder]:
    def sized(side: int) -> Builder:
        def build(np: Any, threads: int) -> Work:
            operands = _normal(np, side, inputs)
            f = getattr(np, function)
            return lambda: f(*operands)

        return build

    return sized


def _normal(np: Any, side: int, count: int) -> list[Any]:
    generator = np.random.default_rng(0)
    return [generator.standard_normal((side, side), np.float32) for _ in range(count)]


def _out(name: str, inputs: int) -> Callable[[int], Builder]:
    def sized(side: int) -> Builder:
        def build(lib: Any, threads: int) -> Work:
            operands = [lib.randn(side, side) for _ in range(inputs)]
            out, f = lib.empty(side, side), getattr(lib, name)
            return lambda: f(*operands, out=out)

        return build

    return sized


def _out_numpy(name: str, inputs: int) -> Callable[[int], Builder]:
    def sized(side: int) -> Builder:
        def build(np: Any, threads: int) -> Work:
            operands = _normal(np, side, inputs)
            out, f = np.empty((side, side), np.float32), getattr(np, name)
            return lambda: f(*operands, out=out)

        return build

    return sized


def _scalar(side: int) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        a = lib.randn(side, side)
        return lambda: a * 2.0

    return build


def _broadcast(side: int) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        a, b = lib.randn(side, side), lib.randn(side)
        return lambda: a + b

    return build


def _where(side: int) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        a, b, where = lib.randn(side, side), lib.randn(side, side), lib.where
        condition = a > b
        return lambda: where(condition, a, b)

    return build


def _where_numpy(side: int) -> Builder:
    def build(np: Any, threads: int) -> Work:
        a, b = _normal(np, side, 2)
        condition, where = a > b, np.where
        return lambda: where(condition, a, b)

    return build


def _transpose_copy(side: int) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        a = lib.randn(side, side).t()
        return lambda: a.contiguous()

    return build


def _transpose_copy_numpy(side: int) -> Builder:
    def build(np: Any, threads: int) -> Work:
        a, copy = _normal(np, side, 1)[0].T, np.ascontiguousarray
        return lambda: copy(a)

    return build


def _cat(side: int) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        halves, cat = [lib.randn(side // 2, side), lib.randn(side // 2, side)], lib.cat
        return lambda: cat(halves)

    return build


def _cat_numpy(side: int) -> Builder:
    def build(np: Any, threads: int) -> Work:
        halves, cat = [half[: side // 2].copy() for half in _normal(np, side, 2)], np.concatenate
        return lambda: cat(halves)

    return build


def _masked_fill(side: int) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        a = lib.randn(side, side)
        mask = a > 0
        return lambda: a.masked_fill(mask, 0.0)

    return build


def _add_transposed(lib: Any, threads: int) -> Work:
    a = lib.randn(1024, 1024)
    t = a.t()
    return lambda: a + t


def _add_transposed_numpy(np: Any, threads: int) -> Work:
    a = _normal(np, 1024, 1)[0]
    t = a.T
    return lambda: a + t


def _exp_transposed(lib: Any, threads: int) -> Work:
    t, out, exp = lib.randn(1024, 1024).t(), lib.empty(1024, 1024), lib.exp
    return lambda: exp(t, out=out)


def _exp_transposed_numpy(np: Any, threads: int) -> Work:
    t, out, exp = _normal(np, 1024, 1)[0].T, np.empty((1024, 1024), np.float32), np.exp
    return lambda: exp(t, out=out)


_FRESH: list[tuple[str, Callable[[int], Builder], Callable[[int], Builder] | None]] = [
    ("add", _binary(lambda lib: lib.add), _numpy("add", 2)),
    ("mul", _binary(lambda lib: lib.mul), _numpy("multiply", 2)),
    ("mul by scalar", _scalar, None),
    ("add, broadcast row", _broadcast, None),
    ("exp", _unary(lambda lib: lib.exp), _numpy("exp", 1)),
    ("tanh", _unary(lambda lib: lib.tanh), _numpy("tanh", 1)),
    ("gelu", _unary(lambda lib: lib.nn.functional.gelu), None),
    ("sigmoid", _unary(lambda lib: lib.sigmoid), None),
    ("relu", _unary(lambda lib: lib.relu), None),
]

_INTO_EXISTING = [("add", "add", 2), ("mul", "multiply", 2), ("exp", "exp", 1), ("tanh", "tanh", 1), ("sigmoid", "", 1)]

_MOVING = [
    ("where", _where, _where_numpy),
    ("transpose copy", _transpose_copy, _transpose_copy_numpy),
    ("cat", _cat, _cat_numpy),
    ("masked_fill", _masked_fill, None),
]


def _short(shapes: tuple[tuple[int, ...], ...], function: Callable[[Any], Callable[..., object]]) -> Builder:
    """Operands whose rows have a few elements and do not continue one another."""

    def build(lib: Any, threads: int) -> Work:
        operands, f = [lib.randn(*shape) for shape in shapes], function(lib)
        return lambda: f(*operands)

    return build


_SHORT: tuple[tuple[str, Builder], ...] = (
    ("sub, 1000 by 800 points", _short(((1000, 1, 3), (1, 800, 3)), lambda lib: lib.sub)),
    ("maximum, 500 by 600 corners", _short(((500, 1, 4), (1, 600, 4)), lambda lib: lambda a, b: lib.maximum(a[..., :2], b[..., :2]))),
    ("mul, rows of 3 by a number each", _short(((100_000, 3), (100_000, 1)), lambda lib: lib.mul)),
    ("mul, rows of 16 by a number each", _short(((20_000, 16), (20_000, 1)), lambda lib: lib.mul)),
    ("where, rows of 3 by a condition each", _short(((100_000, 1), (100_000, 3)), lambda lib: lambda c, x: lib.where(c > 0, x, 0.0))),
    ("add, columns 0:2 and 2:4", _short(((100_000, 4),), lambda lib: lambda x: x[:, :2] + x[:, 2:])),
    ("kron, 300x300 by 4x4", _short(((300, 300), (4, 4)), lambda lib: lib.kron)),
)


def _typed(dtype: str, inputs: int, function: Callable[[Any], Callable[..., object]]) -> Builder:
    """100,000 positive numbers of a type, which stay in L2."""

    def build(lib: Any, threads: int) -> Work:
        operands, f = [(lib.rand(100_000) + 0.1).to(getattr(lib, dtype)) for _ in range(inputs)], function(lib)
        return lambda: f(*operands)

    return build


_TYPED: tuple[tuple[str, str, int, Callable[[Any], Callable[..., object]]], ...] = (
    *((name, "bfloat16", inputs, lambda lib, name=name: getattr(lib, name)) for name, inputs in (("add", 2), ("maximum", 2), ("relu", 1), ("sqrt", 1), ("exp", 1), ("erf", 1))),
    ("where", "bfloat16", 2, lambda lib: lambda a, b: lib.where(a < b, a, b)),
    ("exp", "float16", 1, lambda lib: lib.exp),
    *((name, "float64", 1, lambda lib, name=name: getattr(lib, name)) for name in ("exp", "sigmoid", "erf")),
    ("silu", "float64", 1, lambda lib: lib.nn.functional.silu),
)  # fmt: skip


def rows() -> list[Row]:
    found = [Row(name, "pointwise", build, limit=_AT_OR_UNDER) for name, build in _SHORT]
    found += [Row(f"{name} {dtype} 100k", "pointwise", _typed(dtype, inputs, f), limit=_AT_OR_UNDER) for name, dtype, inputs, f in _TYPED]
    for label, side in SIZES.items():
        fresh = _THIRD if label == "16M" else _AT_OR_UNDER
        for name, build, numpy in _FRESH:
            found.append(Row(f"{name} {label}", "pointwise", build(side), numpy and numpy(side), limit=fresh))
        for name, numpy_name, inputs in _INTO_EXISTING:
            numpy_build = _out_numpy(numpy_name, inputs)(side) if numpy_name else None
            found.append(
                Row(f"{name} {label}, out=", "pointwise", _out(name, inputs)(side), numpy_build, limit=_AT_OR_UNDER)
            )
        for name, build, numpy in _MOVING:
            row = Row(f"{name} {label}", "pointwise", build(side), numpy and numpy(side), limit=_AT_OR_UNDER)
            found.append(row)
    found.append(Row("A + A.t() 1024x1024", "pointwise", _add_transposed, _add_transposed_numpy, limit=_HALF))
    found.append(Row("exp(A.t(), out=) 1024x1024", "pointwise", _exp_transposed, _exp_transposed_numpy, limit=_HALF))
    return found
