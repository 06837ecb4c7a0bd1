"""Normalisations on the CPU over cysrc/loops/norm.h, beneath the checks of norm.pyx. Statistics and per-channel factors are small arrays in the compute
type (float32 for halves). Work is shared by channels, rows or planes, never inside a sum."""
from libc.math cimport sqrt
from libc.stdint cimport int64_t
from libc.string cimport memset
from tensorrt_lite._C.core.allocator cimport block_alloc, block_drop, trt_block
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport F32, F64
from tensorrt_lite._C.core.iterator cimport cast_to, contiguous_of, copy_elements
from tensorrt_lite._C.core.parallel cimport GRAIN, parallel_for, task_fn
from tensorrt_lite._C.core.storage cimport prepare_write
from tensorrt_lite._C.core.tensor cimport ITEM_SIZE, TensorBase, bump_version, data_of, empty_tensor, held
from tensorrt_lite._C.steps.norm cimport (
    NORM_ROWS, row_shape, set_batch_norm, set_batch_norm_backward, set_group_norm, set_group_norm_backward, set_row_norm, set_row_norm_backward)


cdef extern from "norm_tables.h" nogil:
    ctypedef struct row_norm_kernels:
        void (*forward)(const char* data, int64_t row_stride, char* out, int64_t out_row_stride, int64_t n, const char* weight, const char* bias,
                        double eps, char* mean, char* rstd, int64_t rows_begin, int64_t rows_end) noexcept nogil
        void (*backward)(const char* grad, int64_t grad_row_stride, const char* data, int64_t row_stride, const char* weight, const char* mean,
                         const char* rstd, char* out, int64_t out_row_stride, char* partials, int64_t n, int64_t rows, int64_t items_begin,
                         int64_t items_end) noexcept nogil
        void (*backward_params)(const char* partials, int64_t items, int64_t n, char* grad_weight, char* grad_bias, int64_t cols_begin,
                                int64_t cols_end) noexcept nogil
    ctypedef struct group_norm_kernels:
        void (*forward)(const char* data, char* out, int64_t channels, int64_t hw, int64_t groups, const char* weight, const char* bias, double eps,
                        char* mean, char* rstd, int64_t items_begin, int64_t items_end) noexcept nogil
        void (*backward)(const char* grad, const char* data, int64_t channels, int64_t hw, int64_t groups, const char* weight, const char* mean,
                         const char* rstd, char* out, double* sums, int64_t items_begin, int64_t items_end) noexcept nogil
        void (*backward_params)(const double* sums, int64_t samples, int64_t channels, char* grad_weight, char* grad_bias, int64_t channels_begin,
                                int64_t channels_end) noexcept nogil
    ctypedef struct batch_norm_kernels:
        void (*stats_planes)(const char* data, int64_t sample_stride, int64_t channel_stride, int64_t samples, int64_t hw, char* mean, char* var,
                             int64_t channels_begin, int64_t channels_end) noexcept nogil
        void (*stats_last)(const char* data, int64_t row_stride, int64_t rows, char* mean, char* var, int64_t channels_begin,
                           int64_t channels_end) noexcept nogil
        void (*apply_planes)(const char* data, int64_t sample_stride, int64_t channel_stride, char* out, int64_t out_sample_stride,
                             int64_t out_channel_stride, int64_t channels, int64_t hw, const char* scale, const char* shift, int64_t items_begin,
                             int64_t items_end) noexcept nogil
        void (*apply_last)(const char* data, int64_t row_stride, char* out, int64_t out_row_stride, int64_t channels, const char* scale,
                           const char* shift, int64_t rows_begin, int64_t rows_end) noexcept nogil
        void (*backward_stats_planes)(const char* grad, int64_t grad_sample_stride, int64_t grad_channel_stride, const char* data,
                                      int64_t sample_stride, int64_t channel_stride, int64_t samples, int64_t hw, const char* mean, char* sum,
                                      char* dot, int64_t channels_begin, int64_t channels_end) noexcept nogil
        void (*backward_stats_last)(const char* grad, int64_t grad_row_stride, const char* data, int64_t row_stride, int64_t rows, const char* mean,
                                    char* sum, char* dot, int64_t channels_begin, int64_t channels_end) noexcept nogil
        void (*backward_apply_planes)(const char* grad, int64_t grad_sample_stride, int64_t grad_channel_stride, const char* data,
                                      int64_t sample_stride, int64_t channel_stride, char* out, int64_t out_sample_stride, int64_t out_channel_stride,
                                      int64_t channels, int64_t hw, const char* mean, const char* a, const char* b, const char* k,
                                      int64_t items_begin, int64_t items_end) noexcept nogil
        void (*backward_apply_last)(const char* grad, int64_t grad_row_stride, const char* data, int64_t row_stride, char* out,
                                    int64_t out_row_stride, int64_t channels, const char* mean, const char* a, const char* b, const char* k,
                                    int64_t rows_begin, int64_t rows_end) noexcept nogil

cdef extern from *:
    """
    #include "isa.h"
    ISA_TABLE(row_norm_kernels, layer_norm_table)
    ISA_TABLE(row_norm_kernels, rms_norm_table)
    ISA_TABLE(group_norm_kernels, group_norm_table)
    ISA_TABLE(batch_norm_kernels, batch_norm_table)
    """
    const row_norm_kernels* layer_norm_table()
    const row_norm_kernels* rms_norm_table()
    const group_norm_kernels* group_norm_table()
    const batch_norm_kernels* batch_norm_table()

cdef const row_norm_kernels* LAYER_NORM = layer_norm_table()
cdef const row_norm_kernels* RMS_NORM = rms_norm_table()
cdef const group_norm_kernels* GROUP_NORM = group_norm_table()
cdef const batch_norm_kernels* BATCH_NORM = batch_norm_table()


cdef inline int64_t grain_of(int64_t elements) noexcept nogil:
    """Items of a share when one item has so many elements."""
    return 1 + GRAIN // 2 // (elements + 1)


cdef inline double get_value(const char* p, int code, int64_t i) noexcept nogil:
    return (<const float*>p)[i] if code == F32 else (<const double*>p)[i]


cdef inline void put_value(char* p, int code, int64_t i, double v) noexcept nogil:
    if code == F32:
        (<float*>p)[i] = <float>v
    else:
        (<double*>p)[i] = v


cdef inline int computing_type(int dtype) noexcept:
    return F64 if dtype == F64 else F32


cdef int loops_type(TensorBase x, TensorBase weight, TensorBase bias) noexcept:
    """The element type that the loops run in: x's, or float32 for a half with float32 parameters."""
    if weight is not None and weight.dtype != x.dtype or bias is not None and bias.dtype != x.dtype:
        return F32
    return x.dtype


cdef TensorBase parameter(TensorBase t, int code):
    """A weight or bias, contiguous in the wanted type; None stays None."""
    return None if t is None else contiguous_of(cast_to(t, code))


cdef inline char* memory_of(TensorBase t) noexcept:
    return NULL if t is None else data_of(t)


cdef TensorBase in_type(TensorBase t, int code):
    """t itself, or a tensor of another type to compute in that is copied to it afterwards; None stays None."""
    return t if t is None or t.dtype == code else empty_tensor(t.ndim, t.sizes, code, DEV_CPU)


cdef int deliver(TensorBase t, TensorBase computed) except -1:
    return 0 if t is computed else copy_elements(t, computed)


# ---- batch_norm ----------------------------------------------------------------------------------------------------

cdef struct BatchNorm:
    const batch_norm_kernels* kernels
    bint last                      # channels are innermost: rows of `channels`
    int64_t samples, channels, hw, rows, item
    const char* x
    const char* g
    char* y
    char* mean
    char* second                   # variance, or the sum of dy (x - mean)
    char* sum
    char* a
    char* b
    char* k


cdef void batch_stats(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef BatchNorm* r = <BatchNorm*>context
    if r.last:
        r.kernels.stats_last(r.x, r.channels * r.item, r.rows, r.mean, r.second, begin, end)
    else:
        r.kernels.stats_planes(r.x, r.channels * r.hw * r.item, r.hw * r.item, r.samples, r.hw, r.mean, r.second, begin, end)


cdef void batch_apply(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef BatchNorm* r = <BatchNorm*>context
    cdef int64_t sample = r.channels * r.hw * r.item, channel = r.hw * r.item
    if r.last:
        r.kernels.apply_last(r.x, r.channels * r.item, r.y, r.channels * r.item, r.channels, r.a, r.b, begin, end)
    else:
        r.kernels.apply_planes(r.x, sample, channel, r.y, sample, channel, r.channels, r.hw, r.a, r.b, begin, end)


cdef void batch_backward_stats(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef BatchNorm* r = <BatchNorm*>context
    cdef int64_t sample = r.channels * r.hw * r.item, channel = r.hw * r.item
    if r.last:
        r.kernels.backward_stats_last(r.g, r.channels * r.item, r.x, r.channels * r.item, r.rows, r.mean, r.sum, r.second, begin, end)
    else:
        r.kernels.backward_stats_planes(r.g, sample, channel, r.x, sample, channel, r.samples, r.hw, r.mean, r.sum, r.second, begin, end)


cdef void batch_backward_apply(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef BatchNorm* r = <BatchNorm*>context
    cdef int64_t sample = r.channels * r.hw * r.item, channel = r.hw * r.item
    if r.last:
        r.kernels.backward_apply_last(r.g, r.channels * r.item, r.x, r.channels * r.item, r.y, r.channels * r.item, r.channels, r.mean, r.a, r.b,
                                      r.k, begin, end)
    else:
        r.kernels.backward_apply_planes(r.g, sample, channel, r.x, sample, channel, r.y, sample, channel, r.channels, r.hw, r.mean, r.a, r.b, r.k,
                                        begin, end)


cdef int describe_batch(BatchNorm* r, TensorBase x, bint last) except -1:
    cdef int i
    r.kernels = BATCH_NORM + x.dtype
    r.last = last
    r.samples = x.sizes[0]
    r.channels = x.sizes[1]
    r.hw = 1
    for i in range(2, x.ndim):
        r.hw *= x.sizes[i]
    r.rows = r.samples * r.hw
    r.item = ITEM_SIZE[x.dtype]
    r.x = data_of(x)
    return 0


cdef int share(BatchNorm* r, task_fn task, bint by_channel, int64_t numel) except -1:
    """Run one pass, without the GIL when it is long."""
    cdef int64_t items = r.channels if by_channel else (r.rows if r.last else r.samples * r.channels)
    if numel < 4096:
        task(r, 0, items)
        return 0
    with nogil:
        parallel_for(items, grain_of(numel // items), 64 if by_channel and r.last else 1, task, r)
    return 0


cdef int update_running(TensorBase running, const char* values, int64_t c, int code, double momentum, double factor) except -1:
    """running = (1 - momentum) * running + momentum * factor * values"""
    cdef TensorBase t = running
    cdef int64_t i
    cdef char* p
    prepare_write(running.storage, "batch_norm")
    if running.dtype != code or not running.contiguous:
        t = contiguous_of(cast_to(running, code))
    if t.numel != c:
        raise RuntimeError("batch_norm: a running statistic was changed by another thread")
    p = data_of(t)
    for i in range(c):
        put_value(p, code, i, (1 - momentum) * get_value(p, code, i) + momentum * factor * get_value(values, code, i))
    if t is not running:
        copy_elements(running, t)
    bump_version(running)
    return 0


cdef int batch_norm_on_cpu(TensorBase x, bint last, TensorBase weight, TensorBase bias, TensorBase running_mean, TensorBase running_var, bint training, double momentum,
                    double eps, TensorBase y, TensorBase mean_, TensorBase rstd) except -1:
    cdef BatchNorm r
    cdef int code = computing_type(x.dtype)
    cdef int64_t c = x.sizes[1], n, i
    cdef double mean, scale, unbiased
    cdef TensorBase w, b
    cdef trt_block* scratch
    if x.numel >= 4096:
        x, weight, bias = held(x), held(weight), held(bias)
    w = parameter(weight, code)
    b = parameter(bias, code)
    describe_batch(&r, x, last)
    n = r.rows
    scratch = block_alloc(2 * c * ITEM_SIZE[code] + 128)
    r.a = scratch.data
    r.b = scratch.data + (c * ITEM_SIZE[code] + 63) // 64 * 64
    r.mean = data_of(mean_)
    r.second = data_of(rstd)
    r.y = data_of(y)
    if training:
        if x.numel:
            share(&r, batch_stats, True, x.numel)
        else:
            memset(r.mean, 0, c * ITEM_SIZE[code])
            memset(r.second, 0, c * ITEM_SIZE[code])
        if running_mean is not None and n:
            update_running(running_mean, r.mean, c, code, momentum, 1)
        if running_var is not None and n:
            unbiased = <double>n / (n - 1) if n > 1 else 1 / <double>0
            update_running(running_var, r.second, c, code, momentum, unbiased)
    else:
        copy_elements(mean_, cast_to(running_mean, code))
        copy_elements(rstd, cast_to(running_var, code))
    for i in range(c):
        mean = get_value(r.mean, code, i)
        scale = 1 / sqrt(get_value(r.second, code, i) + eps)
        put_value(r.second, code, i, scale)
        if w is not None:
            scale *= get_value(data_of(w), code, i)
        put_value(r.a, code, i, scale)
        put_value(r.b, code, i, (get_value(data_of(b), code, i) if b is not None else 0) - mean * scale)
    if x.numel:
        share(&r, batch_apply, False, x.numel)
    block_drop(scratch)
    return 0


cdef int batch_norm_backward_on_cpu(TensorBase grad, TensorBase x, bint last, TensorBase weight, TensorBase mean, TensorBase rstd, bint training, TensorBase dx,
                             TensorBase dw, TensorBase db) except -1:
    cdef BatchNorm r
    cdef int code = computing_type(x.dtype)
    cdef int64_t c = x.sizes[1], i, size
    cdef double a, s, dot, rs
    cdef TensorBase w
    cdef trt_block* scratch
    if x.numel >= 4096:
        grad, x, weight, mean, rstd = held(grad), held(x), held(weight), held(mean), held(rstd)
    w = parameter(weight, code)
    describe_batch(&r, x, last)
    r.g = data_of(grad)
    size = (c * ITEM_SIZE[code] + 63) // 64 * 64
    scratch = block_alloc(3 * size + 64)
    r.a = scratch.data
    r.b = scratch.data + size
    r.k = scratch.data + 2 * size
    r.mean = data_of(mean)
    r.sum = data_of(db)
    r.second = data_of(dw)
    if x.numel:
        share(&r, batch_backward_stats, True, x.numel)
    else:
        memset(r.sum, 0, c * ITEM_SIZE[code])
        memset(r.second, 0, c * ITEM_SIZE[code])
    for i in range(c):
        s = get_value(r.sum, code, i)
        dot = get_value(r.second, code, i)
        rs = get_value(data_of(rstd), code, i)
        put_value(r.second, code, i, dot * rs)
        a = rs if w is None else rs * get_value(data_of(w), code, i)
        if training and r.rows == 1:   # 0, not what the rounding of k leaves of it
            a = 0
        put_value(r.a, code, i, a)
        put_value(r.b, code, i, -a * rs * rs * dot / r.rows if training else 0)
        put_value(r.k, code, i, -a * s / r.rows if training else 0)
    if dx is not None:
        r.y = data_of(dx)
        if x.numel:
            share(&r, batch_backward_apply, False, x.numel)
    block_drop(scratch)
    return 0


# ---- layer_norm, rms_norm ------------------------------------------------------------------------------------------

cdef struct RowNorm:
    const row_norm_kernels* kernels
    int64_t rows, n, item
    const char* x
    const char* g
    const char* weight
    const char* bias
    char* y
    char* mean
    char* rstd
    char* dw
    char* db
    char* partials
    int64_t items                  # shares of the backward pass: NORM_ROWS rows each
    double eps


cdef void row_forward(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef RowNorm* r = <RowNorm*>context
    r.kernels.forward(r.x, r.n * r.item, r.y, r.n * r.item, r.n, r.weight, r.bias, r.eps, r.mean, r.rstd, begin, end)


cdef void row_backward(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef RowNorm* r = <RowNorm*>context
    r.kernels.backward(r.g, r.n * r.item, r.x, r.n * r.item, r.weight, r.mean, r.rstd, r.y, r.n * r.item, r.partials, r.n, r.rows, begin, end)


cdef void row_backward_params(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef RowNorm* r = <RowNorm*>context
    r.kernels.backward_params(r.partials, r.items, r.n, r.dw, r.db, begin, end)


cdef int share_rows(RowNorm* r, task_fn task, int64_t items) except -1:
    if r.rows * r.n < 4096:
        task(r, 0, items)
        return 0
    with nogil:
        parallel_for(items, grain_of(r.rows * r.n // items), 1, task, r)
    return 0


cdef int row_norm(row_shape* call, TensorBase x, TensorBase weight, TensorBase bias, TensorBase y, TensorBase mean, TensorBase rstd) except -1:
    cdef RowNorm r
    cdef int type_ = loops_type(x, weight, bias)
    cdef TensorBase w, b, source, out
    if x.numel >= 4096:
        x, weight, bias = held(x), held(weight), held(bias)
    source = contiguous_of(cast_to(x, type_))
    out = in_type(y, type_)
    w = parameter(weight, type_)
    b = parameter(bias, type_)
    r.kernels = (RMS_NORM if mean is None else LAYER_NORM) + type_
    r.rows, r.n, r.eps = call.rows, call.n, call.eps
    r.item = ITEM_SIZE[type_]
    r.x = data_of(source)
    r.y = data_of(out)
    r.weight = memory_of(w)
    r.bias = memory_of(b)
    r.mean = memory_of(mean)
    r.rstd = data_of(rstd)
    share_rows(&r, row_forward, r.rows)
    return deliver(y, out)


cdef int row_norm_backward(row_shape* call, TensorBase grad, TensorBase x, TensorBase weight, TensorBase mean, TensorBase rstd, TensorBase dx, TensorBase dw,
                           TensorBase db) except -1:
    cdef RowNorm r
    cdef int type_ = loops_type(x, weight, None)
    cdef TensorBase source, g, w, x_out = in_type(dx, type_), w_out = in_type(dw, type_), b_out = in_type(db, type_)
    cdef trt_block* partials = NULL
    if x.numel >= 4096:
        grad, x, weight, mean, rstd = held(grad), held(x), held(weight), held(mean), held(rstd)
    source = contiguous_of(cast_to(x, type_))
    g = contiguous_of(cast_to(grad, type_))
    w = parameter(weight, type_)
    r.kernels = (RMS_NORM if mean is None else LAYER_NORM) + type_
    r.rows, r.n = call.rows, call.n
    r.item = ITEM_SIZE[type_]
    r.x = data_of(source)
    r.g = data_of(g)
    r.weight = memory_of(w)
    r.mean = memory_of(mean)
    r.rstd = data_of(rstd)
    r.y = memory_of(x_out)
    r.dw = memory_of(w_out)
    r.db = memory_of(b_out)
    r.items = (r.rows + NORM_ROWS - 1) // NORM_ROWS
    r.partials = NULL
    if dw is not None or db is not None:
        partials = block_alloc(r.items * 2 * r.n * (8 if type_ == F64 else 4) + 64)
        r.partials = partials.data
    share_rows(&r, row_backward, r.items)
    if partials != NULL:
        if x.numel < 4096:
            row_backward_params(&r, 0, r.n)
        else:
            with nogil:
                parallel_for(r.n, grain_of(r.items), 64, row_backward_params, &r)
        block_drop(partials)
    deliver(dx, x_out)
    deliver(dw, w_out)
    return deliver(db, b_out)


# ---- group_norm ----------------------------------------------------------------------------------------------------

cdef struct GroupNorm:
    const group_norm_kernels* kernels
    int64_t samples, channels, hw, groups
    const char* x
    const char* g
    const char* weight
    const char* bias
    char* y
    char* mean
    char* rstd
    double* sums
    double eps


cdef void group_forward(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef GroupNorm* r = <GroupNorm*>context
    r.kernels.forward(r.x, r.y, r.channels, r.hw, r.groups, r.weight, r.bias, r.eps, r.mean, r.rstd, begin, end)


cdef void group_backward(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef GroupNorm* r = <GroupNorm*>context
    r.kernels.backward(r.g, r.x, r.channels, r.hw, r.groups, r.weight, r.mean, r.rstd, r.y, r.sums, begin, end)


cdef int describe_groups(GroupNorm* r, const row_shape* call, TensorBase x) except -1:
    r.samples = call.rows // call.groups
    r.channels = call.per_group * call.groups
    r.groups = call.groups
    r.hw = call.inner
    r.eps = call.eps
    r.kernels = GROUP_NORM + x.dtype
    r.x = data_of(x)
    return 0


cdef int group_norm_on_cpu(row_shape* call, TensorBase x, TensorBase weight, TensorBase bias, TensorBase y, TensorBase mean, TensorBase rstd) except -1:
    cdef GroupNorm r
    cdef int type_ = loops_type(x, weight, bias)
    cdef TensorBase source, out, w, b
    if x.numel >= 4096:
        x, weight, bias = held(x), held(weight), held(bias)
    source = contiguous_of(cast_to(x, type_))
    out = in_type(y, type_)
    w = parameter(weight, type_)
    b = parameter(bias, type_)
    describe_groups(&r, call, source)
    r.weight = memory_of(w)
    r.bias = memory_of(b)
    r.y = data_of(out)
    r.mean = data_of(mean)
    r.rstd = data_of(rstd)
    if x.numel < 4096:
        group_forward(&r, 0, call.rows)
    else:
        with nogil:
            parallel_for(call.rows, grain_of(call.n), 1, group_forward, &r)
    return deliver(y, out)


cdef int group_norm_backward_on_cpu(row_shape* call, TensorBase grad, TensorBase x, TensorBase weight, TensorBase mean, TensorBase rstd, TensorBase dx, TensorBase dw,
                             TensorBase db) except -1:
    cdef GroupNorm r
    cdef int type_ = loops_type(x, weight, None)
    cdef TensorBase source, g, w, x_out = in_type(dx, type_), w_out = in_type(dw, type_), b_out = in_type(db, type_)
    cdef trt_block* scratch
    grad, x, weight, mean, rstd = held(grad), held(x), held(weight), held(mean), held(rstd)
    source = contiguous_of(cast_to(x, type_))
    g = contiguous_of(cast_to(grad, type_))
    w = parameter(weight, type_)
    describe_groups(&r, call, source)
    r.g = data_of(g)
    r.weight = memory_of(w)
    r.y = memory_of(x_out)
    r.mean = data_of(mean)
    r.rstd = data_of(rstd)
    scratch = block_alloc(2 * r.samples * r.channels * 8 + 64)
    r.sums = <double*>scratch.data
    with nogil:
        parallel_for(call.rows, grain_of(call.n), 1, group_backward, &r)
    if dw is not None or db is not None:
        if w_out is None:
            w_out = empty_tensor(1, &r.channels, type_, DEV_CPU)
        if b_out is None:
            b_out = empty_tensor(1, &r.channels, type_, DEV_CPU)
        r.kernels.backward_params(r.sums, r.samples, r.channels, data_of(w_out), data_of(b_out), 0, r.channels)
        if dw is not None:
            deliver(dw, w_out)
        if db is not None:
            deliver(db, b_out)
    block_drop(scratch)
    return deliver(dx, x_out)


set_batch_norm(DEV_CPU, batch_norm_on_cpu)
set_batch_norm_backward(DEV_CPU, batch_norm_backward_on_cpu)
set_row_norm(DEV_CPU, row_norm)
set_row_norm_backward(DEV_CPU, row_norm_backward)
set_group_norm(DEV_CPU, group_norm_on_cpu)
set_group_norm_backward(DEV_CPU, group_norm_backward_on_cpu)
