"""The categorical distribution over one-hot vectors."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.categorical import Categorical
from tensorrt_lite.distributions.distribution import Distribution

_nn = LazyModule("tensorrt_lite.nn")

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """One-hot vectors of n elements with the probabilities `probs` (*, n) or the unnormalised log-probabilities `logits`, as `Categorical` takes them."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _parameters: ClassVar[dict[str, int]] = {}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def _expand_parts(self, new: Any, batch_shape: Any) -> None:
        new._categorical = self._categorical.expand(batch_shape)

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self) -> Any:
        return self._categorical._param

    @property
    def probs(self) -> Any:
        return self._categorical.probs

    @property
    def logits(self) -> Any:
        return self._categorical.logits

    @property
    def param_shape(self) -> Any:
        return self._categorical.param_shape

    @property
    def mean(self) -> Any:
        return self.probs

    @property
    def mode(self) -> Any:
        return self._one_hot(self.probs.argmax(dim=-1))

    @property
    def variance(self) -> Any:
        return self.probs * (1 - self.probs)

    def _one_hot(self, indices: Any) -> Any:
        return _nn.functional.one_hot(indices, num_classes=self._categorical._num_events).to(self.probs)

    def sample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        with no_grad():
            return self._one_hot(self._categorical.sample(trt.Size(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Any:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Any:
        n = self.event_shape[0]
        values = trt.eye(n, dtype=self._param.dtype, device=self._param.device).view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose `rsample` has the gradient of the probabilities (Bengio, Leonard and Courville 2013)."""

    has_rsample = True

    def rsample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
