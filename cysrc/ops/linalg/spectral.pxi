# QR and Householder reflections, eigenvalues, singular values, least squares.

cdef TensorBase computed_in(TensorBase t, TensorBase out):
    """A factorisation is computed in the precision of `out` where that is the higher one."""
    if ITEM_SIZE[out.dtype] > ITEM_SIZE[t.dtype] and category[t.dtype] == category[out.dtype] and is_blas_type(t.dtype):
        return <TensorBase?>t.to(dtype_of(out.dtype))
    return t


cdef bint vectors_needed(TensorBase t) noexcept:
    """Whether values alone will be differentiated, which takes the vectors."""
    return t.requires_grad and grad_mode() or t.keys & K_FORWARD_AD != 0


# ---- QR ------------------------------------------------------------------------------------------------------------

cdef int qr_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* a = scratch + w.part[0]
    cdef char* tau = scratch + w.part[1]
    cdef char* work = scratch + w.part[2]
    cdef char* q = result_item(w, 0, i)
    cdef char* r = result_item(w, 1, i)
    cdef int64_t c, rows = w.k, size = w.size
    cdef int info
    take(w, &w.a, i, a)
    info = trt_geqrf(w.t, w.m, w.n, a, tau, work, w.lwork)
    for c in range(w.n):
        memcpy(r + c * rows * size, a + c * w.m * size, min(c + 1, rows) * size)
        if c + 1 < rows:
            memset(r + (c * rows + c + 1) * size, 0, (rows - c - 1) * size)
    if w.flag and info == 0:
        memcpy(q, a, <int64_t>w.m * min(w.n, w.k) * size)
        info = trt_orgqr(w.t, w.m, w.k, min(w.m, w.n), q, tau, work, w.lwork)
    return info


cdef object _linalg_qr_cpu(TensorBase A, object kind):
    """(Q, R); k: columns of Q and rows of R, flag: Q is wanted."""
    cdef Job w
    cdef int d = A.ndim - 2
    cdef TensorBase q, r, info
    cdef int64_t columns
    if kind not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{kind}' but expected one of 'reduced' (default), 'r', or 'complete'")
    check_matrix("linalg.qr", A)
    start(&w, A, A.sizes[d], A.sizes[d + 1], A.sizes[d] if kind == "complete" else min(A.sizes[d], A.sizes[d + 1]))
    info = info_of(&w, A, d, A.sizes)
    r = result_of(&w, 1, A, A.dtype, d, A.sizes, 2, w.k, w.n)
    if kind == "r":
        columns = 0
        q = empty_tensor(1, &columns, A.dtype, place_of(A))
    else:
        q = result_of(&w, 0, A, A.dtype, d, A.sizes, 2, w.m, w.k)
    if A.device_type != DEV_META:
        stack_of(&w.a, A, 2, d, A.sizes)
        w.flag = kind != "r"
        if not w.flag:
            w.out[0] = NULL
            w.step[0] = 0
        columns = max(w.n, w.k)
        w.lwork = workspace(columns)
        reserve(&w, 0, <int64_t>w.m * w.n * w.size)
        reserve(&w, 1, <int64_t>min(w.m, w.n) * w.size)
        reserve(&w, 2, <int64_t>w.lwork * w.size)
        run(&w, QR, qr_one, info, 2.0 * w.m * columns * min(w.m, w.n), A)
    return (q, r)


cdef int geqrf_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* a = result_item(w, 0, i)
    take(w, &w.a, i, a)
    return trt_geqrf(w.t, w.m, w.n, a, result_item(w, 1, i), scratch, w.lwork)


cdef object geqrf_cpu(TensorBase self, object out, int mode):
    cdef Job w
    cdef int d = self.ndim - 2
    cdef TensorBase a, tau, info
    if mode == OUT:
        self = computed_in(self, <TensorBase>out[0])
    check_matrix("geqrf", self, "input")
    start(&w, self, self.sizes[d], self.sizes[d + 1], 0)
    info = info_of(&w, self, d, self.sizes)
    a = result_of(&w, 0, self, self.dtype, d, self.sizes, 2, w.m, w.n)
    tau = result_of(&w, 1, self, self.dtype, d, self.sizes, 1, min(w.m, w.n), 0)
    if self.device_type != DEV_META:
        stack_of(&w.a, self, 2, d, self.sizes)
        w.lwork = workspace(w.n)
        w.scratch = <int64_t>w.lwork * w.size
        run(&w, GEQRF, geqrf_one, info, 2.0 * w.m * w.n * min(w.m, w.n), self)
    return finish_outputs("geqrf", (a, tau), out, mode, False)


cdef int householder_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* q = result_item(w, 0, i)
    take(w, &w.a, i, q)
    take(w, &w.b, i, scratch + w.part[1])
    return trt_orgqr(w.t, w.m, w.n, w.k, q, scratch + w.part[1], scratch + w.part[0], w.lwork)


cdef TensorBase linalg_householder_product_cpu(TensorBase input, TensorBase tau, TensorBase out, int mode):
    cdef Job w
    cdef int d = input.ndim - 2
    cdef TensorBase r, info
    if mode == OUT:
        input = computed_in(input, out)
        tau = computed_in(tau, out)
    if d < 0:
        raise RuntimeError("torch.linalg.householder_product: input must have at least 2 dimensions.")
    if input.sizes[d] < input.sizes[d + 1]:
        raise RuntimeError("torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if tau.ndim < 1 or input.sizes[d + 1] < tau.sizes[tau.ndim - 1]:
        raise RuntimeError("torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if tau.ndim != d + 1 or batch_differs(tau, input, d):
        raise RuntimeError(f"torch.linalg.householder_product: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {shape_text(tau)} for input of shape {shape_text(input)}")
    check_number_type("torch.linalg.householder_product", input)
    if input.dtype != tau.dtype:
        raise RuntimeError(f"torch.linalg.householder_product: tau dtype {dtype_text(tau.dtype)} does not match input dtype {dtype_text(input.dtype)}")
    start(&w, input, input.sizes[d], input.sizes[d + 1], tau.sizes[d])
    info = info_of(&w, input, d, input.sizes)
    r = result_of(&w, 0, input, input.dtype, d, input.sizes, 2, w.m, w.n)
    if input.device_type != DEV_META and r.numel:
        stack_of(&w.a, input, 2, d, input.sizes)
        stack_of(&w.b, tau, 1, d, input.sizes)
        w.lwork = workspace(w.n)
        reserve(&w, 0, <int64_t>w.lwork * w.size)
        reserve(&w, 1, <int64_t>w.k * w.size)
        run(&w, HOUSEHOLDER, householder_one, info, 2.0 * w.m * w.n * w.k, input, tau)
    return finish_output("linalg_householder_product", r, out, mode, False)


cdef TensorBase orgqr_cpu(TensorBase self, TensorBase input2, TensorBase out, int mode):
    return op_linalg_householder_product(self, input2, out, mode)


cdef int ormqr_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* c = result_item(w, 0, i)
    take(w, &w.b, i, scratch + w.part[1])
    take(w, &w.c, i, c)
    return trt_ormqr(w.t, w.side, w.trans, w.m, w.n, w.k, dense_item(w, &w.a, i, scratch + w.part[2]), scratch + w.part[1], c, scratch + w.part[0], w.lwork)


cdef TensorBase ormqr_cpu(TensorBase self, TensorBase input2, TensorBase input3, bint left, bint transpose, TensorBase out, int mode):
    cdef Job w
    cdef int d = input3.ndim - 2, side = d if left else d + 1
    cdef TensorBase r, info
    if self.ndim < 2:
        raise RuntimeError("torch.ormqr: input must have at least 2 dimensions.")
    if d < 0:
        raise RuntimeError("torch.ormqr: other must have at least 2 dimensions.")
    if input2.ndim < 1 or input2.sizes[input2.ndim - 1] > input3.sizes[side]:
        raise RuntimeError(f"torch.ormqr: other.shape[{-2 if left else -1}] must be greater than or equal to tau.shape[-1]")
    if self.sizes[self.ndim - 2] != input3.sizes[side]:
        raise RuntimeError(f"torch.ormqr: other.shape[{-2 if left else -1}] must be equal to input.shape[-2]")
    if input2.sizes[input2.ndim - 1] > self.sizes[self.ndim - 1]:
        raise RuntimeError("torch.ormqr: tau.shape[-1] must be less than or equal to input.shape[-1]")
    if input2.ndim != self.ndim - 1:
        raise RuntimeError("torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim equal to "
                           f"{input2.ndim} and input.ndim is equal to {self.ndim}")
    if input3.ndim != self.ndim:
        raise RuntimeError(f"torch.ormqr: Expected other to have the same number of dimensions as input, but got other.ndim equal to {input3.ndim} and input.ndim is equal to {self.ndim}")
    if batch_differs(input2, self, d):
        raise RuntimeError(f"torch.ormqr: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {shape_text(input2)}")
    if batch_differs(input3, self, d):
        raise RuntimeError(f"torch.ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], but got {shape_text(input3)}")
    check_number_type("torch.ormqr", self)
    if input2.dtype != self.dtype or input3.dtype != self.dtype:
        raise RuntimeError(f"torch.ormqr: Expected input, tau and other to have the same dtype, but got {dtype_text(self.dtype)}, {dtype_text(input2.dtype)} and {dtype_text(input3.dtype)}")
    start(&w, self, input3.sizes[d], input3.sizes[d + 1], input2.sizes[d])
    info = info_of(&w, self, d, self.sizes)
    r = result_of(&w, 0, self, self.dtype, d, self.sizes, 2, w.m, w.n)
    if self.device_type != DEV_META and r.numel:
        stack_of(&w.a, self, 2, d, self.sizes)
        w.a.cols = w.k
        stack_of(&w.b, input2, 1, d, self.sizes)
        stack_of(&w.c, input3, 2, d, self.sizes)
        w.side = b"L" if left else b"R"
        w.trans = b"N" if not transpose else b"C" if w.t >= 2 else b"T"
        w.lwork = workspace(w.n if left else w.m) + BLOCK * (BLOCK + 1)
        reserve(&w, 0, <int64_t>w.lwork * w.size)
        reserve(&w, 1, <int64_t>w.k * w.size)
        reserve(&w, 2, input3.sizes[side] * w.k * w.size)
        run(&w, ORMQR, ormqr_one, info, 2.0 * w.m * w.n * w.k, self, input2, input3)
    return finish_output("ormqr", r, out, mode)


# ---- eigenvalues ---------------------------------------------------------------------------------------------------

cdef int eigh_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* v = result_item(w, 1, i) if w.flag else scratch + w.part[3]
    take(w, &w.a, i, v)
    if not trt_all_finite(w.t, <int64_t>w.n * w.n, v):
        return NOT_FINITE
    return trt_syevd(w.t, b"V" if w.flag else b"N", w.uplo, w.n, v, result_item(w, 0, i), scratch + w.part[0], w.lwork, scratch + w.part[1], w.k,
                     <int*>(scratch + w.part[2]), w.liwork)


cdef object _linalg_eigh_cpu(TensorBase A, object UPLO, bint compute_v):
    """(eigenvalues ascending, vectors); the vectors have no elements without compute_v."""
    cdef Job w
    cdef int d = A.ndim - 2
    cdef int64_t n, nothing = 0
    cdef TensorBase values, vectors, info
    check_square("linalg.eigh", A)
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    start(&w, A, A.sizes[d], A.sizes[d], 0)
    n = w.n
    info = info_of(&w, A, d, A.sizes)
    values = result_of(&w, 0, A, to_real(A.dtype), d, A.sizes, 1, n, 0)
    vectors = result_of(&w, 1, A, A.dtype, d, A.sizes, 2, n, n) if compute_v else empty_tensor(1, &nothing, A.dtype, place_of(A))
    if A.device_type != DEV_META and n:
        stack_of(&w.a, A, 2, d, A.sizes)
        w.flag = compute_v
        w.uplo = b"U" if UPLO in ("U", "u") else b"L"
        # what the documentation of syevd and heevd asks for, and room for blocks in the reduction to tridiagonal form
        w.lwork = in_int(n * (BLOCK + 2) + (n * (2 * n + 6) + 1 if compute_v and w.t < 2 else n * n if compute_v else 0))
        w.k = in_int(1 + 5 * n + 2 * n * n if compute_v else n)
        w.liwork = in_int(3 + 5 * n)
        reserve(&w, 0, <int64_t>w.lwork * w.size)
        reserve(&w, 1, <int64_t>w.k * w.size if w.t >= 2 else 0)
        reserve(&w, 2, <int64_t>w.liwork * 4)
        reserve(&w, 3, n * n * w.size if not compute_v else 0)
        run(&w, EIGH, eigh_one, info, 4.0 * n * n * n, A)
        raise_info("linalg.eigh" if compute_v else "linalg.eigvalsh", FAIL_EIGEN, info)
    return (values, vectors)


cdef object linalg_eigh_cpu(TensorBase A, object UPLO, object out, int mode):
    return finish_outputs("linalg_eigh", op__linalg_eigh(A, UPLO, True), out, mode)


cdef TensorBase linalg_eigvalsh_cpu(TensorBase A, object UPLO, TensorBase out, int mode):
    # the derivative needs the vectors
    return finish_output("linalg_eigvalsh", <TensorBase>op__linalg_eigh(A, UPLO, vectors_needed(A))[0], out, mode)


cdef int eig_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* a = scratch + w.part[0]
    cdef char* values = result_item(w, 0, i)
    cdef char* vectors = result_item(w, 1, i) if w.flag else NULL
    cdef char* real_values = scratch + w.part[2]
    cdef char* real_vectors = scratch + w.part[3]
    cdef int64_t n = w.n, j, r
    cdef int info
    cdef bint pair
    take(w, &w.a, i, a)
    if not trt_all_finite(w.t, n * n, a):
        return NOT_FINITE
    if w.t >= 2:
        return trt_geev(w.t, b"V" if w.flag else b"N", w.n, a, values, vectors if w.flag else a, scratch + w.part[1], w.lwork, real_values)
    info = trt_geev(w.t, b"V" if w.flag else b"N", w.n, a, real_values, real_vectors, scratch + w.part[1], w.lwork, NULL)
    # two columns hold the real and the imaginary parts of a pair of conjugate vectors
    j = 0
    while j < n:
        pair = real_item(w, real_values, n + j) != 0 and j + 1 < n
        trt_put(w.t + 2, values, j, real_item(w, real_values, j), real_item(w, real_values, n + j))
        if pair:
            trt_put(w.t + 2, values, j + 1, real_item(w, real_values, j + 1), real_item(w, real_values, n + j + 1))
        if w.flag:
            for r in range(n):
                if pair:
                    trt_put(w.t + 2, vectors, j * n + r, real_item(w, real_vectors, j * n + r), real_item(w, real_vectors, (j + 1) * n + r))
                    trt_put(w.t + 2, vectors, (j + 1) * n + r, real_item(w, real_vectors, j * n + r), -real_item(w, real_vectors, (j + 1) * n + r))
                else:
                    trt_put(w.t + 2, vectors, j * n + r, real_item(w, real_vectors, j * n + r), 0)
        j += 2 if pair else 1
    return info


cdef inline double real_item(Job* w, const char* x, int64_t i) noexcept nogil:
    return (<const double*>x)[i] if w.t & 1 else <double>(<const float*>x)[i]


cdef object _linalg_eig_cpu(TensorBase A, bint compute_v):
    """(eigenvalues, vectors), complex; the vectors have no elements without compute_v."""
    cdef Job w
    cdef int d = A.ndim - 2, code = to_complex(A.dtype)
    cdef int64_t n, nothing = 0
    cdef double size[2]
    cdef double real_size[2]
    cdef TensorBase values, vectors, info
    A = held(A)   # the workspace query of LAPACK releases the GIL
    check_square("linalg.eig", A)
    start(&w, A, A.sizes[d], A.sizes[d], 0)
    n = w.n
    info = info_of(&w, A, d, A.sizes)
    values = result_of(&w, 0, A, code, d, A.sizes, 1, n, 0)
    vectors = result_of(&w, 1, A, code, d, A.sizes, 2, n, n) if compute_v else empty_tensor(1, &nothing, code, place_of(A))
    if A.device_type != DEV_META and n and w.count:
        stack_of(&w.a, A, 2, d, A.sizes)
        w.flag = compute_v
        if A.device_type == DEV_CPU:
            load_lapack()
            with nogil:
                blas_begin(1)
                trt_geev(w.t, b"V" if w.flag else b"N", w.n, NULL, NULL, NULL, size, -1, real_size)
                blas_end()
            w.lwork = trt_work_size(w.t, size)
        reserve(&w, 0, n * n * w.size)
        reserve(&w, 1, <int64_t>w.lwork * w.size)
        reserve(&w, 2, 2 * n * w.size)
        reserve(&w, 3, n * n * w.size if w.t < 2 else 0)
        run(&w, EIG, eig_one, info, 10.0 * n * n * n, A)
        info = <TensorBase?>info.cpu()
        for i in range(w.count):
            if (<int*>data_of(info))[i] == NOT_FINITE:
                raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
        raise_info("torch.linalg.eig" if compute_v else "torch.linalg.eigvals", FAIL_EIGEN, info)
    return (values, vectors)


cdef object linalg_eig_cpu(TensorBase A, object out, int mode):
    return finish_outputs("linalg_eig", op__linalg_eig(A, True), out, mode, False)


cdef TensorBase linalg_eigvals_cpu(TensorBase A, TensorBase out, int mode):
    return finish_output("linalg_eigvals", <TensorBase>op__linalg_eig(A, vectors_needed(A))[0], out, mode, False)


# ---- singular values -----------------------------------------------------------------------------------------------

cdef int svd_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    cdef char* a = scratch + w.part[0]
    cdef int64_t k = min(w.m, w.n), columns = 0 if w.flag == 0 else w.m if w.flag == 2 else k
    cdef int info
    take(w, &w.a, i, a)
    if not trt_all_finite(w.t, <int64_t>w.m * w.n, a):
        # LAPACK complains of infinities on stderr, or iterates on them without end
        if trt_any_nan(w.t, <int64_t>w.m * w.n, a):
            return NOT_FINITE
        memset(result_item(w, 0, i), 0xFF, k * (w.size if w.t < 2 else w.size // 2))  # every bit set is a NaN
        if w.flag:
            memset(result_item(w, 1, i), 0xFF, columns * w.m * w.size)
            memset(result_item(w, 2, i), 0xFF, (w.n if w.flag == 2 else k) * w.n * w.size)
        return 0
    info = trt_gesdd(w.t, b"N" if w.flag == 0 else b"A" if w.flag == 2 else b"S", w.m, w.n, a, result_item(w, 0, i), result_item(w, 1, i),
                     result_item(w, 2, i), <int>(w.n if w.flag == 2 else k), scratch + w.part[1], w.lwork, scratch + w.part[2], <int*>(scratch + w.part[3]))
    return NOT_FINITE if info < 0 else info


cdef object _linalg_svd_cpu(TensorBase self, bint full_matrices, bint values_only):
    """(U, S, Vh) of the last two dimensions; U and Vh have no elements under values_only."""
    cdef Job w
    cdef int d = self.ndim - 2
    cdef int64_t m, n, k
    cdef double size[2]
    cdef TensorBase u, s, vh, info
    self = held(self)
    check_matrix("linalg.svd", self)
    start(&w, self, self.sizes[d], self.sizes[d + 1], 0)
    m = w.m
    n = w.n
    k = min(m, n)
    info = info_of(&w, self, d, self.sizes)
    s = result_of(&w, 0, self, to_real(self.dtype), d, self.sizes, 1, k, 0)
    u = result_of(&w, 1, self, self.dtype, d, self.sizes, 2, m, 0 if values_only else m if full_matrices else k)
    vh = result_of(&w, 2, self, self.dtype, d, self.sizes, 2, 0 if values_only else n if full_matrices else k, n)
    if self.device_type == DEV_META or w.count == 0:
        return (u, s, vh)
    if k == 0:
        # nothing to decompose: any orthogonal matrix will do
        for factor in (u, vh):
            if (<TensorBase>factor).numel:
                factor.copy_(_ops.eye(factor.size(-1), dtype=dtype_of(self.dtype), device=self.device))
        return (u, s, vh)
    stack_of(&w.a, self, 2, d, self.sizes)
    w.flag = 0 if values_only else 2 if full_matrices else 1
    if self.device_type == DEV_CPU:
        load_lapack()
        with nogil:
            blas_begin(1)
            trt_gesdd(w.t, b"N" if w.flag == 0 else b"A" if w.flag == 2 else b"S", w.m, w.n, NULL, NULL, NULL, NULL, <int>(n if w.flag == 2 else k), size, -1, NULL, NULL)
            blas_end()
        w.lwork = trt_work_size(w.t, size)
    reserve(&w, 0, m * n * w.size)
    reserve(&w, 1, <int64_t>w.lwork * w.size)
    reserve(&w, 2, (7 * k if values_only else k * max(5 * k + 7, 2 * max(m, n) + 2 * k + 1)) * w.size if w.t >= 2 else 0)
    reserve(&w, 3, 8 * k * 4)
    run(&w, SVD, svd_one, info, 8.0 * m * n * k, self)
    raise_info("linalg.svd", FAIL_SVD, info)
    return (u, s, vh)


cdef int check_driver(TensorBase A, object driver) except -1:
    """A name that a device accepts does not choose there: it has one method."""
    if driver is not None and A.device_type != DEV_CUDA:
        raise RuntimeError("linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")
    if driver not in (None, "gesvd", "gesvdj", "gesvda"):
        raise RuntimeError(f"linalg.svd: unknown svd driver {driver}, please check the documentation")
    return 0


cdef object linalg_svd_cpu(TensorBase A, bint full_matrices, object driver, object out, int mode):
    check_driver(A, driver)
    return finish_outputs("linalg_svd", op__linalg_svd(A, full_matrices, False), out, mode)


cdef TensorBase linalg_svdvals_cpu(TensorBase A, object driver, TensorBase out, int mode):
    check_driver(A, driver)
    return finish_output("linalg_svdvals", <TensorBase>op__linalg_svd(A, False, not vectors_needed(A))[1], out, mode)


# ---- least squares -------------------------------------------------------------------------------------------------

cdef int least_squares_one(Job* w, int64_t i, char* scratch) noexcept nogil:
    """flag: the routine. Results: X, rank, singular values."""
    cdef char* a = scratch + w.part[0]
    cdef char* b = scratch + w.part[1]
    cdef char* x = result_item(w, 0, i)
    cdef int64_t rows = max(w.m, w.n)
    cdef int rank = 0, info
    take(w, &w.a, i, a)
    memset(b, 0, rows * w.k * w.size)
    trt_copy_matrix(w.size, w.m, w.k, b, 1, rows, trt_stack_item(&w.b, i, w.size), w.b.rs, w.b.cs)
    if not trt_all_finite(w.t, <int64_t>w.m * w.n, a) or not trt_all_finite(w.t, rows * w.k, b):
        return NOT_FINITE
    memset(scratch + w.part[4], 0, <int64_t>w.n * 4)
    info = trt_least_squares(w.t, w.flag, w.m, w.n, w.k, a, b, result_item(w, 2, i), <int*>(scratch + w.part[4]), w.tolerance, &rank, scratch + w.part[2],
                             w.lwork, scratch + w.part[3], <int*>(scratch + w.part[5]))
    trt_copy_matrix(w.size, w.n, w.k, x, 1, w.n, b, 1, rows)
    (<int64_t*>result_item(w, 1, i))[0] = rank
    return info


cdef object _linalg_lstsq_cpu(TensorBase self, TensorBase b, double rcond, object driver):
    """(X, rank, singular values) of A X = B; b: (*, m, k), its batch dimensions broadcast with A's."""
    cdef Job w
    cdef int64_t sizes[MAX_DIMS]
    cdef int d = self.ndim, batch_dims
    cdef int64_t m, n, k
    cdef double size[2]
    cdef int needed[2]
    cdef double real_needed[2]
    cdef TensorBase x, rank, s, info
    check_matrix("torch.linalg.lstsq", self, "input")
    check_matrix("torch.linalg.lstsq", b, "other")
    check_same_type("torch.linalg.lstsq", self, b, "input", "other")
    if b.sizes[b.ndim - 2] != self.sizes[d - 2]:
        raise RuntimeError(f"torch.linalg.lstsq: input of shape {shape_text(self)} and other of shape {shape_text(b)} must have as many rows")
    self, b = held(self), held(b)
    batch_dims = joint_batch("torch.linalg.lstsq", self, 2, b, 2, sizes)
    start(&w, self, self.sizes[d - 2], self.sizes[d - 1], b.sizes[b.ndim - 1])
    m = w.m
    n = w.n
    k = w.k
    info = info_of(&w, self, batch_dims, sizes)
    x = result_of(&w, 0, self, self.dtype, batch_dims, sizes, 2, n, k)
    rank = result_of(&w, 1, self, I64, batch_dims, sizes, 0, 0, 0)
    s = result_of(&w, 2, self, to_real(self.dtype), batch_dims, sizes, 1, min(m, n), 0)
    if self.device_type == DEV_META or w.count == 0:
        return (x, rank, s)
    if m == 0 or n == 0 or k == 0:
        for r in (x, rank, s):
            r.zero_()
        return (x, rank, s)
    stack_of(&w.a, self, 2, batch_dims, sizes)
    stack_of(&w.b, b, 2, batch_dims, sizes)
    w.flag = GELS if driver == "gels" else GELSY if driver == "gelsy" else GELSD if driver == "gelsd" else GELSS
    w.tolerance = rcond
    needed[0] = 0
    real_needed[0] = 0
    if self.device_type == DEV_CPU:
        load_lapack()
        with nogil:
            blas_begin(1)
            trt_least_squares(w.t, w.flag, w.m, w.n, w.k, NULL, NULL, NULL, NULL, w.tolerance, needed + 1, size, -1, real_needed, needed)
            blas_end()
        w.lwork = trt_work_size(w.t, size)
        # gelsy and gelss of complex matrices say in their documentation how many real numbers they need, gelsd answers
        w.liwork = max(trt_work_size(w.t & 1, real_needed) if w.flag == GELSD else 0, <int>max(2 * n, 5 * min(m, n)))
    elif w.flag == GELS:  # computes neither
        rank.fill_(min(m, n))
        s.zero_()
    if self.device_type != DEV_CPU:
        w.flag = w.flag == GELS
    reserve(&w, 0, m * n * w.size)
    reserve(&w, 1, max(m, n) * k * w.size)
    reserve(&w, 2, <int64_t>w.lwork * w.size)
    reserve(&w, 3, <int64_t>w.liwork * w.size if w.t >= 2 else 0)
    reserve(&w, 4, n * 4)
    reserve(&w, 5, <int64_t>needed[0] * 4)
    run(&w, LEAST_SQUARES, least_squares_one, info, 4.0 * m * n * max(min(m, n), k), self, b)
    raise_info("torch.linalg.lstsq", FAIL_LEAST_SQUARES, info)
    return (x, rank, s)
