"""Sorting along a dimension and histograms on CUDA, beneath the checks of cysrc/ops/sorting.pyx."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.dtype cimport BOOL, U8, I8, I16, I32, I64, F16, BF16, F32, F64
from tensorrt_lite._C.core.tensor cimport TensorBase, ITEM_SIZE, data_of, place_of, empty_tensor
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.cuda.backend cimport kernel_of, run, blocks_for
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.radix cimport sort_pairs
from tensorrt_lite._C.ops import sorting as _sorting
from tensorrt_lite.cuda import _source

attach()

cdef enum:
    SORT_ALL = 0                 # loops/sorting.h
    SORT_FIRST = 1
    MODE = 3                     # SORT_MODE - SORT_KTH
    SHARED_BINS = 4096           # kSharedBins
    SHORT = 2048                 # elements of a line that a block sorts

cdef dict handles = {}


cdef FunctionHandle load(str key, int index, str parameters, str call) except NULL:
    h = handles.get((key, index))
    if h is None:
        text = f"#include \"sort.cuh\"\n\nextern \"C\" __global__ void __launch_bounds__(512) kernel({parameters}) {{ trt::{call}; }}\n"
        h = handles[key, index] = <size_t>kernel_of(text, "kernel", index)
    return <FunctionHandle><size_t>h


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
    t, key = "unsigned char" if x.dtype == BOOL else _source.TYPES[x.dtype][1], "unsigned long long" if wide else "unsigned"
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
        run(load(f"short {t} {size}", index, f"const {t}* x, int* position, long long lines, long long n, long long keep, int descending",
                 f"sort_short<{t}, {key}, {size}>(x, position, lines, n, keep, descending)"), index, min(lines, <int64_t>1 << 30), min(max(size // 2, 32), 512), 0, arguments)
    else:
        keys = empty_tensor(1, &total, I64 if wide else I32, place_of(x))
        p[1] = data_of(keys)
        arguments[0], arguments[1], arguments[2], arguments[3] = &p[0], &p[1], &total, &is_descending
        run(load(f"keys {t}", index, f"const {t}* x, {key}* keys, long long n, int descending", f"sort_keys_of<{key}>(x, keys, n, descending)"), index,
            blocks_for(total, 256), 256, 0, arguments)
        # half types are compared as float
        position = <TensorBase>sort_pairs(keys, None, 32 if x.dtype == F16 or x.dtype == BF16 else 8 * ITEM_SIZE[x.dtype])[1]
        if lines > 1:
            keys = empty_tensor(1, &total, I32, place_of(x))
            p[1], p[2] = data_of(position), data_of(keys)
            arguments[0], arguments[1], arguments[2], arguments[3] = &p[1], &p[2], &total, &n
            run(load("lines", index, "const int* position, unsigned* keys, long long total, long long n", "line_keys(position, keys, total, n)"), index,
                blocks_for(total, 256), 256, 0, arguments)
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
        run(load(f"take {t}", index, f"const {t}* x, const int* position, {t}* values, long long* indices, long long lines, long long n, long long stride, long long keep",
                 "take_sorted(x, position, values, indices, lines, n, stride, keep)"), index, blocks_for(count, 256), 256, 0, arguments)
    elif kind == MODE:
        run(load(f"mode {t}", index, f"const {t}* x, const int* position, {t}* values, long long* indices, long long lines, long long n",
                 "take_mode(x, position, values, indices, lines, n)"), index, min(lines, <int64_t>1 << 20), 32 if n <= 256 else 256, 0, arguments)
    else:
        arguments[6], arguments[7] = &kth, &kind
        run(load(f"one {t}", index, f"const {t}* x, const int* position, {t}* values, long long* indices, long long lines, long long n, long long kth, int kind",
                 "take_one(x, position, values, indices, lines, n, kth, kind)"), index, blocks_for(count, 256), 256, 0, arguments)
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
    return run(load(f"number {t}", x.device_index, f"const {t}* x, const double* edges, long long* flat, long long n, long long bins, int uniform, int adjust",
                    "number_bins(x, edges, flat, n, bins, uniform, adjust)"), x.device_index, blocks_for(n, 256), 256, 0, arguments)


cdef int count_bins(TensorBase flat, TensorBase counts) except -1:
    """counts (int64, zeros) of the numbers in flat (contiguous int64); those outside of it do not count."""
    cdef int64_t n = flat.numel, bins = counts.numel
    cdef bint shared = bins <= SHARED_BINS
    cdef char* p[2]
    cdef void* arguments[4]
    p[0], p[1] = data_of(flat), data_of(counts)
    arguments[0], arguments[1], arguments[2], arguments[3] = &p[0], &p[1], &n, &bins
    # a block that counts in shared memory has many elements for each bin that it adds up at its end
    return run(load(f"count {shared}", flat.device_index, "const long long* flat, unsigned long long* counts, long long n, long long bins",
                    f"count_bins<{'true' if shared else 'false'}>(flat, counts, n, bins)"), flat.device_index, blocks_for(n, 4096 if shared else 256), 256, 0, arguments)


_sorting._set_device_kernels(<size_t>&sorted_lines, <size_t>&number_bins, <size_t>&count_bins)
