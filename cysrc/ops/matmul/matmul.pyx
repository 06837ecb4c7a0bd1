# Matrix products: kernels over the step `gemm` (cpu.pyx, cysrc/cuda/matmul.pyx) and their derivatives. Kernels check shapes and dtypes and honour
# any strides of `out`.
from tensorrt_lite._C.core.python_key import composition
from tensorrt_lite._C.core.hints import hinted
from tensorrt_lite._C.autograd.autocast cimport autocasting, cast_operand
from tensorrt_lite._C.ops.matmul.mat cimport Mat, column_of, dense, matrix_of, transpose_mat
from tensorrt_lite._C.steps.matmul cimport run_dot, run_gemm, run_gemm_activated, run_int_mm, run_sum_rows


cdef TensorBase gemm_result(str name, TensorBase out, int mode, int ndim, const int64_t* sizes, TensorBase like):
    """Where a GEMM's result goes; unlike pointwise results it is never converted on the way."""
    if mode == OUT and out.dtype != like.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {cpp_type_text(like.dtype)}, but got {cpp_type_text(out.dtype)} instead ({name})")
    return result_tensor(name, out, mode, ndim, sizes, like.dtype, like)


# ---- mm, bmm, mv, dot ----------------------------------------------------------------------------------------------

cdef TensorBase mm_impl(TensorBase self, TensorBase mat2, TensorBase out, int mode):
    cdef int64_t sizes[2]
    cdef Mat a, b, c
    cdef TensorBase r
    if self.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    if self.sizes[1] != mat2.sizes[0]:
        raise hinted("shapes", RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({self.sizes[0]}x{self.sizes[1]} and {mat2.sizes[0]}x{mat2.sizes[1]})"))
    if self.dtype != mat2.dtype:
        raise hinted("dtypes", RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {cpp_type_text(self.dtype)} != {cpp_type_text(mat2.dtype)}"))
    sizes[0] = self.sizes[0]
    sizes[1] = mat2.sizes[1]
    r = gemm_result("mm", out, mode, 2, sizes, self)
    matrix_of(self, &a)
    matrix_of(mat2, &b)
    matrix_of(r, &c)
    run_gemm(self.device_type, "mm", r, &c, self, &a, mat2, &b, NULL, NULL, None, NULL)
    return r


cdef TensorBase bmm_impl(TensorBase self, TensorBase mat2, TensorBase out, int mode):
    cdef int64_t sizes[3]
    cdef Mat a, b, c
    cdef TensorBase r
    check_batches("batch1", self, "batch2", mat2)
    sizes[0] = self.sizes[0]
    sizes[1] = self.sizes[1]
    sizes[2] = mat2.sizes[2]
    r = gemm_result("bmm", out, mode, 3, sizes, self)
    matrix_of(self, &a)
    matrix_of(mat2, &b)
    matrix_of(r, &c)
    run_gemm(self.device_type, "bmm", r, &c, self, &a, mat2, &b, NULL, NULL, None, NULL)
    return r


cdef int check_batches(str first, TensorBase a, str second, TensorBase b) except -1:
    if a.ndim != 3:
        raise RuntimeError(f"{first} must be a 3D tensor")
    if b.ndim != 3:
        raise RuntimeError(f"{second} must be a 3D tensor")
    if a.sizes[0] != b.sizes[0] or a.sizes[2] != b.sizes[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{a.sizes[0]}, {a.sizes[2]}] but got: [{b.sizes[0]}, {b.sizes[1]}].")
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected scalar type {dtype_text(a.dtype)} but found {dtype_text(b.dtype)}")
    return 0


cdef TensorBase mv_impl(TensorBase self, TensorBase vec, TensorBase out, int mode):
    return add_mv("mv", None, self, vec, NULL, NULL, out, mode)


cdef TensorBase dot_impl(TensorBase self, TensorBase tensor, TensorBase out, int mode):
    cdef Scalar zero
    cdef TensorBase r
    if self.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.ndim}D and {tensor.ndim}D tensors")
    if self.dtype != tensor.dtype:
        raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {dtype_text(self.dtype)} and {dtype_text(tensor.dtype)}")
    if self.numel != tensor.numel:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{self.numel}] and src [{tensor.numel}] to have the same number of elements, but got "
            f"{self.numel} and {tensor.numel} elements respectively")
    if self.dtype == BOOL:
        raise RuntimeError("\"dot\" not implemented for 'Bool'")
    r = gemm_result("dot", out, mode, 0, NULL, self)
    if self.numel:
        run_dot(self.device_type, r, self, tensor)
    else:
        zero.kind = 1
        zero.i = 0
        zero.d = zero.im = 0
        fill_elements(r, &zero)
    return r


cdef TensorBase vdot_impl(TensorBase self, TensorBase other, TensorBase out, int mode):
    if self.ndim == 1 and category[self.dtype] == CAT_COMPLEX:
        self = <TensorBase?>_ops.conj(self)
    return dot_impl(self, other, out, mode)


# ---- with an addend ------------------------------------------------------------------------------------------------

cdef inline bint is_zero(const Scalar* s) noexcept:
    if s == NULL:
        return True
    return s.i == 0 if s.kind <= 1 else s.d == 0 and (s.kind != 3 or s.im == 0)


cdef void addend_of(TensorBase self, int ndim, Mat* d) noexcept:
    """Strides of an addend that broadcasts to a result of `ndim` dimensions."""
    cdef int i = self.ndim
    d.cs = self.strides[i - 1] if i > 0 and ndim > 1 and self.sizes[i - 1] > 1 else 0
    d.rs = self.strides[i - 1] if i > 0 and ndim == 1 and self.sizes[i - 1] > 1 else self.strides[i - 2] if i > 1 and self.sizes[i - 2] > 1 else 0
    d.bs = self.strides[0] if i > 2 and self.sizes[0] > 1 else 0


cdef int check_factor(const Scalar* s, int dtype) except -1:
    return 0 if s.kind == 3 and s.im == 0 and category[dtype] != CAT_COMPLEX else check_number(s, dtype)


cdef int check_scalars(int dtype, const Scalar* alpha, const Scalar* beta, bint wide) except -1:
    """Factors have to go into the type; `wide`: those of halves into float32."""
    if wide and is_reduced_floating_type(dtype):
        dtype = F32
    if alpha != NULL and category[dtype] != CAT_BOOL and not number_fits(alpha, dtype):
        check_factor(alpha, dtype)
    if beta != NULL and category[dtype] != CAT_BOOL and not number_fits(beta, dtype):
        check_factor(beta, dtype)
    if category[dtype] < CAT_COMPLEX and (alpha != NULL and alpha.kind == 3 or beta != NULL and beta.kind == 3):
        raise RuntimeError(f"For non-complex input tensors, argument {'alpha' if alpha != NULL and alpha.kind == 3 else 'beta'} must not be a complex number.")
    return 0


cdef bint skips_factors(str name, int dtype, int64_t multiplications) noexcept:
    """Whether NaN in the factors doesn't reach a product times zero: PyTorch's BLAS doesn't read them. Its own loops, for halves and small batched matrices, do."""
    return category[dtype] >= CAT_FLOAT and dtype != F16 and dtype != BF16 and (name != "baddbmm" or multiplications >= 400)


cdef int add_gemm(str name, TensorBase r, const Mat* c, TensorBase self, TensorBase x, const Mat* a, TensorBase y, const Mat* b, const Scalar* alpha,
                  const Scalar* beta) except -1:
    """r = alpha x y + beta self, which broadcasts to r's geometry; what it holds doesn't count when beta is zero, nor what x and y hold when alpha is."""
    cdef Mat d, no_columns, no_rows
    check_scalars(x.dtype, alpha, beta, name != "addmv")
    if is_zero(alpha) and skips_factors(name, x.dtype, a.cols * r.numel // max(a.batch, 1)):
        no_columns, no_rows = a[0], b[0]
        no_columns.cols = no_rows.rows = 0
        a, b = &no_columns, &no_rows
    if is_zero(beta):
        return run_gemm(x.device_type, name, r, c, x, a, y, b, alpha, NULL, None, NULL)
    addend_of(self, r.ndim, &d)
    return run_gemm(x.device_type, name, r, c, x, a, y, b, alpha, beta, self, &d)


cdef int check_expandable(str name, TensorBase self, int ndim, const int64_t* sizes) except -1:
    cdef int i, j
    if self.ndim > ndim:
        raise RuntimeError(f"{name}: the number of sizes provided ({ndim}) must be greater or equal to the number of dimensions in the tensor ({self.ndim})")
    for i in range(self.ndim - 1, -1, -1):
        j = ndim - self.ndim + i
        if self.sizes[i] != sizes[j] and self.sizes[i] != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({sizes[j]}) must match the existing size ({self.sizes[i]}) at non-singleton dimension {j}.  "
                f"Target sizes: {sizes_text(ndim, sizes)}.  Tensor sizes: {shape_text(self)}")
    return 0


cdef TensorBase apart(TensorBase out, TensorBase self, int mode):
    """The addend, copied when it lies in `out` but differently from it: the result is written over it."""
    if mode == OUT and memory_overlap(out, self) > 1:
        return <TensorBase?>self.clone()
    return self


cdef int check_addmm(str name, TensorBase self, TensorBase mat1, TensorBase mat2, int64_t* sizes) except -1:
    if mat1.ndim != 2:
        raise RuntimeError(f"mat1 must be a matrix, got {mat1.ndim}-D tensor")
    if mat2.ndim != 2:
        raise RuntimeError(f"mat2 must be a matrix, got {mat2.ndim}-D tensor")
    if mat1.sizes[1] != mat2.sizes[0]:
        raise hinted("shapes", RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({mat1.sizes[0]}x{mat1.sizes[1]} and {mat2.sizes[0]}x{mat2.sizes[1]})"))
    if mat1.dtype != mat2.dtype:
        raise hinted("dtypes", RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {cpp_type_text(mat1.dtype)} != {cpp_type_text(mat2.dtype)}"))
    if self.dtype != mat1.dtype:
        raise hinted("dtypes", RuntimeError(f"self and mat2 must have the same dtype, but got {dtype_text(self.dtype)} and {dtype_text(mat2.dtype)}"))
    sizes[0] = mat1.sizes[0]
    sizes[1] = mat2.sizes[1]
    return check_expandable(name, self, 2, sizes)


cdef TensorBase addmm_impl(TensorBase self, TensorBase mat1, TensorBase mat2, const Scalar* beta, const Scalar* alpha, TensorBase out, int mode):
    cdef int64_t sizes[2]
    cdef Mat a, b, c
    cdef TensorBase r
    check_addmm("addmm", self, mat1, mat2, sizes)
    self = apart(out, self, mode)
    r = gemm_result("addmm", out, mode, 2, sizes, mat1)
    matrix_of(mat1, &a)
    matrix_of(mat2, &b)
    matrix_of(r, &c)
    add_gemm("addmm", r, &c, self, mat1, &a, mat2, &b, alpha, beta)
    return r


cdef TensorBase addmm_activation_impl(TensorBase self, TensorBase mat1, TensorBase mat2, const Scalar* beta, const Scalar* alpha, bint use_gelu):
    """relu or gelu of addmm, where the device can in the GEMM's epilogue."""
    cdef int64_t sizes[2]
    cdef Mat a, b, c, d
    cdef bint added = not is_zero(beta)
    cdef TensorBase r
    if category[mat1.dtype] != CAT_FLOAT:
        raise RuntimeError(f"_addmm_activation: expected floating point matrices, but got {dtype_text(mat1.dtype)}")
    check_addmm("_addmm_activation", self, mat1, mat2, sizes)
    check_scalars(mat1.dtype, alpha, beta, True)
    r = empty_tensor(2, sizes, mat1.dtype, place_of(mat1))
    matrix_of(mat1, &a)
    matrix_of(mat2, &b)
    matrix_of(r, &c)
    addend_of(self, 2, &d)
    if r.numel:
        run_gemm_activated(r.device_type, "_addmm_activation", r, &c, mat1, &a, mat2, &b, alpha, beta, self if added else None, &d if added else NULL, use_gelu)
    return r


cdef TensorBase int_mm_impl(TensorBase self, TensorBase mat2, TensorBase out, int mode):
    """The product of 8-bit integers, summed in int32."""
    cdef int64_t sizes[2]
    cdef TensorBase r
    if self.ndim != 2 or mat2.ndim != 2:
        raise RuntimeError(f"_int_mm: Expected self and mat2 to be of dimension 2 but got {self.ndim} and {mat2.ndim}")
    if self.dtype != I8 and self.dtype != U8:
        raise RuntimeError(f"_int_mm: Expected self dtype to be int8 or uint8 but got {dtype_text(self.dtype)}")
    if mat2.dtype != I8:
        raise RuntimeError(f"_int_mm: Expected mat2 dtype to be int8 but got {dtype_text(mat2.dtype)}")
    if self.sizes[1] != mat2.sizes[0]:
        raise RuntimeError(f"_int_mm: self.size(1) needs to match mat2.size(0) but got {self.sizes[1]} and {mat2.sizes[0]}")
    sizes[0] = self.sizes[0]
    sizes[1] = mat2.sizes[1]
    if mode == OUT and out.dtype != I32:
        raise RuntimeError(f"_int_mm: Expected result dtype to be int32 but got {dtype_text(out.dtype)}")
    r = result_tensor("_int_mm", out, mode, 2, sizes, I32, self)
    if r.numel:
        run_int_mm(r.device_type, r, self, mat2)
    return r


cdef inline Scalar whole_number(const Scalar* s) noexcept:
    """A scalar converted to an integer, as PyTorch does for integer batches (and for them alone)."""
    cdef Scalar r = s[0]
    if s.kind > 1:
        r.kind = 1
        r.i = <int64_t>s.d
        r.d = <double>r.i
    return r


cdef TensorBase baddbmm_impl(TensorBase self, TensorBase batch1, TensorBase batch2, const Scalar* beta, const Scalar* alpha, TensorBase out, int mode):
    cdef int64_t sizes[3]
    cdef Mat a, b, c
    cdef Scalar whole_beta, whole_alpha
    cdef TensorBase r
    check_batches("batch1", batch1, "batch2", batch2)
    if category[batch1.dtype] == CAT_INT:
        check_scalars(batch1.dtype, alpha, beta, True)
        whole_beta = whole_number(beta)
        whole_alpha = whole_number(alpha)
        beta = &whole_beta
        alpha = &whole_alpha
    if self.dtype != batch1.dtype:
        raise RuntimeError(f"Input dtypes must be the same, got: input: {dtype_text(self.dtype)}, batch1: {dtype_text(batch1.dtype)}, batch2: {dtype_text(batch2.dtype)}")
    sizes[0] = batch1.sizes[0]
    sizes[1] = batch1.sizes[1]
    sizes[2] = batch2.sizes[2]
    check_expandable("baddbmm", self, 3, sizes)
    self = apart(out, self, mode)
    r = gemm_result("baddbmm", out, mode, 3, sizes, batch1)
    matrix_of(batch1, &a)
    matrix_of(batch2, &b)
    matrix_of(r, &c)
    add_gemm("baddbmm", r, &c, self, batch1, &a, batch2, &b, alpha, beta)
    return r


cdef TensorBase addmv_impl(TensorBase self, TensorBase mat, TensorBase vec, const Scalar* beta, const Scalar* alpha, TensorBase out, int mode):
    if self.dtype != mat.dtype:
        raise RuntimeError(f"addmv: expected scalar type {dtype_text(mat.dtype)} but found {dtype_text(self.dtype)}")
    return add_mv("addmv", self, mat, vec, beta, alpha, out, mode)


cdef TensorBase add_mv(str name, TensorBase self, TensorBase mat, TensorBase vec, const Scalar* beta, const Scalar* alpha, TensorBase out, int mode):
    cdef Mat a, b, c
    cdef TensorBase r
    if mat.ndim != 2 or vec.ndim != 1 or self is not None and self.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {1 if self is None else self.ndim}, {mat.ndim}, {vec.ndim}")
    if mat.sizes[1] != vec.sizes[0] or self is not None and self.numel != mat.sizes[0] and self.numel != 1:
        raise RuntimeError(
            f"size mismatch, got input ({mat.sizes[0] if self is None else self.numel}), mat ({mat.sizes[0]}x{mat.sizes[1]}), vec ({vec.sizes[0]})")
    if mat.dtype != vec.dtype:
        raise RuntimeError(f"{name}: expected scalar type {dtype_text(mat.dtype)} but found {dtype_text(vec.dtype)}")
    if self is not None:
        if mode == OUT:
            check_no_overlap(name, out, self, True)
        self = apart(out, self, mode)
    r = gemm_result(name, out, mode, 1, mat.sizes, mat)
    matrix_of(mat, &a)
    column_of(vec, &b)
    column_of(r, &c)
    if self is None:
        run_gemm(mat.device_type, name, r, &c, mat, &a, vec, &b, NULL, NULL, None, NULL)
    else:
        add_gemm(name, r, &c, self, mat, &a, vec, &b, alpha, beta)
    return r


# ---- linear --------------------------------------------------------------------------------------------------------

cdef inline void rows_of(TensorBase t, Mat* x) noexcept:
    """A contiguous tensor as a matrix of its last dimension."""
    x.batch = 1
    x.bs = 0
    x.cols = t.sizes[t.ndim - 1]
    x.rows = t.numel // x.cols if x.cols else 0
    x.rs = x.cols
    x.cs = 1
    x.flipped = False


cdef inline void weight_of(TensorBase weight, Mat* x) noexcept:
    """The weight (out, in), or (in,) as one row, transposed."""
    if weight.ndim == 2:
        matrix_of(weight, x)
        transpose_mat(x)
    else:
        column_of(weight, x)


cdef TensorBase linear_impl(TensorBase input, TensorBase weight, TensorBase bias, TensorBase out, int mode):
    """input: (..., in), weight: (out, in) or (in,), bias: (out,) or () -> (..., out)."""
    cdef int64_t sizes[MAX_DIMS]
    cdef TensorBase r
    cdef int i, ndim = input.ndim
    cdef int64_t rows = 1, features
    if weight.ndim != 2 and weight.ndim != 1:
        raise RuntimeError(f"linear(): weight must be 1-D or 2-D, got shape {shape_text(weight)}")
    features = weight.sizes[0] if weight.ndim == 2 else 1
    if ndim == 0:
        raise RuntimeError(f"linear(): both arguments need to be at least 1D, but they are 0D and {weight.ndim}D")
    for i in range(ndim - 1):
        sizes[i] = input.sizes[i]
        rows *= input.sizes[i]
    if input.sizes[ndim - 1] != weight.sizes[weight.ndim - 1]:
        raise hinted("shapes", RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{input.sizes[ndim - 1]} and {weight.sizes[weight.ndim - 1]}x{features})"))
    if input.dtype != weight.dtype or bias is not None and bias.dtype != input.dtype:
        raise hinted("dtypes", RuntimeError(f"mat1 and mat2 must have the same dtype, but got {dtype_text(input.dtype)} and {dtype_text(weight.dtype if weight.dtype != input.dtype else bias.dtype)}"))
    if weight.ndim == 2:
        sizes[ndim - 1] = features
    else:
        ndim -= 1
    if bias is not None:
        check_expandable("linear", bias, ndim, sizes)
    if mode == OUT:
        gemm_result("linear", out, mode, ndim, sizes, input)
    r = empty_tensor(ndim, sizes, input.dtype, place_of(input))
    if r.numel == 0:
        return r if mode == FRESH else out
    linear_gemm(r, input, weight, bias, rows, features)
    if mode == FRESH:
        return r
    copy_elements(out, r)
    return out


cdef TensorBase linear_recorded(TensorBase input, TensorBase weight, TensorBase bias, TensorBase out, int mode):
    """Left to operators that reduce their gradients: a vector in the weight's place, and a bias that is broadcast."""
    cdef TensorBase r
    if mode != FRESH or not tls().grad_mode or weight.ndim == 2 and (bias is None or bias.ndim == 1 and bias.sizes[0] == weight.sizes[0]):
        return autograd_linear(input, weight, bias, out, mode)
    r = <TensorBase?>_ops.matmul(input, weight if weight.ndim == 1 else weight.t())
    if bias is None:
        return r
    check_expandable("linear", bias, r.ndim, r.sizes)
    return <TensorBase?>_ops.add(r, bias)


cdef int linear_gemm(TensorBase r, TensorBase input, TensorBase weight, TensorBase bias, int64_t rows, int64_t features) except -1:
    """r: contiguous (rows, features); the shapes were checked."""
    cdef Mat a, b, c, d
    cdef Scalar one
    if not input.contiguous:
        input = contiguous_of(input)
    a.batch = 1
    a.bs = 0
    a.rows = rows
    a.cols = input.sizes[input.ndim - 1]
    a.rs = a.cols
    a.cs = 1
    a.flipped = False
    weight_of(weight, &b)
    dense(&c, 1, rows, features, False)
    if bias is None:
        return run_gemm(r.device_type, "linear", r, &c, input, &a, weight, &b, NULL, NULL, None, NULL)
    one.kind = 1
    one.i = 1
    one.d = 1
    one.im = 0
    if bias.ndim > 1:
        # its strides are none of a matrix
        copy_elements(r, bias)
        return run_gemm(r.device_type, "linear", r, &c, input, &a, weight, &b, NULL, &one, r, &c)
    d.batch = 1
    d.rows = rows
    d.cols = features
    d.bs = d.rs = 0
    d.cs = bias.strides[0] if bias.numel > 1 else 0
    d.flipped = False
    return run_gemm(r.device_type, "linear", r, &c, input, &a, weight, &b, NULL, &one, bias, &d)


cdef object linear_backward(OpNode node, object grad, object input, object weight):
    """(grad_input, grad_weight, grad_bias), each only where it is wanted; input and weight are there for each other's gradient."""
    cdef TensorBase g = <TensorBase?>grad, x = input, w = weight, r
    cdef object gi = None, gw = None, gb = None
    cdef Mat mg, mx, mw, mr
    cdef int64_t rows, features, depth
    cdef int64_t sizes[MAX_DIMS]
    if grad_mode() or g.keys & ~(K_CPU | K_AUTOGRAD) or not is_blas_type(g.dtype) or is_complex_type(g.dtype) or g.numel == 0 or x is not None and x.numel == 0 or w is not None and w.numel == 0:
        return linear_backward_composed(node, grad, input, weight)
    features = g.sizes[g.ndim - 1]
    depth = w.sizes[1] if w is not None else x.sizes[x.ndim - 1] if x is not None else 0
    if is_large(g) or is_large(x) or is_large(w):
        g, x, w = held(g), None if x is None else held(x), None if w is None else held(w)
    rows = g.numel // features
    if not g.contiguous:
        g = contiguous_of(g)
    if wants(node, 0):
        memcpy(sizes, g.sizes, g.ndim * sizeof(int64_t))
        sizes[g.ndim - 1] = depth
        r = empty_tensor(g.ndim, sizes, g.dtype, place_of(g))
        dense(&mg, 1, rows, features, False)
        matrix_of(w, &mw)
        dense(&mr, 1, rows, depth, False)
        run_gemm(r.device_type, "linear", r, &mr, g, &mg, w, &mw, NULL, NULL, None, NULL)
        gi = r
    if wants(node, 1):
        if not x.contiguous:
            x = contiguous_of(x)
        sizes[0] = features
        sizes[1] = depth
        r = empty_tensor(2, sizes, g.dtype, place_of(g))
        dense(&mg, 1, rows, features, False)
        transpose_mat(&mg)
        dense(&mx, 1, rows, depth, False)
        dense(&mr, 1, features, depth, False)
        run_gemm(r.device_type, "linear", r, &mr, g, &mg, x, &mx, NULL, NULL, None, NULL)
        gw = r
    if wants(node, 2):
        r = empty_tensor(1, &features, g.dtype, place_of(g))
        run_sum_rows(g.device_type, r, g, rows, features)
        gb = r
    return (gi, gw, gb)


cdef object linear_backward_composed(OpNode node, object grad, object input, object weight):
    """The same out of operators that record."""
    cdef object gi = None, gw = None, gb = None, g2
    cdef int64_t rows = 1
    if wants(node, 0):
        gi = _ops.matmul(grad, conj_of(weight))
    if wants(node, 1) or wants(node, 2):
        for size in grad.shape[:-1]:
            rows *= size
        g2 = grad.reshape(rows, grad.shape[-1])
        if wants(node, 1):
            gw = _ops.mm(g2.t(), conj_of(input.reshape(rows, input.shape[-1])))
        if wants(node, 2):
            gb = g2.sum(0)
    return (gi, gw, gb)


# ---- derivatives ---------------------------------------------------------------------------------------------------

cdef object conj_of(object x):
    return _ops.conj(x) if category[(<TensorBase?>x).dtype] == CAT_COMPLEX else x


cdef object scaled(object x, object factor):
    """x times the conjugate of a number."""
    if isinstance(factor, complex):
        factor = factor.conjugate()
    return x if factor == 1 else x * factor


cdef object reduced_scaled(object grad, object meta, object factor):
    return reduce_gradient(<TensorBase?>scaled(grad, factor), meta)


cdef object activated_backward(OpNode node, object grad, object self, object mat1, object mat2, object beta, object alpha, bint use_gelu, object result):
    """Of _addmm_activation; gelu's computes the GEMM again."""
    cdef object g, gs = None, g1 = None, g2 = None
    if use_gelu:
        x = _ops.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
        if (<TensorBase?>grad).device_type == DEV_CUDA:
            inner = _ops.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))
            g = grad * (0.5 * (1 + inner) + 0.5 * x * (1 - inner * inner) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x))
        else:
            g = grad * (0.5 * (1 + _ops.erf(x * 0.7071067811865476)) + x * _ops.exp(-0.5 * x * x) * 0.3989422804014327)
    else:
        g = grad * _ops.gt(result, 0).to(grad.dtype)
    if wants(node, 0):
        gs = scaled(g.sum_to_size(self.shape), beta)
    if wants(node, 1):
        g1 = scaled(times_adjoint(g, mat2, False), alpha)
    if wants(node, 2):
        g2 = scaled(adjoint_times(mat1, g, False), alpha)
    return gs, g1, g2


cdef bint direct(TensorBase a, TensorBase b) noexcept:
    """Whether a derivative may run as a kernel: nothing is recorded, and no conjugate is needed."""
    return not grad_mode() and category[a.dtype] == CAT_FLOAT and a.dtype == b.dtype and \
        not (a.keys | b.keys) & ~(K_CPU | K_AUTOGRAD)


cdef object times_adjoint(object grad, object other, bint transposed):
    """grad other^H of matrices or batches; transposed: the gradient is of a matrix in columns, in which order PyTorch computes it."""
    cdef TensorBase g = <TensorBase?>grad, b = <TensorBase?>other, r
    cdef int64_t sizes[3]
    cdef Mat mg, mb, mr
    cdef int d = g.ndim
    if not direct(g, b):
        if d == 2:
            return _ops.mm(conj_of(other), grad.t()).t() if transposed else _ops.mm(grad, conj_of(other.t()))
        return _ops.bmm(grad, conj_of(other.transpose(1, 2)))
    if is_large(g) or is_large(b):
        g, b = held(g), held(b)
    sizes[0] = g.sizes[0]
    sizes[d - 2] = g.sizes[d - 2]
    sizes[d - 1] = b.sizes[d - 2]
    r = empty_tensor(d, sizes, g.dtype, place_of(g))
    matrix_of(g, &mg)
    matrix_of(b, &mb)
    transpose_mat(&mb)
    matrix_of(r, &mr)
    run_gemm(r.device_type, "mm", r, &mr, g, &mg, b, &mb, NULL, NULL, None, NULL)
    return r


cdef object adjoint_times(object other, object grad, bint transposed):
    """other^H grad of matrices or batches; transposed as above."""
    cdef TensorBase g = <TensorBase?>grad, a = <TensorBase?>other, r
    cdef int64_t sizes[3]
    cdef Mat mg, ma, mr
    cdef int d = g.ndim
    if not direct(g, a):
        if d == 2:
            return _ops.mm(grad.t(), conj_of(other)).t() if transposed else _ops.mm(conj_of(other.t()), grad)
        return _ops.bmm(conj_of(other.transpose(1, 2)), grad)
    if is_large(g) or is_large(a):
        g, a = held(g), held(a)
    sizes[0] = g.sizes[0]
    sizes[d - 2] = a.sizes[d - 1]
    sizes[d - 1] = g.sizes[d - 1]
    r = empty_tensor(d, sizes, g.dtype, place_of(g))
    matrix_of(a, &ma)
    transpose_mat(&ma)
    matrix_of(g, &mg)
    matrix_of(r, &mr)
    run_gemm(r.device_type, "mm", r, &mr, a, &ma, g, &mg, NULL, NULL, None, NULL)
    return r


# ---- matmul --------------------------------------------------------------------------------------------------------

cdef object shaped(TensorBase t, const Dims* d):
    """view where strides allow it without a look, otherwise reshape."""
    if t.contiguous:
        return op_view(t, d)
    return _ops.reshape(t, dims_tuple(d))


cdef object batched_matmul(TensorBase a, TensorBase b):
    """matmul of at least 2-dimensional tensors with broadcast batch dimensions."""
    cdef Dims full, da, db, flat
    cdef int i, n = max(a.ndim, b.ndim)
    cdef int64_t x, y, batch = 1
    full.n = n
    da.n = db.n = n
    for i in range(n - 3, -1, -1):
        x = a.sizes[i - n + a.ndim] if i >= n - a.ndim else 1
        y = b.sizes[i - n + b.ndim] if i >= n - b.ndim else 1
        if x != y and x != 1 and y != 1:
            raise RuntimeError(f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {i}")
        full.v[i] = da.v[i] = db.v[i] = y if x == 1 else x
        batch *= full.v[i]
    da.v[n - 2] = a.sizes[a.ndim - 2]
    da.v[n - 1] = a.sizes[a.ndim - 1]
    db.v[n - 2] = b.sizes[b.ndim - 2]
    db.v[n - 1] = b.sizes[b.ndim - 1]
    full.v[n - 2] = da.v[n - 2]
    full.v[n - 1] = db.v[n - 1]
    if da.v[n - 1] != db.v[n - 2]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {da.v[n - 1]}] but got: [{batch}, {db.v[n - 2]}].")
    a = fold_batch(a, &da, batch)
    b = fold_batch(b, &db, batch)
    r = op_bmm(a, b, None, FRESH)
    return r if n == 3 else reshaped_product(r, &full)


cdef inline TensorBase own_result(TensorBase view):
    """A view of a product that nobody else has is no view to programs: they may call detach_() on it, and a write to it copies no graph of views."""
    view.base = None
    return view


cdef TensorBase reshaped_product(TensorBase product, const Dims* d):
    return own_result(<TensorBase?>op_view(product, d))


cdef TensorBase fold_batch(TensorBase t, const Dims* d, int64_t batch):
    """(*d) expanded and folded to three dimensions."""
    cdef Dims flat
    cdef int i
    cdef bint same = t.ndim == d.n
    for i in range(d.n):
        if same and t.sizes[i] != d.v[i]:
            same = False
    if not same:
        t = op_expand(t, d)
    if d.n == 3:
        return t
    flat.n = 3
    flat.v[0] = batch
    flat.v[1] = d.v[d.n - 2]
    flat.v[2] = d.v[d.n - 1]
    return <TensorBase?>shaped(t, &flat)


cdef TensorBase matmul_tensors(TensorBase a, TensorBase b):
    cdef Dims d
    cdef int i
    cdef object r
    if a.ndim == 2 and b.ndim == 2:
        return op_mm(a, b, None, FRESH)
    if dispatched(a.keys | b.keys):
        return <TensorBase?>composition("products.matmul")(a, b)
    if autocasting():
        # a matrix with a vector is op_mv, which casts on CUDA alone
        a = cast_operand(a, "ll")
        b = cast_operand(b, "ll")
    if a.ndim == 2:
        if b.ndim == 1:
            return op_mv(a, b, None, FRESH)
    if a.ndim == 1 and b.ndim == 1:
        return op_dot(a, b, None, FRESH)
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D")
    if a.ndim == 1 and b.ndim == 2:
        if a.sizes[0] != b.sizes[0]:
            raise hinted("shapes", RuntimeError(f"mat1 and mat2 shapes cannot be multiplied (1x{a.sizes[0]} and {b.sizes[0]}x{b.sizes[1]})"))
        return op_mv(op_t(b), a, None, FRESH)
    if b.ndim <= 2 and a.numel > 0:                      # fold the batch of the first into its rows
        if a.sizes[a.ndim - 1] != b.sizes[0]:
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a.numel // a.sizes[a.ndim - 1]}x{a.sizes[a.ndim - 1]} and "
                               f"{b.sizes[0]}x{b.sizes[1] if b.ndim == 2 else 1})")
        d.n = 2
        d.v[1] = a.sizes[a.ndim - 1]
        d.v[0] = a.numel // d.v[1]
        folded = <TensorBase?>shaped(a, &d)
        d.n = a.ndim - (1 if b.ndim == 1 else 0)
        for i in range(a.ndim - 1):
            d.v[i] = a.sizes[i]
        if b.ndim == 1:
            return reshaped_product(op_mv(folded, b, None, FRESH), &d)
        d.v[d.n - 1] = b.sizes[1]
        return reshaped_product(op_mm(folded, b, None, FRESH), &d)
    if a.ndim == 1:
        r = batched_matmul(<TensorBase?>_ops.unsqueeze(a, 0), b)
        return own_result(<TensorBase?>_ops.squeeze(r, -2))
    if b.ndim == 1:
        r = batched_matmul(a, <TensorBase?>_ops.unsqueeze(b, -1))
        return own_result(<TensorBase?>_ops.squeeze(r, -1))
    return <TensorBase?>batched_matmul(a, b)


def matmul(input, other, *, out=None):
    """The matrix product of the last two dimensions, batch dimensions broadcast; vectors as a row or a column."""
    cdef TensorBase a, b
    a = <TensorBase>input if isinstance(input, TensorBase) else as_tensor_arg(input, "matmul", "input")
    b = <TensorBase>other if isinstance(other, TensorBase) else as_tensor_arg(other, "matmul", "other")
    if out is None:
        return matmul_tensors(a, b)
    if a.ndim == 2 and b.ndim == 2:
        return _ops.mm(a, b, out=out)
    return deliver_result("matmul", matmul_tensors(a, b), out, True)


def matmul_symbol(self, other):
    """self @ other."""
    if not isinstance(self, TensorBase) or not isinstance(other, TensorBase):
        return NotImplemented
    return matmul(self, other)


def rmatmul_symbol(self, other):
    return matmul_symbol(other, self)


cdef TensorBase bilinear_impl(TensorBase input1, TensorBase input2, TensorBase weight):
    """input1: (n, in1), input2: (n, in2), weight: (out, in1, in2) -> (n, out)."""
    cdef object a = alias_of(input1), b = alias_of(input2), w = alias_of(weight)
    n_out, n1, n2 = w.shape
    rows = _ops.mm(a, w.permute(1, 0, 2).reshape((n1, n_out * n2))).reshape((a.shape[0], n_out, n2))
    return <TensorBase?>_ops.bmm(rows, b.unsqueeze(-1)).squeeze(-1)


# ---- trace ---------------------------------------------------------------------------------------------------------

cdef TensorBase trace_impl(TensorBase self):
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
    return <TensorBase?>_ops.sum(_ops.diagonal(self))


cdef object trace_backward(object grad, object shape):
    flat = grad.new_zeros(shape)
    n = min(shape)
    if n == 0:
        return flat
    return _ops.diag_embed(grad.expand(n)) if shape[0] == shape[1] else _ops.eye(shape[0], shape[1], dtype=grad.dtype, device=grad.device) * grad


METHOD_ALIASES = {"__matmul__": matmul_symbol, "__rmatmul__": rmatmul_symbol}
