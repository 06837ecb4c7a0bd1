"""Products of tensors of any rank as PyTorch composes them: of mm, mv, dot, bmm and addmm."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from tensorrt_lite import _ops
from tensorrt_lite._C.core.python_key import dispatches as _dispatches
from tensorrt_lite._size import broadcast_shapes, refuse_sizes

if TYPE_CHECKING:
    from tensorrt_lite import Tensor


def linear(input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """input @ weight^T + bias: addmm() of the rows, where they are contiguous."""
    if bias is not None and weight.dim() == 2 and bias.dim() == 1:
        if input.dim() == 2:
            return _ops.addmm(bias, input, weight.t())
        if input.dim() and input.is_contiguous():
            rows = input.reshape(prod(input.shape[:-1]), input.shape[-1])
            return _ops.addmm(bias, rows, weight.t()).view([*input.shape[:-1], weight.shape[0]])
    result = matmul(input, weight if weight.dim() == 1 else weight.t())
    return result if bias is None else result + bias


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """The product of the last two dimensions, batch dimensions broadcast; vectors as a row or a column."""
    m, n = a.dim(), b.dim()
    if m == 0 or n == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {m}D and {n}D")
    if m == 1 and n == 1:
        return _ops.dot(a, b)
    if m == 2 and n == 1:
        return _ops.mv(a, b)
    if m == 1 and n == 2:
        return _ops.mm(a.unsqueeze(0), b).squeeze_(0)
    if m == 2 and n == 2:
        return _ops.mm(a, b)
    if _folds(a, b):
        return _folded(a, b)
    if m == n == 3 and a.shape[0] != b.shape[0]:
        # what broadcasts and wants a gradient is folded after all
        if a.shape[0] == 1 and _wants_gradient(a):
            return matmul(a.squeeze(0), b)
        if b.shape[0] == 1 and _wants_gradient(b):
            return matmul(a, b.squeeze(0))
    return _batched(a, b)


def _wants_gradient(x: Tensor) -> bool:
    return x.requires_grad or _dispatches(type(x))


def _folds(a: Tensor, b: Tensor) -> bool:
    """Whether the larger operand's batch is folded into its rows: without a copy, or where the other one's gradient would be large."""
    larger = a.dim() >= b.dim()
    big, small = (a if larger else b.mT), (b if larger else a)
    if big.dim() < 3 or small.dim() > 2:
        return False
    if small.requires_grad:
        return True
    if a.dim() == 2:
        return False
    if big.numel() == 0:
        return True
    shape, stride = big.shape, big.stride()
    return all(shape[i] == 1 or stride[i] == stride[i + 1] * shape[i + 1] for i in range(big.dim() - 2))


def _folded(a: Tensor, b: Tensor) -> Tensor:
    swapped = b.dim() > a.dim()
    big = b.mT if swapped else a
    small = b if not swapped else a.t() if a.dim() == 2 else a
    shape = [*big.shape[:-1]]
    rows = big.reshape(prod(shape), big.shape[-1])
    if small.dim() == 1:
        return _ops.mv(rows, small).view(shape)
    result = _ops.mm(rows, small).view([*shape, small.shape[1]])
    return result.mT.contiguous() if swapped else result


def _batched(a: Tensor, b: Tensor) -> Tensor:
    m, n = a.dim(), b.dim()
    rows, depth = (a.shape[-2] if m > 1 else 1), a.shape[-1]
    inner, columns = (b.shape[-2], b.shape[-1]) if n > 1 else (b.shape[-1], 1)
    batches = a.shape[:-2] if m > 1 else (), b.shape[:-2] if n > 1 else ()
    refuse_sizes(*batches)
    batch = broadcast_shapes(*batches)
    count = prod(batch)
    left = a.expand([*batch, rows, depth]).reshape(count, rows, depth)
    right = (b if n > 1 else b.unsqueeze(1)).expand([*batch, inner, columns]).reshape(count, inner, columns)
    return _ops.bmm(left, right).view([*batch, *([rows] if m > 1 else []), *([columns] if n > 1 else [])])
