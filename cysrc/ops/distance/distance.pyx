# cdist and pdist: checks and shapes for all devices. Gradients are a step of their own where nothing records them, else a composition.
from tensorrt_lite._C.core.device import contiguous_format
from tensorrt_lite._C.ops.memory cimport memory_of
from tensorrt_lite._C.steps.distance cimport (
    DISTANCE_COUNT, DISTANCE_GENERAL, DISTANCE_LARGEST, DISTANCE_ONE, DISTANCE_THREE, DISTANCE_TWO, distance_call, run_row_distances, run_row_distances_gradient)


cdef int kind_of(double p) noexcept:
    if p == 0:
        return DISTANCE_COUNT
    if p == 1:
        return DISTANCE_ONE
    if p == 2:
        return DISTANCE_TWO
    if p == 3:
        return DISTANCE_THREE
    return DISTANCE_LARGEST if p == float("inf") else DISTANCE_GENERAL


cdef int fill_call(distance_call* call, TensorBase x1, TensorBase x2, double p, bint pairs) except -1:
    """Sizes of contiguous rows (*, n, d) and (*, m, d)."""
    cdef int k
    call.batches = 1
    for k in range(x1.ndim - 2):
        call.batches *= x1.sizes[k]
    call.n, call.m, call.d = x1.sizes[x1.ndim - 2], x2.sizes[x2.ndim - 2], x1.sizes[x1.ndim - 1]
    call.p, call.kind, call.pairs = p, kind_of(p), pairs
    call.grad = call.distances = NULL
    call.row_step = call.column_step = 0
    return 0


cdef TensorBase row_distances_impl(TensorBase x1, TensorBase x2, double p):
    cdef distance_call call
    cdef TensorBase out = meta__row_distances(x1, x2, p)
    if out.numel:
        x1, x2 = contiguous_of(x1), contiguous_of(x2)
        fill_call(&call, x1, x2, p, False)
        run_row_distances(x1.device_type, &call, x1, x2, out)
    return out


cdef TensorBase pair_distances_impl(TensorBase self, double p):
    cdef distance_call call
    cdef TensorBase out = meta__pair_distances(self, p), x
    if out.numel:
        x = contiguous_of(self)
        fill_call(&call, x, x, p, True)
        run_row_distances(x.device_type, &call, x, x, out)
    return out


# ---- gradients ---------------------------------------------------------------------------------------------------------

cdef bint is_composed(object grad, object x1, object x2):
    """Whether the gradient is recorded, carries tangents or runs in a transform."""
    return grad_mode() or ((<TensorBase?>grad).keys | (<TensorBase?>x1).keys | (<TensorBase?>x2).keys) & (K_WRAPPED | K_FORWARD_AD) != 0


cdef object difference_gradient(object grad, object difference, object distances, double p):
    """The gradient of differences (*, d) from that of their norms (*): where several elements are the largest, each has all of it, as in PyTorch."""
    g, r = grad.unsqueeze(-1), distances.unsqueeze(-1)
    if p == 0:
        return _ops.zeros_like(difference) * g
    if p == 1:
        return difference.sign() * g
    if p == float("inf"):
        return difference.sign() * (difference.abs() == r) * g
    zero = r == 0
    if p == 2:
        return difference * (g / r.masked_fill(zero, 1)).masked_fill(zero, 0)
    zero = zero | (difference == 0)
    return difference.sign() * (difference.abs().masked_fill(zero, 1).pow(p - 1) * g * r.masked_fill(r == 0, 1).pow(1 - p)).masked_fill(zero, 0)


cdef TensorBase gradient_step(TensorBase rows, TensorBase others, TensorBase grad, TensorBase distances, double p, bint pairs, bint swapped):
    cdef distance_call call
    cdef TensorBase r = empty_tensor(rows.ndim, rows.sizes, rows.dtype, place_of(rows)), g = contiguous_of(grad), kept = held(contiguous_of(distances))
    cdef int64_t n = rows.sizes[rows.ndim - 2], count
    if r.numel:
        count = n * (n - 1) // 2 if pairs else rows.numel // rows.sizes[rows.ndim - 1] * others.sizes[others.ndim - 2]
        check_saved("pdist" if pairs else "cdist", g, rows.dtype, count, rows)
        check_saved("pdist" if pairs else "cdist", kept, rows.dtype, count, rows)
        rows, others = contiguous_of(rows), contiguous_of(others)
        fill_call(&call, rows, others, p, pairs)
        call.row_step, call.column_step = 1 if swapped else call.m, call.n if swapped else 1
        call.distances = memory_of(kept)
        run_row_distances_gradient(rows.device_type, &call, rows, others, g, r)
    return r


cdef object rows_gradient(object grad, object x1, object x2, object distances, double p, bint second):
    if is_composed(grad, x1, x2):
        d = difference_gradient(grad, x1.unsqueeze(-2) - x2.unsqueeze(-3), distances, p)
        return -d.sum(-3) if second else d.sum(-2)
    if p == 0 or not grad.numel():
        return _ops.zeros_like(x2 if second else x1, memory_format=contiguous_format)
    if second:
        return gradient_step(<TensorBase>x2, <TensorBase>x1, <TensorBase>grad, <TensorBase>distances, p, False, True)
    return gradient_step(<TensorBase>x1, <TensorBase>x2, <TensorBase>grad, <TensorBase>distances, p, False, False)


cdef object pairs_gradient(object grad, object x, object distances, double p):
    if is_composed(grad, x, x):
        first, second = _ops.triu_indices(x.shape[0], x.shape[0], 1, device=x.device).unbind(0)
        d = difference_gradient(grad, x.index_select(0, first) - x.index_select(0, second), distances, p)
        return (_ops.zeros_like(x) + 0 * d.sum()).index_add(0, first, d).index_add(0, second, -d)
    if p == 0 or not grad.numel():
        return _ops.zeros_like(x, memory_format=contiguous_format)
    return gradient_step(<TensorBase>x, <TensorBase>x, <TensorBase>grad, <TensorBase>distances, p, True, False)
