"""torch.utils.hooks: the handle that every register_*hook returns, and marks on hooks."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from tensorrt_lite._C.autograd.hooks import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]

_Hook = TypeVar("_Hook")


def unserializable_hook(f: _Hook) -> _Hook:
    """Mark a hook of a tensor as one that a pickle of the tensor may go without: no warning of it."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """UserWarning for each hook of the tensor that a pickle will lack, but those marked by `unserializable_hook`."""
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the function with "
                "@torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )
