"""Losses and attention against PyTorch: reductions, weights, ignored targets, smoothing, derivatives of both orders, errors."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch_compare import compare, normal, ours, second_order

import tensorrt_lite as trt
from tensorrt_lite.nn import functional as TF

F = torch.nn.functional
REDUCTIONS = ["none", "mean", "sum"]
PAIRS = [("mse_loss", {}), ("l1_loss", {}), ("smooth_l1_loss", {"beta": 0.7}), ("smooth_l1_loss", {}), ("huber_loss", {"delta": 0.6}), ("kl_div", {"log_target": True})]


@pytest.mark.parametrize("name,options", PAIRS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_pairs(name, options, reduction, dtype):
    compare(getattr(TF, name), getattr(F, name), normal(6, 5, dtype=dtype), normal(6, 5, dtype=dtype, seed=1), reduction=reduction, **options)


@pytest.mark.parametrize("name,options", PAIRS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_pairs_second_derivatives(name, options):
    second_order(getattr(TF, name), getattr(F, name), normal(4, 3), normal(4, 3, seed=1), **options)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_probabilities(reduction):
    p = torch.sigmoid(normal(6, 5)).detach().requires_grad_()
    t = torch.sigmoid(normal(6, 5, seed=3)).detach()
    w = normal(6, 5, seed=4, grad=False).abs()
    compare(TF.binary_cross_entropy, F.binary_cross_entropy, p, t, reduction=reduction)
    compare(TF.binary_cross_entropy, F.binary_cross_entropy, p, t.clone().requires_grad_(), w, reduction=reduction)
    x = normal(6, 5)
    compare(TF.binary_cross_entropy_with_logits, F.binary_cross_entropy_with_logits, x, t, reduction=reduction)
    compare(TF.binary_cross_entropy_with_logits, F.binary_cross_entropy_with_logits, x, t, w, pos_weight=w[0], reduction=reduction)
    compare(TF.kl_div, F.kl_div, x, t, reduction=reduction)
    second_order(TF.binary_cross_entropy, F.binary_cross_entropy, p, t, reduction=reduction)
    second_order(TF.binary_cross_entropy_with_logits, F.binary_cross_entropy_with_logits, x, t, reduction=reduction)


def test_extreme_probabilities():
    x = torch.tensor([0.0, 1.0, 0.0, 1.0], requires_grad=True)
    compare(TF.binary_cross_entropy, F.binary_cross_entropy, x, torch.tensor([0.0, 1.0, 1.0, 0.0]))
    big = torch.tensor([100.0, -100.0, 1e4, -1e4], requires_grad=True)
    compare(TF.binary_cross_entropy_with_logits, F.binary_cross_entropy_with_logits, big, torch.tensor([0.0, 1.0, 1.0, 0.0]), tolerance=1e-4)


TARGETS = [((6, 4), (6,)), ((4,), ()), ((3, 4, 5), (3, 5)), ((2, 4, 3, 5), (2, 3, 5))]


@pytest.mark.parametrize("shape,target", TARGETS)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_class_indices(shape, target, reduction, dtype):
    x = normal(*shape, dtype=dtype)
    t = torch.randint(0, 4, target, generator=torch.Generator().manual_seed(0))
    w = torch.tensor([0.5, 1.5, 0.25, 2.0], dtype=dtype)
    for options in ({}, {"weight": w}, {"ignore_index": 1}, {"weight": w, "ignore_index": 2}):
        compare(TF.nll_loss, F.nll_loss, x, t, reduction=reduction, **options)
        compare(TF.cross_entropy, F.cross_entropy, x, t, reduction=reduction, **options)
        compare(TF.cross_entropy, F.cross_entropy, x, t, reduction=reduction, label_smoothing=0.2, **options)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_class_probabilities(reduction):
    x, t = normal(3, 4, 5), torch.softmax(normal(3, 4, 5, seed=2).detach(), 1).requires_grad_()
    w = torch.tensor([0.5, 1.5, 0.25, 2.0], dtype=torch.float64)
    compare(TF.cross_entropy, F.cross_entropy, x, t, reduction=reduction)
    compare(TF.cross_entropy, F.cross_entropy, x, t, reduction=reduction, weight=w, label_smoothing=0.3)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_second_derivatives(smoothing, weighted):
    t = torch.tensor([0, 3, 1, 2, 1])
    w = torch.tensor([0.5, 1.5, 0.25, 2.0], dtype=torch.float64) if weighted else None
    for reduction in REDUCTIONS:
        second_order(lambda x, r=reduction: TF.cross_entropy(x, ours(t), ours(w), reduction=r, label_smoothing=smoothing, ignore_index=3), lambda x, r=reduction: F.cross_entropy(x, t, w, reduction=r, label_smoothing=smoothing, ignore_index=3), normal(5, 4))


def test_all_targets_ignored():
    x, t = ours(normal(3, 4)), trt.full((3,), -100, dtype=trt.int64)
    assert TF.cross_entropy(x, t).isnan().item()
    assert TF.cross_entropy(x, t, reduction="sum").item() == 0


def test_many_rows_and_threads():
    x, t = normal(3000, 70, dtype=torch.float32), torch.arange(3000) % 70
    compare(TF.cross_entropy, F.cross_entropy, x, t)


@pytest.mark.parametrize("bad", [4, -1])
def test_targets_out_of_bounds(bad):
    t = trt.tensor([0, bad, 1])
    with pytest.raises(IndexError, match=f"Target {bad} is out of bounds"):
        TF.cross_entropy(trt.zeros(3, 4), t)
    with pytest.raises(IndexError, match=f"Target {bad} is out of bounds"):
        TF.nll_loss(trt.zeros(3, 4), t)


def test_errors():
    with pytest.raises(ValueError, match="batch_size"):
        TF.cross_entropy(trt.zeros(3, 4), trt.zeros(2, dtype=trt.int64))
    with pytest.raises(RuntimeError, match="weight tensor should be defined"):
        TF.cross_entropy(trt.zeros(3, 4), trt.zeros(3, dtype=trt.int64), trt.ones(3))
    with pytest.raises(RuntimeError, match="expected target dtype to be Long or Byte"):
        TF.nll_loss(trt.zeros(3, 4), trt.zeros(3, dtype=trt.int32))
    with pytest.raises(RuntimeError, match="between 0 and 1"):
        TF.binary_cross_entropy(trt.full((3,), 1.5), trt.zeros(3))
    with pytest.raises(ValueError, match="not a valid value for reduction"):
        TF.mse_loss(trt.zeros(3), trt.zeros(3), reduction="average")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(200, 10), (130, 24), (70, 25), (2, 21, 130), (3, 5, 7), (2, 40, 9, 8), (1, 3, 64), (5, 4, 1)])
@pytest.mark.parametrize("options", [{}, {"weight": True, "label_smoothing": 0.2}, {"reduction": "none"}, {"reduction": "sum", "label_smoothing": 0.1}])
@pytest.mark.parametrize("last", [False, True])
def test_cross_entropy_of_many_positions(dtype, shape, options, last):
    """Lanes, their tails, rows; ignored targets, a class that is certain, logits whose classes lie side by side."""
    x = normal(*shape, dtype=dtype).detach()
    x.view(-1)[0] = 300
    if last and x.dim() > 2:  # in three dimensions: of four PyTorch's gradient is contiguous, here it lies as the logits do
        x = x.movedim(1, -1).contiguous().movedim(-1, 1).flatten(2)
    x.requires_grad_()
    target = torch.arange(x.numel() // shape[1]).mul(7).remainder(shape[1]).reshape(shape[0], *x.shape[2:])
    target.view(-1)[2] = -100
    weight = torch.linspace(0.1, 2, shape[1], dtype=dtype) if options.get("weight") else None
    rest = {k: v for k, v in options.items() if k != "weight"}
    compare(
        lambda x: TF.cross_entropy(x, ours(target), None if weight is None else ours(weight), **rest),
        lambda x: F.cross_entropy(x, target, weight, **rest),
        x,
    )
    target.view(-1)[-1] = shape[1]
    with pytest.raises(IndexError, match=f"Target {shape[1]} is out of bounds"):
        TF.cross_entropy(ours(x), ours(target))


@pytest.mark.usefixtures("split_small_work")
def test_cross_entropy_does_not_depend_on_threads():
    x, t = trt.randn(20_000, 10).requires_grad_(), trt.randint(0, 10, (20_000,))
    y, u = trt.randn(2, 7, 30_001).requires_grad_(), trt.randint(0, 7, (2, 30_001))

    def run(threads):
        trt.set_num_threads(threads)
        losses = [TF.cross_entropy(a, b, reduction="none") for a, b in ((x, t), (y, u))]
        return [r.tolist() for r in losses + [trt.autograd.grad(r.sum(), a)[0] for r, a in zip(losses, (x, y), strict=True)]]

    before = trt.get_num_threads()
    try:
        assert run(1) == run(2) == run(5)
    finally:
        trt.set_num_threads(before)
