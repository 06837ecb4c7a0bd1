"""Exponential families: densities h(x) exp(<t, T(x)> - F(t)), whose entropy follows from the derivative of the log-normaliser F."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import autograd
from tensorrt_lite.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A distribution of an exponential family. A subclass gives its natural parameters, the log-normaliser as a function of them and the mean of
    log h; `entropy` and the divergence between two of one class differentiate the log-normaliser."""

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Any) -> Any:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        raise NotImplementedError

    def entropy(self) -> Any:
        """F(t) - <t, dF/dt> - E[log h(x)]."""
        points = [p.detach().requires_grad_() for p in self._natural_params]
        log_normalizer = self._log_normalizer(*points)
        slopes = autograd.grad(log_normalizer.sum(), points, create_graph=True)
        result = -self._mean_carrier_measure + log_normalizer
        for point, slope in zip(points, slopes, strict=True):
            result = result - (point * slope).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
