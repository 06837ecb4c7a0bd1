"""The Kumaraswamy distribution."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.transformed_distribution import TransformedDistribution
from tensorrt_lite.distributions.transforms import AffineTransform, PowerTransform
from tensorrt_lite.distributions.uniform import Uniform
from tensorrt_lite.distributions.utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


def _moments(a: Any, b: Any, n: int) -> Any:
    """The mean of the n-th power: b B(1 + n / a, b)."""
    shifted = 1 + n / a
    return trt.exp(b.log() + trt.lgamma(shifted) + trt.lgamma(b) - trt.lgamma(shifted + b))


class Kumaraswamy(TransformedDistribution):
    """Numbers in [0, 1] with the distribution function 1 - (1 - x^concentration1)^concentration0."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True  # type: ignore[assignment]

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        base = Uniform(trt.full_like(self.concentration0, 0), trt.full_like(self.concentration0, 1), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Kumaraswamy, _instance)
        new.concentration1 = self.concentration1.expand(batch_shape)
        new.concentration0 = self.concentration0.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Any:
        return _moments(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> Any:
        """NaN where a shape lies below 1, or both are 1."""
        a, b = self.concentration1, self.concentration0
        mode = (a.reciprocal() * (-b).log1p() - (-a * b).log1p()).exp()
        mode[(a < 1) | (b < 1)] = trt.nan
        return mode

    @property
    def variance(self) -> Any:
        return _moments(self.concentration1, self.concentration0, 2) - trt.pow(self.mean, 2)

    def entropy(self) -> Any:
        t1 = 1 - self.concentration1.reciprocal()
        t0 = 1 - self.concentration0.reciprocal()
        harmonic = trt.digamma(self.concentration0 + 1) + euler_constant
        return t0 + t1 * harmonic - trt.log(self.concentration1) - trt.log(self.concentration0)
