"""Recurrent layers on the CPU: weights are packed once a call, the batch is cut between threads (cysrc/loops/recurrent.c)."""
from libc.stdint cimport int64_t
from libc.string cimport memset
from tensorrt_lite._C.core.allocator cimport block_drop, trt_block, trt_block_hold
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport F32, F64
from tensorrt_lite._C.core.parallel cimport GRAIN, parallel_for, task_fn
from tensorrt_lite._C.core.tensor cimport ITEM_SIZE, TensorBase, data_of, empty_tensor
from tensorrt_lite._C.ops.held_blocks cimport drop_blocks, hold_blocks
from tensorrt_lite._C.ops.recurrent.products cimport add_hidden_product, gate_count, hidden_product, state_gradient
from tensorrt_lite._C.steps.recurrent cimport (
    RECURRENT_COLUMNS, RECURRENT_GRU, RECURRENT_LSTM, recurrent_layer, recurrent_loops, set_recurrent_backward, set_recurrent_forward)


cdef extern from "recurrent.h" nogil:
    ctypedef struct recurrent_run:
        const recurrent_layer* layer
        recurrent_loops a
    ctypedef struct recurrent_pack:
        const char* source
        char* packed
        int64_t depth, count, vectors
        bint gated
    ctypedef struct recurrent_kernels:
        task_fn forward, backward, pack_rows, pack_columns
        int64_t lanes

cdef extern from *:
    """
    #include "isa.h"
    ISA_TABLE(recurrent_kernels, recurrent)
    """
    const recurrent_kernels* recurrent_table "recurrent"()

cdef const recurrent_kernels* KERNELS = recurrent_table()


cdef inline const char* memory_of(TensorBase t) noexcept:
    return NULL if t is None else data_of(t)


cdef TensorBase packed(task_fn task, const recurrent_kernels* kernels, TensorBase source, int64_t depth, int64_t count, int64_t vectors, bint gated):
    cdef recurrent_pack k
    cdef int64_t span = kernels.lanes * (1 if gated else vectors), panels = (count + span - 1) // span, size = panels * depth * vectors * kernels.lanes
    cdef TensorBase t = empty_tensor(1, &size, source.dtype, DEV_CPU)
    k.source, k.packed, k.depth, k.count, k.vectors, k.gated = data_of(source), data_of(t), depth, count, vectors, gated
    cdef trt_block* block = source.storage.block
    trt_block_hold(block)
    with nogil:
        parallel_for(panels, 1 + GRAIN // (depth * vectors * kernels.lanes + 1), 1, task, &k)
    block_drop(block)
    return t


cdef int run(task_fn task, recurrent_run* r, int64_t sequences, int64_t work, tuple tensors) except -1:
    """All sequences without the GIL, the tensors' blocks held; work: multiplications of a sequence."""
    cdef trt_block* blocks[16]
    cdef int n = hold_blocks(tensors, blocks)
    with nogil:
        parallel_for(sequences, 1 + 4 * GRAIN // (work + 1), 1, task, r)
    drop_blocks(blocks, n)
    return 0


cdef int fill(recurrent_run* r, const recurrent_layer* l, TensorBase h0, TensorBase c0, TensorBase reserve, TensorBase out) except -1:
    cdef int64_t item = ITEM_SIZE[out.dtype]
    r.layer = l
    r.a.h0, r.a.c0, r.a.out = memory_of(h0), memory_of(c0), data_of(out)
    r.a.reserve = <char*>memory_of(reserve)
    r.a.gates_row = l.reserve_row
    r.a.cells = r.a.reserve + 4 * l.hidden * item if l.mode == RECURRENT_LSTM else NULL
    r.a.unprojected = r.a.cells + l.hidden * item if l.mode == RECURRENT_LSTM and l.reserve_row > 5 * l.hidden else NULL
    r.a.weight = r.a.projection = r.a.addend = r.a.grad = NULL
    r.a.addend_row = 0
    return 0


cdef int recurrent_forward(const recurrent_layer* l, TensorBase h0, TensorBase c0, TensorBase w_hh, TensorBase b_hh, TensorBase w_hr, TensorBase reserve, TensorBase out) except -1:
    cdef const recurrent_kernels* kernels = KERNELS + (out.dtype == F64)
    cdef recurrent_run r
    cdef TensorBase weight = None, projection = None, addend = b_hh
    cdef bint gated = l.mode == RECURRENT_LSTM or l.mode == RECURRENT_GRU
    cdef int64_t n = 3 * l.hidden, work = gate_count(l.mode) * l.hidden * l.width * l.steps + 16 * l.hidden
    fill(&r, l, h0, c0, reserve, out)
    if l.steps == 1 and l.mode != RECURRENT_GRU:
        # packing would read the weight once more than the product does
        add_hidden_product(l, h0, w_hh, out if reserve is None else reserve)
        work = 16 * l.hidden
    elif l.steps == 1:
        addend = hidden_product(l, h0, w_hh, b_hh)
        r.a.addend_row = n
        work = 16 * l.hidden
    else:
        weight = packed(kernels.pack_rows, kernels, w_hh, l.width, l.hidden, 3 if l.mode == RECURRENT_GRU else RECURRENT_COLUMNS, gated)
        if l.mode == RECURRENT_GRU and b_hh is None:
            addend = zeros(n, out.dtype)
    if w_hr is not None:
        projection = packed(kernels.pack_rows, kernels, w_hr, l.hidden, l.width, RECURRENT_COLUMNS, False)
        r.a.projection = data_of(projection)
    r.a.weight, r.a.addend = memory_of(weight), memory_of(addend)
    return run(kernels.forward, &r, l.batch, work, (h0, c0, reserve, out, weight, projection, addend))


cdef TensorBase zeros(int64_t n, int dtype):
    cdef TensorBase t = empty_tensor(1, &n, dtype, DEV_CPU)
    memset(data_of(t), 0, n * ITEM_SIZE[dtype])
    return t


cdef int recurrent_backward(const recurrent_layer* l, TensorBase h0, TensorBase c0, TensorBase w_hh, TensorBase w_hr, TensorBase reserve, TensorBase out, TensorBase grad,
                            TensorBase dh, TensorBase dc, TensorBase dgates, TensorBase dhidden, TensorBase dstate) except -1:
    cdef const recurrent_kernels* kernels = KERNELS + (out.dtype == F64)
    cdef recurrent_run r
    cdef TensorBase weight = None, projection = None, scratch = None
    cdef int64_t depth = gate_count(l.mode) * l.hidden, work = depth * l.width * l.steps + 16 * l.hidden
    cdef int64_t sizes[2]
    fill(&r, l, h0, c0, reserve, out)
    if l.steps > 1:
        weight = packed(kernels.pack_columns, kernels, w_hh, depth, l.width, RECURRENT_COLUMNS, False)
    else:
        work = 16 * l.hidden
    if w_hr is not None:
        projection = packed(kernels.pack_columns, kernels, w_hr, l.width, l.hidden, RECURRENT_COLUMNS, False)
        sizes[0], sizes[1] = l.batch, l.hidden
        scratch = empty_tensor(2, sizes, out.dtype, DEV_CPU)
    r.a.weight, r.a.projection, r.a.scratch = memory_of(weight), memory_of(projection), <char*>memory_of(scratch)
    r.a.grad, r.a.dh, r.a.dc = memory_of(grad), data_of(dh), <char*>memory_of(dc)
    r.a.dgates, r.a.dhidden, r.a.dstate = data_of(dgates), data_of(dhidden), <char*>memory_of(dstate)
    run(kernels.backward, &r, l.batch, work, (h0, c0, reserve, out, grad, dh, dc, dgates, dhidden, dstate, weight, projection, scratch))
    return 0 if l.steps > 1 else state_gradient(l, dhidden, w_hh, dh)


set_recurrent_forward(DEV_CPU, recurrent_forward)
set_recurrent_backward(DEV_CPU, recurrent_backward)
