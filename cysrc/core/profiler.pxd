# Ranges of a profiled thread: operators, Nodes, functions and what programs name.
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t
from tensorrt_lite._C.core.dispatch cimport tls
from tensorrt_lite._C.core.tensor cimport KEY_TRACER

cdef enum:
    KIND_OPERATOR = 0             # what: the operator's row
    KIND_DEFINED = 1              # an operator that Python defined; what: its name
    KIND_FUNCTION = 2             # a public function over several operators; what: its name
    KIND_NODE = 3                 # of a backward pass; what: the Node's class
    KIND_PASS = 4                 # a backward pass
    KIND_RANGE = 5                # that the program names; what: the name
    KIND_MODULE = 6               # the call of a Module; what: the name
    KIND_MEMORY = 7
    KIND_FRAME = 8                # the call of a Python function; what: its code

cdef inline bint is_recorded() noexcept:
    """Whether this thread is profiled."""
    return tls().included >> KEY_TRACER & 1

cdef int64_t begin_record(int kind, void* what, int64_t sequence) noexcept
cdef void describe_call(int64_t token, PyObject** args, Py_ssize_t n) noexcept
cdef void end_record(int64_t token) noexcept
cdef void follow_sequence(const uint64_t* newest) noexcept
