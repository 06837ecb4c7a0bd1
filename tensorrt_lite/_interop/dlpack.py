"""DLPack: tensors shared with other array libraries without a copy, both ways. The capsules are made in core/dlpack.pyx.

A capsule keeps the memory alive until its consumer releases it; a tensor made from a capsule keeps the producer's
memory alive for as long as its storage lives. Imported on first use.
"""

from __future__ import annotations

from typing import Any

from tensorrt_lite._C.core import dlpack as _core
from tensorrt_lite._C.core.device import device as _device
from tensorrt_lite._C.core.python_key import materialize
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_streams = _LazyModule("tensorrt_lite.cuda.streams")
_cuda = _LazyModule("tensorrt_lite.cuda")

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Any) -> Any:
    """A DLPack capsule over the tensor's memory. BufferError for tensors that have none (meta, lazy conjugates).

    Parameters:
        tensor (Tensor): the tensor

    Example:
        >>> import tensorrt_lite as trt
        >>> capsule = trt.to_dlpack(trt.tensor([1.0, 2.0]))
        >>> trt.from_dlpack(capsule)
        tensor([1., 2.])
    """
    if not isinstance(tensor, TensorBase):
        raise TypeError(f"to_dlpack(): argument 'tensor' must be Tensor, not {type(tensor).__name__}")
    return _core.to_capsule(materialize(tensor, "to_dlpack"), -1, False)


def export(tensor: Any, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: Any = None, copy: bool | None = None) -> Any:
    """``Tensor.__dlpack__``: a versioned capsule when the consumer understands version 1; on dl_device, copied where that is another device."""
    tensor = materialize(tensor, "__dlpack__")
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if stream not in (None, -1) and tensor.is_cpu:
        raise AssertionError("stream should be None on cpu.")
    if tensor.is_cuda and stream != -1:
        _let_wait(stream, tensor.get_device())
    source = tensor
    if dl_device is not None and (wanted := (int(dl_device[0]), int(dl_device[1]))) != device_of(tensor):
        if copy is False:
            raise ValueError(f"cannot move DLPack tensor from device {device_of(tensor)} to {wanted} without copying. Set copy=None or copy=True.")
        tensor = tensor.to(_reachable(wanted, "__dlpack__"))
    elif copy:
        tensor = tensor.clone()
    return _core.to_capsule(
        tensor, -1 if max_version is None or max_version[0] < 1 else max_version[1] if max_version[0] == 1 else 9, tensor is not source
    )


def device_of(tensor: Any) -> tuple[int, int]:
    """``Tensor.__dlpack_device__``: (kDLCPU, 0) or (kDLCUDA, index)."""
    if tensor.is_cuda:
        return (2, tensor.get_device())
    if not tensor.is_cpu:
        raise ValueError(f"Unknown device type {tensor.device.type} for Dlpack")
    return (1, 0)


def current_stream(index: int) -> int:
    """The address of a CUDA device's current stream, 0 for the default one."""
    return _streams.current_stream(index).cuda_stream


def _reachable(place: tuple[int, int], where: str) -> Any:
    """The device of DLPack's numbers. BufferError for one that cannot be had here."""
    if place[0] in (1, 3):
        return _device("cpu")
    if place[0] != 2:
        raise BufferError(f"{where}: DLPack device {place} is not supported, only the CPU's (1, 0) and CUDA's (2, index) are")
    if not _cuda.is_available() or place[1] >= _cuda.device_count():
        raise BufferError(
            f"{where}: DLPack device {place} cannot be reached: {'no CUDA device is available' if not _cuda.is_available() else 'there is no such device'}"
        )
    return _device("cuda", place[1])


def _let_wait(stream: int | None, device: int) -> None:
    """A consumer's stream (None and 1: the default one) waits for what the current stream has been given."""
    handle = 0 if stream in (None, 1) else stream
    if handle == 2 or handle == 0 and stream == 0:
        raise BufferError(f"__dlpack__: unsupported stream {stream}")
    current = _streams.current_stream(device)
    if handle != current.cuda_stream:
        _streams.ExternalStream(handle, device).wait_stream(current)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """A tensor over the memory of an object with ``__dlpack__`` or of a capsule (which is consumed).

    device: where the tensor is wanted (it is copied to another one); copy: True always copies, False never does (ValueError where it would have to).
    RuntimeError for a capsule consumed before, BufferError for devices and layouts this library can't read.

    Parameters:
        ext_tensor (object): an array of another library, or a DLPack capsule
        device (device or None, default None): where the result is; None keeps the array's device
        copy (bool or None, default None): whether it is copied; None copies only where it must

    Example:
        >>> import tensorrt_lite as trt
        >>> import numpy
        >>> trt.from_dlpack(numpy.arange(3.0))
        tensor([0., 1., 2.], dtype=torch.float64)
    """
    target = None if device is None else _device(device)
    if target is not None and target.type not in ("cpu", "cuda"):
        raise BufferError(f"from_dlpack: can't import to device {device}")
    if not hasattr(type(ext_tensor), "__dlpack__"):
        return _moved(_core.from_capsule(ext_tensor), target, copy, False)
    place = (int(ext_tensor.__dlpack_device__()[0]), int(ext_tensor.__dlpack_device__()[1]))
    source = _reachable(place, "from_dlpack")
    if copy is False and target is not None and (target.type != source.type or target.index not in (None, source.index)):
        raise ValueError(f"cannot move DLPack tensor from device {source} to {target} without copying. Set copy=None or copy=True.")
    options: dict[str, Any] = {"max_version": (1, 3)} | ({} if copy is None else {"copy": copy})
    if place[0] == 2:
        options["stream"] = current_stream(place[1]) or 1  # the producer makes our stream wait for its work; 1 names the default stream
    # producers of before version 1 know neither of the two
    for unknown in ((), ("max_version",), ("max_version", "copy")):
        wanted = {key: value for key, value in options.items() if key not in unknown}
        try:
            capsule = ext_tensor.__dlpack__(**wanted)
        except TypeError:
            if unknown == ("max_version", "copy"):
                raise
            continue
        return _moved(_core.from_capsule(capsule), target, copy, "copy" in wanted)
    raise AssertionError("unreachable")


def _moved(tensor: Any, device: Any, copy: bool | None, copied: bool) -> Any:
    """The tensor on a device (None: its own), copied where that is wanted and the producer has not done it."""
    moved = tensor if device is None else tensor.to(device)
    if moved is tensor:
        return tensor.clone() if copy and not copied else tensor
    if copy is False:
        raise ValueError(f"cannot move DLPack tensor from device {tensor.device} to {moved.device} without copying. Set copy=None or copy=True.")
    return moved
