"""The functions that files call to rebuild tensors: each checks what it is given and counts what it builds (see `budget`). Used by `reader`."""

from __future__ import annotations

from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule

from .unpickler import Builder, Storage, UnpicklingError

_nn = LazyModule("tensorrt_lite.nn")
_strided = LazyModule("tensorrt_lite.nested._strided")
_tensor = LazyModule("tensorrt_lite._sparse.tensor")

if TYPE_CHECKING:
    from .budget import Budget

__all__ = ["TensorBuilders", "is_count", "set_attributes"]

_MAX_DIMENSIONS = 64
_MAX_INT64 = (1 << 63) - 1
# What a tensor takes: the object, and a block for sizes and strides beyond 8 dimensions.
_TENSOR_COST = 400
_INLINE_DIMENSIONS = 8
# A sparse tensor beside its parts: the object, what holds the parts, and a second object for each of them.
_SPARSE_COST = 1300
# What an attribute's entry in the dict of a tensor takes.
_ATTRIBUTE_COST = 120


def is_count(value: Any) -> bool:
    """Whether a file's value is an integer from 0 to the largest of 64 bits."""
    return type(value) is int and 0 <= value <= _MAX_INT64


def _geometry_text(size: Any, stride: Any, offset: Any) -> str:
    """What a file gives as a tensor's geometry, of which anything may be anything."""

    def shown(value: Any) -> Any:
        if isinstance(value, (tuple, list)):
            return tuple(shown(part) if type(part) is int else type(part).__name__ for part in value[:_MAX_DIMENSIONS])
        return value if type(value) is int and abs(value) < 1 << 70 else type(value).__name__

    return f"a tensor of size {shown(size)}, stride {shown(stride)} and storage offset {shown(offset)}"


def _check_geometry(available: int, offset: Any, size: Any, stride: Any) -> None:
    """Raise RuntimeError unless all elements of such a tensor lie within a storage of so many elements."""
    fits_types = isinstance(size, (tuple, list)) and isinstance(stride, (tuple, list)) and max(len(size), len(stride)) <= _MAX_DIMENSIONS
    if not fits_types or len(size) != len(stride) or not is_count(offset) or not all(map(is_count, size)) or not all(map(is_count, stride)):
        raise RuntimeError(f"corrupt checkpoint: {_geometry_text(size, stride, offset)} is not a valid geometry")
    numel = 1
    for extent in size:
        numel *= extent
        if numel > _MAX_INT64:
            raise RuntimeError(f"corrupt checkpoint: {_geometry_text(size, stride, offset)} overflows a 64-bit element count")
    end = offset
    if 0 not in size:
        end += _span(size, stride)
    if end > available:
        raise RuntimeError(f"corrupt checkpoint: {_geometry_text(size, stride, offset)} does not fit its storage of {available} elements")


def _span(size: Any, stride: Any) -> int:
    """The number of elements from the first to the last in memory, of a tensor that is not empty."""
    return 1 + sum((extent - 1) * step for extent, step in zip(size, stride, strict=True))


def _cost(dimensions: int) -> int:
    """What a tensor of so many dimensions takes without its storage."""
    return _TENSOR_COST + (16 * dimensions + 32 if dimensions > _INLINE_DIMENSIONS else 0)


def set_attributes(target: Any, state: Any) -> None:
    """Instance attributes of a tensor or dict subclass: written to its `__dict__` and its slots, so that no property setter runs."""
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    for part in (state, slots):
        if part and (not isinstance(part, dict) or not all(isinstance(key, str) for key in part)):
            raise UnpicklingError(f"the state of a {type(target).__name__} is not a dict of attributes")
    if state:
        target.__dict__.update(state)
    for name, value in (slots or {}).items():
        slot = getattr(type(target), name, None)
        if not isinstance(slot, MemberDescriptorType):
            raise UnpicklingError(f"the state of a {type(target).__name__} names {name[:80]!r}, which is no slot of the class")
        slot.__set__(target, value)


class TensorBuilders:
    """The builders of tensors over the storages of one file.

    storages_are_empty: their bytes are read later. What depends on values is a placeholder then, and `read_again` tells that the objects have to be built again.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.storages_are_empty = False
        self.read_again = False

    def table(self) -> dict[str, Builder]:
        """Under the names that files have for them."""
        entries = [
            ("torch._utils._rebuild_tensor", self.tensor, None),
            ("torch._utils._rebuild_tensor_v2", self.tensor_v2, None),
            ("torch._utils._rebuild_tensor_v3", self.tensor_v3, None),
            ("torch._utils._rebuild_meta_tensor_no_storage", self.meta, None),
            ("torch._utils._rebuild_parameter", self.parameter, None),
            ("torch._utils._rebuild_parameter_with_state", self.parameter_with_state, None),
            ("torch._tensor._rebuild_from_type_v2", self.from_type, None),
            ("torch._utils._rebuild_sparse_tensor", self.sparse, None),
            ("torch._utils._rebuild_nested_tensor", self.nested, None),
            # what this package wrote for subclasses of Parameter
            ("tensorrt_lite.tensor._rebuild_parameter", lambda data, requires_grad, state=None: self.parameter_with_state(data, requires_grad, None, state), None),
            ("torch.Tensor", None, trt.Tensor),
            ("torch._tensor.Tensor", None, trt.Tensor),
            ("torch.Size", self.size, trt.Size),
            ("torch.device", lambda *args: trt.device(*args), trt.device),
        ]
        return {name: Builder(name, build, kind, _TENSOR_COST if name in ("torch.Size", "torch.device") else 0) for name, build, kind in entries}

    def _later(self) -> Any:
        """What stands for a tensor that is made of values until they are read."""
        self.read_again = True
        self._budget.spend(_cost(1))
        return trt.empty(0)

    # -- strided tensors --

    def size(self, items: Any = ()) -> Any:
        if not isinstance(items, (tuple, list)) or len(items) > _MAX_DIMENSIONS:
            raise UnpicklingError("corrupt checkpoint: a torch.Size is made of something that is not a size")
        return trt.Size(items)

    def _over(self, storage: Any, offset: Any, size: Any, stride: Any, dtype: Any) -> Any:
        if not isinstance(storage, Storage):
            raise UnpicklingError(f"a tensor is built from a {type(storage).__name__} where a storage is needed")
        _check_geometry(storage.untyped.nbytes() // dtype.itemsize, offset, size, stride)
        self._budget.spend(_cost(len(size)))
        return trt.empty(0, dtype=dtype, device=storage.untyped.device).set_(storage.untyped, offset, tuple(size), tuple(stride))

    def _finished(self, tensor: Any, requires_grad: Any, metadata: Any = None) -> Any:
        if metadata and tensor.numel():
            conj, neg = bool(metadata.get("conj")) and tensor.is_complex(), bool(metadata.get("neg"))
            if conj or neg:
                tensor = self._resolved(tensor, conj, neg)
        if requires_grad:
            tensor.requires_grad_(True)
        return tensor

    def _resolved(self, tensor: Any, conj: bool, neg: bool) -> Any:
        """What PyTorch keeps as a view that conjugates or negates, computed: each element of the memory once, so that expanded tensors stay so."""
        if self.storages_are_empty:
            self.read_again = True
            return tensor
        size, stride = tuple(tensor.shape), tensor.stride()
        span = _span(size, stride)
        overlaps = span < tensor.numel()
        self._budget.spend(min(span, tensor.numel()) * tensor.element_size() + 3 * _cost(len(size)))
        if overlaps:
            tensor = tensor.as_strided((span,), (1,), tensor.storage_offset())
        if conj:
            tensor = tensor.conj()
        if neg:
            tensor = tensor.neg_() if conj else tensor.neg()
        return tensor.as_strided(size, stride, 0) if overlaps else tensor

    def tensor(self, storage: Any, offset: Any, size: Any, stride: Any) -> Any:
        return self._over(storage, offset, size, stride, storage.dtype if isinstance(storage, Storage) else None)

    def tensor_v2(self, storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, metadata: Any = None) -> Any:
        return self._finished(self.tensor(storage, offset, size, stride), requires_grad, metadata)

    def tensor_v3(
        self, storage: Any, offset: Any, size: Any, stride: Any, requires_grad: Any, hooks: Any, dtype: Any, metadata: Any = None
    ) -> Any:
        return self._finished(self._over(storage, offset, size, stride, dtype), requires_grad, metadata)

    def meta(self, dtype: Any, size: Any, stride: Any, requires_grad: Any) -> Any:
        _check_geometry(_MAX_INT64, 0, size, stride)
        self._budget.spend(_cost(len(size)))
        return self._finished(trt.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta"), requires_grad)

    # -- sparse and nested tensors --

    def sparse(self, layout: Any, data: Any) -> Any:
        if not isinstance(layout, trt.layout) or not isinstance(data, tuple) or not 3 <= len(data) <= 4:
            raise UnpicklingError("corrupt checkpoint: a sparse tensor is made of something that is no layout and its parts")
        count = 2 if layout is trt.sparse_coo else 3
        parts = data[:count]
        if not all(isinstance(x, trt.Tensor) and x.layout == trt.strided for x in parts) or len(data) < count + 1 or not isinstance(data[count], tuple):
            raise UnpicklingError("corrupt checkpoint: a sparse tensor is made of something that is no tensor")
        if self.storages_are_empty:
            return self._later()
        self._budget.spend(_SPARSE_COST + sum(3 * _cost(x.dim()) for x in parts))
        for indices in parts[:-1]:
            # Each is read several times. One whose elements share memory is copied for that; so is one of another integer type.
            numel = indices.numel()
            self._budget.work(8 * numel)
            fits = indices.is_contiguous() and indices.dtype in (trt.int64, trt.int32) and (layout is not trt.sparse_coo or indices.dtype == trt.int64)
            if numel and not fits:
                self._budget.spend(numel * 2 * 8)

        return _tensor.rebuild(layout, data)

    def nested(self, buffer: Any, sizes: Any, strides: Any, offsets: Any) -> Any:
        if not all(isinstance(x, trt.Tensor) and x.layout == trt.strided and not x.is_nested for x in (buffer, sizes, strides, offsets)):
            raise UnpicklingError("corrupt checkpoint: a nested tensor is made of something that is no tensor")
        if self.storages_are_empty:
            return self._later()
        geometry = (sizes, strides, offsets)
        fits = buffer.dim() == 1 and sizes.dim() == 2 and sizes.shape == strides.shape and tuple(offsets.shape) == (sizes.shape[0],)
        if not fits or sizes.shape[1] > _MAX_DIMENSIONS or any(x.dtype != trt.int64 or x.device.type != "cpu" for x in geometry):
            raise UnpicklingError("corrupt checkpoint: the sizes, strides and offsets of a nested tensor do not fit each other")
        self._budget.spend(_cost(1) + 3 * sizes.shape[0] * (_cost(sizes.shape[1]) + 40 * sizes.shape[1]))

        try:
            return _strided.from_buffer(buffer, *(x.tolist() for x in geometry))
        except (RuntimeError, ValueError) as error:
            raise UnpicklingError(f"corrupt checkpoint: a nested tensor whose parts lie outside of its buffer ({error})") from None

    # -- parameters and subclasses --

    def parameter(self, data: Any, requires_grad: Any, hooks: Any) -> Any:
        if not isinstance(data, trt.Tensor):
            raise UnpicklingError(f"a parameter is built from a {type(data).__name__}")
        self._budget.spend(_cost(data.dim()) if data.layout == trt.strided else _SPARSE_COST + 4 * _cost(data.dim()))
        return _nn.Parameter(data, bool(requires_grad))

    def parameter_with_state(self, data: Any, requires_grad: Any, hooks: Any, state: Any) -> Any:
        parameter = self.parameter(data, requires_grad, hooks)
        self._set_attributes(parameter, state)
        return parameter

    def from_type(self, function: Any, kind: Any, args: Any, state: Any) -> Any:
        if not isinstance(function, Builder) or function.build is None or not isinstance(args, tuple):
            raise UnpicklingError("a tensor is rebuilt by something that is not known to build tensors")
        if len(args) > 16:
            raise UnpicklingError("a tensor is rebuilt with too many arguments")
        self._budget.spend(function.cost)
        tensor = function.build(*args)
        if not isinstance(tensor, trt.Tensor):
            raise UnpicklingError(f"{function.name} does not build a tensor")
        target = kind.kind if isinstance(kind, Builder) else kind if isinstance(kind, type) else getattr(kind, "target", None)
        if not (isinstance(target, type) and issubclass(target, trt.Tensor)):
            raise UnpicklingError("a tensor is given a type that is not a tensor's")
        if type(tensor) is not target:
            self._budget.spend(2 * _cost(tensor.dim()))
            tensor = tensor.as_subclass(target)
        # A class that a file names in this way is the user's, who allowed it.
        restore = getattr(target, "__setstate__", None)
        if restore is not None:
            tensor.__setstate__(state)
        else:
            self._set_attributes(tensor, state)
        return tensor

    def _set_attributes(self, target: Any, state: Any) -> None:
        """`set_attributes`, counted: the file may give one dict to many tensors."""
        for names in state if isinstance(state, tuple) else (state,):
            if isinstance(names, dict) and names:
                self._budget.spend(400 + _ATTRIBUTE_COST * len(names))
                self._budget.work(len(names))
        set_attributes(target, state)
