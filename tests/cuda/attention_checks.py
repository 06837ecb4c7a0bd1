"""Attention on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

import tensorrt_lite as torch
from device_checks import agree
from tensorrt_lite.nn import functional as F


def heads(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A random operand that wants a gradient."""
    return torch.randn(*shape).to(dtype).requires_grad_()


def check_lengths(order: str) -> None:
    """Tiles with edges, every width, causal, values of another width, heads that lie last in memory."""
    for queries, keys, width in ((1, 1, 1), (33, 70, 16), (65, 40, 64), (17, 33, 128)):
        agree(F.scaled_dot_product_attention, heads(2, 2, queries, width), heads(2, 2, keys, width), heads(2, 2, keys, width))
        agree(F.scaled_dot_product_attention, heads(2, queries, width), heads(2, keys, width), heads(2, keys, width), is_causal=True)
    agree(F.scaled_dot_product_attention, heads(1, 2, 20, 24), heads(1, 2, 30, 24), heads(1, 2, 30, 40))
    q = [torch.randn(2, 20, 3, 16).transpose(1, 2).requires_grad_() for _ in range(3)]
    agree(F.scaled_dot_product_attention, *q)


def check_masks(order: str) -> None:
    """Masks that broadcast, rows without anything to attend to, grouped heads, half types, double by composition."""
    q, k, v = heads(2, 4, 35, 16), heads(2, 4, 40, 16), heads(2, 4, 40, 16)
    allowed = torch.rand(35, 40) > 0.3
    allowed[3] = False
    agree(F.scaled_dot_product_attention, q, k, v, attn_mask=allowed)
    agree(F.scaled_dot_product_attention, q, k, v, attn_mask=torch.randn(2, 1, 1, 40))
    agree(F.scaled_dot_product_attention, q, heads(2, 2, 40, 16), heads(2, 2, 40, 16), enable_gqa=True, is_causal=True)
    agree(F.scaled_dot_product_attention, q, k, v, scale=0.3)
    for dtype in (torch.float16, torch.bfloat16):
        agree(F.scaled_dot_product_attention, *[heads(1, 2, 33, 32, dtype=dtype) for _ in range(3)], is_causal=True)


def check_tensor_cores(order: str) -> None:
    """Half types: every width, lengths beyond a tile, masks, rows of odd strides, grouped heads."""
    for dtype, queries, keys, width in ((torch.float16, 70, 130, 64), (torch.bfloat16, 65, 65, 128), (torch.float16, 5, 64, 20), (torch.bfloat16, 64, 7, 33)):
        for causal in (False, True):
            agree(F.scaled_dot_product_attention, heads(1, 2, queries, width, dtype=dtype), heads(1, 2, keys, width, dtype=dtype), heads(1, 2, keys, width, dtype=dtype), is_causal=causal)
    q, k = heads(2, 4, 35, 16, dtype=torch.float16), heads(2, 2, 90, 16, dtype=torch.float16)
    allowed = torch.rand(35, 90) > 0.3
    allowed[3] = False
    agree(F.scaled_dot_product_attention, q, k, heads(2, 2, 90, 48, dtype=torch.float16), attn_mask=allowed, enable_gqa=True)
    agree(F.scaled_dot_product_attention, q, k, heads(2, 2, 90, 16, dtype=torch.float16), attn_mask=torch.randn(2, 1, 1, 90).half(), enable_gqa=True)


def check_composed() -> None:
    """What has no kernel is composed of operators: double precision, wide heads."""
    agree(F.scaled_dot_product_attention, *[heads(1, 2, 9, 8, dtype=torch.float64) for _ in range(3)], is_causal=True)
    agree(F.scaled_dot_product_attention, *[heads(1, 1, 5, 200) for _ in range(3)])
