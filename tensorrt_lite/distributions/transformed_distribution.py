"""Distributions of transformed random variables."""

from __future__ import annotations

from typing import Any, ClassVar

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.distribution import Distribution
from tensorrt_lite.distributions.independent import Independent
from tensorrt_lite.distributions.transforms import ComposeTransform, Transform
from tensorrt_lite.distributions.utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of a sample of `base_distribution` after `transforms`, one or a list. Densities need transforms with inverses and log-determinants,
    `cdf` and `icdf` monotone ones.

    >>> import tensorrt_lite as trt
    >>> from tensorrt_lite.distributions import ExpTransform, Normal, TransformedDistribution
    >>> round(TransformedDistribution(Normal(0.0, 1.0), ExpTransform()).log_prob(trt.tensor(1.0)).item(), 4)
    -0.9189
    """

    arg_constraints: dict[str, Any] = {}
    _parameters: ClassVar[dict[str, int]] = {}

    def __init__(self, base_distribution: Distribution, transforms: Any, validate_args: bool | None = None) -> None:
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif isinstance(transforms, list):
            if not all(isinstance(t, Transform) for t in transforms):
                raise ValueError("transforms must be a Transform or a list of Transforms")
            self.transforms = transforms
        else:
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_event_dim = len(base_distribution.event_shape)
        transform = ComposeTransform(self.transforms)
        if len(base_shape) < transform.domain.event_dim:
            raise ValueError(f"base_distribution needs to have shape with size at least {transform.domain.event_dim}, but got {base_shape}.")
        forward_shape = transform.forward_shape(base_shape)
        # parameters of the transforms broadcast against the base
        broadcast_shape = transform.inverse_shape(forward_shape)
        if base_shape != broadcast_shape:
            base_distribution = base_distribution.expand(broadcast_shape[: len(broadcast_shape) - base_event_dim])
        missing = transform.domain.event_dim - base_event_dim
        if missing > 0:
            base_distribution = Independent(base_distribution, missing)
        self.base_dist = base_distribution
        change = transform.codomain.event_dim - transform.domain.event_dim
        cut = len(forward_shape) - max(transform.codomain.event_dim, base_event_dim + change)
        super().__init__(forward_shape[:cut], forward_shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same with batch dimensions expanded to `batch_shape`. Subclasses whose constructor makes the base give themselves their `_instance`."""
        new = self._get_checked_instance(TransformedDistribution, _instance)
        batch_shape = trt.Size(batch_shape)
        new.transforms = self.transforms
        base_shape = ComposeTransform(self.transforms).inverse_shape(batch_shape + self.event_shape)
        new.base_dist = self.base_dist.expand(base_shape[: len(base_shape) - len(self.base_dist.event_shape)])
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:  # type: ignore[override]
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        missing = len(self.event_shape) - support.event_dim
        return constraints.independent(support, missing) if missing > 0 else support

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    def sample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        """The base's sample, which may have no gradient, transformed."""
        with no_grad():
            return self._forward(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        return self._forward(self.base_dist.rsample(sample_shape))

    def _forward(self, x: Any) -> Any:
        for transform in self.transforms:
            x = transform(x)
        return x

    def _backward(self, y: Any) -> Any:
        for transform in reversed(self.transforms):
            y = transform.inv(y)
        return y

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        event_dim, y, jacobian = len(self.event_shape), value, 0.0
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            jacobian = jacobian - _sum_rightmost(transform.log_abs_det_jacobian(x, y), event_dim - transform.domain.event_dim)
            y = x
        return jacobian + _sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Any) -> Any:
        """1 - value where the transforms together reverse the order, else value."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        value = self._backward(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._forward(self.base_dist.icdf(self._monotonize_cdf(value)))
