"""Modules on several devices of one process: scatter, replicate, parallel_apply, gather, and DataParallel, which is all four."""

from . import comm
from .scatter_gather import gather, scatter, scatter_kwargs
from .data_parallel import DataParallel, data_parallel
from .replicate import parallel_apply, replicate
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")

__all__ = ["DataParallel", "comm", "data_parallel", "gather", "parallel_apply", "replicate", "scatter", "scatter_kwargs"]


def __getattr__(name: str) -> object:
    raise _missing.error("nn.parallel", name)


def __dir__() -> list[str]:
    return _listing.public(globals())
