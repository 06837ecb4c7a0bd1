"""Making a module without filling its parameters."""

from __future__ import annotations

import inspect
from typing import Any

from tensorrt_lite.nn.modules.module import Module


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """module_cls(*args, **kwargs) with undefined values in its parameters and buffers, for one that will be loaded or filled anyway.

    RuntimeError for what is no Module class and for a class whose __init__ takes no `device`.

    Parameters:
        module_cls (type): the class of the layer
        *args: its arguments
        **kwargs: its keyword arguments

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.utils.skip_init(trt.nn.Linear, 3, 2)
        Linear(in_features=3, out_features=2, bias=True)
    """
    if not (isinstance(module_cls, type) and issubclass(module_cls, Module)):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
