# What a device's steps of grid sampling and sliding windows are told; the pointers are the CPU's own.
from libc.stdint cimport int64_t

cdef extern from "resize.h" nogil:
    ctypedef struct GridArgs:
        const char* x
        const char* grid
        const char* gy
        char* y
        char* gx
        char* ggrid
        int64_t samples, channels, positions
        int64_t size[3]
        int dims, mode, padding, align_corners
    ctypedef struct WindowArgs:
        const char* source "from"
        char* to
        int64_t height, width, kh, kw, dh, dw, ph, pw, sh, sw, lh, lw
        int item, dtype
