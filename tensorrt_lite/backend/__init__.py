"""Custom devices: device types of a program's own, with their memory, streams, generators and kernels, in Python or in C.

>>> import tensorrt_lite as trt
>>> from tensorrt_lite import backend
>>> toy = backend.register_backend("toy")                # its memory is the host's
>>> @toy.step("neg")                                     # one step: checks, shapes, types, the result and gradients are the package's
... def neg(result, x):
...     backend.as_cpu(result).copy_(-backend.as_cpu(x))
>>> x = trt.ones(2, device="toy", requires_grad=True)
>>> y = -x
>>> y.sum().backward()
Traceback (most recent call last):
    ...
tensorrt_lite._C.core.dispatch.MissingStep: Could not run 'sum' with arguments from the 'toy' backend: 'reduce' is not implemented for the device 'toy': no step is registered for it, and the backend does not fall back to the CPU
>>> toy.fall_back_to_cpu()                               # or: sum runs on the host, on copies
>>> y.sum().backward()
>>> x.grad
tensor([-1., -1.], device='toy:0')

A device whose memory the host cannot address is a subclass of `DeviceInterface`, which `register_device` takes: examples/custom_device.py is a whole one.
Autograd, views, metadata, type promotion, files, printing and optimizers work on its tensors as on others: all that is read goes through its copies. There may
be eight types in a process, with up to 64 devices each; the first is PyTorch's PrivateUse1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite._names import listing as _package
from tensorrt_lite import _ops
from tensorrt_lite._C.core import device as _names
from tensorrt_lite._C.core import storage as _storage
from tensorrt_lite.backend.device import Device, device_of, registered
from tensorrt_lite.backend.interface import DeviceInterface, HostMemoryInterface
from tensorrt_lite.backend.module import module_of
from tensorrt_lite.backend.privateuse1 import _register_device_module, generate_methods
from tensorrt_lite.backend.steps import constants, steps, struct
from tensorrt_lite.backend.streams import Event, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorrt_lite.tensor import Tensor

__all__ = [
    "Device", "DeviceInterface", "Event", "HostMemoryInterface", "Stream", "as_cpu", "constants", "device_of", "kernel", "register_backend", "register_device",
    "register_kernel", "registered", "steps", "struct",
]  # fmt: skip


def register_device(name: str, interface: DeviceInterface, *, methods: bool = True) -> Device:
    """Make a device type: ``device("npu:1")`` parses, ``trt.npu`` is its module, and (methods) ``tensor.npu()``, ``tensor.is_npu``, ``module.npu()`` exist.

    The first one is the accelerator that `trt.accelerator` and bare indices mean. RuntimeError for the name of a built-in or registered device, and beyond
    eight types.
    """
    if any(d.name == name for d in registered()):
        raise RuntimeError(f"the device '{name}' has been registered already")
    if hasattr(_package.root(), name):
        raise RuntimeError(f"'{name}' is a name of the package already")
    first = not registered()
    device = Device(name, interface)
    if first:
        _names._use_accelerator(device.code)
    _register_device_module(name, module_of(device))
    if methods:
        generate_methods(name)
    return device


def register_backend(name: str, allocate: Callable[[int], Any] | None = None, fallback: Callable[..., Any] | None = None) -> Device:
    """Make a device whose memory the host can address, which `as_cpu` shows as it is.

    allocate: called with a number of bytes, returns a writable object with the buffer protocol that holds at least as many; bytearrays by default.
    fallback: called as ``fallback(operator, *arguments)`` for operators without a kernel. Called again for the same name, both are exchanged. RuntimeError
    as for `register_device`.
    """
    found = next((d for d in registered() if d.name == name), None)
    if found is None:
        found = register_device(name, HostMemoryInterface(name, allocate))
    elif not isinstance(found.interface, HostMemoryInterface):
        raise RuntimeError(f"the device '{name}' has been registered already, with memory of its own")
    else:
        found.interface._allocator = allocate
    found.register_fallback(fallback)
    return found


def register_kernel(operator: str, function: Callable[..., Any]) -> None:
    """`Device.register_kernel` of the device that was registered first."""
    _first().register_kernel(operator, function)


def kernel(operator: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The decorator form of :func:`register_kernel`."""
    return _first().kernel(operator)


def _first() -> Device:
    if not registered():
        raise RuntimeError("no custom device has been registered: see register_device")
    return registered()[0]


def as_cpu(t: Tensor) -> Tensor:
    """A CPU tensor over the same memory as a tensor of a custom device. RuntimeError for a device whose memory the host cannot address."""
    device = device_of(t)
    if not isinstance(device.interface, HostMemoryInterface):
        raise RuntimeError(f"as_cpu: the host cannot address the memory of {t.device}; .cpu() copies it")
    r = _ops.empty(0, dtype=t.dtype)
    return r.set_(_storage.host_alias(t.untyped_storage()), t.storage_offset(), tuple(t.shape), t.stride())
