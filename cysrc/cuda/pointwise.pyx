# cython: language_level=3
"""The host side of cuda_src/pointwise.cuh: the layout structure that its strided kernels take, and launch sizes.

Pure arithmetic: needs no driver. Called by the operators' CUDA launch path; the Python function is for tests and tools.
"""
from libc.string cimport memset


cdef enum:
    MAX_BLOCKS = 65535 * 4


cdef size_t layout_bytes(int operands) noexcept nogil:
    return 4 * (2 + 3 * MAX_DIMS + operands * MAX_DIMS)


cdef bint _mergeable(const int64_t* strides, int ndim, int operands, int inner, int outer,
                     int64_t inner_size) noexcept nogil:
    """Whether every operand steps in `outer` by exactly the extent of `inner`."""
    cdef int k
    for k in range(operands):
        if strides[k * ndim + outer] != strides[k * ndim + inner] * inner_size:
            return False
    return True


cdef int fill_layout(StridedLayout* layout, int ndim, const int64_t* sizes, const int64_t* strides,
                     int operands) noexcept nogil:
    cdef int64_t numel = 1, extent, merged
    cdef int dim, k, out = -1, inner = -1
    cdef int64_t limit = 0x7FFFFFFF
    memset(layout, 0, sizeof(StridedLayout))
    for dim in range(ndim):
        if sizes[dim] == 0:
            return 0
    for dim in range(ndim - 1, -1, -1):
        if sizes[dim] == 1:
            continue
        if numel > limit // sizes[dim]:
            return -1
        numel *= sizes[dim]
        # `merged` is the size of the output dimension so far; the stride of its fastest part stays.
        if out >= 0:
            merged = layout.size[out]
            if _mergeable(strides, ndim, operands, inner, dim, merged):
                layout.size[out] = <uint32_t>(merged * sizes[dim])
                continue
        out += 1
        if out == MAX_DIMS:
            return -1
        inner = dim
        layout.size[out] = <uint32_t>sizes[dim]
        for k in range(operands):
            if strides[k * ndim + dim] > limit or strides[k * ndim + dim] < -limit:
                return -1
            layout.stride[k][out] = <int32_t>strides[k * ndim + dim]
    layout.ndim = out + 1
    layout.numel = <uint32_t>numel
    for k in range(operands):
        # The farthest element an operand touches, both ways, has to be in reach of a signed 32-bit offset.
        extent = 0
        for dim in range(<int>layout.ndim):
            extent += (<int64_t>layout.size[dim] - 1) * (layout.stride[k][dim] if layout.stride[k][dim] >= 0
                                                         else -<int64_t>layout.stride[k][dim])
            if extent > limit:
                return -1
    for dim in range(<int>layout.ndim):
        _fill_divisor(layout, dim)
    return 0


cdef void _fill_divisor(StridedLayout* layout, int dim) noexcept nogil:
    """The multiplier and shift by which the kernel divides by size[dim]; pointwise.cuh has the formula."""
    cdef unsigned long long size = layout.size[dim], one = 1, power = 1
    cdef uint32_t shift = 0
    while power < size:
        power <<= 1
        shift += 1
    layout.shift[dim] = shift
    layout.multiplier[dim] = <uint32_t>(((one << 32) * (power - size)) // size + 1)


cdef unsigned int grid_size(int64_t items) noexcept nogil:
    cdef int64_t blocks = (items + BLOCK_SIZE - 1) // BLOCK_SIZE
    if blocks < 1:
        return 1
    return <unsigned int>(blocks if blocks < MAX_BLOCKS else MAX_BLOCKS)


def pack_layout(shape, strides) -> bytes:
    """The bytes of trt::StridedLayout<len(strides)> for `shape` and one tuple of element strides per operand.

    Raises ValueError for more than 6 operands or strides of the wrong length, and OverflowError where 32-bit indexing
    or 8 dimensions after merging do not suffice.
    """
    cdef int64_t[64] sizes
    cdef int64_t[64 * MAX_OPERANDS] flat
    cdef StridedLayout layout
    cdef int ndim = len(shape), operands = len(strides), dim, k
    if not 1 <= operands <= MAX_OPERANDS or ndim > 64:
        raise ValueError(f"pack_layout: {operands} operands of {ndim} dimensions, at most {MAX_OPERANDS} of 64")
    for dim in range(ndim):
        sizes[dim] = shape[dim]
        if sizes[dim] < 0:
            raise ValueError(f"pack_layout: negative size {sizes[dim]} at dimension {dim}")
    for k in range(operands):
        if len(strides[k]) != ndim:
            raise ValueError(f"pack_layout: operand {k} has {len(strides[k])} strides for {ndim} dimensions")
        for dim in range(ndim):
            flat[k * ndim + dim] = strides[k][dim]
    if fill_layout(&layout, ndim, sizes, flat, operands):
        raise OverflowError(
            f"pack_layout: shape {tuple(shape)} is out of reach of 32-bit indexing in {MAX_DIMS} dimensions")
    return (<char*>&layout)[:layout_bytes(operands)]


def blocks_for(int64_t items) -> int:
    """The number of blocks of 256 threads to launch for `items` iterations."""
    return grid_size(items)
