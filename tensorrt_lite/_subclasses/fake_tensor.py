"""Fake tensors: what a program would compute, without memory or arithmetic. PyTorch's `torch._subclasses.fake_tensor`.

    with FakeTensorMode():
        x = trt.empty(1 << 20, 1 << 20, device="cuda")     # on a machine without a GPU
        y = x @ x
    y.shape, y.dtype, y.device

A fake tensor holds a meta tensor and the device that it pretends to be on. Operators run their kernels for meta tensors, so shapes, dtypes,
strides and errors are the real ones; what depends on elements (`item`, `nonzero`) raises.
"""

from __future__ import annotations

import weakref
from copy import deepcopy
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite import _C
from tensorrt_lite._C import FACTORIES
from tensorrt_lite._functions.package_facts import Tag
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode, _disable_current_modes, _get_current_dispatch_mode_stack

_nn = LazyModule("tensorrt_lite.nn")

__all__ = ["DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException"]

_CPU = trt.device("cpu")


class UnsupportedFakeTensorException(RuntimeError):
    """What fake tensors cannot stand for."""


class DynamicOutputShapeException(RuntimeError):
    """An operator whose result's shape depends on elements; `func` is the operator."""

    def __init__(self, func: Any) -> None:
        super().__init__(f"{func}: the result's shape depends on elements, which fake tensors do not have")
        self.func = func


class DataDependentOutputException(RuntimeError):
    """A number that depends on elements; `func` is the operator."""

    def __init__(self, func: Any) -> None:
        super().__init__(f"{func}: the result depends on elements, which fake tensors do not have")
        self.func = func


class FakeTensor(trt.Tensor):
    """A tensor with shape, strides, dtype and device, but no elements."""

    fake_mode: FakeTensorMode
    meta: trt.Tensor
    __torch_function__ = _C._disabled_torch_function_impl  # type: ignore[attr-defined]

    @staticmethod
    def __new__(cls, fake_mode: FakeTensorMode, elem: trt.Tensor, device: Any, requires_grad: bool = False) -> FakeTensor:
        made = trt.Tensor._make_wrapper_subclass(cls, elem.shape, elem.stride(), elem.storage_offset(), dtype=elem.dtype, device=device, requires_grad=requires_grad)
        made.meta, made.fake_mode = elem, fake_mode
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    @property
    def fake_device(self) -> Any:
        """The device that the tensor pretends to be on."""
        return self.device

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        mode = next(t.fake_mode for t in _tensors((args, kwargs)) if isinstance(t, FakeTensor))
        return mode.dispatch(func, args, kwargs or {})

    def __deepcopy__(self, memo: dict[int, Any]) -> FakeTensor:
        if id(self) not in memo:
            copied = memo[id(self)] = self.detach().clone().requires_grad_(self.requires_grad)
            rest = {name: value for name, value in self.__dict__.items() if name not in ("meta", "fake_mode")}
            copied.__dict__.update(deepcopy(rest, memo))
        return memo[id(self)]  # type: ignore[no-any-return]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"FakeTensor(..., {'' if self.device == _CPU else f'device={str(self.device)!r}, '}size={tuple(self.shape)}, dtype={self.dtype})"

    def numpy(self, *, force: bool = False) -> Any:
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")


def _tensors(x: Any) -> Any:
    if isinstance(x, trt.Tensor):
        yield x
    elif isinstance(x, (list, tuple)):
        for y in x:
            yield from _tensors(y)
    elif isinstance(x, dict):
        for y in x.values():
            yield from _tensors(y)


def _depends_on_elements(func: Any, args: tuple[Any, ...]) -> bool:
    """Whether the result's shape depends on elements: of an operator that takes indices, where one is a mask."""
    indices = [x for x in args if isinstance(x, (list, tuple)) and any(isinstance(y, trt.Tensor) for y in x)]
    return not indices or any(y.dtype in (trt.bool, trt.uint8) for x in indices for y in x if isinstance(y, trt.Tensor))


def _mapped(x: Any, function: Any) -> Any:
    if isinstance(x, trt.Tensor):
        return function(x)
    if isinstance(x, (list, tuple)) and not hasattr(x, "numel"):
        parts = [_mapped(y, function) for y in x]
        return x._make(parts) if hasattr(x, "_make") else type(x)(parts)
    return x


class FakeTensorMode(TorchDispatchMode):
    """Inside, all tensors that are made are fake, and operators on fake tensors compute shapes alone.

    allow_non_fake_inputs: real tensors among the arguments become fake ones instead of raising.
    """

    def __init__(self, *, allow_fallback_kernels: bool = True, allow_non_fake_inputs: bool = False, shape_env: Any = None, static_shapes: bool | None = None) -> None:
        if shape_env is not None:
            raise NotImplementedError("FakeTensorMode: symbolic shapes are not implemented (docs/gaps.md)")
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self._converted: dict[int, tuple[Any, FakeTensor]] = {}

    def from_tensor(self, tensor: trt.Tensor, *, static_shapes: bool | None = None) -> FakeTensor:
        """The fake tensor of a real one; the same for the same."""
        if isinstance(tensor, FakeTensor):
            if tensor.fake_mode is not self:
                raise AssertionError("Mixing fake modes NYI")
            return tensor
        found = self._converted.get(id(tensor))
        if found is not None and found[0]() is tensor:
            return found[1]
        with _disable_current_modes():  # the mode itself, inside of which this may be called, would make the meta tensor a fake one
            meta = tensor.detach().to("meta") if tensor.device.type == "meta" else _meta_like(tensor)
        fake = FakeTensor(self, meta, tensor.device, tensor.requires_grad)
        if isinstance(tensor, _nn.Parameter):
            fake._is_param = True
        self._converted[id(tensor)] = (weakref.ref(tensor), fake)
        return fake

    def __torch_dispatch__(self, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        return self.dispatch(func, args, kwargs or {})

    def dispatch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run an operator on the meta tensors of its arguments."""
        name = getattr(func, "_name", str(func))
        tags = getattr(func, "tags", ())
        if Tag.dynamic_output_shape in tags and _depends_on_elements(func, args):
            raise DynamicOutputShapeException(func)
        if Tag.data_dependent_output in tags:
            raise DataDependentOutputException(func)
        given = [t for t in _tensors((args, kwargs)) if isinstance(t, FakeTensor)]
        if name in FACTORIES and not given:
            return self._make(func, args, kwargs)
        for t in _tensors((args, kwargs)):
            if not isinstance(t, FakeTensor) and not self.allow_non_fake_inputs and not (t.dim() == 0 and t.device == _CPU):
                raise AssertionError(
                    f"Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. Found in {func}(*{args}, **{kwargs})"
                )
        device = self._device_of(func, given) if kwargs.get("device") is None else trt.device(kwargs["device"])
        if name == "_to_copy":
            kwargs = {**kwargs, "device": "meta"}
        if kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": "meta"}
        written = getattr(func, "mode", 0)
        result = func(*_mapped(args, self._meta_of), **{k: _mapped(v, self._meta_of) for k, v in kwargs.items()})
        if written == 2:
            return self._same_geometry(func, args[0])
        if written == 1:
            return kwargs["out"] if "out" in kwargs else tuple(kwargs[name] for name in func.out_names)
        return _mapped(result, lambda t: FakeTensor(self, t, device))

    def _make(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        device = kwargs.get("device")
        name = func._name
        if name in ("tensor", "as_tensor", "asarray", "scalar_tensor", "from_numpy", "frombuffer"):
            real = func(*args, **{**kwargs, "device": None} if "device" in kwargs else kwargs)
            return FakeTensor(self, _meta_like(real), _device(device))
        kwargs = {k: v for k, v in kwargs.items() if k not in ("pin_memory", "generator")}
        return FakeTensor(self, func(*args, **{**kwargs, "device": "meta"}), _device(device))

    def _meta_of(self, t: trt.Tensor) -> trt.Tensor:
        if not isinstance(t, FakeTensor):
            t = self.from_tensor(t)
        return t.meta

    @staticmethod
    def _device_of(func: Any, given: list[Any]) -> Any:
        """The device of the result: that of the arguments; a scalar on the CPU goes with any."""
        found = None
        for t in given:
            if found is None or found == _CPU and t.device != _CPU and all(x.dim() == 0 for x in given if x.device == _CPU):
                found = t.device
            elif t.device != found and not (t.device == _CPU and t.dim() == 0) and getattr(func, "_name", "") not in ("copy", "index", "index_put"):
                raise RuntimeError(f"Unhandled FakeTensor Device Propagation for {func}, found two different devices {found}, {t.device}")
        return _CPU if found is None else found

    @staticmethod
    def _same_geometry(func: Any, t: FakeTensor) -> FakeTensor:
        if tuple(t.meta.shape) != tuple(t.shape) or t.meta.stride() != t.stride():
            raise NotImplementedError(f"{func}: an operator that changes its argument's shape in place has no form for fake tensors (docs/gaps.md)")
        return t


def _meta_like(t: trt.Tensor) -> trt.Tensor:
    """A meta tensor of a tensor's geometry."""
    return trt.empty_strided(tuple(t.shape), t.stride(), dtype=t.dtype, device="meta")


def _device(device: Any) -> Any:
    if device is None:
        default = getattr(trt, "get_default_device", None)
        return _CPU if default is None else default()
    return device if isinstance(device, trt.device) else trt.device(device)


def active_fake_mode() -> FakeTensorMode | None:
    """The fake mode that is active in this thread, or None."""
    return next((mode for mode in reversed(_get_current_dispatch_mode_stack()) if isinstance(mode, FakeTensorMode)), None)
