# The updates of a fused step: what a device's step of the optimizers is told.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.allocator cimport trt_block

cdef extern from "../loops/optim.c" nogil:
    ctypedef struct sgd_params:
        double lr, weight_decay, momentum, dampening, grad_scale
        int nesterov, maximize, first, scaled
    ctypedef struct adam_params:
        double lr, beta1, beta2, weight_decay, eps, bias1, bias2_sqrt, grad_scale
        int amsgrad, maximize, decoupled, scaled
    ctypedef struct Update "optim_update":
        char* data[5]
        trt_block* blocks[5]
        int64_t n
        int64_t first_chunk
        int code
        int device
        double bias1, bias2_sqrt
        const float* step
    ctypedef struct Step "optim_step":
        Update* updates
        int count
        int64_t chunks
        const sgd_params* sgd
        const adam_params* adam
        const float* lr
        const float* grad_scale
        const float* found_inf
