"""scaled_dot_product_attention: the kernel against the definition in float64, with its gradients; memory; errors."""

from __future__ import annotations

import numpy as np
import pytest

import tensorrt_lite as trt
from tensorrt_lite.autograd import gradcheck, gradgradcheck

attention = trt.nn.functional.scaled_dot_product_attention


def defined(q, k, v, mask=None, causal=False, scale=None):
    """The definition, in NumPy and float64; q: (batch, heads, L, E), k and v of as many or fewer heads."""
    k, v = (x.repeat(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if causal:
        scores = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    top = scores.max(-1, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = weights.sum(-1, keepdims=True)
    return weights / np.where(total == 0, 1, total) @ v


def operands(shape, heads_last=False, seed=0):
    batch, heads, key_heads, queries, keys, width, value_width = shape
    rng = np.random.default_rng(seed)

    def one(h, n, e):
        x = rng.standard_normal((batch, n, h, e)).astype(np.float32).swapaxes(1, 2)
        return x if heads_last else np.ascontiguousarray(x)

    return one(heads, queries, width), one(key_heads, keys, width), one(key_heads, keys, value_width)


# around the blocks of 64 and 512 queries and 128 keys; shared heads; value width other than the query's; one row, one key
SHAPES = [(2, 3, 3, 5, 7, 4, 6), (1, 2, 1, 200, 300, 64, 32), (2, 8, 4, 130, 129, 16, 16), (1, 1, 1, 600, 513, 33, 20), (3, 2, 2, 1, 1, 1, 1), (1, 9, 3, 64, 128, 8, 8)]


def masks(shape, rng):
    batch, heads, _, queries, keys, _, _ = shape
    allowed = rng.random((batch, 1, queries, keys)) > 0.3
    allowed[0, 0, 0] = False  # a row that attends to nothing gives zeros
    return {
        "none": {},
        "causal": {"causal": True},
        "allowed": {"mask": allowed},
        "columns": {"mask": rng.random((1, heads, 1, keys)) > 0.2},
        "added": {"mask": rng.standard_normal((queries, keys))},
        "scale": {"scale": 0.3},
    }


@pytest.mark.parametrize("kind", ["none", "causal", "allowed", "columns", "added", "scale"])
@pytest.mark.parametrize("shape", SHAPES)
def test_value_and_gradients_in_float32(shape, kind):
    for heads_last in (False, True):
        q, k, v = operands(shape, heads_last)
        options = masks(shape, np.random.default_rng(1))[kind]
        exact = defined(*(x.astype(np.float64) for x in (q, k, v)), **options)
        mask = options.get("mask")
        arguments = {
            "attn_mask": None if mask is None else trt.from_numpy(mask if mask.dtype == bool else mask.astype(np.float32)),
            "is_causal": options.get("causal", False),
            "scale": options.get("scale"),
            "enable_gqa": True,
        }
        leaves = [trt.from_numpy(x).requires_grad_() for x in (q, k, v)]
        out = attention(*leaves, **arguments)
        assert np.abs(out.detach().numpy() - exact).max() <= 3e-6 * np.abs(exact).max()
        # the fused backward and the recorded one, from the same rule in float64
        incoming = np.random.default_rng(2).standard_normal(exact.shape)
        wide = [trt.from_numpy(x.astype(np.float64)).requires_grad_() for x in (q, k, v)]
        if mask is not None and mask.dtype != bool:
            reference = attention(*wide, **arguments | {"attn_mask": arguments["attn_mask"].double()})
        else:
            reference = attention(*wide, **arguments)
        expected = trt.autograd.grad(reference, wide, trt.from_numpy(incoming))
        for create_graph in (False, True):
            got = trt.autograd.grad(out, leaves, trt.from_numpy(incoming).float(), retain_graph=True, create_graph=create_graph)
            for a, b in zip(got, expected):
                assert (a.double() - b).abs().max() <= 5e-6 * b.abs().max().clamp(min=1), create_graph


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"attn_mask": trt.tensor([[True, False, True], [False, False, False]])}])
def test_derivatives_in_float64(options):
    trt.manual_seed(0)
    inputs = [trt.randn(2, 2, n, 3, dtype=trt.float64, requires_grad=True) for n in (2, 3, 3)]
    assert gradcheck(lambda *x: attention(*x, **options), inputs)
    assert gradgradcheck(lambda *x: attention(*x, **options), inputs)


def test_only_the_wanted_gradients():
    q, k, v = (trt.randn(1, 2, 70, 8) for _ in range(3))
    expected = trt.autograd.grad(attention(*(x.requires_grad_() for x in (q, k, v))).sum(), (q, k, v))
    for chosen in range(3):
        leaves = [x.detach() for x in (q, k, v)]
        leaves[chosen].requires_grad_()
        (got,) = trt.autograd.grad(attention(*leaves).sum(), leaves[chosen])
        assert trt.equal(got, expected[chosen])


def test_few_heads_take_the_backward_in_two_passes():
    """One head of 1,100 queries: gradients of keys and of queries are shared out apart, with the same values."""
    q, k, v = (trt.randn(1, 1, 1100, 8, requires_grad=True) for _ in range(3))
    many = [x.detach().expand(1, 8, 1100, 8).clone().requires_grad_() for x in (q, k, v)]
    g = trt.randn(1, 1, 1100, 8)
    few = trt.autograd.grad(attention(q, k, v, is_causal=True), (q, k, v), g)
    joint = trt.autograd.grad(attention(*many, is_causal=True), many, g.expand(1, 8, 1100, 8))
    for a, b in zip(few, joint):
        assert trt.allclose(a, b[:, 3:4], rtol=1e-5, atol=1e-6)


def test_memory_is_linear_in_the_length():
    q = trt.randn(1, 1, 8192, 8, requires_grad=True)
    trt.cpu.reset_peak_memory_stats()
    before = trt.cpu.memory_allocated()
    attention(q, q, q, is_causal=True).sum().backward()
    grown = trt.cpu.max_memory_allocated() - before
    assert grown < 64 * q.numel() * 4  # the weights alone would take 1,024 times the query


def test_halves_and_dimensions():
    q, k, v = (trt.randn(2, 5, 8) for _ in range(3))
    whole = attention(q[None], k[None], v[None])[0]
    assert trt.equal(attention(q, k, v), whole) and trt.equal(attention(q[0], k[0], v[0]), whole[0])
    halves = attention(*(x.bfloat16() for x in (q, k, v)))
    assert halves.dtype is trt.bfloat16 and (halves.float() - whole).abs().max() < 0.03
    assert attention(trt.zeros(2, 0, 8), k, v).shape == (2, 0, 8)
    assert (attention(q, trt.zeros(2, 0, 8), trt.zeros(2, 0, 3)) == 0).all()
    assert attention(*(x.to("meta") for x in (q, k, v))).shape == (2, 5, 8)


@pytest.mark.parametrize("dtype", [trt.float32, trt.float64, trt.bfloat16])
@pytest.mark.parametrize("lengths", [(4, 4), (3, 5), (5, 3), (70, 140)])
def test_a_mask_beside_is_causal(lengths, dtype):
    trt.manual_seed(0)
    queries, keys = lengths
    q, k, v, g = (trt.randn(2, 2, n, 8).to(dtype) for n in (queries, keys, keys, queries))
    seen = trt.ones(queries, keys, dtype=trt.bool).tril()
    allowed = trt.rand(queries, keys) > 0.3
    allowed[0] = False
    added = trt.randn(queries, keys).to(dtype)
    for mask, both in ((allowed, allowed & seen), (added, added.masked_fill(~seen, float("-inf")))):
        leaves = [t.clone().requires_grad_() for t in (q, k, v)]
        for create_graph in (False, True):  # the kernel's derivative, and the one that is recorded
            out, wanted = attention(*leaves, mask, is_causal=True), attention(*leaves, both)
            found, expected = (trt.autograd.grad(t, leaves, g, create_graph=create_graph) for t in (out, wanted))
            for a, b in ((out, wanted), *zip(found, expected, strict=True)):
                trt.testing.assert_close(a, b)
            assert mask is added or not out[:, :, 0].any()


def test_what_is_not_a_number_spreads():
    q, k, v = (trt.zeros(1, 1, 3, 4) for _ in range(3))
    k[0, 0, 1, 2] = float("nan")
    assert attention(q, k, v).isnan().all()
    q[0, 0, 0, 0], k[0, 0, 1, 2] = float("inf"), 1.0
    k[0, 0, :, 0] = 1.0
    assert attention(q, k, v)[0, 0, 0].isnan().all() and not attention(q, k, v)[0, 0, 1:].isnan().any()


def test_errors():
    q = trt.zeros(1, 4, 3, 8)
    mask = trt.ones(3, 3)
    for operand, other, dropout in ((q[0], mask, 0.0), (q, mask, 0.5), (q, mask.clone().requires_grad_(), 0.0), (q.to("meta"), mask.to("meta"), 0.0)):
        with pytest.raises(RuntimeError, match="is_causal"):
            attention(operand, operand, operand, other, dropout, is_causal=True)
    with trt.nn.attention.sdpa_kernel(trt.nn.attention.SDPBackend.MATH), pytest.raises(RuntimeError, match="is_causal"):
        attention(q, q, q, mask, is_causal=True)
    with pytest.raises(RuntimeError, match="same dtype"):
        attention(q, q.double(), q)
    with pytest.raises(RuntimeError, match="attn_mask dtype"):
        attention(q, q, q, trt.ones(3, 3, dtype=trt.float64))
    with pytest.raises(RuntimeError, match="must divide"):
        attention(q, q[:, :3], q[:, :3], enable_gqa=True)
    with pytest.raises(RuntimeError):
        attention(q, q[:, :2], q[:, :2])
    with pytest.raises(RuntimeError):
        attention(q, trt.zeros(1, 4, 3, 7), q)
    with pytest.raises(RuntimeError):
        attention(q, q, q, trt.ones(4, 3, dtype=trt.bool))
