# Which gradients of a Node a pass is after: `autograd.grad` may ask for one of several inputs.
from libc.stdint cimport uint64_t
from cpython.object cimport PyObject
from tensorrt_lite._C.autograd.node cimport Node

cdef struct Skipped:
    PyObject* node                     # that runs in this thread, borrowed, or NULL: it is after all gradients
    uint64_t edges                     # bit i: no path leads over edge i to what the pass is after

cdef Skipped skip_edges(PyObject* node, uint64_t edges) noexcept
cdef uint64_t skipped_edges(Node node) noexcept
cdef bint wants(Node node, int i) noexcept
