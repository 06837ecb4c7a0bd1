"""Linear algebra on CUDA: the Jobs of cysrc/ops/linalg/linalg.pyx, run on a whole batch by the kernels of cuda_src/linalg.cuh.

A matrix that fits into a block's shared memory takes one launch. Larger ones are cut: recursively for LU, Cholesky and triangular
systems, in panels of reflections for QR, so that nearly all arithmetic is products (cuda/matmul.pyx), which use the whole device.
cuSOLVER would stand behind `run_job`: a routine that it has, for sizes where it is faster.
"""
from libc.stdint cimport int64_t
from libc.string cimport memcpy, memset
from tensorrt_lite._C.core.allocator cimport block_external
from tensorrt_lite._C.core.dtype cimport Scalar, U8, I32, F32, F64, C64, C128, is_complex_type
from tensorrt_lite._C.core.storage cimport device_storage
from tensorrt_lite._C.core.tensor cimport TensorBase, ITEM_SIZE, data_of, place_of, empty_tensor, set_storage
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.cuda.backend cimport kernel_of, run, run3, blocks_for, stream_of, enter
from tensorrt_lite._C.cuda.driver cimport FunctionHandle, StreamHandle, DevicePointer, copy_to_host, synchronize_stream
from tensorrt_lite._C.cuda.matmul cimport Mat, gemm
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.ops.linalg.job cimport (
    CHOLESKY, CHOLESKY_INVERSE, CHOLESKY_SOLVE, DETERMINANT, EIGH, GELS, GEQRF, HOUSEHOLDER, INVERSE, Job, LDL, LDL_SOLVE, LEAST_SQUARES, LU, LU_SOLVE, ORMQR,
    PERMUTATION, QR, SOLVE, SVD, TRIANGULAR)
from tensorrt_lite._C.ops.linalg.job cimport trt_stack as Stack
from tensorrt_lite._C.steps.linalg cimport set_linalg_codes, set_linalg_job, set_svd_driver
from tensorrt_lite._C.cuda import source as _source

attach()

# trt::Part: a batch of matrices, strides in elements
cdef struct Part:
    char* at
    int64_t rows, cols, rs, cs, bs

# trt::Task
cdef struct Task:
    Part a, b, c
    char* values
    int* pivots
    int* info
    int* counter
    int64_t values_step, pivots_step, batch
    double tolerance
    int first
    int upper, unit, conjugated, adjoint, pivoting, staged, backwards

# trt::Gather
cdef struct Gather:
    Part to
    const char* source
    int64_t rs, cs, batch
    int form, conjugated, batch_dims, unused
    int64_t sizes[64]
    int64_t strides[64]

cdef enum:
    ALL = 0                      # forms of a gather
    LOWER = 1
    UPPER = 2
    UNIT_LOWER = 3
    HERMITIAN_LOWER = 4
    HERMITIAN_UPPER = 5
    IDENTITY = 6
    ZERO = 7
    SHARED = 46 * 1024           # bytes of shared memory that a panel may fill, beside a kernel's own few
    PANEL = 16                   # columns that LU leaves to one block
    TRIANGLE = 32                # rows of a triangle that one block solves, reflections that are applied together
    MOST_SWEEPS = 60
    MAX_GRID = 65535

cdef enum Kernel:
    GATHER
    LU_PANEL
    SWAP_ROWS
    ROW_ORDER
    DETERMINANTS
    CHOLESKY_PANEL
    CLEAR_TRIANGLE
    ZERO_DIAGONAL
    SOLVE_TRIANGLE
    QR_PANEL
    REFLECT
    REFLECTOR_TRIANGLE
    LDL_FACTOR
    LDL_SOLUTION
    SCALE_MATRIX
    EIGH_SWEEPS
    EIGH_FIND
    EIGH_TURN
    SVD_SWEEPS
    SVD_ROUND
    UNSORTED_VALUES
    SORT_VALUES
    PERMUTE_COLUMNS
    COMPLETE_COLUMNS
    DIVIDE_ROWS
    WIDEN
    SCHUR_FORM
    TRIANGLE_VECTORS
    SCHUR_VALUES
    UNIT_COLUMNS
    KERNELS

# unit of compilation, function and the largest block
cdef tuple SOURCES = (
    ("linalg", "gather", 256), ("lu", "lu_panel", 512), ("lu", "swap_rows", 128), ("order", "row_order", 128), ("lu", "determinant", 128),
    ("cholesky", "cholesky_panel", 512), ("linalg", "clear_triangle", 256), ("linalg", "find_zero_diagonal", 128), ("linalg", "triangle", 256),
    ("qr", "qr_panel", 512), ("qr", "reflect", 256), ("qr", "reflector_triangle", 32), ("ldl", "ldl_factor", 512), ("ldl", "ldl_solve", 256),
    ("jacobi", "scale_matrix", 512), ("eigh", "eigh_sweeps", 512), ("eigh", "eigh_find", 128), ("eigh", "eigh_turn", 256), ("svd", "svd_sweeps", 512),
    ("svd", "svd_round", 128), ("jacobi", "unsorted_values", 256), ("jacobi", "sort_values", 256), ("jacobi", "permute_columns", 256),
    ("svd", "complete_columns", 256), ("svd", "divide_rows", 256), ("eig", "widen", 256), ("eig", "schur_form", 512), ("eig", "triangle_vectors", 256),
    ("eig", "schur_values", 256), ("eig", "unit_columns", 256),
)
cdef dict HEADERS = {"jacobi": "jacobi", "eigh": "jacobi", "svd": "jacobi", "eig": "schur"}

cdef FunctionHandle handles[64][4][KERNELS]


cdef class Call:
    """What the steps of a routine share: the batch, where it lies, its type, and the scratch memory, which lives as long as this does."""
    cdef int index, place, dtype, t, size
    cdef int64_t count
    cdef int* info
    cdef list held


cdef Call call_like(Call c, int dtype):
    """The same batch in another type."""
    cdef Call d = Call.__new__(Call)
    d.index, d.place, d.count, d.info, d.held = c.index, c.place, c.count, c.info, c.held
    d.dtype = dtype
    d.t = dtype - F32
    d.size = ITEM_SIZE[dtype]
    return d


cdef FunctionHandle load(Call c, int kernel) except NULL:
    if handles[c.index][c.t][kernel] == NULL:
        unit, wanted, _ = SOURCES[kernel]
        t = _source.storage_type(c.dtype)
        text = f"#include \"{HEADERS.get(unit, 'linalg')}.cuh\"\n"
        for other, name, threads in SOURCES:
            if other == unit:
                parameters = "const trt::Gather p" if name == "gather" else "const trt::Task p, const trt::Gather g" if name == "row_order" else "const trt::Task p"
                call = f"{name}(p, g)" if name == "row_order" else f"{name}<{t}>(p)"
                text += f"\nextern \"C\" __global__ void __launch_bounds__({threads}) {name}({parameters}) {{ trt::{call}; }}\n"
        handles[c.index][c.t][kernel] = kernel_of(text, wanted, c.index)
    return handles[c.index][c.t][kernel]


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    cdef Call c = Call.__new__(Call)
    cdef int dtype, kernel
    c.index = index
    for dtype in range(F32, C128 + 1):
        c.dtype, c.t = dtype, dtype - F32
        for kernel in range(KERNELS):
            if is_complex_type(dtype) or SOURCES[kernel][0] != "eig":         # real matrices are widened first
                load(c, kernel)


# ---- parts and scratch memory --------------------------------------------------------------------------------------

cdef inline Part part(char* at, int64_t rows, int64_t cols, int64_t bs) noexcept:
    """A batch of dense column-major matrices."""
    cdef Part r
    r.at, r.rows, r.cols, r.rs, r.cs, r.bs = at, rows, cols, 1, rows, bs
    return r


cdef inline Part result(Job* w, int j, int64_t rows, int64_t cols) noexcept:
    return part(w.out[j], rows, cols, w.step[j] // w.size)


cdef inline Part block(Call c, Part x, int64_t row, int64_t col, int64_t rows, int64_t cols) noexcept:
    x.at += (row * x.rs + col * x.cs) * c.size
    x.rows = rows
    x.cols = cols
    return x


cdef inline Part transposed(Part x) noexcept:
    x.rows, x.cols = x.cols, x.rows
    x.rs, x.cs = x.cs, x.rs
    return x


cdef char* memory(Call c, int64_t nbytes) except? NULL:
    cdef TensorBase t = empty_tensor(1, &nbytes, U8, c.place)
    c.held.append(t)
    return data_of(t)


cdef Part scratch(Call c, int64_t rows, int64_t cols) except *:
    return part(memory(c, max(1, c.count * rows * cols * c.size)), rows, cols, rows * cols)


# ---- launches ------------------------------------------------------------------------------------------------------

cdef int launch(Call c, int kernel, Task* p, int64_t x, int64_t y, int threads, int shared=0) except -1:
    cdef void* arguments[1]
    p.batch = c.count
    p.info = c.info
    arguments[0] = p
    return run3(load(c, kernel), c.index, x, y, 1, threads, 1, 1, shared, arguments)


cdef int gather(Call c, Part to, const Stack* s, int form=ALL, bint conjugated=False) except -1:
    cdef Gather g
    cdef void* arguments[1]
    if to.rows == 0 or to.cols == 0:
        return 0
    g.to = to
    g.form = form
    g.conjugated = conjugated and is_complex_type(c.dtype)
    g.batch = c.count
    g.source = NULL
    g.rs = g.cs = g.batch_dims = 0
    if s != NULL:
        g.source, g.rs, g.cs, g.batch_dims = s.data, s.rs, s.cs, s.batch_dims
        memcpy(g.sizes, s.sizes, s.batch_dims * sizeof(int64_t))
        memcpy(g.strides, s.strides, s.batch_dims * sizeof(int64_t))
    arguments[0] = &g
    return run3(load(c, GATHER), c.index, (to.rows + 31) // 32 * ((to.cols + 31) // 32), min(c.count, MAX_GRID), 1, 256, 1, 1, 0, arguments)


cdef int copy(Call c, Part to, Part x, int form=ALL, bint conjugated=False) except -1:
    cdef Stack s
    s.data, s.rs, s.cs, s.batch_dims = x.at, x.rs, x.cs, 1
    s.sizes[0] = c.count
    s.strides[0] = x.bs
    return gather(c, to, &s, form, conjugated)


cdef Part conjugate_of(Call c, Part x) except *:
    """conj(x), which real matrices are themselves."""
    cdef Part r
    if not is_complex_type(c.dtype):
        return x
    r = scratch(c, x.rows, x.cols)
    copy(c, r, x, ALL, True)
    return r


cdef TensorBase window(Call c, char* at):
    """Device memory as a tensor, for what asks for one."""
    cdef int64_t nothing = 0
    cdef TensorBase t = empty_tensor(1, &nothing, c.dtype, c.place)
    set_storage(t, device_storage(block_external(at, 0, NULL, NULL), 0, DEV_CUDA, c.index))
    return t


cdef inline Mat matrices(Call c, Part x) noexcept:
    cdef Mat m
    m.batch, m.rows, m.cols, m.bs, m.rs, m.cs, m.flipped = c.count, x.rows, x.cols, x.bs, x.rs, x.cs, False
    return m


cdef int multiply(Call c, Part to, Part a, Part b, int alpha, int beta) except -1:
    """to = alpha a b + beta to, alpha and beta small integers; `to` lies apart from the others."""
    cdef Mat mo = matrices(c, to), ma = matrices(c, a), mb = matrices(c, b)
    cdef Scalar factor, keep
    cdef TensorBase out
    if to.rows == 0 or to.cols == 0 or a.cols == 0:
        return 0
    factor.kind = keep.kind = 1
    factor.im = keep.im = 0
    factor.i, keep.i = alpha, beta
    factor.d, keep.d = alpha, beta
    out = window(c, to.at)
    return gemm("linalg", out, &mo, window(c, a.at), &ma, window(c, b.at), &mb, &factor, &keep, out if beta else None, &mo if beta else NULL)


cdef inline bint fits(Call c, Part a) noexcept:
    return a.rows * a.cols * c.size <= SHARED


cdef int panel(Call c, int kernel, Task* p) except -1:
    """A kernel of one block per matrix p.a."""
    cdef int64_t size = p.a.rows * p.a.cols
    p.staged = fits(c, p.a)
    return launch(c, kernel, p, min(c.count, (<int64_t>1 << 31) - 1), 1, 32 if size <= 256 else 64 if size <= 1024 else 128 if size <= 4096 else 256 if p.staged else 512,
                  size * c.size if p.staged else 0)


cdef inline void clear(Task* p) noexcept:
    memset(p, 0, sizeof(Task))


# ---- triangular systems --------------------------------------------------------------------------------------------

cdef int solve_triangle(Call c, Part t, Part b, bint upper, bint unit, bint conjugated=False) except -1:
    """b = t^-1 b; conjugated: conj(t) in its place."""
    cdef Task p
    cdef int64_t half
    cdef Part first, last
    if t.rows == 0 or b.cols == 0:
        return 0
    conjugated = conjugated and is_complex_type(c.dtype)
    if t.rows <= TRIANGLE:
        clear(&p)
        p.a, p.b, p.upper, p.unit, p.conjugated = t, b, upper, unit, conjugated
        return launch(c, SOLVE_TRIANGLE, &p, min((b.cols + 31) // 32, (<int64_t>1 << 31) - 1), min(c.count, MAX_GRID), 256)
    if conjugated:
        t = conjugate_of(c, t)
    half = (t.rows // 2 + TRIANGLE - 1) // TRIANGLE * TRIANGLE
    first, last = block(c, b, 0, 0, half, b.cols), block(c, b, half, 0, b.rows - half, b.cols)
    if upper:
        solve_triangle(c, block(c, t, half, half, t.rows - half, t.rows - half), last, upper, unit)
        multiply(c, first, block(c, t, 0, half, half, t.rows - half), last, -1, 1)
        return solve_triangle(c, block(c, t, 0, 0, half, half), first, upper, unit)
    solve_triangle(c, block(c, t, 0, 0, half, half), first, upper, unit)
    multiply(c, last, block(c, t, half, 0, t.rows - half, half), first, -1, 1)
    return solve_triangle(c, block(c, t, half, half, t.rows - half, t.rows - half), last, upper, unit)


# ---- LU ------------------------------------------------------------------------------------------------------------

cdef int swap_rows(Call c, Part x, int* pivots, int64_t step, int64_t first, int64_t count, bint backwards=False) except -1:
    """Rows of x (all rows that the pivots count) change places."""
    cdef Task p
    if x.cols == 0 or count == 0:
        return 0
    clear(&p)
    p.b, p.pivots, p.pivots_step, p.first, p.backwards = x, pivots, step, <int>first, backwards
    p.a.rows = count
    return launch(c, SWAP_ROWS, &p, (x.cols + 127) // 128, min(c.count, MAX_GRID), 128)


cdef int factor_lu(Call c, Part a, int64_t at, int64_t width, int* pivots, int64_t step, bint pivoting) except -1:
    """P L U of the columns at .. at + width from row `at` on (Toledo 1997): the left half, the right half updated by it, the right half."""
    cdef int64_t rows = a.rows - at, k = min(rows, width), left
    cdef Part x = block(c, a, at, at, rows, width)
    cdef Task p
    if k == 0:
        return 0
    if width <= PANEL or fits(c, x):
        clear(&p)
        p.a, p.pivots, p.pivots_step, p.first, p.pivoting = x, pivots + at, step, <int>at, pivoting
        return panel(c, LU_PANEL, &p)
    left = k if k <= PANEL else (k // 2 + PANEL - 1) // PANEL * PANEL
    factor_lu(c, a, at, left, pivots, step, pivoting)
    if pivoting:
        swap_rows(c, block(c, a, 0, at + left, a.rows, width - left), pivots, step, at, left)
    solve_triangle(c, block(c, x, 0, 0, left, left), block(c, x, 0, left, left, width - left), False, True)
    if rows > left:
        multiply(c, block(c, x, left, left, rows - left, width - left), block(c, x, left, 0, rows - left, left), block(c, x, 0, left, left, width - left), -1, 1)
        factor_lu(c, a, at + left, width - left, pivots, step, pivoting)
        if pivoting:
            swap_rows(c, block(c, a, 0, at, a.rows, left), pivots, step, at + left, k - left)
    return 0


cdef int solve_lu(Call c, Part lu, int* pivots, int64_t step, Part x, char trans, bint conjugated=False) except -1:
    """x = A^-1 x, trans N, T or C of A, conjugated: conj(A) with N."""
    if trans == b"N":
        swap_rows(c, x, pivots, step, 0, lu.rows)
        solve_triangle(c, lu, x, False, True, conjugated)
        return solve_triangle(c, lu, x, True, False, conjugated)
    conjugated = trans == b"C"
    solve_triangle(c, transposed(lu), x, False, False, conjugated)
    solve_triangle(c, transposed(lu), x, True, True, conjugated)
    return swap_rows(c, x, pivots, step, 0, lu.rows, True)


cdef int run_lu(Call c, Job* w, int routine) except -1:
    """LU, SOLVE, INVERSE, DETERMINANT."""
    cdef Part lu, x
    cdef int* pivots
    cdef int64_t step = min(w.m, w.n)
    cdef Task p
    if routine == INVERSE:
        lu = scratch(c, w.n, w.n)
        pivots = <int*>memory(c, max(1, c.count * step * 4))
    else:
        lu = result(w, 1 if routine == SOLVE else 0, w.n if routine == SOLVE else w.m, w.n)
        pivots = <int*>w.out[2 if routine == SOLVE else 1]
    gather(c, lu, &w.a)
    factor_lu(c, lu, 0, lu.cols, pivots, step, routine != LU or not w.flag)
    if routine == SOLVE:
        x = result(w, 0, w.n, w.k)
        gather(c, x, &w.b)
        return solve_lu(c, lu, pivots, step, x, w.trans)
    if routine == INVERSE:
        x = result(w, 0, w.n, w.n)
        gather(c, x, NULL, IDENTITY)
        return solve_lu(c, lu, pivots, step, x, b"N")
    if routine == DETERMINANT:
        clear(&p)
        p.a, p.pivots, p.pivots_step = lu, pivots, step
        p.b.at = w.out[2]
        p.values = w.out[3] if w.flag else NULL
        return launch(c, DETERMINANTS, &p, blocks_for(c.count, 4), 1, 128)
    return 0


cdef int* dense_pivots(Call c, const Stack* given) except? NULL:
    """int32 numbers of a stack of columns, one after the other: four bytes travel as a float does."""
    cdef Call d = call_like(c, F32)
    cdef Part to = scratch(d, given.rows, 1)
    gather(d, to, given)
    return <int*>to.at


cdef int run_lu_solve(Call c, Job* w) except -1:
    cdef Part x = result(w, 0, w.n, w.k), lu = scratch(c, w.n, w.n)
    gather(c, x, &w.b)
    gather(c, lu, &w.a)
    return solve_lu(c, lu, dense_pivots(c, &w.c), w.n, x, w.trans, w.flag)


cdef int run_permutation(Call c, Job* w) except -1:
    cdef Task p
    cdef Gather g
    cdef void* arguments[2]
    clear(&p)
    p.batch = c.count
    p.a.at, p.a.rows, p.a.cols = w.out[0], w.m, w.n
    memset(&g, 0, sizeof(g))
    g.source, g.rs, g.batch_dims = w.c.data, w.c.rs, w.c.batch_dims
    memcpy(g.sizes, w.c.sizes, w.c.batch_dims * sizeof(int64_t))
    memcpy(g.strides, w.c.strides, w.c.batch_dims * sizeof(int64_t))
    arguments[0] = &p
    arguments[1] = &g
    return run(load(c, ROW_ORDER), c.index, blocks_for(c.count, 128), 128, 0, arguments)


# ---- Cholesky ------------------------------------------------------------------------------------------------------

cdef int factor_cholesky(Call c, Part a, int64_t at) except -1:
    """a = L L^H, reading and writing the lower triangle alone but for the upper one's rests of products; `at`: the rows before it."""
    cdef int64_t half
    cdef Part low, rest
    cdef Task p
    if fits(c, a):
        clear(&p)
        p.a, p.first = a, <int>at
        return panel(c, CHOLESKY_PANEL, &p)
    half = (a.rows // 2 + TRIANGLE - 1) // TRIANGLE * TRIANGLE
    low, rest = block(c, a, half, 0, a.rows - half, half), block(c, a, half, half, a.rows - half, a.rows - half)
    a = block(c, a, 0, 0, half, half)
    factor_cholesky(c, a, at)
    solve_triangle(c, a, transposed(low), False, False, True)      # X L^H = B is conj(L) X^T = B^T
    multiply(c, rest, low, transposed(conjugate_of(c, low)), -1, 1)
    return factor_cholesky(c, rest, at + half)


cdef int run_cholesky(Call c, Job* w) except -1:
    cdef Part a = result(w, 0, w.n, w.n)
    cdef Task p
    gather(c, a, &w.a, LOWER if w.uplo == b"L" else UPPER)
    # A = U^H U is A^T = L L^H with L = U^T
    if w.uplo == b"U":
        a = transposed(a)
    if w.n == 0:
        return 0
    factor_cholesky(c, a, 0)
    if fits(c, a):
        return 0
    clear(&p)
    p.a = a
    return launch(c, CLEAR_TRIANGLE, &p, blocks_for(a.rows * a.cols, 256), min(c.count, MAX_GRID), 256)


cdef int run_cholesky_solve(Call c, Job* w) except -1:
    """SOLVE and INVERSE from the factor: L y = b, L^H x = y."""
    cdef Part x = result(w, 0, w.n, w.k), a = scratch(c, w.n, w.n)
    gather(c, x, &w.b)
    gather(c, a, &w.a)
    # the factor as L: U^H is conj(U^T)
    cdef bint upper = w.uplo == b"U"
    solve_triangle(c, transposed(a) if upper else a, x, False, False, upper)
    return solve_triangle(c, a if upper else transposed(a), x, True, False, not upper)


cdef int run_cholesky_inverse(Call c, Job* w) except -1:
    cdef Part x = result(w, 0, w.n, w.n), a = scratch(c, w.n, w.n), y
    cdef Task p
    cdef bint upper = w.uplo == b"U"
    if w.n == 0:
        return 0
    gather(c, a, &w.a)
    clear(&p)
    p.a = a
    launch(c, ZERO_DIAGONAL, &p, blocks_for(c.count, 128), 1, 128)
    y = scratch(c, w.n, w.n)
    gather(c, y, NULL, IDENTITY)
    solve_triangle(c, transposed(a) if upper else a, y, False, False, upper)
    return multiply(c, x, transposed(conjugate_of(c, y)), y, 1, 0)


cdef int run_triangular(Call c, Job* w) except -1:
    """op(a) X = B, or X op(a) = B, which is op(a)^T X^T = B^T; trans: N or T."""
    cdef Part x = result(w, 0, w.m, w.k), a = scratch(c, w.n, w.n)
    cdef bint upper = w.uplo == b"U"
    gather(c, x, &w.b)
    gather(c, a, &w.a)
    if (w.trans == b"T") != (w.side == b"R"):
        a = transposed(a)
        upper = not upper
    return solve_triangle(c, a, x if w.side == b"L" else transposed(x), upper, w.diag == b"U")


# ---- QR ------------------------------------------------------------------------------------------------------------

cdef int reflect_block(Call c, Part v, char* tau, int64_t step, Part x, bint adjoint, bint conjugated) except -1:
    """x = Q x or Q^H x for at most 32 reflections, as 1 - V T V^H (Schreiber and Van Loan 1989); conjugated: conj(Q)."""
    cdef int64_t k = v.cols
    cdef Part straight = scratch(c, v.rows, k), turned, gram, t, t_turned, y, z
    cdef Task p
    copy(c, straight, v, UNIT_LOWER, conjugated)
    turned = conjugate_of(c, straight)
    gram, t, t_turned = scratch(c, k, k), scratch(c, k, k), scratch(c, k, k)
    multiply(c, gram, transposed(turned), straight, 1, 0)
    clear(&p)
    p.a, p.b, p.c, p.values, p.values_step, p.conjugated = gram, t, t_turned, tau, step, conjugated
    launch(c, REFLECTOR_TRIANGLE, &p, min(c.count, (<int64_t>1 << 31) - 1), 1, 32)
    y, z = scratch(c, k, x.cols), scratch(c, k, x.cols)
    multiply(c, y, transposed(turned), x, 1, 0)
    multiply(c, z, transposed(t_turned) if adjoint else t, y, 1, 0)
    return multiply(c, x, straight, z, -1, 1)


cdef int apply_reflections(Call c, Part v, char* tau, int64_t step, Part x, bint adjoint, bint conjugated=False) except -1:
    """x = Q x or Q^H x, Q the product of the reflections in v's columns; tau: `step` numbers of a matrix."""
    cdef Task p
    cdef int64_t at, blocks = (v.cols + TRIANGLE - 1) // TRIANGLE, i, k
    if v.cols == 0 or x.cols == 0 or x.rows == 0:
        return 0
    if v.cols <= TRIANGLE:
        clear(&p)
        p.a, p.b, p.values, p.values_step, p.adjoint, p.conjugated = v, x, tau, step, adjoint, conjugated
        return launch(c, REFLECT, &p, min((x.cols + 7) // 8, (<int64_t>1 << 31) - 1), min(c.count, MAX_GRID), 256)
    for i in range(blocks):
        at = (i if adjoint else blocks - 1 - i) * TRIANGLE
        k = min(TRIANGLE, v.cols - at)
        reflect_block(c, block(c, v, at, at, v.rows - at, k), tau + at * c.size, step, block(c, x, at, 0, x.rows - at, x.cols), adjoint, conjugated)
    return 0


cdef int factor_qr(Call c, Part a, char* tau, int64_t step) except -1:
    """LAPACK's geqrf in place."""
    cdef int64_t at = 0, k = min(a.rows, a.cols), width
    cdef Part x
    cdef Task p
    while at < k:
        x = block(c, a, at, at, a.rows - at, a.cols - at)
        width = x.cols if fits(c, x) else min(TRIANGLE, k - at)
        clear(&p)
        p.a, p.values, p.values_step = block(c, x, 0, 0, x.rows, width), tau + at * c.size, step
        panel(c, QR_PANEL, &p)
        if x.cols > width:
            reflect_block(c, block(c, x, 0, 0, x.rows, width), tau + at * c.size, step, block(c, x, 0, width, x.rows, x.cols - width), True, False)
        at += width
    return 0


cdef int run_qr(Call c, Job* w, int routine) except -1:
    """QR, GEQRF, HOUSEHOLDER."""
    cdef int64_t k = min(w.m, w.n)
    cdef Part a, q
    cdef char* tau
    if routine == GEQRF:
        a = result(w, 0, w.m, w.n)
        gather(c, a, &w.a)
        return factor_qr(c, a, w.out[1], k)
    a = scratch(c, w.m, w.n)
    gather(c, a, &w.a)
    if routine == HOUSEHOLDER:
        q = scratch(c, w.k, 1)
        gather(c, q, &w.b)
        tau = q.at
        k = w.k
        q = result(w, 0, w.m, w.n)
    else:
        tau = memory(c, max(1, c.count * k * c.size))
        factor_qr(c, a, tau, k)
        copy(c, result(w, 1, w.k, w.n), block(c, a, 0, 0, w.k, w.n), UPPER)
        if not w.flag:
            return 0
        q = result(w, 0, w.m, w.k)
    gather(c, q, NULL, IDENTITY)
    return apply_reflections(c, block(c, a, 0, 0, w.m, k), tau, k, q, False)


cdef int run_ormqr(Call c, Job* w) except -1:
    cdef Part x = result(w, 0, w.m, w.n), a = scratch(c, w.m if w.side == b"L" else w.n, w.k), tau = scratch(c, w.k, 1)
    cdef bint adjoint = w.trans != b"N"
    gather(c, x, &w.c)
    gather(c, a, &w.a)
    gather(c, tau, &w.b)
    if w.side == b"L":
        return apply_reflections(c, a, tau.at, w.k, x, adjoint)
    # X Q is (Q^T X^T)^T, and Q^T = conj(Q)^H
    return apply_reflections(c, a, tau.at, w.k, transposed(x), not adjoint, True)


# ---- symmetric indefinite ------------------------------------------------------------------------------------------

cdef int run_ldl(Call c, Job* w, int routine) except -1:
    """LDL, LDL_SOLVE; flag: Hermitian."""
    cdef Part a
    cdef Task p
    if w.n == 0:
        return 0
    clear(&p)
    p.pivots_step, p.conjugated = w.n, w.flag
    if routine == LDL:
        p.a, p.c, p.pivots = result(w, 0, w.n, w.n), scratch(c, w.n, 2), <int*>w.out[1]
        gather(c, p.a, &w.a, LOWER)
        return panel(c, LDL_FACTOR, &p)
    p.a, p.b, p.pivots = scratch(c, w.n, w.n), result(w, 0, w.n, w.k), dense_pivots(c, &w.c)
    gather(c, p.a, &w.a)
    if w.k == 0:
        return 0
    gather(c, p.b, &w.b)
    return launch(c, LDL_SOLUTION, &p, (w.k + 7) // 8, min(c.count, MAX_GRID), 256)


# ---- Jacobi's methods ----------------------------------------------------------------------------------------------

cdef int64_t device_wide = 257   # rows from which on few matrices are turned by the whole device, a launch a round


def _rotate_device_wide_from(int64_t rows):
    """For tests: the number of rows from which on a round of rotations is a launch. Returns the one before."""
    global device_wide
    before = device_wide
    device_wide = rows
    return before


cdef int64_t read_largest(Call c, int* at, int64_t count) except -1:
    """The largest of numbers on the device, none negative; waits for them."""
    cdef int64_t n, largest = 0
    cdef bytearray numbers = bytearray(count * 4)
    cdef char* p = numbers
    cdef StreamHandle stream = stream_of(c.index)
    enter(c.index)
    with nogil:
        copy_to_host(p, <DevicePointer><size_t>at, count * 4, stream)
        synchronize_stream(stream)
    for n in range(count):
        largest = max(largest, (<int*>p)[n])
    return largest


cdef char* zeros(Call c, int64_t nbytes) except? NULL:
    cdef TensorBase t = empty_tensor(1, &nbytes, U8, c.place)
    t.zero_()
    c.held.append(t)
    return data_of(t)


cdef int scale(Call c, Part a, char* scales) except -1:
    cdef Task p
    clear(&p)
    p.a, p.values = a, scales
    return launch(c, SCALE_MATRIX, &p, min(c.count, (<int64_t>1 << 31) - 1), 1, 512 if a.rows * a.cols > 4096 else 128)


cdef int sweeps(Call c, int whole, int find, int turn, Part a, Part v, char* scales) except -1:
    """Rotations until none is left: by kernel `whole`, a block a matrix, or where few large ones are given by launches of `find` and `turn`."""
    cdef Task p
    cdef int64_t n = a.cols, pairs = (n + 1) // 2, size = a.rows * n + (v.cols * v.cols if v.at != NULL else 0), round, sweep
    cdef int* counters
    cdef Part rotations = scratch(c, 4, pairs if whole == EIGH_SWEEPS else 0)   # room for 4 numbers of the type holds a rotation
    clear(&p)
    p.a, p.b, p.c, p.values = a, v, rotations, scales
    if n < device_wide or c.count >= 32:
        p.staged = (size + rotations.bs) * c.size <= SHARED
        return launch(c, whole, &p, min(c.count, (<int64_t>1 << 31) - 1), 1, 32 if n <= 8 else 128 if n <= 32 else 256 if n <= 64 else 512,
                      <int>(size + rotations.bs) * c.size if p.staged else 0)
    counters = <int*>zeros(c, MOST_SWEEPS * 4)
    for sweep in range(MOST_SWEEPS):
        p.counter = counters + sweep
        for round in range(n + n % 2 - 1):
            p.first = <int>round
            if find:
                launch(c, find, &p, (pairs + 127) // 128, c.count, 128)
                launch(c, turn, &p, blocks_for(pairs * pairs + (pairs * n if v.at != NULL else 0), 256), c.count, 256)
            else:
                launch(c, turn, &p, min(pairs, MAX_GRID), c.count, 128)
        if read_largest(c, p.counter, 1) == 0:
            return 0
    from tensorrt_lite._C.ops.linalg import LinAlgError
    raise LinAlgError(f"linear algebra: the rotations did not converge in {MOST_SWEEPS} sweeps")


cdef int sorted_values(Call c, Part a, char* scales, char* values, char* target, int* places, int* counter, bint lengths) except -1:
    """Eigenvalues from a's diagonal, ascending, or the lengths of its columns, descending, to `target`; `values`: as they stand."""
    cdef Task p
    clear(&p)
    p.a, p.b.at, p.upper = a, values, lengths
    launch(c, UNSORTED_VALUES, &p, blocks_for(c.count * a.cols, 8), 1, 256)
    p.c.at, p.values, p.pivots, p.pivots_step, p.counter, p.backwards = target, scales, places, a.cols, counter, lengths
    return launch(c, SORT_VALUES, &p, min(c.count, (<int64_t>1 << 31) - 1), 1, 32 if a.cols <= 32 else 256)


cdef int permute(Call c, Part to, Part x, int* places, char* lengths, bint conjugated) except -1:
    cdef Task p
    clear(&p)
    p.a, p.b, p.pivots, p.pivots_step, p.values, p.conjugated = x, to, places, x.cols, lengths, conjugated
    return launch(c, PERMUTE_COLUMNS, &p, blocks_for(x.rows * x.cols, 256), min(c.count, MAX_GRID), 256)


cdef int run_eigh(Call c, Job* w) except -1:
    cdef int64_t n = w.n
    cdef Part a = scratch(c, n, n), v
    cdef char* scales = memory(c, c.count * 2 * c.size)
    cdef char* values = memory(c, c.count * n * c.size)
    cdef int* places = <int*>memory(c, c.count * n * 4)
    gather(c, a, &w.a, HERMITIAN_UPPER if w.uplo == b"U" else HERMITIAN_LOWER)
    memset(&v, 0, sizeof(v))
    if w.flag:
        v = scratch(c, n, n)
        gather(c, v, NULL, IDENTITY)
    scale(c, a, scales)
    sweeps(c, EIGH_SWEEPS, EIGH_FIND, EIGH_TURN, a, v, scales)
    sorted_values(c, a, scales, values, w.out[0], places, NULL, False)
    if w.flag:
        permute(c, result(w, 1, n, n), v, places, NULL, False)
    return 0


cdef int run_svd(Call c, Job* w) except -1:
    """flag: 0 values, 1 the vectors that have one, 2 all. Of A^H where A is wide, of R where A = Q R is tall."""
    cdef bint wide = w.m < w.n
    cdef int64_t rows = max(w.m, w.n), n = min(w.m, w.n)
    cdef Stack turned = w.a
    cdef Part a = scratch(c, rows, n), x = a, v, left, q
    cdef char* scales = memory(c, c.count * 2 * c.size)
    cdef char* lengths = memory(c, c.count * n * c.size)
    cdef char* tau = memory(c, c.count * n * c.size)
    cdef char* more
    cdef int* places = <int*>memory(c, c.count * n * 4)
    cdef int* vanishing = <int*>memory(c, c.count * 4)
    cdef Task p
    if wide:
        turned.rs, turned.cs = w.a.cs, w.a.rs
    gather(c, a, &turned, ALL, wide)
    scale(c, a, scales)
    if rows > n:
        factor_qr(c, a, tau, n)
        x = scratch(c, n, n)
        copy(c, x, block(c, a, 0, 0, n, n), UPPER)
    memset(&v, 0, sizeof(v))
    if w.flag:
        v = scratch(c, n, n)
        gather(c, v, NULL, IDENTITY)
    sweeps(c, SVD_SWEEPS, 0, SVD_ROUND, x, v, scales)
    sorted_values(c, x, scales, lengths, w.out[0], places, vanishing, True)
    if not w.flag:
        return 0
    left = result(w, 1, w.m, rows if w.flag == 2 else n) if not wide else scratch(c, rows, rows if w.flag == 2 else n)
    if rows > n:
        gather(c, left, NULL, IDENTITY)
    q = block(c, left, 0, 0, n, n)
    permute(c, q, x, places, lengths, False)
    if read_largest(c, vanishing, c.count):
        # columns of length zero: any that are orthogonal to the others
        x = scratch(c, n, n)
        copy(c, x, q)
        more = memory(c, c.count * n * c.size)
        factor_qr(c, x, more, n)
        clear(&p)
        p.a, p.b, p.counter = q, scratch(c, n, n), vanishing
        gather(c, p.b, NULL, IDENTITY)
        apply_reflections(c, x, more, n, p.b, False)
        launch(c, COMPLETE_COLUMNS, &p, blocks_for(n * n, 256), min(c.count, MAX_GRID), 256)
    if rows > n:
        apply_reflections(c, a, tau, n, left, False)
    if not wide:
        return permute(c, transposed(result(w, 2, n, n)), v, places, NULL, True)
    permute(c, result(w, 1, n, n), v, places, NULL, False)
    return copy(c, transposed(result(w, 2, left.cols, rows)), left, ALL, True)


cdef int run_eig(Call c, Job* w) except -1:
    """flag: with vectors. Results are complex, and so is the arithmetic."""
    cdef int64_t n = w.n, size
    cdef bint is_real = not is_complex_type(c.dtype)
    cdef Part a = scratch(c, n, n), z, x
    cdef char* scales
    cdef int* partners = <int*>memory(c, c.count * n * 4)
    cdef Task p
    gather(c, a, &w.a)
    clear(&p)
    if is_real:
        c = call_like(c, c.dtype + 2)
        p.a, p.b = scratch(c, n, n), a
        launch(c, WIDEN, &p, blocks_for(n * n, 256), min(c.count, MAX_GRID), 256)
        a = p.a
        clear(&p)
    scales = memory(c, c.count * 2 * c.size)
    scale(c, a, scales)
    memset(&z, 0, sizeof(z))
    if w.flag:
        z = scratch(c, n, n)
        gather(c, z, NULL, IDENTITY)
    p.a, p.b, p.values, p.pivots, p.pivoting = a, z, scales, partners, is_real
    size = n * n * (2 if w.flag else 1) * c.size
    p.staged = size <= SHARED
    launch(c, SCHUR_FORM, &p, min(c.count, (<int64_t>1 << 31) - 1), 1, 32 if n <= 16 else 64 if n <= 32 else 128 if n <= 128 else 512, <int>size if p.staged else 0)
    p.b.at = w.out[0]
    launch(c, SCHUR_VALUES, &p, min(c.count, (<int64_t>1 << 31) - 1), 1, 256)
    if w.flag:
        p.b = x = scratch(c, n, n)
        launch(c, TRIANGLE_VECTORS, &p, blocks_for(c.count * n, 8), 1, 256)
        p.a = scratch(c, n, n)
        multiply(c, p.a, z, x, 1, 0)
        p.b = part(w.out[1], n, n, n * n)
        launch(c, UNIT_COLUMNS, &p, blocks_for(c.count * n, 8), 1, 256)
    return 0


# ---- least squares -------------------------------------------------------------------------------------------------

cdef int solve_by_values(Call c, Job* w) except -1:
    """x = V S^-1 U^H b for the singular values above the tolerance; out: x, ranks, singular values."""
    cdef int64_t k = min(w.m, w.n)
    cdef Job inner = w[0]
    cdef Part u = scratch(c, w.m, k), vh = scratch(c, k, w.n), b = scratch(c, w.m, w.k), y = scratch(c, k, w.k)
    cdef Task p
    inner.flag = 1
    inner.out[0], inner.out[1], inner.out[2] = w.out[2], u.at, vh.at
    inner.step[1], inner.step[2] = u.bs * c.size, vh.bs * c.size
    run_svd(c, &inner)
    gather(c, b, &w.b)
    multiply(c, y, transposed(conjugate_of(c, u)), b, 1, 0)
    clear(&p)
    p.a, p.values, p.tolerance, p.pivots = y, w.out[2], w.tolerance, <int*>w.out[1]
    launch(c, DIVIDE_ROWS, &p, blocks_for(k * w.k, 256), min(c.count, MAX_GRID), 256)
    return multiply(c, result(w, 0, w.n, w.k), transposed(conjugate_of(c, vh)), y, 1, 0)


cdef int run_least_squares(Call c, Job* w) except -1:
    """LAPACK's gels, for matrices of full rank: of more rows than columns the closest, of fewer the shortest solution. Of any rank by
    singular values."""
    cdef int64_t k = min(w.m, w.n)
    cdef bint wide = w.m < w.n
    cdef Stack turned = w.a
    cdef Part a = scratch(c, max(w.m, w.n), k), x = result(w, 0, w.n, w.k), b = scratch(c, max(w.m, w.n), w.k)
    cdef char* tau = memory(c, max(1, c.count * k * c.size))
    cdef Task p
    if w.flag != GELS:
        return solve_by_values(c, w)
    if wide:
        turned.rs, turned.cs = w.a.cs, w.a.rs
    gather(c, a, &turned, ALL, wide)
    factor_qr(c, a, tau, k)
    clear(&p)
    p.a = a
    launch(c, ZERO_DIAGONAL, &p, blocks_for(c.count, 128), 1, 128)
    if wide:  # A^H = Q R: R^H y = b, x = Q (y, 0)
        gather(c, b, NULL, ZERO)
        gather(c, block(c, b, 0, 0, k, w.k), &w.b)
        solve_triangle(c, transposed(block(c, a, 0, 0, k, k)), block(c, b, 0, 0, k, w.k), False, False, True)
        apply_reflections(c, a, tau, k, b, False)
    else:
        gather(c, b, &w.b)
        apply_reflections(c, a, tau, k, b, True)
        solve_triangle(c, block(c, a, 0, 0, k, k), block(c, b, 0, 0, k, w.k), True, False)
    return copy(c, x, block(c, b, 0, 0, w.n, w.k))


# ---- jobs ----------------------------------------------------------------------------------------------------------

cdef int run_job(Job* w, int routine, TensorBase info, TensorBase a, TensorBase b, TensorBase other) except -1:
    cdef Call c = Call.__new__(Call)
    for t in (a, b, other):
        if t is not None and ((<TensorBase>t).device_type != info.device_type or (<TensorBase>t).device_index != info.device_index):
            raise RuntimeError(f"linear algebra: Expected all tensors to be on the same device, but found {t.device} and {info.device}")
    c.index, c.place, c.count, c.info, c.held = info.device_index, place_of(info), w.count, w.info, []
    c.dtype, c.t, c.size = F32 + w.t, w.t, w.size
    info.zero_()
    if routine == LU or routine == SOLVE or routine == INVERSE or routine == DETERMINANT:
        return run_lu(c, w, routine)
    if routine == LU_SOLVE:
        return run_lu_solve(c, w)
    if routine == PERMUTATION:
        c.dtype, c.t, c.size = F32, 0, 4
        return run_permutation(c, w)
    if routine == CHOLESKY:
        return run_cholesky(c, w)
    if routine == CHOLESKY_SOLVE:
        return run_cholesky_solve(c, w)
    if routine == CHOLESKY_INVERSE:
        return run_cholesky_inverse(c, w)
    if routine == TRIANGULAR:
        return run_triangular(c, w)
    if routine == QR or routine == GEQRF or routine == HOUSEHOLDER:
        return run_qr(c, w, routine)
    if routine == ORMQR:
        return run_ormqr(c, w)
    if routine == LEAST_SQUARES:
        return run_least_squares(c, w)
    if routine == LDL or routine == LDL_SOLVE:
        return run_ldl(c, w, routine)
    if routine == EIGH:
        return run_eigh(c, w)
    if routine == SVD:
        return run_svd(c, w)
    # EIG
    return run_eig(c, w)


cdef int read_codes(TensorBase info, int* codes) except -1:
    cdef TensorBase host = <TensorBase?>(<object>info).cpu()
    memcpy(codes, data_of(host), host.numel * sizeof(int))
    return 0


cdef int check_driver(object driver) except -1:
    """There is one method; a name that PyTorch accepts does not choose."""
    if driver not in (None, "gesvd", "gesvdj", "gesvda"):
        raise RuntimeError(f"linalg.svd: unknown svd driver {driver}, please check the documentation")
    return 0


set_linalg_job(DEV_CUDA, run_job)
set_linalg_codes(DEV_CUDA, read_codes)
set_svd_driver(DEV_CUDA, check_driver)
