"""Reading and writing by index and by mask, and what moves elements: 1M of them unless a row says otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..rows import Row, of_operands

if TYPE_CHECKING:
    from collections.abc import Callable

_AT_OR_UNDER = 1.05


def _square(lib: Any) -> tuple[Any, ...]:
    """x: (1024, 1024), an index of the same shape, another matrix."""
    return lib.randn(1024, 1024), lib.randint(0, 1024, (1024, 1024)), lib.randn(1024, 1024)


def _lines(lib: Any) -> tuple[Any, ...]:
    """x: (1024, 1024) and 1024 indices with repetitions."""
    return lib.randn(1024, 1024), lib.randint(0, 1024, (1024,)), lib.randn(1024, 1024)


def _points(lib: Any) -> tuple[Any, ...]:
    """x: (1024, 1024), two indices of 100,000 elements, values for them."""
    return lib.randn(1024, 1024), lib.randint(0, 1024, (100_000,)), lib.randint(0, 1024, (100_000,)), lib.randn(100_000)


def _masked(lib: Any) -> tuple[Any, ...]:
    """x: (1024, 1024), a mask that takes half of it, a mask that takes a hundredth."""
    x = lib.randn(1024, 1024)
    return x, x > 0, x > 2.33


def _assign(x: Any, where: Any, value: Any) -> None:
    x[where] = value


_ROWS: list[tuple[str, Callable[[Any], tuple[Any, ...]], Callable[..., object]]] = [
    ("gather dim 0", _square, lambda lib, x, i, y: x.gather(0, i)),
    ("gather dim 1", _square, lambda lib, x, i, y: x.gather(1, i)),
    ("take_along_dim", _square, lambda lib, x, i, y: lib.take_along_dim(x, i, 1)),
    ("scatter dim 1", _square, lambda lib, x, i, y: x.scatter(1, i, y)),
    ("scatter_add dim 0", _square, lambda lib, x, i, y: x.scatter_add(0, i, y)),
    ("scatter_add dim 1", _square, lambda lib, x, i, y: x.scatter_add(1, i, y)),
    ("scatter_reduce amax dim 1", _square, lambda lib, x, i, y: x.scatter_reduce(1, i, y, "amax")),
    ("take", _square, lambda lib, x, i, y: x.take(i)),
    ("index_select dim 0", _lines, lambda lib, x, i, y: x.index_select(0, i)),
    ("index_select dim 1", _lines, lambda lib, x, i, y: x.index_select(1, i)),
    ("index_add dim 0", _lines, lambda lib, x, i, y: x.index_add(0, i, y)),
    ("index_add dim 1", _lines, lambda lib, x, i, y: x.index_add(1, i, y)),
    ("index_copy dim 0", _lines, lambda lib, x, i, y: x.index_copy(0, i, y)),
    ("index_copy dim 1", _lines, lambda lib, x, i, y: x.index_copy(1, i, y)),
    ("index_fill dim 1", _lines, lambda lib, x, i, y: x.index_fill(1, i, 2.0)),
    ("x[i]", _lines, lambda lib, x, i, y: x[i]),
    ("x[:, i]", _lines, lambda lib, x, i, y: x[:, i]),
    ("x[i] = y", _lines, lambda lib, x, i, y: _assign(x, i, y)),
    ("x[i, j] 100k", _points, lambda lib, x, i, j, v: x[i, j]),
    ("x[i, j] = v 100k", _points, lambda lib, x, i, j, v: x.index_put_((i, j), v)),
    ("index_put accumulate 100k", _points, lambda lib, x, i, j, v: x.index_put_((i, j), v, True)),
    ("x[mask]", _masked, lambda lib, x, m, few: x[m]),
    ("x[mask], few", _masked, lambda lib, x, m, few: x[few]),
    ("masked_select", _masked, lambda lib, x, m, few: x.masked_select(m)),
    ("nonzero", _masked, lambda lib, x, m, few: m.nonzero()),
    ("nonzero, few", _masked, lambda lib, x, m, few: few.nonzero()),
    ("x[mask] = 0", _masked, lambda lib, x, m, few: _assign(x, few, 0.0)),
    ("masked_fill_", _masked, lambda lib, x, m, few: x.masked_fill_(few, 0.5)),
    ("masked_scatter", _masked, lambda lib, x, m, few: x.masked_scatter(m, x)),
    ("where, broadcast column", _masked, lambda lib, x, m, few: lib.where(m[:, :1], x, 0.0)),
    ("where, scalar", _masked, lambda lib, x, m, few: lib.where(m, x, 0.0)),
    ("flip dim 0", _lines, lambda lib, x, i, y: x.flip(0)),
    ("flip dim 1", _lines, lambda lib, x, i, y: x.flip(1)),
    ("roll dim 1", _lines, lambda lib, x, i, y: x.roll(3, 1)),
    ("roll flat", _lines, lambda lib, x, i, y: x.roll(1000)),
    ("repeat_interleave 2", _lines, lambda lib, x, i, y: x[:512].repeat_interleave(2, 0)),
    ("repeat_interleave 2, dim 1", _lines, lambda lib, x, i, y: x[:, :512].repeat_interleave(2, 1)),
    ("repeat 4", _lines, lambda lib, x, i, y: x[:256].repeat(2, 2)),
    ("tril", _lines, lambda lib, x, i, y: x.tril()),
    ("triu", _lines, lambda lib, x, i, y: x.triu()),
    ("one_hot 1024 of 1024", _lines, lambda lib, x, i, y: lib.nn.functional.one_hot(i, 1024)),
    ("cat dim 1", _lines, lambda lib, x, i, y: lib.cat((x, y), 1)),
    ("cat of 64, dim 0", lambda lib: tuple(lib.randn(64, 256) for _ in range(64)), lambda lib, *parts: lib.cat(parts)),
    ("stack dim 0", _lines, lambda lib, x, i, y: lib.stack((x, y))),
    ("stack dim 2", _lines, lambda lib, x, i, y: lib.stack((x, y), 2)),
    ("split, each part copied", _lines, lambda lib, x, i, y: [part.contiguous() for part in x.split(128, 1)]),
    ("pad constant", _lines, lambda lib, x, i, y: lib.nn.functional.pad(x, (1, 1, 1, 1))),
    ("pad reflect", lambda lib: (lib.randn(1, 16, 256, 256),), lambda lib, x: lib.nn.functional.pad(x, (2, 2, 2, 2), "reflect")),
    ("permute NCHW to NHWC", lambda lib: (lib.randn(16, 64, 32, 32),), lambda lib, x: x.permute(0, 2, 3, 1).contiguous()),
    ("permute heads", lambda lib: (lib.randn(8, 128, 16, 64),), lambda lib, x: x.transpose(1, 2).contiguous()),
]

_CONVERSIONS = [
    ("float32", "bfloat16"), ("bfloat16", "float32"), ("float32", "float16"), ("float16", "float32"), ("float32", "float64"),
    ("float64", "float32"), ("float32", "int64"), ("int64", "float32"), ("float32", "int32"), ("int32", "float32"),
    ("float32", "uint8"), ("uint8", "float32"), ("float32", "bool"), ("bool", "float32"), ("int64", "int32"), ("int32", "int64"),
]  # fmt: skip


def _conversion(source: str, target: str) -> Row:
    def make(lib: Any) -> tuple[Any, ...]:
        return lib.randint(0, 100, (1024, 1024)).to(getattr(lib, source)), getattr(lib, target)

    return Row(f"{source} to {target}", "indexing", of_operands(make, lambda lib, x, dtype: x.to(dtype)), limit=_AT_OR_UNDER)


def rows() -> list[Row]:
    found = [Row(name, "indexing", of_operands(make, call), limit=_AT_OR_UNDER) for name, make, call in _ROWS]
    return found + [_conversion(source, target) for source, target in _CONVERSIONS]
