"""Fisher's and Snedecor's F distribution."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._functions.dtype_limits import finfo
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.distribution import Distribution
from tensorrt_lite.distributions.gamma import Gamma
from tensorrt_lite.distributions.utils import _batch_shape_of, broadcast_all

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The F distribution: the ratio of two chi-squared numbers of `df1` and `df2` degrees of freedom, each divided by these."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _parameters = {"df1": 0, "df2": 0}

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(_batch_shape_of((df1, df2), self.df1), validate_args=validate_args)

    def _expand_parts(self, new: Any, batch_shape: Any) -> None:
        new._gamma1 = self._gamma1.expand(batch_shape)
        new._gamma2 = self._gamma2.expand(batch_shape)

    @property
    def mean(self) -> Any:
        """NaN up to 2 degrees of freedom in the denominator."""
        df2 = self.df2.clone(memory_format=trt.contiguous_format)
        df2[df2 <= 2] = trt.nan
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Any:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        mode[self.df1 <= 2] = trt.nan
        return mode

    @property
    def variance(self) -> Any:
        """NaN up to 4 degrees of freedom in the denominator."""
        df2 = self.df2.clone(memory_format=trt.contiguous_format)
        df2[df2 <= 4] = trt.nan
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        shape = self._extended_shape(sample_shape)
        tiny = finfo(self.df2.dtype).tiny
        above = self._gamma1.rsample(sample_shape).view(shape)
        below = self._gamma2.rsample(sample_shape).view(shape).clamp(min=tiny)
        return (above / below).clamp(min=tiny)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        normalizer = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        return normalizer + half1 * ratio.log() + (half1 - 1) * trt.log(value) - (half1 + half2) * trt.log1p(ratio * value)
