"""Weights of convolutions in another memory format."""

from __future__ import annotations

from typing import Any

from ..modules import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Any, memory_format: Any, layers: tuple[type, ...]) -> Any:
    if isinstance(module, layers):
        module.weight.data = module.weight.detach().clone().contiguous(memory_format=memory_format)
    for child in module.children():
        _convert(child, memory_format, layers)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Give the weights of all Conv2d and ConvTranspose2d below the module a memory format, trt.channels_last say. Returns the module.

    Parameters:
        module (Module): the layer
        memory_format: (memory_format) such as trt.channels_last

    Example:
        >>> import tensorrt_lite as trt
        >>> conv = trt.nn.utils.convert_conv2d_weight_memory_format(trt.nn.Conv2d(3, 4, 3), trt.channels_last)
        >>> conv.weight.is_contiguous(memory_format=trt.channels_last)
        True
    """
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Give the weights of all Conv3d and ConvTranspose3d below the module a memory format, trt.channels_last_3d say. Returns the module.

    Parameters:
        module (Module): the layer
        memory_format: (memory_format) such as trt.channels_last

    Example:
        >>> import tensorrt_lite as trt
        >>> conv = trt.nn.utils.convert_conv3d_weight_memory_format(trt.nn.Conv3d(3, 4, 3), trt.channels_last_3d)
        >>> conv.weight.is_contiguous(memory_format=trt.channels_last_3d)
        True
    """
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
