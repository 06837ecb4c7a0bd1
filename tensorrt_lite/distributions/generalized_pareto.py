"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.distribution import Distribution
from tensorrt_lite.distributions.utils import _batch_shape_of, broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """What numbers exceed a high threshold by (Pickands 1975): from `loc` up, of width `scale`, with tails of a power where `concentration` is positive,
    exponential where it is 0, and an upper end at ``loc - scale / concentration`` where it is negative."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    _parameters = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(_batch_shape_of((loc, scale, concentration), self.loc), validate_args=validate_args)

    def _is_exponential(self) -> Any:
        return trt.isclose(self.concentration, trt.zeros_like(self.concentration))

    def _divisor(self) -> Any:
        """The concentration, 1 in place of 0."""
        return trt.where(self._is_exponential(), trt.ones_like(self.concentration), self.concentration)

    def _z(self, x: Any) -> Any:
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        return self.icdf(trt.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def log_survival_function(self, value: Any) -> Any:
        """The logarithm of 1 - cdf(value)."""
        if self._validate_args:
            self._validate_sample(value)
        z, exponential, c = self._z(value), self._is_exponential(), self._divisor()
        return trt.where(exponential, -z, -trt.log1p(trt.where(exponential, trt.zeros_like(z), c * z)) / c)

    def log_prob(self, value: Any) -> Any:
        return self.log_survival_function(value) + self._log_hazard(value)

    def _log_hazard(self, value: Any) -> Any:
        return -self.scale.log() - trt.log1p(trt.where(self._is_exponential(), trt.zeros_like(self.concentration), self.concentration) * self._z(value))

    def log_cdf(self, value: Any) -> Any:
        return trt.log1p(-trt.exp(self.log_survival_function(value)))

    def cdf(self, value: Any) -> Any:
        return trt.exp(self.log_cdf(value))

    def icdf(self, value: Any) -> Any:
        exponential, c = self._is_exponential(), self._divisor()
        survival = trt.log1p(-value)
        return self.loc + self.scale * trt.where(exponential, -survival, trt.expm1(-c * survival) / c)

    @property
    def mean(self) -> Any:
        """NaN from concentration 1 on."""
        valid = self.concentration < 1
        below = trt.where(valid, self.concentration, 0.5)
        return trt.where(valid, self.loc + self.scale / (1 - below), math.nan)

    @property
    def variance(self) -> Any:
        """NaN from concentration 1/2 on."""
        valid = self.concentration < 0.5
        below = trt.where(valid, self.concentration, 0.25)
        return trt.where(valid, self.scale**2 / ((1 - below) ** 2 * (1 - 2 * below)), math.nan)

    @property
    def mode(self) -> Any:
        return self.loc

    def entropy(self) -> Any:
        return (trt.log(self.scale) + self.concentration + 1).expand(self._batch_shape)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        negative = self.concentration < 0
        upper = trt.where(negative, self.loc - self.scale / trt.where(negative, self.concentration, -1.0), math.inf)
        return constraints.interval(self.loc, upper)
