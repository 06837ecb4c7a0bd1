# The edges of a Node as the executor walks them, and the ends of a pass.
from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from tensorrt_lite._C.autograd.node cimport Node, NODE_LEAF, gradient_node
from tensorrt_lite._C.core.tensor cimport TensorBase


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


cdef inline Node node_of(object end):
    """The Node that a gradient of a tensor goes to, or the Node of a GradientEdge."""
    if isinstance(end, TensorBase):
        return gradient_node(<TensorBase>end)
    return <Node?>end[0]


cdef inline int number_of(object end, Node n) except -1:
    """Which output of `n` a tensor or a GradientEdge is. IndexError where the edge names none."""
    cdef int nr
    if n.kind == NODE_LEAF:
        return 0
    if isinstance(end, TensorBase):
        return (<TensorBase>end).output_nr
    nr = end[1]
    if nr < 0 or nr >= max(n.n_inputs, 1):
        raise IndexError(f"{n.name()} has no output {nr}")
    return nr
