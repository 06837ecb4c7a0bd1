"""Linear algebra composed of compiled operators: what needs no kernel of its own, in any memory order and on the meta device.

`EXPORTS` names what `_ops` collects: f function of the package, m method of Tensor, n only in the flat namespace (and, without
its prefix, in `tensorrt_lite.linalg`).
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorrt_lite._C.autograd.forward import get_tangent
from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.autograd.operator_nodes import joined as _one_step
from tensorrt_lite._C.core.python_key import is_transformed
from tensorrt_lite._C.core.dtype import _dtype_by_name
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._C.ops.support import deliver_result, holds_elements, type_name
from tensorrt_lite._C.core.return_types import result_type
from tensorrt_lite._size import broadcast_shapes, refuse_sizes
from tensorrt_lite._C.core.dispatch import is_grad_enabled as _is_grad_enabled
from tensorrt_lite._C.core.dtype import get_default_dtype as _get_default_dtype
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_functions = _LazyModule("tensorrt_lite.linalg._functions")

TYPE_CHECKING = False  # `typing` and what it imports would be a quarter of the package's import time
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_ops = namespace()
inf = float("inf")
_EPSILON = {"float32": 2.0**-23, "complex64": 2.0**-23, "float64": 2.0**-52, "complex128": 2.0**-52}


def _epsilon(x: Any) -> float:
    name = str(x.dtype).rpartition(".")[2]
    if name not in _EPSILON:
        raise NotImplementedError(f"linear algebra is not implemented for {name}")
    return _EPSILON[name]


def _real_type(x: Any) -> Any:
    return x.dtype.to_real()


def _conj(x: Any) -> Any:
    return x.conj() if x.is_complex() else x


def _adjoint(x: Any) -> Any:
    return _conj(x).transpose(-2, -1)


def _all_into(name: str, fields: tuple[str, ...], results: Sequence[Any], out: Any, exact: bool = False) -> Any:
    if out is not None:
        if not isinstance(out, (tuple, list)) or len(out) != len(results):
            raise TypeError(f"{name}(): argument 'out' must be tuple of {len(results)} Tensors, not {type(out).__name__}")
        results = [deliver_result(name, r, o, exact) for r, o in zip(results, out)]
    return result_type(name, fields)(results)


def _computed_in(x: Any, out: Any) -> Any:
    """x in the precision of `out` where that is the higher one."""
    wider = hasattr(out, "dtype") and out.is_complex() == x.is_complex() and out.is_floating_point() == x.is_floating_point()
    return x.to(out.dtype) if wider and out.element_size() > x.element_size() else x


def _doubled(x: Any) -> Any:
    return x.to(_dtype_by_name("complex128" if x.is_complex() else "float64"))


def _check_matrix(name: str, x: Any, label: str = "A") -> None:
    if not hasattr(x, "dim"):
        raise TypeError(f"{name.replace('.', '_')}(): argument '{label}' must be Tensor, not {type(x).__name__}")
    if x.dim() < 2:
        raise RuntimeError(f"{name}: The input tensor {label} must have at least 2 dimensions.")


def _check_square(name: str, x: Any) -> None:
    _check_matrix(name, x)
    if x.shape[-1] != x.shape[-2]:
        raise RuntimeError(f"{name}: A must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices")


def _check_number_type(name: str, x: Any) -> None:
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype}")


# ---- LU


def lu_unpack(LU_data: Any, LU_pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True, *, out: Any = None) -> Any:
    """(P, L, U) of lu_factor's packed result; what is not asked for is empty. LU_data: (*, m, n), LU_pivots: (*, min(m, n))."""
    _check_matrix("torch.lu_unpack", LU_data, "LU_data")
    m, n = LU_data.shape[-2:]
    k = min(m, n)
    empty = LU_data.new_empty(0)
    p, lower, upper = empty, empty, empty
    if unpack_pivots:
        if str(LU_pivots.dtype).rpartition(".")[2] != "int32":
            raise RuntimeError(
                "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
                "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
            )
        order = _ops._lu_permutation(LU_pivots, m)
        # column i of P has its one in row order[i]
        p = (_ops.arange(m, device=order.device).unsqueeze(-1) == order.unsqueeze(-2)).to(LU_data.dtype)
    if unpack_data:
        lower = LU_data.narrow(-1, 0, k).tril(-1)
        if m * k < 4096 or _is_differentiated([LU_data]):
            lower = lower + _ops.eye(m, k, dtype=LU_data.dtype, device=LU_data.device)
        else:
            lower.diagonal(dim1=-2, dim2=-1).fill_(1)
        upper = LU_data.narrow(-2, 0, k).triu()
    return _all_into("lu_unpack", ("P", "L", "U"), _one_step("LuUnpack", (p, lower, upper)), out, True)


def linalg_lu(A: Any, *, pivot: bool = True, out: Any = None) -> Any:
    """A = P L U with a permutation P, L lower triangular with ones on its diagonal, U upper triangular. A: (*, m, n)."""
    packed, pivots, _ = _ops.linalg_lu_factor_ex(A, pivot=pivot)
    return _all_into("linalg_lu", ("P", "L", "U"), _one_step("LinalgLu", lu_unpack(packed, pivots, unpack_pivots=pivot)), out, True)


def lu(A: Any, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """(LU, pivots) of linalg.lu_factor, with get_infos and the error codes. A: (*, m, n)."""
    results = tuple(_ops.linalg_lu_factor_ex(A, pivot=pivot))
    if not get_infos:
        results = results[:2]
    if out is not None:
        if not isinstance(out, (tuple, list)):
            raise TypeError(f"argument 'out' must be tuple of Tensors, not {type(out).__name__}")
        if len(out) - int(get_infos) != 2:
            raise TypeError(f"expected tuple of {2 + int(get_infos)} elements but got {len(out)}")
        for r, o in zip(results, out):
            o.resize_(r.shape).copy_(r)
        return out
    return result_type("_lu_with_info", ("LU", "pivots", "info"))(results) if get_infos else results


def lu_solve(b: Any, LU_data: Any, LU_pivots: Any, *, out: Any = None) -> Any:
    """linalg.lu_solve with the right-hand side first."""
    return _ops.linalg_lu_solve(LU_data, LU_pivots, b) if out is None else _ops.linalg_lu_solve(LU_data, LU_pivots, b, out=out)


def triangular_solve(b: Any, A: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False, *, out: Any = None) -> Any:
    """(X, a copy of A) with A X = b or, with transpose, A^T X = b. b: (*, m, k), A: (*, m, m)."""
    _check_matrix("triangular_solve", b, "b")
    _check_square("triangular_solve", A)
    a = A.transpose(-2, -1) if transpose else A
    x = _ops.linalg_solve_triangular(a, b, upper=bool(upper) != bool(transpose), unitriangular=unitriangular)
    copied = A.expand((*x.shape[:-2], *A.shape[-2:])).clone()
    return _all_into("triangular_solve", ("solution", "cloned_coefficient"), (x, copied), out, True)


# ---- QR, singular values


def linalg_qr(A: Any, mode: str = "reduced", *, out: Any = None) -> Any:
    """A = Q R, the columns of Q orthonormal, R upper triangular; mode 'complete': Q square, 'r': Q empty. A: (*, m, n)."""
    return _all_into("linalg_qr", ("Q", "R"), _ops._linalg_qr(A, mode), out, True)


def qr(input: Any, some: bool = True, *, out: Any = None) -> Any:
    """linalg.qr, reduced or, without some, complete."""
    return _all_into("qr", ("Q", "R"), _ops._linalg_qr(input, "reduced" if some else "complete"), out, True)


def svd(input: Any, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """(U, S, V) with input = U diag(S) V^H; linalg.svd is the form to prefer. Without compute_uv U and V are zero."""
    if compute_uv:
        u, s, vh = _ops.linalg_svd(input, not some)
        v = _adjoint(vh)
    else:
        s = _ops.linalg_svdvals(input)
        m, n = input.shape[-2:]
        u, v = input.new_zeros((*input.shape[:-2], m, m)), input.new_zeros((*input.shape[:-2], n, n))
    return _all_into("svd", ("U", "S", "V"), (u, s, v), out, True)


# ---- norms and what is measured by them


def _dims_of(dim: Any) -> tuple[int, ...]:
    return (dim,) if isinstance(dim, int) else tuple(dim)


def linalg_matrix_norm(A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Any:
    """The norm of matrices over two dimensions: 'fro', 1, -1, inf or -inf, or of singular values: 2, -2 or 'nuc'."""
    _check_matrix("linalg.matrix_norm", A)
    _check_number_type("linalg.matrix_norm", A)
    dims = _dims_of(dim)
    if len(dims) != 2:
        raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")
    for d in dims:
        if not -A.dim() <= d < A.dim():
            raise IndexError(f"Dimension out of range (expected to be in range of [{-A.dim()}, {A.dim() - 1}], but got {d})")
    first, second = (d % A.dim() for d in dims)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got {dims}")
    if isinstance(ord, str):
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    elif ord not in (1, -1, 2, -2, inf, -inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord == "fro":
        return deliver_result("linalg_matrix_norm", _ops.linalg_vector_norm(A, 2, (first, second), keepdim, dtype=dtype), out, True)
    if ord in (2, -2, "nuc"):
        _refuse_low_precision("linalg.matrix_norm", A)
        if dtype is not None:
            A = A.to(dtype)
        values = _ops.linalg_svdvals(A.movedim((first, second), (-2, -1)))
        if not values.shape[-1] and ord == 2:
            values = values.new_zeros((*values.shape[:-1], 1))
        result = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
        if keepdim:
            result = result.unsqueeze(min(first, second)).unsqueeze(max(first, second))
    else:
        summed, other = (first, second) if ord in (1, -1) else (second, first)
        sums = _ops.linalg_vector_norm(A, 1, (summed,), True, dtype=dtype)
        if not sums.shape[other] and ord > 0:
            # no column: the largest of no norms is zero
            sums = sums.new_zeros([1 if d == other else n for d, n in enumerate(sums.shape)])
        result = sums.amax((other,), True) if ord > 0 else sums.amin((other,), True)
        if not keepdim:
            result = result.squeeze((first, second))
    return deliver_result("linalg_matrix_norm", result, out, True)


def _refuse_low_precision(name: str, x: Any) -> None:
    if x.is_floating_point() and x.element_size() <= 2:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {x.dtype}")


def linalg_norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Any = None, dtype: Any = None) -> Any:
    """The 2-norm of all elements; with `ord` or two dimensions that of vectors or matrices."""
    dims = None if dim is None else _dims_of(dim)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if ord is not None and dims is None and A.dim() not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A.dim()}D.")
    if ord is not None and (dims is not None and len(dims) == 2 or dims is None and A.dim() == 2):
        return linalg_matrix_norm(A, ord, (0, 1) if dims is None else dims, keepdim, dtype=dtype, out=out)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: Order {ord!r} is not supported for vectors")
    return _ops.linalg_vector_norm(A, 2 if ord is None else ord, dims, keepdim, dtype=dtype, out=out)


def linalg_cond(A: Any, p: Any = None, *, out: Any = None) -> Any:
    """The condition number: the largest singular value by the smallest (p None or 2; -2: the inverse), or norm(A, p) norm(A^-1, p)."""
    _check_matrix("linalg.cond", A)
    if p is not None and p not in ("fro", "nuc", inf, -inf, 1, -1, 2, -2):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    real = _real_type(A)
    if p is None or p in (2, -2):
        # a condition number tells how many digits are lost: a few more are taken
        s = _by_matrices(lambda a: _ops.linalg_svdvals(_doubled(a) if a.is_floating_point() and a.element_size() > 2 or a.is_complex() else a), A, -2)
        if not s.numel():
            result = s.new_zeros(s.shape[:-1])
        else:
            large, small = s.select(-1, 0), s.select(-1, -1)
            result = small / large if p == -2 else large / small
    else:
        empty = not A.numel()
        if A.shape[-1] != A.shape[-2] and (not empty or isinstance(p, str)):
            order = p if isinstance(p, str) else f"{p:g}"
            raise RuntimeError(f"linalg.cond(ord={order}): A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices")
        if empty:
            return deliver_result("linalg_cond", A.new_zeros(A.shape[:-2], dtype=_real_type(A)), out)
        inverse, info = _ops.linalg_inv_ex(A)
        singular = info != 0
        if p == "nuc":  # whose singular values are not those of infinity and NaN; a zero matrix has 0 times infinity
            inverse = _ops.where(singular[..., None, None], 0, inverse)
        norm = linalg_matrix_norm(A, p)
        result = _ops.where(singular, norm * inf if p == "nuc" else inf, norm * linalg_matrix_norm(inverse, p))
    return deliver_result("linalg_cond", result.to(real), out)


def _tolerances(name: str, A: Any, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """Absolute and relative tolerance; the relative one is eps max(m, n) unless an absolute one is given."""
    _check_number_type(name, A)
    _refuse_low_precision(name, A)
    for value, label in ((atol, "atol"), (rtol, "rtol")):
        if hasattr(value, "is_complex") and value.is_complex():
            raise RuntimeError(f"{name}: {label} tensor of complex type is not supported. Got {value.dtype}")
    if rtol is None:
        rtol = _epsilon(A) * max(A.shape[-2:])
        if atol is not None:
            rtol = _ops.where(atol > 0, 0.0, rtol) if hasattr(atol, "dim") else 0.0 if atol > 0 else rtol
    return 0.0 if atol is None else atol, rtol


def _threshold(largest: Any, atol: Any, rtol: Any) -> Any:
    """max(atol, rtol * largest); largest: (*, 1), the tolerances numbers or (*)."""
    atol = atol.unsqueeze(-1) if hasattr(atol, "dim") else _ops.full((), atol, dtype=largest.dtype, device=largest.device)
    rtol = rtol.unsqueeze(-1) if hasattr(rtol, "dim") else rtol
    return _ops.maximum(atol.to(largest.dtype), rtol * largest)


def linalg_matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None) -> Any:
    """How many singular values (hermitian: absolute eigenvalues) are above max(atol, rtol * the largest). A: (*, m, n) -> (*)."""
    _check_matrix("linalg.matrix_rank", A)
    if tol is not None:
        # the older parameter is absolute, also where it is zero
        atol, rtol = tol, 0.0
    int64 = _dtype_by_name("int64")
    atol, rtol = _tolerances("torch.linalg.matrix_rank", A, atol, rtol)
    if not A.numel():
        return deliver_result("linalg_matrix_rank", A.new_zeros(A.shape[:-2], dtype=int64), out)
    s = _ops.linalg_eigvalsh(A).abs() if hermitian else _ops.linalg_svdvals(A)
    return deliver_result("linalg_matrix_rank", (s > _threshold(s.amax(-1, True), atol, rtol)).sum(-1), out)


def _pinv_value(A: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    if hermitian:
        values, u = _ops.linalg_eigh(A)
        size = values.abs()
        vh = _adjoint(u)
    else:
        u, values, vh = _ops.linalg_svd(A, False)
        size = values
    keep = size > _threshold(size.amax(-1, True), atol, rtol)
    inverted = _ops.where(keep, 1 / values, _ops.zeros_like(values))
    return _adjoint(vh) @ (inverted.unsqueeze(-1) * _adjoint(u))


def linalg_pinv(A: Any, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None) -> Any:
    """The pseudoinverse, singular values up to max(atol, rtol * the largest) taken for zero. A: (*, m, n) -> (*, n, m)."""
    name = "linalg.pinv"
    _check_matrix(name, A)
    if hermitian:
        _check_square(name, A)
    if rcond is not None:
        rtol = rcond
    atol, rtol = _tolerances("torch.linalg.pinv", A, atol, rtol)
    A = _computed_in(A, out)
    if not A.numel():
        result = A.transpose(-2, -1) @ A.new_zeros((*A.shape[:-1], A.shape[-2]))
    elif _is_differentiated([A]):
        result = _functions.Pinv.apply(A, atol, rtol, hermitian)
    else:
        result = _pinv_value(A, atol, rtol, hermitian)
    return deliver_result("linalg_pinv", result, out)


def _is_differentiated(tensors: list[Any]) -> bool:
    """Whether an operator of these is recorded, has tangents to carry or runs in a transform."""
    return _is_grad_enabled() and any(t.requires_grad for t in tensors) or _has_tangents(tensors)


def _has_tangents(tensors: list[Any]) -> bool:
    """Whether an operator of these has tangents to carry or runs in a transform."""
    return any(get_tangent(t) is not None for t in tensors) or is_transformed(tensors)


def pinverse(input: Any, rcond: float = 1e-15) -> Any:
    """linalg.pinv with a relative tolerance."""
    return linalg_pinv(input, rcond)


def linalg_lstsq(A: Any, B: Any, rcond: Any = None, *, driver: str | None = None, out: Any = None) -> Any:
    """(solution, residuals, rank, singular_values) of the least squares problem A X = B. A: (*, m, n), B: (*, m, k) or (*, m).

    Drivers: gels (full rank; the default on CUDA, as in PyTorch), gelsy (default), gelsd, gelss. Residuals are there for m > n and full rank, singular values for
    gelsd and gelss, ranks for all but gels; otherwise they are empty.
    """
    name = "torch.linalg.lstsq"
    _check_matrix(name, A, "input")
    _check_number_type(name, A)
    _refuse_low_precision(name, A)
    if not hasattr(B, "dim") or B.dim() < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if A.dtype != B.dtype:
        raise RuntimeError(f"{name}: Expected input and other to have the same dtype, but got input's dtype {A.dtype} and other's dtype {B.dtype}")
    driver = ("gels" if A.device.type == "cuda" else "gelsy") if driver is None else driver
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    if rcond is None:
        rcond = _epsilon(A) * max(A.shape[-2:])
    m, n = A.shape[-2:]
    vector = B.dim() == 1 or A.dim() == B.dim() + 1 and tuple(B.shape) == tuple(A.shape[:-1])
    b = B.unsqueeze(-1) if vector else B
    if b.shape[-2] != m:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({-1 if vector else -2})")
    if out is not None and isinstance(out, (tuple, list)) and out:
        A, b = _computed_in(A, out[0]), _computed_in(b, out[0])
    x, rank, s = _ops._linalg_lstsq(A, b, float(rcond), driver)
    whole = m > n and driver != "gelsy" and (driver == "gels" or not rank.numel() or rank.device.type == "meta" or bool((rank == n).all()))
    if whole:
        residuals = _squared_residuals(A, x, b).to(_real_type(A))
    else:
        residuals = x.reshape(-1).narrow(0, 0, 0).abs()
    x, residuals = _one_step("LinalgLstsq", (x.squeeze(-1) if vector else x, residuals))
    results = (
        x,
        residuals,
        rank if driver != "gels" else rank.new_empty(0),
        s.detach() if driver in ("gelsd", "gelss") else s.new_empty(0),
    )
    return _all_into("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"), results, out)


def _squared_residuals(A: Any, x: Any, b: Any) -> Any:
    """The sums of |A x - b|^2 over the rows. Small differences of large numbers: float32 takes them in double precision, of large matrices some rows at a time."""
    x, m = _doubled(x), A.shape[-2]
    rows = m if _is_differentiated([A, x, b]) else max(64, _MATRICES_ALONE // max(1, (A.numel() + b.numel()) // max(1, m)))
    total = None
    for at in range(0, max(m, 1), rows):
        count = min(rows, m - at)
        part = ((_doubled(A.narrow(-2, at, count)) @ x - _doubled(b.narrow(-2, at, count))).abs() ** 2).sum(-2)
        total = part if total is None else total + part
    return total


# ---- functions of matrices


# coefficients of the numerator of a diagonal Padé approximant of exp, which is exact in double precision up to this 1-norm
# (Higham, SIAM J. Matrix Anal. Appl. 26, 2005)
_PADE = (64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0, 10559470521600.0, 670442572800.0,
         33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0)  # fmt: skip
_PADE_BOUND = 5.371920351148152
_MATRICES_ALONE = 1 << 16  # elements of a batch that are computed with at a time


def _joined(parts: Iterator[Any], dim: int, size: int) -> Any:
    """Parts of a result of `size` along dim (from the end) in one tensor; each is let go when it has been copied."""
    result, at = None, 0
    for part in parts:
        length = part.shape[dim]
        if length == size and not at:
            return part
        if result is None:
            shape = list(part.shape)
            shape[dim] = size
            result = part.new_empty(shape)
        result.narrow(dim, at, length).copy_(part)
        at += length
    return result


def _by_matrices(function: Any, A: Any, dim: int) -> Any:
    """function(A) of some matrices of a large batch at a time, so that what it holds meanwhile does not grow with the batch; dim: the batch's in the result, from the end."""
    each = A.shape[-2] * A.shape[-1]
    if A.dim() < 3 or A.numel() <= _MATRICES_ALONE or _is_differentiated([A]):
        return function(A)
    flat = A.flatten(0, -3)
    result = _joined((function(part) for part in flat.split(max(1, _MATRICES_ALONE // each))), dim, flat.shape[0])
    return result.reshape((*A.shape[:-2], *result.shape[1:]))


def _matrix_exp_value(A: Any) -> Any:
    """Scaling and squaring, exp(A) = exp(A / 2^s)^(2^s) with s chosen for each matrix; errors grow, so always in double precision."""
    dtype, A = A.dtype, _doubled(A)
    norms = _ops.linalg_vector_norm(A, 1, -2).amax(-1)
    halvings = _ops.clamp(_ops.ceil(_ops.log2(norms / _PADE_BOUND)), min=0)
    # of infinite and NaN entries nothing can be made
    halvings = _ops.where(_ops.isfinite(halvings), halvings, 0.0)
    scale = _ops.pow(2.0, -halvings).unsqueeze(-1).unsqueeze(-1)
    a = A * scale
    del A  # of large matrices the numbers of terms that live at a time count
    power = square = a @ a
    even, odd = _PADE[2] * square, _PADE[3] * square
    even.diagonal(dim1=-2, dim2=-1).add_(_PADE[0])
    odd.diagonal(dim1=-2, dim2=-1).add_(_PADE[1])
    for i in range(4, len(_PADE), 2):
        power = power @ square
        even.add_(power, alpha=_PADE[i])
        odd.add_(power, alpha=_PADE[i + 1])
    del power, square
    odd = a @ odd
    del a
    numerator = even + odd
    result = _ops.linalg_solve_ex(even.sub_(odd), numerator)[0]
    del even, odd, numerator
    for i in range(int(halvings.max().item()) if holds_elements(halvings) else 1):
        more = halvings > i
        result = _ops.where(more.unsqueeze(-1).unsqueeze(-1), result @ result, result)
    return result.to(dtype)


def linalg_matrix_exp(A: Any) -> Any:
    """The sum of A^k / k!. A: (*, n, n)."""
    _check_square("linalg.matrix_exp", A)
    _check_number_type("linalg.matrix_exp", A)
    if not A.numel() or A.device.type == "meta":
        return A.clone()
    if _is_differentiated([A]):
        return _functions.MatrixExp.apply(A)
    return _by_matrices(_matrix_exp_value, A, -3)


def matrix_exp(input: Any) -> Any:
    """linalg.matrix_exp."""
    return linalg_matrix_exp(input)


def linalg_vander(x: Any, *, N: int | None = None) -> Any:
    """The powers 0 .. N - 1 of the elements as rows (N: n by default). x: (*, n) -> (*, n, N)."""
    x = x.reshape((1,)) if x.dim() == 0 else x
    N = x.shape[-1] if N is None else N
    if N <= 0:
        raise RuntimeError("linalg.vander: N must be greater than 1.")
    one = _ops.ones_like(x).unsqueeze(-1)
    if not x.is_floating_point() and not x.is_complex():
        x = x.to(_dtype_by_name("int64"))
        one = one.to(x.dtype)
    powers = x.unsqueeze(-1).expand((*x.shape, N - 1)).cumprod(-1)
    return _ops.cat((one, powers), -1)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    """The powers N - 1 .. 0 (increasing: 0 .. N - 1) of the elements as rows. x: (n,) -> (n, N)."""
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    N = x.shape[-1] if N is None else N
    if N < 0:
        raise RuntimeError("N must be non-negative.")
    if N == 0:
        return x.new_empty((x.shape[0], 0))
    result = linalg_vander(x, N=N)
    return result if increasing else result.flip(-1)


def _product(sizes: Sequence[int]) -> int:
    n = 1
    for s in sizes:
        n *= s
    return n


def linalg_tensorinv(A: Any, ind: int = 2, *, out: Any = None) -> Any:
    """The inverse with respect to tensordot over the first `ind` dimensions, whose sizes multiply to the others'."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    A = _computed_in(A, out)
    first, rest = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if _product(first) != _product(rest):
        raise RuntimeError(
            f"Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {_product(rest)} != {_product(first)}"
        )
    result = _ops.linalg_inv(A.reshape((_product(first), _product(rest)))).reshape(rest + first)
    return deliver_result("linalg_tensorinv", result, out)


def linalg_tensorsolve(A: Any, B: Any, dims: Any = None, *, out: Any = None) -> Any:
    """X with tensordot(A, X, X.dim()) = B; `dims` of A are moved to its end first."""
    A, B = _computed_in(A, out), _computed_in(B, out)
    if dims is not None:
        dims = _dims_of(dims)
        A = A.movedim(dims, tuple(range(A.dim() - len(dims), A.dim())))
    shape = tuple(A.shape[B.dim():])  # fmt: skip
    if _product(shape) != _product(A.shape[: B.dim()]):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
            f"{_product(shape)} != {_product(A.shape[: B.dim()])}"
        )
    n = _product(shape)
    result = _ops.linalg_solve(A.reshape((n, n)), B.reshape((n,))).reshape(shape)
    return deliver_result("linalg_tensorsolve", result, out)


def linalg_diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """The diagonal of the last two dimensions, as a view."""
    return _ops.diagonal(A, offset, dim1, dim2)


# ---- statistics


def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """Covariances of variables (rows) over observations (columns). input: (n, N), (N,) or (); weights: (N,), of counts or of importance."""
    if input.dim() > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got an input with {input.dim()} dimensions")
    if str(input.dtype).endswith("bool"):
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input.reshape((1, -1)) if input.dim() < 2 else input
    count = x.shape[1]
    if not (x.is_floating_point() or x.is_complex()):
        x = x.to(_default_float())
    weights = None
    for w, label, integral in ((fweights, "fweights", True), (aweights, "aweights", False)):
        if w is None:
            continue
        if w.dim() > 1:
            raise RuntimeError(f"cov(): expected {label} to have one or fewer dimensions but got {label} with {w.dim()} dimensions")
        floating = w.is_floating_point()
        if floating == integral or w.is_complex() or str(w.dtype).endswith("bool"):
            raise RuntimeError(f"cov(): expected {label} to have {'integral' if integral else 'floating point'} dtype but got {label} with {w.dtype} dtype")
        if w.numel() != count:
            raise RuntimeError(f"cov(): expected {label} to have the same numel as there are observations in the input but got {w.numel()} != {count}")
        if count and w.device.type != "meta" and bool((w.min() < 0).item()):
            raise RuntimeError(f"cov(): {label} cannot be negative")
        weights = w if weights is None else weights * w
    if weights is None:
        total: Any = count
        mean = x.sum(1, True) / total if count else x.new_full((x.shape[0], 1), float("nan"))
    else:
        weights = weights.reshape((-1,))
        total = weights.sum()
        if weights.device.type != "meta" and count and not bool((total != 0).item()):
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = (x * weights).sum(1, True) / total
    if weights is None:
        norm = max(count - correction, 0)
    else:
        norm = total - correction * (weights * aweights).sum() / total if aweights is not None and correction else total - correction
        norm = _ops.clamp(norm, min=0)
    x = x - mean
    y = _conj(x if weights is None else x * weights).transpose(0, 1)
    result = _ops.true_divide(x @ y, norm)
    return result.squeeze()


def _default_float() -> Any:
    return _get_default_dtype()


def corrcoef(input: Any) -> Any:
    """Correlation coefficients of variables (rows). input: (n, N), (N,) or ()."""
    if input.dim() > 2:
        raise RuntimeError(f"corrcoef(): expected input to have two or fewer dimensions but got an input with {input.dim()} dimensions")
    c = cov(input)
    if c.dim() == 0:
        return c / c
    d = c.diagonal()
    deviation = _ops.sqrt(d.real if c.is_complex() else d)
    c = c / deviation.unsqueeze(-1) / deviation.unsqueeze(0)
    if c.is_complex():
        return _ops.complex(c.real.clamp(-1, 1), c.imag.clamp(-1, 1))
    return c.clamp(-1, 1)


def dist(input: Any, other: Any, p: float = 2) -> Any:
    """The p-norm of input - other, as a number."""
    return _ops.norm(input - other, p)


# ---- distances

def _check_distance(name: str, x: Any, p: float) -> None:
    if not x.is_floating_point():
        raise RuntimeError(f"{name} only supports floating-point dtypes, got: {x.dtype}")
    if x.element_size() == 2:
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(x.dtype)}'")
    if not p >= 0:
        raise RuntimeError(f"{name} only supports non-negative p values")


def _row_norms(x: Any, p: float) -> Any:
    """By operators with tangents and batches. p = 0 counts what is not zero; its derivative is zero, not absent. Rows of no elements have a norm of zero."""
    if x.shape[-1] == 0:
        return x.sum(-1)
    if p == 0:
        return (x.detach() != 0).to(x.dtype).sum(-1) + x.sign().sum(-1) * 0
    return _ops.linalg_vector_norm(x, p, -1)


def _matrix_distances(x1: Any, x2: Any) -> Any:
    """Euclidean distances from the products of rows: |a - b|^2 = |a|^2 - 2 a b + |b|^2, which loses digits of close rows."""
    squares1, squares2 = (x1 * x1).sum(-1, True), (x2 * x2).sum(-1, True)
    left = _ops.cat((-2 * x1, squares1, _ops.ones_like(squares1)), -1)
    right = _ops.cat((x2, _ops.ones_like(squares2), squares2), -1)
    squares = left @ right.transpose(-2, -1)
    if not _is_differentiated([x1, x2]):
        return squares.clamp_(min=0).sqrt_()
    squares = squares.clamp(min=0)
    # the distance of equal rows has no derivative: zero stands for it
    apart = squares > 0
    return _ops.where(apart, _ops.where(apart, squares, 1.0).sqrt(), 0.0)


def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary") -> Any:
    """The p-norms of the differences of all rows. x1: (*, n, d), x2: (*, m, d), batches broadcast -> (*, n, m).

    compute_mode: 'use_mm_for_euclid_dist_if_necessary' (default: with more than 25 rows), 'use_mm_for_euclid_dist' or
    'donot_use_mm_for_euclid_dist' say whether p = 2 goes by a product of matrices.
    """
    for x in (x1, x2):
        if x.dim() < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {'X1' if x is x1 else 'X2'} got: {x.dim()}D")
        _check_distance("cdist", x, p)
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    if compute_mode not in modes:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    mode = modes.index(compute_mode)
    n, m = x1.shape[-2], x2.shape[-2]
    if p == 2 and (mode == 1 or mode == 0 and (n > 25 or m > 25)):
        return _matrix_distances(x1, x2)
    if x1.dtype == x2.dtype and not _has_tangents([x1, x2]):
        if x1.shape[:-2] != x2.shape[:-2]:
            refuse_sizes(x1.shape[:-2], x2.shape[:-2])
            batches = broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
            x1, x2 = x1.expand(*batches, *x1.shape[-2:]), x2.expand(*batches, *x2.shape[-2:])
        return _ops._row_distances(x1, x2, p)
    return _row_norms(x1.unsqueeze(-2) - x2.unsqueeze(-3), p)


def pdist(input: Any, p: float = 2.0) -> Any:
    """The p-norms of the differences of all pairs of rows, first with second, first with third, ... input: (n, d) -> (n (n - 1) / 2,)."""
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    _check_distance("pdist", input, p)
    n = input.shape[0]
    if n < 2:
        return input.new_zeros(0) + input.reshape(-1).narrow(0, 0, 0)
    if not _has_tangents([input]):
        return _ops._pair_distances(input, p)
    first, second = _ops.triu_indices(n, n, 1, device=input.device).unbind(0)
    return _row_norms(input.index_select(0, first) - input.index_select(0, second), p)


# ---- integrals of samples


def _spacings(name: str, y: Any, x: Any, dx: Any, dim: int) -> tuple[int, Any]:
    """The dimension from the front, and the widths of the intervals along it."""
    if not -y.dim() <= dim < y.dim():
        raise IndexError(f"Dimension out of range (expected to be in range of [{-y.dim()}, {y.dim() - 1}], but got {dim})")
    dim %= y.dim()
    if str(y.dtype).endswith("bool"):
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    if x is None:
        if isinstance(dx, complex) or isinstance(dx, bool):
            raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
        return dim, dx
    if x.dim() == 1 and x.shape[0] != y.shape[dim]:
        raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
    if x.dim() == 1 and y.dim() > 1:
        x = x.reshape((-1, *([1] * (y.dim() - dim - 1))))
    elif x.dim() < y.dim():
        x = x.reshape((*([1] * (y.dim() - x.dim())), *x.shape))
    n = x.shape[dim] if x.dim() == y.dim() else x.shape[0]
    along = dim - y.dim()
    return dim, x.narrow(along, 1, n - 1) - x.narrow(along, 0, n - 1)


def _areas(y: Any, width: Any, dim: int) -> Any:
    n = y.shape[dim]
    pairs = y.narrow(dim, 1, n - 1) + y.narrow(dim, 0, n - 1)
    return pairs * width / 2.0 if hasattr(width, "dim") else pairs * (width / 2.0)


def trapezoid(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """The integral along dim by the trapezoidal rule, of samples at x or dx apart."""
    dim, width = _spacings("trapezoid", y, x, dx, dim)
    if y.shape[dim] == 0:
        return y.new_zeros([s for i, s in enumerate(y.shape) if i != dim])
    if x is None:
        return (y.sum(dim) - (y.select(dim, 0) + y.select(dim, -1)) * 0.5) * dx  # all samples count whole but the first and the last
    return _areas(y, width, dim).sum(dim)


def trapz(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """trapezoid."""
    return trapezoid(y, x, dx=dx, dim=dim)


def cumulative_trapezoid(y: Any, x: Any = None, *, dx: Any = 1, dim: int = -1) -> Any:
    """The integrals from the first sample to each of the others along dim by the trapezoidal rule."""
    dim, width = _spacings("cumulative_trapezoid", y, x, dx, dim)
    if y.shape[dim] == 0:
        return y.new_zeros(y.shape)
    return _areas(y, width, dim).cumsum(dim)


EXPORTS = {
    "lu_unpack": "f", "linalg_lu": "n", "lu": "fm", "lu_solve": "fm", "triangular_solve": "fm", "linalg_qr": "n", "qr": "fm", "svd": "fm",
    "linalg_matrix_norm": "n", "linalg_norm": "n", "linalg_cond": "n", "linalg_matrix_rank": "n", "linalg_pinv": "n", "pinverse": "fm",
    "linalg_lstsq": "n", "linalg_matrix_exp": "n", "matrix_exp": "fm", "linalg_vander": "n", "vander": "f", "linalg_tensorinv": "n",
    "linalg_tensorsolve": "n", "linalg_diagonal": "n", "cov": "fm", "corrcoef": "fm", "dist": "fm", "trapezoid": "f", "trapz": "f",
    "cumulative_trapezoid": "f", "cdist": "f", "pdist": "f",
}  # fmt: skip

# The arguments that are tensors: what has no default of these names, and, unless None, the weights and positions.
_TENSORS = {"input", "other", "A", "B", "b", "LU_data", "LU_pivots", "x", "x1", "x2", "y"}
_OPTIONAL_TENSORS = {"x", "fweights", "aweights"}


def _checked(name: str, function: Any) -> Any:
    """`function`, which refuses what is no tensor with the TypeError of compiled operators."""
    code, defaults = function.__code__, dict(function.__kwdefaults__ or {})
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults |= dict(zip(reversed(names[: code.co_argcount]), reversed(function.__defaults__ or ())))
    places = [
        (i if i < code.co_argcount else len(names), n, n in defaults)
        for i, n in enumerate(names)
        if n in _TENSORS and n not in defaults or n in _OPTIONAL_TENSORS and n in defaults and defaults[n] is None
    ]

    def call(*args: Any, **kwargs: Any) -> Any:
        for i, argument, optional in places:
            if i < len(args) or argument in kwargs:
                value = args[i] if i < len(args) else kwargs[argument]
                if not isinstance(value, TensorBase) and not (optional and value is None):
                    raise TypeError(f"{name}(): argument '{argument}' (position {i + 1}) must be Tensor, not {type(value).__name__}")
        return function(*args, **kwargs)

    # what functools.wraps does, whose import costs more than this module's
    call.__name__, call.__qualname__, call.__doc__, call.__annotations__ = name, name, function.__doc__, function.__annotations__
    call.__wrapped__ = function  # type: ignore[attr-defined]
    return call


for _name in EXPORTS:
    globals()[_name] = _checked(_name, globals()[_name])
