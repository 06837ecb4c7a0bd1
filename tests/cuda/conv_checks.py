"""Convolutions on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

import tensorrt_lite as torch
from device_checks import agree, raises
from tensorrt_lite.nn import functional as F


def tensor(*shape: int, last: bool = False, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    """Small random numbers that want a gradient, contiguous or channels_last."""
    x = (torch.randn(*shape, dtype=torch.float64) / 4).to(dtype)
    return (x.to(memory_format=torch.channels_last) if last else x).requires_grad_()


PLACES = (
    {}, {"padding": 1}, {"stride": 2, "padding": (1, 0)}, {"dilation": 2, "padding": 2}, {"stride": (3, 2), "padding": 1, "dilation": (1, 2)},
)  # fmt: skip


def check_two_dimensions(order: str) -> None:
    """Strides, margins, dilations, groups in both layouts, with the gradients of all three operands."""
    for place in PLACES:
        for last in (False, True):
            agree(F.conv2d, tensor(2, 5, 9, 10, last=last), tensor(7, 5, 3, 2, last=last), tensor(7), **place)
    for last in (False, True):
        agree(F.conv2d, tensor(2, 12, 6, 7, last=last), tensor(10, 6, 3, 3, last=last), None, groups=2, padding=1)
        agree(F.conv2d, tensor(2, 6, 8, 7, last=last), tensor(12, 1, 3, 3, last=last), tensor(12), groups=6, padding=1, stride=2)
        agree(F.conv2d, tensor(3, 70, 5, 5, last=last), tensor(66, 70, 1, 1, last=last))


def check_other_dimensions() -> None:
    """One and three dimensions; transposed convolutions."""
    agree(F.conv1d, tensor(2, 5, 31), tensor(4, 5, 3), tensor(4), stride=2, padding=1)
    agree(F.conv3d, tensor(2, 3, 5, 6, 7), tensor(4, 3, 2, 3, 3), tensor(4), stride=(1, 2, 1), padding=1)
    agree(F.conv3d, tensor(1, 4, 5, 5, 5), tensor(6, 2, 3, 3, 3), groups=2, dilation=2)
    agree(F.conv_transpose2d, tensor(2, 5, 6, 7), tensor(5, 4, 3, 3), tensor(4), stride=2, padding=1, output_padding=1)
    agree(F.conv_transpose1d, tensor(2, 6, 9), tensor(6, 2, 4), groups=3, stride=3)
    agree(F.conv_transpose3d, tensor(1, 3, 3, 4, 5), tensor(3, 2, 2, 2, 2), stride=2)


def check_types(order: str) -> None:
    """float32, half types on tensor cores, complex and integer numbers; a deep product in slices."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.complex64):
        for last in (False, True):
            agree(F.conv2d, tensor(2, 20, 9, 8, last=last, dtype=dtype), tensor(24, 20, 3, 3, last=last, dtype=dtype), tensor(24, dtype=dtype), padding=1, gradient=dtype not in (torch.complex64,))
    agree(F.conv2d, torch.randint(-9, 9, (2, 3, 6, 6)), torch.randint(-9, 9, (4, 3, 3, 3)))
    agree(F.conv2d, tensor(1, 128, 8, 8), tensor(8, 128, 3, 3), padding=1)
    agree(F.conv2d, tensor(40, 3, 12, 12), tensor(8, 3, 3, 3))


def check_edges() -> None:
    """Nothing to add, and the CPU's messages."""
    agree(F.conv2d, tensor(0, 3, 5, 5), tensor(4, 3, 3, 3), tensor(4))
    raises(RuntimeError, "channels", F.conv2d, torch.ones(1, 3, 5, 5, device="cuda"), torch.ones(4, 2, 3, 3, device="cuda"))
    raises(RuntimeError, "same device", F.conv2d, torch.ones(1, 3, 5, 5, device="cuda"), torch.ones(4, 3, 3, 3))
