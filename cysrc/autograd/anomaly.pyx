"""Anomaly mode's part in a backward pass: gradients are searched for NaN, and a Node that fails says where its forward call stood."""
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.autograd.node cimport NOTE_CHECK_NAN, Node

attach()


cdef int check_nan(Node n, object out) except -1:
    values = out if isinstance(out, (tuple, list)) else (out,)
    for i, g in enumerate(values):
        if g is not None and (g.is_floating_point() or g.is_complex()) and bool((g != g).any()):
            raise RuntimeError(f"Function '{n.name()}' returned nan values in its {i}th output.")
    return 0


cdef object _print_forward_trace = None


def _set_trace_printer(function not None):
    """What anomaly mode calls with a Node whose backward has failed."""
    global _print_forward_trace
    _print_forward_trace = function


cdef object apply_traced(Node n, object grad, int anomaly):
    """Anomaly mode: print where the forward call stood when its backward fails or makes NaN."""
    try:
        out = n.apply(grad)
        if anomaly & NOTE_CHECK_NAN:
            check_nan(n, out)
    except Exception:
        if _print_forward_trace is not None:
            _print_forward_trace(n)
        raise
    return out
