"""Chooses the table of raw kernels for this processor's instruction set (loops/kernels_*.c are linked in, once per set)."""

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
    #define TRT_BY_TYPE(TYPE, NAME) static const TYPE* trt_##NAME(int t) { return (const TYPE*)TRT_PICK(NAME##_table) + t; }
    TRT_BY_TYPE(cross_entropy_kernels, cross_entropy)
    TRT_BY_TYPE(row_norm_kernels, layer_norm)
    TRT_BY_TYPE(row_norm_kernels, rms_norm)
    TRT_BY_TYPE(group_norm_kernels, group_norm)
    TRT_BY_TYPE(batch_norm_kernels, batch_norm)
    TRT_BY_TYPE(max_pool_kernels, max_pool)
    TRT_BY_TYPE(avg_pool_kernels, avg_pool)
    TRT_BY_TYPE(avg_pool_kernels, adaptive_avg_pool)
    """
    int trt_level
    const reduce_kernels* trt_reduce(int op, int t) noexcept
    const scan_kernels* trt_scan(int op, int t) noexcept
    const softmax_kernels* trt_softmax(int op, int t) noexcept
    softmax_combine_fn trt_softmax_combine() noexcept nogil
    const cross_entropy_kernels* trt_cross_entropy(int t) noexcept
    const row_norm_kernels* trt_layer_norm(int t) noexcept
    const row_norm_kernels* trt_rms_norm(int t) noexcept
    const group_norm_kernels* trt_group_norm(int t) noexcept
    const batch_norm_kernels* trt_batch_norm(int t) noexcept
    const max_pool_kernels* trt_max_pool(int t) noexcept
    const avg_pool_kernels* trt_avg_pool(int t) noexcept
    const avg_pool_kernels* trt_adaptive_avg_pool(int t) noexcept

trt_level = instruction_set()


def _refuse_unsupported():
    """Fewer instructions than asked for would be silent, more would end the process."""
    import os
    cdef tuple levels = ("base", "avx2", "avx512")
    wanted = os.environ.get("TENSORRT_LITE_ISA", "")
    if wanted and wanted != levels[trt_level]:
        highest = levels[trt_level]
        raise ImportError(f"TENSORRT_LITE_ISA={wanted}: " + (f"this processor has no more than {highest}" if wanted in levels else
                          f"there is no such instruction set; choose from {', '.join(levels[:trt_level + 1])}"))


_refuse_unsupported()


cdef const reduce_kernels* reduce_table(int op, int dtype) noexcept:
    return trt_reduce(op, dtype)


cdef const scan_kernels* scan_table(int op, int dtype) noexcept:
    return trt_scan(op, dtype)


cdef const softmax_kernels* softmax_table(int op, int dtype) noexcept:
    return trt_softmax(op, dtype)


cdef softmax_combine_fn softmax_combiner() noexcept nogil:
    return trt_softmax_combine()


cdef const cross_entropy_kernels* cross_entropy_table(int dtype) noexcept:
    return trt_cross_entropy(dtype)


cdef const row_norm_kernels* layer_norm_table(int dtype) noexcept:
    return trt_layer_norm(dtype)


cdef const row_norm_kernels* rms_norm_table(int dtype) noexcept:
    return trt_rms_norm(dtype)


cdef const group_norm_kernels* group_norm_table(int dtype) noexcept:
    return trt_group_norm(dtype)


cdef const batch_norm_kernels* batch_norm_table(int dtype) noexcept:
    return trt_batch_norm(dtype)


cdef const max_pool_kernels* max_pool_table(int dtype) noexcept:
    return trt_max_pool(dtype)


cdef const avg_pool_kernels* avg_pool_table(int dtype) noexcept:
    return trt_avg_pool(dtype)


cdef const avg_pool_kernels* adaptive_avg_pool_table(int dtype) noexcept:
    return trt_adaptive_avg_pool(dtype)
