"""Derivatives of linear algebra, written with differentiable operators, so that derivatives of derivatives follow.

A gradient g of a result x stands for dL = Re sum(conj(g) dx). `H` is the conjugate transpose. The compiled operators of
cysrc/ops/linalg/linalg.yaml call these functions; a gradient that did not arrive is None, and so is one that is not wanted.
"""

from tensorrt_lite._C.autograd.forward import get_tangent
from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.core.dispatch import is_grad_enabled
from tensorrt_lite._C.core.tensor cimport K_WRAPPED, TensorBase
from tensorrt_lite._C.ops.support cimport holds_any

cdef object _ops = namespace()


def not_implemented(name: str):
    """Stands where an operator has no derivative."""
    raise NotImplementedError(f"the derivative for '{name}' is not implemented.")


def differentiated(a) -> bool:
    """Whether a derivative of a derivative may be wanted, recorded or forward, here or at a lower level of transforms: it must know A, not A's factors alone."""
    return is_grad_enabled() or get_tangent(a) is not None or (<TensorBase?>a).keys & K_WRAPPED != 0


def conj(x):
    return x.conj() if x.is_complex() else x


def H(x):
    return conj(x).transpose(-2, -1)


def eye(n: int, like):
    return _ops.eye(n, dtype=like.dtype, device=like.device)


def real_of(x):
    return x.real if x.is_complex() else x


def real_diagonal(x):
    """A diagonal matrix of the real parts of x's diagonal."""
    d = _ops.diag_embed(real_of(x.diagonal(0, -2, -1)))
    return d.to(x.dtype) if x.is_complex() else d


def solve_left(a, b, upper: bool, unit: bool = False):
    return _ops.linalg_solve_triangular(a, b, upper=upper, left=True, unitriangular=unit)


def solve_right(a, b, upper: bool, unit: bool = False):
    return _ops.linalg_solve_triangular(a, b, upper=upper, left=False, unitriangular=unit)


# ---- LU, systems, determinants


def permuted(pivots, x, inverse: bool = False):
    """P x (or P^H x), P from LAPACK's row swaps."""
    order = _ops._lu_permutation(pivots, x.shape[-2])
    # row i of P^H x is row order[i] of x
    if not inverse:
        places = _ops.arange(order.shape[-1], device=order.device).expand(order.shape)
        order = _ops.zeros_like(order).scatter(-1, order, places)
    return x.gather(-2, order.unsqueeze(-1).expand(x.shape))


def lu_factor(g, lu, pivots):
    """The gradient of A = P L U from that of the packed L and U."""
    if g is None:
        return None
    m, n = lu.shape[-2], lu.shape[-1]
    k = min(m, n)
    gl, gu = g.tril(-1), g.triu()
    square = lu.narrow(-2, 0, k).narrow(-1, 0, k)
    lower, upper = square.tril(-1) + eye(k, lu), square.triu()
    gl1, gu1 = gl.narrow(-2, 0, k).narrow(-1, 0, k), gu.narrow(-2, 0, k).narrow(-1, 0, k)
    left, right = H(lower) @ gl1, gu1 @ H(upper)
    rest = None
    if n > k:  # the columns behind the square are L^-1 A2
        u2, gu2 = lu.narrow(-1, k, n - k), gu.narrow(-1, k, n - k)
        left = left - gu2 @ H(u2)
        rest = solve_left(H(lower), gu2, True, True)
    elif m > k:  # the rows below the square are A2 U^-1
        l2, gl2 = lu.narrow(-2, k, m - k), gl.narrow(-2, k, m - k)
        right = right - H(l2) @ gl2
        rest = solve_right(H(upper), gl2, False)
    inner = solve_left(H(lower), left.tril(-1) + right.triu(), True, True)
    result = solve_right(H(upper), inner, False)
    if rest is not None:
        result = _ops.cat((result, rest), -1 if n > k else -2)
    return permuted(pivots, result)


def lu_solve(g, lu, pivots, x, lu_shape, b_shape, left: bool, adjoint: bool, wants_lu: bool, wants_b: bool):
    gb = _ops.linalg_lu_solve(lu, pivots, g, left=left, adjoint=not adjoint)
    result = None
    if wants_lu:
        # the gradient of A = P L U, then of its factors
        if left:
            ga = -(x @ H(gb)) if adjoint else -(gb @ H(x))
        else:
            ga = -(H(gb) @ x) if adjoint else -(H(x) @ gb)
        ga = ga.sum_to_size(lu_shape)
        ga = permuted(pivots, ga, inverse=True)
        lower, upper = lu.tril(-1) + eye(lu.shape[-1], lu), lu.triu()
        result = (ga @ H(upper)).tril(-1) + (H(lower) @ ga).triu()
    return result, gb.sum_to_size(b_shape) if wants_b else None


def solve(g, a, x, lu, pivots, b_shape, left: bool, wants_a: bool, wants_b: bool):
    if g is None:
        return None, None
    vector = len(b_shape) == 1 or tuple(b_shape) == tuple(a.shape[:-1])
    if vector:
        g, x = g.unsqueeze(-1), x.unsqueeze(-1)
    gb = _ops.linalg_solve_ex(H(a), g, left=left)[0] if differentiated(a) else _ops.linalg_lu_solve(lu, pivots, g, left=left, adjoint=True)
    ga = None
    if wants_a:
        ga = (-(gb @ H(x)) if left else -(H(x) @ gb)).sum_to_size(a.shape)
    if vector:
        gb = gb.squeeze(-1)
    return ga, gb.sum_to_size(b_shape) if wants_b else None


def inverse(g, result):
    if g is None:
        return None
    adjoint = H(result)
    return -(adjoint @ (g @ adjoint))


def det(g, a, result, lu, pivots):
    """det(A) g A^-H; where A is singular the adjugate takes the place of det(A) A^-1."""
    if g is None:
        return None
    if a.numel() == 0:
        return _ops.zeros_like(a)
    if not holds_any(lu.diagonal(0, -2, -1) == 0):
        scale = (g * conj(result)).unsqueeze(-1).unsqueeze(-1)
        if differentiated(a):
            return scale * _ops.linalg_inv(H(a))
        return _ops.linalg_lu_solve(lu, pivots, scale * eye(a.shape[-1], a), adjoint=True)
    # adj(A)^H = conj(det(U) det(Vh))^-1 ... of A = U S Vh: U diag(products of the other singular values) Vh, times a phase
    u, s, vh = _ops.linalg_svd(a)
    n = s.shape[-1]
    others = _ops.where(eye(n, s) == 1, _ops.ones_like(s).unsqueeze(-1), s.unsqueeze(-2)).prod(-1)
    phase = conj(_ops.linalg_det(u) * _ops.linalg_det(vh))
    return (g * phase).unsqueeze(-1).unsqueeze(-1) * ((u * others.unsqueeze(-2)) @ vh)


def slogdet(gsign, glog, a, sign, lu, pivots):
    z = glog
    if a.is_complex():
        # only the angle of the sign can move
        z = _ops.zeros_like(real_of(sign)) if z is None else z
        turn = _ops.zeros_like(z) if gsign is None else (gsign * sign.conj()).imag
        z = _ops.complex(z, turn)
    if z is None:
        return _ops.zeros_like(a)
    z = z.unsqueeze(-1).unsqueeze(-1)
    if differentiated(a):
        return z * _ops.linalg_solve_ex(H(a), eye(a.shape[-1], a).expand(a.shape))[0]
    return _ops.linalg_lu_solve(lu, pivots, z * eye(a.shape[-1], a), adjoint=True)


# ---- Cholesky, triangular systems


def cholesky(g, factor, upper: bool):
    if g is None:
        return None
    lower, gl = (H(factor), H(g)) if upper else (factor, g)
    inner = (H(lower) @ gl).tril()
    inner = inner - _ops.diag_embed(inner.diagonal(0, -2, -1)) / 2
    ga = solve_right(lower, solve_left(H(lower), inner, True), False)
    return (ga + H(ga)) / 2


def cholesky_solve(g, factor, x, b_shape, upper: bool, wants_b: bool, wants_factor: bool):
    gb = _ops.cholesky_solve(g, factor, upper)
    gf = None
    if wants_factor:
        ga = -(gb @ H(x))
        ga = ga + H(ga)
        # as in PyTorch, the triangle that the operator does not read has one, too: that of the product it stands for
        gf = (factor @ ga if upper else ga @ factor).sum_to_size(factor.shape)
    return gb.sum_to_size(b_shape) if wants_b else None, gf


def cholesky_inverse(g, factor, result, upper: bool):
    ga = -(result @ ((g + H(g)) @ result))
    return factor @ ga if upper else ga @ factor


def solve_triangular(
    g, a, x, a_shape, b_shape, upper: bool, left: bool, unit: bool, wants_a: bool, wants_b: bool
):
    gb = _ops.linalg_solve_triangular(H(a), g, upper=not upper, left=left, unitriangular=unit)
    ga = None
    if wants_a:
        ga = (-(gb @ H(x)) if left else -(H(x) @ gb)).sum_to_size(a_shape)
        ga = ga.triu(1 if unit else 0) if upper else ga.tril(-1 if unit else 0)
    return ga, gb.sum_to_size(b_shape) if wants_b else None


# ---- QR and reflections


def qr(gq, gr, q, r, kind: str):
    """Roberts and Roberts, QR and LQ decomposition matrix backpropagation algorithms, 2020."""
    if kind == "r":
        raise RuntimeError("The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced')")
    m, n = q.shape[-2], r.shape[-1]
    if kind == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols")
    if gq is None and gr is None:
        return None
    gq = _ops.zeros_like(q) if gq is None else gq
    gr = _ops.zeros_like(r) if gr is None else gr
    rest = None
    if n > m:  # the columns of R behind the square are Q^H A2
        r, r2 = r.narrow(-1, 0, m), r.narrow(-1, m, n - m)
        gr, gr2 = gr.narrow(-1, 0, m), gr.narrow(-1, m, n - m)
        gq = gq + (q @ r2) @ H(gr2)
        rest = q @ gr2
    inner = gr @ H(r) - H(q) @ gq
    above = inner.triu(1)
    result = solve_right(H(r), gq + q @ (above + H(above) + real_diagonal(inner)), False)
    return result if rest is None else _ops.cat((result, rest), -1)


def _reflections(g, a, tau, x):
    """Gradients of H_1 ... H_k x with H_i = I - tau_i v_i v_i^H, v_i the i-th column of `a` below a leading one."""
    k = tau.shape[-1]
    a = a.narrow(-1, 0, k)
    vectors = a.tril(-1) + _ops.eye(a.shape[-2], k, dtype=a.dtype, device=a.device)
    v = [vectors.narrow(-1, i, 1) for i in range(k)]
    t = [tau.narrow(-1, i, 1).unsqueeze(-1) for i in range(k)]
    partial = [x]
    for i in range(k - 1, -1, -1):
        partial.append(partial[-1] - t[i] * (v[i] @ (H(v[i]) @ partial[-1])))
    gv, gt = [], []
    for i in range(k):
        behind = partial[k - 1 - i]
        w, u = H(v[i]) @ behind, H(v[i]) @ g
        gt.append(-(u @ H(w)).squeeze(-1))
        gv.append(-(conj(t[i]) * (g @ H(w))) - t[i] * (behind @ H(u)))
        g = g - conj(t[i]) * (v[i] @ u)
    return _ops.cat(gv, -1).tril(-1), _ops.cat(gt, -1)


def householder_product(g, a, tau):
    if not a.numel() or not tau.numel():
        return None, None
    start = _ops.eye(a.shape[-2], a.shape[-1], dtype=a.dtype, device=a.device).expand(a.shape)
    ga, gt = _reflections(g, a, tau, start)
    missing = a.shape[-1] - tau.shape[-1]
    return _ops.cat((ga, ga.new_zeros((*ga.shape[:-1], missing))), -1) if missing else ga, gt


def ormqr(g, a, tau, other, left: bool, transpose: bool, wants_q: bool, wants_other: bool):
    ga = gt = None
    if wants_q and a.numel() and tau.numel():
        x, turned, y = other, transpose, g
        if not left:  # C Q = (Q^H C^H)^H
            x, turned, y = H(other), not transpose, H(g)
        # Q^H y = x asks for the same derivative as Q x' with the places of x and y exchanged
        if turned:
            ga, gt = _reflections(x, a, tau, y)
        else:
            ga, gt = _reflections(y, a, tau, x)
        missing = a.shape[-1] - tau.shape[-1]
        if missing:
            ga = _ops.cat((ga, ga.new_zeros((*ga.shape[:-1], missing))), -1)
    return ga, gt, _ops.ormqr(a, tau, g, left, not transpose) if wants_other else None


# ---- eigenvalues, singular values, least squares


def eigh(gw, gv, w, v):
    if gw is None and gv is None:
        return None
    if gv is None:
        return (v * gw.unsqueeze(-2)) @ H(v)
    inner = H(v) @ gv
    if v.is_complex():
        _check_phase("linalg_eigh_backward", "eigenvectors", inner.diagonal(0, -2, -1).imag)
    difference = w.unsqueeze(-2) - w.unsqueeze(-1)
    one = eye(w.shape[-1], w)
    inner = inner / (difference + one) * (1 - one)
    if gw is not None:
        inner = inner + _ops.diag_embed(gw)
    result = v @ inner @ H(v)
    # one of infinitely many: only the Hermitian part of what is added to A moves the result
    return (result + H(result)) / 2


def _check_phase(name: str, what: str, turn) -> None:
    """A loss must not depend on the phase of complex vectors."""
    if turn.numel() and holds_any(turn.detach().abs() > 1e-2, False):
        raise RuntimeError(
            f"{name}: The {what} in the complex case are specified up to multiplication by e^{{i phi}}. "
            "The specified loss function depends on this quantity, so it is ill-defined."
        )


def _check_common_phase(left, right) -> None:
    """Nor on the phase by which a left and a right singular vector turn together: there what comes from one cancels what comes from the other."""
    turn = left if right is None else right if left is None else left + right
    size = 1 if left is None or right is None else 1 + right.detach().abs()
    if turn.numel() and holds_any(turn.detach().abs() > 1e-2 * size, False):
        raise RuntimeError(
            "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. "
            "The specified loss function depends on this phase term, making it ill-defined."
        )


def eig(gw, gv, w, v, meta):
    if gw is None and gv is None:
        return None
    if gv is None:
        inner = _ops.diag_embed(gw)
    else:
        vh_gv = H(v) @ gv
        diagonal = vh_gv.diagonal(0, -2, -1)
        _check_phase("linalg_eig_backward", "eigenvectors", diagonal.imag)
        # the vectors have norm 1
        inner = vh_gv - (H(v) @ v) * real_of(diagonal).unsqueeze(-2)
        difference = conj(w).unsqueeze(-2) - conj(w).unsqueeze(-1)
        one = eye(w.shape[-1], w)
        inner = inner / (difference + one) * (1 - one)
        if gw is not None:
            inner = inner + _ops.diag_embed(gw)
    result = _ops.linalg_solve(H(v), inner @ H(v))
    return result if _is_complex_code(meta) else result.real


def _is_complex_code(meta) -> bool:
    return meta[1] >= 10


def svd(gu, gs, gvh, u, s, vh, full_matrices: bool):
    """The derivative where singular values differ; through the vectors it has no value where they are equal."""
    k = s.shape[-1]
    if gu is None and gvh is None:
        if gs is None:
            return None
        return (u.narrow(-1, 0, k) * gs.unsqueeze(-2)) @ vh.narrow(-2, 0, k)
    m, n = u.shape[-2], vh.shape[-1]
    if full_matrices and m != n:
        # the vectors beyond the k-th are free to turn: a gradient through them has no meaning, the others have one
        u, vh = u.narrow(-1, 0, k), vh.narrow(-2, 0, k)
        gu = None if gu is None else gu.narrow(-1, 0, k)
        gvh = None if gvh is None else gvh.narrow(-2, 0, k)
    squares = s * s
    one = eye(k, s)
    differences = squares.unsqueeze(-2) - squares.unsqueeze(-1) + one
    inner = turned = other_turned = None
    if gu is not None:
        turned = H(u) @ gu
        turned = turned - H(turned)
        inner = turned / differences * s.unsqueeze(-2)
    if gvh is not None:
        other_turned = vh @ H(gvh)
        other_turned = other_turned - H(other_turned)
        other = s.unsqueeze(-1) * (other_turned / differences)
        inner = other if inner is None else inner + other
    if u.is_complex():
        _check_common_phase(*(None if t is None else t.diagonal(0, -2, -1).imag for t in (turned, other_turned)))
        # a pair of vectors may turn by a common phase; what depends on it has no derivative, the rest lies on the diagonal
        inner = inner - _ops.diag_embed(inner.diagonal(0, -2, -1))
        if turned is not None:
            inner = inner + _ops.diag_embed(turned.diagonal(0, -2, -1) / (2 * s))
    if gs is not None:
        inner = inner + _ops.diag_embed(gs)
    left = u @ inner
    if gu is not None and m > k:
        g = gu / s.unsqueeze(-2)
        left = left + g - u @ (H(u) @ g)
    result = left @ vh
    if gvh is not None and n > k:
        g = gvh / s.unsqueeze(-1)
        result = result + u @ (g - (g @ H(vh)) @ vh)
    return result


def pinv(g, a, p):
    """Golub and Pereyra 1973: the differential of a pseudoinverse of constant rank."""
    gh, ph = H(g), H(p)
    result = -(ph @ g @ ph)
    right = gh @ p @ ph
    left = ph @ p @ gh
    return result + right - a @ (p @ right) + left - (left @ p) @ a


def lstsq(g, a, b, wants_a: bool, wants_b: bool):
    """X = pinv(A) B."""
    if g is None:
        return None, None
    p = _ops.linalg_pinv(a)
    ga = pinv(g @ H(b), a, p).sum_to_size(a.shape) if wants_a else None
    return ga, (H(p) @ g).sum_to_size(b.shape) if wants_b else None
