# The edges of a Node as the executor walks them.
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from tensorrt_lite._C.autograd.node cimport Node


cdef inline PyObject* edge_of(Node n, int i) noexcept:
    """Borrowed; after discovery only Nodes, as that replaces leaves by their accumulators."""
    if i == 0:
        return <PyObject*>n.e0
    if i == 1:
        return <PyObject*>n.e1
    if i == 2:
        return <PyObject*>n.e2
    if i == 3:
        return <PyObject*>n.e3
    return <PyObject*>PyList_GET_ITEM(n.more, i - 4)
