# GEMMs of recurrent layers, for the family's kernel and the devices' steps.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.steps.recurrent cimport recurrent_layer

cdef int64_t gate_count(int mode) noexcept
# rows and columns of a contiguous tensor that is seen as a matrix of `stride` elements a row
cdef TensorBase block_of(TensorBase t, int64_t row, int64_t rows, int64_t column, int64_t columns, int64_t stride)
# out (rows, columns; out_row elements a row) = a (rows, depth) b, plus an addend or itself; b (depth, columns), or transposed (columns, depth)
cdef int product(TensorBase a, int64_t rows, int64_t depth, TensorBase b, bint transposed, int64_t columns, TensorBase out, int64_t out_row, TensorBase bias, bint add) except -1
cdef int add_hidden_product(const recurrent_layer* l, TensorBase h, TensorBase w_hh, TensorBase gates) except -1
cdef TensorBase hidden_product(const recurrent_layer* l, TensorBase h, TensorBase w_hh, TensorBase b_hh)
cdef int state_gradient(const recurrent_layer* l, TensorBase dhidden, TensorBase w_hh, TensorBase dh) except -1
cdef int weight_gradient(TensorBase grad, int64_t rows, int64_t columns, TensorBase x, int64_t width, TensorBase out) except -1
