"""Stable radix sorts and prefix sums on CUDA, which other families are made of."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.dtype cimport I32, I64
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, place_of, empty_tensor
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.cuda.backend cimport kernel_of, run
from tensorrt_lite._C.cuda.driver cimport FunctionHandle

attach()

cdef enum:
    TILE = 2048                  # kRadixTile
    COUNT = 0
    SCAN = 1
    MOVE = 2

cdef FunctionHandle handles[64][4][3]       # by device, types of key and value
cdef FunctionHandle scans[64]


cdef FunctionHandle load(int index, bint wide_key, bint wide_value, int which) except NULL:
    cdef FunctionHandle* slot = &handles[index][wide_key * 2 + wide_value][which]
    if slot[0] == NULL:
        key = "unsigned long long" if wide_key else "unsigned"
        value = "long long" if wide_value else "int"
        text = f"""#include "radix.cuh"

extern "C" __global__ void __launch_bounds__(256) count(const {key}* keys, unsigned* counts, long long n, int shift) {{
    trt::radix_count(keys, counts, n, shift);
}}
extern "C" __global__ void __launch_bounds__(1024) scan(unsigned* counts, unsigned* totals, long long length) {{ trt::scan_rows(counts, totals, length); }}
extern "C" __global__ void __launch_bounds__(256) move(const {key}* keys, const {value}* values, {key}* keys_out, {value}* values_out, const unsigned* counts,
                                                       const unsigned* totals, long long n, int shift) {{
    trt::radix_move(keys, values, keys_out, values_out, counts, totals, n, shift);
}}
"""
        slot[0] = kernel_of(text, ("count", "scan", "move")[which], index)
    return slot[0]


cdef tuple sort_pairs(TensorBase keys, TensorBase values, int bits):
    cdef int index = keys.device_index, shift
    cdef int64_t n = keys.numel, blocks = (n + TILE - 1) // TILE, size = 256 * blocks, digits = 256
    cdef bint wide_key = keys.dtype == I64, wide_value = values is not None and values.dtype == I64
    cdef TensorBase counts, totals, keys_to, values_to
    cdef char* p[6]
    cdef void* arguments[8]
    if n >= (<int64_t>1 << 31) and not wide_value:
        raise NotImplementedError(f"sorting {n} elements on CUDA: positions have 31 bits")
    counts = empty_tensor(1, &size, I32, place_of(keys))
    totals = empty_tensor(1, &digits, I32, place_of(keys))
    keys_to = empty_tensor(1, &n, keys.dtype, place_of(keys))
    values_to = empty_tensor(1, &n, I64 if wide_value else I32, place_of(keys))
    for shift in range(0, max(bits, 1), 8):
        p[0], p[1], p[2], p[3] = data_of(keys), NULL if values is None else data_of(values), data_of(keys_to), data_of(values_to)
        p[4], p[5] = data_of(counts), data_of(totals)
        arguments[0], arguments[1], arguments[2], arguments[3] = &p[0], &p[4], &n, &shift
        run(load(index, wide_key, wide_value, COUNT), index, blocks, 256, 0, arguments)
        arguments[0], arguments[1], arguments[2] = &p[4], &p[5], &blocks
        run(load(index, wide_key, wide_value, SCAN), index, 256, 1024 if blocks > 256 else 256, 0, arguments)
        for i in range(6):
            arguments[i] = &p[i]
        arguments[6], arguments[7] = &n, &shift
        run(load(index, wide_key, wide_value, MOVE), index, blocks, 256, 0, arguments)
        # what was written is read next; the first pass numbers the values itself and leaves none to write over
        keys, keys_to = keys_to, keys
        values, values_to = values_to, values if values is not None else empty_tensor(1, &n, I32, place_of(keys))
    return keys, values


cdef FunctionHandle load_scan(int index) except NULL:
    if scans[index] == NULL:
        scans[index] = kernel_of("""#include "radix.cuh"

extern "C" __global__ void __launch_bounds__(1024) scan(long long* counts, long long* totals, long long length) { trt::scan_rows(counts, totals, length); }
""", "scan", index)
    return scans[index]


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    cdef int form
    for form in range(4):
        load(index, form >> 1, form & 1, COUNT)
    load_scan(index)


cdef TensorBase scan_rows(TensorBase counts, int64_t rows, int64_t length):
    cdef TensorBase totals = empty_tensor(1, &rows, I64, place_of(counts))
    cdef int index = counts.device_index
    cdef char* p[2]
    cdef void* arguments[3]
    p[0], p[1] = data_of(counts), data_of(totals)
    arguments[0], arguments[1], arguments[2] = &p[0], &p[1], &length
    run(load_scan(index), index, rows, 1024 if length > 256 else 256, 0, arguments)
    return totals
