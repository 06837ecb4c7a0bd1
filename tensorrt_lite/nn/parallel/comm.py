"""Tensors sent to several devices of one process and brought together again. Devices are numbers (of CUDA), names or devices; gradients pass."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt

__all__ = ["broadcast", "broadcast_coalesced", "gather", "reduce_add", "reduce_add_coalesced", "scatter"]


def _place(device: Any) -> Any:
    return trt.device("cuda", device) if isinstance(device, int) else trt.device(device)


def _one_of(devices: Any, out: Any, name: str) -> None:
    if (devices is None) == (out is None):
        raise RuntimeError(f"{name}(): expects exactly one of 'devices' and 'out', but got devices={devices} and out={'given' if out is not None else None}")


def broadcast(tensor: Any, devices: Any = None, *, out: Any = None) -> tuple[Any, ...]:
    """A copy of the tensor on each device, on its own the tensor itself; or written into the tensors of `out`."""
    _one_of(devices, out, "broadcast")
    if out is not None:
        return tuple(target.copy_(tensor) for target in out)
    return tuple(tensor.to(_place(device)) for device in devices)


def broadcast_coalesced(tensors: Any, devices: Any, buffer_size: int = 10485760) -> list[tuple[Any, ...]]:
    """For each device a tuple of copies of the tensors. buffer_size: accepted without effect, tensors go one by one."""
    return [tuple(tensor.to(_place(device)) for tensor in tensors) for device in devices]


def reduce_add(inputs: Any, destination: Any = None) -> Any:
    """The sum of tensors of one shape on different devices, on `destination` (None: where the first is). RuntimeError for none, ValueError for other shapes."""
    inputs = list(inputs)
    if not inputs:
        raise RuntimeError("reduce_add expects at least one input")
    shape = inputs[0].shape
    for position, tensor in enumerate(inputs):
        if tensor.shape != shape:
            raise ValueError(f"input {position} has invalid size: got {tensor.shape}, but expected {shape}")
    target = inputs[0].device if destination is None else _place(destination)
    result = inputs[0].to(target)
    for tensor in inputs[1:]:
        result = result + tensor.to(target)
    return result


def reduce_add_coalesced(inputs: Any, destination: Any = None, buffer_size: int = 10485760) -> tuple[Any, ...]:
    """inputs: for each device a list of tensors. The sums of the first ones, of the second ones and so on. buffer_size: accepted without effect."""
    return tuple(reduce_add(tensors, destination) for tensors in zip(*inputs, strict=True))


def scatter(tensor: Any, devices: Any = None, chunk_sizes: Any = None, dim: int = 0, streams: Any = None, *, out: Any = None) -> tuple[Any, ...]:
    """The tensor cut along dim, a chunk for each device, as long as chunk_sizes says; or into the tensors of `out`. streams: accepted without effect."""
    _one_of(devices, out, "scatter")
    if out is not None:
        if chunk_sizes is not None:
            raise RuntimeError("scatter(): 'chunk_sizes' must not be given when 'out' is")
        parts = tensor.split([target.size(dim) for target in out], dim)
        return tuple(target.copy_(part) for target, part in zip(out, parts, strict=True))
    places = [_place(device) for device in devices]
    parts = tensor.chunk(len(places), dim) if chunk_sizes is None else tensor.split(list(chunk_sizes), dim)
    if chunk_sizes is not None and len(parts) != len(places):
        raise RuntimeError(f"scatter(): expected chunk_sizes for {len(places)} devices, but got {len(parts)}")
    return tuple(part.to(place) for part, place in zip(parts, places, strict=False))


def gather(tensors: Any, dim: int = 0, destination: Any = None, *, out: Any = None) -> Any:
    """The tensors joined along dim on `destination` (None: the current CUDA device, -1: the CPU), or in `out`."""
    if out is not None:
        if destination is not None:
            raise RuntimeError("gather(): 'destination' must not be given when 'out' is")
        return out.copy_(trt.cat([tensor.to(out.device) for tensor in tensors], dim))
    place = trt.device("cuda") if destination is None else trt.device("cpu") if destination == -1 else _place(destination)
    return trt.cat([tensor.to(place) for tensor in tensors], dim)
