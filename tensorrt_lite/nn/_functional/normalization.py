"""Normalisation functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite import _ops
from tensorrt_lite._C.core.hints import hinted

if TYPE_CHECKING:
    from tensorrt_lite import Tensor


def batch_norm(
    input: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel of input (N, C, *) over the rest; updates the running statistics in training.

    Raises ValueError in training when a channel has a single value.
    """
    if training:
        shape = input.shape
        count = shape[0]
        for size in shape[2:]:
            count *= size
        if count == 1:
            raise hinted("one value", ValueError(f"Expected more than 1 value per channel when training, got input size {shape}"))
    return _ops.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


def instance_norm(
    input: Any,
    running_mean: Any = None,
    running_var: Any = None,
    weight: Any = None,
    bias: Any = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalises each channel of each sample of input (N, C, *): batch normalisation with N * C channels."""
    shape = input.shape
    if use_input_stats:
        count = 1
        for size in shape[2:]:
            count *= size
        if count == 1:
            raise ValueError(f"Expected more than 1 spatial element when training, got input size {shape}")
    batch, channels = shape[0], shape[1]

    def tiled(t: Any) -> Any:
        return None if t is None else t.repeat(batch)

    mean, var = tiled(running_mean), tiled(running_var)
    output = _ops.batch_norm(
        input.contiguous().reshape(1, batch * channels, *shape[2:]),
        tiled(weight),
        tiled(bias),
        mean,
        var,
        use_input_stats or mean is None,
        momentum,
        eps,
        True,
    )
    if use_input_stats:
        with no_grad():
            if mean is not None:
                running_mean.copy_(mean.view(batch, channels).mean(0))
            if var is not None:
                running_var.copy_(var.view(batch, channels).mean(0))
    return output.view(shape)


def layer_norm(input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalises over the trailing dimensions `normalized_shape`."""
    return _ops.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Tensor:
    """x / sqrt(mean(x ** 2) + eps) over the trailing dimensions; eps None is the machine epsilon of the dtype, float32's for halves."""
    return _ops.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Tensor:
    """Normalises each group of channels of each sample of input (N, C, *)."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    shape = input.shape
    count = shape[0] * shape[1] // num_groups if num_groups else 0
    for size in shape[2:]:
        count *= size
    if count == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {[count, num_groups, *shape[2:]]}"
        )
    return _ops.group_norm(input, num_groups, weight, bias, eps)


def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha * mean of x ** 2 over `size` neighbouring channels) ** beta; input (N, C, *)."""
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    shape = input.shape
    squares = (input * input).reshape(shape[0], 1, shape[1], -1)
    padded = _ops.pad(squares, [0, 0, size // 2, (size - 1) // 2])
    mean = _ops.avg_pool2d(padded, [size, 1], 1).reshape(shape)
    return input / (mean * alpha + k).pow(beta)


def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Tensor:
    """x / max(norm_p(x), eps) along `dim`."""
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps)
    return _ops.div(input, norm.expand_as(input), out=out) if out is not None else input / norm.expand_as(input)
