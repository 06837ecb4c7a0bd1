"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.exponential import Exponential
from tensorrt_lite.distributions.transformed_distribution import TransformedDistribution
from tensorrt_lite.distributions.transforms import AffineTransform, PowerTransform
from tensorrt_lite.distributions.utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The Weibull distribution: `scale` times an exponential number to the power of 1 / `concentration`."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(trt.ones_like(self.scale), validate_args=validate_args)
        transforms = [PowerTransform(exponent=self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Weibull, _instance)
        for name in ("scale", "concentration", "concentration_reciprocal"):
            setattr(new, name, getattr(self, name).expand(batch_shape))
        return super().expand(batch_shape, _instance=new)

    @property
    def mean(self) -> Any:
        return self.scale * trt.exp(trt.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Any:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self) -> Any:
        second = trt.exp(trt.lgamma(1 + 2 * self.concentration_reciprocal))
        return self.scale.pow(2) * (second - trt.exp(2 * trt.lgamma(1 + self.concentration_reciprocal)))

    def entropy(self) -> Any:
        return euler_constant * (1 - self.concentration_reciprocal) + trt.log(self.scale * self.concentration_reciprocal) + 1
