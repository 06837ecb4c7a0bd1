"""Reductions, scans and softmax over each dimension of 1M and 16M elements."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ..rows import Row, of_operands
from .pointwise import SIZES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..rows import Builder, Work

_AT_OR_UNDER = 1.05


def _of(call: Callable[[Any], object]) -> Callable[[int], Builder]:
    """Rows on one matrix `x: (side, side)`, written as the method call that a user writes."""

    def sized(side: int) -> Builder:
        def build(lib: Any, threads: int) -> Work:
            x = lib.randn(side, side)
            return lambda: call(x)

        return build

    return sized


def _of_array(call: Callable[[Any], object]) -> Callable[[int], Builder]:
    def sized(side: int) -> Builder:
        def build(np: Any, threads: int) -> Work:
            x = np.random.default_rng(0).standard_normal((side, side), np.float32)
            return lambda: call(x)

        return build

    return sized


_ROWS: list[tuple[str, Callable[[Any], object], Callable[[Any], object] | None]] = [
    ("sum", lambda x: x.sum(), lambda x: x.sum()),
    ("sum dim 0", lambda x: x.sum(0), lambda x: x.sum(0)),
    ("sum dim 1", lambda x: x.sum(1), lambda x: x.sum(1)),
    ("mean", lambda x: x.mean(), lambda x: x.mean()),
    ("mean dim 1", lambda x: x.mean(1), lambda x: x.mean(1)),
    ("max", lambda x: x.max(), lambda x: x.max()),
    ("max dim 1", lambda x: x.max(1), None),
    ("amax dim 0", lambda x: x.amax(0), lambda x: x.max(0)),
    ("argmax dim 1", lambda x: x.argmax(1), lambda x: x.argmax(1)),
    ("var dim 1", lambda x: x.var(1), lambda x: x.var(1, ddof=1)),
    ("softmax dim 1", lambda x: x.softmax(1), None),
    ("softmax dim 0", lambda x: x.softmax(0), None),
    ("log_softmax dim 1", lambda x: x.log_softmax(1), None),
    ("cumsum dim 1", lambda x: x.cumsum(1), lambda x: x.cumsum(1)),
]

# Shapes that a square matrix does not show: short and middle dimensions, several at once, inputs that lie otherwise.
_SHAPES: list[tuple[str, tuple[int, ...], Callable[[Any], Any], Callable[[Any], Any]]] = [
    ("100000x8, dim 1", (100_000, 8), lambda x: x, lambda f: f(1)),
    ("30000x32, dim 1", (30_000, 32), lambda x: x, lambda f: f(1)),
    ("64x128x128, dim 1", (64, 128, 128), lambda x: x, lambda f: f(1)),
    ("30000x4x8, dim 1", (30_000, 4, 8), lambda x: x, lambda f: f(1)),
    ("8x100000, dim 0", (8, 100_000), lambda x: x, lambda f: f(0)),
    ("1024x1024 transposed, dim 1", (1024, 1024), lambda x: x.t(), lambda f: f(1)),
]
_SHAPED: list[tuple[str, Callable[[Any], Callable[[int], object]]]] = [
    ("sum", lambda x: x.sum),
    ("amax", lambda x: x.amax),
    ("max", lambda x: x.max),
    ("argmax", lambda x: x.argmax),
    ("var", lambda x: x.var),
    ("prod", lambda x: x.prod),
    ("any", lambda x: x.any),
    ("norm", lambda x: lambda dim: x.norm(dim=dim)),
    ("logsumexp", lambda x: x.logsumexp),
    ("softmax", lambda x: x.softmax),
    ("cumsum", lambda x: x.cumsum),
]
_SEVERAL: list[tuple[str, Callable[[Any], object]]] = [
    ("sum dims 0 and 2 of 64x128x128", lambda x: x.sum((0, 2))),
    ("sum dims 1 and 2 of 64x128x128", lambda x: x.sum((1, 2))),
    ("var dims 0 and 2 of 64x128x128", lambda x: x.var((0, 2))),
    ("sum of 64x128x128 permuted", lambda x: x.permute(2, 0, 1).sum()),
    ("any", lambda x: x.any()),
    ("all", lambda x: x.all()),
    ("prod", lambda x: x.prod()),
    ("norm", lambda x: x.norm()),
    ("norm, p 1", lambda x: x.norm(1)),
    ("norm, p 3", lambda x: x.norm(3)),
    ("var", lambda x: x.var()),
    ("argmax", lambda x: x.argmax()),
    ("logsumexp", lambda x: x.logsumexp((0, 1, 2))),
    ("count_nonzero", lambda x: x.count_nonzero()),
    ("bfloat16 conversion and sum dim 2", lambda x: x.bfloat16().sum(2)),
    ("int64 conversion and sum", lambda x: x.long().sum()),
]


def _shaped(shape: tuple[int, ...], lay: Callable[[Any], Any], take: Callable[[Any], Any], method: Callable[[Any], Any]) -> Builder:
    return of_operands(lambda lib: (lay(lib.randn(*shape)),), lambda lib, x: take(method(x)))


def rows() -> list[Row]:
    found = [
        Row(f"{name} {label}", "reduction", _of(call)(side), numpy and _of_array(numpy)(side), limit=_AT_OR_UNDER)
        for label, side in SIZES.items()
        for name, call, numpy in _ROWS
    ]
    found += [
        Row(f"{name} {label}", "reduction", _shaped(shape, lay, take, method), limit=_AT_OR_UNDER)
        for label, shape, lay, take in _SHAPES
        for name, method in _SHAPED
    ]
    found += [
        Row(f"{name} 3-D", "reduction", _shaped((64, 128, 128), lambda x: x, lambda f: f(), partial(partial, call)), limit=_AT_OR_UNDER)
        for name, call in _SEVERAL
    ]
    return found
