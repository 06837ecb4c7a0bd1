"""Stacking, repeating, reordering, diagonals, grids and channels, composed of joins, views and copies. Gradients follow from the parts."""

from __future__ import annotations

import itertools
import math

from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.core.device import contiguous_format
from tensorrt_lite._C.core.dispatch import is_grad_enabled
from tensorrt_lite._C.core.dtype import _dtype_by_name
from tensorrt_lite._C.core.python_key import is_transformed
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._C.core.warning import warn_once
from tensorrt_lite._C.ops.joining import _in_format_of, _interleave_index
from tensorrt_lite._C.ops.support import holds_elements
from tensorrt_lite._C.ops.support import (
    deliver_result,
    dims_argument,
    int_argument,
    size_argument,
    tensor_argument,
    tensor_list_argument,
    wrapped_dim,
)
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_elements = _LazyModule("tensorrt_lite._transforms.elements")

TYPE_CHECKING = False  # `typing` and what it imports would be a quarter of the package's import time
if TYPE_CHECKING:
    from typing import Any

    from tensorrt_lite import Tensor

_ops = namespace()
_int64, _int32 = _dtype_by_name("int64"), _dtype_by_name("int32")
_MAX_DIMS = 64

# ---- stacking -------------------------------------------------------------------------------------------------------


def _at_least(t: Any, n: int) -> Any:
    d = tensor_argument(t, f"atleast_{n}d", "tensor").dim()
    if d == 0:
        return t.reshape((1,) * n)
    if d == 1 and n >= 2:
        t, d = t.unsqueeze(0), 2
    return t.unsqueeze(-1) if d == 2 and n == 3 else t


def _each_at_least(tensors: tuple[Any, ...], n: int) -> Any:
    if len(tensors) == 1 and not isinstance(tensors[0], (tuple, list)):
        return _at_least(tensors[0], n)
    return tuple([_at_least(t, n) for t in (tensors[0] if len(tensors) == 1 else tensors)])


def atleast_1d(*tensors: Any) -> Any:
    """The tensor (or a tuple of them) with 0-dimensional ones reshaped to (1)."""
    return _each_at_least(tensors, 1)


def atleast_2d(*tensors: Any) -> Any:
    """The tensor (or a tuple of them) as views of at least two dimensions."""
    return _each_at_least(tensors, 2)


def atleast_3d(*tensors: Any) -> Any:
    """The tensor (or a tuple of them) as views of at least three dimensions."""
    return _each_at_least(tensors, 3)


def _tensors(given: Any, name: str) -> list[Any]:
    tensors = tensor_list_argument(given, name, "tensors")
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return tensors


def hstack(tensors: Any, *, out: Any = None) -> Tensor:
    """The tensors side by side: along dimension 1, vectors along 0."""
    given = [_at_least(t, 1) for t in _tensors(tensors, "hstack")]
    return _ops.cat(given, 0 if given[0].dim() == 1 else 1, out=out)


def vstack(tensors: Any, *, out: Any = None) -> Tensor:
    """The tensors below each other: along dimension 0, vectors as rows."""
    return _ops.cat([_at_least(t, 2) for t in _tensors(tensors, "vstack")], 0, out=out)


def dstack(tensors: Any, *, out: Any = None) -> Tensor:
    """The tensors along the third dimension."""
    return _ops.cat([_at_least(t, 3) for t in _tensors(tensors, "dstack")], 2, out=out)


def column_stack(tensors: Any, *, out: Any = None) -> Tensor:
    """The tensors side by side, vectors as columns."""
    return hstack([t.reshape(t.numel(), 1) if t.dim() <= 1 else t for t in _tensors(tensors, "column_stack")], out=out)


# ---- repeating ------------------------------------------------------------------------------------------------------


def repeat(self: Any, *repeats: Any) -> Tensor:
    """The tensor repeated repeats[i] times along dimension i; more repeats than dimensions add leading ones."""
    tensor_argument(self, "repeat", "self")
    counts = size_argument(repeats, "repeat", "repeats")
    if len(counts) < self.dim():
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    own = (1,) * (len(counts) - self.dim()) + tuple(self.shape)
    final = [n * count for n, count in zip(own, counts)]
    sizes, shape = [], []
    for n, count, size in zip(own, counts, final):
        if count < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {size}: {final}")
        if count == 1 or n == 1:
            # one dimension serves for both: fewer dimensions, and room for 64 of them
            sizes.append(n)
            shape.append(size)
        else:
            sizes += [1, n]
            shape += [count, n]
    if 0 in final:
        return self.reshape(sizes).expand(shape).reshape(final) if len(shape) <= _MAX_DIMS else self.new_empty(final)
    wide = self.reshape(sizes).expand(shape)
    return (_ops.clone(wide) if shape == final or wide.is_contiguous() else wide).reshape(final)


def tile(input: Any, *dims: Any) -> Tensor:
    """repeat with missing leading entries of dims taken for one."""
    n = tensor_argument(input, "tile", "input").dim()
    counts = size_argument(dims, "tile", "dims")
    return repeat(input, [1] * (n - len(counts)) + list(counts))


def _indices_of_counts(counts: Any, output_size: Any) -> Any:
    """i repeated counts[i] times."""
    if output_size is not None and not holds_elements(counts):
        return _ops.empty((output_size,), dtype=counts.dtype, device=counts.device)
    if counts.is_meta:
        raise NotImplementedError("repeat_interleave: the result's shape depends on the data, which meta tensors do not have")
    if counts.dtype != _int64 and counts.dtype != _int32:
        raise RuntimeError("repeats has to be Long or Int tensor")
    if is_transformed([counts]):
        return _elements.for_each_element("repeat_interleave", lambda c: _indices_of_counts(c, output_size), counts)
    # the length of the result depends on them: those of a device are read here
    return _interleave_index(counts.detach().cpu().to(_int64), output_size).to(counts.device, counts.dtype)


def repeat_interleave(input: Any, repeats: Any = None, dim: Any = None, *, output_size: Any = None) -> Tensor:
    """Each element (or slice along dim) repeated in place; repeats: an int or one count per slice."""
    x = tensor_argument(input, "repeat_interleave", "input")
    if repeats is None:
        if x.dim() != 1:
            raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
        return _indices_of_counts(x, output_size)
    if dim is None:
        x, dim = x.reshape(-1), 0
    d = wrapped_dim(int_argument(dim, "repeat_interleave", "dim"), x.dim())
    if x.dim() == 0:
        x = x.reshape(1)
    n = x.size(d)
    if not isinstance(repeats, TensorBase):
        k = int_argument(repeats, "repeat_interleave", "repeats")
        if k < 0:
            raise RuntimeError("repeats can not be negative")
        if output_size is not None and output_size != n * k:
            raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {n * k} but got {output_size}")
        shape = list(x.shape)
        wide = x.unsqueeze(d + 1).expand(shape[: d + 1] + [k] + shape[d + 1 :])
        shape[d] = n * k
        return _ops.clone(wide, memory_format=contiguous_format).reshape(shape)
    if repeats.dim() > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if repeats.dtype != _int64 and repeats.dtype != _int32:
        raise RuntimeError("repeats has to be Long or Int tensor")
    if repeats.numel() == 1:
        repeats = repeats.reshape(1).expand(n)
    elif repeats.numel() != n:
        raise RuntimeError(
            f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.numel()} and input.size({d}) = {n}"
        )
    return x.index_select(d, _indices_of_counts(repeats, output_size))


# ---- reordering -----------------------------------------------------------------------------------------------------


def fliplr(input: Any) -> Tensor:
    """flip along dimension 1."""
    if tensor_argument(input, "fliplr", "input").dim() < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return _ops.flip(input, 1)


def flipud(input: Any) -> Tensor:
    """flip along dimension 0."""
    if tensor_argument(input, "flipud", "input").dim() < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return _ops.flip(input, 0)


def rot90(input: Any, k: Any = 1, dims: Any = (0, 1)) -> Tensor:
    """The tensor turned k times by 90 degrees in the plane of two dims, from the first towards the second."""
    n = tensor_argument(input, "rot90", "input").dim()
    plane = dims_argument(dims, "rot90", "dims")
    if len(plane) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(plane)}")
    if n < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {n}")
    if plane[0] == plane[1] or abs(plane[0] - plane[1]) == n:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {plane[0]} and dim1 = {plane[1]}")
    a, b = wrapped_dim(plane[0], n), wrapped_dim(plane[1], n)
    turns = int_argument(k, "rot90", "k") % 4
    if turns == 1:
        return _ops.flip(input, b).transpose(a, b)
    if turns == 2:
        return _ops.flip(input, a, b)
    if turns == 3:
        return _ops.flip(input, a).transpose(a, b)
    return input.clone()


def swapaxes(input: Any, axis0: Any, axis1: Any) -> Tensor:
    """transpose under its NumPy name."""
    tensor_argument(input, "swapaxes", "input")
    return input.transpose(axis0, axis1)


def swapaxes_(self: Any, axis0: Any, axis1: Any) -> Tensor:
    """transpose_ under its NumPy name."""
    tensor_argument(self, "swapaxes_", "self")
    return self.transpose_(axis0, axis1)


def moveaxis(input: Any, source: Any, destination: Any) -> Tensor:
    """movedim under its NumPy name."""
    tensor_argument(input, "moveaxis", "input")
    return input.movedim(source, destination)


def adjoint(input: Any) -> Tensor:
    """The conjugate transpose of the last two dimensions."""
    n = tensor_argument(input, "adjoint", "input").dim()
    if n == 0:
        warn_once("adjoint() is deprecated on 0-D tensors. Consider using x.conj().")
        return input.conj()
    if n == 1:
        raise RuntimeError("tensor.adjoint() is only supported on matrices or batches of matrices. Got 1-D tensor.")
    r = input.transpose(-2, -1)
    return r.conj() if r.is_complex() else r


def ravel(input: Any) -> Tensor:
    """All elements in one dimension: a view where strides allow it."""
    tensor_argument(input, "ravel", "input")
    return input.contiguous().view(-1)


def narrow_copy(input: Any, dim: Any, start: Any, length: Any, *, out: Any = None) -> Tensor:
    """A copy of narrow."""
    n = tensor_argument(input, "narrow_copy", "input").dim()
    if n == 0 or int_argument(dim, "narrow_copy", "dim") >= n:
        raise RuntimeError(f"narrow_copy: dimension {dim} of a tensor of {n} dimensions")
    return deliver_result("narrow_copy", _ops.contiguous(input.narrow(dim, start, length).clone()), out)


def _writable(input: Tensor, views: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The views; copies of them while they are recorded, for autograd refuses writes into one of several views."""
    return tuple([t.clone() for t in views]) if input.requires_grad and is_grad_enabled() else views


def unsafe_chunk(input: Any, chunks: Any, dim: Any = 0) -> tuple[Tensor, ...]:
    """chunk, whose results may be written in place."""
    tensor_argument(input, "unsafe_chunk", "input")
    return _writable(input, input.chunk(chunks, dim))


def unsafe_split(input: Any, split_size: Any, dim: Any = 0) -> tuple[Tensor, ...]:
    """split, whose results may be written in place."""
    tensor_argument(input, "unsafe_split", "input")
    return _writable(input, input.split(split_size, dim))


def unsafe_split_with_sizes(input: Any, split_sizes: Any, dim: Any = 0) -> tuple[Tensor, ...]:
    """split_with_sizes, whose results may be written in place."""
    tensor_argument(input, "unsafe_split_with_sizes", "input")
    return _writable(input, input.split_with_sizes(split_sizes, dim))


def _split_along(input: Any, sections: Any, dim: int, name: str, least: int) -> Any:
    x = tensor_argument(input, name, "input")
    if x.dim() < least:
        raise RuntimeError(
            f"torch.{name} requires a tensor with at least {least} dimension{'s' if least > 1 else ''}, but got a tensor with {x.dim()} dimensions!"
        )
    if not isinstance(sections, (tuple, list)):
        sections = int_argument(sections, name, "sections")
    if not isinstance(sections, (tuple, list)) and (sections <= 0 or x.size(dim) % sections):
        raise RuntimeError(
            f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {x.size(dim)} is not divisible by the split_size {sections}!"
        )
    return x.tensor_split(sections, dim)


def hsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """tensor_split along dimension 1 (0 for vectors)."""
    return _split_along(input, indices_or_sections, 0 if tensor_argument(input, "hsplit", "input").dim() == 1 else 1, "hsplit", 1)


def vsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """tensor_split along dimension 0."""
    return _split_along(input, indices_or_sections, 0, "vsplit", 2)


def dsplit(input: Any, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """tensor_split along dimension 2."""
    return _split_along(input, indices_or_sections, 2, "dsplit", 3)


# ---- diagonals and triangles ----------------------------------------------------------------------------------------


def diag_embed(input: Any, offset: Any = 0, dim1: Any = -2, dim2: Any = -1) -> Tensor:
    """Matrices in dimensions dim1 and dim2 that hold input's last dimension on their diagonal, zero elsewhere."""
    shape = list(tensor_argument(input, "diag_embed", "input").shape)
    if not shape:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got -2) (diag_embed of a 0-dim tensor)")
    a = wrapped_dim(int_argument(dim1, "diag_embed", "dim1"), len(shape) + 1)
    b = wrapped_dim(int_argument(dim2, "diag_embed", "dim2"), len(shape) + 1)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n = shape.pop() + abs(offset)
    for d in sorted((a, b)):
        shape.insert(d, n)
    r = input.new_zeros(shape)
    r.diagonal(offset, a, b).copy_(input)
    return r


def diag(input: Any, diagonal: Any = 0, *, out: Any = None) -> Tensor:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    n = tensor_argument(input, "diag", "input").dim()
    if n != 1 and n != 2:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {n}D")
    return deliver_result("diag", diag_embed(input, diagonal) if n == 1 else input.diagonal(diagonal).clone(), out)


def diagflat(input: Any, offset: Any = 0) -> Tensor:
    """The matrix with the flattened input on its diagonal."""
    tensor_argument(input, "diagflat", "input")
    return diag_embed(input.contiguous().reshape(-1), offset)


def block_diag(*tensors: Any) -> Tensor:
    """A matrix with the given matrices (vectors are rows) along its diagonal."""
    given = [_at_least(t, 2) for t in tensors]
    if not given:
        return _ops.empty(1, 0)
    for i, t in enumerate(given):
        if t.dim() > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.dim()} dimensions")
    total, before, rows = sum(t.size(1) for t in given), 0, []
    for t in given:
        rows.append(_ops.constant_pad_nd(t, [before, total - before - t.size(1)], 0))
        before += t.size(1)
    return _ops.cat(rows, 0)


def _triangle_indices(name: str, row: Any, col: Any, offset: Any, dtype: Any, device: Any) -> Any:
    rows, cols, shift = int_argument(row, name, "row"), int_argument(col, name, "col"), int_argument(offset, name, "offset")
    if rows < 0 or cols < 0:
        raise RuntimeError(f"row must be non-negative, got {rows}" if rows < 0 else f"col must be non-negative, got {cols}")
    shift = min(max(shift, -rows - 1), cols + 1)
    row = _ops.arange(rows, dtype=_int64, device="cpu")
    begin = (row + shift).clamp(0, cols) if name == "triu_indices" else _ops.zeros_like(row)
    count = cols - begin if name == "triu_indices" else (row + (shift + 1)).clamp(0, cols)
    behind = begin - (count.cumsum(0) - count)  # of a row's column from its place in the result
    taken = _ops.repeat_interleave(row, count)
    r = _ops.stack((taken, _ops.arange(taken.size(0), dtype=_int64, device="cpu") + _ops.repeat_interleave(behind, count)), 0)
    return r.to(dtype=dtype if dtype is not None else _int64, device=device)


def tril_indices(
    row: Any,
    col: Any,
    offset: Any = 0,
    *,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
    requires_grad: Any = False,
    pin_memory: Any = False,
) -> Tensor:
    """The coordinates (2, n) of a matrix's lower triangle."""
    return _triangle_indices("tril_indices", row, col, offset, dtype, device)


def triu_indices(
    row: Any,
    col: Any,
    offset: Any = 0,
    *,
    dtype: Any = None,
    device: Any = None,
    layout: Any = None,
    requires_grad: Any = False,
    pin_memory: Any = False,
) -> Tensor:
    """The coordinates (2, n) of a matrix's upper triangle."""
    return _triangle_indices("triu_indices", row, col, offset, dtype, device)


# ---- grids ----------------------------------------------------------------------------------------------------------


def meshgrid(*tensors: Any, indexing: Any = None) -> tuple[Tensor, ...]:
    """Views of vectors expanded to the grid they span; indexing "ij" (default) or "xy"."""
    given = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else list(tensors)
    if not given:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for t in given:
        if tensor_argument(t, "meshgrid", "tensors").dim() > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {t.dim()}D")
        if t.dtype != given[0].dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
        if t.device != given[0].device:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same device")
    if indexing is None:
        warn_once("torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.")
    elif indexing != "ij" and indexing != "xy":
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    swap = indexing == "xy" and len(given) >= 2
    if swap:
        given[0], given[1] = given[1], given[0]
    shape = [t.numel() for t in given]
    grids = [t.reshape([shape[k] if i == k else 1 for i in range(len(given))]).expand(shape) for k, t in enumerate(given)]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def cartesian_prod(*tensors: Any) -> Tensor:
    """All combinations of one element per vector, as rows; a single vector stays as it is."""
    for t in tensors:
        if tensor_argument(t, "cartesian_prod", "tensors").dim() != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return _ops.stack([g.reshape(-1) for g in meshgrid(*tensors, indexing="ij")], 1)


def combinations(input: Any, r: Any = 2, with_replacement: Any = False) -> Tensor:
    """All choices of r elements of a vector, in order, as rows."""
    x = tensor_argument(input, "combinations", "input")
    if x.dim() != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return x.new_empty((0,))

    n = x.numel() + (r - 1 if with_replacement and x.numel() else 0)
    if n >= r and math.lgamma(n + 1) - math.lgamma(r + 1) - math.lgamma(n - r + 1) > 22:
        raise MemoryError(f"combinations: too many choices of {r} of {x.numel()} elements")
    if r == 2:
        return x[triu_indices(x.numel(), x.numel(), 0 if with_replacement else 1, device=x.device).t()]
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(x.numel()), r))
    return x[_ops.tensor(rows, dtype=_int64) if rows else _ops.empty((0, r), dtype=_int64)]


# ---- channels -------------------------------------------------------------------------------------------------------


def pixel_shuffle(input: Any, upscale_factor: Any) -> Tensor:
    """(*, C * r * r, H, W) to (*, C, H * r, W * r)."""
    r, n = int_argument(upscale_factor, "pixel_shuffle", "upscale_factor"), tensor_argument(input, "pixel_shuffle", "input").dim()
    if n < 3:
        raise RuntimeError(f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {n} dimension(s)")
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    *lead, channels, height, width = input.shape
    if channels % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={channels} is not divisible by {r * r}"
        )
    if r == 1:
        return input.clone()
    k = len(lead)
    blocks = input.reshape(*lead, channels // (r * r), r, r, height, width)
    shuffled = blocks.permute([*range(k), k, k + 3, k + 1, k + 4, k + 2]).reshape(*lead, channels // (r * r), height * r, width * r)
    return _in_format_of(shuffled, input)  # type: ignore[no-any-return]


def pixel_unshuffle(input: Any, downscale_factor: Any) -> Tensor:
    """(*, C, H * r, W * r) to (*, C * r * r, H, W); undoes pixel_shuffle."""
    r, n = int_argument(downscale_factor, "pixel_unshuffle", "downscale_factor"), tensor_argument(input, "pixel_unshuffle", "input").dim()
    if n < 3:
        raise RuntimeError(f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {n} dimension(s)")
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    *lead, channels, height, width = input.shape
    for name, dim, size in (("height", -2, height), ("width", -1, width)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({dim})={size} is not divisible by {r}"
            )
    if r == 1:
        return input.clone()
    k = len(lead)
    blocks = input.reshape(*lead, channels, height // r, r, width // r, r)
    gathered = blocks.permute([*range(k), k, k + 2, k + 4, k + 1, k + 3]).reshape(*lead, channels * r * r, height // r, width // r)
    return _in_format_of(gathered, input)  # type: ignore[no-any-return]


def channel_shuffle(input: Any, groups: Any) -> Tensor:
    """(N, C, *) with the channels of the groups interleaved."""
    x = tensor_argument(input, "channel_shuffle", "input")
    if x.dim() < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(x.shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if x.size(1) % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {x.size(1)} channels and {groups} groups.")
    if not x.numel() or groups in (1, x.size(1)):
        return _in_format_of(x.clone(memory_format=contiguous_format), x)  # type: ignore[no-any-return]
    return _in_format_of(x.reshape(x.size(0), groups, x.size(1) // groups, -1).transpose(1, 2).reshape(x.shape), x)  # type: ignore[no-any-return]


def native_channel_shuffle(input: Any, groups: Any) -> Tensor:
    """channel_shuffle under another name."""
    return channel_shuffle(input, groups)


def _pad_circular(input: Any, pad: Any) -> Tensor:
    """pad with mode circular."""
    return _ops.pad(input, pad, "circular")


EXPORTS = {"_pad_circular": ""}
METHOD_ALIASES = {"swapdims": swapaxes, "swapdims_": swapaxes_}
FUNCTION_ALIASES = {"row_stack": vstack, "swapdims": swapaxes}
