"""Recurrent layers on CUDA, beneath the checks of cysrc/ops/recurrent/recurrent.pyx: a GEMM and a kernel of the gates a step."""
from libc.stdint cimport int64_t
from libc.string cimport memset
from tensorrt_lite._C.autograd.node cimport ops_namespace
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport F32, F64
from tensorrt_lite._C.core.iterator cimport contiguous_of, copy_elements
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, empty_tensor, place_of
from tensorrt_lite._C.cuda.backend cimport blocks_for, kernel_of, run
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.ops.recurrent.products cimport block_of, gate_count, product
from tensorrt_lite._C.steps.recurrent cimport RECURRENT_GRU, recurrent_layer, recurrent_step, set_recurrent_backward, set_recurrent_forward

attach()
cdef object _ops = ops_namespace()
cdef FunctionHandle handles[64][2][4][2]       # by device, type, mode, direction of the pass


cdef FunctionHandle load(int index, int dtype, int mode, bint backward) except NULL:
    cdef FunctionHandle* slot = &handles[index][dtype == F64][mode][backward]
    if slot[0] == NULL:
        text = "#include \"recurrent.cuh\"\n"
        for name in ("recurrent_forward", "recurrent_backward"):
            text += f"\nextern \"C\" __global__ void __launch_bounds__(256) {name}(const recurrent_step s) {{ trt::{name}<{'double' if dtype == F64 else 'float'}, {mode}>(s); }}"
        slot[0] = kernel_of(text + "\n", "recurrent_backward" if backward else "recurrent_forward", index)
    return slot[0]


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    cdef int dtype, mode
    for dtype in (F32, F64):
        for mode in range(4):
            load(index, dtype, mode, False)


cdef int64_t rows_at(const recurrent_layer* l, int64_t step) noexcept:
    return l.batch if l.sizes == NULL else l.sizes[step]


cdef int64_t offset_at(const recurrent_layer* l, int64_t step) noexcept:
    return step * l.batch if l.sizes == NULL else l.offsets[step]


cdef inline char* memory_of(TensorBase t) noexcept:
    return NULL if t is None else data_of(t)


cdef void place_step(recurrent_step* p, const recurrent_layer* l, int64_t s) noexcept:
    cdef int64_t step = l.steps - 1 - s if l.reverse else s, last = step + 1 if l.reverse else step - 1
    p.rows, p.first = rows_at(l, step), offset_at(l, step)
    p.continued = min(p.rows, rows_at(l, last)) if s else 0
    p.before = offset_at(l, last) if s else 0


cdef void fill(recurrent_step* p, const recurrent_layer* l, TensorBase h0, TensorBase c0, TensorBase reserve, TensorBase out) noexcept:
    memset(p, 0, sizeof(recurrent_step))
    p.hidden, p.width, p.reserve_row = l.hidden, l.width, l.reserve_row
    p.h0, p.c0, p.reserve, p.out = memory_of(h0), memory_of(c0), memory_of(reserve), data_of(out)


cdef TensorBase matrix(int64_t rows, int64_t columns, TensorBase like):
    cdef int64_t sizes[2]
    sizes[0], sizes[1] = rows, columns
    return empty_tensor(2, sizes, like.dtype, place_of(like))


cdef int recurrent_forward(const recurrent_layer* l, TensorBase h0, TensorBase c0, TensorBase w_hh, TensorBase b_hh, TensorBase w_hr, TensorBase reserve, TensorBase out) except -1:
    cdef recurrent_step p
    cdef int64_t s, columns = gate_count(l.mode) * l.hidden, width = l.width
    cdef TensorBase products = matrix(l.batch, columns, out)
    cdef void* arguments[1]
    cdef FunctionHandle kernel = load(out.device_index, out.dtype, l.mode, False)
    arguments[0] = &p
    fill(&p, l, h0, c0, reserve, out)
    p.product, p.bias = data_of(products), memory_of(b_hh)
    for s in range(l.steps):
        place_step(&p, l, s)
        if p.continued:
            product(block_of(out, p.before, p.continued, 0, width, width), p.continued, width, w_hh, True, columns, products, columns, None, False)
        if p.rows > p.continued:
            product(block_of(h0, p.continued, p.rows - p.continued, 0, width, width), p.rows - p.continued, width, w_hh, True, columns,
                    block_of(products, p.continued, p.rows - p.continued, 0, columns, columns), columns, None, False)
        run(kernel, out.device_index, blocks_for(p.rows * l.hidden, 256), 256, 0, arguments)
        if w_hr is not None:
            product(contiguous_of(block_of(reserve, p.first, p.rows, 5 * l.hidden, l.hidden, l.reserve_row)), p.rows, l.hidden, w_hr, True, width,
                    block_of(out, p.first, p.rows, 0, width, width), width, None, False)
    return 0


cdef int recurrent_backward(const recurrent_layer* l, TensorBase h0, TensorBase c0, TensorBase w_hh, TensorBase w_hr, TensorBase reserve, TensorBase out, TensorBase grad,
                            TensorBase dh, TensorBase dc, TensorBase dgates, TensorBase dhidden, TensorBase dstate) except -1:
    cdef recurrent_step p
    cdef int64_t s, columns = gate_count(l.mode) * l.hidden, width = l.width
    cdef TensorBase rows, dm = None
    cdef void* arguments[1]
    cdef FunctionHandle kernel = load(out.device_index, out.dtype, l.mode, True)
    arguments[0] = &p
    fill(&p, l, h0, c0, reserve, out)
    p.grad, p.dh, p.dc, p.dgates, p.dhidden = memory_of(grad), data_of(dh), memory_of(dc), data_of(dgates), data_of(dhidden)
    for s in range(l.steps - 1, -1, -1):
        place_step(&p, l, s)
        if w_hr is not None:
            rows = block_of(dstate, p.first, p.rows, 0, width, width)
            copy_elements(rows, block_of(dh, 0, p.rows, 0, width, width))
            if grad is not None:
                _ops.add(rows, block_of(grad, p.first, p.rows, 0, width, width), out=rows)
            dm = matrix(p.rows, l.hidden, out)
            product(rows, p.rows, width, w_hr, False, l.hidden, dm, l.hidden, None, False)
            p.dm = data_of(dm)
        run(kernel, out.device_index, blocks_for(p.rows * l.hidden, 256), 256, 0, arguments)
        product(block_of(dhidden, p.first, p.rows, 0, columns, columns), p.rows, columns, w_hh, False, width, block_of(dh, 0, p.rows, 0, width, width), width, None,
                l.mode == RECURRENT_GRU)
    return 0


set_recurrent_forward(DEV_CUDA, recurrent_forward)
set_recurrent_backward(DEV_CUDA, recurrent_backward)
