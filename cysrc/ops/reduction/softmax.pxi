# softmax and log_softmax of the reduction family, forward and backward.

cdef struct SoftmaxRun:
    const softmax_kernels* kernels
    const reduce_kernels* stats
    const char* data
    const char* grad
    char* out
    char* partials
    double maximum, total
    int64_t item, n, inner


cdef void run_softmax_rows(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef SoftmaxRun* s = <SoftmaxRun*>context
    s.kernels.rows(s.data, s.n * s.item, s.out, s.n * s.item, s.n, begin, end)


cdef void run_softmax_cols(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef SoftmaxRun* s = <SoftmaxRun*>context
    s.kernels.cols(s.data, s.n * s.inner * s.item, s.inner * s.item, s.out, s.n * s.inner * s.item, s.inner * s.item, s.n, s.inner, begin, end)


cdef void run_softmax_backward_rows(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef SoftmaxRun* s = <SoftmaxRun*>context
    s.kernels.backward_rows(s.grad, s.n * s.item, s.data, s.n * s.item, s.out, s.n * s.item, s.n, begin, end)


cdef void run_softmax_backward_cols(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef SoftmaxRun* s = <SoftmaxRun*>context
    s.kernels.backward_cols(s.grad, s.n * s.inner * s.item, s.inner * s.item, s.data, s.n * s.inner * s.item, s.inner * s.item, s.out,
                            s.n * s.inner * s.item, s.inner * s.item, s.n, s.inner, begin, end)


cdef void run_softmax_stats(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef SoftmaxRun* s = <SoftmaxRun*>context
    s.stats.chunks(s.data, s.item, s.n, REDUCE_CHUNK, s.partials, begin, end, NULL)


cdef void run_softmax_apply(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef SoftmaxRun* s = <SoftmaxRun*>context
    s.kernels.apply(s.data, s.out, begin, end, s.maximum, s.total)


cdef int64_t split_at(TensorBase x, int d, SoftmaxRun* s) noexcept:
    """Set n and inner for a contiguous tensor, return the number of outer positions."""
    cdef int64_t outer = 1
    cdef int i
    s.item = ITEM_SIZE[x.dtype]
    s.n = x.sizes[d] if x.ndim else 1
    s.inner = 1
    for i in range(x.ndim):
        if i < d:
            outer *= x.sizes[i]
        elif i > d:
            s.inner *= x.sizes[i]
    return outer


cdef TensorBase softmax_forward(TensorBase self, int64_t dim, int dtype, int op, TensorBase out, int mode, str name):
    cdef SoftmaxRun s
    cdef int d = wrap_dim(dim, self.ndim)
    cdef int64_t outer, blocks, chunks
    cdef TensorBase x, r
    cdef trt_block* scratch
    cdef trt_block* held
    if dtype >= 0:
        self = cast_to(self, dtype)
    if mode == OUT:
        check_out_type(name, out, self.dtype)
    x = contiguous_of(self)
    r = empty_tensor(x.ndim, x.sizes, x.dtype, place_of(x))
    s.kernels = softmax_table(op, x.dtype)
    if s.kernels.rows == NULL:
        raise NotImplementedError(f"\"{name}_lastdim_kernel_impl\" not implemented for '{dtype_text(x.dtype)}'")
    if x.numel and x.device_type == DEV_CUDA:
        device_softmax(x, d, op == LOG_SOFTMAX, r)
    elif x.numel and x.device_type != DEV_META:
        s.data = data_of(x)
        held = x.storage.block
        trt_block_hold(held)
        s.out = data_of(r)
        outer = split_at(x, d, &s)
        if s.inner == 1:
            if outer < 8 and s.n >= 16 * REDUCE_CHUNK:
                s.stats = reduce_table(REDUCE_LOGSUMEXP, x.dtype)
                chunks = (s.n + REDUCE_CHUNK - 1) // REDUCE_CHUNK
                try:
                    scratch = block_alloc(chunks * REDUCE_PARTIAL_BYTES)
                except:
                    block_drop(held)
                    raise
                s.partials = scratch.data
                with nogil:
                    while outer > 0:
                        parallel_for(chunks, GRAIN // 4 // REDUCE_CHUNK, 1, run_softmax_stats, &s)
                        softmax_combiner()(s.partials, chunks, &s.maximum, &s.total)
                        parallel_for(s.n, GRAIN // 4, 1024, run_softmax_apply, &s)
                        s.data += s.n * s.item
                        s.out += s.n * s.item
                        outer -= 1
                block_drop(scratch)
            elif x.numel < 2048:
                run_softmax_rows(&s, 0, outer)
            else:
                with nogil:
                    parallel_for(outer, (GRAIN // 4 + s.n - 1) // s.n, 1, run_softmax_rows, &s)
        else:
            blocks = (s.inner + SOFTMAX_COLUMNS - 1) // SOFTMAX_COLUMNS
            with nogil:
                parallel_for(outer * blocks, 1 + GRAIN // 4 // (s.n * (s.inner if s.inner < SOFTMAX_COLUMNS else SOFTMAX_COLUMNS)), 1, run_softmax_cols, &s)
        block_drop(held)
    return write_to_out(name, r, out, mode)


cdef TensorBase _softmax_cpu(TensorBase self, int64_t dim, int dtype, TensorBase out, int mode):
    return softmax_forward(self, dim, dtype, SOFTMAX, out, mode, "softmax")


cdef TensorBase _log_softmax_cpu(TensorBase self, int64_t dim, int dtype, TensorBase out, int mode):
    return softmax_forward(self, dim, dtype, LOG_SOFTMAX, out, mode, "log_softmax")


cdef TensorBase _softmax_backward_cpu(TensorBase grad_output, TensorBase output, int64_t dim, bint log):
    cdef SoftmaxRun s
    if category[output.dtype] != CAT_FLOAT:
        raise NotImplementedError(f"\"_softmax_backward\" not implemented for '{dtype_text(output.dtype)}'")
    cdef TensorBase g = contiguous_of(cast_to(grad_output, output.dtype)), y = contiguous_of(output)
    cdef TensorBase r = empty_tensor(y.ndim, y.sizes, y.dtype, place_of(y))
    cdef int64_t outer, blocks
    cdef trt_block* held[2]
    cdef int d = wrap_dim(dim, y.ndim)
    if not same_sizes(g, y):
        raise RuntimeError(f"_softmax_backward: the gradient has shape {shape_text(g)}, the output {shape_text(y)}")
    if y.numel and y.device_type == DEV_CUDA:
        device_softmax_backward(g, y, d, log, r)
    elif y.numel and y.device_type != DEV_META:
        s.kernels = softmax_table(LOG_SOFTMAX if log else SOFTMAX, y.dtype)
        s.data = data_of(y)
        s.grad = data_of(g)
        s.out = data_of(r)
        outer = split_at(y, d, &s)
        held[0] = g.storage.block
        held[1] = y.storage.block
        trt_block_hold(held[0])
        trt_block_hold(held[1])
        if s.inner == 1:
            with nogil:
                parallel_for(outer, (GRAIN // 2 + s.n - 1) // s.n, 1, run_softmax_backward_rows, &s)
        else:
            blocks = (s.inner + SOFTMAX_COLUMNS - 1) // SOFTMAX_COLUMNS
            with nogil:
                parallel_for(outer * blocks, 1 + GRAIN // 2 // (s.n * (s.inner if s.inner < SOFTMAX_COLUMNS else SOFTMAX_COLUMNS)), 1, run_softmax_backward_cols, &s)
        block_drop(held[0])
        block_drop(held[1])
    return r


cdef object softmax_grad(object grad, object result, int64_t dim, object meta):
    if not grad_mode():
        r = op__softmax_backward(grad, result, dim, False)
    else:
        product = grad * result
        r = product - result * product.sum(dim, True)
    return r.to(dtype_of(meta[1]))


cdef object log_softmax_grad(object grad, object result, int64_t dim, object meta):
    if not grad_mode():
        r = op__softmax_backward(grad, result, dim, True)
    else:
        r = grad - result.exp() * grad.sum(dim, True)
    return r.to(dtype_of(meta[1]))


cdef object softmax_tangent(object tangent, object result, int64_t dim):
    product = result * tangent
    return product - result * product.sum(dim, True)


cdef object log_softmax_tangent(object tangent, object result, int64_t dim):
    return tangent - (result.exp() * tangent).sum(dim, True)


cdef object softmax_entry(object function, object input, object dim, object dtype, object out, bint log):
    cdef str name = "log_softmax" if log else "softmax"
    self = as_tensor_arg(input, name, "input")
    if dim is None:
        raise TypeError(f"{name}() missing 1 required positional arguments: \"dim\"")
    d = parse_int(dim, name, "dim")
    code = parse_dtype(dtype, name)
    if out is None:
        return op__log_softmax(self, d, code, None, FRESH) if log else op__softmax(self, d, code, None, FRESH)
    check_out(out, name)
    r = op__log_softmax(self, d, code, <TensorBase>out, OUT) if log else op__softmax(self, d, code, <TensorBase>out, OUT)
    bump_version(<TensorBase>out)
    return r


def softmax(input, dim=None, dtype=None, *, out=None):
    """exp(x) / sum(exp(x)) along a dimension, in a numerically safe form."""
    return softmax_entry(softmax, input, dim, dtype, out, False)


def log_softmax(input, dim=None, dtype=None, *, out=None):
    """log(softmax(x)) along a dimension, in a numerically safe form."""
    return softmax_entry(log_softmax, input, dim, dtype, out, True)


