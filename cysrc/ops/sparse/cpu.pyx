"""Sparse matrices in compressed rows on the CPU (cysrc/loops/sparse.c), beneath the checks of sparse.pyx."""
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from tensorrt_lite._C.core.allocator cimport trt_block, trt_block_hold, block_drop
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport C128, C64, CAT_COMPLEX, CAT_FLOAT, F32, F64, I64, category
from tensorrt_lite._C.core.parallel cimport GRAIN, parallel_for, task_fn
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of
from tensorrt_lite._C.steps.sparse cimport sparse_call, set_sparse_dtype, set_sparse_rows

attach()

ctypedef int (*take_fn)(sparse_call*, int64_t*) noexcept nogil

cdef extern from *:
    """
    #include "isa.h"
    #include "sparse_steps.h"
    ISA_TASK(sparse_rows)
    ISA_FUNCTION(int, sparse_take_rows, (sparse_call*, int64_t*))
    """
    task_fn sparse_rows_loop "sparse_rows"()
    take_fn sparse_take_rows_loop "sparse_take_rows"()

cdef task_fn rows_task = sparse_rows_loop()
cdef take_fn take_rows = sparse_take_rows_loop()


cdef int sparse_rows(sparse_call* call, TensorBase crow, TensorBase col, TensorBase values, TensorBase dense, TensorBase out, TensorBase which) except -1:
    cdef trt_block* blocks[6]
    cdef int i, n = 0
    cdef bint valid
    cdef int64_t items = call.rows + call.count, work = (call.count + call.rows) * (call.n + 1)
    cdef int64_t* rows = <int64_t*>malloc((call.rows + 1) * sizeof(int64_t))
    if rows == NULL:
        raise MemoryError(f"sparse tensor: cannot allocate {call.rows + 1} compressed indices")
    call.crow, call.col, call.dense, call.out = <const int64_t*>data_of(crow), <const int64_t*>data_of(col), data_of(dense), data_of(out)
    call.values = NULL if values is None else data_of(values)
    call.which = NULL if which is None else <int64_t*>data_of(which)
    for t in (crow, col, values, dense, out, which):
        if t is not None:
            blocks[n] = (<TensorBase>t).storage.block
            n += 1
    for i in range(n):
        trt_block_hold(blocks[i])
    with nogil:
        valid = take_rows(call, rows)
        if valid:
            parallel_for(items, 1 + GRAIN // 4 * items // (work + 1), 1, rows_task, call)
            valid = not call.bad
    free(rows)
    for i in range(n):
        block_drop(blocks[i])
    if not valid:
        raise RuntimeError("sparse tensor: compressed indices must lead from 0 to the number of entries, plain indices must lie inside of the dimension")
    return 0


cdef int sparse_dtype(int dtype, int* code) except -1:
    if dtype == F32 or dtype == F64 or dtype == C64 or dtype == C128:
        code[0] = dtype
    elif category[dtype] == CAT_COMPLEX:
        code[0] = C64
    else:
        code[0] = F32 if category[dtype] == CAT_FLOAT else I64
    return 0


set_sparse_dtype(DEV_CPU, sparse_dtype)
set_sparse_rows(DEV_CPU, sparse_rows)
