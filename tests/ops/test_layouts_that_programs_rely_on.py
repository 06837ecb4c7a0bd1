"""Results that programs go on with by `view`, or write to: their order in memory, and that they are copies, is PyTorch's."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite import nn

torch = pytest.importorskip("torch")
F = nn.functional

QUERIES = {"heads in front": lambda m: m.ones(2, 4, 16, 8), "heads behind": lambda m: m.ones(2, 16, 4, 8).transpose(1, 2), "one head": lambda m: m.ones(2, 1, 16, 8)}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", QUERIES)
def test_attention_has_the_querys_order(name, causal):
    found = []
    for library in (torch, trt):
        q = QUERIES[name](library).requires_grad_()
        out = library.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=causal)
        grad = library.autograd.grad(out.square().sum(), q)[0]
        found.append((out.stride(), grad.shape, out._is_view()))
    assert found[0] == found[1]


def test_attention_of_contiguous_heads_can_be_viewed():
    q = trt.randn(2, 4, 16, 8)
    assert F.scaled_dot_product_attention(q, q, q).view(8, 16, 8).shape == (8, 16, 8)


@pytest.mark.parametrize("batch_first", [False, True])
def test_unpadded_sequences_are_copies(batch_first):
    found = []
    for library in (torch, trt):
        x = library.zeros(5, 2, 3)
        parts = library.nn.utils.rnn.unpad_sequence(x, library.tensor([4, 2]) if not batch_first else library.tensor([2, 1, 2, 2, 1]), batch_first=batch_first)
        parts[0].fill_(7)
        found.append((x.sum().item(), [part.stride() for part in parts], [tuple(part.shape) for part in parts]))
    assert found[0] == found[1]


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("lengths", [(2, 4), (4, 2), (3, 3)])
def test_padded_packs_have_pytorchs_order(batch_first, lengths):
    found = []
    for library in (torch, trt):
        rnn = library.nn.utils.rnn
        padded, sizes = rnn.pad_packed_sequence(rnn.pack_sequence([library.ones(n, 3) * n for n in lengths], enforce_sorted=False), batch_first=batch_first)
        found.append((padded.stride(), padded.tolist(), sizes.tolist()))
    assert found[0] == found[1]


def test_lu_of_a_singular_matrix_has_factors():
    factors, pivots = trt.lu(trt.ones(2, 2))
    assert factors.tolist() == [[1, 1], [1, 0]] and pivots.tolist() == [1, 2]
