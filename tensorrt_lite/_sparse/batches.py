"""Batches of sparse tensors at a level of vmap: a function runs for each element, and its results are stacked.

The slices of a batch have entries of their own, and different numbers of them, so there is no tensor of values to compute with. Functions of elements have vmap's rule, which
runs them on the whole batch (tensorrt_lite/_transforms/batching.py).
"""

from __future__ import annotations

from functools import wraps
from typing import Any, Callable

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core import sparse as _core
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._C.core import transform as _transform
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_batching = _LazyModule("tensorrt_lite._transforms.batching")
_table = _LazyModule("tensorrt_lite._sparse.table")

# Functions of one element at a time, of those that are not operators: what else is called on a batch has a rule, or reads what a batch has not.
FUNCTIONS = frozenset(
    "__getitem__ __matmul__ __rmatmul__ matmul linear to_dense to_sparse to_sparse_coo to_sparse_csr to_sparse_csc coalesce sum mean norm softmax log_softmax sparse_mask zeros_like".split()
)
OPERATORS = frozenset("mm mv bmm addmm addmv baddbmm sum select".split())


def innermost_batch(arguments: Any) -> Any:
    """The innermost level, where it is one of vmap and one of the arguments is a batch of sparse tensors at it; else None."""
    if not _core.is_transforming() or not any(_core.is_batch(x) for x in arguments):
        return None

    level = _transform.innermost()
    return level if level is not None and level.kind == "vmap" and any(_core.is_batch(x) and _transform.belongs(x, level) for x in arguments) else None


def for_each(level: Any, function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """function of each element of the batch, its results stacked. RuntimeError where it returns something else than a tensor."""
    with _transform.lowered():
        results = [function(*(_transform.element(x, level, i) for x in args), **{k: _transform.element(x, level, i) for k, x in kwargs.items()}) for i in range(level.batch_size)]
        if not results or not all(isinstance(r, TensorBase) for r in results):
            raise RuntimeError(f"vmap: {getattr(function, '__name__', 'the function')} of a batch of sparse tensors needs elements, and a tensor for each of them")
        return _transform.wrap(trt.stack(results), level, 0)


def mapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, called for each element where an argument is a batch of sparse tensors."""

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        level = innermost_batch(args)
        return function(*args, **kwargs) if level is None else for_each(level, function, args, kwargs)

    return wrapped


def run_operator(level: Any, name: str, arguments: Any, target: Any, mode: int) -> Any:
    """An operator's row at a level of vmap: a product for each element, others by vmap's rule."""
    if name in OPERATORS and not mode:
        return for_each(level, _table.OPERATORS[name], arguments, {})
    with _transform.lowered():
        return _batching.run_rule(level, name, _batching.place_of(name), arguments, target, mode)


def joined(t: Any, level: Any) -> Any:
    """The batch that a sparse tensor with values at a level of vmap stands for, with the level off the stack. The tensor itself where nothing belongs to the level."""
    found = _core.parts_of(t)
    if not any(_transform.belongs(x, level) for x in found):
        return t
    layout, sparse_dim, dense_dim, coalesced = _core.layout_of(t)
    return trt.stack([_core.make(layout, tuple(t.shape), tuple(_transform.element(x, level, i) for x in found), sparse_dim, dense_dim, coalesced) for i in range(level.batch_size)])
