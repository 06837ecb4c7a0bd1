"""The order of images and weights in memory, and some samples of a batch."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.allocator cimport trt_block, trt_block_hold, block_drop
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.iterator cimport contiguous_of
from tensorrt_lite._C.core.memory_format cimport empty_in_format
from tensorrt_lite._C.core.parallel cimport COPY_GRAIN, parallel_for
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, is_channels_last, make_view


cdef extern from *:
    """
    #include "isa.h"
    #include "conv_layout_turns.h"
    ISA_TABLE(conv_turns, trt_conv_turns)
    """
    ctypedef struct conv_turn:
        const char* from_ "from"
        char* to
        int64_t down, across
    ctypedef struct conv_turns:
        void (*turn)(void*, int64_t, int64_t) noexcept nogil
    const conv_turns* trt_conv_turns()

cdef const conv_turns* TURNS = trt_conv_turns()


cdef int turn(TensorBase source, TensorBase target, bint to_last) except -1:
    """Images of halves in NCHW to channels_last, or back."""
    cdef conv_turn c
    cdef int64_t pixels = source.sizes[2] * source.sizes[3]
    cdef trt_block* held[2]
    c.from_, c.to = data_of(source), data_of(target)
    c.down, c.across = source.sizes[1] if to_last else pixels, pixels if to_last else source.sizes[1]
    held[0], held[1] = source.storage.block, target.storage.block
    trt_block_hold(held[0])
    trt_block_hold(held[1])
    with nogil:
        parallel_for(source.sizes[0], 1 + COPY_GRAIN // (2 * c.down * c.across + 1), 1, TURNS.turn, &c)
    block_drop(held[0])
    block_drop(held[1])
    return 0


cdef TensorBase turned(TensorBase t):
    """Images of halves in channels_last: themselves, or a copy."""
    cdef TensorBase r
    if is_channels_last(t):
        return t
    r = empty_in_format(t.ndim, t.sizes, t.dtype, DEV_CPU, True)
    turn(contiguous_of(t), r, True)
    return r


cdef TensorBase samples_of(TensorBase t, int64_t begin, int64_t count):
    cdef int64_t sizes[5]
    cdef int i
    for i in range(t.ndim):
        sizes[i] = t.sizes[i]
    sizes[0] = count
    return make_view(t, t.ndim, sizes, t.strides, t.offset + begin * t.strides[0])
