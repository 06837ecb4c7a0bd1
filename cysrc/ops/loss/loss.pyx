# Losses over class indices, and the entries of all losses. The kernels see rows: (N, C) logits, or (N, C, inner)
# log-probabilities; other shapes are brought to these by recorded views. reduction: 0 none, 1 mean, 2 sum.
from tensorrt_lite._C.autograd.autocast import policy as autocast_policy
from tensorrt_lite._C.core.allocator cimport block_alloc

cdef enum:
    NONE = 0
    MEAN = 1
    SUM = 2


# What cysrc/cuda/softmax.pyx installs: (loss, logsumexp of the rows or None, sum of the weights), and the gradient; `lse` None is nll_loss.
ctypedef object (*device_class_loss_fn)(TensorBase x, TensorBase target, TensorBase weight, int64_t reduction, int64_t ignore_index, double smoothing, bint nll)
ctypedef object (*device_class_gradient_fn)(TensorBase grad, TensorBase like, TensorBase target, TensorBase weight, TensorBase lse, TensorBase total_weight,
                                            int64_t reduction, int64_t ignore_index, double smoothing)
cdef device_class_loss_fn device_class_loss
cdef device_class_gradient_fn device_class_gradient


def _install_device_kernels(size_t loss, size_t gradient):
    global device_class_loss, device_class_gradient
    device_class_loss = <device_class_loss_fn>loss
    device_class_gradient = <device_class_gradient_fn>gradient


cdef double read_real(const char* p, int code, int64_t i) noexcept nogil:
    return (<const float*>p)[i] if code == F32 else (<const double*>p)[i]


cdef void write_real(char* p, int code, int64_t i, double v) noexcept nogil:
    if code == F32:
        (<float*>p)[i] = <float>v
    else:
        (<double*>p)[i] = v


cdef TensorBase scalar_of(int code, int device_type, double v):
    cdef TensorBase r = empty_tensor(0, NULL, code, device_type)
    if device_type != DEV_META:
        write_real(data_of(r), code, 0, v)
    return r


cdef int real_code(TensorBase x, str name) except -1:
    if category[x.dtype] != CAT_FLOAT:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype_text(x.dtype)}'")
    return F64 if x.dtype == F64 else F32


cdef TensorBase class_indices(TensorBase target, str name):
    if target.dtype == U8:
        target = cast_to(target, I64)
    if target.dtype != I64:
        raise RuntimeError(f"expected scalar type Long but found {dtype_text(target.dtype)}" if name == "" else f"{name}: expected scalar type Long but found {dtype_text(target.dtype)}")
    return contiguous_of(target)


cdef TensorBase class_weights(TensorBase weight, int64_t classes, int code):
    if weight is None:
        return None
    if weight.ndim != 1 or weight.numel != classes:
        raise RuntimeError(f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: {shape_text(weight)}")
    return contiguous_of(cast_to(weight, code))


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


cdef object _nll_loss_cpu(TensorBase self, TensorBase target, TensorBase weight, int64_t reduction, int64_t ignore_index):
    """self (N, C, inner), target (N, inner)."""
    cdef int code = real_code(self, "nll_loss")
    cdef TensorBase x, t, w, loss
    cdef double total = 0, total_weight = 0
    cdef int64_t bad
    if self.ndim != 3 or target.ndim != 2 or self.sizes[0] != target.sizes[0] or self.sizes[2] != target.sizes[1]:
        raise RuntimeError(f"nll_loss: input {shape_text(self)} and target {shape_text(target)} do not fit")
    if self.device_type == DEV_META:
        loss = empty_tensor(2, target.sizes, self.dtype, DEV_META) if reduction == NONE else empty_tensor(0, NULL, self.dtype, DEV_META)
        return loss, empty_tensor(0, NULL, self.dtype, DEV_META)
    t = class_indices(target, "")
    w = class_weights(weight, self.sizes[1], code)
    if self.device_type == DEV_CUDA:
        loss, _, r = device_class_loss(self, t, w, reduction, ignore_index, 0, True)
        return loss, r
    x = contiguous_of(cast_to(self, code))
    loss = empty_tensor(2, target.sizes, code, DEV_CPU) if reduction == NONE else None
    bad = nll_rows(data_of(x), <const int64_t*>data_of(t), NULL if w is None else data_of(w), NULL if loss is None else data_of(loss), code,
                   self.sizes[0], self.sizes[1], self.sizes[2], ignore_index, &total, &total_weight)
    if bad >= 0:
        raise IndexError(f"Target {(<const int64_t*>data_of(t))[bad]} is out of bounds.")
    if reduction == MEAN:
        total /= total_weight
    if loss is None:
        loss = scalar_of(code, DEV_CPU, total)
    return cast_to(loss, self.dtype), scalar_of(code, DEV_CPU, total_weight)


cdef object picked_weights(object target, object weight, int64_t ignore_index, object dtype, int64_t classes):
    """Per target: its class weight, 0 where it is ignored; and targets that are valid everywhere."""
    valid = _ops.ne(target, ignore_index)
    safe = target.to(dtype_of(I64)).masked_fill(~valid, 0)
    w = valid.to(dtype) if weight is None else weight.detach().to(dtype).index_select(0, safe.reshape(-1)).reshape(safe.shape) * valid
    return w, safe


cdef object nll_gradient(object grad, object meta, object target, object weight, object total_weight, int64_t reduction, int64_t ignore_index):
    """The loss is linear in its input: a scatter of the gradients times the weights."""
    cdef object shape = meta[0]
    if grad is None:
        return None
    if not grad_mode() and (<TensorBase>grad).device_type == DEV_CUDA:
        like = empty_tensor(0, NULL, (<dtype>dtype_of(meta[1])).code, place_of(<TensorBase>grad)).expand(shape)
        return device_class_gradient(grad, like, class_indices(target, ""), class_weights(weight, shape[1], F64 if (<TensorBase>like).dtype == F64 else F32), None, total_weight, reduction, ignore_index, 0)
    w, safe = picked_weights(target, weight, ignore_index, dtype_of(meta[1]), shape[1])
    values = -(w * grad)
    if reduction == MEAN:
        values = values / total_weight.detach()
    values = values.to(dtype_of(meta[1]))
    return grad.new_zeros(shape).scatter(1, safe.unsqueeze(1), values.unsqueeze(1))


# ---- cross_entropy -------------------------------------------------------------------------------------------------

cdef extern from "loss.h" nogil:
    enum:
        ENTROPY_LANES
        ENTROPY_FEW
    ctypedef struct EntropyArgs:
        const char* x
        const char* weight
        const int64_t* target
        char* loss
        char* lse
        char* row_weight
        const char* grad
        char* out
        int64_t classes, inner, span, ignore_index, grad_stride
        double smoothing, scale
        int is_double, bad
    ctypedef struct cross_entropy_kernels:
        int64_t (*forward)(const char* logits, int64_t row_stride, int64_t classes, const int64_t* target, const char* weight, int64_t ignore_index,
                           double smoothing, char* loss, char* lse, char* row_weight, int64_t rows_begin, int64_t rows_end) noexcept nogil
        int64_t (*backward)(const char* logits, int64_t row_stride, int64_t classes, const int64_t* target, const char* weight, int64_t ignore_index,
                            double smoothing, const char* lse, const char* grad, int64_t grad_stride, double grad_scale, char* out,
                            int64_t out_row_stride, int64_t rows_begin, int64_t rows_end) noexcept nogil

ctypedef double (*total_fn)(const char* x, int is_double, int64_t n) noexcept nogil

cdef extern from *:
    """
    ISA_TASK(entropy_lanes)
    ISA_TASK(entropy_lanes_backward)
    ISA_FUNCTION(double, loss_total, (const char*, int, int64_t))
    ISA_TABLE(cross_entropy_kernels, cross_entropy_table)
    """
    const cross_entropy_kernels* cross_entropy_table()
    task_fn entropy_lanes()
    task_fn entropy_lanes_backward()
    total_fn loss_total()

cdef task_fn entropy_task = entropy_lanes()
cdef task_fn entropy_backward_task = entropy_lanes_backward()
cdef total_fn total_of = loss_total()
cdef const cross_entropy_kernels* CROSS_ENTROPY = cross_entropy_table()


cdef struct CrossEntropy:
    const cross_entropy_kernels* kernels
    int64_t item
    EntropyArgs a


cdef void run_cross_entropy(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef CrossEntropy* r = <CrossEntropy*>context
    if r.kernels.forward(r.a.x, r.a.classes * r.item, r.a.classes, r.a.target, r.a.weight, r.a.ignore_index, r.a.smoothing, r.a.loss, r.a.lse, r.a.row_weight, begin, end) >= 0:
        r.a.bad = 1


cdef void run_cross_entropy_backward(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef CrossEntropy* r = <CrossEntropy*>context
    r.kernels.backward(r.a.x, r.a.classes * r.item, r.a.classes, r.a.target, r.a.weight, r.a.ignore_index, r.a.smoothing, r.a.lse, r.a.grad, r.a.grad_stride, r.a.scale,
                       r.a.out, r.a.classes * r.item, begin, end)


cdef void run_positions(CrossEntropy* r, int64_t n, bint backward) noexcept:
    """All n positions: as lanes side by side, or, of many classes in a row, row by row. Operands are pinned or small."""
    cdef bint lanes = r.a.inner > 1 or r.a.classes <= ENTROPY_FEW
    cdef task_fn task = (entropy_backward_task if backward else entropy_task) if lanes else run_cross_entropy_backward if backward else run_cross_entropy
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


cdef TensorBase class_rows(TensorBase x):
    """(N, C, inner) seen as (N, inner, C): where the classes of a position lie side by side, its rows."""
    cdef int64_t sizes[3]
    cdef int64_t strides[3]
    sizes[0] = x.sizes[0]
    sizes[1] = x.sizes[2]
    sizes[2] = x.sizes[1]
    strides[0] = x.strides[0]
    strides[1] = x.strides[2]
    strides[2] = x.strides[1]
    return make_view(x, 3, sizes, strides, x.offset)


cdef TensorBase entropy_logits(TensorBase x, int code, bint* rows):
    """Contiguous logits; *rows: (N, inner, C), because the classes of a position lie side by side already."""
    x = cast_to(x, code)
    rows[0] = x.ndim == 3 and not x.contiguous and class_rows(x).contiguous
    return class_rows(x) if rows[0] else contiguous_of(x)


cdef void fill_entropy(CrossEntropy* r, TensorBase logits, bint rows, TensorBase t, TensorBase w, int64_t ignore_index, double smoothing) noexcept:
    r.kernels = CROSS_ENTROPY + logits.dtype
    r.item = ITEM_SIZE[logits.dtype]
    r.a.x = data_of(logits)
    r.a.target = <const int64_t*>data_of(t)
    r.a.weight = NULL if w is None else data_of(w)
    r.a.classes = logits.sizes[2 if rows else 1]
    r.a.inner = 1 if rows or logits.ndim == 2 else logits.sizes[2]
    r.a.ignore_index = ignore_index
    r.a.smoothing = smoothing
    r.a.is_double = logits.dtype == F64


cdef object _cross_entropy_cpu(TensorBase self, TensorBase target, TensorBase weight, int64_t reduction, int64_t ignore_index, double label_smoothing):
    """self (N, C), target (N), or self (N, C, inner), target (N, inner): loss, logsumexp of the rows, sum of the weights."""
    cdef CrossEntropy r
    cdef int code = real_code(self, "cross_entropy_loss")
    cdef TensorBase x, t, w, loss, lse, row_weight
    cdef double total, total_weight
    cdef int64_t n, i
    cdef bint rows
    if self.ndim != target.ndim + 1 or self.ndim < 2 or self.ndim > 3 or self.sizes[0] != target.sizes[0] or (self.ndim == 3 and self.sizes[2] != target.sizes[1]):
        raise ValueError(f"Expected input batch_size ({self.sizes[0] if self.ndim else 0}) to match target batch_size ({target.sizes[0] if target.ndim else 0}).")
    if self.device_type == DEV_CUDA:
        return device_class_loss(self, class_indices(target, ""), class_weights(weight, self.sizes[1], code), reduction, ignore_index, label_smoothing, False)
    if self.numel >= 4096:
        self, target, weight = held(self), held(target), held(weight)
    n = target.numel
    loss = empty_tensor(target.ndim, target.sizes, code, self.device_type)
    lse = empty_tensor(1, &n, code, self.device_type)
    if self.device_type == DEV_META:
        if reduction != NONE:
            loss = empty_tensor(0, NULL, code, DEV_META)
        return cast_to(loss, self.dtype), lse, empty_tensor(0, NULL, code, DEV_META)
    t = class_indices(target, "")
    w = class_weights(weight, self.sizes[1], code)
    row_weight = empty_tensor(1, &n, code, DEV_CPU)
    x = entropy_logits(self, code, &rows)
    fill_entropy(&r, x, rows, t, w, ignore_index, label_smoothing)
    r.a.loss = data_of(loss)
    r.a.lse = data_of(lse)
    r.a.row_weight = data_of(row_weight)
    r.a.bad = 0
    run_positions(&r, n, False)
    for i in range(n if r.a.bad else 0):
        if r.a.target[i] != ignore_index and not 0 <= r.a.target[i] < r.a.classes:
            raise IndexError(f"Target {r.a.target[i]} is out of bounds.")
    total = total_of(r.a.loss, code == F64, n)
    total_weight = total_of(r.a.row_weight, code == F64, n)
    if reduction == MEAN:
        loss = scalar_of(code, DEV_CPU, total / total_weight)
    elif reduction == SUM:
        loss = scalar_of(code, DEV_CPU, total)
    return cast_to(loss, self.dtype), lse, scalar_of(code, DEV_CPU, total_weight)


cdef object cross_entropy_gradient(object grad, object self, object target, object weight, object lse, object total_weight, int64_t reduction,
                                   int64_t ignore_index, double smoothing):
    cdef CrossEntropy r
    cdef TensorBase x = self, g, t, w, d, logits
    cdef bint rows
    cdef int code = F64 if x.dtype == F64 else F32
    cdef int64_t classes = x.sizes[1]
    if grad is None:
        return None
    if not grad_mode() and x.device_type == DEV_CUDA:
        return device_class_gradient(grad, x, class_indices(target, ""), class_weights(weight, classes, code), lse, total_weight, reduction, ignore_index, smoothing)
    if not grad_mode():
        if x.numel >= 4096:
            x, target, weight = held(x), held(target), held(weight)
        if x.device_type == DEV_META or x.numel == 0:
            return empty_tensor(x.ndim, x.sizes, x.dtype, x.device_type)
        t = class_indices(target, "")
        w = class_weights(weight, classes, code)
        g = contiguous_of(cast_to(grad, code))
        logits = entropy_logits(x, code, &rows)
        fill_entropy(&r, logits, rows, t, w, ignore_index, smoothing)
        r.a.lse = data_of(<TensorBase>lse)
        r.a.grad = data_of(g)
        r.a.grad_stride = ITEM_SIZE[code] if reduction == NONE else 0
        r.a.scale = 1 / read_real(data_of(<TensorBase>total_weight), code, 0) if reduction == MEAN else 1
        d = empty_tensor(logits.ndim, logits.sizes, code, DEV_CPU)
        r.a.out = data_of(d)
        run_positions(&r, x.numel // classes, True)
        return cast_to(class_rows(d) if rows else d, (<TensorBase>self).dtype)
    w_, safe = picked_weights(target, weight, ignore_index, self.dtype, classes)
    per_row = grad if reduction != MEAN else grad / total_weight.detach().to(self.dtype)
    valid = _ops.ne(target, ignore_index).to(self.dtype)
    every = _ops.ones_like(w_).unsqueeze(1) if weight is None else weight.detach().to(self.dtype).reshape((1, -1) + (1,) * (self.dim() - 2))
    share = valid.unsqueeze(1) * every * (smoothing / classes)
    picked = _ops.zeros_like(self).detach().scatter(1, safe.unsqueeze(1), (w_ * (1 - smoothing)).unsqueeze(1)) + share
    difference = _ops.softmax(self, 1) * picked.sum(1, True) - picked
    return difference * (per_row.unsqueeze(1) if reduction == NONE else per_row)


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


@autocast_policy(cpu="float32", cuda="float32")
def mse_loss(input, target, reduction=1):
    """(input - target) ** 2, reduced: 0 none, 1 mean, 2 sum."""
    check_reduction(reduction)
    return reduced(op__squared_error(as_tensor_arg(input, "mse_loss", "input"), as_tensor_arg(target, "mse_loss", "target"), NULL, None, FRESH), reduction)


@autocast_policy(cpu="float32", cuda="float32")
def l1_loss(input, target, reduction=1):
    """|input - target|, reduced."""
    check_reduction(reduction)
    # the difference is kept for the backward pass, so that either operand may be written to before it
    return reduced(<TensorBase>_ops.abs(_ops.sub(as_tensor_arg(input, "l1_loss", "input"), as_tensor_arg(target, "l1_loss", "target"))), reduction)


@autocast_policy(cpu="float32", cuda="float32")
def soft_margin_loss(input, target, reduction=1):
    """log(1 + exp(-target * input)), reduced."""
    check_reduction(reduction)
    return reduced(op__soft_margin(as_tensor_arg(input, "soft_margin_loss", "input"), as_tensor_arg(target, "soft_margin_loss", "target"), NULL, None, FRESH), reduction)


cdef inline void real_param(Scalar* s, double v) noexcept:
    s.kind = 2
    s.d = v
    s.im = 0
    s.i = <int64_t>v


@autocast_policy(cpu="float32", cuda="float32")
def smooth_l1_loss(input, target, reduction=1, beta=1.0):
    """d ** 2 / (2 beta) where d = |input - target| < beta, else d - beta / 2, reduced."""
    cdef Scalar s
    cdef double b = parse_double(beta, "smooth_l1_loss", "beta")
    check_reduction(reduction)
    if b < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if b == 0:
        return l1_loss(input, target, reduction)
    real_param(&s, b)
    return reduced(op__smooth_error(as_tensor_arg(input, "smooth_l1_loss", "input"), as_tensor_arg(target, "smooth_l1_loss", "target"), &s, None, FRESH), reduction)


@autocast_policy(cpu="float32", cuda="float32")
def huber_loss(input, target, reduction=1, delta=1.0):
    """d ** 2 / 2 where d = |input - target| <= delta, else delta (d - delta / 2), reduced."""
    cdef Scalar s
    cdef double b = parse_double(delta, "huber_loss", "delta")
    check_reduction(reduction)
    if b <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    real_param(&s, b)
    return reduced(op__huber_error(as_tensor_arg(input, "huber_loss", "input"), as_tensor_arg(target, "huber_loss", "target"), &s, None, FRESH), reduction)


@autocast_policy(cpu="float32", cuda="banned")
def binary_cross_entropy(input, target, weight=None, reduction=1):
    """-(t log(p) + (1 - t) log(1 - p)) with logarithms clamped at -100, weighted and reduced."""
    cdef TensorBase x = as_tensor_arg(input, "binary_cross_entropy", "input"), r
    check_reduction(reduction)
    if x.numel and x.device_type != DEV_META:
        detached = input.detach()
        if not (bool((detached >= 0).all()) and bool((detached <= 1).all())):
            raise RuntimeError("all elements of input should be between 0 and 1")
    r = op__binary_cross_entropy(x, as_tensor_arg(target, "binary_cross_entropy", "target"), NULL, None, FRESH)
    if weight is not None:
        r = <TensorBase>_ops.mul(r, weight)
    return reduced(r, reduction)


@autocast_policy(cpu="float32", cuda="float32")
def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=1):
    """binary_cross_entropy of sigmoid(input) without overflow; pos_weight multiplies the positive part."""
    cdef TensorBase r
    check_reduction(reduction)
    if pos_weight is None:
        r = op__logits_cross_entropy(as_tensor_arg(input, "binary_cross_entropy_with_logits", "input"),
                                     as_tensor_arg(target, "binary_cross_entropy_with_logits", "target"), NULL, None, FRESH)
    else:
        log_weight = (pos_weight - 1) * target + 1
        soft = _ops.log1p(_ops.exp(-_ops.abs(input))) + _ops.clamp_min(-input, 0)
        r = <TensorBase?>((1 - target) * input + log_weight * soft)
    if weight is not None:
        r = <TensorBase>_ops.mul(r, weight)
    return reduced(r, reduction)


@autocast_policy(cpu="float32", cuda="float32")
def kl_div(input, target, reduction=1, *, log_target=False):
    """target * (log(target) - input), reduced; with log_target the target holds logarithms."""
    cdef TensorBase r, x, t
    check_reduction(reduction)
    x = as_tensor_arg(input, "kl_div", "input")
    t = as_tensor_arg(target, "kl_div", "target")
    if is_complex_type(x.dtype) or is_complex_type(t.dtype):
        raise RuntimeError("kl_div: Complex inputs not supported.")
    r = <TensorBase>_ops.mul(_ops.exp(t), _ops.sub(t, x)) if log_target else op__divergence(x, t, NULL, None, FRESH)
    return reduced(r, reduction)


def nll_loss_nd(input, target, weight=None, reduction=1, ignore_index=-100):
    """-weight[target] * input[target]: `input: (N, C, *)` or (C), `target: (N, *)` or ()."""
    cdef TensorBase x = as_tensor_arg(input, "nll_loss", "input"), t = as_tensor_arg(target, "nll_loss", "target")
    check_reduction(reduction)
    if x.ndim < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {x.ndim})")
    if x.ndim == 1:
        if t.ndim:
            raise ValueError(f"nll_loss: expected a target without dimensions for input of size {shape_text(x)}, got {shape_text(t)}")
        r = op__nll_loss(<TensorBase>input.reshape(1, -1, 1), <TensorBase>target.reshape(1, 1), weight, reduction, ignore_index)[0]
        return r.reshape(()) if reduction == NONE else r
    shape = list(t.shape)
    if t.ndim == 0 or x.sizes[0] != t.sizes[0]:
        raise ValueError(f"Expected input batch_size ({x.sizes[0]}) to match target batch_size ({t.sizes[0] if t.ndim else 0}).")
    if x.ndim == 2 and t.ndim != 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported")
    if list(input.shape[2:]) != shape[1:]:
        raise RuntimeError(f"Expected target size {[x.sizes[0]] + list(input.shape[2:])}, got {shape}")
    inner = 1
    for size in shape[1:]:
        inner *= size
    r = op__nll_loss(<TensorBase>input.reshape(x.sizes[0], x.sizes[1], inner), <TensorBase>target.reshape(x.sizes[0], inner), weight, reduction, ignore_index)[0]
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
    if weight is not None:
        shape = [1] * input.dim()
        shape[dim] = classes
        logs = logs * weight.reshape(shape)
    product = logs * target
    if reduction == NONE:
        return -product.sum(dim)
    if reduction == SUM:
        return -product.sum()
    return -product.sum() / (input.numel() / classes) if input.numel() else -product.sum() / 0.0


@autocast_policy(cpu="float32", cuda="float32")
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
    if x.ndim == t.ndim and category[t.dtype] == CAT_FLOAT:
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {shape_text(t)} for input {shape_text(x)}")
    if x.ndim == 2 and t.ndim == 1:
        return op__cross_entropy(x, t, w, reduction, ignore_index, smoothing)[0]
    if x.ndim == 1:
        if t.ndim:
            raise RuntimeError(f"Expected input batch_size to match target: input {shape_text(x)}, target {shape_text(t)}")
        r = op__cross_entropy(<TensorBase>_ops.unsqueeze(x, 0), <TensorBase>_ops.unsqueeze(t, 0), w, reduction, ignore_index, smoothing)[0]
        return r.reshape(()) if reduction == NONE else r
    if x.ndim < 1:
        raise ValueError(f"Expected 1 or more dimensions (got {x.ndim})")
    if t.ndim == 0 or x.sizes[0] != t.sizes[0]:
        raise ValueError(f"Expected input batch_size ({x.sizes[0]}) to match target batch_size ({t.sizes[0] if t.ndim else 0}).")
    if x.ndim == 2 and t.ndim != 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if list(input.shape[2:]) != list(target.shape[1:]):
        raise RuntimeError(f"Expected target size {[x.sizes[0]] + list(input.shape[2:])}, got {list(target.shape)}")
    inner = 1
    for size in target.shape[1:]:
        inner *= size
    r = op__cross_entropy(<TensorBase>input.reshape(x.sizes[0], x.sizes[1], inner), <TensorBase>target.reshape(x.sizes[0], inner), w, reduction, ignore_index, smoothing)[0]
    return r.reshape(target.shape) if reduction == NONE else r


EXTRA_EXPORTS = {
    "mse_loss": "", "l1_loss": "", "soft_margin_loss": "", "smooth_l1_loss": "", "huber_loss": "", "binary_cross_entropy": "", "binary_cross_entropy_with_logits": "f",
    "kl_div": "f", "nll_loss_nd": "", "nll_loss": "", "cross_entropy_loss": "",
}
