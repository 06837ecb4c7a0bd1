# What generated operator modules share: autograd helpers and checks that need no code per operator.
from libc.stdint cimport int64_t, uint64_t
from tensorrt_lite._C.core.args cimport Dims
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.parallel cimport task_fn
from tensorrt_lite._C.core.dispatch cimport tls, trt_thread_state
from tensorrt_lite._C.core.tensor cimport TensorBase, K_BACKENDS, K_CPU, K_PYTHON, K_STANDS_IN, K_TRANSFORM, NUM_KEYS
from tensorrt_lite._C.autograd.node cimport Node
from tensorrt_lite._C.autograd.operator_nodes cimport OpNode

cdef inline uint64_t keys_of_list(list tensors):
    """The keys of a list's tensors, of the CPU where there is none."""
    cdef uint64_t k = 0
    for t in tensors:
        k |= (<TensorBase?>t).keys if t is not None else 0
    return k if k else K_CPU

cdef inline uint64_t enter_kernel() noexcept:
    """Let operators that a kernel calls run on the backend alone: nothing is recorded, no mode or transform sees them. What `leave_kernel` takes."""
    cdef trt_thread_state* state = tls()
    cdef uint64_t before = state.excluded
    state.excluded = before | ((<uint64_t>1 << NUM_KEYS) - 1) & ~<uint64_t>K_BACKENDS
    return before

cdef inline bint dispatched(uint64_t keys) noexcept:
    """Whether a mode or a class with __torch_dispatch__ sees what is done with tensors of these keys: PyTorch's operators then, in its order."""
    cdef trt_thread_state* state = tls()
    return ((keys | state.included) & ~state.excluded & K_PYTHON) != 0 and not (keys & K_STANDS_IN or state.included & K_TRANSFORM)

cdef inline void leave_kernel(uint64_t before) noexcept:
    tls().excluded = before

cdef bint any_requires_grad(list tensors) noexcept
cdef int set_list_edges(OpNode node, list tensors) except -1
cdef object shapes_of_list(list tensors)
cdef bint differentiable(TensorBase t) noexcept
cdef bint holds_any(object condition, bint unknown=*) except -1    # any element is true; in transforms, any of any element of a batch
cdef int set_list_history(object result, OpNode node, bint views) except -1
cdef int set_tuple_history(object result, OpNode node) except -1
cdef int note_view(object result) except -1
cdef int refuse_out(str name) except -1
cdef int check_out(object out, str name) except -1
cdef int check_outs(object out, str name, int n) except -1
cdef int bump_outs(object out) except -1
cdef object finish_inplace(TensorBase result, uint64_t keys)
cdef TensorBase write_to_out(str name, TensorBase result, TensorBase out, int mode, bint exact=*)
cdef int refuse_history(str name, TensorBase result) except -1
cpdef object deliver_result(str name, object result, object out, bint exact=*)
cdef int check_saved(str name, TensorBase t, int dtype, int64_t numel, TensorBase like) except -1
cdef int check_saved_like(str name, TensorBase t, TensorBase like, int dtype) except -1
cdef int run_held(task_fn task, void* args, int64_t items, int64_t work, TensorBase a, TensorBase b, TensorBase c=*, TensorBase d=*) except -1
cdef int check_out_type(str name, TensorBase out, int dtype) except -1
cdef TensorBase new_like(TensorBase t, int ndim, const int64_t* sizes, int dtype)
cdef TensorBase result_tensor(str name, TensorBase out, int mode, int ndim, const int64_t* sizes, int dtype, TensorBase like)

cdef struct Options:
    int dtype
    int device

cdef int factory_options(Options* o, str op, object dtype, object device, object layout, object pin_memory, int default_code) except -1
cdef int factory_place(object device, int place, object pin_memory) except -1      # place: where no device is named, -1 the default
cdef TensorBase finish_factory(TensorBase t, object requires_grad)
cdef TensorBase factory_tensor(const Dims* d, const Options* o)
cdef TensorBase factory_out(object out, str op, const Dims* d, object dtype)
cdef TensorBase factory_like(TensorBase t, str op, object dtype, object layout, object device, object memory_format, object pin_memory)
cdef int check_filling(const Scalar* value, TensorBase t) except -1
