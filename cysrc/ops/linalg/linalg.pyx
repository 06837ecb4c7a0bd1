# Linear algebra. A call is a Job (core/linalg_job.h): stacks of matrices with any strides come in, dense results leave. Kernels check, describe the
# inputs and make the results; the step `linalg_job` handles the matrices (cpu.pyx: LAPACK; cysrc/cuda/linalg.pyx). Derivatives are in derivatives.pyx.
from libc.limits cimport INT_MAX
from libc.stdlib cimport calloc
from tensorrt_lite._C.ops.linalg.job cimport (
    CHOLESKY, CHOLESKY_INVERSE, CHOLESKY_SOLVE, DETERMINANT, EIG, EIGH, GELS, GELSD, GELSS, GELSY, GEQRF, HOUSEHOLDER, INVERSE, Job, LDL, LDL_SOLVE,
    LEAST_SQUARES, LU, LU_SOLVE, NOT_FINITE, ORMQR, PERMUTATION, QR, SOLVE, SVD, TRIANGULAR, trt_stack)
from tensorrt_lite._C.core.device cimport device_type_name
from tensorrt_lite._C.ops.memory cimport memory_of
from tensorrt_lite._C.steps.linalg cimport run_linalg_codes, run_linalg_job, run_svd_driver


cdef int run(Job* w, int routine, TensorBase info, TensorBase a, TensorBase b=None, TensorBase c=None) except -1:
    """Handle all matrices; a, b, c own the memory of the inputs."""
    if w.count == 0:
        return 0
    w.info = <int*>memory_of(info)
    return run_linalg_job(info.device_type, w, routine, info, a, b, c)


cdef int start(Job* w, TensorBase a, int64_t m, int64_t n, int64_t k) except -1:
    if m > INT_MAX or n > INT_MAX or k > INT_MAX or m * n > INT_MAX * <int64_t>16 or m * k > INT_MAX * <int64_t>16:
        raise RuntimeError(f"linear algebra: matrices ({m}, {n}) with {k} right-hand sides are too large for 32-bit LAPACK")
    w.t = a.dtype - F32
    w.size = ITEM_SIZE[a.dtype]
    w.m = <int>m
    w.n = <int>n
    w.k = <int>k
    w.flag = 0
    w.scratch = 0
    w.a.batch_dims = w.b.batch_dims = w.c.batch_dims = 0
    return 0


cdef int64_t batch_count(int n, const int64_t* sizes) noexcept:
    cdef int64_t count = 1
    cdef int i
    for i in range(n):
        count *= sizes[i]
    return count


cdef void stack_of(trt_stack* s, TensorBase t, int item_dims, int batch_dims, const int64_t* sizes) noexcept:
    """t's last item_dims (2, or 1: a column) as matrices, its batch dimensions broadcast to `sizes`."""
    cdef int d = t.ndim, i, j
    s.data = memory_of(t)
    s.batch_dims = batch_dims
    for i in range(batch_dims):
        j = i - batch_dims + d - item_dims
        s.sizes[i] = sizes[i]
        s.strides[i] = 0 if j < 0 or t.sizes[j] == 1 else t.strides[j]
    s.rows = t.sizes[d - item_dims]
    s.rs = t.strides[d - item_dims]
    s.cols = t.sizes[d - 1] if item_dims == 2 else 1
    s.cs = t.strides[d - 1] if item_dims == 2 else 1


cdef inline void transpose_stack(trt_stack* s) noexcept:
    s.rows, s.cols = s.cols, s.rows
    s.rs, s.cs = s.cs, s.rs


# ---- results -------------------------------------------------------------------------------------------------------

cdef TensorBase result_of(Job* w, int j, TensorBase like, int code, int batch_dims, const int64_t* batch, int item_dims, int64_t rows, int64_t cols):
    """A fresh result: the batch's sizes, then a column-major matrix, a vector or a number (item_dims 2, 1, 0)."""
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t step = 1
    cdef int i
    cdef TensorBase r
    if batch_dims + item_dims > MAX_DIMS:
        raise RuntimeError(f"linear algebra: results of {batch_dims + item_dims} dimensions are not supported")
    for i in range(batch_dims):
        sizes[i] = batch[i]
    if item_dims:
        sizes[batch_dims] = rows
    if item_dims == 2:
        sizes[batch_dims + 1] = cols
        contiguous_strides(batch_dims + 2, sizes, strides)
        strides[batch_dims] = 1
        strides[batch_dims + 1] = rows if rows > 1 else 1
        r = empty_strided_tensor(batch_dims + 2, sizes, strides, code, place_of(like))
        step = rows * cols
    else:
        r = empty_tensor(batch_dims + item_dims, sizes, code, place_of(like))
        step = rows if item_dims else 1
    w.out[j] = memory_of(r)
    w.step[j] = step * ITEM_SIZE[code]
    return r


cdef TensorBase info_of(Job* w, TensorBase like, int batch_dims, const int64_t* batch):
    w.count = batch_count(batch_dims, batch)
    return empty_tensor(batch_dims, batch, I32, place_of(like))


cdef TensorBase finish_output(str name, TensorBase result, TensorBase out, int mode, bint exact=True):
    """The result, or `out` filled with it."""
    if mode == FRESH:
        return result
    refuse_history(name, result)
    if not exact and not can_cast(result.dtype, out.dtype):
        raise RuntimeError(f"{name}: Expected result to be safely castable from {dtype_text(result.dtype)} dtype, but got result with dtype {dtype_text(out.dtype)}")
    return write_to_out(name, result, out, OUT, exact)


cdef object finish_outputs(str name, tuple results, object out, int mode, bint exact=True):
    if mode == FRESH:
        return results
    return tuple([finish_output(name, r, <TensorBase>o, OUT, exact) for r, o in zip(results, out)])


# ---- checks --------------------------------------------------------------------------------------------------------

class LinAlgError(RuntimeError):
    """A matrix for which the asked-for result does not exist: singular, not positive-definite, or without convergence."""

    __module__ = "tensorrt_lite.linalg"


cdef object _formulas = None


cdef object formulas():
    """The module of derivatives, imported when the first is asked for."""
    global _formulas
    if _formulas is None:
        from tensorrt_lite._C.ops.linalg import derivatives
        _formulas = derivatives
    return _formulas


cdef int check_matrix(str name, TensorBase a, str label="A") except -1:
    if a.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {label} must have at least 2 dimensions.")
    return check_number_type(name, a)


cdef int check_number_type(str name, TensorBase a) except -1:
    if (name == "linalg.eigh" or name == "linalg.lu_factor_ex") and (category[a.dtype] < CAT_FLOAT or a.dtype == F16 or a.dtype == BF16):
        # PyTorch leaves it to the kernels of these to refuse a type
        raise NotImplementedError(f"\"{'linalg_eigh' if name == 'linalg.eigh' else 'lu'}_{device_type_name(a.device_type)}\" not implemented for '{dtype_text(a.dtype)}'")
    if category[a.dtype] < CAT_FLOAT:
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {dtype_text(a.dtype)}")
    if a.dtype == F16 or a.dtype == BF16:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {dtype_text(a.dtype)}")
    return 0


cdef int check_square(str name, TensorBase a, str label="A") except -1:
    check_matrix(name, a, label)
    if a.sizes[a.ndim - 1] != a.sizes[a.ndim - 2]:
        raise RuntimeError(f"{name}: {label} must be batches of square matrices, but they are {a.sizes[a.ndim - 2]} by {a.sizes[a.ndim - 1]} matrices")
    return 0


cdef int check_same_type(str name, TensorBase a, TensorBase b, str first="A", str second="B") except -1:
    if a.dtype != b.dtype:
        raise RuntimeError(f"{name}: Expected {first} and {second} to have the same dtype, but found {first} of type {dtype_text(a.dtype)} and {second} of type {dtype_text(b.dtype)} instead")
    return 0


cdef int joint_batch(str name, TensorBase a, int a_dims, TensorBase b, int b_dims, int64_t* sizes) except -1:
    """The broadcast sizes of the batch dimensions of two inputs whose last a_dims and b_dims are matrices; how many."""
    cdef int na = a.ndim - a_dims, nb = b.ndim - b_dims, n = max(na, nb), i
    cdef int64_t x, y
    for i in range(n):
        x = a.sizes[i - n + na] if i - n + na >= 0 else 1
        y = b.sizes[i - n + nb] if i - n + nb >= 0 else 1
        if x != y and x != 1 and y != 1:
            raise RuntimeError(f"{name}: The batch dimensions of shapes {shape_text(a)} and {shape_text(b)} must be broadcastable: {x} and {y} in dimension {i} are not")
        sizes[i] = y if x == 1 else x
    return n


cdef enum:
    FAIL_INVERSE = 0
    FAIL_SOLVE = 1
    FAIL_LU = 2
    FAIL_CHOLESKY = 3
    FAIL_EIGEN = 4
    FAIL_SVD = 5
    FAIL_LEAST_SQUARES = 6
    FAIL_LDL = 7

cdef tuple _failures = (
    "The diagonal element {0} is zero, the inversion could not be completed because the input matrix is singular.",
    "The solver failed because the input matrix is singular.",
    "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform the factorization, consider calling "
    "linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
    "The factorization could not be completed because the input is not positive-definite (the leading minor of order {0} is not positive-definite).",
    "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated eigenvalues (error code: {0}).",
    "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated singular values (error code: {0}).",
    "The least squares solution could not be computed because the input matrix does not have full rank (error code: {0}).",
    "The factor D is exactly singular: its diagonal block {0} is zero.",
)


cdef bint has_code(TensorBase info, int code) except -1:
    """Whether a matrix of the batch has this info code."""
    cdef int* codes = read_codes(info)
    cdef int64_t i
    cdef bint found = False
    for i in range(info.numel):
        found |= codes[i] == code
    free(codes)
    return found


cdef int* read_codes(TensorBase info) except NULL:
    """The info codes in memory that the caller frees. Of a device's results it waits for them; meta tensors have none but 0."""
    cdef int* codes
    if info.dtype != I32 or not info.contiguous:       # a dispatch mode's answer
        raise RuntimeError(f"linear algebra: expected info codes of type Int, got {dtype_text(info.dtype)} of shape {shape_text(info)}")
    codes = <int*>calloc(info.numel + 1, sizeof(int))
    if codes == NULL:
        raise MemoryError(f"linear algebra: no memory for {info.numel} info codes")
    try:
        run_linalg_codes(info.device_type, info, codes)
    except BaseException:
        free(codes)
        raise
    return codes


cdef int raise_info(str name, int failure, TensorBase info) except -1:
    """LinAlgError when any matrix of the batch failed."""
    cdef int64_t i, n = info.numel
    cdef int* codes = read_codes(info)
    cdef int code = 0
    for i in range(n):
        code = codes[i]
        if code:
            break
    free(codes)
    if code == 0:
        return 0
    where = f"(Batch element {i}): " if info.ndim else ""
    if code < 0:
        raise LinAlgError(f"{name}: {where}The algorithm failed to converge because the input matrix contained non-finite values.")
    raise LinAlgError(f"{name}: {where}{_failures[failure].format(code)}")


# LU, Cholesky and LDL factorisations, what is solved with them, and triangular systems.


# ---- LU ------------------------------------------------------------------------------------------------------------


cdef tuple factored(str name, TensorBase A, bint pivot):
    """(LU, pivots, info); flag: without pivots."""
    cdef Job w
    cdef int d = A.ndim - 2
    check_matrix(name, A)
    start(&w, A, A.sizes[d], A.sizes[d + 1], 0)
    lu = result_of(&w, 0, A, A.dtype, d, A.sizes, 2, w.m, w.n)
    pivots = result_of(&w, 1, A, I32, d, A.sizes, 1, min(w.m, w.n), 0)
    info = info_of(&w, A, d, A.sizes)
    stack_of(&w.a, A, 2, d, A.sizes)
    w.flag = not pivot
    run(&w, LU, info, A)
    return (lu, pivots, info)


cdef object linalg_lu_factor_ex_impl(TensorBase A, bint pivot, bint check_errors, object out, int mode):
    r = factored("linalg.lu_factor_ex", A, pivot)
    if check_errors:
        raise_info("linalg.lu_factor_ex", FAIL_LU, <TensorBase>r[2])
    return finish_outputs("linalg_lu_factor_ex", r, out, mode)


cdef object linalg_lu_factor_impl(TensorBase A, bint pivot, object out, int mode):
    lu, pivots, info = op_linalg_lu_factor_ex(A, pivot, False, None, FRESH)
    raise_info("torch.linalg.lu_factor", FAIL_LU, <TensorBase>info)
    return finish_outputs("linalg_lu_factor", (lu, pivots), out, mode)


cdef TensorBase solution_of(Job* w, TensorBase like, bint left, bint vector, int batch_dims, const int64_t* batch):
    """The result of a system: (n, k) column-major, or (k, n) row-major when the unknown stands on the left of the matrix."""
    cdef int64_t sizes[MAX_DIMS]
    cdef TensorBase r
    if left:
        return result_of(w, 0, like, like.dtype, batch_dims, batch, 1 if vector else 2, w.n, w.k)
    memcpy(sizes, batch, batch_dims * sizeof(int64_t))
    sizes[batch_dims] = w.k
    sizes[batch_dims + 1] = w.n
    r = empty_tensor(batch_dims + 2, sizes, like.dtype, place_of(like))
    w.out[0] = memory_of(r)
    w.step[0] = <int64_t>w.n * w.k * w.size
    return r


cdef TensorBase linalg_lu_solve_impl(TensorBase LU, TensorBase pivots, TensorBase B, bint left, bint adjoint, TensorBase out, int mode):
    cdef Job w
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t padded[MAX_DIMS]
    cdef int d = LU.ndim, n, i
    cdef TensorBase r, info
    check_number_type("torch.linalg.lu_solve", LU)
    check_same_type("linalg.lu_solve", LU, B, "LU", "B")
    if pivots.dtype != I32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_square("torch.linalg.lu_solve", LU, "LU")
    check_matrix("torch.linalg.lu_solve", B, "B")
    if B.sizes[B.ndim - 2 if left else B.ndim - 1] != LU.sizes[d - 1]:
        raise RuntimeError(f"linalg.lu_solve: Incompatible shapes of LU and B for the equation {'AX = B' if left else 'XA = B'} "
                           f"({LU.sizes[d - 2]}x{LU.sizes[d - 1]} and {B.sizes[B.ndim - 2]}x{B.sizes[B.ndim - 1]})")
    if pivots.ndim < 1 or pivots.sizes[pivots.ndim - 1] != LU.sizes[d - 1]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if pivots.ndim != d - 1 or batch_differs(pivots, LU, d - 2):
        raise RuntimeError("linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
                           f"{shape_text(pivots)} and LU with shape {shape_text(LU)} instead")
    n = joint_batch("linalg.lu_solve", LU, 2, B, 2, sizes)
    start(&w, LU, LU.sizes[d - 1], LU.sizes[d - 1], B.sizes[B.ndim - 1 if left else B.ndim - 2])
    info = info_of(&w, LU, n, sizes)
    r = solution_of(&w, LU, left, False, n, sizes)
    stack_of(&w.a, LU, 2, n, sizes)
    stack_of(&w.b, B, 2, n, sizes)
    stack_of(&w.c, pivots, 1, n, sizes)
    if not left:
        transpose_stack(&w.b)
    # X A^H = B is conj(A) X^T = B^T, for which LAPACK has no form
    w.flag = not left and adjoint
    w.trans = b"T" if not left and not adjoint else b"C" if left and adjoint else b"N"
    run(&w, LU_SOLVE, info, LU, B, pivots)
    return finish_output("linalg_lu_solve", r, out, mode)


cdef bint batch_differs(TensorBase a, TensorBase b, int n) noexcept:
    cdef int i
    for i in range(n):
        if a.sizes[i] != b.sizes[i]:
            return True
    return False


cdef TensorBase _lu_permutation_impl(TensorBase pivots, int64_t rows):
    """Row swaps in LAPACK's notation as the order in which P L U takes the rows: int64 (*, rows)."""
    cdef Job w
    cdef int d = pivots.ndim - 1
    cdef TensorBase r, info
    if pivots.dtype != I32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
                           "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor")
    if d < 0 or rows < 0 or pivots.sizes[d] > rows:
        raise RuntimeError(f"torch.lu_unpack: pivots of shape {shape_text(pivots)} don't belong to matrices of {rows} rows")
    start(&w, pivots, rows, pivots.sizes[d], 0)
    info = info_of(&w, pivots, d, pivots.sizes)
    r = result_of(&w, 0, pivots, I64, d, pivots.sizes, 1, rows, 0)
    stack_of(&w.c, pivots, 1, d, pivots.sizes)
    run(&w, PERMUTATION, info, pivots)
    return r


# ---- systems, inverses, determinants -------------------------------------------------------------------------------


cdef bint is_vector_system(TensorBase A, TensorBase B) noexcept:
    """B holds vectors: it is one, or has A's shape without the last dimension."""
    return B.ndim == 1 or A.ndim == B.ndim + 1 and not batch_differs(A, B, B.ndim)


cdef object _linalg_solve_ex_impl(TensorBase A, TensorBase B, bint left, bint check_errors):
    """(X, LU, pivots, info) with A X = B or, without left, X A = B."""
    cdef Job w
    cdef int64_t sizes[MAX_DIMS]
    cdef int d = A.ndim, n
    cdef bint vector
    cdef TensorBase r, lu, pivots, info
    check_number_type("linalg.solve", A)
    check_same_type("linalg.solve", A, B)
    check_square("linalg.solve", A)
    vector = is_vector_system(A, B)
    if B.ndim == 0:
        raise RuntimeError("linalg.solve: B must have at least one dimension")
    if vector and not left:
        raise RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)")
    if B.sizes[B.ndim - 1 if vector or not left else B.ndim - 2] != A.sizes[d - 1]:
        raise RuntimeError(f"linalg.solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
                           f"({A.sizes[d - 2]}x{A.sizes[d - 1]} and {f'{B.sizes[B.ndim - 1]}x1' if vector else f'{B.sizes[B.ndim - 2]}x{B.sizes[B.ndim - 1]}'})")
    n = joint_batch("linalg.solve", A, 2, B, 1 if vector else 2, sizes)
    start(&w, A, A.sizes[d - 1], A.sizes[d - 1], 1 if vector else B.sizes[B.ndim - 1 if left else B.ndim - 2])
    info = info_of(&w, A, n, sizes)
    r = solution_of(&w, A, left, vector, n, sizes)
    lu = result_of(&w, 1, A, A.dtype, n, sizes, 2, w.n, w.n)
    pivots = result_of(&w, 2, A, I32, n, sizes, 1, w.n, 0)
    stack_of(&w.a, A, 2, n, sizes)
    stack_of(&w.b, B, 1 if vector else 2, n, sizes)
    if not left:
        transpose_stack(&w.b)
    w.trans = b"N" if left else b"T"
    run(&w, SOLVE, info, A, B)
    if check_errors:
        raise_info("torch.linalg.solve_ex", FAIL_SOLVE, info)
    return (r, lu, pivots, info)


cdef object linalg_solve_ex_impl(TensorBase A, TensorBase B, bint left, bint check_errors, object out, int mode):
    r = op__linalg_solve_ex(A, B, left, check_errors)
    return finish_outputs("linalg_solve_ex", (r[0], r[3]), out, mode)


cdef TensorBase linalg_solve_impl(TensorBase A, TensorBase B, bint left, TensorBase out, int mode):
    r = op__linalg_solve_ex(A, B, left, False)
    raise_info("torch.linalg.solve", FAIL_SOLVE, <TensorBase>r[3])
    return finish_output("linalg_solve", <TensorBase>r[0], out, mode)


cdef object linalg_inv_ex_impl(TensorBase A, bint check_errors, object out, int mode):
    cdef Job w
    cdef int d = A.ndim - 2
    cdef TensorBase r, info
    check_square("linalg.inv", A)
    start(&w, A, A.sizes[d], A.sizes[d], 0)
    info = info_of(&w, A, d, A.sizes)
    r = result_of(&w, 0, A, A.dtype, d, A.sizes, 2, w.n, w.n)
    stack_of(&w.a, A, 2, d, A.sizes)
    run(&w, INVERSE, info, A)
    if check_errors:
        raise_info("linalg.inv_ex", FAIL_INVERSE, info)
    return finish_outputs("linalg_inv_ex", (r, info), out, mode)


cdef TensorBase inverse_of(str name, TensorBase A, TensorBase out, int mode):
    r = op_linalg_inv_ex(A, False, None, FRESH)
    raise_info("linalg.inv", FAIL_INVERSE, <TensorBase>r[1])
    return finish_output(name, <TensorBase>r[0], out, mode)


cdef TensorBase linalg_inv_impl(TensorBase A, TensorBase out, int mode):
    return inverse_of("linalg_inv", A, out, mode)


cdef TensorBase inverse_impl(TensorBase self, TensorBase out, int mode):
    return inverse_of("inverse", self, out, mode)


cdef tuple determinants(str name, TensorBase A, bint logarithm):
    """(det or sign, logabsdet or None, LU, pivots)."""
    cdef Job w
    cdef int d = A.ndim - 2
    cdef TensorBase r, log_of = None, lu, pivots, info
    check_square(name, A)
    start(&w, A, A.sizes[d], A.sizes[d], 0)
    info = info_of(&w, A, d, A.sizes)
    lu = result_of(&w, 0, A, A.dtype, d, A.sizes, 2, w.n, w.n)
    pivots = result_of(&w, 1, A, I32, d, A.sizes, 1, w.n, 0)
    r = result_of(&w, 2, A, A.dtype, d, A.sizes, 0, 0, 0)
    if logarithm:
        log_of = result_of(&w, 3, A, to_real(A.dtype), d, A.sizes, 0, 0, 0)
    stack_of(&w.a, A, 2, d, A.sizes)
    w.flag = logarithm
    run(&w, DETERMINANT, info, A)
    return (r, log_of, lu, pivots)


cdef object _linalg_det_impl(TensorBase A):
    r = determinants("linalg.det", A, False)
    return (r[0], r[2], r[3])


cdef object _linalg_slogdet_impl(TensorBase A):
    return determinants("linalg.slogdet", A, True)


cdef TensorBase linalg_det_impl(TensorBase A, TensorBase out, int mode):
    return finish_output("linalg_det", <TensorBase>op__linalg_det(A)[0], out, mode)


cdef TensorBase det_impl(TensorBase self):
    return <TensorBase>op__linalg_det(self)[0]


cdef object linalg_slogdet_impl(TensorBase A, object out, int mode):
    r = op__linalg_slogdet(A)
    return finish_outputs("linalg_slogdet", (r[0], r[1]), out, mode)


cdef object slogdet_impl(TensorBase self, object out, int mode):
    return linalg_slogdet_impl(self, out, mode)


cdef TensorBase logdet_impl(TensorBase self):
    """log(det): NaN where a real determinant is negative."""
    r = op__linalg_slogdet(self)
    if category[self.dtype] == CAT_COMPLEX:
        return <TensorBase?>(_ops.log(r[0]) + r[1])
    return <TensorBase?>_ops.where(r[0] == -1, float("nan"), r[1])


# ---- Cholesky ------------------------------------------------------------------------------------------------------


cdef object linalg_cholesky_ex_impl(TensorBase self, bint upper, bint check_errors, object out, int mode):
    cdef Job w
    cdef int d = self.ndim - 2
    cdef TensorBase r, info
    check_square("linalg.cholesky", self)
    start(&w, self, self.sizes[d], self.sizes[d], 0)
    info = info_of(&w, self, d, self.sizes)
    r = result_of(&w, 0, self, self.dtype, d, self.sizes, 2, w.n, w.n)
    stack_of(&w.a, self, 2, d, self.sizes)
    w.uplo = b"U" if upper else b"L"
    run(&w, CHOLESKY, info, self)
    if check_errors:
        raise_info("torch.linalg.cholesky_ex", FAIL_CHOLESKY, info)
    return finish_outputs("linalg_cholesky_ex", (r, info), out, mode)


cdef TensorBase cholesky_of(str name, TensorBase self, bint upper, TensorBase out, int mode, bint exact):
    r = op_linalg_cholesky_ex(self, upper, False, None, FRESH)
    raise_info("linalg.cholesky" if exact else "cholesky", FAIL_CHOLESKY, <TensorBase>r[1])
    return finish_output(name, <TensorBase>r[0], out, mode, exact)


cdef TensorBase linalg_cholesky_impl(TensorBase self, bint upper, TensorBase out, int mode):
    return cholesky_of("linalg_cholesky", self, upper, out, mode, True)


cdef TensorBase cholesky_impl(TensorBase self, bint upper, TensorBase out, int mode):
    return cholesky_of("cholesky", self, upper, out, mode, False)


cdef TensorBase cholesky_solve_impl(TensorBase self, TensorBase input2, bint upper, TensorBase out, int mode):
    """X with A X = self, where A = input2 input2^H (upper: input2^H input2)."""
    cdef Job w
    cdef int64_t sizes[MAX_DIMS]
    cdef int d = input2.ndim, n
    cdef TensorBase r, info
    if self.ndim < 2 or d < 2:
        raise RuntimeError(f"{'b' if self.ndim < 2 else 'u'} should have at least 2 dimensions, but has {self.ndim if self.ndim < 2 else d} dimensions instead")
    check_number_type("cholesky_solve", input2)
    check_same_type("cholesky_solve", input2, self, "A", "b")
    check_square("cholesky_solve", input2)
    if self.sizes[self.ndim - 2] != input2.sizes[d - 1]:
        raise RuntimeError(f"Incompatible matrix sizes for cholesky_solve: each A matrix is {input2.sizes[d - 1]} by {input2.sizes[d - 1]} but each b matrix is "
                           f"{self.sizes[self.ndim - 2]} by {self.sizes[self.ndim - 1]}")
    n = joint_batch("cholesky_solve", input2, 2, self, 2, sizes)
    start(&w, self, input2.sizes[d - 1], input2.sizes[d - 1], self.sizes[self.ndim - 1])
    info = info_of(&w, self, n, sizes)
    r = result_of(&w, 0, self, self.dtype, n, sizes, 2, w.n, w.k)
    stack_of(&w.a, input2, 2, n, sizes)
    stack_of(&w.b, self, 2, n, sizes)
    w.uplo = b"U" if upper else b"L"
    run(&w, CHOLESKY_SOLVE, info, input2, self)
    return finish_output("cholesky_solve", r, out, mode, False)


cdef TensorBase cholesky_inverse_impl(TensorBase self, bint upper, TensorBase out, int mode):
    """The inverse of self self^H (upper: self^H self)."""
    cdef Job w
    cdef int d = self.ndim - 2
    cdef TensorBase r, info
    check_square("cholesky_inverse", self)
    start(&w, self, self.sizes[d], self.sizes[d], 0)
    info = info_of(&w, self, d, self.sizes)
    r = result_of(&w, 0, self, self.dtype, d, self.sizes, 2, w.n, w.n)
    stack_of(&w.a, self, 2, d, self.sizes)
    w.uplo = b"U" if upper else b"L"
    run(&w, CHOLESKY_INVERSE, info, self)
    raise_info("cholesky_inverse", FAIL_INVERSE, info)
    return finish_output("cholesky_inverse", r, out, mode, False)


# ---- triangular systems --------------------------------------------------------------------------------------------


cdef TensorBase linalg_solve_triangular_impl(TensorBase self, TensorBase B, bint upper, bint left, bint unitriangular, TensorBase out, int mode):
    cdef Job w
    cdef int64_t sizes[MAX_DIMS]
    cdef int d = self.ndim, n
    cdef int64_t rows, cols
    cdef TensorBase r, info
    check_number_type("linalg.solve_triangular", self)
    check_same_type("linalg.solve_triangular", self, B)
    check_square("linalg.solve_triangular", self)
    check_matrix("linalg.solve_triangular", B, "B")
    rows = B.sizes[B.ndim - 2]
    cols = B.sizes[B.ndim - 1]
    if (rows if left else cols) != self.sizes[d - 1]:
        raise RuntimeError(f"linalg.solve_triangular: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
                           f"({self.sizes[d - 2]}x{self.sizes[d - 1]} and {rows}x{cols})")
    n = joint_batch("linalg.solve_triangular", self, 2, B, 2, sizes)
    start(&w, self, rows, self.sizes[d - 1], cols)
    info = info_of(&w, self, n, sizes)
    r = result_of(&w, 0, self, self.dtype, n, sizes, 2, rows, cols)
    if r.numel:
        stack_of(&w.a, self, 2, n, sizes)
        stack_of(&w.b, B, 2, n, sizes)
        w.side = b"L" if left else b"R"
        w.uplo = b"U" if upper else b"L"
        w.diag = b"U" if unitriangular else b"N"
        w.trans = b"N"
        if w.a.cs == 1 and w.a.rs == w.a.cols:
            # a row-major matrix is its transpose to LAPACK: no copy
            transpose_stack(&w.a)
            w.uplo = b"L" if upper else b"U"
            w.trans = b"T"
        run(&w, TRIANGULAR, info, self, B)
    return finish_output("linalg_solve_triangular", r, out, mode)


# ---- LDL -----------------------------------------------------------------------------------------------------------


cdef tuple ldl_factored(TensorBase self, bint hermitian):
    cdef Job w
    cdef int d = self.ndim - 2
    check_square("torch.linalg.ldl_factor_ex", self)
    start(&w, self, self.sizes[d], self.sizes[d], 0)
    info = info_of(&w, self, d, self.sizes)
    ld = result_of(&w, 0, self, self.dtype, d, self.sizes, 2, w.n, w.n)
    pivots = result_of(&w, 1, self, I32, d, self.sizes, 1, w.n, 0)
    stack_of(&w.a, self, 2, d, self.sizes)
    w.flag = hermitian
    run(&w, LDL, info, self)
    return (ld, pivots, info)


cdef object linalg_ldl_factor_ex_impl(TensorBase self, bint hermitian, bint check_errors, object out, int mode):
    r = ldl_factored(self, hermitian)
    if check_errors:
        raise_info("torch.linalg.ldl_factor_ex", FAIL_LDL, <TensorBase>r[2])
    return finish_outputs("linalg_ldl_factor_ex", r, out, mode)


cdef object linalg_ldl_factor_impl(TensorBase self, bint hermitian, object out, int mode):
    ld, pivots, info = op_linalg_ldl_factor_ex(self, hermitian, False, None, FRESH)
    raise_info("torch.linalg.ldl_factor", FAIL_LDL, <TensorBase>info)
    return finish_outputs("linalg_ldl_factor", (ld, pivots), out, mode)


cdef TensorBase linalg_ldl_solve_impl(TensorBase LD, TensorBase pivots, TensorBase B, bint hermitian, TensorBase out, int mode):
    cdef Job w
    cdef int64_t sizes[MAX_DIMS]
    cdef int d = LD.ndim, n
    cdef TensorBase r, info
    check_square("torch.linalg.ldl_solve", LD, "LD")
    check_matrix("torch.linalg.ldl_solve", B, "B")
    check_same_type("torch.linalg.ldl_solve", LD, B, "LD", "B")
    if category[pivots.dtype] != CAT_INT:
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected pivots to be integers. Got {dtype_text(pivots.dtype)}")
    if B.sizes[B.ndim - 2] != LD.sizes[d - 1]:
        raise RuntimeError(f"torch.linalg.ldl_solve: Incompatible shapes of LD ({LD.sizes[d - 1]}x{LD.sizes[d - 1]}) and B ({B.sizes[B.ndim - 2]}x{B.sizes[B.ndim - 1]})")
    if pivots.ndim != d - 1 or batch_differs(pivots, LD, d - 1):
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {shape_text(pivots)} "
                           f"and LD with shape {shape_text(LD)} instead.")
    pivots = cast_to(pivots, I32)
    n = joint_batch("torch.linalg.ldl_solve", LD, 2, B, 2, sizes)
    start(&w, LD, LD.sizes[d - 1], LD.sizes[d - 1], B.sizes[B.ndim - 1])
    info = info_of(&w, LD, n, sizes)
    r = result_of(&w, 0, LD, LD.dtype, n, sizes, 2, w.n, w.k)
    stack_of(&w.a, LD, 2, n, sizes)
    stack_of(&w.b, B, 2, n, sizes)
    stack_of(&w.c, pivots, 1, n, sizes)
    w.flag = hermitian
    run(&w, LDL_SOLVE, info, LD, B, pivots)
    return finish_output("linalg_ldl_solve", r, out, mode)


# QR and Householder reflections, eigenvalues, singular values, least squares.


cdef TensorBase computed_in(TensorBase t, TensorBase out):
    """A factorisation is computed in the precision of `out` where that is the higher one."""
    if ITEM_SIZE[out.dtype] > ITEM_SIZE[t.dtype] and category[t.dtype] == category[out.dtype] and is_blas_type(t.dtype):
        return <TensorBase?>t.to(dtype_of(out.dtype))
    return t


cdef bint vectors_needed(TensorBase t) noexcept:
    """Whether values alone will be differentiated, which takes the vectors."""
    return t.requires_grad and grad_mode() or t.keys & (K_FORWARD_AD | K_WRAPPED) != 0


# ---- QR ------------------------------------------------------------------------------------------------------------


cdef object _linalg_qr_impl(TensorBase A, object kind):
    """(Q, R); k: columns of Q and rows of R, flag: Q is wanted."""
    cdef Job w
    cdef int d = A.ndim - 2
    cdef TensorBase q, r, info
    cdef int64_t columns
    if kind not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{kind}' but expected one of 'reduced' (default), 'r', or 'complete'")
    check_matrix("linalg.qr", A)
    start(&w, A, A.sizes[d], A.sizes[d + 1], A.sizes[d] if kind == "complete" else min(A.sizes[d], A.sizes[d + 1]))
    info = info_of(&w, A, d, A.sizes)
    r = result_of(&w, 1, A, A.dtype, d, A.sizes, 2, w.k, w.n)
    if kind == "r":
        columns = 0
        q = empty_tensor(1, &columns, A.dtype, place_of(A))
    else:
        q = result_of(&w, 0, A, A.dtype, d, A.sizes, 2, w.m, w.k)
    stack_of(&w.a, A, 2, d, A.sizes)
    w.flag = kind != "r"
    if not w.flag:
        w.out[0] = NULL
        w.step[0] = 0
    run(&w, QR, info, A)
    return (q, r)


cdef object geqrf_impl(TensorBase self, object out, int mode):
    cdef Job w
    cdef int d = self.ndim - 2
    cdef TensorBase a, tau, info
    if mode == OUT:
        self = computed_in(self, <TensorBase>out[0])
    check_matrix("geqrf", self, "input")
    start(&w, self, self.sizes[d], self.sizes[d + 1], 0)
    info = info_of(&w, self, d, self.sizes)
    a = result_of(&w, 0, self, self.dtype, d, self.sizes, 2, w.m, w.n)
    tau = result_of(&w, 1, self, self.dtype, d, self.sizes, 1, min(w.m, w.n), 0)
    stack_of(&w.a, self, 2, d, self.sizes)
    run(&w, GEQRF, info, self)
    return finish_outputs("geqrf", (a, tau), out, mode, False)


cdef TensorBase linalg_householder_product_impl(TensorBase input, TensorBase tau, TensorBase out, int mode):
    cdef Job w
    cdef int d = input.ndim - 2
    cdef TensorBase r, info
    if mode == OUT:
        input = computed_in(input, out)
        tau = computed_in(tau, out)
    if d < 0:
        raise RuntimeError("torch.linalg.householder_product: input must have at least 2 dimensions.")
    if input.sizes[d] < input.sizes[d + 1]:
        raise RuntimeError("torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if tau.ndim < 1 or input.sizes[d + 1] < tau.sizes[tau.ndim - 1]:
        raise RuntimeError("torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if tau.ndim != d + 1 or batch_differs(tau, input, d):
        raise RuntimeError(f"torch.linalg.householder_product: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {shape_text(tau)} for input of shape {shape_text(input)}")
    check_number_type("torch.linalg.householder_product", input)
    if input.dtype != tau.dtype:
        raise RuntimeError(f"torch.linalg.householder_product: tau dtype {dtype_text(tau.dtype)} does not match input dtype {dtype_text(input.dtype)}")
    start(&w, input, input.sizes[d], input.sizes[d + 1], tau.sizes[d])
    info = info_of(&w, input, d, input.sizes)
    r = result_of(&w, 0, input, input.dtype, d, input.sizes, 2, w.m, w.n)
    if r.numel:
        stack_of(&w.a, input, 2, d, input.sizes)
        stack_of(&w.b, tau, 1, d, input.sizes)
        run(&w, HOUSEHOLDER, info, input, tau)
    return finish_output("linalg_householder_product", r, out, mode, False)


cdef TensorBase orgqr_impl(TensorBase self, TensorBase input2, TensorBase out, int mode):
    return op_linalg_householder_product(self, input2, out, mode)


cdef TensorBase ormqr_impl(TensorBase self, TensorBase input2, TensorBase input3, bint left, bint transpose, TensorBase out, int mode):
    cdef Job w
    cdef int d = input3.ndim - 2, side = d if left else d + 1
    cdef TensorBase r, info
    if self.ndim < 2:
        raise RuntimeError("torch.ormqr: input must have at least 2 dimensions.")
    if d < 0:
        raise RuntimeError("torch.ormqr: other must have at least 2 dimensions.")
    if input2.ndim < 1 or input2.sizes[input2.ndim - 1] > input3.sizes[side]:
        raise RuntimeError(f"torch.ormqr: other.shape[{-2 if left else -1}] must be greater than or equal to tau.shape[-1]")
    if self.sizes[self.ndim - 2] != input3.sizes[side]:
        raise RuntimeError(f"torch.ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2]")
    if input2.sizes[input2.ndim - 1] > self.sizes[self.ndim - 1]:
        raise RuntimeError("torch.ormqr: tau.shape[-1] must be less than or equal to input.shape[-1]")
    if input2.ndim != self.ndim - 1:
        raise RuntimeError("torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal to "
                           f"{input2.ndim} and input.ndim is equal to {self.ndim}")
    if input3.ndim != self.ndim:
        raise RuntimeError(f"torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to {input3.ndim} and input.ndim is equal to {self.ndim}")
    if batch_differs(input2, self, d):
        raise RuntimeError(f"torch.ormqr: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {shape_text(input2)}")
    if batch_differs(input3, self, d):
        raise RuntimeError(f"torch.ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], but got {shape_text(input3)}")
    check_number_type("torch.ormqr", self)
    if input2.dtype != self.dtype or input3.dtype != self.dtype:
        raise RuntimeError(f"torch.ormqr: Expected input, tau and other to have the same dtype, but got {dtype_text(self.dtype)}, {dtype_text(input2.dtype)} and {dtype_text(input3.dtype)}")
    start(&w, self, input3.sizes[d], input3.sizes[d + 1], input2.sizes[d])
    info = info_of(&w, self, d, self.sizes)
    r = result_of(&w, 0, self, self.dtype, d, self.sizes, 2, w.m, w.n)
    if r.numel:
        stack_of(&w.a, self, 2, d, self.sizes)
        w.a.cols = w.k
        stack_of(&w.b, input2, 1, d, self.sizes)
        stack_of(&w.c, input3, 2, d, self.sizes)
        w.side = b"L" if left else b"R"
        w.trans = b"N" if not transpose else b"C" if w.t >= 2 else b"T"
        run(&w, ORMQR, info, self, input2, input3)
    return finish_output("ormqr", r, out, mode)


# ---- eigenvalues ---------------------------------------------------------------------------------------------------


cdef object _linalg_eigh_impl(TensorBase A, object UPLO, bint compute_v):
    """(eigenvalues ascending, vectors); the vectors have no elements without compute_v."""
    cdef Job w
    cdef int d = A.ndim - 2
    cdef int64_t n, nothing = 0
    cdef TensorBase values, vectors, info
    check_square("linalg.eigh", A)
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    start(&w, A, A.sizes[d], A.sizes[d], 0)
    n = w.n
    info = info_of(&w, A, d, A.sizes)
    values = result_of(&w, 0, A, to_real(A.dtype), d, A.sizes, 1, n, 0)
    vectors = result_of(&w, 1, A, A.dtype, d, A.sizes, 2, n, n) if compute_v else empty_tensor(1, &nothing, A.dtype, place_of(A))
    if n:
        stack_of(&w.a, A, 2, d, A.sizes)
        w.flag = compute_v
        w.uplo = b"U" if UPLO in ("U", "u") else b"L"
        run(&w, EIGH, info, A)
        raise_info("linalg.eigh" if compute_v else "linalg.eigvalsh", FAIL_EIGEN, info)
    return (values, vectors)


cdef object linalg_eigh_impl(TensorBase A, object UPLO, object out, int mode):
    return finish_outputs("linalg_eigh", op__linalg_eigh(A, UPLO, True), out, mode)


cdef TensorBase linalg_eigvalsh_impl(TensorBase A, object UPLO, TensorBase out, int mode):
    # the derivative needs the vectors
    return finish_output("linalg_eigvalsh", <TensorBase>op__linalg_eigh(A, UPLO, vectors_needed(A))[0], out, mode)


cdef object _linalg_eig_impl(TensorBase A, bint compute_v):
    """(eigenvalues, vectors), complex; the vectors have no elements without compute_v."""
    cdef Job w
    cdef int d = A.ndim - 2, code = to_complex(A.dtype)
    cdef int64_t n, nothing = 0
    cdef TensorBase values, vectors, info
    check_square("linalg.eig", A)
    start(&w, A, A.sizes[d], A.sizes[d], 0)
    n = w.n
    info = info_of(&w, A, d, A.sizes)
    values = result_of(&w, 0, A, code, d, A.sizes, 1, n, 0)
    vectors = result_of(&w, 1, A, code, d, A.sizes, 2, n, n) if compute_v else empty_tensor(1, &nothing, code, place_of(A))
    if n and w.count:
        stack_of(&w.a, A, 2, d, A.sizes)
        w.flag = compute_v
        run(&w, EIG, info, A)
        if has_code(info, NOT_FINITE):
            raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
        raise_info("torch.linalg.eig" if compute_v else "torch.linalg.eigvals", FAIL_EIGEN, info)
    return (values, vectors)


cdef object linalg_eig_impl(TensorBase A, object out, int mode):
    return finish_outputs("linalg_eig", op__linalg_eig(A, True), out, mode, False)


cdef TensorBase linalg_eigvals_impl(TensorBase A, TensorBase out, int mode):
    return finish_output("linalg_eigvals", <TensorBase>op__linalg_eig(A, vectors_needed(A))[0], out, mode, False)


# ---- singular values -----------------------------------------------------------------------------------------------


cdef object _linalg_svd_impl(TensorBase self, bint full_matrices, bint values_only):
    """(U, S, Vh) of the last two dimensions; U and Vh have no elements under values_only."""
    cdef Job w
    cdef int d = self.ndim - 2
    cdef int64_t m, n, k
    cdef TensorBase u, s, vh, info
    check_matrix("linalg.svd", self)
    start(&w, self, self.sizes[d], self.sizes[d + 1], 0)
    m = w.m
    n = w.n
    k = min(m, n)
    info = info_of(&w, self, d, self.sizes)
    s = result_of(&w, 0, self, to_real(self.dtype), d, self.sizes, 1, k, 0)
    u = result_of(&w, 1, self, self.dtype, d, self.sizes, 2, m, 0 if values_only else m if full_matrices else k)
    vh = result_of(&w, 2, self, self.dtype, d, self.sizes, 2, 0 if values_only else n if full_matrices else k, n)
    if w.count == 0:
        return (u, s, vh)
    if k == 0:
        # nothing to decompose: any orthogonal matrix will do
        for factor in (u, vh):
            if (<TensorBase>factor).numel:
                factor.copy_(_ops.eye(factor.size(-1), dtype=dtype_of(self.dtype), device=self.device))
        return (u, s, vh)
    stack_of(&w.a, self, 2, d, self.sizes)
    w.flag = 0 if values_only else 2 if full_matrices else 1
    run(&w, SVD, info, self)
    raise_info("linalg.svd", FAIL_SVD, info)
    return (u, s, vh)


cdef object linalg_svd_impl(TensorBase A, bint full_matrices, object driver, object out, int mode):
    run_svd_driver(A.device_type, driver)
    return finish_outputs("linalg_svd", op__linalg_svd(A, full_matrices, False), out, mode)


cdef TensorBase linalg_svdvals_impl(TensorBase A, object driver, TensorBase out, int mode):
    run_svd_driver(A.device_type, driver)
    return finish_output("linalg_svdvals", <TensorBase>op__linalg_svd(A, False, not vectors_needed(A))[1], out, mode)


# ---- least squares -------------------------------------------------------------------------------------------------


cdef object _linalg_lstsq_impl(TensorBase self, TensorBase b, double rcond, object driver):
    """(X, rank, singular values) of A X = B; b: (*, m, k), its batch dimensions broadcast with A's."""
    cdef Job w
    cdef int64_t sizes[MAX_DIMS]
    cdef int d = self.ndim, batch_dims
    cdef int64_t m, n, k
    cdef TensorBase x, rank, s, info
    check_matrix("torch.linalg.lstsq", self, "input")
    check_matrix("torch.linalg.lstsq", b, "other")
    check_same_type("torch.linalg.lstsq", self, b, "input", "other")
    if b.sizes[b.ndim - 2] != self.sizes[d - 2]:
        raise RuntimeError(f"torch.linalg.lstsq: input of shape {shape_text(self)} and other of shape {shape_text(b)} must have as many rows")
    batch_dims = joint_batch("torch.linalg.lstsq", self, 2, b, 2, sizes)
    start(&w, self, self.sizes[d - 2], self.sizes[d - 1], b.sizes[b.ndim - 1])
    m = w.m
    n = w.n
    k = w.k
    info = info_of(&w, self, batch_dims, sizes)
    x = result_of(&w, 0, self, self.dtype, batch_dims, sizes, 2, n, k)
    rank = result_of(&w, 1, self, I64, batch_dims, sizes, 0, 0, 0)
    s = result_of(&w, 2, self, to_real(self.dtype), batch_dims, sizes, 1, min(m, n), 0)
    if w.count == 0:
        return (x, rank, s)
    if m == 0 or n == 0 or k == 0:
        for r in (x, rank, s):
            r.zero_()
        return (x, rank, s)
    stack_of(&w.a, self, 2, batch_dims, sizes)
    stack_of(&w.b, b, 2, batch_dims, sizes)
    w.flag = GELS if driver == "gels" else GELSY if driver == "gelsy" else GELSD if driver == "gelsd" else GELSS
    w.tolerance = rcond
    if w.flag == GELS:  # which computes neither
        rank.fill_(min(m, n))
        s.zero_()
    run(&w, LEAST_SQUARES, info, self, b)
    raise_info("torch.linalg.lstsq", FAIL_LEAST_SQUARES, info)
    return (x, rank, s)
