"""Pooling functions: default strides, indices on request, unpooling as a scatter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _C
from tensorrt_lite._C.autograd.autocast import put_policies as _put_policies
from tensorrt_lite import _root as trt
from tensorrt_lite import _ops
from tensorrt_lite._C.ops.joining import _in_format_of

if TYPE_CHECKING:
    from tensorrt_lite import Tensor


def max_pool1d_with_indices(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maxima of windows of input (N, C, L) or (C, L), and where they were."""
    return _ops.max_pool1d_with_indices(
        input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode
    )


def max_pool1d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maxima of windows of input (N, C, L) or (C, L); (values, indices) with return_indices."""
    op = _ops.max_pool1d_with_indices if return_indices else _ops.max_pool1d
    return op(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maxima of windows of input (N, C, H, W) or (C, H, W), and where they were in the flattened plane."""
    return _ops.max_pool2d_with_indices(
        input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode
    )


def max_pool2d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maxima of windows of input (N, C, H, W) or (C, H, W); (values, indices) with return_indices."""
    op = _ops.max_pool2d_with_indices if return_indices else _ops.max_pool2d
    return op(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maxima of windows of input (N, C, D, H, W) or (C, D, H, W), and where they were in the flattened volume."""
    return _ops.max_pool3d_with_indices(
        input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode
    )


def max_pool3d(
    input: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """Maxima of windows of input (N, C, D, H, W) or (C, D, H, W); (values, indices) with return_indices."""
    op = _ops.max_pool3d_with_indices if return_indices else _ops.max_pool3d
    return op(input, kernel_size, [] if stride is None else stride, padding, dilation, ceil_mode)


def _as_list(value: Any, n: int) -> list[int]:
    return [value] * n if isinstance(value, int) else list(value) * (n if len(value) == 1 else 1)


def _sizes_of(n: int, value: Any, name: str) -> list[int]:
    sizes = [value] * n if isinstance(value, int) else list(value)
    if len(sizes) != n:
        raise RuntimeError(f"max_unpool{n}d: {name} should be an int or have {n} elements, but got {len(sizes)}")
    return sizes


def _max_unpool(n: int, input: Any, indices: Any, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> Any:
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(f"max_unpool{n}d: Expected a {n + 1}D or {n + 2}D tensor, but got {input.dim()}D")
    if indices.dtype is not trt.int64:
        raise RuntimeError(f"max_unpool{n}d: elements in indices should be type int64 but got: {indices.dtype}")
    kernel = _sizes_of(n, kernel_size, "kernel_size")
    steps = kernel if stride is None else _sizes_of(n, stride, "stride")
    pads = _sizes_of(n, padding, "padding")
    spatial = list(input.shape[-n:])
    default = [(spatial[d] - 1) * steps[d] - 2 * pads[d] + kernel[d] for d in range(n)]
    if output_size is None:
        size = default
    else:
        size = list(output_size)
        if len(size) == n + 2:
            size = size[2:]
        if len(size) != n:
            raise ValueError(
                f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of "
                f"'{len(size)}'"
            )
        for d in range(n):
            low, high = default[d] - steps[d], default[d] + steps[d]
            if not low < size[d] < high:
                raise ValueError(f'invalid output_size "{size}" (dim {d} must be between {low} and {high})')
    if input.shape != indices.shape:
        raise RuntimeError(
            f"max_unpool{n}d: Expected shape of indices to be same as that of the input tensor ({input.shape}) but got "
            f"indices tensor with shape: {indices.shape}"
        )
    if 0 in input.shape[1:]:
        raise RuntimeError(
            f"max_unpool{n}d: Expected input to have non-zero size for non-batch dimensions, but got {input.shape}"
        )
    lead = list(input.shape[:-n])
    total = 1
    for length in size:
        total *= length
    flat = trt.zeros([*lead, total], dtype=input.dtype, device=input.device)
    try:
        result = flat.scatter(-1, indices.flatten(-n), input.flatten(-n)).view(*lead, *size)
    except RuntimeError as error:
        wrong = re.match(r"index (-?\d+) is out of bounds", str(error))
        if wrong is None:
            raise
        volume = "x".join(map(str, [*size, 1] if n == 1 else size))
        raise RuntimeError(f"Found an invalid max index: {wrong[1]} (output volumes are of size {volume})") from None
    return _in_format_of(result, input) if n == 2 else result


def max_unpool1d(
    input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Puts the maxima of max_pool1d back where they were, zero elsewhere."""
    return _max_unpool(1, input, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(
    input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Puts the maxima of max_pool2d back where they were, zero elsewhere."""
    return _max_unpool(2, input, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(
    input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Tensor:
    """Puts the maxima of max_pool3d back where they were, zero elsewhere."""
    return _max_unpool(3, input, indices, kernel_size, stride, padding, output_size)


def _lp_pool(n: int, input: Any, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Any:
    kernel = _as_list(kernel_size, n)
    volume = 1
    for size in kernel:
        volume *= size
    op = (_ops.avg_pool1d, _ops.avg_pool2d, _ops.avg_pool3d)[n - 1]
    mean = op(input.pow(norm_type), kernel, [] if stride is None else stride, 0, ceil_mode)
    return (mean.sign() * mean.abs().relu()).mul(volume).pow(1.0 / norm_type)


def lp_pool1d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x ** p over each window) ** (1 / p); input (N, C, L)."""
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x ** p over each window) ** (1 / p); input (N, C, H, W)."""
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x ** p over each window) ** (1 / p); input (N, C, D, H, W)."""
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


def _filled(output_size: Any, shape: Any, n: int) -> Any:
    """output_size with None entries replaced by the input's own sizes."""
    if isinstance(output_size, int):
        return [output_size] * n
    if len(shape) <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    return [
        given if given is not None else own for given, own in zip(output_size, shape[-len(output_size) :], strict=False)
    ]


def adaptive_avg_pool2d(input: Any, output_size: Any) -> Tensor:
    """Means of windows sized so that the output is (N, C, *output_size); None keeps a size."""
    return _ops.adaptive_avg_pool2d(input, _filled(output_size, input.shape, 2))


def adaptive_avg_pool3d(input: Any, output_size: Any) -> Tensor:
    """Means of windows sized so that the output is (N, C, *output_size); None keeps a size."""
    return _ops.adaptive_avg_pool3d(input, _filled(output_size, input.shape, 3))


def adaptive_max_pool1d_with_indices(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of windows sized so that the output is (N, C, output_size), and where they were."""
    return _ops.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool1d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of windows sized so that the output is (N, C, output_size); (values, indices) with return_indices."""
    result = _ops.adaptive_max_pool1d(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool2d_with_indices(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of windows sized so that the output is (N, C, *output_size), and where they were."""
    return _ops.adaptive_max_pool2d(input, _filled(output_size, input.shape, 2))


def adaptive_max_pool2d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of windows sized so that the output is (N, C, *output_size); (values, indices) with return_indices."""
    result = _ops.adaptive_max_pool2d(input, _filled(output_size, input.shape, 2))
    return result if return_indices else result[0]


def adaptive_max_pool3d_with_indices(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of windows sized so that the output is (N, C, *output_size), and where they were."""
    return _ops.adaptive_max_pool3d(input, _filled(output_size, input.shape, 3))


def adaptive_max_pool3d(input: Any, output_size: Any, return_indices: bool = False) -> Any:
    """Maxima of windows sized so that the output is (N, C, *output_size); (values, indices) with return_indices."""
    result = _ops.adaptive_max_pool3d(input, _filled(output_size, input.shape, 3))
    return result if return_indices else result[0]


def _fractional(n: int, input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any) -> Any:
    if output_size is None:
        if output_ratio is None:
            raise ValueError(f"fractional_max_pool{n}d requires specifying either an output_size or an output_ratio")
        if not isinstance(output_ratio, (int, float, tuple, list)):
            raise TypeError(f"fractional_max_pool{n}d(): argument 'output_ratio' must be tuple of floats, not {type(output_ratio).__name__}")
        ratios = [output_ratio] * n if isinstance(output_ratio, (int, float)) else output_ratio
        output_size = [int(size * ratio) for size, ratio in zip(input.shape[-n:], ratios, strict=True)]
    if samples is None:
        batch = 1 if input.dim() == n + 1 else input.size(0)
        samples = trt.rand(batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device)
    op = _ops.fractional_max_pool2d if n == 2 else _ops.fractional_max_pool3d
    sizes = [[size] * n if isinstance(size, int) else size for size in (kernel_size, output_size)]
    return op(input, *sizes, samples)


def fractional_max_pool2d_with_indices(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Max pooling over windows at random steps (Graham 2014), and where the maxima were."""
    return _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool2d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Max pooling over windows at random steps (Graham 2014); (values, indices) with return_indices."""
    result = _fractional(2, input, kernel_size, output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]


def fractional_max_pool3d_with_indices(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Max pooling over windows at random steps (Graham 2014), and where the maxima were."""
    return _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)


def fractional_max_pool3d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Max pooling over windows at random steps (Graham 2014); (values, indices) with return_indices."""
    result = _fractional(3, input, kernel_size, output_size, output_ratio, _random_samples)
    return result if return_indices else result[0]


_put_policies(globals(), [n for n, f in list(globals().items()) if getattr(f, "__module__", None) == __name__], _C.AUTOCAST, ("nn.functional.",))  # max_pool3d chooses between operators
