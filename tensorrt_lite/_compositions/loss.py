"""Losses composed of other operators; `reduction` is a number as in PyTorch's operators: 0 none, 1 mean, 2 sum. `nn.functional` calls them by names."""

from __future__ import annotations

from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.core.hints import hinted
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._C.ops.support import tensor_argument

TYPE_CHECKING = False  # `typing` and what it imports would be a quarter of the package's import time
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tensorrt_lite import Tensor

_ops = namespace()


def _reduced(loss: Any, reduction: int) -> Any:
    if reduction not in (0, 1, 2):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return loss.mean() if reduction == 1 else loss.sum() if reduction == 2 else loss


def cosine_embedding_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = 1) -> Tensor:
    """1 - cos(input1, input2) where target is 1, max(0, cos - margin) where it is -1; inputs (N, D) or (D)."""
    if target.dim() not in (0, 1):
        raise hinted("batch sizes", RuntimeError("0D or 1D target tensor expected, multi-target not supported"))
    if input1.dim() != target.dim() + 1 or input2.dim() != target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with sizes {list(input1.shape)} and {list(input2.shape)}."
        )
    dim = target.dim()
    tiny = 1e-12
    squares1 = (input1 * input1).sum(dim) + tiny
    squares2 = (input2 * input2).sum(dim) + tiny
    cos = (input1 * input2).sum(dim) / (squares1 * squares2).sqrt()
    zero = _ops.zeros_like(cos, requires_grad=False)
    positive = _ops.where(target == 1, 1 - cos, zero)
    negative = _ops.where(target == -1, (cos - margin).clamp_min(0), zero)
    return _reduced(positive + negative, reduction)


def hinge_embedding_loss(input: Any, target: Any, margin: float = 1.0, reduction: int = 1) -> Tensor:
    """input where target is 1, max(0, margin - input) where it is -1."""
    zero = _ops.zeros((), dtype=input.dtype, device=input.device)
    negative = _ops.where(target != 1, (margin - input).clamp_min(0), zero)
    positive = _ops.where(target != -1, input, zero)
    return _reduced(negative + positive, reduction)


def margin_ranking_loss(input1: Any, input2: Any, target: Any, margin: float = 0.0, reduction: int = 1) -> Tensor:
    """max(0, -target * (input1 - input2) + margin)."""
    return _reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


def poisson_nll_loss(input: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """exp(input) - target * input (of a log rate), or input - target * log(input + eps); `full` adds Stirling's approximation of log(target!)."""
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * 3.141592653589793 * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _reduced(loss, reduction)


def triplet_margin_loss(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: int = 1
) -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin); `swap` uses the harder of the two negatives."""
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs"
        )
    near = (anchor - positive + eps).norm(p, -1)
    far = (anchor - negative + eps).norm(p, -1)
    if swap:
        far = _ops.min(far, (positive - negative + eps).norm(p, -1))
    return _reduced((margin + near - far).clamp_min(0), reduction)


def _lengths(lengths: Any, what: str) -> Sequence[int]:
    if isinstance(lengths, TensorBase):
        if lengths.is_floating_point() or lengths.is_complex():
            raise RuntimeError(f"{what} must be integral")
        return lengths.reshape(-1).tolist()
    return [int(n) for n in lengths]


def ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: int = 1, zero_infinity: bool = False) -> Tensor:
    """The negative log likelihood of targets over all their alignments."""
    x, y = tensor_argument(log_probs, "ctc_loss", "log_probs"), tensor_argument(targets, "ctc_loss", "targets")
    if isinstance(input_lengths, TensorBase) != isinstance(target_lengths, TensorBase):
        raise TypeError("ctc_loss(): arguments 'input_lengths' and 'target_lengths' must both be tensors or both be tuples of ints")
    batched = x.dim() == 3
    sizes = _lengths(target_lengths, "target_lengths")
    loss = _ops._ctc_loss(x if batched else x.unsqueeze(1), y, _lengths(input_lengths, "input_lengths"), sizes, blank, zero_infinity)[0]
    if zero_infinity:
        loss = _ops.where(loss == float("inf"), _ops.zeros((), dtype=loss.dtype, device=loss.device), loss)
    if reduction == 1:
        return (loss / _ops.tensor([max(n, 1) for n in sizes], dtype=loss.dtype, device=loss.device)).mean()
    loss = _reduced(loss, reduction)
    return loss if batched or reduction == 2 else loss.squeeze(0)
