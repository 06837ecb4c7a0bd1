"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.exp_family import ExponentialFamily

_nn = LazyModule("tensorrt_lite.nn")

__all__ = ["Dirichlet"]


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution over the simplex, of shapes `concentration` (*, n). ValueError for a number."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _parameters = {"concentration": 1}

    def __init__(self, concentration: Any, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Any:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Any:
        """Where a shape lies below 1, the largest shape's vertex."""
        above = (self.concentration - 1).clamp(min=0.0)
        mode = above / above.sum(-1, True)
        at_vertex = (self.concentration < 1).all(dim=-1)
        mode[at_vertex] = _nn.functional.one_hot(mode[at_vertex].argmax(dim=-1), above.shape[-1]).to(mode)
        return mode

    @property
    def variance(self) -> Any:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        return trt._sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))  # type: ignore[attr-defined]

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        shapes = self.concentration
        return trt.xlogy(shapes - 1.0, value).sum(-1) + trt.lgamma(shapes.sum(-1)) - trt.lgamma(shapes).sum(-1)

    def entropy(self) -> Any:
        shapes, n = self.concentration, self.concentration.size(-1)
        total = shapes.sum(-1)
        return trt.lgamma(shapes).sum(-1) - trt.lgamma(total) - (n - total) * trt.digamma(total) - ((shapes - 1.0) * trt.digamma(shapes)).sum(-1)

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Any) -> Any:  # type: ignore[override]
        return x.lgamma().sum(-1) - trt.lgamma(x.sum(-1))
