"""Attention on CUDA in memory linear in the length, beneath scaled_dot_product_attention of cysrc/ops/attention.pyx."""
from libc.stdint cimport int64_t
from libc.string cimport memset
from tensorrt_lite._C.core.dtype cimport BOOL, F16, BF16, F32
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, place_of, empty_tensor
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.cuda.backend cimport kernel_of, run, run3, blocks_for
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.driver import device_attribute
from tensorrt_lite._C.ops import attention as _attention
from tensorrt_lite.cuda import _source

attach()

# the structures of cuda_src/attention.cuh
cdef struct Operand:
    const char* data
    int64_t batch, head, row

cdef struct Attention:
    Operand q, k, v, out, grad, dq, dk, dv
    char* lse
    char* delta
    const char* mask
    int64_t mask_batch, mask_head, mask_row, mask_column
    int64_t batches, heads, key_heads, queries, keys, width, value_width
    float scale
    int causal, mask_kind

KERNELS = ("forward", "delta", "keys", "queries")
cdef FunctionHandle handles[64][12][3][4]
# by width, 32, 64 and 128: rows and columns of a tile forward, both backward
cdef int forward_rows[3]
cdef int backward_tile[3]
forward_rows[:] = [64, 64, 32]
backward_tile[:] = [32, 32, 16]
cdef enum:
    FORWARD = 0
    DELTA = 1
    KEYS = 2
    QUERIES = 3
    COLUMNS = 32                 # keys of a tile forward
    LARGEST_GRID = 65535
    MMA_ROWS = 64                # queries of a tile on tensor cores

cdef int capability[64]


cdef bint on_tensor_cores(int index, int dtype) except -1:
    if capability[index] == 0:
        capability[index] = device_attribute(75, index)
    return (dtype == F16 or dtype == BF16) and capability[index] >= 8


cdef FunctionHandle load(int index, int dtype, int size, int which) except NULL:
    cdef FunctionHandle* slot = &handles[index][dtype][size][which]
    if slot[0] == NULL:
        t, width = _source.TYPES[dtype][1], 32 << size
        numbers = f"_mma<{t}, {width}>" if which == FORWARD and on_tensor_cores(index, dtype) else f"<{t}, {forward_rows[size]}, {COLUMNS}, {width}>" if which == FORWARD else f"<{t}>" if which == DELTA else f"<{t}, {backward_tile[size]}, {width}>"
        slot[0] = kernel_of("#include \"attention.cuh\"\n\nextern \"C\" __global__ void __launch_bounds__(256) kernel(const trt::Attention p) "
                            f"{{ trt::attention_{KERNELS[which]}{numbers}(p); }}\n", "kernel", index)
    return slot[0]


cdef void describe(Operand* x, TensorBase t) noexcept:
    if t is not None:
        x.data = data_of(t)
        x.batch, x.head, x.row = t.strides[0], t.strides[1], t.strides[2]


cdef int attention(TensorBase q, TensorBase k, TensorBase v, TensorBase mask, TensorBase out, TensorBase lse, bint causal, double scale, TensorBase grad,
                   TensorBase dq, TensorBase dk, TensorBase dv) except -1:
    """Forward where `grad` is None, otherwise those of dq, dk, dv that are given. All (batch, heads, length, width) with dense rows."""
    cdef Attention p
    cdef TensorBase delta
    cdef int index = q.device_index, dtype = q.dtype, size
    cdef void* arguments[1]
    memset(&p, 0, sizeof(p))
    describe(&p.q, q)
    describe(&p.k, k)
    describe(&p.v, v)
    describe(&p.out, out)
    describe(&p.grad, grad)
    describe(&p.dq, dq)
    describe(&p.dk, dk)
    describe(&p.dv, dv)
    p.lse = data_of(lse)
    p.batches, p.heads, p.queries, p.width = q.sizes[0], q.sizes[1], q.sizes[2], q.sizes[3]
    p.key_heads, p.keys, p.value_width = k.sizes[1], k.sizes[2], v.sizes[3]
    p.scale, p.causal = <float>scale, causal
    if mask is not None:
        p.mask, p.mask_kind = data_of(mask), 1 if mask.dtype == BOOL else 2
        p.mask_batch, p.mask_head, p.mask_row, p.mask_column = mask.strides[0], mask.strides[1], mask.strides[2], mask.strides[3]
    if p.batches > LARGEST_GRID or p.heads > LARGEST_GRID:
        raise NotImplementedError(f"scaled_dot_product_attention: {p.batches} batches of {p.heads} heads on CUDA")
    size = 0 if max(p.width, p.value_width) <= 32 else 1 if max(p.width, p.value_width) <= 64 else 2
    arguments[0] = &p
    if grad is None and on_tensor_cores(index, dtype):
        return run3(load(index, dtype, size, FORWARD), index, (p.queries + MMA_ROWS - 1) // MMA_ROWS, p.heads, p.batches, 128, 1, 1, 0, arguments)
    if grad is None:
        return run3(load(index, dtype, size, FORWARD), index, (p.queries + forward_rows[size] - 1) // forward_rows[size], p.heads, p.batches, 256, 1, 1, 0, arguments)
    delta = empty_tensor(3, lse.sizes, F32, place_of(q))
    p.delta = data_of(delta)
    run(load(index, dtype, 0, DELTA), index, blocks_for(p.batches * p.heads * p.queries, 8), 256, 0, arguments)
    if dk is not None or dv is not None:
        run3(load(index, dtype, size, KEYS), index, (p.keys + backward_tile[size] - 1) // backward_tile[size], p.key_heads, p.batches, 256, 1, 1, 0, arguments)
    if dq is not None:
        run3(load(index, dtype, size, QUERIES), index, (p.queries + backward_tile[size] - 1) // backward_tile[size], p.heads, p.batches, 256, 1, 1, 0, arguments)
    return 0


_attention._set_device_kernels(<size_t>&attention)
