"""Cross entropy of linearly transformed inputs, whole or in chunks of the batch, so that the logits of one chunk alone exist at a time."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite import autograd
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite import _ops

from .loss import cross_entropy

_nn = LazyModule("tensorrt_lite.nn")

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

_POLICIES = ("auto", "accurate", "balanced", "compact")


class LinearCrossEntropyOptions:
    """How linear_cross_entropy() takes the batch in chunks; instances do not change.

    batch_chunk_size: rows of a chunk (None: all, or by chunking_method). chunking_method: "auto", "aspect_ratio" (logits of a chunk take the memory of the
    input), "aspect_ratio:N" (an N-th of it) or None. acc_policy, acc_dtype and allow_retain_graph are accepted: sums are in the operands' type, those of
    halves in float32, and gradients are computed from the saved inputs, as often as they are asked for. ValueError for other values.
    """

    __slots__ = ("acc_dtype", "acc_policy", "allow_retain_graph", "batch_chunk_size", "chunking_method")
    allow_retain_graph: bool
    batch_chunk_size: int | None
    chunking_method: str | None
    acc_policy: str
    acc_dtype: Any

    def __init__(
        self,
        allow_retain_graph: bool = False,
        batch_chunk_size: int | None = None,
        chunking_method: str | None = "auto",
        acc_policy: str = "auto",
        acc_dtype: Any = None,
    ) -> None:
        if acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {acc_policy!r}")
        if chunking_method is not None and chunking_method != "auto":
            name, colon, factor = chunking_method.partition(":")
            if name != "aspect_ratio" or colon and not (factor.isdigit() and int(factor) > 0):
                raise ValueError(f"invalid chunking_method: {chunking_method!r}")
        if batch_chunk_size is not None and not (isinstance(batch_chunk_size, int) and batch_chunk_size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {batch_chunk_size!r}")
        if acc_dtype not in (None, trt.float16, trt.bfloat16, trt.float32, trt.float64):
            raise ValueError(f"acc_dtype must be one of {{None, torch.float16, torch.bfloat16, torch.float32, torch.float64}}, got {acc_dtype!r}")
        for name, value in zip(self._fields(), (allow_retain_graph, batch_chunk_size, chunking_method, acc_policy, acc_dtype), strict=True):
            object.__setattr__(self, name, value)

    @staticmethod
    def _fields() -> tuple[str, ...]:
        return ("allow_retain_graph", "batch_chunk_size", "chunking_method", "acc_policy", "acc_dtype")

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._fields())

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"cannot assign to field {name!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearCrossEntropyOptions) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __reduce__(self) -> Any:
        return type(self), self._values()

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields(), self._values(), strict=True))
        return f"LinearCrossEntropyOptions({fields})"

    def _rows(self, batch: int, features: int, classes: int) -> int:
        """Rows of a chunk. ValueError where batch_chunk_size and chunking_method disagree."""
        method = self.chunking_method
        if method is None or method == "auto" and self.batch_chunk_size is not None:
            return max(1, min(self.batch_chunk_size or batch, batch))
        factor = int(method.partition(":")[2] or (2 if method == "auto" else 1))
        target = -(-batch // max(1, -(-classes // max(features, 1))))
        rows = min((1 << max(target - 1, 0).bit_length()) // factor, batch)
        if self.batch_chunk_size is not None and min(self.batch_chunk_size, batch) != rows:
            raise ValueError(
                f"batch_chunk_size (={self.batch_chunk_size}) and chunking_method ('{method}') give different chunk sizes "
                f"({self.batch_chunk_size} vs {rows}); pass only one."
            )
        return max(1, rows)


class _ChunkedLosses(autograd.Function):
    """The losses of all rows, without reduction. Backward makes the logits of each chunk again."""

    generate_vmap_rule = True

    @staticmethod
    def forward(input: Any, linear: Any, bias: Any, target: Any, weight: Any, ignore_index: int, rows: int) -> Any:
        losses = [
            cross_entropy(_ops.linear(x, linear, bias), y, weight=weight, ignore_index=ignore_index, reduction="none")
            for x, y in zip(input.split(rows), target.split(rows), strict=True)
        ]
        return trt.cat(losses)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        *tensors, ctx.ignore_index, ctx.rows = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        input, linear, bias, target, weight = ctx.saved_tensors
        valid = target != ctx.ignore_index
        safe = target.masked_fill(~valid, 0)
        scale = grads[0] * valid if weight is None else grads[0] * valid * weight[safe]
        of_input, of_linear, of_bias = [], None, None
        for x, y, s in zip(input.split(ctx.rows), safe.split(ctx.rows), scale.split(ctx.rows), strict=True):
            chance = _ops.linear(x, linear, bias).softmax(1)
            chance = (chance - _nn.functional.one_hot(y, chance.size(1)).to(chance.dtype)) * s.unsqueeze(1)
            if ctx.needs_input_grad[0]:
                of_input.append(chance @ linear)
            if ctx.needs_input_grad[1]:
                part = chance.t() @ x
                of_linear = part if of_linear is None else of_linear + part
            if ctx.needs_input_grad[2]:
                part = chance.sum(0)
                of_bias = part if of_bias is None else of_bias + part
        return trt.cat(of_input) if of_input else None, of_linear, of_bias, None, None, None, None


def _check_shapes(input: Any, linear_weight: Any, linear_bias: Any) -> tuple[int, ...]:
    """The dimensions of K-dimensional losses."""
    if input.dim() < 1 or input.dim() > 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {input.shape[-1]} and {linear_weight.shape[-1]}, respectively"
        )
    further = tuple(linear_weight.shape[1:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != (linear_weight.shape[0], *further):
        raise RuntimeError(f"expected linear_bias shape {(linear_weight.shape[0], *further)}, got {tuple(linear_bias.shape)}")
    if further and input.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {input.shape[-1]}), got unbatched input with shape {tuple(input.shape)}"
        )
    return further


def _chunked(
    input: Any, linear: Any, target: Any, bias: Any, weight: Any, reduction: str, ignore_index: int, options: Any
) -> Any:
    batched = input.dim() == 2
    if not batched:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    rows = options._rows(input.size(0), input.size(1), linear.size(0))
    losses = _ChunkedLosses.apply(input, linear, bias, target, weight, ignore_index, rows) if input.size(0) else input.sum(1)
    if reduction == "none":
        return losses if batched else losses.squeeze(0)
    if reduction == "sum":
        return losses.sum()
    valid = target != ignore_index
    total = valid.sum() if weight is None else (weight[target.masked_fill(~valid, 0)] * valid).sum()
    return losses.sum() / total


def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """cross_entropy(linear(input, linear_weight, linear_bias), target); with options the logits of a chunk of the batch at a time."""
    further = _check_shapes(input, linear_weight, linear_bias)
    classes, features = linear_weight.shape[0], linear_weight.shape[-1]
    shape = (*input.shape[:-1], classes, *further)
    if tuple(target.shape) == shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignore_index = -100 if ignore_index is None else ignore_index
    if options is not None:
        if not isinstance(options, LinearCrossEntropyOptions):  # another library's, of the same fields
            options = LinearCrossEntropyOptions(*[getattr(options, name) for name in LinearCrossEntropyOptions._fields()])
        if not further and reduction in ("mean", "sum", "none") and label_smoothing == 0 and target.dtype is trt.int64:
            return _chunked(input, linear_weight, target, linear_bias, weight, reduction, ignore_index, options)

        warnings.warn(
            "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}, label_smoothing == 0, "
            f"target.dtype == int64, out_features == (). Got reduction={reduction!r}, label_smoothing={label_smoothing}, "
            f"target.dtype={target.dtype}, out_features={further}.",
            stacklevel=2,
        )
    if further:
        rows = math.prod(further, start=classes)
        linear_weight = linear_weight.reshape((rows, features))
        linear_bias = None if linear_bias is None else linear_bias.reshape(rows)
    logits = _ops.linear(input, linear_weight, linear_bias).reshape(shape)
    return cross_entropy(
        logits, target, weight=weight, reduction=reduction, ignore_index=ignore_index, label_smoothing=label_smoothing
    )
