"""Sorting on the CPU, beneath the checks of sorting.pyx: lines along a dimension, distinct elements and rows, bins and counts.

Lines are shared out between workers, each with its own scratch memory. Equal elements keep their order, so no result depends on the number of threads.
"""
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy
from tensorrt_lite._C.core.allocator cimport trt_block, trt_block_hold, block_alloc, block_drop
from tensorrt_lite._C.core.device cimport DEV_CPU, DEV_CUSTOM, LAST_CUSTOM
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport F64, I64, U8
from tensorrt_lite._C.core.iterator cimport cast_to, contiguous_of, copy_elements, on_host
from tensorrt_lite._C.core.storage cimport hooks_of
from tensorrt_lite._C.core.parallel cimport num_threads, parallel_for, task_fn
from tensorrt_lite._C.core.tensor cimport ITEM_SIZE, MAX_DIMS, TensorBase, data_of, empty_tensor, held, make_view, set_geometry, shape_text
from tensorrt_lite._C.ops.sorting.loops cimport BinArgs, RowsArgs, RunArgs, SORT_ALL, SORT_BLOCKS, SortArgs
from tensorrt_lite._C.steps.sorting cimport set_count_numbers, set_number_bins, set_sort_lines, set_unique


ctypedef int64_t (*scratch_fn)(const SortArgs*, int, int64_t) noexcept nogil
ctypedef int64_t (*runs_fn)(const RunArgs*) noexcept nogil
ctypedef void (*rows_fn)(const RowsArgs*, int) noexcept nogil
ctypedef int64_t (*row_runs_fn)(const RowsArgs*, int64_t*, int64_t*) noexcept nogil
ctypedef void (*bins_fn)(const BinArgs*) noexcept nogil
ctypedef void (*tally_fn)(const int64_t*, const double*, int64_t, int64_t, void*) noexcept nogil

cdef extern from *:
    """
    #include "isa.h"
    ISA_TASK(sort_lines)
    ISA_FUNCTION(int64_t, sort_scratch, (const SortArgs*, int, int64_t))
    ISA_FUNCTION(int64_t, sort_runs, (const RunArgs*))
    ISA_FUNCTION(void, sort_rows, (const RowsArgs*, int))
    ISA_FUNCTION(int64_t, sort_row_runs, (const RowsArgs*, int64_t*, int64_t*))
    ISA_FUNCTION(void, sort_bins, (const BinArgs*))
    ISA_FUNCTION(void, sort_count, (const int64_t*, const double*, int64_t, int64_t, void*))
    """
    task_fn trt_sort_lines "sort_lines"()
    scratch_fn trt_sort_scratch "sort_scratch"()
    runs_fn trt_sort_runs "sort_runs"()
    rows_fn trt_sort_rows "sort_rows"()
    row_runs_fn trt_sort_row_runs "sort_row_runs"()
    bins_fn trt_sort_bins "sort_bins"()
    tally_fn trt_sort_count "sort_count"()

cdef task_fn lines_task = trt_sort_lines()
cdef scratch_fn sort_scratch = trt_sort_scratch()
cdef runs_fn sort_runs = trt_sort_runs()
cdef rows_fn sort_rows = trt_sort_rows()
cdef row_runs_fn sort_row_runs = trt_sort_row_runs()
cdef bins_fn sort_bins = trt_sort_bins()
cdef tally_fn sort_count = trt_sort_count()

cdef enum:
    SHARED_LINE = 65536           # elements from which one line is sorted by several threads
    SERIAL_WORK = 16384           # elements below which all lines are one worker's


cdef int sort_lines(TensorBase x, int d, TensorBase values, TensorBase indices, int what, int64_t keep, int64_t kth, bint descending, bint ordered) except -1:
    cdef SortArgs a
    cdef int order[MAX_DIMS]
    cdef int i, j, k, n = 0, item = ITEM_SIZE[x.dtype]
    cdef int64_t threads = num_threads()
    cdef trt_block* scratch
    cdef trt_block* source = x.storage.block
    a.n = x.sizes[d] if x.ndim else 1
    a.what = what
    a.keep = keep
    a.kth = kth
    a.descending = descending
    a.ordered = ordered
    if a.n >= (<int64_t>1 << 32):
        raise RuntimeError(f"sorting: dimensions of 2**32 elements and more are not supported, got shape {shape_text(x)}")
    a.x = data_of(x)
    a.dtype = x.dtype
    a.xs = x.strides[d] * item if x.ndim else item
    a.vs = values.strides[d] * item if values is not None and values.ndim else item
    a.along_indices = indices.strides[d] * 8 if indices is not None and indices.ndim else 8
    a.values = data_of(values) if values is not None else NULL
    a.indices = data_of(indices) if indices is not None else NULL
    # the dimension whose neighbours lie closest together is the fastest, so that tiles of lines share cache lines
    for i in range(x.ndim):
        if i == d or x.sizes[i] == 1:
            continue
        k = n
        while k > 0 and x.strides[order[k - 1]] < x.strides[i]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = i
        n += 1
    a.nd = n
    a.lines = 1
    for i in range(n):
        j = order[i]
        a.size[i] = x.sizes[j]
        a.lines *= x.sizes[j]
        a.xo[i] = x.strides[j] * item
        a.vo[i] = values.strides[j] * item if values is not None else 0
        a.io[i] = indices.strides[j] * 8 if indices is not None else 0
    a.workers = 1
    if a.lines > 1 and a.n * a.lines >= SERIAL_WORK:
        a.workers = min(threads, a.lines)
    elif a.what == SORT_ALL and a.n >= SHARED_LINE:
        a.workers = min(threads, <int64_t>SORT_BLOCKS)
    a.run = <void*>parallel_for
    a.worker_bytes = sort_scratch(&a, item, a.workers if a.lines == 1 else 1)
    scratch = block_alloc(a.worker_bytes * a.workers)
    a.scratch = scratch.data
    if a.n * a.lines < 1024:
        lines_task(&a, 0, a.workers)
    else:
        trt_block_hold(source)
        with nogil:
            if a.lines == 1:
                lines_task(&a, 0, 1)
            else:
                parallel_for(a.workers, 1, 1, lines_task, &a)
        block_drop(source)
    block_drop(scratch)
    return 0


# ---- distinct elements and rows: runs of equals in a sorted copy (unique) or in the tensor itself (unique_consecutive) --------------------------------

cdef TensorBase shortened(TensorBase t, int64_t n):
    """The first n elements of a fresh vector; a copy when most of its memory would be waste."""
    cdef int64_t one = 1
    cdef TensorBase r
    if 2 * n >= t.numel:
        set_geometry(t, 1, &n, &one)
        return t
    r = empty_tensor(1, &n, t.dtype, t.device_type)
    memcpy(data_of(r), data_of(t), n * ITEM_SIZE[t.dtype])
    return r


cdef object distinct_elements(TensorBase self, bint ordered, bint inverse, bint counts):
    """(values, inverse or None, counts or None) of all elements; of runs of neighbours unless `ordered`."""
    cdef TensorBase x = contiguous_of(self), order = None, values, places = None, numbers = None
    cdef int64_t one = 1, n = self.numel, m
    cdef RunArgs r
    cdef trt_block* source
    x = make_view(x, 1, &n, &one, x.offset)
    if ordered and n:
        values = empty_tensor(1, &n, x.dtype, DEV_CPU)
        if inverse:
            order = empty_tensor(1, &n, I64, DEV_CPU)
        sort_lines(x, 0, values, order, SORT_ALL, n, 0, False, True)
        x = values
    values = empty_tensor(1, &n, x.dtype, DEV_CPU)
    if inverse:
        places = empty_tensor(self.ndim, self.sizes, I64, DEV_CPU)
    if counts:
        numbers = empty_tensor(1, &n, I64, DEV_CPU)
    r.x = data_of(x)
    r.order = <const int64_t*>data_of(order) if order is not None else NULL
    r.values = data_of(values)
    r.inverse = <int64_t*>data_of(places) if places is not None else NULL
    r.counts = <int64_t*>data_of(numbers) if numbers is not None else NULL
    r.n = n
    r.dtype = x.dtype
    source = x.storage.block
    trt_block_hold(source)
    with nogil:
        m = sort_runs(&r)
    block_drop(source)
    return shortened(values, m), places, shortened(numbers, m) if numbers is not None else None


cdef object distinct_rows(TensorBase self, int d, bint ordered, bint inverse, bint counts):
    """The same of slices along a dimension, in lexicographic order when `ordered`."""
    cdef TensorBase x, order, places, starts, keys, first, numbers
    cdef RowsArgs r
    cdef int64_t m, n, whole
    cdef const int64_t* s
    n = self.sizes[d]
    if n >= (<int64_t>1 << 32):
        raise RuntimeError(f"unique: dimensions of 2**32 elements and more are not supported, got shape {shape_text(self)}")
    x = held(contiguous_of(<TensorBase?>(<object>self).detach().movedim(d, 0)))
    r.x = data_of(x)
    r.n = n
    r.c = x.numel // n if n else 0
    r.dtype = x.dtype
    whole = x.numel * (8 if ITEM_SIZE[x.dtype] == 8 else 4) + 64
    keys = empty_tensor(1, &whole, U8, DEV_CPU)
    whole = n + 1
    order = empty_tensor(1, &whole, I64, DEV_CPU)          # two halves of 32-bit numbers: the order, and room to merge
    starts = empty_tensor(1, &n, I64, DEV_CPU)
    places = empty_tensor(1, &n, I64, DEV_CPU)
    r.keys = data_of(keys)
    r.order = <uint32_t*>data_of(order)
    r.spare = r.order + n
    cdef int64_t* start_of = <int64_t*>data_of(starts)
    cdef int64_t* place_of = <int64_t*>data_of(places)
    with nogil:
        sort_rows(&r, ordered)
        m = sort_row_runs(&r, start_of, place_of)
    starts = shortened(starts, m)
    s = <const int64_t*>data_of(starts)
    first = empty_tensor(1, &m, I64, DEV_CPU)
    numbers = empty_tensor(1, &m, I64, DEV_CPU)
    start_of = <int64_t*>data_of(first)
    place_of = <int64_t*>data_of(numbers)
    for whole in range(m):
        start_of[whole] = r.order[s[whole]]
        place_of[whole] = (s[whole + 1] if whole + 1 < m else n) - s[whole]
    return (<object>self).detach().index_select(d, first), places if inverse else None, numbers if counts else None


cdef object unique_on_cpu(TensorBase self, object dim, bint ordered, bint inverse, bint counts):
    self = held(self)          # the GIL is given up for any number of elements, and the sizes are read again afterwards
    return distinct_elements(self, ordered, inverse, counts) if dim is None else distinct_rows(self, dim, ordered, inverse, counts)


# ---- bins and counts -------------------------------------------------------------------------------------------------

cdef TensorBase vector_of(TensorBase t, int dtype):
    """A vector's elements in consecutive memory of this dtype; other threads do not change it."""
    return held(contiguous_of(cast_to(t, dtype)))


cdef int number_bins(TensorBase x, TensorBase edges, TensorBase flat, bint uniform, bint adjust) except -1:
    cdef BinArgs b
    cdef TensorBase v = vector_of(x, F64), e = vector_of(edges, F64)
    b.x = <const double*>data_of(v)
    b.edges = <const double*>data_of(e)
    b.flat = <int64_t*>data_of(flat)
    b.n = v.numel
    b.bins = e.numel - 1
    b.uniform = uniform
    b.adjust = adjust
    with nogil:
        sort_bins(&b)
    return 0


cdef int count_numbers(TensorBase flat, TensorBase weights, TensorBase counts) except -1:
    cdef TensorBase numbers = vector_of(flat, I64), w = None if weights is None else vector_of(weights, F64)
    cdef const double* p = NULL if w is None else <const double*>data_of(w)
    cdef const int64_t* at = <const int64_t*>data_of(numbers)
    cdef char* total = data_of(counts)
    cdef int64_t n = numbers.numel, bins = counts.numel
    with nogil:
        sort_count(at, p, n, bins, total)
    return 0


set_sort_lines(DEV_CPU, sort_lines)
set_unique(DEV_CPU, unique_on_cpu)

# ---- custom devices: of what is no row, which could fall back as a whole ------------------------------------------------

cdef int number_bins_on_host(TensorBase x, TensorBase edges, TensorBase flat, bint uniform, bint adjust) except -1:
    cdef TensorBase f
    hooks_of(flat.device_type).fall_back(flat.device_type, b"number_bins")
    f = empty_tensor(flat.ndim, flat.sizes, flat.dtype, DEV_CPU)
    copy_elements(f, flat)
    number_bins(on_host(x), on_host(edges), f, uniform, adjust)
    return copy_elements(flat, f)


cdef int count_numbers_on_host(TensorBase flat, TensorBase weights, TensorBase counts) except -1:
    cdef TensorBase c
    hooks_of(flat.device_type).fall_back(flat.device_type, b"count_numbers")
    c = empty_tensor(counts.ndim, counts.sizes, counts.dtype, DEV_CPU)
    copy_elements(c, counts)
    count_numbers(on_host(flat), None if weights is None else on_host(weights), c)
    return copy_elements(counts, c)


for _device in range(DEV_CUSTOM, LAST_CUSTOM + 1):
    set_number_bins(_device, number_bins_on_host)
    set_count_numbers(_device, count_numbers_on_host)

set_number_bins(DEV_CPU, number_bins)
set_count_numbers(DEV_CPU, count_numbers)
