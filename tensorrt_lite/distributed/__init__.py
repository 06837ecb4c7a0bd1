"""torch.distributed without process groups: the questions that single-process programs ask have their answers, everything else is missing."""

from __future__ import annotations

from typing import Any

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
    import os

    return "TORCHELASTIC_RUN_ID" in os.environ


def __getattr__(name: str) -> Any:
    from tensorrt_lite._names.missing import error

    raise error("distributed", name)


def __dir__() -> list[str]:
    from tensorrt_lite._names.listing import public

    return public(globals())
