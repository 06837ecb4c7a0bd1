# Sparse matrices in compressed rows: checks, types and results for all devices.
from tensorrt_lite._C.steps.sparse cimport SPARSE_LARGEST, SPARSE_MM, SPARSE_SAMPLED, SPARSE_SMALLEST, run_sparse_count, run_sparse_dtype, run_sparse_fill, run_sparse_merge, run_sparse_rows, sparse_call, sparse_merge_call, sparse_product_call


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


cdef object _csr_product_kernel(TensorBase crow, TensorBase col, TensorBase values, TensorBase other_crow, TensorBase other_col, TensorBase other_values, int64_t columns):
    cdef sparse_product_call call
    cdef int64_t n = crow.numel
    cdef TensorBase left_crow, left_col, right_crow, right_col, starts, found, out
    for t in (crow, col, values, other_crow, other_col, other_values):
        if (<TensorBase>t).ndim != 1 or place_of(<TensorBase>t) != place_of(values) or (t is not values and t is not other_values and (<TensorBase>t).dtype != I64):
            raise RuntimeError(f"_csr_product: expected vectors on one device, int64 ones of places; got {dtype_text((<TensorBase>t).dtype)} {shape_text(<TensorBase>t)}")
    if crow.numel == 0 or other_crow.numel == 0 or values.numel != col.numel or other_values.numel != other_col.numel or columns < 0:
        raise RuntimeError(f"_csr_product: {col.numel} and {other_col.numel} places do not fit {values.numel} and {other_values.numel} values")
    if values.dtype != other_values.dtype:
        raise RuntimeError(f"_csr_product: expected both matrices to have the same dtype, got {dtype_text(values.dtype)} and {dtype_text(other_values.dtype)}")
    call.rows, call.right_rows, call.columns, call.left_count, call.right_count = n - 1, other_crow.numel - 1, columns, col.numel, other_col.numel
    call.dtype, call.count, call.counting, call.failed = type_of_loops(values), 0, 0, 0
    left_crow, left_col, right_crow, right_col = contiguous_of(crow), contiguous_of(col), contiguous_of(other_crow), contiguous_of(other_col)
    starts = empty_tensor(1, &n, I64, place_of(values))
    places = []
    run_sparse_count(values.device_type, &call, left_crow, left_col, right_crow, right_col, starts, places)
    found = <TensorBase>places[0] if places else empty_tensor(1, &call.count, I64, place_of(values))
    out = empty_tensor(1, &call.count, call.dtype, place_of(values))
    if call.count:
        run_sparse_fill(values.device_type, &call, left_crow, left_col, contiguous_of(cast_to(values, call.dtype)), right_crow, right_col,
                        contiguous_of(cast_to(other_values, call.dtype)), starts, found, out)
    return starts, found, cast_to(out, values.dtype)


cdef object _csr_merge_kernel(TensorBase crow, TensorBase col, TensorBase other_crow, TensorBase other_col, bint common):
    cdef sparse_merge_call call
    cdef int64_t n = crow.numel, none = 0, most = min(col.numel, other_col.numel)
    cdef TensorBase starts, left, right
    for t in (crow, col, other_crow, other_col):
        if (<TensorBase>t).ndim != 1 or (<TensorBase>t).dtype != I64 or place_of(<TensorBase>t) != place_of(crow):
            raise RuntimeError(f"_csr_merge: expected int64 vectors on one device, got {dtype_text((<TensorBase>t).dtype)} {shape_text(<TensorBase>t)}")
    if n == 0 or other_crow.numel != n:
        raise RuntimeError(f"_csr_merge: expected as many compressed rows in both, got {shape_text(crow)} and {shape_text(other_crow)}")
    call.rows, call.left_count, call.right_count, call.common, call.count, call.ordered = n - 1, col.numel, other_col.numel, common, 0, 1
    starts = empty_tensor(1, &n, I64, place_of(crow))
    left = empty_tensor(1, &most if common else col.sizes, I64, place_of(crow))
    right = empty_tensor(1, &most if common else other_col.sizes, I64, place_of(crow))
    run_sparse_merge(crow.device_type, &call, contiguous_of(crow), contiguous_of(col), contiguous_of(other_crow), contiguous_of(other_col), starts, left, right)
    if not call.ordered:
        starts = empty_tensor(1, &none, I64, place_of(crow))
    return (starts, _ops.narrow(left, 0, 0, call.count), _ops.narrow(right, 0, 0, call.count)) if common else (starts, left, right)
