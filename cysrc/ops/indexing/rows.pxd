# What the kernels of the family share: geometry, indices as offsets, operands.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of
from tensorrt_lite._C.steps.indexing cimport RowArgs

cdef enum:
    NOT_SKIPPED = -0x7FFFFFFFFFFFFFFF      # no index is this

cdef inline void add_dim(int* n, int64_t* sizes, int64_t* a, int64_t* b, int64_t size, int64_t sa, int64_t sb) noexcept:
    """Append a dimension (slowest first), merged with the previous one where both strides continue."""
    cdef int k = n[0]
    if size == 1:
        return
    if k > 0 and a[k - 1] == sa * size and b[k - 1] == sb * size:
        sizes[k - 1] *= size
        a[k - 1] = sa
        b[k - 1] = sb
        return
    sizes[k] = size
    a[k] = sa
    b[k] = sb
    n[0] = k + 1

cdef inline int64_t index_at(TensorBase index, int64_t i) noexcept:
    return (<const int64_t*>data_of(index))[i]

cdef TensorBase number_beside(TensorBase like, int dtype, const Scalar* value)
cdef TensorBase value_beside(TensorBase like, const Scalar* value)
cdef TensorBase beside(TensorBase t, TensorBase like)
cdef TensorBase index64(TensorBase index)
cdef TensorBase without_repeats(TensorBase index)
cdef TensorBase index64_expanded(TensorBase index)
cdef int gather_from(RowArgs* r, TensorBase table, TensorBase dense, TensorBase offsets) except -1
cdef int scatter_to(RowArgs* r, int64_t span, TensorBase table, TensorBase dense, TensorBase offsets, int op) except -1
cdef int dimension_rows(RowArgs* r, TensorBase table, TensorBase dense, int dim) except -1
cdef int64_t first_bad(TensorBase index, int64_t low, int64_t high) except -2
cdef int write_lines(str name, TensorBase table, TensorBase dense, TensorBase index, int dim, int op, bint gather, bint scalar, bint negative) except -1
cdef TensorBase one_dimensional(TensorBase t)
cdef TensorBase begin_write(str name, TensorBase self, TensorBase out, int mode)
cdef TensorBase cast_value(TensorBase value, int dtype)
cdef int check_source(str name, TensorBase self, int d, TensorBase index, TensorBase source, object error) except -1
cdef int check_sources(str name, TensorBase self, int mode, TensorBase index, TensorBase source) except -1
cdef int warn_copied(TensorBase t, str what) except -1
cdef int warn_expanded(str name, TensorBase self, str instead) except -1
cdef TensorBase finish_write(str name, TensorBase result, TensorBase out, int mode)
cdef int check_apart(str name, TensorBase out, int mode, TensorBase a, TensorBase b) except -1
cdef TensorBase vector_index(str name, TensorBase index)
cdef TensorBase vector_offsets(str name, TensorBase table, TensorBase index, int dim, bint negative, object error, int64_t skipped=*)
cdef object bags_of_ends(object ends, int64_t count)
cdef TensorBase clone_of(TensorBase t)
cdef TensorBase copy_in_order(TensorBase t)
cdef TensorBase empty_in_order(int ndim, const int64_t* sizes, const int64_t* source, int dtype, int place)
cdef TensorBase scalar_value(TensorBase self, object value, str name)
cdef TensorBase flat_offsets(TensorBase flat, TensorBase table)
cdef TensorBase flat_view(TensorBase t)
cdef int take_flat(TensorBase table, TensorBase flat, TensorBase r) except -1
cdef int flat_rows(RowArgs* r, TensorBase table, TensorBase dense, TensorBase offsets) except -1
cdef int64_t span_of(TensorBase t) noexcept
cdef int check_flat(TensorBase index, TensorBase self) except -1
