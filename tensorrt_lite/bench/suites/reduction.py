"""Reductions, scans, softmax and sorting over each dimension of 1M and 16M elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..rows import Row
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

_SORTING: list[tuple[str, Callable[[Any], object], Callable[[Any], object] | None]] = [
    ("sort dim 1", lambda x: x.sort(1), lambda x: x.argsort(1)),
    ("topk 10 dim 1", lambda x: x.topk(10, 1), None),
]


def rows() -> list[Row]:
    found = [
        Row(f"{name} {label}", "reduction", _of(call)(side), numpy and _of_array(numpy)(side), limit=_AT_OR_UNDER)
        for label, side in SIZES.items()
        for name, call, numpy in _ROWS
    ]
    # 16M sorted elements take seconds and say nothing that 1M do not.
    found += [
        Row(f"{name} 1M", "reduction", _of(call)(1024), numpy and _of_array(numpy)(1024), limit=_AT_OR_UNDER)
        for name, call, numpy in _SORTING
    ]
    return found
