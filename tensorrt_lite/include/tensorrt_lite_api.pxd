# tensorrt_lite.h for Cython: `from tensorrt_lite_api cimport trtl_api, trtl_import, ...` (docs/extensions.md).
from libc.stdint cimport int32_t, int64_t, uint32_t

cdef extern from "tensorrt_lite.h":
    ctypedef struct trtl_tensor_object:
        pass
    ctypedef trtl_tensor_object* trtl_tensor
    ctypedef struct trtl_context_object:
        pass
    ctypedef trtl_context_object* trtl_context
    ctypedef struct trtl_list_object:
        pass
    ctypedef trtl_list_object* trtl_list

    enum:
        TRTL_VERSION
    enum:
        TRTL_UINT8, TRTL_INT8, TRTL_INT16, TRTL_INT32, TRTL_INT64, TRTL_FLOAT16, TRTL_FLOAT32, TRTL_FLOAT64, TRTL_COMPLEX32, TRTL_COMPLEX64, TRTL_COMPLEX128
        TRTL_BOOL, TRTL_BFLOAT16, TRTL_FLOAT8_E5M2, TRTL_FLOAT8_E4M3FN, TRTL_FLOAT8_E5M2FNUZ, TRTL_FLOAT8_E4M3FNUZ, TRTL_UINT16, TRTL_UINT32, TRTL_UINT64
        TRTL_FLOAT8_E8M0FNU
    enum:
        TRTL_CPU, TRTL_CUDA, TRTL_META, TRTL_CUSTOM
    enum:
        TRTL_RUNTIME_ERROR, TRTL_VALUE_ERROR, TRTL_TYPE_ERROR, TRTL_INDEX_ERROR, TRTL_NOT_IMPLEMENTED, TRTL_MEMORY_ERROR
    enum:
        TRTL_NONE, TRTL_TENSOR, TRTL_INT, TRTL_FLOAT, TRTL_BOOLEAN, TRTL_COMPLEX, TRTL_STRING, TRTL_DTYPE, TRTL_DEVICE, TRTL_TENSORS, TRTL_INTS, TRTL_FLOATS, TRTL_LIST

    ctypedef union trtl_union:
        trtl_tensor tensor
        trtl_list list
        int64_t i
        double d
        double c[2]
        const char* s
        const trtl_tensor* tensors
        const int64_t* ints
        const double* floats
    ctypedef struct trtl_value:
        int32_t kind
        int64_t n
        trtl_union u

    ctypedef int (*trtl_kernel)(const trtl_value*, int, trtl_value*, int, void*) noexcept
    ctypedef int (*trtl_setup)(trtl_context, const trtl_value*, int, const trtl_value*, int, void*) noexcept
    ctypedef int (*trtl_backward)(trtl_context, const trtl_tensor*, int, trtl_tensor*, int, void*) noexcept
    ctypedef void (*trtl_task)(void*, int64_t, int64_t) noexcept nogil
    ctypedef void (*trtl_deleter)(void*) noexcept nogil

    # except -1 and NULL: a call raises what the function has set
    ctypedef struct trtl_api:
        uint32_t version, size
        void (*set_error)(int kind, const char* message) noexcept
        int (*error_occurred)() noexcept
        int (*warn)(const char* message) except -1
        void (*retain)(trtl_tensor) noexcept
        void (*release)(trtl_tensor) noexcept
        int (*dim)(trtl_tensor) noexcept nogil
        int64_t (*numel)(trtl_tensor) noexcept nogil
        const int64_t* (*sizes)(trtl_tensor) noexcept nogil
        const int64_t* (*strides)(trtl_tensor) noexcept nogil
        int64_t (*storage_offset)(trtl_tensor) noexcept nogil
        int (*dtype)(trtl_tensor) noexcept nogil
        int (*item_size)(int dtype) noexcept nogil
        int (*device_type)(trtl_tensor) noexcept nogil
        int (*device_index)(trtl_tensor) noexcept nogil
        int (*is_contiguous)(trtl_tensor) noexcept nogil
        int (*requires_grad)(trtl_tensor) noexcept nogil
        const void* (*const_data)(trtl_tensor) except? NULL
        void* (*data)(trtl_tensor) except? NULL
        trtl_tensor (*empty)(int dim, const int64_t* sizes, int dtype, int device_type, int device_index) except NULL
        trtl_tensor (*empty_like)(trtl_tensor) except NULL
        trtl_tensor (*full)(int dim, const int64_t* sizes, double value, int dtype, int device_type, int device_index) except NULL
        trtl_tensor (*contiguous)(trtl_tensor) except NULL
        trtl_tensor (*to_dtype)(trtl_tensor, int dtype) except NULL
        trtl_tensor (*from_memory)(void* data, int dim, const int64_t* sizes, int dtype, trtl_deleter deleter, void* context) except NULL
        trtl_tensor (*from_object)(void* object) except NULL
        void* (*to_object)(trtl_tensor) except NULL
        int (*call)(const char* name, const trtl_value* arguments, int n_arguments, trtl_value* results, int n_results) except -1
        int (*set_list)(trtl_value* result, const trtl_tensor* tensors, int64_t n) except -1
        int (*define)(const char* schema) except -1
        int (*implement)(const char* name, const char* key, trtl_kernel kernel, void* context) except -1
        int (*set_gradient)(const char* name, trtl_setup setup, trtl_backward backward, void* context) except -1
        int (*save)(trtl_context, const trtl_tensor* tensors, int n) except -1
        int (*n_saved)(trtl_context) except -1
        trtl_tensor (*saved)(trtl_context, int i) except? NULL
        int (*needs_gradient)(trtl_context, int input) except -1
        int (*set_number)(trtl_context, const char* name, double value) except -1
        int (*number)(trtl_context, const char* name, double* value) except -1
        void* (*release_gil)() noexcept nogil
        void (*acquire_gil)(void*) noexcept nogil
        void (*parallel_for)(int64_t n, int64_t grain, trtl_task task, void* context) noexcept nogil
        int (*num_threads)() noexcept nogil

    const trtl_api* trtl_import() except NULL
