"""Sorting, selection, distinct elements, search and histograms of 1M elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..rows import Row

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..rows import Builder, Work

_LIMIT = 0.6
_N = 1 << 20


def _of(make: Callable[[Any], tuple], call: Callable[..., object]) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        inputs = make(lib)
        return lambda: call(*inputs)

    return build


def _vector(lib: Any) -> tuple:
    return (lib.randn(_N),)


def _matrix(lib: Any) -> tuple:
    return (lib.randn(1024, 1024),)


def _numbers(lib: Any) -> tuple:
    """1M integers below 1,000."""
    return (lib.randint(0, 1000, (_N,)),)


def _wide_numbers(lib: Any) -> tuple:
    """1M integers of 32 bits in 64."""
    return (lib.randint(-(1 << 31), 1 << 31, (_N,)),)


def _lib_and(make: Callable[[Any], tuple]) -> Callable[[Any], tuple]:
    return lambda lib: (lib, *make(lib))


_ROWS: list[tuple[str, Callable[[Any], tuple], Callable[..., object]]] = [
    ("sort 1M", _vector, lambda x: x.sort()),
    ("sort 1M int64", _wide_numbers, lambda x: x.sort()),
    ("sort 1M float64", lambda lib: (lib.randn(_N, dtype=lib.float64),), lambda x: x.sort()),
    ("sort 1M bfloat16", lambda lib: (lib.randn(_N).to(lib.bfloat16),), lambda x: x.sort()),
    ("sort dim 1", _matrix, lambda x: x.sort(1)),
    ("sort dim 0", _matrix, lambda x: x.sort(0)),
    ("sort 65536x16", lambda lib: (lib.randn(65536, 16),), lambda x: x.sort(1)),
    ("sort 10000x100", lambda lib: (lib.randn(10000, 100),), lambda x: x.sort(1)),
    ("argsort 1M", _vector, lambda x: x.argsort()),
    ("topk 10 of 1M", _vector, lambda x: x.topk(10)),
    ("topk 10 dim 1", _matrix, lambda x: x.topk(10, 1)),
    ("topk 10 dim 0", _matrix, lambda x: x.topk(10, 0)),
    ("topk 100000 of 1M", _vector, lambda x: x.topk(100_000)),
    ("kthvalue 1M", _vector, lambda x: x.kthvalue(1000)),
    ("median 1M", _vector, lambda x: x.median()),
    ("median dim 1", _matrix, lambda x: x.median(1)),
    ("mode dim 1", lambda lib: (_numbers(lib)[0].view(1024, 1024),), lambda x: x.mode(1)),
    ("unique 1M below 1000", _numbers, lambda x: x.unique()),
    ("unique 1M", _wide_numbers, lambda x: x.unique()),
    ("unique inverse counts", _numbers, lambda x: x.unique(return_inverse=True, return_counts=True)),
    ("unique rows", lambda lib: (lib.randint(0, 100, (5000, 2)),), lambda x: x.unique(dim=0)),
    ("unique_consecutive", _numbers, lambda x: x.unique_consecutive()),
    ("searchsorted 1M in 100000", lambda lib: (lib, lib.randn(100_000).sort()[0], lib.randn(_N)), lambda lib, s, x: lib.searchsorted(s, x)),
    ("bucketize 1M in 100", lambda lib: (lib, lib.randn(100).sort()[0], lib.randn(_N)), lambda lib, s, x: lib.bucketize(x, s)),
    ("isin 1M in 100", _lib_and(_numbers), lambda lib, x: lib.isin(x, x[:100])),
    ("histc", _vector, lambda x: x.histc(100)),
    ("histogram", _vector, lambda x: x.histogram(100)),
    ("bincount", _numbers, lambda x: x.bincount()),
    ("quantile 1M", _vector, lambda x: x.quantile(0.3)),
    ("quantile dim 1", _matrix, lambda x: x.quantile(0.3, 1)),
]


def rows() -> list[Row]:
    return [Row(name, "sorting", _of(make, call), limit=_LIMIT) for name, make, call in _ROWS]
