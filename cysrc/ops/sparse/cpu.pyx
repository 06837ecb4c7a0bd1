"""Sparse matrices in compressed rows on the CPU (cysrc/loops/sparse.c), beneath the checks of sparse.pyx."""
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from tensorrt_lite._C.core.allocator cimport trt_block
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport CAT_COMPLEX, CAT_FLOAT, I64, category, compute_type
from tensorrt_lite._C.core.parallel cimport GRAIN, parallel_for, task_fn
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of
from tensorrt_lite._C.ops.held_blocks cimport drop_blocks, hold_blocks
from tensorrt_lite._C.steps.sparse cimport sparse_call, set_sparse_count, set_sparse_dtype, set_sparse_fill, set_sparse_merge, set_sparse_rows, sparse_merge_call, sparse_product_call


ctypedef int (*take_fn)(sparse_call*, int64_t*) noexcept nogil
ctypedef int (*merge_fn)(sparse_merge_call*) noexcept nogil

cdef extern from *:
    """
    #include "isa.h"
    #include "sparse_steps.h"
    ISA_TASK(sparse_rows)
    ISA_TASK(sparse_product)
    ISA_FUNCTION(int, sparse_take_rows, (sparse_call*, int64_t*))
    ISA_FUNCTION(int, sparse_merge, (sparse_merge_call*))
    """
    task_fn sparse_rows_loop "sparse_rows"()
    task_fn sparse_product_loop "sparse_product"()
    take_fn sparse_take_rows_loop "sparse_take_rows"()
    merge_fn sparse_merge_loop "sparse_merge"()

cdef task_fn rows_task = sparse_rows_loop()
cdef task_fn product_task = sparse_product_loop()
cdef take_fn take_rows = sparse_take_rows_loop()
cdef merge_fn merge_rows = sparse_merge_loop()


cdef int check_valid(bint valid) except -1:
    if not valid:
        raise RuntimeError("sparse tensor: compressed indices must lead from 0 to the number of entries, plain indices must lie inside of the dimension")
    return 0


cdef int sparse_rows(sparse_call* call, TensorBase crow, TensorBase col, TensorBase values, TensorBase dense, TensorBase out, TensorBase which) except -1:
    cdef trt_block* blocks[6]
    cdef int n
    cdef bint valid
    cdef int64_t items = call.rows + call.count, work = (call.count + call.rows) * (call.n + 1)
    cdef int64_t* rows = <int64_t*>malloc((call.rows + 1) * sizeof(int64_t))
    if rows == NULL:
        raise MemoryError(f"sparse tensor: cannot allocate {call.rows + 1} compressed indices")
    call.crow, call.col, call.dense, call.out = <const int64_t*>data_of(crow), <const int64_t*>data_of(col), data_of(dense), data_of(out)
    call.values = NULL if values is None else data_of(values)
    call.which = NULL if which is None else <int64_t*>data_of(which)
    n = hold_blocks((crow, col, values, dense, out, which), blocks)
    with nogil:
        valid = take_rows(call, rows)
        if valid:
            parallel_for(items, 1 + GRAIN // 4 * items // (work + 1), 1, rows_task, call)
            valid = not call.bad
    free(rows)
    drop_blocks(blocks, n)
    check_valid(valid)
    return 0


cdef int multiply(sparse_product_call* call, tuple tensors) except -1:
    """Count, or fill, with the blocks of the tensors held. Compressed indices are read from copies."""
    cdef trt_block* blocks[9]
    cdef int n
    cdef bint valid
    cdef int64_t row
    cdef sparse_call left, right
    cdef int64_t each = 1 + call.right_count // (call.right_rows + 1)
    # a thread has accumulators of its own, which its rows must be worth
    cdef int64_t grain = 1 + (GRAIN // 4 + call.columns // 64) * call.rows // (call.left_count * each + call.rows + 1)
    cdef int64_t* rows = <int64_t*>malloc((call.rows + call.right_rows + 2) * sizeof(int64_t))
    if rows == NULL:
        raise MemoryError(f"product of sparse matrices: cannot allocate {call.rows + call.right_rows + 2} compressed indices")
    left.rows, left.count, left.columns, left.crow, left.col = call.rows, call.left_count, call.right_rows, call.left_crow, call.left_col
    right.rows, right.count, right.columns, right.crow, right.col = call.right_rows, call.right_count, call.columns, call.right_crow, call.right_col
    n = hold_blocks(tensors, blocks)
    with nogil:
        valid = take_rows(&left, rows) and take_rows(&right, rows + call.rows + 1)
        if valid:
            call.left_crow, call.right_crow, call.bad = left.crow, right.crow, 0
            parallel_for(call.rows, grain, 1, product_task, call)
            if call.counting:
                call.crow[0] = 0
                for row in range(call.rows):
                    call.crow[row + 1] += call.crow[row]
                call.count = call.crow[call.rows]
            valid = not call.bad
    free(rows)
    drop_blocks(blocks, n)
    check_valid(valid)
    if call.failed:
        raise MemoryError(f"product of sparse matrices: no memory for {call.columns} columns")
    return 0


cdef int sparse_count(sparse_product_call* call, TensorBase left_crow, TensorBase left_col, TensorBase right_crow, TensorBase right_col, TensorBase crow, list columns) except -1:
    call.left_crow, call.left_col = <const int64_t*>data_of(left_crow), <const int64_t*>data_of(left_col)
    call.right_crow, call.right_col = <const int64_t*>data_of(right_crow), <const int64_t*>data_of(right_col)
    call.crow, call.counting = <int64_t*>data_of(crow), 1
    return multiply(call, (left_crow, left_col, right_crow, right_col, crow))


cdef int sparse_fill(sparse_product_call* call, TensorBase left_crow, TensorBase left_col, TensorBase left_values, TensorBase right_crow, TensorBase right_col,
                     TensorBase right_values, TensorBase crow, TensorBase col, TensorBase values) except -1:
    call.left_crow, call.left_col, call.left_values = <const int64_t*>data_of(left_crow), <const int64_t*>data_of(left_col), data_of(left_values)
    call.right_crow, call.right_col, call.right_values = <const int64_t*>data_of(right_crow), <const int64_t*>data_of(right_col), data_of(right_values)
    call.crow, call.col, call.values, call.counting = <int64_t*>data_of(crow), <int64_t*>data_of(col), data_of(values), 0
    return multiply(call, (left_crow, left_col, left_values, right_crow, right_col, right_values, crow, col, values))


cdef int sparse_merge(sparse_merge_call* call, TensorBase left_crow, TensorBase left_col, TensorBase right_crow, TensorBase right_col, TensorBase crow,
                      TensorBase left, TensorBase right) except -1:
    cdef trt_block* blocks[7]
    cdef int n
    cdef bint valid
    cdef sparse_call lines, others
    cdef int64_t* rows = <int64_t*>malloc((2 * call.rows + 2) * sizeof(int64_t))
    if rows == NULL:
        raise MemoryError(f"sum or product of sparse matrices: cannot allocate {2 * call.rows + 2} compressed indices")
    lines.rows, lines.count, lines.columns, lines.crow = call.rows, call.left_count, 1, <const int64_t*>data_of(left_crow)
    others.rows, others.count, others.columns, others.crow = call.rows, call.right_count, 1, <const int64_t*>data_of(right_crow)
    call.left_col, call.right_col = <const int64_t*>data_of(left_col), <const int64_t*>data_of(right_col)
    call.crow, call.left, call.right = <int64_t*>data_of(crow), <int64_t*>data_of(left), <int64_t*>data_of(right)
    n = hold_blocks((left_crow, left_col, right_crow, right_col, crow, left, right), blocks)
    with nogil:
        valid = take_rows(&lines, rows) and take_rows(&others, rows + call.rows + 1)
        if valid:
            call.left_crow, call.right_crow = lines.crow, others.crow
            call.ordered = merge_rows(call)
    free(rows)
    drop_blocks(blocks, n)
    return check_valid(valid)


cdef int sparse_dtype(int dtype, int* code) except -1:
    code[0] = compute_type[dtype] if category[dtype] in (CAT_FLOAT, CAT_COMPLEX) else I64
    return 0


set_sparse_dtype(DEV_CPU, sparse_dtype)
set_sparse_merge(DEV_CPU, sparse_merge)
set_sparse_rows(DEV_CPU, sparse_rows)
set_sparse_count(DEV_CPU, sparse_count)
set_sparse_fill(DEV_CPU, sparse_fill)
