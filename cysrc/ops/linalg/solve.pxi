# LU, Cholesky and LDL factorisations, what is solved with them, and triangular systems.

# ---- LU ------------------------------------------------------------------------------------------------------------

cdef int lu_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* lu = result_item(w, 0, i)
    take(w, &w.a, i, lu)
    return trt_getrf(w.t, w.m, w.n, lu, <int*>result_item(w, 1, i))


cdef tuple factored(str name, TensorBase A, bint pivot):
    """(LU, pivots, info); flag: without pivots."""
    cdef Job w
    cdef int d = A.ndim - 2
    check_matrix(name, A)
    start(&w, A, A.sizes[d], A.sizes[d + 1], 0)
    lu = result_of(&w, 0, A, A.dtype, d, A.sizes, 2, w.m, w.n)
    pivots = result_of(&w, 1, A, I32, d, A.sizes, 1, min(w.m, w.n), 0)
    info = info_of(&w, A, d, A.sizes)
    if A.device_type != DEV_META:
        stack_of(&w.a, A, 2, d, A.sizes)
        w.flag = not pivot
        run(&w, LU, lu_one, info, <double>w.m * w.n * min(w.m, w.n), A)
    return (lu, pivots, info)


cdef int refuse_without_pivots(str name, TensorBase A, bint pivot) except -1:
    if not pivot and A.device_type == DEV_CPU:
        raise RuntimeError(f"{name}: LU without pivoting is not implemented on the CPU")
    return 0


cdef object linalg_lu_factor_ex_cpu(TensorBase A, bint pivot, bint check_errors, object out, int mode):
    refuse_without_pivots("linalg.lu_factor", A, pivot)
    r = factored("linalg.lu_factor_ex", A, pivot)
    if check_errors:
        raise_info("linalg.lu_factor_ex", FAIL_LU, <TensorBase>r[2])
    return finish_outputs("linalg_lu_factor_ex", r, out, mode)


cdef object linalg_lu_factor_cpu(TensorBase A, bint pivot, object out, int mode):
    lu, pivots, info = op_linalg_lu_factor_ex(A, pivot, False, None, FRESH)
    raise_info("torch.linalg.lu_factor", FAIL_LU, <TensorBase>info)
    return finish_outputs("linalg_lu_factor", (lu, pivots), out, mode)


cdef int lu_solve_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    cdef const char* given = trt_stack_item(&w.c, i, 4)
    cdef int* pivots = <int*>(scratch + w.part[0])
    cdef int64_t j
    for j in range(w.n):
        pivots[j] = (<const int*>given)[j * w.c.rs]
        if pivots[j] < 1 or pivots[j] > w.n:
            return BAD_PIVOTS
    take(w, &w.b, i, x)
    if w.flag:
        conjugate(w, <int64_t>w.n * w.k, x)
    trt_getrs(w.t, w.trans, w.n, w.k, dense_item(w, &w.a, i, scratch + w.part[1]), pivots, x)
    if w.flag:
        conjugate(w, <int64_t>w.n * w.k, x)
    return 0


cdef TensorBase solution_of(Job* w, TensorBase like, bint left, bint vector, int batch_dims, const int64_t* batch):
    """The result of a system: (n, k) column-major, or (k, n) row-major when the unknown stands on the left of the matrix."""
    cdef int64_t sizes[MAX_DIMS]
    cdef TensorBase r
    if left:
        return result_of(w, 0, like, like.dtype, batch_dims, batch, 1 if vector else 2, w.n, w.k)
    memcpy(sizes, batch, batch_dims * sizeof(int64_t))
    sizes[batch_dims] = w.k
    sizes[batch_dims + 1] = w.n
    r = empty_tensor(batch_dims + 2, sizes, like.dtype, place_of(like))
    if like.device_type != DEV_META:
        w.out[0] = data_of(r)
        w.step[0] = <int64_t>w.n * w.k * w.size
    return r


cdef TensorBase linalg_lu_solve_cpu(TensorBase LU, TensorBase pivots, TensorBase B, bint left, bint adjoint, TensorBase out, int mode):
    cdef Job w
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t padded[MAX_DIMS]
    cdef int d = LU.ndim, n, i
    cdef TensorBase r, info
    check_number_type("torch.linalg.lu_solve", LU)
    check_same_type("linalg.lu_solve", LU, B, "LU", "B")
    if pivots.dtype != I32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_square("torch.linalg.lu_solve", LU, "LU")
    check_matrix("torch.linalg.lu_solve", B, "B")
    if B.sizes[B.ndim - 2 if left else B.ndim - 1] != LU.sizes[d - 1]:
        raise RuntimeError(f"linalg.lu_solve: Incompatible shapes of LU and B for the equation {'AX = B' if left else 'XA = B'} "
                           f"({LU.sizes[d - 2]}x{LU.sizes[d - 1]} and {B.sizes[B.ndim - 2]}x{B.sizes[B.ndim - 1]})")
    if pivots.ndim < 1 or pivots.sizes[pivots.ndim - 1] != LU.sizes[d - 1]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if pivots.ndim != d - 1 or batch_differs(pivots, LU, d - 2):
        raise RuntimeError("linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
                           f"{shape_text(pivots)} and LU with shape {shape_text(LU)} instead")
    n = joint_batch("linalg.lu_solve", LU, 2, B, 2, sizes)
    start(&w, LU, LU.sizes[d - 1], LU.sizes[d - 1], B.sizes[B.ndim - 1 if left else B.ndim - 2])
    info = info_of(&w, LU, n, sizes)
    r = solution_of(&w, LU, left, False, n, sizes)
    if LU.device_type != DEV_META:
        stack_of(&w.a, LU, 2, n, sizes)
        stack_of(&w.b, B, 2, n, sizes)
        stack_of(&w.c, pivots, 1, n, sizes)
        if not left:
            transpose_stack(&w.b)
        # X A^H = B is conj(A) X^T = B^T, for which LAPACK has no form
        w.flag = not left and adjoint
        w.trans = b"T" if not left and not adjoint else b"C" if left and adjoint else b"N"
        reserve(&w, 0, <int64_t>w.n * 4)
        reserve(&w, 1, <int64_t>w.n * w.n * w.size)
        run(&w, LU_SOLVE, lu_solve_one, info, <double>w.n * w.n * w.k, LU, B, pivots)
        if LU.device_type == DEV_CPU:  # a device does not wait for the info codes: wrong pivots make NaN
            raise_info("linalg.lu_solve", FAIL_LU, info)
    return finish_output("linalg_lu_solve", r, out, mode)


cdef bint batch_differs(TensorBase a, TensorBase b, int n) noexcept:
    cdef int i
    for i in range(n):
        if a.sizes[i] != b.sizes[i]:
            return True
    return False


cdef int permutation_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef const char* pivots = trt_stack_item(&w.c, i, 4)
    cdef int64_t* order = <int64_t*>result_item(w, 0, i)
    cdef int64_t j, p
    for j in range(w.m):
        order[j] = j
    for j in range(w.n):
        p = (<const int*>pivots)[j * w.c.rs]
        if p < 1 or p > w.m:
            return BAD_PIVOTS
        order[j], order[p - 1] = order[p - 1], order[j]
    return 0


cdef TensorBase _lu_permutation_cpu(TensorBase pivots, int64_t rows):
    """Row swaps in LAPACK's notation as the order in which P L U takes the rows: int64 (*, rows)."""
    cdef Job w
    cdef int d = pivots.ndim - 1
    cdef TensorBase r, info
    if pivots.dtype != I32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
                           "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor")
    if d < 0 or rows < 0 or pivots.sizes[d] > rows:
        raise RuntimeError(f"torch.lu_unpack: pivots of shape {shape_text(pivots)} don't belong to matrices of {rows} rows")
    start(&w, pivots, rows, pivots.sizes[d], 0)
    info = info_of(&w, pivots, d, pivots.sizes)
    r = result_of(&w, 0, pivots, I64, d, pivots.sizes, 1, rows, 0)
    if pivots.device_type != DEV_META:
        stack_of(&w.c, pivots, 1, d, pivots.sizes)
        run(&w, PERMUTATION, permutation_one, info, w.m, pivots)
        if pivots.device_type == DEV_CPU:
            raise_info("torch.lu_unpack", FAIL_LU, info)
    return r


# ---- systems, inverses, determinants -------------------------------------------------------------------------------

cdef int solve_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    cdef char* lu = result_item(w, 1, i)
    cdef int* pivots = <int*>result_item(w, 2, i)
    cdef int info
    take(w, &w.a, i, lu)
    take(w, &w.b, i, x)
    info = trt_getrf(w.t, w.n, w.n, lu, pivots)
    trt_getrs(w.t, w.trans, w.n, w.k, lu, pivots, x)
    return info


cdef bint is_vector_system(TensorBase A, TensorBase B) noexcept:
    """B holds vectors: it is one, or has A's shape without the last dimension."""
    return B.ndim == 1 or A.ndim == B.ndim + 1 and not batch_differs(A, B, B.ndim)


cdef object _linalg_solve_ex_cpu(TensorBase A, TensorBase B, bint left, bint check_errors):
    """(X, LU, pivots, info) with A X = B or, without left, X A = B."""
    cdef Job w
    cdef int64_t sizes[MAX_DIMS]
    cdef int d = A.ndim, n
    cdef bint vector
    cdef TensorBase r, lu, pivots, info
    check_number_type("linalg.solve", A)
    check_same_type("linalg.solve", A, B)
    check_square("linalg.solve", A)
    vector = is_vector_system(A, B)
    if B.ndim == 0:
        raise RuntimeError("linalg.solve: B must have at least one dimension")
    if vector and not left:
        raise RuntimeError("linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)")
    if B.sizes[B.ndim - 1 if vector or not left else B.ndim - 2] != A.sizes[d - 1]:
        raise RuntimeError(f"linalg.solve: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
                           f"({A.sizes[d - 2]}x{A.sizes[d - 1]} and {f'{B.sizes[B.ndim - 1]}x1' if vector else f'{B.sizes[B.ndim - 2]}x{B.sizes[B.ndim - 1]}'})")
    n = joint_batch("linalg.solve", A, 2, B, 1 if vector else 2, sizes)
    start(&w, A, A.sizes[d - 1], A.sizes[d - 1], 1 if vector else B.sizes[B.ndim - 1 if left else B.ndim - 2])
    info = info_of(&w, A, n, sizes)
    r = solution_of(&w, A, left, vector, n, sizes)
    lu = result_of(&w, 1, A, A.dtype, n, sizes, 2, w.n, w.n)
    pivots = result_of(&w, 2, A, I32, n, sizes, 1, w.n, 0)
    if A.device_type != DEV_META:
        stack_of(&w.a, A, 2, n, sizes)
        stack_of(&w.b, B, 1 if vector else 2, n, sizes)
        if not left:
            transpose_stack(&w.b)
        w.trans = b"N" if left else b"T"
        run(&w, SOLVE, solve_one, info, <double>w.n * w.n * (w.n + w.k), A, B)
        if check_errors:
            raise_info("torch.linalg.solve_ex", FAIL_SOLVE, info)
    return (r, lu, pivots, info)


cdef object linalg_solve_ex_cpu(TensorBase A, TensorBase B, bint left, bint check_errors, object out, int mode):
    r = op__linalg_solve_ex(A, B, left, check_errors)
    return finish_outputs("linalg_solve_ex", (r[0], r[3]), out, mode)


cdef TensorBase linalg_solve_cpu(TensorBase A, TensorBase B, bint left, TensorBase out, int mode):
    r = op__linalg_solve_ex(A, B, left, False)
    raise_info("torch.linalg.solve", FAIL_SOLVE, <TensorBase>r[3])
    return finish_output("linalg_solve", <TensorBase>r[0], out, mode)


cdef int inverse_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    cdef int* pivots = <int*>(scratch + w.part[1])
    cdef int info
    take(w, &w.a, i, x)
    info = trt_getrf(w.t, w.n, w.n, x, pivots)
    if info == 0:
        trt_getri(w.t, w.n, x, pivots, scratch, w.lwork)
    return info


cdef object linalg_inv_ex_cpu(TensorBase A, bint check_errors, object out, int mode):
    cdef Job w
    cdef int d = A.ndim - 2
    cdef TensorBase r, info
    check_square("linalg.inv", A)
    start(&w, A, A.sizes[d], A.sizes[d], 0)
    info = info_of(&w, A, d, A.sizes)
    r = result_of(&w, 0, A, A.dtype, d, A.sizes, 2, w.n, w.n)
    if A.device_type != DEV_META:
        stack_of(&w.a, A, 2, d, A.sizes)
        w.lwork = workspace(w.n)
        reserve(&w, 0, <int64_t>w.lwork * w.size)
        reserve(&w, 1, <int64_t>w.n * 4)
        run(&w, INVERSE, inverse_one, info, 2.0 * w.n * w.n * w.n, A)
        if check_errors:
            raise_info("linalg.inv_ex", FAIL_INVERSE, info)
    return finish_outputs("linalg_inv_ex", (r, info), out, mode)


cdef TensorBase inverse_of(str name, TensorBase A, TensorBase out, int mode):
    r = op_linalg_inv_ex(A, False, None, FRESH)
    raise_info("linalg.inv", FAIL_INVERSE, <TensorBase>r[1])
    return finish_output(name, <TensorBase>r[0], out, mode)


cdef TensorBase linalg_inv_cpu(TensorBase A, TensorBase out, int mode):
    return inverse_of("linalg_inv", A, out, mode)


cdef TensorBase inverse_cpu(TensorBase self, TensorBase out, int mode):
    return inverse_of("inverse", self, out, mode)


cdef int det_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    """The determinant, or its sign and logarithm (flag), from the factors."""
    cdef double re = 1, im = 0, total = 0, x, size
    cdef double d[2]
    cdef int64_t j
    cdef int* pivots = <int*>result_item(w, 1, i)
    cdef int info = lu_one(w, i, scratch)
    for j in range(w.n):
        trt_diagonal_item(w.t, result_item(w, 0, i), w.n, j, d)
        if pivots[j] != j + 1:
            d[0] = -d[0]
            d[1] = -d[1]
        if w.flag:
            size = hypot(d[0], d[1])
            total += log(size)
            if size > 0:
                d[0] /= size
                d[1] /= size
        if w.t < 2:
            re *= d[0]
            if w.t == 0 and not w.flag:
                re = <float>re
        else:
            x = re * d[0] - im * d[1]
            im = re * d[1] + im * d[0]
            re = x
    trt_put(w.t, w.out[2], i, re, im)
    if w.flag:
        trt_put(w.t & 1, w.out[3], i, total, 0)
    return 0


cdef tuple determinants(str name, TensorBase A, bint logarithm):
    """(det or sign, logabsdet or None, LU, pivots)."""
    cdef Job w
    cdef int d = A.ndim - 2
    cdef TensorBase r, log_of = None, lu, pivots, info
    check_square(name, A)
    start(&w, A, A.sizes[d], A.sizes[d], 0)
    info = info_of(&w, A, d, A.sizes)
    lu = result_of(&w, 0, A, A.dtype, d, A.sizes, 2, w.n, w.n)
    pivots = result_of(&w, 1, A, I32, d, A.sizes, 1, w.n, 0)
    r = result_of(&w, 2, A, A.dtype, d, A.sizes, 0, 0, 0)
    if logarithm:
        log_of = result_of(&w, 3, A, to_real(A.dtype), d, A.sizes, 0, 0, 0)
    if A.device_type != DEV_META:
        stack_of(&w.a, A, 2, d, A.sizes)
        w.flag = logarithm
        run(&w, DETERMINANT, det_one, info, <double>w.n * w.n * w.n, A)
    return (r, log_of, lu, pivots)


cdef object _linalg_det_cpu(TensorBase A):
    r = determinants("linalg.det", A, False)
    return (r[0], r[2], r[3])


cdef object _linalg_slogdet_cpu(TensorBase A):
    return determinants("linalg.slogdet", A, True)


cdef TensorBase linalg_det_cpu(TensorBase A, TensorBase out, int mode):
    return finish_output("linalg_det", <TensorBase>op__linalg_det(A)[0], out, mode)


cdef TensorBase det_cpu(TensorBase self):
    return <TensorBase>op__linalg_det(self)[0]


cdef object linalg_slogdet_cpu(TensorBase A, object out, int mode):
    r = op__linalg_slogdet(A)
    return finish_outputs("linalg_slogdet", (r[0], r[1]), out, mode)


cdef object slogdet_cpu(TensorBase self, object out, int mode):
    return linalg_slogdet_cpu(self, out, mode)


cdef TensorBase logdet_cpu(TensorBase self):
    """log(det): NaN where a real determinant is negative."""
    r = op__linalg_slogdet(self)
    if category[self.dtype] == CAT_COMPLEX:
        return <TensorBase?>(_ops.log(r[0]) + r[1])
    return <TensorBase?>_ops.where(r[0] == -1, float("nan"), r[1])


# ---- Cholesky ------------------------------------------------------------------------------------------------------

cdef int cholesky_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    take(w, &w.a, i, x)
    trt_clear_triangle(w.size, w.n, x, w.uplo == b"L")
    return trt_potrf(w.t, w.uplo, w.n, x)


cdef object linalg_cholesky_ex_cpu(TensorBase self, bint upper, bint check_errors, object out, int mode):
    cdef Job w
    cdef int d = self.ndim - 2
    cdef TensorBase r, info
    check_square("linalg.cholesky", self)
    start(&w, self, self.sizes[d], self.sizes[d], 0)
    info = info_of(&w, self, d, self.sizes)
    r = result_of(&w, 0, self, self.dtype, d, self.sizes, 2, w.n, w.n)
    if self.device_type != DEV_META:
        stack_of(&w.a, self, 2, d, self.sizes)
        w.uplo = b"U" if upper else b"L"
        run(&w, CHOLESKY, cholesky_one, info, <double>w.n * w.n * w.n / 3, self)
        if check_errors:
            raise_info("torch.linalg.cholesky_ex", FAIL_CHOLESKY, info)
    return finish_outputs("linalg_cholesky_ex", (r, info), out, mode)


cdef TensorBase cholesky_of(str name, TensorBase self, bint upper, TensorBase out, int mode, bint exact):
    r = op_linalg_cholesky_ex(self, upper, False, None, FRESH)
    raise_info("linalg.cholesky" if exact else "cholesky", FAIL_CHOLESKY, <TensorBase>r[1])
    return finish_output(name, <TensorBase>r[0], out, mode, exact)


cdef TensorBase linalg_cholesky_cpu(TensorBase self, bint upper, TensorBase out, int mode):
    return cholesky_of("linalg_cholesky", self, upper, out, mode, True)


cdef TensorBase cholesky_cpu(TensorBase self, bint upper, TensorBase out, int mode):
    return cholesky_of("cholesky", self, upper, out, mode, False)


cdef int cholesky_solve_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    take(w, &w.b, i, x)
    return trt_potrs(w.t, w.uplo, w.n, w.k, dense_item(w, &w.a, i, scratch), x)


cdef TensorBase cholesky_solve_cpu(TensorBase self, TensorBase input2, bint upper, TensorBase out, int mode):
    """X with A X = self, where A = input2 input2^H (upper: input2^H input2)."""
    cdef Job w
    cdef int64_t sizes[MAX_DIMS]
    cdef int d = input2.ndim, n
    cdef TensorBase r, info
    if self.ndim < 2 or d < 2:
        raise RuntimeError(f"{'b' if self.ndim < 2 else 'u'} should have at least 2 dimensions, but has {self.ndim if self.ndim < 2 else d} dimensions instead")
    check_number_type("cholesky_solve", input2)
    check_same_type("cholesky_solve", input2, self, "A", "b")
    check_square("cholesky_solve", input2)
    if self.sizes[self.ndim - 2] != input2.sizes[d - 1]:
        raise RuntimeError(f"Incompatible matrix sizes for cholesky_solve: each A matrix is {input2.sizes[d - 1]} by {input2.sizes[d - 1]} but each b matrix is "
                           f"{self.sizes[self.ndim - 2]} by {self.sizes[self.ndim - 1]}")
    n = joint_batch("cholesky_solve", input2, 2, self, 2, sizes)
    start(&w, self, input2.sizes[d - 1], input2.sizes[d - 1], self.sizes[self.ndim - 1])
    info = info_of(&w, self, n, sizes)
    r = result_of(&w, 0, self, self.dtype, n, sizes, 2, w.n, w.k)
    if self.device_type != DEV_META:
        stack_of(&w.a, input2, 2, n, sizes)
        stack_of(&w.b, self, 2, n, sizes)
        w.uplo = b"U" if upper else b"L"
        w.scratch = <int64_t>w.n * w.n * w.size + 1
        run(&w, CHOLESKY_SOLVE, cholesky_solve_one, info, <double>w.n * w.n * w.k, input2, self)
    return finish_output("cholesky_solve", r, out, mode, False)


cdef int cholesky_inverse_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    cdef int64_t j, n = w.n
    cdef int info
    take(w, &w.a, i, x)
    info = trt_potri(w.t, w.uplo, w.n, x)
    # mirrors the computed triangle: column j of the lower one becomes row j
    for j in range(n):
        if w.uplo == b"L":
            trt_copy_matrix(w.size, n - j - 1, 1, x + (j + (j + 1) * n) * w.size, n, n, x + (j * n + j + 1) * w.size, 1, n)
            if w.t >= 2:
                conjugate_line(w, n - j - 1, x + (j + (j + 1) * n) * w.size, n)
        else:
            trt_copy_matrix(w.size, j, 1, x + j * w.size, n, n, x + j * n * w.size, 1, n)
            if w.t >= 2:
                conjugate_line(w, j, x + j * w.size, n)
    return info


cdef inline void conjugate_line(Job* w, int64_t count, char* x, int64_t stride) noexcept nogil:
    cdef int64_t i
    for i in range(count):
        conjugate(w, 1, x + i * stride * w.size)


cdef TensorBase cholesky_inverse_cpu(TensorBase self, bint upper, TensorBase out, int mode):
    """The inverse of self self^H (upper: self^H self)."""
    cdef Job w
    cdef int d = self.ndim - 2
    cdef TensorBase r, info
    check_square("cholesky_inverse", self)
    start(&w, self, self.sizes[d], self.sizes[d], 0)
    info = info_of(&w, self, d, self.sizes)
    r = result_of(&w, 0, self, self.dtype, d, self.sizes, 2, w.n, w.n)
    if self.device_type != DEV_META:
        stack_of(&w.a, self, 2, d, self.sizes)
        w.uplo = b"U" if upper else b"L"
        run(&w, CHOLESKY_INVERSE, cholesky_inverse_one, info, <double>w.n * w.n * w.n, self)
        raise_info("cholesky_inverse", FAIL_INVERSE, info)
    return finish_output("cholesky_inverse", r, out, mode, False)


# ---- triangular systems --------------------------------------------------------------------------------------------

cdef int triangular_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    take(w, &w.b, i, x)
    trt_trsm(w.t, w.side, w.uplo, w.trans, w.diag, w.m, w.k, dense_item(w, &w.a, i, scratch), x)
    return 0


cdef TensorBase linalg_solve_triangular_cpu(TensorBase self, TensorBase B, bint upper, bint left, bint unitriangular, TensorBase out, int mode):
    cdef Job w
    cdef int64_t sizes[MAX_DIMS]
    cdef int d = self.ndim, n
    cdef int64_t rows, cols
    cdef TensorBase r, info
    check_number_type("linalg.solve_triangular", self)
    check_same_type("linalg.solve_triangular", self, B)
    check_square("linalg.solve_triangular", self)
    check_matrix("linalg.solve_triangular", B, "B")
    rows = B.sizes[B.ndim - 2]
    cols = B.sizes[B.ndim - 1]
    if (rows if left else cols) != self.sizes[d - 1]:
        raise RuntimeError(f"linalg.solve_triangular: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
                           f"({self.sizes[d - 2]}x{self.sizes[d - 1]} and {rows}x{cols})")
    n = joint_batch("linalg.solve_triangular", self, 2, B, 2, sizes)
    start(&w, self, rows, self.sizes[d - 1], cols)
    info = info_of(&w, self, n, sizes)
    r = result_of(&w, 0, self, self.dtype, n, sizes, 2, rows, cols)
    if self.device_type != DEV_META and r.numel:
        stack_of(&w.a, self, 2, n, sizes)
        stack_of(&w.b, B, 2, n, sizes)
        w.side = b"L" if left else b"R"
        w.uplo = b"U" if upper else b"L"
        w.diag = b"U" if unitriangular else b"N"
        w.trans = b"N"
        if w.a.cs == 1 and w.a.rs == w.a.cols:
            # a row-major matrix is its transpose to LAPACK: no copy
            transpose_stack(&w.a)
            w.uplo = b"L" if upper else b"U"
            w.trans = b"T"
        w.scratch = <int64_t>w.n * w.n * w.size
        run(&w, TRIANGULAR, triangular_one, info, <double>w.n * w.m * w.k, self, B)
    return finish_output("linalg_solve_triangular", r, out, mode)


# ---- LDL -----------------------------------------------------------------------------------------------------------

cdef int ldl_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    take(w, &w.a, i, x)
    trt_clear_triangle(w.size, w.n, x, 1)
    return trt_ldl_factor(w.t, w.flag, w.n, x, <int*>result_item(w, 1, i), scratch, w.lwork)


cdef tuple ldl_factored(TensorBase self, bint hermitian):
    cdef Job w
    cdef int d = self.ndim - 2
    check_square("torch.linalg.ldl_factor_ex", self)
    start(&w, self, self.sizes[d], self.sizes[d], 0)
    info = info_of(&w, self, d, self.sizes)
    ld = result_of(&w, 0, self, self.dtype, d, self.sizes, 2, w.n, w.n)
    pivots = result_of(&w, 1, self, I32, d, self.sizes, 1, w.n, 0)
    if self.device_type != DEV_META:
        stack_of(&w.a, self, 2, d, self.sizes)
        w.flag = hermitian
        w.lwork = workspace(w.n)
        w.scratch = <int64_t>w.lwork * w.size
        run(&w, LDL, ldl_one, info, <double>w.n * w.n * w.n / 3, self)
    return (ld, pivots, info)


cdef object linalg_ldl_factor_ex_cpu(TensorBase self, bint hermitian, bint check_errors, object out, int mode):
    r = ldl_factored(self, hermitian)
    if check_errors:
        raise_info("torch.linalg.ldl_factor_ex", FAIL_LDL, <TensorBase>r[2])
    return finish_outputs("linalg_ldl_factor_ex", r, out, mode)


cdef object linalg_ldl_factor_cpu(TensorBase self, bint hermitian, object out, int mode):
    ld, pivots, info = op_linalg_ldl_factor_ex(self, hermitian, False, None, FRESH)
    raise_info("torch.linalg.ldl_factor", FAIL_LDL, <TensorBase>info)
    return finish_outputs("linalg_ldl_factor", (ld, pivots), out, mode)


cdef int ldl_solve_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* x = result_item(w, 0, i)
    cdef const char* given = trt_stack_item(&w.c, i, 4)
    cdef int* pivots = <int*>(scratch + w.part[0])
    cdef int64_t j = 0
    for j in range(w.n):
        pivots[j] = (<const int*>given)[j * w.c.rs]
        if pivots[j] == 0 or pivots[j] > w.n or pivots[j] < -w.n:
            return BAD_PIVOTS
    j = 0
    while j < w.n:                       # a negative pivot belongs to a block of two rows
        if pivots[j] < 0:
            j += 1
            if j >= w.n or pivots[j] != pivots[j - 1]:
                return BAD_PIVOTS
        j += 1
    take(w, &w.b, i, x)
    return trt_ldl_solve(w.t, w.flag, w.n, w.k, dense_item(w, &w.a, i, scratch + w.part[1]), pivots, x)


cdef TensorBase linalg_ldl_solve_cpu(TensorBase LD, TensorBase pivots, TensorBase B, bint hermitian, TensorBase out, int mode):
    cdef Job w
    cdef int64_t sizes[MAX_DIMS]
    cdef int d = LD.ndim, n
    cdef TensorBase r, info
    check_square("torch.linalg.ldl_solve", LD, "LD")
    check_matrix("torch.linalg.ldl_solve", B, "B")
    check_same_type("torch.linalg.ldl_solve", LD, B, "LD", "B")
    if pivots.dtype != I32:
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected pivots to be integers. Got {dtype_text(pivots.dtype)}")
    if B.sizes[B.ndim - 2] != LD.sizes[d - 1]:
        raise RuntimeError(f"torch.linalg.ldl_solve: Incompatible shapes of LD ({LD.sizes[d - 1]}x{LD.sizes[d - 1]}) and B ({B.sizes[B.ndim - 2]}x{B.sizes[B.ndim - 1]})")
    if pivots.ndim != d - 1 or batch_differs(pivots, LD, d - 1):
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {shape_text(pivots)} "
                           f"and LD with shape {shape_text(LD)} instead.")
    n = joint_batch("torch.linalg.ldl_solve", LD, 2, B, 2, sizes)
    start(&w, LD, LD.sizes[d - 1], LD.sizes[d - 1], B.sizes[B.ndim - 1])
    info = info_of(&w, LD, n, sizes)
    r = result_of(&w, 0, LD, LD.dtype, n, sizes, 2, w.n, w.k)
    if LD.device_type != DEV_META:
        stack_of(&w.a, LD, 2, n, sizes)
        stack_of(&w.b, B, 2, n, sizes)
        stack_of(&w.c, pivots, 1, n, sizes)
        w.flag = hermitian
        reserve(&w, 0, <int64_t>w.n * 4)
        reserve(&w, 1, <int64_t>w.n * w.n * w.size)
        run(&w, LDL_SOLVE, ldl_solve_one, info, <double>w.n * w.n * w.k, LD, B, pivots)
        if LD.device_type == DEV_CPU:
            raise_info("torch.linalg.ldl_solve", FAIL_LDL, info)
    return finish_output("linalg_ldl_solve", r, out, mode)
