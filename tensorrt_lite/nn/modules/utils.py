"""Sizes given as one number or as one per dimension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def ntuple(value: Any, n: int) -> tuple[Any, ...]:
    """`value` as a tuple: itself if iterable, else n copies."""
    return tuple(value) if hasattr(value, "__iter__") else (value,) * n


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[Any, ...]]:
    def parse(x: Any) -> tuple[Any, ...]:
        return ntuple(x, n)

    parse.__name__ = name
    return parse


# PyTorch's names, which programs import from here.
_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Any, n: int) -> tuple[Any, ...]:
    """Each value n times, last value first: the order of functional.pad."""
    return tuple(value for value in reversed(t) for _ in range(n))


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Cut a prefix such as "module." from the names of a state dict, and of its metadata, in place.

    >>> state = {"module.weight": 1, "bias": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> sorted(state)
    ['bias', 'weight']
    """
    for key in [key for key in state_dict if key.startswith(prefix)]:
        state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    metadata = getattr(state_dict, "_metadata", None)
    if metadata is not None:
        # the module of the prefix itself is named without its dot
        for key in [key for key in metadata if key == prefix.removesuffix(".") or key.startswith(prefix)]:
            metadata[key.removeprefix(prefix) if key.startswith(prefix) else ""] = metadata.pop(key)
