"""torch.nn.grad: gradients of convolutions by input and by weight, as functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _ops

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _listed(value: Any) -> list[int]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _by_input(dims: int, size: Sequence[int], weight: Tensor, grad_output: Tensor, options: tuple[Any, ...]) -> Tensor:
    _check_dims(f"conv{dims}d_input", dims, grad_output, weight, size)
    input = grad_output.new_empty(1).expand(list(size))
    return _gradients(dims, grad_output, input, weight, options, (True, False, False))[0]


def _by_weight(dims: int, input: Tensor, size: Sequence[int], grad_output: Tensor, options: tuple[Any, ...]) -> Tensor:
    _check_dims(f"conv{dims}d_weight", dims, grad_output, input, size)
    weight = grad_output.new_empty(1).expand(list(size))
    return _gradients(dims, grad_output, input, weight, options, (False, True, False))[1]


def _gradients(dims: int, grad_output: Tensor, input: Tensor, weight: Tensor, options: tuple[Any, ...], mask: tuple[bool, ...]) -> Any:
    stride, padding, dilation, groups = options
    return _ops.convolution_backward(grad_output, input, weight, None, _listed(stride), _listed(padding), _listed(dilation), False, [0] * dims, groups, mask)


def _check_dims(name: str, dims: int, grad_output: Tensor, other: Tensor, size: Sequence[int]) -> None:
    if not grad_output.dim() == other.dim() == len(size) == dims + 2:
        raise RuntimeError(
            f"{name}: expected tensors of {dims + 2} dimensions, got grad_output of shape {list(grad_output.shape)}, "
            f"{'weight' if name.endswith('input') else 'input'} of shape {list(other.shape)} and the size {list(size)}"
        )


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
