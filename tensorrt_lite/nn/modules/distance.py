"""Distances and similarities as layers."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ._typed import TensorModule


class PairwiseDistance(TensorModule):
    """The p-norm of x1 - x2 over the last dimension; x1, x2: (N, D) or (D).

    Parameters:
        p (float, default 2.0): the exponent of the norm
        eps (float, default 1e-06): added to each difference
        keepdim (bool, default False): whether the last dimension stays, with size 1

    >>> import tensorrt_lite as trt
    >>> x, y = trt.tensor([[0.0, 0.0], [1.0, 1.0]]), trt.tensor([[3.0, 4.0], [1.0, 2.0]])
    >>> trt.nn.PairwiseDistance()(x, y)
    tensor([5.0000, 1.0000])
    >>> trt.nn.PairwiseDistance(p=1, keepdim=True)(x, y).shape
    torch.Size([2, 1])
    """

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Any, x2: Any) -> Any:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(TensorModule):
    """The cosine of the angle between x1 and x2 along `dim`.

    Parameters:
        dim (int, default 1): the dimension of the vectors
        eps (float, default 1e-08): the smallest product of norms that is divided by

    >>> import tensorrt_lite as trt
    >>> x, y = trt.tensor([[1.0, 0.0], [3.0, 4.0]]), trt.tensor([[0.0, 2.0], [4.0, 3.0]])
    >>> trt.nn.CosineSimilarity(dim=1)(x, y)
    tensor([0.0000, 0.9600])
    """

    __constants__ = ["dim", "eps"]

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Any, x2: Any) -> Any:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
