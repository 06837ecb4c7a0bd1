"""Loss functions. The frequent ones are compiled; the others are written out from elementwise operators.

Every function takes the deprecated flags size_average and reduce, which override `reduction`.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _C
from tensorrt_lite._C.autograd.autocast import put_policies as _put_policies
from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite import _ops
from tensorrt_lite._C.core.hints import hinted
from tensorrt_lite._C.ops.support import check_number_argument, holds_elements, type_name

from .reduction import ENUM, legacy_string, reduced
from tensorrt_lite.nn._functional.distance import pairwise_distance as _pairwise_distance

if TYPE_CHECKING:
    from tensorrt_lite import Tensor


def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Negative log-likelihood of softmax(input); input (N, C, *) or (C), target class indices (N, *) or
    probabilities (N, C, *)."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    return _ops.cross_entropy_loss(input, target, weight, ENUM[reduction], ignore_index, label_smoothing)


def nll_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-weight[target] * input[target]; input log-probabilities (N, C, *), target class indices (N, *)."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    return _ops.nll_loss_nd(input, target, weight, ENUM[reduction], ignore_index)


def _same_size(input: Any, target: Any) -> tuple[Any, Any]:
    """input and target broadcast against each other, with PyTorch's warning when their sizes differ."""
    if target.shape != input.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )
        return trt.broadcast_tensors(input, target)
    return input, target


def _weighted(loss: Any, weight: Any, reduction: str) -> Any:
    if weight.shape != loss.shape:
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    if ENUM[reduction] == 1:
        return loss.sum() / weight.sum()
    return reduced(loss, reduction)


def mse_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Tensor:
    """(input - target) ** 2; with `weight` the mean is weighted."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    input, target = _same_size(input, target)
    if weight is not None:
        return _weighted((input - target).pow(2), weight, reduction)
    return _ops.mse_loss(input, target, ENUM[reduction])


def l1_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Any = None,
) -> Tensor:
    """|input - target|; with `weight` the mean is weighted."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    input, target = _same_size(input, target)
    if weight is not None:
        return _weighted((input - target).abs(), weight, reduction)
    return _ops.l1_loss(input, target, ENUM[reduction])


def smooth_l1_loss(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d ** 2 / (2 beta) where d = |input - target| < beta, else d - beta / 2."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    input, target = _same_size(input, target)
    if beta == 0.0:
        return _ops.l1_loss(input, target, ENUM[reduction])
    return _ops.smooth_l1_loss(input, target, ENUM[reduction], beta)


def huber_loss(input: Any, target: Any, reduction: str = "mean", delta: float = 1.0, weight: Any = None) -> Tensor:
    """d ** 2 / 2 where d = |input - target| < delta, else delta * (d - delta / 2)."""
    input, target = _same_size(input, target)
    if weight is not None:
        if weight.shape != input.shape:
            raise ValueError("Weights and input must have the same size.")
        # Unlike the other elementwise losses, the mean is over the elements and not over the weights.
        return reduced(_ops.huber_loss(input, target, 0, delta) * weight, reduction)
    return _ops.huber_loss(input, target, ENUM[reduction], delta)


def binary_cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-(t * log(p) + (1 - t) * log(1 - p)), logarithms clamped at -100; ValueError when the sizes differ."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(trt.broadcast_shapes(target.shape, weight.shape))
    return _ops.binary_cross_entropy(input, target, weight, ENUM[reduction])


def binary_cross_entropy_with_logits(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Any = None,
) -> Tensor:
    """binary_cross_entropy of sigmoid(input), computed without overflow; pos_weight multiplies the positive part."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    if target.shape != input.shape:
        raise hinted("loss sizes", ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})"))
    return _ops.binary_cross_entropy_with_logits(input, target, weight, pos_weight, ENUM[reduction])


def kl_div(
    input: Any,
    target: Any,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """t * (log(t) - input); reduction "batchmean" divides the sum by the batch size."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    if reduction == "batchmean":
        loss = _ops.kl_div(input, target, 2, log_target=log_target)
        return loss / input.size(0) if input.dim() else loss
    return _ops.kl_div(input, target, ENUM[reduction], log_target=log_target)


def poisson_nll_loss(
    input: Any,
    target: Any,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """exp(input) - target * input (of a log rate), or input - target * log(input + eps); `full` adds Stirling's
    approximation of log(target!)."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    return _ops.poisson_nll_loss(input, target, log_input, full, eps, ENUM[reduction])


def gaussian_nll_loss(
    input: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """(log(var) + (input - target) ** 2 / var) / 2, var clamped at eps without touching its gradient.

    var: a float, the input's shape, or the input's shape with the last dimension 1 or missing.
    """
    if not isinstance(var, trt.Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * trt.ones_like(input)
    elif bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if input.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif not (input.shape[:-1] == var.shape[:-1] and var.size(-1) == 1):
            # Any other broadcastable shape is accepted when it only has dimensions of size one to spare.
            same = input.dim() == var.dim() and all(v in (1, i) for v, i in zip(var.shape, input.shape, strict=True))
            if not same:
                raise ValueError("var is of incorrect size")
    ENUM[reduction]
    var = var.clone()
    with no_grad():
        var.clamp_(min=eps)
    loss = 0.5 * (var.log() + (input - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


def hinge_embedding_loss(
    input: Any,
    target: Any,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """x where target is 1, max(0, margin - x) where it is -1."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    return _ops.hinge_embedding_loss(input, target, margin, ENUM[reduction])


def margin_ranking_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _ops.margin_ranking_loss(input1, input2, target, margin, ENUM[reduction])


def cosine_embedding_loss(
    input1: Any,
    input2: Any,
    target: Any,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1; inputs (N, D) or (D)."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    return _ops.cosine_embedding_loss(input1, input2, target, margin, ENUM[reduction])


def soft_margin_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """log(1 + exp(-target * input))."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    return _ops.soft_margin_loss(input, target, ENUM[reduction])


def multilabel_soft_margin_loss(
    input: Any,
    target: Any,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Mean over classes of binary cross entropy with logits; input and target (N, C)."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    loss = -(target * _ops.log_sigmoid(input) + (1 - target) * _ops.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum(-1) / input.size(-1), reduction)


def _rows_of_classes(input: Any) -> Any:
    """(N, C), (C) or () as (N, C); RuntimeError without classes."""
    if input.dim() > 2 or input.dim() > 0 and input.size(-1) == 0:
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}")
    return input if input.dim() == 2 else input.reshape(1, -1)


def _check_classes_dtype(target: Any) -> None:
    if target.dtype != trt.int64:
        raise RuntimeError(f"expected scalar type Long but found {type_name(target.dtype)}")


def multi_margin_loss(
    input: Any,
    target: Any,
    p: int = 1,
    margin: float = 1.0,
    weight: Any = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Mean over classes j != y of weight[y] * max(0, margin - x[y] + x[j]) ** p; input (N, C), (C) or (), target (N) or ()."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    ENUM[reduction]  # refuses what is none of them
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    rows = _rows_of_classes(input)
    count, classes = rows.shape
    if target.dim() > 1 or target.numel() != count:
        raise RuntimeError(f"inconsistent target size, expected {count} but got {list(target.shape)}")
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    _check_classes_dtype(target)
    index = target.reshape(-1, 1)
    check_number_argument(margin, input.dtype)
    hinge = (float(margin) - rows.gather(-1, index) + rows).clamp_min(0)
    if p == 2:
        hinge = hinge * hinge
    if weight is not None:
        hinge = hinge * weight[index]
    # The true class itself would add margin ** p.
    loss = hinge.scatter(-1, index, 0).sum(-1) / classes
    return reduced(loss.reshape(target.shape), reduction)


def multilabel_margin_loss(
    input: Any, target: Any, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """Mean over true classes i and other classes j of max(0, 1 - (x[i] - x[j])); input (N, C), (C) or (), target the true
    classes followed by -1."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    ENUM[reduction]  # refuses what is none of them
    rows = _rows_of_classes(input)
    if not (target.shape == input.shape if input.dim() == 2 else target.dim() <= 1 and target.numel() == rows.size(-1)):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    _check_classes_dtype(target)
    classes, target = rows.size(-1), target.reshape(rows.shape)
    if target.numel() and holds_elements(target) and trt.any((target < -1) | (target >= classes)):
        raise RuntimeError("argument #2 'target' is out of range")
    # A target row ends at its first negative entry.
    valid = (target >= 0).to(trt.int64).cumprod(-1)
    index = target * valid
    is_true = trt.zeros_like(index).scatter_add(-1, index, valid) > 0
    scores = rows.gather(-1, index)
    hinge = (1 - scores.unsqueeze(-1) + rows.unsqueeze(-2)).clamp_min(0)
    counted = valid.to(trt.bool).unsqueeze(-1) & ~is_true.unsqueeze(-2)
    loss = hinge.masked_fill(~counted, 0).sum((-1, -2)) / classes
    return reduced(loss.reshape(input.shape[:-1]), reduction)


def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin); `swap` uses the harder of the two negatives."""
    if size_average is not None or reduce is not None:
        reduction = legacy_string(size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    return _ops.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, ENUM[reduction])


def triplet_margin_with_distance_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    *,
    distance_function: Any = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """triplet_margin_loss with any distance function of two tensors."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            f"The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    distance = _pairwise_distance if distance_function is None else distance_function
    near = distance(anchor, positive)
    far = distance(anchor, negative)
    if swap:
        far = trt.minimum(far, distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), reduction)


def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification (Graves et al. 2006); log_probs (T, N, C) or (T, C)."""
    # as PyTorch's function, this one takes a number as the lengths of one sample
    lengths = [(n,) if isinstance(n, int) else n for n in (input_lengths, target_lengths)]
    return _ops.ctc_loss(log_probs, targets, *lengths, blank, ENUM[reduction], zero_infinity)


_put_policies(globals(), [n for n, f in list(globals().items()) if getattr(f, "__module__", None) == __name__], _C.AUTOCAST, ("nn.functional.", ""))
