"""save_on_cpu with tensors on CUDA; run by test_families.py through device_checks.py."""

from __future__ import annotations

from typing import Any

import tensorrt_lite as torch
from device_checks import on_device

F = torch.nn.functional


def loss(x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    h = F.layer_norm((x @ weight).relu() * scale, (8,))
    return (F.softmax(h, 1) * h.sigmoid()).sum() + torch.addcmul(h, h, scale).exp().mean()


def gradients(inputs: list[torch.Tensor], context: Any) -> tuple[list[torch.Tensor], int]:
    """(gradients of first and second order, bytes of the device that the graph keeps)."""
    before = torch.cuda.memory_allocated()
    if context is None:
        y = loss(*inputs)
    else:
        with context:
            y = loss(*inputs)
    kept = torch.cuda.memory_allocated() - before
    first = torch.autograd.grad(y, inputs, create_graph=True)
    second = torch.autograd.grad(sum((g * g).sum() for g in first), inputs)
    return [*first, *second], kept


def check_gradients_come_back() -> None:
    inputs = on_device([torch.randn(64, 16).requires_grad_(), torch.randn(16, 8).requires_grad_(), torch.rand(8).requires_grad_()])
    expected, kept = gradients(inputs, None)
    for pinned in (False, True):
        result, less = gradients(inputs, torch.autograd.graph.save_on_cpu(pin_memory=pinned))
        for a, b in zip(result, expected):
            assert a.device.type == "cuda" and torch.equal(a, b)
        assert less < kept / 4, (less, kept)


def check_what_is_kept_lies_on_the_cpu() -> None:
    a, b = on_device([torch.randn(5).requires_grad_(), torch.randn(5).requires_grad_()])
    for pinned in (False, True):
        with torch.autograd.graph.save_on_cpu(pin_memory=pinned):
            y = a * b
        device, packed = y.grad_fn._raw_saved_self.data
        assert device == a.device and packed.device.type == "cpu" and packed.is_pinned() == pinned
        assert y.grad_fn._saved_self.device == a.device and torch.equal(y.grad_fn._saved_self, a)
