# Anomaly mode's part in a backward pass.
from tensorrt_lite._C.autograd.node cimport Node

cdef object apply_traced(Node n, object grad, int anomaly)
