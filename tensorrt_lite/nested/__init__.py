"""torch.nested: batches of tensors of different lengths without padding (docs/nested.md). The layout is `strided` unless `jagged` is asked for, as in PyTorch.

>>> import tensorrt_lite as trt
>>> nt = nested_tensor([trt.ones(2, 3), trt.ones(4, 3)], layout=trt.jagged)
>>> print(nt.values().shape, nt.offsets().tolist(), nt.sum(1).tolist())
torch.Size([6, 3]) [0, 2, 6] [[2.0, 2.0, 2.0], [4.0, 4.0, 4.0]]
"""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
import tensorrt_lite.nested._elementwise as _elementwise
import tensorrt_lite.nested._layers as _layers
import tensorrt_lite.nested._reductions as _reductions
import tensorrt_lite.nested._shape as _shape  # noqa: F401 (they fill the table of operators)
from tensorrt_lite.nested._structure import NestedInt, structure_of
import tensorrt_lite.nested._strided as _strided
import tensorrt_lite.nested._tensor as _tensor
from tensorrt_lite.nested._strided import StridedNestedTensor
from tensorrt_lite.nested._tensor import NestedTensor

_nn = LazyModule("tensorrt_lite.nn")

__all__ = ["to_padded_tensor", "as_nested_tensor", "nested_tensor", "nested_tensor_from_jagged", "narrow", "masked_select"]


def _is_jagged(layout: Any) -> bool:
    """Whether the layout is jagged; RuntimeError unless it is strided otherwise."""
    if layout not in (None, trt.strided, trt.jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return bool(layout == trt.jagged)


def nested_tensor(
    tensor_list: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> NestedTensor | StridedNestedTensor:
    """A leaf with copies of tensors (or of what `tensor` takes) of one rank: (B, ...). layout: torch.strided, in which all sizes may differ, or torch.jagged, in
    which one may: (B, ..., j, ...).

    RuntimeError for tensors of other ranks or, jagged, with several different sizes, TypeError for what is no list.

    Parameters:
        tensor_list (list): the tensors
        dtype (dtype or None, default None): the type of the result; None is the default
        layout (default None): (layout or None) strided
        device (device or None, default None): where the result is; None is the default device
        requires_grad (bool, default False): whether the result records gradients
        pin_memory (bool, default False): whether the memory is page-locked, which needs CUDA

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.nested.nested_tensor([trt.tensor([1.0, 2.0]), trt.tensor([3.0])])
        >>> [t.tolist() for t in x.unbind()]
        [[1.0, 2.0], [3.0]]
    """
    _is_jagged(layout)
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    if not tensor_list and layout == trt.jagged:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    tensors = [t.detach() if isinstance(t, trt.Tensor) else trt.tensor(t, dtype=dtype) for t in tensor_list]
    made = as_nested_tensor(tensors, dtype=dtype, device=device, layout=layout)
    values = made._part.pin_memory() if pin_memory else made._part
    return made._with_part(values.requires_grad_(requires_grad))  # type: ignore[no-any-return]


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> NestedTensor | StridedNestedTensor:
    """A nested tensor of a list of tensors, of a dense tensor (B, L, ...), whose sequences are equally long, or of a nested one; gradients reach them.

    Parameters:
        ts (list of Tensors or Tensor): the tensors
        dtype (dtype or None, default None): the type of the result; None is the default
        device (device or None, default None): where the result is; None is the default device
        layout (default None): (layout or None) strided

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.nested.as_nested_tensor([trt.tensor([1.0, 2.0]), trt.tensor([3.0])])
        >>> x.size(0)
        2
    """
    jagged = _is_jagged(layout)
    if isinstance(ts, (NestedTensor, StridedNestedTensor)):
        if layout is not None and layout != ts.layout:
            raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
        return ts.to(device=device or ts.device, dtype=dtype or ts.dtype)
    if isinstance(ts, trt.Tensor):
        if ts.dim() < (2 if jagged else 1):
            raise RuntimeError(f"as_nested_tensor(): Expected tensor argument to have dim() > {int(jagged)}")
        ts = ts.to(device=device or ts.device, dtype=dtype or ts.dtype)
        if not jagged:
            return StridedNestedTensor(ts.reshape(-1), [tuple(ts.shape[1:])] * ts.shape[0])
        length = ts.shape[1]
        offsets = (
            trt.arange(0, ts.shape[0] * length + 1, max(length, 1), dtype=trt.int64, device=ts.device)
            if length
            else trt.zeros(ts.shape[0] + 1, dtype=trt.int64)
        )
        return NestedTensor(ts.reshape(ts.shape[0] * length, *ts.shape[2:]), structure_of(offsets), 1)
    if not isinstance(ts, (list, tuple)) or not all(isinstance(t, trt.Tensor) for t in ts):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors")
    if not ts:
        if jagged:
            raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
        return StridedNestedTensor(trt.empty(0, dtype=dtype, device=device), [])
    place, kind = device or ts[0].device, dtype or ts[0].dtype
    if dtype is None and jagged and any(t.dtype != kind for t in ts):
        raise RuntimeError(f"as_nested_tensor(): the tensors must have one dtype, got {sorted({str(t.dtype) for t in ts})}")
    tensors = [t.to(device=place, dtype=kind) for t in ts]
    return _tensor.from_sequences(tensors) if jagged else _strided.from_tensors(tensors)


def nested_tensor_from_jagged(
    values: Any, offsets: Any = None, lengths: Any = None, jagged_dim: int | None = None, min_seqlen: int | None = None, max_seqlen: int | None = None
) -> NestedTensor:
    """A view of `values` (total, ...) as sequences: number i is values[offsets[i] : offsets[i + 1]], or as long as lengths[i].

    offsets: (B + 1,) integers; lengths: (B,). Of lengths alone the offsets are their sums. jagged_dim: the ragged dimension of the result, 1 by default.
    RuntimeError where neither is given or where sequences reach beyond the values.

    Parameters:
        values (Tensor): all sequences behind one another, (total, *)
        offsets (Tensor or None, default None): where each begins, and the end, (B + 1)
        lengths (Tensor or None, default None): the length of each, (B)
        jagged_dim (int or None, default None): the dimension that differs; None is 1
        min_seqlen (int or None, default None): the length of the shortest; None computes it
        max_seqlen (int or None, default None): the length of the longest; None computes it

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.nested.nested_tensor_from_jagged(trt.arange(3.0), offsets=trt.tensor([0, 2, 3]))
        >>> [t.tolist() for t in x.unbind()]
        [[0.0, 1.0], [2.0]]
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = _nn.functional.pad(lengths.cumsum(0), (1, 0)), None
    place = 1 if jagged_dim is None else jagged_dim
    if not 1 <= place <= values.dim():
        raise RuntimeError(f"nested_tensor_from_jagged(): jagged_dim {jagged_dim} is none of 1 to {values.dim()}")
    if offsets.dim() != 1 or not offsets.numel() or offsets.dtype not in (trt.int32, trt.int64):
        raise RuntimeError(
            f"nested_tensor_from_jagged(): offsets must be int32 or int64 of shape (B + 1,), got {offsets.dtype} of {tuple(offsets.shape)}"
        )
    if lengths is not None and tuple(lengths.shape) != (offsets.numel() - 1,):
        raise RuntimeError(f"nested_tensor_from_jagged(): lengths must have shape {(offsets.numel() - 1,)}, got {tuple(lengths.shape)}")
    structure = structure_of(offsets, lengths)
    if structure.end > values.shape[place - 1] or min(structure.counts, default=0) < 0 or min(structure.starts, default=0) < 0:
        raise RuntimeError(f"nested_tensor_from_jagged(): offsets {offsets.tolist()} do not fit values of shape {tuple(values.shape)}")
    return NestedTensor(values if values.requires_grad else values.detach(), structure, place)


def narrow(tensor: Any, dim: int, start: Any, length: Any, layout: Any = trt.strided) -> NestedTensor | StridedNestedTensor:
    """Of each row of `tensor` (B, L, ...) the elements start to start + length along dim 1. A view of the tensor. start and length: ints or, jagged, (B,) tensors.

    RuntimeError where they reach beyond L or, jagged, dim is not 1.

    Parameters:
        tensor (Tensor): (B, L, *)
        dim (int): the dimension; 1
        start (int or Tensor): where each begins
        length (int or Tensor): how long each is
        layout (default torch.strided): (layout) that of the result

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.arange(6.0).reshape(2, 3)
        >>> y = trt.nested.narrow(x, 1, trt.tensor([0, 1]), trt.tensor([1, 2]), layout=trt.jagged)
        >>> [t.tolist() for t in y.unbind()]
        [[0.0], [4.0, 5.0]]
    """
    if not _is_jagged(layout):
        if not isinstance(start, int) or not isinstance(length, int):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return as_nested_tensor(tensor, layout=trt.strided).narrow(dim, start, length)  # type: ignore[no-any-return]
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    batch, size = tensor.shape[:2]
    starts = start.to(trt.int64) if isinstance(start, trt.Tensor) else trt.full((batch,), start, dtype=trt.int64, device=tensor.device)
    counts = length.to(trt.int64) if isinstance(length, trt.Tensor) else trt.full((batch,), length, dtype=trt.int64, device=tensor.device)
    if tuple(starts.expand(batch).shape) != (batch,) or bool(((starts < 0) | (counts < 0) | (starts + counts > size)).any()):
        raise RuntimeError(f"narrow(): start and length reach beyond the dimension of size {size}")
    offsets = starts + trt.arange(batch, device=tensor.device) * size
    offsets = trt.cat([offsets, (offsets[-1:] + counts[-1:])])
    values = tensor.reshape(batch * size, *tensor.shape[2:])
    return NestedTensor(values if values.requires_grad else values.detach(), structure_of(offsets, counts), 1)


def masked_select(tensor: Any, mask: Any) -> NestedTensor:
    """The elements of each row of `tensor` (B, ...) where the mask is True: (B, j). RuntimeError for nested or sparse tensors.

    Parameters:
        tensor (Tensor): (B, *)
        mask (Tensor): the mask, of bool; it broadcasts

    Example:
        >>> import tensorrt_lite as trt
        >>> y = trt.nested.masked_select(trt.arange(4.0).reshape(2, 2), trt.tensor([[True, False], [True, True]]))
        >>> [t.tolist() for t in y.unbind()]
        [[0.0], [2.0, 3.0]]
    """
    if tensor.layout != trt.strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}")
    if mask.layout != trt.strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided mask, given: {mask.layout}")
    values = tensor.masked_select(mask)
    counts = mask.expand(trt.broadcast_shapes(mask.shape, tensor.shape)).reshape(tensor.shape[0], -1).sum(1)
    return NestedTensor(values, structure_of(_nn.functional.pad(counts.cumsum(0), (1, 0))), 1)


def to_padded_tensor(input: Any, padding: float, output_size: Any = None, out: Any = None) -> Any:
    """(B, ..., longest, ...): the sequences, `padding` behind each; output_size: larger sizes. Gradients flow back.

    Parameters:
        input (Tensor): a nested tensor
        padding (float): the number behind shorter sequences
        output_size (tuple of ints or None, default None): the shape; None is the smallest that fits
        out (Tensor or None, default None): where the result is written

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.nested.nested_tensor([trt.tensor([1.0, 2.0]), trt.tensor([3.0])])
        >>> trt.nested.to_padded_tensor(x, 0.0)
        tensor([[1., 2.],
                [3., 0.]])
    """
    if out is not None:
        raise NotImplementedError("to_padded_tensor(out=) is not implemented (docs/gaps.md)")
    return input.to_padded_tensor(padding, output_size)
