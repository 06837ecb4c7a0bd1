"""Gradients of Tensor.unfold: windows that overlap add up, others are copied."""

from __future__ import annotations

from typing import Any

import pytest

import tensorrt_lite as trt
from tensorrt_lite.autograd import gradcheck, gradgradcheck

torch = pytest.importorskip("torch")

# shape, dimension, size, step
CASES = {
    "overlapping by whole steps": ((2, 40), 1, 12, 3),
    "overlapping by parts of steps": ((2, 41), 1, 11, 4),
    "side by side": ((2, 40), 1, 4, 4),
    "side by side with a rest": ((2, 43), 1, 4, 4),
    "gaps": ((2, 40), 1, 3, 5),
    "by one": ((2, 17), -1, 5, 1),
    "rows": ((30, 3), 0, 6, 2),
    "middle": ((2, 20, 3), 1, 6, 4),
    "one window": ((9,), 0, 9, 2),
    "no elements in a window": ((9, 2), 0, 0, 3),
    "no elements": ((0, 8), 1, 3, 2),
}


def gradients(library: Any, name: str, dtype: str) -> tuple[Any, Any]:
    shape, dimension, size, step = CASES[name]
    x = library.arange(max(1, torch.Size(shape).numel())).to(getattr(library, dtype))[: torch.Size(shape).numel()].reshape(shape).requires_grad_()
    y = x.unfold(dimension, size, step)
    g = (library.arange(y.numel()) % 7).to(getattr(library, dtype)).reshape(y.shape).requires_grad_()
    recorded = library.autograd.grad(y, x, g, create_graph=True)[0]
    return library.autograd.grad(x.unfold(dimension, size, step), x, g.detach())[0], recorded


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", CASES)
def test_gradient_is_pytorchs_with_and_without_a_graph_of_it(name: str, dtype: str) -> None:
    (got, recorded), (want, _) = gradients(trt, name, dtype), gradients(torch, name, dtype)
    assert got.tolist() == want.tolist() and recorded.tolist() == want.tolist()
    assert got.shape == want.shape and got.is_contiguous()


@pytest.mark.parametrize("name", CASES)
def test_first_and_second_derivatives(name: str) -> None:
    shape, dimension, size, step = CASES[name]
    x = trt.randn(shape, dtype=trt.float64, requires_grad=True)
    assert gradcheck(lambda t: t.unfold(dimension, size, step).sin(), (x,)) and gradgradcheck(lambda t: t.unfold(dimension, size, step).sin(), (x,))


def test_images_in_patches() -> None:
    found = []
    for library in (trt, torch):
        x = library.arange(2 * 3 * 12 * 12).reshape(2, 3, 12, 12).double().requires_grad_()
        y = x.unfold(2, 5, 2).unfold(3, 4, 4)
        (y * (library.arange(y.numel()).reshape(y.shape) % 11)).sum().backward()
        found.append(x.grad.tolist())
    assert found[0] == found[1]


def test_batches_of_gradients() -> None:
    x, g = trt.randn(2, 30), trt.randn(5, 2, 7, 6)
    y = lambda t: t.unfold(1, 6, 4)  # noqa: E731
    many = trt.func.vmap(lambda cotangent: trt.func.vjp(y, x)[1](cotangent)[0])(g)
    assert trt.allclose(many, trt.stack([trt.func.vjp(y, x)[1](each)[0] for each in g]))


@pytest.mark.parametrize("hop", [128, 100, 512])
def test_stft(hop: int) -> None:
    found = []
    for library in (trt, torch):
        x = (library.arange(8000) % 131).double().sub(60).reshape(2, 4000).requires_grad_()
        s = library.stft(x, 512, hop, window=library.hann_window(512, dtype=library.float64), return_complex=True)
        found.append(library.autograd.grad(s.abs().square().sum(), x)[0])
    torch.testing.assert_close(torch.tensor(found[0].tolist(), dtype=torch.float64), found[1], rtol=1e-10, atol=1e-7)
