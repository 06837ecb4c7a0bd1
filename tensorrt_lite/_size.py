"""Size: the shape of a tensor, a tuple of ints."""

from __future__ import annotations

from tensorrt_lite._C.core.hints import hinted


class Size(tuple):
    """A tuple of sizes. ``Size([2, 3]).numel()`` is 6."""

    __slots__ = ()

    def __new__(cls, sizes=()):
        items = tuple(sizes)
        for i, v in enumerate(items):
            if not hasattr(type(v), "__index__") and not hasattr(type(v), "_ragged"):
                raise TypeError(f"torch.Size() takes an iterable of 'int' (item {i} is '{type(v).__name__}')")
        return tuple.__new__(cls, [v if hasattr(type(v), "_ragged") else v.__index__() for v in items])

    def numel(self) -> int:
        """Return the number of elements of a tensor of this shape."""
        n = 1
        for s in self:
            n *= s
        return n

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __getitem__(self, index):
        r = tuple.__getitem__(self, index)
        return Size(r) if isinstance(index, slice) else r

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self))

    def __mul__(self, n):
        return Size(tuple.__mul__(self, n))

    __rmul__ = __mul__

    def __reduce__(self):
        return Size, (tuple(self),)


def broadcast_shapes(*shapes) -> Size:
    """The shape that the given shapes broadcast to. RuntimeError when they don't, ValueError for a negative size.

    Parameters:
        *shapes (int or tuple of ints): the shapes

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.broadcast_shapes((3, 1), (1, 4))
        torch.Size([3, 4])
    """
    n = max((len(s) if isinstance(s, (tuple, list)) else 1 for s in shapes), default=0)
    result = [1] * n
    for k, shape in enumerate(shapes):
        shape = shape if isinstance(shape, (tuple, list)) else (shape,)
        for i in range(-1, -1 - len(shape), -1):
            if shape[i] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if shape[i] == 1 or shape[i] == result[i]:
                continue
            if result[i] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[i]} at {i}! Mismatching argument at index {k} had {shape}; but expected shape "
                    f"should be broadcastable to {result}"
                )
            result[i] = shape[i]
    return Size(result)


def refuse_sizes(*shapes):
    """What operators say of sizes that don't broadcast: the last dimension of the first shape that does not fit."""
    common = []  # from the last dimension
    for shape in shapes:
        for place, size in enumerate(reversed(shape)):
            if place == len(common):
                common.append(size)
            elif common[place] == 1:
                common[place] = size
            elif size not in (1, common[place]):
                dim = max(map(len, shapes)) - 1 - place
                raise hinted("broadcast", RuntimeError(
                    f"The size of tensor a ({common[place]}) must match the size of tensor b ({size}) at non-singleton dimension {dim} "
                    f"(broadcast_tensors: shapes {', '.join(str(list(s)) for s in shapes)})"
                )) from None
