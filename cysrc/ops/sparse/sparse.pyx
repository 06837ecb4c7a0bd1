# Sparse matrices in compressed rows: checks, types and results for all devices.
from tensorrt_lite._C.ops.sparse import cpu as _cpu_steps
from tensorrt_lite._C.steps.sparse cimport SPARSE_LARGEST, SPARSE_MM, SPARSE_SAMPLED, SPARSE_SMALLEST, run_sparse_dtype, run_sparse_rows, sparse_call


cdef int type_of_loops(TensorBase t) except -1:
    """The type that the device's kernels have for a tensor's elements."""
    cdef int code = 0
    run_sparse_dtype(t.device_type, t.dtype, &code)
    return code


cdef int check_matrix(str name, TensorBase crow, TensorBase col, TensorBase other, TensorBase dense) except -1:
    if crow.dtype != I64 or col.dtype != I64 or crow.ndim != 1 or col.ndim != 1 or crow.numel == 0:
        raise RuntimeError(f"{name}: compressed rows are int64 vectors, crow of at least one element; got {shape_text(crow)} and {shape_text(col)}")
    if dense.ndim != 2:
        raise RuntimeError(f"{name}: expected a dense matrix, got {shape_text(dense)}")
    for t in (crow, col, other):
        if t is not None and place_of(<TensorBase>t) != place_of(dense):
            raise RuntimeError(f"{name}: Expected all tensors to be on the same device, but found at least two devices, {t.device} and {(<object>dense).device}!")
    if other is not None and other.dtype != dense.dtype:
        raise RuntimeError(f"{name}: expected both matrices to have the same dtype, got {dtype_text(other.dtype)} and {dtype_text(dense.dtype)}")
    return 0


cdef int run_rows(int operation, int code, TensorBase crow, TensorBase col, TensorBase values, TensorBase dense, TensorBase out, TensorBase which) except -1:
    cdef sparse_call call
    call.rows, call.count, call.columns, call.n = crow.numel - 1, col.numel, dense.sizes[0], dense.sizes[1]
    call.operation, call.dtype = operation, code
    call.crow = call.col = NULL
    call.values = call.dense = NULL
    call.out = NULL
    call.which = NULL
    if out.numel == 0:
        return 0
    return run_sparse_rows(dense.device_type, &call, contiguous_of(crow), contiguous_of(col), None if values is None else contiguous_of(cast_to(values, code)),
                           contiguous_of(cast_to(dense, code)), out, which)


cdef TensorBase _csr_mm_kernel(TensorBase crow, TensorBase col, TensorBase values, TensorBase dense):
    cdef int code = type_of_loops(dense)
    cdef int64_t sizes[2]
    cdef TensorBase out
    check_matrix("_csr_mm", crow, col, values, dense)
    if values is not None and (values.ndim != 1 or values.numel != col.numel):
        raise RuntimeError(f"_csr_mm: expected a value for each of {col.numel} entries, got {shape_text(values)}")
    sizes[0], sizes[1] = crow.numel - 1, dense.sizes[1]
    out = empty_tensor(2, sizes, code, place_of(dense))
    run_rows(SPARSE_MM, code, crow, col, values, dense, out, None)
    return cast_to(out, dense.dtype)


cdef TensorBase _csr_sampled_kernel(TensorBase crow, TensorBase col, TensorBase left, TensorBase right):
    cdef int code = type_of_loops(right)
    cdef int64_t count = col.numel
    cdef TensorBase out
    check_matrix("_csr_sampled", crow, col, left, right)
    if left.ndim != 2 or left.sizes[0] != crow.numel - 1 or left.sizes[1] != right.sizes[1]:
        raise RuntimeError(f"_csr_sampled: matrices of {shape_text(left)} and {shape_text(right)} do not fit {crow.numel - 1} rows")
    out = empty_tensor(1, &count, code, place_of(right))
    run_rows(SPARSE_SAMPLED, code, crow, col, left, right, out, None)
    return cast_to(out, right.dtype)


cdef object _csr_extreme_kernel(TensorBase crow, TensorBase col, TensorBase values, TensorBase dense, bint largest):
    cdef int code = type_of_loops(dense)
    cdef int64_t sizes[2]
    cdef TensorBase out, which
    check_matrix("_csr_extreme", crow, col, values, dense)
    if category[dense.dtype] != CAT_FLOAT or values.ndim != 1 or values.numel != col.numel:
        raise RuntimeError(f"_csr_extreme: expected a real value for each of {col.numel} entries, got {shape_text(values)} of {dtype_text(values.dtype)}")
    sizes[0], sizes[1] = crow.numel - 1, dense.sizes[1]
    out, which = empty_tensor(2, sizes, code, place_of(dense)), empty_tensor(2, sizes, I64, place_of(dense))
    run_rows(SPARSE_LARGEST if largest else SPARSE_SMALLEST, code, crow, col, values, dense, out, which)
    return cast_to(out, dense.dtype), which
