"""The class of sparse tensors: what reads a tensor's memory refuses, and public functions that are made of several operators look into the table first."""

from __future__ import annotations

from typing import Any

from tensorrt_lite._C.autograd import attributes as _attributes
from tensorrt_lite._C.core.device import device as _device
from tensorrt_lite._C.core.overrides import DisableTorchFunctionSubclass
from tensorrt_lite._sparse import batches, table
from tensorrt_lite._sparse.parts import COO, NAMES, is_sparse, make_compressed, make_coo, number_of, parts
from tensorrt_lite.tensor import Tensor
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_construct = _LazyModule("tensorrt_lite._sparse.construct")
_parts = _LazyModule("tensorrt_lite._sparse.parts")
_printing = _LazyModule("tensorrt_lite._sparse.printing")
_typed_tensors = _LazyModule("tensorrt_lite._legacy.typed_tensors")

_TYPES = {"sparse_coo": "sparse", "sparse_csr": "sparse_csr", "sparse_csc": "sparse_csc", "sparse_bsr": "sparse_bsr", "sparse_bsc": "sparse_bsc"}


def _property(name: str) -> property:
    return property(*_attributes.PROPERTIES[name])


class SparseTensor(Tensor):
    """A tensor of a sparse layout."""

    __slots__ = ()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What the table has for a public function; otherwise the function itself, whose operators come to the table one by one."""
        for t in types:
            if t is not cls and t is not Tensor and issubclass(t, Tensor) and "__torch_function__" in t.__dict__ and t.__name__ != "Parameter":
                return NotImplemented
        name = getattr(func, "__name__", "")
        if name == "__set__" and len(args) == 2 and getattr(getattr(func, "__self__", None), "__name__", "") == "grad":
            return func.__self__.fset(*args)
        found = table.FUNCTIONS.get(name)
        level = batches.innermost_batch(args) if name in batches.FUNCTIONS else None
        if level is not None:
            return batches.for_each(level, func, args, kwargs or {})
        with DisableTorchFunctionSubclass():
            result = (found or func)(*args, **(kwargs or {}))
            if result is NotImplemented:
                raise table.refusal(name, args)
        return result

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise table.refusal(getattr(func, "_name", str(func)), (*args, *(kwargs or {}).values()))

    shape, ndim, dtype, device, layout = (_property(name) for name in ("shape", "ndim", "dtype", "device", "layout"))
    requires_grad, grad_fn, is_leaf, grad = (_property(name) for name in ("requires_grad", "grad_fn", "is_leaf", "grad"))
    is_sparse, is_sparse_csr, is_cpu, is_cuda, is_meta = (_property(name) for name in ("is_sparse", "is_sparse_csr", "is_cpu", "is_cuda", "is_meta"))
    size, dim, numel, ndimension, nelement = (_attributes.METHODS[name] for name in ("size", "dim", "numel", "ndimension", "nelement"))
    is_floating_point, is_complex, requires_grad_ = (_attributes.METHODS[name] for name in ("is_floating_point", "is_complex", "requires_grad_"))

    def __radd__(self, other: Any) -> Any:
        # Python asks a subclass first, and a sum knows which operand is the sparse one
        return other.add(self) if isinstance(other, Tensor) else Tensor.__radd__(self, other)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return ("Parameter containing:\n" if getattr(self, "_is_param", False) else "") + _printing.sparse_repr(self)

    def new(self, *args: Any, device: Any = None) -> Any:
        """A COO tensor of the same dtype: `new()`, `new(indices, values)`, `new(indices, values, size)`, `new(size)`. RuntimeError: of another layout or device type."""
        if number_of(self) != COO:
            raise RuntimeError(f"new(): expected a tensor of layout torch.sparse_coo, got {self.layout}")
        if device is not None and (kind := _device(device).type) != self.device.type:
            raise RuntimeError(f"legacy constructor expects device type: {self.device.type} but device type: {kind} was passed")
        if len(args) in (2, 3) and isinstance(args[0], Tensor):
            return _construct.sparse_coo_tensor(*args, dtype=self.dtype, device=self.device)
        size = (0,) if not args else args[0] if len(args) == 1 and not isinstance(args[0], int) else args
        return _construct.sparse_coo_tensor(size=size, dtype=self.dtype, device=self.device)

    def stride(self, dim: Any = None) -> Any:
        if number_of(self) != COO:
            raise RuntimeError(
                "Sparse CSR tensors do not have strides" if number_of(self) == 2 else f"{NAMES[number_of(self)]} tensors do not have strides"
            )
        return (0,) * self.dim() if dim is None else 0

    def is_contiguous(self, memory_format: Any = None) -> bool:
        if number_of(self) != COO:
            raise RuntimeError(f"Tensors of type SparseCsrTensorImpl do not have is_contiguous (layout {self.layout})")
        return False

    def storage_offset(self) -> int:
        return 0

    @property
    def nbytes(self) -> int:
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the nbytes of the indices and values.  "
            "If you want the size of the  equivalent dense tensor, multiply numel() by element_size()"
        )

    def data_ptr(self) -> int:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def untyped_storage(self) -> Any:
        raise NotImplementedError(
            "Cannot access storage of SparseTensorImpl" if number_of(self) == COO else "Cannot access storage of SparseCsrTensorImpl"
        )

    storage = untyped_storage

    def is_shared(self) -> bool:
        p = parts(self)
        return all(x.is_shared() for x in (p.indices, p.compressed, p.plain, p.values) if x is not None)

    def share_memory_(self) -> Any:
        for x in parts(self)[1:5]:
            if x is not None:
                x.share_memory_()
        return self

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError(f"can't convert {NAMES[number_of(self)]} layout tensor to numpy. Use Tensor.to_dense() first.")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(f"can't convert {NAMES[number_of(self)]} layout tensor to numpy. Use Tensor.to_dense() first.")

    def tolist(self) -> Any:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def item(self) -> Any:
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self.to_dense().item()

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError(
                "Boolean value of Tensor with more than one value is ambiguous"
                if self.numel()
                else "Boolean value of Tensor with no values is ambiguous"
            )
        return bool(self.to_dense())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __contains__(self, element: Any) -> bool:
        raise table.refusal("eq", (self, element))

    def __dlpack__(self, **kwargs: Any) -> Any:
        raise BufferError("Can't export tensors with layout other than torch.strided")

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        if dtype is not None:
            return _typed_tensors.converted(self, dtype, non_blocking)
        dense = self.new_empty_dense().type()
        if number_of(self) != COO:
            raise RuntimeError(f"Unimplemented backend SparseCsr{self.device.type.upper()}")
        package, _, kind = dense.rpartition(".")
        return f"{package}.sparse.{kind}"

    def new_empty_dense(self) -> Any:
        """An empty strided tensor of the same dtype and device."""
        return parts(self).values.new_empty((0,))

    def __deepcopy__(self, memo: Any) -> Any:
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.")
        if id(self) in memo:
            return memo[id(self)]
        copied = copy_of(self).requires_grad_(self.requires_grad)
        memo[id(self)] = copied
        if self.grad is not None:
            copied.grad = self.grad.__deepcopy__(memo)
        if state := self.__dict__:
            from copy import deepcopy

            copied.__dict__.update(deepcopy(state, memo))
        return copied

    def __copy__(self) -> Any:
        copied = self.detach().requires_grad_(self.requires_grad)
        copied.__dict__.update(self.__dict__)
        return copied

    def __reduce_ex__(self, proto: Any) -> Any:
        return rebuild, (*state_of(self), self.requires_grad, dict(self.__dict__))


def copy_of(t: Any) -> Any:
    """A copy of the parts, without history."""
    p = parts(t)
    if p.layout == COO:
        return make_coo(p.indices.clone(), p.values.clone(), t.shape, p.coalesced)
    return make_compressed(p.layout, p.compressed.clone(), p.plain.clone(), p.values.clone(), t.shape)


def state_of(t: Any) -> tuple[Any, Any]:
    """(layout, its parts) as PyTorch's files have them."""
    p = parts(t)
    if p.layout == COO:
        return t.layout, (p.indices, p.values, t.shape, p.coalesced)
    return t.layout, (p.compressed, p.plain, p.values, t.shape)


def rebuild(layout: Any, data: Any, requires_grad: bool = False, attributes: Any = None) -> Any:
    """A sparse tensor from what `state_of` gave; its invariants are checked, as a file may say anything. The is_coalesced mark may be missing."""
    if _parts.NUMBERS.get(layout) == COO:
        made = _construct.sparse_coo_tensor(*data[:3], check_invariants=True, is_coalesced=data[3] if len(data) > 3 else None)
    elif layout in _parts.NUMBERS and _parts.NUMBERS[layout]:
        made = _construct.sparse_compressed_tensor(*data, layout=layout, check_invariants=True)
    else:
        raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")
    made.__dict__.update(attributes or {})
    return made.requires_grad_() if requires_grad else made


__all__ = ["SparseTensor", "copy_of", "is_sparse", "rebuild", "state_of"]
