"""Rules of operators along named dimensions: reductions, scans, sorts, and what else takes `dim`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core import transform
from tensorrt_lite._transforms.batching import WRITERS, Call, flattened, rule, to_front, write_result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tensorrt_lite import Tensor


_INPLACE = 2


def shifted(dim: int, rank: int) -> int:
    """A dimension of an element, counted behind the batch."""
    rank = max(rank, 1)
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    return dim % rank + 1


def _all_tensors(call: Call, ranked: tuple[str, ...]) -> tuple[list[Any], int]:
    """The values with the batch in front of every tensor, and the rank of the elements. Elements without dimensions get one."""
    values, rank = list(call.values), 0
    for name in ranked:
        i = call.position(name)
        if isinstance(values[i], list):
            values[i] = [call.expanded(x, d) for x, d in zip(values[i], call.dims[i] if isinstance(call.dims[i], list) else [None] * len(values[i]))]
            rank = max(rank, *(x.dim() - 1 for x in values[i]))
        elif isinstance(values[i], trt.Tensor):
            rank = max(rank, call.rank(name))
            x = call.front(name)
            values[i] = x if call.rank(name) else x.unsqueeze(1)
    return values, rank


def element_shape(call: Call, name: str) -> list[int]:
    """The sizes of an argument's elements."""
    i = call.position(name)
    return [n for d, n in enumerate(call.values[i].shape) if d != call.dims[i]]


def by_dims(tensors: tuple[str, ...], dims: tuple[str, ...], made: tuple[str, ...] = (), results: Sequence[Sequence[str]] = (("*",),)) -> Callable[[Call], Any]:
    """The rule of an operator whose arguments `dims` name dimensions of `tensors`, and `made` such of the result. None named means all, for an argument `dim`.

    results: the words of `dims` in the row, of which those beside `*` and a named dimension are dimensions that the operator makes.
    """
    extra = sum(word.isalpha() and len(word) == 1 for word in results[0])

    def run(call: Call) -> Any:
        values, rank = _all_tensors(call, tensors)
        if dims and isinstance(values[0], list):  # of what is joined, an empty vector joins anything
            values[0] = [x for x in values[0] if x.dim() - 1 == rank or x.dim() > 2 or x.numel()]
        for name in dims:
            i = call.position(name)
            given = values[i]
            if isinstance(given, int):
                values[i] = shifted(given, rank)
            elif given is None and call.type(name) == "int?":
                return _of_all(call, values, rank, i)
            elif given is None or len(given) == 0:
                values[i] = given if given is not None and call.is_view or name == "dims" else list(range(1, max(rank, 1) + 1))
            else:
                values[i] = [shifted(d, rank) for d in given]
        for name in made:
            i = call.position(name)
            values[i] = shifted(values[i], rank + 1)
        if made and rank == 0:  # what has no dimensions gets one by the operator
            values = [v.squeeze(1) if isinstance(v, trt.Tensor) and v.dim() == 2 else v for v in values]
        result = call.run(*values)
        added = not made and not isinstance(call[tensors[0]], list) and call.rank("index" if call.name == "gather" else tensors[0]) == 0
        return _without_added(result, 2 + extra) if added else result

    return run


def _of_all(call: Call, values: list[Any], rank: int, place: int) -> Any:
    """The operator along the one dimension of flattened elements, for a dimension that is None."""
    values[0] = flattened(values[0], 1, values[0].dim() - 1)
    values[place] = 1
    keepdim = "keepdim" in call.names and call["keepdim"]
    if keepdim:
        values[call.position("keepdim")] = False
    result = call.run(*values)
    return result.reshape(call.size, *[1] * rank) if keepdim else result


def _without_added(result: Any, rank: int) -> Any:
    """Results of elements that were given a dimension, without it where they kept it."""
    if isinstance(result, trt.Tensor):
        return result.squeeze(1) if result.dim() == rank else result
    return tuple(_without_added(x, rank) for x in result)


@rule("scatter")
def _scatter(call: Call) -> Any:
    values, rank = _all_tensors(call, ("self", "index"))
    i = call.position("src")
    if isinstance(values[i], trt.Tensor):
        if call.rank("src"):
            values[i] = call.front("src")
        elif call.batched("src") or not call.rank("index"):
            # a number for each element of the batch
            index = values[call.position("index")]
            source = call.front("src")
            values[i] = source.reshape(-1, *[1] * (index.dim() - 1)).expand(index.shape)
    d = call.position("dim")
    values[d] = shifted(values[d], rank)
    result = call.run(*values)
    return result.squeeze(1) if call.rank("self") == 0 else result


@rule("median_all")
def _median_all(call: Call) -> Any:
    flat = flattened(call.front("self"), 1, call.rank("self"))
    if flat.shape[1] == 0:
        return trt.full((call.size,), float("nan"), dtype=flat.dtype, device=flat.device)
    return (trt.nanmedian if call["skip_nan"] else trt.median)(flat, 1).values


@rule("roll")
def _roll(call: Call) -> Any:
    x, shifts, dims = call.front("self"), call["shifts"], call["dims"]
    if not dims:
        return call.run(flattened(x, 1, x.dim() - 1), shifts, [1]).reshape(x.shape)
    return call.run(x, shifts, [shifted(d, call.rank("self")) for d in dims])


def by_leading(tensor: str) -> Callable[[Call], Any]:
    """The rule of an operator on the last dimensions of one tensor, which takes any that stand before."""

    def run(call: Call) -> Any:
        if call.mode and call.target is not None:
            value, dim = transform.unwrap(call.target, call.level)
            if dim is not None:
                x = to_front(value, dim)
                given = list(call.values)
                given[call.position(tensor)] = x if call.mode == _INPLACE else call.front(tensor)
                transform.call_row(call.place, given, x, call.mode)
                return None
        layout = call["memory_format"] if "memory_format" in call.names else None
        if layout in (trt.channels_last, trt.channels_last_3d):
            return _in_format(call.run(**{tensor: call.front(tensor), "memory_format": trt.contiguous_format}))
        result = call.run(**{tensor: call.front(tensor)})
        if call.mode:
            write_result(call, result)
        return result

    WRITERS.add(run)
    return run


def _in_format(x: Tensor) -> Tensor:
    """A copy whose elements have their channels last."""
    order = [0, 1, *range(3, x.dim()), 2]
    back = [0, 1, x.dim() - 1, *range(2, x.dim() - 1)]
    return x.permute(order).clone(memory_format=trt.contiguous_format).permute(back)
