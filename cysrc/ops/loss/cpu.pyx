"""Losses over class indices on the CPU, beneath the checks of loss.pyx."""
from tensorrt_lite._C.core.hints import hinted
from libc.stdint cimport int64_t
from libc.string cimport memcpy
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport F32, F64, I64
from tensorrt_lite._C.core.iterator cimport cast_to, contiguous_of, copy_elements, fill_elements
from tensorrt_lite._C.core.parallel cimport GRAIN, parallel_for, task_fn
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.tensor cimport ITEM_SIZE, TensorBase, data_of, empty_tensor, held
from tensorrt_lite._C.ops.support cimport run_held
from tensorrt_lite._C.ops.loss.rows cimport class_rows, lies_by_rows
from tensorrt_lite._C.steps.loss cimport (
    CTC_SCRATCH, ENTROPY_FEW, ENTROPY_LANES, LOSS_MEAN, LOSS_NONE, class_loss, ctc_args, entropy_args, set_cross_entropy, set_cross_entropy_backward, set_ctc_loss,
    set_ctc_loss_backward, set_nll_loss, set_nll_loss_backward)


cdef extern from "loss.h" nogil:
    ctypedef struct cross_entropy_kernels:
        int64_t (*forward)(const char* logits, int64_t row_stride, int64_t classes, const int64_t* target, const char* weight, int64_t ignore_index,
                           double smoothing, char* loss, char* lse, char* row_weight, int64_t rows_begin, int64_t rows_end) noexcept nogil
        int64_t (*backward)(const char* logits, int64_t row_stride, int64_t classes, const int64_t* target, const char* weight, int64_t ignore_index,
                            double smoothing, const char* lse, const char* grad, int64_t grad_stride, double grad_scale, char* out,
                            int64_t out_row_stride, int64_t rows_begin, int64_t rows_end) noexcept nogil

ctypedef fused real:
    float
    double

ctypedef double (*total_fn)(const char* x, int is_double, int64_t n) noexcept nogil

cdef extern from *:
    """
    #include "isa.h"
    ISA_TASK(entropy_lanes)
    ISA_TASK(entropy_lanes_backward)
    ISA_TASK(ctc_forward)
    ISA_TASK(ctc_backward)
    ISA_FUNCTION(double, loss_total, (const char*, int, int64_t))
    ISA_TABLE(cross_entropy_kernels, cross_entropy_table)
    """
    task_fn entropy_lanes()
    task_fn entropy_lanes_backward()
    task_fn ctc_forward()
    task_fn ctc_backward()
    total_fn loss_total()
    const cross_entropy_kernels* cross_entropy_table()

cdef task_fn entropy_task = entropy_lanes()
cdef task_fn entropy_backward_task = entropy_lanes_backward()
cdef task_fn ctc_forward_task = ctc_forward()
cdef task_fn ctc_backward_task = ctc_backward()
cdef total_fn total_of = loss_total()
cdef const cross_entropy_kernels* CROSS_ENTROPY = cross_entropy_table()


cdef double read_real(const char* p, int code, int64_t i) noexcept nogil:
    return (<const float*>p)[i] if code == F32 else (<const double*>p)[i]


cdef void write_real(char* p, int code, int64_t i, double v) noexcept nogil:
    if code == F32:
        (<float*>p)[i] = <float>v
    else:
        (<double*>p)[i] = v


cdef int put_scalar(TensorBase t, int code, double v) except -1:
    """v, rounded to the compute type `code`, into a scalar of any floating type."""
    cdef TensorBase exact = t if t.dtype == code else empty_tensor(0, NULL, code, DEV_CPU)
    write_real(data_of(exact), code, 0, v)
    return 0 if exact is t else copy_elements(t, exact)


cdef inline int compute_code(TensorBase x) noexcept:
    return F64 if x.dtype == F64 else F32


cdef inline const char* memory_of(TensorBase t) noexcept:
    return NULL if t is None else data_of(t)


# ---- nll_loss ------------------------------------------------------------------------------------------------------

cdef int64_t nll_rows(const char* x, const int64_t* target, const char* weight, char* loss, int code, int64_t n, int64_t classes, int64_t inner,
                      int64_t ignore_index, double* total, double* total_weight) noexcept nogil:
    """Sums of losses and weights; each loss too unless `loss` is null. The first bad target's position, or -1."""
    cdef int64_t i, j, t
    cdef double w, v
    total[0] = 0
    total_weight[0] = 0
    for i in range(n):
        for j in range(inner):
            t = target[i * inner + j]
            if t == ignore_index:
                if loss != NULL:
                    write_real(loss, code, i * inner + j, 0)
                continue
            if t < 0 or t >= classes:
                return i * inner + j
            w = 1 if weight == NULL else read_real(weight, code, t)
            v = -w * read_real(x, code, (i * classes + t) * inner + j)
            total[0] += v
            total_weight[0] += w
            if loss != NULL:
                write_real(loss, code, i * inner + j, v)
    return -1


cdef int64_t nll_sum(const real* x, const int64_t* target, int64_t n, int64_t classes, int64_t ignore_index, double* total, double* total_weight) noexcept nogil:
    """nll_rows without weights, places or losses of their own: four sums, so that none waits for the one before."""
    cdef double sums[4]
    cdef int64_t i, t, ignored = 0
    sums[0] = sums[1] = sums[2] = sums[3] = 0
    for i in range(n):
        t = target[i]
        if t == ignore_index:
            ignored += 1
        elif t < 0 or t >= classes:
            return i
        else:
            sums[i & 3] -= x[i * classes + t]
    total[0] = (sums[0] + sums[1]) + (sums[2] + sums[3])
    total_weight[0] = n - ignored
    return -1


cdef int nll_loss_on_cpu(class_loss* call, TensorBase x, TensorBase target, TensorBase weight, TensorBase loss, TensorBase total_weight) except -1:
    cdef int code = compute_code(x)
    cdef TensorBase contiguous = contiguous_of(cast_to(x, code)), each = None
    cdef double total = 0, weights = 0
    cdef const int64_t* t = <const int64_t*>data_of(target)
    cdef int64_t bad
    cdef bint total_alone = call.reduction != LOSS_NONE and weight is None and call.inner == 1
    if call.reduction == LOSS_NONE:
        each = loss if loss.dtype == code else empty_tensor(loss.ndim, loss.sizes, code, DEV_CPU)
    if total_alone and code == F32:
        bad = nll_sum(<const float*>data_of(contiguous), t, call.rows, call.classes, call.ignore_index, &total, &weights)
    elif total_alone and code == F64:
        bad = nll_sum(<const double*>data_of(contiguous), t, call.rows, call.classes, call.ignore_index, &total, &weights)
    else:
        bad = nll_rows(data_of(contiguous), t, memory_of(weight), <char*>memory_of(each), code, call.rows // call.inner if call.inner else 0,
                       call.classes, call.inner, call.ignore_index, &total, &weights)
    if bad >= 0:
        raise hinted("class range", IndexError(f"Target {t[bad]} is out of bounds."))
    put_scalar(total_weight, code, weights)
    if each is None:
        return put_scalar(loss, code, total / weights if call.reduction == LOSS_MEAN else total)
    return 0 if each is loss else copy_elements(loss, each)


cdef int nll_loss_backward_on_cpu(class_loss* call, TensorBase grad, TensorBase target, TensorBase weight, TensorBase total_weight, TensorBase result) except -1:
    cdef int code = compute_code(result)
    cdef TensorBase g = contiguous_of(cast_to(grad, code)), d = result if result.dtype == code else empty_tensor(result.ndim, result.sizes, code, DEV_CPU)
    cdef const int64_t* t = <const int64_t*>data_of(target)
    cdef double scale = 1 / read_real(data_of(total_weight), total_weight.dtype, 0) if call.reduction == LOSS_MEAN else 1
    cdef int64_t i, c
    cdef Scalar zero
    zero.kind = 1
    zero.i = 0
    zero.d = zero.im = 0
    fill_elements(d, &zero)
    for i in range(call.rows):
        c = t[i]                        # once: another thread may change it
        if c == call.ignore_index:
            continue
        if c < 0 or c >= call.classes:
            raise hinted("class range", IndexError(f"Target {c} is out of bounds."))
        write_real(data_of(d), code, (i // call.inner * call.classes + c) * call.inner + i % call.inner,
                   -scale * (1 if weight is None else read_real(data_of(weight), code, c)) * read_real(data_of(g), code, i if g.ndim else 0))
    return 0 if d is result else copy_elements(result, d)


# ---- cross_entropy -------------------------------------------------------------------------------------------------

cdef struct CrossEntropy:
    const cross_entropy_kernels* kernels
    int64_t item
    entropy_args a


cdef void entropy_rows(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef CrossEntropy* r = <CrossEntropy*>context
    if r.kernels.forward(r.a.x, r.a.classes * r.item, r.a.classes, r.a.target, r.a.weight, r.a.ignore_index, r.a.smoothing, r.a.loss, r.a.lse, r.a.row_weight, begin, end) >= 0:
        r.a.bad = 1


cdef void entropy_rows_backward(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef CrossEntropy* r = <CrossEntropy*>context
    r.kernels.backward(r.a.x, r.a.classes * r.item, r.a.classes, r.a.target, r.a.weight, r.a.ignore_index, r.a.smoothing, r.a.lse, r.a.grad, r.a.grad_stride, r.a.scale,
                       r.a.out, r.a.classes * r.item, begin, end)


cdef void run_positions(CrossEntropy* r, int64_t n, bint backward) noexcept:
    """All n positions: as lanes side by side, or, of many classes in a row, row by row. Operands are held or small."""
    cdef bint lanes = r.a.inner > 1 or r.a.classes <= ENTROPY_FEW
    cdef task_fn task = (entropy_backward_task if backward else entropy_task) if lanes else entropy_rows_backward if backward else entropy_rows
    cdef void* context = <void*>&r.a if lanes else <void*>r
    cdef int64_t items = n, each = 1
    r.a.span = r.a.inner if r.a.inner > 1 else n
    if lanes and n:
        items = n // r.a.span * ((r.a.span + ENTROPY_LANES - 1) // ENTROPY_LANES)
        each = min(r.a.span, <int64_t>ENTROPY_LANES)
    if n * r.a.classes < 4096:
        task(context, 0, items)
        return
    with nogil:
        parallel_for(items, 1 + GRAIN // 8 // (each * (r.a.classes + 1)), 1, task, context)


cdef TensorBase entropy_logits(TensorBase x, int code, bint* rows):
    """Contiguous logits; *rows: (N, inner, C), because the classes of a position lie side by side already."""
    x = cast_to(x, code)
    rows[0] = lies_by_rows(x)
    return class_rows(x) if rows[0] else contiguous_of(x)


cdef void fill_entropy(CrossEntropy* r, const class_loss* call, TensorBase logits, bint rows, TensorBase t, TensorBase w) noexcept:
    r.kernels = CROSS_ENTROPY + logits.dtype
    r.item = ITEM_SIZE[logits.dtype]
    r.a.x = data_of(logits)
    r.a.target = <const int64_t*>data_of(t)
    r.a.weight = NULL if w is None else data_of(w)
    r.a.classes = logits.sizes[2 if rows else 1]
    r.a.inner = 1 if rows or logits.ndim == 2 else logits.sizes[2]
    r.a.ignore_index = call.ignore_index
    r.a.smoothing = call.smoothing
    r.a.is_double = logits.dtype == F64


cdef int cross_entropy(class_loss* call, TensorBase x, TensorBase target, TensorBase weight, TensorBase loss, TensorBase lse, TensorBase total_weight) except -1:
    cdef CrossEntropy r
    cdef int code = compute_code(x)
    cdef TensorBase logits, each, row_weight
    cdef int64_t n = call.rows, i
    cdef double total, weights
    cdef bint rows
    if x.numel >= 4096:
        x, target, weight = held(x), held(target), held(weight)
    each = loss if call.reduction == LOSS_NONE and loss.dtype == code else empty_tensor(1, &n, code, DEV_CPU)
    row_weight = empty_tensor(1, &n, code, DEV_CPU)
    logits = entropy_logits(x, code, &rows)
    fill_entropy(&r, call, logits, rows, target, weight)
    r.a.loss = data_of(each)
    r.a.lse = data_of(lse)
    r.a.row_weight = data_of(row_weight)
    r.a.bad = 0
    run_positions(&r, n, False)
    for i in range(n if r.a.bad else 0):
        if r.a.target[i] != call.ignore_index and not 0 <= r.a.target[i] < r.a.classes:
            raise hinted("class range", IndexError(f"Target {r.a.target[i]} is out of bounds."))
    weights = total_of(r.a.row_weight, code == F64, n)
    put_scalar(total_weight, code, weights)
    if call.reduction != LOSS_NONE:
        total = total_of(r.a.loss, code == F64, n)
        return put_scalar(loss, code, total / weights if call.reduction == LOSS_MEAN else total)
    if each is loss:
        return 0
    return copy_elements(loss, <TensorBase>each.reshape(loss.shape))


cdef int cross_entropy_backward(class_loss* call, TensorBase grad, TensorBase x, TensorBase target, TensorBase weight, TensorBase lse, TensorBase total_weight,
                                TensorBase result) except -1:
    cdef CrossEntropy r
    cdef int code = compute_code(x)
    cdef TensorBase g = contiguous_of(cast_to(grad, code)), logits, d
    cdef bint rows
    if x.numel >= 4096:
        x, target, weight = held(x), held(target), held(weight)
    logits = entropy_logits(x, code, &rows)
    fill_entropy(&r, call, logits, rows, target, weight)
    r.a.lse = data_of(lse)
    r.a.grad = data_of(g)
    r.a.grad_stride = ITEM_SIZE[code] if call.reduction == LOSS_NONE else 0
    r.a.scale = 1 / read_real(data_of(total_weight), code, 0) if call.reduction == LOSS_MEAN else 1
    d = result if result.dtype == code and (result.contiguous if not rows else lies_by_rows(result)) else empty_tensor(logits.ndim, logits.sizes, code, DEV_CPU)
    r.a.out = data_of(d)
    run_positions(&r, call.rows, True)
    return 0 if d is result else copy_elements(result, class_rows(d) if rows else d)


# ---- ctc_loss ------------------------------------------------------------------------------------------------------

cdef int run_ctc(task_fn task, ctc_args* a, TensorBase log_probs, TensorBase targets, TensorBase lengths, TensorBase loss, TensorBase log_alpha) except -1:
    """All samples; a class out of range is found before, in a copy that no other thread writes to."""
    cdef int64_t i, j, size = a.batch * CTC_SCRATCH * (a.span + 2)
    cdef TensorBase scratch = empty_tensor(1, &size, log_probs.dtype, DEV_CPU), classes = empty_tensor(1, &targets.numel, I64, DEV_CPU)
    memcpy(data_of(classes), data_of(targets), targets.numel * sizeof(int64_t))
    if log_probs.numel >= 4096:
        log_probs = held(log_probs)
    a.log_probs, a.loss, a.log_alpha, a.scratch = data_of(log_probs), data_of(loss), data_of(log_alpha), data_of(scratch)
    a.targets, a.input_lengths = <const int64_t*>data_of(classes), <const int64_t*>data_of(lengths)
    a.target_lengths = a.input_lengths + a.batch
    a.offsets = a.target_lengths + a.batch
    for i in range(a.batch):
        for j in range(a.offsets[i], a.offsets[i] + a.target_lengths[i]):
            if a.targets[j] < 0 or a.targets[j] >= a.classes:
                raise IndexError(f"ctc_loss: target {a.targets[j]} is out of bounds for {a.classes} classes")
    return run_held(task, a, a.batch, a.batch * a.steps * (8 * a.span + a.classes), log_probs, loss, log_alpha, classes)


cdef int ctc_loss(ctc_args* a, TensorBase log_probs, TensorBase targets, TensorBase lengths, TensorBase loss, TensorBase log_alpha) except -1:
    return run_ctc(ctc_forward_task, a, log_probs, targets, lengths, loss, log_alpha)


cdef int ctc_loss_backward(ctc_args* a, TensorBase grad, TensorBase log_probs, TensorBase targets, TensorBase lengths, TensorBase loss, TensorBase log_alpha, TensorBase out) except -1:
    a.grad, a.out = data_of(grad), data_of(out)
    return run_ctc(ctc_backward_task, a, log_probs, targets, lengths, loss, log_alpha)


set_ctc_loss(DEV_CPU, ctc_loss)
set_ctc_loss_backward(DEV_CPU, ctc_loss_backward)
set_nll_loss(DEV_CPU, nll_loss_on_cpu)
set_nll_loss_backward(DEV_CPU, nll_loss_backward_on_cpu)
set_cross_entropy(DEV_CPU, cross_entropy)
set_cross_entropy_backward(DEV_CPU, cross_entropy_backward)
