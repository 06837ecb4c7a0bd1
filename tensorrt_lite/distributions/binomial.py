"""The binomial distribution."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions._probs_or_logits import ProbsOrLogits, choose_given
from tensorrt_lite.distributions.utils import broadcast_all

__all__ = ["Binomial"]


def _clamp_by_zero(x: Any) -> Any:
    """max(x, 0) with gradient 1/2 at 0."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


class Binomial(ProbsOrLogits):
    """Successes in `total_count` trials of probability `probs`, or of log-odds `logits`. ValueError unless one of both is given."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real}
    has_enumerate_support = True
    _parameters = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        name, given = choose_given(probs, logits)
        count, self._param = broadcast_all(total_count, given)
        self.total_count = count.type_as(self._param)
        setattr(self, name, self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Any:
        return self.total_count * self.probs

    @property
    def mode(self) -> Any:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return trt.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        choices = trt.lgamma(n + 1) - trt.lgamma(value + 1) - trt.lgamma(n - value + 1)
        # of failures all, log(1 - p) = -max(logits, 0) - log(1 + exp(-|logits|))
        failures = n * _clamp_by_zero(self.logits) + n * trt.log1p(trt.exp(-trt.abs(self.logits)))
        return value * self.logits + choices - failures

    def entropy(self) -> Any:
        """Summed over the support. NotImplementedError for counts that differ."""
        n = int(self.total_count.max())
        if not self.total_count.min() == n:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(trt.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Any:
        """NotImplementedError for counts that differ."""
        n = int(self.total_count.max())
        if not self.total_count.min() == n:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = trt.arange(1 + n, dtype=self._param.dtype, device=self._param.device).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values
