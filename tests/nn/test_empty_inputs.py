"""Empty batches and channels: what PyTorch takes is taken, with its shapes and gradients, and what it refuses is refused."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

import tensorrt_lite as trt

POOLS = {
    "max": lambda f, n, x: getattr(f, f"max_pool{n}d")(x, 2),
    "max with indices": lambda f, n, x: getattr(f, f"max_pool{n}d")(x, 2, return_indices=True),
    "average": lambda f, n, x: getattr(f, f"avg_pool{n}d")(x, 2),
    "power": lambda f, n, x: getattr(f, f"lp_pool{n}d")(x, 2, 2),
    "adaptive average": lambda f, n, x: getattr(f, f"adaptive_avg_pool{n}d")(x, 2),
    "global average": lambda f, n, x: getattr(f, f"adaptive_avg_pool{n}d")(x, 1),
    "adaptive max": lambda f, n, x: getattr(f, f"adaptive_max_pool{n}d")(x, 2),
    "adaptive max with indices": lambda f, n, x: getattr(f, f"adaptive_max_pool{n}d")(x, 2, return_indices=True),
    "fractional": lambda f, n, x: getattr(f, f"fractional_max_pool{n}d")(x, 2, output_size=2) if n > 1 else x,
}


def shapes_of(value):
    return [shapes_of(part) for part in value] if isinstance(value, (tuple, list)) else None if value is None else tuple(value.shape)


def outcome(lib, function, x):
    try:
        y = function(lib, x)
        (gradient,) = lib.autograd.grad((y[0] if isinstance(y, tuple) else y).sum(), x)
    except RuntimeError:
        return "refused"
    return shapes_of((y, gradient))


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("name", [*POOLS, "unpool"])
def test_pools_of_empty_batches_channels_and_planes(name, n):
    planes = (4,) * n
    for shape in ((0, 2, *planes), (2, 0, *planes), (0, 0, *planes), (0, *planes), (2, 3, *planes[1:], 0), (0, 3, *planes[1:], 0)):

        def pool(lib, x):
            functional = lib.nn.functional
            if name == "unpool":
                return getattr(functional, f"max_unpool{n}d")(x, lib.zeros(tuple(x.shape), dtype=lib.int64), 2)
            return POOLS[name](functional, n, x)

        want, got = (outcome(lib, pool, lib.ones(shape).requires_grad_()) for lib in (torch, trt))
        assert want == got, shape


def test_the_mean_of_an_empty_plane_is_nan():
    assert trt.nn.functional.adaptive_avg_pool2d(trt.ones(1, 2, 0, 3), 1).isnan().all()


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("bias_kv", [False, True])
def test_attention_of_an_empty_batch(batch_first, need_weights, bias_kv):
    shape = (0, 5, 16) if batch_first else (5, 0, 16)
    found = []
    for lib in (torch, trt):
        layer = lib.nn.MultiheadAttention(16, 4, batch_first=batch_first, add_bias_kv=bias_kv, add_zero_attn=bias_kv)
        x = lib.rand(*shape).requires_grad_()
        y = layer(x, x, x, need_weights=need_weights, attn_mask=lib.zeros(5, 5))
        y[0].sum().backward()
        found.append(shapes_of((y, x.grad, [p.grad for p in layer.parameters()])))
    assert found[0] == found[1]


@pytest.mark.parametrize("need_weights", [False, True])
def test_attention_masks_of_an_empty_batch(need_weights):
    x = trt.rand(5, 0, 16)
    y, _ = trt.nn.MultiheadAttention(16, 4)(x, x, x, key_padding_mask=trt.zeros(0, 5, dtype=trt.bool), need_weights=need_weights)
    assert y.shape == (5, 0, 16)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_transformers_of_an_empty_batch(batch_first, training):
    shape = (0, 5, 16) if batch_first else (5, 0, 16)
    for lib in (torch, trt):
        x = lib.rand(*shape).requires_grad_()
        y = lib.nn.Transformer(16, 4, 1, 1, 32, batch_first=batch_first).train(training)(x, x)
        y.sum().backward()
        assert tuple(y.shape) == tuple(x.grad.shape) == shape
