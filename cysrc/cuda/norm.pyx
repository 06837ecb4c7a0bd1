"""Normalisations on CUDA: launches of cuda_src/norm.cuh beneath the checks of ops/norm/norm.pyx."""
from libc.stdint cimport int64_t
from libc.string cimport memset
from tensorrt_lite._C.core.dtype cimport F16, BF16, F32, F64
from tensorrt_lite._C.core.iterator cimport cast_to, contiguous_of, copy_elements
from tensorrt_lite._C.core.storage cimport prepare_write
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, place_of, empty_tensor, bump_version
from tensorrt_lite._C.cuda.backend cimport kernel_of, run3, blocks_for
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.driver import device_attribute
from tensorrt_lite._C.steps.norm cimport (
    channel_shape, row_shape, set_batch_norm, set_batch_norm_backward, set_group_norm, set_group_norm_backward, set_row_norm, set_row_norm_backward)
from tensorrt_lite._C.steps.reduction cimport REDUCE_VAR, reduce_call, run_reduce
from tensorrt_lite._C.autograd.node cimport ops_namespace
from tensorrt_lite._C.cuda.source import storage_type

attach()
cdef object _ops = ops_namespace()

cdef enum:
    MULTIPROCESSOR_COUNT = 16      # CU_DEVICE_ATTRIBUTE_*

cdef str HEAD = """#include "norm.cuh"
using T = %s;
using W = %s;
using A = trt::compute_t<T>;
"""
cdef str ROW_UNIT = HEAD + """extern "C" __global__ void __launch_bounds__(512) forward(const row_shape l, const T* x, const W* weight, const W* bias, T* y, A* mean, A* rstd) {
    trt::row_norm<T, W, %s>(l, x, weight, bias, y, mean, rstd);
}
extern "C" __global__ void __launch_bounds__(512) backward(const row_shape l, const T* grad, const T* x, const W* weight, const A* mean, const A* rstd, T* out) {
    trt::row_norm_backward<T, W, %s>(l, grad, x, weight, mean, rstd, out);
}
"""
cdef str CHANNEL_UNIT = HEAD + """extern "C" __global__ void __launch_bounds__(256) planes(const channel_shape l, const T* grad, const T* x, const A* mean, const A* rstd, A* partials) {
    trt::sum_planes<T>(l, grad, x, mean, rstd, partials);
}
extern "C" __global__ void __launch_bounds__(256) columns(const channel_shape l, const T* grad, const T* x, const A* mean, const A* rstd, A* partials) {
    trt::sum_columns<T>(l, grad, x, mean, rstd, partials);
}
extern "C" __global__ void __launch_bounds__(256) pieces(long long channels, int splits, const A* partials, A* bias, A* weight) {
    trt::sum_pieces(channels, splits, partials, bias, weight);
}
extern "C" __global__ void __launch_bounds__(256) statistics(long long channels, long long count, double eps, double momentum, const W* weight, const W* bias, const A* mean, A* rstd, A* scale, A* shift, A* running_mean, A* running_var) {
    trt::batch_statistics(channels, count, eps, momentum, weight, bias, mean, rstd, scale, shift, running_mean, running_var);
}
extern "C" __global__ void __launch_bounds__(256) apply(long long numel, long long channels, long long inner, const T* x, const A* scale, const A* shift, T* y) {
    trt::batch_apply<T>(numel, channels, inner, x, scale, shift, y);
}
extern "C" __global__ void __launch_bounds__(256) batch_backward(long long numel, long long channels, long long inner, long long count, const T* grad, const T* x, const W* weight, const A* mean, const A* rstd, const A* sum, const A* dot, T* out) {
    trt::batch_backward<T, W>(numel, channels, inner, count, grad, x, weight, mean, rstd, sum, dot, out);
}
"""
cdef tuple KINDS = ("false, false", "true, false", "true, true")     # centred, by groups: root mean square, layer, group norm
cdef dict _handles = {}


cdef FunctionHandle kernel(str entry, int kind, int dtype, int parameters, int index) except NULL:
    """kind: of KINDS, or -1 for what goes by channel."""
    key = (entry, kind, dtype, parameters, index)
    found = _handles.get(key)
    if found is None:
        types = (storage_type(dtype), storage_type(parameters))
        text = CHANNEL_UNIT % types if kind < 0 else ROW_UNIT % (*types, KINDS[kind], KINDS[kind])
        found = _handles[key] = <size_t>kernel_of(text, entry, index)
    return <FunctionHandle><size_t>found


cdef inline int compute_type(int dtype) noexcept:
    return F64 if dtype == F64 else F32


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    cdef int dtype, parameters, kind
    for dtype in (F16, BF16, F32, F64):
        for parameters in sorted({dtype, compute_type(dtype)}):
            for kind in range(-1, 3):
                kernel("planes" if kind < 0 else "forward", kind, dtype, parameters, index)


cdef int parameter_type(TensorBase x, TensorBase weight, TensorBase bias) noexcept:
    """The type that the kernels read parameters in: their own if it is x's or the compute type."""
    cdef int code = compute_type(x.dtype)
    if (weight is None or weight.dtype == x.dtype) and (bias is None or bias.dtype == x.dtype) and (weight is not None or bias is not None):
        return x.dtype
    return code


cdef TensorBase parameter(TensorBase t, int code):
    return None if t is None else contiguous_of(cast_to(t, code))


cdef inline char* memory_of(TensorBase t) noexcept:
    return NULL if t is None else data_of(t)


cdef int check_places(TensorBase x, tuple others) except -1:
    for t in others:
        if t is not None and (<TensorBase>t).device_index != x.device_index:
            raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, cuda:{x.device_index} and cuda:{(<TensorBase>t).device_index}!")
    return 0


cdef TensorBase vector(int64_t n, int code, TensorBase x):
    return empty_tensor(1, &n, code, place_of(x))


cdef int block_shape(int64_t rows, int64_t n, int* tx, int* ty) noexcept:
    """A warp and several rows to a block, or up to 512 threads to a row that leaves each over 16 elements."""
    tx[0] = 32
    while tx[0] < 512 and n > 16 * tx[0]:
        tx[0] *= 2
    ty[0] = 256 // tx[0] if tx[0] < 256 else 1
    return 0


cdef int channel_sums(TensorBase grad, TensorBase x, TensorBase mean, TensorBase rstd, int64_t samples, int64_t channels, int64_t inner,
                      int64_t by_sample, int64_t by_channel, TensorBase bias, TensorBase weight) except -1:
    """dy and dy xhat summed by channel, into `bias` and `weight` of the compute type; either may be None."""
    cdef channel_shape l
    cdef int code = compute_type(x.dtype), index = x.device_index
    cdef int64_t n = samples * inner, blocks = channels if inner > 1 else (channels + 31) // 32, wanted
    cdef TensorBase partials
    cdef char* pointers[5]
    cdef void* arguments[6]
    cdef int i
    l.samples = samples
    l.channels = channels
    l.inner = inner
    l.by_sample = by_sample
    l.by_channel = by_channel
    wanted = 4 * <int>device_attribute(MULTIPROCESSOR_COUNT, index)
    l.splits = <int>max(min((wanted + blocks - 1) // blocks, n // (2048 if inner > 1 else 64), <int64_t>256), <int64_t>1)
    l.chunk = (n + l.splits - 1) // l.splits
    partials = vector(2 * l.splits * channels, code, x)
    pointers[0] = data_of(grad)
    pointers[1] = data_of(x)
    pointers[2] = memory_of(mean)
    pointers[3] = data_of(rstd)
    pointers[4] = data_of(partials)
    arguments[0] = &l
    for i in range(5):
        arguments[i + 1] = &pointers[i]
    if inner > 1:
        run3(kernel("planes", -1, x.dtype, code, index), index, min(blocks, (<int64_t>1 << 31) - 1), l.splits, 1, 256, 1, 1, 0, arguments)
    else:
        run3(kernel("columns", -1, x.dtype, code, index), index, min(blocks, (<int64_t>1 << 31) - 1), l.splits, 1, 32, 8, 1, 0, arguments)
    pointers[0] = memory_of(bias)
    pointers[1] = memory_of(weight)
    arguments[0] = &channels
    arguments[1] = &l.splits
    arguments[2] = &pointers[4]
    arguments[3] = &pointers[0]
    arguments[4] = &pointers[1]
    return run3(kernel("pieces", -1, x.dtype, code, index), index, blocks_for(channels, 256), 1, 1, 256, 1, 1, 0, arguments)


# ---- rows: layer_norm (kind 1), rms_norm (kind 0), group_norm (kind 2) ---------------------------------------------

cdef int row_forward(int kind, TensorBase x, TensorBase weight, TensorBase bias, row_shape* l, TensorBase y, TensorBase mean, TensorBase rstd) except -1:
    cdef int code = parameter_type(x, weight, bias), tx, ty, i
    cdef TensorBase w = parameter(weight, code), b = parameter(bias, code)
    cdef char* pointers[6]
    cdef void* arguments[7]
    check_places(x, (weight, bias))
    block_shape(l.rows, l.n, &tx, &ty)
    pointers[0] = data_of(x)
    pointers[1] = memory_of(w)
    pointers[2] = memory_of(b)
    pointers[3] = data_of(y)
    pointers[4] = memory_of(mean)
    pointers[5] = data_of(rstd)
    arguments[0] = l
    for i in range(6):
        arguments[i + 1] = &pointers[i]
    return run3(kernel("forward", kind, x.dtype, code, x.device_index), x.device_index, min((l.rows + ty - 1) // ty, 1 << 20), 1, 1, tx, ty, 1, 0, arguments)


cdef int row_backward(int kind, TensorBase grad, TensorBase x, TensorBase weight, TensorBase mean, TensorBase rstd, row_shape* l, TensorBase dx) except -1:
    cdef int code = parameter_type(x, weight, None), tx, ty, i
    cdef TensorBase w = parameter(weight, code)
    cdef char* pointers[6]
    cdef void* arguments[7]
    block_shape(l.rows, l.n, &tx, &ty)
    pointers[0] = data_of(grad)
    pointers[1] = data_of(x)
    pointers[2] = memory_of(w)
    pointers[3] = memory_of(mean)
    pointers[4] = data_of(rstd)
    pointers[5] = data_of(dx)
    arguments[0] = l
    for i in range(6):
        arguments[i + 1] = &pointers[i]
    return run3(kernel("backward", kind, x.dtype, code, x.device_index), x.device_index, min((l.rows + ty - 1) // ty, 1 << 20), 1, 1, tx, ty, 1, 0, arguments)


cdef TensorBase in_type(TensorBase t, int code):
    """t itself, or a tensor of another type to compute in that is copied to it afterwards; None stays None."""
    return t if t is None or t.dtype == code else empty_tensor(t.ndim, t.sizes, code, place_of(t))


cdef int deliver(TensorBase t, TensorBase computed) except -1:
    return 0 if t is computed else copy_elements(t, computed)


cdef int row_norm(row_shape* call, TensorBase x, TensorBase weight, TensorBase bias, TensorBase y, TensorBase mean, TensorBase rstd) except -1:
    return row_forward(0 if mean is None else 1, contiguous_of(x), weight, bias, call, y, mean, rstd)


cdef int row_norm_backward(row_shape* call, TensorBase grad, TensorBase input, TensorBase weight, TensorBase mean, TensorBase rstd, TensorBase dx, TensorBase dw,
                           TensorBase db) except -1:
    cdef TensorBase x = contiguous_of(input), g = contiguous_of(cast_to(grad, x.dtype))
    cdef TensorBase w_out = in_type(dw, compute_type(x.dtype)), b_out = in_type(db, compute_type(x.dtype))
    if dx is not None:
        row_backward(0 if mean is None else 1, g, x, weight, mean, rstd, call, dx)
    if dw is not None or db is not None:
        channel_sums(g, x, mean, rstd, call.rows, call.n, 1, 1, 0, b_out, w_out)
    deliver(dw, w_out)
    return deliver(db, b_out)


cdef int group_norm(row_shape* call, TensorBase x, TensorBase weight, TensorBase bias, TensorBase y, TensorBase mean, TensorBase rstd) except -1:
    return row_forward(2, contiguous_of(x), weight, bias, call, y, mean, rstd)


cdef int group_norm_backward(row_shape* call, TensorBase grad, TensorBase input, TensorBase weight, TensorBase mean, TensorBase rstd, TensorBase dx, TensorBase dw,
                             TensorBase db) except -1:
    cdef TensorBase x = contiguous_of(input), g = contiguous_of(cast_to(grad, x.dtype))
    cdef TensorBase w_out = in_type(dw, compute_type(x.dtype)), b_out = in_type(db, compute_type(x.dtype))
    if dx is not None:
        row_backward(2, g, x, weight, mean, rstd, call, dx)
    if dw is not None or db is not None:
        channel_sums(g, x, mean, rstd, x.sizes[0], x.sizes[1], call.inner, call.groups, call.per_group, b_out, w_out)
    deliver(dw, w_out)
    return deliver(db, b_out)


# ---- batch_norm: x dense, channels at dimension 1 or (`last`) innermost --------------------------------------------

cdef TensorBase running_in(TensorBase running, int code):
    return None if running is None else contiguous_of(cast_to(running, code))


cdef int write_back(TensorBase running, TensorBase t) except -1:
    if running is not None:
        prepare_write(running.storage, "batch_norm")
        if t is not running:
            copy_elements(running, t)
        bump_version(running)
    return 0


cdef int batch_norm(TensorBase x, bint last, TensorBase weight, TensorBase bias, TensorBase running_mean, TensorBase running_var, bint training, double momentum,
                    double eps, TensorBase y, TensorBase mean, TensorBase rstd) except -1:
    cdef int code = compute_type(x.dtype), index = x.device_index, parameters = parameter_type(x, weight, bias), i
    cdef long long channels = x.sizes[1], numel = x.numel, count = numel // channels if channels else 0, inner = 1 if last else count // x.sizes[0] if x.sizes[0] else 1
    cdef TensorBase scale = vector(channels, code, x), shift = vector(channels, code, x)
    cdef TensorBase w = parameter(weight, parameters), b = parameter(bias, parameters), new_mean = None, new_var = None
    cdef reduce_call call
    cdef char* pointers[8]
    cdef void* arguments[12]
    check_places(x, (weight, bias, running_mean, running_var))
    if channels == 0:
        return 0
    if not training:
        copy_elements(mean, running_mean)
        copy_elements(rstd, running_var)
    elif numel:
        memset(&call, 0, sizeof(call))
        call.operation = REDUCE_VAR
        for i in range(x.ndim):
            call.reduced[i] = i != 1
        run_reduce(x.device_type, &call, x, rstd, mean)
        new_mean = running_in(running_mean, code)
        new_var = running_in(running_var, code)
    else:
        _ops.zero_(mean)
        _ops.zero_(rstd)
    pointers[0] = memory_of(w)
    pointers[1] = memory_of(b)
    pointers[2] = data_of(mean)
    pointers[3] = data_of(rstd)
    pointers[4] = data_of(scale)
    pointers[5] = data_of(shift)
    pointers[6] = memory_of(new_mean)
    pointers[7] = memory_of(new_var)
    arguments[0] = &channels
    arguments[1] = &count
    arguments[2] = &eps
    arguments[3] = &momentum
    for i in range(8):
        arguments[i + 4] = &pointers[i]
    run3(kernel("statistics", -1, x.dtype, parameters, index), index, blocks_for(channels, 256), 1, 1, 256, 1, 1, 0, arguments)
    if new_mean is not None:
        write_back(running_mean, new_mean)
    if new_var is not None:
        write_back(running_var, new_var)
    if numel:
        pointers[0] = data_of(x)
        pointers[1] = data_of(y)
        arguments[0] = &numel
        arguments[1] = &channels
        arguments[2] = &inner
        arguments[3] = &pointers[0]
        arguments[4] = &pointers[4]
        arguments[5] = &pointers[5]
        arguments[6] = &pointers[1]
        run3(kernel("apply", -1, x.dtype, parameters, index), index, blocks_for(numel, 1024), 1, 1, 256, 1, 1, 0, arguments)
    return 0


cdef int batch_norm_backward(TensorBase g, TensorBase x, bint last, TensorBase weight, TensorBase mean, TensorBase rstd, bint training, TensorBase dx,
                             TensorBase dw, TensorBase db) except -1:
    cdef int code = compute_type(x.dtype), index = x.device_index, parameters = parameter_type(x, weight, None), i
    cdef long long channels = x.sizes[1], numel = x.numel, count = numel // channels if channels else 0, inner = 1 if last else count // x.sizes[0] if x.sizes[0] else 1
    cdef TensorBase w = parameter(weight, parameters)
    cdef char* pointers[8]
    cdef void* arguments[12]
    if numel == 0:
        _ops.zero_(dw)
        _ops.zero_(db)
        return 0
    channel_sums(g, x, mean, rstd, count // inner, channels, inner, 0, 1, db, dw)
    if dx is not None:
        if not training:
            count = 0
        pointers[0] = data_of(g)
        pointers[1] = data_of(x)
        pointers[2] = memory_of(w)
        pointers[3] = data_of(mean)
        pointers[4] = data_of(rstd)
        pointers[5] = data_of(db)
        pointers[6] = data_of(dw)
        pointers[7] = data_of(dx)
        arguments[0] = &numel
        arguments[1] = &channels
        arguments[2] = &inner
        arguments[3] = &count
        for i in range(8):
            arguments[i + 4] = &pointers[i]
        run3(kernel("batch_backward", -1, x.dtype, parameters, index), index, blocks_for(numel, 1024), 1, 1, 256, 1, 1, 0, arguments)
    return 0


set_batch_norm(DEV_CUDA, batch_norm)
set_batch_norm_backward(DEV_CUDA, batch_norm_backward)
set_row_norm(DEV_CUDA, row_norm)
set_row_norm_backward(DEV_CUDA, row_norm_backward)
set_group_norm(DEV_CUDA, group_norm)
set_group_norm_backward(DEV_CUDA, group_norm_backward)
