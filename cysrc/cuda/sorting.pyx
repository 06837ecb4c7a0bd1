"""Sorting along a dimension and histograms on CUDA, beneath the checks of cysrc/ops/sorting/sorting.pyx."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.autograd.node cimport ops_namespace
from tensorrt_lite._C.core.dtype cimport BOOL, U8, I8, I16, I32, I64, F16, BF16, F32, F64, dtype_of
from tensorrt_lite._C.core.iterator cimport cast_to, contiguous_of, copy_elements
from tensorrt_lite._C.core.tensor cimport MAX_DIMS, TensorBase, ITEM_SIZE, data_of, make_view, place_of, empty_tensor
from tensorrt_lite._C.core.dispatch cimport attach, tls, trt_thread_state
from tensorrt_lite._C.cuda.backend cimport kernel_of, run, blocks_for
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.radix cimport sort_pairs
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.ops.sorting.loops cimport SORT_FIRST, SORT_KTH, SORT_MODE
from tensorrt_lite._C.steps.sorting cimport set_count_numbers, set_number_bins, set_sort_lines, set_unique
from tensorrt_lite._C.cuda import source as _source

attach()
cdef object _ops = ops_namespace()

cdef enum:
    SHARED_BINS = 4096           # kSharedBins
    SHORT = 2048                 # elements of a line that a block sorts

cdef dict handles = {}


# parameters and call; {t} is the dtype's type, {u} a number or a type
cdef dict KERNELS = {
    "sort_short": ("const {t}* x, int* position, long long lines, long long n, long long keep, int descending", "sort_short<{t}, {u}>(x, position, lines, n, keep, descending)"),
    "sort_keys_of": ("const {t}* x, {u}* keys, long long n, int descending", "sort_keys_of<{u}>(x, keys, n, descending)"),
    "line_keys": ("const int* position, unsigned* keys, long long total, long long n", "line_keys(position, keys, total, n)"),
    "take_sorted": ("const {t}* x, const int* position, {t}* values, long long* indices, long long lines, long long n, long long stride, long long keep",
                    "take_sorted(x, position, values, indices, lines, n, stride, keep)"),
    "take_mode": ("const {t}* x, const int* position, {t}* values, long long* indices, long long lines, long long n", "take_mode(x, position, values, indices, lines, n)"),
    "take_one": ("const {t}* x, const int* position, {t}* values, long long* indices, long long lines, long long n, long long kth, int kind",
                 "take_one(x, position, values, indices, lines, n, kth, kind)"),
    "number_bins": ("const {t}* x, const double* edges, long long* flat, long long n, long long bins, int uniform, int adjust",
                    "number_bins(x, edges, flat, n, bins, uniform, adjust)"),
    "count_bins": ("const long long* flat, unsigned long long* counts, long long n, long long bins", "count_bins<{u}>(flat, counts, n, bins)"),
}


cdef FunctionHandle load(str name, int index, str t, str u) except NULL:
    """The kernel of one function of sort.cuh for its types."""
    key = (name, t, u, index)
    h = handles.get(key)
    if h is None:
        parameters, call = KERNELS[name]
        text = f"#include \"sort.cuh\"\n\nextern \"C\" __global__ void __launch_bounds__(512) kernel({parameters.format(t=t, u=u)}) {{ trt::{call.format(t=t, u=u)}; }}\n"
        h = handles[key] = <size_t>kernel_of(text, "kernel", index)
    return <FunctionHandle><size_t>h


cdef str key_type(int dtype):
    return "unsigned long long" if ITEM_SIZE[dtype] == 8 else "unsigned"


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    cdef int dtype, size
    load("line_keys", index, None, None)
    for flag in ("true", "false"):
        load("count_bins", index, None, flag)
    for dtype in range(F64 + 1):
        t = "unsigned char" if dtype == BOOL else _source.TYPES[dtype][1]
        size = 32
        while size <= SHORT:
            load("sort_short", index, t, f"{key_type(dtype)}, {size}")
            size *= 2
        load("sort_keys_of", index, t, key_type(dtype))
        for name in ("take_sorted", "take_mode", "take_one", "number_bins"):
            load(name, index, t, None)


cdef object sorted_lines(TensorBase x, int64_t lines, int64_t n, int kind, int64_t keep, int64_t kth, bint descending):
    """Of x (contiguous, lines of n): (values, indices) of the first `keep` of each sorted line, where kind is -1; otherwise of one
    element, by take_one's kinds."""
    cdef int index = x.device_index, bits = 1, wide = ITEM_SIZE[x.dtype] == 8, is_descending = descending
    cdef int64_t total = lines * n, stride = n, wanted = keep if kind < 0 else n, size, count
    cdef TensorBase position, keys, values, indices
    cdef char* p[4]
    cdef void* arguments[8]
    if total >= (<int64_t>1 << 31):
        raise NotImplementedError(f"sorting {total} elements on CUDA: positions have 31 bits")
    t, key = "unsigned char" if x.dtype == BOOL else _source.TYPES[x.dtype][1], key_type(x.dtype)
    p[0] = data_of(x)
    if n <= SHORT:
        size = 32
        while size < n:
            size *= 2
        stride = wanted
        count = lines * wanted
        position = empty_tensor(1, &count, I32, place_of(x))
        p[1] = data_of(position)
        arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5] = &p[0], &p[1], &lines, &n, &wanted, &is_descending
        run(load("sort_short", index, t, f"{key}, {size}"), index, min(lines, <int64_t>1 << 30), min(max(size // 2, 32), 512), 0, arguments)
    else:
        keys = empty_tensor(1, &total, I64 if wide else I32, place_of(x))
        p[1] = data_of(keys)
        arguments[0], arguments[1], arguments[2], arguments[3] = &p[0], &p[1], &total, &is_descending
        run(load("sort_keys_of", index, t, key), index, blocks_for(total, 256), 256, 0, arguments)
        # half types are compared as float
        position = <TensorBase>sort_pairs(keys, None, 32 if x.dtype == F16 or x.dtype == BF16 else 8 * ITEM_SIZE[x.dtype])[1]
        if lines > 1:
            keys = empty_tensor(1, &total, I32, place_of(x))
            p[1], p[2] = data_of(position), data_of(keys)
            arguments[0], arguments[1], arguments[2], arguments[3] = &p[1], &p[2], &total, &n
            run(load("line_keys", index, None, None), index, blocks_for(total, 256), 256, 0, arguments)
            while lines >> bits:
                bits += 1
            position = <TensorBase>sort_pairs(keys, position, bits)[1]
    count = lines * (keep if kind < 0 else 1)
    values = empty_tensor(1, &count, x.dtype, place_of(x))
    indices = empty_tensor(1, &count, I64, place_of(x))
    if count == 0:
        return values, indices
    p[1], p[2], p[3] = data_of(position), data_of(values), data_of(indices)
    arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5] = &p[0], &p[1], &p[2], &p[3], &lines, &n
    if kind < 0:
        arguments[6], arguments[7] = &stride, &keep
        run(load("take_sorted", index, t, None), index, blocks_for(count, 256), 256, 0, arguments)
    elif kind == SORT_MODE - SORT_KTH:
        run(load("take_mode", index, t, None), index, min(lines, <int64_t>1 << 20), 32 if n <= 256 else 256, 0, arguments)
    else:
        arguments[6], arguments[7] = &kth, &kind
        run(load("take_one", index, t, None), index, blocks_for(count, 256), 256, 0, arguments)
    return values, indices


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

cdef int sort_lines(TensorBase x, int d, TensorBase values, TensorBase indices, int what, int64_t keep, int64_t kth, bint descending, bint ordered) except -1:
    """The first elements of a line are sorted whether that is asked for or not."""
    cdef int kind = -1 if what <= SORT_FIRST else what - SORT_KTH
    cdef TensorBase lines = contiguous_of(<TensorBase>(<object>x).detach().movedim(d, -1)) if x.ndim > 1 else contiguous_of(x)
    cdef int64_t n = x.sizes[d] if x.ndim else 1
    found, places = sorted_lines(lines, x.numel // n, n, kind, keep, kth, descending)
    if values is not None:
        copy_lines(values, d, <TensorBase>found)
    if indices is not None:
        copy_lines(indices, d, <TensorBase>places)
    return 0


cdef object unique(TensorBase self, object dim, bint ordered, bint inverse, bint counts):
    """Out of sorts, comparisons of neighbours and sums. Rows are ordered by stable sorts from their last column to the first."""
    cdef trt_thread_state* state = tls()
    cdef int saved_mode = state.grad_mode
    cdef object x = (<object>self).detach(), rows, order = None
    state.grad_mode = 0
    try:
        rows = x.reshape(-1, 1) if dim is None else x.movedim(dim, 0)
        n = rows.shape[0]
        rows = rows.reshape(n, -1 if self.numel else 1)
        if ordered and n:
            for c in range(rows.shape[1] - 1, -1, -1):
                column = rows.select(1, c)
                found = _ops.sort(column if order is None else column.index_select(0, order), 0, stable=True)[1]
                order = found if order is None else order.index_select(0, found)
            rows = rows.index_select(0, order)
        if n:
            starts_run = _ops.cat([_ops.ones(1, dtype=dtype_of(BOOL), device=x.device), _ops.ne(rows[1:], rows[:-1]).any(1)])
        else:
            starts_run = _ops.zeros(0, dtype=dtype_of(BOOL), device=x.device)
        starts = _ops.nonzero(starts_run).reshape(-1)
        values = rows.index_select(0, starts).reshape(-1) if dim is None else x.index_select(dim, starts if order is None else order.index_select(0, starts))
        places = numbers = None
        if inverse:
            places = _ops.cumsum(starts_run.to(dtype_of(I64)), 0) - 1
            if order is not None:
                places = _ops.empty_like(places).index_copy_(0, order, places)
            if dim is None:
                places = places.reshape(x.shape)
        if counts:
            numbers = _ops.cat([starts[1:], _ops.full((1 if n else 0,), n, dtype=dtype_of(I64), device=x.device)]) - starts
        return values, places, numbers
    finally:
        state.grad_mode = saved_mode


cdef int number_bins(TensorBase given, TensorBase given_edges, TensorBase flat, bint uniform_, bint adjust_) except -1:
    cdef TensorBase x = contiguous_of(given), edges = contiguous_of(cast_to(given_edges, F64))
    cdef int64_t n = x.numel, bins = edges.numel - 1
    cdef int uniform = uniform_, adjust = adjust_
    cdef char* p[3]
    cdef void* arguments[7]
    t = _source.TYPES[x.dtype][1]
    p[0], p[1], p[2] = data_of(x), data_of(edges), data_of(flat)
    arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5], arguments[6] = &p[0], &p[1], &p[2], &n, &bins, &uniform, &adjust
    return run(load("number_bins", x.device_index, t, None), x.device_index, blocks_for(n, 256), 256, 0, arguments)


cdef int count_numbers(TensorBase given, TensorBase weights, TensorBase counts) except -1:
    cdef TensorBase flat = contiguous_of(cast_to(given, I64))
    cdef int64_t n = flat.numel, bins = counts.numel
    cdef bint shared = bins <= SHARED_BINS
    cdef char* p[2]
    cdef void* arguments[4]
    if weights is not None:
        # a bin more for what lies in none
        total = _ops.zeros(bins + 1, dtype=dtype_of(F64), device=(<object>flat).device)
        inside = _ops.where((<object>flat).lt(0).logical_or_((<object>flat).ge(bins)), bins, flat)
        copy_elements(counts, <TensorBase>total.index_add_(0, inside, cast_to(weights, F64))[:bins])
        return 0
    p[0], p[1] = data_of(flat), data_of(counts)
    arguments[0], arguments[1], arguments[2], arguments[3] = &p[0], &p[1], &n, &bins
    # a block that counts in shared memory has many elements for each bin that it adds up at its end
    return run(load("count_bins", flat.device_index, None, "true" if shared else "false"), flat.device_index, blocks_for(n, 4096 if shared else 256), 256, 0, arguments)


set_sort_lines(DEV_CUDA, sort_lines)
set_unique(DEV_CUDA, unique)
set_number_bins(DEV_CUDA, number_bins)
set_count_numbers(DEV_CUDA, count_numbers)
