"""Normalisations on CUDA beside the CPU's; run by test_families.py through device_checks.py."""

from __future__ import annotations

import tensorrt_lite as torch
from device_checks import agree, on_device, raises

F = torch.nn.functional


def parameters(n: int | tuple[int, ...], dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """A weight and a bias that want gradients."""
    shape = (n,) if isinstance(n, int) else n
    return [(torch.rand(*shape) + 0.5).to(dtype).requires_grad_(), torch.randn(*shape).to(dtype).requires_grad_()]


def check_layer_norm(order: str) -> None:
    """Short and long rows, several dimensions, with and without parameters."""
    for shape, dims in (((5, 7), 1), ((3, 33, 4), 2), ((2, 1000), 1), ((40, 31), 1), ((1, 3), 2)):
        x = (torch.randn(*shape) * 3 + 10).requires_grad_()
        normal = shape[len(shape) - dims :]
        agree(F.layer_norm, x, normal, *parameters(normal))
        agree(F.rms_norm, x, normal, parameters(normal)[0])
    agree(F.layer_norm, x, (3,))
    agree(F.rms_norm, x, (3,))
    agree(F.layer_norm, torch.randn(31, 40).t().requires_grad_(), (31,), parameters(31)[0])
    agree(F.layer_norm, torch.randn(0, 7), (7,), *[p.detach() for p in parameters(7)])


def check_group_norm(order: str) -> None:
    """Groups of channels in both memory formats."""
    for shape, groups in (((3, 6, 5, 5), 3), ((2, 4), 2), ((2, 4, 700), 1), ((1, 6, 3, 3), 6)):
        x = torch.randn(*shape).requires_grad_()
        agree(F.group_norm, x, groups, *parameters(shape[1]))
        agree(F.group_norm, x, groups)
    last = torch.randn(3, 6, 5, 5).to(memory_format=torch.channels_last).requires_grad_()
    assert agree(F.group_norm, last, 2, *parameters(6)).is_contiguous(memory_format=torch.channels_last)


def check_batch_norm(order: str) -> None:
    """Training and evaluation, running statistics, both memory formats, few channels of many elements."""
    for shape in ((8, 5), (3, 6, 5, 5), (2, 3, 1500), (150, 40), (4, 2, 3, 3, 3)):
        for last in (False, True) if len(shape) == 4 else (False,):
            x = (torch.randn(*shape) + 0.5).to(memory_format=torch.channels_last if last else torch.contiguous_format).requires_grad_()
            for training in (True, False):
                running = [torch.randn(shape[1]), torch.rand(shape[1]) + 0.5]
                moved = on_device(running)
                weight, bias = parameters(shape[1])
                agree(F.batch_norm, x, torch.zeros(shape[1]), torch.ones(shape[1]), weight, bias, training=training)
                given = [weight.detach(), bias.detach()]
                result = F.batch_norm(x.detach(), *running, *given, training=training, momentum=0.3)
                ours = F.batch_norm(on_device(x.detach()), *moved, *on_device(given), training=training, momentum=0.3)
                assert torch.allclose(ours.cpu(), result, atol=1e-5) and ours.stride() == result.stride()
                for a, b in zip(moved, running):
                    assert torch.allclose(a.cpu(), b, atol=1e-5)
    agree(F.batch_norm, torch.randn(4, 3, 2).requires_grad_(), None, None, training=True)
    agree(F.instance_norm, torch.randn(4, 3, 20).requires_grad_())


def check_dtypes() -> None:
    """Halves with parameters of their own type or float32, and double."""
    for kind, own in ((torch.float16, torch.float16), (torch.float16, torch.float32), (torch.float64, torch.float64)):
        x = torch.randn(6, 40).to(kind).requires_grad_()
        agree(F.layer_norm, x, (40,), *parameters(40, own))
    x = torch.randn(6, 4, 10).half().requires_grad_()
    agree(F.batch_norm, x, torch.zeros(4), torch.ones(4), *parameters(4), training=True)
    agree(F.group_norm, x, 2, *parameters(4, torch.float16))
    agree(F.rms_norm, x, (10,), parameters(10, torch.float16)[0])
    raises(RuntimeError, "Given normalized_shape=[3]", F.layer_norm, x.detach().cuda(), (3,))
    raises(NotImplementedError, "not implemented for 'Int'", F.layer_norm, torch.ones(3, 4, dtype=torch.int32).cuda(), (4,))


def check_large_offsets() -> None:
    """Statistics of numbers far from zero keep their digits."""
    x = torch.randn(4, 500, dtype=torch.float64) + 3000
    expected = F.layer_norm(x, (500,))
    assert torch.allclose(F.layer_norm(x.float().cuda(), (500,)).cpu().double(), expected, atol=5e-3)
    ours = F.batch_norm(x.float().cuda(), None, None, training=True).cpu().double()
    assert torch.allclose(ours, F.batch_norm(x, None, None, training=True), atol=5e-3)


