# Kernels of the normalisations over loops/norm.h: layouts are found here, statistics and per-channel factors are small
# arrays in the compute type (float32 for halves). Work is shared by channels, rows or planes, never inside a sum.
from libc.math cimport sqrt
from tensorrt_lite._C.ops.kernels cimport *
from tensorrt_lite._C.core.allocator cimport block_alloc
from tensorrt_lite._C.core.storage cimport prepare_write

# What cysrc/cuda/norm.pyx installs; its comments say what they return.
ctypedef object (*device_row_fn)(TensorBase input, int64_t n, TensorBase weight, TensorBase bias, double eps, TensorBase mean, TensorBase rstd)
ctypedef object (*device_row_backward_fn)(TensorBase grad, TensorBase input, int64_t n, TensorBase weight, TensorBase mean, TensorBase rstd, bint want_input, TensorBase dw, TensorBase db)
ctypedef object (*device_group_fn)(TensorBase input, TensorBase weight, TensorBase bias, int64_t groups, double eps, TensorBase mean, TensorBase rstd)
ctypedef object (*device_group_backward_fn)(TensorBase grad, TensorBase input, TensorBase weight, TensorBase mean, TensorBase rstd, int64_t groups, bint want_input, bint want_weight)
ctypedef object (*device_batch_fn)(TensorBase x, bint last, TensorBase weight, TensorBase bias, TensorBase running_mean, TensorBase running_var, bint training, double momentum, double eps)
ctypedef object (*device_batch_backward_fn)(TensorBase g, TensorBase x, bint last, TensorBase weight, TensorBase mean, TensorBase rstd, bint training, bint want_input)
cdef device_row_fn device_row
cdef device_row_backward_fn device_row_backward
cdef device_group_fn device_group
cdef device_group_backward_fn device_group_backward
cdef device_batch_fn device_batch
cdef device_batch_backward_fn device_batch_backward


def _install_device_kernels(size_t row, size_t row_backward, size_t group, size_t group_backward, size_t batch, size_t batch_backward):
    global device_row, device_row_backward, device_group, device_group_backward, device_batch, device_batch_backward
    device_row = <device_row_fn>row
    device_row_backward = <device_row_backward_fn>row_backward
    device_group = <device_group_fn>group
    device_group_backward = <device_group_backward_fn>group_backward
    device_batch = <device_batch_fn>batch
    device_batch_backward = <device_batch_backward_fn>batch_backward


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


cdef int compute_of(TensorBase x, str name) except -1:
    """The compute type of a floating type; NotImplementedError for others."""
    if x.dtype == F64:
        return F64
    if x.dtype == F32 or x.dtype == F16 or x.dtype == BF16:
        return F32
    raise NotImplementedError(f"\"{name}\" not implemented for '{dtype_text(x.dtype)}'")


cdef TensorBase vector_of(int64_t n, int dtype, int device_type):
    return empty_tensor(1, &n, dtype, device_type)


cdef TensorBase parameter(TensorBase t, int code):
    """A weight or bias, contiguous in the wanted type; None stays None."""
    return None if t is None else contiguous_of(cast_to(t, code))


cdef inline const char* optional(TensorBase t) noexcept:
    return NULL if t is None else data_of(t)


cdef int check_parameter(TensorBase t, int64_t n, str name) except -1:
    if t is not None and t.numel != n:
        raise RuntimeError(f"{name} should contain {n} elements not {t.numel}")
    return 0


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


cdef inline bint lies_last(TensorBase x) noexcept:
    return x.ndim == 2 or (not x.contiguous and (is_channels_last(x) or is_channels_last_3d(x)))


cdef TensorBase dense_as(TensorBase x, bint last):
    """x, copied unless it lies contiguous, or channels_last when `last` asks for that."""
    cdef int64_t strides[5]
    cdef TensorBase r
    if not last or x.ndim == 2:
        return contiguous_of(x)
    if is_channels_last(x) or is_channels_last_3d(x):
        return x
    channels_last_strides(x.ndim, x.sizes, strides)
    r = empty_strided_tensor(x.ndim, x.sizes, strides, x.dtype, place_of(x))
    copy_elements(r, x)
    return r


cdef int describe_batch(BatchNorm* r, TensorBase x, bint last) except -1:
    cdef int i
    r.kernels = batch_norm_table(x.dtype)
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


cdef object _batch_norm_cpu(TensorBase input, TensorBase weight, TensorBase bias, TensorBase running_mean, TensorBase running_var, bint training,
                            double momentum, double eps):
    cdef BatchNorm r
    cdef int code = compute_of(input, "batch_norm")
    cdef int64_t c, n, i
    cdef double mean, scale, unbiased
    cdef bint last
    cdef TensorBase x, y, mean_t, rstd_t, w, b, var
    cdef trt_block* scratch
    if input.ndim < 2:
        if input.numel:
            raise RuntimeError(f"batch_norm: expected input of at least 2 dimensions, got {input.ndim}")
        return empty_like_tensor(input, input.dtype), vector_of(0, code, place_of(input)), vector_of(0, code, place_of(input))
    c = input.sizes[1]
    check_parameter(weight, c, "weight")
    check_parameter(bias, c, "bias")
    check_parameter(running_mean, c, "running_mean")
    check_parameter(running_var, c, "running_var")
    if not training and (running_mean is None or running_var is None):
        raise RuntimeError("running_mean and running_var must be defined in evaluation mode")
    if input.device_type == DEV_CUDA:
        last = lies_last(input)
        return device_batch(dense_as(input, last), last, weight, bias, running_mean, running_var, training, momentum, eps)
    if input.numel >= 4096:
        input, weight, bias = held(input), held(weight), held(bias)
        if c != input.sizes[1]:
            raise RuntimeError("batch_norm: the input was changed by another thread")
    last = lies_last(input)
    mean_t = vector_of(c, code, input.device_type)
    rstd_t = vector_of(c, code, input.device_type)
    if input.device_type == DEV_META:
        return empty_like_tensor(input, input.dtype), mean_t, rstd_t
    x = dense_as(input, last)
    y = empty_strided_tensor(x.ndim, x.sizes, x.strides, x.dtype, DEV_CPU) if last else empty_tensor(x.ndim, x.sizes, x.dtype, DEV_CPU)
    w = parameter(weight, code)
    b = parameter(bias, code)
    describe_batch(&r, x, last)
    n = r.rows
    scratch = block_alloc(2 * c * ITEM_SIZE[code] + 128)
    r.a = scratch.data
    r.b = scratch.data + (c * ITEM_SIZE[code] + 63) // 64 * 64
    r.mean = data_of(mean_t)
    r.second = data_of(rstd_t)
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
        copy_elements(mean_t, cast_to(running_mean, code))
        copy_elements(rstd_t, cast_to(running_var, code))
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
    return y, mean_t, rstd_t


cdef object batch_norm_backward_cpu(TensorBase grad, TensorBase input, TensorBase weight, TensorBase mean, TensorBase rstd, bint training, bint want_input):
    cdef BatchNorm r
    cdef int code = compute_of(input, "batch_norm_backward")
    cdef int64_t c = input.sizes[1], i, size
    cdef bint last = lies_last(input)
    cdef double a, s, dot, rs
    cdef TensorBase x, g, w, dx = None, dw = None, db
    cdef trt_block* scratch
    if input.device_type == DEV_CUDA:
        return device_batch_backward(dense_as(cast_to(grad, input.dtype), last), dense_as(input, last), last, weight, mean, rstd, training, want_input)
    if input.numel >= 4096:
        grad, input, weight, mean, rstd = held(grad), held(input), held(weight), held(mean), held(rstd)
    dw = vector_of(c, code, input.device_type)
    db = vector_of(c, code, input.device_type)
    if input.device_type == DEV_META:
        return empty_like_tensor(input, input.dtype), dw, db
    x = dense_as(input, last)
    g = dense_as(cast_to(grad, x.dtype), last)
    w = parameter(weight, code)
    describe_batch(&r, x, last)
    r.g = data_of(g)
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
    if want_input:
        dx = empty_strided_tensor(x.ndim, x.sizes, x.strides, x.dtype, DEV_CPU) if last else empty_tensor(x.ndim, x.sizes, x.dtype, DEV_CPU)
        r.y = data_of(dx)
        if x.numel:
            share(&r, batch_backward_apply, False, x.numel)
    block_drop(scratch)
    return dx, dw, db


cdef inline object in_type_of(object g, object like):
    return g if g is None or like is None or g.dtype is like.dtype else g.to(like.dtype)


cdef object wide(object x):
    """Halves as float32 for composed derivatives."""
    return x.to(dtype_of(F32)) if x is not None and (<TensorBase>x).dtype in (F16, BF16) else x


cdef object batch_norm_backward(OpNode node, object grad, object input, object weight, object mean, object rstd, bint training, double eps):
    cdef bint need_input = node.edge(0) is not None, need_weight = node.edge(1) is not None, need_bias = node.edge(2) is not None
    dx = dw = db = None
    if grad is None:
        return None, None, None
    if input.dim() < 2:
        zeros = grad.new_zeros(0)
        return grad * 1, None if weight is None else _ops.zeros_like(weight), zeros if weight is None else _ops.zeros_like(weight)
    if not grad_mode():
        dx, dw, db = batch_norm_backward_cpu(grad, input, weight, mean, rstd, training, need_input)
        return dx, in_type_of(dw, weight) if need_weight else None, (db if weight is None else in_type_of(db, weight)) if need_bias else None
    x = wide(input)
    g = wide(grad)
    shape = [1, x.size(1)] + [1] * (x.dim() - 2)
    dims = [0] + list(range(2, x.dim()))
    if training:
        centred = x - x.mean(dims, True)
        scale = ((centred * centred).mean(dims, True) + eps).rsqrt()
    else:
        centred = x - mean.detach().reshape(shape)
        scale = rstd.detach().reshape(shape)
    normal = centred * scale
    if need_weight:
        dw = in_type_of((g * normal).sum(dims), weight)
    if need_bias:
        db = g.sum(dims) if weight is None else in_type_of(g.sum(dims), weight)
    if need_input:
        if weight is not None:
            g = g * wide(weight).reshape(shape)
        if training:
            g = g - g.mean(dims, True) - normal * (g * normal).mean(dims, True)
        dx = (g * scale).to(input.dtype)
    return dx, dw, db


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


cdef int describe_rows(RowNorm* r, TensorBase x, int dims) except -1:
    cdef int i
    r.n = 1
    for i in range(x.ndim - dims, x.ndim):
        r.n *= x.sizes[i]
    r.rows = 1
    for i in range(x.ndim - dims):
        r.rows *= x.sizes[i]
    r.item = ITEM_SIZE[x.dtype]
    r.x = data_of(x)
    return 0


cdef TensorBase row_statistics(TensorBase x, int dims, int code):
    cdef int64_t sizes[MAX_DIMS]
    cdef int i
    for i in range(x.ndim):
        sizes[i] = x.sizes[i] if i < x.ndim - dims else 1
    return empty_tensor(x.ndim, sizes, code, place_of(x))


cdef bint has_sizes(TensorBase t, const Dims* shape) noexcept:
    cdef int i
    if t.ndim != shape.n:
        return False
    for i in range(shape.n):
        if t.sizes[i] != shape.v[i]:
            return False
    return True


cdef int check_normalized(TensorBase input, const Dims* shape, TensorBase weight, TensorBase bias) except -1:
    cdef int i
    cdef TensorBase t
    cdef bint fits = input.ndim >= shape.n
    if shape.n < 1:
        raise RuntimeError(f"Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got normalized_shape = {sizes_text(shape.n, shape.v)}")
    for i in range(2):
        t = bias if i else weight
        if t is not None and not has_sizes(t, shape):
            name = "bias" if i else "weight"
            raise RuntimeError(f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {shape_text(t)} and normalized_shape = {sizes_text(shape.n, shape.v)}")
    if fits:
        for i in range(shape.n):
            fits = fits and input.sizes[input.ndim - shape.n + i] == shape.v[i]
    if not fits:
        raise RuntimeError(f"Given normalized_shape={sizes_text(shape.n, shape.v)}, expected input with shape [*, {sizes_text(shape.n, shape.v)[1:-1]}], but got input of size{shape_text(input)}")
    return 0


cdef int row_type(TensorBase input, TensorBase weight, TensorBase bias, str name) except -1:
    """The element type that the kernel runs in: the input's, or float32 for a half with float32 parameters."""
    cdef int code = input.dtype, i
    cdef TensorBase t
    compute_of(input, name)
    for i in range(2):
        t = bias if i else weight
        if t is not None and t.dtype != input.dtype:
            if t.dtype == F32 and (input.dtype == F16 or input.dtype == BF16):
                code = F32
            else:
                raise RuntimeError(f"{name}: mixed dtype (CPU): expect parameter to have scalar type of {dtype_text(input.dtype)}, got {dtype_text(t.dtype)}")
    return code


cdef int share_rows(RowNorm* r, task_fn task, int64_t items) except -1:
    if r.rows * r.n < 4096:
        task(r, 0, items)
        return 0
    with nogil:
        parallel_for(items, grain_of(r.rows * r.n // items), 1, task, r)
    return 0


cdef int64_t elements_of(const Dims* shape) noexcept:
    cdef int64_t n = 1
    cdef int i
    for i in range(shape.n):
        n *= shape.v[i]
    return n


cdef object _layer_norm_cpu(TensorBase input, const Dims* normalized_shape, TensorBase weight, TensorBase bias, double eps):
    cdef RowNorm r
    cdef int type_, code
    cdef TensorBase x, y, mean, rstd, w, b
    if input.numel >= 4096 and input.device_type == DEV_CPU:
        input, weight, bias = held(input), held(weight), held(bias)
    check_normalized(input, normalized_shape, weight, bias)
    type_ = row_type(input, weight, bias, "LayerNormKernelImpl")
    code = F64 if type_ == F64 else F32
    mean = row_statistics(input, normalized_shape.n, code)
    rstd = row_statistics(input, normalized_shape.n, code)
    if input.device_type == DEV_META:
        return empty_tensor(input.ndim, input.sizes, input.dtype, DEV_META), mean, rstd
    if input.device_type == DEV_CUDA:
        return device_row(input, elements_of(normalized_shape), weight, bias, eps, mean, rstd), mean, rstd
    x = contiguous_of(cast_to(input, type_))
    y = empty_tensor(x.ndim, x.sizes, type_, DEV_CPU)
    w = parameter(weight, type_)
    b = parameter(bias, type_)
    describe_rows(&r, x, normalized_shape.n)
    r.kernels = layer_norm_table(type_)
    r.y = data_of(y)
    r.weight = optional(w)
    r.bias = optional(b)
    r.eps = eps
    r.mean = data_of(mean)
    r.rstd = data_of(rstd)
    if x.numel:
        share_rows(&r, row_forward, r.rows)
    return cast_to(y, input.dtype), mean, rstd


cdef object _rms_norm_cpu(TensorBase input, const Dims* normalized_shape, TensorBase weight, double eps):
    cdef RowNorm r
    cdef int type_, code
    cdef TensorBase x, y, rstd, w
    if input.numel >= 4096 and input.device_type == DEV_CPU:
        input, weight = held(input), held(weight)
    check_normalized(input, normalized_shape, weight, None)
    type_ = row_type(input, weight, None, "rms_norm")
    code = F64 if type_ == F64 else F32
    rstd = row_statistics(input, normalized_shape.n, code)
    if input.device_type == DEV_META:
        return empty_tensor(input.ndim, input.sizes, input.dtype, DEV_META), rstd
    if input.device_type == DEV_CUDA:
        return device_row(input, elements_of(normalized_shape), weight, None, eps, None, rstd), rstd
    x = contiguous_of(cast_to(input, type_))
    y = empty_tensor(x.ndim, x.sizes, type_, DEV_CPU)
    w = parameter(weight, type_)
    describe_rows(&r, x, normalized_shape.n)
    r.kernels = rms_norm_table(type_)
    r.y = data_of(y)
    r.weight = optional(w)
    r.bias = NULL
    r.eps = eps
    r.mean = NULL
    r.rstd = data_of(rstd)
    if x.numel:
        share_rows(&r, row_forward, r.rows)
    return cast_to(y, input.dtype), rstd


cdef object row_norm_backward_cpu(const row_norm_kernels* kernels, int type_, TensorBase grad, TensorBase input, TensorBase weight, TensorBase mean,
                                  TensorBase rstd, int dims, bint want_input, bint want_weight, bint want_bias):
    """(dx, dweight, dbias), each None unless wanted."""
    cdef RowNorm r
    cdef TensorBase x, g, w, dx = None, dw = None, db = None
    cdef int64_t* shape
    cdef trt_block* partials = NULL
    cdef Scalar zero
    cdef int64_t n = 1
    cdef int i
    if input.device_type == DEV_CUDA and input.numel:
        shape = input.sizes + (input.ndim - dims)
        for i in range(dims):
            n *= shape[i]
        dw = empty_tensor(dims, shape, F64 if type_ == F64 else F32, place_of(input)) if want_weight else None
        db = empty_tensor(dims, shape, F64 if type_ == F64 else F32, place_of(input)) if want_bias else None
        return device_row_backward(grad, input, n, weight, mean, rstd, want_input, dw, db), dw, db
    if input.numel >= 4096:
        grad, input, weight, mean, rstd = held(grad), held(input), held(weight), held(mean), held(rstd)
    shape = input.sizes + (input.ndim - dims)
    if want_input:
        dx = empty_tensor(input.ndim, input.sizes, type_, place_of(input))
    if want_weight:
        dw = empty_tensor(dims, shape, type_, place_of(input))
    if want_bias:
        db = empty_tensor(dims, shape, type_, place_of(input))
    if input.device_type != DEV_META and input.numel:
        x = contiguous_of(cast_to(input, type_))
        g = contiguous_of(cast_to(grad, type_))
        w = parameter(weight, type_)
        describe_rows(&r, x, dims)
        r.kernels = kernels
        r.g = data_of(g)
        r.weight = optional(w)
        r.mean = NULL if mean is None else data_of(mean)
        r.rstd = data_of(rstd)
        r.y = NULL if dx is None else data_of(dx)
        r.dw = NULL if dw is None else data_of(dw)
        r.db = NULL if db is None else data_of(db)
        r.items = (r.rows + NORM_ROWS - 1) // NORM_ROWS
        r.partials = NULL
        if want_weight or want_bias:
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
    elif input.device_type != DEV_META:
        zero.kind = 1
        zero.i = 0
        zero.d = zero.im = 0
        if want_weight:
            fill_elements(dw, &zero)
        if want_bias:
            fill_elements(db, &zero)
    return None if dx is None else cast_to(dx, input.dtype), dw, db


cdef object layer_norm_backward(OpNode node, object grad, object input, object weight, object mean, object rstd, object shape, double eps):
    cdef bint need_input = node.edge(0) is not None, need_weight = node.edge(1) is not None, need_bias = node.edge(2) is not None
    cdef int type_, dims = len(shape)
    dx = dw = db = None
    if grad is None:
        return None, None, None
    if not grad_mode():
        type_ = row_type(input, weight, None, "layer_norm_backward")
        dx, dw, db = row_norm_backward_cpu(layer_norm_table(type_), type_, grad, input, weight, mean, rstd, dims, need_input, need_weight, need_bias)
        return dx, in_type_of(dw, weight), in_type_of(db, weight)
    x = wide(input)
    g = wide(grad)
    inner = list(range(x.dim() - dims, x.dim()))
    outer = list(range(x.dim() - dims))
    centred = x - x.mean(inner, True)
    scale = ((centred * centred).mean(inner, True) + eps).rsqrt()
    normal = centred * scale
    if need_weight:
        dw = g * normal
        dw = in_type_of(dw.sum(outer) if outer else dw, weight)
    if need_bias:
        db = in_type_of(g.sum(outer) if outer else g, weight)
    if need_input:
        if weight is not None:
            g = g * wide(weight)
        dx = (scale * (g - g.mean(inner, True) - normal * (g * normal).mean(inner, True))).to(input.dtype)
    return dx, dw, db


cdef object rms_norm_backward(OpNode node, object grad, object input, object weight, object rstd, object shape, double eps):
    cdef bint need_input = node.edge(0) is not None, need_weight = node.edge(1) is not None
    cdef int type_, dims = len(shape)
    dx = dw = None
    if grad is None:
        return None, None
    if not grad_mode():
        type_ = row_type(input, weight, None, "rms_norm_backward")
        dx, dw, _ = row_norm_backward_cpu(rms_norm_table(type_), type_, grad, input, weight, None, rstd, dims, need_input, need_weight, False)
        return dx, in_type_of(dw, weight)
    x = wide(input)
    g = wide(grad)
    inner = list(range(x.dim() - dims, x.dim()))
    outer = list(range(x.dim() - dims))
    scale = ((x * x).mean(inner, True) + eps).rsqrt()
    normal = x * scale
    if need_weight:
        dw = g * normal
        dw = in_type_of(dw.sum(outer) if outer else dw, weight)
    if need_input:
        if weight is not None:
            g = g * wide(weight)
        dx = (scale * (g - normal * (g * normal).mean(inner, True))).to(input.dtype)
    return dx, dw


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


cdef int describe_groups(GroupNorm* r, TensorBase x, int64_t groups) except -1:
    cdef int i
    r.samples = x.sizes[0]
    r.channels = x.sizes[1]
    r.groups = groups
    r.hw = 1
    for i in range(2, x.ndim):
        r.hw *= x.sizes[i]
    r.kernels = group_norm_table(x.dtype)
    r.x = data_of(x)
    return 0


cdef object _group_norm_cpu(TensorBase input, TensorBase weight, TensorBase bias, int64_t num_groups, double eps):
    cdef GroupNorm r
    cdef int type_, code
    cdef int64_t sizes[2]
    cdef int64_t items
    cdef TensorBase x, y, mean, rstd, w, b
    if input.numel >= 4096 and input.device_type == DEV_CPU:
        input, weight, bias = held(input), held(weight), held(bias)
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    if input.sizes[1] % num_groups:
        raise RuntimeError(f"Expected number of channels in input to be divisible by num_groups, but got input of shape {shape_text(input)} and num_groups={num_groups}")
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and ((<TensorBase>t).ndim != 1 or (<TensorBase>t).numel != input.sizes[1]):
            raise RuntimeError(f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape {shape_text(<TensorBase>t)} and input of shape {shape_text(input)}")
    type_ = row_type(input, weight, bias, "GroupNormKernelImpl")
    code = F64 if type_ == F64 else F32
    sizes[0] = input.sizes[0]
    sizes[1] = num_groups
    mean = empty_tensor(2, sizes, code, place_of(input))
    rstd = empty_tensor(2, sizes, code, place_of(input))
    if input.device_type == DEV_META:
        return empty_like_tensor(input, input.dtype), mean, rstd
    if input.device_type == DEV_CUDA:
        y = device_group(input, weight, bias, num_groups, eps, mean, rstd)
        return dense_as(y, True) if input.ndim > 2 and lies_last(input) else y, mean, rstd
    x = contiguous_of(cast_to(input, type_))
    y = empty_tensor(x.ndim, x.sizes, type_, DEV_CPU)
    if x.numel:
        w = parameter(weight, type_)
        b = parameter(bias, type_)
        describe_groups(&r, x, num_groups)
        r.weight = optional(w)
        r.bias = optional(b)
        r.y = data_of(y)
        r.eps = eps
        r.mean = data_of(mean)
        r.rstd = data_of(rstd)
        items = r.samples * num_groups
        if x.numel < 4096:
            group_forward(&r, 0, items)
        else:
            with nogil:
                parallel_for(items, grain_of(r.channels // r.groups * r.hw), 1, group_forward, &r)
    y = cast_to(y, input.dtype)
    return dense_as(y, True) if input.ndim > 2 and lies_last(input) else y, mean, rstd


cdef object group_norm_backward(OpNode node, object grad, object input, object weight, object mean, object rstd, int64_t num_groups, double eps):
    cdef bint need_input = node.edge(0) is not None, need_weight = node.edge(1) is not None, need_bias = node.edge(2) is not None
    cdef GroupNorm r
    cdef int type_
    cdef int64_t c, items
    cdef TensorBase x, g, w, y, tw, tb
    cdef trt_block* scratch
    dx = dw = db = None
    if grad is None:
        return None, None, None
    if not grad_mode() and input.numel() and (<TensorBase>input).device_type == DEV_CUDA:
        row_type(input, weight, None, "group_norm_backward")
        dx, dw, db = device_group_backward(grad, input, weight, mean, rstd, num_groups, need_input, need_weight or need_bias)
        return dx, in_type_of(dw, weight) if need_weight else None, in_type_of(db, weight) if need_bias else None
    if not grad_mode() and input.numel() and (<TensorBase>input).device_type != DEV_META:
        grad, input, weight, mean, rstd = held(grad), held(input), held(weight), held(mean), held(rstd)
        type_ = row_type(input, weight, None, "group_norm_backward")
        x = contiguous_of(cast_to(input, type_))
        g = contiguous_of(cast_to(grad, type_))
        w = parameter(weight, type_)
        y = empty_tensor(x.ndim, x.sizes, type_, DEV_CPU) if need_input else None
        describe_groups(&r, x, num_groups)
        c = r.channels
        r.g = data_of(g)
        r.weight = optional(w)
        r.y = NULL if y is None else data_of(y)
        r.mean = data_of(<TensorBase>mean)
        r.rstd = data_of(<TensorBase>rstd)
        scratch = block_alloc(2 * r.samples * c * 8 + 64)
        r.sums = <double*>scratch.data
        items = r.samples * num_groups
        with nogil:
            parallel_for(items, grain_of(c // r.groups * r.hw), 1, group_backward, &r)
        if need_weight or need_bias:
            tw = vector_of(c, type_, DEV_CPU)
            tb = vector_of(c, type_, DEV_CPU)
            r.kernels.backward_params(r.sums, r.samples, c, data_of(tw), data_of(tb), 0, c)
            dw = in_type_of(tw, weight) if need_weight else None
            db = in_type_of(tb, weight) if need_bias else None
        block_drop(scratch)
        return None if y is None else cast_to(y, (<TensorBase>input).dtype), dw, db
    shape = list(input.shape)
    c = 1
    for size in shape[2:]:
        c *= size
    gx = wide(input).reshape(shape[0], num_groups, shape[1] // num_groups, c)
    g = wide(grad).reshape(gx.shape)
    centred = gx - gx.mean([2, 3], True)
    scale = ((centred * centred).mean([2, 3], True) + eps).rsqrt()
    normal = centred * scale
    if need_weight:
        dw = in_type_of((<object>g * normal).sum([0, 3]).reshape(-1), weight)
    if need_bias:
        db = in_type_of((<object>g).sum([0, 3]).reshape(-1), weight)
    if need_input:
        product = <object>g
        if weight is not None:
            product = product * wide(weight).reshape(1, num_groups, shape[1] // num_groups, 1)
        dx = (scale * (product - product.mean([2, 3], True) - normal * (product * normal).mean([2, 3], True))).reshape(shape).to(input.dtype)
    return dx, dw, db


# ---- entries -------------------------------------------------------------------------------------------------------

cdef inline TensorBase given(object x, str op, str name):
    return None if x is None else as_tensor_arg(x, op, name)


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=False):
    """Normalise each channel of `input: (N, C, *)`, with the batch's statistics (training) or the running ones."""
    return op__batch_norm(as_tensor_arg(input, "batch_norm", "input"), given(weight, "batch_norm", "weight"), given(bias, "batch_norm", "bias"),
                          given(running_mean, "batch_norm", "running_mean"), given(running_var, "batch_norm", "running_var"),
                          parse_bool(training, "batch_norm", "training"), parse_double(momentum, "batch_norm", "momentum"),
                          parse_double(eps, "batch_norm", "eps"))[0]


def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """batch_norm, the mean and the reciprocal deviation that it used; the latter two are empty in evaluation."""
    r = op__batch_norm(as_tensor_arg(input, "native_batch_norm", "input"), given(weight, "native_batch_norm", "weight"),
                       given(bias, "native_batch_norm", "bias"), given(running_mean, "native_batch_norm", "running_mean"),
                       given(running_var, "native_batch_norm", "running_var"), training, momentum, eps)
    if not training:
        return r[0], r[1].detach()[:0], r[2].detach()[:0]
    return r[0], r[1].detach(), r[2].detach()


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    """Normalise over the trailing dimensions `normalized_shape`, then scale and shift."""
    cdef Dims d
    parse_dims(normalized_shape, &d, "layer_norm", "normalized_shape")
    return op__layer_norm(as_tensor_arg(input, "layer_norm", "input"), &d, given(weight, "layer_norm", "weight"), given(bias, "layer_norm", "bias"),
                          parse_double(eps, "layer_norm", "eps"))[0]


def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """layer_norm, the means and the reciprocal deviations."""
    cdef Dims d
    parse_dims(normalized_shape, &d, "native_layer_norm", "normalized_shape")
    r = op__layer_norm(as_tensor_arg(input, "native_layer_norm", "input"), &d, given(weight, "native_layer_norm", "weight"),
                       given(bias, "native_layer_norm", "bias"), eps)
    kind = input.dtype if weight is None or weight.dtype is input.dtype else weight.dtype
    return r[0], r[1].detach().to(kind), r[2].detach().to(kind)


cdef double epsilon_of(int code) noexcept:
    if code == F64 or code == C128:
        return 2.220446049250313e-16
    if code == F16:
        return 0.0009765625
    if code == BF16:
        return 0.0078125
    return 1.1920928955078125e-07


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """x / sqrt(mean(x ** 2) + eps) over the trailing dimensions; eps None is the type's machine epsilon."""
    cdef Dims d
    cdef TensorBase x, w
    cdef double e
    parse_dims(normalized_shape, &d, "rms_norm", "normalized_shape")
    x = as_tensor_arg(input, "rms_norm", "input")
    w = given(weight, "rms_norm", "weight")
    e = epsilon_of(x.dtype) if eps is None else parse_double(eps, "rms_norm", "eps")
    if is_complex_type(x.dtype):
        check_normalized(x, &d, w, None)
        scaled = input * ((input * input).mean(list(range(x.ndim - d.n, x.ndim)), True) + e).rsqrt()
        return scaled if weight is None else scaled * weight
    if w is not None and w.requires_grad and not x.requires_grad and w.dtype == x.dtype and tls().grad_mode:
        # the weight's gradient reads the normalised input alone, so that the input itself need not stay
        check_normalized(x, &d, w, None)
        return _ops.mul(op__rms_norm(x, &d, None, e)[0], w)
    return op__rms_norm(x, &d, w, e)[0]


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """Normalise each group of channels of each sample of `input: (N, C, *)`."""
    return op__group_norm(as_tensor_arg(input, "group_norm", "input"), given(weight, "group_norm", "weight"), given(bias, "group_norm", "bias"),
                          parse_int(num_groups, "group_norm", "num_groups"), parse_double(eps, "group_norm", "eps"))[0]


def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """group_norm, the means and the reciprocal deviations (N, group)."""
    r = op__group_norm(as_tensor_arg(input, "native_group_norm", "input"), given(weight, "native_group_norm", "weight"),
                       given(bias, "native_group_norm", "bias"), group, eps)
    return r[0], r[1].detach().to(input.dtype), r[2].detach().to(input.dtype)


def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled=False):
    """batch_norm of each sample on its own: `input: (N, C, *)` with N * C channels; running statistics average over the samples."""
    as_tensor_arg(input, "instance_norm", "input")
    if weight is not None:
        as_tensor_arg(weight, "instance_norm", "weight")
    if bias is not None:
        as_tensor_arg(bias, "instance_norm", "bias")
    if running_mean is not None:
        as_tensor_arg(running_mean, "instance_norm", "running_mean")
    if running_var is not None:
        as_tensor_arg(running_var, "instance_norm", "running_var")
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when use_input_stats is false")
    if input.dim() < 2:
        raise RuntimeError(f"instance_norm: expected input of at least 2 dimensions, got {input.dim()}")
    shape = list(input.shape)
    n, c = shape[0], shape[1]
    if not use_input_stats:
        return batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
    mean = None if running_mean is None else running_mean.detach().repeat(n)
    var = None if running_var is None else running_var.detach().repeat(n)
    r = batch_norm(input.reshape([1, n * c] + shape[2:]), None if weight is None else weight.repeat(n), None if bias is None else bias.repeat(n),
                   mean, var, True, momentum, eps)
    if mean is not None:
        running_mean.detach().copy_(mean.reshape(n, c).mean(0))
    if var is not None:
        running_var.detach().copy_(var.reshape(n, c).mean(0))
    return r.reshape(shape)


EXTRA_EXPORTS = {
    "batch_norm": "f", "native_batch_norm": "f", "layer_norm": "f", "native_layer_norm": "f", "rms_norm": "f", "group_norm": "f",
    "native_group_norm": "f", "instance_norm": "f",
}
