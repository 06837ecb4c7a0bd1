# What the executor does with one Node that is ready, and with pending signals.
from libc.stdint cimport int64_t
from cpython.object cimport PyObject
from tensorrt_lite._C.autograd.anomaly cimport apply_traced
from tensorrt_lite._C.autograd.hook_calls cimport python_begins, python_ends
from tensorrt_lite._C.autograd.node cimport NODE_FUNCTION, Node
from tensorrt_lite._C.core.dispatch cimport trt_thread_state
from tensorrt_lite._C.core.profiler cimport KIND_NODE, begin_record, end_record, is_recorded

cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1


cdef inline object compute_gradients(Node n, object grad, int anomaly, trt_thread_state* state):
    """The gradients of a Node's inputs; None where nothing arrived on any path: the Nodes behind still count this one."""
    if n.kind == NODE_FUNCTION:
        python_begins(state)
        out = n.apply(grad) if not anomaly else apply_traced(n, grad, anomaly)
        python_ends(state)
        return out
    if grad is None:
        return None
    return n.apply(grad) if not anomaly else apply_traced(n, grad, anomaly)


cdef inline object run_node_recorded(Node n, object grad, int anomaly, trt_thread_state* state):
    cdef int64_t token = begin_record(KIND_NODE, <void*>(<PyObject*>n).ob_type, <int64_t>n.seq)
    try:
        return compute_gradients(n, grad, anomaly, state)
    finally:
        end_record(token)


cdef inline object run_node(Node n, object grad, int anomaly, trt_thread_state* state):
    """compute_gradients(), as an event of the profiler where one records."""
    return compute_gradients(n, grad, anomaly, state) if not is_recorded() else run_node_recorded(n, grad, anomaly, state)


cdef inline int answer_signals(trt_thread_state* state) except -1:
    """Ctrl-C ends the pass here; in a thread that goes on for another when that one says so."""
    PyErr_CheckSignals()
    if state.cancelled != NULL and state.cancelled[0]:
        raise KeyboardInterrupt
    return 0
