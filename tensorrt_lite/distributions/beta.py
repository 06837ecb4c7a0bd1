"""The beta distribution."""

from __future__ import annotations

from numbers import Number
from typing import Any, ClassVar

from tensorrt_lite import _root as trt
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.dirichlet import Dirichlet
from tensorrt_lite.distributions.exp_family import ExponentialFamily
from tensorrt_lite.distributions.utils import broadcast_all

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """The beta distribution: the first of two coordinates with the Dirichlet distribution of (`concentration1`, `concentration0`)."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _parameters: ClassVar[dict[str, int]] = {}

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        if isinstance(concentration1, Number) and isinstance(concentration0, Number):
            shapes = trt.tensor([float(concentration1), float(concentration0)])  # type: ignore[arg-type]
        else:
            shapes = trt.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(shapes, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    def _expand_parts(self, new: Any, batch_shape: Any) -> None:
        new._dirichlet = self._dirichlet.expand(batch_shape)

    @property
    def concentration1(self) -> Any:
        return self._part(0)

    @property
    def concentration0(self) -> Any:
        return self._part(1)

    def _part(self, i: int) -> Any:
        return self._dirichlet.concentration[..., i]

    @property
    def mean(self) -> Any:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Any:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Any:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(trt.stack([value, 1.0 - value], -1))

    def entropy(self) -> Any:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Any, y: Any) -> Any:  # type: ignore[override]
        return trt.lgamma(x) + trt.lgamma(y) - trt.lgamma(x + y)
