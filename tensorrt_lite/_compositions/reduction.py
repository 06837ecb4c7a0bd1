"""Reductions over other operators: hashes, norms of slices."""

from __future__ import annotations

from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.core.dtype import _dtype_by_name
from tensorrt_lite._C.core.parallel import get_num_threads
from tensorrt_lite._C.core.python_key import is_transformed
from tensorrt_lite._C.ops.support import deliver_unrecorded, int_argument, tensor_argument, type_name, wrapped_dim

TYPE_CHECKING = False  # `typing` and what it imports would be a quarter of the package's import time
if TYPE_CHECKING:
    from typing import Any

    from tensorrt_lite import Tensor

_ops = namespace()
_float64, _int64, _uint64 = (_dtype_by_name(name) for name in ("float64", "int64", "uint64"))
_HASHED = 1 << 15  # elements in a block of bits for each thread; two blocks are held at a time
_UNHASHED = {_dtype_by_name(name) for name in ("uint16", "uint32", "uint64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2")}


def hash_tensor(input: Any, dim: Any = (), *, keepdim: bool = False, mode: int = 0, out: Any = None) -> Tensor:
    """The exclusive or of the elements' bits, as float64 or int64: the halves of what is left are joined until one element is."""
    x = tensor_argument(input, "hash_tensor", "input").detach()
    dims = [int_argument(d, "hash_tensor", "dim") for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    dims = sorted(wrapped_dim(d, x.dim()) for d in dims) or list(range(x.dim()))
    for d, following in zip(dims, dims[1:]):
        if d == following:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if x.dtype in _UNHASHED:
        raise NotImplementedError(f"\"xor_sum_cpu\" not implemented for '{type_name(x.dtype)}'")
    if x.numel() == 0:
        if dim == () or dim == []:
            raise RuntimeError("hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.")
        for d in dims:
            if x.dim() and x.shape[d] == 0:
                raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    if out is not None and tensor_argument(out, "hash_tensor", "out").dtype != _uint64:
        raise RuntimeError(f"Expected result to be of dtype uint64, but got {type_name(out.dtype)}")
    kept = [d for d in range(x.dim()) if d not in dims] if x.dim() else []
    lines = x.permute([*kept, *dims]) if x.dim() else x.reshape(1)
    block = _HASHED * get_num_threads()
    if x.is_cpu and x.numel() > 2 * block and not is_transformed([x]):
        joined = _ops.zeros([x.shape[d] for d in kept], dtype=_int64)
        _join_bits(lines, len(kept), joined, block)
    else:
        joined = _joined_lines(_bits(lines.flatten(len(kept))))
        joined = joined.clone() if joined.numel() == x.numel() else joined  # may be a view of x
    shape = [1 if d in dims else n for d, n in enumerate(x.shape)] if keepdim else [x.shape[d] for d in kept]
    result = joined.reshape(shape).view(_uint64)
    return result if out is None else deliver_unrecorded("hash_tensor", result, out)


def _bits(x: Tensor) -> Tensor:
    return x.to(_float64).view(_int64) if x.is_floating_point() else x.to(_int64)


def _joined_lines(lines: Tensor) -> Tensor:
    """The exclusive or along the last dimension; may be a view of the lines."""
    while lines.shape[-1] > 1:
        half = lines.shape[-1] // 2
        joined = _ops.bitwise_xor(lines[..., :half], lines[..., half : 2 * half])
        if lines.shape[-1] % 2:
            joined[..., :1].bitwise_xor_(lines[..., -1:])
        lines = joined
    return lines.squeeze(-1)


def _join_bits(lines: Tensor, kept: int, joined: Tensor, block: int) -> None:
    """joined (of the first `kept` sizes) ^= the bits along the other dimensions, of two blocks at a time in the order of memory."""
    count = lines.numel()
    if count <= 2 * block:
        joined.bitwise_xor_(_joined_lines(_bits(lines.flatten(kept))))
        return
    d = max((d for d in range(lines.dim()) if lines.shape[d] > 1), key=lines.stride)
    size = lines.shape[d]
    slab = count // size
    step = max(1, (2 * block if d < kept else block) // slab)
    parts = (lines.narrow(d, at, min(step, size - at)) for at in range(0, size, step))
    if d < kept or slab > block:
        for k, part in enumerate(parts):
            _join_bits(part, kept, joined.narrow(d, k * step, part.shape[d]) if d < kept else joined, block)
        return
    # blocks join elementwise first, so that lines are halved once
    total = _bits(next(parts)).clone()
    for part in parts:
        (total if part.shape[d] == step else total.narrow(d, 0, part.shape[d])).bitwise_xor_(_bits(part))
    joined.bitwise_xor_(_joined_lines(total.flatten(kept)))


def norm_except_dim(v, pow=2, dim=0):
    """The norms of the slices along dim, kept as dimensions of 1; the norm of everything for dim -1."""
    if dim == -1:
        return _ops.norm(v, pow)
    if not 0 <= dim < v.dim():
        raise IndexError(f"norm_except_dim(): Dimension out of range (expected to be in range of [-1, {v.dim() - 1}], but got {dim})")
    if v.dim() == 1:
        return _ops.norm(v.unsqueeze(1), pow, 1)
    return _ops.norm(v, pow, [d for d in range(v.dim()) if d != dim], True)


def _weight_norm(v, g, dim=0):
    """g * v / |v|."""
    return v * (g / norm_except_dim(v, 2, dim))


EXPORTS = {"_weight_norm": "f"}


def batch_norm_update_stats(input: Any, running_mean: Any, running_var: Any, momentum: float) -> tuple[Tensor, Tensor]:
    """Statistics of the batch, and running ones moved to them."""
    x = tensor_argument(input, "batch_norm_update_stats", "input").detach()
    if x.numel() == 0:
        raise RuntimeError(f"input tensor must have at least one element, but got input_sizes = {list(x.shape)}")
    n = x.numel() // x.size(1)
    dims = [d for d in range(x.dim()) if d != 1]
    mean, var = x.mean(dims), x.var(dims, correction=0)
    for running, now in ((running_mean, mean), (running_var, var * (n / (n - 1) if n > 1 else float("nan")))):
        if running is not None:
            running.detach().mul_(1 - momentum).add_(now, alpha=momentum)
    return mean, var
