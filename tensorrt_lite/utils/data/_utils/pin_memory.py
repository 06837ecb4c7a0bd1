"""Batches in page-locked memory, which devices copy without waiting."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

__all__ = ["pin_memory"]


def pin_memory(data: Any, device: Any = None) -> Any:
    """The batch with its tensors, and whatever else has a `pin_memory` method, in page-locked memory; containers keep their type."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, Mapping):
        pinned = {key: pin_memory(value, device) for key, value in data.items()}
        try:
            if not isinstance(data, MutableMapping):
                return type(data)(pinned)  # type: ignore[call-arg]
            clone = copy.copy(data)
            clone.update(pinned)
            return clone
        except TypeError:
            return pinned
    if isinstance(data, tuple):
        items = [pin_memory(item, device) for item in data]
        return type(data)(*items) if hasattr(data, "_fields") else type(data)(items)
    if isinstance(data, Sequence):
        items = [pin_memory(item, device) for item in data]
        try:
            if not isinstance(data, MutableSequence):
                return type(data)(items)  # type: ignore[call-arg]
            copied = copy.copy(data)
            for index, item in enumerate(items):
                copied[index] = item
            return copied
        except TypeError:
            return items
    return data
