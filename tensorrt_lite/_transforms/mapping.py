"""vmap: a function of one element as a function of a batch."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite.random import get_rng_state
from tensorrt_lite.random import set_rng_state
from tensorrt_lite._C.core import transform
from tensorrt_lite._transforms import batching, functions, rules_random  # noqa: F401 (what they register)
from tensorrt_lite.utils import _pytree
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_batches = _LazyModule("tensorrt_lite._sparse.batches")
_parts = _LazyModule("tensorrt_lite._sparse.parts")

if TYPE_CHECKING:
    from collections.abc import Callable

_RANDOMNESS = ("error", "different", "same")


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", None) or repr(func)


def check_randomness_mode(randomness: str) -> None:
    """RuntimeError for anything but the three modes."""
    if randomness not in _RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")


def flat_dims(in_dims: Any, args: Any, who: str) -> tuple[list[Any], list[int | None], Any, int]:
    """(the arguments' leaves, the batch dimension of each, their tree, the size of the batch). ValueError where they do not fit."""
    if not isinstance(in_dims, int) and not isinstance(in_dims, tuple):
        raise ValueError(
            f"vmap({who}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(f"vmap({who})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no inputs. The latter is unsupported.")
    leaves, tree = _pytree.tree_flatten(args)
    dims = _pytree._broadcast_to_and_flatten(in_dims, tree, is_leaf=lambda x: x is None)
    if dims is None:
        raise ValueError(
            f"vmap({who}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{_pytree.tree_flatten(in_dims)[1]} but inputs has structure {tree}."
        )
    found: list[int | None] = []
    sizes = []
    for x, d in zip(leaves, dims):
        if d is not None and (not isinstance(d, int) or isinstance(d, bool)):
            raise ValueError(
                f"vmap({who}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={d} for an input but in_dim must be either an integer dimension or None."
            )
        if d is not None and not isinstance(x, trt.Tensor):
            raise ValueError(
                f"vmap({who}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over non-Tensor arguments, "
                "please use None as the respective in_dim"
            )
        if d is not None:
            if not -x.dim() <= d < x.dim():
                raise ValueError(
                    f"vmap({who}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={d} for some input, but that input is a Tensor of dimensionality {x.dim()} so expected "
                    f"in_dim to satisfy -{x.dim()} <= in_dim < {x.dim()}."
                )
            d %= x.dim()
            sizes.append(x.shape[d])
        found.append(d)
    if not sizes:
        raise ValueError("vmap: at least one of the tensors must have a batch dimension (in_dims other than None)" if leaves else "vmap: Expected at least one Tensor to vmap over")
    if any(n != sizes[0] for n in sizes):
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension")
    return leaves, found, tree, sizes[0]


def map_flat(func: Callable[..., Any], size: int, dims: list[int | None], out_dims: Any, randomness: str, leaves: list[Any], tree: Any, kwargs: dict[str, Any]) -> Any:
    """func of a batch, in one pass."""
    level = transform.Level("vmap", batching.run_rule, size, randomness)
    batching.load()
    transform.push(level)
    try:
        given = [x if d is None else transform.wrap(x, level, d) for x, d in zip(leaves, dims)]
        outputs = func(*_pytree.tree_unflatten(given, tree), **kwargs)
    finally:
        transform.pop()
    return unwrap_outputs(outputs, out_dims, level, func)


def unwrap_outputs(outputs: Any, out_dims: Any, level: Any, func: Callable[..., Any]) -> Any:
    """The results with the batch dimension where out_dims say."""
    flat, tree = _pytree.tree_flatten(outputs)
    for x in flat:
        if not isinstance(x, trt.Tensor):
            raise ValueError(f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(x)}. Did you mean to set out_dims= to None for output?")
    if isinstance(outputs, trt.Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    dims = [out_dims] if isinstance(outputs, trt.Tensor) and (out_dims is None or isinstance(out_dims, int)) else _pytree._broadcast_to_and_flatten(out_dims, tree, is_leaf=lambda x: x is None)
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims}): out_dims is not compatible with the structure of `outputs`. out_dims has structure "
            f"{_pytree.tree_flatten(out_dims)[1]} but outputs has structure {tree}."
        )
    return _pytree.tree_unflatten([_unwrapped(x, d, level, func) for x, d in zip(flat, dims)], tree)


def _unwrapped(x: Any, dim: Any, level: Any, func: Callable[..., Any]) -> Any:
    value, batch = transform.unwrap(x, level)
    if value.is_sparse or value.layout is not trt.strided:
        value, batch = _unwrapped_sparse(value, batch, level)
    if dim is None:
        if batch is not None:
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` can not return a BatchedTensor when out_dim is None"
            )
        return value
    if not isinstance(dim, int):
        raise ValueError(f"vmap({_name(func)}, ..., out_dims): expected out_dims to be integers or None, got {dim!r}")
    if batch is None:
        rank = value.dim() + 1
        if not -rank <= dim < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
        dim %= rank
        return value.unsqueeze(dim).expand(*value.shape[:dim], level.batch_size, *value.shape[dim:])
    return value if batch == dim else value.movedim(batch, dim)


def _unwrapped_sparse(value: Any, batch: int | None, level: Any) -> tuple[Any, int | None]:
    """A sparse result may be a batch, or a tensor whose values are one."""
    if batch is not None or not _parts.is_sparse(value):
        return value, batch
    joined = _batches.joined(value, level)
    return joined, None if joined is value else 0


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None
) -> Callable[..., Any]:
    """A function that calls `func` for every element of a batch, in one call of each operator.

    in_dims: which dimension of each argument is the batch's, an int for all, or a tuple of ints, None (the same for all elements) and nested structures like the
    arguments'. Keyword arguments are handed on whole. out_dims: where it goes in the results. randomness: whether operators that draw numbers are an error, draw "different" numbers for the elements or the
    "same". chunk_size: compute that many elements at a time; None: all at once. An operator without a rule for batches is called once for each element, with a
    warning. ValueError for dimensions that do not fit the arguments; RuntimeError for `.item()`, results whose shape depends on values, and writes in place
    of a batch to what is none.

    Parameters:
        func (function): takes tensors of one element of the batch
        in_dims (int, tuple or None, default 0): the batch's dimension in each argument; None for what all
            elements share
        out_dims (int or tuple, default 0): the batch's dimension in each result
        randomness (str, default 'error'): what operators that draw numbers do: "error", "different" or "same" for
            all elements
        chunk_size (int or None, default None): how many elements are computed at a time; None is all

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.vmap(trt.dot)(trt.ones(2, 3), trt.ones(2, 3)).tolist()
        [3.0, 3.0]
    """
    check_randomness_mode(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @wraps(func, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, dims, tree, size = flat_dims(in_dims, args, _name(func))
        if chunk_size is None or chunk_size >= size:
            return map_flat(func, size, dims, out_dims, randomness, leaves, tree, kwargs)
        return _in_chunks(func, size, chunk_size, dims, out_dims, randomness, leaves, tree, kwargs)

    return wrapped


def _in_chunks(func: Callable[..., Any], size: int, chunk: int, dims: list[int | None], out_dims: Any, randomness: str, leaves: list[Any], tree: Any, kwargs: dict[str, Any]) -> Any:
    """A batch, some elements at a time. With randomness="same" each part starts from the same random state."""
    state = get_rng_state() if randomness == "same" else None
    parts, shape = [], None
    for start in range(0, size, chunk):
        if state is not None:
            set_rng_state(state)
        n = min(chunk, size - start)
        given = [x if d is None else x.narrow(d, start, n) for x, d in zip(leaves, dims)]
        flat, shape = _pytree.tree_flatten(map_flat(func, n, dims, out_dims, randomness, given, tree, kwargs))
        parts.append(flat)
    where = _pytree._broadcast_to_and_flatten(out_dims, shape, is_leaf=lambda x: x is None)
    if where is None and isinstance(out_dims, tuple) and len(out_dims) == 1:
        where = [out_dims[0]]
    joined = [values[0] if d is None else trt.cat(values, d) for d, values in zip(where, map(list, zip(*parts)))]
    return _pytree.tree_unflatten(joined, shape)


# ---- forward mode inside vmap ---------------------------------------------------------------------------------------------


def make_dual_of_batch(primal: Any, tangent: Any, make_dual: Callable[..., Any]) -> Any:
    """A dual tensor at a level of vmap stands for dual values. None at other levels."""
    level = transform.innermost()
    if level is None or level.kind != "vmap":
        return None
    pairs = [transform.unwrap(x, level) for x in (primal, tangent)]
    if all(d is None for _, d in pairs):
        return None
    with transform.lowered():
        x, t = (value.unsqueeze(0).expand(level.batch_size, *value.shape) if d is None else batching.to_front(value, d) for value, d in pairs)
        return transform.wrap(make_dual(x, t), level, 0)


def unpack_dual_of_batch(dual: Any, unpack_dual: Callable[..., Any]) -> tuple[Any, Any] | None:
    """(primal, tangent) of a tensor at a level of vmap. None at other levels."""
    level = transform.innermost()
    if level is None or level.kind != "vmap" or not transform.belongs(dual, level):
        return None
    value, dim = transform.unwrap(dual, level)
    with transform.lowered():
        primal, tangent = unpack_dual(value)
    return transform.wrap(primal, level, dim), None if tangent is None else transform.wrap(tangent, level, dim)
