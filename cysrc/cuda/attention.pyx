"""Attention on CUDA in memory linear in the length, beneath scaled_dot_product_attention of cysrc/ops/attention/attention.pyx."""
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset
from tensorrt_lite._C.core.dtype cimport BOOL, F16, BF16, F32, F64, NUM_DTYPES
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, place_of, empty_tensor
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.cuda.backend cimport kernel_of, run, run3, blocks_for
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.driver import device_attribute
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.cuda.random import advance
from tensorrt_lite._C.steps.attention cimport set_attend, set_attend_backward, set_attention_draw, set_attention_kept, set_attention_takes
from tensorrt_lite._C.cuda import source as _source

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
    double scale, grow
    uint64_t seed, offset, state
    int causal, mask_kind
    unsigned keep_below

KERNELS = ("forward", "delta", "keys", "queries", "kept")
cdef FunctionHandle handles[64][NUM_DTYPES][4][2][5]
# by width, 32 to 256, of float and of double sums: rows and columns of a tile forward, both backward, as 48 KB hold them
cdef int forward_rows[2][4]
cdef int forward_columns[2][4]
cdef int backward_tile[2][4]
forward_rows[0][:], forward_rows[1][:] = [64, 64, 32, 16], [64, 32, 16, 0]
forward_columns[0][:], forward_columns[1][:] = [32, 32, 32, 16], [32, 32, 16, 0]
backward_tile[0][:], backward_tile[1][:] = [32, 32, 16, 16], [16, 16, 16, 0]
cdef enum:
    FORWARD = 0
    DELTA = 1
    KEYS = 2
    QUERIES = 3
    KEPT = 4
    LARGEST_GRID = 65535
    MOST_WIDTH = 256             # of a head, half of it for double
    MMA_ROWS = 64                # of a tile on tensor cores: queries, backward also keys

cdef int capability[64]


cdef bint on_tensor_cores(int index, int dtype, int size) except -1:
    if capability[index] == 0:
        capability[index] = device_attribute(75, index)
    return (dtype == F16 or dtype == BF16) and size < 3 and capability[index] >= 8


cdef FunctionHandle load(int index, int dtype, int size, bint dropout, int which) except NULL:
    cdef FunctionHandle* slot = &handles[index][dtype][size][dropout][which]
    cdef bint wide = dtype == F64
    if slot[0] == NULL:
        t, width, flag = _source.TYPES[dtype][1], 32 << size, "true" if dropout else "false"
        mma = which in (FORWARD, KEYS, QUERIES) and on_tensor_cores(index, dtype, size)
        name = KERNELS[which]
        if mma and which == FORWARD:
            numbers = f"_mma<{t}, {width}, {flag}>"
        elif mma:
            # tiles of the other operands that registers and 48 KB hold
            name, numbers = "backward", f"_mma<{t}, {16 if size == 2 else 32 if which == KEYS else 64}, {width}, {'true' if which == KEYS else 'false'}, {flag}>"
        elif which == FORWARD:
            numbers = f"<{t}, {forward_rows[wide][size]}, {forward_columns[wide][size]}, {width}, {flag}>"
        else:
            numbers = "" if which == KEPT else f"<{t}>" if which == DELTA else f"<{t}, {backward_tile[wide][size]}, {width}, {flag}>"
        more, passed = (", bool* kept", ", kept") if which == KEPT else ("", "")
        slot[0] = kernel_of(f"#include \"attention.cuh\"\n\nextern \"C\" __global__ void __launch_bounds__({128 if mma else 256}) kernel(const trt::Attention p"
                            f"{more}) {{ trt::attention_{name}{numbers}(p{passed}); }}\n", "kernel", index)
    return slot[0]


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    cdef int dtype, size, dropout, which
    load(index, BOOL, 0, True, KEPT)
    for dtype in (F16, BF16, F32, F64):
        for size in range(3 if dtype == F64 else 4):
            for which in (FORWARD, DELTA, KEYS, QUERIES):
                for dropout in range(2):
                    load(index, dtype, size, dropout, which)


cdef void describe(Operand* x, TensorBase t) noexcept:
    if t is not None:
        x.data = data_of(t)
        x.batch, x.head, x.row = t.strides[0], t.strides[1], t.strides[2]


cdef int dropout(Attention* p, double dropout_p, int64_t seed, int64_t offset, int64_t state) noexcept:
    p.seed, p.offset, p.state = <uint64_t>seed, <uint64_t>offset, <uint64_t>state
    if dropout_p > 0:
        p.keep_below = <unsigned>((1 - dropout_p) * 4294967296.0)
        p.grow = 1 / (1 - dropout_p)
    return 0


cdef int kept(TensorBase to, double dropout_p, int64_t seed, int64_t offset, int64_t state) except -1:
    """The mask of dropout, bool (batch, heads, queries, keys)."""
    cdef Attention p
    cdef char* pointer = data_of(to)
    cdef void* arguments[2]
    memset(&p, 0, sizeof(p))
    dropout(&p, dropout_p, seed, offset, state)
    p.batches, p.heads, p.queries, p.keys = to.sizes[0], to.sizes[1], to.sizes[2], to.sizes[3]
    arguments[0], arguments[1] = &p, &pointer
    return run(load(to.device_index, BOOL, 0, True, KEPT), to.device_index, blocks_for(to.numel, 256), 256, 0, arguments)


cdef int takes(int dtype, int64_t width, double dropout_p) except -1:
    return dtype in (F16, BF16, F32, F64) and 0 <= dropout_p < 1 and width <= (MOST_WIDTH // 2 if dtype == F64 else MOST_WIDTH)


cdef object draw(int device_index):
    return advance(device_index, 4)


cdef int attend(TensorBase q, TensorBase k, TensorBase v, TensorBase mask, TensorBase out, TensorBase lse, bint causal, double scale, double dropout_p,
                int64_t seed, int64_t offset, int64_t state) except -1:
    return attend_backward(q, k, v, mask, out, lse, None, causal, scale, dropout_p, seed, offset, state, None, None, None)


cdef int attend_backward(TensorBase q, TensorBase k, TensorBase v, TensorBase mask, TensorBase out, TensorBase lse, TensorBase grad, bint causal, double scale,
                         double dropout_p, int64_t seed, int64_t offset, int64_t state, TensorBase dq, TensorBase dk, TensorBase dv) except -1:
    """Forward where `grad` is None."""
    cdef Attention p
    cdef TensorBase delta
    cdef int index = q.device_index, dtype = q.dtype, size = 0, tile, threads = 256
    cdef bint wide = dtype == F64, drops = dropout_p > 0
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
    p.scale, p.causal = scale, causal
    dropout(&p, dropout_p, seed, offset, state)
    if mask is not None:
        p.mask, p.mask_kind = data_of(mask), 1 if mask.dtype == BOOL else 2
        p.mask_batch, p.mask_head, p.mask_row, p.mask_column = mask.strides[0], mask.strides[1], mask.strides[2], mask.strides[3]
    if p.batches > LARGEST_GRID or p.heads > LARGEST_GRID:
        raise NotImplementedError(f"scaled_dot_product_attention: {p.batches} batches of {p.heads} heads on CUDA")
    while 32 << size < max(p.width, p.value_width):
        size += 1
    arguments[0] = &p
    tile = forward_rows[wide][size] if grad is None else backward_tile[wide][size]
    if on_tensor_cores(index, dtype, size):
        tile, threads = MMA_ROWS, 128
    if grad is None:
        return run3(load(index, dtype, size, drops, FORWARD), index, (p.queries + tile - 1) // tile, p.heads, p.batches, threads, 1, 1, 0, arguments)
    delta = empty_tensor(3, lse.sizes, lse.dtype, place_of(q))
    p.delta = data_of(delta)
    run(load(index, dtype, 0, False, DELTA), index, blocks_for(p.batches * p.heads * p.queries, 8), 256, 0, arguments)
    if dk is not None or dv is not None:
        run3(load(index, dtype, size, drops, KEYS), index, (p.keys + tile - 1) // tile, p.key_heads, p.batches, threads, 1, 1, 0, arguments)
    if dq is not None:
        run3(load(index, dtype, size, drops, QUERIES), index, (p.queries + tile - 1) // tile, p.heads, p.batches, threads, 1, 1, 0, arguments)
    return 0


set_attention_takes(DEV_CUDA, takes)
set_attention_draw(DEV_CUDA, draw)
set_attention_kept(DEV_CUDA, kept)
set_attend(DEV_CUDA, attend)
set_attend_backward(DEV_CUDA, attend_backward)
