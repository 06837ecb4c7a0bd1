"""Modules on several devices of one process: scatter, replicate, parallel_apply, gather, and DataParallel, which is all four."""

from . import comm
from .scatter_gather import gather, scatter, scatter_kwargs
from .data_parallel import DataParallel, data_parallel
from .replicate import parallel_apply, replicate

__all__ = ["DataParallel", "comm", "data_parallel", "gather", "parallel_apply", "replicate", "scatter", "scatter_kwargs"]


def __getattr__(name: str) -> object:
    from tensorrt_lite._names.missing import error

    raise error("nn.parallel", name)


def __dir__() -> list[str]:
    from tensorrt_lite._names.listing import public

    return public(globals())
