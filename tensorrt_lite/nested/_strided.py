"""StridedNestedTensor: tensors of one rank and any sizes behind one another in one buffer (layout `strided`).

Contiguous ones are a flat buffer, which autograd sees, and a size for each part; views that reorder or leave out elements (`transpose`, `chunk`) are a list of
views of the parts. What has no function here and whose parts differ in their first size alone goes through the jagged layout, which needs no copy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._subclasses.composite_tensor import _SYMBOLS, CompositeTensor, name_of, registering, writes_in_place
import tensorrt_lite.nested._elementwise as _elementwise
from tensorrt_lite.nn import functional as F
from tensorrt_lite.nested._shape import wrapped
from tensorrt_lite.nested._structure import structure_of
from tensorrt_lite.nested._tensor import NestedTensor

Sizes = list[tuple[int, ...]]


class StridedNestedTensor(CompositeTensor):
    """B tensors of equally many dimensions. Made by the functions of `tensorrt_lite.nested`.

    flat: the parts' elements, one-dimensional, one part after the other; sizes: the shape of each. parts: views in the place of both.
    """

    _flat: Any
    _parts: list[Any] | None
    _sizes: Sizes
    _noun = "nested tensors of the strided layout"

    @staticmethod
    def __new__(cls, flat: Any, sizes: Sizes, parts: list[Any] | None = None) -> StridedNestedTensor:
        like = flat if parts is None else parts[0]
        made = trt.Tensor._make_wrapper_subclass(cls, (0,), dtype=like.dtype, device=like.device)
        made._flat, made._sizes, made._parts = flat, sizes, parts
        return made  # type: ignore[no-any-return]

    def __init__(self, flat: Any, sizes: Sizes, parts: list[Any] | None = None) -> None:
        pass

    @property
    def _part(self) -> Any:
        return self._flat if self._parts is None else trt.cat([part.reshape(-1) for part in self._parts])

    def _with_part(self, part: Any) -> StridedNestedTensor:
        return StridedNestedTensor(part, self._sizes)

    def _tensors(self) -> list[Any]:
        """The B parts, views of the buffer."""
        if self._parts is not None:
            return self._parts
        pieces = self._flat.split([math.prod(size) for size in self._sizes]) if self._sizes else ()
        return [piece.view(size) for piece, size in zip(pieces, self._sizes, strict=True)]

    def _made_contiguous(self) -> StridedNestedTensor:
        return self if self._parts is None else StridedNestedTensor(self._part, self._sizes)

    def _regular(self, dim: int) -> int | None:
        """The size of a dimension (counted from 1, behind the batch), None where the parts differ."""
        found = {size[dim - 1] for size in self._sizes}
        return found.pop() if len(found) == 1 else None

    # ---- geometry ----

    @property
    def shape(self) -> Any:
        raise RuntimeError("nested tensors of the strided layout have no shape, since the sizes of their parts may differ; size(dim) is that of a regular dimension")

    @property
    def ndim(self) -> int:
        return len(self._sizes[0]) + 1 if self._sizes else 1

    @property
    def layout(self) -> Any:
        return trt.strided

    @property
    def is_nested(self) -> bool:
        return True

    def values(self) -> Any:
        """All elements, one-dimensional; gradients flow back through it. RuntimeError for views that are not contiguous."""
        if self._parts is not None:
            raise RuntimeError("values(): the nested tensor is not contiguous; call contiguous() first")
        return self._flat.view_as(self._flat)

    def _nested_tensor_size(self) -> Any:
        """(B, dimensions): the shapes of the parts."""
        return trt.tensor(self._sizes, dtype=trt.int64).reshape(len(self._sizes), self.ndim - 1)

    def _nested_tensor_strides(self) -> Any:
        """(B, dimensions): the strides of the parts."""
        return trt.tensor([part.stride() for part in self._tensors()], dtype=trt.int64).reshape(len(self._sizes), self.ndim - 1)

    def _nested_tensor_storage_offsets(self) -> Any:
        """(B,): where the parts begin in the buffer."""
        return trt.tensor([part.storage_offset() for part in self._tensors()], dtype=trt.int64)

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Any:
        """(B, largest size, ...) with `padding` behind the elements of each part; output_size: the same or larger sizes (RuntimeError for smaller ones)."""
        parts = self._tensors()
        if not parts:
            raise RuntimeError("to_padded_tensor(): at least one constituent tensor should have non-zero numel")
        target = [max(sizes) for sizes in zip(*self._sizes, strict=True)]
        if output_size is not None:
            if len(output_size) != self.ndim or output_size[0] != len(parts):
                raise RuntimeError(f"to_padded_tensor(): output_size {tuple(output_size)} must have {self.ndim} sizes, the first of them {len(parts)}")
            if any(given < needed for given, needed in zip(output_size[1:], target, strict=True)):
                raise RuntimeError("Value in output_size is less than NestedTensor padded size. Truncation is not supported.")
            target = list(output_size[1:])
        padded = []
        for part in parts:
            behind = [n for size, whole in zip(reversed(part.shape), reversed(target), strict=True) for n in (0, whole - size)]
            padded.append(F.pad(part, behind, value=padding) if any(behind) else part)
        return trt.stack(padded)

    # ---- the object: in a view of parts, autograd's answers are the parts' ----

    @property
    def dtype(self) -> Any:
        return (self._flat if self._parts is None else self._parts[0]).dtype

    @property
    def device(self) -> Any:
        return (self._flat if self._parts is None else self._parts[0]).device

    @property
    def requires_grad(self) -> bool:
        return bool(self._flat.requires_grad) if self._parts is None else any(part.requires_grad for part in self._parts)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if self._parts is not None:
            raise RuntimeError("requires_grad of a view of a nested tensor cannot be set")
        self._flat.requires_grad = value

    @property
    def grad_fn(self) -> Any:
        return (self._flat if self._parts is None else self._parts[0]).grad_fn

    @property
    def is_leaf(self) -> bool:
        return bool((self._flat if self._parts is None else self._parts[0]).is_leaf)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        history = f", grad_fn=<{type(self.grad_fn).__name__}>" if self.grad_fn is not None else ", requires_grad=True" if self.requires_grad else ""
        marked = self.requires_grad
        texts = [str(part.detach().requires_grad_(marked)).replace("\n", "\n  ") for part in self._tensors()]
        return "nested_tensor([\n" + ",\n".join(f"  {text}" for text in texts) + f"\n]{history})"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> Any:
        whole = self._made_contiguous()
        return _rebuild, (whole._flat.detach(), self._sizes, self.requires_grad)

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) not in memo:
            if not self.is_leaf:
                raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment")
            memo[id(self)] = self._with_part(self._part.detach().clone().requires_grad_(self.requires_grad))
        return memo[id(self)]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = name_of(func)
        if _SYMBOLS.get(name, name) not in table and _SYMBOLS.get(name, name) in NestedTensor._table:
            return _through_jagged(func, args, kwargs or {})
        return super().__torch_function__(func, types, args, kwargs)


def _rebuild(flat: Any, sizes: Sizes, requires_grad: bool) -> StridedNestedTensor:
    return StridedNestedTensor(flat.requires_grad_(requires_grad), [tuple(size) for size in sizes])


def from_tensors(tensors: Sequence[Any]) -> StridedNestedTensor:
    """Around copies of tensors of one rank; gradients reach them. RuntimeError for tensors of other ranks."""
    for i, tensor in enumerate(tensors):
        if tensor.dim() != tensors[0].dim():
            raise RuntimeError(
                "All Tensors given to nested_tensor must have the same dimension. "
                f"Found dimension {tensor.dim()} for Tensor at index {i} and dimension {tensors[0].dim()} for Tensor at index 0."
            )
    flat = trt.cat([tensor.reshape(-1) for tensor in tensors]) if tensors else trt.empty(0)
    return StridedNestedTensor(flat, [tuple(tensor.shape) for tensor in tensors])


def from_views(parts: list[Any]) -> StridedNestedTensor:
    """Around views of another nested tensor's parts."""
    return StridedNestedTensor(None, [tuple(part.shape) for part in parts], parts)


def from_buffer(buffer: Any, sizes: Sequence[Sequence[int]], strides: Sequence[Sequence[int]], offsets: Sequence[int]) -> StridedNestedTensor:
    """Around a one-dimensional buffer and the geometry of each part in it. RuntimeError where a part lies outside of the buffer."""
    shapes = [tuple(size) for size in sizes]
    if any(n < 0 for shape in shapes for n in shape) or any(n < 0 for stride in strides for n in stride) or any(n < 0 for n in offsets):
        raise RuntimeError("sizes, strides and offsets of the parts of a nested tensor must not be negative")
    start, dense = 0, buffer.is_contiguous()
    for shape, stride, offset in zip(shapes, strides, offsets, strict=True):
        last = offset + sum((n - 1) * step for n, step in zip(shape, stride, strict=True))
        if math.prod(shape) and last >= buffer.numel():
            raise RuntimeError(f"a part of sizes {shape}, strides {tuple(stride)} at {offset} reaches beyond a buffer of {buffer.numel()} elements")
        expected = [math.prod(shape[i + 1 :]) for i in range(len(shape))]
        dense = dense and offset == start and list(stride) == expected
        start += math.prod(shape)
    if dense and start == buffer.numel():
        return StridedNestedTensor(buffer.view_as(buffer), shapes)
    return from_views([buffer.as_strided(*part) for part in zip(shapes, map(tuple, strides), offsets, strict=True)])


def from_mask(tensor: Any, mask: Any) -> StridedNestedTensor:
    """Of each row of `tensor` (B, L, D) the first elements, as many as the bool mask (B, L) has True."""
    return from_tensors([row[:count] for row, count in zip(tensor.unbind(0), mask.sum(1).tolist(), strict=True)])


def is_left_aligned(mask: Any) -> bool:
    """Whether each row of the mask (B, L) is True up to some place and False behind it."""
    return not bool((mask[:, 1:] & ~mask[:, :-1]).any())


table: dict[str, Any] = {}
StridedNestedTensor._table = table
operator = registering(table)


def _mismatch(func: Any, a: Any, b: Any) -> RuntimeError:
    sizes = [t._sizes if isinstance(t, StridedNestedTensor) else tuple(t.shape) for t in (a, b)]
    return RuntimeError(f"{name_of(func)}(): cannot combine nested tensors with parts of sizes {sizes[0]} and {sizes[1]}")


# ---- through the jagged layout -------------------------------------------------------------------------------------


def to_jagged(nt: StridedNestedTensor) -> NestedTensor | None:
    """The same elements as a jagged tensor (B, j, ...), None where the parts differ in other sizes than their first."""
    if not nt._sizes or nt.ndim < 2 or any(size[1:] != nt._sizes[0][1:] for size in nt._sizes):
        return None
    counts = [size[0] for size in nt._sizes]
    structure = structure_of(trt.tensor([0, *counts], device=nt.device).cumsum(0))
    return NestedTensor(nt._part.view(sum(counts), *nt._sizes[0][1:]), structure, 1)


def from_jagged(nt: NestedTensor) -> StridedNestedTensor:
    """The same sequences in the strided layout, without a copy where they lie one after the other."""
    if nt._ragged_idx == 1 and nt._structure.lengths is None and nt._values.is_contiguous():
        inner = tuple(nt._values.shape[1:])
        return StridedNestedTensor(nt._rows().reshape(-1), [(count, *inner) for count in nt._structure.counts])
    return from_tensors(nt._sequences())


def _through_jagged(func: Any, args: Any, kwargs: Any) -> Any:
    name = name_of(func)
    shared: dict[int, NestedTensor] = {}  # one tensor given twice stays one, and equal counts share a structure

    def inward(value: Any) -> Any:
        if isinstance(value, StridedNestedTensor):
            if id(value) not in shared:
                made = to_jagged(value)
                if made is None:
                    raise NotImplementedError(f"{name}() is not implemented for nested tensors of the strided layout whose parts differ in other sizes than the first (docs/gaps.md)")
                for other in shared.values():
                    if other._structure.counts == made._structure.counts:
                        made = NestedTensor(made._values, other._structure, 1)
                shared[id(value)] = made
            return shared[id(value)]
        return type(value)(map(inward, value)) if type(value) in (list, tuple) else value

    def outward(value: Any) -> Any:
        if isinstance(value, NestedTensor):
            return from_jagged(value)
        if isinstance(value, tuple):
            parts = [outward(v) for v in value]
            return value._make(parts) if hasattr(value, "_make") else tuple(parts)
        return value

    if writes_in_place(name):
        raise NotImplementedError(f"{name}() is not implemented for nested tensors of the strided layout (docs/gaps.md)")
    return outward(func(*map(inward, args), **{k: inward(v) for k, v in kwargs.items()}))


# ---- element by element --------------------------------------------------------------------------------------------


def _pointwise(func: Any, args: Any, kwargs: Any) -> Any:
    """On the buffers. Nested operands must have equal sizes; dense ones have no dimension, are (B, ...), or broadcast to each part."""
    name = name_of(func)
    if kwargs.get("out") is not None:
        raise NotImplementedError(f"{name}(out=) is not implemented for nested tensors (docs/gaps.md)")
    everything = (*args, *kwargs.values())
    nested = [a for a in everything if isinstance(a, StridedNestedTensor)]
    if any(isinstance(a, NestedTensor) for a in everything):
        raise RuntimeError(f"{name}(): cannot combine nested tensors of the strided and the jagged layout")
    first = nested[0]
    for other in nested[1:]:
        if other._sizes != first._sizes:
            raise _mismatch(func, first, other)
    in_place = writes_in_place(name)
    if in_place and first is not args[0]:
        raise _mismatch(func, args[0], first)
    dense = [a for a in everything if isinstance(a, trt.Tensor) and not isinstance(a, StridedNestedTensor) and a.dim()]
    by_parts = dense or in_place and first._parts is not None

    if not by_parts:
        take = lambda value: value._part if isinstance(value, StridedNestedTensor) else value  # noqa: E731
        result = func(*map(take, args), **{k: take(v) for k, v in kwargs.items()})
        return args[0] if in_place else _wrapped_result(first, result)
    for other in dense:
        if other.dim() >= first.ndim and (other.dim() > first.ndim or other.shape[0] not in (1, len(first._sizes))):
            raise _mismatch(func, first, other)
    results = []
    for i in range(len(first._sizes)):
        parts = [_operand(value, first, i) for value in args]
        results.append(func(*parts, **{k: _operand(v, first, i) for k, v in kwargs.items()}))
    if in_place:
        return args[0]
    if not all(isinstance(r, trt.Tensor) and tuple(r.shape) == size for r, size in zip(results, first._sizes, strict=True)):
        raise _mismatch(func, first, dense[0])
    return from_tensors(results)


def _operand(value: Any, first: StridedNestedTensor, i: int) -> Any:
    """What stands for an operand where part i is computed."""
    if isinstance(value, StridedNestedTensor):
        return value._tensors()[i]
    if isinstance(value, trt.Tensor) and value.dim() == first.ndim:
        return value[i if value.shape[0] > 1 else 0]
    return value


def _wrapped_result(like: StridedNestedTensor, result: Any) -> Any:
    if isinstance(result, tuple):
        parts = [_wrapped_result(like, r) for r in result]
        return result._make(parts) if hasattr(result, "_make") else type(result)(parts)
    return like._with_part(result) if isinstance(result, trt.Tensor) else result


for _name, _handler in NestedTensor._table.items():
    if _handler is _elementwise.pointwise:
        table[_name] = _pointwise
for _name in ("ones_like", "zeros_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like", "cuda", "type_as", "to", "dropout", "alpha_dropout"):
    table[_name] = _pointwise


@operator("copy_")
def _copy(func: Any, input: Any, src: Any, non_blocking: bool = False) -> Any:
    if not isinstance(input, StridedNestedTensor) or isinstance(src, StridedNestedTensor) and src._sizes != input._sizes or isinstance(src, NestedTensor):
        raise _mismatch(func, input, src)
    if not isinstance(src, StridedNestedTensor):
        raise RuntimeError("copy_ only supports copying from nested tensors of the same layout to nested tensors")
    if input._parts is None:
        input._flat.copy_(src._part)
    else:
        for part, source in zip(input._parts, src._tensors(), strict=True):
            part.copy_(source)
    return input


@operator("clone")
def _clone(func: Any, input: Any, *, memory_format: Any = None) -> StridedNestedTensor:
    if input._parts is not None and memory_format != trt.contiguous_format:
        return from_views([part.clone() for part in input._parts])
    return StridedNestedTensor(input._part.clone(), input._sizes)


@operator("contiguous")
def _contiguous(func: Any, input: Any, memory_format: Any = None) -> Any:
    return input._made_contiguous()


@operator("detach")
def _detach(func: Any, input: Any) -> StridedNestedTensor:
    return from_views([part.detach() for part in input._parts]) if input._parts is not None else input._with_part(input._flat.detach())


@operator("equal")
def _equal(func: Any, input: Any, other: Any) -> bool:
    same = isinstance(input, StridedNestedTensor) and isinstance(other, StridedNestedTensor) and input._sizes == other._sizes
    return same and bool(trt.equal(input._part, other._part))


@operator("is_same_size")
def _is_same_size(func: Any, input: Any, other: Any) -> bool:
    if input.is_nested != other.is_nested:
        names = ["nested" if t.is_nested else "not nested" for t in (input, other)]
        raise RuntimeError(f"Expected both self and other to be nested tensors. Self is {names[0]}. While Other is {names[1]}.")
    return isinstance(other, StridedNestedTensor) and isinstance(input, StridedNestedTensor) and input._sizes == other._sizes


# ---- sizes and views -----------------------------------------------------------------------------------------------


@operator("size")
def _size(func: Any, input: Any, dim: int | None = None) -> Any:
    if dim is None:
        return input.shape
    d = wrapped(dim, input.ndim)
    if d == 0:
        return len(input._sizes)
    size = input._regular(d)
    if size is None:
        raise RuntimeError(f"Given dimension {d} is irregular and does not have a size.")
    return size


@operator("dim", "ndimension")
def _dim(func: Any, input: Any) -> int:
    return int(input.ndim)


@operator("numel", "nelement")
def _numel(func: Any, input: Any) -> int:
    return sum(map(math.prod, input._sizes))


@operator("__len__")
def _len(func: Any, input: Any) -> int:
    return len(input._sizes)


@operator("stride")
def _stride(func: Any, input: Any, dim: int | None = None) -> Any:
    raise RuntimeError("nested tensors of the strided layout have no strides; those of the parts are _nested_tensor_strides()")


@operator("storage_offset")
def _storage_offset(func: Any, input: Any) -> int:
    return int(input._tensors()[0].storage_offset()) if input._sizes else 0


@operator("is_contiguous")
def _is_contiguous(func: Any, input: Any, memory_format: Any = None) -> bool:
    return input._parts is None


@operator("unbind")
def _unbind(func: Any, input: Any, dim: int = 0) -> tuple[Any, ...]:
    if (d := wrapped(dim, input.ndim)) != 0:
        raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {d} instead.")
    return tuple(input._tensors())


@operator("__iter__")
def _iter(func: Any, input: Any) -> Any:
    return iter(input._tensors())


@operator("transpose", "swapaxes", "swapdims")
def _transpose(func: Any, input: Any, dim0: int, dim1: int) -> Any:
    a, b = wrapped(dim0, input.ndim), wrapped(dim1, input.ndim)
    if a == b:
        return input
    if 0 in (a, b):
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    return from_views([part.transpose(a - 1, b - 1) for part in input._tensors()])


@operator("mT.__get__", "adjoint")
def _matrix_transpose(func: Any, input: Any) -> Any:
    return _transpose(func, input, -2, -1)


@operator("permute")
def _permute(func: Any, input: Any, *dims: Any) -> Any:
    order = [wrapped(d, input.ndim) for d in (dims[0] if len(dims) == 1 and isinstance(dims[0], (list, tuple)) else dims)]
    if len(order) != input.ndim or len(set(order)) != len(order) or order[0] != 0:
        raise RuntimeError(f"permute(): {tuple(order)} is no order of the dimensions that keeps the batch first")
    return from_views([part.permute([d - 1 for d in order[1:]]) for part in input._tensors()])


@operator("view", "reshape", "_unsafe_view")
def _view(func: Any, input: Any, *size: Any, **kwargs: Any) -> Any:
    """Sizes behind the batch's; -1 at an old dimension keeps each part's own size, one more at the end is inferred."""
    name = name_of(func)
    given = size or kwargs.get("shape") or kwargs["size"]
    sizes = list(given[0]) if len(given) == 1 and isinstance(given[0], (list, tuple)) else list(given)
    if not sizes or sizes[0] not in (-1, len(input._sizes)):
        raise RuntimeError(f"{name}: For now nested {name} cannot change or infer the implicit batch dimension")
    targets = []
    for old in input._sizes:
        kept = [old[i] if n == -1 and i < len(old) else n for i, n in enumerate(sizes[1:])]
        known = math.prod(n for n in kept if n != -1)
        if kept.count(-1) > 1 or -1 in kept and (not known or math.prod(old) % known):
            raise RuntimeError(f"{name}(): cannot infer the sizes {tuple(sizes)} of a part of sizes {old}")
        target = tuple(math.prod(old) // known if n == -1 else n for n in kept)
        if math.prod(target) != math.prod(old):
            raise RuntimeError(f"{name}(): the sizes {tuple(sizes)} do not fit a part of sizes {old}")
        targets.append(target)
    if input._parts is None:
        return StridedNestedTensor(input._flat.view_as(input._flat), targets)
    return (from_views if name == "view" else from_tensors)([getattr(part, name)(target) for part, target in zip(input._parts, targets, strict=True)])


def _same_elements(input: Any, change: Callable[[Any], Any]) -> Any:
    """A view of the same elements in the same order."""
    if input._parts is not None:
        return from_views([change(part) for part in input._parts])
    return StridedNestedTensor(input._flat.view_as(input._flat), [tuple(change(part).shape) for part in input.detach()._tensors()])


@operator("unsqueeze")
def _unsqueeze(func: Any, input: Any, dim: int) -> Any:
    d = wrapped(dim, input.ndim + 1)
    if d == 0:
        raise RuntimeError("unsqueeze(): a dimension before the batch's is not supported for nested tensors")
    return _same_elements(input, lambda part: part.unsqueeze(d - 1))


@operator("squeeze")
def _squeeze(func: Any, input: Any, dim: Any = None) -> Any:
    if dim is None:
        raise RuntimeError("squeeze(): For nested tensors, squeeze without the dim argument is not supported")
    dims = [wrapped(d, input.ndim) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    if 0 in dims:
        raise RuntimeError("squeeze(): For nested tensors, squeezing dimension 0 is not supported")
    ones = tuple(d - 1 for d in dims if input._regular(d) == 1)
    return _same_elements(input, lambda part: part.squeeze(ones)) if ones else input


@operator("flatten")
def _flatten(func: Any, input: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    first, last = wrapped(start_dim, input.ndim), wrapped(end_dim, input.ndim)
    if first == 0:
        raise RuntimeError("flatten(): the batch dimension of nested tensors cannot be flattened")
    return _same_elements(input._made_contiguous(), lambda part: part.flatten(first - 1, last - 1))


@operator("unflatten")
def _unflatten(func: Any, input: Any, dim: int, sizes: Any) -> Any:
    d = wrapped(dim, input.ndim)
    if d == 0:
        raise RuntimeError("unflatten(): the batch dimension of nested tensors cannot be unflattened")
    return _same_elements(input, lambda part: part.unflatten(d - 1, sizes))


def _batch_slice(input: Any, start: int, stop: int) -> Any:
    if input._parts is not None:
        return from_views(input._parts[start:stop]) if start < stop else from_tensors([])
    before, length = sum(map(math.prod, input._sizes[:start])), sum(map(math.prod, input._sizes[start:stop]))
    return StridedNestedTensor(input._flat.narrow(0, before, length), input._sizes[start:stop])


@operator("narrow")
def _narrow(func: Any, input: Any, dim: int, start: int, length: int) -> Any:
    if (d := wrapped(dim, input.ndim)) == 0:
        batch = len(input._sizes)
        start = start + batch if start < 0 else start
        if not 0 <= start <= batch or length < 0 or start + length > batch:
            raise RuntimeError(f"narrow(): start ({start}) + length ({length}) exceeds dimension size ({batch}).")
        return _batch_slice(input, start, start + length)
    return from_views([part.narrow(d - 1, start, length) for part in input._tensors()])


@operator("select")
def _select(func: Any, input: Any, dim: int, index: int) -> Any:
    d, batch = wrapped(dim, input.ndim), len(input._sizes)
    if d:
        return from_views([part.select(d - 1, index) for part in input._tensors()])
    if not -batch <= index < batch:
        raise IndexError(f"index {index} is out of bounds for dimension 0 with size {batch}")
    return input._tensors()[index]


@operator("__getitem__")
def _getitem(func: Any, input: Any, index: Any) -> Any:
    items = list(index) if isinstance(index, tuple) else [index]
    used = sum(item is not None and item is not Ellipsis for item in items)
    for place in [i for i, item in enumerate(items) if item is Ellipsis][:1]:
        items[place : place + 1] = [slice(None)] * (input.ndim - used)
    if used > input.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input.ndim}")
    if not items:
        return input
    first, rest = items[0], tuple(items[1:])
    if isinstance(first, int) and not isinstance(first, bool):
        part = _select(func, input, 0, first)
        return part[rest] if rest else part
    if not isinstance(first, slice):
        raise NotImplementedError(f"indexing the batch of a nested tensor with {type(first).__name__} is not implemented (docs/gaps.md)")
    start, stop, step = first.indices(len(input._sizes))
    if step != 1:
        raise NotImplementedError("indexing the batch of a nested tensor with steps is not implemented (docs/gaps.md)")
    chosen = input if (start, stop) == (0, len(input._sizes)) else _batch_slice(input, start, max(start, stop))
    return from_views([part[rest] for part in chosen._tensors()]) if rest and chosen._sizes else chosen


@operator("chunk", "unsafe_chunk")
def _chunk(func: Any, input: Any, chunks: int, dim: int = 0) -> tuple[Any, ...]:
    d = wrapped(dim, input.ndim)
    if d == 0 or input._regular(d) is None:
        raise RuntimeError(f"chunk(): nested tensors are split along a regular dimension behind the batch's, got {d}")
    return tuple(map(from_views, map(list, zip(*(part.chunk(chunks, d - 1) for part in input._tensors()), strict=True))))


@operator("split", "split_with_sizes", "unsafe_split")
def _split(func: Any, tensor: Any, split_size: Any = None, dim: int = 0, *, split_size_or_sections: Any = None, split_sizes: Any = None) -> tuple[Any, ...]:
    size = next(s for s in (split_size, split_size_or_sections, split_sizes) if s is not None)
    d = wrapped(dim, tensor.ndim)
    if d == 0 or tensor._regular(d) is None:
        raise RuntimeError(f"split(): nested tensors are split along a regular dimension behind the batch's, got {d}")
    return tuple(map(from_views, map(list, zip(*(part.split(size, d - 1) for part in tensor._tensors()), strict=True))))


@operator("cat", "concat", "concatenate")
def _cat(func: Any, tensors: Any, dim: int = 0, *, axis: int | None = None) -> Any:
    d = dim if axis is None else axis
    if not all(isinstance(t, StridedNestedTensor) for t in tensors):
        raise RuntimeError("cat(): nested tensors of the strided layout are joined with others of it alone")
    if wrapped(d, tensors[0].ndim) == 0:
        return from_tensors([part for t in tensors for part in t._tensors()])
    if len({len(t._sizes) for t in tensors}) > 1:
        raise RuntimeError("cat(): nested tensors of different batch sizes")
    return from_tensors([trt.cat(parts, wrapped(d, tensors[0].ndim) - 1) for parts in zip(*(t._tensors() for t in tensors), strict=True)])


# ---- layers --------------------------------------------------------------------------------------------------------


def _on_rows(func: Any, input: Any, width: int, function: Callable[[Any], Any]) -> Any:
    """A function of (rows, the last `width` sizes), which the parts share, that keeps rows; None where the sizes differ."""
    last = {size[-width:] for size in input._sizes}
    if len(last) != 1 or input.ndim - 1 < width:
        return None
    inner = last.pop()
    rows = function(input._part.view(-1, *inner) if math.prod(inner) else input._part.new_zeros(sum(math.prod(s[:-width]) for s in input._sizes), *inner))
    return StridedNestedTensor(rows.reshape(-1), [(*size[:-width], *rows.shape[1:]) for size in input._sizes])


@operator("linear")
def _linear(func: Any, input: Any, weight: Any, bias: Any = None) -> Any:
    if not isinstance(input, StridedNestedTensor) or isinstance(weight, CompositeTensor) or isinstance(bias, CompositeTensor):
        raise RuntimeError("linear(): input alone may be nested")
    made = _on_rows(func, input, 1, lambda rows: F.linear(rows, weight, bias))
    if made is None:
        raise RuntimeError(f"linear(): the last size of the parts must be {weight.shape[-1]}, got parts of sizes {input._sizes}")
    return made


@operator("softmax", "log_softmax")
def _softmax(func: Any, input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None, **extra: Any) -> Any:
    if dim is None or (d := wrapped(dim, input.ndim)) == 0:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    function = trt.softmax if name_of(func) == "softmax" else trt.log_softmax
    made = _on_rows(func, input, 1, lambda rows: function(rows, -1, dtype=dtype)) if d == input.ndim - 1 else None
    return from_tensors([function(part, d - 1, dtype=dtype) for part in input._tensors()]) if made is None else made


@operator("layer_norm")
def _layer_norm(func: Any, input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    shape = tuple(normalized_shape)
    if any(size[-len(shape) :] != shape for size in input._sizes):
        raise RuntimeError(f"Given normalized_shape={list(shape)}, the last sizes of each part must be these, got parts of sizes {input._sizes}")
    return _on_rows(func, input, len(shape), lambda rows: F.layer_norm(rows, shape, weight, bias, eps))


@operator("embedding")
def _embedding(func: Any, input: Any, weight: Any = None, *args: Any, **kwargs: Any) -> Any:
    if isinstance(weight, StridedNestedTensor):  # trt.embedding(weight, indices)
        input, weight = weight, input
    rows = F.embedding(input._part, weight, *args, **kwargs)
    return StridedNestedTensor(rows.reshape(-1), [(*size, rows.shape[-1]) for size in input._sizes])


@operator("matmul", "bmm", "__rmatmul__")
def _matmul(func: Any, input: Any, other: Any = None, mat2: Any = None) -> Any:
    """Part by part; a dense operand is (B, ...) or the same matrix for all."""
    other = other if other is not None else mat2
    a, b = (other, input) if name_of(func) == "__rmatmul__" else (input, other)
    batch = len((a if isinstance(a, StridedNestedTensor) else b)._sizes)
    dims = (a if isinstance(a, StridedNestedTensor) else b).ndim
    if name_of(func) == "bmm" and not (a.dim() == b.dim() == 3):
        raise RuntimeError(f"bmm(): batch1 and batch2 must be 3D tensors, got {a.dim()}D and {b.dim()}D")

    def parts(t: Any) -> list[Any]:
        if isinstance(t, StridedNestedTensor):
            return t._tensors()
        return [t] * batch if t.dim() < dims else list(t.unbind(0))

    if not isinstance(b, CompositeTensor) and b.dim() == 2 and (made := _on_rows(func, a, 1, lambda rows: trt.matmul(rows, b))) is not None:
        return made
    left, right = parts(a), parts(b)
    if len(left) != len(right):
        raise RuntimeError(f"{name_of(func)}(): nested tensors of different batch sizes, {len(left)} and {len(right)}")
    return from_tensors([trt.matmul(x, y) for x, y in zip(left, right, strict=True)])


@operator("scaled_dot_product_attention")
def _attention(func: Any, query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, *, scale: Any = None, enable_gqa: bool = False) -> Any:
    """Each part attends to its own: (B, H, Lq, D), (B, H, Lk, D), (B, H, Lk, E) -> (B, H, Lq, E). RuntimeError for an attn_mask."""
    if attn_mask is not None:
        raise RuntimeError("scaled_dot_product_attention(): attn_mask must not be set for nested tensors")
    if not all(isinstance(t, StridedNestedTensor) for t in (query, key, value)) or not len(query._sizes) == len(key._sizes) == len(value._sizes):
        raise RuntimeError("scaled_dot_product_attention(): query, key and value must all be nested, of the same batch size")
    options = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
    return from_tensors([F.scaled_dot_product_attention(*(t.unsqueeze(0) for t in parts), **options)[0] for parts in zip(*(t._tensors() for t in (query, key, value)), strict=True)])
