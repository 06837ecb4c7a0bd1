# The dispatcher: an operator is a row of typed C function pointers, one per key; the highest key of the arguments wins.
from libc.stdint cimport int64_t, uint64_t
from cpython.object cimport PyObject, PyTypeObject
from tensorrt_lite._C.core.tensor cimport TensorBase, K_BACKENDS, K_AUTOGRAD, K_PYTHON

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
        int composed
        int key
        int step_device
        PyObject* called_overloads
        PyObject* dispatch_modes
        const int* cancelled
        PyObject* dying
        int draining
        uint64_t newest_sequence
        const char* operator_name
        PyObject** late_warnings
    trt_thread_state* tls "trt_tls"() noexcept nogil
    int top_bit "trt_top_bit"(uint64_t) noexcept nogil

cdef extern from "dispatch.h":
    ctypedef union trt_value:
        void* p
        int64_t i
        double d
    ctypedef struct trt_row:
        const char* schema
        const char* kinds
        char returned
        char written
        char view
        char results
        const char* autocast
        const char* stored
        void* pack
        object (*unpack)(trt_operator* op, const trt_value* v, void* out, int mode)
        object (*invoke)(trt_operator* op, void* kernel, const trt_value* v, void* out, int mode)
    ctypedef struct trt_operator:
        const char* name
        uint64_t mask
        void* info
        void* forward
        const trt_row* row
        void* kernels[16]
        PyObject** python
    ctypedef struct trt_step:
        const char* name
        const char* arguments
        void* boxed
        void* functions[11]
    ctypedef struct trt_core_table:
        trt_operator* operators
        void* thread_state
        PyTypeObject* tensor_base
        void* missing
        void* mixed
        void* no_tensor
        void* box
        trt_step* steps
        void* missing_step
        void* call1
        void* call2
        void* call3
        void* record
        void* hold
        void* bump_version
        void* note_view
    trt_core_table* CORE "trt_core"
    trt_operator* OPS "trt_ops"
    enum:
        NO_OUT "TRT_NO_OUT"
        STEPS "TRT_STEPS"
        DEVICE_TYPES "TRT_DEVICE_TYPES"
    void attach_core "trt_attach"(void*)
    uint64_t BELOW "TRT_BELOW"(int key) noexcept nogil
    void set_step "trt_set_step"(int place, const char* name, int device_type, void* function) noexcept
    void box_step "trt_box_step"(int place, const char* name, const char* arguments, void* boxed) noexcept
    void* step_of "trt_step_of"(int place, const char* name, int device_type) except NULL
    void* redispatch "trt_redispatch"(trt_operator* op, uint64_t keys, uint64_t below) except NULL
    void* resolve "trt_resolve"(trt_operator* op, uint64_t keys) except NULL

cdef enum:
    FRESH = 0                       # the result is a new tensor
    OUT = 1                         # into `out`, resized when its shape differs
    INPLACE = 2                     # into `out`, which is also the first input

cdef trt_core_table* core_table() noexcept
cdef void take_storage_only(int operator_id) noexcept
cdef void register_kernel(int operator_id, const char* name, int key, void* kernel) noexcept
cdef trt_operator* operator_named(str name)
cdef trt_operator* existing_operator(str name) except NULL
cdef object boxed_call(trt_operator* op, int key, tuple arguments)
cdef object call_step(int place, tuple arguments)
cdef object call_kernel(trt_operator* op, object kernel, tuple arguments)
cdef object device_kernel(trt_operator* op, int device_type)
cdef int set_device_kernel(trt_operator* op, int device_type, object kernel) except -1
cdef void* compiled_kernel(trt_operator* op) except? NULL
cdef void register_row(int operator_id, const char* name, const trt_row* row, uint64_t boxed) noexcept

cdef inline void attach() noexcept:
    """Give this module its pointers to the operator table and the thread state; called at import of each module."""
    attach_core(core_table())

cdef inline bint intercepted(uint64_t keys) noexcept:
    """Whether something besides autograd and the backend takes calls of tensors with these keys: a mode, a subclass. Fast paths then give way to the
    dispatcher."""
    cdef trt_thread_state* state = tls()
    return ((keys & K_PYTHON) | state.included) & ~state.excluded != 0
