# The singular value decomposition: LAPACK's gesdd through core/blas, its derivative, and the public forms.
from tensorrt_lite._C.core.blas cimport blas_svd_raw


cdef object linalg_error(str text):
    from tensorrt_lite.linalg import LinAlgError
    return LinAlgError(text)


cdef object _linalg_svd_cpu(TensorBase self, bint full_matrices, bint values_only):
    """(U, S, Vh) of the last two dimensions; U and Vh have no elements under values_only."""
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t m, n, k, columns, rows, i, batch = 1, step = ITEM_SIZE[self.dtype]
    cdef int d = self.ndim, code = self.dtype, info = 0, lwork, dm, dn, ldvt, real_size
    cdef char job = b"N" if values_only else b"A" if full_matrices else b"S"
    cdef TensorBase x, u, s, vh, work, rwork, iwork
    cdef char* px
    cdef char* pu
    cdef char* ps
    cdef char* pv
    cdef char* pw
    cdef char* pr
    cdef char* pi
    cdef double size[2]
    if d < 2:
        raise RuntimeError(f"linalg.svd: The input tensor A must have at least 2 dimensions.")
    if category[code] < CAT_FLOAT:
        raise RuntimeError(f"linalg.svd: Expected a floating point or complex tensor as input. Got {_scalar_type(code)}")
    if code == F16 or code == BF16:
        raise RuntimeError(f"linalg.svd: Low precision dtypes not supported. Got {_scalar_type(code)}")
    for i in range(d):
        sizes[i] = self.sizes[i]
        if i < d - 2:
            batch *= self.sizes[i]
    m = sizes[d - 2]
    n = sizes[d - 1]
    k = m if m < n else n
    columns = 0 if values_only else m if full_matrices else k
    rows = 0 if values_only else n if full_matrices else k
    sizes[d - 2] = k
    s = empty_tensor(d - 1, sizes, to_real(code), self.device_type)
    sizes[d - 2] = m
    sizes[d - 1] = columns
    u = empty_tensor(d, sizes, code, self.device_type)
    sizes[d - 2] = rows
    sizes[d - 1] = n
    vh = empty_tensor(d, sizes, code, self.device_type)
    if self.device_type == DEV_META or batch == 0:
        return (u, s, vh)
    if k == 0:
        # nothing to decompose: any orthogonal matrix will do
        for factor in (u, vh):
            if (<TensorBase>factor).numel:
                factor.copy_(_ops.eye(columns if factor is u else rows, dtype=dtype_of(code)))
        return (u, s, vh)
    if not blas_fits(m, n, k, m, n, k):
        raise RuntimeError(f"linalg.svd: matrices ({m}, {n}) are too large for 32-bit LAPACK")
    # A row-major matrix is its transpose to LAPACK, whose factors are those of the matrix in exchanged places.
    x = empty_tensor(d, self.sizes, code, DEV_CPU)
    copy_elements(x, self)
    dm = <int>m
    dn = <int>n
    ldvt = <int>(columns if columns else 1)
    blas_load()
    with nogil:
        # asks how much memory to work in it needs
        blas_begin(1)
        blas_svd_raw(code, job, dn, dm, NULL, NULL, NULL, dn, NULL, ldvt, size, -1, NULL, NULL)
        blas_end()
    lwork = <int>((<float*>size)[0] if code == F32 or code == C64 else size[0]) + 1
    sizes[0] = lwork
    work = empty_tensor(1, sizes, code, DEV_CPU)
    sizes[0] = 7 * k if values_only else k * max(5 * k + 7, 2 * max(m, n) + 2 * k + 1)
    rwork = empty_tensor(1, sizes, to_real(code), DEV_CPU) if category[code] == CAT_COMPLEX else s
    sizes[0] = 8 * k
    iwork = empty_tensor(1, sizes, I32, DEV_CPU)
    real_size = ITEM_SIZE[s.dtype]
    px = data_of(x)
    pu = data_of(u)
    ps = data_of(s)
    pv = data_of(vh)
    pw = data_of(work)
    pr = data_of(rwork)
    pi = data_of(iwork)
    with nogil:
        # one thread: the result must not depend on how many there are
        blas_begin(1)
        for i in range(batch):
            info = blas_svd_raw(code, job, dn, dm, px + i * m * n * step, ps + i * k * real_size, pv + i * rows * n * step, dn,
                                pu + i * m * columns * step, ldvt, pw, lwork, pr, <int*>pi)
            if info != 0:
                break
        blas_end()
    if info < 0:
        raise linalg_error("linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values.")
    if info > 0:
        raise linalg_error(f"linalg.svd: (Batch element {i}): The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated singular values (error code: {info}).")
    return (u, s, vh)


cdef object adjoint(object x):
    return conj_of(x).transpose(-2, -1)


cdef object skew(object x):
    return x - adjoint(x)


cdef object svd_backward(object grads, object u, object s, object vh, bint full_matrices):
    """The derivative where singular values differ; through the vectors it has no value where they are equal."""
    gu, gs, gvh = grads[0], grads[1], grads[2]
    if gu is None and gvh is None:
        if gs is None:
            return None
        k = s.shape[len(s.shape) - 1]
        return _ops.matmul(u.narrow(-1, 0, k) * gs.unsqueeze(-2), vh.narrow(-2, 0, k))
    if full_matrices:
        raise RuntimeError("linalg.svd: the derivative through the vectors needs full_matrices=False")
    m, n, k = u.shape[len(u.shape) - 2], vh.shape[len(vh.shape) - 1], s.shape[len(s.shape) - 1]
    squares = s * s
    differences = squares.unsqueeze(-2) - squares.unsqueeze(-1)
    differences = differences + _ops.eye(k, dtype=s.dtype)
    inner = turned = None
    if gu is not None:
        turned = skew(_ops.matmul(adjoint(u), gu))
        inner = turned / differences * s.unsqueeze(-2)
    if gvh is not None:
        other = s.unsqueeze(-1) * (skew(_ops.matmul(vh, adjoint(gvh))) / differences)
        inner = other if inner is None else inner + other
    if u.is_complex():
        # a pair of vectors may turn by a common phase; what depends on it has no derivative, the rest lies on the diagonal
        inner = inner - _ops.diag_embed(inner.diagonal(0, -2, -1))
        if turned is not None:
            inner = inner + _ops.diag_embed(turned.diagonal(0, -2, -1) / (2 * s))
    if gs is not None:
        inner = inner + _ops.diag_embed(gs)
    left = _ops.matmul(u, inner)
    if gu is not None and m > k:
        g = gu / s.unsqueeze(-2)
        left = left + g - _ops.matmul(u, _ops.matmul(adjoint(u), g))
    result = _ops.matmul(left, vh)
    if gvh is not None and n > k:
        g = gvh / s.unsqueeze(-1)
        result = result + _ops.matmul(u, g - _ops.matmul(_ops.matmul(g, adjoint(vh)), vh))
    return result


def linalg_svd(A, full_matrices=True, *, driver=None):
    """A = U diag(S) Vh of the last two dimensions, S descending; reduced to min(m, n) vectors without full_matrices."""
    r = overridden(linalg_svd, (A,), (A, full_matrices), {"driver": driver})
    if r is not NotImplemented:
        return r
    if driver is not None:
        raise RuntimeError("linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")
    from tensorrt_lite._return_types import result_type
    return result_type("linalg_svd", ("U", "S", "Vh"))(op__linalg_svd(as_tensor_arg(A, "linalg_svd", "A"), full_matrices, False))


def linalg_svdvals(A, *, driver=None, out=None):
    """The singular values of the last two dimensions, descending."""
    cdef TensorBase x
    r = overridden(linalg_svdvals, (A,), (A,), {"driver": driver, "out": out})
    if r is not NotImplemented:
        return r
    if driver is not None:
        raise RuntimeError("linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")
    x = as_tensor_arg(A, "linalg_svdvals", "A")
    # the derivative needs the vectors
    return into("linalg_svdvals", op__linalg_svd(x, False, not (x.requires_grad and grad_mode()))[1], out)


def svd(input, some=True, compute_uv=True):
    """(U, S, V) with input = U diag(S) V^H; linalg.svd is the form to prefer. Without compute_uv U and V are zero."""
    from tensorrt_lite._return_types import result_type
    if compute_uv:
        u, s, vh = linalg_svd(input, not some)
        return result_type("svd", ("U", "S", "V"))((u, s, adjoint(vh)))
    s = linalg_svdvals(input)
    shape = tuple(input.shape)
    batch, m, n = shape[:len(shape) - 2], shape[len(shape) - 2], shape[len(shape) - 1]
    return result_type("svd", ("U", "S", "V"))((input.new_zeros(batch + (m, m)), s, input.new_zeros(batch + (n, n))))
