# The meta functions of the reduction family, which check, choose dtypes and make the results for all devices, and its public functions written by hand.
# What a device computes is its step (steps.yaml): reduce.pyx, scan.pyx and softmax.pyx here for the CPU, cysrc/cuda for CUDA.
from tensorrt_lite._C.autograd.operator_nodes import joined
from tensorrt_lite._C.core.hints import hinted
from libc.math cimport INFINITY, NAN
from tensorrt_lite._C.ops.reduction.backward cimport (
    cumprod_backward, cumsum_backward, cumulative_selected_backward, extreme_backward, logsumexp_backward, mean_backward, nansum_backward, norm_backward,
    prod_backward, restore_dims, selected_backward, selected_tangent, sum_backward, var_backward)
from tensorrt_lite._C.steps.reduction cimport *


cdef int dims_mask(TensorBase self, const Dims* dim, unsigned char* reduced, str op) except -1:
    """Mark the reduced dimensions; an empty list means all."""
    cdef int i, d
    for i in range(self.ndim):
        reduced[i] = dim == NULL or dim.n == 0
    if dim != NULL and dim.n:
        for i in range(dim.n):
            d = wrap_dim(dim.v[i], self.ndim)
            if self.ndim and reduced[d]:
                raise RuntimeError(f"dim {d} appears multiple times in the list of dims ({op})")
            if self.ndim:
                reduced[d] = True
    return 0


cdef TensorBase reduced_tensor(TensorBase self, const unsigned char* reduced, bint keepdim, int dtype):
    cdef int64_t sizes[MAX_DIMS]
    cdef int i, n = 0
    for i in range(self.ndim):
        if not reduced[i]:
            sizes[n] = self.sizes[i]
            n += 1
        elif keepdim:
            sizes[n] = 1
            n += 1
    return empty_tensor(n, sizes, dtype, place_of(self))


cdef TensorBase reduced_result(reduce_call* call, str name, TensorBase self, const Dims* dim, bint keepdim, int dtype, TensorBase out, int mode):
    """Fill in the call and make the result, which is `out` where the step can write to that. NotImplementedError for a type that the operation does not take."""
    cdef TensorBase result
    cdef int gives
    clear(call)
    if not reduce_takes(call.operation, self.dtype):
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype_text(self.dtype)}'")
    gives = reduce_gives(call.operation, self.dtype)
    if gives >= 0 and gives != dtype:
        raise RuntimeError(f"{name}: its meta function makes a result of {dtype_text(dtype)}, and steps.yaml declares {dtype_text(gives)} for operands of {dtype_text(self.dtype)}")
    dims_mask(self, dim, call.reduced, name)
    result = reduced_tensor(self, call.reduced, keepdim, dtype)
    if mode != FRESH and out.dtype == dtype and out.contiguous and same_sizes(out, result) and out.storage.block != self.storage.block:
        return out
    return result


cdef inline void clear(reduce_call* call) noexcept:
    call.p = 0
    call.correction = 0
    call.flags = 0


cdef TensorBase meta_total(reduce_call* call, str name, TensorBase self, const Dims* dim, bint keepdim, int dtype, TensorBase out, int mode, int step_dtype):
    """sum, prod: in the given type, that of `out` or the operand's, integers in int64."""
    return reduced_result(call, name, self, dim, keepdim, step_dtype, out, mode)


cdef TensorBase meta_nansum(reduce_call* call, str name, TensorBase self, const Dims* dim, bint keepdim, int dtype, TensorBase out, int mode, int step_dtype):
    if category[self.dtype] == CAT_COMPLEX:
        raise RuntimeError(f"nansum on {device_type_name(self.device_type).upper()} does not support complex inputs")
    if category[step_dtype] == CAT_COMPLEX:
        raise NotImplementedError(f"\"nansum\" not implemented for '{dtype_text(step_dtype)}'")
    # there is no NaN among integers
    call.operation = REDUCE_SUM if category[self.dtype] < CAT_FLOAT or category[step_dtype] < CAT_FLOAT else REDUCE_NAN_SUM
    return reduced_result(call, name, self, dim, keepdim, step_dtype, out, mode)


cdef TensorBase meta_mean(reduce_call* call, str name, TensorBase self, const Dims* dim, bint keepdim, int dtype, TensorBase out, int mode, int step_dtype):
    cdef TensorBase result
    if category[step_dtype] < CAT_FLOAT:
        raise hinted("float result", RuntimeError(f"mean(): could not infer output dtype. {'Input' if dtype < 0 else 'Optional'} dtype must be either a floating point or complex dtype. Got: {dtype_text(step_dtype)}"))
    if mode == OUT and dim != NULL and category[step_dtype] == CAT_COMPLEX and category[out.dtype] == CAT_FLOAT:
        from tensorrt_lite._C.core.warning import warn
        warn("Casting complex values to real discards the imaginary part")
    result = reduced_result(call, name, self, dim, keepdim, step_dtype, out, mode)
    call.flags = REDUCE_MEAN
    return result


cdef int check_not_empty(TensorBase self, const Dims* dim, str name) except -1:
    cdef int i
    if self.numel:
        return 0
    if dim == NULL or dim.n == 0:
        raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.")
    for i in range(dim.n):
        if self.ndim and self.sizes[wrap_dim(dim.v[i], self.ndim)] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {wrap_dim(dim.v[i], self.ndim)} to have non-zero size.")
    return 0


cdef TensorBase meta_same(reduce_call* call, str name, TensorBase self, const Dims* dim, bint keepdim, TensorBase out, int mode):
    """What has the operand's type, and a value for no elements."""
    return reduced_result(call, name, self, dim, keepdim, self.dtype, out, mode)


cdef TensorBase meta_extreme(reduce_call* call, str name, TensorBase self, const Dims* dim, bint keepdim, TensorBase out, int mode):
    """amax, amin: what has no value for no elements."""
    check_not_empty(self, dim, name)
    if mode == OUT and out.dtype != self.dtype:
        raise RuntimeError(f"Expected the dtype for input and out to match, but got {dtype_text(self.dtype)} for input's dtype and {dtype_text(out.dtype)} for out's dtype.")
    return meta_same(call, name, self, dim, keepdim, out, mode)


cdef object extreme_dim(TensorBase self, int64_t dim, bint keepdim, int op, str name, object out, int mode):
    """(values, indices) along one dimension."""
    cdef reduce_call call
    cdef Dims d
    cdef int i
    cdef TensorBase values, indices
    call.operation = op
    clear(&call)
    d.n = 1
    d.v[0] = wrap_dim(dim, self.ndim)
    check_not_empty(self, &d, name)
    if category[self.dtype] == CAT_COMPLEX:
        raise RuntimeError(f"{name}(): does not support complex input")
    if mode == OUT:
        check_no_overlap(name, <TensorBase>out[0], self, True)
    for i in range(self.ndim):
        call.reduced[i] = i == d.v[0]
    if mode == OUT:
        check_out_type(name, <TensorBase>out[0], self.dtype)
        check_out_type(name, <TensorBase>out[1], I64)
    values = reduced_tensor(self, call.reduced, keepdim, self.dtype)
    indices = reduced_tensor(self, call.reduced, keepdim, I64)
    if not reduce_takes(op, self.dtype):
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype_text(self.dtype)}'")
    if indices.numel:
        run_reduce(self.device_type, &call, self, indices, values)
    if mode == OUT:
        values = write_to_out(name, values, <TensorBase>out[0], OUT)
        indices = write_to_out(name, indices, <TensorBase>out[1], OUT)
    return (values, indices)


cdef object max_dim_impl(TensorBase self, int64_t dim, bint keepdim, object out, int mode):
    return extreme_dim(self, dim, keepdim, REDUCE_ARGMAX, "max", out, mode)


cdef object min_dim_impl(TensorBase self, int64_t dim, bint keepdim, object out, int mode):
    return extreme_dim(self, dim, keepdim, REDUCE_ARGMIN, "min", out, mode)


cdef object named_result(str kind, object pair, tuple fields=("values", "indices")):
    from tensorrt_lite._C.core.return_types import result_type
    return result_type(kind, fields)(pair)


cdef object max_or_min(str name, bint largest, object input, object dim, object keepdim, object out):
    """max(input), max(input, dim, keepdim), max(input, other)."""
    cdef TensorBase self
    cdef object pair
    self = as_tensor_arg(input, name, "input")
    if dim is None:
        if not self.numel:
            raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.")
        if category[self.dtype] == CAT_COMPLEX:
            raise NotImplementedError(f"\"{name}_all\" not implemented for '{dtype_text(self.dtype)}'")
        if isinstance(out, TensorBase) and (<TensorBase>out).dtype != self.dtype:
            # unlike amax, the extreme of all elements is converted
            check_out(out, name)
            if self.requires_grad and grad_mode():
                refuse_out(name)
            write_to_out(name, <TensorBase?>(_ops.amax(self.detach()) if largest else _ops.amin(self.detach())), <TensorBase>out, OUT)
            bump_version(<TensorBase>out)
            return out
        return _ops.amax(self, out=out) if largest else _ops.amin(self, out=out)
    if isinstance(dim, TensorBase):
        return (_ops.maximum if largest else _ops.minimum)(self, dim, out=out)
    if out is not None:
        check_outs(out, name, 2)
        resolve(&OPS[OP_MAX_DIM], self.keys | keys_of_list(list(out)))
        pair = (op_max_dim if largest else op_min_dim)(self, parse_int(dim, name, "dim"), parse_bool(keepdim, name, "keepdim"), out, OUT)
        bump_outs(out)
    else:
        pair = (op_max_dim if largest else op_min_dim)(self, parse_int(dim, name, "dim"), parse_bool(keepdim, name, "keepdim"), None, FRESH)
    return named_result(name, pair)


def max(input, dim=None, keepdim=False, *, other=None, out=None):
    """The maximum of all elements, (values, indices) along a dimension, or the elementwise maximum with a tensor. NaN wins."""
    return max_or_min("max", True, input, other if dim is None else dim, keepdim, out)


def min(input, dim=None, keepdim=False, *, other=None, out=None):
    """The minimum of all elements, (values, indices) along a dimension, or the elementwise minimum with a tensor. NaN wins."""
    return max_or_min("min", False, input, other if dim is None else dim, keepdim, out)


cdef TensorBase meta_index(reduce_call* call, str name, TensorBase self, object dim, bint keepdim, TensorBase out, int mode):
    """argmax, argmin: along one dimension, or of all elements in their order."""
    cdef Dims d
    if category[self.dtype] == CAT_COMPLEX:
        raise RuntimeError(f"{name}(): does not support complex input")
    if self.dtype == BOOL:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{dtype_text(self.dtype)}'")
    if mode == OUT:
        check_out_type(name, out, I64)
    if dim is None:
        if not self.numel:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.")
        return reduced_result(call, name, self, NULL, keepdim, I64, out, mode)
    d.n = 1
    d.v[0] = parse_int(dim, name, "dim")
    check_not_empty(self, &d, name)
    return reduced_result(call, name, self, &d, keepdim, I64, out, mode)


cdef TensorBase meta_truth(reduce_call* call, str name, TensorBase self, const Dims* dim, bint keepdim, TensorBase out, int mode, int step_dtype):
    """all, any: bool, of uint8 that."""
    if mode == OUT and out.dtype != BOOL and out.dtype != U8:
        raise RuntimeError(f"{name} only supports bool tensor for result, got: {dtype_text(out.dtype)}")
    return reduced_result(call, name, self, dim, keepdim, step_dtype, out, mode)


cdef TensorBase meta_count(reduce_call* call, str name, TensorBase self, const Dims* dim):
    return reduced_result(call, name, self, dim, False, I64, None, FRESH)


cdef TensorBase meta_var(reduce_call* call, str name, TensorBase self, const Dims* dim, double correction, bint keepdim, bint root, TensorBase out, int mode):
    cdef TensorBase result
    if category[self.dtype] < CAT_FLOAT:
        raise RuntimeError(f"std and var only support floating point and complex dtypes")
    result = reduced_result(call, "std" if root else "var", self, dim, keepdim, self.dtype, out, mode)
    call.correction = correction
    call.flags = REDUCE_SQRT if root else 0
    return result


cdef TensorBase complex_var(TensorBase self, const Dims* dim, double correction, bint keepdim, bint root, TensorBase out, int mode):
    """The variance of a complex variable is that of its parts, added."""
    cdef TensorBase parts = <TensorBase?>_ops.view_as_real(self.detach())
    if mode == OUT and category[out.dtype] == CAT_FLOAT and promotion[parts.dtype][out.dtype] == out.dtype:
        parts = cast_to(parts, out.dtype)
    re = structured_var_kernel(<TensorBase?>parts.select(-1, 0), dim, correction, keepdim, False, None, FRESH)
    im = structured_var_kernel(<TensorBase?>parts.select(-1, 1), dim, correction, keepdim, False, None, FRESH)
    total = re + im
    return write_to_out("std" if root else "var", <TensorBase>(total.sqrt() if root else total), out, mode)


NOT_GIVEN = object()


cdef object moments(object input, object dim, object unbiased, object correction, object keepdim, object out, bint root, str name):
    cdef Dims d
    cdef const Dims* dims = NULL
    cdef double c
    cdef TensorBase self
    if isinstance(dim, bool):
        # var(input, unbiased)
        unbiased, dim = dim, None
    c = 1.0
    if correction is not None:
        c = parse_double(correction, name, "correction")
        if unbiased is not NOT_GIVEN:
            raise TypeError(f"{name}(): takes 'unbiased' or 'correction', not both")
    elif unbiased is not NOT_GIVEN:
        if isinstance(unbiased, int) and not isinstance(unbiased, bool):  # var(0, 1) would read as a correction or as two dimensions
            raise TypeError(f"{name}(): argument 'unbiased' must be bool, not int")
        c = 1.0 if parse_bool(unbiased, name, "unbiased") else 0.0
    if dim is not None:
        parse_dims(dim, &d, name, "dim")
        dims = &d
    self = as_tensor_arg(input, name, "input")
    if out is not None:
        check_out(out, name)
    r = op_var_kernel(self, dims, c, parse_bool(keepdim, name, "keepdim"), root, None if out is None else <TensorBase>out, FRESH if out is None else OUT)
    if isinstance(r, TensorBase) and self.numel <= c * (<TensorBase>r).numel and self.device_type != DEV_META:
        from tensorrt_lite._C.core.warning import warn
        warn(f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input numel divided by output numel).")
    if out is not None:
        bump_version(<TensorBase>out)
    return r


def var(input, dim=None, unbiased=NOT_GIVEN, keepdim=False, *, correction=None, out=None):
    """The variance over dimensions, divided by n - correction (1 unless said otherwise)."""
    return moments(input, dim, unbiased, correction, keepdim, out, False, "var")


def std(input, dim=None, unbiased=NOT_GIVEN, keepdim=False, *, correction=None, out=None):
    """The standard deviation over dimensions, with n - correction in the denominator (1 unless said otherwise)."""
    return moments(input, dim, unbiased, correction, keepdim, out, True, "std")


def var_mean(input, dim=None, unbiased=NOT_GIVEN, keepdim=False, *, correction=None):
    """(variance, mean)."""
    v = moments(input, dim, unbiased, correction, keepdim, None, False, "var_mean")
    return one_step("VarMean", v, mean(input, None if isinstance(dim, bool) else dim, keepdim))


def std_mean(input, dim=None, unbiased=NOT_GIVEN, keepdim=False, *, correction=None):
    """(standard deviation, mean)."""
    v = moments(input, dim, unbiased, correction, keepdim, None, True, "std_mean")
    return one_step("StdMean", v, mean(input, None if isinstance(dim, bool) else dim, keepdim))


cdef tuple one_step(str name, object a, object b):
    """Two results of one operator, with one Node where they are recorded."""
    return (a, b) if not (<TensorBase?>a).requires_grad else joined(name, (a, b))


cdef TensorBase meta_logsumexp(reduce_call* call, str name, TensorBase self, const Dims* dim, bint keepdim, TensorBase out, int mode):
    check_logsumexp_out(out, mode)
    return meta_same(call, name, self, dim, keepdim, out, mode)


cdef int check_logsumexp_out(TensorBase out, int mode) except -1:
    if mode == OUT and category[out.dtype] < CAT_FLOAT:
        raise RuntimeError(f"logsumexp(): Expected floating point type for result tensor, but got: {dtype_text(out.dtype)}")
    return 0


cdef TensorBase logsumexp_of_complex(TensorBase self, const Dims* dim, bint keepdim, TensorBase out, int mode):
    check_logsumexp_out(out, mode)
    return write_to_out("logsumexp", <TensorBase>complex_logsumexp(self.detach(), dims_tuple(dim), keepdim), out, mode)


cdef object complex_logsumexp(object x, object dims, bint keepdim):
    """Shifted by the largest real part."""
    if not x.numel():
        return x.exp().sum(dims, keepdim).log()
    top = x.real.amax(dims, True)
    top = top.masked_fill(top.isinf(), 0)
    total = (x - top).exp().sum(dims, True).log() + top
    return total if keepdim or not x.dim() else total.squeeze(dims if len(dims) else tuple(range(x.dim())))


cdef TensorBase meta_vector_norm(reduce_call* call, str name, TensorBase self, double ord, const Dims* dim, bint keepdim, int dtype, TensorBase out, int mode, int step_dtype):
    cdef int i
    cdef TensorBase result
    if category[self.dtype] < CAT_FLOAT:
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {dtype_text(self.dtype)}")
    if mode == OUT:
        check_out_type(name, out, to_real(self.dtype))
    if ord == 0.0:
        call.operation = REDUCE_COUNT_NONZERO
        return reduced_result(call, name, self, dim, keepdim, step_dtype, out, mode)
    if self.numel == 0 and (ord < 0 or ord == INFINITY):
        dims_mask(self, dim, call.reduced, name)
        if dim == NULL or dim.n == 0:
            raise RuntimeError(f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the operation does not have an identity")
        for i in range(self.ndim):
            if call.reduced[i] and self.sizes[i] == 0:
                raise RuntimeError(f"linalg.vector_norm cannot compute the {ord} norm on the dimension {i} because this dimension is empty and the operation does not have an identity")
    if ord == 2.0:
        call.operation = REDUCE_SQ_SUM
    elif ord == 1.0:
        call.operation = REDUCE_ABS_SUM
    elif ord == INFINITY:
        call.operation = REDUCE_ABS_MAX
    elif ord == -INFINITY:
        call.operation = REDUCE_ABS_MIN
    else:
        call.operation = REDUCE_NORM_P
    result = reduced_result(call, name, self, dim, keepdim, step_dtype, out, mode)
    call.p = ord
    call.flags = REDUCE_SQRT if ord == 2.0 else 0
    return result


def linalg_vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    """(sum |x|^ord)^(1/ord) over dimensions; ord inf and -inf give max and min of |x|, 0 counts nonzeros."""
    cdef Dims d
    cdef const Dims* dims = NULL
    cdef TensorBase self = as_tensor_arg(x, "linalg_vector_norm", "input")
    cdef int code = parse_dtype(dtype, "linalg.vector_norm")
    if dim is not None:
        parse_dims(dim, &d, "linalg.vector_norm", "dim")
        dims = &d
    if code >= 0:
        if category[code] < CAT_FLOAT:
            raise RuntimeError(f"linalg.vector_norm: dtype should be floating point or complex. Got {dtype_text(code)}")
        if category[self.dtype] == CAT_COMPLEX and category[code] != CAT_COMPLEX:
            raise RuntimeError(f"linalg.vector_norm: dtype should be complex for complex inputs. Got {dtype_text(code)}")
        if promotion[self.dtype][code] != code:
            raise RuntimeError(f"linalg.vector_norm: the dtype of the input ({dtype_text(self.dtype)}) should be convertible without narrowing to the specified dtype ({dtype_text(code)})")
    if out is None:
        return op_vector_norm(self, parse_double(ord, "linalg.vector_norm", "ord"), dims, keepdim, code, None, FRESH)
    check_out(out, "linalg.vector_norm")
    r = op_vector_norm(self, parse_double(ord, "linalg.vector_norm", "ord"), dims, keepdim, code, <TensorBase>out, OUT)
    bump_version(<TensorBase>out)
    return r


# ---- scans ---------------------------------------------------------------------------------------------------------

cdef object cummax_impl(TensorBase self, int64_t dim, object out, int mode):
    return named_result("cummax", cumulative_extreme(self, dim, SCAN_MAX, out, mode, "cummax"))


cdef object cummin_impl(TensorBase self, int64_t dim, object out, int mode):
    return named_result("cummin", cumulative_extreme(self, dim, SCAN_MIN, out, mode, "cummin"))


# ---- softmax -----------------------------------------------------------------------------------------------------

cdef object softmax_entry(object function, object input, object dim, object dtype, object out, bint log):
    cdef str name = "log_softmax" if log else "softmax"
    self = as_tensor_arg(input, name, "input")
    if dim is None:
        raise TypeError(f"{name}() missing 1 required positional arguments: \"dim\"")
    d = parse_int(dim, name, "dim")
    code = parse_dtype(dtype, name)
    if out is None:
        return op_trtl_log_softmax(self, d, code, None, FRESH) if log else op_trtl_softmax(self, d, code, None, FRESH)
    check_out(out, name)
    r = op_trtl_log_softmax(self, d, code, <TensorBase>out, OUT) if log else op_trtl_softmax(self, d, code, <TensorBase>out, OUT)
    bump_version(<TensorBase>out)
    return r


cdef TensorBase safe_softmax_impl(TensorBase self, int64_t dim, int dtype):
    cdef uint64_t before = enter_kernel()
    try:
        r = op_trtl_softmax(self, dim, dtype, None, FRESH)
        if not self.numel:
            return r
        empty = _ops.all(_ops.eq(self, float("-inf")), dim, True)
        return <TensorBase?>_ops.masked_fill(r, empty, 0)
    finally:
        leave_kernel(before)


def softmax(input, dim=None, dtype=None, *, out=None):
    """exp(x) / sum(exp(x)) along a dimension, in a numerically safe form."""
    return softmax_entry(softmax, input, dim, dtype, out, False)


def log_softmax(input, dim=None, dtype=None, *, out=None):
    """log(softmax(x)) along a dimension, in a numerically safe form."""
    return softmax_entry(log_softmax, input, dim, dtype, out, True)


# ---- compositions --------------------------------------------------------------------------------------------------

def sum_to_size(TensorBase self not None, *size):
    """Sum over dimensions so that the result has the given size (which must broadcast to the tensor's)."""
    cdef Dims d
    cdef int i, lead
    parse_size(size, &d, "sum_to_size", "size")
    if d.n > self.ndim:
        raise RuntimeError(f"size {{{list(dims_tuple(&d))}}} is not expandable to size {{{shape_text(self)}}}.")
    lead = self.ndim - d.n
    cdef list dims = list(range(lead))
    for i in range(d.n):
        if d.v[i] == 1 and self.sizes[lead + i] != 1:
            dims.append(lead + i)
        elif d.v[i] != self.sizes[lead + i]:
            raise RuntimeError(f"size {{{list(dims_tuple(&d))}}} is not expandable to size {{{shape_text(self)}}}.")
    if d.n == 0:
        return sum(self)
    if not dims:
        return self
    r = sum(self, dims, True)
    return r.reshape(dims_tuple(&d)) if lead else r


def aminmax(input, *, dim=None, keepdim=False, out=None):
    """(min, max) over one dimension or all. out: a tensor for each."""
    as_tensor_arg(input, "aminmax", "input")
    if out is not None:
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(f"aminmax(): argument 'out' must be tuple of Tensors, not {type(out).__name__}")
        for o in out:
            if as_tensor_arg(o, "aminmax", "out").dtype != (<TensorBase>input).dtype:
                raise RuntimeError(f"Expected out tensor to have dtype {dtype_of((<TensorBase>input).dtype)}, but got {o.dtype} instead")
        dims = list(range((<TensorBase>input).ndim)) if dim is None else dim
        return named_result("aminmax", (amin(input, dims, keepdim, out=out[0]), amax(input, dims, keepdim, out=out[1])), ("min", "max"))
    if dim is None and keepdim:
        shape = (1,) * input.dim()
        return named_result("aminmax", one_step("Aminmax", amin(input).reshape(shape), amax(input).reshape(shape)), ("min", "max"))
    return named_result("aminmax", one_step("Aminmax", amin(input, dim, keepdim), amax(input, dim, keepdim)), ("min", "max"))


def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """mean of the elements that are not NaN."""
    cdef TensorBase x = as_tensor_arg(input, "nanmean", "input")
    if category[x.dtype] < CAT_FLOAT:
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {dtype_text(x.dtype)}")
    total = nansum(input, dim, keepdim, dtype=dtype)
    count = sum(~input.isnan(), dim, keepdim)
    return _ops.div(total, count, out=out)


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The p-norm over dimensions, 'fro' for the 2-norm, 'nuc' for the sum of the singular values of matrices."""
    if p == "nuc":
        if dim is None:
            if input.dim() != 2:
                raise RuntimeError(f"norm: p='nuc' needs a matrix or two dimensions dim, got shape {list(input.shape)}")
            dim = (0, 1)
        return _ops.linalg_matrix_norm(input, "nuc", dim, keepdim, dtype=dtype, out=out)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"norm: unknown order {p!r}")
    if p is None or p == "fro":
        p = 2.0
    return linalg_vector_norm(input, p, dim, keepdim, dtype=dtype, out=out)


def logcumsumexp(input, dim, *, out=None):
    """log of the running sum of exponentials. Sums of 1, 2, 4, ... elements join by logaddexp: each is shifted by its own largest term, so that
    neither a large nor a not finite element reaches those before it. Of complex numbers they join one by one: the multiple of 2 pi in the
    imaginary part depends on the order, and PyTorch's is that one."""
    cdef int64_t n, i, reach = 1
    as_tensor_arg(input, "logcumsumexp", "input")
    if out is not None:
        check_out(out, "logcumsumexp")
        check_no_overlap("logcumsumexp", <TensorBase>out, <TensorBase>input, True)
    if category[(<TensorBase>input).dtype] < CAT_FLOAT:
        raise NotImplementedError(f"\"logcumsumexp\" not implemented for '{dtype_text(input.dtype)}'")
    n = (input if input.ndim else input.unsqueeze(0)).size(dim)
    if category[(<TensorBase>input).dtype] == CAT_COMPLEX and input.ndim and n:
        sums = list(input.unbind(dim))
        sums[0] = _ops.where(sums[0].isnan(), complex(NAN, NAN), _ops.where(sums[0].real == -INFINITY, complex(-INFINITY, 0), sums[0]))
        for i in range(1, n):
            sums[i] = sums[i].logaddexp(sums[i - 1])
        return deliver_result("logcumsumexp", _ops.stack(sums, dim), out, True)
    r = input.float() if input.dtype.itemsize == 2 else input
    while reach < n:
        r = _ops.cat((r.narrow(dim, 0, reach), r.narrow(dim, reach, n - reach).logaddexp(r.narrow(dim, 0, n - reach))), dim)
        reach *= 2
    return deliver_result("logcumsumexp", r.to(input.dtype) if r is not input else input.clone(), out, True)
