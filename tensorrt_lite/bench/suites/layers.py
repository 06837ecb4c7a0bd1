"""Normalisations, losses, pools and optimizer options beyond the common ones of `nn`, forward and backward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..rows import Row, gradient_of, of_operands

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..rows import Builder, Work

    Make = Callable[[Any], tuple[Any, ...]]
    Call = Callable[..., Any]

_AT_OR_UNDER = 1.05


def _leaf(x: Any) -> Any:
    return x.requires_grad_()


def _tokens(dtype: str) -> Make:
    """x: (4096, 768), weight, bias."""

    def make(lib: Any) -> tuple[Any, ...]:
        kind = getattr(lib, dtype)
        return tuple(_leaf(t.to(kind)) for t in (lib.randn(4096, 768), lib.ones(768), lib.zeros(768)))

    return make


def _images(dtype: str, channels_last: bool = False) -> Make:
    """x: (16, 64, 32, 32), weight, bias."""

    def make(lib: Any) -> tuple[Any, ...]:
        kind, x = getattr(lib, dtype), lib.randn(16, 64, 32, 32)
        x = x.to(memory_format=lib.channels_last) if channels_last else x
        return tuple(_leaf(t.to(kind)) for t in (x, lib.ones(64), lib.zeros(64)))

    return make


def _norms() -> list[tuple[str, Make, Call]]:
    found: list[tuple[str, Make, Call]] = []
    for dtype in ("float32", "bfloat16"):
        found += [
            (f"layer_norm {dtype}", _tokens(dtype), lambda lib, x, w, b: lib.nn.functional.layer_norm(x, (768,), w, b)),
            (f"rms_norm {dtype}", _tokens(dtype), lambda lib, x, w, b: lib.nn.functional.rms_norm(x, (768,), w)),
            (f"batch_norm {dtype}", _images(dtype), lambda lib, x, w, b: lib.nn.functional.batch_norm(x, None, None, w, b, True)),
            (f"batch_norm channels_last {dtype}", _images(dtype, True), lambda lib, x, w, b: lib.nn.functional.batch_norm(x, None, None, w, b, True)),
            (f"group_norm {dtype}", _images(dtype), lambda lib, x, w, b: lib.nn.functional.group_norm(x, 8, w, b)),
            (f"instance_norm {dtype}", _images(dtype), lambda lib, x, w, b: lib.nn.functional.instance_norm(x, None, None, w, b)),
        ]
    return found


def _pair(lib: Any) -> tuple[Any, ...]:
    """Predictions and targets of 1M elements."""
    return _leaf(lib.randn(1024, 1024)), lib.randn(1024, 1024)


def _probabilities(lib: Any) -> tuple[Any, ...]:
    return _leaf(lib.rand(1024, 1024) * 0.98 + 0.01), (lib.rand(1024, 1024) > 0.5).float()


def _logarithms(lib: Any) -> tuple[Any, ...]:
    return _leaf(lib.randn(1024, 1024).log_softmax(1)), lib.randn(1024, 1024).softmax(1)


def _classes(lib: Any) -> tuple[Any, ...]:
    """Scores of 1024 classes for 1024 samples, the classes, a weight a class."""
    return _leaf(lib.randn(1024, 1024)), lib.randint(0, 1024, (1024,)), lib.rand(1024) + 0.5


def _small_classes(lib: Any) -> tuple[Any, ...]:
    return _leaf(lib.randn(65536, 10)), lib.randint(0, 10, (65536,)), lib.rand(10) + 0.5


_LOSSES: list[tuple[str, Make, Call]] = [
    ("mse_loss", _pair, lambda lib, x, y: lib.nn.functional.mse_loss(x, y)),
    ("l1_loss", _pair, lambda lib, x, y: lib.nn.functional.l1_loss(x, y)),
    ("smooth_l1_loss", _pair, lambda lib, x, y: lib.nn.functional.smooth_l1_loss(x, y)),
    ("huber_loss", _pair, lambda lib, x, y: lib.nn.functional.huber_loss(x, y)),
    ("binary_cross_entropy", _probabilities, lambda lib, x, y: lib.nn.functional.binary_cross_entropy(x, y)),
    ("bce_with_logits", _pair, lambda lib, x, y: lib.nn.functional.binary_cross_entropy_with_logits(x, y)),
    ("kl_div", _logarithms, lambda lib, x, y: lib.nn.functional.kl_div(x, y, reduction="batchmean")),
    ("nll_loss", _classes, lambda lib, x, y, w: lib.nn.functional.nll_loss(x, y)),
    ("cross_entropy", _classes, lambda lib, x, y, w: lib.nn.functional.cross_entropy(x, y)),
    ("cross_entropy, weights", _classes, lambda lib, x, y, w: lib.nn.functional.cross_entropy(x, y, w)),
    ("cross_entropy, label_smoothing", _classes, lambda lib, x, y, w: lib.nn.functional.cross_entropy(x, y, label_smoothing=0.1)),
    ("cross_entropy, probabilities", _logarithms, lambda lib, x, y: lib.nn.functional.cross_entropy(x, y)),
    ("cross_entropy 65536x10", _small_classes, lambda lib, x, y, w: lib.nn.functional.cross_entropy(x, y)),
]


def _maps(channels_last: bool) -> Make:
    """x: (16, 64, 56, 56)"""

    def make(lib: Any) -> tuple[Any, ...]:
        x = lib.randn(16, 64, 56, 56)
        return (_leaf(x.to(memory_format=lib.channels_last) if channels_last else x),)

    return make


def _pools() -> list[tuple[str, Make, Call]]:
    found: list[tuple[str, Make, Call]] = []
    for last in (False, True):
        label = ", channels_last" if last else ""
        found += [
            (f"max_pool2d 2{label}", _maps(last), lambda lib, x: lib.nn.functional.max_pool2d(x, 2)),
            (f"max_pool2d 3 stride 2{label}", _maps(last), lambda lib, x: lib.nn.functional.max_pool2d(x, 3, 2, 1)),
            (f"avg_pool2d 2{label}", _maps(last), lambda lib, x: lib.nn.functional.avg_pool2d(x, 2)),
            (f"avg_pool2d 3 stride 2{label}", _maps(last), lambda lib, x: lib.nn.functional.avg_pool2d(x, 3, 2, 1)),
            (f"adaptive_avg_pool2d 1{label}", _maps(last), lambda lib, x: lib.nn.functional.adaptive_avg_pool2d(x, 1)),
            (f"adaptive_avg_pool2d 7{label}", _maps(last), lambda lib, x: lib.nn.functional.adaptive_avg_pool2d(x, 7)),
            (f"adaptive_max_pool2d 7{label}", _maps(last), lambda lib, x: lib.nn.functional.adaptive_max_pool2d(x, 7)),
        ]
    return found


def _matrix(lib: Any) -> tuple[Any, ...]:
    return (_leaf(lib.randn(1024, 1024)),)


_MOVES: list[tuple[str, Make, Call]] = [
    ("dropout", _matrix, lambda lib, x: lib.nn.functional.dropout(x, 0.1, True)),
    ("softmax dim 1", _matrix, lambda lib, x: x.softmax(1)),
    ("log_softmax dim 1", _matrix, lambda lib, x: x.log_softmax(1)),
    ("gelu", _matrix, lambda lib, x: lib.nn.functional.gelu(x)),
    ("silu", _matrix, lambda lib, x: lib.nn.functional.silu(x)),
    ("relu", _matrix, lambda lib, x: lib.nn.functional.relu(x)),
    ("tanh", _matrix, lambda lib, x: x.tanh()),
    ("sum", _matrix, lambda lib, x: x.sum()),
    ("mean dim 1", _matrix, lambda lib, x: x.mean(1)),
    ("max dim 1", _matrix, lambda lib, x: x.max(1)[0]),
    ("var dim 1", _matrix, lambda lib, x: x.var(1)),
    ("x[:, :512]", _matrix, lambda lib, x: x[:, :512]),
    ("cat", _matrix, lambda lib, x: lib.cat((x, x), 1)),
    ("pad", _matrix, lambda lib, x: lib.nn.functional.pad(x, (1, 1, 1, 1))),
    ("broadcast add", lambda lib: (_leaf(lib.randn(1024, 1024)), _leaf(lib.randn(1024))), lambda lib, x, b: x + b),
    ("broadcast mul", lambda lib: (_leaf(lib.randn(1024, 1024)), _leaf(lib.randn(1024, 1))), lambda lib, x, b: x * b),
    ("gather", lambda lib: (_leaf(lib.randn(1024, 1024)), lib.randint(0, 1024, (1024, 1024))), lambda lib, x, i: x.gather(1, i)),
    ("x[i]", lambda lib: (_leaf(lib.randn(1024, 1024)), lib.randint(0, 1024, (1024,))), lambda lib, x, i: x[i]),
    ("embedding 65536 of 1000x64", lambda lib: (lib.randint(0, 1000, (65536,)), _leaf(lib.randn(1000, 64))), lambda lib, i, w: lib.nn.functional.embedding(i, w)),
]  # fmt: skip


def _optimizer(name: str, **options: Any) -> Builder:
    """One step on 1M parameters spread over 16 tensors."""

    def build(lib: Any, threads: int) -> Work:
        parameters = [lib.nn.Parameter(lib.randn(256, 256)) for _ in range(16)]
        for parameter in parameters:
            parameter.grad = lib.randn(256, 256)
        step: Work = getattr(lib.optim, name)(parameters, **options).step
        return step

    return build


def _clip(name: str, limit: float, **options: Any) -> Builder:
    def build(lib: Any, threads: int) -> Work:
        parameters = [lib.nn.Parameter(lib.randn(256, 256)) for _ in range(16)]
        for parameter in parameters:
            parameter.grad = lib.randn(256, 256)
        clip = getattr(lib.nn.utils, name)
        return lambda: clip(parameters, limit, **options)

    return build


_STEPS = [
    ("SGD", _optimizer("SGD", lr=0.01)),
    ("SGD, nesterov and weight_decay", _optimizer("SGD", lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.01)),
    ("Adam, amsgrad", _optimizer("Adam", lr=1e-3, amsgrad=True)),
    ("Adam, weight_decay", _optimizer("Adam", lr=1e-3, weight_decay=0.01)),
    ("AdamW, amsgrad", _optimizer("AdamW", lr=1e-3, amsgrad=True)),
    ("RMSprop", _optimizer("RMSprop", lr=1e-3)),
    ("Adagrad", _optimizer("Adagrad", lr=1e-3)),
    ("Adadelta", _optimizer("Adadelta")),
    ("Adamax", _optimizer("Adamax")),
    ("NAdam", _optimizer("NAdam")),
    ("RAdam", _optimizer("RAdam")),
    ("clip_grad_norm_, infinity", _clip("clip_grad_norm_", 1.0, norm_type=float("inf"))),
    ("clip_grad_value_", _clip("clip_grad_value_", 0.5)),
]


def rows() -> list[Row]:
    found: list[Row] = []
    for name, make, call in _norms() + _LOSSES + _pools() + _MOVES:
        found.append(Row(name, "layers", of_operands(make, call), limit=_AT_OR_UNDER))
        found.append(Row(f"{name}, backward", "layers", gradient_of(make, call), limit=_AT_OR_UNDER))
    return found + [Row(name, "layers", build, limit=_AT_OR_UNDER) for name, build in _STEPS]
