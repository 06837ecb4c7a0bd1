"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import special
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.distribution import Distribution
from tensorrt_lite.distributions.utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


def _log_bessel(order: int, x: Any) -> Any:
    """The logarithm of the modified Bessel function I of order 0 or 1, for positive x of any size."""
    scaled = special.i0e(x) if order == 0 else special.i1e(x)
    return scaled.log() + x


def _rejection_sample(loc: Any, concentration: Any, proposal_r: Any, x: Any) -> Any:
    """Fill x with angles (Best and Fisher 1979); each round draws three numbers for every element."""
    done = trt.zeros(x.shape, dtype=trt.bool, device=loc.device)
    while not done.all():
        u1, u2, u3 = trt.rand((3, *x.shape), dtype=loc.dtype, device=loc.device).unbind()
        z = trt.cos(math.pi * u1)
        f = (1 + proposal_r * z) / (proposal_r + z)
        c = concentration * (proposal_r - f)
        accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0) | c.isnan()  # which would never end
        if accept.any():
            x = trt.where(accept, (u3 - 0.5).sign() * f.acos(), x)
            done = done | accept
    return (x + math.pi + loc) % (2 * math.pi) - math.pi


class VonMises(Distribution):
    """Angles in [-pi, pi) around `loc`, the circle's normal distribution of precision `concentration`. Samples are drawn in double precision, without a
    gradient."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _parameters = {"loc": 0, "concentration": 0}

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, trt.Size(), validate_args)

    @lazy_property
    def _loc(self) -> Any:
        return self.loc.to(trt.double)

    @lazy_property
    def _concentration(self) -> Any:
        return self.concentration.to(trt.double)

    @lazy_property
    def _proposal_r(self) -> Any:
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        # rho cancels for small kappa
        return trt.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        shape = self._extended_shape(sample_shape)
        with no_grad():
            x = trt.empty(shape, dtype=self._loc.dtype, device=self.loc.device)
            return _rejection_sample(self._loc, self._concentration, self._proposal_r, x).to(self.loc.dtype)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        return self.concentration * trt.cos(value - self.loc) - math.log(2 * math.pi) - _log_bessel(0, self.concentration)

    @property
    def mean(self) -> Any:
        """The direction of the mean."""
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @lazy_property
    def variance(self) -> Any:  # type: ignore[override]
        """The circular variance."""
        return 1 - (_log_bessel(1, self.concentration) - _log_bessel(0, self.concentration)).exp()
