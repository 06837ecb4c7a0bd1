"""Tensors that a Module recognises when they are assigned to it.

A Parameter is trained and saved; a Buffer is only saved. Both are ordinary tensors for every operator: they add
no behaviour to the computation. Parameter is defined beside Tensor, since the core treats it as one.
"""

from __future__ import annotations

from typing import Any

import tensorrt_lite as trt
from tensorrt_lite.tensor import Parameter

__all__ = ["Buffer", "Parameter"]


class _BufferMeta(type(trt.Tensor)):  # type: ignore[misc]
    """isinstance(x, Buffer) holds for tensors that carry the mark `_is_buffer`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Buffer and isinstance(instance, trt.Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(trt.Tensor, metaclass=_BufferMeta):
    """Marks a tensor so that assigning it to a Module registers it as a buffer.

    data: any tensor. persistent: whether the buffer is part of the state dict. The result is `data`, detached, of
    its own type.
    """

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = trt.empty(0)
        result = data.detach().requires_grad_(data.requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result
