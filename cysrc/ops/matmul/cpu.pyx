"""GEMMs on the CPU, all dtypes and strides: which loop or library call does one, with which threads, without the GIL where it takes long."""
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
from tensorrt_lite._C.core.allocator cimport trt_block, trt_block_hold, block_drop
from tensorrt_lite._C.core.blas cimport blas_load, blas_fits, blas_begin, blas_end, blas_gemm_raw
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport BF16, BOOL, C64, F16, F32, F64, I32, I64, Scalar, is_blas_type, is_complex_type
from tensorrt_lite._C.core.iterator cimport cast_to, contiguous_of, copy_elements
from tensorrt_lite._C.core.parallel cimport GRAIN, num_threads, parallel_for
from tensorrt_lite._C.core.tensor cimport ITEM_SIZE, TensorBase, data_of, empty_tensor, held, is_large, make_view
from tensorrt_lite._C.autograd.node cimport ops_namespace
from tensorrt_lite._C.ops.matmul.mat cimport Mat, column_of, dense, matrix_of, row_of, transpose_mat
from tensorrt_lite._C.ops.matmul.packed cimport GEMM_IDENTITY, GEMM_RELU, PackedGemm, lowers_precision, packed_begin, packed_end, packed_operands, packed_run
from tensorrt_lite._C.steps.matmul cimport set_dot, set_gemm, set_gemm_activated, set_int_mm, set_sum_rows


cdef extern from "matmul.h" nogil:
    enum:
        NARROW
        NARROW_DEPTH
        GRAM_DEPTH
        SHALLOW
    ctypedef struct trt_tiny_batch:
        int64_t m, n, k
        const void* a
        const void* b
        void* c
        int64_t abs, ars, acs, bbs, brs, bcs, cbs, crs, ccs
        double alpha, beta
    ctypedef struct trt_matmul_table:
        void (*tiny[2])(const trt_tiny_batch*, int64_t, int64_t) noexcept nogil
        void (*narrow[2])(int64_t, int64_t, int64_t, const void*, int64_t, const void*, int64_t, int64_t, const void*, void*, int64_t, double, double) noexcept nogil
        void (*gram[2])(int64_t, int64_t, int64_t, const void*, int64_t, int64_t, const void*, int64_t, void*, int64_t, int64_t, double, double) noexcept nogil
        void (*tiled[2])(int64_t, int64_t, int64_t, const void*, int64_t, int64_t, const void*, int64_t, int64_t, void*, int64_t, double, double) noexcept nogil
        void (*rows_by_rows[4])(int64_t, int64_t, int64_t, const void*, int64_t, const void*, int64_t, void*, int64_t, int64_t, double, double) noexcept nogil
        void (*rows_by_cols[4])(int64_t, int64_t, int64_t, const void*, int64_t, const void*, int64_t, void*, int64_t, int64_t, double, double) noexcept nogil
        void (*rows_by_short_cols[4])(int64_t, int64_t, int64_t, const void*, int64_t, const void*, int64_t, void*, int64_t, int64_t, double, double) noexcept nogil
        void (*tiny_complex)(int64_t, int64_t, int64_t, const void*, int64_t, int64_t, const void*, int64_t, int64_t, void*, int64_t, const double*, const double*) noexcept nogil
        double (*dot[2])(int64_t, const void*, const void*) noexcept nogil
        void (*sum_rows[2])(int64_t, int64_t, const void*, int64_t, void*) noexcept nogil
        void (*integer[4])(int64_t, int64_t, int64_t, const void*, int64_t, int64_t, const void*, int64_t, int64_t, void*, int64_t, int64_t, int64_t, int64_t) noexcept nogil

cdef extern from *:
    """
    #include "isa.h"
    ISA_TABLE(trt_matmul_table, trt_matmul)
    static int has_tall_tiles(void) { return isa_level() == ISA_AVX512; }
    _Static_assert(NARROW == 16, "a bias of so many elements is held in Gemm.bias_row");
    """
    const trt_matmul_table* trt_matmul()
    bint has_tall_tiles()

cdef const trt_matmul_table* LOOPS = trt_matmul()
cdef bint TALL_TILES = has_tall_tiles()

cdef enum:
    TINY_WORK = 64               # multiplications of an item of a batch up to which plain loops beat the call of a tile
    TILES_WORK = 1 << 19         # multiplications up to which tiles over operands as they lie beat the packed GEMM
    TALL_TILES_WORK = 3 << 20    # the same where tiles have eight rows of two 64-byte vectors,
    TALL_TILES_WORK_F32 = 1 << 22
    TALL_TILES_DEPTH = 2048      # up to this depth;
    TALL_TILES_SIDE = 64         # with so few rows or columns they do whatever the work,
    TALL_TILES_FEW_WORK = 1 << 16    # and with two to four rows by a transposed B up to so many multiplications
    FEW = 4                      # rows or columns of which a tile is mostly empty:
    FEW_WORK = 1 << 12           # up to so many multiplications it is still faster
    TINY_COMPLEX_WORK = 1024     # the same for complex64, whose own loop is plain
    TURNED_WORK = 1 << 12        # multiplications from which on a transposed B is packed
    INTEGER_WORK = 1 << 15       # the same for matrices of int64, whose loop is plain
    HELD_WORK = 100000           # multiplications that take about 10 µs: beyond, the GIL is released
    THREAD_WORK = 1 << 18        # multiplications worth another thread: some 10 us
    BLAS_WORK = 1 << 22          # the same for OpenBLAS, in multiplications times bytes of an element
    SKINNY = 12                  # rows (or columns) up to which streaming the other operand, four at a time, beats packing it;
    ROW_SKINNY = 16              # by rows of B, up to twelve at a time
    HALF_SKINNY = 4              # the same for halves, which the packed GEMM multiplies faster than float32
    NARROW_ROWS = 32             # rows from which on a matrix of few columns is held while they pass,
    NARROW_RATIO = 32            # if it has at most so many rows for each of its columns: dot products are the better way then
    DEEP_SIDE = 128              # rows and columns up to which a deep GEMM is cut along its depth (split-K)
    DEEP = 4096                  # the depth from which on it is, and that of a piece: fixed, so that threads don't change the result
    GRAM_ROWS = 64               # the depth from which on a GEMM of few rows and few columns is summed by outer products

cdef struct Gemm:
    int dtype                    # of A, B and C
    int stream                   # WAY_SKINNY: the row of the table, which knows B's type
    int64_t b_size               # bytes of its elements
    int way
    int64_t batch, m, n, k
    char* a
    char* b
    char* c
    Mat ma, mb, mc
    double alpha[2]
    double beta[2]
    int64_t integer_alpha, integer_beta
    char* bias                   # WAY_NARROW: the row that is added in place of C, in bias_row, or NULL
    double bias_row[16]          # NARROW, below: the tensor that it was may change while the GIL is released
    char* splits                 # WAY_DEEP, WAY_GRAM (split-K): one dense (m, n) product for each DEEP, GRAM_DEPTH of k

cdef enum:
    WAY_TILES = 0
    WAY_SKINNY = 1
    WAY_BLAS = 2
    WAY_INTEGER = 3
    WAY_DEEP = 4
    WAY_PACKED = 5
    WAY_NARROW = 6
    WAY_TINY = 7
    WAY_GRAM = 8


cdef inline double real_part(const Scalar* s) noexcept nogil:
    return <double>s.i if s.kind <= 1 else s.d


cdef inline void settle(Mat* x) noexcept nogil:
    """Strides of dimensions of size 1 say nothing: give them the values of a dense matrix."""
    if x.cols == 1 and x.rows == 1:
        x.cs = 1
        x.rs = 1
    elif x.cols == 1:
        if x.rs == 1:
            x.cs = x.rows
        else:
            x.cs = 1
    elif x.rows == 1:
        x.rs = x.cols if x.cs == 1 else 1


cdef inline bint unit_stride(const Mat* x) noexcept nogil:
    """Whether the elements of rows or of columns are adjacent, and lines do not overlap: what streams and BLAS take, plainly or transposed."""
    return x.cs == 1 and x.rs >= (x.cols if x.cols > 1 else 1) or x.rs == 1 and x.cs >= (x.rows if x.rows > 1 else 1)


cdef inline void turn(Gemm* g) noexcept nogil:
    """The same GEMM transposed: C' = B' A'."""
    g.a, g.b = g.b, g.a
    g.ma, g.mb = g.mb, g.ma
    g.m, g.n = g.n, g.m
    transpose_mat(&g.ma)
    transpose_mat(&g.mb)
    transpose_mat(&g.mc)


cdef inline void blas_item(Gemm* g, char* a, char* b, char* c) noexcept nogil:
    cdef int ta = 0 if g.ma.cs == 1 and g.ma.rs >= g.k else 1
    cdef int tb = 0 if g.mb.cs == 1 and g.mb.rs >= g.n else 1
    blas_gemm_raw(g.dtype, ta, tb, g.m, g.n, g.k, g.alpha, a, g.ma.cs if ta else g.ma.rs, b, g.mb.cs if tb else g.mb.rs, g.beta, c, g.mc.rs)


cdef void batch_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    """The GEMMs begin..end of a batch, each by one thread."""
    cdef Gemm* g = <Gemm*>context
    cdef int64_t i, size = ITEM_SIZE[g.dtype]
    cdef char* a
    cdef char* b
    cdef char* c
    cdef trt_tiny_batch t
    if g.way == WAY_TINY:
        t.m, t.n, t.k = g.m, g.n, g.k
        t.a, t.b, t.c = g.a, g.b, g.c
        t.abs, t.ars, t.acs = g.ma.bs, g.ma.rs, g.ma.cs
        t.bbs, t.brs, t.bcs = g.mb.bs, g.mb.rs, g.mb.cs
        t.cbs, t.crs, t.ccs = g.mc.bs, g.mc.rs, g.mc.cs
        t.alpha, t.beta = g.alpha[0], g.beta[0]
        LOOPS.tiny[g.dtype - F32](&t, begin, end)
        return
    for i in range(begin, end):
        a = g.a + i * g.ma.bs * size
        b = g.b + i * g.mb.bs * g.b_size
        c = g.c + i * g.mc.bs * size
        if g.way == WAY_TILES and g.dtype == C64:
            LOOPS.tiny_complex(g.m, g.n, g.k, a, g.ma.rs, g.ma.cs, b, g.mb.rs, g.mb.cs, c, g.mc.rs, g.alpha, g.beta)
        elif g.way == WAY_TILES:
            LOOPS.tiled[g.dtype - F32](g.m, g.n, g.k, a, g.ma.rs, g.ma.cs, b, g.mb.rs, g.mb.cs, c, g.mc.rs, g.alpha[0], g.beta[0])
        elif g.way == WAY_BLAS:
            blas_item(g, a, b, c)
        elif g.way == WAY_NARROW:
            LOOPS.narrow[g.dtype - F32](g.m, g.n, g.k, a, g.ma.rs, b, g.mb.rs, g.mb.cs, g.bias, c, g.mc.rs, g.alpha[0], g.beta[0])
        elif g.way == WAY_GRAM:
            LOOPS.gram[g.dtype - F32](g.m, g.n, g.k, a, g.ma.rs, g.ma.cs, b, g.mb.rs, c, g.mc.rs, g.mc.cs, g.alpha[0], g.beta[0])
        elif g.way == WAY_INTEGER:
            LOOPS.integer[log2_size(g.dtype)](g.m, g.n, g.k, a, g.ma.rs, g.ma.cs, b, g.mb.rs, g.mb.cs, c, g.mc.rs, g.mc.cs, g.integer_alpha, g.integer_beta)
        else:
            skinny(g, a, b, c, 0, g.n)


cdef inline int log2_size(int dtype) noexcept nogil:
    cdef int size = ITEM_SIZE[dtype]
    return 0 if size == 1 else 1 if size == 2 else 2 if size == 4 else 3


cdef inline void skinny(Gemm* g, char* a, char* b, char* c, int64_t begin, int64_t end) noexcept nogil:
    """The columns begin..end of a GEMM of few rows (GEMV-like), some rows at a time."""
    cdef bint by_cols = g.mb.cs == 1 and (g.mb.rs != 1 or g.n > 1), by_short_cols = not by_cols and 2 <= g.k <= SHALLOW
    cdef int64_t size = ITEM_SIZE[g.dtype], at_once = 12 if g.m <= 12 else 8, left = g.m, m
    if not by_cols and not by_short_cols:
        at_once = 4
    b += begin * g.mb.cs * g.b_size
    c += begin * g.mc.cs * size
    while left > 0:
        m = left if left < at_once else at_once
        if by_cols:
            LOOPS.rows_by_cols[g.stream](m, end - begin, g.k, a, g.ma.rs, b, g.mb.rs, c, g.mc.rs, g.mc.cs, g.alpha[0], g.beta[0])
        elif by_short_cols:
            LOOPS.rows_by_short_cols[g.stream](m, end - begin, g.k, a, g.ma.rs, b, g.mb.cs, c, g.mc.rs, g.mc.cs, g.alpha[0], g.beta[0])
        else:
            LOOPS.rows_by_rows[g.stream](m, end - begin, g.k, a, g.ma.rs, b, g.mb.cs, c, g.mc.rs, g.mc.cs, g.alpha[0], g.beta[0])
        a += m * g.ma.rs * size
        c += m * g.mc.rs * size
        left -= m


cdef void column_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Gemm* g = <Gemm*>context
    skinny(g, g.a, g.b, g.c, begin, end)


cdef void tile_rows_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Gemm* g = <Gemm*>context
    cdef int64_t size = ITEM_SIZE[g.dtype]
    LOOPS.tiled[g.dtype - F32](end - begin, g.n, g.k, g.a + begin * g.ma.rs * size, g.ma.rs, g.ma.cs, g.b, g.mb.rs, g.mb.cs,
                              g.c + begin * g.mc.rs * size, g.mc.rs, g.alpha[0], g.beta[0])


cdef void narrow_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Gemm* g = <Gemm*>context
    cdef int64_t size = ITEM_SIZE[g.dtype]
    LOOPS.narrow[g.dtype - F32](end - begin, g.n, g.k, g.a + begin * g.ma.rs * size, g.ma.rs, g.b, g.mb.rs, g.mb.cs, g.bias,
                              g.c + begin * g.mc.rs * size, g.mc.rs, g.alpha[0], g.beta[0])


cdef void tile_columns_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Gemm* g = <Gemm*>context
    cdef int64_t size = ITEM_SIZE[g.dtype]
    LOOPS.tiled[g.dtype - F32](g.m, end - begin, g.k, g.a, g.ma.rs, g.ma.cs, g.b + begin * g.mb.cs * size, g.mb.rs, g.mb.cs,
                              g.c + begin * size, g.mc.rs, g.alpha[0], g.beta[0])


cdef inline int64_t split_depth(const Gemm* g) noexcept nogil:
    """The depth of a split (split-K) of the ways that cut it."""
    return DEEP if g.way == WAY_DEEP else GRAM_DEPTH


cdef void split_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    """The GEMMs of the splits begin..end of the depth, each into its own matrix."""
    cdef Gemm* g = <Gemm*>context
    cdef int64_t size = ITEM_SIZE[g.dtype], whole = split_depth(g), i, depth
    cdef char* a
    cdef char* b
    cdef char* to
    for i in range(begin, end):
        depth = min(whole, g.k - i * whole)
        a = g.a + i * whole * g.ma.cs * size
        b = g.b + i * whole * g.mb.rs * size
        to = g.splits + i * g.m * g.n * size
        if g.way == WAY_GRAM:
            LOOPS.gram[g.dtype - F32](g.m, g.n, depth, a, g.ma.rs, g.ma.cs, b, g.mb.rs, to, g.n, 1, g.alpha[0], 0)
        else:
            LOOPS.tiled[g.dtype - F32](g.m, g.n, depth, a, g.ma.rs, g.ma.cs, b, g.mb.rs, g.mb.cs, to, g.n, g.alpha[0], 0)


cdef void add_pieces(Gemm* g, int64_t splits) noexcept nogil:
    cdef int64_t i, row, j
    cdef float* f
    cdef double* d
    for i in range(splits):
        for row in range(g.m):
            if g.dtype == F32:
                f = <float*>g.c + row * g.mc.rs
                for j in range(g.n):
                    f[j * g.mc.cs] = (<float>g.beta[0] * f[j * g.mc.cs] if g.beta[0] != 0 else 0) + (<float*>g.splits)[(i * g.m + row) * g.n + j]
            else:
                d = <double*>g.c + row * g.mc.rs
                for j in range(g.n):
                    d[j * g.mc.cs] = (g.beta[0] * d[j * g.mc.cs] if g.beta[0] != 0 else 0) + (<double*>g.splits)[(i * g.m + row) * g.n + j]
        g.beta[0] = 1


cdef void integer_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Gemm* g = <Gemm*>context
    cdef int64_t size = ITEM_SIZE[g.dtype]
    LOOPS.integer[log2_size(g.dtype)](end - begin, g.n, g.k, g.a + begin * g.ma.rs * size, g.ma.rs, g.ma.cs, g.b, g.mb.rs, g.mb.cs,
                                      g.c + begin * g.mc.rs * size, g.mc.rs, g.mc.cs, g.integer_alpha, g.integer_beta)


cdef void execute(Gemm* g) noexcept nogil:
    cdef int64_t work = g.m * g.n * (g.k if g.k > 0 else 1), i
    cdef int64_t grain = THREAD_WORK // work + 1, blas_grain = BLAS_WORK // (work * ITEM_SIZE[g.dtype]) + 1
    if g.way == WAY_BLAS:
        if g.batch == 1 or g.batch < num_threads() or num_threads() == 1:
            blas_begin(num_threads() if blas_grain == 1 else 1)
            batch_task(g, 0, g.batch)
        else:
            blas_begin(1)
            parallel_for(g.batch, blas_grain, 1, batch_task, g)
        blas_end()
    elif g.batch > 1:
        parallel_for(g.batch, grain, 1, batch_task, g)
    elif g.way == WAY_SKINNY:
        parallel_for(g.n, THREAD_WORK // (g.k * g.m + 1) + 1, 64, column_task, g)
    elif g.way == WAY_NARROW:
        parallel_for(g.m, THREAD_WORK // (g.k * NARROW) + 1, 8, narrow_task, g)
    elif g.way == WAY_INTEGER:
        parallel_for(g.m, THREAD_WORK // (g.k * g.n + 1) + 1, 1, integer_task, g)
    elif g.way == WAY_DEEP or g.way == WAY_GRAM:
        i = (g.k + split_depth(g) - 1) // split_depth(g)
        parallel_for(i, THREAD_WORK // (split_depth(g) * g.m * g.n) + 1, 1, split_task, g)
        add_pieces(g, i)
    elif work > 2 * THREAD_WORK and g.way == WAY_TILES and g.dtype != C64:
        if g.m >= g.n:
            parallel_for(g.m, THREAD_WORK // (g.k * g.n + 1) + 1, 8, tile_rows_task, g)
        else:
            parallel_for(g.n, THREAD_WORK // (g.k * g.m + 1) + 1, 32, tile_columns_task, g)
    else:
        batch_task(g, 0, 1)


cdef inline void set_scalars(Gemm* g, const Scalar* alpha, const Scalar* beta) noexcept:
    """NULL: alpha 1, beta 0."""
    g.alpha[0] = 1
    g.alpha[1] = g.beta[0] = g.beta[1] = 0
    g.integer_alpha = 1
    g.integer_beta = 0
    if alpha != NULL:
        g.alpha[0] = real_part(alpha)
        g.alpha[1] = alpha.im if alpha.kind == 3 else 0
        g.integer_alpha = alpha.i
    if beta != NULL:
        g.beta[0] = real_part(beta)
        g.beta[1] = beta.im if beta.kind == 3 else 0
        g.integer_beta = beta.i


cdef void take_matrices(Gemm* g, const Mat* mo, const Mat* ma, const Mat* mb) noexcept:
    g.stream = g.dtype - F32
    g.b_size = ITEM_SIZE[g.dtype]
    g.batch = mo.batch
    g.m = mo.rows
    g.n = mo.cols
    g.k = ma.cols
    g.ma = ma[0]
    g.mb = mb[0]
    g.mc = mo[0]
    settle(&g.ma)
    settle(&g.mb)
    settle(&g.mc)


cdef int copy_addend(TensorBase out, TensorBase d, int64_t columns) except -1:
    """out = d, which broadcasts to it; few rows of a bias one by one."""
    cdef int64_t at = 0, size = columns * ITEM_SIZE[out.dtype], end = out.numel * ITEM_SIZE[out.dtype]
    cdef char* to = data_of(out)
    cdef char* source
    if d.ndim != 1 or d.numel != columns or not d.contiguous or not out.contiguous or out.numel > 65536:
        return copy_elements(out, d)
    source = data_of(d)
    while at < end:
        memcpy(to + at, source, size)
        at += size
    return 0


cdef inline int64_t skinny_rows(const Gemm* g) noexcept nogil:
    return ROW_SKINNY if g.mb.cs == 1 else SKINNY


cdef inline bint lies_by_rows(int64_t rs, int64_t cs, int64_t cols) noexcept nogil:
    """Whether a matrix of few columns has its rows one after the other, each in one piece."""
    return 1 < cols <= NARROW and cs == 1 and rs >= cols


cdef inline bint is_gram(const Gemm* g) noexcept nogil:
    """Whether many rows of few elements make few sums, and A' or B has them in one piece."""
    return g.k >= GRAM_ROWS and g.m <= NARROW and g.n <= NARROW and (lies_by_rows(g.mb.rs, g.mb.cs, g.n) or lies_by_rows(g.ma.cs, g.ma.rs, g.m))


cdef bint suits_tall_tiles(const Gemm* g, int64_t work, bint b_transposed) noexcept nogil:
    """Whether AVX-512's tiles, with masks at the edges and a transposed B turned in registers, beat packing, and streams of few rows or columns."""
    if g.m <= FEW or g.n <= FEW:
        return b_transposed and g.m > 1 and g.n >= 32 and work <= TALL_TILES_FEW_WORK
    if g.m <= ROW_SKINNY and not b_transposed or g.k >= 2 * DEEP:
        return False             # rows of B are streamed; a deep GEMM is cut
    return g.m <= TALL_TILES_SIDE or g.n <= TALL_TILES_SIDE or g.k <= TALL_TILES_DEPTH and work <= (TALL_TILES_WORK_F32 if g.dtype == F32 else TALL_TILES_WORK)


cdef int choose_way(const Gemm* g, int64_t work) noexcept:
    """What multiplies fastest; halves have a way of their own. `work`: multiplications of an item of the batch."""
    cdef bint b_transposed = g.mb.cs != 1 and g.mb.rs == 1
    if not is_blas_type(g.dtype):
        return WAY_PACKED if g.dtype == I64 and g.m > FEW and g.n > FEW and work > INTEGER_WORK else WAY_INTEGER
    if is_complex_type(g.dtype):
        return WAY_TILES if g.dtype == C64 and work <= TINY_COMPLEX_WORK else WAY_BLAS
    if g.batch > 1 and work <= TINY_WORK:
        return WAY_TINY
    if g.m >= NARROW_ROWS and 1 < g.n <= NARROW and 0 < g.k <= min(<int64_t>NARROW_DEPTH, NARROW_RATIO * g.n) and (g.ma.cs == 1 or g.k == 1) and (g.mc.cs == 1 and g.mc.rs >= g.n or g.n == 1):
        return WAY_NARROW
    if is_gram(g):
        return WAY_GRAM
    if g.m * g.n <= 4 and g.k >= 128:
        return WAY_SKINNY        # a tile would add along the depth one by one
    if g.dtype == F32 and lowers_precision(g.m, g.n, g.k):
        return WAY_PACKED
    if TALL_TILES and suits_tall_tiles(g, work, b_transposed):
        return WAY_TILES
    if work <= TILES_WORK and b_transposed and g.m > FEW and g.n > SKINNY and g.k >= 16 and work > TURNED_WORK:
        return WAY_PACKED        # tiles pack a transposed B slowly
    if work <= (TILES_WORK if g.m > FEW and g.n > FEW else FEW_WORK) or g.m > FEW and g.m <= ROW_SKINNY and g.mb.cs == 1 and work <= 4 * TILES_WORK:
        return WAY_TILES
    if g.m <= skinny_rows(g) or g.n <= SKINNY:
        return WAY_SKINNY
    if g.k >= 2 * DEEP and g.m <= DEEP_SIDE and g.n <= DEEP_SIDE and g.batch == 1:
        return WAY_DEEP
    return WAY_PACKED


cdef int gemm(str name, TensorBase out, const Mat* mo, TensorBase a, const Mat* ma, TensorBase b, const Mat* mb, const Scalar* alpha, const Scalar* beta,
              TensorBase d, const Mat* md) except -1:
    cdef Gemm g
    cdef TensorBase temporary
    cdef int64_t work, splits
    cdef Mat mt
    cdef bint keep = d is not None and (beta.i != 0 if beta.kind <= 1 else (beta.d != 0 or beta.kind == 3 and beta.im != 0))
    cdef bint added = d is out
    g.dtype = a.dtype
    if g.dtype == BOOL:
        raise RuntimeError(f"\"{name}_cpu\" not implemented for 'Bool'")
    if mo.rows == 0 or mo.cols == 0 or mo.batch == 0:
        return 0
    if is_large(a) or is_large(b) or is_large(out):
        out = held(out)            # the operands are; copies of them let others run
    if g.dtype == F16 or g.dtype == BF16:
        if (mo.rows <= HALF_SKINNY or mo.cols <= HALF_SKINNY) and ma.cols > 0 and mo.rows * mo.cols * ma.cols > TILES_WORK // 32:
            return gemm_half_rows(name, out, mo, a, ma, b, mb, alpha, beta, d if keep else None)
        return gemm_packed(name, out, mo, a, ma, b, mb, alpha, beta, d if keep else None, md, GEMM_IDENTITY)
    set_scalars(&g, alpha, beta if keep else NULL)
    take_matrices(&g, mo, ma, mb)
    if not unit_stride(&g.mc) and is_blas_type(g.dtype) or out.storage.block == a.storage.block or out.storage.block == b.storage.block:
        # tiles, streams and BLAS write rows of C, or columns of the transposed one; and an addend would overwrite a factor
        temporary = empty_tensor(out.ndim, out.sizes, out.dtype, DEV_CPU)
        if keep:
            copy_elements(temporary, d)
        dense(&mt, g.batch, g.m, g.n, mo.flipped)
        gemm(name, temporary, &mt, a, ma, b, mb, alpha, beta, temporary if keep else None, NULL)
        return copy_elements(out, temporary)
    work = g.m * g.n * g.k
    g.way = choose_way(&g, work)
    if g.way == WAY_PACKED:
        return gemm_packed(name, out, mo, a, ma, b, mb, alpha, beta, d if keep else None, md, GEMM_IDENTITY)
    g.bias = NULL
    if keep and g.way == WAY_NARROW and g.batch == 1 and d.ndim == 1 and d.numel == g.n and d.contiguous:
        memcpy(g.bias_row, data_of(d), g.n * ITEM_SIZE[g.dtype])
        g.bias = <char*>g.bias_row
    elif keep and not added:
        copy_addend(out, d, g.n)
    if is_blas_type(g.dtype):
        if g.way == WAY_SKINNY or g.way == WAY_BLAS:
            if not unit_stride(&g.ma):
                a = contiguous_of(a)
                dense(&g.ma, g.batch, g.m, g.k, ma.flipped)
                settle(&g.ma)
            if not unit_stride(&g.mb):
                b = contiguous_of(b)
                dense(&g.mb, g.batch, g.k, g.n, mb.flipped)
                settle(&g.mb)
    g.a = data_of(a)
    g.b = data_of(b)
    g.c = data_of(out)
    if is_blas_type(g.dtype):
        if g.way == WAY_GRAM:
            if not lies_by_rows(g.mb.rs, g.mb.cs, g.n):
                turn(&g)
        elif g.way != WAY_NARROW and g.way != WAY_TINY and (g.mc.cs != 1 or g.mc.rs < g.n):
            turn(&g)
        if g.way == WAY_SKINNY:
            if g.m > skinny_rows(&g):
                turn(&g)
            if g.ma.cs != 1 and g.k > 1:            # the few rows have to lie one after the other
                return gemm_of_packed_rows(&g, a, b, out)
        elif g.way == WAY_BLAS:
            blas_load()
            if not blas_fits(g.m, g.n, g.k, g.ma.rs if g.ma.cs == 1 else g.ma.cs, g.mb.rs if g.mb.cs == 1 else g.mb.cs, g.mc.rs):
                raise RuntimeError(f"{name}: matrices ({g.m}, {g.k}) and ({g.k}, {g.n}) are too large for 32-bit BLAS")
    g.splits = NULL
    if g.way == WAY_DEEP or g.way == WAY_GRAM and g.batch == 1:
        splits = (g.k + split_depth(&g) - 1) // split_depth(&g)
        g.splits = <char*>malloc(splits * g.m * g.n * ITEM_SIZE[g.dtype])
        if g.splits == NULL:
            raise MemoryError(f"{name}: no memory for {splits} partial products of {g.m} x {g.n}")
    run(&g, work, a, b, out)
    free(g.splits)
    return 0


cdef int run(Gemm* g, int64_t work, TensorBase a, TensorBase b, TensorBase out) except -1:
    cdef trt_block* blocks[3]
    cdef int i
    if g.way != WAY_BLAS and work * g.batch < HELD_WORK:
        execute(g)
        return 0
    blocks[0] = a.storage.block
    blocks[1] = b.storage.block
    blocks[2] = out.storage.block
    for i in range(3):
        trt_block_hold(blocks[i])
    with nogil:
        execute(g)
    for i in range(3):
        block_drop(blocks[i])
    return 0


cdef TensorBase dense_copy(TensorBase t, Mat* x, int64_t batch, int64_t rows, int64_t cols):
    """The matrices x of t, each row after the other; x describes the copy afterwards."""
    cdef TensorBase r
    cdef int64_t sizes[3]
    cdef int64_t strides[3]
    sizes[0], sizes[1], sizes[2] = batch, rows, cols
    strides[0], strides[1], strides[2] = x.bs, x.rs, x.cs
    r = contiguous_of(make_view(t, 3, sizes, strides, t.offset))
    dense(x, batch, rows, cols, False)
    return r


cdef int gemm_of_packed_rows(Gemm* g, TensorBase a, TensorBase b, TensorBase out) except -1:
    """A skinny GEMM whose few rows (in g.a) are a transposed operand: they are copied, the other is not."""
    cdef bint first = g.a == data_of(a)
    cdef TensorBase rows = dense_copy(a if first else b, &g.ma, g.batch, g.m, g.k)
    g.a = data_of(rows)
    return run(g, g.m * g.n * g.k, rows, b if first else a, out)


cdef int gemm_half_rows(str name, TensorBase out, const Mat* mo, TensorBase a, const Mat* ma, TensorBase b, const Mat* mb, const Scalar* alpha,
                        const Scalar* beta, TensorBase d) except -1:
    """Few rows (or columns) of halves: these and the result in float32, the other operand is widened while it is streamed."""
    cdef Gemm g
    cdef bint turned = mo.rows > HALF_SKINNY
    cdef TensorBase few = b if turned else a, many = a if turned else b, rows, wide = empty_tensor(out.ndim, out.sizes, F32, DEV_CPU)
    cdef Mat mr = mb[0] if turned else ma[0], mm = ma[0] if turned else mb[0], mw
    dense(&mw, mo.batch, mo.rows, mo.cols, mo.flipped)
    if d is not None:
        copy_elements(wide, d)
    rows = contiguous_of(cast_to(few, F32))
    dense(&mr, mr.batch, mr.rows, mr.cols, mr.flipped)
    if turned:
        transpose_mat(&mr)
        transpose_mat(&mm)
        transpose_mat(&mw)
    if mr.cs != 1 and mr.cols > 1 and mr.rows > 1:            # each of the few rows has to lie in one piece
        rows = contiguous_of(transposed(rows))
        dense(&mr, mr.batch, mr.rows, mr.cols, not mr.flipped)
    g.dtype = F32
    set_scalars(&g, alpha, beta if d is not None else NULL)
    take_matrices(&g, &mw, &mr, &mm)
    if not unit_stride(&g.mb):
        many = contiguous_of(many)
        dense(&g.mb, g.batch, g.k, g.n, mm.flipped)
        settle(&g.mb)
    g.way = WAY_SKINNY
    g.stream = 2 if many.dtype == BF16 else 3
    g.b_size = 2
    g.splits = NULL
    g.a, g.b, g.c = data_of(rows), data_of(many), data_of(wide)
    run(&g, g.m * g.n * g.k, rows, many, wide)
    return copy_elements(out, wide)


cdef TensorBase transposed(TensorBase t):
    """A view with the last two dimensions exchanged."""
    cdef int64_t sizes[3]
    cdef int64_t strides[3]
    cdef int i, n = t.ndim
    for i in range(n):
        sizes[i] = t.sizes[i]
        strides[i] = t.strides[i]
    sizes[n - 2], sizes[n - 1] = sizes[n - 1], sizes[n - 2]
    strides[n - 2], strides[n - 1] = strides[n - 1], strides[n - 2]
    return make_view(t, n, sizes, strides, t.offset)


cdef int gemm_packed(str name, TensorBase out, const Mat* mo, TensorBase a, const Mat* ma, TensorBase b, const Mat* mb, const Scalar* alpha,
                     const Scalar* beta, TensorBase d, const Mat* md, int activation) except -1:
    """The packed GEMM; halves sum in float32 and round once. `d` counts."""
    cdef PackedGemm p
    cdef TensorBase temporary
    cdef Mat mt
    cdef trt_block* blocks[4]
    cdef int i, n = 3
    if mo.cs != 1 and mo.rs != 1 and mo.rows > 1 and mo.cols > 1 or out.storage.block == a.storage.block or out.storage.block == b.storage.block:
        # an element of C is not next to another, or C would overwrite a factor
        temporary = empty_tensor(out.ndim, out.sizes, out.dtype, DEV_CPU)
        dense(&mt, mo.batch, mo.rows, mo.cols, mo.flipped)
        gemm_packed(name, temporary, &mt, a, ma, b, mb, alpha, beta, d, mo if d is out else md, activation)
        return copy_elements(out, temporary)
    packed_operands(&p, ma, mb, mo, (mo if d is out else md) if d is not None else NULL)
    p.g.a, p.g.b, p.g.c = data_of(a), data_of(b), data_of(out)
    p.g.d = data_of(d) if d is not None else NULL
    p.g.alpha = real_part(alpha) if alpha != NULL else 1
    p.g.beta = real_part(beta) if d is not None else 0
    p.g.integer_alpha = alpha.i if alpha != NULL else 1
    p.g.integer_beta = beta.i if d is not None else 0
    p.g.activation = activation
    blocks[0], blocks[1], blocks[2] = a.storage.block, b.storage.block, out.storage.block
    if d is not None:
        blocks[3] = d.storage.block
        n = 4
    for i in range(n):
        trt_block_hold(blocks[i])        # an allocator in Python may run in packed_begin
    try:
        packed_begin(&p, a.dtype)
        if p.g.m * p.g.n * p.g.k * p.batch < HELD_WORK:
            packed_run(&p)
        else:
            with nogil:
                packed_run(&p)
        return packed_end(&p, name)
    finally:
        for i in range(n):
            block_drop(blocks[i])


cdef int gemm_activated(str name, TensorBase out, const Mat* mo, TensorBase a, const Mat* ma, TensorBase b, const Mat* mb, const Scalar* alpha, const Scalar* beta,
                        TensorBase d, const Mat* md, bint gelu) except -1:
    if not gelu and (a.dtype == F16 or a.dtype == BF16 or mo.rows * mo.cols * ma.cols > TILES_WORK and not is_complex_type(a.dtype)):
        return gemm_packed(name, out, mo, a, ma, b, mb, alpha, beta, d, md, GEMM_RELU)
    gemm(name, out, mo, a, ma, b, mb, alpha, beta, d, md)
    if gelu:
        return copy_elements(out, <TensorBase?>_ops.gelu(out))
    _ops.relu_(out)
    return 0


cdef int int_mm(TensorBase out, TensorBase a, TensorBase b) except -1:
    cdef Mat ma, mb, mo
    a, b = cast_to(a, I32), cast_to(b, I32)
    matrix_of(a, &ma)
    matrix_of(b, &mb)
    matrix_of(out, &mo)
    return gemm("_int_mm", out, &mo, a, &ma, b, &mb, NULL, NULL, None, NULL)


# ---- dot products ---------------------------------------------------------------------------------------------------

cdef enum:
    DOT_PIECE = 65536            # elements of one partial sum: fixed, so that threads don't change the result

cdef struct DotWork:
    int dtype
    char* a
    char* b
    int64_t n
    double* sums


cdef void dot_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef DotWork* w = <DotWork*>context
    cdef int64_t i, n, size = ITEM_SIZE[w.dtype]
    for i in range(begin, end):
        n = w.n - i * DOT_PIECE
        w.sums[i] = LOOPS.dot[w.dtype - F32](n if n < DOT_PIECE else DOT_PIECE, w.a + i * DOT_PIECE * size, w.b + i * DOT_PIECE * size)


cdef int dot_on_cpu(TensorBase out, TensorBase a, TensorBase b) except -1:
    cdef DotWork w
    cdef Mat ma, mb, mo
    cdef double total = 0
    cdef int64_t i, splits
    cdef trt_block* first
    cdef trt_block* second
    if a.dtype != F32 and a.dtype != F64:
        row_of(a, &ma)
        column_of(b, &mb)
        dense(&mo, 1, 1, 1, False)
        return gemm("dot", out, &mo, a, &ma, b, &mb, NULL, NULL, None, NULL)
    if is_large(a):
        out = held(out)
    a = contiguous_of(a)
    b = contiguous_of(b)
    w.dtype = a.dtype
    w.a = data_of(a)
    w.b = data_of(b)
    w.n = a.numel
    if w.n <= DOT_PIECE:
        total = LOOPS.dot[w.dtype - F32](w.n, w.a, w.b)
    else:
        splits = (w.n + DOT_PIECE - 1) // DOT_PIECE
        w.sums = <double*>malloc(splits * sizeof(double))
        if w.sums == NULL:
            raise MemoryError("dot: no memory for partial sums")
        first = a.storage.block
        second = b.storage.block
        trt_block_hold(first)
        trt_block_hold(second)
        with nogil:
            parallel_for(splits, GRAIN // DOT_PIECE, 1, dot_task, &w)
            for i in range(splits):
                total += w.sums[i]
        block_drop(first)
        block_drop(second)
        free(w.sums)
    if w.dtype == F32:
        (<float*>data_of(out))[0] = <float>total
    else:
        (<double*>data_of(out))[0] = total
    return 0


# ---- sums of rows ---------------------------------------------------------------------------------------------------

cdef struct RowSum:
    int dtype
    char* a
    char* out
    int64_t rows, columns


cdef void row_sum_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef RowSum* w = <RowSum*>context
    cdef int64_t size = ITEM_SIZE[w.dtype]
    LOOPS.sum_rows[w.dtype - F32](w.rows, end - begin, w.a + begin * size, w.columns, w.out + begin * size)


cdef int sum_rows(TensorBase out, TensorBase a, int64_t rows, int64_t columns) except -1:
    cdef RowSum w
    cdef trt_block* block = a.storage.block
    w.dtype, w.a, w.out, w.rows, w.columns = a.dtype, data_of(a), data_of(out), rows, columns
    if a.numel < HELD_WORK:
        row_sum_task(&w, 0, columns)
        return 0
    trt_block_hold(block)
    with nogil:
        parallel_for(columns, GRAIN // rows + 1, 64, row_sum_task, &w)
    block_drop(block)
    return 0


set_gemm(DEV_CPU, gemm)
set_gemm_activated(DEV_CPU, gemm_activated)
set_int_mm(DEV_CPU, int_mm)
set_dot(DEV_CPU, dot_on_cpu)
set_sum_rows(DEV_CPU, sum_rows)
