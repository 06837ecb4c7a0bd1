"""Tensors that a Module recognises when they are assigned to it.

A Parameter is trained and saved; a Buffer is only saved. Both are ordinary tensors for every operator: they add
no behaviour to the computation, so results of operators are plain tensors. Called by Module.__setattr__ and by users.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import tensorrt_lite as trt


class _ParameterMeta(type(trt.Tensor)):  # type: ignore[misc]
    """Lets an instance of a tensor subclass that was passed through Parameter() answer to isinstance(x, Parameter)."""

    def __instancecheck__(cls, instance: Any) -> bool:
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, trt.Tensor) and getattr(instance, "_is_param", False)


class Parameter(trt.Tensor, metaclass=_ParameterMeta):
    """A tensor that is registered as a parameter when it becomes an attribute of a Module.

    data: any tensor, default an empty one; shares storage with the parameter. requires_grad: default True.
    """

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Parameter:
        if data is None:
            data = trt.empty(0)
        if type(data) is trt.Tensor or type(data) is Parameter:
            return trt.Tensor._make_subclass(cls, data, requires_grad)
        # A tensor subclass keeps its type, so that its own operators still apply; the mark makes it a parameter.
        result = data.detach().requires_grad_(requires_grad)
        if type(result) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns "
                f"an instance of the same type, but return type {type(result).__name__} was found instead."
            )
        result._is_param = True
        return result

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self) -> str:  # type: ignore[override]
        return "Parameter containing:\n" + repr(self.detach().requires_grad_(self.requires_grad))

    def __reduce_ex__(self, protocol: int) -> tuple[Any, ...]:  # type: ignore[override]
        return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict())


def _rebuild_parameter(data: Any, requires_grad: bool, backward_hooks: Any) -> Parameter:
    """Used by pickle; hooks are not carried."""
    return Parameter(data, requires_grad)


class _BufferMeta(type(trt.Tensor)):  # type: ignore[misc]
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
