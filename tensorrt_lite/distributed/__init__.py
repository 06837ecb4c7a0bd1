"""torch.distributed without process groups: the questions that single-process programs ask have their answers, everything else is missing."""

from __future__ import annotations

import os
from typing import Any

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")

__all__ = [
    "is_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available",
]  # fmt: skip


def is_available() -> bool:
    """False: no process groups can be made."""
    return False


def is_initialized() -> bool:
    """False: there is no default process group."""
    return False


is_gloo_available = is_mpi_available = is_nccl_available = is_ucc_available = is_xccl_available = is_available


def is_torchelastic_launched() -> bool:
    """Whether this process was started by PyTorch's `torchrun`, which sets TORCHELASTIC_RUN_ID."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def __getattr__(name: str) -> Any:
    raise _missing.error("distributed", name)


def __dir__() -> list[str]:
    return _listing.public(globals())
