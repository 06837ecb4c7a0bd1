# dtypes and shapes in messages, in PyTorch's words. Inline: a module of its own would have to be loaded at import.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.dtype cimport dtype_label

cdef extern from *:
    """
    #include "dtype.h"
    #define TRT_ROW_CPP(type, name, label, cpp, ...) [DT_##type] = cpp,
    /* those of the table, but integers as a compiler writes them */
    static const char *const trt_cpp_types[NUM_DTYPES] = {
      TRT_DTYPES(TRT_ROW_CPP) [DT_u8] = "unsigned char", [DT_i8] = "signed char", [DT_i16] = "short int", [DT_i64] = "long int",
      [DT_u16] = "short unsigned int", [DT_u32] = "unsigned int", [DT_u64] = "long unsigned int"};
    #undef TRT_ROW_CPP
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
