"""Kullback-Leibler divergences: a table by the types of both distributions, to which `register_kl` adds.

Most of the pairs of different families follow from one identity: KL(p || q) = -H(p) - E_p[log q], where E_p[log q] takes the mean, the variance or the mean
logarithm of p, so that a function here serves all p that have these.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import autograd
from tensorrt_lite import linalg
from tensorrt_lite.distributions.bernoulli import Bernoulli
from tensorrt_lite.distributions.beta import Beta
from tensorrt_lite.distributions.binomial import Binomial
from tensorrt_lite.distributions.categorical import Categorical
from tensorrt_lite.distributions.cauchy import Cauchy
from tensorrt_lite.distributions.continuous_bernoulli import ContinuousBernoulli
from tensorrt_lite.distributions.dirichlet import Dirichlet
from tensorrt_lite.distributions.distribution import Distribution
from tensorrt_lite.distributions.exp_family import ExponentialFamily
from tensorrt_lite.distributions.exponential import Exponential
from tensorrt_lite.distributions.gamma import Gamma
from tensorrt_lite.distributions.geometric import Geometric
from tensorrt_lite.distributions.gumbel import Gumbel
from tensorrt_lite.distributions.half_normal import HalfNormal
from tensorrt_lite.distributions.independent import Independent
from tensorrt_lite.distributions.laplace import Laplace
from tensorrt_lite.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal, _batch_lowrank_logdet, _batch_lowrank_mahalanobis
from tensorrt_lite.distributions.multivariate_normal import MultivariateNormal, _batch_mahalanobis
from tensorrt_lite.distributions.normal import Normal
from tensorrt_lite.distributions.one_hot_categorical import OneHotCategorical
from tensorrt_lite.distributions.pareto import Pareto
from tensorrt_lite.distributions.poisson import Poisson
from tensorrt_lite.distributions.transformed_distribution import TransformedDistribution
from tensorrt_lite.distributions.uniform import Uniform
from tensorrt_lite.distributions.utils import _sum_rightmost, euler_constant
from tensorrt_lite.nn import functional as F

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}
_KL_MEMOIZE: dict[tuple[type, type], Callable[[Any, Any], Any]] = {}


def register_kl(type_p: Any, type_q: Any) -> Callable[[Callable[[Any, Any], Any]], Callable[[Any, Any], Any]]:
    """A decorator: the function computes `kl_divergence(p, q)` for p and q of these types and their subclasses. The most specific pair is taken.

    TypeError for what is no class.
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(kind, type):  # a class that distributions have among their bases will do, too
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def register(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return register


def _dispatch_kl(type_p: type, type_q: type) -> Callable[[Any, Any], Any]:
    """The function of the most specific pair; a RuntimeWarning where one pair is closest to type_p and another to type_q."""
    of_p, of_q = type_p.__mro__, type_q.__mro__
    distances = [(of_p.index(p), of_q.index(q), p, q) for p, q in _KL_REGISTRY if p in of_p and q in of_q]
    if not distances:
        return lambda p, q: NotImplemented
    left = min(distances, key=lambda d: (d[0], d[1]))
    right = min(distances, key=lambda d: (d[1], d[0]))
    function = _KL_REGISTRY[left[2:]]
    if function is not _KL_REGISTRY[right[2:]]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({left[2].__name__}, {right[3].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return function


def kl_divergence(p: Distribution, q: Distribution) -> Any:
    """The Kullback-Leibler divergence of q from p, E_p[log p - log q]: (*batch_shape). NotImplementedError for types that have none registered.

    >>> import tensorrt_lite as trt
    >>> from tensorrt_lite.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0)).item()
    0.5
    """
    key = type(p), type(q)
    function = _KL_MEMOIZE.get(key)
    if function is None:
        function = _KL_MEMOIZE[key] = _dispatch_kl(*key)
    result = function(p, q)
    if result is NotImplemented:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")
    return result


def _of_each(types_p: tuple[type, ...], *types_q: type) -> Callable[[Callable[[Any, Any], Any]], Callable[[Any, Any], Any]]:
    def register(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        for type_p in types_p:
            for type_q in types_q:
                register_kl(type_p, type_q)(function)
        return function

    return register


# ---- one family ----------------------------------------------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p: Any, q: Any) -> Any:
    success = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    success = trt.where(p.probs == 0, 0.0, trt.where(q.probs == 0, math.inf, success))
    failure = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    return success + trt.where(p.probs == 1, 0.0, trt.where(q.probs == 1, math.inf, failure))


@register_kl(Beta, Beta)
def _kl_beta_beta(p: Any, q: Any) -> Any:
    total_p, total_q = p.concentration1 + p.concentration0, q.concentration1 + q.concentration0
    of_q = q.concentration1.lgamma() + q.concentration0.lgamma() - total_q.lgamma()
    of_p = p.concentration1.lgamma() + p.concentration0.lgamma() - total_p.lgamma()
    first = (p.concentration1 - q.concentration1) * trt.digamma(p.concentration1)
    second = (p.concentration0 - q.concentration0) * trt.digamma(p.concentration0)
    return of_q - of_p + first + second + (total_q - total_p) * trt.digamma(total_p)


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p: Any, q: Any) -> Any:
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return trt.where(p.total_count > q.total_count, math.inf, kl)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p: Any, q: Any) -> Any:
    terms = trt.where(q.probs == 0, math.inf, p.probs * (p.logits - q.logits))
    return trt.where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p: Any, q: Any) -> Any:
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p: Any, q: Any) -> Any:
    of_p = p._cont_bern_log_norm() + trt.log1p(-p.probs)
    return p.mean * (p.logits - q.logits) + of_p - q._cont_bern_log_norm() - trt.log1p(-q.probs)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p: Any, q: Any) -> Any:
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    normalizers = total_p.lgamma() - total_q.lgamma() - (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    mean_log = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return normalizers + ((p.concentration - q.concentration) * mean_log).sum(-1)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p: Any, q: Any) -> Any:
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p: Any, q: Any) -> Any:
    """The Bregman divergence of the log-normaliser between the natural parameters."""
    if type(p) is not type(q):
        raise NotImplementedError(
            f"The cross KL-divergence between different exponential families cannot be computed using Bregman divergences: {type(p).__name__} and {type(q).__name__}"
        )
    points = [v.detach().requires_grad_() for v in p._natural_params]
    at_p = p._log_normalizer(*points)
    slopes = autograd.grad(at_p.sum(), points, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - at_p
    for point, other, slope in zip(points, q._natural_params, slopes, strict=True):
        result = result - _sum_rightmost((other - point) * slope, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p: Any, q: Any) -> Any:
    rates = q.concentration * (p.rate / q.rate).log() + (q.rate - p.rate) * (p.concentration / p.rate)
    shapes = trt.lgamma(q.concentration) - trt.lgamma(p.concentration) + (p.concentration - q.concentration) * trt.digamma(p.concentration)
    return rates + shapes


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p: Any, q: Any) -> Any:
    return -p.entropy() - trt.log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p: Any, q: Any) -> Any:
    ratio, shift = p.scale / q.scale, (p.loc - q.loc) / q.scale
    return shift - ratio.log() + ratio * euler_constant + trt.exp(trt.lgamma(1 + ratio) - shift) - (1 + euler_constant)


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p: Any, q: Any) -> Any:
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p: Any, q: Any) -> Any:
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * trt.exp(-distance / p.scale) - 1


@register_kl(Normal, Normal)
def _kl_normal_normal(p: Any, q: Any) -> Any:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p: Any, q: Any) -> Any:
    ratio = q.alpha / p.alpha
    kl = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return trt.where(p.scale < q.scale, math.inf, kl)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p: Any, q: Any) -> Any:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p: Any, q: Any) -> Any:
    kl = ((q.high - q.low) / (p.high - p.low)).log()
    return trt.where((q.low > p.low) | (q.high < p.high), math.inf, kl)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p: Any, q: Any) -> Any:
    """Chyzak and Nielsen 2019."""
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p: Any, q: Any) -> Any:
    """That of the bases: a bijection changes nothing."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _kl_independent_independent(p: Any, q: Any) -> Any:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# ---- multivariate normal distributions: (tr(Q^-1 P) + |m|^2_Q - n + log det Q - log det P) / 2 --------------------------------


def _squared_norm(matrix: Any) -> Any:
    """tr(A A^T)."""
    return matrix.reshape((*matrix.shape[:-2], -1)).pow(2).sum(-1)


def _check_event_shapes(p: Any, q: Any, names: str) -> None:
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {names} Normals with different event shapes cannot be computed")


def _solved_norm(factor: Any, matrix: Any) -> Any:
    """tr((L L^T)^-1 A A^T), of batches that broadcast."""
    batch = trt.broadcast_shapes(factor.shape[:-2], matrix.shape[:-2])
    factor, matrix = factor.expand(batch + factor.shape[-2:]), matrix.expand(batch + matrix.shape[-2:])
    return _squared_norm(linalg.solve_triangular(factor, matrix, upper=False))


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p: Any, q: Any) -> Any:
    _check_event_shapes(p, q, "Multivariate")
    factor = q._unbroadcasted_scale_tril
    trace = _solved_norm(factor, p._unbroadcasted_scale_tril)
    distance = _batch_mahalanobis(factor, q.loc - p.loc)
    return q._half_log_det() - p._half_log_det() + 0.5 * (trace + distance - p.event_shape[0])


def _lowrank_distance(p: Any, q: Any) -> Any:
    return _batch_lowrank_mahalanobis(q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q.loc - p.loc, q._capacitance_tril)


def _scaled_by_lowrank(q: Any) -> Any:
    """A with Q^-1 = D^-1 - A^T A."""
    weighted = q._unbroadcasted_cov_factor.mT / q._unbroadcasted_cov_diag.unsqueeze(-2)
    return linalg.solve_triangular(q._capacitance_tril, weighted, upper=False)


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p: Any, q: Any) -> Any:
    _check_event_shapes(p, q, "Low Rank Multivariate")
    log_det_p = _batch_lowrank_logdet(p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag, p._capacitance_tril)
    log_det_q = _batch_lowrank_logdet(q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q._capacitance_tril)
    scaled, root_q, root_p = _scaled_by_lowrank(q), q._unbroadcasted_cov_diag.sqrt().unsqueeze(-1), p._unbroadcasted_cov_diag.sqrt()
    trace = (p._unbroadcasted_cov_diag / q._unbroadcasted_cov_diag).sum(-1) + _squared_norm(p._unbroadcasted_cov_factor / root_q)
    trace = trace - _squared_norm(scaled * root_p.unsqueeze(-2)) - _squared_norm(scaled.matmul(p._unbroadcasted_cov_factor))
    return 0.5 * (log_det_q - log_det_p + trace + _lowrank_distance(p, q) - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p: Any, q: Any) -> Any:
    _check_event_shapes(p, q, "(Low Rank) Multivariate")
    log_det_q = _batch_lowrank_logdet(q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q._capacitance_tril)
    factor = p._unbroadcasted_scale_tril
    trace = _squared_norm(factor / q._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)) - _squared_norm(_scaled_by_lowrank(q).matmul(factor))
    return 0.5 * (log_det_q - 2 * p._half_log_det() + trace + _lowrank_distance(p, q) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p: Any, q: Any) -> Any:
    _check_event_shapes(p, q, "(Low Rank) Multivariate")
    log_det_p = _batch_lowrank_logdet(p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag, p._capacitance_tril)
    factor = q._unbroadcasted_scale_tril
    trace = _solved_norm(factor, p._unbroadcasted_cov_factor) + _solved_norm(factor, trt.diag_embed(p._unbroadcasted_cov_diag.sqrt()))
    return 0.5 * (2 * q._half_log_det() - log_det_p + trace + _batch_mahalanobis(factor, q.loc - p.loc) - p.event_shape[0])


# ---- two families ---------------------------------------------------------------------------------------------------------


@_of_each((Beta, ContinuousBernoulli), Pareto)
@_of_each((Exponential, Gamma), Beta, ContinuousBernoulli, Pareto, Uniform)
@_of_each((Gumbel, Laplace, Normal), Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
@_of_each((Pareto,), Beta, ContinuousBernoulli, Uniform)
@_of_each((Poisson,), Bernoulli, Binomial)
def _kl_infinite(p: Any, q: Any) -> Any:
    """Some of p's values lie outside of q's support. As PyTorch's, of p's batch shape alone."""
    parameter = getattr(p, next(iter(p.arg_constraints)))
    return trt.full(p.batch_shape, math.inf, dtype=parameter.dtype, device=parameter.device)


@_of_each((Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform), Normal)
def _kl_to_normal(p: Any, q: Any) -> Any:
    variance = q.scale.pow(2)
    return -p.entropy() + 0.5 * (2 * math.pi * variance).log() + 0.5 * (p.variance + (p.mean - q.loc).pow(2)) / variance


@_of_each((Beta, ContinuousBernoulli, Gamma, Pareto), Exponential)
def _kl_to_exponential(p: Any, q: Any) -> Any:
    return -p.entropy() - q.rate.log() + q.rate * p.mean


@register_kl(Uniform, Exponential)
def _kl_uniform_exponential(p: Any, q: Any) -> Any:
    return trt.where(p.low < 0, math.inf, _kl_to_exponential(p, q))


def _x_log_x(x: Any) -> Any:
    return trt.xlogy(x, x)


def _mean_log(p: Any) -> Any:
    """E[log x]."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1


@_of_each((Beta, Exponential, Pareto), Gamma)
def _kl_to_gamma(p: Any, q: Any) -> Any:
    log_normalizer = q.concentration.lgamma() - q.concentration * q.rate.log()
    return -p.entropy() + log_normalizer - (q.concentration - 1) * _mean_log(p) + q.rate * p.mean


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p: Any, q: Any) -> Any:
    return trt.where(p.low < 0, math.inf, _kl_to_gamma(p, q))


def _to_gumbel(p: Any, q: Any, mean_exp: Any) -> Any:
    """mean_exp: E[exp(-(x - loc) / scale)]."""
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) / q.scale + mean_exp


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p: Any, q: Any) -> Any:
    scaled = p.rate * q.scale
    return _to_gumbel(p, q, trt.exp(q.loc / q.scale) * scaled / (scaled + 1))


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p: Any, q: Any) -> Any:
    return _to_gumbel(p, q, trt.exp(q.loc / q.scale) * (1 + (p.rate * q.scale).reciprocal()).pow(-p.concentration))


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p: Any, q: Any) -> Any:
    return _to_gumbel(p, q, trt.exp(-(p.loc - q.loc) / q.scale + 0.5 * (p.scale / q.scale).pow(2)))


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p: Any, q: Any) -> Any:
    ends = trt.exp((q.loc - p.low) / q.scale) - trt.exp((q.loc - p.high) / q.scale)
    return _to_gumbel(p, q, q.scale / (p.high - p.low) * ends)


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p: Any, q: Any) -> Any:
    shift = p.loc - q.loc
    relative = shift / p.scale
    distance = math.sqrt(2 / math.pi) * p.scale * trt.exp(-0.5 * relative.pow(2)) + shift * trt.erf(math.sqrt(0.5) * relative)
    return -p.entropy() + (2 * q.scale).log() + distance / q.scale


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p: Any, q: Any) -> Any:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


def _to_continuous_bernoulli(p: Any, q: Any) -> Any:
    return -p.entropy() - p.mean * q.logits - trt.log1p(-q.probs) - q._cont_bern_log_norm()


def _outside_unit_interval(p: Any) -> Any:
    return (p.high > 1) | (p.low < 0)


@register_kl(Beta, ContinuousBernoulli)
def _kl_beta_continuous_bernoulli(p: Any, q: Any) -> Any:
    return _to_continuous_bernoulli(p, q)


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p: Any, q: Any) -> Any:
    return trt.where(_outside_unit_interval(p), math.inf, _to_continuous_bernoulli(p, q))


@_of_each((Beta, ContinuousBernoulli), Uniform)
def _kl_unit_interval_to_uniform(p: Any, q: Any) -> Any:
    return trt.where((q.low > 0) | (q.high < 1), math.inf, -p.entropy() + (q.high - q.low).log())


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p: Any, q: Any) -> Any:
    a, b = q.concentration1, q.concentration0
    mean_log_rest = (_x_log_x(1 - p.low) - _x_log_x(1 - p.high)) / (p.high - p.low) - 1
    log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
    kl = -p.entropy() + log_beta - (a - 1) * _mean_log(p) - (b - 1) * mean_log_rest
    return trt.where(_outside_unit_interval(p), math.inf, kl)


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p: Any, q: Any) -> Any:
    kl = -p.entropy() - (q.alpha * q.scale.pow(q.alpha)).log() + (q.alpha + 1) * _mean_log(p)
    return trt.where(p.low < q.scale, math.inf, kl)
