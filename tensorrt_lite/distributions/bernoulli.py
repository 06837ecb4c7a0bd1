"""The Bernoulli distribution."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions._probs_or_logits import ProbsOrLogits, choose_given
from tensorrt_lite.distributions.exp_family import ExponentialFamily
from tensorrt_lite.distributions.utils import _batch_shape_of, broadcast_all
from tensorrt_lite.nn import functional as F

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """1 with probability `probs`, or of log-odds `logits`, else 0. ValueError unless one of both is given."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    _parameters = {"probs": 0, "logits": 0}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        name, given = choose_given(probs, logits)
        (self._param,) = broadcast_all(given)
        setattr(self, name, self._param)
        super().__init__(_batch_shape_of((given,), self._param), validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        """NaN at probability 1/2."""
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = trt.nan
        return mode

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        with no_grad():
            return trt.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -F.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Any:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Any:
        values = trt.arange(2, dtype=self._param.dtype, device=self._param.device).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (trt.logit(self.probs),)

    def _log_normalizer(self, x: Any) -> Any:  # type: ignore[override]
        return trt.log1p(trt.exp(x))
