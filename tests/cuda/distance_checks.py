"""cdist and pdist on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

import tensorrt_lite as torch
from device_checks import agree


def check_distances(order: str) -> None:
    """Every kind of norm, with batches; pairs of one set."""
    for dtype in (torch.float32, torch.float64):
        x, y = torch.randn(2, 5, 7).to(dtype).requires_grad_(), torch.randn(2, 4, 7).to(dtype).requires_grad_()
        for p in (0.0, 0.5, 1.0, 2.0, 3.0, float("inf")):
            agree(lambda a, b, p=p: torch.cdist(a, b, p), x, y)
            agree(lambda a, p=p: torch.nn.functional.pdist(a, p), x.detach()[0].clone().requires_grad_())
