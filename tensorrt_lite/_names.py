"""What `dir()` and tab completion list for the package's modules."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any


def public(namespace: dict[str, Any], lazy: Iterable[str] = ()) -> list[str]:
    """The public names of a module, sorted: its `__all__` where it has one, else what it defines or takes from this package; and the
    names that its `__getattr__` imports on first use."""
    module = namespace["__name__"]
    names = namespace.get("__all__") or [n for n, value in namespace.items() if n != "TYPE_CHECKING" and _belongs(f"{module}.{n}", value)]
    return sorted(n for n in {*names, *lazy} if n == "__version__" or not n.startswith("_"))


def _belongs(path: str, value: Any) -> bool:
    """Whether a module's global is part of its interface: neither a foreign import nor another module of this package under an alias."""
    if isinstance(value, ModuleType):
        return value.__name__ == path
    # instances answer with the module of their class; numbers and None have none
    return (getattr(value, "__module__", None) or "tensorrt_lite").partition(".")[0] == "tensorrt_lite"
