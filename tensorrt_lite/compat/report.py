"""What a program under the alias asked of PyTorch: `tensorrt-lite run --report`."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from tensorrt_lite.compat import absent
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_alias = _LazyModule("tensorrt_lite.compat.alias")

__all__ = ["record", "report"]

_touched: set[str] = set()


class _Recorded(ModuleType):
    """A module that notes which of its names are asked for from outside this package."""

    def __getattribute__(self, name: str) -> Any:
        value = ModuleType.__getattribute__(self, name)
        if not name.startswith("__"):
            asking = sys._getframe(1).f_globals
            if not str(asking.get("__package__") or asking.get("__name__", "")).startswith(("tensorrt_lite", "importlib")):
                _touched.add(f"{ModuleType.__getattribute__(self, '__name__')}.{name}")
        return value


def record() -> None:
    """Note names from now on, of the modules that are answered for already and of those that will be."""
    _alias.observers.append(_watch)
    for name, module in list(sys.modules.items()):
        if name == "torch" or name.startswith("torch."):
            _watch(module)


def _watch(module: ModuleType) -> None:
    if type(module) is ModuleType:
        module.__class__ = _Recorded


def report() -> str:
    """What the program used of PyTorch: first what is missing, then the modules and names that it asked for itself."""
    missing = sorted(name for name, was_used in absent.used.items() if was_used)
    unused = sorted(name for name, was_used in absent.used.items() if not was_used)
    modules = sorted(name for name in sys.modules if name == "torch" or name.startswith("torch."))
    # the package imports modules of its own; a program's are those of which it touched a name, and their parents
    owners = {name.rpartition(".")[0] for name in _touched} | (_touched & set(modules))
    parts = [
        ("names missing, used", missing),
        ("names missing, never used", unused),
        ("modules missing, imported", [name for name in modules if isinstance(sys.modules[name], absent.AbsentModule)]),
        ("modules used", [name for name in modules if name in owners and not isinstance(sys.modules[name], absent.AbsentModule)]),
        ("names used", sorted(_touched - set(modules))),
    ]
    return "".join(f"{title}: {len(found)}\n{''.join(f'  {name}{chr(10)}' for name in found)}" for title, found in parts)
