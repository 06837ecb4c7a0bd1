"""Which gradients of a Node a pass is after: the executor says so around a Node's run, backward functions ask.

A pass of `autograd.grad`, or of `backward(inputs=...)`, runs the Nodes on paths to what it was asked for. Of such a Node that has edges to others, too, those edges are
noted for the thread. The note names the Node: a Node that runs elsewhere meanwhile, or is run by a formula, is after all of its gradients.
"""
from libc.stdint cimport uint64_t
from cpython.object cimport PyObject
from tensorrt_lite._C.autograd.edges cimport edge_of
from tensorrt_lite._C.autograd.node cimport Node

cdef extern from *:
    """
    typedef struct { PyObject *node; uint64_t edges; } trt_skipped_edges;
    static __thread trt_skipped_edges trt_skipped __attribute__((tls_model("initial-exec")));
    """
    Skipped skipped "trt_skipped"


cdef Skipped skip_edges(PyObject* node, uint64_t edges) noexcept:
    """Note it for the Node that is about to run in this thread; what was noted before."""
    cdef Skipped before
    before.node = skipped.node
    before.edges = skipped.edges
    skipped.node = node
    skipped.edges = edges
    return before


cdef uint64_t skipped_edges(Node node) noexcept:
    return skipped.edges if skipped.node == <PyObject*>node else 0


cdef bint wants(Node node, int i) noexcept:
    """Whether gradient i of a Node is of use."""
    if i >= node.n_edges or edge_of(node, i) == <PyObject*>None:
        return False
    return skipped.node != <PyObject*>node or i >= 64 or not skipped.edges >> i & 1
