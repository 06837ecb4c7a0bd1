"""The distribution of Lewandowski, Kurowicka and Joe over correlation matrices."""

from __future__ import annotations

import math
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._functions.dtype_limits import finfo
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.beta import Beta
from tensorrt_lite.distributions.distribution import Distribution
from tensorrt_lite.distributions.utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors (dim, dim) of correlation matrices whose density is proportional to det^(concentration - 1) (Lewandowski, Kurowicka and Joe 2009):
    uniform at 1. ValueError for dim below 2."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _parameters = {"concentration": 0}

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        marginal = self.concentration + 0.5 * (dim - 2)
        before = trt.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        before = trt.cat([before.new_zeros((1,)), before])
        # squared lengths of the rows left of the diagonal (the onion method)
        self._beta = Beta(before + 0.5, marginal.unsqueeze(-1) - 0.5 * before)
        super().__init__(self.concentration.size(), trt.Size((dim, dim)), validate_args)

    def _expand_parts(self, new: Any, batch_shape: Any) -> None:
        new.dim = self.dim
        new._beta = self._beta.expand(batch_shape + (self.dim,))

    def sample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        with no_grad():
            squares = self._beta.sample(sample_shape).unsqueeze(-1)
            normal = trt.randn(self._extended_shape(sample_shape), dtype=squares.dtype, device=squares.device).tril(-1)
            directions = normal / normal.norm(dim=-1, keepdim=True)
            directions[..., 0, :].fill_(0.0)  # the first row has nothing left of the diagonal
            below = trt.sqrt(squares) * directions
            diagonal = trt.clamp(1 - below.square().sum(dim=-1), min=finfo(below.dtype).tiny).sqrt()
            return below + trt.diag_embed(diagonal)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - trt.arange(2, self.dim + 1, device=self.concentration.device)
        unnormalized = (powers * diagonal.log()).sum(dim=-1)
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        normalizer = 0.5 * n * math.log(math.pi) + trt.mvlgamma(alpha - 0.5, n) - trt.lgamma(alpha) * n
        return unnormalized - normalizer
