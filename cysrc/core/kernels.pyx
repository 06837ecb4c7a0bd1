"""Chooses the table of raw kernels for this processor's instruction set (loops/kernels.c is linked in, once per set)."""

cdef extern from "cpu_level.h":
    int instruction_set "trt_cpu_level"() noexcept nogil

cdef extern from *:
    """
    #include "../loops/kernels.h"
    static int trt_level;
    #define TRT_PICK(name) (trt_level == 0 ? (const void*)&name##_base : trt_level == 1 ? (const void*)&name##_avx2 : (const void*)&name##_avx512)
    static const reduce_kernels* trt_reduce(int op, int t) { return (const reduce_kernels*)TRT_PICK(reduce_table) + op * KERNEL_DTYPES + t; }
    static const scan_kernels* trt_scan(int op, int t) { return (const scan_kernels*)TRT_PICK(scan_table) + op * KERNEL_DTYPES + t; }
    static const softmax_kernels* trt_softmax(int op, int t) { return (const softmax_kernels*)TRT_PICK(softmax_table) + op * KERNEL_DTYPES + t; }
    static softmax_combine_fn trt_softmax_combine(void) { return *(const softmax_combine_fn*)TRT_PICK(softmax_combine); }
    """
    int trt_level
    const reduce_kernels* trt_reduce(int op, int t) noexcept
    const scan_kernels* trt_scan(int op, int t) noexcept
    const softmax_kernels* trt_softmax(int op, int t) noexcept
    softmax_combine_fn trt_softmax_combine() noexcept nogil

trt_level = instruction_set()


cdef const reduce_kernels* reduce_table(int op, int dtype) noexcept:
    return trt_reduce(op, dtype)


cdef const scan_kernels* scan_table(int op, int dtype) noexcept:
    return trt_scan(op, dtype)


cdef const softmax_kernels* softmax_table(int op, int dtype) noexcept:
    return trt_softmax(op, dtype)


cdef softmax_combine_fn softmax_combiner() noexcept nogil:
    return trt_softmax_combine()
