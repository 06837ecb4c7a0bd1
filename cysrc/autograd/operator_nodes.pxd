# The Nodes of declared operators: what they save, and how their formulas run.
from libc.stdint cimport int64_t, uint8_t
from cpython.object cimport PyObject
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.core.iterator cimport PointwiseInfo
from tensorrt_lite._C.autograd.node cimport Node

cdef class PointwiseNode(Node):
    cdef const PointwiseInfo* info
    cdef object s1, s2, s3, s4         # inputs and result: tensors, under hooks PackedTensors
    cdef int64_t v1, v2, v3, v4
    cdef object m1, m2, m3             # (shape, dtype code) of an input that was broadcast or converted, else None
    cdef Scalar params[3]

cdef extern from *:
    """
    typedef struct OpNodeInfo {
      const char* name;
      const char* saved_names;      /* comma separated, in slot order; '' ends */
      int n_saved;
      void* node_type;
      void* apply;
    } OpNodeInfo;
    """
    ctypedef struct OpNodeInfo:
        const char* name
        const char* saved_names
        int n_saved
        void* node_type
        void* apply

cdef class OpNode(Node)
ctypedef object (*op_apply)(OpNode node, object grad)

cdef class OpNode(Node):
    cdef OpNodeInfo* info
    cdef object s0, s1, s2, s3, s4, s5 # tensors, under hooks PackedTensors
    cdef int64_t v0, v1, v2, v3, v4, v5
    cdef uint8_t outputs               # bit i: slot i holds an output of this node
    cdef list saved_list               # for each saved list: the list, its versions
    cdef object args                   # tuple of saved numbers, shapes, flags

cdef inline bint is_transposed(TensorBase t) noexcept:
    """Whether a matrix is stored by columns, without gaps."""
    return t.ndim == 2 and t.strides[0] == 1 and t.strides[1] == t.sizes[0]

cdef OpNode new_op_node(OpNodeInfo* info)
cdef PointwiseNode new_pointwise_node(PointwiseInfo* info)
cdef int pack_inputs(PointwiseNode node) except -1
cdef object missing_derivative(str message)
cdef object without_derivative(object results, str operator, tuple inputs)
cdef int save(OpNode node, int slot, TensorBase t) except -1
cdef int save_output(OpNode node, int slot, TensorBase t) except -1
cdef TensorBase saved(OpNode node, int slot)
cdef int save_tensors(OpNode node, list tensors) except -1
cdef list saved_tensors(OpNode node, int i)
cdef TensorBase reduce_gradient(TensorBase g, object meta)
cdef object input_meta(TensorBase t)
cdef object input_derivative(const PointwiseInfo* info, int i, PyObject** slots, const Scalar* params, bint composed)
cdef int name_saved(const PointwiseInfo* info, str tensors, str params) except -1
cdef int register_derivative(PointwiseInfo* fused, const PointwiseInfo* of, int i, int operator_id) except -1
