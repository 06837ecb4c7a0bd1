"""Attributes that PyTorch's classes keep in their instances, and this package's have no use for.

A whole module or optimizer is written under the alias for PyTorch to read, whose `forward` and `step` look into them. They are computed when a file is
written, from the object as it is then: an instance of this package's does not carry them. Called by `writer`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from typing import Any

from tensorrt_lite._C.core.hints import LazyModule

_nn = LazyModule("tensorrt_lite.nn")
_optim = LazyModule("tensorrt_lite.optim")
_hooks = LazyModule("tensorrt_lite.nn.modules._hooks")
_transformer = LazyModule("tensorrt_lite.nn.modules.transformer")

__all__ = ["completed"]


def _module(module: Any) -> dict[str, Any]:
    """The tables of hooks, which ours make when the first hook comes."""
    return {**{name: OrderedDict() for name in _hooks.TABLES}, "_is_full_backward_hook": None}


def _recurrent(module: Any) -> dict[str, Any]:
    names = [name for group in module._all_weights for name in group]
    return {"_flat_weights_names": names, "_flat_weights": [getattr(module, name, None) for name in names]}


def _encoder_layer(layer: Any) -> dict[str, Any]:
    return {"activation_relu_or_gelu": _transformer.fused_activation(layer)}


def _encoder(encoder: Any) -> dict[str, Any]:
    return {"use_nested_tensor": bool(encoder.enable_nested_tensor and len(encoder.layers) and _transformer.takes_nested_batches(encoder.layers[0]))}


def _lbfgs(optimizer: Any) -> dict[str, Any]:
    # PyTorch's own files go without them, and its `step` fails after loading one; its __setstate__ takes what there is
    return {"_params": optimizer.param_groups[0]["params"], "_numel_cache": None}


# class: (its attributes, whether they replace what the state has)
@cache
def _table() -> tuple[tuple[type, Callable[[Any], dict[str, Any]], bool], ...]:
    return (
        (_nn.Module, _module, False),
        (_nn.RNNBase, _recurrent, True),
        (_nn.TransformerEncoderLayer, _encoder_layer, True),
        (_nn.TransformerEncoder, _encoder, True),
        (_optim.LBFGS, _lbfgs, True),
    )


def completed(instance: Any, state: dict[str, Any]) -> dict[str, Any]:
    """The state of a module or optimizer with what PyTorch's class of its name expects there."""
    for kind, attributes, replace in _table():
        if isinstance(instance, kind):
            state = {**state, **attributes(instance)} if replace else {**attributes(instance), **state}
    return state
