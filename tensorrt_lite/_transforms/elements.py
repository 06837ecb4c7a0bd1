"""Functions made of several operators that look at the numbers of their tensors: inside a transform they are called where the numbers are.

At a level of vmap that is once for each element of the batch, as PyTorch's fallback does; the results must have one shape. Their results carry no derivatives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core import transform
from tensorrt_lite.utils import _pytree

if TYPE_CHECKING:
    from collections.abc import Callable


def for_each_element(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """function(*arguments), trees of tensors, below all levels: its results stacked where an argument is a batch. RuntimeError where their shapes differ."""
    level = transform.innermost()
    if level is None:
        return function(*arguments)
    leaves, tree = _pytree.tree_flatten(arguments)

    def call(flat: list[Any]) -> Any:
        return for_each_element(name, function, *_pytree.tree_unflatten(flat, tree))

    with transform.lowered():
        if level.kind != "vmap":
            return _pytree.tree_map_only(trt.Tensor, lambda x: transform.wrap(x, level), call([transform.unwrap(x, level)[0] for x in leaves]))
        if not any(transform.belongs(x, level) for x in leaves):
            return call(leaves)
        if level.batch_size == 0:
            raise RuntimeError(f"vmap: aten::{name} has no batching rule, and a batch of size 0 has no element to call it for")
        results = [_pytree.tree_flatten(call([transform.element(x, level, i) for x in leaves])) for i in range(level.batch_size)]
        stacked = []
        for parts in zip(*(flat for flat, _ in results)):
            if any(x.shape != parts[0].shape for x in parts):
                raise RuntimeError(
                    f"vmap: aten::{name} is a dynamic operator: the shape of its result depends on the values, {list(parts[0].shape)} and "
                    f"{next(list(x.shape) for x in parts if x.shape != parts[0].shape)} within the batch"
                )
            stacked.append(transform.wrap(trt.stack(parts), level, 0))
        return _pytree.tree_unflatten(stacked, results[0][1])
