"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.categorical import Categorical
from tensorrt_lite.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture: `mixture_distribution`, a `Categorical`, chooses among the components, the last batch dimension of `component_distribution`. ValueError
    where the shapes do not fit."""

    arg_constraints: dict[str, Any] = {}
    has_rsample = False

    def __init__(self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        mixture_batch, component_batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for m, c in zip(reversed(mixture_batch), reversed(component_batch), strict=False):
            if m != 1 and c != 1 and m != c:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_batch}) is not compatible with `component_distribution.batch_shape`({component_batch})"
                )
        chosen, given = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if chosen != given:
            raise ValueError(f"`mixture_distribution component` ({chosen}) does not equal `component_distribution.batch_shape[-1]` ({given})")
        self._num_component = given
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(batch_shape=component_batch, event_shape=event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        batch_shape = trt.Size(batch_shape)
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._component_distribution = self._component_distribution.expand(batch_shape + (self._num_component,))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component
        new._event_ndims = self._event_ndims
        super(MixtureSameFamily, new).__init__(batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self) -> Any:  # type: ignore[override]
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Any:
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Any:
        return self._component_distribution

    def _weights(self) -> Any:
        return self._pad_mixture_dimensions(self.mixture_distribution.probs)

    @property
    def mean(self) -> Any:
        return (self._weights() * self.component_distribution.mean).sum(dim=-1 - self._event_ndims)

    @property
    def variance(self) -> Any:
        """The mean of the components' variances and the variance of their means."""
        weights, dim = self._weights(), -1 - self._event_ndims
        within = (weights * self.component_distribution.variance).sum(dim=dim)
        between = (weights * (self.component_distribution.mean - self._pad(self.mean)).pow(2.0)).sum(dim=dim)
        return within + between

    def cdf(self, x: Any) -> Any:
        x = self._pad(x)
        return (self.component_distribution.cdf(x) * self.mixture_distribution.probs).sum(dim=-1)

    def log_prob(self, x: Any) -> Any:
        if self._validate_args:
            self._validate_sample(x)
        log_component = self.component_distribution.log_prob(self._pad(x))
        return trt.logsumexp(log_component + trt.log_softmax(self.mixture_distribution.logits, dim=-1), dim=-1)

    def sample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        with no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            index = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1))
            index = index.expand((*chosen.shape, 1, *self.event_shape))
            return trt.gather(drawn, dim, index).squeeze(dim)

    def _pad(self, x: Any) -> Any:
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Any) -> Any:
        """Weights (*, components) with dimensions of size 1 in front for batch dimensions that the mixture lacks, and behind for the event."""
        batch = x.shape[:-1]
        missing = 0 if self.mixture_distribution.batch_shape else len(self.batch_shape)
        return x.reshape(batch + (1,) * missing + x.shape[-1:] + (1,) * self._event_ndims)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
