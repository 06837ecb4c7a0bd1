# Hooks on what Nodes save: of a thread (saved_tensors_hooks), and of one saved tensor (register_hooks).
from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.autograd.node cimport Node

cdef class PackedTensor:
    cdef object value                  # what the pack hook returned
    cdef object unpack_hook
    cdef object source                 # the Node to which a gradient of the tensor goes; None for an output of the Node that saved it
    cdef object tangent
    cdef tuple expected                # (shape, dtype code, place) that the unpacked tensor must have; None: not looked at
    cdef int output_nr
    cdef bint requires_grad, is_output

cdef class SavedTensor:
    cdef Node node
    cdef int slot, position

cdef PackedTensor packed(object pack, object unpack, TensorBase t, TensorBase given, bint is_output, bint strict)
cdef object pack_saved(TensorBase t, bint is_output, bint strict)
cdef TensorBase unpack_saved(Node node, object x)
cdef SavedTensor raw_saved(Node node, int slot, int position)
