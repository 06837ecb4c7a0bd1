# The kernels of loops/conv.h, which the module of convolutions links: a plan of phases, and items of a phase for threads to share.
from libc.stdint cimport int64_t

cdef extern from "conv.h" nogil:
    enum:
        CONV_FORWARD
        CONV_INPUT
        CONV_WEIGHT
        CONV_COLUMNS
    ctypedef struct conv_problem:
        int64_t samples, c_in, in_h, in_w, c_out, out_h, out_w
        int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups
        int64_t last, w_first, w_group, w_out, w_in, w_tap
    bint conv_suits_maps(const conv_problem*, int64_t) noexcept
    # `pass` is a word of Python's
    ctypedef struct conv_work:
        conv_problem s
        int64_t direction "pass", phases, shared_bytes, workspace_bytes
        const char* a
        const char* b
        const char* bias
        char* out
        char* shared
    ctypedef struct conv_kernels:
        void (*plan)(conv_work*) noexcept nogil
        int64_t (*items)(const conv_work*, int64_t) noexcept nogil
        void (*run)(const conv_work*, int64_t, char*, int64_t, int64_t) noexcept nogil
