# What a device's step of a convolution is told. Sizes run over depth, height, width, 1 where the convolution has fewer dimensions.
from libc.stdint cimport int64_t

cdef struct ConvProblem:
    int n                          # spatial dimensions
    int64_t samples, c_in, c_out, groups
    int64_t inputs[3]
    int64_t outputs[3]
    int64_t taps[3]
    int64_t stride[3]
    int64_t padding[3]
    int64_t dilation[3]
