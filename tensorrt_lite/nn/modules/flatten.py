"""Merging and splitting dimensions."""

from __future__ import annotations

from typing import Any

from ._typed import TensorModule


class Flatten(TensorModule):
    """Merges the dimensions start_dim to end_dim into one.

    Parameters:
        start_dim (int, default 1): the first dimension that is merged
        end_dim (int, default -1): the last dimension that is merged

    >>> import tensorrt_lite as trt
    >>> trt.nn.Flatten()(trt.randn(8, 3, 4, 5)).shape
    torch.Size([8, 60])
    >>> trt.nn.Flatten(start_dim=0, end_dim=1)(trt.randn(8, 3, 4, 5)).shape
    torch.Size([24, 4, 5])
    """

    __constants__ = ["start_dim", "end_dim"]

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: Any) -> Any:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(TensorModule):
    """Splits the dimension `dim` into the sizes `unflattened_size`.

    Parameters:
        dim (int or str): the dimension
        unflattened_size (tuple of ints): the sizes in its place; one may be -1

    >>> import tensorrt_lite as trt
    >>> trt.nn.Unflatten(1, (3, 4, 5))(trt.randn(8, 60)).shape
    torch.Size([8, 3, 4, 5])
    >>> trt.nn.Unflatten(dim=-1, unflattened_size=(-1, 2))(trt.randn(8, 60)).shape
    torch.Size([8, 30, 2])
    """

    __constants__ = ["dim", "unflattened_size"]

    def __init__(self, dim: Any, unflattened_size: Any) -> None:
        super().__init__()
        if isinstance(dim, int):
            if not isinstance(unflattened_size, (tuple, list)):
                raise TypeError(
                    f"unflattened_size must be a tuple of ints, but found type {type(unflattened_size).__name__}"
                )
            for position, size in enumerate(unflattened_size):
                if not isinstance(size, int):
                    raise TypeError(
                        f"unflattened_size must be tuple of ints, but found element of type {type(size).__name__} "
                        f"at pos {position}"
                    )
        else:
            raise TypeError(f"dim must be an int, named dimensions are not supported, but found {type(dim).__name__}")
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input: Any) -> Any:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
