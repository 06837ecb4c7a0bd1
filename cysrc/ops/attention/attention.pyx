# scaled_dot_product_attention: float32 (and halves, in float32) over loops/attention.c in memory linear in the length, on CUDA also double
# and dropout; the rest and masks that need a gradient by composition, which holds the (L, S) weights.

from tensorrt_lite._C.core.python_key import composition
from tensorrt_lite._C.ops.matmul.packed cimport bf16_by_tiles
from tensorrt_lite._C.steps.attention cimport (
    has_attend, run_attend, run_attend_backward, run_attention_draw, run_attention_kept, run_attention_takes, set_attend, set_attend_backward, set_attention_takes)

cdef extern from "../loops/attention.h" nogil:
    enum:
        ATTENTION_UNMASKED
        ATTENTION_ALLOWED
        ATTENTION_ADDED
        ATTENTION_QUERIES
        ATTENTION_KEYS
        ATTENTION_TILE
    ctypedef struct attention_operand:
        const void* data
        int64_t batch, head, row
    ctypedef struct attention_args:
        int64_t batches, heads, key_heads, queries, keys, width, value_width
        float scale
        int causal, mask_kind
        const char* mask
        int64_t mask_batch, mask_head, mask_row, mask_column
        attention_operand q, k, v, out, grad, dq, dk, dv
        float* lse
        int failed
    ctypedef struct attention_kernels:
        void (*forward)(attention_args*, int64_t, int64_t) noexcept nogil
        void (*forward_tiles)(attention_args*, int64_t, int64_t) noexcept nogil
        void (*backward_tiles)(attention_args*, int64_t, int64_t) noexcept nogil
        void (*backward)(attention_args*, int64_t, int64_t) noexcept nogil
        void (*backward_keys)(attention_args*, int64_t, int64_t) noexcept nogil
        void (*backward_queries)(attention_args*, int64_t, int64_t) noexcept nogil

cdef extern from *:
    """
    ISA_TABLE(attention_kernels, attention)
    """
    const attention_kernels* attention_loops "attention"()

cdef const attention_kernels* KERNELS = attention_loops()

cdef bint tiled_enabled = True, composed_enabled = True


def _enable_kernels(bint tiled, bint composed):
    """What scaled_dot_product_attention may use: the flags of backends.cuda."""
    global tiled_enabled, composed_enabled
    tiled_enabled, composed_enabled = tiled, composed


cdef enum:
    HEADS_SHARED = 8             # heads from which on each is a task of the backward; fewer: two passes, over keys and queries
    SERIAL_WORK = 1 << 17        # multiplications of one product worth another thread: some 10 us, with the softmax


cdef void forward_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    KERNELS.forward(<attention_args*>context, begin, end)


cdef void forward_tiles_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    KERNELS.forward_tiles(<attention_args*>context, begin, end)


cdef void backward_tiles_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    KERNELS.backward_tiles(<attention_args*>context, begin, end)


cdef void backward_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    KERNELS.backward(<attention_args*>context, begin, end)


cdef void backward_keys_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    KERNELS.backward_keys(<attention_args*>context, begin, end)


cdef void backward_queries_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    KERNELS.backward_queries(<attention_args*>context, begin, end)


cdef TensorBase rows_of(TensorBase t):
    """t, copied unless its last dimension is contiguous."""
    return t if t.ndim == 4 and (t.strides[3] == 1 or t.sizes[3] == 1) else contiguous_of(t)


cdef void operand(attention_operand* x, TensorBase t) noexcept:
    x.data = NULL
    if t is not None:
        x.data = data_of(t)
        x.batch = t.strides[0]
        x.head = t.strides[1]
        x.row = t.strides[2]


cdef TensorBase heads_as(TensorBase like, int64_t width):
    """An output (batch, heads, length, width) in the memory order of `like`: heads behind the length, as split from (batch, length, heads * width), or in front."""
    cdef int64_t sizes[4]
    cdef int64_t strides[4]
    cdef bint behind = like.strides[1] < like.strides[2]
    memcpy(sizes, like.sizes, 4 * sizeof(int64_t))
    sizes[3] = width
    strides[0] = sizes[1] * sizes[2] * width
    strides[1] = width if behind else sizes[2] * width
    strides[2] = sizes[1] * width if behind else width
    strides[3] = 1
    return empty_strided_tensor(4, sizes, strides, like.dtype, place_of(like))


cdef TensorBase expanded_mask(TensorBase mask, TensorBase query, TensorBase key):
    return None if mask is None else <TensorBase?>_ops.expand(mask, (query.sizes[0], query.sizes[1], query.sizes[2], key.sizes[2]))


cdef void describe(attention_args* a, TensorBase query, TensorBase key, TensorBase value, TensorBase mask, TensorBase lse, bint causal, double scale) noexcept:
    """Everything but the outputs."""
    a.batches = query.sizes[0]
    a.heads = query.sizes[1]
    a.key_heads = key.sizes[1]
    a.queries = query.sizes[2]
    a.keys = key.sizes[2]
    a.width = query.sizes[3]
    a.value_width = value.sizes[3]
    a.scale = <float>scale
    a.causal = causal
    a.failed = 0
    a.mask = NULL
    a.mask_kind = ATTENTION_UNMASKED
    operand(&a.q, query)
    operand(&a.k, key)
    operand(&a.v, value)
    operand(&a.dq, None)
    operand(&a.dk, None)
    operand(&a.dv, None)
    a.lse = <float*>data_of(lse)
    if mask is None:
        return
    a.mask = data_of(mask)
    a.mask_kind = ATTENTION_ALLOWED if mask.dtype == BOOL else ATTENTION_ADDED
    a.mask_batch = mask.strides[0]
    a.mask_head = mask.strides[1]
    a.mask_row = mask.strides[2]
    a.mask_column = mask.strides[3]


cdef object attention_impl(TensorBase query, TensorBase key, TensorBase value, TensorBase attn_mask, bint is_causal, double scale, double dropout_p, int64_t seed, int64_t offset, int64_t state):
    """(output, log of each row's sum of exponentials) of (batch, heads, length, width) operands without empty dimensions that the device's
    kernel takes; attn_mask: bool or of their type, broadcast to (batch, heads, L, S)."""
    cdef TensorBase q = rows_of(query), k = rows_of(key), v = rows_of(value), out = heads_as(query, value.sizes[3])
    cdef TensorBase lse = empty_tensor(3, query.sizes, F64 if query.dtype == F64 else F32, place_of(query))
    run_attend(q.device_type, q, k, v, expanded_mask(attn_mask, q, k), out, lse, is_causal, scale, dropout_p, seed, offset, state)
    return out, lse


cdef int takes_cpu(int dtype, int64_t width, double dropout_p) except -1:
    """float32; bfloat16 where the processor multiplies it by tiles."""
    return dropout_p == 0 and (dtype == F32 or dtype == BF16 and KERNELS.forward_tiles != NULL and bf16_by_tiles())


cdef TensorBase widened(TensorBase mask):
    """A mask that is added, in float32."""
    return mask if mask is None or mask.dtype == BOOL or mask.dtype == F32 else cast_to(mask, F32)


cdef int attend_cpu(TensorBase q, TensorBase k, TensorBase v, TensorBase mask, TensorBase out, TensorBase lse, bint causal, double scale, double dropout_p,
                    int64_t seed, int64_t offset, int64_t state) except -1:
    cdef attention_args a
    cdef int64_t tasks, work
    cdef TensorBase wide
    cdef bint tiles = q.dtype == BF16
    if tiles and (q.sizes[3] % ATTENTION_TILE or v.sizes[3] % ATTENTION_TILE):
        wide = empty_tensor(4, out.sizes, F32, DEV_CPU)
        attend_cpu(cast_to(q, F32), cast_to(k, F32), cast_to(v, F32), widened(mask), wide, lse, causal, scale, dropout_p, seed, offset, state)
        copy_elements(out, wide)
        return 0
    describe(&a, q, k, v, mask, lse, causal, scale)
    operand(&a.out, out)
    tasks = a.batches * a.heads * ((a.queries + ATTENTION_QUERIES - 1) // ATTENTION_QUERIES)
    work = (a.queries if a.queries < ATTENTION_QUERIES else ATTENTION_QUERIES) * a.keys * a.width
    return run(&a, [q, k, v, mask, out, lse], tasks, SERIAL_WORK // (work + 1) + 1, forward_tiles_task if tiles else forward_task)


cdef int attend_backward_cpu(TensorBase q, TensorBase k, TensorBase v, TensorBase mask, TensorBase out, TensorBase lse, TensorBase grad, bint causal, double scale,
                             double dropout_p, int64_t seed, int64_t offset, int64_t state, TensorBase dq, TensorBase dk, TensorBase dv) except -1:
    cdef attention_args a
    cdef int64_t blocks, work
    cdef list tensors, results
    cdef bint whole_heads = q.sizes[0] * k.sizes[1] >= HEADS_SHARED or q.sizes[2] * k.sizes[2] * q.sizes[3] < SERIAL_WORK
    cdef bint tiles = q.dtype == BF16 and whole_heads and not q.sizes[3] % ATTENTION_TILE and not v.sizes[3] % ATTENTION_TILE
    if q.dtype != F32 and not tiles:           # halves: gradients in float32, rounded once
        results = [None if t is None else empty_tensor(4, (<TensorBase>t).sizes, F32, DEV_CPU) for t in (dq, dk, dv)]
        attend_backward_cpu(cast_to(q, F32), cast_to(k, F32), cast_to(v, F32), widened(mask), cast_to(out, F32), lse, cast_to(grad, F32), causal, scale, dropout_p, seed,
                            offset, state, results[0], results[1], results[2])
        for to, result in zip((dq, dk, dv), results):
            if to is not None:
                copy_elements(<TensorBase>to, <TensorBase>result)
        return 0
    tensors = [q, k, v, mask, out, lse, grad, dq, dk, dv]
    describe(&a, q, k, v, mask, lse, causal, scale)
    operand(&a.out, out)
    operand(&a.grad, grad)
    operand(&a.dq, dq)
    operand(&a.dk, dk)
    operand(&a.dv, dv)
    work = a.queries * a.keys * a.width
    if tiles:
        return run(&a, tensors, a.batches * a.key_heads, SERIAL_WORK // (work + 1) + 1, backward_tiles_task)
    # sums over blocks of keys and queries
    for t in (dq, dk, dv):
        if t is not None:
            memset(data_of(<TensorBase>t), 0, (<TensorBase>t).numel * ITEM_SIZE[(<TensorBase>t).dtype])
    if whole_heads:
        return run(&a, tensors, a.batches * a.key_heads, SERIAL_WORK // (work + 1) + 1, backward_task)
    if dk is not None or dv is not None:
        blocks = (a.keys + ATTENTION_KEYS - 1) // ATTENTION_KEYS
        run(&a, tensors, a.batches * a.key_heads * blocks, SERIAL_WORK // (work // blocks + 1) + 1, backward_keys_task)
    if dq is not None:
        blocks = (a.queries + ATTENTION_QUERIES - 1) // ATTENTION_QUERIES
        run(&a, tensors, a.batches * a.heads * blocks, SERIAL_WORK // (work // blocks + 1) + 1, backward_queries_task)
    return 0


cdef int takes_nothing(int dtype, int64_t width, double dropout_p) except -1:
    """A custom device has no kernel before it registers one: attention is composed."""
    return 0


for _device in range(DEV_CUSTOM, LAST_CUSTOM + 1):
    set_attention_takes(_device, takes_nothing)

set_attention_takes(DEV_CPU, takes_cpu)
set_attend(DEV_CPU, attend_cpu)
set_attend_backward(DEV_CPU, attend_backward_cpu)


cdef int run(attention_args* a, list tensors, int64_t tasks, int64_t grain, task_fn task) except -1:
    """The tasks on all threads without the GIL, the blocks of the tensors held."""
    cdef list held = [t for t in tensors if t is not None]
    cdef TensorBase t
    cdef trt_block* blocks[16]
    cdef int i, n = 0
    for t in held:
        blocks[n] = t.storage.block
        trt_block_hold(blocks[n])
        n += 1
    with nogil:
        parallel_for(tasks, grain, 1, task, a)
    for i in range(n):
        block_drop(blocks[i])
    if a.failed:
        raise MemoryError(f"scaled_dot_product_attention: no memory for blocks of heads of {a.width} and {a.value_width}")
    return 0


cdef object attention_backward(OpNode node, object grad, object query, object key, object value, object attn_mask, object out, object lse, bint is_causal, double scale,
                               double dropout_p, int64_t seed, int64_t offset, int64_t state):
    if grad is None:
        return None, None, None
    if grad_mode():
        return composed_backward(grad, query, key, value, attn_mask, is_causal, scale, dropout_p, seed, offset, state)
    if is_large(<TensorBase>grad) or is_large(<TensorBase>key):
        grad, query, key, value, attn_mask, out, lse = [held(<TensorBase>t) for t in (grad, query, key, value, attn_mask, out, lse)]
    return attention_gradients(grad, query, key, value, attn_mask, out, lse, is_causal, scale, dropout_p, seed, offset, state, wants(node, 0), wants(node, 1), wants(node, 2))


cdef object attention_gradients(TensorBase grad, TensorBase query, TensorBase key, TensorBase value, TensorBase attn_mask, TensorBase out, TensorBase lse, bint is_causal,
                                double scale, double dropout_p, int64_t seed, int64_t offset, int64_t state, bint want_query, bint want_key, bint want_value):
    """(dq, dk, dv), each None unless wanted."""
    cdef TensorBase q, k, v, g, o, dq = None, dk = None, dv = None
    q = rows_of(query)
    k = rows_of(key)
    v = rows_of(value)
    g = rows_of(grad)
    if want_query:
        dq = heads_as(q, q.sizes[3])
    if want_key:
        dk = heads_as(k, k.sizes[3])
    if want_value:
        dv = heads_as(v, v.sizes[3])
    check_saved("scaled_dot_product_attention", lse, F64 if q.dtype == F64 else F32, q.sizes[0] * q.sizes[1] * q.sizes[2], q)
    check_saved_like("scaled_dot_product_attention", g, out, q.dtype)
    o = rows_of(out)
    if o.dtype != q.dtype or o.ndim != 4 or o.sizes[0] != q.sizes[0] or o.sizes[1] != q.sizes[1] or o.sizes[2] != q.sizes[2] or o.sizes[3] != v.sizes[3]:
        raise RuntimeError(f"scaled_dot_product_attention: a result of shape {shape_text(o)} does not fit a query of shape {shape_text(q)} and a value of shape {shape_text(v)}")
    run_attend_backward(q.device_type, q, k, v, expanded_mask(attn_mask, q, k), o, lse, g, is_causal, scale, dropout_p, seed, offset, state, dq, dk, dv)
    return dq, dk, dv


# ---- ATen's operator: attention_impl without dropout -----------------------------------------------------------------

cdef double checked_scale(TensorBase query, TensorBase key, TensorBase value, TensorBase attn_mask, double dropout_p, object scale) except? -1:
    """The scale of operands that the operator takes."""
    cdef bint fits = query.ndim == 4 and key.ndim == 4 and value.ndim == 4
    if not fits or query.dtype != key.dtype or query.dtype != value.dtype:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: Expected query, key and value of 4 dimensions and one dtype, got "
                           f"{shape_text(query)}, {shape_text(key)} and {shape_text(value)} of {dtype_text(query.dtype)}, {dtype_text(key.dtype)} and {dtype_text(value.dtype)}")
    if dropout_p != 0:
        raise RuntimeError("scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0")
    if (key.sizes[0] != query.sizes[0] or value.sizes[0] != query.sizes[0] or key.sizes[1] != value.sizes[1] or key.sizes[1] == 0 or query.sizes[1] % key.sizes[1]
            or key.sizes[3] != query.sizes[3] or key.sizes[2] != value.sizes[2]):
        raise RuntimeError(f"scaled_dot_product_attention_flash_attention: a query of shape {shape_text(query)}, a key of shape {shape_text(key)} and a value of shape "
                           f"{shape_text(value)} do not fit")
    if attn_mask is not None and (attn_mask.ndim > 4 or not broadcasts(attn_mask, query, key) or attn_mask.dtype != BOOL and attn_mask.dtype != query.dtype):
        raise RuntimeError(f"scaled_dot_product_attention_flash_attention: a mask of shape {shape_text(attn_mask)} and dtype {dtype_text(attn_mask.dtype)} does not fit a query of "
                           f"shape {shape_text(query)} and a key of shape {shape_text(key)}")
    return 1.0 / ((<object>query).size(3) ** 0.5 or 1.0) if scale is None else parse_double(scale, "scaled_dot_product_attention", "scale")


cdef bint runs_kernel(TensorBase query, TensorBase key, TensorBase value) except -1:
    return has_attend(query.device_type) and query.numel and key.numel and value.numel and \
        run_attention_takes(query.device_type, query.dtype, max(query.sizes[3], value.sizes[3]), 0)


cdef object flash_attention_impl(TensorBase query, TensorBase key, TensorBase value, double dropout_p, bint is_causal, TensorBase attn_mask, object scale):
    cdef double factor = checked_scale(query, key, value, attn_mask, dropout_p, scale)
    cdef uint64_t before
    before = enter_kernel()
    try:
        if runs_kernel(query, key, value):
            return attention_impl(query, key, value, attn_mask, is_causal, factor, 0, 0, 0, 0)
        return composed_attention(query, key, value, attn_mask, is_causal, factor)
    finally:
        leave_kernel(before)


cdef object flash_attention_meta(TensorBase query, TensorBase key, TensorBase value, double dropout_p, bint is_causal, TensorBase attn_mask, object scale):
    checked_scale(query, key, value, attn_mask, dropout_p, scale)
    return heads_as(query, value.sizes[3]), empty_tensor(3, query.sizes, F64 if query.dtype == F64 else F32, place_of(query))


cdef object flash_attention_backward_meta(TensorBase grad_out, TensorBase query, TensorBase key, TensorBase value, TensorBase out, TensorBase logsumexp, double dropout_p,
                                          bint is_causal, TensorBase attn_mask, object scale):
    checked_scale(query, key, value, attn_mask, dropout_p, scale)
    return heads_as(query, query.sizes[3]), heads_as(key, key.sizes[3]), heads_as(value, value.sizes[3])


cdef object composed_attention(object query, object key, object value, object attn_mask, bint is_causal, double factor):
    """Types without a kernel: (output, logarithms) of operators, halves in float32."""
    kind = query.dtype
    if (<TensorBase>query).dtype == F16 or (<TensorBase>query).dtype == BF16:
        query, key, value = query.float(), key.float(), value.float()
        attn_mask = attn_mask.float() if attn_mask is not None and (<TensorBase>attn_mask).dtype != BOOL else attn_mask
    heads = query.size(1)
    scores = composed_scores(query, shared_heads(key, heads), attn_mask, is_causal, factor)
    lse = _ops.logsumexp(scores, -1)
    weights = _ops.nan_to_num(_ops.softmax(scores, -1), 0.0)
    return _ops.matmul(weights, shared_heads(value, heads)).to(kind), lse


cdef object flash_attention_backward_impl(TensorBase grad_out, TensorBase query, TensorBase key, TensorBase value, TensorBase out, TensorBase logsumexp, double dropout_p,
                                          bint is_causal, TensorBase attn_mask, object scale):
    cdef double factor = checked_scale(query, key, value, attn_mask, dropout_p, scale)
    cdef uint64_t before
    before = enter_kernel()
    try:
        if runs_kernel(query, key, value):
            return attention_gradients(grad_out, query, key, value, attn_mask, out, logsumexp, is_causal, factor, 0, 0, 0, 0, True, True, True)
        r = composed_backward((<object>grad_out).to(dtype_of(F64 if query.dtype == F64 else F32)), wide(query), wide(key), wide(value),
                              attn_mask if attn_mask is None or attn_mask.dtype == BOOL else wide(attn_mask), is_causal, factor, 0, 0, 0, 0)
        return tuple([x.to(dtype_of(query.dtype)) for x in r])
    finally:
        leave_kernel(before)


cdef object wide(TensorBase x):
    return (<object>x).to(dtype_of(F32)) if x.dtype == F16 or x.dtype == BF16 else x


cdef object flash_attention_gradients(OpNode node, object grad, object query, object key, object value, object attn_mask, object out, object lse, double dropout_p,
                                      bint is_causal, object scale):
    if grad is None:
        return None, None, None
    if tls().grad_mode or dual_levels and tls().in_backward or (<TensorBase>grad).keys & (K_WRAPPED | K_CUSTOM):
        return composed_backward(grad, query, key, value, attn_mask, is_causal, checked_scale(query, key, value, attn_mask, dropout_p, scale), 0, 0, 0, 0)
    return op__scaled_dot_product_flash_attention_for_cpu_backward(<TensorBase?>grad, query, key, value, <TensorBase?>out, <TensorBase?>lse, dropout_p, is_causal, attn_mask, scale)


cdef object recorded_flash_attention_backward(TensorBase grad_out, TensorBase query, TensorBase key, TensorBase value, TensorBase out, TensorBase logsumexp, double dropout_p,
                                              bint is_causal, TensorBase attn_mask, object scale):
    if tls().grad_mode and (grad_out.requires_grad or query.requires_grad or key.requires_grad or value.requires_grad):
        return composed_backward(grad_out, query, key, value, attn_mask, is_causal, checked_scale(query, key, value, attn_mask, dropout_p, scale), 0, 0, 0, 0)
    return below__scaled_dot_product_flash_attention_for_cpu_backward(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale, BELOW(KEY_AUTOGRAD))


# ---- by composition -------------------------------------------------------------------------------------------------------

cdef object shared_heads(object t, int64_t heads):
    """A key or value with as many heads as the query has; neighbouring heads share one."""
    return t if t.dim() < 3 or t.size(-3) == heads else t.repeat_interleave(heads // t.size(-3), -3)


cdef object composed_scores(object query, object key, object attn_mask, bint is_causal, object scale):
    # half of the scale in each operand: the products stay in range, and the graph holds neither query nor key themselves
    root = abs(scale) ** 0.5
    scores = _ops.matmul(query * (root if scale >= 0 else -root), (key * root).transpose(-2, -1))
    if is_causal:
        rows = _ops.arange(query.size(-2), device=query.device).unsqueeze(1)
        seen = _ops.arange(key.size(-2), device=query.device) <= rows
        if attn_mask is None:
            attn_mask = seen
        elif (<TensorBase?>attn_mask).dtype == BOOL:
            attn_mask = _ops.logical_and(attn_mask, seen)
        else:
            attn_mask = attn_mask.masked_fill(~seen, float("-inf"))
    if attn_mask is not None:
        if (<TensorBase?>attn_mask).dtype == BOOL:
            attn_mask = _ops.zeros(attn_mask.shape, dtype=scores.dtype, device=scores.device).masked_fill_(~attn_mask, float("-inf"))
        scores = scores + attn_mask
    return scores


cdef object composed_weights(object query, object key, object attn_mask, bint is_causal, object scale):
    masked = attn_mask is not None
    scores = composed_scores(query, key, attn_mask, is_causal, scale)
    empty_rows = None
    if masked and scores.size(-1):
        # a row without anything to attend to gives zeros, not NaN
        empty_rows = _ops.eq(scores.detach(), float("-inf")).all([-1], True)
        if not holds_any(empty_rows):
            empty_rows = None
    if empty_rows is not None:
        scores = scores.masked_fill(empty_rows, 0)
    weights = _ops.softmax(scores, -1)
    return weights if empty_rows is None else weights.masked_fill(empty_rows, 0)


cdef object composed_backward(object grad, object query, object key, object value, object attn_mask, bint is_causal, double scale, double dropout_p, int64_t seed, int64_t offset, int64_t state):
    """The derivative as recorded operators."""
    heads, key_heads = query.size(1), key.size(1)
    k = shared_heads(key, heads)
    weights = used = composed_weights(query, k, attn_mask, is_causal, scale)
    dp = _ops.matmul(grad, shared_heads(value, heads).transpose(-2, -1))
    if dropout_p > 0:
        kept = _ops.empty((query.size(0), heads, query.size(2), key.size(2)), dtype=dtype_of(BOOL), device=query.device)
        run_attention_kept((<TensorBase>kept).device_type, <TensorBase>kept, dropout_p, seed, offset, state)
        used, dp = weights * kept / (1 - dropout_p), dp * kept / (1 - dropout_p)
    dv = _ops.matmul(used.transpose(-2, -1), grad)
    ds = weights * (dp - (dp * weights).sum(-1, True)) * scale
    dk = _ops.matmul(ds.transpose(-2, -1), query)
    if key_heads != heads:
        dk = dk.unflatten(1, (key_heads, heads // key_heads)).sum(2)
        dv = dv.unflatten(1, (key_heads, heads // key_heads)).sum(2)
    return _ops.matmul(ds, k), dk, dv


cdef bint has_kernel(TensorBase query, TensorBase key, TensorBase value, object attn_mask, double dropout_p) except -1:
    """Whether operands can go to the device's kernel: equal batches, no empty dimension, a mask without gradient."""
    cdef int i, d = query.ndim, device = query.device_type
    cdef TensorBase mask
    if not tiled_enabled or not has_attend(device) or d > 4 or key.ndim != d or value.ndim != d:
        return False
    if not run_attention_takes(device, query.dtype, max(query.sizes[d - 1], value.sizes[d - 1]), dropout_p):
        return False
    if key.device_type != device or value.device_type != device or key.device_index != query.device_index or value.device_index != query.device_index or not query.numel or not key.numel or not value.numel:
        return False
    if key.sizes[d - 1] != query.sizes[d - 1] or key.sizes[d - 2] != value.sizes[d - 2]:
        return False
    for i in range(d - 2):
        if key.sizes[i] != value.sizes[i] or (key.sizes[i] != query.sizes[i] and i != d - 3):
            return False
    if attn_mask is not None:
        mask = <TensorBase>attn_mask
        if mask.keys & K_DERIVATIVES or mask.device_type != device or mask.device_index != query.device_index or mask.ndim > d or mask.dtype != BOOL and mask.dtype != query.dtype:
            return False
        if not broadcasts(mask, query, key):
            return False
    return True


cdef bint broadcasts(TensorBase mask, TensorBase query, TensorBase key) noexcept:
    cdef int i, d = query.ndim, m = mask.ndim
    cdef int64_t wanted
    for i in range(1, m + 1):
        wanted = key.sizes[d - 2] if i == 1 else query.sizes[d - i]
        if mask.sizes[m - i] != 1 and mask.sizes[m - i] != wanted:
            return False
    return True


cdef bint takes_both_masks(TensorBase query, TensorBase mask, double dropout_p) noexcept:
    """Whether a mask may stand beside is_causal: where PyTorch's CPU kernel takes a call. Its composition refuses it, as all of CUDA's do."""
    return tiled_enabled and query.device_type == DEV_CPU and query.ndim == 4 and dropout_p == 0 and not mask.keys & K_DERIVATIVES


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    """softmax(query key^T scale + mask) value: `query: (..., L, E)`, `key: (..., S, E)`, `value: (..., S, EV)`; scale is 1 / sqrt(E).

    A boolean mask is true where attention is allowed, another one is added; both broadcast to (..., L, S). is_causal: query i sees
    the keys 0..i. enable_gqa: neighbouring heads (dimension -3) of the query share a head of key and value. Memory is linear in L
    and S for float32 and halves without dropout, on CUDA for all types and with dropout up to heads of 256 (double: 128). RuntimeError for disagreeing dtypes or shapes, or a
    mask beside is_causal; on the CPU both hold for 4-dimensional operands without dropout and a mask without gradient.
    """
    as_tensor_arg(query, "scaled_dot_product_attention", "query")
    as_tensor_arg(key, "scaled_dot_product_attention", "key")
    as_tensor_arg(value, "scaled_dot_product_attention", "value")
    if attn_mask is not None:
        as_tensor_arg(attn_mask, "scaled_dot_product_attention", "attn_mask")
    if query.dim() < 2 or key.dim() < 2 or value.dim() < 2:
        raise RuntimeError(f"scaled_dot_product_attention: Expected query, key, and value to all be at least 2 dimensional, but got query.dim: {query.dim()}, key.dim: {key.dim()} and value.dim: {value.dim()} instead.")
    if query.dtype is not key.dtype or query.dtype is not value.dtype:
        raise RuntimeError(f"Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead.")
    if is_causal and attn_mask is not None and not takes_both_masks(<TensorBase>query, <TensorBase>attn_mask, dropout_p):
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    heads = query.size(-3) if query.dim() >= 3 else 1
    if enable_gqa and key.dim() >= 3 and (key.size(-3) == 0 or heads % key.size(-3) or heads % value.size(-3)):
        raise RuntimeError(f"scaled_dot_product_attention: number of heads in key ({key.size(-3)}) and value ({value.size(-3)}) must divide the number of heads in query ({heads})")
    if dispatched((<TensorBase>query).keys | (<TensorBase>key).keys | (<TensorBase>value).keys):
        return composition("attention.scaled_dot_product_attention")(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    kind = None
    if ((<TensorBase>query).dtype == F16 or (<TensorBase>query).dtype == BF16) and not has_kernel(<TensorBase>query, <TensorBase>key, <TensorBase>value, attn_mask, dropout_p):
        # scores and weights in float32: one rounding, at the end
        kind = query.dtype
        query, key, value = query.float(), key.float(), value.float()
        if attn_mask is not None and attn_mask.dtype is kind:
            attn_mask = attn_mask.float()
    if attn_mask is not None and (<TensorBase>attn_mask).dtype != BOOL and attn_mask.dtype is not query.dtype:
        raise RuntimeError(f"Expected attn_mask dtype to be bool or to match query dtype, but got attn_mask.dtype: {attn_mask.dtype} and query.dtype: {query.dtype} instead.")
    factor = 1.0 / (query.size(-1) ** 0.5 or 1.0) if scale is None else scale
    if has_kernel(<TensorBase>query, <TensorBase>key, <TensorBase>value, attn_mask, dropout_p) and (enable_gqa or query.dim() < 3 or key.size(-3) == heads):
        added = 4 - query.dim()
        for _ in range(added):
            query, key, value = query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0)
        seed = offset = state = 0
        if dropout_p > 0:
            seed, offset, state = run_attention_draw((<TensorBase>query).device_type, (<TensorBase>query).device_index)
        r = op_trtl_attention(<TensorBase>query, <TensorBase>key, <TensorBase>value, <TensorBase>attn_mask, is_causal, factor, dropout_p, seed, offset, state)[0]
        for _ in range(added):
            r = r.squeeze(0)
    else:
        if not composed_enabled:
            raise RuntimeError("No viable backend for scaled_dot_product_attention was found. This is likely due to turning off both the math kernel and the fused kernels.")
        if enable_gqa:
            key, value = shared_heads(key, heads), shared_heads(value, heads)
        weights = composed_weights(query, key, attn_mask, is_causal, factor)
        if dropout_p > 0:
            weights = _ops.dropout(weights, dropout_p, True)
        r = _ops.matmul(weights, value)
    return r if kind is None else r.to(kind)
