"""The multinomial distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.binomial import Binomial
from tensorrt_lite.distributions.categorical import Categorical
from tensorrt_lite.distributions.distribution import Distribution
from tensorrt_lite.distributions.utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """Counts of n outcomes in `total_count` draws with the probabilities `probs` (*, n) or the unnormalised log-probabilities `logits`, as `Categorical`
    takes them. total_count: an int (NotImplementedError otherwise)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    total_count: int
    _parameters: ClassVar[dict[str, int]] = {}

    def __init__(self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def _expand_parts(self, new: Any, batch_shape: Any) -> None:
        new.total_count = self.total_count
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = self._binomial.expand(batch_shape + self.event_shape)

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._categorical._new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.multinomial(self.total_count)

    @property
    def logits(self) -> Any:
        return self._categorical.logits

    @property
    def probs(self) -> Any:
        return self._categorical.probs

    @property
    def param_shape(self) -> Any:
        return self._categorical.param_shape

    @property
    def mean(self) -> Any:
        return self.probs * self.total_count

    @property
    def variance(self) -> Any:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        drawn = self._categorical.sample(trt.Size((self.total_count, *sample_shape))).movedim(0, -1)
        counts = self.probs.new_zeros(self._extended_shape(sample_shape))
        with no_grad():
            counts.scatter_add_(-1, drawn, trt.ones_like(drawn, dtype=counts.dtype))
        return counts

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.clone(memory_format=trt.contiguous_format)
        logits[(value == 0) & (logits == -trt.inf)] = 0
        return trt.lgamma(value.sum(-1) + 1) - trt.lgamma(value + 1).sum(-1) + (logits * value).sum(-1)

    def entropy(self) -> Any:
        n = trt.tensor(self.total_count)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        expected = (trt.exp(self._binomial.log_prob(counts)) * trt.lgamma(counts + 1)).sum([0, -1])
        return n * self._categorical.entropy() - trt.lgamma(n + 1) + expected
