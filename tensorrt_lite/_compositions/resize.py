"""Grid sampling out of recorded operators: what the derivatives of its gradient are taken of. The kernels are in cysrc/loops/resize.c."""

from __future__ import annotations

from itertools import product

from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.core.dispatch import is_grad_enabled
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_autograd = _LazyModule("tensorrt_lite.autograd")

TYPE_CHECKING = False  # `typing` and what it imports would be a quarter of the package's import time
if TYPE_CHECKING:
    from typing import Any

_ops = namespace()

_BILINEAR, _NEAREST, _BICUBIC = range(3)
_ZEROS, _BORDER, _REFLECTION = range(3)
_CUBIC = -0.75  # the free parameter of cubic convolution (Keys 1981)


def _unnormalized(x: Any, size: int, align_corners: bool) -> Any:
    return (x + 1) / 2 * (size - 1) if align_corners else ((x + 1) * size - 1) / 2


def _clipped(x: Any, size: int) -> Any:
    """x within the plane; the derivative is 0 at and beyond its ends."""
    zero, last = _ops.zeros_like(x), _ops.full_like(x, size - 1)
    return _ops.where(x <= 0, zero, _ops.where(x >= size - 1, last, x))


def _reflected(x: Any, size: int, align_corners: bool) -> Any:
    """x mirrored at the centres of the outer elements, or at their outer edges."""
    low, span = (0.0, size - 1.0) if align_corners else (-0.5, float(size))
    if span == 0:
        return _ops.zeros_like(x)
    distance = x - low
    distance = _ops.where(distance < 0, -distance, distance)
    turns = (distance / span).floor().detach()
    rest = distance - turns * span
    return _ops.where(turns % 2 == 0, rest + low, span - rest + low)


def _padded(x: Any, size: int, padding: int, align_corners: bool) -> Any:
    if padding == _REFLECTION:
        x = _reflected(x, size, align_corners)
    return x if padding == _ZEROS else _clipped(x, size)


def _cubic_weights(t: Any) -> list[Any]:
    """Of the four taps around a place t behind the second of them."""

    def near(d: Any) -> Any:
        return ((_CUBIC + 2) * d - (_CUBIC + 3)) * d * d + 1

    def far(d: Any) -> Any:
        return ((_CUBIC * d - 5 * _CUBIC) * d + 8 * _CUBIC) * d - 4 * _CUBIC

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _taps(x: Any, size: int, mode: int, padding: int, align_corners: bool) -> list[tuple[Any, Any]]:
    """(places, weights) of one dimension, whole numbers that may lie outside of the plane."""
    x = _unnormalized(x, size, align_corners)
    if mode != _BICUBIC:
        x = _padded(x, size, padding, align_corners)
    if mode == _NEAREST:
        return [(x.round().detach(), _ops.ones_like(x))]
    start = x.floor().detach()
    if mode == _BILINEAR:
        return [(start, start + 1 - x), (start + 1, x - start)]
    return [(_padded(start + i - 1, size, padding, align_corners), w) for i, w in enumerate(_cubic_weights(x - start))]


def _composed_grid_sampler(input: Any, grid: Any, mode: int, padding: int, align_corners: bool) -> Any:
    """grid_sampler()."""
    sizes = input.shape[2:]
    n = len(sizes)
    # the last of the grid's coordinates is of the first spatial dimension
    dims = [_taps(grid[..., n - 1 - d].flatten(1), sizes[d], mode, padding, align_corners) for d in range(n)]
    source = input.flatten(2)
    total = None
    for taps in product(*dims):
        place, weight, inside = None, None, None
        for (at, w), size in zip(taps, sizes):
            within = (at >= 0) & (at <= size - 1)
            at = _ops.where(within, at, _ops.zeros_like(at)).long()
            place = at if place is None else place * size + at
            weight = w if weight is None else weight * w
            inside = within if inside is None else inside & within
        value = source.gather(2, place.unsqueeze(1).expand(-1, source.size(1), -1))
        value = _ops.where(inside.unsqueeze(1), value * weight.unsqueeze(1), _ops.zeros((), dtype=value.dtype, device=value.device))
        total = value if total is None else total + value
    return total.reshape((*input.shape[:2], *grid.shape[1:-1]))


def _grid_sampler_gradient(grad: Any, input: Any, grid: Any, mode: int, padding: int, align_corners: bool, of_input: bool) -> Any:
    """The gradient of grid_sampler() by its input or its grid as recorded operators."""
    if mode == _NEAREST and not of_input:
        return _ops.zeros_like(grid)
    recorded = is_grad_enabled()
    with _autograd.enable_grad():
        # views cut what is composed here off from what connects the operands above it
        x, places = input.view_as(input), grid.view_as(grid)
        result = _composed_grid_sampler(x, places, mode, padding, align_corners)
    return _autograd.grad(result, x if of_input else places, grad, create_graph=recorded)[0]


EXPORTS = {"_grid_sampler_gradient": ""}
