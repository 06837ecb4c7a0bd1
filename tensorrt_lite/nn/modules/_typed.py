"""The base of layers whose result is one tensor, which only type checkers tell from Module: `Module.__call__` gives what the class's `forward` does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .module import Module

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

    class TensorModule(Module):
        """A layer that gives one tensor."""

        def __call__(self, *args: Any, **kwargs: Any) -> Tensor: ...
else:
    TensorModule = Module
