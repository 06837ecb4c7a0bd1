"""Rules of indexing by tensors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tensorrt_lite import _root as trt
from tensorrt_lite._transforms.batching import Call, call_row, flattened, loop, padded, refuse_dynamic, refuse_inplace, rule, to_front
from tensorrt_lite._transforms.rules_dims import shifted

if TYPE_CHECKING:
    from tensorrt_lite import Tensor


@rule("masked_select")
def _masked_select(call: Call) -> Tensor:
    """By one mask, from every element as many."""
    if call.batched("mask"):
        return refuse_dynamic(call)
    x, mask = padded(call.front("self"), call["mask"].dim()), call["mask"]
    x, mask = trt.broadcast_tensors(x, mask)
    return call.run(x, mask).view(call.size, -1) if x.numel() else x.new_empty((call.size, 0))


def _rows(call: Call, rank: int) -> Tensor:
    """The numbers of the batch's elements, to index the batch dimension with beside indices of `rank` dimensions."""
    return trt.arange(call.size, device=next(v.device for v in call.values if isinstance(v, trt.Tensor))).view(-1, *[1] * rank)


class _Indices:
    """The indices of x[indices], as they stand beside a batch.

    given: an index or None for each dimension of an element, with the batch in front where it is batched. rank: of the indices' common shape. position: the place
    of the indexed dimensions in the result.
    """

    def __init__(self, call: Call, name: str) -> None:
        i = call.position(name)
        pairs = []
        for x, d in zip(call.values[i], call.dims[i] if isinstance(call.dims[i], list) else [None] * len(call.values[i])):
            if x is not None and x.dtype in (trt.bool, trt.uint8):
                if d is not None:
                    refuse_dynamic(call)
                pairs += [(part, None) for part in x.nonzero().unbind(1)]
            else:
                pairs.append((x, d))
        self.batched = any(d is not None for _, d in pairs)
        self.rank = max((x.dim() - (d is not None) for x, d in pairs if x is not None), default=0)
        self.given = [padded(to_front(x, d), self.rank) if d is not None else x for x, d in pairs]
        used = [k for k, x in enumerate(self.given) if x is not None]
        adjacent = not used or used == list(range(used[0], used[-1] + 1))
        self.position = used[0] if adjacent and used else 0
        self.adjacent = adjacent


@rule("index")
def _index(call: Call) -> Tensor:
    indices = _Indices(call, "indices")
    x, k, p = call["self"], indices.rank, indices.position
    if not indices.batched:
        result = call.run(call.front("self"), [None, *indices.given])
        return result if indices.adjacent else result.movedim(k, 0)
    if call.batched("self"):
        result = call.run(call.front("self"), [_rows(call, k), *indices.given])
        if not p:
            return result
        # where the batch's index and the others are apart, what they index comes first
        return result.movedim(list(range(1, 1 + k)), list(range(1 + p, 1 + p + k)))
    result = call.run(x, indices.given)
    return result.movedim(p, 0)


@rule("index_put")
def _index_put(call: Call) -> Tensor:
    mask = _single_mask(call)
    if mask is not None:
        return mask
    if call.mode and not call.batched("self"):
        refuse_inplace("index_put")
    indices = _Indices(call, "indices")
    x, k, p = call.front("self"), indices.rank, indices.position
    values, accumulate = call["values"], call["accumulate"]
    rest = x.dim() - 1 - sum(i is not None for i in indices.given)
    if call.batched("values"):
        values = padded(call.front("values"), k + rest)
    elif values.dim() < k + rest:
        values = values.reshape(*[1] * (k + rest - values.dim()), *values.shape)
    if not call.batched("values"):
        values = values.unsqueeze(0)
    if p:
        # beside the batch's index what is indexed comes first
        values = values.movedim(list(range(1 + p, 1 + p + k)), list(range(1, 1 + k)))
    return call_row("index_put", x, [_rows(call, k), *indices.given], values, accumulate)


def _single_mask(call: Call) -> Tensor | None:
    """x[mask] = number of a mask that differs within the batch: a choice between elements. None for other calls."""
    i = call.position("indices")
    if not isinstance(call.dims[i], list) or len(call.values[i]) != 1 or call.values[i][0].dtype is not trt.bool or call.dims[i][0] is None:
        return None
    if call.rank("values") != 0 and math.prod(call["values"].shape) != (call.size if call.batched("values") else 1):
        return None
    x, mask = call.front("self"), to_front(call.values[i][0], call.dims[i][0])
    values = call.front("values").reshape(-1, *[1] * (x.dim() - 1)).to(x.dtype)
    mask = mask.reshape(*mask.shape, *[1] * (x.dim() - mask.dim()))
    return trt.where(mask, x + values if call["accumulate"] else values, x)


@rule("index_select")
def _index_select(call: Call) -> Tensor:
    x, rank = call["self"], call.rank("self")
    dim = shifted(call["dim"], rank)
    if not call.batched("index"):
        x = call.front("self")
        return call.run(x, dim, call["index"]) if rank else call.run(x.unsqueeze(1), 1, call["index"]).squeeze(1)
    index = call.front("index")
    scalar = index.dim() == 1
    if scalar:
        index = index.unsqueeze(1)
    if call.batched("self") or rank == 0:
        x = call.front("self")
        x = x if rank else x.unsqueeze(1)
        result = x.movedim(dim, 1)[_rows(call, 1), index].movedim(1, dim)
    else:
        result = x.index_select(dim - 1, index.reshape(-1)).unflatten(dim - 1, index.shape).movedim(dim - 1, 0)
    return result.squeeze(dim) if rank == 0 else result


@rule("index_add", "index_copy", "index_fill")
def _index_write(call: Call) -> Tensor:
    rank = call.rank("self")
    dim = shifted(call["dim"], rank)
    if call.mode and not call.batched("self"):
        refuse_inplace(call.name)
    x, index = call.front("self"), call["index"]
    source = None if call.name == "index_fill" else call.front("source")
    if rank == 0:
        x = x.unsqueeze(1)
        source = source if source is None or source.dim() > 1 else source.unsqueeze(1)
    if source is not None and source.dim() == 1 and rank == 1:
        source = source.unsqueeze(1)
    if not call.batched("index"):
        values = list(call.values)
        values[0], values[call.position("dim")] = x, dim
        if source is not None:
            values[call.position("source")] = source
        elif isinstance(call["value"], trt.Tensor) and call.batched("value"):
            return _filled(call, x, dim, index.expand(call.size, *index.shape), rank)
        result = call.run(*values)
    elif source is None:
        return _filled(call, x, dim, call.front("index"), rank)
    else:
        index = call.front("index")
        index = index if index.dim() > 1 else index.unsqueeze(1)
        added = source if call.name == "index_copy" else source * call["alpha"] if call["alpha"] != 1 else source
        result = call_row("index_put", x.movedim(dim, 1), [_rows(call, 1), index], added.movedim(dim, 1), call.name == "index_add").movedim(1, dim)
    return result.squeeze(1) if rank == 0 else result


def _filled(call: Call, x: Tensor, dim: int, index: Tensor, rank: int) -> Tensor:
    value = call["value"]
    index = index if index.dim() > 1 else index.unsqueeze(1)
    if not isinstance(value, trt.Tensor):
        value = trt.tensor(value, dtype=x.dtype, device=x.device)
    elif call.batched("value"):
        value = call.front("value").reshape(-1, *[1] * (x.dim() - 1))
    n = x.shape[dim]
    if index.numel() and not n:
        raise IndexError("index_fill_(): index out of range: the dimension is empty")
    chosen = trt.zeros((call.size, n), dtype=trt.bool, device=x.device)
    chosen[_rows(call, 1), index.to(trt.int64)] = True
    result = trt.where(chosen.reshape(call.size, *[n if d == dim else 1 for d in range(1, x.dim())]), value.to(x.dtype), x)
    return result.squeeze(1) if rank == 0 else result


@rule("take")
def _take(call: Call) -> Tensor:
    index = call.front("index")
    if not call.batched("self"):
        return call.run(call["self"], index)
    flat = flattened(call.front("self"), 1, call.rank("self"))
    n = flat.shape[1]
    places = flattened(index, 1, index.dim() - 1)
    if places.numel() and not n:
        raise IndexError("take(): tried to take from an empty tensor")
    return flat.gather(1, trt.where(places < 0, places + n, places)).view(index.shape)


@rule("put")
def _put(call: Call) -> Tensor:
    x = call.front("self")
    flat, index, source = (flattened(t, 1, t.dim() - 1) for t in (x, call.front("index"), call.front("source")))
    return call_row("index_put", flat, [_rows(call, 1), index], source, call["accumulate"]).view(x.shape)


@rule("masked_fill")
def _masked_fill(call: Call) -> Tensor:
    rank = max(call.rank("self"), call.rank("mask"))
    if call.mode and not call.batched("self"):
        refuse_inplace("masked_fill")
    x = padded(call.front("self"), rank)
    mask = padded(call.front("mask"), rank) if call.batched("mask") else call["mask"]
    if not call.batched("value"):
        return call.run(x, mask, call["value"])
    return trt.where(mask, padded(call.front("value"), rank).to(x.dtype), x)


@rule("masked_scatter")
def _masked_scatter(call: Call) -> Tensor:
    """The source's elements in turn where the mask is true: the number of true ones before an element is the place of what it gets."""
    if call.mode and not call.batched("self"):
        refuse_inplace("masked_scatter")
    rank = max(call.rank("self"), call.rank("mask"))
    x, mask = trt.broadcast_tensors(padded(call.front("self"), rank), padded(call.front("mask"), rank))
    source = flattened(call.front("source"), 1, call.rank("source"))
    flat = flattened(mask, 1, rank)
    if not flat.numel():
        return x.clone()
    if not source.shape[1]:
        return loop(call)
    places = (flat.cumsum(1) - 1).clamp(0, source.shape[1] - 1)
    return trt.where(mask, source.gather(1, places).view(mask.shape), x)


@rule("embedding")
def _embedding(call: Call) -> Tensor:
    indices = call.front("indices")
    if not call.batched("weight") and not call["scale_grad_by_freq"]:
        return call.run(indices=indices)
    weight, padding = call.front("weight"), call["padding_idx"]
    n = weight.shape[1]
    if padding >= 0:
        row = trt.arange(n, device=weight.device).unsqueeze(1) == padding
        weight = trt.where(row, weight.detach(), weight)  # its gradient is zero
    if indices.numel() and bool(((indices < 0) | (indices >= n)).any()):
        raise IndexError("index out of range in self")
    shifts = (trt.arange(call.size, device=weight.device) * n).view(-1, *[1] * (indices.dim() - 1))
    return call_row("embedding", flattened(weight, 0, 2), indices.to(trt.int64) + shifts, -1, call["scale_grad_by_freq"], call["sparse"])


@rule("searchsorted")
def _searchsorted(call: Call) -> Tensor:
    order, x, sorter = call.front("sorted_sequence"), call.front("self"), call["sorter"]
    if isinstance(sorter, trt.Tensor):
        sorter = call.front("sorter")
    if order.dim() > 2:
        return call.run(order, x, call["out_int32"], call["right"], sorter)
    flat = flattened(x, 1, x.dim() - 1)
    return call.run(order, flat, call["out_int32"], call["right"], sorter).view(x.shape)
