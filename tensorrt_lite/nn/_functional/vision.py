"""Rearranging and resampling images: interpolation, grids, sliding blocks."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite import autograd
from tensorrt_lite import _ops
from tensorrt_lite._C.ops.support import int_argument

if TYPE_CHECKING:
    from tensorrt_lite import Tensor


def _pair(value: Any) -> Any:
    return [value, value] if isinstance(value, int) else value


def unfold(input: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Sliding blocks of input (N, C, H, W) as columns (N, C * kH * kW, L)."""
    return _ops.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def fold(input: Any, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Sums columns (N, C * kH * kW, L) back into images (N, C, *output_size); the adjoint of unfold."""
    return _ops.col2im(input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


_NO_ALIGN = ("nearest", "area", "nearest-exact")
_LINEAR = {3: "linear", 4: "bilinear", 5: "trilinear"}


def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes the spatial dimensions of input (N, C, *) to `size` or by `scale_factor`.

    mode: nearest, nearest-exact, linear (3-D), bilinear, bicubic and lanczos (4-D), trilinear (5-D), area. Raises ValueError
    for a wrong combination of arguments, NotImplementedError for a mode that the number of dimensions rules out.
    """
    if mode in _NO_ALIGN:
        if align_corners is not None:
            raise ValueError("align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear")
    elif align_corners is None:
        align_corners = False
    n = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    output_size = factors = None
    if size is not None:
        sizes = list(size) if isinstance(size, (list, tuple)) else [size] * n
        output_size = [int_argument(s, "interpolate", "size") for s in sizes]
        if len(output_size) != n:
            raise ValueError(
                f"Input and output must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(input.shape[2:])} and output size of {size}. Please provide input tensor in "
                f"(N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format."
            )
    else:
        factors = [float(s) for s in scale_factor] if isinstance(scale_factor, (list, tuple)) else [scale_factor] * n
        if len(factors) != n:
            raise ValueError(
                f"Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {list(input.shape[2:])} and scale_factor of shape {scale_factor}. Please provide input "
                f"tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
            )
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if factors is not None and (mode == "area" or recompute_scale_factor):
        output_size = [math.floor(float(s) * f) for s, f in zip(input.shape[2:], factors, strict=True)]
        factors = None
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.ndim == 4):
        raise ValueError("Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input")
    if not 3 <= input.dim() <= 5:
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | "
            f"linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
        )
    return _resample(input, n, mode, output_size, factors, align_corners, antialias)


def _resample(input: Any, n: int, mode: str, output_size: Any, factors: Any, align_corners: bool | None, antialias: bool) -> Any:
    if mode == "nearest":
        op = (_ops.upsample_nearest1d, _ops.upsample_nearest2d, _ops.upsample_nearest3d)[n - 1]
        return op(input, output_size, factors)
    if mode == "nearest-exact":
        op = getattr(_ops, f"_upsample_nearest_exact{n}d")
        return op(input, output_size, factors)
    if mode == "area":
        op = (_ops.adaptive_avg_pool1d, _ops.adaptive_avg_pool2d, _ops.adaptive_avg_pool3d)[n - 1]
        return op(input, output_size)
    if mode == "lanczos" and n == 2:
        if align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
        if input.device.type not in ("cpu", "meta"):
            raise NotImplementedError(f"Could not run 'aten::_upsample_lanczos2d_aa' with arguments from the '{input.device.type.upper()}' backend.")
        return _ops._upsample_lanczos2d_aa(input, output_size, False, factors)
    if mode == "bicubic" and n == 2:
        op = _ops._upsample_bicubic2d_aa if antialias else _ops.upsample_bicubic2d
        return op(input, output_size, align_corners, factors)
    if mode == _LINEAR[n + 2]:
        op = _ops._upsample_bilinear2d_aa if antialias else getattr(_ops, f"upsample_{mode}{n}d")
        return op(input, output_size, align_corners, factors)
    if mode in ("linear", "bilinear", "trilinear"):
        needed = {"linear": 3, "bilinear": 4, "trilinear": 5}[mode]
        raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {needed}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | linear "
        f"| bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
    )


def upsample(input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: Any = None) -> Tensor:
    """The old name of interpolate.

    Parameters:
        input (Tensor): (N, C, L), (N, C, H, W) or (N, C, D, H, W)
        size (int or tuple of ints, default None): the spatial size of the result
        scale_factor (number or tuple of numbers, default None): the factor of the spatial size, instead of size
        mode (str, default 'nearest'): as interpolate() takes it
        align_corners (bool or None, default None): whether the centres of the corner pixels stay in place

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.functional.upsample(trt.tensor([[[1.0, 3.0]]]), scale_factor=2)
        tensor([[[1., 1., 3., 3.]]])
    """
    _warn_upsample("upsample", "")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Tensor:
    """The old name of interpolate(mode="nearest").

    Parameters:
        input (Tensor): (N, C, L), (N, C, H, W) or (N, C, D, H, W)
        size (int or tuple of ints, default None): the spatial size of the result
        scale_factor (number or tuple of numbers, default None): the factor of the spatial size, instead of size

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.functional.upsample_nearest(trt.tensor([[[1.0, 3.0]]]), scale_factor=2)
        tensor([[[1., 1., 3., 3.]]])
    """
    _warn_upsample("upsample_nearest", "")
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Tensor:
    """The old name of interpolate(mode="bilinear", align_corners=True).

    Parameters:
        input (Tensor): (N, C, H, W)
        size (int or tuple of ints, default None): the spatial size of the result
        scale_factor (number or tuple of numbers, default None): the factor of the spatial size, instead of size

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.functional.upsample_bilinear(trt.ones(1, 1, 2, 2), scale_factor=2).shape
        torch.Size([1, 1, 4, 4])
    """
    _warn_upsample("upsample_bilinear", "")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _warn_upsample(name: str, suffix: str) -> None:
    warnings.warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.{suffix}", stacklevel=3)


_GRID_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_GRID_PADDING = {"zeros": 0, "border": 1, "reflection": 2}


def grid_sample(input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None) -> Tensor:
    """Samples input (N, C, H, W) at positions grid (N, h, w, 2) in [-1, 1], or (N, C, D, H, W) at (N, d, h, w, 3)."""
    if mode not in _GRID_MODES:
        raise ValueError(f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'")
    if padding_mode not in _GRID_PADDING:
        raise ValueError(f"nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '{padding_mode}'")
    if align_corners is None:
        _warn_align_corners("grid_sample")
        align_corners = False
    return _ops.grid_sampler(input, grid, _GRID_MODES[mode], _GRID_PADDING[padding_mode], align_corners)


def _warn_align_corners(name: str) -> None:
    warnings.warn(
        f"Default {name} behavior has changed to align_corners=False since 1.3.0. Please specify align_corners=True if "
        f"the old behavior is desired. See the documentation of {name} for details.",
        stacklevel=3,
    )


def _base_axis(steps: int, align_corners: bool, like: Any) -> Any:
    if steps <= 1:
        return trt.zeros(steps, dtype=like.dtype, device=like.device)
    axis = trt.linspace(-1, 1, steps, dtype=like.dtype, device=like.device)
    return axis if align_corners else axis * ((steps - 1) / steps)


def affine_grid_generator(theta: Any, size: Any, align_corners: bool) -> Tensor:
    """`affine_grid` without its default: theta (N, 2, 3) or (N, 3, 4); size: (N, C, H, W) or (N, C, D, H, W)."""
    return affine_grid(theta, size, align_corners)


def _base_grid(spatial: list[int], align_corners: bool, like: Any) -> Any:
    """The positions that the identity samples, with a 1 behind each: (positions, n + 1). Coordinates are listed x first: the last spatial dimension leads."""
    n = len(spatial)
    axes = []
    for d in reversed(range(n)):
        shape = [1] * n
        shape[d] = spatial[d]
        axes.append(_base_axis(spatial[d], align_corners, like).view(shape).expand(spatial))
    axes.append(trt.ones(spatial, dtype=like.dtype, device=like.device))
    return trt.stack(axes, -1).reshape(-1, n + 1)


class AffineGridGenerator(autograd.Function):
    """Grids are products with the base grid, which backward makes again: the Node saves nothing, so that its graph can be walked again."""

    generate_vmap_rule = True

    @staticmethod
    def forward(theta: Any, align_corners: bool, *spatial: int) -> Any:
        base = _base_grid(list(spatial), align_corners, theta)
        grid = base.expand(theta.shape[0], -1, -1).bmm(theta.transpose(1, 2)).view(theta.shape[0], *spatial, len(spatial))
        return grid.detach()  # no view, which could not be written to

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        _, ctx.align_corners, *ctx.spatial = inputs

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        base = _base_grid(ctx.spatial, ctx.align_corners, grad)
        batch, n = grad.shape[0], len(ctx.spatial)
        return grad.reshape(batch, -1, n).transpose(1, 2).bmm(base.expand(batch, -1, -1)), None, *[None] * n

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *others: Any) -> Any:
        return AffineGridGenerator.apply(tangent, ctx.align_corners, *ctx.spatial)


def affine_grid(theta: Any, size: Any, align_corners: bool | None = None) -> Tensor:
    """Sampling positions of affine maps theta (N, 2, 3) for size (N, C, H, W), or (N, 3, 4) for (N, C, D, H, W)."""
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {tuple(size)}."
        )
    if theta.dim() != 3 or theta.shape[-2] != n or theta.shape[-1] != n + 1:
        raise ValueError(f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {tuple(size)}. Got {tuple(theta.shape)}.")
    if align_corners is None:
        _warn_align_corners("affine_grid")
        align_corners = False
    if align_corners and min(size[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when align_corners=True. "
            "This is not an intended use case of affine_grid. See the documentation of affine_grid for details.",
            stacklevel=2,
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {tuple(size)}")
    spatial = list(size[2:])
    return AffineGridGenerator.apply(theta, align_corners, *spatial)
