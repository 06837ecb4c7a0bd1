"""softmax, log_softmax and the losses over class indices on CUDA: launches of cuda_src/softmax.cuh."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport F16, BF16, F32, F64, NUM_DTYPES
from tensorrt_lite._C.core.iterator cimport cast_to, contiguous_of, copy_elements
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, place_of, empty_tensor
from tensorrt_lite._C.cuda.backend cimport kernel_of, run3
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.indexing cimport fault_of, code_of
from tensorrt_lite._C.autograd.node cimport ops_namespace
from tensorrt_lite._C.steps.loss cimport (
    LOSS_MEAN, LOSS_NONE, class_loss, set_cross_entropy, set_cross_entropy_backward, set_nll_loss, set_nll_loss_backward)
from tensorrt_lite._C.steps.reduction cimport SOFTMAX_LOG_SOFTMAX, line_call, set_softmax, set_softmax_backward
from tensorrt_lite._C.cuda.source import storage_type

attach()
cdef object _ops = ops_namespace()

cdef enum:
    ROWS = 0
    LONG = 1
    COLUMNS = 2
    MAX_BLOCKS = 1 << 20
    LONGEST_ROW = 1 << 14          # that a block keeps in registers
    ONE_BLOCK = 1 << 15            # losses that one block adds up

cdef dict _handles = {}


cdef tuple ENTRIES = ("softmax", "log_softmax", "softmax_backward", "log_softmax_backward")


cdef FunctionHandle softmax_kernel(int form, int dtype, int which, int threads, int items, int index) except NULL:
    key = (form, dtype, which, threads, items, index)
    found = _handles.get(key)
    if found is None:
        found = _handles[key] = <size_t>kernel_of(softmax_unit(form, storage_type(dtype), threads, items), ENTRIES[which], index)
    return <FunctionHandle><size_t>found


def softmax_unit(int form, str t, int threads, int items):
    """The text of one form's four kernels."""
    name = ("rows", "long", "columns")[form]
    extents = ("long long rows, int n", "long long rows, long long n", "long long outer, long long n, long long inner")[form]
    passed = ", ".join(e.split()[-1] for e in extents.split(", "))
    bound = 1024 if form == LONG else 256 if form == COLUMNS else max(threads, 128)
    text = '#include "softmax.cuh"\n'
    for which, entry in enumerate(ENTRIES):
        grad, given, body = (f"const {t}* grad, ", "grad, ", f"softmax_backward_{name}") if which >= 2 else ("", "", f"softmax_{name}")
        arguments = f"{t}, {'true' if which % 2 else 'false'}" + (f", {threads}, {items}" if form == ROWS else "")
        text += f'extern "C" __global__ void __launch_bounds__({bound}) {entry}({grad}const {t}* x, {t}* out, {extents}) {{\n    trt::{body}<{arguments}>({given}x, out, {passed});\n}}\n'
    return text


cdef inline int64_t smaller(int64_t a, int64_t b) noexcept:
    return a if a < b else b


cdef int power_above(int64_t n) noexcept:
    cdef int p = 1
    while p < n:
        p *= 2
    return p


cdef int row_threads(int64_t n) noexcept:
    """The threads of a row of n elements."""
    return power_above(n) if n < 32 else 32 if n <= 512 else 128 if n <= 2048 else 256 if n <= 4096 else 1024


cdef int launch(line_call* call, TensorBase grad, TensorBase x, TensorBase result) except -1:
    cdef int64_t outer = call.outer, n = call.n, inner = call.inner, rows
    cdef bint log = call.operation == SOFTMAX_LOG_SOFTMAX
    cdef int threads = 0, items = 0, form, tx, ty, index = x.device_index, short_n, k = 0
    cdef int64_t blocks
    cdef char* g = NULL if grad is None else data_of(grad)
    cdef char* source = data_of(x)
    cdef char* target = data_of(result)
    cdef void* arguments[6]
    if grad is not None:
        arguments[k] = &g
        k += 1
    arguments[k] = &source
    arguments[k + 1] = &target
    arguments[k + 2] = &outer
    arguments[k + 3] = &n
    arguments[k + 4] = &inner
    if inner == 1 and n <= LONGEST_ROW:
        form = ROWS
        threads = row_threads(n)
        items = power_above((n + threads - 1) // threads)
        tx = threads
        ty = 128 // threads if threads < 128 else 1
        blocks = (outer + ty - 1) // ty
        short_n = <int>n
        arguments[k + 3] = &short_n
    elif inner == 1:
        form = LONG
        tx = 1024
        ty = 1
        blocks = outer
    else:
        form = COLUMNS
        rows = outer * inner
        tx = <int>smaller(power_above(smaller(rows, 32)), 32)
        ty = <int>smaller(power_above(smaller((n + 3) // 4, 256)), 256 // tx)
        if tx * ty < 32:
            tx = 32 // ty
        blocks = (rows + tx - 1) // tx
    run3(softmax_kernel(form, x.dtype, log + 2 * (grad is not None), threads, items, index), index, smaller(blocks, MAX_BLOCKS), 1, 1, tx, ty, 1, 0, arguments)
    return 0


cdef int softmax(line_call* call, TensorBase self, TensorBase result) except -1:
    return launch(call, None, self, result)


cdef int softmax_backward(line_call* call, TensorBase grad, TensorBase output, TensorBase result) except -1:
    return launch(call, grad, output, result)


# ---- losses over class indices -------------------------------------------------------------------------------------

cdef tuple LOSS_KERNELS = ("rows", "across", "nll", "total", "gradient", "nll_gradient")
cdef str LOSS_UNIT = """#include "softmax.cuh"
using T = %s;
using A = trt::compute_t<T>;
extern "C" __global__ void __launch_bounds__(256) rows(const class_loss l, const T* x, const long long* target, const A* weight, A* loss, A* row_weight, A* lse) {
    trt::cross_entropy<T, false>(l, x, target, weight, loss, row_weight, lse);
}
extern "C" __global__ void __launch_bounds__(256) across(const class_loss l, const T* x, const long long* target, const A* weight, A* loss, A* row_weight, A* lse) {
    trt::cross_entropy<T, true>(l, x, target, weight, loss, row_weight, lse);
}
extern "C" __global__ void __launch_bounds__(256) nll(const class_loss l, const T* x, const long long* target, const A* weight, A* loss, A* row_weight) {
    trt::nll_loss<T>(l, x, target, weight, loss, row_weight);
}
extern "C" __global__ void __launch_bounds__(512) total(const class_loss l, const A* loss, const A* row_weight, T* result, A* total_weight) {
    trt::class_loss_total(l, loss, row_weight, result, total_weight);
}
extern "C" __global__ void __launch_bounds__(256) gradient(const class_loss l, const T* grad, const T* x, const long long* target, const A* weight, const A* lse, const A* total_weight, const A* weights, T* out) {
    trt::class_loss_backward<T, false>(l, grad, x, target, weight, lse, total_weight, weights, out);
}
extern "C" __global__ void __launch_bounds__(256) nll_gradient(const class_loss l, const T* grad, const T* x, const long long* target, const A* weight, const A* lse, const A* total_weight, const A* weights, T* out) {
    trt::class_loss_backward<T, true>(l, grad, x, target, weight, lse, total_weight, weights, out);
}
"""
cdef FunctionHandle loss_handles[NUM_DTYPES][64][6]


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    cdef int dtype, threads
    cdef int64_t n
    for dtype in (F16, BF16, F32, F64):
        loss_kernel(0, dtype, index)
        softmax_kernel(LONG, dtype, 0, 0, 0, index)
        softmax_kernel(COLUMNS, dtype, 0, 0, 0, index)
        n = 1
        while n <= LONGEST_ROW:
            threads = row_threads(n)
            softmax_kernel(ROWS, dtype, 0, threads, power_above((n + threads - 1) // threads), index)
            n *= 2


cdef FunctionHandle loss_kernel(int which, int dtype, int index) except NULL:
    if loss_handles[dtype][index][which] == NULL:
        loss_handles[dtype][index][which] = kernel_of(LOSS_UNIT % storage_type(dtype), LOSS_KERNELS[which], index)
    return loss_handles[dtype][index][which]


cdef inline char* memory_of(TensorBase t) noexcept:
    return NULL if t is None else data_of(t)


cdef int check_places(TensorBase x, TensorBase target, TensorBase weight) except -1:
    for t in (target, weight):
        if t is not None and (<TensorBase>t).device_index != x.device_index:
            raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, cuda:{x.device_index} and cuda:{(<TensorBase>t).device_index}!")
    return 0


cdef TensorBase in_compute_type(TensorBase t, int code):
    """t itself, or a tensor to compute in that is copied to it afterwards."""
    return t if t.dtype == code and t.contiguous else empty_tensor(t.ndim, t.sizes, code, place_of(t))


cdef int class_losses(class_loss* call, TensorBase x_, TensorBase target, TensorBase weight, TensorBase result, TensorBase lse, TensorBase total_weight) except -1:
    """Both losses; lse is None of nll_loss."""
    cdef TensorBase x = contiguous_of(x_), loss, row_weight
    cdef int code = F64 if x.dtype == F64 else F32, index = x.device_index, tx, ty, which, reduction = call.reduction
    cdef int64_t n = target.numel, blocks
    cdef char* pointers[6]
    cdef void* arguments[7]
    cdef int i
    check_places(x, target, weight)
    call.fault = fault_of(index)
    call.code = code_of("nll_loss" if lse is None else "cross_entropy")
    loss = in_compute_type(result, code) if reduction == LOSS_NONE else empty_tensor(target.ndim, target.sizes, code, place_of(x))
    row_weight = empty_tensor(1, &n, code, place_of(x))
    pointers[0] = data_of(x)
    pointers[1] = data_of(target)
    pointers[2] = memory_of(weight)
    pointers[3] = data_of(loss)
    pointers[4] = data_of(row_weight)
    pointers[5] = memory_of(lse)
    arguments[0] = call
    for i in range(6):
        arguments[i + 1] = &pointers[i]
    if lse is None:
        which, tx, ty, blocks = 2, 256, 1, (n + 255) // 256
    elif call.inner == 1:
        which = 0
        tx = <int>smaller(power_above(smaller((call.classes + 7) // 8, 256)), 256)
        tx = 4 if tx < 4 else tx
        ty = 256 // tx
        blocks = (n + ty - 1) // ty
    else:
        which = 1
        tx = 32
        ty = power_above(smaller((call.classes + 7) // 8, 8))
        blocks = (n + 31) // 32
    if n:
        run3(loss_kernel(which, x.dtype, index), index, smaller(blocks, MAX_BLOCKS), 1, 1, tx, ty, 1, 0, arguments)
    if reduction == LOSS_NONE:
        return 0 if loss is result else copy_elements(result, loss)
    if n <= ONE_BLOCK:
        pointers[0] = data_of(loss)
        pointers[1] = data_of(row_weight)
        pointers[2] = data_of(result)
        pointers[3] = data_of(total_weight)
        return run3(loss_kernel(3, x.dtype, index), index, 1, 1, 1, 512, 1, 1, 0, arguments)
    copy_elements(total_weight, <TensorBase>_ops.sum(row_weight))
    total = _ops.sum(loss)
    return copy_elements(result, <TensorBase>(_ops.div(total, total_weight) if reduction == LOSS_MEAN else total))


cdef int class_gradients(class_loss* call, TensorBase grad, TensorBase like, TensorBase target, TensorBase weight, TensorBase lse, TensorBase total_weight,
                         TensorBase result) except -1:
    cdef TensorBase x = result if lse is None else contiguous_of(like), g = contiguous_of(cast_to(grad, result.dtype)), weights = None
    cdef TensorBase out = in_compute_type(result, result.dtype)
    cdef int64_t blocks = (out.numel + 1023) // 1024
    cdef char* pointers[8]
    cdef void* arguments[9]
    cdef int i
    if weight is not None and call.smoothing > 0:
        weights = _ops.sum(weight)
    pointers[0] = data_of(g)
    pointers[1] = data_of(x)
    pointers[2] = data_of(target)
    pointers[3] = memory_of(weight)
    pointers[4] = memory_of(lse)
    pointers[5] = data_of(total_weight)
    pointers[6] = memory_of(weights)
    pointers[7] = data_of(out)
    arguments[0] = call
    for i in range(8):
        arguments[i + 1] = &pointers[i]
    run3(loss_kernel(5 if lse is None else 4, result.dtype, result.device_index), result.device_index, smaller(blocks, MAX_BLOCKS), 1, 1, 256, 1, 1, 0, arguments)
    return 0 if out is result else copy_elements(result, out)


cdef int nll_loss(class_loss* call, TensorBase x, TensorBase target, TensorBase weight, TensorBase loss, TensorBase total_weight) except -1:
    return class_losses(call, x, target, weight, loss, None, total_weight)


cdef int nll_loss_backward(class_loss* call, TensorBase grad, TensorBase target, TensorBase weight, TensorBase total_weight, TensorBase result) except -1:
    return class_gradients(call, grad, None, target, weight, None, total_weight, result)


set_softmax(DEV_CUDA, softmax)
set_softmax_backward(DEV_CUDA, softmax_backward)
set_nll_loss(DEV_CUDA, nll_loss)
set_nll_loss_backward(DEV_CUDA, nll_loss_backward)
set_cross_entropy(DEV_CUDA, class_losses)
set_cross_entropy_backward(DEV_CUDA, class_gradients)
