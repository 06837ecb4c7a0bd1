"""Chooses the tables of kernels that several families share (loops/kernels_*.c) for this processor."""

cdef extern from *:
    """
    #include "isa.h"
    #include "../loops/kernels.h"
    ISA_ROWS(reduce_kernels, reduce_table, REDUCE_OP_COUNT * NUM_DTYPES)
    ISA_ROWS(scan_kernels, scan_table, SCAN_OP_COUNT * NUM_DTYPES)
    ISA_TABLE(softmax_kernels, softmax_table)
    ISA_TABLE(softmax_combine_fn, softmax_combine)
    ISA_TABLE(cross_entropy_kernels, cross_entropy_table)
    ISA_TABLE(row_norm_kernels, layer_norm_table)
    ISA_TABLE(row_norm_kernels, rms_norm_table)
    ISA_TABLE(group_norm_kernels, group_norm_table)
    ISA_TABLE(batch_norm_kernels, batch_norm_table)
    ISA_TABLE(max_pool_kernels, max_pool_table)
    ISA_TABLE(avg_pool_kernels, avg_pool_table)
    ISA_TABLE(avg_pool_kernels, adaptive_avg_pool_table)
    """
    enum:
        NUM_DTYPES
    const reduce_kernels* trt_reduce "reduce_table"()
    const scan_kernels* trt_scan "scan_table"()
    const softmax_kernels* trt_softmax "softmax_table"()
    const softmax_combine_fn* trt_softmax_combine "softmax_combine"()
    const cross_entropy_kernels* trt_cross_entropy "cross_entropy_table"()
    const row_norm_kernels* trt_layer_norm "layer_norm_table"()
    const row_norm_kernels* trt_rms_norm "rms_norm_table"()
    const group_norm_kernels* trt_group_norm "group_norm_table"()
    const batch_norm_kernels* trt_batch_norm "batch_norm_table"()
    const max_pool_kernels* trt_max_pool "max_pool_table"()
    const avg_pool_kernels* trt_avg_pool "avg_pool_table"()
    const avg_pool_kernels* trt_adaptive_avg_pool "adaptive_avg_pool_table"()

cdef const reduce_kernels* REDUCE = trt_reduce()
cdef const scan_kernels* SCAN = trt_scan()
cdef const softmax_kernels* SOFTMAX_ROWS = trt_softmax()
cdef softmax_combine_fn SOFTMAX_COMBINE = trt_softmax_combine()[0]
cdef const cross_entropy_kernels* CROSS_ENTROPY = trt_cross_entropy()
cdef const row_norm_kernels* LAYER_NORM = trt_layer_norm()
cdef const row_norm_kernels* RMS_NORM = trt_rms_norm()
cdef const group_norm_kernels* GROUP_NORM = trt_group_norm()
cdef const batch_norm_kernels* BATCH_NORM = trt_batch_norm()
cdef const max_pool_kernels* MAX_POOL = trt_max_pool()
cdef const avg_pool_kernels* AVG_POOL = trt_avg_pool()
cdef const avg_pool_kernels* ADAPTIVE_AVG_POOL = trt_adaptive_avg_pool()


cdef const reduce_kernels* reduce_table(int op, int dtype) noexcept:
    return REDUCE + op * NUM_DTYPES + dtype


cdef const scan_kernels* scan_table(int op, int dtype) noexcept:
    return SCAN + op * NUM_DTYPES + dtype


cdef const softmax_kernels* softmax_table(int op, int dtype) noexcept:
    return SOFTMAX_ROWS + op * NUM_DTYPES + dtype


cdef softmax_combine_fn softmax_combiner() noexcept nogil:
    return SOFTMAX_COMBINE


cdef const cross_entropy_kernels* cross_entropy_table(int dtype) noexcept:
    return CROSS_ENTROPY + dtype


cdef const row_norm_kernels* layer_norm_table(int dtype) noexcept:
    return LAYER_NORM + dtype


cdef const row_norm_kernels* rms_norm_table(int dtype) noexcept:
    return RMS_NORM + dtype


cdef const group_norm_kernels* group_norm_table(int dtype) noexcept:
    return GROUP_NORM + dtype


cdef const batch_norm_kernels* batch_norm_table(int dtype) noexcept:
    return BATCH_NORM + dtype


cdef const max_pool_kernels* max_pool_table(int dtype) noexcept:
    return MAX_POOL + dtype


cdef const avg_pool_kernels* avg_pool_table(int dtype) noexcept:
    return AVG_POOL + dtype


cdef const avg_pool_kernels* adaptive_avg_pool_table(int dtype) noexcept:
    return ADAPTIVE_AVG_POOL + dtype
