"""The Gumbel distribution."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._functions.dtype_limits import finfo
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.transformed_distribution import TransformedDistribution
from tensorrt_lite.distributions.transforms import AffineTransform, ExpTransform
from tensorrt_lite.distributions.uniform import Uniform
from tensorrt_lite.distributions.utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The Gumbel distribution of mode `loc`: that of the largest of many numbers with exponential tails, of width `scale`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        numbers = isinstance(loc, Number) and isinstance(scale, Number)
        info = finfo((trt.get_default_dtype() if numbers else self.loc.dtype))
        if numbers:
            base = Uniform(info.tiny, 1 - info.eps, validate_args=validate_args)
        else:
            base = Uniform(trt.full_like(self.loc, info.tiny), trt.full_like(self.loc, 1 - info.eps), validate_args=validate_args)
        log_and_negate = [ExpTransform().inv, AffineTransform(loc=0, scale=-trt.ones_like(self.scale))]
        transforms = [*log_and_negate, ExpTransform().inv, AffineTransform(loc=loc, scale=-self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc = self.loc.expand(batch_shape)
        new.scale = self.scale.expand(batch_shape)
        return super().expand(batch_shape, _instance=new)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self) -> Any:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def stddev(self) -> Any:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Any:
        return self.stddev.pow(2)

    def entropy(self) -> Any:
        return self.scale.log() + (1 + euler_constant)
