# Nodes of the autograd graph: edges, histories of tensors, what gradients must look like.
from libc.stdint cimport int64_t, uint64_t, uint32_t, int8_t, uint8_t
from cpython.object cimport PyObject, PyTypeObject
from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.core.dispatch cimport tls, trt_thread_state
from tensorrt_lite._C.core.free_threading cimport FREE_THREADED

cdef enum:
    NODE_PLAIN = 0                     # of an operator: does not run when no gradient arrived
    NODE_LEAF = 1                      # AccumulateGrad
    NODE_FUNCTION = 2                  # of a custom Function: runs with None or zeros, too

cdef enum:
    NOTE_TRACEBACK = 1                 # new Nodes remember where they were made,
    NOTE_CHECK_NAN = 2                 # (gradients are searched for NaN)
    NOTE_STREAMS = 4                   # and the streams that were current;
    NOTE_SAVED_HOOKS = 8               # what they save goes through hooks

cdef enum:
    SAVED_RELEASED = 1                 # Node.saved_state: what was saved is gone;
    SAVED_IN_VIEW = 4                  # the Node is the writer of a CopySlices;
    SAVED_HOOKED = 2                   # a slot may hold a PackedTensor (saved_tensors.pxd) in a tensor's place

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
    cdef uint8_t saved_state           # SAVED_*
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
    # what a slot holds, or element `position` (else -1) of the list in it: as it is, changed, read by a formula
    cdef object get_saved(self, int slot, int position)
    cdef int set_saved(self, int slot, int position, object value) except -1
    cdef object read_saved(self, int slot, int position)
    cdef bint saves_output(self, int slot, int position) noexcept
    cdef object edge(self, int i)
    cdef int edge_nr(self, int i) noexcept
    cdef int set_edge(self, int i, TensorBase t) except -1

cdef class AccumulateGrad(Node):
    cdef TensorBase variable

cdef TensorBase attach_output(Node node, TensorBase alias, int output_nr)
cdef int check_version(Node node, TensorBase t, int64_t version) except -1
cdef PyTypeObject* node_class(const char* name, object base) except NULL
cdef uint64_t newest_sequence       # 0 without the GIL: each thread counts its own
cdef int set_history(TensorBase result, Node node, int output_nr) except -1
cdef int rebase_history(TensorBase t, Node node) except -1
cdef int check_inplace(TensorBase t, str op) except -1
cdef Node node_of_output(Node node)
cdef int leave_history(TensorBase t, int how) except -1
cdef Node gradient_node(TensorBase t)
cdef Node grad_fn_of(TensorBase t)
cdef int raise_released(Node node) except -1
cdef int dual_levels                # open levels of forward mode: 0 spares the look for tangents
cdef object ops_namespace()
cdef TensorBase output_alias(TensorBase t)
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

cdef enum:
    DETACHED = 1                       # TensorBase.detached: by detach_,
    REPLACED = 2                       # a leaf whose memory set_ has replaced


cdef inline int check_recorded_write(TensorBase t) except -1:
    """Refuse a write in place that is recorded because of what is written, where the view could not take the history."""
    if t.creation_meta and t.base is not None:
        refuse_view(t, False)
    return 0


cdef inline uint64_t next_sequence() noexcept:
    global newest_sequence
    cdef trt_thread_state* state
    if FREE_THREADED:
        state = tls()
        state.newest_sequence += 1
        return state.newest_sequence
    newest_sequence += 1
    return newest_sequence


cdef inline bint grad_mode() noexcept:
    """Whether formulas must be made of operators: gradients are recorded, a backward pass may meet tangents, or a mode, a subclass or a custom
    device sees to the operators."""
    return tls().grad_mode or tls().composed or dual_levels and tls().in_backward


cdef inline bint gradient_agrees(Node n, int nr, TensorBase g) noexcept:
    """Whether a gradient has the shape, type and device of the output that it belongs to. Run for every gradient of a backward pass."""
    cdef int i
    if n.out_form != g.ndim + 1 or n.out_dtype != g.dtype or n.out_device != g.device_type or n.out_device:
        return agrees_with_output(n, nr, g)
    for i in range(g.ndim):
        if <int64_t>n.out.inline_sizes[i] != g.sizes[i]:
            return False
    return True
