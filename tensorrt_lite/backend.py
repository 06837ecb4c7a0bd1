"""A custom backend: a device of one's own with its allocator and its kernels, written in Python or reached from it.

>>> import tensorrt_lite as trt
>>> from tensorrt_lite import backend
>>> backend.register_backend("toy")
>>> @backend.kernel("neg")
... def neg(x, out):
...     result = trt.empty_like(x) if out is None else out
...     backend.as_cpu(result).copy_(-backend.as_cpu(x))
...     return result
>>> (-trt.ones(2).to("toy")).cpu().tolist()
[-1.0, -1.0]

Autograd, views, metadata and type promotion work on the device's tensors as on any other; an operator without a kernel
goes to the fallback when there is one and else raises NotImplementedError. One custom backend exists per process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _ops
from tensorrt_lite._C.core import device as _device
from tensorrt_lite._C.core import dispatch as _dispatch
from tensorrt_lite._C.core import storage as _storage
from tensorrt_lite._C.core import tensor as _tensor
from tensorrt_lite._C.core.dtype import _dtype_by_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorrt_lite.tensor import Tensor

_KEY = 5  # of the custom backend in the dispatch table
_UINT8 = _dtype_by_name("uint8")
_own: list[Any] = []  # operators that custom devices alone have


def register_backend(name: str, allocate: Callable[[int], Any] | None = None, fallback: Callable[..., Any] | None = None) -> None:
    """Name the custom device and say where its memory comes from.

    allocate: called with a number of bytes, returns a writable object with the buffer protocol that holds at least as many;
    by default host memory. fallback: called as ``fallback(operator, *arguments)`` for operators without a kernel.
    Raises RuntimeError when another name was registered before or the name belongs to a built-in device.
    """
    _device.rename_privateuse1_backend(name)

    def storage(nbytes: int) -> Any:
        memory = bytearray(nbytes) if allocate is None else allocate(nbytes)
        with memoryview(memory) as view:
            if view.readonly or view.nbytes < nbytes:
                raise RuntimeError(f"the allocator of backend '{name}' returned {view.nbytes} bytes, {'read-only' if view.readonly else 'too few'}, for {nbytes}")
        return _ops.frombuffer(memory, dtype=_UINT8).untyped_storage() if nbytes else _ops.empty(0, dtype=_UINT8).untyped_storage()

    _tensor._set_custom_allocator(storage)
    if not _own:
        _own.append(_dispatch.DefinedOperator("_copy_across"))
    for operator, function in _MOVES.items():
        register_kernel(operator, function)
    if fallback is not None:
        _dispatch._register_fallback(_KEY, fallback)


def register_kernel(operator: str, function: Callable[..., Any]) -> None:
    """Give an operator its kernel on the custom backend.

    The function is called with the arguments of the operator's declaration (docs/operators.md), in order, and ``out``: a
    tensor to write to and return, or None. Raises ValueError for an operator that does not exist.
    """
    if operator not in _dispatch.operator_kernels():
        raise ValueError(f"register_kernel: there is no operator '{operator}'")
    _dispatch.register_python_kernel(operator, _KEY, function)


def kernel(operator: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorator form of :func:`register_kernel`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        register_kernel(operator, function)
        return function

    return register


def as_cpu(t: Tensor) -> Tensor:
    """A CPU tensor over the same memory as a tensor of the custom device, which must lie in host memory."""
    r = _ops.empty(0, dtype=t.dtype)
    return r.set_(_storage.host_alias(t.untyped_storage()), t.storage_offset(), tuple(t.shape), t.stride())


def _copy_across(destination: Tensor, source: Tensor) -> Tensor:
    """Copies between the custom device and the CPU, for memory that the host can address."""
    d = destination if destination.is_cpu else as_cpu(destination)
    d.copy_(source if source.is_cpu else as_cpu(source))
    return destination


def _to_copy(source: Tensor, dtype: Any, device: Any, memory_format: Any) -> Tensor:
    result = _ops.empty_like(source, dtype=dtype, device=source.device if device is None else device, memory_format=memory_format)
    return _copy_across(result, source)


def _clone(source: Tensor, memory_format: Any) -> Tensor:
    return _copy_across(_ops.empty_like(source, memory_format=memory_format), source)


def _fill(target: Tensor, value: Any, out: Tensor | None) -> Tensor:
    result = _ops.empty_like(target) if out is None else out
    as_cpu(result).fill_(value)
    return result


# What moves data, for memory that the host can address; a backend with its own memory registers its own kernels.
_MOVES = {"_copy_across": _copy_across, "_to_copy": _to_copy, "clone": _clone, "contiguous": _clone, "fill": _fill}
