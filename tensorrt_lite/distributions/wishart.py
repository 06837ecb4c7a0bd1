"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings
from numbers import Number
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import linalg
from tensorrt_lite._functions.dtype_limits import finfo
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.chi2 import Chi2
from tensorrt_lite.distributions.exp_family import ExponentialFamily
from tensorrt_lite.distributions.multivariate_normal import _precision_to_scale_tril
from tensorrt_lite.distributions.utils import lazy_property

__all__ = ["Wishart"]


def _mvdigamma(x: Any, p: int) -> Any:
    """The derivative of mvlgamma."""
    if not x.gt((p - 1) / 2).all():
        raise AssertionError("Wrong domain for multivariate digamma function.")
    return trt.digamma(x.unsqueeze(-1) - trt.arange(p, dtype=x.dtype, device=x.device).div(2).expand(x.shape + (-1,))).sum(-1)


def _clamp_above_eps(x: Any) -> Any:
    return x.clamp(min=finfo(x.dtype).eps)


class Wishart(ExponentialFamily):
    """Positive definite matrices (n, n): sums of `df` (above n - 1) outer products of normal vectors of covariance `covariance_matrix`, which may be given by
    its inverse `precision_matrix` or its Cholesky factor `scale_tril` instead."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _parameters = {"df": 0, "covariance_matrix": 2, "scale_tril": 2, "precision_matrix": 2, "_unbroadcasted_scale_tril": 2}

    @property
    def arg_constraints(self) -> dict[str, Any]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def __init__(
        self, df: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None, validate_args: bool | None = None
    ) -> None:
        matrices = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = given[0]
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, Number):
            batch_shape = trt.Size(matrix.shape[:-2])
            self.df = trt.tensor(df, dtype=matrix.dtype, device=matrix.device)
        else:
            batch_shape = trt.broadcast_shapes(matrix.shape[:-2], df.shape)
            self.df = df.expand(batch_shape)
        event_shape = matrix.shape[-2:]
        if self.df.le(event_shape[-1] - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}.")
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if self.df.lt(event_shape[-1]).any():
            warnings.warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.", stacklevel=2)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        else:
            self._unbroadcasted_scale_tril = linalg.cholesky(matrix) if name == "covariance_matrix" else _precision_to_scale_tril(matrix)
        self._make_chi2(self.df.unsqueeze(-1))

    def _make_chi2(self, df: Any) -> None:
        """Of the squared diagonal in Bartlett's decomposition: df, df - 1, ... degrees of freedom."""
        n = self._event_shape[-1]
        self._dist_chi2 = Chi2(df=df - trt.arange(n, dtype=df.dtype, device=df.device).expand((*self._batch_shape, -1)))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(new._batch_shape + (-1, -1))
        new._make_chi2(new.df.unsqueeze(-1))
        return new

    def _whole(self, matrix: Any) -> Any:
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        return self._whole(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Any:
        identity = trt.eye(self._event_shape[-1], dtype=self._unbroadcasted_scale_tril.dtype, device=self._unbroadcasted_scale_tril.device)
        return self._whole(trt.cholesky_solve(identity, self._unbroadcasted_scale_tril))

    def _df_of_matrices(self) -> Any:
        return self.df.view(self._batch_shape + (1, 1))

    @property
    def mean(self) -> Any:
        return self._df_of_matrices() * self.covariance_matrix

    @property
    def mode(self) -> Any:
        """NaN below n + 1 degrees of freedom."""
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = trt.where(factor <= 0, trt.nan, factor)
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self._df_of_matrices() * (v.pow(2) + trt.einsum("...i,...j->...ij", diagonal, diagonal))

    def _bartlett_sampling(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        """L A A^T L^T, A lower triangular with the roots of chi-squared numbers on its diagonal and normal numbers below (Bartlett 1933)."""
        n = self._event_shape[-1]
        noise = _clamp_above_eps(self._dist_chi2.rsample(sample_shape).sqrt()).diag_embed(dim1=-2, dim2=-1)
        i, j = trt.tril_indices(n, n, offset=-1)
        noise[..., i, j] = trt.randn((*sample_shape, *self._batch_shape, n * (n - 1) // 2), dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = trt.Size(), max_try_correction: int | None = None) -> Any:  # noqa: B008 - immutable
        """Matrices (*sample_shape, *batch_shape, n, n). Samples with a matrix that rounding has made singular are drawn again, up to `max_try_correction` (10)
        times, with a warning."""
        sample_shape = trt.Size(sample_shape)
        # PyTorch mistakes regular matrices of its first draw for singular ones and draws once more: the same seed gives the same matrices
        self._bartlett_sampling(sample_shape)
        sample = self._bartlett_sampling(trt.Size((sample_shape.numel(),)))
        for _ in range((10 if max_try_correction is None else max_try_correction) - 1):
            singular = (~self.support.check(sample)).reshape(sample.shape[0], self._batch_shape.numel()).any(-1)
            count = int(singular.sum())
            if count == 0:
                break
            warnings.warn("Singular sample detected.", stacklevel=3)
            sample = sample.index_put((singular,), self._bartlett_sampling(trt.Size((count,))))
        return sample.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        log_det = linalg.slogdet(value).logabsdet
        trace = trt.cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (nu - p - 1) / 2 * log_det - trace / 2 - nu * self._half_log_det() - nu * p / 2 * math.log(2) - trt.mvlgamma(nu / 2, p=p)

    def _half_log_det(self) -> Any:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def entropy(self) -> Any:
        nu, p = self.df, self._event_shape[-1]
        linear = (p + 1) * (self._half_log_det() + p / 2 * math.log(2))
        return linear + trt.mvlgamma(nu / 2, p=p) - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p) + nu * p / 2

    @property
    def _natural_params(self) -> tuple[Any, ...]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Any, y: Any) -> Any:  # type: ignore[override]
        p = self._event_shape[-1]
        power = y + (p + 1) / 2
        return power * (-linalg.slogdet(-2 * x).logabsdet + math.log(2) * p) + trt.mvlgamma(power, p=p)
