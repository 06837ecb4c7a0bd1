"""Attention on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

import tensorrt_lite as torch
from device_checks import HALF, agree, on_device
from tensorrt_lite.nn import functional as F


def heads(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A random operand that wants a gradient."""
    return torch.randn(*shape).to(dtype).requires_grad_()


def check_lengths(order: str) -> None:
    """Tiles with edges, every width, causal, values of another width, heads last in memory."""
    for queries, keys, width in ((1, 1, 1), (33, 70, 16), (65, 40, 64), (17, 33, 128)):
        agree(F.scaled_dot_product_attention, heads(2, 2, queries, width), heads(2, 2, keys, width), heads(2, 2, keys, width))
        agree(F.scaled_dot_product_attention, heads(2, queries, width), heads(2, keys, width), heads(2, keys, width), is_causal=True)
    agree(F.scaled_dot_product_attention, heads(1, 2, 20, 24), heads(1, 2, 30, 24), heads(1, 2, 30, 40))
    q = [torch.randn(2, 20, 3, 16).transpose(1, 2).requires_grad_() for _ in range(3)]
    agree(F.scaled_dot_product_attention, *q)


def check_masks(order: str) -> None:
    """Masks that broadcast, rows without anything to attend to, grouped heads, half types."""
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


def check_wide_and_double(order: str) -> None:
    """Heads up to 256, double precision up to 128; what is wider is composed of operators."""
    agree(F.scaled_dot_product_attention, heads(1, 2, 19, 200), heads(1, 2, 40, 200), heads(1, 2, 40, 130), is_causal=True)
    for width in (24, 64, 128):
        agree(F.scaled_dot_product_attention, heads(1, 4, 35, width, dtype=torch.float64), *[heads(1, 2, 41, width, dtype=torch.float64) for _ in range(2)], enable_gqa=True, is_causal=width == 64)
    if order == "forward":
        agree(F.scaled_dot_product_attention, *[heads(1, 1, 9, 256, dtype=torch.float16) for _ in range(3)])
        agree(F.scaled_dot_product_attention, *[heads(1, 1, 5, 200, dtype=torch.float64) for _ in range(3)])
        agree(F.scaled_dot_product_attention, *[heads(1, 1, 5, 300) for _ in range(3)])


def check_dropout(order: str) -> None:
    """The mask that identity values show is the one of every other pass; its frequency; the derivative under create_graph."""
    keys = 70
    for dtype in (torch.float32, torch.float16, torch.float64):
        q, k, v = heads(2, 2, 33, 32, dtype=dtype), heads(2, 2, keys, 32, dtype=dtype), heads(2, 2, keys, 24, dtype=dtype)
        identity = torch.eye(keys, dtype=dtype).expand(2, 2, keys, keys).cuda()
        causal = dtype == torch.float32
        torch.cuda.manual_seed_all(5)
        shown = F.scaled_dot_product_attention(q.detach().cuda(), k.detach().cuda(), identity, dropout_p=0.3, is_causal=causal).cpu()
        kept = (shown != 0).to(torch.float64)
        scores = q.double() @ k.double().transpose(-1, -2) / 32**0.5
        if causal:
            scores = scores.masked_fill(torch.ones(33, keys).triu(1).bool(), float("-inf"))
        weights = scores.softmax(-1)
        share = kept[weights > 1e-5].mean().item()
        assert abs(share - 0.7) < 0.03, share
        expected = (weights * kept / 0.7) @ v.double()
        seed = torch.randn(expected.shape, dtype=torch.float64)
        wanted = torch.autograd.grad(expected, (q, k, v), seed)
        torch.cuda.manual_seed_all(5)
        moved = on_device([q, k, v])
        result = F.scaled_dot_product_attention(*moved, dropout_p=0.3, is_causal=causal)
        found = torch.autograd.grad(result, moved, seed.to(dtype).cuda(), retain_graph=True)
        tolerance = HALF.get(dtype, 1e-4 if dtype == torch.float32 else 1e-9)
        for a, b in zip((result, *found), (expected, *wanted)):
            assert torch.allclose(a.detach().cpu().double(), b.detach().double(), rtol=tolerance, atol=tolerance), dtype
        if order == "forward" and dtype == torch.float32:
            again = torch.autograd.grad(result, moved, seed.to(dtype).cuda(), create_graph=True)
            for a, b in zip(again, wanted):
                assert a.requires_grad and torch.allclose(a.detach().cpu().double(), b.double(), rtol=tolerance, atol=tolerance)
            assert not torch.equal(F.scaled_dot_product_attention(*moved, dropout_p=0.3).cpu(), F.scaled_dot_product_attention(*moved, dropout_p=0.3).cpu())


def check_dropout_in_graphs() -> None:
    """A captured attention draws another mask in each replay, and its gradient the same one."""
    q, identity = torch.randn(1, 1, 8, 16, device="cuda"), torch.eye(8).expand(1, 1, 8, 8).cuda()
    v = identity.clone().requires_grad_()
    F.scaled_dot_product_attention(q, q, v, dropout_p=0.5).sum().backward()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = F.scaled_dot_product_attention(q, q, v, dropout_p=0.5)
        (grad,) = torch.autograd.grad(out, v, identity)
    shown = []
    for _ in range(2):
        graph.replay()
        shown.append(out.detach().cpu())
        assert torch.allclose(grad.cpu(), shown[-1].transpose(-1, -2), rtol=1e-5, atol=1e-6)
    assert not torch.equal(*shown)
