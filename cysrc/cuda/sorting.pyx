"""Sorting along a dimension and histograms on CUDA, beneath the checks of cysrc/ops/sorting/sorting.pyx."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.dtype cimport BOOL, U8, I8, I16, I32, I64, F16, BF16, F32, F64
from tensorrt_lite._C.core.tensor cimport TensorBase, ITEM_SIZE, data_of, place_of, empty_tensor
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.cuda.backend cimport kernel_of, run, blocks_for
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.radix cimport sort_pairs
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.steps.sorting cimport set_count_bins, set_number_bins, set_sorted_lines
from tensorrt_lite._C.cuda import source as _source

attach()

cdef enum:
    SORT_ALL = 0                 # loops/sorting.h
    SORT_FIRST = 1
    MODE = 3                     # SORT_MODE - SORT_KTH
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
    elif kind == MODE:
        run(load("take_mode", index, t, None), index, min(lines, <int64_t>1 << 20), 32 if n <= 256 else 256, 0, arguments)
    else:
        arguments[6], arguments[7] = &kth, &kind
        run(load("take_one", index, t, None), index, blocks_for(count, 256), 256, 0, arguments)
    return values, indices


cdef int number_bins(TensorBase x, TensorBase edges, TensorBase flat, bint uniform_, bint adjust_) except -1:
    """flat = flat * bins + the bin of each element; all contiguous, edges float64."""
    cdef int64_t n = x.numel, bins = edges.numel - 1
    cdef int uniform = uniform_, adjust = adjust_
    cdef char* p[3]
    cdef void* arguments[7]
    t = _source.TYPES[x.dtype][1]
    p[0], p[1], p[2] = data_of(x), data_of(edges), data_of(flat)
    arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5], arguments[6] = &p[0], &p[1], &p[2], &n, &bins, &uniform, &adjust
    return run(load("number_bins", x.device_index, t, None), x.device_index, blocks_for(n, 256), 256, 0, arguments)


cdef int count_bins(TensorBase flat, TensorBase counts) except -1:
    """counts (int64, zeros) of the numbers in flat (contiguous int64); those outside of it do not count."""
    cdef int64_t n = flat.numel, bins = counts.numel
    cdef bint shared = bins <= SHARED_BINS
    cdef char* p[2]
    cdef void* arguments[4]
    p[0], p[1] = data_of(flat), data_of(counts)
    arguments[0], arguments[1], arguments[2], arguments[3] = &p[0], &p[1], &n, &bins
    # a block that counts in shared memory has many elements for each bin that it adds up at its end
    return run(load("count_bins", flat.device_index, None, "true" if shared else "false"), flat.device_index, blocks_for(n, 4096 if shared else 256), 256, 0, arguments)


set_sorted_lines(DEV_CUDA, sorted_lines)
set_number_bins(DEV_CUDA, number_bins)
set_count_bins(DEV_CUDA, count_bins)
