# segment_reduce: checks and shapes for all devices, and its gradient by recorded operators.
from tensorrt_lite._C.steps.segment cimport (
    SEGMENT_MAX, SEGMENT_MEAN, SEGMENT_MIN, SEGMENT_PROD, SEGMENT_SUM, run_check_lengths, run_segment_reduce, segment_call, set_check_lengths)

cdef dict OPERATIONS = {"sum": SEGMENT_SUM, "mean": SEGMENT_MEAN, "max": SEGMENT_MAX, "amax": SEGMENT_MAX, "min": SEGMENT_MIN, "amin": SEGMENT_MIN, "prod": SEGMENT_PROD}


cdef int operation_of(str reduce) except -1:
    if reduce not in OPERATIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    return OPERATIONS[reduce]


cdef object offsets_of(object lengths, object offsets):
    """(*, segments + 1), int64."""
    if offsets is not None:
        return offsets.to(dtype_of(I64))
    return _ops.pad(lengths.to(dtype_of(I64)).cumsum(-1), (1, 0))


cdef int check_lengths(TensorBase lengths, int64_t n) except -1:
    if bool((<object>lengths < 0).any()):
        raise RuntimeError("lengths contains negative value!")
    # a sum may wrap: each length is looked at, too
    if bool((<object>lengths > n).any()) or not bool((<object>lengths.sum(-1) == n).all()):
        raise RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.")
    return 0


# made of other operators, so the same wherever there are numbers to look at
set_check_lengths(DEV_CPU, check_lengths)
set_check_lengths(DEV_CUDA, check_lengths)


cdef TensorBase segment_reduce_impl(TensorBase data, object reduce, TensorBase lengths, TensorBase indices, TensorBase offsets, int64_t axis, bint unsafe, const Scalar* initial):
    cdef segment_call call
    cdef int operation = operation_of(reduce), code = F64 if data.dtype == F64 else F32, i
    cdef TensorBase given = lengths if offsets is None else offsets, places, out
    cdef int64_t sizes[MAX_DIMS]
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    what = "lengths" if offsets is None else "offsets"
    if given.ndim == 0 or data.ndim < given.ndim:
        raise RuntimeError(f"segment_reduce(): Expected data to have at least as many dimensions as {what}, which needs one or more, but got {what} of shape {shape_text(given)} for data of shape {shape_text(data)}")
    axis = wrap_dim(axis, data.ndim)
    if category[data.dtype] != CAT_FLOAT:
        raise NotImplementedError(f"\"_segment_reduce\" not implemented for '{dtype_text(data.dtype)}'")
    if given.dtype != I64 and given.dtype != I32:
        raise NotImplementedError(f"\"_segment_reduce_{what}\" not implemented for '{dtype_text(given.dtype)}'")
    if axis != given.ndim - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {what} but got {axis}.")
    if place_of(given) != place_of(data):
        raise RuntimeError(f"segment_reduce(): Expected all tensors to be on the same device, but found at least two devices, {(<object>data).device} and {(<object>given).device}!")
    call.outer = call.inner = 1
    for i in range(data.ndim):
        sizes[i] = data.sizes[i]
        if i < axis:
            call.outer *= data.sizes[i]
            if given.sizes[i] != data.sizes[i]:
                raise RuntimeError(f"segment_reduce(): expected {what} of the data's sizes before axis, got {shape_text(given)} for {shape_text(data)}")
        elif i > axis:
            call.inner *= data.sizes[i]
    if offsets is not None and given.sizes[axis] == 0:
        raise RuntimeError("segment_reduce(): offsets needs a place behind the last segment, got none")
    call.n, call.segments = data.sizes[axis], given.sizes[axis] - (offsets is not None)
    sizes[axis] = call.segments
    if offsets is None and not unsafe and given.numel:
        run_check_lengths(given.device_type, given, call.n)
    call.operation, call.empty_mean = operation, initial == NULL
    if initial == NULL:
        call.initial = 1 if operation == SEGMENT_PROD else 0
        if operation == SEGMENT_MAX or operation == SEGMENT_MIN:
            call.initial = float("-inf") if operation == SEGMENT_MAX else float("inf")
    else:
        check_number(initial, data.dtype)
        call.initial = <double>initial.i if initial.kind <= 1 else initial.d
    out = empty_tensor(data.ndim, sizes, code, place_of(data))
    if out.numel:
        places = contiguous_of(<TensorBase>offsets_of(lengths, offsets))
        run_segment_reduce(data.device_type, &call, contiguous_of(cast_to(data, code)), places, out)
    return cast_to(out, data.dtype)


# ---- gradient ----------------------------------------------------------------------------------------------------------

cdef object segment_gradient(object grad, object result, object data, object reduce, object lengths, object offsets, int64_t axis, object initial):
    """Each element's segment is looked up, its gradient, result and length are gathered. It has no derivative, as in PyTorch."""
    cdef int operation = operation_of(reduce)
    axis = wrap_dim(axis, (<TensorBase?>data).ndim)
    places = offsets_of(lengths, offsets)
    shape = data.shape
    n, segments = shape[axis], places.shape[-1] - 1
    if segments == 0 or data.numel() == 0:
        return _ops.zeros_like(data)
    with_grad = grad_mode() or (<TensorBase?>data).keys & K_WRAPPED != 0     # of a lower level, where recording may be on
    g, x, r = grad.detach(), data.detach(), result.detach()
    positions = _ops.arange(n, device=x.device).expand(list(shape[:axis]) + [n]).contiguous()
    which = _ops.searchsorted(places.contiguous(), positions, right=True) - 1
    valid = (which >= 0) & (which < segments)
    which = which.clamp(0, segments - 1)
    tail = [1] * (len(shape) - axis - 1)
    index = which.reshape(list(which.shape) + tail).expand(shape)
    mask = valid.reshape(list(valid.shape) + tail)
    d = g.gather(axis, index)
    if operation == SEGMENT_MEAN:
        counts = (places[..., 1:] - places[..., :-1]).clamp_min(1).to(x.dtype)
        d = d / counts.gather(-1, which).reshape(mask.shape)
    elif operation == SEGMENT_MAX or operation == SEGMENT_MIN:
        chosen = (_ops.eq(x, r.gather(axis, index)) | x.isnan()) & mask
        shares = _ops.zeros_like(r).scatter_add(axis, index, chosen.to(x.dtype))
        d = _ops.where(chosen, d / shares.gather(axis, index).clamp_min(1), _ops.zeros_like(d))
    elif operation == SEGMENT_PROD:
        # the product of the others: by division where there is no zero, by that of all but zeros where it is the only one
        zero = _ops.eq(x, 0) & mask
        zeros = _ops.zeros_like(r).scatter_add(axis, index, zero.to(x.dtype))
        nonzero = _ops.where(zero, _ops.ones_like(x), x)
        others = op_segment_reduce(<TensorBase>nonzero, reduce, <TensorBase>lengths, None, <TensorBase>offsets, axis, True, NULL)
        if initial is not None:
            others = others * initial
        count, product = zeros.gather(axis, index), (<object>others).gather(axis, index)
        exclusive = _ops.where(zero, _ops.where(_ops.eq(count, 1), product, _ops.zeros_like(x)), _ops.where(_ops.eq(count, 0), product / nonzero, _ops.zeros_like(x)))
        d = d * exclusive
    d = _ops.where(mask, d, _ops.zeros_like(d))
    return without_derivative(d, "aten::_segment_reduce_backward", (grad, data)) if with_grad else d
