# Linear algebra over LAPACK. A call is a Job (core/linalg_job.h): stacks of matrices with any strides come in, dense results leave,
# and one function handles one matrix of the batch. Every matrix is handled by one thread, so bits do not depend on how many there
# are; the matrices of a batch are shared out among them. On CUDA the same Job goes to cysrc/cuda/linalg.pyx. Kernels are in linalg_solve.pxi and linalg_spectral.pxi; what is composed of
# them, and their derivatives, is Python: tensorrt_lite/linalg.
from libc.limits cimport INT_MAX
from libc.math cimport hypot, log
from tensorrt_lite._C.core.blas cimport blas_load, blas_begin, blas_end
from tensorrt_lite._C.core.blas import library as blas_library

cdef extern from "linalg_job.h" nogil:
    ctypedef struct trt_stack:
        const char* data
        int64_t rows, cols, rs, cs
        int batch_dims
        int64_t sizes[64]
        int64_t strides[64]
    enum:
        LU "TRT_LU"
        LU_SOLVE "TRT_LU_SOLVE"
        PERMUTATION "TRT_PERMUTATION"
        SOLVE "TRT_SOLVE"
        INVERSE "TRT_INVERSE"
        DETERMINANT "TRT_DETERMINANT"
        CHOLESKY "TRT_CHOLESKY"
        CHOLESKY_SOLVE "TRT_CHOLESKY_SOLVE"
        CHOLESKY_INVERSE "TRT_CHOLESKY_INVERSE"
        TRIANGULAR "TRT_TRIANGULAR"
        LDL "TRT_LDL"
        LDL_SOLVE "TRT_LDL_SOLVE"
        QR "TRT_QR"
        GEQRF "TRT_GEQRF"
        HOUSEHOLDER "TRT_HOUSEHOLDER"
        ORMQR "TRT_ORMQR"
        EIGH "TRT_EIGH"
        EIG "TRT_EIG"
        SVD "TRT_SVD"
        LEAST_SQUARES "TRT_LEAST_SQUARES"
    ctypedef struct Job "trt_linalg_job":
        int t, size, m, n, k, flag
        char uplo, trans, side, diag
        int lwork, liwork
        double tolerance
        int64_t count, scratch
        int64_t part[6]
        int (*one)(Job* w, int64_t i, char* scratch) noexcept nogil
        int* info
        trt_stack a, b, c
        char* out[4]
        int64_t step[4]

cdef extern from "lapack.h" nogil:
    enum:
        GELS
        GELSY
        GELSD
        GELSS
    ctypedef struct trt_linalg_table:
        pass
    const trt_linalg_table* trt_small
    const char* trt_lapack_open(const char* path)
    const char* trt_stack_item(const trt_stack* s, int64_t i, int size)
    void trt_copy_matrix(int size, int64_t rows, int64_t cols, char* to, int64_t trs, int64_t tcs, const char* frm, int64_t frs, int64_t fcs)
    int trt_all_finite(int t, int64_t n, const void* x)
    int trt_any_nan(int t, int64_t n, const void* x)
    void trt_diagonal_item(int t, const void* a, int64_t n, int64_t i, double* value)
    void trt_put(int t, void* x, int64_t i, double re, double im)
    int trt_work_size(int t, const void* work)
    void trt_clear_triangle(int size, int64_t n, char* a, int upper)
    int trt_getrf(int t, int m, int n, void* a, int* pivots)
    int trt_getrs(int t, char trans, int n, int k, const void* lu, const int* pivots, void* b)
    int trt_getri(int t, int n, void* a, const int* pivots, void* work, int lwork)
    int trt_potrf(int t, char uplo, int n, void* a)
    int trt_potrs(int t, char uplo, int n, int k, const void* a, void* b)
    int trt_potri(int t, char uplo, int n, void* a)
    void trt_trsm(int t, char side, char uplo, char trans, char diag, int m, int n, const void* a, void* b)
    int trt_geqrf(int t, int m, int n, void* a, void* tau, void* work, int lwork)
    int trt_orgqr(int t, int m, int n, int k, void* a, const void* tau, void* work, int lwork)
    int trt_ormqr(int t, char side, char trans, int m, int n, int k, const void* a, const void* tau, void* c, void* work, int lwork)
    int trt_syevd(int t, char job, char uplo, int n, void* a, void* w, void* work, int lwork, void* rwork, int lrwork, int* iwork, int liwork)
    int trt_geev(int t, char job, int n, void* a, void* w, void* v, void* work, int lwork, void* rwork)
    int trt_gesdd(int t, char job, int m, int n, void* a, void* s, void* u, void* vt, int ldvt, void* work, int lwork, void* rwork, int* iwork)
    int trt_least_squares(int t, int routine, int m, int n, int k, void* a, void* b, void* s, int* pivots, double tolerance, int* rank, void* work, int lwork,
                          void* rwork, int* iwork)
    int trt_ldl_factor(int t, int hermitian, int n, void* a, int* pivots, void* work, int lwork)
    int trt_ldl_solve(int t, int hermitian, int n, int k, const void* a, const int* pivots, void* b)

cdef extern from *:
    """
    ISA_TABLE(trt_linalg_table, trt_linalg)
    """
    const trt_linalg_table* trt_linalg()

trt_small = trt_linalg()

cdef enum:
    THREAD_WORK = 1 << 16        # multiplications worth another thread: some 10 us
    # what a kernel reports besides LAPACK's own numbers
    NOT_FINITE = -1000
    BAD_PIVOTS = -1001
    NO_MEMORY = -1002
    BLOCK = 64                   # columns that LAPACK treats at a time, at most: sizes its workspaces

ctypedef int (*one_matrix)(Job* w, int64_t i, char* scratch) noexcept nogil
# Runs a Job on CUDA, set by cysrc/cuda/linalg.pyx.
ctypedef int (*device_routine_t)(Job* w, int routine, TensorBase info, TensorBase a, TensorBase b, TensorBase c) except -1

cdef device_routine_t device_routine = NULL


def _set_device_routine(size_t function):
    global device_routine
    device_routine = <device_routine_t>function

include "solve.pxi"
include "spectral.pxi"

cdef bint lapack_loaded = False


cdef int load_lapack() except -1:
    global lapack_loaded
    cdef const char* missing
    if lapack_loaded:
        return 0
    path = blas_library()[0]
    missing = trt_lapack_open(path.encode())
    if missing != NULL:
        raise ImportError(f"LAPACK at {path} can't be used: {missing.decode()}")
    lapack_loaded = True
    return 0


# ---- running a Job -------------------------------------------------------------------------------------------------

cdef void run_items(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Job* w = <Job*>context
    cdef int64_t i
    cdef char* scratch = <char*>malloc(w.scratch) if w.scratch else NULL
    for i in range(begin, end):
        w.info[i] = w.one(w, i, scratch) if scratch != NULL or not w.scratch else NO_MEMORY
    free(scratch)


cdef int run(Job* w, int routine, one_matrix one, TensorBase info, double work, TensorBase a, TensorBase b=None, TensorBase c=None) except -1:
    """Handle all matrices, each by `one`; a, b, c own the memory of the inputs, work is the multiplications of one matrix."""
    cdef trt_block* held[3]
    cdef int j, n = 0
    cdef int64_t grain = <int64_t>(THREAD_WORK / (work + 1)) + 1
    if w.count == 0:
        return 0
    w.info = <int*>data_of(info)
    if info.device_type == DEV_CUDA:
        return device_routine(w, routine, info, a, b, c)
    load_lapack()
    w.one = one
    # another Python thread may resize an input while the GIL is released
    for t in (a, b, c):
        if t is not None:
            held[n] = (<TensorBase>t).storage.block
            trt_block_hold(held[n])
            n += 1
    with nogil:
        blas_begin(1)
        parallel_for(w.count, grain, 1, run_items, w)
        blas_end()
    for j in range(n):
        block_drop(held[j])
    for j in range(w.count):
        if w.info[j] == NO_MEMORY:
            raise MemoryError(f"linear algebra: {w.scratch} bytes to work in can't be had")
    return 0


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


cdef int workspace(int64_t n) except -1:
    """How many numbers a blocked routine gets to work in: at least n, for blocks of columns where that is no waste."""
    return <int>max(1, n, min(n * BLOCK, <int64_t>1 << 22))


cdef int in_int(int64_t n) except -1:
    if n > INT_MAX:
        raise RuntimeError(f"linear algebra: a workspace of {n} numbers is too large for 32-bit LAPACK")
    return <int>n


cdef int reserve(Job* w, int j, int64_t nbytes) noexcept:
    """Part j of the scratch memory, on a boundary of 16 bytes."""
    w.part[j] = w.scratch
    w.scratch += (nbytes + 31) // 16 * 16
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
    s.data = data_of(t) if t.numel else NULL
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


cdef inline void take(Job* w, const trt_stack* s, int64_t i, char* to) noexcept nogil:
    """Matrix i of an input as a dense column-major one."""
    trt_copy_matrix(w.size, s.rows, s.cols, to, 1, s.rows, trt_stack_item(s, i, w.size), s.rs, s.cs)


cdef inline const char* dense_item(Job* w, const trt_stack* s, int64_t i, char* scratch) noexcept nogil:
    """Matrix i as it lies if it is dense and column-major, otherwise its copy."""
    if (s.rs == 1 or s.rows == 1) and (s.cs == s.rows or s.cols == 1):
        return trt_stack_item(s, i, w.size)
    take(w, s, i, scratch)
    return scratch


cdef void conjugate(Job* w, int64_t n, char* x) noexcept nogil:
    cdef int64_t i
    if w.t == 2:
        for i in range(n):
            (<float*>x)[2 * i + 1] = -(<float*>x)[2 * i + 1]
    elif w.t == 3:
        for i in range(n):
            (<double*>x)[2 * i + 1] = -(<double*>x)[2 * i + 1]


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
    if like.device_type != DEV_META:
        w.out[j] = data_of(r)
        w.step[j] = step * ITEM_SIZE[code]
    return r


cdef TensorBase info_of(Job* w, TensorBase like, int batch_dims, const int64_t* batch):
    w.count = batch_count(batch_dims, batch)
    return empty_tensor(batch_dims, batch, I32, place_of(like))


cdef inline char* result_item(Job* w, int j, int64_t i) noexcept nogil:
    return w.out[j] + i * w.step[j]


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


cdef int raise_info(str name, int failure, TensorBase info) except -1:
    """LinAlgError when any matrix of the batch failed. Of a device's results it waits for the info codes."""
    cdef int64_t i
    cdef int code
    if info.device_type == DEV_META:
        return 0
    info = <TensorBase?>info.cpu()
    for i in range(info.numel):
        code = (<int*>data_of(info))[i]
        if code == 0:
            continue
        if code == BAD_PIVOTS:
            raise RuntimeError(f"{name}: the pivots must be between 1 and the number of rows, as the factorization returns them")
        where = f"(Batch element {i}): " if info.ndim else ""
        if code < 0:
            raise LinAlgError(f"{name}: {where}The algorithm failed to converge because the input matrix contained non-finite values.")
        raise LinAlgError(f"{name}: {where}{_failures[failure].format(code)}")
    return 0


