"""Sums of gradients: those that meet at a Node, and a leaf's `grad`, which takes over a tensor that nobody else holds."""
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF
from tensorrt_lite._C.core.dispatch cimport FRESH, INPLACE, attach, operator_named, tls, trt_operator
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.free_threading cimport FREE_THREADED, held_at_most, lock_of, mutex_lock, mutex_unlock
from tensorrt_lite._C.core.iterator cimport PointwiseInfo
from tensorrt_lite._C.core.tensor cimport TensorBase, K_FORWARD_AD, K_SPARSE, alias_of, non_overlapping_dense, same_sizes, shape_of, strides_of
from tensorrt_lite._C.autograd.pointwise cimport call2

cdef extern from "pythread.h" nogil:
    ctypedef void* PyThread_type_lock
    PyThread_type_lock PyThread_allocate_lock()
    int PyThread_acquire_lock(PyThread_type_lock, int)
    void PyThread_release_lock(PyThread_type_lock)

attach()

cdef PyThread_type_lock _accumulate_lock = PyThread_allocate_lock()
cdef Scalar _one
_one.kind = 1
_one.i = 1
_one.d = 1.0
_one.im = 0.0
cdef enum:
    UNLOCKED = 4096                # elements that are summed without releasing the GIL

cdef trt_operator* _add = NULL     # the operator that sums gradients: of a family above, looked up by the first sum


cdef TensorBase sum_gradients(TensorBase a, TensorBase b, TensorBase out, int mode):
    """a + b, dispatched and recorded like any call."""
    global _add
    if _add == NULL:
        _add = operator_named("add")
    if a.keys & ~b.keys & K_SPARSE:
        return call2(<PointwiseInfo*>_add.info, b, a, &_one, out, mode)        # a strided tensor plus a sparse one
    return call2(<PointwiseInfo*>_add.info, a, b, &_one, out, mode)


cdef inline bint same_layout(TensorBase g, TensorBase leaf) noexcept:
    """Whether `g` has the layout that the gradient of `leaf` gets: the leaf's own, rows one after the other where the leaf's elements share memory or leave gaps."""
    cdef int i
    if not non_overlapping_dense(leaf):
        return g.contiguous
    if g.ndim != leaf.ndim:
        return False
    for i in range(g.ndim):
        if g.strides[i] != leaf.strides[i] and g.sizes[i] != 1:
            return False
    return True


cdef object clone_like(TensorBase g, TensorBase leaf):
    cdef object r
    if same_layout(g, leaf) or not same_sizes(g, leaf):       # set_ may have given the leaf other sizes
        return g.clone()
    if not non_overlapping_dense(leaf):
        return g.new_empty(shape_of(leaf)).copy_(g)
    r = g.new_empty_strided(shape_of(leaf), strides_of(leaf))
    return r.copy_(g)


cdef int accumulate(TensorBase leaf, PyObject** owned, bint shared) except -1:
    """Add the gradient `*owned` (whose only reference may be this one) to `leaf.grad`. shared: other passes run, which may write there, too."""
    cdef TensorBase g
    cdef PyObject* p = owned[0]
    cdef bint locked = False, record = tls().grad_mode
    # A write that releases the GIL must not meet one from another thread. Alone, short ones, which keep the GIL, need no lock. Without a GIL all do.
    if FREE_THREADED:
        mutex_lock(lock_of(<PyObject*>leaf))
    elif shared or leaf.numel > UNLOCKED:
        if not PyThread_acquire_lock(_accumulate_lock, 0):
            with nogil:
                PyThread_acquire_lock(_accumulate_lock, 1)
        locked = True
    try:
        if (<TensorBase>p).keys & K_FORWARD_AD:
            # `grad` takes the values alone
            g = alias_of(<TensorBase>p)
            Py_INCREF(g)
            Py_DECREF(<object>p)
            p = owned[0] = <PyObject*>g
            g = None
        if leaf.grad_ is None:
            g = <TensorBase>p
            if record:
                leaf.grad_ = clone_like(g, leaf)
            elif (
                held_at_most(g, 2) and held_at_most(g.storage, 1) and g.storage.block != NULL and g.storage.block.flags == 0
                and not g.wrapped_number and not g.requires_grad and same_layout(g, leaf)
            ):
                leaf.grad_ = g
            else:
                leaf.grad_ = clone_like(g, leaf)
        elif record or (<TensorBase>leaf.grad_).keys & ~(<TensorBase>p).keys & K_SPARSE:
            leaf.grad_ = sum_gradients(<TensorBase>leaf.grad_, <TensorBase>p, None, FRESH)
        else:
            sum_gradients(<TensorBase>leaf.grad_, <TensorBase>p, <TensorBase>leaf.grad_, INPLACE)
    finally:
        if locked:
            PyThread_release_lock(_accumulate_lock)
        mutex_unlock(lock_of(<PyObject*>leaf))
    return 0


def accumulate_gradient(TensorBase leaf not None, TensorBase g not None):
    """Add a gradient to ``leaf.grad``: what a leaf's Node does when it is called by hand."""
    cdef PyObject* p = <PyObject*>g
    Py_INCREF(g)
    try:
        accumulate(leaf, &p, True)
    finally:
        Py_DECREF(<object>p)
