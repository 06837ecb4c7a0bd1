"""GEMMs of recurrent layers over contiguous operands, by the step of the operands' device."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.tensor cimport TensorBase, empty_tensor, make_view, place_of
from tensorrt_lite._C.ops.matmul.mat cimport Mat, dense, transpose_mat
from tensorrt_lite._C.steps.matmul cimport run_gemm
from tensorrt_lite._C.steps.recurrent cimport RECURRENT_GRU, RECURRENT_LSTM, recurrent_layer

attach()


cdef int64_t gate_count(int mode) noexcept:
    return 4 if mode == RECURRENT_LSTM else 3 if mode == RECURRENT_GRU else 1


cdef TensorBase block_of(TensorBase t, int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t stride):
    cdef int64_t sizes[2]
    cdef int64_t strides[2]
    sizes[0], sizes[1], strides[0], strides[1] = rows, columns, stride, 1
    return make_view(t, 2, sizes, strides, t.offset + row * stride + column)


cdef int product(TensorBase a, int64_t rows, int64_t depth, TensorBase b, bint transposed, int64_t columns, TensorBase out, int64_t out_row, TensorBase bias, bint add) except -1:
    cdef Mat ma, mb, mo, md
    cdef Scalar one
    if out_row != columns or out.ndim != 2:
        out = block_of(out, 0, rows, 0, columns, out_row)          # an addend broadcasts to the tensor
    dense(&ma, 1, rows, depth, False)
    if transposed:
        dense(&mb, 1, columns, depth, False)
        transpose_mat(&mb)
    else:
        dense(&mb, 1, depth, columns, False)
    dense(&mo, 1, rows, columns, False)
    mo.rs = out_row
    one.kind = 1
    one.i = 1
    one.d = 1
    one.im = 0
    if add:
        return run_gemm(out.device_type, "recurrent layer", out, &mo, a, &ma, b, &mb, NULL, &one, out, &mo)
    if bias is None:
        return run_gemm(out.device_type, "recurrent layer", out, &mo, a, &ma, b, &mb, NULL, NULL, None, NULL)
    dense(&md, 1, rows, columns, False)
    md.rs = md.bs = 0
    return run_gemm(out.device_type, "recurrent layer", out, &mo, a, &ma, b, &mb, NULL, &one, bias, &md)


cdef int add_hidden_product(const recurrent_layer* l, TensorBase h, TensorBase w_hh, TensorBase gates) except -1:
    """gates += h w_hh^T, in the first columns of their rows."""
    cdef int64_t columns = gate_count(l.mode) * l.hidden
    return product(h, l.batch, l.width, w_hh, True, columns, gates, l.reserve_row or columns, None, True)


cdef TensorBase hidden_product(const recurrent_layer* l, TensorBase h, TensorBase w_hh, TensorBase b_hh):
    """h w_hh^T + b_hh of all sequences."""
    cdef int64_t sizes[2]
    cdef TensorBase r
    sizes[0], sizes[1] = l.batch, gate_count(l.mode) * l.hidden
    r = empty_tensor(2, sizes, h.dtype, place_of(h))
    product(h, l.batch, l.width, w_hh, True, sizes[1], r, sizes[1], b_hh, False)
    return r


cdef int state_gradient(const recurrent_layer* l, TensorBase dhidden, TensorBase w_hh, TensorBase dh) except -1:
    """dh = dhidden w_hh, for a GRU added to what went past its gates."""
    return product(dhidden, l.batch, gate_count(l.mode) * l.hidden, w_hh, False, l.width, dh, l.width, None, l.mode == RECURRENT_GRU)


cdef int weight_gradient(TensorBase grad, int64_t rows, int64_t columns, TensorBase x, int64_t width, TensorBase out) except -1:
    """out (columns, width) = grad^T x, of (rows, columns) and (rows, width)."""
    cdef Mat mg, mx, mo
    dense(&mg, 1, rows, columns, False)
    transpose_mat(&mg)
    dense(&mx, 1, rows, width, False)
    dense(&mo, 1, columns, width, False)
    return run_gemm(out.device_type, "recurrent layer", out, &mo, grad, &mg, x, &mx, NULL, NULL, None, NULL)
