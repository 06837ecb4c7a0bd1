"""torch._utils: what packages take of it. The functions that rebuild tensors take hooks, of which files hold none, and drop them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import tensorrt_lite as torch
from tensorrt_lite.utils._exception_wrapper import ExceptionWrapper, KeyErrorMessage
from tensorrt_lite.nn.parameter import Parameter

__all__ = ["ExceptionWrapper", "KeyErrorMessage"]


def _element_size(dtype: Any) -> int:
    """Bytes of an element."""
    if not isinstance(dtype, torch.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _get_available_device_type() -> str | None:
    """The accelerator's name, None without one."""
    return torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else None


def _get_all_device_indices() -> list[int] | None:
    kind = _get_available_device_type()
    return None if kind is None else list(range(getattr(torch, kind).device_count()))


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device, by number, name or device: -1 for an allowed CPU, the current one for None if optional. ValueError for others."""
    if isinstance(device, str):
        device = torch.device(device)
    if isinstance(device, torch.device):
        if not allow_cpu and device.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        if device.type == "cpu":
            return -1
        if device.index is not None:
            return device.index
        return torch.accelerator.current_device_index()
    if isinstance(device, int):
        return device
    if optional and device is None:
        return torch.accelerator.current_device_index()
    raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Any:
    """A tensor over a typed storage, or over bytes as the default dtype."""
    dtype = getattr(storage, "dtype", None) or torch.get_default_dtype()
    untyped = storage.untyped() if hasattr(storage, "untyped") else storage
    return torch.empty(0, dtype=dtype, device=untyped.device).set_(untyped, storage_offset, size, stride)


def _rebuild_tensor_v2(storage: Any, storage_offset: int, size: Any, stride: Any, requires_grad: bool, backward_hooks: Any, metadata: Any = None) -> Any:
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    tensor.requires_grad = requires_grad
    return tensor


def _rebuild_parameter(data: Any, requires_grad: bool, backward_hooks: Any) -> Any:
    return Parameter(data, requires_grad)


def _flatten_dense_tensors(tensors: Iterable[Any]) -> Any:
    """One contiguous vector of the tensors' elements."""
    flat = [tensor.contiguous().view(-1) for tensor in tensors]
    return flat[0] if len(flat) == 1 else torch.cat(flat)


def _unflatten_dense_tensors(flat: Any, tensors: Iterable[Any]) -> tuple[Any, ...]:
    """Views of the vector in the tensors' shapes."""
    views, start = [], 0
    for tensor in tensors:
        views.append(flat.narrow(0, start, tensor.numel()).view_as(tensor) if tensor.numel() else torch.zeros_like(tensor))
        start += tensor.numel()
    return tuple(views)


def _take_tensors(tensors: Iterable[Any], size_limit: int) -> Iterator[list[Any]]:
    """Lists of tensors of one type, of up to `size_limit` bytes each."""
    waiting: dict[str, tuple[list[Any], int]] = defaultdict(lambda: ([], 0))
    for tensor in tensors:
        kind, size = tensor.type(), tensor.numel() * tensor.element_size()
        group, taken = waiting[kind]
        if group and taken + size > size_limit:
            yield group
            group, taken = [], 0
        group.append(tensor)
        waiting[kind] = group, taken + size
    yield from (group for group, _ in waiting.values() if group)
