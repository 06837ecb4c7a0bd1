"""torch._lowrank: decompositions of low rank."""

from __future__ import annotations

from typing import Any

import tensorrt_lite as trt
from tensorrt_lite import pca_lowrank, svd_lowrank

__all__ = ["get_approximate_basis", "pca_lowrank", "svd_lowrank"]


def get_approximate_basis(A: Any, q: int, niter: int | None = 2, M: Any = None) -> Any:
    """Q with q orthonormal columns, so that Q Q^H (A - M) approximates A - M (Halko, Martinsson, Tropp 2009, algorithm 4.4).

    A: (*, m, n), M: (*, m, n) or None -> (*, m, q).
    """
    shifted = A if M is None else A - M
    Q = trt.linalg.qr(trt.matmul(shifted, trt.randn(A.shape[-1], q, dtype=A.dtype, device=A.device))).Q
    for _ in range(2 if niter is None else niter):
        Q = trt.linalg.qr(trt.matmul(shifted.mH, Q)).Q
        Q = trt.linalg.qr(trt.matmul(shifted, Q)).Q
    return Q
