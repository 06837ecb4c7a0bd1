"""Packages that look for others by themselves get to know this one, whichever is imported first: a finder in front of all others watches for them.

Nothing is imported for it. A package's module below is told of tensors right after it has run, before anybody can use it.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

# The module that is waited for: this package's module whose function `register` gets it.
WATCHED = {"einops._backends": "tensorrt_lite._interop.einops"}


def _tell(module: ModuleType) -> None:
    from importlib import import_module

    try:
        import_module(WATCHED[module.__name__]).register(module)
    except (AttributeError, ImportError) as error:
        import warnings

        warnings.warn(f"{module.__name__} is not as tensorrt_lite knows it: it will not take tensors ({error})", stacklevel=2)


class _TellingLoader:
    """The loader of a watched module, which is in its place again once the module has run."""

    def __init__(self, spec: ModuleSpec) -> None:
        self._loader: Any = spec.loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _tell(module)


class _Watcher:
    """On `sys.meta_path` in front: hands out watched modules with a loader that tells of them."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname not in WATCHED:
            return None
        for finder in sys.meta_path:
            if finder is _Watcher or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _TellingLoader(spec)  # type: ignore[assignment]
                return spec
        return None


def install() -> None:
    """Watch, and tell the modules that are there already."""
    sys.meta_path.insert(0, _Watcher)  # type: ignore[arg-type]
    for name in WATCHED:
        if name in sys.modules:
            _tell(sys.modules[name])
