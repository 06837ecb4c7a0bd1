"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import linalg
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.distribution import Distribution
from tensorrt_lite.distributions.utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat: Any, bvec: Any) -> Any:
    """Products of matrices (*, n, m) with vectors (*, m), whose batch dimensions broadcast."""
    return trt.matmul(bmat, bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL: Any, bx: Any) -> Any:
    """x^T (L L^T)^-1 x for vectors (*, n) and factors (*, n, n), whose batch shape is the last part of that of the vectors (with 1 where they repeat).

    Each factor is solved once, with all of its vectors as columns.
    """
    n, batch = bx.size(-1), bx.shape[:-1]
    extra = len(batch) - (bL.dim() - 2)
    # batch dimensions of the vectors in two parts: that of the factor's size, and how often it repeats
    split: list[int] = []
    for factors, vectors in zip(bL.shape[:-2], batch[extra:], strict=True):
        split += [factors, vectors // factors]
    x = bx.reshape((*batch[:extra], *split, n))
    own = [extra + 2 * i for i in range(bL.dim() - 2)]
    repeats = [*range(extra), *(d + 1 for d in own)]
    flat_x = x.permute((*own, *repeats, x.dim() - 1)).reshape(-1, math.prod(x.shape[d] for d in repeats), n)
    flat_factor = bL.reshape(-1, n, n)
    squares = linalg.solve_triangular(flat_factor, flat_x.mT, upper=False).pow(2).sum(-2)
    ordered = squares.reshape([x.shape[d] for d in (*own, *repeats)])
    places = [*own, *repeats]
    return ordered.permute([places.index(d) for d in range(len(places))]).reshape(batch)


def _precision_to_scale_tril(P: Any) -> Any:
    """The Cholesky factor of the inverse, by one factorisation of the matrix with rows and columns in reverse order."""
    upper = trt.flip(linalg.cholesky(trt.flip(P, (-2, -1))), (-2, -1)).mT
    return linalg.solve_triangular(upper, trt.eye(P.shape[-1], dtype=P.dtype, device=P.device), upper=False)


class MultivariateNormal(Distribution):
    """The normal distribution over vectors of mean `loc` (*, n) and one of `covariance_matrix`, `precision_matrix` (its inverse) and `scale_tril` (its
    Cholesky factor), each (*, n, n). ValueError unless exactly one is given; all are computed with the factor.

    >>> import tensorrt_lite as trt
    >>> trt.distributions.MultivariateNormal(trt.zeros(2), trt.eye(2)).sample((3,)).shape
    torch.Size([3, 2])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _parameters = {"loc": 1, "_unbroadcasted_scale_tril": 2, "covariance_matrix": 2, "scale_tril": 2, "precision_matrix": 2}

    def __init__(
        self, loc: Any, covariance_matrix: Any = None, precision_matrix: Any = None, scale_tril: Any = None, validate_args: bool | None = None
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        matrices = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
        given = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        name, matrix = given[0]
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = trt.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + matrix.shape[-2:]))
        self.loc = loc.expand(batch_shape + loc.shape[-1:])
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        else:
            self._unbroadcasted_scale_tril = linalg.cholesky(matrix) if name == "covariance_matrix" else _precision_to_scale_tril(matrix)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return new

    def _whole(self, matrix: Any) -> Any:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        return self._whole(trt.matmul(self._unbroadcasted_scale_tril, self._unbroadcasted_scale_tril.mT))

    @lazy_property
    def precision_matrix(self) -> Any:
        return self._whole(trt.cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        eps = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def _half_log_det(self) -> Any:
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        square = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + square) - self._half_log_det()

    def entropy(self) -> Any:
        entropy = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return entropy if not self._batch_shape else entropy.expand(self._batch_shape)
