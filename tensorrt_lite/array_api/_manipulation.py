"""Functions that rearrange arrays. Those that only change shape and strides return views where they can."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.tensor import Tensor
from tensorrt_lite.array_api._dtypes import require_array, together

Axes = int | tuple[int, ...] | None


def axes_of(axis: Axes, ndim: int) -> tuple[int, ...]:
    """An axis, several, or None for all, as a tuple."""
    if axis is None:
        return tuple(range(ndim))
    return (axis,) if isinstance(axis, int) else tuple(axis)


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Views of the arrays in the shape that they broadcast to, each in its own dtype."""
    return tuple(trt.broadcast_tensors(*arrays)) if arrays else ()


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """A view of x in a shape that it broadcasts to. RuntimeError where it does not."""
    return trt.broadcast_to(require_array("broadcast_to", x), shape)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Tensor:
    """Arrays one after the other along an axis, flattened before where it is None; in their common dtype."""
    arrays = together("concat", *arrays)
    if axis is None:
        return trt.cat([x.reshape(-1) for x in arrays])
    for x in arrays:
        if x.dim() == 0:
            raise ValueError("concat(): arrays of no dimensions have no axis; use axis=None")
    # cat() takes an empty array of one dimension with arrays of any shape
    if any(x.dim() != arrays[0].dim() for x in arrays):
        raise ValueError(f"concat(): arrays of different numbers of dimensions: {', '.join(str(tuple(x.shape)) for x in arrays)}")
    return trt.cat(arrays, axis)


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """A view with a new axis of size 1 at a position. IndexError for one that is none."""
    return require_array("expand_dims", x).unsqueeze(axis)


def flip(x: Tensor, /, *, axis: Axes = None) -> Tensor:
    """Elements in reverse order along axes; along all of them where axis is None."""
    return trt.flip(require_array("flip", x), axes_of(axis, x.dim()))


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """A view with axes at other positions, the rest in their order."""
    return trt.movedim(require_array("moveaxis", x), source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """A view with the axes in another order. x: (*) -> (x.shape[axes[0]], x.shape[axes[1]], ...)."""
    return require_array("permute_dims", x).permute(tuple(axes))


def repeat(x: Tensor, repeats: Any, /, *, axis: int | None = None) -> Tensor:
    """Each element as many times as repeats says, one number or an array (n) of them; of the flattened array where axis is None."""
    require_array("repeat", x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    if isinstance(repeats, Tensor):
        repeats = repeats.to(trt.int64)
        if repeats.numel() == 1:
            repeats = repeats.expand(x.shape[axis])
    return trt.repeat_interleave(x, repeats, axis)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """x in another shape of as many elements; one size may be -1. copy: True always copies, False never does (ValueError where it would have to)."""
    require_array("reshape", x)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if copy:
        return x.clone(memory_format=trt.contiguous_format).reshape(shape)
    result = x.reshape(shape)
    if copy is False and x.numel() and result.data_ptr() != x.data_ptr():
        raise ValueError(f"reshape(): an array of shape {tuple(x.shape)} and strides {x.stride()} cannot become {shape} without a copy")
    return result


def roll(x: Tensor, /, shift: Any, *, axis: Axes = None) -> Tensor:
    """Elements moved along axes by a number of positions, those that leave one end come in at the other; of the flattened array where axis is None."""
    require_array("roll", x)
    if axis is not None and isinstance(axis, tuple) and isinstance(shift, int):
        shift = (shift,) * len(axis)
    return trt.roll(x, shift, axis)


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """A view without axes of size 1. ValueError for an axis of another size, IndexError for one that is none."""
    axes = axes_of(axis, require_array("squeeze", x).dim())
    for one in axes:
        if not -x.dim() <= one < x.dim():
            raise IndexError(f"squeeze(): axis {one} of an array of {x.dim()} dimensions")
        if x.shape[one] != 1:
            raise ValueError(f"squeeze(): axis {one} has size {x.shape[one]}, not 1")
    return x.squeeze(axes)


def stack(arrays: Any, /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape along a new axis, in their common dtype."""
    return trt.stack(together("stack", *arrays), axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """The array beside itself, as often along each axis as repetitions says; missing axes and repetitions count as 1."""
    return trt.tile(require_array("tile", x), tuple(repetitions))


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Views of the array at each position of an axis."""
    return trt.unbind(require_array("unstack", x), axis)
