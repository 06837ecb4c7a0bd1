"""Student's t distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.chi2 import Chi2
from tensorrt_lite.distributions.distribution import Distribution
from tensorrt_lite.distributions.utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t distribution of `df` degrees of freedom around `loc`: a normal number of standard deviation `scale` over the root of a chi-squared
    number divided by df."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _parameters = {"df": 0, "loc": 0, "scale": 0}

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def _expand_parts(self, new: Any, batch_shape: Any) -> None:
        new._chi2 = self._chi2.expand(batch_shape)

    @property
    def mean(self) -> Any:
        """NaN up to 1 degree of freedom."""
        mean = self.loc.clone(memory_format=trt.contiguous_format)
        mean[self.df <= 1] = trt.nan
        return mean

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        """Infinite up to 2 degrees of freedom, NaN up to 1."""
        df = self.df
        finite = self.scale.pow(2) * df / (df - 2)
        return trt.where(df > 2, finite, trt.where(df > 1, trt.full_like(df, math.inf), trt.full_like(df, math.nan)))

    def rsample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        shape = self._extended_shape(sample_shape)
        normal = _standard_normal(shape, self.df.dtype, self.df.device)
        chi2 = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (normal * trt.rsqrt(chi2 / self.df))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        normalizer = self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + trt.lgamma(0.5 * self.df) - trt.lgamma(0.5 * (self.df + 1.0))
        return -0.5 * (self.df + 1.0) * trt.log1p(y**2.0 / self.df) - normalizer

    def entropy(self) -> Any:
        half, half_more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = trt.lgamma(half) + math.lgamma(0.5) - trt.lgamma(half_more)
        return self.scale.log() + half_more * (trt.digamma(half_more) - trt.digamma(half)) + 0.5 * self.df.log() + log_beta
