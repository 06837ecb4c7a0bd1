"""Switches for how modules convert their parameters (`torch.__future__`).

>>> import tensorrt_lite as trt
>>> layer = trt.nn.Linear(2, 1)
>>> weight = layer.weight
>>> trt.__future__.set_overwrite_module_params_on_conversion(True)
>>> layer.double().weight is weight
False
>>> trt.__future__.set_overwrite_module_params_on_conversion(False)
"""

from __future__ import annotations

import tensorrt_lite.nn.modules._conversion as _conversion

__all__ = [
    "get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion", "set_overwrite_module_params_on_conversion",
    "set_swap_module_params_on_conversion",
]  # fmt: skip


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether `Module.to` and its kin make new parameters instead of exchanging the data of those that there are."""
    _conversion.overwrites = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What set_overwrite_module_params_on_conversion was called with, False without."""
    return _conversion.overwrites


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether `Module.to`, its kin and `Module.load_state_dict` use `utils.swap_tensors`: a parameter stays the same object and may change its class.
    It comes before set_overwrite_module_params_on_conversion."""
    _conversion.swaps = value


def get_swap_module_params_on_conversion() -> bool:
    """What set_swap_module_params_on_conversion was called with, False without."""
    return _conversion.swaps
