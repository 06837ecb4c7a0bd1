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
    check_running("running_mean", running_mean)
    check_running("running_var", running_var)
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
    return (y, mean, rstd) if training else (y, vector_of(0, code, place_of(x)), vector_of(0, code, place_of(x)))


cdef int check_running(str name, TensorBase t) except -1:
    if t is not None and category[t.dtype] != CAT_FLOAT:
        raise RuntimeError(f"batch_norm: expected {name} of a floating type, got {dtype_text(t.dtype)}")
    return 0


cdef object run_batch_norm_gradients(TensorBase grad, TensorBase input, TensorBase weight, TensorBase mean, TensorBase rstd, bint training, bint want_input):
    """(dx or None, dw, db)."""
    cdef int code = compute_of(input, "batch_norm_backward")
    cdef bint last, inner
    cdef TensorBase x, g, dx = None, dw, db
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


cdef bint composes(object grad) noexcept:
    """Whether a gradient is composed of operators: it is recorded, has a tangent, or belongs to a transform or a device whose kernels may lack a backward one."""
    return tls().grad_mode or dual_levels and tls().in_backward or (<TensorBase>grad).keys & (K_WRAPPED | K_CUSTOM) != 0


cdef bint records(TensorBase a, TensorBase b, TensorBase c) noexcept:
    return tls().grad_mode and (a.requires_grad or b.requires_grad or c is not None and c.requires_grad)


cdef int parse_mask(object mask, int n, bint* wanted, str name) except -1:
    """`n` bools."""
    cdef int i
    if not isinstance(mask, (list, tuple)) or len(mask) != n:
        raise RuntimeError(f"{name}(): argument 'output_mask' must be a list of {n} bools")
    for i in range(n):
        wanted[i] = parse_bool(mask[i], name, "output_mask")
    return 0


cdef TensorBase typed(TensorBase g, TensorBase like):
    return g if g is None or like is None else cast_to(g, like.dtype)


cdef object batch_norm_backward_impl(TensorBase grad_out, TensorBase input, TensorBase weight, TensorBase running_mean, TensorBase running_var, TensorBase save_mean,
                                     TensorBase save_invstd, bint train, double eps, object output_mask):
    cdef int code = compute_of(input, "batch_norm_backward")
    cdef bint wanted[3]
    cdef TensorBase mean = save_mean, rstd = save_invstd
    cdef uint64_t before
    parse_mask(output_mask, 3, wanted, "native_batch_norm_backward")
    if input.ndim < 2:
        if input.numel:
            raise RuntimeError(f"batch_norm: expected input of at least 2 dimensions, got {input.ndim}")
        zeros = vector_of(0, code, place_of(input))
        return empty_like_tensor(input, input.dtype) if wanted[0] else None, typed(zeros, weight) if wanted[1] else None, typed(zeros, weight) if wanted[2] else None
    check_parameter(weight, input.sizes[1], "weight")
    if not train:
        if running_mean is None or running_var is None:
            raise RuntimeError("running_mean and running_var must be defined in evaluation mode")
        check_running("running_mean", running_mean)
        check_running("running_var", running_var)
        before = enter_kernel()
        try:
            mean = contiguous_of(cast_to(running_mean, code))
            rstd = cast_to(<TensorBase?>_ops.reciprocal(_ops.sqrt(_ops.add(cast_to(running_var, F64), eps))), code)
        finally:
            leave_kernel(before)
    elif mean is None or rstd is None:
        raise RuntimeError("native_batch_norm_backward: save_mean and save_invstd must be given in training")
    dx, dw, db = run_batch_norm_gradients(grad_out, input, weight, mean, rstd, train, wanted[0])
    return dx, typed(dw, weight) if wanted[1] else None, typed(db, weight) if wanted[2] else None


cdef object batch_norm_gradients(OpNode node, object grad, object input, object weight, object running_mean, object running_var, object mean, object rstd, bint training,
                                 double eps):
    cdef object mask = [wants(node, 0), wants(node, 1), wants(node, 2)]
    if grad is None:
        return None, None, None
    if input.dim() < 2:
        zeros = grad.new_zeros(0)
        return grad * 1, None if weight is None else _ops.zeros_like(weight), zeros if weight is None else _ops.zeros_like(weight)
    if composes(grad):
        return batch_norm_composed(grad, input, weight, running_mean, running_var, training, eps, mask)
    return op_native_batch_norm_backward(<TensorBase?>grad, <TensorBase?>input, weight, running_mean, running_var, mean, rstd, training, eps, mask)


cdef object recorded_batch_norm_backward(TensorBase grad_out, TensorBase input, TensorBase weight, TensorBase running_mean, TensorBase running_var, TensorBase save_mean,
                                         TensorBase save_invstd, bint train, double eps, object output_mask):
    if records(grad_out, input, weight) and input.ndim > 1:
        return batch_norm_composed(grad_out, input, weight, running_mean, running_var, train, eps, output_mask)
    return below_native_batch_norm_backward(grad_out, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, output_mask, BELOW(KEY_AUTOGRAD))


cdef object batch_norm_composed(object grad, object input, object weight, object running_mean, object running_var, bint training, double eps, object mask):
    dx = dw = db = None
    x = wide(input)
    g = wide(grad)
    shape = [1, x.size(1)] + [1] * (x.dim() - 2)
    dims = [0] + list(range(2, x.dim()))
    if training:
        centred = x - x.mean(dims, True)
        scale = ((centred * centred).mean(dims, True) + eps).rsqrt()
    else:
        centred = x - running_mean.detach().to(x.dtype).reshape(shape)
        scale = (running_var.detach().to(x.dtype) + eps).rsqrt().reshape(shape)
    normal = centred * scale
    if mask[1]:
        dw = in_type_of((g * normal).sum(dims), weight)
    if mask[2]:
        db = g.sum(dims) if weight is None else in_type_of(g.sum(dims), weight)
    if mask[0]:
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


cdef object rms_norm_impl(TensorBase input, const Dims* normalized_shape, TensorBase weight, object eps):
    cdef TensorBase rstd
    cdef double e = epsilon_of(input.dtype) if eps is None else parse_double(eps, "rms_norm", "eps")
    check_normalized(input, normalized_shape, weight, None)
    rstd = row_statistics(input, normalized_shape.n, F64 if row_type(input, weight, None, "rms_norm") == F64 else F32)
    return normalized_rows(input, normalized_shape.n, weight, None, e, None, rstd), rstd


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


cdef object layer_norm_backward_impl(TensorBase grad_out, TensorBase input, const Dims* normalized_shape, TensorBase mean, TensorBase rstd, TensorBase weight, TensorBase bias,
                                     object output_mask):
    cdef bint wanted[3]
    parse_mask(output_mask, 3, wanted, "native_layer_norm_backward")
    check_normalized(input, normalized_shape, weight, bias)
    return row_norm_gradients(grad_out, input, weight, mean, rstd, normalized_shape.n, row_type(input, weight, None, "layer_norm_backward"), wanted[0], wanted[1], wanted[2])


cdef object layer_norm_gradients(OpNode node, object grad, object input, object weight, object bias, object mean, object rstd, object shape, double eps):
    cdef object mask = [wants(node, 0), wants(node, 1), wants(node, 2)]
    cdef Dims d
    if grad is None:
        return None, None, None
    if composes(grad):
        return layer_norm_composed(grad, input, weight, len(shape), None, eps, mask)
    parse_dims(shape, &d, "layer_norm", "normalized_shape")
    return op_native_layer_norm_backward(<TensorBase?>grad, <TensorBase?>input, &d, <TensorBase?>mean, <TensorBase?>rstd, weight, bias, mask)


cdef object recorded_layer_norm_backward(TensorBase grad_out, TensorBase input, const Dims* normalized_shape, TensorBase mean, TensorBase rstd, TensorBase weight,
                                         TensorBase bias, object output_mask):
    if records(grad_out, input, weight):
        return layer_norm_composed(grad_out, input, weight, normalized_shape.n, rstd, 0, output_mask)
    return below_native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask, BELOW(KEY_AUTOGRAD))


cdef object reciprocal_deviation(object squares, object rstd, double eps):
    """1 / sqrt(squares + eps) with a gradient; where `rstd` is given, eps is what makes it that."""
    if rstd is None:
        return (squares + eps).rsqrt()
    return (squares + (rstd.detach().to(squares.dtype).pow(-2) - squares.detach())).rsqrt()


cdef object layer_norm_composed(object grad, object input, object weight, int dims, object rstd, double eps, object mask):
    dx = dw = db = None
    x = wide(input)
    g = wide(grad)
    inner = list(range(x.dim() - dims, x.dim()))
    outer = list(range(x.dim() - dims))
    centred = x - x.mean(inner, True)
    scale = reciprocal_deviation((centred * centred).mean(inner, True), rstd, eps)
    normal = centred * scale
    if mask[1]:
        dw = g * normal
        dw = in_type_of(dw.sum(outer) if outer else dw, weight)
    if mask[2]:
        db = in_type_of(g.sum(outer) if outer else g, weight)
    if mask[0]:
        if weight is not None:
            g = g * wide(weight)
        dx = (scale * (g - g.mean(inner, True) - normal * (g * normal).mean(inner, True))).to(input.dtype)
    return dx, dw, db


cdef object rms_norm_backward_impl(TensorBase grad_out, TensorBase input, const Dims* normalized_shape, TensorBase rstd, TensorBase weight, object output_mask):
    cdef bint wanted[2]
    parse_mask(output_mask, 2, wanted, "_fused_rms_norm_backward")
    check_normalized(input, normalized_shape, weight, None)
    dx, dw, _ = row_norm_gradients(grad_out, input, weight, None, rstd, normalized_shape.n, row_type(input, weight, None, "rms_norm_backward"), wanted[0], wanted[1], False)
    return dx, dw


cdef object rms_norm_gradients(OpNode node, object grad, object input, object weight, object rstd, object shape, object eps):
    cdef object mask = [wants(node, 0), wants(node, 1)]
    cdef Dims d
    if grad is None:
        return None, None
    if composes(grad):
        return rms_norm_composed(grad, input, weight, len(shape), None, epsilon_of((<TensorBase>input).dtype) if eps is None else eps, mask)
    parse_dims(shape, &d, "rms_norm", "normalized_shape")
    return op__fused_rms_norm_backward(<TensorBase?>grad, <TensorBase?>input, &d, <TensorBase?>rstd, weight, mask)


cdef object recorded_rms_norm_backward(TensorBase grad_out, TensorBase input, const Dims* normalized_shape, TensorBase rstd, TensorBase weight, object output_mask):
    if records(grad_out, input, weight):
        return rms_norm_composed(grad_out, input, weight, normalized_shape.n, rstd, 0, output_mask)
    return below__fused_rms_norm_backward(grad_out, input, normalized_shape, rstd, weight, output_mask, BELOW(KEY_AUTOGRAD))


cdef object rms_norm_composed(object grad, object input, object weight, int dims, object rstd, double eps, object mask):
    dx = dw = None
    x = wide(input)
    g = wide(grad)
    inner = list(range(x.dim() - dims, x.dim()))
    outer = list(range(x.dim() - dims))
    scale = reciprocal_deviation((x * x).mean(inner, True), rstd, eps)
    normal = x * scale
    if mask[1]:
        dw = g * normal
        dw = in_type_of(dw.sum(outer) if outer else dw, weight)
    if mask[0]:
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


cdef int check_groups(TensorBase input, TensorBase weight, TensorBase bias, int64_t N, int64_t C, int64_t HxW, int64_t num_groups) except -1:
    cdef int i
    cdef int64_t inner = 1
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    if input.ndim < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.ndim}")
    if input.sizes[1] % num_groups:
        raise RuntimeError(f"Expected number of channels in input to be divisible by num_groups, but got input of shape {shape_text(input)} and num_groups={num_groups}")
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and ((<TensorBase>t).ndim != 1 or (<TensorBase>t).numel != input.sizes[1]):
            raise RuntimeError(f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of shape {shape_text(<TensorBase>t)} and input of shape {shape_text(input)}")
    for i in range(2, input.ndim):
        inner *= input.sizes[i]
    if N != input.sizes[0] or C != input.sizes[1] or HxW != inner:
        raise RuntimeError(f"native_group_norm: N={N}, C={C} and HxW={HxW} do not fit an input of shape {shape_text(input)}")
    return 0


cdef object group_norm_impl(TensorBase input, TensorBase weight, TensorBase bias, int64_t N, int64_t C, int64_t HxW, int64_t num_groups, double eps):
    cdef row_shape call
    cdef int type_, code
    cdef int64_t sizes[2]
    cdef TensorBase y, mean, rstd
    check_groups(input, weight, bias, N, C, HxW, num_groups)
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


cdef object group_norm_backward_impl(TensorBase grad_out, TensorBase input, TensorBase mean, TensorBase rstd, TensorBase weight, int64_t N, int64_t C, int64_t HxW,
                                     int64_t group, object output_mask):
    cdef bint wanted[3]
    cdef row_shape call
    cdef TensorBase dx = None, dw = None, db = None
    cdef int type_, parameters
    parse_mask(output_mask, 3, wanted, "native_group_norm_backward")
    check_groups(input, weight, None, N, C, HxW, group)
    type_ = row_type(input, weight, None, "group_norm_backward")
    parameters = type_ if weight is None else weight.dtype
    if wanted[0]:
        dx = empty_tensor(input.ndim, input.sizes, input.dtype, place_of(input))
    if wanted[1]:
        dw = vector_of(C, parameters, place_of(input))
    if wanted[2]:
        db = vector_of(C, parameters, place_of(input))
    if input.numel == 0:
        return dx, filled_with_zeros(dw), filled_with_zeros(db)
    fill_groups(&call, input, group, 0)
    check_saved("group_norm", mean, F64 if type_ == F64 else F32, call.rows, input)
    check_saved("group_norm", rstd, F64 if type_ == F64 else F32, call.rows, input)
    check_saved_like("group_norm", grad_out, input, input.dtype)
    run_group_norm_backward(input.device_type, &call, grad_out, input, weight, mean, rstd, dx, dw, db)
    return dense_in_format(dx, suggests_last(input)) if wanted[0] else None, dw, db


cdef object group_norm_gradients(OpNode node, object grad, object input, object weight, object mean, object rstd, int64_t N, int64_t C, int64_t HxW, int64_t group,
                                 double eps):
    cdef object mask = [wants(node, 0), wants(node, 1), wants(node, 2)]
    if grad is None:
        return None, None, None
    if composes(grad):
        return group_norm_composed(grad, input, weight, group, None, eps, mask)
    return op_native_group_norm_backward(<TensorBase?>grad, <TensorBase?>input, <TensorBase?>mean, <TensorBase?>rstd, weight, N, C, HxW, group, mask)


cdef object recorded_group_norm_backward(TensorBase grad_out, TensorBase input, TensorBase mean, TensorBase rstd, TensorBase weight, int64_t N, int64_t C, int64_t HxW,
                                         int64_t group, object output_mask):
    if records(grad_out, input, weight):
        return group_norm_composed(grad_out, input, weight, group, rstd, 0, output_mask)
    return below_native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask, BELOW(KEY_AUTOGRAD))


cdef object group_norm_composed(object grad, object input, object weight, int64_t num_groups, object rstd, double eps, object mask):
    cdef int64_t c = 1
    dx = dw = db = None
    shape = list(input.shape)
    for size in shape[2:]:
        c *= size
    gx = wide(input).reshape(shape[0], num_groups, shape[1] // num_groups, c)
    g = wide(grad).reshape(gx.shape)
    centred = gx - gx.mean([2, 3], True)
    scale = reciprocal_deviation((centred * centred).mean([2, 3], True), None if rstd is None else rstd.reshape(shape[0], num_groups, 1, 1), eps)
    normal = centred * scale
    if mask[1]:
        dw = in_type_of((<object>g * normal).sum([0, 3]).reshape(-1), weight)
    if mask[2]:
        db = in_type_of((<object>g).sum([0, 3]).reshape(-1), weight)
    if mask[0]:
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
    return op_native_batch_norm(as_tensor_arg(input, "batch_norm", "input"), given(weight, "batch_norm", "weight"), given(bias, "batch_norm", "bias"),
                          given(running_mean, "batch_norm", "running_mean"), given(running_var, "batch_norm", "running_var"),
                          parse_bool(training, "batch_norm", "training"), parse_double(momentum, "batch_norm", "momentum"),
                          parse_double(eps, "batch_norm", "eps"))[0]


def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, *, out=None):
    """batch_norm, the mean and the reciprocal deviation that it used; the latter two are empty in evaluation. Of halves they are float32 beside float32 parameters
    or running statistics, else halves."""
    if dual_levels and not training:
        check_statistics(input, weight, bias, running_mean, running_var)
    r = op_native_batch_norm(as_tensor_arg(input, "native_batch_norm", "input"), given(weight, "native_batch_norm", "weight"),
                       given(bias, "native_batch_norm", "bias"), given(running_mean, "native_batch_norm", "running_mean"),
                       given(running_var, "native_batch_norm", "running_var"), training, momentum, eps)
    kind = input.dtype
    for t in (weight, bias, running_mean, running_var):
        if t is not None and ((<TensorBase>input).dtype == F16 or (<TensorBase>input).dtype == BF16) and t.dtype is not kind:
            kind = t.dtype
    mean, rstd = r[1].detach().to(kind), r[2].detach().to(kind)
    r = (r[0], mean, rstd)
    if out is None:
        return r
    check_outs(out, "native_batch_norm", 3)
    return tuple([deliver_result("native_batch_norm", x, target) for x, target in zip(r, out)])


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    """Normalise over the trailing dimensions `normalized_shape`, then scale and shift."""
    cdef Dims d
    parse_dims(normalized_shape, &d, "layer_norm", "normalized_shape")
    return op_native_layer_norm(as_tensor_arg(input, "layer_norm", "input"), &d, given(weight, "layer_norm", "weight"), given(bias, "layer_norm", "bias"),
                          parse_double(eps, "layer_norm", "eps"))[0]


def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """layer_norm, the means and the reciprocal deviations."""
    cdef Dims d
    parse_dims(normalized_shape, &d, "native_layer_norm", "normalized_shape")
    r = op_native_layer_norm(as_tensor_arg(input, "native_layer_norm", "input"), &d, given(weight, "native_layer_norm", "weight"),
                       given(bias, "native_layer_norm", "bias"), eps)
    if intercepted((<TensorBase>input).keys):
        return r
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
    eps = e
    if is_complex_type(x.dtype):
        check_normalized(x, &d, w, None)
        scaled = input * ((input * input).mean(list(range(x.ndim - d.n, x.ndim)), True) + e).rsqrt()
        return scaled if weight is None else scaled * weight
    if w is not None and w.requires_grad and not x.requires_grad and w.dtype == x.dtype and tls().grad_mode and not intercepted(x.keys | w.keys):
        # the weight's gradient reads the normalised input alone, so that the input itself need not stay
        check_normalized(x, &d, w, None)
        return _ops.mul(op__fused_rms_norm(x, &d, None, eps)[0], w)
    return op__fused_rms_norm(x, &d, w, eps)[0]


cdef object run_group_norm_row(str name, object input, object weight, object bias, int64_t groups, double eps):
    cdef TensorBase x = as_tensor_arg(input, name, "input")
    cdef int64_t inner = 1
    cdef int i
    for i in range(2, x.ndim):
        inner *= x.sizes[i]
    return op_native_group_norm(x, given(weight, name, "weight"), given(bias, name, "bias"), x.sizes[0] if x.ndim else 0, x.sizes[1] if x.ndim > 1 else 0, inner, groups, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    """Normalise each group of channels of each sample of `input: (N, C, *)`."""
    return run_group_norm_row("group_norm", input, weight, bias, parse_int(num_groups, "group_norm", "num_groups"), parse_double(eps, "group_norm", "eps"))[0]


def native_group_norm(input, weight, bias, N, C, HxW, group, eps):
    """group_norm, the means and the reciprocal deviations (N, group), which have gradients, too."""
    r = run_group_norm_row("native_group_norm", input, weight, bias, group, eps)
    if intercepted((<TensorBase>input).keys):
        return r
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
