"""A gradient lies on the device of the output that it belongs to, whoever made it."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt


class OnTheCpu(trt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g.cpu()


def test_a_gradient_of_another_device_is_refused() -> None:
    x = trt.rand(8, device="cuda", requires_grad=True)
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected device cuda:0 but got cpu"):
        OnTheCpu.apply(x).sum().backward()
    with pytest.raises(RuntimeError, match="expected device cuda:0 but got cpu"):
        OnTheCpu.apply(x.exp()).sum().backward()
    handle = x.register_hook(lambda g: g.cpu())
    with pytest.raises(RuntimeError, match="has changed the type of value"):
        (x * x).sum().backward()
    handle.remove()
    y = x.exp()
    y.grad_fn.register_prehook(lambda grads: tuple(g.cpu() for g in grads))
    with pytest.raises(RuntimeError, match="has changed the type of value"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="invalid gradient"):
        (x * x).grad_fn(trt.ones(8))
    with pytest.raises(RuntimeError, match="expected device cuda:0 but got cpu"):
        (x * x).backward(trt.ones(8))
    assert x.grad is None


def test_a_gradient_moved_in_place_is_refused() -> None:
    def move(g: trt.Tensor) -> None:
        g.data = trt.ones(8)

    x = trt.rand(8, device="cuda", requires_grad=True)
    y = x.exp()
    y.register_hook(move)
    with pytest.raises(RuntimeError, match="gradient of output 0"):
        (y * 2).sum().backward()
    y = x.exp()
    y.register_hook(lambda g: g * 3)
    y.sum().backward()
    assert trt.allclose(x.grad, 3 * x.detach().exp()) and x.grad.device == x.device


def test_nested_passes_keep_the_device_and_the_stream() -> None:
    seen: list = []

    class Nested(trt.autograd.Function):
        @staticmethod
        def forward(ctx, x, level):
            ctx.level = level
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            if ctx.level == 0:
                seen.append((trt.cuda.current_device(), trt.cuda.current_stream()))
                return g, None
            with trt.enable_grad():
                x = g.detach().requires_grad_()
                return trt.autograd.grad(Nested.apply(x, ctx.level - 1), x, g)[0], None

    stream = trt.cuda.Stream()
    with trt.cuda.stream(stream):
        x = trt.ones(1, device="cuda", requires_grad=True)
        (Nested.apply(x, 50) * 3).backward()
    assert x.grad.tolist() == [3.0]
    assert seen == [(0, stream)]
