"""Gradient clipping, parameter vectors, modules without initialisation, calls with other parameters, parametrized and pruned ones (imported on first use)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from tensorrt_lite._C.core.hints import LookUp as _LookUp
from . import rnn, stateless
from .clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .convert_parameters import parameters_to_vector, vector_to_parameters
from .init import skip_init
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")

if TYPE_CHECKING:
    from . import parametrizations, parametrize, prune
    from .fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights
    from .memory_format import convert_conv2d_weight_memory_format, convert_conv3d_weight_memory_format
    from .spectral_norm import remove_spectral_norm, spectral_norm
    from .weight_norm import remove_weight_norm, weight_norm

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]

_MODULES = ("fusion", "memory_format", "parametrizations", "parametrize", "prune")
_MODULE_OF = {
    **dict.fromkeys(("fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"), "fusion"),
    **dict.fromkeys(("convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"), "memory_format"),
    **dict.fromkeys(("remove_spectral_norm", "spectral_norm"), "spectral_norm"),
    **dict.fromkeys(("remove_weight_norm", "weight_norm"), "weight_norm"),
}


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"{__package__}.{name}")
    if name in _MODULE_OF:
        # the import puts the module here, whose name may be a function's: all of the module's functions take their places at once
        module = import_module(f"{__package__}.{_MODULE_OF[name]}")
        globals().update({n: getattr(module, n) for n, home in _MODULE_OF.items() if home == _MODULE_OF[name]})
        value = globals()[name]
        return value

    raise _missing.error("nn.utils", name)


globals()["__getattr__"] = _LookUp(__getattr__)


def __dir__() -> list[str]:
    return _listing.public(globals())
