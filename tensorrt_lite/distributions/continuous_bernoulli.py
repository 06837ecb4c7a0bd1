"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import special
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions._probs_or_logits import ProbsOrLogits, choose_given
from tensorrt_lite.distributions.exp_family import ExponentialFamily
from tensorrt_lite.distributions.utils import _batch_shape_of, broadcast_all, clamp_probs, lazy_property, logits_to_probs
from tensorrt_lite.nn import functional as F

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Numbers in [0, 1] of density proportional to p^x (1 - p)^(1 - x) (Loaiza-Ganem and Cunningham 2019). ValueError unless one of `probs` and `logits` is
    given.

    lims: probabilities between which formulas that divide by 1 - 2 p give way to series around 1/2.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _parameters = {"probs": 0, "logits": 0}

    def __init__(self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501), validate_args: bool | None = None) -> None:
        name, given = choose_given(probs, logits)
        (param,) = broadcast_all(given)
        if probs is not None:
            if validate_args is not None and not self.arg_constraints["probs"].check(param).all():
                raise ValueError("The parameter probs has invalid values")
            param = clamp_probs(param)
        self._param = param
        setattr(self, name, param)
        self._lims = lims
        super().__init__(_batch_shape_of((given,), param), validate_args=validate_args)

    def _expand_parts(self, new: Any, batch_shape: Any) -> None:
        super()._expand_parts(new, batch_shape)
        new._lims = self._lims

    def _outside_unstable_region(self) -> Any:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Any:
        """The probabilities, moved to a limit where formulas do not hold."""
        return trt.where(self._outside_unstable_region(), self.probs, self._lims[0] * trt.ones_like(self.probs))

    def _cont_bern_log_norm(self) -> Any:
        """log of 2 artanh(1 - 2 p) / (1 - 2 p)."""
        cut = self._cut_probs()
        below = trt.where(cut <= 0.5, cut, trt.zeros_like(cut))
        above = trt.where(cut >= 0.5, cut, trt.ones_like(cut))
        exact = trt.log(trt.abs(trt.log1p(-cut) - trt.log(cut))) - trt.where(cut <= 0.5, trt.log1p(-2.0 * below), trt.log(2.0 * above - 1.0))
        square = (self.probs - 0.5).pow(2)
        return trt.where(self._outside_unstable_region(), exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * square) * square)

    @lazy_property
    def probs(self) -> Any:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    @property
    def mean(self) -> Any:
        cut = self._cut_probs()
        exact = cut / (2.0 * cut - 1.0) + 1.0 / (trt.log1p(-cut) - trt.log(cut))
        x = self.probs - 0.5
        return trt.where(self._outside_unstable_region(), exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x)

    @property
    def stddev(self) -> Any:
        return self.variance.sqrt()

    @property
    def variance(self) -> Any:
        cut = self._cut_probs()
        exact = cut * (cut - 1.0) / (1.0 - 2.0 * cut).pow(2) + 1.0 / (trt.log1p(-cut) - trt.log(cut)).pow(2)
        square = (self.probs - 0.5).pow(2)
        return trt.where(self._outside_unstable_region(), exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * square) * square)

    def rsample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        return self.icdf(trt.rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        cut = self._cut_probs()
        exact = (trt.pow(cut, value) * trt.pow(1.0 - cut, 1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        inside = trt.where(self._outside_unstable_region(), exact, value)
        return trt.where(value <= 0.0, trt.zeros_like(value), trt.where(value >= 1.0, trt.ones_like(value), inside))

    def icdf(self, value: Any) -> Any:
        cut = self._cut_probs()
        exact = (trt.log1p(-cut + value * (2.0 * cut - 1.0)) - trt.log1p(-cut)) / (trt.log(cut) - trt.log1p(-cut))
        return trt.where(self._outside_unstable_region(), exact, value)

    def entropy(self) -> Any:
        log_failure, log_success = trt.log1p(-self.probs), trt.log(self.probs)
        return self.mean * (log_failure - log_success) - self._cont_bern_log_norm() - log_failure

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Any) -> Any:  # type: ignore[override]
        """log((e^x - 1) / x), by its series around 0."""
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = trt.where(outside, x, (self._lims[0] - 0.5) * trt.ones_like(x))
        exact = trt.log(trt.abs(special.expm1(cut))) - trt.log(trt.abs(cut))
        return trt.where(outside, exact, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)
