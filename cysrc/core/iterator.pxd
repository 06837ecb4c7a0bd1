# TensorIterator for pointwise operators: PointwiseInfo describes an operator, pointwise1..3 run it.
from libc.stdint cimport int64_t, uint64_t, uint32_t
from cpython.object cimport PyObject
from tensorrt_lite._C.core.dtype cimport Scalar, NUM_DTYPES
from tensorrt_lite._C.core.tensor cimport TensorBase, MAX_DIMS
from tensorrt_lite._C.core.dispatch cimport trt_operator
from tensorrt_lite._C.core.iteration cimport MAX_OPERANDS, STAGE, Iter, loop_t

cdef extern from "pointwise.h" nogil:
    ctypedef struct PointwiseInfo
    ctypedef struct PointwiseInfo:
        const char* name
        const char* node_name
        int id
        int nin
        int nparams
        int promote
        int scalar_forms
        int checks
        int cost
        loop_t loops[NUM_DTYPES]
        signed char in_type[6]
        trt_operator* op
        void* on_device[NUM_DTYPES]
        const PointwiseInfo* fused[3]
        int n_used[3]
        signed char used[3][6]
        object (*formula[3])(PyObject** slots, const Scalar* params)
        int differentiable
        unsigned save_mask
        void* node_type
        const char* bool_error
        const char* int_error
        int tensor_only
        int two_numbers
        int exact_out
        int self_adjoint
        int unit_pass
        unsigned stored
        int stored_as_bits
        int wide_number
        int wide_params
    enum:
        PROMOTE_SAME
        PROMOTE_FLOAT
        PROMOTE_BOOL_OUT
        PROMOTE_REAL_OUT
        PROMOTE_FIRST_BOOL
        PROMOTE_INT_TO_FLOAT
        CHECK_ZERO_DIVISOR
        CHECK_NEGATIVE_EXPONENT
        CHECK_ALPHA
        CHECK_SUBTRACTION
        CHECK_SAME_DTYPE
        CHECK_NUMBERS
        CHECK_NO_REPEATS
        IN_COMPUTE
        IN_BOOL
        IN_OWN

cdef TensorBase pointwise(const PointwiseInfo* info, int nin, PyObject** inputs, const Scalar* params, TensorBase out, int mode)
cdef TensorBase pointwise1(const PointwiseInfo* info, TensorBase a, const Scalar* params, TensorBase out, int mode)
cdef TensorBase pointwise2(const PointwiseInfo* info, TensorBase a, TensorBase b, const Scalar* params, TensorBase out, int mode)
cdef TensorBase pointwise3(const PointwiseInfo* info, TensorBase a, TensorBase b, TensorBase c, const Scalar* params, TensorBase out, int mode)
cdef TensorBase on_host(TensorBase t)                # a contiguous copy in host memory, itself where it is there
cdef int copy_elements(TensorBase destination, TensorBase source) except -1
cdef int fill_elements(TensorBase t, const Scalar* value) except -1
cdef int result_code(int n, PyObject** tensors) except -1
cdef int broadcast_shapes(str name, int n, PyObject** tensors, int64_t* shape) except -1
cdef int prepare_out(str name, TensorBase out, int ndim, const int64_t* shape, int result_dtype, int mode) except -1

# Around a kernel that may resize its output. Its warning is given afterwards: a filter of warnings is Python, which may change the operands.
cdef struct LateWarnings:
    PyObject** outer
    PyObject* messages
cdef void begin_late_warnings(LateWarnings* late) noexcept
cdef void drop_late_warnings(LateWarnings* late) noexcept
cdef int end_late_warnings(LateWarnings* late) except -1

cdef int check_no_overlap(str name, TensorBase out, TensorBase x, bint same_is_fine) except -1
cdef int check_internal_overlap(str name, TensorBase out) except -1
cdef TensorBase unrepeated(TensorBase t)         # a view that has each element of an expanded tensor once
cdef TensorBase cast_to(TensorBase t, int dtype)
cdef TensorBase as_bits(TensorBase t)
cdef TensorBase contiguous_of(TensorBase t)
