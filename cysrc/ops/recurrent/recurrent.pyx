# One direction of a recurrent layer: the product of all steps' inputs is one GEMM, the steps of the device run the recurrence with the gates fused, and the weights'
# gradients are GEMMs over all steps again. Half types compute in float32. What the backward pass reads is one tensor by rows (recurrent_layer in steps.yaml).
from tensorrt_lite._C.ops.recurrent.products cimport block_of, gate_count, product, weight_gradient
from tensorrt_lite._C.steps.matmul cimport run_sum_rows
from tensorrt_lite._C.steps.recurrent cimport RECURRENT_GRU, RECURRENT_LSTM, RECURRENT_RELU, RECURRENT_TANH, recurrent_layer, run_recurrent_backward, run_recurrent_forward

cdef tuple FUNCTIONS = ("rnn_tanh", "rnn_relu", "lstm", "gru")      # by mode


cdef class Operands:
    """The list of an operator call by names, contiguous and of the type that is computed in; the layer's sizes."""
    cdef TensorBase x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr
    cdef recurrent_layer l
    cdef int64_t features
    cdef int64_t* places             # sizes and offsets of packed steps

    def __dealloc__(self):
        free(self.places)


cdef int check_sizes(str name, str what, TensorBase t, int64_t rows, int64_t columns) except -1:
    if t.ndim != 2 or t.sizes[0] != rows or t.sizes[1] != columns:
        raise RuntimeError(f"{name}: expected {what} of size [{rows}, {columns}], got {shape_text(t)}")
    return 0


cdef int read_batch_sizes(Operands o, object batch_sizes, str name) except -1:
    """Steps of a packed sequence: how many rows each has, and where they begin."""
    cdef int64_t i, n = len(batch_sizes), total = 0
    o.places = <int64_t*>malloc(2 * (n + 1) * sizeof(int64_t))
    if o.places == NULL:
        raise MemoryError(f"{name}: no memory for {n} steps")
    for i in range(n):
        o.places[i] = batch_sizes[i]
        o.places[n + i] = total
        if o.places[i] < 1 or i and o.places[i] > o.places[i - 1]:
            raise RuntimeError(f"{name}: batch sizes must be positive and not grow, got {o.places[i]} at step {i}")
        if o.places[i] > o.x.sizes[0] - total:         # before the sum can wrap
            raise RuntimeError(f"{name}: batch sizes of more than {o.x.sizes[0]} rows in all do not fit packed data {shape_text(o.x)}")
        total += o.places[i]
    if total != o.x.sizes[0]:
        raise RuntimeError(f"{name}: batch sizes of {total} rows in all do not fit packed data {shape_text(o.x)}")
    o.l.steps, o.l.batch = n, o.places[0] if n else 0
    o.l.sizes, o.l.offsets = o.places, o.places + n
    return 0


cdef Operands operands_of(list tensors, object batch_sizes, int64_t mode, bint reverse, bint biases):
    cdef Operands o = Operands()
    cdef int i = 2
    cdef int64_t rows
    cdef str name
    cdef TensorBase t, first
    if mode < RECURRENT_TANH or mode > RECURRENT_GRU:
        raise RuntimeError(f"_recurrent_layer: there is no mode {mode}")
    name = <str>FUNCTIONS[mode]
    if len(tensors) < 4 + (mode == RECURRENT_LSTM) + 2 * biases or len(tensors) > 5 + (mode == RECURRENT_LSTM) + 2 * biases:
        raise RuntimeError(f"{name}: Got an incorrect number of RNN parameters")
    first = tensors[0]
    if category[first.dtype] != CAT_FLOAT:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype_text(first.dtype)}'")
    for entry in tensors:
        t = entry
        if place_of(t) != place_of(first):
            raise RuntimeError(f"{name}: Expected all tensors to be on the same device, but found at least two devices, {(<object>first).device} and {entry.device}!")
        if t.dtype != first.dtype:
            raise RuntimeError(f"{name}: expected all tensors to have the same dtype, but got {dtype_text(first.dtype)} and {dtype_text(t.dtype)}")
    o.x, o.h0 = first, tensors[1]
    if mode == RECURRENT_LSTM:
        o.c0 = tensors[i]
        i += 1
    o.w_ih, o.w_hh = tensors[i], tensors[i + 1]
    i += 2
    if biases:
        o.b_ih, o.b_hh = tensors[i], tensors[i + 1]
        i += 2
    if i < len(tensors):
        o.w_hr = tensors[i]
    o.places = NULL
    o.l.mode, o.l.reverse, o.l.sizes, o.l.offsets = <int>mode, reverse, NULL, NULL
    if o.x.ndim != (3 if batch_sizes is None else 2):
        raise RuntimeError(f"{name}: expected an input of {3 if batch_sizes is None else 2} dimensions, got {o.x.ndim}")
    if batch_sizes is None:
        o.l.steps, o.l.batch = o.x.sizes[0], o.x.sizes[1]
    else:
        read_batch_sizes(o, batch_sizes, name)
    o.features = o.x.sizes[o.x.ndim - 1]
    o.l.total = o.l.steps * o.l.batch if batch_sizes is None else o.x.sizes[0]
    if o.w_hh.ndim != 2 or o.w_ih.ndim != 2:
        raise RuntimeError(f"{name}: expected weights of 2 dimensions, got {shape_text(o.w_ih)} and {shape_text(o.w_hh)}")
    rows = o.w_hh.sizes[0]
    o.l.hidden, o.l.width = rows // gate_count(o.l.mode), o.w_hh.sizes[1]
    if rows % gate_count(o.l.mode) or o.w_hr is None and o.l.width != o.l.hidden:
        raise RuntimeError(f"{name}: a hidden weight of size {shape_text(o.w_hh)} does not have {gate_count(o.l.mode)} gates")
    check_sizes(name, "an input weight", o.w_ih, rows, o.features)
    check_sizes(name, "a hidden state", o.h0, o.l.batch, o.l.width)
    if o.c0 is not None:
        check_sizes(name, "a cell", o.c0, o.l.batch, o.l.hidden)
    if o.w_hr is not None:
        check_sizes(name, "a projection", o.w_hr, o.l.width, o.l.hidden)
    if biases and (o.b_ih.ndim != 1 or o.b_hh.ndim != 1 or o.b_ih.numel != rows or o.b_hh.numel != rows):
        raise RuntimeError(f"{name}: expected biases of size [{rows}], got {shape_text(o.b_ih)} and {shape_text(o.b_hh)}")
    o.l.reserve_row = 0
    if mode == RECURRENT_LSTM:
        o.l.reserve_row = (5 if o.w_hr is None else 6) * o.l.hidden
    elif mode == RECURRENT_GRU:
        o.l.reserve_row = 4 * o.l.hidden
    return o


cdef TensorBase ready(TensorBase t, int dtype):
    return None if t is None else contiguous_of(cast_to(t, dtype))


cdef int make_ready(Operands o) except -1:
    cdef int dtype = compute_type[o.x.dtype]
    o.x, o.h0, o.c0, o.w_ih, o.w_hh = ready(o.x, dtype), ready(o.h0, dtype), ready(o.c0, dtype), ready(o.w_ih, dtype), ready(o.w_hh, dtype)
    o.b_ih, o.b_hh, o.w_hr = ready(o.b_ih, dtype), ready(o.b_hh, dtype), ready(o.w_hr, dtype)
    return 0


cdef TensorBase matrix(int64_t rows, int64_t columns, int dtype, TensorBase like):
    cdef int64_t sizes[2]
    sizes[0], sizes[1] = rows, columns
    return empty_tensor(2, sizes, dtype, place_of(like))


cdef TensorBase last_state(const recurrent_layer* l, TensorBase by_steps, int64_t column, int64_t columns, int64_t stride, int dtype):
    """Of each sequence the state behind its last step."""
    cdef TensorBase r = matrix(l.batch, columns, dtype, by_steps)
    cdef int64_t step, rows, done = 0
    if l.reverse or l.sizes == NULL:
        copy_elements(r, block_of(by_steps, 0 if l.reverse else (l.steps - 1) * l.batch, l.batch, column, columns, stride))
        return r
    for step in range(l.steps - 1, -1, -1):
        rows = l.sizes[step]
        if rows > done:
            copy_elements(block_of(r, done, rows - done, 0, columns, columns), block_of(by_steps, l.offsets[step] + done, rows - done, column, columns, stride))
            done = rows
    return r


cdef object recurrent_layer_impl(list tensors, object batch_sizes, int64_t mode, bint reverse, bint biases):
    cdef Operands o = operands_of(tensors, batch_sizes, mode, reverse, biases)
    cdef int dtype = o.x.dtype, code = compute_type[dtype]
    cdef int64_t columns = gate_count(o.l.mode) * o.l.hidden
    cdef int64_t shape[3]
    cdef TensorBase out, gates, reserve, h, c, bias
    if o.l.steps == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    make_ready(o)
    shape[0], shape[1] = o.l.steps if batch_sizes is None else o.l.total, o.l.batch
    shape[o.x.ndim - 1] = o.l.width
    out = empty_tensor(o.x.ndim, shape, code, place_of(o.x))
    reserve = matrix(o.l.total if o.l.reserve_row else 0, o.l.reserve_row, code, o.x)
    gates = reserve if o.l.reserve_row else out
    if o.l.total:
        bias = o.b_ih
        if biases and mode != RECURRENT_GRU:
            bias = <TensorBase?>_ops.add(o.b_ih, o.b_hh)
        product(o.x, o.l.total, o.features, o.w_ih, True, columns, gates, o.l.reserve_row or columns, bias, False)
        run_recurrent_forward(out.device_type, &o.l, o.h0, o.c0, o.w_hh, o.b_hh if mode == RECURRENT_GRU else None, o.w_hr, reserve if o.l.reserve_row else None, out)
    h = last_state(&o.l, out, 0, o.l.width, o.l.width, dtype)
    c = last_state(&o.l, reserve, 4 * o.l.hidden, o.l.hidden, o.l.reserve_row, dtype) if mode == RECURRENT_LSTM else matrix(0, 0, dtype, out)
    return cast_to(out, dtype), h, c, reserve


# ---- backward ----------------------------------------------------------------------------------------------------------

cdef TensorBase states_before(Operands o, TensorBase out):
    """By steps, the hidden state that each row began with."""
    cdef int64_t s, step, last, rows, continued, width = o.l.width, batch = o.l.batch, n = o.l.total
    cdef TensorBase r = matrix(n, width, out.dtype, out)
    if o.l.sizes == NULL:
        copy_elements(block_of(r, n - batch if o.l.reverse else 0, batch, 0, width, width), o.h0)
        copy_elements(block_of(r, 0 if o.l.reverse else batch, n - batch, 0, width, width), block_of(out, batch if o.l.reverse else 0, n - batch, 0, width, width))
        return r
    for s in range(o.l.steps):
        step = o.l.steps - 1 - s if o.l.reverse else s
        last = step + 1 if o.l.reverse else step - 1
        rows = o.l.sizes[step]
        continued = min(rows, o.l.sizes[last]) if s else 0
        if continued:
            copy_elements(block_of(r, o.l.offsets[step], continued, 0, width, width), block_of(out, o.l.offsets[last], continued, 0, width, width))
        if rows > continued:
            copy_elements(block_of(r, o.l.offsets[step] + continued, rows - continued, 0, width, width), block_of(o.h0, continued, rows - continued, 0, width, width))
    return r


cdef TensorBase gradient_of_last(object grad, TensorBase like):
    """A gradient of a last state that may be written to, zeros where there is none."""
    cdef TensorBase r = empty_tensor(like.ndim, like.sizes, like.dtype, place_of(like))
    cdef Scalar zero
    zero.kind = 1
    zero.i = 0
    zero.d = zero.im = 0
    if grad is None:
        fill_elements(r, &zero)
    else:
        copy_elements(r, <TensorBase?>grad)
    return r


cdef bint are_plain(list tensors) noexcept:
    for t in tensors:
        if t is not None and (<TensorBase>t).keys & ~(K_PLACE | K_CPU | K_CUDA | K_META | K_AUTOGRAD):
            return False
    return True


cdef TensorBase summed_rows(TensorBase grad, int64_t rows, int64_t columns):
    cdef TensorBase r
    if grad.device_type != DEV_CPU:
        return <TensorBase?>_ops.sum(grad.reshape((rows, columns)), (0,))
    r = empty_tensor(1, &columns, grad.dtype, place_of(grad))
    run_sum_rows(grad.device_type, r, grad, rows, columns)
    return r


cdef TensorBase weight_of_products(TensorBase grad, int64_t rows, int64_t columns, TensorBase x, int64_t width):
    cdef TensorBase r = matrix(columns, width, grad.dtype, grad)
    weight_gradient(grad, rows, columns, x, width, r)
    return r


cdef object recurrent_gradient(OpNode node, list grads, list tensors, object output, object reserve_, object batch_sizes, int64_t mode, bint reverse, bint biases):
    """A gradient for each of `tensors`, None where none is wanted."""
    cdef Operands o
    cdef TensorBase out, reserve, grad = None, dh, dc = None, dgates, dhidden, dstate = None, d
    cdef int64_t rows, columns
    cdef int dtype, i, at = 0
    cdef list result = [None] * len(tensors)
    if grads[0] is None and grads[1] is None and grads[2] is None:
        return result
    if grad_mode() or not are_plain(grads) or not are_plain(tensors):
        return _ops._recurrent_layer_gradient(grads[:3], tensors, [node.edge(i) is not None for i in range(len(tensors))], batch_sizes, mode, reverse, biases)
    if (<TensorBase>tensors[0]).numel == 0:
        return [_ops.zeros_like(t) for t in tensors]
    tensors = held_list(tensors)
    o = operands_of(tensors, batch_sizes, mode, reverse, biases)
    dtype = o.x.dtype
    make_ready(o)
    reserve, out = <TensorBase?>reserve_, ready(held(<TensorBase?>output), o.x.dtype)
    rows, columns = o.l.total, gate_count(o.l.mode) * o.l.hidden
    name = <str>FUNCTIONS[mode]
    check_saved(name, reserve, o.x.dtype, rows * o.l.reserve_row, o.x)
    check_saved(name, out, o.x.dtype, rows * o.l.width, o.x)
    if grads[0] is not None:
        check_saved_like(name, <TensorBase?>grads[0], out, (<TensorBase?>grads[0]).dtype)
        grad = ready(held(<TensorBase?>grads[0]), o.x.dtype)
    dh = gradient_of_last(grads[1], o.h0)
    if mode == RECURRENT_LSTM:
        dc = gradient_of_last(grads[2], o.c0)
    dgates = matrix(rows, columns, o.x.dtype, o.x)
    dhidden = matrix(rows, columns, o.x.dtype, o.x) if mode == RECURRENT_GRU else dgates
    if o.w_hr is not None:
        dstate = matrix(rows, o.l.width, o.x.dtype, o.x)
    run_recurrent_backward(out.device_type, &o.l, o.h0, o.c0, o.w_hh, o.w_hr, reserve if o.l.reserve_row else None, out, grad, dh, dc, dgates, dhidden, dstate)
    # in the order of `tensors`
    if node.edge(0) is not None:
        d = empty_tensor(o.x.ndim, o.x.sizes, o.x.dtype, place_of(o.x))
        product(dgates, rows, columns, o.w_ih, False, o.features, d, o.features, None, False)
        result[0] = d
    result[1] = dh
    at = 2
    if mode == RECURRENT_LSTM:
        result[2] = dc
        at = 3
    if node.edge(at) is not None:
        result[at] = weight_of_products(dgates, rows, columns, o.x, o.features)
    if node.edge(at + 1) is not None:
        result[at + 1] = weight_of_products(dhidden, rows, columns, states_before(o, out), o.l.width)
    at += 2
    if biases:
        if node.edge(at) is not None:
            result[at] = summed_rows(dgates, rows, columns)
        if node.edge(at + 1) is not None:
            result[at + 1] = summed_rows(dhidden, rows, columns)
        at += 2
    if o.w_hr is not None and node.edge(at) is not None:
        result[at] = weight_of_products(dstate, rows, o.l.width, contiguous_of(block_of(reserve, 0, rows, 5 * o.l.hidden, o.l.hidden, o.l.reserve_row)), o.l.hidden)
    return [None if t is None or node.edge(i) is None else cast_to(<TensorBase>t, dtype) for i, t in enumerate(result)]
