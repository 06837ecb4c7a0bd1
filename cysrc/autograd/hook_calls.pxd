# Calls of the program's code in a backward pass: hooks of tensors and Nodes, and what they may return.
from tensorrt_lite._C.core.dispatch cimport trt_thread_state
from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.autograd.node cimport Node

cdef object call_tensor_hooks(Node n, object grad)
cdef object call_node_hooks(Node n, object grad)
cdef object call_post_hooks(Node n, object out, object grad)
cdef object leaf_hooks(TensorBase leaf, object g)
cdef int run_post_accumulate(TensorBase leaf) except -1


cdef inline void python_begins(trt_thread_state* state) noexcept:
    """Before code of the program runs in a pass. Between such calls __torch_function__ is disabled: it sees the calls of the program, not
    those of which Nodes consist. After an error run_here restores it."""
    state.python_ran = 1
    state.function_disabled -= 1


cdef inline void python_ends(trt_thread_state* state) noexcept:
    state.function_disabled += 1
