"""ctc_loss on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

import tensorrt_lite as torch
from device_checks import agree


def check_ctc_loss(order: str) -> None:
    """Several lengths, repeated classes, impossible alignments, both types."""
    for dtype in (torch.float64, torch.float32):
        x = torch.randn(8, 3, 5).to(dtype).requires_grad_()
        targets = torch.tensor([[1, 1, 2, 4], [3, 3, 3, 3], [2, 1, 4, 2]])
        for inputs, lengths in (([8, 8, 6], [4, 2, 3]), ([8, 4, 0], [0, 4, 0])):
            agree(lambda x, t, i=inputs, n=lengths: torch.ctc_loss(x.log_softmax(-1), t, i, n, 0, 0), x, targets)
        agree(lambda x, t: torch.ctc_loss(x, t, [8, 4, 7], [3, 4, 2], 0, 2, True), x, targets)
        agree(lambda x, t: torch.ctc_loss(x, t, [8, 4, 7], [4, 1, 2], 0, 1), x, torch.tensor([1, 2, 2, 3, 4, 1, 1]))
