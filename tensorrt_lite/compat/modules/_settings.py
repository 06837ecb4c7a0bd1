"""Modules of settings for a compiler that is not there. Programs read, set and patch them; nothing depends on their values.

Names and defaults are PyTorch's, from `compat/settings.tsv`, which tools/pytorch_names.py writes. A name that PyTorch does not have is an
AttributeError, as there.
"""

from __future__ import annotations

import ast
import contextlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["Settings", "become_settings"]


@cache
def _defaults(module: str) -> tuple[dict[str, Any], dict[str, str]]:
    """{name: default} of a module of settings, and {older name: name}; names of groups are joined by a dot."""
    found, older = {}, {}
    for line in (Path(__file__).parents[1] / "settings.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        owner, name, text = line.split("\t")
        if owner == module and text.startswith("="):
            older[name] = text[1:]
        elif owner == module:
            found[name] = ast.literal_eval(text)
    return found, older


class _Group:
    """Settings with a common prefix, as `torch._inductor.config.triton`."""

    def __init__(self, settings: Settings, prefix: str) -> None:
        vars(self).update(_settings=settings, _prefix=prefix)

    def __getattr__(self, name: str) -> Any:
        return self._settings.read(f"{self._prefix}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        self._settings.write(f"{self._prefix}.{name}", value)


class _Patch(contextlib.ContextDecorator):
    """Other values for a block or a function."""

    def __init__(self, settings: Settings, values: dict[str, Any]) -> None:
        self._settings, self._values = settings, values
        self._before: list[dict[str, Any]] = []

    def __enter__(self) -> None:
        self._before.append({name: self._settings.read(name) for name in self._values})
        for name, value in self._values.items():
            self._settings.write(name, value)

    def __exit__(self, *exc: object) -> None:
        for name, value in self._before.pop().items():
            self._settings.write(name, value)


class Settings(ModuleType):
    """A module whose attributes are settings."""

    _own = ("_values", "_older", "_path")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in Settings._own:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        return self.read(name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__") or name in Settings._own or isinstance(value, ModuleType):
            ModuleType.__setattr__(self, name, value)
        else:
            self.write(name, value)

    def read(self, name: str) -> Any:
        """The value of a setting, or a group of settings."""
        name = self._older.get(name, name)
        if name in self._values:
            return self._values[name]
        if any(key.startswith(name + ".") for key in self._values):
            return _Group(self, name)
        raise AttributeError(f"{self._path}.{name} does not exist")

    def write(self, name: str, value: Any) -> None:
        """Set a setting."""
        name = self._older.get(name, name)
        if name not in self._values:
            raise AttributeError(f"{self._path}.{name} does not exist")
        self._values[name] = value

    def patch(self, arg1: Any = None, arg2: Any = None, **kwargs: Any) -> _Patch:
        """Other values for a block or a function: `patch("name", value)`, `patch({"name": value})`, `patch(name=value)`."""
        values = {arg1: arg2} if isinstance(arg1, str) else dict(arg1 or {})
        return _Patch(self, {**values, **kwargs})

    def to_dict(self) -> dict[str, Any]:
        """All settings."""
        return dict(self._values)

    shallow_copy_dict = get_config_copy = to_dict

    def load_config(self, config: dict[str, Any]) -> None:
        """Set all of `to_dict`."""
        for name, value in config.items():
            self.write(name, value)


def become_settings(name: str) -> None:
    """Make the module `name` of this folder one of settings: the last line of its file."""
    module = sys.modules[name]
    module.__class__ = Settings
    path = "torch" + name.partition("compat.modules")[2]
    values, older = _defaults(path.removeprefix("torch."))
    vars(module).update(_path=path, _values=dict(values), _older=older)
