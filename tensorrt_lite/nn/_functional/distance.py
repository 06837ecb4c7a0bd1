"""Distances and similarities between rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _C
from tensorrt_lite._C.autograd.autocast import put_policies as _put_policies
from tensorrt_lite import _root as trt
from tensorrt_lite import _ops
from tensorrt_lite._ops import pdist  # noqa: F401 (public as nn.functional.pdist)

if TYPE_CHECKING:
    from tensorrt_lite import Tensor


def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps over the last dimension; x1, x2: (N, D) or (D)."""
    return (x1 - x2 + eps).norm(p, -1, keepdim)


def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """x1 . x2 / (max(|x1|, eps) * max(|x2|, eps)) along `dim`."""
    x1, x2 = trt.broadcast_tensors(x1, x2)
    if not x1.is_floating_point() and not x1.is_complex():
        x1, x2 = x1.to(trt.get_default_dtype()), x2.to(trt.get_default_dtype())
    norm1 = x1.norm(2, dim, True).clamp_min(eps)
    norm2 = x2.norm(2, dim, True).clamp_min(eps)
    return ((x1 / norm1) * (x2 / norm2)).sum(dim)


def bilinear(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """x1' W_k x2 + b_k; input1 (*, H1), input2 (*, H2), weight (K, H1, H2), bias (K)."""
    return _ops.bilinear(input1, input2, weight, bias)


_put_policies(globals(), [n for n, f in list(globals().items()) if getattr(f, "__module__", None) == __name__], _C.AUTOCAST, ("nn.functional.", ""))
