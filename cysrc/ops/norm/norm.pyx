# Normalisations: checks, shapes and layouts for all devices, and derivatives; cpu.pyx and cysrc/cuda/norm.pyx have the steps.
from tensorrt_lite._C.core.memory_format cimport dense_in_format, empty_in_format, suggests_last
from tensorrt_lite._C.autograd.operator_nodes import joined
from tensorrt_lite._C.steps.norm cimport (
    row_shape, run_batch_norm, run_batch_norm_backward, run_group_norm, run_group_norm_backward, run_row_norm, run_row_norm_backward)


cdef int compute_of(TensorBase x, str name) except -1:
    """The compute type of a floating type; NotImplementedError for others."""
    if x.dtype == F64:
        return F64
    if x.dtype == F32 or x.dtype == F16 or x.dtype == BF16:
        return F32
    raise NotImplementedError(f"\"{name}\" not implemented for '{dtype_text(x.dtype)}'")


cdef TensorBase vector_of(int64_t n, int dtype, int device_type):
    return empty_tensor(1, &n, dtype, device_type)


cdef int check_parameter(TensorBase t, int64_t n, str name) except -1:
    if t is not None and t.numel != n:
        raise RuntimeError(f"{name} should contain {n} elements not {t.numel}")
    return 0


# ---- batch_norm ----------------------------------------------------------------------------------------------------

cdef inline bint computes_last(TensorBase x, bint last) noexcept:
    """Whether channels are innermost for the kernels: they are in rows, and one channel is the same in memory either way."""
    return x.ndim == 2 or last and x.sizes[1] > 1


cdef object batch_norm_impl(TensorBase input, TensorBase weight, TensorBase bias, TensorBase running_mean, TensorBase running_var, bint training,
                            double momentum, double eps):
    cdef int code = compute_of(input, "batch_norm")
    cdef int64_t c
    cdef bint last = suggests_last(input) or not input.contiguous and (is_channels_last(input) or is_channels_last_3d(input)), inner      # x[0][None] too
    cdef TensorBase x, y, mean, rstd
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
    inner = computes_last(input, last)
    x = dense_in_format(input, last and inner)
    y = empty_in_format(x.ndim, x.sizes, x.dtype, place_of(x), last)
    mean = vector_of(c, code, place_of(x))
    rstd = vector_of(c, code, place_of(x))
    run_batch_norm(x.device_type, x, inner, weight, bias, running_mean, running_var, training, momentum, eps, y, mean, rstd)
    return y, mean, rstd


cdef object batch_norm_gradients(TensorBase grad, TensorBase input, TensorBase weight, TensorBase mean, TensorBase rstd, bint training, bint want_input):
    """(dx or None, dw, db)."""
    cdef int code = compute_of(input, "batch_norm_backward")
    cdef bint last, inner
    cdef TensorBase x, g, dx = None, dw, db
    if is_large(input):
        grad, input, weight, mean, rstd = held(grad), held(input), held(weight), held(mean), held(rstd)
    check_saved("batch_norm", mean, code, input.sizes[1], input)
    check_saved("batch_norm", rstd, code, input.sizes[1], input)
    check_saved_like("batch_norm", grad, input, grad.dtype)
    last = suggests_last(input) or not input.contiguous and (is_channels_last(input) or is_channels_last_3d(input))
    inner = computes_last(input, last)
    x = dense_in_format(input, last and inner)
    g = dense_in_format(cast_to(grad, x.dtype), last and inner)
    dw = vector_of(x.sizes[1], code, place_of(x))
    db = vector_of(x.sizes[1], code, place_of(x))
    if want_input:
        dx = empty_in_format(x.ndim, x.sizes, x.dtype, place_of(x), last)
    run_batch_norm_backward(x.device_type, g, x, inner, weight, mean, rstd, training, dx, dw, db)
    return dx, dw, db


cdef inline object in_type_of(object g, object like):
    return g if g is None or like is None or g.dtype is like.dtype else g.to(like.dtype)


cdef object wide(object x):
    """Halves as float32 for composed derivatives."""
    return x.to(dtype_of(F32)) if x is not None and (<TensorBase>x).dtype in (F16, BF16) else x


cdef object batch_norm_backward(OpNode node, object grad, object input, object weight, object mean, object rstd, bint training, double eps):
    cdef bint need_input = wants(node, 0), need_weight = wants(node, 1), need_bias = wants(node, 2)
    dx = dw = db = None
    if grad is None:
        return None, None, None
    if input.dim() < 2:
        zeros = grad.new_zeros(0)
        return grad * 1, None if weight is None else _ops.zeros_like(weight), zeros if weight is None else _ops.zeros_like(weight)
    if not grad_mode():
        dx, dw, db = batch_norm_gradients(grad, input, weight, mean, rstd, training, need_input)
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

cdef int fill_rows(row_shape* call, TensorBase x, int dims, double eps) noexcept:
    """Rows of the last `dims` dimensions."""
    cdef int i
    call.rows = call.n = 1
    for i in range(x.ndim):
        if i < x.ndim - dims:
            call.rows *= x.sizes[i]
        else:
            call.n *= x.sizes[i]
    call.inner = call.per_group = call.groups = 1
    call.eps = eps
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


cdef TensorBase normalized_rows(TensorBase input, int dims, TensorBase weight, TensorBase bias, double eps, TensorBase mean, TensorBase rstd):
    """The result of layer_norm, or of rms_norm where `mean` is None; the statistics are written."""
    cdef row_shape call
    cdef TensorBase y = empty_tensor(input.ndim, input.sizes, input.dtype, place_of(input))
    if y.numel:
        fill_rows(&call, input, dims, eps)
        run_row_norm(input.device_type, &call, input, weight, bias, y, mean, rstd)
    return dense_in_format(y, mean is None and suggests_last(input))      # layer_norm's result is contiguous


cdef object layer_norm_impl(TensorBase input, const Dims* normalized_shape, TensorBase weight, TensorBase bias, double eps):
    cdef TensorBase mean, rstd
    cdef int code
    check_normalized(input, normalized_shape, weight, bias)
    code = F64 if row_type(input, weight, bias, "LayerNormKernelImpl") == F64 else F32
    mean = row_statistics(input, normalized_shape.n, code)
    rstd = row_statistics(input, normalized_shape.n, code)
    return normalized_rows(input, normalized_shape.n, weight, bias, eps, mean, rstd), mean, rstd


cdef object rms_norm_impl(TensorBase input, const Dims* normalized_shape, TensorBase weight, double eps):
    cdef TensorBase rstd
    check_normalized(input, normalized_shape, weight, None)
    rstd = row_statistics(input, normalized_shape.n, F64 if row_type(input, weight, None, "rms_norm") == F64 else F32)
    return normalized_rows(input, normalized_shape.n, weight, None, eps, None, rstd), rstd


cdef TensorBase filled_with_zeros(TensorBase t):
    cdef Scalar zero
    zero.kind = 1
    zero.i = 0
    zero.d = zero.im = 0
    if t is not None:
        fill_elements(t, &zero)
    return t


cdef object row_norm_gradients(TensorBase grad, TensorBase input, TensorBase weight, TensorBase mean, TensorBase rstd, int dims, int type_, bint want_input,
                               bint want_weight, bint want_bias):
    """(dx, dweight, dbias), each None unless wanted; the latter two in the weight's type."""
    cdef row_shape call
    cdef TensorBase dx = None, dw = None, db = None
    cdef const int64_t* shape = input.sizes + (input.ndim - dims)
    cdef int parameters = type_ if weight is None else weight.dtype
    if want_input:
        dx = empty_tensor(input.ndim, input.sizes, input.dtype, place_of(input))
    if want_weight:
        dw = empty_tensor(dims, shape, parameters, place_of(input))
    if want_bias:
        db = empty_tensor(dims, shape, parameters, place_of(input))
    if input.numel == 0:
        return dx, filled_with_zeros(dw), filled_with_zeros(db)
    fill_rows(&call, input, dims, 0)
    if mean is not None:
        check_saved("layer_norm", mean, F64 if type_ == F64 else F32, call.rows, input)
    check_saved("layer_norm" if mean is not None else "rms_norm", rstd, F64 if type_ == F64 else F32, call.rows, input)
    check_saved_like("layer_norm" if mean is not None else "rms_norm", grad, input, input.dtype)
    run_row_norm_backward(input.device_type, &call, grad, input, weight, mean, rstd, dx, dw, db)
    return dense_in_format(dx, mean is None and suggests_last(grad)) if want_input else None, dw, db


cdef object layer_norm_backward(OpNode node, object grad, object input, object weight, object mean, object rstd, object shape, double eps):
    cdef bint need_input = wants(node, 0), need_weight = wants(node, 1), need_bias = wants(node, 2)
    cdef int type_, dims = len(shape)
    dx = dw = db = None
    if grad is None:
        return None, None, None
    if not grad_mode():
        type_ = row_type(input, weight, None, "layer_norm_backward")
        return row_norm_gradients(grad, input, weight, mean, rstd, dims, type_, need_input, need_weight, need_bias)
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
    cdef bint need_input = wants(node, 0), need_weight = wants(node, 1)
    cdef int type_, dims = len(shape)
    dx = dw = None
    if grad is None:
        return None, None
    if not grad_mode():
        type_ = row_type(input, weight, None, "rms_norm_backward")
        dx, dw, _ = row_norm_gradients(grad, input, weight, None, rstd, dims, type_, need_input, need_weight, False)
        return dx, dw
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

cdef int fill_groups(row_shape* call, TensorBase x, int64_t groups, double eps) noexcept:
    cdef int i
    call.inner = 1
    for i in range(2, x.ndim):
        call.inner *= x.sizes[i]
    call.groups = groups
    call.per_group = x.sizes[1] // groups
    call.n = call.per_group * call.inner
    call.rows = x.sizes[0] * groups
    call.eps = eps
    return 0


cdef object group_norm_impl(TensorBase input, TensorBase weight, TensorBase bias, int64_t num_groups, double eps):
    cdef row_shape call
    cdef int type_, code
    cdef int64_t sizes[2]
    cdef TensorBase y, mean, rstd
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
    y = empty_tensor(input.ndim, input.sizes, input.dtype, place_of(input))
    if y.numel:
        fill_groups(&call, input, num_groups, eps)
        run_group_norm(input.device_type, &call, input, weight, bias, y, mean, rstd)
    return dense_in_format(y, suggests_last(input)), mean, rstd


cdef object group_norm_backward(OpNode node, object grad, object input, object weight, object mean, object rstd, int64_t num_groups, double eps):
    cdef bint need_input = wants(node, 0), need_weight = wants(node, 1), need_bias = wants(node, 2)
    cdef row_shape call
    cdef int64_t c
    cdef int parameters
    cdef TensorBase x = input
    dx = dw = db = None
    if grad is None:
        return None, None, None
    if not grad_mode() and x.numel:
        parameters = row_type(x, weight, None, "group_norm_backward")
        if weight is not None:
            parameters = (<TensorBase>weight).dtype
        if need_input:
            dx = empty_tensor(x.ndim, x.sizes, x.dtype, place_of(x))
        if need_weight:
            dw = vector_of(x.sizes[1], parameters, place_of(x))
        if need_bias:
            db = vector_of(x.sizes[1], parameters, place_of(x))
        fill_groups(&call, x, num_groups, eps)
        check_saved("group_norm", <TensorBase?>mean, F64 if row_type(x, weight, None, "group_norm_backward") == F64 else F32, call.rows, x)
        check_saved("group_norm", <TensorBase?>rstd, (<TensorBase>mean).dtype, call.rows, x)
        check_saved_like("group_norm", <TensorBase?>grad, x, x.dtype)
        run_group_norm_backward(x.device_type, &call, grad, x, weight, mean, rstd, dx, dw, db)
        return dense_in_format(dx, suggests_last(x)) if need_input else None, dw, db
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


cdef inline bint has_tangent(object x):
    return x is not None and (<TensorBase?>x).keys & K_FORWARD_AD and tangent_of(<TensorBase>x) is not None


cdef int check_statistics(object input, object weight, object bias, object running_mean, object running_var) except -1:
    """Forward mode reads no tangents of the running statistics."""
    if (has_tangent(running_mean) or has_tangent(running_var)) and (has_tangent(input) or has_tangent(weight) or has_tangent(bias)):
        raise RuntimeError("batch_norm is not differentiable wrt running_mean and running_var, they cannot have forward mode grad defined")
    return 0


def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled=False):
    """Normalise each channel of `input: (N, C, *)`, with the batch's statistics (training) or the running ones."""
    if dual_levels and not training:
        check_statistics(input, weight, bias, running_mean, running_var)
    return op__batch_norm(as_tensor_arg(input, "batch_norm", "input"), given(weight, "batch_norm", "weight"), given(bias, "batch_norm", "bias"),
                          given(running_mean, "batch_norm", "running_mean"), given(running_var, "batch_norm", "running_var"),
                          parse_bool(training, "batch_norm", "training"), parse_double(momentum, "batch_norm", "momentum"),
                          parse_double(eps, "batch_norm", "eps"))[0]


def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, *, out=None):
    """batch_norm, the mean and the reciprocal deviation that it used; the latter two are empty in evaluation. Of halves they are float32 beside float32 parameters
    or running statistics, else halves."""
    if dual_levels and not training:
        check_statistics(input, weight, bias, running_mean, running_var)
    r = op__batch_norm(as_tensor_arg(input, "native_batch_norm", "input"), given(weight, "native_batch_norm", "weight"),
                       given(bias, "native_batch_norm", "bias"), given(running_mean, "native_batch_norm", "running_mean"),
                       given(running_var, "native_batch_norm", "running_var"), training, momentum, eps)
    kind = input.dtype
    for t in (weight, bias, running_mean, running_var):
        if t is not None and ((<TensorBase>input).dtype == F16 or (<TensorBase>input).dtype == BF16) and t.dtype is not kind:
            kind = t.dtype
    mean, rstd = r[1].detach().to(kind), r[2].detach().to(kind)
    r = (r[0], mean, rstd) if training else (r[0], mean[:0], rstd[:0])
    if out is None:
        return r
    check_outs(out, "native_batch_norm", 3)
    return tuple([deliver_result("native_batch_norm", x, target) for x, target in zip(r, out)])


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
    """Of the type that statistics are computed in, which is float32 for halves."""
    return 2.220446049250313e-16 if code == F64 or code == C128 else 1.1920928955078125e-07


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """x / sqrt(mean(x ** 2) + eps) over the trailing dimensions; eps None is the machine epsilon of the type, of halves float32's."""
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
    """group_norm, the means and the reciprocal deviations (N, group), which have gradients, too."""
    r = op__group_norm(as_tensor_arg(input, "native_group_norm", "input"), given(weight, "native_group_norm", "weight"),
                       given(bias, "native_group_norm", "bias"), group, eps)
    if tls().grad_mode and (<TensorBase>input).requires_grad:
        rows = input.reshape(input.shape[0], group, -1)
        mean = rows.mean(2)
        rstd = ((rows - mean.unsqueeze(2)).square().mean(2) + eps).rsqrt()
        return joined("NativeGroupNorm", (r[0], mean, rstd))
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
