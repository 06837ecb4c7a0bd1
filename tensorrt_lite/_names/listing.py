"""What `dir()` and tab completion list for the package's modules, and under which name its objects go."""

from __future__ import annotations

import sys
from types import ModuleType

TYPE_CHECKING = False  # `typing` would be a quarter of the package's import time
if TYPE_CHECKING:
    from collections.abc import Iterable
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
    return (own_module(value) or "tensorrt_lite").partition(".")[0] == "tensorrt_lite"


def root() -> ModuleType:
    """The root module, for what looks public names up in it."""
    return sys.modules["tensorrt_lite"]


def alias_in_force() -> bool:
    """Whether this package answers to `import torch` (tensorrt_lite.compat), and its classes say that they are PyTorch's."""
    alias = sys.modules.get("tensorrt_lite.compat.alias")
    return alias is not None and alias.is_installed()


def public_name() -> str:
    """The name that messages give the package: that of the import, which filters of warnings know."""
    return "torch" if alias_in_force() else "tensorrt_lite"


def own_module(value: Any) -> str:
    """The `__module__` of an object, under this package's name where the alias has given it PyTorch's."""
    module = getattr(value, "__module__", None) or ""
    return "tensorrt_lite" + module[5:] if module.partition(".")[0] == "torch" and alias_in_force() else module
