"""Fused optimizer steps on CUDA: the tensors of a step that share device and dtype, up to 32 in one launch; step counters that live on the device."""
from libc.stdint cimport int64_t
from libc.string cimport memset
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.dtype cimport F16, F32
from tensorrt_lite._C.core.tensor cimport TensorBase, bump_version, data_of
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.cuda.backend cimport kernel_of, run
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.ops.optim.updates cimport Step, Update
from tensorrt_lite._C.steps.optim cimport set_fused_update, set_unscale, set_update_scale

attach()

cdef enum:
    TENSORS = 32
    CHUNK = 8192
    THREADS = 256
    MAX_DEVICES = 64
    COUNTERS = 256                # of one launch: 2 KB

# As optim.cuh declares it.
cdef struct StepTensors:
    void* data[5][32]
    long long n[32]
    double bias1[32]
    double bias2_sqrt[32]
    const float* steps[32]
    const float* lr
    const float* grad_scale
    const float* found_inf
    int first_block[32]
    int count

# The counters of one launch.
cdef struct Counters:
    float* at[256]

cdef FunctionHandle handles[64][2][4]
cdef FunctionHandle counters[64]
cdef FunctionHandle unscaling[64][4]
cdef FunctionHandle scale_updates[64]
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


cdef int step(Step* s) except -1:
    cdef StepTensors tensors
    cdef const Update* u
    cdef int i, k, device, code, blocks
    tensors.lr, tensors.grad_scale, tensors.found_inf = s.lr, s.grad_scale, s.found_inf
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
                tensors.steps[tensors.count] = u.step
                tensors.first_block[tensors.count] = blocks
                tensors.count += 1
                blocks += <int>((u.n + CHUNK - 1) // CHUNK)
            launch_step(s, &tensors, blocks, device, code)
    return 0


cdef FunctionHandle load_counters(int device) except NULL:
    if counters[device] == NULL:
        counters[device] = kernel_of(f"""#include "optim.cuh"

struct Counters {{ float* at[{<int>COUNTERS}]; }};
extern "C" __global__ void __launch_bounds__({<int>COUNTERS}) count(const Counters counters, int n, const float* found_inf) {{ trt::count_steps(counters.at, n, found_inf); }}
""", "count", device)
    return counters[device]


cdef FunctionHandle load_unscaling(int device, int code) except NULL:
    if unscaling[device][code] == NULL:
        unscaling[device][code] = kernel_of(f"""#include "optim.cuh"

extern "C" __global__ void __launch_bounds__({<int>THREADS}) unscale(long long n, {STORAGE[code]}* g, float* found_inf, const float* inv_scale) {{
    trt::unscale(n, g, found_inf, inv_scale);
}}
""", "unscale", device)
    return unscaling[device][code]


cdef FunctionHandle load_scale_update(int device) except NULL:
    if scale_updates[device] == NULL:
        scale_updates[device] = kernel_of("""#include "optim.cuh"

extern "C" __global__ void update_scale(float* scale, int* tracker, const float* found_inf, double growth, double backoff, int interval) {
    trt::update_scale(scale, tracker, found_inf, growth, backoff, interval);
}
""", "update_scale", device)
    return scale_updates[device]


cdef int unscale(TensorBase g, TensorBase found_inf, TensorBase inv_scale) except -1:
    cdef long long n = g.numel
    cdef char* data = data_of(g)
    cdef char* found = data_of(found_inf)
    cdef char* factor = data_of(inv_scale)
    cdef void* arguments[4]
    arguments[0], arguments[1], arguments[2], arguments[3] = &n, &data, &found, &factor
    return run(load_unscaling(g.device_index, g.dtype - F16), g.device_index, <int>min((n + CHUNK - 1) // CHUNK, 1 << 16), THREADS, 0, arguments)


cdef int update_scale(TensorBase scale, TensorBase tracker, TensorBase found_inf, double growth, double backoff, int64_t interval) except -1:
    cdef char* at = data_of(scale)
    cdef char* steps = data_of(tracker)
    cdef char* found = data_of(found_inf)
    cdef int limit = <int>min(interval, 0x7fffffff)
    cdef void* arguments[6]
    arguments[0], arguments[1], arguments[2] = &at, &steps, &found
    arguments[3], arguments[4], arguments[5] = &growth, &backoff, &limit
    return run(load_scale_update(scale.device_index), scale.device_index, 1, 1, 0, arguments)


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    cdef int adam, code
    load_counters(index)
    load_scale_update(index)
    for code in range(4):
        load_unscaling(index, code)
        for adam in range(2):
            load(index, adam, code)


def count_steps(list steps, found_inf=None):
    """Add one to float32 counters of one device, unless found_inf (float32 there) is not zero."""
    cdef Counters c
    cdef TensorBase t = <TensorBase?>steps[0]
    cdef const float* skipped = NULL if found_inf is None else <const float*>data_of(<TensorBase?>found_inf)
    cdef int index = t.device_index, n = 0
    cdef Py_ssize_t i
    cdef void* arguments[3]
    arguments[0], arguments[1], arguments[2] = &c, &n, &skipped
    for i in range(len(steps)):
        t = <TensorBase?>steps[i]
        if t.dtype != F32 or t.numel != 1 or t.device_type != DEV_CUDA or t.device_index != index:
            raise RuntimeError(f"count_steps: expected counters of one float32 element on cuda:{index}, got {t.dtype} on {(<object>t).device}")
        c.at[n] = <float*>data_of(t)
        n += 1
        if n == COUNTERS or i + 1 == len(steps):
            run(load_counters(index), index, 1, COUNTERS, 0, arguments)
            n = 0
        bump_version(t)


set_fused_update(DEV_CUDA, step)
set_unscale(DEV_CUDA, unscale)
set_update_scale(DEV_CUDA, update_scale)
