"""Sparse tensors: geometry like any tensor's, and a storage that holds the tensors of indices and values in the place of memory.

A sparse tensor has the keys Meta, Python and Sparse. Sparse stands above all others, so every operator that meets such a tensor comes to the boxed
kernel here, which calls one function of the package (tensorrt_lite/sparse): it computes with indices and values, records its own gradient, or refuses. What
passes the dispatcher by finds a tensor without memory on the device meta. Python lets fast paths give way to the dispatcher.
"""
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t, uint64_t
from tensorrt_lite._C.core.args cimport Dims, parse_dims
from tensorrt_lite._C.core.boxing cimport box_arguments, register_boxed
from tensorrt_lite._C.core.device cimport DEV_META
from tensorrt_lite._C.core.dispatch cimport FRESH, NO_OUT, attach, trt_operator, trt_value
from tensorrt_lite._C.core.storage cimport Storage
from tensorrt_lite._C.core.tensor cimport (
    KEY_SPARSE, K_PYTHON, K_SPARSE, LAYOUT_COO, LAYOUT_BSC, TensorBase, bump_version, checked_numel, contiguous_strides, set_dtype, set_geometry, set_storage, sparse_type)

attach()

cdef extern from "thread_state.h":
    object trt_new(PyTypeObject*, object)

cdef tuple _no_arguments = ()
cdef object _run = None


cdef class SparseStorage(Storage):
    """The tensors that a sparse tensor is made of; aliases share it."""


cdef SparseStorage storage_of(TensorBase t):
    if not t.keys & K_SPARSE:
        raise TypeError("the tensor is not sparse")
    return <SparseStorage?>t.storage


cdef object device_of_sparse(TensorBase t):
    return storage_of(t).parts[0].device


cdef int take_sizes(TensorBase t, object size) except -1:
    cdef Dims sizes, strides
    parse_dims(tuple(size), &sizes, "sparse tensor", "size")
    checked_numel(sizes.n, sizes.v)
    contiguous_strides(sizes.n, sizes.v, strides.v)
    set_geometry(t, sizes.n, sizes.v, strides.v)
    return 0


def make(int layout, size, tuple parts not None, int sparse_dim, int dense_dim, bint coalesced=False):
    """A sparse tensor over its parts, which are not copied. layout: LAYOUT_* of tensor.pxd; the parts must fit together: nothing is checked here."""
    cdef SparseStorage s = SparseStorage.__new__(SparseStorage)
    cdef TensorBase t
    if not LAYOUT_COO <= layout <= LAYOUT_BSC or sparse_type == NULL:
        raise ValueError(f"no sparse layout {layout}")
    for p in parts:
        if not isinstance(p, TensorBase) or (<TensorBase>p).requires_grad or (<TensorBase>p).keys & K_SPARSE:
            raise TypeError("a sparse tensor is made of strided tensors without history")
    s.device_type = DEV_META
    s.parts, s.sparse_dim, s.dense_dim, s.coalesced = parts, sparse_dim, dense_dim, coalesced
    t = <TensorBase>trt_new(sparse_type, _no_arguments)
    set_storage(t, s)
    t.keys |= K_PYTHON | K_SPARSE
    t.layout = layout
    set_dtype(t, (<TensorBase>parts[len(parts) - 1]).dtype)
    take_sizes(t, size)
    return t


def is_sparse(x):
    """Whether x is a sparse tensor, of any layout."""
    return isinstance(x, TensorBase) and (<TensorBase>x).keys & K_SPARSE != 0


def parts_of(TensorBase t not None):
    """The tensors that a sparse tensor is made of. TypeError for other tensors."""
    return storage_of(t).parts


def layout_of(TensorBase t not None):
    """(layout as a number, sparse dimensions, dense dimensions, whether its indices are known to be sorted and unique)."""
    cdef SparseStorage s = storage_of(t)
    return t.layout, s.sparse_dim, s.dense_dim, s.coalesced


def replace(TensorBase t not None, tuple parts not None, bint coalesced, size=None, int sparse_dim=-1, int dense_dim=-1, bint bump=True):
    """Put other parts into a sparse tensor; its aliases see them, too. bump: whether its version grows."""
    cdef SparseStorage s = storage_of(t)
    if (<TensorBase?>parts[len(parts) - 1]).dtype != t.dtype:
        raise TypeError("a sparse tensor keeps its type")
    if size is not None:
        take_sizes(t, size)
    if sparse_dim >= 0:
        s.sparse_dim, s.dense_dim = sparse_dim, dense_dim
    s.parts, s.coalesced = parts, coalesced
    if bump:
        bump_version(t)
    return t


def mark_coalesced(TensorBase t not None, bint coalesced):
    """Say whether the indices of a COO tensor are sorted and unique."""
    storage_of(t).coalesced = coalesced


def set_operators(run not None):
    """run(operator's name, arguments, target, write mode): what the key's kernel calls."""
    global _run
    _run = run


cdef object run_sparse(trt_operator* op, const trt_value* v, PyObject* out, int mode):
    """The boxed kernel under the key."""
    return _run(op.name.decode(), box_arguments(op, v, True), <object>out if out != NULL else None, FRESH if mode == NO_OUT else mode)


register_boxed(KEY_SPARSE, run_sparse)
