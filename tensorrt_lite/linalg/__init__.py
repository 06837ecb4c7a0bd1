"""Linear algebra: factorisations, systems of equations, eigenvalues, norms. Functions work on the last two dimensions of batches.

>>> import tensorrt_lite as trt
>>> trt.linalg.solve(trt.tensor([[2.0, 0.0], [0.0, 4.0]]), trt.tensor([2.0, 2.0]))
tensor([1.0000, 0.5000])
"""

# Compiled operators are declared in cysrc/ops/linalg/linalg.yaml, compositions are in `tensorrt_lite._compositions.linear_algebra`.

from __future__ import annotations

from tensorrt_lite import _ops, _public
from tensorrt_lite._C.ops.linalg import LinAlgError
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")

_NAMES = (
    "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "householder_product", "inv", "inv_ex",
    "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matrix_exp", "matrix_norm", "matrix_rank",
    "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander",
    "vecdot", "vector_norm",
)  # fmt: skip
globals().update({name: _public.function(getattr(_ops, f"linalg_{name}"), name, __name__) for name in _NAMES})
matrix_power = _public.function(_ops.matrix_power, "matrix_power", __name__)
matmul = _public.function(_ops.matmul, "matmul", __name__)
__all__ = ["LinAlgError", "matmul", "matrix_power", *_NAMES]


def __dir__() -> list[str]:
    return _listing.public(globals())
