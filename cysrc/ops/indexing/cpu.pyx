"""Indexing on the CPU, beneath the checks of indexing.pyx: rows and lines gathered and scattered, masks, positions of non-zeros, search."""
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from tensorrt_lite._C.core.allocator cimport block_drop, trt_block, trt_block_hold
from tensorrt_lite._C.core.device cimport DEV_CPU, DEV_CUSTOM, LAST_CUSTOM
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport I64
from tensorrt_lite._C.core.parallel cimport GRAIN, num_threads, parallel_for, task_fn
from tensorrt_lite._C.core.iterator cimport contiguous_of, copy_elements, on_host
from tensorrt_lite._C.core.storage cimport hooks_of
from tensorrt_lite._C.core.tensor cimport ITEM_SIZE, TensorBase, data_of, empty_tensor, held, is_large, place_of, set_geometry
from tensorrt_lite._C.steps.indexing cimport BagArgs, LineArgs, MaskArgs, OneHotArgs, PUT_SET, RowArgs, SearchArgs
from tensorrt_lite._C.ops.indexing.rows cimport NOT_SKIPPED, index64, vector_offsets
from tensorrt_lite._C.steps.indexing cimport (
    set_bag_gradient, set_bag_largest, set_bag_largest_gradient, set_bag_sums, set_embed, set_first_outside, set_gather_rows, set_lines, set_masked_fill, set_nonzero, set_offsets, set_one_hot, set_scatter_rows, set_search, set_unravel)


ctypedef int64_t (*range_fn)(const int64_t* x, int64_t n, int64_t low, int64_t high) noexcept nogil
ctypedef int64_t (*offsets_fn)(int64_t* offset, const int64_t* x, int64_t n, int64_t size, int64_t wrap, int64_t stride, int add) noexcept nogil
ctypedef int64_t (*count_fn)(const char* data, int dtype, int64_t n) noexcept nogil
ctypedef void (*write_fn)(const char* data, int dtype, int64_t n, int64_t count, int64_t* out) noexcept nogil
ctypedef void (*unravel_fn)(const int64_t* flat, int64_t n, int nd, const int64_t* sizes, int64_t* out, int64_t row, int64_t column) noexcept nogil

cdef extern from *:
    """
    #include "isa.h"
    ISA_TASK(index_gather_rows)
    ISA_TASK(index_scatter_rows)
    ISA_TASK(index_gather_lines)
    ISA_TASK(index_scatter_lines)
    ISA_TASK(index_masked_fill)
    ISA_TASK(index_search_sorted)
    ISA_TASK(index_bag_sums)
    ISA_TASK(index_bag_gradient)
    ISA_TASK(index_bag_largest)
    ISA_TASK(index_bag_largest_gradient)
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
    task_fn trt_bag_sums "index_bag_sums"()
    task_fn trt_bag_gradient "index_bag_gradient"()
    task_fn trt_bag_largest "index_bag_largest"()
    task_fn trt_bag_largest_gradient "index_bag_largest_gradient"()
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
cdef task_fn bag_sums_task = trt_bag_sums()
cdef task_fn bag_gradient_task = trt_bag_gradient()
cdef task_fn bag_largest_task = trt_bag_largest()
cdef task_fn bag_largest_gradient_task = trt_bag_largest_gradient()
cdef task_fn one_hot_task = trt_one_hot()
cdef range_fn out_of_range = trt_out_of_range()
cdef offsets_fn byte_offsets = trt_byte_offsets()
cdef count_fn count_nonzero_in = trt_count_nonzero()
cdef write_fn write_nonzero = trt_write_nonzero()
cdef unravel_fn unravel_positions = trt_unravel()


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


# ---- indices -----------------------------------------------------------------------------------------------------------

cdef int offsets(TensorBase offsets, TensorBase index, int64_t size, int64_t stride, bint negative, bint add, int64_t skipped, str name) except -1:
    cdef int64_t* to = <int64_t*>data_of(offsets)
    cdef const int64_t* at = <const int64_t*>data_of(index)
    cdef int64_t i
    cdef bint outside = byte_offsets(to, at, index.numel, size, size if negative else 0, stride, add)
    if skipped != NOT_SKIPPED:
        for i in range(index.numel):
            if at[i] == skipped:
                to[i] = -1
    return outside


cdef int first_outside(TensorBase index, int64_t low, int64_t high, int64_t* position) except -1:
    position[0] = out_of_range(<const int64_t*>data_of(index), index.numel, low, high)
    return 0


cdef int unravel(TensorBase flat, int ndim, const int64_t* sizes, TensorBase out, int64_t step, int64_t dim_step) except -1:
    unravel_positions(<const int64_t*>data_of(flat), flat.numel, ndim, sizes, <int64_t*>data_of(out), step, dim_step)
    return 0


# ---- rows --------------------------------------------------------------------------------------------------------------

cdef int gather_rows(RowArgs* r, TensorBase table, TensorBase dense, TensorBase offsets) except -1:
    cdef int64_t outers = 1, inner = 1
    cdef int k
    for k in range(r.n_outer):
        outers *= r.outer_size[k]
    for k in range(r.n_inner):
        inner *= r.inner_size[k]
    r.item = ITEM_SIZE[table.dtype]
    r.dtype = table.dtype
    r.op = PUT_SET
    return run_task(gather_rows_task, r, outers * r.m, dense.numel, GRAIN // (inner + 3), table, dense, offsets)


cdef int embed(RowArgs* r, TensorBase table, TensorBase dense, TensorBase indices) except -1:
    """Indices are bounded as they are used, for another thread may write to them: nothing of their size is kept."""
    cdef TensorBase named = contiguous_of(indices)
    r.offset = NULL
    r.index = data_of(named)
    r.index_item = <int>ITEM_SIZE[named.dtype]
    r.limit = table.sizes[0]
    r.table_step = table.strides[0] * ITEM_SIZE[table.dtype]
    r.bad = not r.limit or not dense.numel
    if not r.bad:
        gather_rows(r, table, dense, named)
    if r.bad:  # the error for the first that is outside, unless another thread has changed it since
        vector_offsets("embedding", table, index64(named), 0, False, None)
    return 0


cdef int scatter_rows(RowArgs* r, int64_t span, TensorBase table, TensorBase dense, TensorBase offsets, int op) except -1:
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
    r.item = ITEM_SIZE[table.dtype]
    r.dtype = table.dtype
    r.op = op
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


# ---- lines -------------------------------------------------------------------------------------------------------------

cdef enum:
    FEW_LINES = 16                 # a gather from fewer is shared out by elements


cdef int lines(LineArgs* a, TensorBase table, TensorBase dense, TensorBase index, bint gather, str name) except -1:
    cdef int64_t count = 1
    cdef int k, n = a.nd
    cdef bint rows = n > 0 and a.x[n - 1] == 0 and a.t[n - 1] + a.d[n - 1] <= a.ts + a.ds  # of an expanded index: moved as one
    if a.limit == 0:
        return 1
    for k in range(n):
        count *= a.size[k]
    if n == 0 or gather and (num_threads() > 1 if rows else count < FEW_LINES):
        k = n - 1 if rows else n
        if rows:
            a.size[n], a.t[n], a.d[n], a.x[n] = a.size[k], a.t[k], a.d[k], 0
        a.size[k] = a.n if gather else 1
        a.t[k] = 0
        a.d[k] = a.ds
        a.x[k] = a.xs
        a.nd = n + 1
        if gather:
            count *= a.n
            a.n = 1
    run_task(gather_lines_task if gather else scatter_lines_task, a, count, index.numel, GRAIN // 4 // (a.n + 1), table, dense, index)
    return a.bad


# ---- masks -------------------------------------------------------------------------------------------------------------

cdef int masked_fill_on_cpu(TensorBase s, TensorBase m, TensorBase v, TensorBase r) except -1:
    cdef MaskArgs a
    cdef int64_t item = ITEM_SIZE[r.dtype]
    cdef int k, n = 0
    for k in range(r.ndim):
        if r.sizes[k] == 1:
            continue
        a.size[n] = r.sizes[k]
        a.d[n] = r.strides[k] * item
        a.s[n] = s.strides[k] * item
        a.m[n] = m.strides[k]
        if n > 0 and a.d[n - 1] == a.d[n] * a.size[n] and a.s[n - 1] == a.s[n] * a.size[n] and a.m[n - 1] == a.m[n] * a.size[n]:
            a.size[n - 1] *= a.size[n]
            a.d[n - 1] = a.d[n]
            a.s[n - 1] = a.s[n]
            a.m[n - 1] = a.m[n]
        else:
            n += 1
    if n == 0:
        n = 1
        a.size[0] = 1
        a.d[0] = a.s[0] = a.m[0] = 0
    a.nd = n
    a.dst = data_of(r)
    a.src = data_of(s)
    a.mask = data_of(m)
    a.item = <int>item
    memcpy(a.value, data_of(v), item)
    return run_task(masked_fill_task, &a, r.numel, r.numel, GRAIN // 2, r, s, m)


cdef TensorBase nonzero_on_cpu(TensorBase x, int dims):
    cdef int64_t n = count_nonzero_in(data_of(x), x.dtype, x.numel), one = 1
    cdef int64_t sizes[2]
    cdef TensorBase r
    sizes[0], sizes[1] = dims, n
    r = empty_tensor(2, sizes, I64, DEV_CPU)
    set_geometry(r, 1, &n, &one)       # the last of the rows; no view, as the caller gives the others back
    r.offset = (dims - 1) * n
    write_nonzero(data_of(x), x.dtype, x.numel, n, <int64_t*>data_of(r))
    return r


cdef int one_hot_on_cpu(TensorBase given, int64_t classes, TensorBase r) except -1:
    cdef TensorBase x = held(given) if is_large(given) or is_large(r) else given
    cdef OneHotArgs a
    a.index = <const int64_t*>data_of(x)
    a.out = <int64_t*>data_of(r)
    a.classes = classes
    a.bad = 0
    run_task(one_hot_task, &a, x.numel, r.numel, GRAIN // 2 // classes, x, r, r)
    return a.bad


# ---- bags of rows ------------------------------------------------------------------------------------------------------

cdef TensorBase bag_arguments(BagArgs* a, TensorBase table, TensorBase dense, TensorBase given, TensorBase scale, int64_t skipped):
    """Fill in what sums and gradient share; the contiguous indices, which have to live as long."""
    cdef TensorBase indices = contiguous_of(given)
    a.table, a.dense = data_of(table), data_of(dense)
    a.index = data_of(indices)
    a.index_item = <int>ITEM_SIZE[indices.dtype]
    a.limit, a.skipped, a.bad = table.sizes[0], skipped if skipped >= 0 else NOT_SKIPPED, 0
    a.scale = NULL if scale is None else data_of(scale)
    a.count, a.columns, a.bags, a.dtype = indices.numel, table.sizes[1], dense.sizes[0], table.dtype
    if a.count and not a.limit:
        raise_outside(table, indices)
    if scale is not None and scale.numel != a.count:
        raise RuntimeError(f"embedding_bag: {scale.numel} scales for {a.count} indices")
    return indices


cdef int raise_outside(TensorBase table, TensorBase indices) except -1:
    """The error for the first index that is no row of the table, unless another thread has changed it since."""
    vector_offsets("embedding_bag", table, index64(indices), 0, False, None)
    return 0


cdef int bag_sums(TensorBase weight, TensorBase indices, TensorBase ends, TensorBase scale, int64_t skipped, TensorBase r) except -1:
    cdef BagArgs a
    cdef TensorBase rows = bag_arguments(&a, weight, r, indices, scale, skipped)
    a.ends = <const int64_t*>data_of(ends)
    a.bag = NULL
    run_bag_task(bag_sums_task, &a, r.sizes[0], (a.count + r.sizes[0]) * a.columns, r.sizes[0] * GRAIN // ((a.count + 1) * a.columns), weight, rows, ends, scale, r)
    return raise_outside(weight, rows) if a.bad else 0


cdef int bag_gradient(TensorBase grad, TensorBase indices, TensorBase bag, TensorBase scale, int64_t skipped, TensorBase r) except -1:
    cdef BagArgs a
    cdef TensorBase rows = bag_arguments(&a, r, grad, indices, scale, skipped)
    a.bag = <const int64_t*>data_of(bag)
    a.ends = NULL
    if bag.numel != a.count:
        raise RuntimeError(f"embedding_bag: bags of {bag.numel} indices for {a.count}")
    run_bag_task(bag_gradient_task, &a, a.columns, a.count * a.columns, max(<int64_t>16, GRAIN // (a.count + 1)), grad, rows, bag, scale, r)
    return raise_outside(r, rows) if a.bad else 0


cdef int bag_largest(TensorBase weight, TensorBase indices, TensorBase ends, int64_t skipped, TensorBase r, TensorBase largest) except -1:
    cdef BagArgs a
    cdef TensorBase rows = bag_arguments(&a, weight, r, indices, None, skipped)
    a.ends = <const int64_t*>data_of(ends)
    a.bag = NULL
    a.largest = <int64_t*>data_of(largest)
    run_bag_task(bag_largest_task, &a, r.sizes[0], (a.count + r.sizes[0]) * a.columns, r.sizes[0] * GRAIN // ((a.count + 1) * a.columns), weight, rows, ends, largest, r)
    return raise_outside(weight, rows) if a.bad else 0


cdef int bag_largest_gradient(TensorBase grad, TensorBase largest, TensorBase r) except -1:
    cdef BagArgs a
    a.table, a.dense, a.largest = data_of(r), data_of(grad), <int64_t*>data_of(largest)
    a.limit, a.columns, a.bags, a.dtype = r.sizes[0], r.sizes[1], grad.sizes[0], r.dtype
    return run_task(bag_largest_gradient_task, &a, a.columns, grad.numel, max(<int64_t>16, GRAIN // (a.bags + 1)), grad, largest, r)


cdef int run_bag_task(task_fn task, BagArgs* a, int64_t n, int64_t work, int64_t grain, TensorBase x, TensorBase rows, TensorBase bags, TensorBase scale, TensorBase r) except -1:
    """run_task for operands of which there are five."""
    cdef trt_block* held[2]
    held[0] = rows.storage.block
    held[1] = held[0] if scale is None else scale.storage.block  # another thread may give the storage another one meanwhile
    trt_block_hold(held[0])
    trt_block_hold(held[1])
    run_task(task, a, n, work, grain, x, bags, r)
    block_drop(held[0])
    block_drop(held[1])
    return 0


# ---- search ------------------------------------------------------------------------------------------------------------

cdef int search_on_cpu(SearchArgs* a, TensorBase s, TensorBase v, TensorBase r) except -1:
    return run_task(search_task, a, v.numel, v.numel * 16, 8192, s, v, r)


set_offsets(DEV_CPU, offsets)
set_first_outside(DEV_CPU, first_outside)
set_unravel(DEV_CPU, unravel)
set_gather_rows(DEV_CPU, gather_rows)
set_embed(DEV_CPU, embed)
set_scatter_rows(DEV_CPU, scatter_rows)
set_lines(DEV_CPU, lines)
set_masked_fill(DEV_CPU, masked_fill_on_cpu)

# ---- custom devices: of what is no row, which could fall back as a whole ------------------------------------------------

cdef TensorBase nonzero_on_host(TensorBase x, int dims):
    cdef TensorBase found, r
    hooks_of(x.device_type).fall_back(x.device_type, b"nonzero")
    found = nonzero_on_cpu(on_host(x), 1)
    r = empty_tensor(found.ndim, found.sizes, found.dtype, place_of(x))
    copy_elements(r, found)
    return r


cdef int one_hot_on_host(TensorBase given, int64_t classes, TensorBase r) except -1:
    cdef TensorBase c
    cdef int outside
    hooks_of(r.device_type).fall_back(r.device_type, b"one_hot")
    c = empty_tensor(r.ndim, r.sizes, r.dtype, DEV_CPU)
    copy_elements(c, r)
    outside = one_hot_on_cpu(on_host(given), classes, c)
    copy_elements(r, c)
    return outside


for _device in range(DEV_CUSTOM, LAST_CUSTOM + 1):
    set_nonzero(_device, nonzero_on_host)
    set_one_hot(_device, one_hot_on_host)

set_nonzero(DEV_CPU, nonzero_on_cpu)
set_one_hot(DEV_CPU, one_hot_on_cpu)
set_bag_sums(DEV_CPU, bag_sums)
set_bag_gradient(DEV_CPU, bag_gradient)
set_bag_largest(DEV_CPU, bag_largest)
set_bag_largest_gradient(DEV_CPU, bag_largest_gradient)
set_search(DEV_CPU, search_on_cpu)
