"""Reductions on CUDA: what ops/reduction/reduction.pyx has checked becomes a layout for cuda_src/reduce.cuh, one launch, or two where few outputs
are made of many elements."""
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc
from libc.string cimport memset
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport BOOL, U8, I64, F32, F64, NUM_DTYPES, real_type, is_blas_type, is_complex_type, is_integral_or_bool_type
from tensorrt_lite._C.core.tensor cimport TensorBase, ITEM_SIZE, data_of, place_of, empty_tensor
from tensorrt_lite._C.cuda.backend cimport kernel_of, run3
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.driver import device_attribute
from tensorrt_lite._C.steps.reduction cimport (
    REDUCE_ALL, REDUCE_ANY, REDUCE_ARGMAX, REDUCE_ARGMIN, REDUCE_COUNT, REDUCE_COUNT_NONZERO, REDUCE_DIMS, REDUCE_PARTIAL_BYTES, REDUCE_PROD, REDUCE_SUM, REDUCE_VAR,
    reduce_call, reduce_functors, reduce_layout, reduce_takes, set_reduce)
from tensorrt_lite._C.cuda.source import storage_type

attach()

cdef tuple ENTRIES = ("inner", "outer", "combine")
# an operation of steps.yaml that has no functor compiles in no unit
cdef str UNIT = """#include "reduce.cuh"
#define ROW(OPERATION, LOOPS, FUNCTOR, TYPES) template <class I, class O> using reduce_##LOOPS = trt::Reduce##FUNCTOR<I, O>;
REDUCE_FOR_EACH(ROW)
using Op = trt::Reduce%s<%s, %s>;
extern "C" __global__ void __launch_bounds__(512) inner(const reduce_layout l, const reduce_call p, const Op::In* in, Op::Out* out, Op::Second* second, Op::State* partials) {
    trt::reduce_inner<Op>(l, p, in, out, second, partials);
}
extern "C" __global__ void __launch_bounds__(512) outer(const reduce_layout l, const reduce_call p, const Op::In* in, Op::Out* out, Op::Second* second, Op::State* partials) {
    trt::reduce_outer<Op>(l, p, in, out, second, partials);
}
extern "C" __global__ void __launch_bounds__(128) combine(const reduce_layout l, const reduce_call p, const Op::State* partials, Op::Out* out, Op::Second* second) {
    trt::reduce_combine<Op>(l, p, partials, out, second);
}
"""

cdef enum:
    INNER = 0
    OUTER = 1
    COMBINE = 2
    THREADS = 256
    MULTIPROCESSOR_COUNT = 16      # CU_DEVICE_ATTRIBUTE_*

cdef struct Handles:
    FunctionHandle entry[64][3]

cdef Handles* handles[REDUCE_COUNT][NUM_DTYPES][NUM_DTYPES]
cdef int multiprocessors[64]


cdef FunctionHandle handle_of(int op, int source, int target, int entry, int index) except NULL:
    cdef Handles* h = handles[op][source][target]
    if h == NULL:
        h = handles[op][source][target] = <Handles*>calloc(1, sizeof(Handles))
        if h == NULL:
            raise MemoryError
    if h.entry[index][entry] == NULL:
        text = UNIT % (reduce_functors[op].decode(), storage_type(source), storage_type(target))
        h.entry[index][entry] = kernel_of(text, ENTRIES[entry], index)
    return h.entry[index][entry]


cdef int processors(int index) except -1:
    if multiprocessors[index] == 0:
        multiprocessors[index] = device_attribute(MULTIPROCESSOR_COUNT, index)
    return multiprocessors[index]


cdef inline int64_t smaller(int64_t a, int64_t b) noexcept:
    return a if a < b else b


cdef inline int64_t quotient_up(int64_t a, int64_t b) noexcept:
    return (a + b - 1) // b


cdef int64_t power_above(int64_t n) noexcept:
    """The least power of two that is no smaller."""
    cdef int64_t p = 1
    while p < n:
        p *= 2
    return p


cdef inline int64_t magnitude(int64_t v) noexcept:
    return -v if v < 0 else v


cdef int append(int ndim, int64_t* size, int64_t* stride, int64_t* out, int64_t n, int64_t step, int64_t out_step) except -1:
    """Insert a dimension by its stride; the new number of dimensions."""
    cdef int k = 0, m
    if ndim == REDUCE_DIMS:
        raise NotImplementedError(f"reduction over a tensor with more than {<int>REDUCE_DIMS} kept or reduced dimensions, on CUDA")
    while k < ndim and magnitude(stride[k]) <= magnitude(step):
        k += 1
    for m in range(ndim, k, -1):
        size[m] = size[m - 1]
        stride[m] = stride[m - 1]
        if out != NULL:
            out[m] = out[m - 1]
    size[k] = n
    stride[k] = step
    if out != NULL:
        out[k] = out_step
    return ndim + 1


cdef int merge(int ndim, int64_t* size, int64_t* stride, int64_t* out) noexcept:
    """Join neighbours that one stride walks through."""
    cdef int d, n = 0
    for d in range(1, ndim):
        if stride[d] == stride[n] * size[n] and (out == NULL or out[d] == out[n] * size[n]):
            size[n] *= size[d]
        else:
            n += 1
            size[n] = size[d]
            stride[n] = stride[d]
            if out != NULL:
                out[n] = out[d]
    return n + 1 if ndim else 0


cdef int reduce(reduce_call* call, TensorBase self, TensorBase result, TensorBase second) except -1:
    cdef reduce_layout l
    cdef int op = call.operation
    cdef int index = self.device_index, i, form, item = ITEM_SIZE[self.dtype]
    cdef int64_t out_step = 1, vector = 16 // item if item < 16 else 1, tx, ty, blocks, per_block, wanted, nbytes
    cdef char* source = data_of(self)
    cdef char* target = data_of(result)
    cdef char* extra = NULL if second is None else data_of(second)
    cdef char* partials = NULL
    cdef void* arguments[6]
    cdef TensorBase scratch
    if result.device_index != index:
        raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, cuda:{index} and cuda:{result.device_index}!")
    memset(&l, 0, sizeof(l))
    l.outputs = result.numel
    l.n = 1
    for i in range(self.ndim - 1, -1, -1):
        if call.reduced[i]:
            l.n *= self.sizes[i]
    for i in range(self.ndim - 1, -1, -1):
        if self.sizes[i] == 1:
            continue
        if not call.reduced[i]:
            l.kept_ndim = append(l.kept_ndim, l.kept_size, l.kept_stride, l.out_stride, self.sizes[i], self.strides[i], out_step)
            out_step *= self.sizes[i]
        elif l.n:
            # in any order: where an index is asked for the run is one dimension
            l.reduced_ndim = append(l.reduced_ndim, l.reduced_size, l.reduced_stride, NULL, self.sizes[i], self.strides[i], 0)
    l.kept_ndim = merge(l.kept_ndim, l.kept_size, l.kept_stride, l.out_stride)
    l.reduced_ndim = merge(l.reduced_ndim, l.reduced_size, l.reduced_stride, NULL)
    l.splits = 1
    if l.kept_ndim and (l.n <= 1 or magnitude(l.kept_stride[0]) < magnitude(l.reduced_stride[0])):
        form = OUTER
        tx = smaller(power_above(l.outputs), 32)
        ty = smaller(power_above(quotient_up(l.n, 4)), THREADS // tx)
        if ty * tx < THREADS:
            tx = smaller(power_above(l.outputs), THREADS // ty)
        blocks = quotient_up(l.outputs, tx)
        per_block = ty
    else:
        form = INNER
        l.vectors = l.reduced_ndim == 1 and l.reduced_stride[0] == 1 and vector > 1 and l.n >= vector and <size_t>source % 16 == 0
        for i in range(l.kept_ndim):
            l.vectors &= l.kept_stride[i] % vector == 0
        wanted = quotient_up(l.n, vector if l.vectors else 1)
        # short runs take as many threads as they have loads; long ones a warp, and more when that leaves each thread over 16 loads
        tx = power_above(wanted) if wanted <= 32 else smaller(512, power_above(quotient_up(wanted, 16)))
        if wanted > 32 and tx < 32:
            tx = 32
        ty = THREADS // tx if tx < THREADS else 1
        blocks = quotient_up(l.outputs, ty)
        per_block = tx * (vector if l.vectors else 1)
    # few outputs: the run is cut so that every multiprocessor has work
    wanted = 4 * processors(index)
    if blocks < wanted // 2:
        l.splits = <int>smaller(quotient_up(wanted, blocks), l.n // (per_block * 8))
        if l.splits < 1:
            l.splits = 1
    l.chunk = quotient_up(quotient_up(l.n, l.splits), 128) * 128 if l.splits > 1 else l.n
    if l.splits > 1:
        l.splits = <int>quotient_up(l.n, l.chunk)
    if l.splits > 1:
        nbytes = l.splits * l.outputs * REDUCE_PARTIAL_BYTES
        scratch = empty_tensor(1, &nbytes, U8, place_of(self))
        partials = data_of(scratch)
    arguments[0] = &l
    arguments[1] = call
    arguments[2] = &source
    arguments[3] = &target
    arguments[4] = &extra
    arguments[5] = &partials
    run3(handle_of(op, self.dtype, result.dtype, form, index), index, smaller(blocks, (1 << 31) - 1), l.splits, 1, <int>tx, <int>ty, 1, 0, arguments)
    if l.splits > 1:
        arguments[2] = &partials
        arguments[3] = &target
        arguments[4] = &extra
        run3(handle_of(op, self.dtype, result.dtype, COMBINE, index), index, smaller(l.outputs, 1 << 20), 1, 1, 128, 1, 1, 0, arguments)
    return 0


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    cdef int op, source, target
    for op in range(<int>REDUCE_COUNT):
        for source in range(<int>NUM_DTYPES):
            if reduce_takes(op, source):
                for target in sorted(targets_of(op, source)):
                    handle_of(op, source, target, INNER, index)


cdef set targets_of(int op, int source):
    """The dtypes of the results that calls without an explicit dtype have, and of sums those that are usually named."""
    if op in (REDUCE_SUM, REDUCE_PROD):
        return {I64, F32, F64} if is_integral_or_bool_type(source) else {source} if is_complex_type(source) else {source, F32, F64}
    if op in (REDUCE_ARGMIN, REDUCE_ARGMAX, REDUCE_COUNT_NONZERO):
        return {I64}
    if op in (REDUCE_ANY, REDUCE_ALL):
        return {BOOL, U8} if source == U8 else {BOOL}
    if op == REDUCE_VAR and not is_blas_type(source):
        return {source, F32}                    # the statistics of batch norm
    return {<int>real_type[source]}


set_reduce(DEV_CUDA, reduce)
