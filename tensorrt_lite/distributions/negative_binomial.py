"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions._probs_or_logits import ProbsOrLogits, choose_given
from tensorrt_lite.distributions.gamma import Gamma
from tensorrt_lite.distributions.utils import broadcast_all, lazy_property
from tensorrt_lite.nn import functional as F

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits):
    """Successes of probability `probs`, or of log-odds `logits`, before `total_count` failures (any positive number). ValueError unless one of both is
    given."""

    arg_constraints = {"total_count": constraints.greater_than_eq(0), "probs": constraints.half_open_interval(0.0, 1.0), "logits": constraints.real}
    support = constraints.nonnegative_integer
    _parameters = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        name, given = choose_given(probs, logits)
        count, self._param = broadcast_all(total_count, given)
        self.total_count = count.type_as(self._param)
        setattr(self, name, self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.total_count * trt.exp(self.logits)

    @property
    def mode(self) -> Any:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Any:
        return self.mean / trt.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Any:
        # checked above; the rate may round to infinity
        return Gamma(concentration=self.total_count, rate=trt.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        """Poisson counts of gamma distributed rates."""
        with no_grad():
            return trt.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        unnormalized = self.total_count * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        normalizer = trt.lgamma(self.total_count + value) - trt.lgamma(1.0 + value) - trt.lgamma(self.total_count)
        # no failures at all: the value is 0 for certain
        return unnormalized + normalizer.masked_fill(self.total_count + value == 0.0, 0.0)
