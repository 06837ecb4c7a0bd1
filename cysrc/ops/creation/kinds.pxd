# The kinds of windows, and rounding to half types.

cdef enum WindowKind:
    COSINES                  # a - b cos(x) + c cos(2 x)
    BARTLETT                 # a triangle
    KAISER                   # Kaiser's window of shape parameter a

cdef extern from *:
    """
    #include "scalar_types.h"
    static inline float trt_round_half(float x, int code) { return code == DT_f16 ? ld_f16(st_f16(x)) : ld_bf16(st_bf16(x)); }
    """
    float round_half "trt_round_half"(float, int) noexcept nogil
