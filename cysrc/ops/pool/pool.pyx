# Kernels of pooling over loops/pool.h, for (N, C, H, W) and (C, H, W). One dimension is two with a height of 1; three are
# planes first and then the depth, which is exact for maxima (first of equals in scan order) and for averages (the divisor
# is a product over dimensions).
from tensorrt_lite._C.core.device import channels_last
from tensorrt_lite._C.ops.kernels cimport *
from tensorrt_lite._C.autograd.autocast import policy as autocast_policy

# on CUDA, set by cysrc/cuda/pool.pyx
cdef enum:
    DEVICE_MAX = 0
    DEVICE_MAX_BACKWARD = 1
    DEVICE_AVERAGE = 2
    DEVICE_AVERAGE_BACKWARD = 3

cdef int (*device_pool)(int which, const pool_shape* s, bint last, bint adaptive, TensorBase x, TensorBase y, TensorBase indices) except -1


def _set_device_kernels(size_t pool):
    (<void**>&device_pool)[0] = <void*>pool


cdef struct PoolRun:
    const max_pool_kernels* maxima
    avg_pool_fn average
    pool_shape s
    bint last
    int dtype
    const char* x
    char* y
    int64_t* indices


cdef void run_max(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef PoolRun* r = <PoolRun*>context
    if r.last:
        r.maxima.last(r.x, r.y, r.indices, &r.s, begin, end)
    else:
        r.maxima.planes(r.x, r.y, r.indices, &r.s, begin, end)


cdef void run_max_backward(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef PoolRun* r = <PoolRun*>context
    if r.last:
        r.maxima.backward_last(r.x, r.indices, r.y, &r.s, begin, end)
    else:
        r.maxima.backward_planes(r.x, r.indices, r.y, &r.s, begin, end)


cdef void run_average(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef PoolRun* r = <PoolRun*>context
    r.average(r.x, r.y, &r.s, begin, end)


cdef int pool_pair(const Dims* d, int64_t* out, str op, str name) except -1:
    if d.n != 1 and d.n != 2:
        raise RuntimeError(f"{op}: {name} must either be a single int, or a tuple of two ints")
    out[0] = d.v[0]
    out[1] = d.v[d.n - 1]
    if out[0] > (<int64_t>1 << 40) or out[1] > (<int64_t>1 << 40):
        raise RuntimeError(f"{op}: {name} is too large")
    return 0


cdef int64_t pooled_size(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation, bint ceil_mode) noexcept:
    cdef int64_t span = size + 2 * pad - dilation * (kernel - 1) - 1 + (stride - 1 if ceil_mode else 0)
    cdef int64_t n = (span // stride if span >= 0 else -((-span + stride - 1) // stride)) + 1
    if ceil_mode and (n - 1) * stride >= size + pad:
        n -= 1                    # the last window must start inside the input or its left padding
    return n


cdef int pool_shape_of(pool_shape* s, str op, int ndim, const int64_t* sizes, const Dims* kernel, const Dims* stride, const Dims* padding,
                       const Dims* dilation, bint ceil_mode) except -1:
    """Check the arguments and fill the shape, with the output's height and width."""
    cdef int64_t k[2]
    cdef int64_t st[2]
    cdef int64_t pad[2]
    cdef int64_t dil[2]
    if ndim != 3 and ndim != 4:
        raise RuntimeError(f"{op}: Expected 3D (unbatched) or 4D (batched) input, got {ndim} dimensions")
    if sizes[ndim - 1] <= 0 or sizes[ndim - 2] <= 0 or sizes[ndim - 3] <= 0:
        raise RuntimeError(f"Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got: {sizes_text(ndim, sizes)}")
    pool_pair(kernel, k, op, "kernel_size")
    if stride.n == 0:
        st[0] = k[0]
        st[1] = k[1]
    else:
        pool_pair(stride, st, op, "stride")
    pool_pair(padding, pad, op, "padding")
    dil[0] = dil[1] = 1
    if dilation != NULL:
        pool_pair(dilation, dil, op, "dilation")
    if k[0] <= 0 or k[1] <= 0:
        raise RuntimeError(f"kernel size should be greater than zero, but got kH: {k[0]} kW: {k[1]}")
    if st[0] <= 0 or st[1] <= 0:
        raise RuntimeError(f"stride should not be zero, got dH: {st[0]} dW: {st[1]}" if st[0] == 0 or st[1] == 0 else f"stride should be greater than zero, but got dH: {st[0]} dW: {st[1]}")
    if dil[0] <= 0 or dil[1] <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got dilationH: {dil[0]} dilationW: {dil[1]}")
    if pad[0] < 0 or pad[1] < 0:
        raise RuntimeError(f"pad must be non-negative, but got pad: {pad[0] if pad[0] < 0 else pad[1]}")
    if pad[0] > ((k[0] - 1) * dil[0] + 1) // 2 or pad[1] > ((k[1] - 1) * dil[1] + 1) // 2:
        raise RuntimeError(f"pad should be at most half of effective kernel size, but got pad={pad[1]}, kernel_size={k[1]} and dilation={dil[1]}" if pad[1] > ((k[1] - 1) * dil[1] + 1) // 2 else f"pad should be at most half of effective kernel size, but got pad={pad[0]}, kernel_size={k[0]} and dilation={dil[0]}")
    s.channels = sizes[ndim - 3]
    s.in_h = sizes[ndim - 2]
    s.in_w = sizes[ndim - 1]
    s.kernel_h, s.kernel_w = k[0], k[1]
    s.stride_h, s.stride_w = st[0], st[1]
    s.pad_h, s.pad_w = pad[0], pad[1]
    s.dilation_h, s.dilation_w = dil[0], dil[1]
    s.out_h = pooled_size(s.in_h, k[0], st[0], pad[0], dil[0], ceil_mode)
    s.out_w = pooled_size(s.in_w, k[1], st[1], pad[1], dil[1], ceil_mode)
    s.count_include_pad = 1
    s.divisor_override = 0
    if s.out_h < 1 or s.out_w < 1:
        raise RuntimeError(f"Given input size: ({s.channels}x{s.in_h}x{s.in_w}). Calculated output size: ({s.channels}x{s.out_h}x{s.out_w}). Output size is too small")
    return 0


cdef inline bint lies_last(TensorBase x) noexcept:
    return not x.contiguous and is_channels_last(x)


cdef TensorBase pool_result(TensorBase x, int64_t h, int64_t w, int dtype, bint last):
    """A tensor like x with another height and width, channels_last when `last`."""
    cdef int64_t sizes[4]
    cdef int64_t strides[4]
    cdef int i
    for i in range(x.ndim - 2):
        sizes[i] = x.sizes[i]
    sizes[x.ndim - 2] = h
    sizes[x.ndim - 1] = w
    checked_numel(x.ndim, sizes)
    if last:
        channels_last_strides(4, sizes, strides)
        return empty_strided_tensor(4, sizes, strides, dtype, place_of(x))
    return empty_tensor(x.ndim, sizes, dtype, place_of(x))


cdef TensorBase dense_as(TensorBase x, bint last):
    cdef int64_t strides[4]
    cdef TensorBase r
    if not last:
        return contiguous_of(x)
    if is_channels_last(x):
        return x
    channels_last_strides(4, x.sizes, strides)
    r = empty_strided_tensor(4, x.sizes, strides, x.dtype, place_of(x))
    copy_elements(r, x)
    return r


cdef object laid_out(object grad, object strided):
    """The gradient in channels_last when the input, of which (shape, strides, offset) were kept, was."""
    shape, strides, _ = strided
    if len(shape) != 4 or lies_last(<TensorBase>grad) or strides[1] != 1 or strides[3] != shape[1] or strides[2] != shape[1] * shape[3] or strides[0] != shape[1] * shape[3] * shape[2] or shape[1] == 1 or shape[2] * shape[3] == 1:
        return grad
    return _ops.contiguous(grad, channels_last)


cdef int64_t sample_count(TensorBase x) noexcept:
    return x.sizes[0] if x.ndim == 4 else 1


cdef bint computes_in_int32(TensorBase x) noexcept:
    """Integers of one and two bytes are seldom pooled: on the CPU they are converted, instead of having loops of their own."""
    return x.device_type == DEV_CPU and category[x.dtype] == CAT_INT and ITEM_SIZE[x.dtype] <= 2


cdef object max_pool2d_with_indices_cpu(TensorBase self, const Dims* kernel_size, const Dims* stride, const Dims* padding, const Dims* dilation, bint ceil_mode):
    cdef PoolRun r
    cdef bint last = lies_last(self)
    cdef TensorBase x, y, indices
    pool_shape_of(&r.s, "max_pool2d", self.ndim, self.sizes, kernel_size, stride, padding, dilation, ceil_mode)
    if computes_in_int32(self):
        y, indices = max_pool2d_with_indices_cpu(cast_to(self, I32), kernel_size, stride, padding, dilation, ceil_mode)
        return cast_to(y, self.dtype), indices
    r.maxima = max_pool_table(self.dtype)
    if r.maxima.planes == NULL and category[self.dtype] != CAT_INT or self.dtype == BOOL:
        raise NotImplementedError(f"\"max_pool2d\" not implemented for '{dtype_text(self.dtype)}'")
    y = pool_result(self, r.s.out_h, r.s.out_w, self.dtype, last)
    indices = pool_result(self, r.s.out_h, r.s.out_w, I64, last)
    if self.device_type == DEV_META or y.numel == 0:
        return y, indices
    if r.s.in_h * r.s.in_w >= (<int64_t>1 << 31):
        raise RuntimeError("max_pool2d: planes of 2**31 elements and more are not supported")
    x = dense_as(self, last)
    if y.device_type == DEV_CUDA:
        device_pool(DEVICE_MAX, &r.s, last, False, x, y, indices)
        return y, indices
    r.last = last
    r.x = data_of(x)
    r.y = data_of(y)
    r.indices = <int64_t*>data_of(indices)
    run_held(run_max, &r, sample_count(x) * (r.s.out_h if last else r.s.channels), y.numel * r.s.kernel_h * r.s.kernel_w, x, x)
    return y, indices


cdef TensorBase max_pool_backward_cpu(TensorBase grad, TensorBase self, TensorBase indices):
    """The gradient of a plane pooling with indices of the flattened plane."""
    cdef PoolRun r
    cdef bint last = lies_last(self)
    cdef TensorBase d = pool_result(self, self.sizes[self.ndim - 2], self.sizes[self.ndim - 1], grad.dtype, last), g, at
    if self.device_type == DEV_META or d.numel == 0:
        return d
    if computes_in_int32(grad):
        return cast_to(max_pool_backward_cpu(cast_to(grad, I32), self, indices), grad.dtype)
    if is_large(grad) or is_large(self):
        grad, self, indices = held(grad), held(self), held(indices)
    r.maxima = max_pool_table(grad.dtype)
    r.last = last
    r.s.channels = self.sizes[self.ndim - 3]
    r.s.in_h = self.sizes[self.ndim - 2]
    r.s.in_w = self.sizes[self.ndim - 1]
    r.s.out_h = grad.sizes[grad.ndim - 2]
    r.s.out_w = grad.sizes[grad.ndim - 1]
    g = dense_as(grad, last)
    at = dense_as(indices, last)
    r.x = data_of(g)
    r.y = data_of(d)
    r.indices = <int64_t*>data_of(at)
    run_held(run_max_backward, &r, sample_count(self) * (1 if last else r.s.channels), d.numel + 4 * g.numel, g, at)
    return d


cdef TensorBase max_pool_backward_cuda(TensorBase grad, TensorBase self, TensorBase indices, object window):
    """The same from the windows that cover each element."""
    cdef pool_shape s
    cdef Dims k, st, pad, dil
    cdef bint last = lies_last(self)
    cdef TensorBase d = pool_result(self, self.sizes[self.ndim - 2], self.sizes[self.ndim - 1], grad.dtype, last)
    if window is None:
        adaptive_shape(&s, "adaptive_max_pool2d", self.ndim, self.sizes, grad.sizes[grad.ndim - 2], grad.sizes[grad.ndim - 1])
    else:
        for given, name in zip(window, ("kernel_size", "stride", "padding", "dilation")):
            parse_dims(given, &k if name == "kernel_size" else &st if name == "stride" else &pad if name == "padding" else &dil, "max_pool2d", name)
        pool_shape_of(&s, "max_pool2d", self.ndim, self.sizes, &k, &st, &pad, &dil, window[4])
    device_pool(DEVICE_MAX_BACKWARD, &s, last, window is None, dense_as(grad, last), d, dense_as(indices, last))
    return d


cdef object pooled_tangent(object tangent, object indices):
    return tangent.flatten(-2).gather(-1, indices.flatten(-2)).reshape(indices.shape)


cdef object max_pool_gradient(object grad, object self, object indices, object window):
    """window: (kernel_size, stride, padding, dilation, ceil_mode), or None of adaptive pooling."""
    if grad is None:
        return None
    if not grad_mode() and (<TensorBase>grad).device_type == DEV_CUDA and (<TensorBase>grad).numel:
        return max_pool_backward_cuda(grad, self, indices, window)
    if not grad_mode():
        return max_pool_backward_cpu(grad, self, indices)
    flat = list(self.shape[:-2])
    flat.append(self.size(-1) * self.size(-2))
    return grad.new_zeros(flat).scatter_add(-1, indices.flatten(-2), grad.flatten(-2)).reshape(self.shape)


cdef TensorBase _avg_pool2d_cpu(TensorBase self, const Dims* kernel_size, const Dims* stride, const Dims* padding, bint ceil_mode, bint count_include_pad,
                                int64_t divisor_override):
    cdef PoolRun r
    cdef bint last = lies_last(self)
    cdef const avg_pool_kernels* kernels = avg_pool_table(self.dtype)
    cdef TensorBase x, y
    pool_shape_of(&r.s, "avg_pool2d", self.ndim, self.sizes, kernel_size, stride, padding, NULL, ceil_mode)
    if kernels.planes == NULL:
        raise NotImplementedError(f"\"avg_pool2d\" not implemented for '{dtype_text(self.dtype)}'")
    r.s.count_include_pad = count_include_pad
    r.s.divisor_override = divisor_override
    y = pool_result(self, r.s.out_h, r.s.out_w, self.dtype, last)
    if self.device_type == DEV_META or y.numel == 0:
        return y
    x = dense_as(self, last)
    if y.device_type == DEV_CUDA:
        device_pool(DEVICE_AVERAGE, &r.s, last, False, x, y, None)
        return y
    r.average = kernels.last if last else kernels.planes
    r.x = data_of(x)
    r.y = data_of(y)
    run_held(run_average, &r, sample_count(x) * (r.s.out_h if last else r.s.channels), y.numel * r.s.kernel_h * r.s.kernel_w, x, x)
    return y


cdef TensorBase shaped_like(TensorBase g, const Dims* size, bint last):
    """A fresh tensor of the given size in g's type."""
    cdef int64_t strides[4]
    checked_numel(size.n, size.v)
    if last:
        channels_last_strides(4, size.v, strides)
        return empty_strided_tensor(4, size.v, strides, g.dtype, place_of(g))
    return empty_tensor(size.n, size.v, g.dtype, place_of(g))


cdef int check_gradient(TensorBase g, const Dims* size, int64_t h, int64_t w, str op) except -1:
    if g.ndim != size.n or g.sizes[g.ndim - 1] != w or g.sizes[g.ndim - 2] != h or g.sizes[g.ndim - 3] != size.v[g.ndim - 3] or (g.ndim == 4 and g.sizes[0] != size.v[0]):
        raise RuntimeError(f"{op}: a gradient of shape {shape_text(g)} does not fit an input of {list(dims_tuple(size))}")
    return 0


cdef TensorBase _avg_pool2d_backward_cpu(TensorBase grad_output, const Dims* size, const Dims* kernel_size, const Dims* stride, const Dims* padding,
                                         bint ceil_mode, bint count_include_pad, int64_t divisor_override):
    cdef PoolRun r
    cdef bint last = lies_last(grad_output)
    cdef const avg_pool_kernels* kernels = avg_pool_table(grad_output.dtype)
    cdef TensorBase g, d
    pool_shape_of(&r.s, "avg_pool2d_backward", size.n, size.v, kernel_size, stride, padding, NULL, ceil_mode)
    check_gradient(grad_output, size, r.s.out_h, r.s.out_w, "avg_pool2d_backward")
    if kernels.planes == NULL:
        raise NotImplementedError(f"\"avg_pool2d_backward\" not implemented for '{dtype_text(grad_output.dtype)}'")
    r.s.count_include_pad = count_include_pad
    r.s.divisor_override = divisor_override
    d = shaped_like(grad_output, size, last)
    if d.device_type == DEV_META or d.numel == 0:
        return d
    g = dense_as(grad_output, last)
    if d.device_type == DEV_CUDA:
        device_pool(DEVICE_AVERAGE_BACKWARD, &r.s, last, False, g, d, None)
        return d
    r.average = kernels.backward_last if last else kernels.backward_planes
    r.x = data_of(g)
    r.y = data_of(d)
    run_held(run_average, &r, sample_count(d) * (r.s.in_h if last else r.s.channels), d.numel + g.numel * r.s.kernel_h * r.s.kernel_w, g, g)
    return d


# ---- adaptive ------------------------------------------------------------------------------------------------------

cdef int adaptive_shape(pool_shape* s, str op, int ndim, const int64_t* sizes, int64_t out_h, int64_t out_w) except -1:
    if ndim != 3 and ndim != 4:
        raise RuntimeError(f"{op}(): Expected 3D or 4D tensor, but got {sizes_text(ndim, sizes)}")
    if out_h < 0 or out_w < 0:
        raise RuntimeError(f"{op}: elements of output_size must be greater than or equal to 0 but received [{out_h}, {out_w}]")
    s.channels = sizes[ndim - 3]
    s.in_h = sizes[ndim - 2]
    s.in_w = sizes[ndim - 1]
    s.out_h = out_h
    s.out_w = out_w
    if s.channels == 0 or s.in_h == 0 or s.in_w == 0:
        raise RuntimeError(f"{op}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {sizes_text(ndim, sizes)}")
    return 0


cdef int check_output_size(const Dims* d, str op) except -1:
    if d.n != 2:
        raise RuntimeError(f"{op}: output_size must be 2, got {d.n}")
    return 0


cdef TensorBase _adaptive_avg_pool2d_cpu(TensorBase self, const Dims* output_size):
    cdef PoolRun r
    cdef bint last = lies_last(self)
    cdef const avg_pool_kernels* kernels = adaptive_avg_pool_table(self.dtype)
    cdef TensorBase x, y
    check_output_size(output_size, "adaptive_avg_pool2d")
    adaptive_shape(&r.s, "adaptive_avg_pool2d", self.ndim, self.sizes, output_size.v[0], output_size.v[1])
    if kernels.planes == NULL:
        raise NotImplementedError(f"\"adaptive_avg_pool2d\" not implemented for '{dtype_text(self.dtype)}'")
    y = pool_result(self, r.s.out_h, r.s.out_w, self.dtype, last)
    if self.device_type == DEV_META or y.numel == 0:
        return y
    x = dense_as(self, last)
    if y.device_type == DEV_CUDA:
        device_pool(DEVICE_AVERAGE, &r.s, last, True, x, y, None)
        return y
    r.average = kernels.last if last else kernels.planes
    r.x = data_of(x)
    r.y = data_of(y)
    run_held(run_average, &r, sample_count(x) * (r.s.out_h if last else r.s.channels), x.numel, x, x)
    return y


cdef TensorBase _adaptive_avg_pool2d_backward_cpu(TensorBase grad_output, const Dims* size):
    cdef PoolRun r
    cdef bint last = lies_last(grad_output)
    cdef const avg_pool_kernels* kernels = adaptive_avg_pool_table(grad_output.dtype)
    cdef TensorBase g, d
    cdef Scalar zero
    if grad_output.ndim != size.n or size.n < 3:
        raise RuntimeError(f"adaptive_avg_pool2d_backward: a gradient of shape {shape_text(grad_output)} does not fit an input of {list(dims_tuple(size))}")
    adaptive_shape(&r.s, "adaptive_avg_pool2d_backward", size.n, size.v, grad_output.sizes[grad_output.ndim - 2], grad_output.sizes[grad_output.ndim - 1])
    check_gradient(grad_output, size, r.s.out_h, r.s.out_w, "adaptive_avg_pool2d_backward")
    if kernels.planes == NULL:
        raise NotImplementedError(f"\"adaptive_avg_pool2d_backward\" not implemented for '{dtype_text(grad_output.dtype)}'")
    d = shaped_like(grad_output, size, last)
    if d.device_type == DEV_META or d.numel == 0:
        return d
    if grad_output.numel == 0:
        zero.kind = 1
        zero.i = 0
        zero.d = zero.im = 0
        fill_elements(d, &zero)
        return d
    g = dense_as(grad_output, last)
    if d.device_type == DEV_CUDA:
        device_pool(DEVICE_AVERAGE_BACKWARD, &r.s, last, True, g, d, None)
        return d
    r.average = kernels.backward_last if last else kernels.backward_planes
    r.x = data_of(g)
    r.y = data_of(d)
    run_held(run_average, &r, sample_count(d) * (r.s.in_h if last else r.s.channels), d.numel, g, g)
    return d


ctypedef void (*adaptive_max_fn)(int dtype, int last, const char* x, char* y, int64_t* indices, const pool_shape* s, int64_t begin, int64_t end) noexcept nogil

cdef extern from *:
    """
    ISA_FUNCTION(void, adaptive_max, (int, int, const char*, char*, int64_t*, const pool_shape*, int64_t, int64_t))
    """
    adaptive_max_fn adaptive_max()

cdef adaptive_max_fn adaptive_max_loop = adaptive_max()


cdef void run_adaptive_max(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef PoolRun* r = <PoolRun*>context
    adaptive_max_loop(r.dtype, r.last, r.x, r.y, r.indices, &r.s, begin, end)


cdef object _adaptive_max_pool2d_cpu(TensorBase self, const Dims* output_size):
    cdef PoolRun r
    cdef TensorBase x, y, indices
    check_output_size(output_size, "adaptive_max_pool2d")
    adaptive_shape(&r.s, "adaptive_max_pool2d", self.ndim, self.sizes, output_size.v[0], output_size.v[1])
    if category[self.dtype] != CAT_FLOAT:
        raise NotImplementedError(f"\"adaptive_max_pool2d\" not implemented for '{dtype_text(self.dtype)}'")
    if r.s.in_h * r.s.in_w >= <int64_t>1 << 31:
        raise RuntimeError(f"adaptive_max_pool2d: planes of {r.s.in_h} x {r.s.in_w} elements are too large")
    r.last = lies_last(self)
    r.dtype = self.dtype
    y = pool_result(self, r.s.out_h, r.s.out_w, self.dtype, r.last)
    indices = pool_result(self, r.s.out_h, r.s.out_w, I64, r.last)
    if self.device_type == DEV_META or y.numel == 0:
        return y, indices
    x = dense_as(self, r.last)
    if y.device_type == DEV_CUDA:
        device_pool(DEVICE_MAX, &r.s, r.last, True, x, y, indices)
        return y, indices
    r.x = data_of(x)
    r.y = data_of(y)
    r.indices = <int64_t*>data_of(indices)
    run_held(run_adaptive_max, &r, sample_count(x) * (r.s.out_h if r.last else r.s.channels), x.numel, x, x)
    return y, indices


# ---- entries -------------------------------------------------------------------------------------------------------

cdef int given_dims(object x, Dims* d, str op, str name) except -1:
    """Dims of an optional argument: None and () mean left out."""
    if x is None:
        d.n = 0
        return 0
    return parse_dims(x, d, op, name)


def max_pool2d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """Maxima of windows of `input: (N, C, H, W)` or (C, H, W), and where they were in the flattened plane."""
    cdef Dims k, st, pad, dil
    parse_dims(kernel_size, &k, "max_pool2d", "kernel_size")
    given_dims(stride, &st, "max_pool2d", "stride")
    parse_dims(padding, &pad, "max_pool2d", "padding")
    parse_dims(dilation, &dil, "max_pool2d", "dilation")
    return op_max_pool2d_with_indices(as_tensor_arg(input, "max_pool2d", "input"), &k, &st, &pad, &dil, parse_bool(ceil_mode, "max_pool2d", "ceil_mode"))


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """Maxima of windows of `input: (N, C, H, W)` or (C, H, W)."""
    return max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)[0]


cdef list flat_line(object x, str op, str name):
    """[value] of a one-dimensional argument; [] when left out."""
    cdef Dims d
    given_dims(x, &d, op, name)
    if d.n > 1:
        raise RuntimeError(f"{op}() {name} must be an int or a tuple of one int")
    return [d.v[0]] if d.n else []


cdef int check_line(object input, str op) except -1:
    as_tensor_arg(input, op, "input")
    if input.dim() not in (2, 3):
        raise RuntimeError(f"{op}() Expected 2D or 3D input tensor, but got {list(input.shape)}")
    return 0


def max_pool1d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """Maxima of windows of `input: (N, C, L)` or (C, L), and where they were."""
    check_line(input, "max_pool1d")
    k = flat_line(kernel_size, "max_pool1d", "kernel_size")
    st = flat_line(stride, "max_pool1d", "stride") or k
    values, indices = max_pool2d_with_indices(input.unsqueeze(-2), [1] + k, [1] + st, [0] + flat_line(padding, "max_pool1d", "padding"),
                                              [1] + flat_line(dilation, "max_pool1d", "dilation"), ceil_mode)
    return values.squeeze(-2), indices.squeeze(-2)


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """Maxima of windows of `input: (N, C, L)` or (C, L)."""
    return max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)[0]


cdef list triple(object x, str op, str name):
    cdef Dims d
    given_dims(x, &d, op, name)
    if d.n not in (0, 1, 3):
        raise RuntimeError(f"{op}: {name} must either be a single int, or a tuple of three ints")
    return [d.v[0]] * 3 if d.n == 1 else list(dims_tuple(&d))


cdef int check_volume(object input, str op) except -1:
    as_tensor_arg(input, op, "input")
    if input.dim() not in (4, 5):
        raise RuntimeError(f"{op}(): Expected 4D or 5D input tensor, but got {list(input.shape)}")
    for size in input.shape[-3:]:
        if size == 0:
            raise RuntimeError(f"{op}(): Expected input's non-batch dimensions to have positive length, but input has a shape of {list(input.shape)}")
    return 0


@autocast_policy(cpu="float32")
def max_pool3d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """Maxima of windows of `input: (N, C, D, H, W)` or (C, D, H, W), and where they were in the flattened volume."""
    check_volume(input, "max_pool3d")
    k = triple(kernel_size, "max_pool3d", "kernel_size")
    st = triple(stride, "max_pool3d", "stride") or k
    pad = triple(padding, "max_pool3d", "padding")
    dil = triple(dilation, "max_pool3d", "dilation")
    lead = list(input.shape[:-3])
    d, h, w = input.shape[-3:]
    count = 1
    for size in lead:
        count *= size
    # which planes' windows, then which of the planes; neither pass is recorded, the places found say all that the gradient needs
    plain = alias_of(input).reshape(count, d, h, w)
    values, at = max_pool2d_with_indices(plain, k[1:], st[1:], pad[1:], dil[1:], ceil_mode)
    oh, ow = values.shape[-2:]
    values, deep = max_pool2d_with_indices(values.reshape(count, 1, d, oh * ow), [k[0], 1], [st[0], 1], [pad[0], 0], [dil[0], 1], ceil_mode)
    return chosen(input, values, at, deep, lead + [values.size(-2), oh, ow])


cdef object chosen(object input, object values, object at, object deep, list shape):
    """(the maxima with their history, their places in the flattened volume) of the two passes over planes and depth."""
    h, w = input.shape[-2:]
    plane = shape[-2] * shape[-1]
    # `deep` counts in planes of results: which plane, and the position found there
    deep = deep.reshape(deep.shape[0], -1)
    found = (at.reshape(at.shape[0], -1).gather(1, deep) + _ops.div(deep, plane, rounding_mode="floor") * (h * w)).reshape(shape)
    if (<TensorBase>input).keys & K_DERIVATIVES:
        return input.flatten(-3).gather(-1, found.flatten(-3)).reshape(shape), found
    return values.reshape(shape), found


@autocast_policy(cpu="float32")
def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """Maxima of windows of `input: (N, C, D, H, W)` or (C, D, H, W)."""
    return max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)[0]


cdef int64_t parse_divisor(object divisor_override) except? -1:
    cdef int64_t n
    if divisor_override is None:
        return 0
    n = parse_int(divisor_override, "avg_pool2d", "divisor_override")
    if n == 0:
        raise RuntimeError("divisor must be not zero")
    return n


def avg_pool2d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None, *, out=None):
    """Means of windows of `input: (N, C, H, W)` or (C, H, W)."""
    cdef Dims k, st, pad
    cdef TensorBase x, y
    parse_dims(kernel_size, &k, "avg_pool2d", "kernel_size")
    given_dims(stride, &st, "avg_pool2d", "stride")
    parse_dims(padding, &pad, "avg_pool2d", "padding")
    x = as_tensor_arg(input, "avg_pool2d", "input")
    if out is not None:
        check_out(out, "avg_pool2d")
        if x.requires_grad and grad_mode():
            refuse_out("avg_pool2d")
        if tangent_of(x) is not None:
            refuse_forward_out(b"avg_pool2d")
    y = op__avg_pool2d(x, &k, &st, &pad, parse_bool(ceil_mode, "avg_pool2d", "ceil_mode"), parse_bool(count_include_pad, "avg_pool2d", "count_include_pad"),
                       parse_divisor(divisor_override))
    if out is None:
        return y
    if (<TensorBase>out).dtype != y.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {dtype_of(y.dtype)!r}, but got {out.dtype!r} instead")
    prepare_out("avg_pool2d", <TensorBase>out, y.ndim, y.sizes, y.dtype, OUT)
    copy_elements(<TensorBase>out, y)
    bump_version(<TensorBase>out)
    return out


def avg_pool1d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
    """Means of windows of `input: (N, C, L)` or (C, L)."""
    check_line(input, "avg_pool1d")
    k = flat_line(kernel_size, "avg_pool1d", "kernel_size")
    st = flat_line(stride, "avg_pool1d", "stride") or k
    return avg_pool2d(input.unsqueeze(-2), [1] + k, [1] + st, [0] + flat_line(padding, "avg_pool1d", "padding"), ceil_mode, count_include_pad).squeeze(-2)


@autocast_policy(cpu="float32")
def avg_pool3d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
    """Means of windows of `input: (N, C, D, H, W)` or (C, D, H, W)."""
    check_volume(input, "avg_pool3d")
    if rounds_between((<TensorBase>input).dtype):
        return avg_pool3d(input.float(), kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override).to(input.dtype)
    k = triple(kernel_size, "avg_pool3d", "kernel_size")
    st = triple(stride, "avg_pool3d", "stride") or k
    pad = triple(padding, "avg_pool3d", "padding")
    lead = list(input.shape[:-3])
    d, h, w = input.shape[-3:]
    count = 1
    for size in lead:
        count *= size
    whole = (<TensorBase>input).dtype == I64   # whose quotient is taken once, of the whole sum
    planes = avg_pool2d(input.reshape(count, d, h, w), k[1:], st[1:], pad[1:], ceil_mode, count_include_pad, None if divisor_override is None and not whole else 1)
    oh, ow = planes.shape[-2:]
    r = avg_pool2d(planes.reshape(count, 1, d, oh * ow), [k[0], 1], [st[0], 1], [pad[0], 0], ceil_mode, count_include_pad, 1 if whole else divisor_override)
    r = r.reshape(lead + [r.size(-2), oh, ow])
    if whole and divisor_override is None:
        divisor_override = _ops.tensor([[[a * b * c for c in covered(ow, w, k[2], st[2], pad[2], count_include_pad)]
                                         for b in covered(oh, h, k[1], st[1], pad[1], count_include_pad)]
                                        for a in covered(r.size(-3), d, k[0], st[0], pad[0], count_include_pad)], device=r.device)
    return _ops.div(r, divisor_override, rounding_mode="trunc") if whole else r


cdef bint rounds_between(int dtype) noexcept:
    """Whether a pass over planes and one over depth would round twice where PyTorch rounds once."""
    return dtype == F16 or dtype == BF16


cdef list covered(int64_t outputs, int64_t size, int64_t kernel, int64_t stride, int64_t pad, bint padded):
    """How many elements of a dimension, its padding counted or not, each window covers."""
    cdef int64_t o
    return [min(o * stride - pad + kernel, size + (pad if padded else 0)) - (o * stride - pad if padded else max(o * stride - pad, 0)) for o in range(outputs)]


cdef list sizes_of(object output_size, object input, int n, str op):
    """n output sizes; None keeps the input's."""
    if isinstance(output_size, int):
        return [output_size] * n
    given = list(output_size)
    if len(given) == 1:
        given = given * n
    if len(given) != n:
        raise RuntimeError(f"{op}: output_size must be {n}")
    return [input.size(i - n) if given[i] is None else given[i] for i in range(n)]


def adaptive_avg_pool2d(input, output_size):
    """Means of windows sized so that the result is (N, C, *output_size)."""
    return _adaptive_avg_pool2d(input, sizes_of(output_size, input, 2, "adaptive_avg_pool2d"))


def adaptive_avg_pool1d(input, output_size):
    """Means of windows sized so that the result is (N, C, output_size)."""
    as_tensor_arg(input, "adaptive_avg_pool1d", "input")
    if input.dim() not in (2, 3):
        raise RuntimeError(f"adaptive_avg_pool1d(): Expected 2D or 3D tensor, but got {list(input.shape)}")
    return _adaptive_avg_pool2d(input.unsqueeze(-2), [1] + sizes_of(output_size, input, 1, "adaptive_avg_pool1d")).squeeze(-2)


@autocast_policy(cpu="float32")
def adaptive_avg_pool3d(input, output_size):
    """Means of windows sized so that the result is (N, C, *output_size)."""
    check_volume(input, "adaptive_avg_pool3d")
    if rounds_between((<TensorBase>input).dtype):
        return adaptive_avg_pool3d(input.float(), output_size).to(input.dtype)
    od, oh, ow = sizes_of(output_size, input, 3, "adaptive_avg_pool3d")
    lead = list(input.shape[:-3])
    d, h, w = input.shape[-3:]
    count = 1
    for size in lead:
        count *= size
    planes = _adaptive_avg_pool2d(input.reshape(count, d, h, w), [oh, ow])
    if oh * ow == 0:
        return planes.new_zeros(lead + [od, oh, ow])
    return _adaptive_avg_pool2d(planes.reshape(count, 1, d, oh * ow), [od, oh * ow]).reshape(lead + [od, oh, ow])


def adaptive_max_pool2d(input, output_size):
    """Maxima of windows sized so that the result is (N, C, *output_size), and where they were."""
    return _adaptive_max_pool2d(input, sizes_of(output_size, input, 2, "adaptive_max_pool2d"))


def adaptive_max_pool1d(input, output_size):
    """Maxima of windows sized so that the result is (N, C, output_size), and where they were."""
    as_tensor_arg(input, "adaptive_max_pool1d", "input")
    if input.dim() not in (2, 3):
        raise RuntimeError(f"adaptive_max_pool1d(): Expected 2D or 3D tensor, but got {list(input.shape)}")
    values, indices = _adaptive_max_pool2d(input.unsqueeze(-2), [1] + sizes_of(output_size, input, 1, "adaptive_max_pool1d"))
    return values.squeeze(-2), indices.squeeze(-2)


@autocast_policy(cpu="float32")
def adaptive_max_pool3d(input, output_size):
    """Maxima of windows sized so that the result is (N, C, *output_size), and where they were."""
    check_volume(input, "adaptive_max_pool3d")
    od, oh, ow = sizes_of(output_size, input, 3, "adaptive_max_pool3d")
    lead = list(input.shape[:-3])
    d, h, w = input.shape[-3:]
    count = 1
    for size in lead:
        count *= size
    values, at = _adaptive_max_pool2d(alias_of(input).reshape(count, d, h, w), [oh, ow])
    if od * oh * ow == 0:
        return input.new_zeros(lead + [od, oh, ow]), at.new_zeros(lead + [od, oh, ow])
    values, deep = _adaptive_max_pool2d(values.reshape(count, 1, d, oh * ow), [od, oh * ow])
    return chosen(input, values, at, deep, lead + [od, oh, ow])


EXTRA_EXPORTS = {
    "max_pool2d_with_indices": "", "max_pool2d": "f", "max_pool1d_with_indices": "f", "max_pool1d": "f", "max_pool3d_with_indices": "", "max_pool3d": "f",
    "avg_pool1d": "f", "avg_pool2d": "", "avg_pool3d": "", "adaptive_avg_pool1d": "f", "adaptive_avg_pool2d": "", "adaptive_avg_pool3d": "",
    "adaptive_max_pool1d": "f", "adaptive_max_pool2d": "", "adaptive_max_pool3d": "",
}
