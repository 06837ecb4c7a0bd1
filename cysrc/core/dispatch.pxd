# The dispatcher: an operator is a row of typed C function pointers, one per key; the highest key of the arguments wins.
from libc.stdint cimport int64_t, uint64_t
from cpython.object cimport PyObject
from tensorrt_lite._C.core.tensor cimport TensorBase, K_BACKENDS, K_AUTOGRAD, on_mixed_devices

cdef extern from "thread_state.h":
    ctypedef struct trt_thread_state:
        uint64_t included, excluded
        int grad_mode
        int inference_mode
        int function_modes
        int function_disabled
        int notes
        int in_backward
        int python_ran
        const int* cancelled
        const char* operator_name
        PyObject** late_warnings
    trt_thread_state* tls "trt_tls"() noexcept nogil
    int top_bit "trt_top_bit"(uint64_t) noexcept nogil

cdef extern from *:
    """
    typedef struct trt_operator {
      const char* name;
      uint64_t mask;                /* keys that have a kernel, and all backends (whose absence is an error) */
      void* info;                   /* PointwiseInfo of a pointwise operator */
      void* forward;                /* ForwardInfo of the others: how tangents go through it */
      void* kernels[16];
    } trt_operator;
    """
    ctypedef struct trt_operator:
        const char* name
        uint64_t mask
        void* info
        void* forward
        void* kernels[16]

cdef enum:
    FRESH = 0                       # the result is a new tensor
    OUT = 1                         # into `out`, resized when its shape differs
    INPLACE = 2                     # into `out`, which is also the first input

cdef trt_operator* operator_table() noexcept
cdef void* thread_state_getter() noexcept
cdef int missing_kernel(trt_operator* op, uint64_t keys) except -1
cdef int mixed_devices(trt_operator* op, uint64_t keys) except -1
cdef void register_kernel(int operator_id, const char* name, int key, void* kernel) noexcept
cdef object boxed_call(const char* name, int key, tuple arguments)

cdef extern from *:
    """
    static trt_operator* trt_ops;
    #define trt_set_ops(p) (trt_ops = (trt_operator*)(p))
    #define trt_set_getter(p) (trt_state_getter = (trt_thread_state* (*)(void))(p))
    """
    trt_operator* OPS "trt_ops"
    void set_ops "trt_set_ops"(void*)
    void set_getter "trt_set_getter"(void*)

cdef inline void attach() noexcept:
    """Give this module its pointers to the operator table and the thread state; called at import of each module."""
    set_getter(thread_state_getter())
    set_ops(operator_table())

cdef inline void* resolve(trt_operator* op, uint64_t keys) except NULL:
    cdef trt_thread_state* state = tls()
    cdef void* f
    if on_mixed_devices(keys):
        mixed_devices(op, keys)
    f = op.kernels[top_bit((keys | state.included) & ~state.excluded & op.mask)]
    if f == NULL:
        missing_kernel(op, (keys | state.included) & ~state.excluded)
    return f
