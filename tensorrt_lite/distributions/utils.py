"""What distributions share: broadcasting of parameters, probabilities and their logarithms, attributes computed at first use, triangles as vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from numbers import Number
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._functions.dtype_limits import finfo
from tensorrt_lite.autograd.grad_mode import enable_grad

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec", "vec_to_tril_matrix"]

euler_constant = 0.57721566490153286060


def _is_tensor(value: Any) -> bool:
    return isinstance(value, trt.Tensor) or hasattr(type(value), "__torch_function__")


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """The values as tensors of their common shape. Numbers take dtype and device of the first tensor, or the default dtype where there is none.

    ValueError for what is neither number nor tensor.
    """
    if not all(_is_tensor(v) or isinstance(v, Number) for v in values):
        raise ValueError("Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__.")
    first = next((v for v in values if _is_tensor(v)), None)
    options = {"dtype": trt.get_default_dtype()} if first is None else {"dtype": first.dtype, "device": first.device}
    return tuple(trt.broadcast_tensors(*(v if _is_tensor(v) else trt.tensor(v, **options) for v in values)))


def _batch_shape_of(values: Sequence[Any], tensor: Any) -> Any:
    """The batch shape of parameters that `tensor` has the broadcast shape of: that of plain numbers is empty."""
    return trt.Size() if all(isinstance(v, Number) for v in values) else tensor.size()


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Any:
    return trt.normal(trt.zeros(shape, dtype=dtype, device=device), trt.ones(shape, dtype=dtype, device=device))


def _sum_rightmost(value: Any, dim: int) -> Any:
    """The sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(*value.shape[: value.dim() - dim], -1).sum(-1)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities of log-odds where is_binary, else of unnormalised log-probabilities along the last dimension."""
    return trt.sigmoid(logits) if is_binary else trt.softmax(logits, dim=-1)


def clamp_probs(probs: Any) -> Any:
    """Probabilities moved into [eps, 1 - eps], eps that of their dtype (of float32 for integers)."""
    eps = finfo(probs.dtype if probs.is_floating_point() else trt.float32).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """The inverse of `logits_to_probs`; probabilities are clamped first."""
    inside = clamp_probs(probs)
    return trt.log(inside) - trt.log1p(-inside) if is_binary else trt.log(inside)


class lazy_property:
    """A method as an attribute that is computed when it is first read, under `enable_grad`, and kept in the instance."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return _lazy_property_and_property(self.wrapped)
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _lazy_property_and_property(lazy_property, property):
    """What a class shows of its lazy property: tools for documentation look for properties."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        property.__init__(self, wrapped)


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The elements on and below diagonal `diag` of matrices (*, n, n) as vectors, row by row. ValueError where the diagonal does not exist."""
    n = mat.shape[-1]
    _check_diagonal(diag, n)
    rows = trt.arange(n, device=mat.device)
    return mat[..., rows < rows.view(n, 1) + (diag + 1)]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Matrices (*, n, n) with the elements of vectors on and below diagonal `diag`, zeros above. ValueError for lengths that fill no triangle."""
    # the number of elements is a quadratic polynomial in n
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > finfo(vec.dtype).eps:
        raise ValueError(f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of a square D x D matrix.")
    n = round(n)
    matrix = trt.zeros((*vec.shape[:-1], n, n), dtype=vec.dtype, device=vec.device)
    rows = trt.arange(n, device=vec.device)
    matrix[..., rows < rows.view(n, 1) + (diag + 1)] = vec
    return matrix


def _check_diagonal(diag: int, n: int) -> None:
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
