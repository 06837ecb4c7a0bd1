"""Layers, losses, indexing and one optimizer step at the sizes of a small transformer and a small CNN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..rows import Row

if TYPE_CHECKING:
    from ..rows import Builder, Work

_AT_OR_UNDER = 1.05
_LAYERS = 0.7  # of recurrent layers, whose gates are fused


def _layer_norm(lib: Any, threads: int) -> Work:
    x, weight, bias = lib.randn(4096, 768), lib.ones(768), lib.zeros(768)
    layer_norm = lib.nn.functional.layer_norm
    return lambda: layer_norm(x, (768,), weight, bias)


def _layer_norm_backward(lib: Any, threads: int) -> Work:
    x = lib.randn(4096, 768).requires_grad_()
    weight, bias = lib.ones(768, requires_grad=True), lib.zeros(768, requires_grad=True)
    y = lib.nn.functional.layer_norm(x, (768,), weight, bias)
    incoming, grad = lib.ones_like(y), lib.autograd.grad
    return lambda: grad(y, (x, weight, bias), incoming, retain_graph=True)


def _batch_norm(training: bool) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        x, mean, variance = lib.randn(16, 64, 32, 32), lib.zeros(64), lib.ones(64)
        weight, bias, batch_norm = lib.ones(64), lib.zeros(64), lib.nn.functional.batch_norm
        return lambda: batch_norm(x, mean, variance, weight, bias, training)

    return build


def _batch_norm_backward(lib: Any, threads: int) -> Work:
    x = lib.randn(16, 64, 32, 32).requires_grad_()
    weight, bias = lib.ones(64, requires_grad=True), lib.zeros(64, requires_grad=True)
    y = lib.nn.functional.batch_norm(x, lib.zeros(64), lib.ones(64), weight, bias, True)
    incoming, grad = lib.ones_like(y), lib.autograd.grad
    return lambda: grad(y, (x, weight, bias), incoming, retain_graph=True)


def _group_norm(lib: Any, threads: int) -> Work:
    x, weight, bias = lib.randn(16, 64, 32, 32), lib.ones(64), lib.zeros(64)
    group_norm = lib.nn.functional.group_norm
    return lambda: group_norm(x, 8, weight, bias)


def _cross_entropy(backward: bool) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        x = lib.randn(1024, 10_000)
        target = lib.randint(0, 10_000, (1024,))
        cross_entropy = lib.nn.functional.cross_entropy
        if not backward:
            return lambda: cross_entropy(x, target)
        x.requires_grad_()
        grad = lib.autograd.grad
        return lambda: grad(cross_entropy(x, target), x)

    return build


def _embedding(lib: Any, threads: int) -> Work:
    weight, index = lib.randn(10_000, 256), lib.randint(0, 10_000, (64, 256))
    embedding = lib.nn.functional.embedding
    return lambda: embedding(index, weight)


def _embedding_backward(lib: Any, threads: int) -> Work:
    weight, index = lib.randn(10_000, 256).requires_grad_(), lib.randint(0, 10_000, (64, 256))
    y = lib.nn.functional.embedding(index, weight)
    incoming, grad = lib.ones_like(y), lib.autograd.grad
    return lambda: grad(y, weight, incoming, retain_graph=True)


def _index_select(lib: Any, threads: int) -> Work:
    x, index = lib.randn(10_000, 256), lib.randint(0, 10_000, (16_384,))
    return lambda: x.index_select(0, index)


def _gather(lib: Any, threads: int) -> Work:
    x, index = lib.randn(1024, 1024), lib.randint(0, 1024, (1024, 1024))
    return lambda: x.gather(1, index)


def _scatter_add(lib: Any, threads: int) -> Work:
    x, index, source = lib.zeros(1024, 1024), lib.randint(0, 1024, (1024, 1024)), lib.randn(1024, 1024)
    return lambda: x.scatter_add(1, index, source)


def _dropout(lib: Any, threads: int) -> Work:
    x, dropout = lib.randn(1024, 1024), lib.nn.functional.dropout
    return lambda: dropout(x, 0.1, True)


def _attention(causal: bool, backward: bool) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        q, k, v = (lib.randn(8, 6, 256, 64) for _ in range(3))
        attention = lib.nn.functional.scaled_dot_product_attention
        if not backward:
            return lambda: attention(q, k, v, is_causal=causal)
        for operand in (q, k, v):
            operand.requires_grad_()
        incoming, grad = lib.ones(8, 6, 256, 64), lib.autograd.grad
        return lambda: grad(attention(q, k, v, is_causal=causal), (q, k, v), incoming)

    return build


def _lstm_cell(lib: Any, threads: int) -> Work:
    cell = lib.nn.LSTMCell(256, 256)
    x, h, c = lib.randn(32, 256), lib.zeros(32, 256), lib.zeros(32, 256)
    return lambda: cell(x, (h, c))


def _recurrent(name: str, size: tuple[int, int, int, int, int], backward: bool) -> Builder:
    """A layer of nn over (batch, steps, features): size is layers, hidden, features, batch, steps."""

    def build(lib: Any, threads: int) -> Work:
        layers, hidden, features, batch, steps = size
        module = getattr(lib.nn, name)(features, hidden, layers, batch_first=True)
        x, grad = lib.randn(batch, steps, features), lib.autograd.grad
        if not backward:

            def forward() -> object:
                with lib.no_grad():
                    return module(x)

            return forward
        leaves = [x.requires_grad_(), *module.parameters()]
        return lambda: grad(module(x)[0].sum(), leaves)

    return build


def _optimizer(name: str, **options: float) -> Builder:
    """One step on 1M parameters spread over 16 tensors."""

    def build(lib: Any, threads: int) -> Work:
        parameters = [lib.nn.Parameter(lib.randn(256, 256)) for _ in range(16)]
        for parameter in parameters:
            parameter.grad = lib.randn(256, 256)
        step: Work = getattr(lib.optim, name)(parameters, **options).step
        return step

    return build


def _clip(lib: Any, threads: int) -> Work:
    parameters = [lib.nn.Parameter(lib.randn(256, 256)) for _ in range(16)]
    for parameter in parameters:
        parameter.grad = lib.randn(256, 256)
    clip = lib.nn.utils.clip_grad_norm_
    return lambda: clip(parameters, 1.0)


def rows() -> list[Row]:
    def row(name: str, build: Builder) -> Row:
        return Row(name, "nn", build, limit=_AT_OR_UNDER)

    return [
        row("layer_norm 4096x768", _layer_norm),
        row("layer_norm 4096x768, backward", _layer_norm_backward),
        row("batch_norm 16x64x32x32, training", _batch_norm(True)),
        row("batch_norm 16x64x32x32, evaluation", _batch_norm(False)),
        row("batch_norm 16x64x32x32, backward", _batch_norm_backward),
        row("group_norm 16x64x32x32", _group_norm),
        row("cross_entropy 1024x10000", _cross_entropy(False)),
        row("cross_entropy 1024x10000, forward and backward", _cross_entropy(True)),
        row("embedding 64x256 of 10000x256", _embedding),
        row("embedding 64x256 of 10000x256, backward", _embedding_backward),
        row("index_select 16384 of 10000x256", _index_select),
        row("gather 1024x1024", _gather),
        row("scatter_add 1024x1024", _scatter_add),
        row("dropout 1M", _dropout),
        row("attention 8x6x256x64", _attention(False, False)),
        row("attention 8x6x256x64, causal", _attention(True, False)),
        row("attention 8x6x256x64, causal, forward and backward", _attention(True, True)),
        row("LSTM cell 32x256", _lstm_cell),
        *[
            Row(f"{name} {size[0]}x{size[1]}, {size[3]}x{size[4]}x{size[2]}{suffix}", "nn", _recurrent(name, size, backward), limit=_LAYERS)
            for name in ("LSTM", "GRU", "RNN")
            for size in ((2, 128, 128, 16, 32), (2, 256, 128, 16, 50))
            for backward, suffix in ((False, ""), (True, ", forward and backward"))
        ],
        row("SGD with momentum, 1M parameters", _optimizer("SGD", lr=0.01, momentum=0.9)),
        row("Adam, 1M parameters", _optimizer("Adam", lr=1e-3)),
        row("AdamW, 1M parameters", _optimizer("AdamW", lr=1e-3)),
        row("clip_grad_norm_, 1M parameters", _clip),
    ]
