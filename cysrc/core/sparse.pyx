"""Sparse tensors: geometry like any tensor's, and a storage that holds the tensors of indices and values in the place of memory.

A sparse tensor has the keys Meta, Python and Sparse. Sparse stands above all others, so every operator that meets such a tensor comes to the boxed
kernel here, which calls one function of the package (tensorrt_lite/sparse): it computes with indices and values, records its own gradient, or refuses. What
passes the dispatcher by finds a tensor without memory on the device meta. Python lets fast paths give way to the dispatcher.

Inside a functional transform (core/transform.pyx) a wrapper around a sparse tensor has the key, too. At a level of grad its parts are the indices themselves and a wrapper
around the values; at a level of vmap it has none (tensorrt_lite/_sparse/batches.py). `make` of parts that belong to a level of grad is a wrapper around the sparse tensor below;
parts at a level of vmap are put into a sparse tensor as they are.
"""
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t, uint64_t
from tensorrt_lite._C.core.args cimport Dims, parse_dims
from tensorrt_lite._C.core.boxing cimport box_arguments, register_boxed
from tensorrt_lite._C.core.device cimport DEV_META
from tensorrt_lite._C.core.dispatch cimport FRESH, NO_OUT, attach, tls, trt_operator, trt_value
from tensorrt_lite._C.core.storage cimport Storage
from tensorrt_lite._C.core.tensor cimport (
    KEY_SPARSE, K_FORWARD_AD, K_PYTHON, K_SPARSE, K_TRANSFORM, K_WRAPPED, LAYOUT_COO, LAYOUT_BSC, TensorBase, bump_version, checked_numel, contiguous_strides, set_dtype, set_geometry, set_storage, sparse_type)

attach()

cdef extern from "thread_state.h":
    object trt_new(PyTypeObject*, object)

cdef tuple _no_arguments = ()
cdef object _run = None
cdef object _wrapper_parts = None    # of core/transform.pyx, which is loaded with the first transform
cdef object _wrap = None
cdef object _all_levels = None


cdef class SparseStorage(Storage):
    """The tensors that a sparse tensor is made of; aliases share it."""


cdef SparseStorage storage_of(TensorBase t):
    if not t.keys & K_SPARSE:
        raise TypeError("the tensor is not sparse")
    while t.keys & K_WRAPPED:
        t = <TensorBase?>_wrapper_parts(t)[0]
    return <SparseStorage?>t.storage


def set_wrappers(wrapper_parts not None, wrap not None, all_levels not None):
    """wrapper_parts(wrapper) is (value, level, batch dimension), wrap(value, level) a wrapper, all_levels() the levels in progress: what core/transform.pyx has for sparse tensors at its levels."""
    global _wrapper_parts, _wrap, _all_levels
    _wrapper_parts, _wrap, _all_levels = wrapper_parts, wrap, all_levels


cdef tuple value_at_level(TensorBase t):
    """(value, level) of a wrapper. RuntimeError for a batch: its slices have entries of their own, and different numbers of them."""
    value, level, dim = _wrapper_parts(t)
    if dim is not None:
        raise RuntimeError("vmap: there is no batching rule for the indices and values of a batch of sparse tensors; products, functions of elements and to_dense() have one")
    return value, level


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
    cdef SparseStorage s
    cdef TensorBase t
    cdef object level = None
    if not LAYOUT_COO <= layout <= LAYOUT_BSC or sparse_type == NULL:
        raise ValueError(f"no sparse layout {layout}")
    for p in parts:
        if not isinstance(p, TensorBase) or (<TensorBase>p).requires_grad or (<TensorBase>p).keys & K_SPARSE:
            raise TypeError("a sparse tensor is made of strided tensors without history")
        refuse_tangent(<TensorBase>p)
        if (<TensorBase>p).keys & K_WRAPPED:
            found = _wrapper_parts(p)[1]
            if found.kind != "vmap" and (level is None or found.number > level.number):
                level = found
    if level is not None:
        return _wrap(make(layout, size, below(parts, level), sparse_dim, dense_dim, coalesced), level)
    s = SparseStorage.__new__(SparseStorage)
    s.device_type = DEV_META
    s.parts, s.sparse_dim, s.dense_dim, s.coalesced = parts, sparse_dim, dense_dim, coalesced
    t = <TensorBase>trt_new(sparse_type, _no_arguments)
    set_storage(t, s)
    t.keys |= K_PYTHON | K_SPARSE
    t.layout = layout
    set_dtype(t, (<TensorBase>parts[len(parts) - 1]).dtype)
    take_sizes(t, size)
    return t


cdef tuple below(tuple parts, level):
    """The parts without the wrappers of a level."""
    found = []
    for p in parts:
        if (<TensorBase>p).keys & K_WRAPPED:
            value, owner, _ = _wrapper_parts(p)
            p = value if owner is level else p
        found.append(p)
    return tuple(found)


cdef int refuse_tangent(TensorBase t) except -1:
    if t.keys & K_FORWARD_AD:
        raise NotImplementedError("Trying to use forward AD with a sparse tensor that does not support it because it has not been implemented yet.")
    return 0


def check_no_tangent(TensorBase t not None):
    """NotImplementedError where a tensor carries a tangent: operators of sparse tensors have no forward derivatives."""
    refuse_tangent(t)


def is_transforming():
    """Whether a functional transform is active in this thread."""
    return tls().included & K_TRANSFORM != 0


def below_ended_levels(TensorBase t not None):
    """A tensor without the wrappers of grad's and jvp's levels that are off the stack: a constant that one of them made, for what runs below it."""
    while t.keys & K_WRAPPED:
        value, level, dim = _wrapper_parts(t)
        if dim is not None or level in _all_levels():
            break
        t = <TensorBase?>value
    return t


def is_batch(x):
    """Whether x stands for a slice of a batch of sparse tensors, at a level of vmap."""
    return isinstance(x, TensorBase) and (<TensorBase>x).keys & K_SPARSE and (<TensorBase>x).keys & K_WRAPPED and _wrapper_parts(x)[2] is not None


def is_sparse(x):
    """Whether x is a sparse tensor, of any layout."""
    return isinstance(x, TensorBase) and (<TensorBase>x).keys & K_SPARSE != 0


def parts_of(TensorBase t not None):
    """The tensors that a sparse tensor is made of. TypeError for other tensors."""
    cdef SparseStorage s = storage_of(t)
    if not t.keys & K_WRAPPED:
        return s.parts
    value, level = value_at_level(t)
    found = parts_of(value)
    return (*found[:len(found) - 1], _wrap(found[len(found) - 1], level))


def layout_of(TensorBase t not None):
    """(layout as a number, sparse dimensions, dense dimensions, whether its indices are known to be sorted and unique)."""
    cdef SparseStorage s = storage_of(t)
    if t.keys & K_WRAPPED:
        return layout_of(value_at_level(t)[0])
    return t.layout, s.sparse_dim, s.dense_dim, s.coalesced


cdef int refuse_captured(SparseStorage s, tuple parts) except -1:
    """RuntimeError where the parts of a tensor from outside of a level would be the level's."""
    for p in parts:
        if not (<TensorBase>p).keys & K_WRAPPED:
            continue
        level = _wrapper_parts(p)[1]
        if level.kind != "vmap":
            raise RuntimeError(
                "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation that would mutate a captured Tensor. This is not "
                "supported; please rewrite the function being transformed to explicitly accept the mutated Tensor(s) as inputs.")
        if not any((<TensorBase>old).keys & K_WRAPPED and _wrapper_parts(old)[1] is level for old in s.parts):
            raise RuntimeError("vmap: a write in place is not possible to a sparse tensor that is the same for all of the batch, of values that differ within it")
    return 0


def replace(TensorBase t not None, tuple parts not None, bint coalesced, size=None, int sparse_dim=-1, int dense_dim=-1, bint bump=True):
    """Put other parts into a sparse tensor; its aliases see them, too. bump: whether its version grows."""
    cdef SparseStorage s = storage_of(t)
    for p in parts:
        refuse_tangent(<TensorBase?>p)
    if t.keys & K_WRAPPED:
        value, level = value_at_level(t)
        replace(value, below(parts, level), coalesced, size, sparse_dim, dense_dim, bump)
        if size is not None:
            take_sizes(t, size)
        if bump:
            bump_version(t)
        return t
    refuse_captured(s, parts)
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
    while t.keys & K_WRAPPED:
        t = <TensorBase?>value_at_level(t)[0]
    storage_of(t).coalesced = coalesced


def set_operators(run not None):
    """run(operator's name, arguments, target, write mode): what the key's kernel calls."""
    global _run
    _run = run


cdef object run_sparse(trt_operator* op, const trt_value* v, PyObject* out, int mode):
    """The boxed kernel under the key."""
    return _run(op.name.decode(), box_arguments(op, v, True), <object>out if out != NULL else None, FRESH if mode == NO_OUT else mode)


register_boxed(KEY_SPARSE, run_sparse)
