# Fused optimizer steps (one call updates all parameters of a group) and the _foreach_ operators.
#
# A fused step cuts the tensors into chunks and runs the loops of loops/optim.c over them; every element is independent, so
# the result does not depend on the number of threads. Tensors that do not lie in memory as their parameter does, or have
# another dtype, go through temporaries. The _foreach_ operators are loops over the operators themselves, so they record,
# promote and check as those do.
from libc.math cimport pow as power, sqrt as square_root
from tensorrt_lite._C.core.storage cimport prepare_write
from tensorrt_lite._C.ops.optim.updates cimport Step, Update, adam_params, sgd_params
from tensorrt_lite._C.steps.optim cimport has_fused_update, run_fused_update, run_unscale, run_update_scale, set_fused_update, set_unscale, set_update_scale

cdef extern from "../loops/optim.c" nogil:
    ctypedef void (*sgd_fn)(char*, char*, char*, int64_t, const sgd_params*) noexcept nogil
    ctypedef void (*adam_fn)(char*, char*, char*, char*, char*, int64_t, const adam_params*) noexcept nogil
    ctypedef int (*unscale_fn)(char*, int64_t, float) noexcept nogil
    ctypedef struct optim_kernels:
        sgd_fn sgd[4]
        adam_fn adam[4]
        unscale_fn unscale[4]

cdef enum:
    OPTIM_CHUNK = 16384            # elements of a task
    OPTIM_RELEASE = 32768          # elements from which a step releases the GIL

cdef extern from *:
    """
    ISA_TABLE(optim_kernels, optim_table)
    """
    const optim_kernels* optim_table()

cdef const optim_kernels* TABLE = optim_table()


cdef void run_update(Step* s, Update* u, int64_t begin, int64_t end) noexcept nogil:
    cdef int64_t at = begin * (2 if u.code < 2 else 4 if u.code == 2 else 8)
    cdef adam_params adam
    if s.sgd != NULL:
        TABLE.sgd[u.code](u.data[0] + at, u.data[1] + at, u.data[2] + at if u.data[2] != NULL else NULL, end - begin, s.sgd)
    else:
        adam = s.adam[0]
        adam.bias1 = u.bias1
        adam.bias2_sqrt = u.bias2_sqrt
        TABLE.adam[u.code](u.data[0] + at, u.data[1] + at, u.data[2] + at, u.data[3] + at, u.data[4] + at if u.data[4] != NULL else NULL, end - begin, &adam)


cdef void run_chunks(void* context, int64_t begin, int64_t end) noexcept nogil:
    """Chunks [begin, end) of the whole step; the update that a chunk belongs to is found by bisection."""
    cdef Step* s = <Step*>context
    cdef int low = 0, high = s.count, middle
    cdef int64_t c, start, stop
    while high - low > 1:
        middle = (low + high) // 2
        if s.updates[middle].first_chunk <= begin:
            low = middle
        else:
            high = middle
    for c in range(begin, end):
        while low + 1 < s.count and s.updates[low + 1].first_chunk <= c:
            low += 1
        start = (c - s.updates[low].first_chunk) * OPTIM_CHUNK
        stop = min(start + OPTIM_CHUNK, s.updates[low].n)
        run_update(s, &s.updates[low], start, stop)


cdef int update_cpu(Step* s) except -1:
    cdef int i
    cdef int64_t total = 0
    s.chunks = 0
    for i in range(s.count):
        s.updates[i].first_chunk = s.chunks
        s.chunks += (s.updates[i].n + OPTIM_CHUNK - 1) // OPTIM_CHUNK
        total += s.updates[i].n
    if total < OPTIM_RELEASE:
        for i in range(s.count):
            run_update(s, &s.updates[i], 0, s.updates[i].n)
        return 0
    with nogil:
        parallel_for(s.chunks, GRAIN // OPTIM_CHUNK // 2, 1, run_chunks, s)
    return 0


set_fused_update(DEV_CPU, update_cpu)


cdef void free_updates(Step* s) noexcept:
    cdef int i, k
    for i in range(s.count):
        for k in range(5):
            block_drop(s.updates[i].blocks[k])
    free(s.updates)


cdef bint lies_like(TensorBase t, TensorBase p) noexcept:
    """The same dtype, sizes and strides: element i of the one stands where element i of the other does."""
    cdef int i
    if t.dtype != p.dtype or t.device_type != p.device_type:
        return False
    for i in range(p.ndim):
        if t.strides[i] != p.strides[i] and p.sizes[i] != 1:
            return False
    return True


cdef int add_update(Step* s, str op, TensorBase p, TensorBase g, list states, bint write_gradient, list write_back) except -1:
    """Fill the next update; tensors that lie otherwise are replaced by contiguous temporaries and noted in `write_back`. Blocks are held
    from here to free_updates: the copies of this and the following updates may let other threads run, a counter's `item` any Python."""
    cdef Update* u = &s.updates[s.count]
    cdef TensorBase t, x
    cdef int64_t n = p.numel
    cdef int k = 0
    cdef bint direct = non_overlapping_dense(p)
    cdef list tensors = [p, g] + states
    if not (is_floating_type(p.dtype) and has_loops(p.dtype)):
        raise RuntimeError(f"{op}: expected parameters of a floating point dtype, got {dtype_of(p.dtype)!r}")
    for y in tensors:
        if y is None:
            continue
        t = <TensorBase?>y
        if not same_sizes(t, p):
            raise RuntimeError(f"{op}: expected a tensor of shape {shape_text(p)} beside the parameter, got {shape_text(t)}")
        if place_of(t) != place_of(p):
            raise RuntimeError(f"{op}: Expected all tensors to be on the same device")
        if not lies_like(t, p):
            direct = False
    if p.device_type == DEV_META or p.numel == 0:
        return 0
    if not has_fused_update(p.device_type):
        raise NotImplementedError(f"Could not run '{op}' with parameters on {make_device(p.device_type, None)}: it has no kernel there")
    u.step = NULL
    u.n = n
    u.code = p.dtype - F16
    u.device = p.device_index if p.device_type == DEV_CUDA else -1
    if s.count and (s.updates[0].device >= 0) != (u.device >= 0):
        raise RuntimeError(f"{op}: Expected all parameters to be on the CPU or all on CUDA")
    while k < 5:
        u.data[k] = NULL
        u.blocks[k] = NULL
        k += 1
    s.count += 1
    k = 0
    for y in tensors:
        if y is not None:
            t = <TensorBase>y
            if not direct:
                x = contiguous_of(cast_to(t, u.code + F16))
                if x is not t:
                    # kept alive until the step is done, and copied back unless it was only read
                    write_back.append((t if k != 1 or write_gradient else None, x))
                    t = x
            if t.numel != n or t.dtype != u.code + F16:
                raise RuntimeError(f"{op}: a tensor was changed by another thread")
            if k != 1 or write_gradient:
                prepare_write(t.storage, op)
            u.data[k] = data_of(t)
            u.blocks[k] = t.storage.block
            trt_block_hold(u.blocks[k])
        k += 1
    return 0


cdef int finish_step(Step* s, str op, list written, list write_back) except -1:
    for tensors in written:
        for t in <list>tensors:
            prepare_write((<TensorBase>t).storage, op)
    if s.count:
        run_fused_update(DEV_CUDA if s.updates[0].device >= 0 else DEV_CPU, s)
    for t, x in write_back:
        if t is not None:
            copy_elements(<TensorBase>t, <TensorBase>x)
    for tensors in written:
        for t in <list>tensors:
            bump_version(<TensorBase>t)
    return 0


cdef list checked_list(object x, str op, str name, Py_ssize_t n):
    cdef list result = tensor_list(x, op, name)
    if len(result) != n:
        raise RuntimeError(f"{op}: argument '{name}' has {len(result)} tensors, expected {n}, one per parameter")
    return result


cdef bint overflowed(object found_inf) except -1:
    return found_inf is not None and (<TensorBase?>found_inf).device_type != DEV_META and found_inf.item() != 0


cdef double rate_of(object lr) except? -1.0:
    """A rate that the host reads; 0 for one without elements."""
    return 0.0 if isinstance(lr, TensorBase) and (<TensorBase>lr).device_type == DEV_META else float(lr)


cdef int common_device(list tensors) noexcept:
    """The index of the CUDA device that all lie on, or -1."""
    cdef int index = -1
    for t in tensors:
        if (<TensorBase>t).device_type != DEV_CUDA or index >= 0 and (<TensorBase>t).device_index != index:
            return -1
        index = (<TensorBase>t).device_index
    return index


cdef const float* number_there(object x, int device) noexcept:
    """A number of float32 on this device, for kernels to read; NULL for others, which the host reads."""
    cdef TensorBase t
    if device < 0 or not isinstance(x, TensorBase):
        return NULL
    t = <TensorBase>x
    if t.device_type != DEV_CUDA or t.device_index != device or t.dtype != F32 or t.numel != 1:
        return NULL
    return <const float*>data_of(t)


cdef double number_at(TensorBase t) except? -1.0:
    if t.numel != 1:
        raise RuntimeError(f"expected a step counter of one element, got {shape_text(t)}")
    if t.device_type == DEV_META:
        return 1
    if t.device_type == DEV_CPU and t.dtype == F32:
        return (<float*>data_of(t))[0]
    return (<object>t).item()


def _fused_sgd_(
    self, grads, momentum_buffer_list, *, double weight_decay, double momentum, lr, double dampening, bint nesterov, bint maximize, bint is_first_step,
    grad_scale=None, found_inf=None,
):
    """One step of SGD over lists of parameters, gradients and momentum buffers (empty without momentum), in place."""
    cdef list params = tensor_list(self, "_fused_sgd_", "self")
    op__fused_sgd_(
        params, checked_list(grads, "_fused_sgd_", "grads", len(params)),
        checked_list(momentum_buffer_list, "_fused_sgd_", "momentum_buffer_list", len(params)) if momentum != 0 else [],
        weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale, found_inf)
    count_writes(params, [momentum_buffer_list] if momentum != 0 else [])


cdef int count_writes(list params, list states) except -1:
    """Where a mode or a subclass has run a step, what the step's kernel counted is held back, as for every operator, and counted by its entry."""
    if not params or not intercepted((<TensorBase>params[0]).keys):
        return 0
    for tensors in (params, *states):
        for t in tensors:
            bump_version(<TensorBase?>t)
    return 0


cdef object _fused_sgd__kernel(
    list params, list gradients, object momentum_buffers, double weight_decay, double momentum, object lr, double dampening, bint nesterov, bint maximize,
    bint is_first_step, object grad_scale, object found_inf,
):
    cdef bint has_momentum = momentum != 0
    cdef list buffers = <list?>momentum_buffers, write_back = []
    cdef sgd_params c
    cdef Step s
    cdef int i, device = common_device(params)
    if not params:
        return None
    s.lr, s.grad_scale, s.found_inf = number_there(lr, device), number_there(grad_scale, device), number_there(found_inf, device)
    if s.found_inf == NULL and overflowed(found_inf):
        return None
    c.lr = rate_of(lr) if s.lr == NULL else 0.0
    c.weight_decay = weight_decay
    c.momentum = momentum
    c.dampening = dampening
    c.nesterov = nesterov
    c.maximize = maximize
    c.first = is_first_step
    c.scaled = grad_scale is not None
    c.grad_scale = rate_of(grad_scale) if grad_scale is not None and s.grad_scale == NULL else 1.0
    s.sgd = &c
    s.adam = NULL
    s.count = 0
    s.updates = <Update*>malloc(len(params) * sizeof(Update))
    if s.updates == NULL:
        raise MemoryError("_fused_sgd_: no memory for the list of updates")
    try:
        for i in range(len(params)):
            add_update(&s, "_fused_sgd_", <TensorBase>params[i], <TensorBase>gradients[i], [buffers[i]] if has_momentum else [], c.scaled, write_back)
        finish_step(&s, "_fused_sgd_", [params, buffers, gradients] if c.scaled else [params, buffers], write_back)
    finally:
        free_updates(&s)


cdef int adam_step(
    str op, list params, list gradients, list first, list second, list largest, list steps, object lr, double beta1, double beta2, double weight_decay,
    double eps, bint amsgrad, bint maximize, object grad_scale, object found_inf, bint decoupled,
) except -1:
    cdef Py_ssize_t n = len(params)
    cdef list write_back = []
    cdef adam_params c
    cdef Step s
    cdef const float* counter
    cdef int i, before, device = common_device(params)
    cdef double step, last = -1, bias1 = 0, bias2 = 0
    if n == 0:
        return 0
    s.lr, s.grad_scale, s.found_inf = number_there(lr, device), number_there(grad_scale, device), number_there(found_inf, device)
    if s.found_inf == NULL and overflowed(found_inf):
        return 0
    c.lr = rate_of(lr) if s.lr == NULL else 0.0
    c.beta1 = beta1
    c.beta2 = beta2
    c.weight_decay = weight_decay
    c.eps = eps
    c.amsgrad = amsgrad
    c.maximize = maximize
    c.decoupled = decoupled
    c.scaled = grad_scale is not None
    c.grad_scale = rate_of(grad_scale) if grad_scale is not None and s.grad_scale == NULL else 1.0
    s.sgd = NULL
    s.adam = &c
    s.count = 0
    s.updates = <Update*>malloc(n * sizeof(Update))
    if s.updates == NULL:
        raise MemoryError(f"{op}: no memory for the list of updates")
    try:
        for i in range(n):
            counter = number_there(steps[i], device)
            step = number_at(<TensorBase>steps[i]) if counter == NULL else 1
            if step != last:
                last = step
                bias1 = 1 - power(beta1, step)
                bias2 = square_root(1 - power(beta2, step))
            before = s.count
            add_update(
                &s, op, <TensorBase>params[i], <TensorBase>gradients[i], [first[i], second[i], largest[i]] if amsgrad else [first[i], second[i]], c.scaled,
                write_back)
            if s.count > before:
                s.updates[before].step = counter
                s.updates[before].bias1 = bias1
                s.updates[before].bias2_sqrt = bias2
        finish_step(&s, op, [params, first, second, largest, gradients if c.scaled else []], write_back)
    finally:
        free_updates(&s)
    return 0


def _fused_adam_(
    self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, *, lr, double beta1, double beta2, double weight_decay, double eps, bint amsgrad,
    bint maximize, grad_scale=None, found_inf=None,
):
    """One step of Adam over lists of parameters, gradients and states, in place. state_steps: counters already incremented."""
    cdef list params = tensor_list(self, "_fused_adam_", "self")
    cdef Py_ssize_t n = len(params)
    op__fused_adam_(
        params, checked_list(grads, "_fused_adam_", "grads", n), checked_list(exp_avgs, "_fused_adam_", "exp_avgs", n),
        checked_list(exp_avg_sqs, "_fused_adam_", "exp_avg_sqs", n), checked_list(max_exp_avg_sqs, "_fused_adam_", "max_exp_avg_sqs", n) if amsgrad else [],
        checked_list(state_steps, "_fused_adam_", "state_steps", n), lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf)
    count_writes(params, [exp_avgs, exp_avg_sqs, max_exp_avg_sqs] if amsgrad else [exp_avgs, exp_avg_sqs])


cdef object _fused_adam__kernel(
    list params, list gradients, object first, object second, object largest, object steps, object lr, double beta1, double beta2, double weight_decay,
    double eps, bint amsgrad, bint maximize, object grad_scale, object found_inf,
):
    adam_step(
        "_fused_adam_", params, gradients, <list?>first, <list?>second, <list?>largest, <list?>steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf, False)


def _fused_adamw_(
    self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, *, lr, double beta1, double beta2, double weight_decay, double eps, bint amsgrad,
    bint maximize, grad_scale=None, found_inf=None,
):
    """One step of AdamW (decoupled weight decay) over lists of parameters, gradients and states, in place."""
    cdef list params = tensor_list(self, "_fused_adamw_", "self")
    cdef Py_ssize_t n = len(params)
    op__fused_adamw_(
        params, checked_list(grads, "_fused_adamw_", "grads", n), checked_list(exp_avgs, "_fused_adamw_", "exp_avgs", n),
        checked_list(exp_avg_sqs, "_fused_adamw_", "exp_avg_sqs", n), checked_list(max_exp_avg_sqs, "_fused_adamw_", "max_exp_avg_sqs", n) if amsgrad else [],
        checked_list(state_steps, "_fused_adamw_", "state_steps", n), lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf)
    count_writes(params, [exp_avgs, exp_avg_sqs, max_exp_avg_sqs] if amsgrad else [exp_avgs, exp_avg_sqs])


cdef object _fused_adamw__kernel(
    list params, list gradients, object first, object second, object largest, object steps, object lr, double beta1, double beta2, double weight_decay,
    double eps, bint amsgrad, bint maximize, object grad_scale, object found_inf,
):
    adam_step(
        "_fused_adamw_", params, gradients, <list?>first, <list?>second, <list?>largest, <list?>steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf, True)


# ---- scales of losses ----------------------------------------------------------------------------------------------

cdef struct Unscaling:
    char* data
    int64_t n
    int code
    float factor
    int found        # set by any thread, never cleared


cdef void unscale_chunks(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Unscaling* u = <Unscaling*>context
    cdef int64_t at = begin * OPTIM_CHUNK, stop = min(end * OPTIM_CHUNK, u.n)
    if TABLE.unscale[u.code](u.data + at * (2 if u.code < 2 else 4 if u.code == 2 else 8), stop - at, u.factor):
        set_flag(&u.found)


cdef extern from *:
    """
    static inline void trt_set_flag(int *flag) { __atomic_store_n(flag, 1, __ATOMIC_RELAXED); }
    """
    void set_flag "trt_set_flag"(int* flag) noexcept nogil


cdef int unscale_cpu(TensorBase g, TensorBase found_inf, TensorBase inv_scale) except -1:
    cdef Unscaling u
    u.data = data_of(g)
    u.n = g.numel
    u.code = g.dtype - F16
    u.factor = (<float*>data_of(inv_scale))[0]
    u.found = 0
    run_held(unscale_chunks, &u, (u.n + OPTIM_CHUNK - 1) // OPTIM_CHUNK, u.n, g, found_inf)
    if u.found:
        (<float*>data_of(found_inf))[0] = 1
    return 0


cdef int update_scale_cpu(TensorBase scale, TensorBase tracker, TensorBase found_inf, double growth, double backoff, int64_t interval) except -1:
    cdef float* s = <float*>data_of(scale)
    cdef int* steps = <int*>data_of(tracker)
    cdef float grown
    if (<float*>data_of(found_inf))[0] != 0:
        s[0] = <float>(s[0] * backoff)
        steps[0] = 0
    elif steps[0] + 1 == interval:
        grown = <float>(s[0] * growth)
        if grown - grown == 0:
            s[0] = grown
        steps[0] = 0
    else:
        steps[0] += 1
    return 0


set_unscale(DEV_CPU, unscale_cpu)
set_update_scale(DEV_CPU, update_scale_cpu)


cdef int check_scale_number(TensorBase t, int dtype, str op, str name) except -1:
    if t.numel != 1:
        raise RuntimeError(f"{op}: {name} must be a 1-element tensor, got {shape_text(t)}")
    if t.dtype != dtype:
        raise RuntimeError(f"{op}: {name} must be a {dtype_of(dtype).name} tensor, got {dtype_of(t.dtype).name}")
    return 0


def _amp_foreach_non_finite_check_and_unscale_(self, found_inf, inv_scale):
    """Gradients times inv_scale, in place; found_inf becomes 1 where one of them is not finite."""
    cdef list grads = tensor_list(self, "_amp_foreach_non_finite_check_and_unscale_", "self")
    op__amp_foreach_non_finite_check_and_unscale_(grads, <TensorBase?>found_inf, <TensorBase?>inv_scale)
    count_writes(grads, [[found_inf]])


cdef object _amp_foreach_non_finite_check_and_unscale__kernel(list grads, TensorBase found_inf, TensorBase inv_scale):
    cdef TensorBase g, x
    cdef str op = "_amp_foreach_non_finite_check_and_unscale_"
    check_scale_number(found_inf, F32, op, "found_inf")
    check_scale_number(inv_scale, F32, op, "inv_scale")
    for t in grads:
        g = <TensorBase>t
        if not (is_floating_type(g.dtype) and has_loops(g.dtype)):
            raise RuntimeError(f"{op}: expected gradients of a floating point dtype, got {dtype_of(g.dtype)!r}")
        if place_of(g) != place_of(found_inf) or place_of(g) != place_of(inv_scale):
            raise RuntimeError(f"{op}: expected gradients, found_inf and inv_scale on the same device")
    prepare_write(found_inf.storage, op)
    for t in grads:
        g = <TensorBase>t
        if g.numel == 0:
            continue
        prepare_write(g.storage, op)
        x = g if non_overlapping_dense(g) else contiguous_of(g)
        run_unscale(g.device_type, x, found_inf, inv_scale)
        if x is not g:
            copy_elements(g, x)
        bump_version(g)
    bump_version(found_inf)


def _amp_update_scale_(self, growth_tracker, found_inf, double scale_growth_factor, double scale_backoff_factor, int64_t growth_interval):
    """Shrink the scale where an infinity was found; grow it after growth_interval steps without one. Returns the scale, written in place."""
    op__amp_update_scale_(<TensorBase?>self, <TensorBase?>growth_tracker, <TensorBase?>found_inf, scale_growth_factor, scale_backoff_factor, growth_interval)
    count_writes([self], [[growth_tracker]])
    return self


cdef object _amp_update_scale__kernel(TensorBase scale, TensorBase growth_tracker, TensorBase found_inf, double growth, double backoff, int64_t interval):
    cdef str op = "_amp_update_scale_"
    check_scale_number(scale, F32, op, "the scale")
    check_scale_number(growth_tracker, I32, op, "growth_tracker")
    check_scale_number(found_inf, F32, op, "found_inf")
    if place_of(scale) != place_of(growth_tracker) or place_of(scale) != place_of(found_inf):
        raise RuntimeError(f"{op}: expected the scale, growth_tracker and found_inf on the same device")
    prepare_write(scale.storage, op)
    prepare_write(growth_tracker.storage, op)
    run_update_scale(scale.device_type, scale, growth_tracker, found_inf, growth, backoff, interval)
    bump_version(scale)
    bump_version(growth_tracker)


# ---- _foreach_ -----------------------------------------------------------------------------------------------------

cdef list foreach_list(object x, str op):
    cdef list tensors = tensor_list(x, op, "self")
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return tensors


cdef object per_tensor(object x, Py_ssize_t n, str op):
    """The n values of an operand that is a list of tensors or numbers; None when it is one value for all."""
    cdef object values
    if not isinstance(x, (list, tuple)):
        return None
    values = x
    if len(values) != n:
        kind = "Tensor lists" if values and isinstance(values[0], TensorBase) else "Tensor list must have same number of elements as scalar list; lists"
        raise RuntimeError(f"{op}: {kind} must have the same number of tensors, got {n} and {len(values)}")
    return values


cdef list foreach1(object f, object tensors, str op):
    return [f(t) for t in foreach_list(tensors, op)]


cdef list foreach2(object f, object tensors, object other, str op):
    cdef list a = foreach_list(tensors, op)
    cdef object b = per_tensor(other, len(a), op)
    if b is None:
        return [f(t, other) for t in a]
    return [f(x, y) for x, y in zip(a, b)]


cdef list foreach_scaled(object f, object tensors, object other, object alpha, str op):
    cdef list a = foreach_list(tensors, op)
    cdef object b = per_tensor(other, len(a), op)
    if alpha is None:
        return [f(t, other) for t in a] if b is None else [f(x, y) for x, y in zip(a, b)]
    return [f(t, other, alpha=alpha) for t in a] if b is None else [f(x, y, alpha=alpha) for x, y in zip(a, b)]


cdef list foreach3(object f, object tensors, object t1, object t2, object values, str op):
    cdef list a = foreach_list(tensors, op)
    cdef object b = per_tensor(t1, len(a), op)
    cdef object c = per_tensor(t2, len(a), op)
    cdef object v
    if b is None or c is None:
        raise TypeError(f"{op}(): arguments 'tensor1' and 'tensor2' must be lists of tensors")
    if isinstance(values, TensorBase):
        if values.dim() != 1 or values.numel() != len(a):
            raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1 with {len(a)} elements. Got shape {list(values.shape)}")
        values = values.tolist()
    v = per_tensor(values, len(a), op)
    if v is None:
        return [f(x, y, z, value=values) for x, y, z in zip(a, b, c)]
    return [f(x, y, z, value=w) for x, y, z, w in zip(a, b, c, v)]


def _make_unary(str name, bint inplace):
    operator = name + "_" if inplace else name
    public = "_foreach_" + operator

    def f(self):
        r = foreach1(getattr(_ops, operator), self, public)
        return None if inplace else r
    return _named(f, public)


def _make_binary(str name, bint inplace):
    operator = name + "_" if inplace else name
    public = "_foreach_" + operator

    def f(self, other):
        r = foreach2(getattr(_ops, operator), self, other, public)
        return None if inplace else r
    return _named(f, public)


def _make_scaled(str name, bint inplace):
    operator = name + "_" if inplace else name
    public = "_foreach_" + operator

    def f(self, other, alpha=None):
        r = foreach_scaled(getattr(_ops, operator), self, other, alpha, public)
        return None if inplace else r
    return _named(f, public)


def _make_ternary(str name, bint inplace):
    operator = name + "_" if inplace else name
    public = "_foreach_" + operator

    def f(self, tensor1, tensor2, value=1):
        r = foreach3(getattr(_ops, operator), self, tensor1, tensor2, value, public)
        return None if inplace else r
    return _named(f, public)


def _make_bound(str name, str tensor_form, str number_form, bint inplace):
    """maximum and clamp_min are one operator for tensors and another for numbers; likewise minimum and clamp_max."""
    public = "_foreach_" + name + ("_" if inplace else "")
    suffix = "_" if inplace and number_form else ""

    def f(self, other):
        values = per_tensor(other, len(foreach_list(self, public)), public)
        first = values[0] if values is not None else other
        if isinstance(first, TensorBase):
            g = getattr(_ops, tensor_form)
            r = foreach2(g, self, other, public)
            if inplace:
                for t, x in zip(self, r):
                    t.copy_(x)
        else:
            r = foreach2(getattr(_ops, number_form + suffix), self, other, public)
        return None if inplace else r
    return _named(f, public)


def _named(f, str name):
    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"{name[9:]} of each tensor of a list; a second operand may be one value or a list."
    globals()[name] = f
    WITHOUT_ROW[name] = "f"
    return f


def _foreach_lerp(self, end, weight):
    """lerp of each pair of tensors; weight: a number, a list of numbers, or a list of tensors."""
    a = foreach_list(self, "_foreach_lerp")
    b = per_tensor(end, len(a), "_foreach_lerp")
    w = per_tensor(weight, len(a), "_foreach_lerp")
    if w is None:
        return [_ops.lerp(x, y, weight) for x, y in zip(a, b)]
    return [_ops.lerp(x, y, z) for x, y, z in zip(a, b, w)]


def _foreach_lerp_(self, end, weight):
    """lerp of each pair of tensors, in place."""
    a = foreach_list(self, "_foreach_lerp_")
    b = per_tensor(end, len(a), "_foreach_lerp_")
    w = per_tensor(weight, len(a), "_foreach_lerp_")
    for i in range(len(a)):
        a[i].lerp_(b[i], weight if w is None else w[i])


def _foreach_norm(self, ord=2, dtype=None):
    """The vector norm of each tensor."""
    cdef list result = []
    for t in foreach_list(self, "_foreach_norm"):
        result.append(_ops.linalg_vector_norm(t, ord, None, False, dtype=dtype))
    return result


def _foreach_zero_(self):
    """Fill each tensor with zeros."""
    for t in foreach_list(self, "_foreach_zero_"):
        t.zero_()


def _foreach_copy_(self, src, non_blocking=False):
    """Copy each tensor of `src` into the tensor at the same place."""
    a = foreach_list(self, "_foreach_copy_")
    b = per_tensor(src, len(a), "_foreach_copy_")
    for x, y in zip(a, b):
        x.copy_(y)


def _foreach_pow(self, exponent):
    """Powers of each tensor, or of one number to each tensor."""
    if is_number(self):
        return [_ops.pow(self, x) for x in foreach_list(exponent, "_foreach_pow")]
    return foreach2(_ops.pow, self, exponent, "_foreach_pow")


def _foreach_pow_(self, exponent):
    """Powers of each tensor, in place."""
    for x, y in zip(foreach_list(self, "_foreach_pow_"), per_tensor(exponent, len(self), "_foreach_pow_") or [exponent] * len(self)):
        x.pow_(y)


WITHOUT_ROW = {name: "f" for name in ("_foreach_lerp", "_foreach_lerp_", "_foreach_norm", "_foreach_zero_", "_foreach_copy_", "_foreach_pow", "_foreach_pow_")}

for _inplace in (False, True):
    for _name in (
        "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "neg",
        "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
    ):
        _make_unary(_name, _inplace)
    for _name in ("mul", "div"):
        _make_binary(_name, _inplace)
    for _name in ("add", "sub"):
        _make_scaled(_name, _inplace)
    for _name in ("addcmul", "addcdiv"):
        _make_ternary(_name, _inplace)
    _make_bound("maximum", "maximum", "clamp_min", _inplace)
    _make_bound("minimum", "minimum", "clamp_max", _inplace)
    _make_bound("clamp_min", "maximum", "clamp_min", _inplace)
    _make_bound("clamp_max", "minimum", "clamp_max", _inplace)
