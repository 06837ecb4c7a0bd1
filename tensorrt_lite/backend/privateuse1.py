"""PyTorch's way to a custom device: its name, its module in the package, and methods of that name on tensors, modules and storages."""

from __future__ import annotations

import sys
from typing import Any

from tensorrt_lite._names.listing import root
from tensorrt_lite._C.core import device as _device
from tensorrt_lite._C.core import storage as _storage
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_rnn = _LazyModule("tensorrt_lite.nn.utils.rnn")
trt = root()  # whose names are made here

__all__ = ["generate_methods", "generate_methods_for_privateuse1_backend", "get_device_module", "_register_device_module", "rename_privateuse1_backend"]

_of_storages: set[str] = set()
rename_privateuse1_backend = _device.rename_privateuse1_backend


def _register_device_module(device_type: str, module: Any) -> None:
    """Make a module, or an object like one, the package's attribute of a device's name. RuntimeError where the device has one."""
    name = trt.device(device_type).type
    if name in vars(trt):
        raise RuntimeError(f"The runtime module of '{name}' has already been registered with '{vars(trt)[name]}'")
    setattr(trt, name, module)
    sys.modules[f"{trt.__name__}.{name}"] = module


def get_device_module(device: Any = None) -> Any:
    """The package's module of a device (a device, its name, None: the current accelerator's, the CPU's without one). RuntimeError where there is none.

    Parameters:
        device (device, str or None, default None): the device; None is the current accelerator

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.get_device_module("cpu") is trt.cpu
        True
    """
    if device is None:
        name = (trt.accelerator.current_accelerator(check_available=True) or trt.device("cpu")).type
    elif isinstance(device, (str, trt.device)):
        name = trt.device(device).type
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    module = getattr(trt, name, None)
    if module is None:
        raise RuntimeError(f"Device '{name}' does not have a corresponding module registered as 'torch.{name}'.")
    return module


def generate_methods_for_privateuse1_backend(
    for_tensor: bool = True, for_module: bool = True, for_packed_sequence: bool = True, for_storage: bool = False, unsupported_dtype: Any = None,
) -> None:  # fmt: skip
    """`Tensor.npu()` and `Tensor.is_npu` (also of modules, packed sequences and storages) of the first custom device, under its name.

    unsupported_dtype: types whose typed storages cannot go there. RuntimeError where a method of that name is there already.
    """
    generate_methods(_device._custom_backend_name(), for_tensor, for_module, for_packed_sequence, for_storage, unsupported_dtype)


def generate_methods(
    name: str, for_tensor: bool = True, for_module: bool = True, for_packed_sequence: bool = True, for_storage: bool = False, unsupported_dtype: Any = None,
) -> None:  # fmt: skip
    """The same for any custom device."""
    if for_tensor:
        _add(trt.Tensor, name, _to_device(name), _is_there(name))
    if for_module:
        if not hasattr(trt.Tensor, name):
            raise RuntimeError(f"Can not automatically generate {name}() method for torch.nn.Module, because torch.Tensor doesn't has the method {name}().")
        _add(trt.nn.Module, name, _module_to_device(name), None)
    if for_packed_sequence:
        _add(_rnn.PackedSequence, name, _to_device(name), property(lambda self: self.data.device.type == name))
    if for_storage:
        _add(trt.UntypedStorage, name, _storage_to_device(name), _is_there(name))
        _add(trt.TypedStorage, name, _typed_to_device(name, unsupported_dtype), _is_there(name))


def _add(cls: type, name: str, method: Any, query: property | None) -> None:
    for attribute, value in ((f"is_{name}", query), (name, method)):
        if value is not None:
            if hasattr(cls, attribute) or attribute in _of_storages and cls is trt.UntypedStorage:
                raise RuntimeError(f"The custom device module of {cls} has already been registered with {attribute}")
            method = getattr(value, "fget", value)
            method.__name__ = method.__qualname__ = attribute
            if cls is trt.UntypedStorage:               # a compiled class
                _of_storages.add(attribute)
                _storage._add_method(attribute, value)
            else:
                setattr(cls, attribute, value)


def _is_there(name: str) -> property:
    return property(lambda self: self.device.type == name, doc=f"Whether it is on {name}.")


def _place(name: str, device: Any) -> Any:
    if device is None:
        return trt.device(name)
    if isinstance(device, int):
        return trt.device(name, device)
    place = trt.device(device)
    if place.type != name:
        raise RuntimeError(f"Invalid device, must be {name} device")
    return place


def _to_device(name: str) -> Any:
    def method(self: Any, device: Any = None, non_blocking: bool = False, **options: Any) -> Any:
        return self.to(device=_place(name, device), non_blocking=non_blocking, **options)

    method.__doc__ = f"A copy on {name}, or the object itself where it is there. device: an index or a device, the current one by default."
    return method


def _module_to_device(name: str) -> Any:
    def method(self: Any, device: Any = None) -> Any:
        return self._apply(lambda t: getattr(t, name)(device))

    method.__doc__ = f"Move all parameters and buffers to {name}; returns the module."
    return method


def _storage_to_device(name: str) -> Any:
    def method(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
        place = _place(name, device)
        if self.device.type == name and place.index in (None, self.device.index):
            return self
        flat = trt.empty(0, dtype=trt.uint8, device=self.device).set_(self, 0, (self.nbytes(),), (1,))
        return flat.to(place, non_blocking=non_blocking).untyped_storage()

    method.__doc__ = f"A copy on {name}, or the storage itself where it is there."
    return method


def _typed_to_device(name: str, unsupported: Any) -> Any:
    def method(self: Any, device: Any = None, non_blocking: bool = False, **options: Any) -> Any:
        if unsupported and self.dtype in unsupported:
            raise RuntimeError(f"Cannot create {name} storage as {self.dtype} dtype is not supported by this backend")
        moved = getattr(self._untyped_storage, name)(device, non_blocking)
        return type(self)._of(moved, self.dtype)

    return method
