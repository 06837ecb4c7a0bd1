"""DLPack: tensors shared with other array libraries without a copy, both ways. The capsules are made in core/dlpack.pyx.

A capsule keeps the memory alive until its consumer releases it; a tensor made from a capsule keeps the producer's
memory alive for as long as its storage lives. Imported on first use.
"""

from __future__ import annotations

from typing import Any

from tensorrt_lite._C.core import dlpack as _core
from tensorrt_lite._C.core.device import device as _device
from tensorrt_lite._C.core.tensor import TensorBase

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor: Any) -> Any:
    """A DLPack capsule over the tensor's memory. BufferError for tensors that have none (meta, lazy conjugates)."""
    if not isinstance(tensor, TensorBase):
        raise TypeError(f"to_dlpack(): argument 'tensor' must be Tensor, not {type(tensor).__name__}")
    return _core.to_capsule(tensor, False, False)


def export(tensor: Any, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: Any = None, copy: bool | None = None) -> Any:
    """``Tensor.__dlpack__``: a versioned capsule when the consumer understands version 1."""
    if tensor.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if stream is not None and tensor.is_cpu:
        raise AssertionError("stream should be None on cpu.")
    if tensor.is_cuda and stream != -1:
        _let_wait(stream, tensor.get_device())
    if dl_device is not None and tuple(int(v) for v in dl_device) != device_of(tensor):
        raise BufferError(f"can't export a tensor on {tensor.device} to DLPack device {tuple(int(v) for v in dl_device)}")
    if copy:
        tensor = tensor.clone()
    return _core.to_capsule(tensor, max_version is not None and tuple(max_version) >= (1, 0), bool(copy))


def device_of(tensor: Any) -> tuple[int, int]:
    """``Tensor.__dlpack_device__``: (kDLCPU, 0) or (kDLCUDA, index)."""
    if tensor.is_cuda:
        return (2, tensor.get_device())
    if not tensor.is_cpu:
        raise ValueError(f"Unknown device type {tensor.device.type} for Dlpack")
    return (1, 0)


def _let_wait(stream: int | None, device: int) -> None:
    """A consumer's stream (None and 1: the default one) waits for what the current stream has been given."""
    from tensorrt_lite.cuda import streams

    handle = 0 if stream in (None, 1) else stream
    if handle == 2 or handle == 0 and stream == 0:
        raise BufferError(f"__dlpack__: unsupported stream {stream}")
    current = streams.current_stream(device)
    if handle != current.cuda_stream:
        streams.ExternalStream(handle, device).wait_stream(current)


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    """A tensor over the memory of an object with ``__dlpack__`` or of a capsule (which is consumed).

    RuntimeError for a capsule consumed before, BufferError for devices and layouts this library can't read.
    """
    if device is not None and _device(device).type not in ("cpu", "cuda"):
        raise BufferError(f"from_dlpack: can't import to device {device}")
    if not hasattr(type(ext_tensor), "__dlpack__"):
        tensor = _core.from_capsule(ext_tensor)
        return tensor.clone() if copy else tensor
    kind, index = ext_tensor.__dlpack_device__()
    if int(kind) not in (1, 2, 3):
        raise BufferError(f"from_dlpack: DLPack device ({int(kind)}, {index}) is not supported, only the CPU's (1, 0) and CUDA's (2, index) are")
    wanted = {} if copy is None else {"copy": copy}
    if int(kind) == 2:
        from tensorrt_lite.cuda import is_available, streams

        if not is_available():
            raise BufferError(f"from_dlpack: DLPack device (2, {index}) cannot be reached: no CUDA device is available")
        # the producer makes our stream wait for its work; 1 names the default stream
        wanted["stream"] = streams.current_stream(index).cuda_stream or 1
    try:
        capsule = ext_tensor.__dlpack__(max_version=(1, 0), **wanted)
    except TypeError:
        # producers of before version 1 know no keywords
        capsule = ext_tensor.__dlpack__()
        tensor = _core.from_capsule(capsule)
        return tensor.clone() if copy else tensor
    return _core.from_capsule(capsule)
