# The host side of cuda_src/pointwise.cuh: layouts of strided operands and the number of blocks to launch.
from libc.stdint cimport int32_t, int64_t, uint32_t

cdef enum:
    MAX_DIMS = 8
    MAX_OPERANDS = 6
    BLOCK_SIZE = 256

# Mirrors trt::StridedLayout<Operands>: a kernel of fewer operands takes the first rows of `stride` only.
cdef struct StridedLayout:
    uint32_t ndim
    uint32_t numel
    uint32_t size[MAX_DIMS]
    uint32_t multiplier[MAX_DIMS]
    uint32_t shift[MAX_DIMS]
    int32_t stride[MAX_OPERANDS][MAX_DIMS]

# Bytes of the layout that a kernel of `operands` operands takes.
cdef size_t layout_bytes(int operands) noexcept nogil

# Fills `layout` from row-major sizes (last dimension fastest) and element strides, strides[operand * ndim + dim].
# Dimensions of size 1 are dropped and neighbours that all operands walk as one are merged. Returns 0, or -1 where
# 32-bit indexing cannot express it: the caller splits the operation or makes copies.
cdef int fill_layout(StridedLayout* layout, int ndim, const int64_t* sizes, const int64_t* strides,
                     int operands) noexcept nogil

# Blocks for `items` loop iterations: enough to fill any device, few enough that the grid-stride loop pays.
cdef unsigned int grid_size(int64_t items) noexcept nogil
