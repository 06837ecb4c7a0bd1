"""A registered device type: its devices, streams and generators, its kernels, and what operators without one do."""

from __future__ import annotations

import ctypes
import threading
import warnings
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite.random import Generator
from tensorrt_lite._C.autograd import streams as _node_streams
from tensorrt_lite._C.autograd import workers as _workers
from tensorrt_lite._C.core import custom as _custom
from tensorrt_lite._C.core import device as _names
from tensorrt_lite._C.core import dispatch as _dispatch
from tensorrt_lite._C.core import random as _random
import tensorrt_lite.amp._state as _autocast
from tensorrt_lite.backend import composed, steps, stream_sets
from tensorrt_lite.backend.streams import Event, Stream, StreamContext

if TYPE_CHECKING:
    from collections.abc import Callable

    from tensorrt_lite.backend.interface import DeviceInterface
    from tensorrt_lite.tensor import Tensor

__all__ = ["Device", "DeviceContext", "device_of", "registered"]

_FUNCTION_POINTER = ctypes.CFUNCTYPE(None).__mro__[1]
_by_code: dict[int, Device] = {}


def registered() -> list[Device]:
    """All registered device types, in the order of their registration."""
    return list(_by_code.values())


def device_of(place: Any) -> Device:
    """The registered device type of a device, its name, or a tensor. RuntimeError where it is none."""
    place = place.device if isinstance(place, trt.Tensor) else trt.device(place)
    if place.code not in _by_code:
        raise RuntimeError(f"'{place.type}' is no custom device: tensorrt_lite.backend.register_device makes one")
    return _by_code[place.code]


def _address(function: Any) -> Any:
    """A C function as its address; Python's as they are."""
    return ctypes.cast(function, ctypes.c_void_p).value if isinstance(function, _FUNCTION_POINTER) else function


class _ThreadState(threading.local):
    """A thread's current device, and its current stream by device."""

    def __init__(self) -> None:
        self.index = 0
        self.streams: dict[int, Stream] = {}


class Device:
    """A device type that `register_device` has made. Operators are named as in docs/operators.md; a kernel registered again takes the first one's place."""

    def __init__(self, name: str, interface: DeviceInterface) -> None:
        self.code: int = _names._name_custom_device(name)
        self.name, self.interface = name, interface
        self._thread = _ThreadState()
        self._defaults: dict[int, Stream] = {}
        self._core = core = _custom.CustomDevice(name, self.code)
        core.current_device = self.current_device
        core.device_count = self.device_count
        for function in ("allocate", "release", "to_host", "to_device", "within"):
            setattr(core, function, _address(getattr(interface, function)))
        count = self.device_count()
        if not 0 < count <= 64:
            raise RuntimeError(f"{name}: device_count() is {count}; a type has from 1 to 64 devices")
        _custom._register(core)
        _custom._use_stream_sets(stream_sets)
        _by_code[self.code] = self
        _node_streams.use_custom_devices()
        _workers.use_workers(self.code, self.set_device)
        self.default_generators = tuple(Generator(trt.device(name, i)) for i in range(count))
        for i, generator in enumerate(self.default_generators):
            generator.seed()
            _random.set_device_generator(self.code, i, generator)
        _dispatch._set_step("non_blocking", self.code, _custom._use_non_blocking)
        _autocast.DEVICES[name] = self.code
        for operator, function in composed.KERNELS.items():
            _custom._set_kernel(self.code, operator, function)

    def __repr__(self) -> str:
        return f"Device({self.name!r}, {self.device_count()} device{'s' * (self.device_count() != 1)})"

    # -- devices ---------------------------------------------------------------------------------------------------------

    def device_count(self) -> int:
        """The number of devices of the type."""
        return self.interface.device_count()

    def is_available(self) -> bool:
        """Whether there is a device."""
        return self.device_count() > 0

    def current_device(self) -> int:
        """The index of this thread's current device."""
        return self._thread.index

    def set_device(self, device: Any) -> None:
        """Make a device (index, name or device) this thread's current one; nothing for a negative index."""
        index = self.index_of(device)
        if index >= 0 and index != self._thread.index:
            self._thread.index = index
            self.interface.set_current(index)
            stream_sets.note()

    def index_of(self, device: Any) -> int:
        """The index that an int, a name, a device or None (the current one) means. ValueError for another type, RuntimeError for a device that isn't there."""
        if device is None:
            return self._thread.index
        if isinstance(device, int):
            index = device
        else:
            device = trt.device(device)
            if device.code != self.code:
                raise ValueError(f"Expected a {self.name} device, but got: {device}")
            index = self._thread.index if device.index is None else device.index
        if index >= self.device_count():
            raise RuntimeError(f"{self.name} error: invalid device ordinal {index}: there are {self.device_count()}")
        return index

    def device(self, device: Any) -> DeviceContext:
        """``with npu.device(1):`` the thread's current device inside."""
        return DeviceContext(self, self.index_of(device))

    def synchronize(self, device: Any = None) -> None:
        """Wait for all work of a device, the current one by default."""
        self.interface.synchronize(self.index_of(device))

    # -- streams ---------------------------------------------------------------------------------------------------------

    def Stream(self, device: Any = None, priority: int = 0) -> Stream:  # noqa: N802
        """A new stream of a device, the current one by default."""
        return Stream(trt.device(self.name, self.index_of(device)), priority=priority)

    def Event(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Event:  # noqa: N802
        """A new event."""
        return Event(trt.device(self.name, self._thread.index), enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)

    def default_stream(self, device: Any = None) -> Stream:
        """The stream that work goes to before another is made current."""
        index = self.index_of(device)
        return self._defaults.setdefault(index, Stream._make(self, index, 0))

    def current_stream(self, device: Any = None) -> Stream:
        """This thread's current stream on a device."""
        index = self.index_of(device)
        return self._thread.streams.get(index) or self.default_stream(index)

    def set_stream(self, stream: Stream | None) -> None:
        """Make a stream this thread's current one on its device; nothing for None."""
        if stream is not None:
            if stream._device is not self:
                raise ValueError(f"a stream of {stream.device} is none of {self.name}")
            self._thread.streams[stream._index] = stream
            self.interface.set_current_stream(stream._index, stream.stream_id)
            stream_sets.note()

    def stream(self, stream: Stream | None) -> StreamContext:
        """``with npu.stream(s):`` the thread's work goes to `s` inside."""
        return StreamContext(stream)

    def record_stream(self, tensor: Tensor, stream: Stream) -> None:
        """A tensor's memory is used by work on a stream other than its own; `Tensor.record_stream`."""
        storage = tensor.untyped_storage()
        self.interface.record_stream(storage.data_ptr(), storage.nbytes(), tensor.get_device(), stream.stream_id)

    # -- random numbers --------------------------------------------------------------------------------------------------

    def manual_seed(self, seed: int) -> None:
        """Restart the current device's generator at a seed."""
        self.default_generators[self._thread.index].manual_seed(int(seed))

    def manual_seed_all(self, seed: int) -> None:
        """Restart the generators of all devices at a seed, which `trt.manual_seed` does too."""
        for generator in self.default_generators:
            generator.manual_seed(int(seed))

    def seed(self) -> None:
        """Seed the current device's generator with a number that differs in every call."""
        self.default_generators[self._thread.index].seed()

    def seed_all(self) -> None:
        """Seed all devices' generators with one such number."""
        self.manual_seed_all(self.default_generators[0].seed())

    def initial_seed(self) -> int:
        """The seed of the current device's generator."""
        return self.default_generators[self._thread.index].initial_seed()

    def get_rng_state(self, device: Any = None) -> Tensor:
        """The state of a device's generator as a uint8 tensor of the CPU."""
        return self.default_generators[self.index_of(device)].get_state()

    def set_rng_state(self, new_state: Tensor, device: Any = None) -> None:
        """Continue a device's generator where a state stood."""
        self.default_generators[self.index_of(device)].set_state(new_state)

    def get_rng_state_all(self) -> list[Tensor]:
        """The states of all devices' generators."""
        return [generator.get_state() for generator in self.default_generators]

    def set_rng_state_all(self, new_states: Any) -> None:
        """Continue all devices' generators where states stood."""
        for generator, state in zip(self.default_generators, new_states, strict=True):
            generator.set_state(state)

    def _is_in_bad_fork(self) -> bool:
        return False

    # -- autocast --------------------------------------------------------------------------------------------------------

    def get_amp_supported_dtype(self) -> list[Any]:
        """The dtypes that autocast can cast to on the device."""
        return self.interface.autocast_dtypes()

    # -- kernels ---------------------------------------------------------------------------------------------------------

    def register_kernel(self, operator: str, function: Callable[..., Any] | None) -> None:
        """Give an operator a kernel that does all of it; None takes it away.

        Called with the arguments of the operator's declaration, in order, and where the operator takes one ``out``: a tensor to write to and return, or None.
        ValueError for an operator that does not exist.
        """
        _custom._set_kernel(self.code, operator, function)

    def kernel(self, operator: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """The decorator form of :meth:`register_kernel`."""
        return _decorator(self.register_kernel, operator)

    def register_step(self, name: str, function: Any) -> None:
        """Give the device one step of operators that the package otherwise runs itself: checks, shapes, result and gradient stay; None takes it away.

        name: a pointwise operator, "copy" (of copies, conversions and fills on the device), or a step of `steps()`. A pointwise operator's function is called
        as ``function(result, *operands, *numbers)``: operands have the result's sizes and the type to compute in; a Python number stands for a tensor of one
        element on the host. Another step's has the arguments that `steps()` says: tensors, numbers, and structs as `ctypes` objects over the call's own.
        Both write into tensors that they are given. A C function (a `ctypes` function pointer or its address) has the step's own type, or
        ``trt_device_elementwise`` of ``cysrc/core/device_interface.h``. ValueError for an unknown name.
        """
        function = _address(function)
        if name == "copy" or steps.is_pointwise(name):
            if function is None:
                self._core.elementwise.pop(name, None)
            else:
                self._core.elementwise[name] = function
        else:
            steps.register(self.code, name, function)

    def step(self, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """The decorator form of :meth:`register_step`."""
        return _decorator(self.register_step, name)

    def elementwise(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The kernel of all pointwise operators without one of their own: ``function(name, result, operands, numbers)``, or NotImplemented from it; a decorator.

        Names may also be those of fused derivatives (``sigmoid_backward_self``); where it has none, gradients are composed of other operators.
        """
        self._core.any_elementwise = function
        return function

    # -- operators without a kernel --------------------------------------------------------------------------------------

    def fall_back_to_cpu(self, *operators: str, warn: bool = False) -> None:
        """Operators without a kernel run on the CPU, on copies: those named, or all. What they write goes back to the device; warn: once for each."""
        core = self._core
        core.host_operators = True if not operators else frozenset(operators) | (core.host_operators or frozenset()) if core.host_operators is not True else True
        if not warn:
            core.warn_fallback = None
            return
        seen: set[str] = set()

        def warn_once(operator: str) -> None:
            if operator not in seen:
                seen.add(operator)
                warnings.warn(
                    f"The operator '{operator}' is not currently supported on the {self.name} backend and will fall back to run on the CPU.", UserWarning, stacklevel=4)

        core.warn_fallback = warn_once

    def no_fallback(self) -> None:
        """Operators without a kernel raise NotImplementedError, as before `fall_back_to_cpu`."""
        self._core.host_operators = frozenset()
        self._core.warn_fallback = self._core.fallback = None

    def register_fallback(self, function: Callable[..., Any] | None) -> None:
        """What operators without a kernel call: ``function(operator, *arguments)``, whose result is theirs; None: nothing."""
        self._core.fallback = function


class DeviceContext:
    """A thread's current device for a block of statements."""

    def __init__(self, owner: Device, index: int) -> None:
        self._owner, self.idx, self._outer = owner, index, -1

    def __enter__(self) -> None:
        self._outer = self._owner.current_device()
        self._owner.set_device(self.idx)

    def __exit__(self, *exception: object) -> None:
        self._owner.set_device(self._outer)


def _decorator(register: Callable[[str, Any], None], name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        register(name, function)
        return function

    return decorate
