"""softmax and log_softmax along one dimension, forward and backward. The meta functions, the derivatives, and the steps on the CPU."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.allocator cimport block_alloc, block_drop, trt_block, trt_block_hold
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport OUT, attach
from tensorrt_lite._C.core.dtype cimport BF16, CAT_FLOAT, F16, F32, NUM_DTYPES, category
from tensorrt_lite._C.core.iterator cimport cast_to, contiguous_of
from tensorrt_lite._C.core.parallel cimport GRAIN, parallel_for
from tensorrt_lite._C.core.tensor cimport ITEM_SIZE, TensorBase, data_of, empty_tensor, place_of, same_sizes, shape_text
from tensorrt_lite._C.core.text cimport dtype_text
from tensorrt_lite._C.operators cimport op__log_softmax_backward_data, op__softmax_backward_data
from tensorrt_lite._C.ops.reduction.lines cimport fill_lines
from tensorrt_lite._C.ops.reduction.loops cimport reduce_kernels, softmax_combine_fn, softmax_kernels
from tensorrt_lite._C.ops.support cimport check_out_type, write_to_out
from tensorrt_lite._C.steps.reduction cimport (
    REDUCE_CHUNK, REDUCE_LOGSUMEXP, REDUCE_PARTIAL_BYTES, SOFTMAX_COLUMNS, SOFTMAX_LOG_SOFTMAX, SOFTMAX_SOFTMAX,
    line_call, run_softmax, run_softmax_backward, set_softmax, set_softmax_backward, softmax_takes)


cdef extern from *:
    """
    #include "isa.h"
    ISA_TABLE(softmax_kernels, softmax_table)
    ISA_TABLE(softmax_combine_fn, softmax_combine)
    """
    const softmax_kernels* softmax_table()
    const softmax_combine_fn* softmax_combine()

cdef const softmax_kernels* SOFTMAXES = softmax_table()
cdef softmax_combine_fn COMBINE = softmax_combine()[0]


cdef TensorBase meta_softmax(line_call* call, str name, TensorBase self, int64_t dim, int dtype, TensorBase out, int mode):
    """In the operand's type, to which the kernel casts it."""
    if mode == OUT:
        check_out_type(name, out, self.dtype)
    if not softmax_takes(call.operation, self.dtype):
        raise NotImplementedError(f"\"{name}_lastdim_kernel_impl\" not implemented for '{dtype_text(self.dtype)}'")
    fill_lines(call, self, dim)
    return empty_tensor(self.ndim, self.sizes, self.dtype, place_of(self))


cdef TensorBase meta_aten_softmax(line_call* call, str name, TensorBase self, int64_t dim, bint half_to_float, TensorBase out, int mode):
    return meta_softmax(call, name, self, dim, -1, out, mode)


cdef TensorBase softmax_backward(str name, int operation, TensorBase grad_output, TensorBase output, int64_t dim, int input_dtype):
    cdef line_call call
    cdef TensorBase g, y, r
    if category[output.dtype] != CAT_FLOAT:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype_text(output.dtype)}'")
    if not same_sizes(grad_output, output):
        raise RuntimeError(f"{name}: the gradient has shape {shape_text(grad_output)}, the output {shape_text(output)}")
    g, y = contiguous_of(cast_to(grad_output, output.dtype)), contiguous_of(output)
    call.operation = operation
    fill_lines(&call, y, dim)
    r = empty_tensor(y.ndim, y.sizes, y.dtype, place_of(y))
    if y.numel:
        run_softmax_backward(y.device_type, &call, g, y, r)
    return r if input_dtype < 0 else cast_to(r, input_dtype)


cdef TensorBase softmax_backward_impl(TensorBase grad_output, TensorBase output, int64_t dim, int input_dtype):
    return softmax_backward("_softmax_backward_data", SOFTMAX_SOFTMAX, grad_output, output, dim, input_dtype)


cdef TensorBase log_softmax_backward_impl(TensorBase grad_output, TensorBase output, int64_t dim, int input_dtype):
    return softmax_backward("_log_softmax_backward_data", SOFTMAX_LOG_SOFTMAX, grad_output, output, dim, input_dtype)


cdef object softmax_grad(object grad, object result, int64_t dim, object meta):
    return op__softmax_backward_data(grad, result, dim, meta[1])


cdef object log_softmax_grad(object grad, object result, int64_t dim, object meta):
    return op__log_softmax_backward_data(grad, result, dim, meta[1])


cdef object softmax_second(object grad, object grad_output, object output, int64_t dim):
    """The derivative of _softmax_backward_data() by the softmax."""
    return grad_output * grad - (output * grad_output).sum(dim, True) * grad - grad_output * (output * grad).sum(dim, True)


cdef object softmax_tangent(object tangent, object result, int64_t dim):
    product = result * tangent
    return product - result * product.sum(dim, True)


cdef object log_softmax_tangent(object tangent, object result, int64_t dim):
    return tangent - (result.exp() * tangent).sum(dim, True)


# ---- on the CPU ----------------------------------------------------------------------------------------------------

cdef struct SoftmaxRun:
    const softmax_kernels* kernels
    const reduce_kernels* stats
    const char* data
    const char* grad
    char* out
    char* partials
    double maximum, total
    int64_t item, n, inner


cdef void run_softmax_rows(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef SoftmaxRun* s = <SoftmaxRun*>context
    s.kernels.rows(s.data, s.n * s.item, s.out, s.n * s.item, s.n, begin, end)


cdef void run_softmax_cols(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef SoftmaxRun* s = <SoftmaxRun*>context
    s.kernels.cols(s.data, s.n * s.inner * s.item, s.inner * s.item, s.out, s.n * s.inner * s.item, s.inner * s.item, s.n, s.inner, begin, end)


cdef void run_softmax_backward_rows(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef SoftmaxRun* s = <SoftmaxRun*>context
    s.kernels.backward_rows(s.grad, s.n * s.item, s.data, s.n * s.item, s.out, s.n * s.item, s.n, begin, end)


cdef void run_softmax_backward_cols(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef SoftmaxRun* s = <SoftmaxRun*>context
    s.kernels.backward_cols(s.grad, s.n * s.inner * s.item, s.inner * s.item, s.data, s.n * s.inner * s.item, s.inner * s.item, s.out,
                            s.n * s.inner * s.item, s.inner * s.item, s.n, s.inner, begin, end)


cdef void run_softmax_stats(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef SoftmaxRun* s = <SoftmaxRun*>context
    s.stats.chunks(s.data, s.item, s.n, REDUCE_CHUNK, s.partials, begin, end, NULL)


cdef void run_softmax_apply(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef SoftmaxRun* s = <SoftmaxRun*>context
    s.kernels.apply(s.data, s.out, begin, end, s.maximum, s.total)


cdef int softmax_on_cpu(line_call* call, TensorBase self, TensorBase result) except -1:
    cdef SoftmaxRun s
    cdef int64_t outer = call.outer, blocks, chunks
    cdef trt_block* scratch
    cdef trt_block* held = self.storage.block
    s.kernels = SOFTMAXES + call.operation * NUM_DTYPES + self.dtype
    s.data = data_of(self)
    s.out = data_of(result)
    s.item = ITEM_SIZE[self.dtype]
    s.n, s.inner = call.n, call.inner
    if s.inner == 1 and self.numel < 2048:
        run_softmax_rows(&s, 0, outer)
        return 0
    trt_block_hold(held)
    if s.inner == 1 and outer < 8 and s.n >= 16 * REDUCE_CHUNK:
        s.stats = reduce_loops(REDUCE_LOGSUMEXP, self.dtype)
        chunks = (s.n + REDUCE_CHUNK - 1) // REDUCE_CHUNK
        try:
            scratch = block_alloc(chunks * REDUCE_PARTIAL_BYTES)
        except:
            block_drop(held)
            raise
        s.partials = scratch.data
        with nogil:
            while outer > 0:
                parallel_for(chunks, GRAIN // 4 // REDUCE_CHUNK, 1, run_softmax_stats, &s)
                COMBINE(s.partials, chunks, &s.maximum, &s.total)
                parallel_for(s.n, GRAIN // 4, 1024, run_softmax_apply, &s)
                s.data += s.n * s.item
                s.out += s.n * s.item
                outer -= 1
        block_drop(scratch)
    elif s.inner == 1:
        with nogil:
            parallel_for(outer, (GRAIN // 4 + s.n - 1) // s.n, 1, run_softmax_rows, &s)
    else:
        blocks = (s.inner + SOFTMAX_COLUMNS - 1) // SOFTMAX_COLUMNS
        with nogil:
            parallel_for(outer * blocks, 1 + GRAIN // 4 // (s.n * (s.inner if s.inner < SOFTMAX_COLUMNS else SOFTMAX_COLUMNS)), 1, run_softmax_cols, &s)
    block_drop(held)
    return 0


cdef int backward_of_lines(line_call* call, TensorBase grad, TensorBase output, TensorBase result) except -1:
    cdef SoftmaxRun s
    cdef int64_t blocks
    cdef trt_block* held[2]
    s.kernels = SOFTMAXES + call.operation * NUM_DTYPES + output.dtype
    s.data = data_of(output)
    s.grad = data_of(grad)
    s.out = data_of(result)
    s.item = ITEM_SIZE[output.dtype]
    s.n, s.inner = call.n, call.inner
    held[0] = grad.storage.block
    held[1] = output.storage.block
    trt_block_hold(held[0])
    trt_block_hold(held[1])
    if s.inner == 1:
        with nogil:
            parallel_for(call.outer, (GRAIN // 2 + s.n - 1) // s.n, 1, run_softmax_backward_rows, &s)
    else:
        blocks = (s.inner + SOFTMAX_COLUMNS - 1) // SOFTMAX_COLUMNS
        with nogil:
            parallel_for(call.outer * blocks, 1 + GRAIN // 2 // (s.n * (s.inner if s.inner < SOFTMAX_COLUMNS else SOFTMAX_COLUMNS)), 1, run_softmax_backward_cols, &s)
    block_drop(held[0])
    block_drop(held[1])
    return 0


set_softmax(DEV_CPU, softmax_on_cpu)
set_softmax_backward(DEV_CPU, backward_of_lines)
