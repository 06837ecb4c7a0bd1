"""torch.nn: modules, parameters, losses, initialisation and their functional forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorrt_lite._C.core.hints import LookUp as _LookUp
from . import attention, functional, init, modules, utils
from .modules import *  # noqa: F403
from .modules import __all__ as _module_names
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")

if TYPE_CHECKING:
    from . import grad, parallel
    from .parallel import DataParallel

__all__ = [
    "Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter", "attention", "functional", "grad", "init", "modules", "parallel", "utils", *_module_names,
    *sorted(modules._LAZY),
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name in ("DataParallel", "parallel"):
        from importlib import import_module

        parallel = import_module(f"{__package__}.parallel")
        return parallel if name == "parallel" else parallel.DataParallel
    if name == "grad":
        from importlib import import_module

        return import_module(f"{__package__}.grad")
    if name in modules._LAZY:
        return getattr(modules, name)

    raise _missing.error("nn", name)


globals()["__getattr__"] = _LookUp(__getattr__)


def __dir__() -> list[str]:
    return _listing.public(globals())
