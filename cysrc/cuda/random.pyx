"""Fills with random numbers on CUDA, and dropout's mask: launches of cuda_src/random.cuh on PyTorch's grid."""
from libc.stdint cimport int64_t, uint64_t
from tensorrt_lite._C.core.dtype cimport I64, F16, F64
from tensorrt_lite._C.core.iterator cimport copy_elements
from tensorrt_lite._C.core.random cimport (
    rs_fill, RS_FILL_UNIFORM, RS_FILL_NORMAL, RS_FILL_LOG_NORMAL, RS_FILL_CAUCHY, RS_FILL_EXPONENTIAL, RS_FILL_GEOMETRIC, RS_FILL_BERNOULLI, RS_FILL_RANDOM,
    RS_FILL_RANDOM_FROM_TO, RS_FILL_RANDOM_FULL64)
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, place_of, empty_tensor, non_overlapping_dense
from tensorrt_lite._C.cuda.backend cimport kernel_of, run, blocks_for
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.driver import device_attribute
from tensorrt_lite.cuda._source import storage_type
from tensorrt_lite.cuda.random import generator_for

cdef extern from *:
    """
    /* As random.cuh declares it. */
    typedef struct { unsigned long long numel, seed, offset; double a, b; long long low; unsigned long long range; } trt_fill_params;
    """
    ctypedef struct Params "trt_fill_params":
        unsigned long long numel, seed, offset
        double a, b
        long long low
        unsigned long long range

cdef enum:
    BLOCK = 256
    MULTIPROCESSOR_COUNT = 16      # CU_DEVICE_ATTRIBUTE_*
    THREADS_PER_MULTIPROCESSOR = 39

cdef dict _handles = {}
cdef dict _grids = {}
# Bits of the integers that a floating type holds exactly, by dtype code.
cdef int* DIGITS = [1, 8, 7, 15, 31, 63, 11, 8, 24, 53]


cdef FunctionHandle kernel(str name, int dtype, int index) except NULL:
    key = (name, dtype, index)
    found = _handles.get(key)
    if found is None:
        t = storage_type(dtype)
        if name == "masked_scale":
            text = f'#include "random.cuh"\nextern "C" __global__ void __launch_bounds__(256) kernel(unsigned long long numel, const {t}* x, const bool* mask, double scale, {t}* out) {{\n    trt::masked_scale(numel, x, mask, scale, out);\n}}\n'
        else:
            text = f'#include "random.cuh"\nextern "C" __global__ void __launch_bounds__(256) kernel(const trt::FillParams p, {t}* out) {{\n    trt::{name}(p, out);\n}}\n'
        found = _handles[key] = <size_t>kernel_of(text, "kernel", index)
    return <FunctionHandle><size_t>found


cdef int64_t largest_grid(int index) except -1:
    found = _grids.get(index)
    if found is None:
        found = _grids[index] = device_attribute(MULTIPROCESSOR_COUNT, index) * (device_attribute(THREADS_PER_MULTIPROCESSOR, index) // BLOCK)
    return found


cdef int fill(TensorBase t, const rs_fill* f, object generator) except -1:
    """t real and not empty. The stream advances as far as the thread that draws most, by whole calls of four words."""
    cdef Params p
    cdef int index = t.device_index, digits = DIGITS[t.dtype], count
    cdef int64_t blocks
    cdef str name
    cdef char* out
    cdef void* arguments[2]
    cdef TensorBase dense = t
    if not non_overlapping_dense(t):
        dense = empty_tensor(t.ndim, t.sizes, t.dtype, place_of(t))
    p.numel = t.numel
    p.a = f.a
    p.b = f.b
    p.low = f.low
    p.range = f.range
    count = 2 if t.dtype == F64 else 4
    if f.kind == RS_FILL_UNIFORM:
        name = "fill_uniform"
    elif f.kind == RS_FILL_NORMAL:
        name = "fill_normal"
    elif f.kind == RS_FILL_LOG_NORMAL:
        name = "fill_log_normal"
    elif f.kind == RS_FILL_CAUCHY:
        name = "fill_cauchy"
    elif f.kind == RS_FILL_EXPONENTIAL:
        name = "fill_exponential"
    elif f.kind == RS_FILL_GEOMETRIC:
        name = "fill_geometric"
    elif f.kind == RS_FILL_BERNOULLI:
        name = "fill_bernoulli"
    elif f.kind == RS_FILL_RANDOM:
        count = 2 if t.dtype == I64 or t.dtype == F64 else 4
        name = "fill_random_wide" if count == 2 else "fill_random_words"
        p.range = (<uint64_t>1 << digits) + (1 if t.dtype >= F16 else 0)
    else:
        count = 2 if f.kind == RS_FILL_RANDOM_FULL64 or f.range >= (1 << 28) or f.range == 0 else 4
        if f.kind == RS_FILL_RANDOM_FULL64:
            p.low = 0
            p.range = 0
        name = "fill_between_wide" if count == 2 else "fill_between"
    blocks = min((t.numel + BLOCK - 1) // BLOCK, largest_grid(index))
    p.seed, p.offset = generator_for(index, generator).advance(((t.numel - 1) // (BLOCK * blocks * count) + 1) * 4)
    out = data_of(dense)
    arguments[0] = &p
    arguments[1] = &out
    run(kernel(name, t.dtype, index), index, blocks, BLOCK, 0, arguments)
    if dense is not t:
        copy_elements(t, dense)
    return 0


cdef int masked_scale(TensorBase x, TensorBase mask, double scale, TensorBase out) except -1:
    """x, mask and out of one dense geometry, not empty."""
    cdef unsigned long long numel = x.numel
    cdef char* source = data_of(x)
    cdef char* bits = data_of(mask)
    cdef char* target = data_of(out)
    cdef void* arguments[5]
    arguments[0] = &numel
    arguments[1] = &source
    arguments[2] = &bits
    arguments[3] = &scale
    arguments[4] = &target
    return run(kernel("masked_scale", x.dtype, x.device_index), x.device_index, blocks_for(numel, 4 * BLOCK), BLOCK, 0, arguments)


from tensorrt_lite._C.ops.random import _install_device_kernels
_install_device_kernels(<size_t><void*>fill, <size_t><void*>masked_scale)
