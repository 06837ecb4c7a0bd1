# Indexing kernels' C side: argument blocks, choice of the instruction set, conversion and checks of indices.
from libc.stdlib cimport calloc

cdef extern from "indexing.h" nogil:
    enum:
        INDEX_DIMS
        PUT_SET
        PUT_ADD
        PUT_MUL
        PUT_MIN
        PUT_MAX
    ctypedef struct RowArgs:
        int64_t m
        const int64_t* offset
        int64_t dense_step
        int n_outer, n_inner
        int64_t outer_size[64]
        int64_t outer_table[64]
        int64_t outer_dense[64]
        int64_t inner_size[64]
        int64_t inner_table[64]
        int64_t inner_dense[64]
        char* table
        char* dense
        int item, op, dtype
    ctypedef struct LineArgs:
        int nd
        int64_t n, ts, ds, xs, limit, wrap
        int64_t size[64]
        int64_t t[64]
        int64_t d[64]
        int64_t x[64]
        char* table
        char* dense
        const int64_t* index
        int item, op, dtype, bad
    ctypedef struct MaskArgs:
        int nd
        int64_t size[64]
        int64_t d[64]
        int64_t s[64]
        int64_t m[64]
        char* dst
        char* src
        char* mask
        int item
        char value[16]
    ctypedef struct SearchArgs:
        const char* sorted
        const char* values
        const int64_t* sorter
        char* out
        int64_t n, count, row_step
        int right, out_int32, dtype
    ctypedef struct OneHotArgs:
        const int64_t* index
        int64_t* out
        int64_t classes
        int bad

ctypedef int64_t (*range_fn)(const int64_t* x, int64_t n, int64_t low, int64_t high) noexcept nogil
ctypedef int64_t (*offsets_fn)(int64_t* offset, const int64_t* x, int64_t n, int64_t size, int64_t wrap, int64_t stride, int add) noexcept nogil
ctypedef int64_t (*count_fn)(const char* data, int dtype, int64_t n) noexcept nogil
ctypedef void (*write_fn)(const char* data, int dtype, int64_t n, int64_t count, int64_t* out) noexcept nogil
ctypedef void (*unravel_fn)(const int64_t* flat, int64_t n, int nd, const int64_t* sizes, int64_t* out, int64_t row, int64_t column) noexcept nogil

cdef extern from *:
    """
    ISA_TASK(index_gather_rows)
    ISA_TASK(index_scatter_rows)
    ISA_TASK(index_gather_lines)
    ISA_TASK(index_scatter_lines)
    ISA_TASK(index_masked_fill)
    ISA_TASK(index_search_sorted)
    ISA_TASK(index_one_hot)
    ISA_FUNCTION(int64_t, index_out_of_range, (const int64_t*, int64_t, int64_t, int64_t))
    ISA_FUNCTION(int64_t, index_offsets, (int64_t*, const int64_t*, int64_t, int64_t, int64_t, int64_t, int))
    ISA_FUNCTION(int64_t, index_count_nonzero, (const char*, int, int64_t))
    ISA_FUNCTION(void, index_write_nonzero, (const char*, int, int64_t, int64_t, int64_t*))
    ISA_FUNCTION(void, index_unravel, (const int64_t*, int64_t, int, const int64_t*, int64_t*, int64_t, int64_t))
    """
    task_fn trt_gather_rows "index_gather_rows"()
    task_fn trt_scatter_rows "index_scatter_rows"()
    task_fn trt_gather_lines "index_gather_lines"()
    task_fn trt_scatter_lines "index_scatter_lines"()
    task_fn trt_masked_fill "index_masked_fill"()
    task_fn trt_search_sorted "index_search_sorted"()
    task_fn trt_one_hot "index_one_hot"()
    range_fn trt_out_of_range "index_out_of_range"()
    offsets_fn trt_byte_offsets "index_offsets"()
    count_fn trt_count_nonzero "index_count_nonzero"()
    write_fn trt_write_nonzero "index_write_nonzero"()
    unravel_fn trt_unravel "index_unravel"()

cdef task_fn gather_rows_task = trt_gather_rows()
cdef task_fn scatter_rows_task = trt_scatter_rows()
cdef task_fn gather_lines_task = trt_gather_lines()
cdef task_fn scatter_lines_task = trt_scatter_lines()
cdef task_fn masked_fill_task = trt_masked_fill()
cdef task_fn search_task = trt_search_sorted()
cdef task_fn one_hot_task = trt_one_hot()
cdef range_fn out_of_range = trt_out_of_range()
cdef offsets_fn byte_offsets = trt_byte_offsets()
cdef count_fn count_nonzero_in = trt_count_nonzero()
cdef write_fn write_nonzero = trt_write_nonzero()
cdef unravel_fn unravel = trt_unravel()


# ---- kernels on CUDA, set by cysrc/cuda/indexing.pyx ------------------------------------------------------------------

cdef enum:
    NOT_SKIPPED = -0x7FFFFFFFFFFFFFFF      # no index is this

cdef int (*device_offsets)(str name, TensorBase offsets, TensorBase index, int64_t size, int64_t stride, bint negative, bint add, int64_t skipped) except -1
cdef int (*device_gather)(RowArgs* r, TensorBase table, TensorBase dense) except -1
cdef int (*device_scatter)(RowArgs* r, int64_t span, TensorBase table, TensorBase dense, int op) except -1
cdef int (*device_lines)(str name, LineArgs* a, TensorBase table, TensorBase dense, TensorBase index, bint gather) except -1
cdef object (*device_nonzero)(TensorBase x)
cdef int (*device_unravel)(TensorBase flat, int ndim, const int64_t* sizes, TensorBase out, int64_t step, int64_t dim_step) except -1
cdef int (*device_search)(SearchArgs* a, TensorBase values) except -1


def _set_device_kernels(size_t offsets, size_t gather_, size_t scatter_, size_t lines, size_t nonzero_, size_t unravel_, size_t search_):
    (<void**>&device_offsets)[0] = <void*>offsets
    (<void**>&device_gather)[0] = <void*>gather_
    (<void**>&device_scatter)[0] = <void*>scatter_
    (<void**>&device_lines)[0] = <void*>lines
    (<void**>&device_nonzero)[0] = <void*>nonzero_
    (<void**>&device_unravel)[0] = <void*>unravel_
    (<void**>&device_search)[0] = <void*>search_


cdef TensorBase number_beside(TensorBase like, int dtype, const Scalar* value):
    """A number as a 0-dimensional tensor on the device of `like`."""
    cdef TensorBase r
    if like.device_type != DEV_CUDA:
        return number_tensor(dtype, value)
    r = empty_tensor(0, NULL, dtype, place_of(like))
    fill_elements(r, value)
    return r


cdef TensorBase beside(TensorBase t, TensorBase like):
    """A tensor for use with `like`: a 0-dimensional one of the CPU may stand beside those of a device."""
    if t.device_type == like.device_type or t.ndim or t.device_type != DEV_CPU:
        return t
    return <TensorBase>(<object>t).to((<object>like).device)


cdef int run_task(task_fn task, void* args, int64_t n, int64_t work, int64_t grain, TensorBase a, TensorBase b, TensorBase c) except -1:
    """Run a kernel over [0, n); without the GIL and in several threads when `work` elements are worth it."""
    cdef trt_block* ha = a.storage.block
    cdef trt_block* hb = b.storage.block
    cdef trt_block* hc = c.storage.block
    if n <= 0:
        return 0
    if work < 8192:
        task(args, 0, n)
        return 0
    trt_block_hold(ha)
    trt_block_hold(hb)
    trt_block_hold(hc)
    with nogil:
        parallel_for(n, max(grain, <int64_t>1), 1, task, args)
    block_drop(ha)
    block_drop(hb)
    block_drop(hc)
    return 0


cdef TensorBase index64(TensorBase index):
    """A contiguous int64 copy of an index (itself when it is that)."""
    return contiguous_of(cast_to(index, I64))


cdef int check_device_data(TensorBase t, str op) except -1:
    if t.device_type == DEV_META:
        raise NotImplementedError(f"{op}(): the result's shape depends on the data, which meta tensors do not have")
    return 0


cdef inline void add_dim(int* n, int64_t* sizes, int64_t* a, int64_t* b, int64_t size, int64_t sa, int64_t sb) noexcept:
    """Append a dimension (slowest first), merged with the previous one where both strides continue."""
    cdef int k = n[0]
    if size == 1:
        return
    if k > 0 and a[k - 1] == sa * size and b[k - 1] == sb * size:
        sizes[k - 1] *= size
        a[k - 1] = sa
        b[k - 1] = sb
        return
    sizes[k] = size
    a[k] = sa
    b[k] = sb
    n[0] = k + 1


# ---- rows: indices on whole dimensions ------------------------------------------------------------------------------

cdef int run_gather(RowArgs* r, TensorBase table, TensorBase dense, TensorBase offsets) except -1:
    cdef int64_t outers = 1, inner = 1
    cdef int k
    if dense.numel == 0:
        return 0
    if table.device_type == DEV_CUDA:
        return device_gather(r, table, dense)
    for k in range(r.n_outer):
        outers *= r.outer_size[k]
    for k in range(r.n_inner):
        inner *= r.inner_size[k]
    r.item = ITEM_SIZE[table.dtype]
    r.dtype = table.dtype
    r.op = PUT_SET
    return run_task(gather_rows_task, r, outers * r.m, dense.numel, GRAIN // (inner + 3), table, dense, offsets)


cdef int run_scatter(RowArgs* r, int64_t low, int64_t span, TensorBase table, TensorBase dense, TensorBase offsets, int op) except -1:
    """Table positions are split between threads, so that each element is written by one, in the order of the indices.

    Single elements under outer dimensions are lines that share their indices (byte offsets): each line is one thread's.
    So is what one thread writes alone.
    """
    cdef int64_t inner = 1
    cdef int k
    cdef LineArgs a
    for k in range(r.n_inner):
        inner *= r.inner_size[k]
    for k in range(r.n_outer):
        inner *= r.outer_size[k]
    if inner == 0 or r.m == 0:
        return 0
    if table.device_type == DEV_CUDA:
        return device_scatter(r, span, table, dense, op)
    r.item = ITEM_SIZE[table.dtype]
    r.dtype = table.dtype
    r.op = op
    if op >= PUT_MIN and category[table.dtype] == CAT_COMPLEX:
        raise RuntimeError("scatter_reduce: amin and amax are not defined for complex tensors")
    if r.n_inner == 0 and (inner >= 4 or num_threads() == 1):
        a.nd = max(r.n_outer, 1)
        a.size[0] = 1
        a.t[0] = a.d[0] = a.x[0] = 0
        a.n = r.m
        a.ts = a.xs = 1
        a.limit = 0x7FFFFFFFFFFFFFFF             # offsets are this call's own, checked when they were made
        a.wrap = 0
        a.ds = r.dense_step
        for k in range(r.n_outer):
            a.size[k] = r.outer_size[k]
            a.t[k] = r.outer_table[k]
            a.d[k] = r.outer_dense[k]
            a.x[k] = 0
        a.table = r.table
        a.dense = r.dense
        a.index = r.offset
        a.item = r.item
        a.op = op
        a.dtype = r.dtype
        return run_task(scatter_lines_task, &a, inner, r.m * inner, GRAIN // 4 // (r.m + 1), table, dense, offsets)
    return run_task(scatter_rows_task, r, span, r.m * inner, span if r.m * inner < GRAIN else span // 64 + 1, table, dense, offsets)


cdef int dimension_rows(RowArgs* r, TensorBase table, TensorBase dense, int dim) except -1:
    """Fill in the geometry where the index runs along one dimension of both operands."""
    cdef int64_t ti = ITEM_SIZE[table.dtype], di = ITEM_SIZE[dense.dtype]
    cdef int k
    r.n_outer = 0
    r.n_inner = 0
    for k in range(dim):
        add_dim(&r.n_outer, r.outer_size, r.outer_table, r.outer_dense, table.sizes[k], table.strides[k] * ti, dense.strides[k] * di)
    for k in range(dim + 1, table.ndim):
        add_dim(&r.n_inner, r.inner_size, r.inner_table, r.inner_dense, table.sizes[k], table.strides[k] * ti, dense.strides[k] * di)
    r.table = data_of(table)
    r.dense = data_of(dense)
    r.dense_step = dense.strides[dim] * di if dense.ndim else 0
    return 0


cdef TensorBase offsets_along(str name, TensorBase index, int64_t size, int64_t stride, bint negative, bint* bad):
    """Byte offsets of a contiguous int64 index; *bad: it names something outside of [0, size), or of [-size, size) when `negative`."""
    cdef TensorBase offsets = empty_tensor(1, &index.numel, I64, place_of(index))
    if index.device_type == DEV_CUDA:
        bad[0] = False
        device_offsets(name, offsets, index, size, stride, negative, False, NOT_SKIPPED)
        return offsets
    bad[0] = byte_offsets(<int64_t*>data_of(offsets), <const int64_t*>data_of(index), index.numel, size, size if negative else 0, stride, 0)
    return offsets


cdef int64_t first_bad(TensorBase index, int64_t low, int64_t high) except -2:
    """Position of the first index outside of [low, high), -1 when all are inside; `index` is contiguous int64. Kernels on a device
    check theirs."""
    if index.device_type == DEV_CUDA:
        return -1
    return out_of_range(<const int64_t*>data_of(index), index.numel, low, high)


cdef inline int64_t index_at(TensorBase index, int64_t i) noexcept:
    return (<const int64_t*>data_of(index))[i]


# ---- lines: one index per element along a dimension -----------------------------------------------------------------

cdef enum:
    FEW_LINES = 16                 # a gather from fewer is shared out by elements


cdef int run_lines(str name, TensorBase table, TensorBase dense, TensorBase index, int dim, int op, bint gather, bint scalar, bint negative) except -1:
    """gather: dense[..i..] = table[..index..]; otherwise table[..index..] <op>= dense[..i..] over index's sizes.

    Returns 1 where an index was outside of [0, size), or of [-size, size) when `negative`: 0 was used for it.
    """
    cdef LineArgs a
    cdef int64_t ti = ITEM_SIZE[table.dtype], lines = 1
    cdef int k, n = 0
    if index.numel == 0:
        return 0
    a.n = index.sizes[dim] if index.ndim else 1
    a.limit = table.sizes[dim] if table.ndim else 1
    if a.limit == 0 and table.device_type != DEV_CUDA:
        return 1
    a.wrap = a.limit if negative else 0
    a.bad = 0
    a.ts = table.strides[dim] * ti if table.ndim else 0
    a.ds = dense.strides[dim] * ti if not scalar and dense.ndim else 0
    a.xs = index.strides[dim] if index.ndim else 0
    for k in range(index.ndim):
        if k == dim or index.sizes[k] == 1:
            continue
        lines *= index.sizes[k]
        a.size[n] = index.sizes[k]
        a.t[n] = table.strides[k] * ti
        a.d[n] = 0 if scalar else dense.strides[k] * ti
        a.x[n] = index.strides[k]
        if n > 0 and a.t[n - 1] == a.t[n] * a.size[n] and a.d[n - 1] == a.d[n] * a.size[n] and a.x[n - 1] == a.x[n] * a.size[n]:
            a.size[n - 1] *= a.size[n]
            a.t[n - 1] = a.t[n]
            a.d[n - 1] = a.d[n]
            a.x[n - 1] = a.x[n]
        else:
            n += 1
    if n == 0 or gather and lines < FEW_LINES and table.device_type == DEV_CPU:
        a.size[n] = a.n if gather and table.device_type == DEV_CPU else 1
        a.t[n] = 0
        a.d[n] = a.ds
        a.x[n] = a.xs
        n += 1
        if gather and table.device_type == DEV_CPU:
            lines *= a.n
            a.n = 1
    a.nd = n
    a.table = data_of(table)
    a.dense = data_of(dense)
    a.index = <const int64_t*>data_of(index)
    a.item = <int>ti
    a.op = op
    a.dtype = table.dtype
    if table.device_type == DEV_CUDA:
        device_lines(name, &a, table, dense, index, gather)
        return 0
    run_task(gather_lines_task if gather else scatter_lines_task, &a, lines, index.numel, GRAIN // 4 // (a.n + 1), table, dense, index)
    return a.bad
