"""Probability distributions: samples, densities, gradients through samples, transforms of random variables and divergences.

A distribution has parameters, a `batch_shape` and an `event_shape`; `sample` and, with gradients, `rsample` draw values, `log_prob` is the logarithm of their
density. `constraints` name the sets that values and parameters lie in, `transforms` map between them.

>>> import tensorrt_lite as trt
>>> from tensorrt_lite.distributions import Categorical
>>> policy = Categorical(logits=trt.zeros(2, 4))
>>> action = policy.sample()
>>> policy.log_prob(action).shape
torch.Size([2])
"""

from __future__ import annotations

from typing import Any

from tensorrt_lite._C.core.hints import LookUp as _LookUp
from tensorrt_lite.distributions import constraints, transforms
from tensorrt_lite.distributions.bernoulli import Bernoulli
from tensorrt_lite.distributions.beta import Beta
from tensorrt_lite.distributions.binomial import Binomial
from tensorrt_lite.distributions.categorical import Categorical
from tensorrt_lite.distributions.cauchy import Cauchy
from tensorrt_lite.distributions.chi2 import Chi2
from tensorrt_lite.distributions.constraint_registry import biject_to, transform_to
from tensorrt_lite.distributions.continuous_bernoulli import ContinuousBernoulli
from tensorrt_lite.distributions.dirichlet import Dirichlet
from tensorrt_lite.distributions.distribution import Distribution
from tensorrt_lite.distributions.exp_family import ExponentialFamily
from tensorrt_lite.distributions.exponential import Exponential
from tensorrt_lite.distributions.fishersnedecor import FisherSnedecor
from tensorrt_lite.distributions.gamma import Gamma
from tensorrt_lite.distributions.generalized_pareto import GeneralizedPareto
from tensorrt_lite.distributions.geometric import Geometric
from tensorrt_lite.distributions.gumbel import Gumbel
from tensorrt_lite.distributions.half_cauchy import HalfCauchy
from tensorrt_lite.distributions.half_normal import HalfNormal
from tensorrt_lite.distributions.independent import Independent
from tensorrt_lite.distributions.inverse_gamma import InverseGamma
from tensorrt_lite.distributions.kl import kl_divergence, register_kl
from tensorrt_lite.distributions.kumaraswamy import Kumaraswamy
from tensorrt_lite.distributions.laplace import Laplace
from tensorrt_lite.distributions.lkj_cholesky import LKJCholesky
from tensorrt_lite.distributions.log_normal import LogNormal
from tensorrt_lite.distributions.logistic_normal import LogisticNormal
from tensorrt_lite.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal
from tensorrt_lite.distributions.mixture_same_family import MixtureSameFamily
from tensorrt_lite.distributions.multinomial import Multinomial
from tensorrt_lite.distributions.multivariate_normal import MultivariateNormal
from tensorrt_lite.distributions.negative_binomial import NegativeBinomial
from tensorrt_lite.distributions.normal import Normal
from tensorrt_lite.distributions.one_hot_categorical import OneHotCategorical, OneHotCategoricalStraightThrough
from tensorrt_lite.distributions.pareto import Pareto
from tensorrt_lite.distributions.poisson import Poisson
from tensorrt_lite.distributions.relaxed_bernoulli import RelaxedBernoulli
from tensorrt_lite.distributions.relaxed_categorical import RelaxedOneHotCategorical
from tensorrt_lite.distributions.studentT import StudentT
from tensorrt_lite.distributions.transformed_distribution import TransformedDistribution
from tensorrt_lite.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)
from tensorrt_lite.distributions.uniform import Uniform
from tensorrt_lite.distributions.von_mises import VonMises
from tensorrt_lite.distributions.weibull import Weibull
from tensorrt_lite.distributions.wishart import Wishart
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical", "Cauchy", "Chi2", "ComposeTransform",
    "ContinuousBernoulli", "CorrCholeskyTransform", "CumulativeDistributionTransform", "Dirichlet", "Distribution", "ExpTransform", "Exponential",
    "ExponentialFamily", "FisherSnedecor", "Gamma", "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent",
    "IndependentTransform", "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal", "LowRankMultivariateNormal",
    "LowerCholeskyTransform", "MixtureSameFamily", "Multinomial", "MultivariateNormal", "NegativeBinomial", "Normal", "OneHotCategorical",
    "OneHotCategoricalStraightThrough", "Pareto", "Poisson", "PositiveDefiniteTransform", "PowerTransform", "RelaxedBernoulli",
    "RelaxedOneHotCategorical", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform", "VonMises", "Weibull", "Wishart",
    "biject_to", "identity_transform", "kl_divergence", "register_kl", "transform_to",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise _missing.error("distributions", name)


globals()["__getattr__"] = _LookUp(__getattr__)


def __dir__() -> list[str]:
    return _listing.public(globals())
