"""Pooling and resampling on CUDA, beneath the checks of cysrc/ops/pool.pyx and resize.pyx."""
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
from tensorrt_lite._C.core.dtype cimport F64, C64
from tensorrt_lite._C.core.kernels cimport pool_shape
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.cuda.backend cimport kernel_of, run, blocks_for
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.ops import pool as _pool, resize as _resize
from tensorrt_lite.cuda import _source

attach()

# the structures of cuda_src/pool.cuh
cdef struct Pool:
    pool_shape s
    int64_t numel
    int last, adaptive
    const char* x
    char* y
    int64_t* indices

cdef struct Taps:
    const int64_t* start
    const int32_t* index
    const void* weight

cdef struct Resample:
    const char* x
    char* y
    int64_t numel, inner
    int64_t sources[3]
    int64_t out[3]
    Taps taps[3]

cdef struct Windows:
    const char* x
    char* y
    int64_t numel
    int64_t given[12]            # height, width, kernel, dilation, padding, stride, windows

KERNELS = ("pool_max", "pool_max_backward", "pool_average", "pool_average_backward", "resample", "window_columns", "window_images")
cdef FunctionHandle handles[64][12][7]


cdef FunctionHandle load(int index, int dtype, int which) except NULL:
    cdef FunctionHandle* slot = &handles[index][dtype][which]
    if slot[0] == NULL:
        t = _source.TYPES[dtype][1]
        t = f"trt::{t}" if dtype >= C64 else t
        text = "#include \"pool.cuh\"\n\nextern \"C\" __global__ void __launch_bounds__(256) kernel("
        if which < 4:
            text += f"const trt::Pool p) {{ trt::{KERNELS[which]}<{t}>(p); }}\n"
        elif which > 4:
            text += f"const trt::Windows p) {{ trt::{KERNELS[which]}<{t}>(p); }}\n"
        else:
            w = "double" if dtype == F64 else "float"
            text += f"const trt::Resample<{w}> p) {{ trt::resample<{t}, {w}>(p); }}\n"
        slot[0] = kernel_of(text, "kernel", index)
    return slot[0]


cdef int pool(int which, const pool_shape* s, bint last, bint adaptive, TensorBase x, TensorBase y, TensorBase indices) except -1:
    """y from x, both dense in one order; `which` of KERNELS."""
    cdef Pool p
    cdef void* arguments[1]
    p.s = s[0]
    p.numel, p.last, p.adaptive = y.numel, last, adaptive
    p.x, p.y, p.indices = data_of(x), data_of(y), NULL if indices is None else <int64_t*>data_of(indices)
    arguments[0] = &p
    return run(load(x.device_index, x.dtype, which), x.device_index, blocks_for(p.numel, 256), 256, 0, arguments)


cdef int resample(TensorBase x, TensorBase y, bint last, list tables) except -1:
    """tables: of each dimension (start, index, weight) on the device, or None for one of size 1."""
    cdef Resample p
    cdef int k, d
    cdef void* arguments[1]
    p.x, p.y, p.numel, p.inner = data_of(x), data_of(y), y.numel, x.sizes[1] if last else 1
    for k in range(3):
        d = k - 3 + x.ndim
        p.sources[k], p.out[k] = x.sizes[d] if d >= 2 else 1, y.sizes[d] if d >= 2 else 1
        start, index, weight = tables[k]
        p.taps[k].start, p.taps[k].index = <const int64_t*>data_of(<TensorBase>start), <const int32_t*>data_of(<TensorBase>index)
        p.taps[k].weight = data_of(<TensorBase>weight)
    arguments[0] = &p
    return run(load(x.device_index, x.dtype, 4), x.device_index, blocks_for(p.numel, 256), 256, 0, arguments)


cdef int windows(bint images, const int64_t* given, TensorBase x, TensorBase y) except -1:
    """Columns of contiguous images, or images from columns."""
    cdef Windows p
    cdef int k
    cdef void* arguments[1]
    p.x, p.y, p.numel = data_of(x), data_of(y), y.numel
    for k in range(12):
        p.given[k] = given[k]
    arguments[0] = &p
    return run(load(x.device_index, x.dtype, 6 if images else 5), x.device_index, blocks_for(p.numel, 256), 256, 0, arguments)


_pool._set_device_kernels(<size_t>&pool)
_resize._set_device_kernels(<size_t>&resample, <size_t>&windows)
