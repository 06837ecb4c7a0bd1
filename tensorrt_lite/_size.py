"""Size: the shape of a tensor, a tuple of ints."""

from __future__ import annotations


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
