"""linear_cross_entropy beside PyTorch, whole and in chunks; what a chunk keeps; derivatives."""

from __future__ import annotations

import pytest
import torch

import tensorrt_lite as trt
from nn_compare import assert_same, ours
from tensorrt_lite.autograd import gradcheck, gradgradcheck

CHUNKS = [None, {"batch_chunk_size": 3}, {"chunking_method": "aspect_ratio"}, {"chunking_method": "aspect_ratio:2"}, {}]


def options(lib, chunk):
    return None if chunk is None else lib.nn.LinearCrossEntropyOptions(allow_retain_graph=True, **chunk)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_beside_pytorch(reduction):
    rng = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=rng, dtype=torch.float64)  # noqa: E731
    x, w, b, weight = draw(10, 4), draw(7, 4), draw(7), draw(7).abs()
    target = torch.tensor([0, 6, 3, -100, 2, 2, 5, 1, -100, 4])
    for chunk in CHUNKS:
        for bias in (None, b):
            for class_weight in (None, weight):
                found = []
                for lib, convert in ((torch, lambda t: t), (trt, ours)):
                    leaves = [convert(t.detach()).requires_grad_() for t in (x, w, b)]
                    loss = lib.nn.functional.linear_cross_entropy(
                        leaves[0], leaves[1], convert(target), linear_bias=None if bias is None else leaves[2],
                        weight=None if class_weight is None else convert(class_weight), reduction=reduction, options=options(lib, chunk)
                    )  # fmt: skip
                    found.append((loss, lib.autograd.grad(loss.sum(), leaves[: 2 if bias is None else 3])))
                assert_same(found[1][0], found[0][0])
                for mine, theirs in zip(found[1][1], found[0][1], strict=True):
                    assert_same(mine, theirs)


def test_one_sample_and_more_dimensions():
    layer, reference = trt.nn.LinearCrossEntropyLoss(4, 5, out_features=(2, 3), bias=True), torch.nn.LinearCrossEntropyLoss(4, 5, out_features=(2, 3), bias=True)
    layer.load_state_dict({k: ours(v) for k, v in reference.state_dict().items()})
    x, target = torch.randn(6, 4), torch.randint(0, 5, (6, 2, 3))
    assert_same(layer(ours(x), ours(target)), reference(x, target))
    assert repr(layer).split("(")[0] == "LinearCrossEntropyLoss"
    w, one = torch.randn(5, 4), torch.tensor(3)
    call = trt.nn.functional.linear_cross_entropy
    expected = torch.nn.functional.linear_cross_entropy(x[0], w, one)
    assert_same(call(ours(x[0]), ours(w), ours(one)), expected)
    assert_same(call(ours(x[0]), ours(w), ours(one), options=trt.nn.LinearCrossEntropyOptions(batch_chunk_size=1)), expected)


def test_derivatives_of_chunks():
    x, w = trt.randn(5, 3, dtype=trt.float64, requires_grad=True), trt.randn(4, 3, dtype=trt.float64, requires_grad=True)
    target = trt.tensor([0, 3, 1, -100, 2])
    call = lambda x, w: trt.nn.functional.linear_cross_entropy(x, w, target, options=trt.nn.LinearCrossEntropyOptions(batch_chunk_size=2))  # noqa: E731
    assert gradcheck(call, (x, w)) and gradgradcheck(call, (x, w))


def test_no_logits_of_the_batch():
    """The peak of forward and backward holds a chunk's logits, not all."""
    from tensorrt_lite.cpu import memory

    x, w, target = trt.randn(2048, 16).requires_grad_(), trt.randn(4096, 16).requires_grad_(), trt.randint(0, 4096, (2048,))
    memory.reset_peak_memory_stats()
    before = memory.memory_allocated()
    trt.nn.functional.linear_cross_entropy(x, w, target, options=trt.nn.LinearCrossEntropyOptions(batch_chunk_size=64)).backward()
    assert memory.max_memory_allocated() - before < 2048 * 4096 * 4 / 4


def test_errors_and_options():
    x, w, target = trt.zeros(3, 4), trt.zeros(5, 4), trt.zeros(3, dtype=trt.int64)
    call = trt.nn.functional.linear_cross_entropy
    with pytest.raises(RuntimeError, match="equal input and linear_weight last dimensions"):
        call(x[:, :2], w, target)
    with pytest.raises(RuntimeError, match="dimensionality 1 or 2, got 3"):
        call(x.unsqueeze(0), w, target)
    with pytest.raises(RuntimeError, match="expected linear_bias shape"):
        call(x, w, target, linear_bias=trt.zeros(4))
    with pytest.raises(RuntimeError, match="ignore_index cannot be specified"):
        call(x, w, trt.zeros(3, 5), ignore_index=1)
    with pytest.warns(UserWarning, match="``options`` ignored"):
        call(x, w, target, label_smoothing=0.1, options=trt.nn.LinearCrossEntropyOptions())
    with pytest.raises(ValueError, match="invalid chunking_method"):
        trt.nn.LinearCrossEntropyOptions(chunking_method="rows")
    with pytest.raises(AttributeError, match="cannot assign"):
        trt.nn.LinearCrossEntropyOptions().acc_policy = "compact"
    assert trt.nn.LinearCrossEntropyOptions(batch_chunk_size=2) == trt.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
