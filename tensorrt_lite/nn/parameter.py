"""Tensors that a Module recognises when they are assigned to it.

A Parameter is trained and saved; a Buffer is only saved. Both are ordinary tensors for every operator: they add
no behaviour to the computation. Parameter is defined beside Tensor, since the core treats it as one.
"""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _C
from tensorrt_lite import _root as trt
from tensorrt_lite._C.autograd import attributes as _attributes
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite.tensor import Parameter

_python_dispatch = LazyModule("tensorrt_lite.utils._python_dispatch")

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter"]


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
        result = data.detach()
        result.requires_grad = data.requires_grad
        result.persistent = persistent
        result._is_buffer = True
        return result


# What a lazy tensor answers before it has a shape, by the names of the overridden functions.
_ANSWERED = frozenset(
    ("half", "float", "double", "short", "int", "long", "bfloat16", "cuda", "cpu", "to", "detach_", "get_device", "requires_grad_", "is_complex", "is_floating_point", "size")
)
_NO_SHAPE = (
    "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when trying to load an "
    "uninitialized parameter into an initialized one. Call `forward` to initialize the parameters before accessing their attributes."
)


class UninitializedTensorMixin:
    """A tensor of a lazy module, whose shape its first input will give."""

    cls_to_become: type

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary parameter or buffer of this shape, with memory that nothing is written to yet."""
        with _python_dispatch._disable_current_modes():  # which are not asked for a tensor without a shape
            own = self.data  # type: ignore[has-type]
        device = getattr(self, "_claimed_device", own.device) if device is None else device
        dtype = own.dtype if dtype is None else dtype
        data = trt.empty(shape, device=device, dtype=dtype)
        if type(data) is trt.Tensor:
            self.data = data
            self.__class__ = self.cls_to_become  # type: ignore[assignment]
        else:  # of a class that a mode gave, fake tensors for one
            becomes, recorded = self.cls_to_become, self.requires_grad  # type: ignore[has-type]
            self.__class__ = type(data)  # type: ignore[assignment]
            _attributes.assign_from(self, data)
            self.__dict__.update(data.__dict__)
            self._is_param = issubclass(becomes, Parameter)
            self.requires_grad_(False).requires_grad_(recorded)  # type: ignore[attr-defined]

    @property
    def shape(self) -> Any:
        """RuntimeError: there is none yet."""
        raise RuntimeError(_NO_SHAPE)

    def share_memory_(self) -> Any:
        """RuntimeError: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before calling `module.share_memory()`."
        )

    def __copy__(self) -> Any:
        return self.__deepcopy__({})  # type: ignore[attr-defined]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad,)  # type: ignore[attr-defined]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _ANSWERED or name in ("__get__", "__set__"):
            with _C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a `LazyModule` or explicitly manipulating "
            f"`torch.nn.parameter.{cls.__name__}` objects. When using LazyModules Call `forward` with a dummy batch to initialize the parameters "
            "before calling torch functions"
        )


def _claiming(data: Any, cls: type, requires_grad: bool) -> Any:
    """An instance of a class without a shape; it remembers the device that a tensor of a mode's class claims."""
    made = trt.Tensor._make_subclass(cls, data, requires_grad)
    if type(data) is not trt.Tensor:
        made._claimed_device = data.device
    return made


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter without a shape; `materialize` gives it one. It may be converted and moved before."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return _claiming(trt.empty(0, device=device, dtype=dtype), cls, requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]


class UninitializedBuffer(UninitializedTensorMixin, trt.Tensor):
    """A buffer without a shape; `materialize` gives it one. It may be converted and moved before."""

    cls_to_become = trt.Tensor

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True) -> Any:
        made = _claiming(trt.empty(0, device=device, dtype=dtype), cls, requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype, self.persistent)
        return memo[id(self)]


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer waits for its shape."""
    return isinstance(param, UninitializedTensorMixin)
