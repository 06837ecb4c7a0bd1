"""softmax and the losses over class indices on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

import tensorrt_lite as torch
from device_checks import agree, on_device, raises

F = torch.nn.functional


def check_softmax(order: str) -> None:
    """Rows of every kernel's length, columns, turned and empty tensors, with gradients."""
    shapes = [(), (1,), (5, 31), (3, 17), (2, 600), (3, 0), (1, 4100)] if order == "forward" else [(5, 31), (2, 600)]
    for shape in shapes:
        x = torch.randn(*shape).requires_grad_() if shape else torch.tensor(0.5, requires_grad=True)
        agree(torch.softmax, x, dim=-1)
        agree(torch.log_softmax, x, dim=-1)
    for shape in ((31, 3), (4, 33, 5), (2, 3, 100)):
        x = torch.randn(*shape).requires_grad_()
        for dim in range(x.dim()):
            agree(torch.softmax, x, dim=dim)
            agree(torch.log_softmax, x.detach().transpose(0, -1).requires_grad_(), dim=dim)
    x = (torch.randn(1, 20_000) * 5).requires_grad_()
    agree(torch.softmax, x, dim=1)
    agree(torch.log_softmax, x, dim=1)


def check_softmax_values() -> None:
    """Large and infinite arguments, halves, double, another type for the result, out=."""
    inf, nan = float("inf"), float("nan")
    for x in (torch.tensor([[1e4, -1e4, 0.0], [inf, 0.0, 1.0], [-inf, -inf, -inf], [-inf, 1.0, nan]]),):
        agree(torch.softmax, x, dim=1)
        agree(torch.softmax, x[:2, :].t(), dim=0)
    for dtype in (torch.float16, torch.float64):
        agree(torch.softmax, torch.randn(5, 40).to(dtype).requires_grad_(), dim=1)
        agree(torch.log_softmax, torch.randn(40, 5).to(dtype).requires_grad_(), dim=0)
    agree(torch.softmax, torch.randn(5, 40).half(), dim=1, dtype=torch.float32)
    x, out = torch.randn(3, 40), torch.empty(40, 3).cuda().t()
    torch.softmax(x.cuda(), 1, out=out)
    assert torch.allclose(out.cpu(), x.softmax(1), atol=1e-6)
    raises(NotImplementedError, "not implemented for 'Int'", torch.softmax, torch.ones(3, dtype=torch.int32).cuda(), 0)


def check_cross_entropy(order: str) -> None:
    """Every reduction, weights, ignored targets, smoothed labels; class dimension inside."""
    for classes, shape in ((5, (7,)), (1, (3,)), (300, (33,)), (10, (3, 9)), (33, (2, 5, 4))):
        logits = torch.randn(shape[0], classes, *shape[1:]).requires_grad_()
        target = torch.randint(0, classes, shape)
        target.view(-1)[0] = -100
        weight = torch.rand(classes) + 0.5
        for reduction in ("mean", "sum", "none") if order == "forward" else ("mean",):
            for w in (None, weight):
                agree(F.cross_entropy, logits, target, w, reduction=reduction)
                agree(F.cross_entropy, logits, target, w, reduction=reduction, label_smoothing=0.25)
                agree(F.nll_loss, logits, target, w, reduction=reduction)
    agree(F.cross_entropy, torch.randn(33_000, 2).requires_grad_(), torch.randint(0, 2, (33_000,)))


def check_cross_entropy_values() -> None:
    """Halves, single samples, probabilities, no samples; a target outside is an error at the next wait, its loss NaN."""
    agree(F.cross_entropy, torch.randn(6, 9).half().requires_grad_(), torch.randint(0, 9, (6,)))
    agree(F.cross_entropy, torch.randn(9).requires_grad_(), torch.tensor(3))
    agree(F.cross_entropy, torch.randn(6, 9).requires_grad_(), torch.rand(6, 9))
    agree(F.cross_entropy, torch.randn(0, 9), torch.empty(0, dtype=torch.int64))
    x, target = torch.randn(3, 4).cuda().requires_grad_(), torch.tensor([1, 4, -7]).cuda()
    for loss in (F.cross_entropy, F.nll_loss):
        values = loss(x, target, reduction="none")
        raises(IndexError, f"{loss.__name__}(): index", values.cpu)
        assert values.isnan().tolist() == [False, True, True]
        (grad,) = torch.autograd.grad(values.sum(), x)
        assert grad.isnan().any(1).tolist() == [False, True, True]
    raises(RuntimeError, "same device", F.cross_entropy, x, target.cpu())
    raises(ValueError, "to match target batch_size", F.cross_entropy, x, target[:2])


def check_pointwise_losses() -> None:
    """Losses made of pointwise operators and reductions."""
    x, t = torch.randn(7, 9).requires_grad_(), torch.rand(7, 9)
    for reduction in ("mean", "sum", "none"):
        for loss in (F.mse_loss, F.smooth_l1_loss, F.binary_cross_entropy_with_logits):
            agree(loss, x, t, reduction=reduction)
    agree(F.binary_cross_entropy, torch.rand(7, 9).requires_grad_(), t)


def check_second_derivative() -> None:
    """Under create_graph the gradient is made of recorded operators."""
    results = []
    for x in (a := torch.randn(4, 6, dtype=torch.float64).requires_grad_(), on_device(a)):
        (g,) = torch.autograd.grad((x.log_softmax(1) * x.softmax(0)).sum(), x, create_graph=True)
        results.append(torch.autograd.grad((g * g).sum(), x)[0].cpu())
    assert torch.allclose(*results, rtol=1e-10, atol=1e-12)
