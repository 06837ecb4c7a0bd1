# Nodes of the autograd graph: edges, saved tensors, and the generic Nodes of declared operators.
from libc.stdint cimport int64_t, uint64_t, uint32_t, int8_t, uint8_t
from cpython.object cimport PyObject, PyTypeObject
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.core.iterator cimport PointwiseInfo

cdef enum:
    NODE_PLAIN = 0                     # of an operator: does not run when no gradient arrived
    NODE_LEAF = 1                      # AccumulateGrad
    NODE_FUNCTION = 2                  # of a custom Function: runs with None or zeros, too

cdef enum:
    NOTE_TRACEBACK = 1                 # new Nodes remember where they were made,
    NOTE_CHECK_NAN = 2                 # (gradients are searched for NaN)
    NOTE_STREAMS = 4                   # and the streams that were current

cdef enum:
    OUTPUT_UNKNOWN = 0                 # Node.out_form: nothing recorded yet,
    OUTPUT_LIST = 255                  # out.list describes each output; else the dimensions of the only one, plus 1
    OUTPUT_DIMS = 4                    # that a Node has room for itself

# The metadata of one output of a forward call, with which a gradient that arrives for it must agree.
cdef struct OutputMeta:
    int64_t* sizes                     # owned
    int ndim                           # -1: this output has no gradient
    int8_t dtype, device_type, device_index

cdef union OutputSizes:
    uint32_t inline_sizes[4]
    OutputMeta* list                   # one for each of n_inputs

cdef class Node:
    cdef uint64_t seq
    cdef uint64_t run                  # the last run of the executor that met this Node,
    cdef int task                      # and this Node's place in it
    cdef int n_edges
    cdef int n_inputs                  # outputs of the forward call
    cdef int nr0, nr1, nr2, nr3        # which output of the next node an edge belongs to
    cdef int streams                   # the number of the streams that were current in the forward call (DeviceHooks)
    cdef uint8_t released
    cdef uint8_t kind
    cdef uint8_t leaf_edges            # bit i: e0 .. e3 holds the leaf itself, whose accumulator nobody asked for yet
    cdef uint8_t out_form
    cdef int8_t out_dtype, out_device, out_index
    cdef object e0, e1, e2, e3         # Node, leaf or None
    cdef list more                     # edges beyond four: (Node or None)
    cdef list more_nr
    cdef list pre_hooks                # (output number or -1, callable)
    cdef list post_hooks
    cdef dict meta
    cdef object __weakref__
    cdef OutputSizes out
    cdef object apply(self, object grad)
    cdef void release(self) noexcept
    cdef object edge(self, int i)
    cdef int edge_nr(self, int i) noexcept
    cdef int set_edge(self, int i, TensorBase t) except -1

cdef class AccumulateGrad(Node):
    cdef TensorBase variable

cdef class PointwiseNode(Node):
    cdef const PointwiseInfo* info
    cdef TensorBase s1, s2, s3, s4     # inputs and result
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
    cdef TensorBase s0, s1, s2, s3, s4, s5
    cdef int64_t v0, v1, v2, v3, v4, v5
    cdef uint8_t outputs               # bit i: slot i holds an output of this node
    cdef list saved_list               # saved tensor lists
    cdef object args                   # tuple of saved numbers, shapes, flags

cdef OpNode new_op_node(OpNodeInfo* info)
cdef PointwiseNode new_pointwise_node(PointwiseInfo* info)
cdef int save(OpNode node, int slot, TensorBase t) except -1
cdef int save_output(OpNode node, int slot, TensorBase t) except -1
cdef TensorBase saved(OpNode node, int slot)
cdef object needs(Node node, int i)
cdef TensorBase output_alias(TensorBase t)
cdef int check_version(Node node, TensorBase t, int64_t version) except -1
cdef uint64_t next_sequence() noexcept
cdef int set_history(TensorBase result, Node node, int output_nr) except -1
cdef int rebase_history(TensorBase t, Node node) except -1
cdef int check_inplace(TensorBase t, str op) except -1
cdef Node gradient_node(TensorBase t)
cdef Node grad_fn_of(TensorBase t)
cdef int raise_released(Node node) except -1
cdef TensorBase reduce_gradient(TensorBase g, object meta)
cdef object input_meta(TensorBase t)
cdef bint grad_mode() noexcept
cdef int dual_levels                # open levels of forward mode: 0 spares the look for tangents
cdef object input_derivative(const PointwiseInfo* info, int i, PyObject** slots, const Scalar* params, bint composed)
cdef object ops_namespace()
cdef int take_notes(Node node) except -1
cdef int refuse_view(TensorBase t, bint indirect) except -1
cdef int copy_edge(Node to, Node source, int i) except -1
cdef int record_output(Node node, int nr, TensorBase t) except -1
cdef tuple output_metadata(Node n, int nr)
cdef object device_at(int place)
cdef bint agrees_with_output(Node n, int nr, TensorBase g) noexcept
cdef TensorBase fit_gradient(Node source, int index, Node n, int nr, TensorBase g)
cdef object guard_gradients(Node n, object grad)
cdef TensorBase private_gradient(TensorBase g)

cdef inline bint gradient_agrees(Node n, int nr, TensorBase g) noexcept:
    """Whether a gradient has the shape, type and device of the output that it belongs to. Run for every gradient of a backward pass."""
    cdef int i
    if n.out_form != g.ndim + 1 or n.out_dtype != g.dtype or n.out_device != g.device_type or n.out_device:
        return agrees_with_output(n, nr, g)
    for i in range(g.ndim):
        if <int64_t>n.out.inline_sizes[i] != g.sizes[i]:
            return False
    return True
