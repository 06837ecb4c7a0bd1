"""torch._tensor: where PyTorch defines Tensor."""

from __future__ import annotations

import copy
from typing import Any

from tensorrt_lite.tensor import Tensor

__all__ = ["Tensor"]


def _rebuild_from_type_v2(func: Any, new_type: type, args: tuple[Any, ...], state: Any) -> Any:
    """`func(*args)` as an instance of a class with its state."""
    made = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    if hasattr(type(made), "__setstate__") and type(made).__setstate__ is not getattr(Tensor, "__setstate__", None):
        made.__setstate__(state)
    else:
        made.__dict__.update(copy.copy(state) or {})
    return made
