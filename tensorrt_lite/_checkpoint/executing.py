"""Unpickling as PyTorch's `load(weights_only=False)` does it: whatever the file names is imported and called.

Only for `load(..., weights_only=False)`. Names of PyTorch's modules stand for this package's; everything else is Python's own
unpickler. Called by `reader`.
"""

from __future__ import annotations

import importlib
import io
import pickle
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

from tensorrt_lite._legacy.typed_storage import TypedStorage

from .unpickler import Builder, Storage

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ExecutingUnpickler"]


class ExecutingUnpickler:
    """What `unpickler.Unpickler` offers to `reader`, over an unpickler that executes.

    known(module, name) gives the Builder or dtype of a global that files of tensors name, or None.
    """

    def __init__(
        self,
        data: bytes,
        known: Callable[[str, str], Any],
        load_storage: Callable[[Any], Any],
        pickle_module: Any = None,
        **options: Any,
    ) -> None:
        self._file = io.BytesIO(data)
        self._known = known
        self._load_storage = load_storage
        self._base = getattr(pickle_module or pickle, "Unpickler", pickle.Unpickler)
        self._options = {"encoding": "utf-8", **options}

    @property
    def position(self) -> int:
        """Where the next pickle begins."""
        return self._file.tell()

    def load(self) -> Any:
        """The object of the next pickle. Raises what its code raises."""
        outer = self

        class Unpickler(self._base):  # type: ignore[misc, name-defined]
            def find_class(self, module: str, name: str) -> Any:
                return outer._global(super().find_class, module, name)

            def persistent_load(self, identifier: Any) -> Any:
                if isinstance(identifier, tuple) and identifier[:1] == ("module",):
                    return identifier[1]  # the older format writes a class beside its source
                return outer._load_storage(_as_builders(identifier)).plain(True)

        return Unpickler(self._file, **self._options).load()

    def _global(self, find_class: Callable[[str, str], Any], module: str, name: str) -> Any:
        known = None if module in ("builtins", "__builtin__", "_codecs", "collections") else self._known(module, name)
        if isinstance(known, Builder):
            return known.kind if known.kind is not None else _Function(known)
        if known is not None:
            return known
        if module == "torch" or module.startswith("torch."):
            return _own(module, name)
        return find_class(module, name)


class _Function:
    """A builder as the function that a file calls: it is given tensors' storages as they come out of files."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def __call__(self, *args: Any) -> Any:
        if self.builder.build is None:
            raise UnpicklingError(f"{self.builder.name} cannot be called")
        return self.builder.build(*map(_wrapped, args))


def _as_builders(identifier: Any) -> Any:
    """A persistent id whose class of storage is the builder that stands for it."""
    return tuple(part.builder if isinstance(part, _Function) else part for part in identifier) if isinstance(identifier, tuple) else identifier


def _wrapped(value: Any) -> Any:
    if isinstance(value, _Function):
        return value.builder
    if isinstance(value, TypedStorage):
        return Storage(value.untyped(), value.dtype, len(value))
    if type(value) is tuple:  # the arguments of the function that rebuilds a subclass's tensor
        return tuple(map(_wrapped, value))
    return value


def _own(module: str, name: str) -> Any:
    """This package's object of a name of PyTorch's."""
    own = "tensorrt_lite" + module[len("torch") :]
    places = ["tensorrt_lite.nn.functional" if module == "torch._C._nn" else own]  # PyTorch's compiled functions
    while places[-1].count(".") > 1:  # or a package above: modules are cut otherwise here
        places.append(places[-1].rpartition(".")[0])
    for place in places:
        try:
            found: Any = importlib.import_module(place)
            for part in name.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError):
            continue
        return found
    raise UnpicklingError(f"the file names {module}.{name}, which this package does not have")
