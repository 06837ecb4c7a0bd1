"""Tensors inside of any lists, tuples and dictionaries, shared out to devices and brought together again. Gradients pass, as copies between devices record."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt

__all__ = ["gather", "scatter", "scatter_kwargs"]


def scatter(inputs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """`inputs` for each device: tensors are cut along dim into as many chunks, other things are repeated. Fewer chunks than devices give fewer results."""
    devices = [trt.device("cuda", d) if isinstance(d, int) else trt.device(d) for d in target_gpus]

    def share(value: Any) -> list[Any]:
        if isinstance(value, trt.Tensor):
            return [part.to(device) for part, device in zip(value.chunk(len(devices), dim), devices)]
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return [type(value)(*parts) for parts in zip(*map(share, value))]
        if isinstance(value, (tuple, list)) and value:
            return [type(value)(parts) for parts in zip(*map(share, value))]
        if isinstance(value, dict) and value:
            return [type(value)(parts) for parts in zip(*map(share, value.items()))]
        return [value for _ in devices]

    return share(inputs)


def scatter_kwargs(inputs: Any, kwargs: Any, target_gpus: Any, dim: int = 0) -> Any:
    """(positional arguments, keyword arguments) for each device, as many of both."""
    args = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    count = max(len(args), len(named))
    args += [()] * (count - len(args))
    named += [{}] * (count - len(named))
    return tuple(args), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """The devices' outputs as one on target_device (a number: of CUDA, -1: the CPU): tensors are joined along dim, those without dimensions become a vector."""
    first = outputs[0]
    if isinstance(first, trt.Tensor):
        if isinstance(target_device, int):
            target_device = trt.device("cpu") if target_device == -1 else trt.device("cuda", target_device)
        if any(not isinstance(o, trt.Tensor) for o in outputs):
            raise TypeError("gather(): expected a tensor from every device")
        if all(o.dim() == 0 for o in outputs):
            return trt.stack([o.to(target_device) for o in outputs])
        return trt.cat([o.to(target_device) for o in outputs], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(o) != len(first) for o in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([o[key] for o in outputs], target_device, dim)) for key in first)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(gather(parts, target_device, dim) for parts in zip(*outputs)))
    return type(first)(gather(parts, target_device, dim) for parts in zip(*outputs))
