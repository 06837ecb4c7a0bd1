"""DataParallel: a batch shared out to the devices of one process."""

from __future__ import annotations

from itertools import chain
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule

from ..modules.module import Module
from .scatter_gather import gather, scatter_kwargs
from .replicate import parallel_apply, replicate

_cuda = LazyModule("tensorrt_lite.cuda")

__all__ = ["DataParallel", "data_parallel"]


def _index_of(device: Any) -> int:
    return device if isinstance(device, int) else trt.device(device).index or 0


class DataParallel(Module):
    """Calls the module on chunks of the batch, a copy of it on each CUDA device, and joins the outputs. Without CUDA, or on one device, it calls the module.

    device_ids: all by default. output_device: where the outputs are joined, by default the first, which the module's parameters and buffers must be on
    (RuntimeError). dim: of the batch. The module itself is `.module`.

    Parameters:
        module (Module): the module
        device_ids (list or None, default None): the GPUs; None is all
        output_device (device or None, default None): where the outputs are joined; None is the first GPU
        dim (int, default 0): the dimension of the batch

    >>> import tensorrt_lite as trt
    >>> device = "cuda" if trt.cuda.is_available() else "cpu"
    >>> model = trt.nn.DataParallel(trt.nn.Linear(3, 2).to(device))
    >>> model(trt.randn(8, 3, device=device)).shape
    torch.Size([8, 2])
    >>> list(model.state_dict())
    ['module.weight', 'module.bias']
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        self.module = module
        self.dim = dim
        if device_ids is None and _cuda.is_available():
            device_ids = list(range(_cuda.device_count()))
        if not device_ids or not _cuda.is_available():
            self.device_ids: list[int] = []
            return
        self.device_ids = [_index_of(d) for d in device_ids]
        self.output_device = _index_of(self.device_ids[0] if output_device is None else output_device)
        self.src_device_obj = trt.device("cuda", self.device_ids[0])
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        _check_place(self.module, self.src_device_obj)
        args, named = self.scatter(inputs, kwargs, self.device_ids)
        if not args:
            args, named = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*args[0], **named[0])
        replicas = self.replicate(self.module, self.device_ids[: len(args)])
        outputs = self.parallel_apply(replicas, args, named)
        return self.gather(outputs, self.output_device)

    # the steps of forward, which subclasses replace

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Any) -> Any:
        """The arguments and keyword arguments of each device: tensors in chunks along `dim`."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def replicate(self, module: Module, device_ids: Any) -> Any:
        """The module on each device."""
        return replicate(module, device_ids, not trt.is_grad_enabled())

    def parallel_apply(self, replicas: Any, inputs: Any, kwargs: Any) -> Any:
        """What each copy gives for its arguments, in threads of their own."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """The outputs joined along `dim` on one device."""
        return gather(outputs, output_device, self.dim)


def _check_place(module: Module, place: Any) -> None:
    for tensor in chain(module.parameters(), module.buffers()):
        if tensor.device != place:
            raise RuntimeError(f"module must have its parameters and buffers on device {place} (device_ids[0]) but found one of them on device: {tensor.device}")


def data_parallel(module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0, module_kwargs: Any = None) -> Any:
    """module(*inputs, **module_kwargs) on several CUDA devices, as DataParallel does it."""
    args = inputs if isinstance(inputs, tuple) else (inputs,) if inputs is not None else ()
    if device_ids is None:
        device_ids = list(range(_cuda.device_count())) if _cuda.is_available() else []
    if not device_ids:
        return module(*args, **(module_kwargs or {}))
    return DataParallel(module, device_ids, output_device, dim)(*args, **(module_kwargs or {}))
