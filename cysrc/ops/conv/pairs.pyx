"""Convolutions of bfloat16 by sums of pairs (loops/conv_pairs.h), where the processor has AVX512-BF16 and no tiles."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport BF16
from tensorrt_lite._C.ops.conv.kernels cimport CONV_INPUT, CONV_WEIGHT, conv_kernels
from tensorrt_lite._C.ops.conv.problem cimport ConvProblem
from tensorrt_lite._C.ops.matmul.packed cimport bf16_by_pairs


cdef extern from *:
    """
    #include "isa.h"
    #include "conv_pairs.h"
    ISA_TABLE(conv_pairs_table, trt_conv_pairs)
    """
    enum:
        PAIRS_SEGMENTS
    const conv_kernels* trt_conv_pairs()

cdef const conv_kernels* PAIRS = trt_conv_pairs()


cdef const conv_kernels* pairs_kernels() noexcept:
    return PAIRS


cdef enum:
    FEW = 4                      # channels of an input up to which lanes of its gradient are mostly empty
    WINOGRAD = 64                # channels on both sides, and output positions, from which Winograd's tiles in float32 take less time
    MANY = 400
    SMALL_PLANE = 64             # positions up to which the GEMM's panels of a 1x1 kernel on planes are mostly empty


cdef bint takes_pairs(int what, const ConvProblem* p, int dtype, bint last) except -1:
    """Whether the kernels serve a pass."""
    cdef int64_t taps = p.taps[1] * p.taps[2], strides = p.stride[1] * p.stride[2], positions = p.outputs[1] * p.outputs[2]
    cdef bint separate = what == CONV_INPUT and strides > 1
    if dtype != BF16 or PAIRS.plan == NULL or p.n != 2 or p.groups != 1 or (taps if separate or p.dilation[2] > 1 else p.taps[1]) > PAIRS_SEGMENTS:
        return False
    if what == CONV_INPUT and p.c_in <= (FEW if separate else 0 if last else 2):
        return False
    if taps == 9 and p.taps[1] == 3 and strides == 1 and p.dilation[1] * p.dilation[2] == 1 and min(p.c_in, p.c_out) >= WINOGRAD and positions >= MANY:
        return False
    if taps == 1 and strides == 1 and not last and what != CONV_WEIGHT and positions > SMALL_PLANE and min(p.c_in, p.c_out) >= 16:
        return False
    return bf16_by_pairs()
