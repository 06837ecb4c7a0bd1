"""Norms of gradients in the log, without a change to the program's results."""

from __future__ import annotations

import logging
from typing import Any

from tensorrt_lite.autograd.graph import register_multi_grad_hook

__all__ = ["debug_grad_log"]

log = logging.getLogger(__name__)


def debug_grad_log(*tensors: Any) -> None:
    """Log "[rank 0][bwd] t0_grad_norm=... t1_grad_norm=..." (level INFO) once the gradients of all tensors that require one are known in a backward pass."""
    followed = [tensor for tensor in tensors if tensor.requires_grad]
    if followed:
        register_multi_grad_hook(followed, _log)


def _log(gradients: Any) -> None:
    norms = " ".join(f"t{place}_grad_norm={gradient.norm().item():.4f}" for place, gradient in enumerate(gradients) if gradient is not None)
    log.info("[rank 0][bwd] %s", norms)
