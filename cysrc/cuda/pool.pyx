"""Pooling and resampling on CUDA, beneath the checks of cysrc/ops/pool/pool.pyx and resize.pyx."""
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memset
from tensorrt_lite._C.core.dtype cimport BOOL, U8, I32, F16, F32, F64, C64, C128, NUM_DTYPES, has_loops, is_complex_type, is_floating_type
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, place_of, empty_tensor
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.text cimport dtype_text
from tensorrt_lite._C.ops.resize.shapes cimport GridArgs, WindowArgs
from tensorrt_lite._C.steps.resize cimport set_resample, set_sample_grid, set_window_columns, set_window_images
from tensorrt_lite._C.cuda.backend cimport constant_on_device, keep_for_recording, kernel_of, run, blocks_for
from tensorrt_lite._C.cuda.caching cimport captures
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.driver import synchronize_on
from tensorrt_lite._C.cuda.radix cimport sort_pairs
from tensorrt_lite._C.ops import resize as _resize
from tensorrt_lite._C.steps.pool cimport (
    pool_call, pool_launch, set_pool_average, set_pool_average_backward, set_pool_max, set_pool_max_backward)
from tensorrt_lite._C.cuda import source as _source

attach()

cdef extern from "resize.h" nogil:
    enum:
        RESIZE_NEAREST
        RESIZE_NEAREST_EXACT

# the structures of cuda_src/pool.cuh
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

# of cuda_src/grid.cuh
cdef struct Grid:
    const char* x
    const char* grid
    const char* gy
    char* result
    char* keys
    const char* order
    char* weights
    int64_t samples, channels, positions, taps
    int64_t size[3]
    int padding, align_corners

KERNELS = ("pool_max", "pool_max_backward", "pool_average", "pool_average_backward", "resample", "window_columns", "window_images")
cdef FunctionHandle handles[64][NUM_DTYPES][7]


cdef FunctionHandle load(int index, int dtype, int which) except NULL:
    cdef FunctionHandle* slot = &handles[index][dtype][which]
    if slot[0] == NULL:
        t = _source.TYPES[dtype][1]
        t = f"trt::{t}" if is_complex_type(dtype) else t
        text = "#include \"pool.cuh\"\n\nextern \"C\" __global__ void __launch_bounds__(256) kernel("
        if which < 4:
            text += f"const pool_launch p) {{ trt::{KERNELS[which]}<{t}>(p); }}\n"
        elif which > 4:
            text += f"const trt::Windows p) {{ trt::{KERNELS[which]}<{t}>(p); }}\n"
        else:
            w = "double" if dtype == F64 else "float"
            text += f"const trt::Resample<{w}> p) {{ trt::resample<{t}, {w}>(p); }}\n"
        slot[0] = kernel_of(text, "kernel", index)
    return slot[0]


cdef int pool(int which, const pool_call* call, TensorBase x, TensorBase y, TensorBase indices) except -1:
    """y from x, both dense in one order; `which` of KERNELS."""
    cdef pool_launch p
    cdef void* arguments[1]
    p.call = call[0]
    p.numel = y.numel
    p.x, p.y, p.indices = data_of(x), data_of(y), NULL if indices is None else <int64_t*>data_of(indices)
    arguments[0] = &p
    return run(load(x.device_index, x.dtype, which), x.device_index, blocks_for(p.numel, 256), 256, 0, arguments)


cdef int pool_max(pool_call* call, TensorBase x, TensorBase y, TensorBase indices) except -1:
    return pool(0, call, x, y, indices)


cdef int pool_max_backward(pool_call* call, TensorBase grad, TensorBase indices, TensorBase result) except -1:
    return pool(1, call, grad, result, indices)


cdef int pool_average(pool_call* call, TensorBase x, TensorBase y) except -1:
    return pool(2, call, x, y, None)


cdef int pool_average_backward(pool_call* call, TensorBase grad, TensorBase result) except -1:
    return pool(3, call, grad, result, None)


cdef dict _tables = {}           # (device, arguments of _axis_table): (start, index, weight) on the device


cdef tuple table_of(int index, tuple axis):
    """The taps of one dimension, uploaded once, also while a graph is recorded, which keeps them."""
    found = _tables.get((index, axis))
    if found is None:
        if len(_tables) >= TABLES and captures == 0:
            for used in {device for device, _ in _tables}:
                synchronize_on(used)            # kernels may still read them
            _tables.clear()
        found = _tables[index, axis] = tuple([constant_on_device(t, index) for t in _resize._axis_table(*axis)])
    keep_for_recording(found)
    return found


cdef int resample(TensorBase x, TensorBase y, int kind, object scales, bint align_corners, bint antialias, bint transposed) except -1:
    """The tables of all dimensions are applied at once."""
    cdef Resample p
    cdef int k, d, n = x.ndim - 2
    cdef list held = [], axes = [(RESIZE_NEAREST, False, False, x.dtype == F64, 0.0, 1, 1, False)] * (3 - n)
    cdef void* arguments[1]
    if not is_floating_type(x.dtype) and not (x.dtype == U8 and kind <= RESIZE_NEAREST_EXACT):
        raise NotImplementedError(f"\"upsample_cuda\" not implemented for '{dtype_text(x.dtype)}'")
    for k in range(n):
        scale = 0.0 if scales is None or scales[k] is None else scales[k]
        axes.append((kind, align_corners, antialias, x.dtype == F64, scale, (y if transposed else x).sizes[2 + k], (x if transposed else y).sizes[2 + k], transposed))
    p.x, p.y, p.numel, p.inner = data_of(x), data_of(y), y.numel, 1 if x.contiguous and y.contiguous else x.sizes[1]
    for k in range(3):
        d = k - 3 + x.ndim
        p.sources[k], p.out[k] = x.sizes[d] if d >= 2 else 1, y.sizes[d] if d >= 2 else 1
        start, index, weight = table_of(x.device_index, axes[k])
        held.append((start, index, weight))
        p.taps[k].start, p.taps[k].index = <const int64_t*>data_of(<TensorBase>start), <const int32_t*>data_of(<TensorBase>index)
        p.taps[k].weight = data_of(<TensorBase>weight)
    arguments[0] = &p
    return run(load(x.device_index, x.dtype, 4), x.device_index, blocks_for(p.numel, 256), 256, 0, arguments)


cdef int window_columns(const WindowArgs* shape, TensorBase x, TensorBase y) except -1:
    return windows(5, &shape.height, x, y)


cdef int window_images(const WindowArgs* shape, TensorBase x, TensorBase y) except -1:
    return windows(6, &shape.height, x, y)


cdef int windows(int which, const int64_t* given, TensorBase x, TensorBase y) except -1:
    cdef Windows p
    cdef int k
    cdef void* arguments[1]
    p.x, p.y, p.numel = data_of(x), data_of(y), y.numel
    for k in range(12):
        p.given[k] = given[k]
    arguments[0] = &p
    return run(load(x.device_index, x.dtype, which), x.device_index, blocks_for(p.numel, 256), 256, 0, arguments)


cdef enum:
    TABLES = 1024                # of interpolation that stay on the device; then all are made anew
    GRID_CHANNELS = 8            # kGridChannels

GRID_KERNELS = ("grid_forward", "grid_keys", "grid_backward_input", "grid_backward_grid")
cdef FunctionHandle grid_handles[64][NUM_DTYPES][2][3][4]


cdef FunctionHandle load_grid(int index, int dtype, int dims, int mode, int which) except NULL:
    cdef FunctionHandle* slot = &grid_handles[index][dtype][dims - 2][mode][which]
    if slot[0] == NULL:
        t, text = _source.TYPES[dtype][1], "#include \"grid.cuh\"\n"
        for name in GRID_KERNELS:
            numbers = (2, 1, 4)[mode] ** dims if name == "grid_backward_input" else f"{dims}, {mode}"
            text += f"\nextern \"C\" __global__ void __launch_bounds__(256) {name}(const trt::Grid p) {{ trt::{name}<{t}, {numbers}>(p); }}"
        slot[0] = kernel_of(text + "\n", GRID_KERNELS[which], index)
    return slot[0]


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    cdef int dtype, which, dims, mode
    for dtype in range(<int>NUM_DTYPES):
        if not has_loops(dtype) or dtype == BOOL:
            continue
        for which in range(7):
            if not is_complex_type(dtype) or which > 4:
                load(index, dtype, which)
        if is_floating_type(dtype):
            for dims in range(2, 4):
                for mode in range(3 if dims == 2 else 2):
                    load_grid(index, dtype, dims, mode, 0)


cdef int sample_grid(const GridArgs* s, TensorBase x, TensorBase grid, TensorBase gy, TensorBase result, bint of_input) except -1:
    """result: what is sampled where gy is None, otherwise the gradient of x or of the grid. All contiguous, of x's type."""
    cdef Grid p
    cdef int k, bits = 1, index = x.device_index, dtype = x.dtype
    cdef int64_t parts = (s.channels + GRID_CHANNELS - 1) // GRID_CHANNELS, plane = s.size[0] * s.size[1] * s.size[2]
    cdef TensorBase keys, weights, order
    cdef void* arguments[1]
    arguments[0] = &p
    p.x, p.grid, p.gy, p.result = data_of(x), data_of(grid), NULL if gy is None else data_of(gy), data_of(result)
    p.samples, p.channels, p.positions, p.padding, p.align_corners = s.samples, s.channels, s.positions, s.padding, s.align_corners
    for k in range(3):
        p.size[k] = s.size[k]
    if gy is None:
        return run(load_grid(index, dtype, s.dims, s.mode, 0), index, blocks_for(p.samples * parts * p.positions, 256), 256, 0, arguments)
    if not of_input:
        return run(load_grid(index, dtype, s.dims, s.mode, 3), index, blocks_for(p.samples * p.positions, 256), 256, 0, arguments)
    p.taps = p.samples * p.positions * (2, 1, 4)[s.mode] ** s.dims
    if p.taps >= (<int64_t>1 << 31) or p.samples * plane >= (<int64_t>1 << 32) - 1:
        raise NotImplementedError(f"grid_sampler_backward: {p.taps} places read of {p.samples * plane} pixels, on CUDA")
    keys = empty_tensor(1, &p.taps, I32, place_of(x))
    weights = empty_tensor(1, &p.taps, F64 if dtype == F64 else F32, place_of(x))
    p.keys, p.weights = data_of(keys), data_of(weights)
    run(load_grid(index, dtype, s.dims, s.mode, 1), index, blocks_for(p.samples * p.positions, 256), 256, 0, arguments)
    while p.samples * plane >> bits:
        bits += 1
    keys, order = sort_pairs(keys, None, bits)
    p.keys, p.order = data_of(keys), data_of(order)
    return run(load_grid(index, dtype, s.dims, s.mode, 2), index, blocks_for(p.samples * parts * plane, 256), 256, 0, arguments)


set_pool_max(DEV_CUDA, pool_max)
set_pool_max_backward(DEV_CUDA, pool_max_backward)
set_pool_average(DEV_CUDA, pool_average)
set_pool_average_backward(DEV_CUDA, pool_average_backward)
set_resample(DEV_CUDA, resample)
set_sample_grid(DEV_CUDA, sample_grid)
set_window_columns(DEV_CUDA, window_columns)
set_window_images(DEV_CUDA, window_images)
