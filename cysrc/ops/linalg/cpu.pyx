"""Linear algebra on the CPU: LAPACK, one matrix of the batch per call and thread, so that bits do not depend on how many there are; small matrices by
loops/linalg.c. Each routine has a function for one matrix and, in `prepare`, what it needs to work in."""
from libc.limits cimport INT_MAX
from libc.math cimport fabs, hypot, isfinite, log
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from tensorrt_lite._C.core.allocator cimport trt_block
from tensorrt_lite._C.core.blas cimport blas_begin, blas_end
from tensorrt_lite._C.core.blas import library as blas_library
from tensorrt_lite._C.core.device cimport DEV_CPU, DEV_CUSTOM, LAST_CUSTOM
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport F32, F64
from tensorrt_lite._C.core.parallel cimport parallel_for
from tensorrt_lite._C.core.iterator cimport on_host
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of
from tensorrt_lite._C.ops.held_blocks cimport drop_blocks, hold_blocks
from tensorrt_lite._C.ops.linalg.job cimport (
    BAD_PIVOTS, CHOLESKY, CHOLESKY_INVERSE, CHOLESKY_SOLVE, DETERMINANT, EIG, EIGH, GEQRF, HOUSEHOLDER, INVERSE, Job, LDL, LDL_SOLVE, LEAST_SQUARES, LU,
    LU_SOLVE, NO_MEMORY, NOT_FINITE, ORMQR, PERMUTATION, QR, SOLVE, SVD, TRIANGULAR, trt_stack)
from tensorrt_lite._C.ops.matmul.packed cimport subtract_product
from tensorrt_lite._C.steps.linalg cimport set_linalg_codes, set_linalg_job, set_svd_driver


cdef extern from "lapack.h" nogil:
    enum:
        LAPACK_GELS "GELS"
        LAPACK_GELSD "GELSD"
        LAPACK_GELSY "GELSY"
    ctypedef struct trt_linalg_table:
        pass
    ctypedef struct trt_tridiagonal_kernels:
        pass
    const trt_linalg_table* trt_small
    const trt_tridiagonal_kernels* trt_ql
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
    int trt_tridiagonal_eigenvalues(int t, int n, void* d, void* e, void* z, void* work, int lwork, int* iwork, int liwork)
    int trt_geev(int t, char job, int n, void* a, void* w, void* v, void* work, int lwork, void* rwork)
    int trt_gesdd(int t, char job, int m, int n, void* a, void* s, void* u, void* vt, int ldvt, void* work, int lwork, void* rwork, int* iwork)
    int trt_least_squares(int t, int routine, int m, int n, int k, void* a, void* b, void* s, int* pivots, double tolerance, int* rank, void* work, int lwork,
                          void* rwork, int* iwork)
    bint trt_column_counts(int t, int i, int n, const void* column, double rcond, void* values, void* vectors)
    void trt_tzrzf(int t, int m, int n, void* a, void* tau, void* work, int lwork)
    void trt_ormrz(int t, int m, int n, int k, const void* a, const void* tau, void* c, int ldc, void* work, int lwork)
    int trt_ldl_factor(int t, int hermitian, int n, void* a, int* pivots, void* work, int lwork)
    int trt_ldl_solve(int t, int hermitian, int n, int k, const void* a, const int* pivots, void* b)

cdef extern from *:
    """
    #include "isa.h"
    ISA_TABLE(trt_linalg_table, trt_linalg)
    """
    const trt_linalg_table* trt_linalg()

cdef extern from *:
    """
    #include "linalg_tridiagonal.h"
    ISA_TABLE(trt_tridiagonal_kernels, trt_linalg_tridiagonal)
    """
    const trt_tridiagonal_kernels* trt_linalg_tridiagonal()

trt_small = trt_linalg()
trt_ql = trt_linalg_tridiagonal()

cdef extern from "linalg_blocks.h" nogil:
    ctypedef struct trt_products:
        void (*subtract)(trt_products* self, int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, int64_t acs, const void* b, int64_t ldb, void* c, int64_t ldc) noexcept nogil
        char* workspace
        int64_t bytes
        int type, failed
    ctypedef struct trt_block_kernels:
        int (*lu)(trt_products* p, int64_t m, int64_t n, void* a, int64_t lda, int* pivots) noexcept nogil
        void (*triangle)(trt_products* p, int64_t n, const void* t, int64_t rs, int64_t cs, bint upper, bint unit, void* b, int64_t ldb, int64_t columns) noexcept nogil
        void (*swap_rows)(void* a, int64_t lda, int64_t columns, const int* pivots, int64_t count, bint backwards) noexcept nogil
        void (*transpose)(int64_t rows, int64_t columns, const void* source, int64_t ldf, void* to, int64_t ldt) noexcept nogil

cdef extern from *:
    """
    #include "isa.h"
    #include "linalg_blocks.h"
    ISA_TABLE(trt_block_kernels, trt_linalg_blocks)
    """
    const trt_block_kernels* trt_linalg_blocks()

cdef const trt_block_kernels* BLOCKS = trt_linalg_blocks()

cdef extern from "linalg_reflectors.h" nogil:
    enum:
        REFLECTOR_BLOCK, REFLECTOR_ROWS
    ctypedef struct trt_reflector_kernels:
        double (*largest)(int64_t n, const void* x) noexcept nogil
        int64_t (*work_size)(int64_t rows) noexcept nogil
        void (*qr)(int64_t m, int64_t n, void* a, int64_t lda, void* tau, void* triangles, void* work) noexcept nogil
        void (*generate_q)(int64_t m, int64_t n, int64_t k, void* q, int64_t ldq, const void* tau, const void* triangles, void* work) noexcept nogil
        void (*multiply_q)(bint transposed, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda, const void* tau, void* c, int64_t ldc, void* work) noexcept nogil
        void (*tridiagonal)(int64_t n, void* a, int64_t lda, void* d, void* e, void* tau, void* work) noexcept nogil
        int64_t (*pivoted_work_size)(int64_t m, int64_t n) noexcept nogil
        void (*pivoted_qr)(int64_t m, int64_t n, void* a, int64_t lda, void* tau, int* pivots, void* work) noexcept nogil

cdef extern from *:
    """
    #include "isa.h"
    #include "linalg_reflectors.h"
    ISA_TABLE(trt_reflector_kernels, trt_linalg_reflectors)
    """
    const trt_reflector_kernels* trt_linalg_reflectors()

cdef const trt_reflector_kernels* REFLECTORS = trt_linalg_reflectors()

cdef enum:
    THREAD_WORK = 1 << 16        # multiplications worth another thread: some 10 us
    BLOCKED = 48                 # rows of real matrices from which on LU and triangular systems are blocks and GEMMs (loops/linalg_blocks.c)
    RIGHT_SIDES = 8              # of a system, from which on that is so
    REFLECTED = 8                # reflectors of real matrices from which on they are blocks of loops/linalg_reflectors.c
    BLOCK = 64                   # columns that LAPACK treats at a time, at most: sizes its workspaces

ctypedef int (*one_matrix)(Job* w, int64_t i, char* scratch) noexcept nogil


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


cdef inline char* result_item(Job* w, int j, int64_t i) noexcept nogil:
    return w.out[j] + i * w.step[j]


cdef void take(Job* w, const trt_stack* s, int64_t i, char* to) noexcept nogil:
    """Matrix i of an input as a dense column-major one."""
    take_strided(w, s.rows, s.cols, trt_stack_item(s, i, w.size), s.rs, s.cs, to, s.rows)


cdef void take_strided(Job* w, int64_t rows, int64_t cols, const char* source, int64_t rs, int64_t cs, char* to, int64_t ld) noexcept nogil:
    """A matrix of any strides as a column-major one."""
    if cs == 1 and rs != 1 and w.size <= 8:
        BLOCKS[1 if w.size == 8 else 0].transpose(rows, cols, source, rs, to, ld)
    else:
        trt_copy_matrix(w.size, rows, cols, to, 1, ld, source, rs, cs)


cdef inline bint is_dense(const trt_stack* s) noexcept nogil:
    """Whether matrices lie as LAPACK takes them: column-major, without gaps."""
    return (s.rs == 1 or s.rows == 1) and (s.cs == s.rows or s.cols == 1)


cdef inline const char* dense_item(Job* w, const trt_stack* s, int64_t i, char* scratch) noexcept nogil:
    """Matrix i as it lies if it is dense, otherwise its copy."""
    if is_dense(s):
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


cdef inline bint reflected(const Job* w, int64_t reflectors) noexcept nogil:
    return w.t < 2 and reflectors >= REFLECTED and REFLECTORS.qr != NULL    # none for processors before AVX2


cdef inline int64_t reflector_bytes(const Job* w, int64_t rows) noexcept nogil:
    return REFLECTORS[w.t & 1].work_size(rows) * w.size + 64


cdef inline int64_t padded_rows(const Job* w, int64_t n) noexcept nogil:
    """Rows of a matrix that becomes tridiagonal, or has its columns pivoted: columns begin at boundaries of 64 bytes, and not whole pages apart, where they would share sets of
    the cache."""
    cdef int64_t rows = (n + REFLECTOR_ROWS - 1) // REFLECTOR_ROWS * REFLECTOR_ROWS
    return rows + REFLECTOR_ROWS if rows * w.size % 1024 == 0 else rows


cdef void clear_padding(const Job* w, int64_t m, int64_t n, char* a, int64_t rows) noexcept nogil:
    cdef int64_t j
    for j in range(n):
        memset(a + (j * rows + m) * w.size, 0, (rows - m) * w.size)


cdef inline char* aligned(char* work) noexcept nogil:
    return work + (-<int64_t>work & 63)


# ---- LU and triangles by blocks ----------------------------------------------------------------------------------------

cdef void subtract(trt_products* p, int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, int64_t acs, const void* b, int64_t ldb, void* c, int64_t ldc) noexcept nogil:
    if subtract_product(F64 if p.type else F32, m, n, k, <const char*>a, ars, acs, <const char*>b, ldb, <char*>c, ldc, &p.workspace, &p.bytes):
        p.failed = 1


cdef inline void begin_products(trt_products* p, int t) noexcept nogil:
    p.subtract, p.workspace, p.bytes, p.type, p.failed = subtract, NULL, 0, t, 0


cdef inline int end_products(trt_products* p, int info) noexcept nogil:
    free(p.workspace)
    return NO_MEMORY if p.failed else info


cdef int factor(int t, int64_t m, int64_t n, char* a, int* pivots) noexcept nogil:
    """getrf."""
    cdef trt_products p
    if t > 1 or min(m, n) < BLOCKED:
        return trt_getrf(t, <int>m, <int>n, a, pivots)
    begin_products(&p, t)
    return end_products(&p, BLOCKS[t].lu(&p, m, n, a, m, pivots))


cdef int solve_factored(int t, char trans, int64_t n, int64_t k, const char* lu, const int* pivots, char* b) noexcept nogil:
    """getrs."""
    cdef trt_products p
    cdef const trt_block_kernels* blocks = BLOCKS + (t & 1)
    if t > 1 or n < BLOCKED or k < RIGHT_SIDES:
        return trt_getrs(t, trans, <int>n, <int>k, lu, pivots, b)
    begin_products(&p, t)
    if trans == b"N":
        blocks.swap_rows(b, n, k, pivots, n, False)
        blocks.triangle(&p, n, lu, 1, n, False, True, b, n, k)
        blocks.triangle(&p, n, lu, 1, n, True, False, b, n, k)
    else:
        blocks.triangle(&p, n, lu, n, 1, False, False, b, n, k)
        blocks.triangle(&p, n, lu, n, 1, True, True, b, n, k)
        blocks.swap_rows(b, n, k, pivots, n, True)
    return end_products(&p, 0)


cdef int solve_triangle(int t, char side, char uplo, char trans, char diag, int64_t m, int64_t n, const char* a, char* b) noexcept nogil:
    """trsm."""
    cdef trt_products p
    cdef bint turned = trans != b"N"
    if t > 1 or side != b"L" or m < BLOCKED or n < RIGHT_SIDES:
        trt_trsm(t, side, uplo, trans, diag, <int>m, <int>n, a, b)
        return 0
    begin_products(&p, t)
    BLOCKS[t].triangle(&p, m, a, m if turned else 1, 1 if turned else m, (uplo == b"U") != turned, diag == b"U", b, m, n)
    return end_products(&p, 0)


# ---- one matrix ----------------------------------------------------------------------------------------------------

cdef int lu_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* lu = result_item(w, 0, i)
    take(w, &w.a, i, lu)
    return factor(w.t, w.m, w.n, lu, <int*>result_item(w, 1, i))


cdef int lu_solve_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    cdef const char* given = trt_stack_item(&w.c, i, 4)
    cdef int* pivots = <int*>(scratch + w.part[0])
    cdef int info
    cdef int64_t j
    for j in range(w.n):
        pivots[j] = (<const int*>given)[j * w.c.rs]
        if pivots[j] < 1 or pivots[j] > w.n:
            return BAD_PIVOTS
    take(w, &w.b, i, x)
    if w.flag:
        conjugate(w, <int64_t>w.n * w.k, x)
    info = solve_factored(w.t, w.trans, w.n, w.k, dense_item(w, &w.a, i, scratch + w.part[1]), pivots, x)
    if w.flag:
        conjugate(w, <int64_t>w.n * w.k, x)
    return NO_MEMORY if info == NO_MEMORY else 0


cdef int permutation_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef const char* pivots = trt_stack_item(&w.c, i, 4)
    cdef int64_t* order = <int64_t*>result_item(w, 0, i)
    cdef int64_t j, p
    for j in range(w.m):
        order[j] = j
    for j in range(w.n):
        p = (<const int*>pivots)[j * w.c.rs]
        if p < 1 or p > w.m:
            return BAD_PIVOTS
        order[j], order[p - 1] = order[p - 1], order[j]
    return 0


cdef int solve_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    cdef char* lu = result_item(w, 1, i)
    cdef int* pivots = <int*>result_item(w, 2, i)
    cdef int info
    take(w, &w.a, i, lu)
    take(w, &w.b, i, x)
    info = factor(w.t, w.n, w.n, lu, pivots)
    if info == NO_MEMORY or solve_factored(w.t, w.trans, w.n, w.k, lu, pivots, x) == NO_MEMORY:
        return NO_MEMORY
    return info


cdef int inverse_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    cdef int* pivots = <int*>(scratch + w.part[1])
    cdef int info
    cdef int64_t n = w.n, nbytes = n * n * w.size
    cdef char* lu
    if w.t > 1 or n < BLOCKED:
        take(w, &w.a, i, x)
        info = trt_getrf(w.t, w.n, w.n, x, pivots)
        if info == 0:
            trt_getri(w.t, w.n, x, pivots, scratch, w.lwork)
            return 0
        lu = <char*>malloc(nbytes)    # a singular matrix's quotients are infinities and NaN, as PyTorch's
        if lu == NULL:
            return NO_MEMORY
        memcpy(lu, x, nbytes)
        if invert_factored(w, lu, pivots, x) == NO_MEMORY:
            info = NO_MEMORY
        free(lu)
        return info
    take(w, &w.a, i, scratch)
    info = factor(w.t, n, n, scratch, pivots)
    if info == NO_MEMORY or invert_factored(w, scratch, pivots, x) == NO_MEMORY:
        return NO_MEMORY
    return info


cdef int invert_factored(Job* w, char* lu, int* pivots, char* x) noexcept nogil:
    """The solution for the identity, as in PyTorch."""
    cdef int64_t j
    memset(x, 0, <int64_t>w.n * w.n * w.size)
    for j in range(w.n):
        trt_put(w.t, x, j * (w.n + 1), 1, 0)
    return solve_factored(w.t, b"N", w.n, w.n, lu, pivots, x)


cdef int det_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    """The determinant, or its sign and logarithm (flag), from the factors."""
    cdef double re = 1, im = 0, total = 0, x, size
    cdef double d[2]
    cdef int64_t j
    cdef int* pivots = <int*>result_item(w, 1, i)
    cdef int info = lu_one(w, i, scratch)
    for j in range(w.n):
        trt_diagonal_item(w.t, result_item(w, 0, i), w.n, j, d)
        if pivots[j] != j + 1:
            d[0] = -d[0]
            d[1] = -d[1]
        if w.flag:
            size = hypot(d[0], d[1])
            total += log(size)
            if size > 0:
                d[0] /= size
                d[1] /= size
        if w.t < 2:
            re *= d[0]
            if w.t == 0 and not w.flag:
                re = <float>re
        else:
            x = re * d[0] - im * d[1]
            im = re * d[1] + im * d[0]
            re = x
    trt_put(w.t, w.out[2], i, re, im)
    if w.flag:
        trt_put(w.t & 1, w.out[3], i, total, 0)
    return 0


cdef int cholesky_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    take(w, &w.a, i, x)
    trt_clear_triangle(w.size, w.n, x, w.uplo == b"L")
    return trt_potrf(w.t, w.uplo, w.n, x)


cdef int cholesky_solve_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    take(w, &w.b, i, x)
    return trt_potrs(w.t, w.uplo, w.n, w.k, dense_item(w, &w.a, i, scratch), x)


cdef int cholesky_inverse_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    cdef int64_t j, n = w.n
    cdef int info
    take(w, &w.a, i, x)
    info = trt_potri(w.t, w.uplo, w.n, x)
    # mirrors the computed triangle: column j of the lower one becomes row j
    for j in range(n):
        if w.uplo == b"L":
            trt_copy_matrix(w.size, n - j - 1, 1, x + (j + (j + 1) * n) * w.size, n, n, x + (j * n + j + 1) * w.size, 1, n)
            if w.t >= 2:
                conjugate_line(w, n - j - 1, x + (j + (j + 1) * n) * w.size, n)
        else:
            trt_copy_matrix(w.size, j, 1, x + j * w.size, n, n, x + j * n * w.size, 1, n)
            if w.t >= 2:
                conjugate_line(w, j, x + j * w.size, n)
    return info


cdef inline void conjugate_line(Job* w, int64_t count, char* x, int64_t stride) noexcept nogil:
    cdef int64_t i
    for i in range(count):
        conjugate(w, 1, x + i * stride * w.size)


cdef int triangular_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    take(w, &w.b, i, x)
    return solve_triangle(w.t, w.side, w.uplo, w.trans, w.diag, w.m, w.k, dense_item(w, &w.a, i, scratch), x)


cdef int ldl_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    take(w, &w.a, i, x)
    trt_clear_triangle(w.size, w.n, x, 1)
    return trt_ldl_factor(w.t, w.flag, w.n, x, <int*>result_item(w, 1, i), scratch, w.lwork)


cdef int ldl_solve_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    cdef const char* given = trt_stack_item(&w.c, i, 4)
    cdef int* pivots = <int*>(scratch + w.part[0])
    cdef int64_t j = 0
    for j in range(w.n):
        pivots[j] = (<const int*>given)[j * w.c.rs]
        if pivots[j] == 0 or pivots[j] > w.n or pivots[j] < -w.n:
            return BAD_PIVOTS
    j = 0
    while j < w.n:                       # a negative pivot belongs to a block of two rows
        if pivots[j] < 0:
            j += 1
            if j >= w.n or pivots[j] != pivots[j - 1]:
                return BAD_PIVOTS
        j += 1
    take(w, &w.b, i, x)
    return trt_ldl_solve(w.t, w.flag, w.n, w.k, dense_item(w, &w.a, i, scratch + w.part[1]), pivots, x)


cdef int qr_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* a = scratch + w.part[0]
    cdef char* tau = scratch + w.part[1]
    cdef char* work = scratch + w.part[2]
    cdef char* q = result_item(w, 0, i)
    cdef char* r = result_item(w, 1, i)
    cdef char* triangles = NULL
    cdef int64_t c, rows = w.k, size = w.size
    cdef int info
    take(w, &w.a, i, a)
    if reflected(w, min(w.m, w.n)):
        info = 0
        triangles = scratch + w.part[3] if w.flag else NULL
        REFLECTORS[w.t].qr(w.m, w.n, a, w.m, tau, triangles, aligned(work))
    else:
        info = trt_geqrf(w.t, w.m, w.n, a, tau, work, w.lwork)
    for c in range(w.n):
        memcpy(r + c * rows * size, a + c * w.m * size, min(c + 1, rows) * size)
        if c + 1 < rows:
            memset(r + (c * rows + c + 1) * size, 0, (rows - c - 1) * size)
    if w.flag and info == 0:
        memcpy(q, a, <int64_t>w.m * min(w.n, w.k) * size)
        if triangles != NULL:
            REFLECTORS[w.t].generate_q(w.m, w.k, min(w.m, w.n), q, w.m, tau, triangles, aligned(work))
            return 0
        info = trt_orgqr(w.t, w.m, w.k, min(w.m, w.n), q, tau, work, w.lwork)
    return info


cdef int geqrf_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* a = result_item(w, 0, i)
    take(w, &w.a, i, a)
    if reflected(w, min(w.m, w.n)):
        REFLECTORS[w.t].qr(w.m, w.n, a, w.m, result_item(w, 1, i), NULL, aligned(scratch))
        return 0
    return trt_geqrf(w.t, w.m, w.n, a, result_item(w, 1, i), scratch, w.lwork)


cdef int householder_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* q = result_item(w, 0, i)
    take(w, &w.a, i, q)
    take(w, &w.b, i, scratch + w.part[1])
    if reflected(w, w.k):
        REFLECTORS[w.t].generate_q(w.m, w.n, w.k, q, w.m, scratch + w.part[1], NULL, aligned(scratch + w.part[0]))
        return 0
    return trt_orgqr(w.t, w.m, w.n, w.k, q, scratch + w.part[1], scratch + w.part[0], w.lwork)


cdef int ormqr_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* c = result_item(w, 0, i)
    cdef char* turned = scratch + w.part[3]
    cdef const char* a
    cdef const char* tau = scratch + w.part[1]
    take(w, &w.b, i, scratch + w.part[1])
    a = dense_item(w, &w.a, i, scratch + w.part[2])
    if reflected(w, w.k) and w.side == b"L":
        take(w, &w.c, i, c)
        REFLECTORS[w.t].multiply_q(w.trans != b"N", w.m, w.n, w.k, a, w.m, tau, c, w.m, aligned(scratch + w.part[0]))
        return 0
    if reflected(w, w.k):
        # C Q is the transpose of Q' C'
        trt_copy_matrix(w.size, w.n, w.m, turned, 1, w.n, trt_stack_item(&w.c, i, w.size), w.c.cs, w.c.rs)
        REFLECTORS[w.t].multiply_q(w.trans == b"N", w.n, w.m, w.k, a, w.n, tau, turned, w.n, aligned(scratch + w.part[0]))
        trt_copy_matrix(w.size, w.m, w.n, c, 1, w.m, turned, w.n, 1)
        return 0
    take(w, &w.c, i, c)
    return trt_ormqr(w.t, w.side, w.trans, w.m, w.n, w.k, a, tau, c, scratch + w.part[0], w.lwork)


cdef int eigh_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* v = result_item(w, 1, i) if w.flag else scratch + w.part[3]
    cdef double largest
    take(w, &w.a, i, v)
    if reflected(w, w.n):
        largest = REFLECTORS[w.t].largest(<int64_t>w.n * w.n, v)
        if not isfinite(largest):
            return NOT_FINITE
        if is_safe(w, largest):
            return symmetric_eigenvalues(w, i, scratch)
    elif not trt_all_finite(w.t, <int64_t>w.n * w.n, v):
        return NOT_FINITE
    return trt_syevd(w.t, b"V" if w.flag else b"N", w.uplo, w.n, v, result_item(w, 0, i), scratch + w.part[0], w.lwork, scratch + w.part[1], w.k,
                     <int*>(scratch + w.part[2]), w.liwork)


cdef inline bint is_safe(const Job* w, double largest) noexcept nogil:
    """Whether the largest element is one that LAPACK's drivers would not scale: products of elements neither overflow nor vanish."""
    return largest == 0 or (1e-140 < largest < 1e140 if w.t else 1e-14 < largest < 1e14)


cdef int symmetric_eigenvalues(Job* w, int64_t i, char* scratch) noexcept nogil:
    """A becomes tridiagonal by reflectors, LAPACK finds that matrix's eigenvalues and vectors, and the reflectors turn these into A's."""
    cdef const trt_reflector_kernels* reflectors = REFLECTORS + (w.t & 1)
    cdef int64_t n = w.n, size = w.size, rows = padded_rows(w, w.n)
    cdef char* values = result_item(w, 0, i)
    cdef char* vectors = result_item(w, 1, i) if w.flag else NULL
    cdef char* a = aligned(scratch + w.part[3])
    cdef char* off_diagonal = scratch + w.part[4]
    cdef char* tau = off_diagonal + n * size
    cdef char* work = aligned(scratch + w.part[5])
    cdef int info
    # the upper triangle is the lower one of the transpose
    take_strided(w, n, n, trt_stack_item(&w.a, i, w.size), w.a.rs if w.uplo == b"L" else w.a.cs, w.a.cs if w.uplo == b"L" else w.a.rs, a, rows)
    clear_padding(w, n, n, a, rows)
    reflectors.tridiagonal(n, a, rows, values, off_diagonal, tau, work)
    info = trt_tridiagonal_eigenvalues(w.t, w.n, values, off_diagonal, vectors, scratch + w.part[0], w.lwork, <int*>(scratch + w.part[2]), w.liwork)
    if vectors != NULL and info == 0:
        reflectors.multiply_q(False, n - 1, n, n - 1, a + size, rows, tau, vectors + size, n, work)
    return info


cdef int eig_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* a = scratch + w.part[0]
    cdef char* values = result_item(w, 0, i)
    cdef char* vectors = result_item(w, 1, i) if w.flag else NULL
    cdef char* real_values = scratch + w.part[2]
    cdef char* real_vectors = scratch + w.part[3]
    cdef int64_t n = w.n, j, r
    cdef int info
    cdef bint pair
    take(w, &w.a, i, a)
    if not trt_all_finite(w.t, n * n, a):
        return NOT_FINITE
    if w.t >= 2:
        return trt_geev(w.t, b"V" if w.flag else b"N", w.n, a, values, vectors if w.flag else a, scratch + w.part[1], w.lwork, real_values)
    info = trt_geev(w.t, b"V" if w.flag else b"N", w.n, a, real_values, real_vectors, scratch + w.part[1], w.lwork, NULL)
    # two columns hold the real and the imaginary parts of a pair of conjugate vectors
    j = 0
    while j < n:
        pair = real_item(w, real_values, n + j) != 0 and j + 1 < n
        trt_put(w.t + 2, values, j, real_item(w, real_values, j), real_item(w, real_values, n + j))
        if pair:
            trt_put(w.t + 2, values, j + 1, real_item(w, real_values, j + 1), real_item(w, real_values, n + j + 1))
        if w.flag:
            for r in range(n):
                if pair:
                    trt_put(w.t + 2, vectors, j * n + r, real_item(w, real_vectors, j * n + r), real_item(w, real_vectors, (j + 1) * n + r))
                    trt_put(w.t + 2, vectors, (j + 1) * n + r, real_item(w, real_vectors, j * n + r), -real_item(w, real_vectors, (j + 1) * n + r))
                else:
                    trt_put(w.t + 2, vectors, j * n + r, real_item(w, real_vectors, j * n + r), 0)
        j += 2 if pair else 1
    return info


cdef inline double real_item(Job* w, const char* x, int64_t i) noexcept nogil:
    return (<const double*>x)[i] if w.t & 1 else <double>(<const float*>x)[i]


cdef int svd_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* a = scratch + w.part[0]
    cdef int64_t k = min(w.m, w.n), columns = 0 if w.flag == 0 else w.m if w.flag == 2 else k
    cdef int info
    take(w, &w.a, i, a)
    if not trt_all_finite(w.t, <int64_t>w.m * w.n, a):
        # LAPACK complains of infinities on stderr, or iterates on them without end
        if trt_any_nan(w.t, <int64_t>w.m * w.n, a):
            return NOT_FINITE
        memset(result_item(w, 0, i), 0xFF, k * (w.size if w.t < 2 else w.size // 2))  # every bit set is a NaN
        if w.flag:
            memset(result_item(w, 1, i), 0xFF, columns * w.m * w.size)
            memset(result_item(w, 2, i), 0xFF, (w.n if w.flag == 2 else k) * w.n * w.size)
        return 0
    info = trt_gesdd(w.t, b"N" if w.flag == 0 else b"A" if w.flag == 2 else b"S", w.m, w.n, a, result_item(w, 0, i), result_item(w, 1, i),
                     result_item(w, 2, i), <int>(w.n if w.flag == 2 else k), scratch + w.part[1], w.lwork, scratch + w.part[2], <int*>(scratch + w.part[3]))
    return NOT_FINITE if info < 0 else info


cdef inline bint pivoted(const Job* w) noexcept nogil:
    """Whether least squares are by our QR with pivots."""
    return w.flag == LAPACK_GELSY and reflected(w, min(w.m, w.n))


cdef inline char* padded_part(const Job* w, char* scratch) noexcept nogil:
    """Where pivoted_least_squares has A with padded columns: behind R, 3 vectors and 2 numbers."""
    return aligned(scratch + w.part[0] + (<int64_t>w.m * w.n + 3 * max(w.m, w.n) + 2) * w.size)


cdef int least_squares_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    """flag: the routine. Results: X, rank, singular values."""
    cdef char* a = scratch + w.part[0]
    cdef char* b = scratch + w.part[1]
    cdef char* x = result_item(w, 0, i)
    cdef char* padded = padded_part(w, scratch)
    cdef bint safe = False
    cdef int64_t rows = max(w.m, w.n)
    cdef int rank = 0, info
    if pivoted(w):
        # finite, and with no need to be scaled
        take_strided(w, w.m, w.n, trt_stack_item(&w.a, i, w.size), w.a.rs, w.a.cs, padded, padded_rows(w, w.m))
        clear_padding(w, w.m, w.n, padded, padded_rows(w, w.m))
        safe = is_safe(w, REFLECTORS[w.t].largest(padded_rows(w, w.m) * w.n, padded))
    if not safe:
        take(w, &w.a, i, a)
    memset(b, 0, rows * w.k * w.size)
    trt_copy_matrix(w.size, w.m, w.k, b, 1, rows, trt_stack_item(&w.b, i, w.size), w.b.rs, w.b.cs)
    if safe and is_safe(w, REFLECTORS[w.t].largest(rows * w.k, b)):
        rank = pivoted_least_squares(w, scratch, padded)
        trt_copy_matrix(w.size, w.n, w.k, x, 1, w.n, b, 1, rows)
        (<int64_t*>result_item(w, 1, i))[0] = rank
        return 0
    if safe:
        take(w, &w.a, i, a)
    if not trt_all_finite(w.t, <int64_t>w.m * w.n, a) or not trt_all_finite(w.t, rows * w.k, b):
        return NOT_FINITE
    memset(scratch + w.part[4], 0, <int64_t>w.n * 4)
    info = trt_least_squares(w.t, w.flag, w.m, w.n, w.k, a, b, result_item(w, 2, i), <int*>(scratch + w.part[4]), w.tolerance, &rank, scratch + w.part[2],
                             w.lwork, scratch + w.part[3], <int*>(scratch + w.part[5]))
    trt_copy_matrix(w.size, w.n, w.k, x, 1, w.n, b, 1, rows)
    (<int64_t*>result_item(w, 1, i))[0] = rank
    return info


cdef int pivoted_least_squares(Job* w, char* scratch, char* a) noexcept nogil:
    """gelsy: A P = Q R; R's leading columns that are independent, and the shortest solution of their rows. b becomes X in place; returns the rank."""
    cdef const trt_reflector_kernels* reflectors = REFLECTORS + (w.t & 1)
    cdef int64_t m = w.m, n = w.n, k = w.k, size = w.size, rows = padded_rows(w, m), ldb = max(m, n), least = min(m, n), c, j
    cdef char* dense = scratch + w.part[0]
    cdef char* b = scratch + w.part[1]
    cdef char* lapack = scratch + w.part[2]
    cdef int* pivots = <int*>(scratch + w.part[4])
    cdef char* tau = dense + m * n * size
    cdef char* vectors = tau + ldb * size
    cdef char* values = vectors + 2 * ldb * size
    cdef char* work = a + rows * n * size
    cdef int rank = 0
    reflectors.pivoted_qr(m, n, a, rows, tau, pivots, work)
    if real_item(w, a, 0) != 0:
        trt_put(w.t, values, 0, fabs(real_item(w, a, 0)), 0)
        trt_put(w.t, values, 1, fabs(real_item(w, a, 0)), 0)
        trt_put(w.t, vectors, 0, 1, 0)
        trt_put(w.t, vectors, least, 1, 0)
        rank = 1
        while rank < least and trt_column_counts(w.t, rank, <int>least, a + rank * rows * size, w.tolerance, values, vectors):
            rank += 1
    reflectors.multiply_q(True, m, k, least, a, rows, tau, b, ldb, work)
    trt_copy_matrix(w.size, rank, n, dense, 1, rank, a, 1, rows)
    if 0 < rank < n:
        trt_tzrzf(w.t, rank, w.n, dense, vectors, lapack, w.lwork)
    # the right sides with no rows between
    trt_copy_matrix(w.size, rank, k, work, 1, rank, b, 1, ldb)
    if rank:
        solve_triangle(w.t, b"L", b"U", b"N", b"N", rank, k, dense, work)
    for c in range(k):
        memcpy(b + c * ldb * size, work + c * rank * size, rank * size)
        memset(b + (c * ldb + rank) * size, 0, (n - rank) * size)
    if 0 < rank < n:
        trt_ormrz(w.t, rank, w.n, w.k, dense, vectors, b, <int>ldb, lapack, w.lwork)
    for c in range(k):
        for j in range(n):
            memcpy(work + (pivots[j] - 1) * size, b + (c * ldb + j) * size, size)
        memcpy(b + c * ldb * size, work, n * size)
    return rank


# ---- Jobs ----------------------------------------------------------------------------------------------------------

cdef one_matrix[20] ONE
ONE[<int>LU], ONE[<int>LU_SOLVE], ONE[<int>PERMUTATION], ONE[<int>SOLVE], ONE[<int>INVERSE] = lu_one, lu_solve_one, permutation_one, solve_one, inverse_one
ONE[<int>DETERMINANT], ONE[<int>CHOLESKY], ONE[<int>CHOLESKY_SOLVE], ONE[<int>CHOLESKY_INVERSE] = det_one, cholesky_one, cholesky_solve_one, cholesky_inverse_one
ONE[<int>TRIANGULAR], ONE[<int>LDL], ONE[<int>LDL_SOLVE], ONE[<int>QR], ONE[<int>GEQRF] = triangular_one, ldl_one, ldl_solve_one, qr_one, geqrf_one
ONE[<int>HOUSEHOLDER], ONE[<int>ORMQR], ONE[<int>EIGH], ONE[<int>EIG], ONE[<int>SVD] = householder_one, ormqr_one, eigh_one, eig_one, svd_one
ONE[<int>LEAST_SQUARES] = least_squares_one


cdef double prepare(Job* w, int routine) except -1:
    """Plan the scratch memory of one matrix, asking LAPACK where its documentation names no size; returns the multiplications of one matrix."""
    cdef int64_t m = w.m, n = w.n, k = w.k, size = w.size, least = min(m, n), columns
    cdef double needed[2]
    cdef double real_needed[2]
    cdef int integers[2]
    if routine == LU:
        return <double>m * n * least
    if routine == LU_SOLVE or routine == LDL_SOLVE:
        reserve(w, 0, n * 4)
        reserve(w, 1, 0 if is_dense(&w.a) else n * n * size)
        return <double>n * n * k
    if routine == PERMUTATION:
        return m
    if routine == SOLVE:
        return <double>n * n * (n + k)
    if routine == INVERSE:
        w.lwork = workspace(n)
        reserve(w, 0, (w.lwork if w.t > 1 or n < BLOCKED else n * n) * size)
        reserve(w, 1, n * 4)
        return 2.0 * n * n * n
    if routine == DETERMINANT or routine == CHOLESKY_INVERSE:
        return <double>n * n * n
    if routine == CHOLESKY:
        return <double>n * n * n / 3
    if routine == CHOLESKY_SOLVE:
        w.scratch = 0 if is_dense(&w.a) else n * n * size
        return <double>n * n * k
    if routine == TRIANGULAR:
        w.scratch = 0 if is_dense(&w.a) else n * n * size
        return <double>n * m * k
    if routine == LDL:
        w.lwork = workspace(n)
        w.scratch = w.lwork * size
        return <double>n * n * n / 3
    if routine == QR:
        columns = max(n, k)
        w.lwork = workspace(columns)
        reserve(w, 0, m * n * size)
        reserve(w, 1, least * size)
        reserve(w, 2, reflector_bytes(w, m) if reflected(w, least) else w.lwork * size)
        reserve(w, 3, (least + REFLECTOR_BLOCK) * REFLECTOR_BLOCK * size if w.flag and reflected(w, least) else 0)
        return 2.0 * m * columns * least
    if routine == GEQRF:
        w.lwork = workspace(n)
        w.scratch = reflector_bytes(w, m) if reflected(w, least) else w.lwork * size
        return 2.0 * m * n * least
    if routine == HOUSEHOLDER:
        w.lwork = workspace(n)
        reserve(w, 0, reflector_bytes(w, m) if reflected(w, k) else w.lwork * size)
        reserve(w, 1, k * size)
        return 2.0 * m * n * k
    if routine == ORMQR:
        w.lwork = workspace(n if w.side == b"L" else m) + BLOCK * (BLOCK + 1)
        reserve(w, 0, reflector_bytes(w, m if w.side == b"L" else n) if reflected(w, k) else w.lwork * size)
        reserve(w, 1, k * size)
        reserve(w, 2, (m if w.side == b"L" else n) * k * size)
        reserve(w, 3, m * n * size if reflected(w, k) and w.side != b"L" else 0)
        return 2.0 * m * n * k
    if routine == EIGH:
        # what the documentation of syevd and heevd asks for, and room for blocks in the reduction to tridiagonal form
        w.lwork = in_int(n * (BLOCK + 2) + (n * (2 * n + 6) + 1 if w.flag and w.t < 2 else n * n if w.flag else 0))
        w.k = in_int(1 + 5 * n + 2 * n * n if w.flag else n)
        w.liwork = in_int(3 + 5 * n)
        reserve(w, 0, w.lwork * size)
        reserve(w, 1, w.k * size if w.t >= 2 else 0)
        reserve(w, 2, w.liwork * 4)
        reserve(w, 3, padded_rows(w, w.n) * n * size + 64 if reflected(w, n) else n * n * size if not w.flag else 0)
        reserve(w, 4, 2 * n * size)
        reserve(w, 5, reflector_bytes(w, n) if reflected(w, n) else 0)
        return 4.0 * n * n * n
    if routine == EIG:
        with nogil:
            blas_begin(1)
            trt_geev(w.t, b"V" if w.flag else b"N", w.n, NULL, NULL, NULL, needed, -1, real_needed)
            blas_end()
        w.lwork = trt_work_size(w.t, needed)
        reserve(w, 0, n * n * size)
        reserve(w, 1, w.lwork * size)
        reserve(w, 2, 2 * n * size)
        reserve(w, 3, n * n * size if w.t < 2 else 0)
        return 10.0 * n * n * n
    if routine == SVD:
        with nogil:
            blas_begin(1)
            trt_gesdd(w.t, b"N" if w.flag == 0 else b"A" if w.flag == 2 else b"S", w.m, w.n, NULL, NULL, NULL, NULL, <int>(n if w.flag == 2 else least), needed, -1, NULL, NULL)
            blas_end()
        w.lwork = trt_work_size(w.t, needed)
        reserve(w, 0, m * n * size)
        reserve(w, 1, w.lwork * size)
        reserve(w, 2, (7 * least if w.flag == 0 else least * max(5 * least + 7, 2 * max(m, n) + 2 * least + 1)) * size if w.t >= 2 else 0)
        reserve(w, 3, 8 * least * 4)
        return 8.0 * m * n * least
    # LEAST_SQUARES
    w.flag += LAPACK_GELS
    integers[0] = 0
    real_needed[0] = 0
    with nogil:
        blas_begin(1)
        trt_least_squares(w.t, w.flag, w.m, w.n, w.k, NULL, NULL, NULL, NULL, w.tolerance, integers + 1, needed, -1, real_needed, integers)
        blas_end()
    w.lwork = trt_work_size(w.t, needed)
    # gelsy and gelss of complex matrices say in their documentation how many real numbers they need, gelsd answers
    w.liwork = max(trt_work_size(w.t & 1, real_needed) if w.flag == LAPACK_GELSD else 0, <int>max(2 * n, 5 * least))
    columns = m * n * size
    if pivoted(w):
        # R, reflectors' factors, the estimates of singular values; A with padded columns; what the steps after it work in
        columns += (3 * max(m, n) + 2) * size + 64 + padded_rows(w, m) * n * size + max(
            REFLECTORS[w.t].pivoted_work_size(m, n) * size, reflector_bytes(w, m), max(least * k, n) * size)
    reserve(w, 0, columns)
    reserve(w, 1, max(m, n) * k * size)
    reserve(w, 2, w.lwork * size)
    reserve(w, 3, w.liwork * size if w.t >= 2 else 0)
    reserve(w, 4, n * 4)
    reserve(w, 5, <int64_t>integers[0] * 4)
    return 4.0 * m * n * max(least, k)


cdef void run_items(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Job* w = <Job*>context
    cdef int64_t i
    cdef char* scratch = <char*>malloc(w.scratch) if w.scratch else NULL
    for i in range(begin, end):
        w.info[i] = w.one(w, i, scratch) if scratch != NULL or not w.scratch else NO_MEMORY
    free(scratch)


cdef int run_job(Job* w, int routine, TensorBase info, TensorBase a, TensorBase b, TensorBase c) except -1:
    cdef trt_block* held[3]
    cdef int64_t grain, i
    cdef int n
    if routine == LU and w.flag and w.m and w.n:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    n = hold_blocks((a, b, c), held)
    try:
        load_lapack()
        grain = <int64_t>(THREAD_WORK / (prepare(w, routine) + 1)) + 1
        w.one = ONE[routine]
        with nogil:
            blas_begin(1)
            parallel_for(w.count, grain, 1, run_items, w)
            blas_end()
    finally:
        drop_blocks(held, n)
    for i in range(w.count):
        if w.info[i] == NO_MEMORY:
            raise MemoryError(f"linear algebra: {w.scratch} bytes to work in can't be had")
        if w.info[i] == BAD_PIVOTS:
            name = "torch.lu_unpack" if routine == PERMUTATION else "linalg.lu_solve" if routine == LU_SOLVE else "torch.linalg.ldl_solve"
            raise RuntimeError(f"{name}: the pivots must be between 1 and the number of rows, as the factorization returns them")
    return 0


cdef int read_codes_on_cpu(TensorBase info, int* codes) except -1:
    cdef TensorBase host = on_host(info)
    memcpy(codes, data_of(host), host.numel * sizeof(int))
    return 0


cdef int check_driver(object driver) except -1:
    if driver is not None:
        raise RuntimeError("linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")
    return 0


set_linalg_job(DEV_CPU, run_job)
for _device in range(DEV_CUSTOM, LAST_CUSTOM + 1):
    set_linalg_codes(_device, read_codes_on_cpu)
    set_svd_driver(_device, check_driver)

set_linalg_codes(DEV_CPU, read_codes_on_cpu)
set_svd_driver(DEV_CPU, check_driver)
