"""torch._prims_common: questions about layouts and determinism."""

from __future__ import annotations

import warnings
from typing import Any

import tensorrt_lite as torch


def is_contiguous(tensor: Any) -> bool:
    return tensor.is_contiguous()


is_contiguous_or_false = is_contiguous


def alert_not_deterministic(caller: str) -> None:
    """RuntimeError, or a warning, where deterministic algorithms are asked for."""
    if not torch.are_deterministic_algorithms_enabled():
        return
    text = f"{caller} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'."
    if not torch.is_deterministic_algorithms_warn_only_enabled():
        raise RuntimeError(text)

    warnings.warn(text, stacklevel=2)
