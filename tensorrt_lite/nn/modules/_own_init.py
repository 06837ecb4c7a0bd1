"""`__init__` under the name of the layer that was called."""

from __future__ import annotations

from types import FunctionType


def own_init(*layers: type) -> None:
    """Give layers that share their base's `__init__` one each, as PyTorch's have: Python names the function where an argument is missing."""
    for layer in layers:
        base = layer.__init__  # type: ignore[misc]
        own = FunctionType(base.__code__, base.__globals__, "__init__", base.__defaults__, base.__closure__)
        own.__kwdefaults__, own.__annotations__, own.__doc__, own.__module__ = base.__kwdefaults__, base.__annotations__, base.__doc__, layer.__module__
        own.__qualname__ = f"{layer.__qualname__}.__init__"
        layer.__init__ = own  # type: ignore[misc]
