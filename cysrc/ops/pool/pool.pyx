# Pooling for (N, C, H, W) and (C, H, W): checks, shapes and layouts for all devices; cpu.pyx and cysrc/cuda/pool.pyx have the steps. One dimension is two with a height of 1; three are
# planes first and then the depth, which is exact for maxima (first of equals in scan order) and for averages (the divisor
# is a product over dimensions).
from tensorrt_lite._C.core.memory_format cimport dense_in_format, empty_in_format, in_format, suggests_last
from tensorrt_lite._C.autograd.operator_nodes import flat_gradient
from tensorrt_lite._C.steps.pool cimport fractional_call, pool_call, run_fractional_max, run_pool_average, run_pool_average_backward, run_pool_max, run_pool_max_backward


cdef int pool_pair(const Dims* d, int64_t* out, str op, str name) except -1:
    cdef int i
    if d.n != 1 and d.n != 2:
        raise RuntimeError(f"{op}: {name} must either be a single int, or a tuple of two ints")
    out[0] = d.v[0]
    out[1] = d.v[d.n - 1]
    for i in range(2):
        if not -(<int64_t>1 << 31) <= out[i] < <int64_t>1 << 31:
            raise RuntimeError(f"{op}: {name}={out[i]}: value cannot be converted to type int without overflow")
    return 0


cdef int64_t pooled_size(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation, bint ceil_mode) noexcept:
    cdef int64_t span = size + 2 * pad - dilation * (kernel - 1) - 1 + (stride - 1 if ceil_mode else 0)
    cdef int64_t n = (span // stride if span >= 0 else -((-span + stride - 1) // stride)) + 1
    if ceil_mode and (n - 1) * stride >= size + pad:
        n -= 1                    # the last window must start inside the input or its left padding
    return n


cdef int pool_shape_of(pool_call* s, str op, int ndim, const int64_t* sizes, const Dims* kernel, const Dims* stride, const Dims* padding,
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
    s.adaptive = False
    s.count_include_pad = 1
    s.divisor_override = 0
    if s.out_h < 1 or s.out_w < 1:
        raise RuntimeError(f"Given input size: ({s.channels}x{s.in_h}x{s.in_w}). Calculated output size: ({s.channels}x{s.out_h}x{s.out_w}). Output size is too small")
    return 0


cdef inline bint computes_last(TensorBase x, bint last) noexcept:
    """Whether the kernels for channels_last run: images of one channel are the same in memory either way."""
    return last and x.sizes[1] > 1


cdef TensorBase pool_result(TensorBase x, int64_t h, int64_t w, int dtype, bint last):
    """A tensor like x with another height and width, channels_last when `last`."""
    cdef int64_t sizes[4]
    cdef int i
    for i in range(x.ndim - 2):
        sizes[i] = x.sizes[i]
    sizes[x.ndim - 2] = h
    sizes[x.ndim - 1] = w
    checked_numel(x.ndim, sizes)
    return empty_in_format(x.ndim, sizes, dtype, place_of(x), last)


cdef object max_pool2d_impl(TensorBase self, const Dims* kernel_size, const Dims* stride, const Dims* padding, const Dims* dilation, bint ceil_mode):
    cdef pool_call call
    cdef TensorBase y, indices
    cdef bint last = suggests_last(self)
    pool_shape_of(&call, "max_pool2d", self.ndim, self.sizes, kernel_size, stride, padding, dilation, ceil_mode)
    if category[self.dtype] != CAT_INT and category[self.dtype] != CAT_FLOAT:
        raise NotImplementedError(f"\"max_pool2d\" not implemented for '{dtype_text(self.dtype)}'")
    call.last = computes_last(self, last)
    y = pool_result(self, call.out_h, call.out_w, self.dtype, last)
    indices = pool_result(self, call.out_h, call.out_w, I64, last)
    if y.numel:
        if call.in_h * call.in_w >= (<int64_t>1 << 31):
            raise RuntimeError("max_pool2d: planes of 2**31 elements and more are not supported")
        run_pool_max(self.device_type, &call, dense_in_format(self, call.last), y, indices)
    return y, indices


cdef TensorBase max_pool_backward(str name, pool_call* call, TensorBase grad, TensorBase self, TensorBase indices):
    """The gradient of a plane pooling with indices of the flattened plane."""
    cdef bint last = suggests_last(self)
    cdef TensorBase d
    if self.ndim < 3 or not fits_pool(call, self, grad) or not same_sizes(grad, indices) or indices.dtype != I64 or grad.dtype != self.dtype:
        raise RuntimeError(f"{name}: a gradient of shape {shape_text(grad)} and indices of shape {shape_text(indices)} do not fit an input of shape {shape_text(self)}")
    d = pool_result(self, self.sizes[self.ndim - 2], self.sizes[self.ndim - 1], grad.dtype, last)
    if d.numel == 0:
        return d
    if grad.numel == 0:
        return filled_with_zeros(d)
    call.last = computes_last(self, last)
    run_pool_max_backward(d.device_type, call, dense_in_format(grad, call.last), dense_in_format(indices, call.last), d)
    return d


cdef TensorBase max_pool2d_backward_impl(TensorBase grad_output, TensorBase self, const Dims* kernel_size, const Dims* stride, const Dims* padding, const Dims* dilation,
                                         bint ceil_mode, TensorBase indices):
    cdef pool_call call
    pool_shape_of(&call, "max_pool2d_with_indices_backward", self.ndim, self.sizes, kernel_size, stride, padding, dilation, ceil_mode)
    return max_pool_backward("max_pool2d_with_indices_backward", &call, grad_output, self, indices)


cdef TensorBase adaptive_max_pool2d_backward_impl(TensorBase grad_output, TensorBase self, TensorBase indices):
    cdef pool_call call
    if grad_output.ndim < 2:
        raise RuntimeError(f"adaptive_max_pool2d_backward: expected a gradient of 3 or 4 dimensions, got {grad_output.ndim}")
    adaptive_shape(&call, "adaptive_max_pool2d_backward", self.ndim, self.sizes, grad_output.sizes[grad_output.ndim - 2], grad_output.sizes[grad_output.ndim - 1])
    return max_pool_backward("adaptive_max_pool2d_backward", &call, grad_output, self, indices)


cdef object window_gradient(object grad, object self, object kernel_size, object stride, object padding, object dilation, bint ceil_mode, object indices):
    cdef Dims k, st, pad, dil
    if grad is None:
        return None
    parse_dims(kernel_size, &k, "max_pool2d", "kernel_size")
    given_dims(stride, &st, "max_pool2d", "stride")
    parse_dims(padding, &pad, "max_pool2d", "padding")
    parse_dims(dilation, &dil, "max_pool2d", "dilation")
    return op_max_pool2d_with_indices_backward(<TensorBase?>grad, <TensorBase?>self, &k, &st, &pad, &dil, ceil_mode, <TensorBase?>indices)


cdef object average_gradient(object grad, object self, object kernel_size, object stride, object padding, bint ceil_mode, bint count_include_pad, object divisor_override):
    cdef Dims k, st, pad
    parse_dims(kernel_size, &k, "avg_pool2d", "kernel_size")
    given_dims(stride, &st, "avg_pool2d", "stride")
    parse_dims(padding, &pad, "avg_pool2d", "padding")
    return op_avg_pool2d_backward(<TensorBase?>grad, <TensorBase?>self, &k, &st, &pad, ceil_mode, count_include_pad, divisor_override)


cdef bint fits_pool(const pool_call* call, TensorBase self, TensorBase y) noexcept:
    """Whether y has the sizes of the call's result."""
    cdef int i
    if y.ndim != self.ndim or y.sizes[y.ndim - 2] != call.out_h or y.sizes[y.ndim - 1] != call.out_w:
        return False
    for i in range(y.ndim - 2):
        if y.sizes[i] != self.sizes[i]:
            return False
    return True


cdef TensorBase filled_with_zeros(TensorBase t):
    cdef Scalar zero
    zero.kind = 1
    zero.i = 0
    zero.d = zero.im = 0
    fill_elements(t, &zero)
    return t


cdef object pooled_tangent(object tangent, object indices):
    return tangent.flatten(-2).gather(-1, indices.flatten(-2)).reshape(indices.shape)


cdef int check_average(TensorBase x, str op) except -1:
    if category[x.dtype] != CAT_FLOAT and x.dtype != I64:
        raise NotImplementedError(f"\"{op}\" not implemented for '{dtype_text(x.dtype)}'")
    return 0


cdef TensorBase avg_pool2d_impl(TensorBase self, const Dims* kernel_size, const Dims* stride, const Dims* padding, bint ceil_mode, bint count_include_pad,
                                object divisor_override):
    cdef pool_call call
    cdef TensorBase y
    cdef bint last = suggests_last(self)
    pool_shape_of(&call, "avg_pool2d", self.ndim, self.sizes, kernel_size, stride, padding, NULL, ceil_mode)
    check_average(self, "avg_pool2d")
    call.count_include_pad = count_include_pad
    call.divisor_override = parse_divisor(divisor_override)
    call.last = computes_last(self, last)
    y = pool_result(self, call.out_h, call.out_w, self.dtype, last)
    if y.numel:
        run_pool_average(self.device_type, &call, dense_in_format(self, call.last), y)
    return y


cdef TensorBase avg_pool2d_backward_impl(TensorBase grad_output, TensorBase self, const Dims* kernel_size, const Dims* stride, const Dims* padding,
                                         bint ceil_mode, bint count_include_pad, object divisor_override):
    cdef pool_call call
    cdef TensorBase d
    cdef bint last = suggests_last(self)
    pool_shape_of(&call, "avg_pool2d_backward", self.ndim, self.sizes, kernel_size, stride, padding, NULL, ceil_mode)
    check_average(grad_output, "avg_pool2d_backward")
    if not fits_pool(&call, self, grad_output):
        raise RuntimeError(f"avg_pool2d_backward: a gradient of shape {shape_text(grad_output)} does not fit an input of shape {shape_text(self)}")
    call.count_include_pad = count_include_pad
    call.divisor_override = parse_divisor(divisor_override)
    call.last = computes_last(self, last)
    d = pool_result(self, self.sizes[self.ndim - 2], self.sizes[self.ndim - 1], grad_output.dtype, last)
    if d.numel:
        run_pool_average_backward(d.device_type, &call, dense_in_format(grad_output, call.last), d)
    return d


# ---- adaptive ------------------------------------------------------------------------------------------------------

cdef int adaptive_shape(pool_call* s, str op, int ndim, const int64_t* sizes, int64_t out_h, int64_t out_w) except -1:
    if ndim != 3 and ndim != 4:
        raise RuntimeError(f"{op}(): Expected 3D or 4D tensor, but got {sizes_text(ndim, sizes)}")
    if out_h < 0 or out_w < 0:
        raise RuntimeError(f"{op}: elements of output_size must be greater than or equal to 0 but received [{out_h}, {out_w}]")
    s.adaptive = True
    s.channels = sizes[ndim - 3]
    s.in_h = sizes[ndim - 2]
    s.in_w = sizes[ndim - 1]
    s.out_h = out_h
    s.out_w = out_w
    if s.channels == 0 and ndim == 4 or s.in_h == 0 or s.in_w == 0:      # without a batch there may be no channels, as in PyTorch
        raise RuntimeError(f"{op}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {sizes_text(ndim, sizes)}")
    return 0


cdef int check_output_size(const Dims* d, str op) except -1:
    if d.n != 2:
        raise RuntimeError(f"{op}: output_size must be 2, got {d.n}")
    return 0


cdef int check_floating(TensorBase x, str op) except -1:
    if category[x.dtype] != CAT_FLOAT:
        raise NotImplementedError(f"\"{op}\" not implemented for '{dtype_text(x.dtype)}'")
    return 0


cdef TensorBase adaptive_avg_pool2d_impl(TensorBase self, const Dims* output_size):
    cdef pool_call call
    cdef TensorBase y
    cdef bint last = suggests_last(self)
    check_output_size(output_size, "adaptive_avg_pool2d")
    adaptive_shape(&call, "adaptive_avg_pool2d", self.ndim, self.sizes, output_size.v[0], output_size.v[1])
    check_floating(self, "adaptive_avg_pool2d")
    call.last = computes_last(self, last)
    y = pool_result(self, call.out_h, call.out_w, self.dtype, last)
    if y.numel:
        run_pool_average(self.device_type, &call, dense_in_format(self, call.last), y)
    return y


cdef TensorBase adaptive_avg_pool2d_backward_impl(TensorBase grad_output, TensorBase self):
    cdef pool_call call
    cdef TensorBase d
    cdef bint last = suggests_last(self)
    if grad_output.ndim != self.ndim or self.ndim < 3:
        raise RuntimeError(f"adaptive_avg_pool2d_backward: a gradient of shape {shape_text(grad_output)} does not fit an input of shape {shape_text(self)}")
    adaptive_shape(&call, "adaptive_avg_pool2d_backward", self.ndim, self.sizes, grad_output.sizes[grad_output.ndim - 2], grad_output.sizes[grad_output.ndim - 1])
    check_floating(grad_output, "adaptive_avg_pool2d_backward")
    if not fits_pool(&call, self, grad_output):
        raise RuntimeError(f"adaptive_avg_pool2d_backward: a gradient of shape {shape_text(grad_output)} does not fit an input of shape {shape_text(self)}")
    call.last = computes_last(self, last)
    d = pool_result(self, self.sizes[self.ndim - 2], self.sizes[self.ndim - 1], grad_output.dtype, last)
    if d.numel == 0:
        return d
    if grad_output.numel == 0:
        return filled_with_zeros(d)
    run_pool_average_backward(d.device_type, &call, dense_in_format(grad_output, call.last), d)
    return d


cdef object adaptive_max_pool2d_impl(TensorBase self, const Dims* output_size):
    cdef pool_call call
    cdef TensorBase y, indices
    cdef bint last = suggests_last(self)
    check_output_size(output_size, "adaptive_max_pool2d")
    adaptive_shape(&call, "adaptive_max_pool2d", self.ndim, self.sizes, output_size.v[0], output_size.v[1])
    check_floating(self, "adaptive_max_pool2d")
    if call.in_h * call.in_w >= <int64_t>1 << 31:
        raise RuntimeError(f"adaptive_max_pool2d: planes of {call.in_h} x {call.in_w} elements are too large")
    call.last = computes_last(self, last)
    y = pool_result(self, call.out_h, call.out_w, self.dtype, last)
    indices = pool_result(self, call.out_h, call.out_w, I64, last)
    if y.numel:
        run_pool_max(self.device_type, &call, dense_in_format(self, call.last), y, indices)
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


cdef int check_volume(object input, str op, int first) except -1:
    """first: the dimension from which on none may be empty."""
    as_tensor_arg(input, op, "input")
    if input.dim() not in (4, 5):
        raise RuntimeError(f"{op}(): Expected 4D or 5D input tensor, but got {list(input.shape)}")
    for size in input.shape[first:]:
        if size == 0:
            raise RuntimeError(f"{op}(): Expected input's non-batch dimensions to have positive length, but input has a shape of {list(input.shape)}")
    return 0


def max_pool3d_with_indices(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False):
    """Maxima of windows of `input: (N, C, D, H, W)` or (C, D, H, W), and where they were in the flattened volume."""
    check_volume(input, "max_pool3d", -4)
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
    plain = (<object>output_alias(input)).reshape(count, d, h, w)
    values, at = max_pool2d_with_indices(plain, k[1:], st[1:], pad[1:], dil[1:], ceil_mode)
    oh, ow = values.shape[-2:]
    values, deep = max_pool2d_with_indices(values.reshape(count, 1, d, oh * ow), [k[0], 1], [st[0], 1], [pad[0], 0], [dil[0], 1], ceil_mode)
    return chosen(input, values, at, deep, lead + [values.size(-2), oh, ow], suggests_last(input))


cdef object chosen(object input, object values, object at, object deep, list shape, bint last):
    """(the maxima with their history, their places in the flattened volume) of the two passes over planes and depth; in channels_last_3d where `last`,
    as the gradient is then."""
    h, w = input.shape[-2:]
    plane = shape[-2] * shape[-1]
    # `deep` counts in planes of results: which plane, and the position found there
    deep = deep.flatten(1)
    found = in_format((at.flatten(1).gather(1, deep) + _ops.div(deep, plane, rounding_mode="floor") * (h * w)).reshape(shape), last)
    if (<TensorBase>input).keys & K_DERIVATIVES:
        return in_format(_ops._pooled_volume(input, found), last), found
    return in_format(values.reshape(shape), last), found


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
    y = op_avg_pool2d(x, &k, &st, &pad, parse_bool(ceil_mode, "avg_pool2d", "ceil_mode"), parse_bool(count_include_pad, "avg_pool2d", "count_include_pad"),
                      divisor_override)
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


def avg_pool3d(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None, *, out=None):
    """Means of windows of `input: (N, C, D, H, W)` or (C, D, H, W)."""
    check_volume(input, "avg_pool3d", -4)
    if rounds_between((<TensorBase>input).dtype):
        r = avg_pool3d(input.float(), kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override).to(input.dtype)
        return deliver_result("avg_pool3d", r, out, True)
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
    return deliver_result("avg_pool3d", _ops.div(r, divisor_override, rounding_mode="trunc") if whole else r, out, True)


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


cdef bint averages_nothing(object input, object output_size, int n) except -1:
    """Whether an empty input is averaged as a whole: a mean, which takes any shape (NaN)."""
    cdef TensorBase x
    if not isinstance(input, TensorBase):
        return False
    x = <TensorBase>input
    return x.numel == 0 and n < x.ndim <= n + 2 and (output_size == 1 if isinstance(output_size, int) else list(output_size) in ([1], [1] * n))


def adaptive_avg_pool2d(input, output_size):
    """Means of windows sized so that the result is (N, C, *output_size)."""
    if averages_nothing(input, output_size, 2):
        return input.mean((-2, -1), True)
    sizes = sizes_of(output_size, input, 2, "adaptive_avg_pool2d")
    if dispatched((<TensorBase>input).keys) and sizes == [1, 1] and input.dim() in (3, 4):
        return input.mean((-1, -2), True)
    return _adaptive_avg_pool2d(input, sizes)


def adaptive_avg_pool1d(input, output_size):
    """Means of windows sized so that the result is (N, C, output_size)."""
    as_tensor_arg(input, "adaptive_avg_pool1d", "input")
    if input.dim() not in (2, 3):
        raise RuntimeError(f"adaptive_avg_pool1d(): Expected 2D or 3D tensor, but got {list(input.shape)}")
    if averages_nothing(input, output_size, 1):
        return input.mean(-1, True)
    return _adaptive_avg_pool2d(input.unsqueeze(-2), [1] + sizes_of(output_size, input, 1, "adaptive_avg_pool1d")).squeeze(-2)


def adaptive_avg_pool3d(input, output_size):
    """Means of windows sized so that the result is (N, C, *output_size)."""
    check_volume(input, "adaptive_avg_pool3d", 5 if averages_nothing(input, output_size, 3) else 1)
    if averages_nothing(input, output_size, 3):
        return input.mean((-3, -2, -1), True)
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


cdef object adaptive_maxima(object input, object output_size):
    cdef Dims d
    parse_dims(output_size, &d, "adaptive_max_pool2d", "output_size")
    return op_adaptive_max_pool2d(as_tensor_arg(input, "adaptive_max_pool2d", "input"), &d)


def adaptive_max_pool2d(input, output_size):
    """Maxima of windows sized so that the result is (N, C, *output_size), and where they were."""
    return adaptive_maxima(input, sizes_of(output_size, input, 2, "adaptive_max_pool2d"))


def adaptive_max_pool1d(input, output_size):
    """Maxima of windows sized so that the result is (N, C, output_size), and where they were."""
    as_tensor_arg(input, "adaptive_max_pool1d", "input")
    if input.dim() not in (2, 3):
        raise RuntimeError(f"adaptive_max_pool1d(): Expected 2D or 3D tensor, but got {list(input.shape)}")
    values, indices = adaptive_maxima(input.unsqueeze(-2), [1] + sizes_of(output_size, input, 1, "adaptive_max_pool1d"))
    return values.squeeze(-2), indices.squeeze(-2)


def adaptive_max_pool3d(input, output_size):
    """Maxima of windows sized so that the result is (N, C, *output_size), and where they were."""
    check_volume(input, "adaptive_max_pool3d", 1)
    od, oh, ow = sizes_of(output_size, input, 3, "adaptive_max_pool3d")
    lead = list(input.shape[:-3])
    d, h, w = input.shape[-3:]
    count = 1
    for size in lead:
        count *= size
    values, at = adaptive_maxima((<object>output_alias(input)).reshape(count, d, h, w), [oh, ow])
    if od * oh * ow == 0:
        return input.new_zeros(lead + [od, oh, ow]), at.new_zeros(lead + [od, oh, ow])
    values, deep = adaptive_maxima(values.reshape(count, 1, d, oh * ow), [od, oh * ow])
    return chosen(input, values, at, deep, lead + [od, oh, ow], False)


# ---- fractional ----------------------------------------------------------------------------------------------------

cdef object fractional_max(str op, int dims, TensorBase self, const Dims* kernel_size, const Dims* output_size, TensorBase samples):
    """(maxima, their places in each plane) of self (N, C, *) or (C, *) with `dims` dimensions behind the channels."""
    cdef fractional_call call
    cdef int64_t sizes[5]
    cdef int64_t batch, channels
    cdef int i, n = self.ndim, code = F64 if self.dtype == F64 else F32
    cdef TensorBase y, indices, wide
    if kernel_size.n != dims:
        raise RuntimeError(f"{op}: kernel_size must either be a single Int or tuple of {'three ' if dims == 3 else ''}Ints")
    if output_size.n != dims:
        raise RuntimeError(f"{op}: output_size must either be a single Int or tuple of {'three ' if dims == 3 else ''}Ints")
    if n != dims + 1 and n != dims + 2:
        raise RuntimeError(f"{op}(): Expected {dims + 1}D or {dims + 2}D tensor, but got: {shape_text(self)}")
    for i in range(1, n):
        if self.sizes[i] == 0:
            raise RuntimeError(f"{op}(): Expected input to have non-zero size for non-batch dimensions, but got{shape_text(self)} with dimension {i} being empty.")
    if category[self.dtype] != CAT_FLOAT:
        raise NotImplementedError(f"\"{op}\" not implemented for '{dtype_text(self.dtype)}'")
    batch, channels = self.sizes[0] if n == dims + 2 else 1, self.sizes[n - dims - 1]
    if samples.dtype != self.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions got {samples.ndim}")
    if samples.sizes[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.sizes[1] != channels:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.sizes[2] != dims:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {dims}; got {samples.sizes[2]}.")
    if place_of(samples) != place_of(self):
        raise RuntimeError(f"{op}: Expected all tensors to be on the same device, but found at least two devices, {(<object>self).device} and {(<object>samples).device}!")
    call.size[0] = call.out[0] = call.kernel[0] = 1
    for i in range(dims):
        call.size[3 - dims + i], call.out[3 - dims + i], call.kernel[3 - dims + i] = self.sizes[n - dims + i], output_size.v[i], kernel_size.v[i]
        if kernel_size.v[i] < 0 or output_size.v[i] < 0 or kernel_size.v[i] > self.sizes[n - dims + i] or output_size.v[i] + kernel_size.v[i] - 1 + (dims == 3) > self.sizes[n - dims + i]:      # PyTorch wants a row to spare in three dimensions
            what = ("time", "height", "width")[3 - dims + i]
            raise RuntimeError(f"{op}(): pool {what} {kernel_size.v[i]} too large relative to input {what} {self.sizes[n - dims + i]}")
    call.planes, call.dims, call.rounding = batch * channels, dims, self.dtype
    for i in range(n):
        sizes[i] = self.sizes[i] if i < n - dims else output_size.v[i - n + dims]
    y = empty_tensor(n, sizes, code, place_of(self))
    indices = empty_tensor(n, sizes, I64, place_of(self))
    if y.numel:
        run_fractional_max(self.device_type, &call, contiguous_of(cast_to(self, code)), contiguous_of(cast_to(samples, code)), y, indices)
    return cast_to(y, self.dtype), indices


cdef object fractional_max_pool2d_impl(TensorBase self, const Dims* kernel_size, const Dims* output_size, TensorBase random_samples):
    return fractional_max("fractional_max_pool2d", 2, self, kernel_size, output_size, random_samples)


cdef object fractional_max_pool3d_impl(TensorBase self, const Dims* kernel_size, const Dims* output_size, TensorBase random_samples):
    return fractional_max("fractional_max_pool3d", 3, self, kernel_size, output_size, random_samples)


cdef object scattered_to_planes(object grad, object indices, object shape, int dims):
    """The adjoint of reading planes at indices."""
    if grad is None:
        return None
    leading = list(shape[:len(shape) - dims])
    size = 1
    for n in shape[len(shape) - dims:]:
        size *= n
    return grad.new_zeros(leading + [size]).scatter_add(-1, indices.flatten(-dims), grad.flatten(-dims)).reshape(shape)


cdef object scattered_to_volume(object grad, object indices, object shape):
    """scattered_to_planes of volumes, in channels_last_3d where the indices are."""
    r = scattered_to_planes(grad, indices, shape, 3)
    return None if r is None else in_format(r, suggests_last(<TensorBase?>indices))


cdef object gathered_from_planes(object tangent, object indices, int dims):
    return tangent.flatten(-dims).gather(-1, indices.flatten(-dims)).reshape(indices.shape)


cdef TensorBase pooled_volume_impl(TensorBase self, TensorBase indices):
    return <TensorBase>gathered_from_planes(alias_of(self), indices, 3)


WITHOUT_ROW = {name: "" for name in (
    "max_pool3d_with_indices", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool3d")}
