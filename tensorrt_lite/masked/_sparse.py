"""Masks and data of sparse layouts: a masked function sees the elements of the input at the stored places of the mask, zeros where the input stores none."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._sparse.convert import sparse_mask
from tensorrt_lite._sparse.parts import coalesce, coo_of, dense_at, grouped, is_sparse, linear_keys, parts, rebuilt, values_at, values_of, with_values


def mask_in_layout(input: Any, mask: Any) -> Any:
    """The mask in the sparse layout and shape of the input, its stored elements all True."""
    if not is_sparse(mask) or mask.shape != input.shape:
        mask = mask.to_dense() if is_sparse(mask) else mask
        if mask.ndim > input.ndim:
            raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
        mask = mask.to(trt.bool).expand(input.shape)
        if input.layout == trt.sparse_coo:
            return mask.to_sparse(input.sparse_dim())
        return mask.to_sparse_csr()
    mask = mask.to(trt.bool)
    mask = coalesce(mask.to_sparse()) if mask.layout != trt.sparse_coo else coalesce(mask)
    p = parts(mask)
    if not bool(p.values.all()):
        kept = p.values.reshape(p.values.size(0), -1).any(1).nonzero().reshape(-1)
        mask = coo_of(p.indices.index_select(1, kept), p.values.index_select(0, kept), mask.shape, True)
    return mask.to_sparse_csr() if input.layout == trt.sparse_csr else mask


def reduced(name: str, input: Any, dims: tuple[int, ...], keepdim: bool, dtype: Any, mask: Any) -> Any:
    """A reduction (sum, prod, amax, amin) of the elements at the mask's places; without a mask, of sums alone, of the stored ones. The result has the input's layout.
    ValueError: of other layouts, or without the mask. RuntimeError, AssertionError: of sparse_csr with keepdim=False, as in PyTorch."""
    if input.layout not in (trt.sparse_coo, trt.sparse_csr):
        raise ValueError(f"masked {name} expects strided, sparse_coo or sparse_csr tensor (got {input.layout} tensor)")
    rows = input.layout == trt.sparse_csr
    if mask is None and name != "sum":
        raise ValueError(f"masked {name} expects explicit mask for {str(input.layout)[6:]} tensor input")
    if rows and not keepdim:
        kind = RuntimeError if name in ("sum", "prod") else AssertionError
        raise kind("reduction operations on CSR tensors with keepdim=False is unsupported")
    t = input if mask is None else sparse_mask(input, mask_in_layout(input, mask))
    t = coalesce(t.to_sparse() if rows else t)
    p = parts(t)
    values = values_of(t).to(dtype=dtype)
    n = p.sparse_dim
    # sparse dimensions first: entries that agree in the others meet
    within = [d - n + 1 for d in dims if d >= n]
    gone = [d for d in dims if d < n]
    kept = [d for d in range(n) if d not in gone]
    indices = p.indices
    if gone and values.size(0):
        order, starts = grouped(linear_keys(indices[kept], [t.shape[d] for d in kept]))
        counts = starts[1:] - starts[:-1]
        group = trt.empty_like(order).index_copy(0, order, trt.arange(counts.size(0), device=order.device).repeat_interleave(counts))
        to = values.new_zeros((counts.size(0), *values.shape[1:]))
        places = group.reshape(-1, *(1,) * (values.dim() - 1)).expand(values.shape)
        values = to.scatter_reduce(0, places, values, name, include_self=False)
        indices = indices.index_select(1, order.index_select(0, starts[:-1]))
    for d in reversed(within):
        values = values.prod(d, keepdim) if name == "prod" else getattr(values, name)([d], keepdim)
    if keepdim:
        indices = trt.stack([trt.zeros_like(indices[d]) if d in gone else indices[d] for d in range(n)]) if n else indices
    else:
        indices = indices[kept]
    size = [1 if d in dims else extent for d, extent in enumerate(t.shape) if keepdim or d not in dims]
    made = coo_of(indices, values, size, True)
    return made.to_sparse_csr() if rows else made


def mean(input: Any, dims: tuple[int, ...], keepdim: bool, dtype: Any, mask: Any) -> Any:
    """Sums divided by how many places of the mask they have; of sparse_csr alone, as in PyTorch."""
    if input.layout != trt.sparse_csr:
        raise ValueError(f"masked mean expects strided or sparse_csr tensor (got {input.layout} tensor)")
    if mask is None:
        raise ValueError("masked mean expects explicit mask for sparse_csr tensor input")
    if not keepdim:
        raise AssertionError("reduction operations on CSR tensors with keepdim=False is unsupported")
    mask = mask_in_layout(input, mask)
    total = reduced("sum", input, dims, True, dtype, mask)
    ones = with_values(mask, trt.ones_like(parts(mask).values, dtype=dtype))
    return with_values(total, values_of(total) / parts(reduced("sum", ones, dims, True, dtype, None)).values)


# ---- masked tensors -------------------------------------------------------------------------------------------------


def fitted(data: Any, mask: Any) -> tuple[Any, Any]:
    """Data and mask with the same indices: those of the mask's True elements."""
    mask = mask_in_layout(data, mask)
    return sparse_mask(data, mask), mask


def alias(data: Any) -> Any:
    """The same entries under a new tensor, with their history."""
    return with_values(data, values_of(data)) if data.requires_grad else data.detach()


def operand(x: Any, pattern: Any) -> Any:
    """What stands for a tensor beside the values of a pattern: its elements at those places."""
    if not isinstance(x, trt.Tensor) or x.dim() == 0:
        return x
    like = parts(pattern).values
    return values_at(x, pattern, like) if is_sparse(x) else dense_at(x.expand(pattern.shape), pattern).reshape(like.shape)


def of_values(data: Any, values: Any) -> Any:
    """The tensor with other values, which may be of another type."""
    return with_values(data, values) if values.requires_grad else rebuilt(data, values)
