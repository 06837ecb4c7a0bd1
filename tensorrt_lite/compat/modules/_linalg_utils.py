"""torch._linalg_utils: small helpers of the iterative eigensolvers."""

from __future__ import annotations

from typing import Any

import tensorrt_lite as trt

__all__ = ["basis", "bform", "get_floating_dtype", "is_sparse", "matmul", "qform", "symeig"]


def is_sparse(A: Any) -> bool:
    """Whether A is a sparse COO tensor. TypeError for what is no tensor."""
    if isinstance(A, trt.Tensor):
        return A.layout == trt.sparse_coo
    raise TypeError(f"expected Tensor but got {type(A).__name__}")


def get_floating_dtype(A: Any) -> Any:
    """A's type where it is a float, float32 otherwise."""
    return A.dtype if A.dtype in (trt.float16, trt.float32, trt.float64) else trt.float32


def matmul(A: Any, B: Any) -> Any:
    """A @ B; B itself where A is None. A: (m, k) dense or sparse, B: (k, n)."""
    return B if A is None else trt.sparse.mm(A, B) if is_sparse(A) else trt.matmul(A, B)


def bform(X: Any, A: Any, Y: Any) -> Any:
    """X^T A Y."""
    return matmul(X.mT, matmul(A, Y))


def qform(A: Any, S: Any) -> Any:
    """S^T A S."""
    return bform(S, A, S)


def basis(A: Any) -> Any:
    """An orthonormal basis of A's columns. A: (*, m, n) -> (*, m, min(m, n))."""
    return trt.linalg.qr(A).Q


def symeig(A: Any, largest: bool | None = False) -> Any:
    """Eigenvalues and eigenvectors of a symmetric matrix, the largest first where `largest`."""
    values, vectors = trt.linalg.eigh(A, UPLO="U")
    return (values.flip(-1), vectors.flip(-1)) if largest else (values, vectors)
