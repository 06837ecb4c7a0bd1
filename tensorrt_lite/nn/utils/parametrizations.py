"""Parametrizations: weights of a given norm, of a bounded spectral norm, and orthogonal ones."""

from __future__ import annotations

from enum import Enum, auto
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import linalg
from tensorrt_lite._functions.dtype_limits import finfo
from tensorrt_lite.autograd.grad_mode import no_grad

from .. import functional as F
from ..modules import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from . import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def _orthogonal_part(matrix: Any) -> Any:
    """The Q of a QR decomposition whose R has a positive diagonal."""
    reflectors, tau = trt.geqrf(matrix)
    return linalg.householder_product(reflectors, tau) * reflectors.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _is_orthogonal(matrix: Any) -> bool:
    n, k = matrix.size(-2), matrix.size(-1)
    unit = trt.eye(k, dtype=matrix.dtype, device=matrix.device)
    return bool(trt.allclose(matrix.mH @ matrix, unit, atol=10.0 * n * finfo(matrix.dtype).eps))


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


class _Orthogonal(Module):
    """Orthogonal matrices as functions of any: exp or the Cayley map of a skew-symmetric matrix, or a product of reflections, times `base`."""

    base: Any

    def __init__(self, weight: Any, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        n, k = X.size(-2), X.size(-1)
        transposed = n < k
        if transposed:
            X = X.mT
            n, k = k, n
        if self.orthogonal_map is _OrthMaps.householder:
            A = X.tril(diagonal=-1)
            Q = linalg.householder_product(A, 2 / (1 + (A * A).sum(dim=-2)))
            # the diagonal is 1 or -1 and no parameter
            Q = Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            X = X.tril()
            if n != k:
                X = trt.cat([X, X.new_zeros(n, n - k).expand(*X.shape[:-2], -1, -1)], dim=-1)
            A = X - X.mH
            if self.orthogonal_map is _OrthMaps.matrix_exp:
                Q = trt.matrix_exp(A)
            else:
                unit = trt.eye(n, dtype=A.dtype, device=A.device)
                Q = linalg.solve(trt.add(unit, A, alpha=-0.5), trt.add(unit, A, alpha=0.5))
            if n != k:
                Q = Q[..., :k]
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if transposed else Q

    @no_grad()
    def right_inverse(self, Q: Any) -> Any:
        """The matrix that gives Q, or what of it is orthogonal."""
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}.")
        given = Q
        n, k = Q.size(-2), Q.size(-1)
        transposed = n < k
        if transposed:
            Q = Q.mT
            n, k = k, n
        if not hasattr(self, "base"):
            if self.orthogonal_map is not _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when use_trivialization=False."
                )
            A, tau = trt.geqrf(Q)
            # a reflection needs a direction; where tau is 0 there is none, and the sign is turned
            A.diagonal(dim1=-2, dim2=-1).sign_()
            A.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
            return A.mT if transposed else A
        if n == k:
            Q = Q.clone() if _is_orthogonal(Q) else _orthogonal_part(Q)
        else:
            Q = _orthogonal_part(trt.cat([Q, trt.randn(*(Q.size()[:-2] + (n, n - k)), dtype=Q.dtype, device=Q.device)], dim=-1))
        self.base = Q
        minus_unit = trt.zeros_like(given)
        minus_unit.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return minus_unit


def orthogonal(module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True) -> Module:
    """Keep a matrix of the module, or batch of matrices (*, n, k), orthogonal (unitary): its rows for n < k, else its columns.

    orthogonal_map: "matrix_exp", "cayley" or "householder"; by default the first for square or complex matrices, else the last. use_trivialization: the map starts
    at the present matrix, which costs its memory and one product. ValueError for a tensor of fewer than two dimensions. Lezcano-Casado, 2019.

    Parameters:
        module (Module): the layer
        name (str, default 'weight'): the name of its parameter
        orthogonal_map (str or None, default None): how it is made: 'matrix_exp', 'cayley' or 'householder'; None
            chooses by shape
        use_trivialization (bool, default True): whether the map is centred at the present weight

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.parametrizations.orthogonal(trt.nn.Linear(3, 3))
        >>> trt.allclose(linear.weight @ linear.weight.t(), trt.eye(3), atol=1e-5)
        True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, trt.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.size(-2) == weight.size(-1) or weight.is_complex() else "householder"
    chosen = getattr(_OrthMaps, orthogonal_map, None)
    if chosen is None:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    made = _Orthogonal(weight, chosen, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return trt._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> Any:
        return trt.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Split a weight into its magnitude (original0, one per index of `dim`, or one for dim=None) and its direction (original1): w = g * v / |v|.

    State dicts of the older `nn.utils.weight_norm` load. Salimans and Kingma, 2016.

    Parameters:
        module (Module): the layer
        name (str, default 'weight'): the name of its parameter
        dim (int or None, default 0): the dimension whose slices have a norm each; None is one norm for all

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.parametrizations.weight_norm(trt.nn.Linear(3, 2))
        >>> linear.weight.shape
        torch.Size([2, 3])
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: Any, prefix: str, *rest: Any) -> None:
        g, v = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if g in state_dict and v in state_dict:
            state_dict[f"{prefix}parametrizations.{name}.original0"] = state_dict.pop(g)
            state_dict[f"{prefix}parametrizations.{name}.original1"] = state_dict.pop(v)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """weight / its largest singular value, which a step of the power method for each training pass follows."""

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._as_matrix(weight)
            u, v = matrix.new_empty(matrix.size(0)).normal_(0, 1), matrix.new_empty(matrix.size(1)).normal_(0, 1)
            self.register_buffer("_u", F.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", F.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _as_matrix(self, weight: Any) -> Any:
        if self.dim != 0:
            weight = weight.permute(self.dim, *(d for d in range(weight.dim()) if d != self.dim))
        return weight.flatten(1)

    @no_grad()
    def _power_method(self, matrix: Any, n_power_iterations: int) -> None:
        for _ in range(n_power_iterations):
            # in place: copies of the module for several devices share them
            self._u.copy_(F.normalize(trt.mv(matrix, self._v), dim=0, eps=self.eps))
            self._v.copy_(F.normalize(trt.mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # copies: a later pass changes the vectors that this one's backward needs
        u, v = self._u.clone(), self._v.clone()
        return weight / trt.vdot(u, trt.mv(matrix, v))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None) -> Module:
    """Divide a weight by its largest singular value, estimated by the power method: n_power_iterations steps in each training pass.

    dim: what the outputs are (1 for transposed convolutions by default, else 0); the weight is taken as the matrix of it by all others. Miyato et al., 2018.

    Parameters:
        module (Module): the layer
        name (str, default 'weight'): the name of its parameter
        n_power_iterations (int, default 1): how many iterations approach the largest singular value each time
        eps (float, default 1e-12): added for stability
        dim (int or None, default None): the dimension of the outputs; None is that of the layer's kind

    Example:
        >>> import tensorrt_lite as trt
        >>> linear = trt.nn.utils.parametrizations.spectral_norm(trt.nn.Linear(3, 2))
        >>> trt.linalg.matrix_norm(linear.weight, ord=2) < 2
        tensor(True)
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, trt.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
