"""Dropout functions. The channel-wise and the alpha forms draw PyTorch's noise in PyTorch's order."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite import _ops

if TYPE_CHECKING:
    from tensorrt_lite import Tensor


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each element with probability p and scales the rest by 1 / (1 - p); the input itself in evaluation."""
    if p < 0.0 or p > 1.0:
        _check_probability(p)
    return _ops.dropout_(input, p, training) if inplace else _ops.dropout(input, p, training)


def _noise_like_channels(input: Any) -> Any:
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return input.detach().new_empty((input.size(0), input.size(1)) + (1,) * (input.dim() - 2))


def _feature_dropout(input: Any, p: float, training: bool, inplace: bool) -> Any:
    """Dropout of whole channels: input (N, C, *)."""
    if p == 0 or not training or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * trt.zeros((), dtype=input.dtype, device=input.device)
    noise = _noise_like_channels(input).bernoulli_(1 - p).div_(1 - p)
    return input.mul_(noise) if inplace else input * noise


# E[selu(x)] at -infinity is -scale * alpha: what alpha dropout puts in the place of dropped elements.
_ALPHA = 1.7580993408473766


def _alpha_dropout(input: Any, p: float, training: bool, inplace: bool, by_channel: bool) -> Any:
    if p == 0 or not training or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * trt.zeros((), dtype=input.dtype, device=input.device)
    noise = (_noise_like_channels(input) if by_channel else trt.empty_like(input)).bernoulli_(1 - p)
    scale = 1.0 / ((_ALPHA * _ALPHA * p + 1) * (1 - p)) ** 0.5
    shift = noise.add(-1).mul_(_ALPHA * scale).add_(_ALPHA * scale * p)
    noise = noise.mul_(scale)
    return (input.mul_(noise) if inplace else input * noise).add_(shift)


def alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance of SELU networks (Klambauer et al. 2017, section 3)."""
    _check_probability(p)
    return _alpha_dropout(input, p, training, inplace, by_channel=False)


def feature_alpha_dropout(input: Any, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels: input (N, C, *)."""
    _check_probability(p)
    return _alpha_dropout(input, p, training, inplace, by_channel=True)


def dropout1d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drops whole channels of input (N, C, L) or (C, L)."""
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that dropout1d exists to provide "
            "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch "
            "dimension (i.e. 2D or 3D inputs)."
        )
    if ndim == 3:
        return _feature_dropout(input, p, training, inplace)
    batch = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = _feature_dropout(batch, p, training, inplace)
    return result.squeeze_(0) if inplace else result.squeeze(0)


def dropout2d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drops whole channels of input (N, C, H, W)."""
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (3, 4):
        _warn_dropout_ndim("dropout2d", ndim, "3D or 4D", "2 spatial dimensions")
    if ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired "
            "- input is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a "
            "future release to interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain "
            "the 1D channel-wise dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _feature_dropout(input, p, training, inplace)


def dropout3d(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Drops whole channels of input (N, C, D, H, W) or (C, D, H, W)."""
    _check_probability(p)
    ndim = input.dim()
    if ndim not in (4, 5):
        _warn_dropout_ndim("dropout3d", ndim, "4D or 5D", "3 spatial dimensions")
    if ndim != 4:
        return _feature_dropout(input, p, training, inplace)
    batch = input.unsqueeze_(0) if inplace else input.unsqueeze(0)
    result = _feature_dropout(batch, p, training, inplace)
    return result.squeeze_(0) if inplace else result.squeeze(0)


def _warn_dropout_ndim(name: str, ndim: int, expected: str, spatial: str) -> None:
    warnings.warn(
        f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an error in a future "
        f"release. To retain the behavior and silence this warning, please use dropout instead. Note that {name} "
        f"exists to provide channel-wise dropout on inputs with {spatial}, a channel dimension, and an optional batch "
        f"dimension (i.e. {expected} inputs).",
        stacklevel=3,
    )
