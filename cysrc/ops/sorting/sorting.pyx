# Kernels of the sorting family over loops/sorting.h: lines along a dimension are shared between workers, each with its own
# scratch memory. Equal elements keep their order, so no result depends on the number of threads.
from tensorrt_lite._C.autograd.autocast import policy as autocast_policy
from tensorrt_lite._C.steps.sorting cimport run_count_bins, run_number_bins, run_sorted_lines
from tensorrt_lite._C.core.return_types import result_type

cdef extern from "sorting.h" nogil:
    enum:
        SORT_ALL
        SORT_FIRST
        SORT_KTH
        SORT_MEDIAN
        SORT_NANMEDIAN
        SORT_MODE
        SORT_BLOCKS
    ctypedef struct SortArgs:
        const char* x
        char* values
        char* indices
        char* scratch
        int64_t worker_bytes, workers, lines
        int64_t n, keep, kth
        int64_t xs, vs
        int64_t along_indices "is"
        int nd
        int64_t size[64]
        int64_t xo[64]
        int64_t vo[64]
        int64_t io[64]
        int dtype, what, descending, ordered
        void* run
    ctypedef struct RunArgs:
        const char* x
        const int64_t* order
        char* values
        int64_t* inverse
        int64_t* counts
        int64_t n
        int dtype
    ctypedef struct RowsArgs:
        const char* x
        char* keys
        uint32_t* order
        uint32_t* spare
        int64_t n, c
        int dtype
    ctypedef struct BinArgs:
        const double* x
        const double* edges
        int64_t* flat
        int64_t n, bins
        int uniform, adjust

ctypedef int64_t (*scratch_fn)(const SortArgs*, int, int64_t) noexcept nogil
ctypedef int64_t (*runs_fn)(const RunArgs*) noexcept nogil
ctypedef void (*rows_fn)(const RowsArgs*, int) noexcept nogil
ctypedef int64_t (*row_runs_fn)(const RowsArgs*, int64_t*, int64_t*) noexcept nogil
ctypedef void (*bins_fn)(const BinArgs*) noexcept nogil
ctypedef void (*tally_fn)(const int64_t*, const double*, int64_t, int64_t, void*) noexcept nogil
ctypedef void (*extent_fn)(const int64_t*, int64_t, int64_t*, int64_t*) noexcept nogil

cdef extern from *:
    """
    ISA_TASK(sort_lines)
    ISA_FUNCTION(int64_t, sort_scratch, (const SortArgs*, int, int64_t))
    ISA_FUNCTION(int64_t, sort_runs, (const RunArgs*))
    ISA_FUNCTION(void, sort_rows, (const RowsArgs*, int))
    ISA_FUNCTION(int64_t, sort_row_runs, (const RowsArgs*, int64_t*, int64_t*))
    ISA_FUNCTION(void, sort_bins, (const BinArgs*))
    ISA_FUNCTION(void, sort_count, (const int64_t*, const double*, int64_t, int64_t, void*))
    ISA_FUNCTION(void, sort_range, (const int64_t*, int64_t, int64_t*, int64_t*))
    """
    task_fn trt_sort_lines "sort_lines"()
    scratch_fn trt_sort_scratch "sort_scratch"()
    runs_fn trt_sort_runs "sort_runs"()
    rows_fn trt_sort_rows "sort_rows"()
    row_runs_fn trt_sort_row_runs "sort_row_runs"()
    bins_fn trt_sort_bins "sort_bins"()
    tally_fn trt_sort_count "sort_count"()
    extent_fn trt_sort_range "sort_range"()

cdef task_fn sort_lines = trt_sort_lines()
cdef scratch_fn sort_scratch = trt_sort_scratch()
cdef runs_fn sort_runs = trt_sort_runs()
cdef rows_fn sort_rows = trt_sort_rows()
cdef row_runs_fn sort_row_runs = trt_sort_row_runs()
cdef bins_fn sort_bins = trt_sort_bins()
cdef tally_fn sort_count = trt_sort_count()
cdef extent_fn sort_range = trt_sort_range()

cdef enum:
    SHARED_LINE = 65536           # elements from which one line is sorted by several threads
    SERIAL_WORK = 16384           # elements below which all lines are one worker's


cdef int copy_lines(TensorBase to, int d, TensorBase lines) except -1:
    """lines (all elements, with dimension d the fastest) into a tensor."""
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t step = to.sizes[d] if to.ndim else 1
    cdef int i
    if to.ndim:
        strides[d] = 1
    for i in range(to.ndim - 1, -1, -1):
        if i != d:
            strides[i] = step
            step *= to.sizes[i]
    return copy_elements(to, make_view(lines, to.ndim, to.sizes, strides, lines.offset))


cdef int sort_on_device(SortArgs* a, TensorBase x, TensorBase values, TensorBase indices, int d) except -1:
    cdef int kind = -1 if a.what <= SORT_FIRST else a.what - SORT_KTH
    cdef TensorBase lines = contiguous_of(<TensorBase>(<object>x).detach().movedim(d, -1)) if x.ndim > 1 else contiguous_of(x)
    a.n = x.sizes[d] if x.ndim else 1
    found, places = run_sorted_lines(x.device_type, lines, x.numel // a.n, a.n, kind, a.keep, a.kth, a.descending)
    if values is not None:
        copy_lines(values, d, <TensorBase>found)
    if indices is not None:
        copy_lines(indices, d, <TensorBase>places)
    return 0


cdef int run_lines(SortArgs* a, TensorBase x, TensorBase values, TensorBase indices, int d) except -1:
    """Fill in the geometry and do the work. `values` or `indices` may be None; both have keep (or 1) elements along d."""
    cdef int order[MAX_DIMS]
    cdef int i, j, k, n = 0, item = ITEM_SIZE[x.dtype]
    cdef int64_t threads = num_threads()
    cdef trt_block* scratch
    cdef trt_block* held = x.storage.block
    if x.device_type == DEV_CUDA:
        return sort_on_device(a, x, values, indices, d)
    a.n = x.sizes[d] if x.ndim else 1
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
    a.worker_bytes = sort_scratch(a, item, a.workers if a.lines == 1 else 1)
    scratch = block_alloc(a.worker_bytes * a.workers)
    a.scratch = scratch.data
    if a.n * a.lines < 1024:
        sort_lines(a, 0, a.workers)
    else:
        trt_block_hold(held)
        with nogil:
            if a.lines == 1:
                sort_lines(a, 0, 1)
            else:
                parallel_for(a.workers, 1, 1, sort_lines, a)
        block_drop(held)
    block_drop(scratch)
    return 0


cdef object finish_pair(str name, TensorBase values, TensorBase indices, object out, int mode):
    if mode == OUT:
        values, indices = write_to_out(name, values, <TensorBase>out[0], OUT), write_to_out(name, indices, <TensorBase>out[1], OUT)
    return result_type(name, ("values", "indices"))((values, indices))


cdef int check_pair(str name, TensorBase self, object out, int mode) except -1:
    if category[self.dtype] == CAT_COMPLEX:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype_text(self.dtype)}'")
    if mode == OUT:
        check_out_type(name, <TensorBase>out[0], self.dtype)
        check_out_type(name, <TensorBase>out[1], I64)
    return 0


cdef object sort_cpu(TensorBase self, int64_t dim, bint descending, object stable, object out, int mode):
    cdef int d = wrap_dim(dim, self.ndim)
    cdef SortArgs a
    cdef TensorBase values, indices
    if category[self.dtype] == CAT_COMPLEX:
        raise RuntimeError(f"Sort does not support {dtype_text(self.dtype)} dtypes on CPU")
    check_pair("sort", self, out, mode)
    values = empty_like_tensor(self, self.dtype)
    indices = empty_like_tensor(self, I64)
    if self.device_type != DEV_META and self.numel:
        a.what = SORT_ALL
        a.descending = descending
        a.ordered = 1
        a.keep = self.sizes[d] if self.ndim else 1
        run_lines(&a, self, values, indices, d)
    return finish_pair("sort", values, indices, out, mode)


cdef object topk_cpu(TensorBase self, int64_t k, int64_t dim, bint largest, bint sorted, object out, int mode):
    cdef int d = wrap_dim(dim, self.ndim), i
    cdef SortArgs a
    cdef int64_t sizes[MAX_DIMS]
    cdef TensorBase values, indices
    if k < 0 or k > (self.sizes[d] if self.ndim else 1):
        raise RuntimeError(f"selected index k out of range (topk: k is {k}, the dimension {d} of {shape_text(self)} has fewer elements)")
    if category[self.dtype] == CAT_COMPLEX or self.dtype == BOOL:
        raise RuntimeError(f"topk does not support {dtype_text(self.dtype)} dtypes on CPU")
    check_pair("topk", self, out, mode)
    for i in range(self.ndim):
        sizes[i] = self.sizes[i]
    if self.ndim:
        sizes[d] = k
    values = empty_tensor(self.ndim, sizes, self.dtype, place_of(self))
    indices = empty_tensor(self.ndim, sizes, I64, place_of(self))
    if self.device_type != DEV_META and values.numel and k:
        a.what = SORT_FIRST
        a.descending = largest
        a.ordered = sorted
        a.keep = k
        run_lines(&a, self, values, indices, d)
    return finish_pair("topk", values, indices, out, mode)


cdef object one_of_line(str name, TensorBase self, int64_t dim, bint keepdim, int what, int64_t kth, object out, int mode):
    """(value, position) of one element of each line."""
    cdef int d = wrap_dim(dim, self.ndim), i, n = 0
    cdef SortArgs a
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef TensorBase values, indices
    check_pair(name, self, out, mode)
    if self.dtype == BOOL and what != SORT_MODE:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")
    for i in range(self.ndim):
        sizes[i] = 1 if i == d else self.sizes[i]
    if self.ndim and self.sizes[d] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
    values = empty_tensor(self.ndim, sizes, self.dtype, place_of(self))
    indices = empty_tensor(self.ndim, sizes, I64, place_of(self))
    if self.device_type != DEV_META and self.numel:
        a.what = what
        a.descending = 0
        a.ordered = 1
        a.keep = 1
        a.kth = kth
        run_lines(&a, self, values, indices, d)
    if self.ndim and not keepdim:
        for i in range(self.ndim):
            if i != d:
                sizes[n] = self.sizes[i]
                n += 1
        contiguous_strides(n, sizes, strides)
        set_geometry(values, n, sizes, strides)
        set_geometry(indices, n, sizes, strides)
    return finish_pair(name, values, indices, out, mode)


cdef object kthvalue_cpu(TensorBase self, int64_t k, int64_t dim, bint keepdim, object out, int mode):
    cdef int d = wrap_dim(dim, self.ndim)
    if self.ndim and self.sizes[d] == 0:
        raise IndexError(f"kthvalue(): Expected reduction dim {d} to have non-zero size.")
    if k < 1 or k > (self.sizes[d] if self.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {d} (k is {k}, shape {shape_text(self)})")
    if mode == OUT:
        check_no_overlap("kthvalue", <TensorBase>out[0], self, False)
        check_no_overlap("kthvalue", <TensorBase>out[1], self, False)
    return one_of_line("kthvalue", self, dim, keepdim, SORT_KTH, k - 1, out, mode)


cdef object mode_cpu(TensorBase self, int64_t dim, bint keepdim, object out, int mode):
    return one_of_line("mode", self, dim, keepdim, SORT_MODE, 0, out, mode)


cdef object median_dim_cpu(TensorBase self, int64_t dim, bint keepdim, object out, int mode):
    return one_of_line("median", self, dim, keepdim, SORT_MEDIAN, 0, out, mode)


cdef object nanmedian_dim_cpu(TensorBase self, int64_t dim, bint keepdim, object out, int mode):
    return one_of_line("nanmedian", self, dim, keepdim, SORT_NANMEDIAN, 0, out, mode)


cdef TensorBase median_all_cpu(TensorBase self, bint skip_nan):
    cdef TensorBase x, r
    cdef SortArgs a
    cdef Scalar nan
    cdef int64_t one = 1
    if self.dtype == BOOL:
        raise NotImplementedError("\"median_cpu\" not implemented for 'Bool'")
    check_pair("nanmedian" if skip_nan else "median", self, None, FRESH)
    r = empty_tensor(0, NULL, self.dtype, place_of(self))
    if self.device_type == DEV_META:
        return r
    if self.numel == 0:
        nan.kind = 2
        nan.d = float("nan")
        nan.im = 0
        nan.i = 0
        if category[self.dtype] != CAT_FLOAT:
            nan.kind = 1
            nan.i = <int64_t>-1 << (8 * ITEM_SIZE[self.dtype] - 1) if self.dtype != U8 else 0
        fill_elements(r, &nan)
        return r
    x = contiguous_of(self)
    x = make_view(x, 1, &x.numel, &one, x.offset)
    a.what = SORT_NANMEDIAN if skip_nan else SORT_MEDIAN
    a.descending = 0
    a.ordered = 1
    a.keep = 1
    run_lines(&a, x, r, None, 0)
    return r


# ---- gradients -----------------------------------------------------------------------------------------------------

cdef object selected_gradient(object grad, object shape, object indices, int64_t dim, bint keepdim):
    if grad is None:
        return None
    if not len(shape):
        return grad
    if not keepdim:
        grad = grad.unsqueeze(dim)
        indices = indices.unsqueeze(dim)
    return grad.new_zeros(shape).scatter(dim, indices, grad)


cdef object shared_gradient(object grad, object self, object result):
    """Evenly to all elements that equal the result."""
    mask = self.isnan() if result.isnan().item() else _ops.eq(self, result)
    return grad * mask / mask.sum()


include "unique.pxi"
include "more.pxi"

EXTRA_EXPORTS = {
    "argsort": "fm", "msort": "fm", "median": "fm", "nanmedian": "fm", "unique": "fm", "unique_consecutive": "fm", "histc": "fm", "histogram": "fm",
    "histogramdd": "f", "bincount": "fm", "quantile": "fm", "nanquantile": "fm", "diff": "fm", "gradient": "f",
}
