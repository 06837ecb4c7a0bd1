"""Chooses the tables of kernels that several families share (loops/kernels_*.c) for this processor."""

cdef extern from *:
    """
    #include "isa.h"
    #include "../loops/kernels.h"
    ISA_TABLE(row_norm_kernels, layer_norm_table)
    ISA_TABLE(row_norm_kernels, rms_norm_table)
    ISA_TABLE(group_norm_kernels, group_norm_table)
    ISA_TABLE(batch_norm_kernels, batch_norm_table)
    ISA_TABLE(max_pool_kernels, max_pool_table)
    ISA_TABLE(avg_pool_kernels, avg_pool_table)
    ISA_TABLE(avg_pool_kernels, adaptive_avg_pool_table)
    """
    const row_norm_kernels* trt_layer_norm "layer_norm_table"()
    const row_norm_kernels* trt_rms_norm "rms_norm_table"()
    const group_norm_kernels* trt_group_norm "group_norm_table"()
    const batch_norm_kernels* trt_batch_norm "batch_norm_table"()
    const max_pool_kernels* trt_max_pool "max_pool_table"()
    const avg_pool_kernels* trt_avg_pool "avg_pool_table"()
    const avg_pool_kernels* trt_adaptive_avg_pool "adaptive_avg_pool_table"()

cdef const row_norm_kernels* LAYER_NORM = trt_layer_norm()
cdef const row_norm_kernels* RMS_NORM = trt_rms_norm()
cdef const group_norm_kernels* GROUP_NORM = trt_group_norm()
cdef const batch_norm_kernels* BATCH_NORM = trt_batch_norm()
cdef const max_pool_kernels* MAX_POOL = trt_max_pool()
cdef const avg_pool_kernels* AVG_POOL = trt_avg_pool()
cdef const avg_pool_kernels* ADAPTIVE_AVG_POOL = trt_adaptive_avg_pool()


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
