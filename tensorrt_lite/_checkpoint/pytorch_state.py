"""Attributes that PyTorch's classes keep in their instances, and this package's have no use for.

A whole module or optimizer is written under the alias for PyTorch to read, whose `forward` and `step` look into them. They are computed when a file is
written, from the object as it is then: an instance of this package's does not carry them. Called by `writer`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from typing import Any

import tensorrt_lite as trt

__all__ = ["completed"]


def _module(module: Any) -> dict[str, Any]:
    """The tables of hooks, which ours make when the first hook comes."""
    from tensorrt_lite.nn.modules._hooks import TABLES

    return {**{name: OrderedDict() for name in TABLES}, "_is_full_backward_hook": None}


def _recurrent(module: Any) -> dict[str, Any]:
    names = [name for group in module._all_weights for name in group]
    return {"_flat_weights_names": names, "_flat_weights": [getattr(module, name, None) for name in names]}


def _activation_code(layer: Any) -> int:
    """Which of the activations that its fused encoder layer has: 1 for ReLU, 2 for GELU, 0 for none of them."""
    nn, activation = trt.nn, layer.activation
    if activation is nn.functional.relu or isinstance(activation, nn.ReLU):
        return 1
    return 2 if activation is nn.functional.gelu or isinstance(activation, nn.GELU) else 0


def _encoder_layer(layer: Any) -> dict[str, Any]:
    return {"activation_relu_or_gelu": _activation_code(layer)}


def _encoder(encoder: Any) -> dict[str, Any]:
    """Whether padded batches may go as nested tensors: only into layers that the fused one stands for."""
    layer = encoder.layers[0] if len(encoder.layers) else None
    fits = isinstance(layer, trt.nn.TransformerEncoderLayer) and bool(
        not layer.norm_first
        and layer.self_attn.batch_first
        and layer.self_attn.in_proj_bias is not None
        and layer.self_attn._qkv_same_embed_dim
        and layer.self_attn.num_heads % 2 == 0
        and _activation_code(layer)
        and layer.norm1.eps == layer.norm2.eps
    )
    return {"use_nested_tensor": bool(encoder.enable_nested_tensor) and fits}


def _lbfgs(optimizer: Any) -> dict[str, Any]:
    # PyTorch's own files go without them, and its `step` fails after loading one; its __setstate__ takes what there is
    return {"_params": optimizer.param_groups[0]["params"], "_numel_cache": None}


# class: (its attributes, whether they replace what the state has)
@cache
def _table() -> tuple[tuple[type, Callable[[Any], dict[str, Any]], bool], ...]:
    nn = trt.nn
    return (
        (nn.Module, _module, False),
        (nn.RNNBase, _recurrent, True),
        (nn.TransformerEncoderLayer, _encoder_layer, True),
        (nn.TransformerEncoder, _encoder, True),
        (trt.optim.LBFGS, _lbfgs, True),
    )


def completed(instance: Any, state: dict[str, Any]) -> dict[str, Any]:
    """The state of a module or optimizer with what PyTorch's class of its name expects there."""
    for kind, attributes, replace in _table():
        if isinstance(instance, kind):
            state = {**state, **attributes(instance)} if replace else {**attributes(instance), **state}
    return state
