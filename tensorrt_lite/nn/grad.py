"""torch.nn.grad: gradients of convolutions by input and by weight, as functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import tensorrt_lite as trt
from tensorrt_lite.autograd import grad
from tensorrt_lite.nn import functional as F

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]

_CONVOLUTIONS: dict[int, Any] = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}


def _by_input(dims: int, size: Sequence[int], weight: Tensor, grad_output: Tensor, options: tuple[Any, ...]) -> Tensor:
    # the form is linear in the input: its values do not matter, its gradient is differentiable in weight and grad_output
    with trt.enable_grad():
        point = grad_output.detach().new_zeros(1).expand(tuple(size)).requires_grad_()
        output = _CONVOLUTIONS[dims](point, weight, None, *options)
        needed = weight.requires_grad or grad_output.requires_grad
        result: Tensor = grad(output, point, grad_output, create_graph=needed)[0]
    return result


def _by_weight(dims: int, input: Tensor, size: Sequence[int], grad_output: Tensor, options: tuple[Any, ...]) -> Tensor:
    with trt.enable_grad():
        point = grad_output.detach().new_zeros(1).expand(tuple(size)).requires_grad_()
        output = _CONVOLUTIONS[dims](input, point, None, *options)
        needed = input.requires_grad or grad_output.requires_grad
        result: Tensor = grad(output, point, grad_output, create_graph=needed)[0]
    return result


def conv1d_input(input_size: Any, weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of conv1d by its input. input_size: of (N, C, L); weight: (O, C / groups, K); grad_output: (N, O, L_out)."""
    return _by_input(1, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv1d_weight(input: Any, weight_size: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of conv1d by its weight. input: (N, C, L); weight_size: of (O, C / groups, K); grad_output: (N, O, L_out)."""
    return _by_weight(1, input, weight_size, grad_output, (stride, padding, dilation, groups))


def conv2d_input(input_size: Any, weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of conv2d by its input. input_size: of (N, C, H, W); weight: (O, C / groups, KH, KW); grad_output: (N, O, H_out, W_out)."""
    return _by_input(2, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv2d_weight(input: Any, weight_size: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of conv2d by its weight. input: (N, C, H, W); weight_size: of (O, C / groups, KH, KW); grad_output: (N, O, H_out, W_out)."""
    return _by_weight(2, input, weight_size, grad_output, (stride, padding, dilation, groups))


def conv3d_input(input_size: Any, weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of conv3d by its input. input_size: of (N, C, D, H, W); weight: (O, C / groups, KD, KH, KW); grad_output: (N, O, D_out, H_out, W_out)."""
    return _by_input(3, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv3d_weight(input: Any, weight_size: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of conv3d by its weight. input: (N, C, D, H, W); weight_size: of (O, C / groups, KD, KH, KW); grad_output: (N, O, D_out, H_out, W_out)."""
    return _by_weight(3, input, weight_size, grad_output, (stride, padding, dilation, groups))


def __dir__() -> list[str]:
    return sorted(__all__)
