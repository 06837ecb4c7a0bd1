"""torch._dynamo.eval_frame."""

from __future__ import annotations

from tensorrt_lite import nn

__all__ = ["OptimizedModule", "is_dynamo_supported"]


class OptimizedModule(nn.Module):
    """What PyTorch's `compile` makes of a module. No module here is one: `compile` gives back what it was given."""


def is_dynamo_supported() -> bool:
    """False."""
    return False
