# Dropout in its forms, rrelu. Part of random.pyx. A mask of one byte per element is drawn in PyTorch's order; the scale
# is what PyTorch's noise tensor would hold, rounded to the tensor's dtype, so that products agree to the last bit.
cdef struct ScaleTask:
    trt_masked_scale_fn function
    const char* x
    const char* mask
    char* result
    int64_t item
    double scale


cdef void scale_range(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef ScaleTask* t = <ScaleTask*>context
    t.function(t.x + begin * t.item, <const uint8_t*>t.mask + begin, t.result + begin * t.item, end - begin, t.scale)


cdef bint same_geometry(TensorBase a, TensorBase b) noexcept:
    cdef int i
    if not same_sizes(a, b):
        return False
    for i in range(a.ndim):
        if a.sizes[i] != 1 and a.strides[i] != b.strides[i]:
            return False
    return True


cdef TensorBase _masked_scale_cpu(TensorBase self, TensorBase mask, double scale, TensorBase out, int mode):
    """self * (mask * scale)."""
    cdef TensorBase r, x = self
    cdef ScaleTask task
    cdef trt_block* held[3]
    cdef int64_t n
    cdef int i
    cdef bint direct = same_geometry(self, mask)
    if self.dtype not in (F16, BF16, F32, F64) or mask.dtype != BOOL or not direct and not same_sizes(self, mask) or mask.device_type != self.device_type:
        raise RuntimeError(f"_masked_scale: expected a floating-point input and a bool mask of its size, got {shape_text(self)} of {dtype_of(self.dtype).name} "
                           f"and {shape_text(mask)} of {dtype_of(mask.dtype).name}")
    if not non_overlapping_dense(mask):
        mask = contiguous_of(mask)
        direct = same_geometry(self, mask)
    r = self if mode == INPLACE and direct else empty_like_tensor(mask, self.dtype)
    if self.device_type == DEV_META or self.numel == 0:
        return self if mode == INPLACE else r
    if not direct:
        copy_elements(r, self)
        x = r
    if self.device_type == DEV_CUDA:
        device_masked_scale(x, mask, scale, r)
        if mode == INPLACE and not direct:
            copy_elements(self, r)
            return self
        return r
    task.function = MASKED_SCALE[self.dtype - F16]
    task.x = data_of(x)
    task.mask = data_of(mask)
    task.result = data_of(r)
    task.item = ITEM_SIZE[self.dtype]
    task.scale = scale
    n = self.numel
    if n < 4096:
        scale_range(&task, 0, n)
    else:
        held[0] = x.storage.block
        held[1] = mask.storage.block
        held[2] = r.storage.block
        for i in range(3):
            trt_block_hold(held[i])
        with nogil:
            parallel_for(n, GRAIN // 4, 64, scale_range, &task)
        for i in range(3):
            block_drop(held[i])
    if mode == INPLACE and not direct:
        copy_elements(self, r)
        return self
    return r


def _masked_scale(TensorBase input not None, TensorBase mask not None, double scale):
    """input * (mask * scale): the gradient of dropout."""
    return op__masked_scale(input, mask, scale, None, FRESH)


def _masked_scale_(TensorBase input not None, TensorBase mask not None, double scale):
    """_masked_scale in place."""
    check_inplace(input, "_masked_scale_")
    return finish_inplace(op__masked_scale(input, mask, scale, input, INPLACE), input.keys)


cdef double noise_of(double keep, int code) noexcept:
    """1 / keep as a tensor of the dtype holds it."""
    cdef float f
    if code == F64:
        return 1.0 / keep
    f = <float>1.0 / <float>keep
    if code == F32:
        return f
    return round_half(f, code)


cdef double round_half(float v, int code):
    cdef TensorBase t = empty_tensor(0, NULL, F32, DEV_CPU)
    (<float*>data_of(t))[0] = v
    t = cast_to(cast_to(t, code), F32)
    return (<float*>data_of(t))[0]


cdef int check_dropout(TensorBase x, double p) except -1:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {number_text(p)}")
    return 0


cdef int check_dropout_dtype(TensorBase x) except -1:
    if category[x.dtype] == CAT_COMPLEX:
        refuse_dtype("bernoulli_scalar_cpu_", x)
    if category[x.dtype] != CAT_FLOAT:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {dtype_text(x.dtype)}")
    return 0


cdef TensorBase keep_mask(TensorBase x, double keep, bint fresh):
    """True with probability keep. On CUDA the numbers of a fresh result are drawn in another order than those of one in place, as PyTorch does."""
    cdef TensorBase mask = empty_like_tensor(x, BOOL), noise
    cdef rs_fill f
    if x.device_type == DEV_CUDA and fresh:
        device_dropout_mask(x, keep, mask)
        return mask
    f.kind = RS_FILL_BERNOULLI
    f.a = keep
    if x.device_type == DEV_CUDA and x.dtype == F64:
        noise = empty_like_tensor(x, F64)
        run_fill(noise, &f, None)
        copy_elements(mask, noise)
        return mask
    return run_fill(mask, &f, None)


cdef TensorBase drop(TensorBase x, double p, int mode):
    cdef TensorBase mask
    if p == 1:
        zero = _ops.zeros((), dtype=dtype_of(x.dtype), device=(<object>x).device)
        return _ops.mul_(x, zero) if mode == INPLACE else _ops.mul(x, zero)
    check_dropout_dtype(x)
    mask = keep_mask(x, 1 - p, mode != INPLACE)
    return op__masked_scale(x, mask, noise_of(1 - p, x.dtype) if x.device_type != DEV_CUDA or mode == INPLACE else 1 / (1 - p), x if mode == INPLACE else None, mode)


def dropout(input, p, train):
    """Zero each element with probability p and scale the rest by 1 / (1 - p); the input itself outside of training."""
    cdef TensorBase x
    cdef double q
    x = as_tensor_arg(input, "dropout", "input")
    q = parse_double(p, "dropout", "p")
    check_dropout(x, q)
    if q == 0 or not train or x.numel == 0:
        return x
    return drop(x, q, FRESH)


def dropout_(input, p, train):
    """dropout in place."""
    cdef TensorBase x
    cdef double q
    x = as_tensor_arg(input, "dropout_", "input")
    q = parse_double(p, "dropout_", "p")
    check_dropout(x, q)
    if q == 0 or not train or x.numel == 0:
        return x
    check_inplace(x, "dropout_")
    if q == 1:
        return drop(x, q, INPLACE)
    return finish_inplace(drop(x, q, INPLACE), x.keys)


def native_dropout(input, p, train):
    """Dropout with its mask: (result, mask)."""
    cdef TensorBase x, mask
    cdef double q
    cdef Scalar one
    x = as_tensor_arg(input, "native_dropout", "input")
    q = parse_double(p, "native_dropout", "p")
    check_dropout(x, q)
    if x.numel == 0:
        return x, empty_like_tensor(x, x.dtype)
    if train is not None and not train:
        mask = empty_like_tensor(x, BOOL)
        one.kind = 0
        one.i = 1
        one.d = 1
        one.im = 0
        fill_elements(mask, &one)
        return _ops.clone(x), mask
    check_dropout_dtype(x)
    mask = keep_mask(x, 1 - q, True)
    return op__masked_scale(x, mask, 0.0 if q == 1 else 1 / (1 - q), None, FRESH), mask


# E[selu(x)] at -infinity is -scale * alpha: what alpha dropout puts in the place of dropped elements.
cdef double SELU_FLOOR = 1.7580993408473766


cdef object composed_dropout(object function, str name, object input, object p, object train, bint channels, bint alpha, bint inplace):
    cdef TensorBase x
    cdef double q, a
    cdef int i
    cdef Dims d
    x = as_tensor_arg(input, name, "input")
    q = parse_double(p, name, "p")
    check_dropout(x, q)
    if q == 0 or not train or x.numel == 0:
        return x
    if q == 1:
        return drop(x, q, INPLACE if inplace else FRESH)
    if channels:
        if x.ndim < 2:
            raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
        d.n = x.ndim
        for i in range(x.ndim):
            d.v[i] = x.sizes[i] if i < 2 else 1
        noise = <object>empty_tensor(d.n, d.v, x.dtype, place_of(x))
    else:
        noise = <object>empty_like_tensor(x, x.dtype)
    noise.bernoulli_(1 - q)
    if not alpha:
        noise.div_(1 - q)
        return _ops.mul_(x, noise) if inplace else _ops.mul(x, noise)
    a = 1.0 / sqrt((SELU_FLOOR * SELU_FLOOR * q + 1) * (1 - q))
    shift = noise.add(-1).mul_(SELU_FLOOR * a).add_(SELU_FLOOR * a * q)
    noise.mul_(a)
    return _ops.add_(_ops.mul_(x, noise), shift) if inplace else _ops.add(_ops.mul(x, noise), shift)


def feature_dropout(input, p, train):
    """Dropout of whole channels: input (N, C, *)."""
    return composed_dropout(feature_dropout, "feature_dropout", input, p, train, True, False, False)


def feature_dropout_(input, p, train):
    """feature_dropout in place."""
    return composed_dropout(feature_dropout_, "feature_dropout_", input, p, train, True, False, True)


def alpha_dropout(input, p, train):
    """Dropout that keeps mean and variance of SELU networks (Klambauer et al. 2017, section 3)."""
    return composed_dropout(alpha_dropout, "alpha_dropout", input, p, train, False, True, False)


def alpha_dropout_(input, p, train):
    """alpha_dropout in place."""
    return composed_dropout(alpha_dropout_, "alpha_dropout_", input, p, train, False, True, True)


def feature_alpha_dropout(input, p, train):
    """alpha_dropout of whole channels: input (N, C, *)."""
    return composed_dropout(feature_alpha_dropout, "feature_alpha_dropout", input, p, train, True, True, False)


def feature_alpha_dropout_(input, p, train):
    """feature_alpha_dropout in place."""
    return composed_dropout(feature_alpha_dropout_, "feature_alpha_dropout_", input, p, train, True, True, True)


# ---- rrelu ---------------------------------------------------------------------------------------------------------

cdef TensorBase rrelu_with_noise_cpu(TensorBase self, TensorBase noise, double lower, double upper, bint training, object generator, TensorBase out, int mode):
    """In training x * noise, where noise is 1 for x > 0 and else a double drawn from [lower, upper); leaky_relu otherwise."""
    cdef rs_state* state = state_of(generator)
    cdef TensorBase x, slopes, r
    cdef int64_t i
    cdef double* v
    cdef double* s
    cdef double slope = (lower + upper) / 2
    if category[self.dtype] != CAT_FLOAT:
        refuse_dtype("rrelu_with_noise_out_cpu", self)
    if not same_sizes(self, noise):
        raise RuntimeError(f"noise tensor shape must match self tensor shape. Got self.shape = {shape_text(self)} noise.shape = {shape_text(noise)}")
    if not lower <= upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound, got {number_text(lower)} and {number_text(upper)}")
    r = self if mode == INPLACE else empty_like_tensor(self, self.dtype)
    if self.device_type == DEV_META or self.numel == 0:
        return r
    if self.device_type == DEV_CUDA:
        return rrelu_on_device(self, noise, lower, upper, training, generator, r)
    x = contiguous_of(cast_to(self, F64))
    slopes = empty_tensor(self.ndim, self.sizes, F64, DEV_CPU)
    v = <double*>data_of(x)
    s = <double*>data_of(slopes)
    for i in range(self.numel):
        if v[i] > 0:
            s[i] = 1
        elif training:
            s[i] = rs_next_u53(state) * (upper - lower) + lower
        else:
            s[i] = slope
    if training:
        # the slope as the noise tensor holds it: the product is rounded from there
        copy_elements(noise, slopes)
        slopes = contiguous_of(cast_to(noise, F64))
        s = <double*>data_of(slopes)
    slopes = contiguous_of(slopes)
    x = contiguous_of(cast_to(self, F64))
    v = <double*>data_of(x)
    product = empty_tensor(self.ndim, self.sizes, F64, DEV_CPU)
    for i in range(self.numel):
        (<double*>data_of(product))[i] = v[i] * s[i]
    copy_elements(r, product)
    return r


cdef TensorBase rrelu_on_device(TensorBase x, TensorBase noise, double lower, double upper, bint training, object generator, TensorBase r):
    cdef TensorBase slopes, result
    if not training:
        result = <TensorBase>_ops.leaky_relu((<object>x).detach(), (lower + upper) / 2)
    else:
        slopes = empty_tensor(x.ndim, x.sizes, x.dtype, place_of(x))
        result = empty_tensor(x.ndim, x.sizes, x.dtype, place_of(x))
        device_slopes(contiguous_of(x), slopes, result, lower, upper, generator)
        copy_elements(noise, slopes)
    copy_elements(r, result)
    return r


cdef object rrelu_gradient(object grad, object noise, object x, object lower, object upper, object training):
    """x: the input, or what was written over it: the slope's sign is positive, so either tells which elements were positive."""
    if training:
        return _ops.mul(grad, noise)
    slope = _ops.where(_ops.gt(x, 0), 1.0, (lower + upper) / 2).to(grad.dtype)
    return _ops.mul(grad, slope)


def rrelu_with_noise(TensorBase input not None, TensorBase noise not None, lower=0.125, upper=0.3333333333333333, training=False, generator=None):
    """rrelu that leaves the slopes it drew in `noise`."""
    return op_rrelu_with_noise(input, noise, parse_double(lower, "rrelu_with_noise", "lower"), parse_double(upper, "rrelu_with_noise", "upper"), bool(training), generator, None, FRESH)


def rrelu_with_noise_(TensorBase input not None, TensorBase noise not None, lower=0.125, upper=0.3333333333333333, training=False, generator=None):
    """rrelu_with_noise in place."""
    check_inplace(input, "rrelu_with_noise_")
    return finish_inplace(op_rrelu_with_noise(input, noise, parse_double(lower, "rrelu_with_noise_", "lower"), parse_double(upper, "rrelu_with_noise_", "upper"), bool(training), generator, input, INPLACE), input.keys)


def rrelu(TensorBase input not None, lower=0.125, upper=0.3333333333333333, training=False, generator=None):
    """Leaky ReLU whose slope is drawn from [lower, upper) per element in training, its mean otherwise."""
    return rrelu_with_noise(input, empty_like_tensor(input, input.dtype), lower, upper, training, generator)


def rrelu_(TensorBase input not None, lower=0.125, upper=0.3333333333333333, training=False, generator=None):
    """rrelu in place."""
    return rrelu_with_noise_(input, empty_like_tensor(input, input.dtype), lower, upper, training, generator)
