# Losses over class indices, and the entries of all losses. The steps see rows: (N, C) logits, or (N, C, inner); the kernels
# bring other shapes to these. reduction: 0 none, 1 mean, 2 sum. Steps of the CPU are in cpu.pyx, of CUDA in
# cysrc/cuda/softmax.pyx.
from tensorrt_lite._C.core.hints import hinted
from tensorrt_lite._C.autograd.operator_nodes import flat_gradient
from tensorrt_lite._C.ops.loss.rows cimport lies_by_rows
from tensorrt_lite._C.steps.loss cimport (
    LOSS_MEAN as MEAN, LOSS_NONE as NONE, LOSS_SUM as SUM, class_loss, ctc_args, run_cross_entropy, run_cross_entropy_backward, run_ctc_loss, run_ctc_loss_backward,
    run_nll_loss, run_nll_loss_backward)


cdef int real_code(TensorBase x, str name) except -1:
    if category[x.dtype] != CAT_FLOAT:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype_text(x.dtype)}'")
    return F64 if x.dtype == F64 else F32


cdef TensorBase class_indices(TensorBase target, str name):
    if target.dtype == U8:
        target = cast_to(target, I64)
    if target.dtype != I64:
        raise hinted("class targets", RuntimeError(f"{name}{': ' * (name != '')}expected target dtype to be Long or Byte, but got {dtype_text(target.dtype)}"))
    return contiguous_of(target)


cdef TensorBase class_weights(TensorBase weight, int64_t classes, int code):
    if weight is None:
        return None
    if weight.ndim != 1 or weight.numel != classes:
        raise RuntimeError(f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {shape_text(weight)}")
    return contiguous_of(cast_to(weight, code))


cdef int fill_call(class_loss* call, int64_t rows, int64_t classes, int64_t inner, int64_t reduction, int64_t ignore_index, double smoothing) except -1:
    call.rows, call.classes, call.inner = rows, classes, inner
    call.ignore_index = ignore_index
    call.smoothing = smoothing
    call.reduction = <int>reduction
    return 0


cdef TensorBase loss_tensor(TensorBase like, TensorBase target, int64_t reduction):
    """What a loss goes to: one number, or one a target."""
    return empty_tensor(target.ndim if reduction == NONE else 0, target.sizes, like.dtype, place_of(like))


cdef int check_gradient_sizes(str name, TensorBase grad, TensorBase target, int64_t reduction) except -1:
    if grad.numel != (target.numel if reduction == NONE else 1) or reduction == NONE and grad.ndim == 0 and target.ndim:
        raise RuntimeError(f"{name}: a gradient of shape {shape_text(grad)} does not fit a target of shape {shape_text(target)}")
    return 0


# ---- nll_loss ------------------------------------------------------------------------------------------------------

cdef TensorBase by_samples(TensorBase x):
    """(C), (N, C) or (N, C, *) as (N, C, inner), in memory of the same order where it can be."""
    cdef int64_t sizes[3]
    cdef int64_t strides[3]
    cdef int i
    if x.ndim == 3:
        return x
    if x.ndim > 3:
        x = contiguous_of(x)
    sizes[0], sizes[1], sizes[2] = 1 if x.ndim == 1 else x.sizes[0], x.sizes[0 if x.ndim == 1 else 1], 1
    for i in range(2, x.ndim):
        sizes[2] *= x.sizes[i]
    strides[0], strides[1], strides[2] = 0 if x.ndim == 1 else x.strides[0], x.strides[0 if x.ndim == 1 else 1], 1
    return make_view(x, 3, sizes, strides, x.offset)


cdef int check_nll(str name, int spatial, TensorBase self, TensorBase target) except -1:
    """Log-probabilities (N, C) or (C) and targets (N) or (), of images (N, C, H, W) and (N, H, W)."""
    cdef bint single = self.ndim == 1 and target.ndim == 0
    if spatial:
        if target.ndim != 3:
            raise RuntimeError(f"{name}: only batches of spatial targets supported (3D tensors) but got targets of size: {shape_text(target)}")
        if self.ndim != 4:
            raise RuntimeError(f"{name}: only batches of spatial inputs supported (4D tensors), but got input of size: {shape_text(self)}")
        if self.sizes[0] != target.sizes[0] or self.sizes[2] != target.sizes[1] or self.sizes[3] != target.sizes[2]:
            raise RuntimeError(f"{name}: size mismatch (got input: {shape_text(self)}, target: {shape_text(target)})")
        return 0
    if self.ndim < 1 or self.ndim > 2:
        raise RuntimeError(f"{name}: input tensor should be 1D or 2D, got {shape_text(self)}")
    if target.ndim > 1:
        raise RuntimeError(f"{name}: 0D or 1D target tensor expected, multi-target not supported, got {shape_text(target)}")
    if not single and (self.ndim == 1 or target.ndim == 0 or self.sizes[0] != target.sizes[0]):
        raise RuntimeError(f"{name}: size mismatch (got input: {shape_text(self)}, target: {shape_text(target)})")
    return 0


cdef object nll_forward(str name, int spatial, TensorBase self, TensorBase target, TensorBase weight, int64_t reduction, int64_t ignore_index):
    """Loss, sum of the weights."""
    cdef int code = real_code(self, "nll_loss")
    cdef class_loss call
    cdef TensorBase x, t, w, loss, total_weight
    check_nll(name, spatial, self, target)
    check_reduction(reduction)
    x = by_samples(self)
    t = class_indices(target, "")
    w = class_weights(weight, x.sizes[1], code)
    fill_call(&call, t.numel, x.sizes[1], x.sizes[2], reduction, ignore_index, 0)
    loss = loss_tensor(self, t, reduction)
    total_weight = empty_tensor(0, NULL, code, place_of(self))
    run_nll_loss(self.device_type, &call, x, t, w, loss, total_weight)
    return loss, total_weight


cdef TensorBase nll_backward(str name, int spatial, TensorBase grad, TensorBase self, TensorBase target, TensorBase weight, int64_t reduction, int64_t ignore_index,
                             TensorBase total_weight):
    """The loss is linear in its input: a scatter of the gradients times the weights."""
    cdef int code = real_code(self, "nll_loss")
    cdef class_loss call
    cdef TensorBase d = empty_tensor(self.ndim, self.sizes, self.dtype, place_of(self)), x
    check_nll(name, spatial, self, target)
    check_reduction(reduction)
    check_gradient_sizes("nll_loss", grad, target, reduction)
    check_saved("nll_loss", total_weight, code, 1, d)
    if d.numel:
        x = by_samples(d)
        fill_call(&call, target.numel, x.sizes[1], x.sizes[2], reduction, ignore_index, 0)
        run_nll_loss_backward(d.device_type, &call, grad, class_indices(target, ""), class_weights(weight, x.sizes[1], code), total_weight, x)
    return d


cdef object nll_loss_forward_impl(TensorBase self, TensorBase target, TensorBase weight, int64_t reduction, int64_t ignore_index):
    return nll_forward("nll_loss_forward", 0, self, target, weight, reduction, ignore_index)


cdef object nll_loss2d_forward_impl(TensorBase self, TensorBase target, TensorBase weight, int64_t reduction, int64_t ignore_index):
    return nll_forward("nll_loss2d_forward", 2, self, target, weight, reduction, ignore_index)


cdef TensorBase nll_loss_backward_impl(TensorBase grad_output, TensorBase self, TensorBase target, TensorBase weight, int64_t reduction, int64_t ignore_index,
                                       TensorBase total_weight):
    return nll_backward("nll_loss_backward", 0, grad_output, self, target, weight, reduction, ignore_index, total_weight)


cdef TensorBase nll_loss2d_backward_impl(TensorBase grad_output, TensorBase self, TensorBase target, TensorBase weight, int64_t reduction, int64_t ignore_index,
                                         TensorBase total_weight):
    return nll_backward("nll_loss2d_backward", 2, grad_output, self, target, weight, reduction, ignore_index, total_weight)


cdef object picked_weights(object target, object weight, int64_t ignore_index, object dtype, int64_t classes):
    """Per target: its class weight, 0 where it is ignored; and targets that are valid everywhere."""
    valid = _ops.ne(target, ignore_index)
    safe = target.to(dtype_of(I64)).masked_fill(~valid, 0)
    w = valid.to(dtype) if weight is None else weight.detach().to(dtype).index_select(0, safe.reshape(-1)).reshape(safe.shape) * valid
    return w, safe


# ---- cross_entropy -------------------------------------------------------------------------------------------------

cdef object cross_entropy_impl(TensorBase self, TensorBase target, TensorBase weight, int64_t reduction, int64_t ignore_index, double label_smoothing):
    """self (N, C, *), target (N, *), or (C) and (): loss, logsumexp of the rows, sum of the weights."""
    cdef int code = real_code(self, "cross_entropy_loss"), i
    cdef class_loss call
    cdef TensorBase x, t, w, loss, lse, total_weight
    check_class_sizes(self, target)
    check_reduction(reduction)
    x = self if self.ndim == 2 else by_samples(self)
    t = class_indices(target, "")
    w = class_weights(weight, x.sizes[1], code)
    fill_call(&call, t.numel, x.sizes[1], x.sizes[2] if x.ndim == 3 else 1, reduction, ignore_index, label_smoothing)
    loss = loss_tensor(self, t, reduction)
    lse = empty_tensor(1, &t.numel, code, place_of(self))
    total_weight = empty_tensor(0, NULL, code, place_of(self))
    run_cross_entropy(self.device_type, &call, x, t, w, loss, lse, total_weight)
    return loss, lse, total_weight


cdef int check_class_sizes(TensorBase x, TensorBase t) except -1:
    """Logits (N, C, *) and class indices (N, *), or (C) and ()."""
    cdef int i
    if x.ndim == 1:
        if t.ndim:
            raise hinted("batch sizes", RuntimeError(f"Expected input batch_size to match target: input {shape_text(x)}, target {shape_text(t)}"))
        return 0
    if x.ndim < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {x.ndim})")
    if t.ndim == 0 or x.sizes[0] != t.sizes[0]:
        raise hinted("batch sizes", ValueError(f"Expected input batch_size ({x.sizes[0]}) to match target batch_size ({t.sizes[0] if t.ndim else 0})."))
    if x.ndim == 2 and t.ndim != 1:
        raise hinted("batch sizes", RuntimeError("0D or 1D target tensor expected, multi-target not supported"))
    for i in range(x.ndim - 1):
        if t.ndim != x.ndim - 1 or i and t.sizes[i] != x.sizes[i + 1]:
            raise RuntimeError(f"Expected target size {[x.sizes[0]] + list((<object>x).shape[2:])}, got {list((<object>t).shape)}")
    return 0


cdef object cross_entropy_gradient(object grad, object self, object target, object weight, object lse, object total_weight, int64_t reduction,
                                   int64_t ignore_index, double smoothing):
    cdef class_loss call
    cdef TensorBase x = self, d, planes
    cdef int64_t classes = x.sizes[0 if x.ndim == 1 else 1]
    if grad is None:
        return None
    if not grad_mode():
        d = empty_strided_tensor(x.ndim, x.sizes, x.strides, x.dtype, place_of(x)) if lies_by_rows(x) else empty_tensor(x.ndim, x.sizes, x.dtype, place_of(x))
        if d.numel:
            check_saved("cross_entropy", <TensorBase?>lse, F64 if x.dtype == F64 else F32, x.numel // classes, x)
            check_saved("cross_entropy", <TensorBase?>total_weight, F64 if x.dtype == F64 else F32, 1, x)
            if (<TensorBase?>target).numel != x.numel // classes:
                raise RuntimeError(f"cross_entropy: a target of shape {shape_text(<TensorBase>target)} does not fit an input of shape {shape_text(x)}")
            check_gradient_sizes("cross_entropy", <TensorBase?>grad, <TensorBase>target, reduction)
            planes = x if x.ndim == 2 else by_samples(x)
            fill_call(&call, x.numel // classes, classes, planes.sizes[2] if planes.ndim == 3 else 1, reduction, ignore_index, smoothing)
            run_cross_entropy_backward(x.device_type, &call, grad, planes, class_indices(target, ""), class_weights(weight, classes, F64 if x.dtype == F64 else F32), lse,
                                       total_weight, d if x.ndim == 2 else by_samples(d))
        return d
    if x.ndim == 1:
        return cross_entropy_gradient(grad.reshape(1) if reduction == NONE else grad, self.unsqueeze(0), target.unsqueeze(0), weight, lse, total_weight, reduction,
                                      ignore_index, smoothing).squeeze(0)
    w_, safe = picked_weights(target, weight, ignore_index, self.dtype, classes)
    per_row = grad if reduction != MEAN else grad / total_weight.detach().to(self.dtype)
    valid = _ops.ne(target, ignore_index).to(self.dtype)
    every = _ops.ones_like(w_).unsqueeze(1) if weight is None else weight.detach().to(self.dtype).reshape((1, -1) + (1,) * (self.dim() - 2))
    share = valid.unsqueeze(1) * every * (smoothing / classes)
    picked = _ops.zeros_like(self).detach().scatter(1, safe.unsqueeze(1), (w_ * (1 - smoothing)).unsqueeze(1)) + share
    difference = _ops.softmax(self, 1) * picked.sum(1, True) - picked
    return difference * (per_row.unsqueeze(1) if reduction == NONE else per_row)


# ---- ctc_loss --------------------------------------------------------------------------------------------------------

cdef int64_t ctc_length(object n, str what, int64_t most) except -1:
    cdef int64_t length = n
    if length < 0:
        raise RuntimeError(f"Expected {what} to have value at least 0, but got value {length} (while checking arguments for ctc_loss)")
    if most >= 0 and length > most:
        raise RuntimeError(f"Expected {what} to have value at most {most}, but got value {length} (while checking arguments for ctc_loss)")
    return length


cdef TensorBase ctc_call(ctc_args* a, TensorBase log_probs, TensorBase targets, object input_lengths, object target_lengths, int64_t blank, bint zero_infinity):
    """Fills in the sizes; the lengths and places of all samples (3, N)."""
    cdef int64_t sizes[2]
    cdef int64_t i, batch, longest = 0, total = 0
    cdef TensorBase lengths
    cdef int64_t* p
    if log_probs.dtype != F32 and log_probs.dtype != F64:
        raise NotImplementedError(f"\"ctc_loss\" not implemented for '{dtype_text(log_probs.dtype)}'")
    if log_probs.ndim != 3:
        raise RuntimeError(f"ctc_loss: expected log_probs of 3 dimensions, got {log_probs.ndim}")
    if targets.ndim != 1 and targets.ndim != 2:
        raise RuntimeError(f"ctc_loss: expected targets of 1 or 2 dimensions, got {targets.ndim}")
    if log_probs.numel == 0:
        raise RuntimeError(f"ctc_loss: log_probs tensor must not be empty, got one of shape {shape_text(log_probs)}")
    batch = log_probs.sizes[1]
    if blank < 0 or blank >= log_probs.sizes[2]:
        raise RuntimeError("blank must be in label range")
    if len(input_lengths) != batch:
        raise RuntimeError("input_lengths must be of size batch_size")
    if len(target_lengths) != batch:
        raise RuntimeError("target_lengths must be of size batch_size")
    if targets.ndim == 2 and targets.sizes[0] != batch:
        raise RuntimeError(f"Expected tensor to have size {batch} at dimension 0, but got size {targets.sizes[0]} for argument #2 'targets' (while checking arguments for ctc_loss)")
    sizes[0], sizes[1] = 3, batch
    lengths = empty_tensor(2, sizes, I64, DEV_CPU)
    p = <int64_t*>data_of(lengths)
    for i in range(batch):
        p[i] = ctc_length(input_lengths[i], "input_lengths", log_probs.sizes[0])
        p[batch + i] = ctc_length(target_lengths[i], "target_lengths", -1)
        p[2 * batch + i] = i * targets.sizes[1] if targets.ndim == 2 else total
        # of targets in one row none is longer than the row, so their sum does not wrap
        if targets.ndim == 1 and p[batch + i] > targets.sizes[0] - total:
            raise RuntimeError(f"Expected tensor to have size {sum([int(n) for n in target_lengths])} at dimension 0, but got size {targets.sizes[0]} for argument #2 'targets' (while checking arguments for ctc_loss)")
        total += p[batch + i]
        longest = max(longest, p[batch + i])
    if targets.ndim == 2 and longest > targets.sizes[1]:
        raise RuntimeError(f"Expected tensor to have size at least {longest} at dimension 1, but got size {targets.sizes[1]} for argument #2 'targets' (while checking arguments for ctc_loss)")
    if targets.ndim == 1 and total != targets.sizes[0]:
        raise RuntimeError(f"Expected tensor to have size {total} at dimension 0, but got size {targets.sizes[0]} for argument #2 'targets' (while checking arguments for ctc_loss)")
    memset(a, 0, sizeof(ctc_args))
    a.steps, a.batch, a.classes, a.blank, a.span = log_probs.sizes[0], batch, log_probs.sizes[2], blank, 2 * longest + 1
    a.is_double, a.zero_infinity = log_probs.dtype == F64, zero_infinity
    return lengths


cdef TensorBase ctc_targets(TensorBase targets, TensorBase log_probs):
    if category[targets.dtype] == CAT_COMPLEX:
        raise RuntimeError(f"ctc_loss: expected targets of an integer type, got {dtype_text(targets.dtype)}")
    if place_of(targets) != place_of(log_probs):
        targets = <TensorBase?>_ops.to(targets, (<object>log_probs).device)
    return contiguous_of(cast_to(targets, I64))


cdef object ctc_loss_impl(TensorBase log_probs, TensorBase targets, object input_lengths, object target_lengths, int64_t blank, bint zero_infinity):
    cdef ctc_args a
    cdef int64_t sizes[3]
    cdef TensorBase lengths = ctc_call(&a, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity), loss, log_alpha
    sizes[0], sizes[1], sizes[2] = a.batch, a.steps, a.span
    loss = empty_tensor(1, sizes, log_probs.dtype, place_of(log_probs))
    log_alpha = empty_tensor(3, sizes, log_probs.dtype, place_of(log_probs))
    if a.batch:
        run_ctc_loss(log_probs.device_type, &a, contiguous_of(log_probs), ctc_targets(targets, log_probs), lengths, loss, log_alpha)
    return loss, log_alpha


cdef TensorBase ctc_loss_backward_impl(TensorBase grad, TensorBase log_probs, TensorBase targets, object input_lengths, object target_lengths,
                                       TensorBase neg_log_likelihood, TensorBase log_alpha, int64_t blank, bint zero_infinity):
    cdef ctc_args a
    cdef TensorBase lengths = ctc_call(&a, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity), d, g
    d = empty_tensor(3, log_probs.sizes, log_probs.dtype, place_of(log_probs))
    if grad.dtype != log_probs.dtype or neg_log_likelihood.dtype != log_probs.dtype or log_alpha.dtype != log_probs.dtype:
        raise RuntimeError("_ctc_loss_backward: expected all tensors to have the same dtype")
    if grad.ndim != 1 or grad.numel != a.batch or neg_log_likelihood.numel != a.batch or log_alpha.numel != a.batch * a.steps * a.span:
        raise RuntimeError(f"_ctc_loss_backward: gradients {shape_text(grad)}, losses {shape_text(neg_log_likelihood)} and probabilities {shape_text(log_alpha)} do not fit")
    a.grad_stride = grad.strides[0] if a.batch > 1 else 0
    if a.grad_stride != 0 and a.grad_stride != 1:
        grad = contiguous_of(grad)
        a.grad_stride = 1
    if d.numel:
        run_ctc_loss_backward(log_probs.device_type, &a, grad, contiguous_of(log_probs), ctc_targets(targets, log_probs), lengths, contiguous_of(neg_log_likelihood),
                              contiguous_of(log_alpha), d)
    return d


cdef object ctc_gradient(object grad, object log_probs, object targets, object input_lengths, object target_lengths, object loss, object log_alpha, int64_t blank,
                         bint zero_infinity):
    """It has no derivative, as in PyTorch."""
    if grad is None:
        return None
    d = _ops._ctc_loss_backward(grad, log_probs, targets, input_lengths, target_lengths, loss, log_alpha, blank, zero_infinity)
    return without_derivative(d, "aten::_ctc_loss_backward", (grad, log_probs)) if grad_mode() or (<TensorBase?>log_probs).keys & K_WRAPPED else d


# ---- entries -------------------------------------------------------------------------------------------------------

cdef TensorBase reduced(TensorBase elements, int64_t reduction):
    if reduction == MEAN:
        return op_mean(elements, NULL, False, -1, None, FRESH)
    if reduction == SUM:
        return op_sum(elements, NULL, False, -1, None, FRESH)
    return elements


cdef int check_reduction(int64_t reduction) except -1:
    if reduction < 0 or reduction > 2:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return 0


def l1_loss(input, target, reduction=1):
    """|input - target|, reduced."""
    check_reduction(reduction)
    # the difference is kept for the backward pass, so that either operand may be written to before it
    return reduced(<TensorBase?>_ops.abs(_ops.sub(as_tensor_arg(input, "l1_loss", "input"), as_tensor_arg(target, "l1_loss", "target"))), reduction)


cdef inline void real_param(Scalar* s, double v) noexcept:
    s.kind = 2
    s.d = v
    s.im = 0
    s.i = <int64_t>v


# ---- ATen's losses of two tensors: elements by one loop, reduced -----------------------------------------------------

cdef TensorBase pair_loss(int which, TensorBase self, TensorBase target, double param, int64_t reduction):
    """The loss `which` of pw_loss; param: its parameter, where it has one."""
    cdef Scalar s
    cdef uint64_t before
    check_reduction(reduction)
    real_param(&s, param)
    before = enter_kernel()
    try:
        return reduced(call2(&pw_loss[which], self, target, &s, None, FRESH), reduction)
    finally:
        leave_kernel(before)


cdef object spread_gradient(object grad, object self, object target, int64_t reduction):
    """The gradient of each element's loss; a number stays one, which broadcasts."""
    if reduction != MEAN:
        return grad
    return _ops.div(grad, broadcast_numel(<TensorBase?>self, <TensorBase?>target))


cdef int64_t broadcast_numel(TensorBase a, TensorBase b) noexcept:
    """How many elements two operands have beside each other, whose sizes fit."""
    cdef int64_t n = 1, x, y
    cdef int i
    for i in range(1, max(a.ndim, b.ndim) + 1):
        x, y = a.sizes[a.ndim - i] if i <= a.ndim else 1, b.sizes[b.ndim - i] if i <= b.ndim else 1
        n *= y if x == 1 else x
    return n


cdef object composed_gradient(int which, int i, object grad, object self, object target, double param, int64_t reduction):
    """The gradient of a loss by its operand i, made of operators that record."""
    cdef PyObject* slots[5]
    cdef Scalar s
    real_param(&s, param)
    g = spread_gradient(grad, self, target, reduction)
    slots[0], slots[1], slots[2], slots[3], slots[4] = <PyObject*>g, <PyObject*>self, <PyObject*>target, <PyObject*>None, <PyObject*>None
    r = input_derivative(&pw_loss[which], i, slots, &s, True)
    return reduce_gradient(<TensorBase?>r, input_meta(<TensorBase?>(self if i == 0 else target)))


cdef TensorBase pair_gradient(str name, int which, TensorBase grad, TensorBase self, TensorBase target, double param, int64_t reduction):
    """The gradient of a loss by its first operand, in one pass over the elements."""
    cdef PyObject* slots[5]
    cdef Scalar s
    cdef uint64_t before
    check_reduction(reduction)
    if reduction != NONE and grad.numel != 1:
        raise RuntimeError(f"{name}: expected a gradient of one element, got one of shape {shape_text(grad)}")
    real_param(&s, param)
    before = enter_kernel()
    try:
        g = spread_gradient(grad, self, target, reduction)
        slots[0], slots[1], slots[2], slots[3], slots[4] = <PyObject*>g, <PyObject*>self, <PyObject*>target, <PyObject*>None, <PyObject*>None
        r = input_derivative(&pw_loss[which], 0, slots, &s, False)
        return reduce_gradient(<TensorBase?>r, input_meta(self))
    finally:
        leave_kernel(before)


cdef inline bint records(TensorBase a, TensorBase b, TensorBase c) noexcept:
    """Whether a gradient is made of operators, which record it and pass tangents on."""
    return (a.keys | b.keys | c.keys) & K_FORWARD_AD or tls().grad_mode and (a.requires_grad or b.requires_grad or c.requires_grad)


cdef TensorBase mse_loss_impl(TensorBase self, TensorBase target, int64_t reduction):
    return pair_loss(PW_TRTL_SQUARED_ERROR, self, target, 0, reduction)


cdef TensorBase mse_loss_backward_impl(TensorBase grad_output, TensorBase self, TensorBase target, int64_t reduction):
    return pair_gradient("mse_loss_backward", PW_TRTL_SQUARED_ERROR, grad_output, self, target, 0, reduction)


cdef TensorBase recorded_mse_loss_backward(TensorBase grad_output, TensorBase self, TensorBase target, int64_t reduction):
    if records(grad_output, self, target):
        return <TensorBase?>composed_gradient(PW_TRTL_SQUARED_ERROR, 0, grad_output, self, target, 0, reduction)
    return below_mse_loss_backward(grad_output, self, target, reduction, BELOW(KEY_AUTOGRAD))


cdef int check_beta(double beta) except -1:
    if not beta >= 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return 0


cdef TensorBase smooth_l1_loss_impl(TensorBase self, TensorBase target, int64_t reduction, double beta):
    check_beta(beta)
    return pair_loss(PW_TRTL_SMOOTH_ERROR, self, target, beta, reduction)


cdef TensorBase smooth_l1_loss_backward_impl(TensorBase grad_output, TensorBase self, TensorBase target, int64_t reduction, double beta):
    check_beta(beta)
    return pair_gradient("smooth_l1_loss_backward", PW_TRTL_SMOOTH_ERROR, grad_output, self, target, beta, reduction)


cdef TensorBase recorded_smooth_l1_loss_backward(TensorBase grad_output, TensorBase self, TensorBase target, int64_t reduction, double beta):
    if records(grad_output, self, target):
        return <TensorBase?>composed_gradient(PW_TRTL_SMOOTH_ERROR, 0, grad_output, self, target, beta, reduction)
    return below_smooth_l1_loss_backward(grad_output, self, target, reduction, beta, BELOW(KEY_AUTOGRAD))


cdef int check_delta(double delta) except -1:
    if not delta > 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    return 0


cdef TensorBase huber_loss_impl(TensorBase self, TensorBase target, int64_t reduction, double delta):
    check_delta(delta)
    return pair_loss(PW_TRTL_HUBER_ERROR, self, target, delta, reduction)


cdef TensorBase huber_loss_backward_impl(TensorBase grad_output, TensorBase self, TensorBase target, int64_t reduction, double delta):
    check_delta(delta)
    return pair_gradient("huber_loss_backward", PW_TRTL_HUBER_ERROR, grad_output, self, target, delta, reduction)


cdef TensorBase recorded_huber_loss_backward(TensorBase grad_output, TensorBase self, TensorBase target, int64_t reduction, double delta):
    if records(grad_output, self, target):
        return <TensorBase?>composed_gradient(PW_TRTL_HUBER_ERROR, 0, grad_output, self, target, delta, reduction)
    return below_huber_loss_backward(grad_output, self, target, reduction, delta, BELOW(KEY_AUTOGRAD))


cdef TensorBase soft_margin_loss_impl(TensorBase self, TensorBase target, int64_t reduction):
    return pair_loss(PW_TRTL_SOFT_MARGIN, self, target, 0, reduction)


cdef TensorBase soft_margin_loss_backward_impl(TensorBase grad_output, TensorBase self, TensorBase target, int64_t reduction):
    return pair_gradient("soft_margin_loss_backward", PW_TRTL_SOFT_MARGIN, grad_output, self, target, 0, reduction)


cdef TensorBase recorded_soft_margin_loss_backward(TensorBase grad_output, TensorBase self, TensorBase target, int64_t reduction):
    if records(grad_output, self, target):
        return <TensorBase?>composed_gradient(PW_TRTL_SOFT_MARGIN, 0, grad_output, self, target, 0, reduction)
    return below_soft_margin_loss_backward(grad_output, self, target, reduction, BELOW(KEY_AUTOGRAD))


cdef bint outside_unit(TensorBase x):
    """Whether an element isn't between 0 and 1 (NaN isn't)."""
    return x.numel and not _ops.equal(_ops.clamp(x, 0, 1), x)


cdef TensorBase binary_cross_entropy_meta(TensorBase self, TensorBase target, TensorBase weight, int64_t reduction):
    """binary_cross_entropy() without a look at the elements."""
    cdef TensorBase r
    cdef uint64_t before
    check_reduction(reduction)
    before = enter_kernel()
    try:
        r = op_trtl_bce(self, target, NULL, None, FRESH)
        return reduced(r if weight is None else <TensorBase?>_ops.mul(r, weight), reduction)
    finally:
        leave_kernel(before)


cdef TensorBase binary_cross_entropy_impl(TensorBase self, TensorBase target, TensorBase weight, int64_t reduction):
    """-(t log(p) + (1 - t) log(1 - p)) with logarithms clamped at -100, weighted and reduced."""
    cdef uint64_t before
    check_reduction(reduction)
    if target.dtype != self.dtype:
        raise hinted("float targets", RuntimeError(f"Found dtype {dtype_label(target.dtype).decode()} but expected {dtype_label(self.dtype).decode()} (binary_cross_entropy: target and input)"))
    before = enter_kernel()
    try:
        if outside_unit(self):
            raise hinted("probabilities", RuntimeError("all elements of input should be between 0 and 1"))
        if outside_unit(target):
            raise hinted("target range", RuntimeError("all elements of target should be between 0 and 1"))
    finally:
        leave_kernel(before)
    return binary_cross_entropy_meta(self, target, weight, reduction)


cdef object weighted(object r, object weight, object like):
    """A gradient of elements times their weights, which broadcast."""
    return r if weight is None else _ops.mul(r, weight).sum_to_size(like.shape)


cdef TensorBase binary_cross_entropy_backward_impl(TensorBase grad_output, TensorBase self, TensorBase target, TensorBase weight, int64_t reduction):
    cdef TensorBase r = pair_gradient("binary_cross_entropy_backward", PW_TRTL_BCE, grad_output, self, target, 0, reduction)
    cdef uint64_t before
    if weight is None:
        return r
    before = enter_kernel()
    try:
        return <TensorBase?>weighted(r, weight, self)
    finally:
        leave_kernel(before)


cdef TensorBase recorded_binary_cross_entropy_backward(TensorBase grad_output, TensorBase self, TensorBase target, TensorBase weight, int64_t reduction):
    if records(grad_output, self, target) or weight is not None and weight.keys & K_FORWARD_AD:
        return <TensorBase?>weighted(composed_gradient(PW_TRTL_BCE, 0, grad_output, self, target, 0, reduction), weight, self)
    return below_binary_cross_entropy_backward(grad_output, self, target, weight, reduction, BELOW(KEY_AUTOGRAD))


cdef object weight_gradient(object grad, object elements, object weight, int64_t reduction):
    """The gradient of a reduced loss by the weights of its elements."""
    if reduction == MEAN:
        grad = grad / broadcast_numel(<TensorBase?>elements, <TensorBase?>weight)
    return _ops.mul(grad, elements).sum_to_size(weight.shape)


cdef TensorBase logits_loss_impl(TensorBase self, TensorBase target, TensorBase weight, TensorBase pos_weight, int64_t reduction):
    """binary_cross_entropy of sigmoid(input) without overflow; pos_weight multiplies the positive part."""
    cdef TensorBase r
    cdef uint64_t before
    check_reduction(reduction)
    if category[self.dtype] < CAT_FLOAT:
        raise NotImplementedError(f"\"binary_cross_entropy_with_logits\" not implemented for '{dtype_label(self.dtype).decode()}'")
    if category[target.dtype] == CAT_BOOL:
        raise hinted("float targets", RuntimeError("Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead. "
                                                   "(binary_cross_entropy_with_logits: target)"))
    if category[target.dtype] < CAT_FLOAT:
        raise hinted("float targets", RuntimeError(f"result type {dtype_label(self.dtype).decode()} can't be cast to the desired output type {dtype_label(target.dtype).decode()} "
                                                   "(binary_cross_entropy_with_logits: target)"))
    before = enter_kernel()
    try:
        if pos_weight is None:
            r = op_trtl_logits_cross_entropy(self, target, NULL, None, FRESH)
        else:
            log_weight = (<object>pos_weight - 1) * target + 1
            r = <TensorBase?>((1 - <object>target) * self - log_weight * _ops.log_sigmoid(self))
        return reduced(r if weight is None else <TensorBase?>_ops.mul(r, weight), reduction)
    finally:
        leave_kernel(before)


cdef object logits_gradient(object grad, object self, object target, object weight, object pos_weight, int64_t reduction):
    """grad * (sigmoid(input) - target), of the mean by the number of elements: in one pass, or of operators in PyTorch's order."""
    cdef bint fused = not grad_mode() and pos_weight is None and weight is None
    if fused:
        return pair_gradient("binary_cross_entropy_with_logits", PW_TRTL_LOGITS_CROSS_ENTROPY, <TensorBase?>grad, <TensorBase?>self, <TensorBase?>target, 0, reduction)
    if pos_weight is None:
        r = (self.sigmoid() - target) * grad
    else:
        positive = _ops.mul(pos_weight, target)
        r = (((positive + 1) - target) * self.sigmoid() - positive) * grad
    if weight is not None:
        r = r * weight
    if reduction == MEAN:
        r = r / r.numel() if tls().grad_mode else r.div_(r.numel())
    return reduce_gradient(<TensorBase?>r, input_meta(<TensorBase?>self))


cdef object logits_target_gradient(object grad, object self, object target, object weight, object pos_weight, int64_t reduction):
    r = -self if pos_weight is None else _ops.log_sigmoid(-self) - pos_weight * _ops.log_sigmoid(self)
    r = r * grad
    if weight is not None:
        r = r * weight
    if reduction == MEAN:
        r = r / broadcast_numel(<TensorBase?>r, <TensorBase?>target)
    return reduce_gradient(<TensorBase?>r, input_meta(<TensorBase?>target))


cdef object logits_weight_gradient(object grad, object self, object target, object weight, object pos_weight, int64_t reduction):
    """By pos_weight."""
    r = _ops.log_sigmoid(self) * target
    r = -(r if weight is None else r * weight)
    if reduction == MEAN:
        grad = grad / broadcast_numel(<TensorBase?>r, <TensorBase?>pos_weight)
    return (r * grad).sum_to_size(pos_weight.shape)


def kl_div(input, target, reduction=1, *, log_target=False):
    """target * (log(target) - input), reduced; with log_target the target holds logarithms."""
    cdef TensorBase r, x, t
    check_reduction(reduction)
    x = as_tensor_arg(input, "kl_div", "input")
    t = as_tensor_arg(target, "kl_div", "target")
    if is_complex_type(x.dtype) or is_complex_type(t.dtype):
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if log_target:
        difference = _ops.sub(t, x)
        r = <TensorBase?>_ops.mul(_ops.exp(t), difference)
    else:
        r = op_trtl_divergence(x, t, NULL, None, FRESH)
    return reduced(r, reduction)


def nll_loss_nd(input, target, weight=None, reduction=1, ignore_index=-100):
    """-weight[target] * input[target]: `input: (N, C, *)` or (C), `target: (N, *)` or ()."""
    cdef TensorBase x = as_tensor_arg(input, "nll_loss", "input"), t = as_tensor_arg(target, "nll_loss", "target")
    check_reduction(reduction)
    if x.ndim < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {x.ndim})")
    if x.ndim == 1 and t.ndim:
        raise ValueError(f"nll_loss: expected a target without dimensions for input of size {shape_text(x)}, got {shape_text(t)}")
    if x.ndim == 1 or x.ndim == 2 and t.ndim == 1 and x.sizes[0] == t.sizes[0]:
        return op_nll_loss_forward(x, t, weight, reduction, ignore_index)[0]
    shape = list(t.shape)
    if t.ndim == 0 or x.sizes[0] != t.sizes[0]:
        raise hinted("batch sizes", ValueError(f"Expected input batch_size ({x.sizes[0]}) to match target batch_size ({t.sizes[0] if t.ndim else 0})."))
    if x.ndim == 2 and t.ndim != 1:
        raise hinted("batch sizes", RuntimeError(f"0D or 1D target tensor expected, multi-target not supported"))
    if list(input.shape[2:]) != shape[1:]:
        raise RuntimeError(f"Expected target size {[x.sizes[0]] + list(input.shape[2:])}, got {shape}")
    if x.ndim == 4:
        return op_nll_loss2d_forward(x, t, weight, reduction, ignore_index)[0]
    inner = 1
    for size in shape[1:]:
        inner *= size
    r = op_nll_loss2d_forward(<TensorBase?>input.reshape(x.sizes[0], x.sizes[1], 1, inner), <TensorBase?>target.reshape(x.sizes[0], 1, inner), weight, reduction, ignore_index)[0]
    return r.reshape(shape) if reduction == NONE else r


def nll_loss(input, target, weight=None, reduction=1, ignore_index=-100):
    """nll_loss_nd for `input: (N, C)` or (C)."""
    return nll_loss_nd(input, target, weight, reduction, ignore_index)


cdef object probabilities_loss(object input, object target, object weight, int64_t reduction, double smoothing):
    """Cross entropy with class probabilities, class dimension 1 (0 for a single sample)."""
    dim = 0 if input.dim() == 1 else 1
    classes = input.size(dim)
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / classes
    logs = _ops.log_softmax(input, dim)
    if weight is None:
        product = logs * target
    else:
        shape = [1] * input.dim()
        shape[dim] = classes
        weight = weight.view(shape)
        product = logs * target * weight
    if reduction == NONE:
        return -product.sum(dim)
    if reduction == SUM:
        return -product.sum()
    return -product.sum() / (input.numel() / classes) if input.numel() else -product.sum() / 0.0


def cross_entropy_loss(input, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    """-log(softmax(input))[target]: `input: (N, C, *)` or (C), target class indices (N, *) or () or probabilities like input."""
    cdef TensorBase x, t, w
    cdef double smoothing
    check_reduction(reduction)
    x = as_tensor_arg(input, "cross_entropy_loss", "input")
    t = as_tensor_arg(target, "cross_entropy_loss", "target")
    w = None if weight is None else as_tensor_arg(weight, "cross_entropy_loss", "weight")
    smoothing = parse_double(label_smoothing, "cross_entropy_loss", "label_smoothing")
    if smoothing < 0 or smoothing > 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if x.ndim == t.ndim and category[t.dtype] == CAT_FLOAT and same_sizes(x, t):
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        if w is not None and (w.ndim != 1 or w.numel != x.sizes[0 if x.ndim == 1 else 1]):
            raise RuntimeError(f"cross_entropy: weight tensor should be defined either for all classes or no classes but got weight tensor of shape: {shape_text(w)}")
        return probabilities_loss(input, target, weight, reduction, smoothing)
    if same_sizes(x, t) and x.ndim:
        raise hinted("class targets", RuntimeError(f"Expected floating point type for target with class probabilities, got {dtype_label(t.dtype).decode()}"))
    if x.ndim == t.ndim and category[t.dtype] == CAT_FLOAT:
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {shape_text(t)} for input {shape_text(x)}")
    return op_trtl_cross_entropy(x, t, w, reduction, ignore_index, smoothing)[0]


WITHOUT_ROW = {name: "" for name in ("l1_loss", "nll_loss_nd", "nll_loss", "cross_entropy_loss")}
