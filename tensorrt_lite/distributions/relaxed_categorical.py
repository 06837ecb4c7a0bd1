"""The relaxed categorical distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorrt_lite import _root as trt
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.categorical import Categorical
from tensorrt_lite.distributions.distribution import Distribution
from tensorrt_lite.distributions.transformed_distribution import TransformedDistribution
from tensorrt_lite.distributions.transforms import ExpTransform
from tensorrt_lite.distributions.utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithms of a `RelaxedOneHotCategorical` point."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector  # less than all vectors: their exponentials sum to 1
    has_rsample = True
    _parameters: ClassVar[dict[str, int]] = {}

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def _expand_parts(self, new: Any, batch_shape: Any) -> None:
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._categorical._new(*args, **kwargs)

    @property
    def param_shape(self) -> Any:
        return self._categorical.param_shape

    @property
    def logits(self) -> Any:
        return self._categorical.logits

    @property
    def probs(self) -> Any:
        return self._categorical.probs

    def rsample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        uniform = clamp_probs(trt.rand(self._extended_shape(sample_shape), dtype=self.logits.dtype, device=self.logits.device))
        gumbel = -((-(uniform.log())).log())
        scores = (self.logits + gumbel) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        n = self._categorical._num_events
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        normalizer = trt.full_like(self.temperature, float(n)).lgamma() - self.temperature.log().mul(-(n - 1))
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + normalizer


class RelaxedOneHotCategorical(TransformedDistribution):
    """Points of the simplex that come close to the one-hot vectors of a categorical distribution of `probs` or `logits`, as `temperature`, a tensor, goes to
    0 (Jang, Gu and Poole 2017; Maddison, Mnih and Teh 2017)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True  # type: ignore[assignment]
    base_dist: ExpRelaxedCategorical

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(RelaxedOneHotCategorical, _instance)
        return super().expand(batch_shape, _instance=new)

    @property
    def temperature(self) -> Any:
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        return self.base_dist.probs
