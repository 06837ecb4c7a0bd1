"""ctc_loss beside PyTorch: lengths, targets' two forms, impossible alignments, gradients, errors."""

from __future__ import annotations

import math

import pytest

import tensorrt_lite as trt
from tensorrt_lite.autograd import grad, gradcheck
from torch_compare import ours, same, torch


def sample(dtype, steps=9, batch=4, classes=6, seed=0):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(steps, batch, classes, generator=rng, dtype=torch.float64).to(dtype).requires_grad_()
    targets = torch.randint(1, classes, (batch, 5), generator=rng)
    targets[0, 1] = targets[0, 0]  # a repeated class needs a blank in between
    return x, targets


def both(x, targets, *settings):
    """Values and gradients, through log_softmax and of log probabilities themselves."""
    for through in (True, False):
        found = []
        for lib, convert in ((torch, lambda t: t), (trt, ours)):
            leaf = convert(x.detach().requires_grad_())
            loss = lib.ctc_loss(leaf.log_softmax(-1) if through else leaf, convert(targets), *[convert(s) for s in settings])
            found.append((loss, lib.autograd.grad(loss.sum(), leaf)[0]))
        tolerance = 1e-11 if x.dtype is torch.float64 else 2e-5
        same(found[1], found[0], f"{settings}", tolerance)


def test_lengths_and_reductions():
    for dtype in (torch.float64, torch.float32):
        x, targets = sample(dtype)
        for inputs, lengths in (([9, 9, 9, 9], [5, 4, 3, 2]), ([9, 7, 5, 1], [2, 3, 0, 1]), ([9, 9, 8, 0], [0, 1, 5, 0])):
            flat = torch.cat([row[:n] for row, n in zip(targets, lengths)])
            for reduction in (0, 1, 2):
                both(x, targets, inputs, lengths, 0, reduction, False)
                both(x, flat, torch.tensor(inputs), torch.tensor(lengths), 0, reduction, False)
            both(x, targets.int(), inputs, lengths, 5 if targets.max() < 5 else 0, 1, False)


def test_impossible_alignments():
    """Infinite losses, NaN gradients; zeros of both with zero_infinity."""
    x, targets = sample(torch.float64)
    for zero in (False, True):
        both(x, targets, [3, 9, 9, 0], [5, 5, 2, 1], 0, 0, zero)
        both(x, targets, [3, 9, 9, 9], [5, 5, 2, 1], 0, 2, zero)


def test_one_sequence():
    x, targets = sample(torch.float64, batch=1)
    both(x[:, 0], targets[0], [9], [5], 0, 0, False)
    loss = trt.nn.functional.ctc_loss(ours(x.detach()[:, 0]), ours(targets[0]), (9,), (5,))
    same(loss, torch.nn.functional.ctc_loss(x[:, 0], targets[0], (9,), (5,)), "one sequence")


def test_long_sequences_and_threads():
    x, _ = sample(torch.float32, steps=150, batch=9, classes=20, seed=3)
    targets = torch.randint(1, 20, (9, 40), generator=torch.Generator().manual_seed(4))
    lengths = [40, 33, 1, 17, 40, 8, 29, 30, 31]
    both(x, targets, [150] * 9, lengths, 0, 1, False)
    threads = trt.get_num_threads()
    found = []
    try:
        for n in (1, 2):
            trt.set_num_threads(n)
            leaf = ours(x.detach().requires_grad_())
            loss = trt.ctc_loss(leaf.log_softmax(-1), ours(targets), [150] * 9, lengths, 0, 0)
            found.append((loss.detach(), grad(loss.sum(), leaf)[0]))
    finally:
        trt.set_num_threads(threads)
    assert trt.equal(found[0][0], found[1][0]) and trt.equal(found[0][1], found[1][1])


def test_gradient_beside_finite_differences():
    x, targets = sample(torch.float64, steps=5, batch=2, classes=4)
    targets = targets.clamp_max(3)[:, :2]
    assert gradcheck(lambda t: trt.ctc_loss(t.log_softmax(-1), ours(targets), [5, 4], [2, 1], 0, 0), (ours(x),))


def test_module_and_meta():
    x, targets = sample(torch.float32)
    loss = trt.nn.CTCLoss(blank=0, zero_infinity=True)(ours(x).log_softmax(-1), ours(targets), trt.tensor([9, 9, 9, 9]), trt.tensor([5, 4, 3, 2]))
    assert loss.shape == () and math.isfinite(loss.item())
    assert trt._ctc_loss(trt.empty(9, 4, 6, device="meta"), trt.empty(4, 5, dtype=trt.int64, device="meta"), [9] * 4, [5] * 4)[1].shape == (4, 9, 11)


def test_no_second_derivative():
    x, targets = sample(torch.float64)
    leaf = ours(x)
    (first,) = grad(trt.ctc_loss(leaf.log_softmax(-1), ours(targets), [9] * 4, [5] * 4, 0, 1), leaf, create_graph=True)
    with pytest.raises(RuntimeError, match="_ctc_loss_backward"):
        grad(first.sum(), leaf)


def test_errors():
    x, targets = (ours(t) for t in sample(torch.float32))
    nine, five = [9] * 4, [5] * 4
    cases = [
        (lambda: trt.ctc_loss(x.half(), targets, nine, five), NotImplementedError, "not implemented for 'Half'"),
        (lambda: trt.ctc_loss(x, targets, [9] * 3, five), RuntimeError, "input_lengths must be of size batch_size"),
        (lambda: trt.ctc_loss(x, targets, nine, [5] * 3), RuntimeError, "target_lengths must be of size batch_size"),
        (lambda: trt.ctc_loss(x, targets, [10] * 4, five), RuntimeError, "at most 9, but got value 10"),
        (lambda: trt.ctc_loss(x, targets, [-1] * 4, five), RuntimeError, "at least 0, but got value -1"),
        (lambda: trt.ctc_loss(x, targets, nine, [6] * 4), RuntimeError, "at least 6 at dimension 1, but got size 5"),
        (lambda: trt.ctc_loss(x, targets[0], nine, five), RuntimeError, "size 20 at dimension 0, but got size 5"),
        (lambda: trt.ctc_loss(x, targets, nine, five, 6), RuntimeError, "blank must be in label range"),
        (lambda: trt.ctc_loss(x, targets, trt.tensor([9.0] * 4), trt.tensor(five)), RuntimeError, "input_lengths must be integral"),
        (lambda: trt.ctc_loss(x, targets + 6, nine, five), IndexError, "out of bounds for 6 classes"),
        (lambda: trt.ctc_loss(x, targets, nine, trt.tensor(five)), TypeError, "both be tensors"),
    ]  # fmt: skip
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()
