"""Copies of a module on several devices, and their calls at the same time."""

from __future__ import annotations

import threading
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import set_grad_enabled
from tensorrt_lite._C.core.hints import LazyModule

from ..parameter import is_lazy

_amp = LazyModule("tensorrt_lite.amp")
_amp_state = LazyModule("tensorrt_lite.amp._state")

__all__ = ["parallel_apply", "replicate"]


def replicate(network: Any, devices: Any, detach: bool = False) -> list[Any]:
    """The network on each device. Parameters of the copies are copies of its own, which gradients pass to unless `detach`; buffers are copied without."""
    if any(is_lazy(p) for p in network.parameters()):
        raise RuntimeError("Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to correctly initialize the modules")
    places = [trt.device("cuda", d) if isinstance(d, int) else trt.device(d) for d in devices]
    replicas = []
    for place in places:
        copies: dict[int, Any] = {}
        tensors: dict[int, Any] = {}
        for module in network.modules():
            made = copies[id(module)] = module._replicate_for_data_parallel()
            made._former_parameters = {}
        for module in network.modules():
            made = copies[id(module)]
            for name, child in module._modules.items():
                made._modules[name] = None if child is None else copies[id(child)]
            for name, param in module._parameters.items():
                if param is not None:
                    if id(param) not in tensors:
                        tensors[id(param)] = (param.detach() if detach else param).to(place)
                    # no leaf, so no Parameter
                    made.__dict__[name] = made._former_parameters[name] = tensors[id(param)]
            for name, buffer in module._buffers.items():
                if buffer is not None:
                    if id(buffer) not in tensors:
                        tensors[id(buffer)] = buffer.detach().to(place)
                    made._buffers[name] = tensors[id(buffer)]
        replicas.append(copies[id(network)])
    return replicas


def parallel_apply(modules: Any, inputs: Any, kwargs_tup: Any = None, devices: Any = None) -> list[Any]:
    """[module(*input, **kwargs)] of each, in threads. What one raises is raised here, the first one's."""
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    kwargs_tup = ({},) * len(modules) if kwargs_tup is None else kwargs_tup
    grad, results = trt.is_grad_enabled(), [None] * len(modules)
    failures: list[BaseException | None] = [None] * len(modules)
    autocast = _amp_state.is_autocast_enabled()

    def work(i: int) -> None:
        args = inputs[i] if isinstance(inputs[i], (list, tuple)) else (inputs[i],)
        try:
            with set_grad_enabled(grad), _amp.autocast("cuda", enabled=autocast):
                results[i] = modules[i](*args, **kwargs_tup[i])
        except BaseException as error:
            failures[i] = error

    if len(modules) == 1:
        work(0)
    else:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(modules))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for error in failures:
        if error is not None:
            raise error
    return results
