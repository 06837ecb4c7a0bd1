"""Batch normalisation in evaluation folded into the layer before it."""

from __future__ import annotations

import copy
from typing import Any

from tensorrt_lite import _root as trt

from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of the convolution that does what both do in evaluation. AssertionError when one is in training or the statistics are absent.

    Parameters:
        conv (Module): the convolution, in evaluation
        bn (Module): the batch normalisation, in evaluation
        transpose (bool, default False): whether it is a transposed convolution

    Example:
        >>> import tensorrt_lite as trt
        >>> conv, bn = trt.nn.Conv2d(3, 4, 3).eval(), trt.nn.BatchNorm2d(4).eval()
        >>> fused, x = trt.nn.utils.fuse_conv_bn_eval(conv, bn), trt.randn(1, 3, 8, 8)
        >>> trt.allclose(fused(x), bn(conv(x)), atol=1e-5)
        True
    """
    _check_eval(conv, bn, "Fusion only for eval!")
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose)
    return fused


def fuse_conv_bn_weights(conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False) -> tuple[Any, Any]:
    """Weight and bias of a convolution followed by a normalisation with mean bn_rm, variance bn_rv, weight bn_w and bias bn_b (None: 1 and 0).

    conv_w: (out, in, *kernel), or (in, out, *kernel) for `transpose`. Returns Parameters of conv_w's dtype and conv_b's (conv_w's without one).

    Parameters:
        conv_w (Tensor): the weight
        conv_b (Tensor or None): the bias
        bn_rm (Tensor): the running mean
        bn_rv (Tensor): the running variance
        bn_eps (float): added to the variance
        bn_w (Tensor or None): the factor of each channel
        bn_b (Tensor or None): what is added to each channel
        transpose (bool, default False): whether it is a transposed convolution

    Example:
        >>> import tensorrt_lite as trt
        >>> one = trt.ones(1)
        >>> weight, bias = trt.nn.utils.fuse_conv_bn_weights(trt.ones(1, 1, 1), one, one, one, 0.0, 2 * one, one)
        >>> weight.flatten(), bias
        (tensor([2.]), Parameter containing:
        tensor([1.]))
    """
    weight_dtype = conv_w.dtype
    bias_dtype = weight_dtype if conv_b is None else conv_b.dtype
    conv_b = trt.zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = trt.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = trt.zeros_like(bn_rm) if bn_b is None else bn_b
    scale = bn_w * trt.rsqrt(bn_rv + bn_eps)
    shape = [1, -1] + [1] * (conv_w.ndim - 2) if transpose else [-1, 1] + [1] * (conv_w.ndim - 2)
    weight = (conv_w * scale.reshape(shape)).to(dtype=weight_dtype)
    bias = ((conv_b - bn_rm) * scale + bn_b).to(dtype=bias_dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, conv_b.requires_grad)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of the linear layer that does what both do in evaluation. AssertionError when one is in training or their features differ.

    Parameters:
        linear (Module): the linear layer, in evaluation
        bn (Module): the batch normalisation, in evaluation

    Example:
        >>> import tensorrt_lite as trt
        >>> linear, bn = trt.nn.Linear(3, 4).eval(), trt.nn.BatchNorm1d(4).eval()
        >>> fused, x = trt.nn.utils.fuse_linear_bn_eval(linear, bn), trt.randn(2, 3)
        >>> trt.allclose(fused(x), bn(linear(x)), atol=1e-5)
        True
    """
    _check_eval(linear, bn, "Fusion only for eval!")
    if bn.num_features != linear.out_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    return fused


def fuse_linear_bn_weights(linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any) -> tuple[Any, Any]:
    """Weight (out, in) and bias of a linear layer followed by a normalisation. Returns Parameters of linear_w's dtype and linear_b's (linear_w's without one).

    Parameters:
        linear_w (Tensor): the weight
        linear_b (Tensor or None): the bias
        bn_rm (Tensor): the running mean
        bn_rv (Tensor): the running variance
        bn_eps (float): added to the variance
        bn_w (Tensor or None): the factor of each feature
        bn_b (Tensor or None): what is added to each feature

    Example:
        >>> import tensorrt_lite as trt
        >>> one = trt.ones(1)
        >>> weight, bias = trt.nn.utils.fuse_linear_bn_weights(trt.ones(1, 1), one, one, one, 0.0, 2 * one, one)
        >>> weight, bias
        (Parameter containing:
        tensor([[2.]]), Parameter containing:
        tensor([1.]))
    """
    weight_dtype = linear_w.dtype
    bias_dtype = weight_dtype if linear_b is None else linear_b.dtype
    linear_b = trt.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * trt.rsqrt(bn_rv + bn_eps)
    weight = (linear_w * scale.unsqueeze(-1)).to(dtype=weight_dtype)
    bias = ((linear_b - bn_rm) * scale + bn_b).to(dtype=bias_dtype)
    return Parameter(weight, linear_w.requires_grad), Parameter(bias, linear_b.requires_grad)


def _check_eval(layer: Any, bn: Any, message: str) -> None:
    if layer.training or bn.training:
        raise AssertionError(message)
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("Only support fusion for batch norm with running statistics")
