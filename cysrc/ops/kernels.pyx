"""Chooses the tables of kernels that several families share (loops/kernels_*.c) for this processor."""

cdef extern from *:
    """
    #include "isa.h"
    #include "../loops/kernels.h"
    ISA_TABLE(row_norm_kernels, layer_norm_table)
    ISA_TABLE(row_norm_kernels, rms_norm_table)
    ISA_TABLE(group_norm_kernels, group_norm_table)
    ISA_TABLE(batch_norm_kernels, batch_norm_table)
    """
    const row_norm_kernels* trt_layer_norm "layer_norm_table"()
    const row_norm_kernels* trt_rms_norm "rms_norm_table"()
    const group_norm_kernels* trt_group_norm "group_norm_table"()
    const batch_norm_kernels* trt_batch_norm "batch_norm_table"()

cdef const row_norm_kernels* LAYER_NORM = trt_layer_norm()
cdef const row_norm_kernels* RMS_NORM = trt_rms_norm()
cdef const group_norm_kernels* GROUP_NORM = trt_group_norm()
cdef const batch_norm_kernels* BATCH_NORM = trt_batch_norm()


cdef const row_norm_kernels* layer_norm_table(int dtype) noexcept:
    return LAYER_NORM + dtype


cdef const row_norm_kernels* rms_norm_table(int dtype) noexcept:
    return RMS_NORM + dtype


cdef const group_norm_kernels* group_norm_table(int dtype) noexcept:
    return GROUP_NORM + dtype


cdef const batch_norm_kernels* batch_norm_table(int dtype) noexcept:
    return BATCH_NORM + dtype
