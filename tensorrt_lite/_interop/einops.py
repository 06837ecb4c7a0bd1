"""einops' backend for tensors: `einops.rearrange`, `reduce`, `repeat`, `einsum`, `pack`, `unpack`, `parse_shape` and `asnumpy` take them. Imported with einops."""

from __future__ import annotations

from types import ModuleType
from typing import Any
from tensorrt_lite import _root


def register(backends: ModuleType) -> None:
    """Define the backend: einops (0.6 to 0.8) finds it among the subclasses of its AbstractBackend, by the name of this package."""

    class TensorBackend(backends.AbstractBackend):
        framework_name = "tensorrt_lite"

        def __init__(self) -> None:
            self.package = _root

        def is_appropriate_type(self, tensor: Any) -> bool:
            return isinstance(tensor, self.package.Tensor)

        def from_numpy(self, x: Any) -> Any:
            return self.package.from_numpy(x)

        def to_numpy(self, x: Any) -> Any:
            return x.detach().cpu().numpy()

        def arange(self, start: int, stop: int) -> Any:
            return self.package.arange(start, stop)

        def reduce(self, x: Any, operation: str, axes: Any) -> Any:
            if operation in ("min", "max"):
                operation = f"a{operation}"
            if operation == "prod":
                for axis in sorted(axes, reverse=True):
                    x = x.prod(axis)
                return x
            return getattr(x, operation)(tuple(axes))

        def transpose(self, x: Any, axes: Any) -> Any:
            return x.permute(axes)

        def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
            return self.package.stack(tensors)

        def add_axis(self, x: Any, new_position: int) -> Any:
            return x.unsqueeze(new_position)

        def add_axes(self, x: Any, n_axes: int, pos2len: dict[int, int]) -> Any:
            sizes = [-1] * n_axes
            for position, length in pos2len.items():
                x = x.unsqueeze(position)
                sizes[position] = length
            return x.expand(sizes)

        def tile(self, x: Any, repeats: Any) -> Any:
            return x.repeat(repeats)

        def concat(self, tensors: list[Any], axis: int) -> Any:
            return self.package.cat(tensors, axis)

        def is_float_type(self, x: Any) -> bool:
            return x.is_floating_point()

        def einsum(self, pattern: str, *x: Any) -> Any:
            return self.package.einsum(pattern, *x)

    backends.TensorrtLiteBackend = TensorBackend  # type: ignore[attr-defined]  # einops holds its subclasses weakly
