"""segment_reduce on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

import tensorrt_lite as torch
from device_checks import agree


def check_segment_reduce(order: str) -> None:
    """All operations, both types, segments of the last and of a middle dimension, empty ones."""
    counts = torch.tensor([[2, 0, 3], [1, 1, 3]])
    for operation in ("sum", "mean", "max", "min", "prod"):
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            x = torch.randn(2, 5, 3).to(dtype).requires_grad_()
            agree(lambda x, n, o=operation: torch.segment_reduce(x, o, lengths=n, axis=1), x, counts)
            agree(lambda x, n, o=operation: torch.segment_reduce(x, o, lengths=n, axis=1, initial=2), x, counts)
