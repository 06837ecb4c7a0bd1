"""The gamma distribution."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import special
from tensorrt_lite._functions.dtype_limits import finfo
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.exp_family import ExponentialFamily
from tensorrt_lite.distributions.utils import _batch_shape_of, broadcast_all

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """The gamma distribution of shape `concentration` and rate `rate`. Gradients of `rsample` by the shape are those of a sample whose quantile is held."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _parameters = {"concentration": 0, "rate": 0}

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(_batch_shape_of((concentration, rate), self.concentration), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.rate

    @property
    def mode(self) -> Any:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Any:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        shape = self._extended_shape(sample_shape)
        value = trt._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)  # type: ignore[attr-defined]
        value.detach().clamp_(min=finfo(value.dtype).tiny)  # the gradient passes as it is
        return value

    def log_prob(self, value: Any) -> Any:
        value = trt.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        concentration, rate = self.concentration, self.rate
        return trt.xlogy(concentration, rate) + trt.xlogy(concentration - 1, value) - rate * value - trt.lgamma(concentration)

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        shape = self.concentration
        return shape - trt.log(self.rate) + trt.lgamma(shape) + (1.0 - shape) * trt.digamma(shape)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Any, y: Any) -> Any:  # type: ignore[override]
        return trt.lgamma(x + 1) + (x + 1) * trt.log(-y.reciprocal())
