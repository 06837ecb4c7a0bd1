"""Losses that the core computes in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorrt_lite import _ops

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

_NONE, _MEAN = 0, 1


def cross_entropy(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int, label_smoothing: float
) -> tuple[Tensor, None, None]:
    """(loss, None, None) of class indices (N, *) or () over logits (N, C, *) or (C)."""
    dim = 0 if self.dim() == 1 else 1
    logs = _ops._log_softmax(self, dim, False)
    loss = _ops.nll_loss_nd(logs, target, weight, reduction, ignore_index)
    if label_smoothing == 0:
        return loss, None, None
    classes = self.shape[dim]
    if weight is None:
        smooth = -logs.sum(dim)
    else:
        shape = [1] * logs.dim()
        shape[dim] = classes
        smooth = -(logs * weight.view(shape)).sum(dim)
    ignored = target == ignore_index
    smooth.masked_fill_(ignored, 0.0)
    if reduction == _MEAN:
        if weight is None:
            counted = ~ignored
        else:
            flat = target.masked_fill(ignored, 0)
            counted = weight.gather(0, flat if flat.dim() == 1 else flat.flatten()).masked_fill_(ignored if flat.dim() == 1 else ignored.flatten(), 0)
        smooth = smooth.sum() / counted.sum()
    elif reduction != _NONE:
        smooth = smooth.sum()
    share = smooth * (label_smoothing / classes)
    return loss * (1 - label_smoothing) + share, None, None


def divergence(self: Tensor, target: Tensor) -> Tensor:
    """target * (log(target) - self), element by element, 0 where target is 0."""
    product = target * self
    return _ops.xlogy(target, target) - product
