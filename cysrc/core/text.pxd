# dtypes and shapes in messages, in PyTorch's words. Inline: a module of its own would have to be loaded at import.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.dtype cimport dtype_label

cdef extern from *:
    """
    #include "dtype.h"
    static const char *const trt_cpp_types[NUM_DTYPES] = {"bool", "unsigned char", "signed char", "short int", "int", "long int", "c10::Half", "c10::BFloat16",
                                                "float", "double", "c10::complex<float>", "c10::complex<double>", "unsigned short",
                                                          "unsigned int", "unsigned long", "c10::Float8_e4m3fn", "c10::Float8_e5m2"};
    """
    const char* const* cpp_types "trt_cpp_types"


cdef inline str dtype_text(int code):
    """A dtype's name in PyTorch's C++ API: Float."""
    return (<bytes>dtype_label(code)).decode()


cdef inline str cpp_type_text(int code):
    """The name of the C++ type of a dtype's elements: float, long int, c10::Half."""
    return (<bytes>cpp_types[code]).decode()


cdef inline str sizes_text(int n, const int64_t* v):
    """n lengths, strides or indices: [2, 3]."""
    return "[" + ", ".join([str(v[i]) for i in range(n)]) + "]"
