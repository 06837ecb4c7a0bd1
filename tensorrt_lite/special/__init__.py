"""Special functions: Bessel, Airy, error, gamma and zeta functions, orthogonal polynomials, and the package's functions under SciPy's names.

float32 results are within an ulp of the exact value, float64's within two. Near zeros of functions that oscillate the ulp is that of their amplitude.

>>> import tensorrt_lite as trt
>>> trt.special.expit(trt.tensor([0.0, 2.0]))
tensor([0.5000, 0.8808])
"""

# Operators are declared in cysrc/ops/special/special.yaml; tools/vmath_check measures their errors.

from __future__ import annotations

from tensorrt_lite import _ops, _public
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")

_NAMES = (
    "airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v",
    "chebyshev_polynomial_w", "entr", "erfcx", "hermite_polynomial_h", "hermite_polynomial_he", "i0e", "i1", "i1e", "laguerre_polynomial_l",
    "legendre_polynomial_p", "log_ndtr", "modified_bessel_i0", "modified_bessel_i1", "modified_bessel_k0", "modified_bessel_k1", "ndtr", "ndtri",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w", "spherical_bessel_j0", "xlog1py", "zeta",
)  # fmt: skip
# the package's functions, under other names where these are given
_ALIASES = {
    "digamma": "digamma", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv", "exp2": "exp2", "expit": "sigmoid", "expm1": "expm1", "gammainc": "igamma",
    "gammaincc": "igammac", "gammaln": "lgamma", "i0": "i0", "log1p": "log1p", "log_softmax": "log_softmax", "logit": "logit", "logsumexp": "logsumexp",
    "multigammaln": "mvlgamma", "polygamma": "polygamma", "psi": "digamma", "round": "round", "sinc": "sinc", "softmax": "softmax", "xlogy": "xlogy",
}  # fmt: skip
globals().update({name: _public.function(getattr(_ops, f"special_{name}"), name, __name__) for name in _NAMES})
globals().update({name: _public.function(getattr(_ops, own), name, __name__) for name, own in _ALIASES.items()})
__all__ = sorted([*_NAMES, *_ALIASES])


def __dir__() -> list[str]:
    return _listing.public(globals())
