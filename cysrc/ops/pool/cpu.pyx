"""Pooling on the CPU over cysrc/loops/pool.h, beneath the checks of pool.pyx."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport CAT_INT, I32, category
from tensorrt_lite._C.core.iterator cimport copy_elements
from tensorrt_lite._C.core.parallel cimport task_fn
from tensorrt_lite._C.core.tensor cimport ITEM_SIZE, TensorBase, data_of, empty_strided_tensor
from tensorrt_lite._C.ops.support cimport run_held
from tensorrt_lite._C.steps.pool cimport pool_call, set_pool_average, set_pool_average_backward, set_pool_max, set_pool_max_backward


cdef extern from "pool_tables.h" nogil:
    ctypedef struct max_pool_kernels:
        void (*planes)(const char* data, char* out, int64_t* indices, const pool_call* call, int64_t begin, int64_t end) noexcept nogil
        void (*last)(const char* data, char* out, int64_t* indices, const pool_call* call, int64_t begin, int64_t end) noexcept nogil
        void (*backward_planes)(const char* grad, const int64_t* indices, char* grad_in, const pool_call* call, int64_t begin, int64_t end) noexcept nogil
        void (*backward_last)(const char* grad, const int64_t* indices, char* grad_in, const pool_call* call, int64_t begin, int64_t end) noexcept nogil
    ctypedef void (*avg_pool_fn)(const char* data, char* out, const pool_call* call, int64_t begin, int64_t end) noexcept nogil
    ctypedef struct avg_pool_kernels:
        avg_pool_fn planes, last, backward_planes, backward_last

ctypedef void (*adaptive_max_fn)(int dtype, int last, const char* x, char* y, int64_t* indices, const pool_call* call, int64_t begin, int64_t end) noexcept nogil

cdef extern from *:
    """
    #include "isa.h"
    ISA_TABLE(max_pool_kernels, max_pool_table)
    ISA_TABLE(avg_pool_kernels, avg_pool_table)
    ISA_TABLE(avg_pool_kernels, adaptive_avg_pool_table)
    ISA_FUNCTION(void, adaptive_max, (int, int, const char*, char*, int64_t*, const pool_call*, int64_t, int64_t))
    """
    const max_pool_kernels* max_pool_table()
    const avg_pool_kernels* avg_pool_table()
    const avg_pool_kernels* adaptive_avg_pool_table()
    adaptive_max_fn adaptive_max()

cdef const max_pool_kernels* MAXIMA = max_pool_table()
cdef const avg_pool_kernels* AVERAGES = avg_pool_table()
cdef const avg_pool_kernels* ADAPTIVE_AVERAGES = adaptive_avg_pool_table()
cdef adaptive_max_fn adaptive_max_loop = adaptive_max()


cdef struct PoolRun:
    const max_pool_kernels* maxima
    avg_pool_fn average
    const pool_call* call
    int dtype
    const char* x
    char* y
    int64_t* indices


cdef void run_max(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef PoolRun* r = <PoolRun*>context
    if r.call.last:
        r.maxima.last(r.x, r.y, r.indices, r.call, begin, end)
    else:
        r.maxima.planes(r.x, r.y, r.indices, r.call, begin, end)


cdef void run_adaptive_max(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef PoolRun* r = <PoolRun*>context
    adaptive_max_loop(r.dtype, r.call.last, r.x, r.y, r.indices, r.call, begin, end)


cdef void run_max_backward(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef PoolRun* r = <PoolRun*>context
    if r.call.last:
        r.maxima.backward_last(r.x, r.indices, r.y, r.call, begin, end)
    else:
        r.maxima.backward_planes(r.x, r.indices, r.y, r.call, begin, end)


cdef void run_average(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef PoolRun* r = <PoolRun*>context
    r.average(r.x, r.y, r.call, begin, end)


cdef inline int64_t window_size(const pool_call* call) noexcept:
    """Elements of the input under a window, at most."""
    return min(call.kernel_h, call.in_h) * min(call.kernel_w, call.in_w)


cdef inline int64_t sample_count(TensorBase x) noexcept:
    return x.sizes[0] if x.ndim == 4 else 1


cdef inline bint computes_in_int32(TensorBase x) noexcept:
    """Integers of one and two bytes are seldom pooled: they are converted, instead of having loops of their own."""
    return category[x.dtype] == CAT_INT and ITEM_SIZE[x.dtype] <= 2


cdef TensorBase in_int32(TensorBase x):
    return empty_strided_tensor(x.ndim, x.sizes, x.strides, I32, DEV_CPU)


cdef int pool_max(pool_call* call, TensorBase x, TensorBase y, TensorBase indices) except -1:
    cdef PoolRun r
    cdef TensorBase wide_x, wide_y
    cdef int64_t items = sample_count(x) * (call.out_h if call.last else call.channels)
    if computes_in_int32(x):
        wide_x, wide_y = in_int32(x), in_int32(y)
        copy_elements(wide_x, x)
        pool_max(call, wide_x, wide_y, indices)
        return copy_elements(y, wide_y)
    r.maxima = MAXIMA + x.dtype
    r.call = call
    r.dtype = x.dtype
    r.x = data_of(x)
    r.y = data_of(y)
    r.indices = <int64_t*>data_of(indices)
    if call.adaptive:
        return run_held(run_adaptive_max, &r, items, x.numel, x, x)
    return run_held(run_max, &r, items, y.numel * window_size(call), x, x)


cdef int pool_max_backward(pool_call* call, TensorBase grad, TensorBase indices, TensorBase result) except -1:
    cdef PoolRun r
    cdef TensorBase wide_grad, wide_result
    if computes_in_int32(grad):
        wide_grad, wide_result = in_int32(grad), in_int32(result)
        copy_elements(wide_grad, grad)
        pool_max_backward(call, wide_grad, indices, wide_result)
        return copy_elements(result, wide_result)
    r.maxima = MAXIMA + grad.dtype
    r.call = call
    r.x = data_of(grad)
    r.y = data_of(result)
    r.indices = <int64_t*>data_of(indices)
    return run_held(run_max_backward, &r, sample_count(result) * (1 if call.last else call.channels), result.numel + 4 * grad.numel, grad, indices)


cdef int pool_average(pool_call* call, TensorBase x, TensorBase y) except -1:
    cdef PoolRun r
    cdef const avg_pool_kernels* kernels = (ADAPTIVE_AVERAGES if call.adaptive else AVERAGES) + x.dtype
    r.average = kernels.last if call.last else kernels.planes
    r.call = call
    r.x = data_of(x)
    r.y = data_of(y)
    return run_held(run_average, &r, sample_count(x) * (call.out_h if call.last else call.channels), x.numel if call.adaptive else y.numel * window_size(call), x, x)


cdef int pool_average_backward(pool_call* call, TensorBase grad, TensorBase result) except -1:
    cdef PoolRun r
    cdef const avg_pool_kernels* kernels = (ADAPTIVE_AVERAGES if call.adaptive else AVERAGES) + grad.dtype
    r.average = kernels.backward_last if call.last else kernels.backward_planes
    r.call = call
    r.x = data_of(grad)
    r.y = data_of(result)
    return run_held(run_average, &r, sample_count(result) * (call.in_h if call.last else call.channels),
                    result.numel if call.adaptive else result.numel + grad.numel * window_size(call), grad, grad)


set_pool_max(DEV_CPU, pool_max)
set_pool_max_backward(DEV_CPU, pool_max_backward)
set_pool_average(DEV_CPU, pool_average)
set_pool_average_backward(DEV_CPU, pool_average_backward)
