"""Fused optimizer steps on CUDA: the tensors of a step that share device and dtype, up to 32 in one launch."""
from libc.stdint cimport int64_t
from libc.string cimport memset
from tensorrt_lite._C.cuda.backend cimport kernel_of, run
from tensorrt_lite._C.cuda.driver cimport FunctionHandle

cdef extern from "../loops/optim.c" nogil:
    ctypedef struct sgd_params:
        int nesterov
    ctypedef struct adam_params:
        int amsgrad
    ctypedef struct Update "optim_update":
        char* data[5]
        int64_t n
        int code
        int device
        double bias1, bias2_sqrt
    ctypedef struct Step "optim_step":
        Update* updates
        int count
        const sgd_params* sgd
        const adam_params* adam

cdef enum:
    TENSORS = 32
    CHUNK = 8192
    THREADS = 256
    MAX_DEVICES = 64

# As optim.cuh declares it.
cdef struct StepTensors:
    void* data[5][32]
    long long n[32]
    double bias1[32]
    double bias2_sqrt[32]
    int first_block[32]
    int count

cdef FunctionHandle handles[64][2][4]
cdef tuple STORAGE = ("__half", "__nv_bfloat16", "float", "double")


cdef FunctionHandle load(int device, bint adam, int code) except NULL:
    if handles[device][adam][code] == NULL:
        name = "adam" if adam else "sgd"
        source = f"""#include "optim.cuh"

extern "C" __global__ void __launch_bounds__({<int>THREADS}) {name}_step(const trt::StepTensors step, const trt::{name.capitalize()}Parameters s) {{
    trt::{name}_step<{STORAGE[code]}>(step, s);
}}
"""
        handles[device][adam][code] = kernel_of(source, f"{name}_step", device)
    return handles[device][adam][code]


cdef int launch_step(const Step* s, const StepTensors* tensors, int blocks, int device, int code) except -1:
    cdef void* arguments[2]
    if tensors.count == 0:
        return 0
    arguments[0] = <void*>tensors
    arguments[1] = <void*>s.sgd if s.sgd != NULL else <void*>s.adam
    return run(load(device, s.sgd == NULL, code), device, blocks, THREADS, 0, arguments)


cdef int step(const Step* s) except -1:
    cdef StepTensors tensors
    cdef const Update* u
    cdef int i, k, device, code, blocks
    for device in range(MAX_DEVICES):
        for code in range(4):
            tensors.count = 0
            blocks = 0
            for i in range(s.count):
                u = &s.updates[i]
                if u.device != device or u.code != code:
                    continue
                if tensors.count == TENSORS or blocks > 1 << 20:
                    launch_step(s, &tensors, blocks, device, code)
                    tensors.count = 0
                    blocks = 0
                for k in range(5):
                    tensors.data[k][tensors.count] = <void*>u.data[k]
                tensors.n[tensors.count] = u.n
                tensors.bias1[tensors.count] = u.bias1
                tensors.bias2_sqrt[tensors.count] = u.bias2_sqrt
                tensors.first_block[tensors.count] = blocks
                tensors.count += 1
                blocks += <int>((u.n + CHUNK - 1) // CHUNK)
            launch_step(s, &tensors, blocks, device, code)
    return 0


from tensorrt_lite._C.ops import optim as _optim
_optim._set_device_kernels(<size_t>&step)
