"""The geometric distribution."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._functions.dtype_limits import finfo
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions._probs_or_logits import choose_given
from tensorrt_lite.distributions.distribution import Distribution
from tensorrt_lite.distributions.utils import _batch_shape_of, broadcast_all, lazy_property, logits_to_probs, probs_to_logits
from tensorrt_lite.nn import functional as F

__all__ = ["Geometric"]


class Geometric(Distribution):
    """Failures before the first success of trials of probability `probs`, or of log-odds `logits`. ValueError unless one of both is given, and for
    probability 0."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _parameters = {"probs": 0, "logits": 0}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        name, given = choose_given(probs, logits)
        (param,) = broadcast_all(given)
        setattr(self, name, param)
        super().__init__(_batch_shape_of((given,), param), validate_args=validate_args)
        if self._validate_args and probs is not None:
            positive = self.probs > 0
            if not positive.all():
                raise ValueError(
                    f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of distribution {self!r} to be positive "
                    f"but found invalid values:\n{self.probs.data[~positive]}"
                )

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def mean(self) -> Any:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Any:
        return trt.zeros_like(self.probs)

    @property
    def variance(self) -> Any:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        shape = self._extended_shape(sample_shape)
        with no_grad():
            u = self.probs.new_empty(shape).uniform_(finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.clone(memory_format=trt.contiguous_format)
        probs[(probs == 1) & (value == 0)] = 0  # whose logarithm would be multiplied by 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Any:
        return F.binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
