"""TensorIterator: broadcasting, promotion, overlap checks, ordering and coalescing of dimensions, tiling, threads.

Operands of equal shape, all contiguous and of the compute type, take a path that touches none of that. Otherwise dimensions are ordered so that the
output (or, when it is new, the inputs) runs fastest along dimension 0, neighbours that continue each other are merged, and iteration.pyx runs the rows.
"""
from tensorrt_lite._C.core.hints import hinted
from libc.stdlib cimport free, malloc
from libc.string cimport memcmp, memcpy, memmove
from tensorrt_lite._C.core.allocator cimport trt_block, trt_block_hold, block_drop
from tensorrt_lite._C.core.iteration cimport ROWS, cast_row, cast_table, run_iteration
from tensorrt_lite._C.core.parallel cimport parallel_for, GRAIN
from tensorrt_lite._C.core.tensor cimport (
    TensorBase, ITEM_SIZE, MAX_DIMS, data_of, place_of, same_sizes, empty_tensor, empty_strided_tensor, empty_like_tensor, shape_text, resize_tensor,
    HELD_NUMEL, has_internal_overlap, memory_overlap, alias_of, set_geometry, contiguous_strides, K_CPU, K_META, K_STANDS_IN, K_WRAPPED, bump_version, new_tensor, set_dtype)
from tensorrt_lite._C.core.dtype cimport (
    Scalar, check_number, number_fits, promotion, raise_promotion, NO_PROMOTION, category, default_float_code, can_cast, to_real, to_complex, dtype_of, is_integral_or_bool_type, is_reduced_floating_type, has_loops, loop_type, NUM_DTYPES,
    BOOL, BF16, F16, F32, F64, U8, U64, I16, I32, I64, C32, C64, C128, CAT_BOOL, CAT_INT, CAT_FLOAT, CAT_COMPLEX)
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from tensorrt_lite._C.core.dispatch cimport FRESH, OUT, INPLACE, attach, tls
from tensorrt_lite._C.core.device cimport DEV_CPU, DEV_META, has_index, place_text
from tensorrt_lite._C.core.storage cimport Storage, hooks_of, prepare_write
from tensorrt_lite._C.core.text cimport dtype_text, sizes_text
from tensorrt_lite._C.core import isa  # noqa: F401 (refuses what the loops cannot run on before they are chosen)

attach()

cdef extern from "stage.h" nogil:
    loop_t choose_copy_loop(int* ndim, int64_t* sizes, int64_t* to, int64_t* source, int item, int same_type, Scalar* row)
    void convert_run(char** data, const int64_t* stride, int64_t n, const Scalar* conversion)
    void fill_block(char* dst, const char* value, int64_t n, int item)
    void store_scalar(char* destination, int dtype, const Scalar* value)
    void load_number "trt_load_scalar"(const char* source, int dtype, Scalar* value)
    void convert_elements "trt_convert"(const cast_row* table, int to, char* dst, int64_t dst_stride, int source, const char* src, int64_t src_stride, int64_t n)

cdef int order_dimensions(int nop, int ndim, const int64_t* shape, int64_t (*stride)[MAX_DIMS], bint out_known, int* perm) noexcept:
    """PyTorch's order: dimension 0 runs fastest; strides of the output decide first, then those of the inputs."""
    cdef int i, j, k, op, other, dim, verdict
    for i in range(ndim):
        perm[i] = ndim - 1 - i
    for i in range(1, ndim):
        dim = perm[i]
        j = i
        k = i - 1
        while k >= 0:
            other = perm[k]
            verdict = 0
            for op in range(0 if out_known else 1, nop):
                if stride[op][other] == 0 or stride[op][dim] == 0:
                    continue
                if stride[op][other] < stride[op][dim]:
                    verdict = -1
                    break
                if stride[op][other] > stride[op][dim]:
                    verdict = 1
                    break
                if shape[other] > shape[dim]:
                    verdict = 1
                    break
            if verdict > 0:
                perm[k], perm[j] = perm[j], perm[k]
                j = k
            elif verdict < 0:
                break
            k -= 1
    return 0


cdef int broadcast_shapes(str name, int n, PyObject** tensors, int64_t* shape) except -1:
    """Write the broadcast shape and return its number of dimensions."""
    cdef int ndim = 0, i, k, j
    cdef TensorBase x
    for i in range(n):
        ndim = max(ndim, (<TensorBase>tensors[i]).ndim)
    for k in range(ndim):
        shape[k] = 1
    for i in range(n):
        x = <TensorBase>tensors[i]
        for j in range(x.ndim - 1, -1, -1):  # the last dimension that differs is the one named
            k = ndim - x.ndim + j
            if x.sizes[j] != 1 and x.sizes[j] != shape[k]:
                if shape[k] != 1:
                    raise hinted("broadcast", RuntimeError(f"The size of tensor a ({shape[k]}) must match the size of tensor b ({x.sizes[j]}) at non-singleton dimension {k} "
                        f"({name}: shapes {', '.join([shape_text(<TensorBase>tensors[m]) for m in range(n)])})"))
                shape[k] = x.sizes[j]
    return ndim


cdef int result_code(int n, PyObject** tensors) except -1:
    """The promoted type: tensors with dimensions outrank 0-dimensional ones, which outrank Python numbers."""
    cdef int dim_result = -1, zero_result = -1, wrapped_result = -1, i, code
    cdef TensorBase x
    for i in range(n):
        x = <TensorBase>tensors[i]
        code = x.dtype
        if x.wrapped_number:
            if category[code] == CAT_COMPLEX:
                code = C128 if default_float_code() == F64 else C64
            elif category[code] == CAT_FLOAT:
                code = default_float_code()
            wrapped_result = code if wrapped_result < 0 else promoted(wrapped_result, code)
        elif x.ndim > 0:
            dim_result = code if dim_result < 0 else promoted(dim_result, code)
        else:
            zero_result = code if zero_result < 0 else promoted(zero_result, code)
    return combine(combine(dim_result, zero_result), wrapped_result)


cdef inline int promoted(int a, int b) except -1:
    if promotion[a][b] == NO_PROMOTION:
        raise_promotion(a, b)
    return promotion[a][b]


cdef inline int combine(int higher, int lower) except -2:
    if lower < 0:
        return higher
    if higher < 0:
        return lower
    if category[higher] >= category[lower]:
        return higher
    if category[lower] == CAT_COMPLEX:
        if category[higher] < CAT_FLOAT:
            return lower
        if not has_loops(higher):
            raise RuntimeError(f"Unknown Complex ScalarType for {dtype_text(higher)}")
        return to_complex(higher)          # a complex number keeps the tensor's precision
    return promoted(higher, lower)


cdef int check_no_overlap(str name, TensorBase out, TensorBase x, bint same_is_fine) except -1:
    cdef int overlap = memory_overlap(out, x)
    if overlap == 2 or (overlap == 1 and not same_is_fine):
        raise RuntimeError(
            f"{name}: unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
            "Please clone() the tensor before performing the operation.")
    return 0


cdef int check_internal_overlap(str name, TensorBase out) except -1:
    if has_internal_overlap(out):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            f"Please clone() the tensor before performing the operation. ({name})")
    return 0


cdef int prepare_out(str name, TensorBase out, int ndim, const int64_t* shape, int result_dtype, int mode) except -1:
    """Check a given output: type, sharing of elements, shape (resized under OUT, refused under INPLACE). Outside of LateWarnings it may
    run a filter of warnings, which is Python: geometry that was read before may be out of date then."""
    cdef int i
    cdef bint same = out.ndim == ndim
    if not can_cast(result_dtype, out.dtype):
        raise RuntimeError(f"result type {dtype_text(result_dtype)} can't be cast to the desired output type {dtype_text(out.dtype)} ({name})")
    if same:
        for i in range(ndim):
            if out.sizes[i] != shape[i]:
                same = False
    if not same:
        if mode == INPLACE:
            raise RuntimeError(f"output with shape {shape_text(out)} doesn't match the broadcast shape {sizes_text(ndim, shape)} ({name})")
        if out.numel != 0:
            warn_of_resize(
                f"An output with one or more elements was resized since it had shape {shape_text(out)}, which does not match the required output "
                f"shape {sizes_text(ndim, shape)}. This behavior is deprecated, and in a future release outputs will not be resized unless they "
                "have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).")
        resize_tensor(out, ndim, shape, 0)
    prepare_write(out.storage, name)
    check_internal_overlap(name, out)
    return 0


cdef bint has_shape(TensorBase t, int ndim, const int64_t* shape) noexcept:
    cdef int i
    if t.ndim != ndim:
        return False
    for i in range(ndim):
        if t.sizes[i] != shape[i]:
            return False
    return True


cdef int warn_of_resize(str message) except -1:
    if tls().late_warnings == NULL:
        from tensorrt_lite._C.core.warning import warn
        warn(message)
        return 0
    messages = [message]
    if tls().late_warnings[0] != NULL:
        (<list>tls().late_warnings[0]).append(message)
    else:
        Py_INCREF(messages)
        tls().late_warnings[0] = <PyObject*>messages
    return 0


cdef void begin_late_warnings(LateWarnings* late) noexcept:
    late.outer = tls().late_warnings
    late.messages = NULL
    tls().late_warnings = &late.messages


cdef void drop_late_warnings(LateWarnings* late) noexcept:
    """After a kernel that failed."""
    tls().late_warnings = late.outer
    Py_XDECREF(late.messages)


cdef int end_late_warnings(LateWarnings* late) except -1:
    tls().late_warnings = late.outer
    if late.messages != NULL:
        from tensorrt_lite._C.core.warning import warn
        messages = <list>late.messages
        Py_DECREF(messages)
        for message in messages:
            warn(message)
    return 0


cdef int changed_meanwhile(str name) except -1:
    raise RuntimeError(f"{name}: an operand was changed by another thread or by a filter of warnings while the operator ran")


cdef int check_unchanged(const PointwiseInfo* info, int nin, PyObject** inputs, int ndim, const int64_t* shape) except -1:
    """After something that may have let others run: the operands still broadcast to `shape`."""
    cdef int64_t now[MAX_DIMS]
    if broadcast_shapes(info.name.decode(), nin, inputs, now) != ndim or memcmp(now, shape, ndim * sizeof(int64_t)):
        changed_meanwhile(info.name.decode())
    return 0


cdef int not_implemented(const PointwiseInfo* info, int code) except -1:
    if code == BOOL and info.bool_error != NULL:
        raise RuntimeError(info.bool_error.decode())
    if category[code] <= CAT_INT and info.int_error != NULL:
        raise RuntimeError(info.int_error.decode())
    raise NotImplementedError(f"\"{info.name.decode()}_cpu\" not implemented for '{dtype_text(code)}'")


cdef int check_integers(const PointwiseInfo* info, TensorBase divisor, int compute) except -1:
    """Integer operators whose second operand must not be zero (or negative) look at it before anything is written."""
    cdef int64_t i
    cdef TensorBase c
    cdef int64_t* v
    if category[compute] > CAT_INT or divisor.numel == 0 or divisor.device_type != DEV_CPU:
        return 0
    c = contiguous_of(cast_to(cast_to(divisor, compute), I64))             # a number may become zero in a narrow type
    v = <int64_t*>data_of(c)
    if info.checks & CHECK_ZERO_DIVISOR:
        for i in range(c.numel):
            if v[i] == 0:
                raise RuntimeError(f"ZeroDivisionError: {info.name.decode()}: integer division by zero (element {i} of the divisor of shape {shape_text(divisor)})")
    if info.checks & CHECK_NEGATIVE_EXPONENT and divisor.wrapped_number:
        for i in range(c.numel):
            if v[i] < 0:
                raise RuntimeError("Integers to negative integer powers are not allowed.")
    return 0


cdef int check_operands(const PointwiseInfo* info, PyObject** inputs, const Scalar* params, int compute) except -1:
    """What an operator's row asks to be looked at before its loop runs: values of integers, the type of alpha."""
    cdef TensorBase a = <TensorBase>inputs[0], b = <TensorBase>inputs[1]
    if info.checks & CHECK_SUBTRACTION and (a.dtype == BOOL or b.dtype == BOOL):
        if a.dtype == BOOL and b.dtype == BOOL:
            raise RuntimeError(
                "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.")
        raise RuntimeError(
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the `~` or `logical_not()` "
            "operator instead.")
    if info.checks & CHECK_SAME_DTYPE and a.dtype != b.dtype and not b.wrapped_number:
        raise RuntimeError(f"{info.name.decode()}: expected dtype {dtype_text(a.dtype)} for the second tensor but got dtype {dtype_text(b.dtype)}")
    if info.checks & CHECK_ALPHA:
        if params[0].kind == 0 and compute != BOOL:
            raise RuntimeError("Boolean alpha only supported for Boolean results.")
        if params[0].kind == 2 and category[compute] <= CAT_INT:
            raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
        if params[0].kind == 3 and category[compute] != CAT_COMPLEX:
            raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    if info.checks & (CHECK_ZERO_DIVISOR | CHECK_NEGATIVE_EXPONENT):
        check_integers(info, b, compute)
    return 0


cdef int check_params(const PointwiseInfo* info, const Scalar* params, int compute) except -1:
    """Refuse parameters that the type of the loop can't hold: rows say which are wider (wide_params: half, single, any)."""
    cdef int i, code, wide
    for i in range(info.nparams):
        wide = info.wide_params >> i
        if wide & 256 or wide & 16 and (compute == F32 or compute == C64):
            continue
        code = F32 if wide & 1 and (compute == F16 or compute == BF16) else compute
        if not number_fits(&params[i], code):
            check_number(&params[i], code)
    return 0


cdef inline bint number_operand_fits(TensorBase number, int code) noexcept:
    cdef Scalar s
    load_number(data_of(number), number.dtype, &s)
    return number_fits(&s, code)


cdef int check_number_operands(int nin, PyObject** inputs, int code, bint one) except -1:
    """The same of operands that are numbers. `one`: they become tensors of one element, which halves and float8 convert."""
    cdef Scalar s
    cdef TensorBase x
    cdef int i
    for i in range(nin):
        x = <TensorBase>inputs[i]
        if x.wrapped_number:
            load_number(data_of(x), x.dtype, &s)
            if x.dtype == U64:
                s.kind, s.d = 4, <double><uint64_t>s.i
            if not (one and s.kind != 3 and is_reduced_floating_type(code)):
                check_number(&s, code)
    return 0


cdef inline bint unchecked(const PointwiseInfo* info, const Scalar* params, TensorBase a, TensorBase b) noexcept:
    """Whether operands of a type with a loop need no look at their values."""
    if info.checks == 0:
        return True
    if info.checks & CHECK_NUMBERS and b.wrapped_number and not number_operand_fits(b, a.dtype):
        return False
    if info.checks & CHECK_ALPHA and params[0].kind != 1:
        return False
    if b.dtype == BOOL and info.checks & CHECK_SUBTRACTION:
        return False
    return not info.checks & (CHECK_ZERO_DIVISOR | CHECK_NEGATIVE_EXPONENT) or category[a.dtype] > CAT_INT


cdef inline int output_code(const PointwiseInfo* info, int compute) noexcept:
    if info.promote & PROMOTE_BOOL_OUT:
        return BOOL
    if info.promote & PROMOTE_REAL_OUT:
        return to_real(compute)
    return compute


cdef inline int compute_code(const PointwiseInfo* info, int code) noexcept:
    if info.promote & PROMOTE_FLOAT and is_integral_or_bool_type(code):
        return default_float_code()
    return code


cdef char NO_ELEMENT[16]         # stands for an operand that comes as a parameter


cdef inline bint takes_wide_number(int code, TensorBase number) noexcept:
    """Whether operand 2 of halves is one number, which loses nothing on its way: PyTorch computes such products and quotients in float32."""
    return (code == F16 or code == BF16) and number.ndim == 0 and number.dtype != code and number.device_type == DEV_CPU and category[number.dtype] != CAT_COMPLEX


cdef inline void read_wide_number(TensorBase t, Scalar* number) noexcept:
    number.kind = 2
    convert_elements(cast_table, F64, <char*>&number.d, 0, t.dtype, data_of(t), 0, 1)      # types without loops have none of their own


cdef TensorBase pointwise(const PointwiseInfo* info, int nin, PyObject** inputs, const Scalar* params, TensorBase out, int mode):
    """The general path. inputs: nin tensors; out: None under FRESH."""
    cdef LateWarnings late
    if mode != OUT:
        return iterate(info, nin, inputs, params, out, mode)
    begin_late_warnings(&late)
    try:
        iterate(info, nin, inputs, params, out, mode)
    except:
        drop_late_warnings(&late)
        raise
    end_late_warnings(&late)
    return out


cdef TensorBase iterate(const PointwiseInfo* info, int nin, PyObject** inputs, const Scalar* params, TensorBase out, int mode):
    cdef Iter it
    cdef int64_t shape[MAX_DIMS]
    cdef int64_t stride[MAX_OPERANDS][MAX_DIMS]
    cdef int64_t fresh[MAX_DIMS]
    cdef int perm[MAX_DIMS]
    cdef int ndim, compute, kind, result, i, k, j, d, first = 0, device = -1, on_device = 0
    cdef TensorBase x
    cdef bint resized = False
    cdef Scalar number
    if info.promote & PROMOTE_FIRST_BOOL:
        first = 1
        if (<TensorBase>inputs[0]).dtype != BOOL and (<TensorBase>inputs[0]).dtype != U8:
            raise RuntimeError(f"{info.name.decode()} expected condition to be a boolean tensor, but got a tensor with dtype {dtype_text((<TensorBase>inputs[0]).dtype)}")
    compute = compute_code(info, result_code(nin - first, inputs + first))
    for i in range(nin):
        x = <TensorBase>inputs[i]
        if not (x.ndim == 0 and x.device_type == DEV_CPU):
            device = place_of(x)
            on_device = check_place(info, on_device, device)
    if device < 0:
        device = DEV_CPU if out is None else place_of(out)
    if out is not None:
        on_device = check_place(info, on_device, place_of(out))
    if info.checks & CHECK_SUBTRACTION and nin == 2:
        check_operands(info, inputs, params, compute)
    kind = loop_type[compute]
    if info.loops[kind] == NULL or kind != compute and not info.stored >> compute & 1:
        not_implemented(info, compute)
    if info.nparams and params != NULL and device != DEV_META:
        check_params(info, params, compute)
    if info.checks & CHECK_NUMBERS and device != DEV_META:
        check_number_operands(nin - first, inputs + first, compute, first == 1)
    if kind != compute and info.stored_as_bits:
        return iterate_bits(info, nin, first, inputs, params, out, mode, compute)
    result = output_code(info, compute)
    ndim = broadcast_shapes(info.name.decode(), nin, inputs, shape)
    if info.checks and nin > 1:
        check_operands(info, inputs, params, compute)
        if info.checks & (CHECK_ZERO_DIVISOR | CHECK_NEGATIVE_EXPONENT):       # a divisor was converted, maybe without the GIL
            check_unchanged(info, nin, inputs, ndim, shape)
    if out is not None:
        # the absolute value of complex numbers is converted to any type, as PyTorch does
        if mode == OUT and info.exact_out and out.dtype != result and not (info.promote & PROMOTE_REAL_OUT and category[compute] == CAT_COMPLEX):
            raise RuntimeError(f"{info.name.decode()}(): Found dtype {dtype_text(out.dtype)} but expected {dtype_text(result)}")
        for i in range(nin):
            if <PyObject*>out == inputs[i]:
                mode = INPLACE                     # what is read can't be resized before
        if info.checks & CHECK_NO_REPEATS and nin == 1 and <PyObject*>out == inputs[0] and has_internal_overlap(out):
            prepare_write(out.storage, info.name.decode())
            x = unrepeated(out)
            inputs[0] = <PyObject*>x
            iterate(info, 1, inputs, params, x, INPLACE)
            return out
        resized = mode == OUT and not has_shape(out, ndim, shape)
        prepare_out(info.name.decode(), out, ndim, shape, result, mode)
        for i in range(nin):
            check_no_overlap(info.name.decode(), out, <TensorBase>inputs[i], True)
    # strides in bytes by dimension of the result, operand 0 is the output
    for i in range(nin):
        x = <TensorBase>inputs[i]
        for k in range(ndim):
            j = k - (ndim - x.ndim)
            stride[i + 1][k] = x.strides[j] * ITEM_SIZE[x.dtype] if j >= 0 and (x.sizes[j] != 1 or shape[k] == 1) else 0
    if out is not None:
        for k in range(ndim):
            stride[0][k] = out.strides[k] * ITEM_SIZE[out.dtype]
    order_dimensions(nin + 1, ndim, shape, stride, out is not None and not resized, perm)
    if resized:
        fresh_strides(ndim, shape, perm, fresh)       # as a new result has
        set_geometry(out, ndim, shape, fresh)
        for k in range(ndim):
            stride[0][k] = fresh[k] * ITEM_SIZE[out.dtype]
    if out is None:
        j = 1
        for k in range(ndim):
            if perm[k] != ndim - 1 - k:
                j = 0
        if j:
            out = empty_tensor(ndim, shape, result, device)
        else:
            fresh_strides(ndim, shape, perm, fresh)
            out = empty_strided_tensor(ndim, shape, fresh, result, device)
        for k in range(ndim):
            stride[0][k] = out.strides[k] * ITEM_SIZE[result]
    if out.numel == 0 or device == DEV_META:
        return out
    if out.storage.block == NULL:
        changed_meanwhile(info.name.decode())
    it.nop = nin + 1
    it.any_stride = 0
    it.on_host = 0
    it.loop = info.loops[kind]
    it.params = NULL if info.wide_number else params       # derivatives hand on what their operators have
    it.scalar_forms = info.scalar_forms
    it.dtype[0] = out.dtype
    it.need[0] = output_code(info, kind)
    it.base[0] = data_of(out)
    for i in range(nin):
        x = <TensorBase>inputs[i]
        if x.storage.block == NULL:
            raise NotImplementedError(f"{info.name.decode()}: Cannot copy out of meta tensor; no data!")
        it.dtype[i + 1] = x.dtype
        it.need[i + 1] = BOOL if info.in_type[i] == IN_BOOL else kind
        it.base[i + 1] = data_of(x)
        if on_device and x.device_type == DEV_CPU:
            it.on_host |= 2 << i
    if info.wide_number and not on_device and kind == compute and takes_wide_number(kind, <TensorBase>inputs[1]):
        read_wide_number(<TensorBase>inputs[1], &number)
        it.params = &number
        it.dtype[2], it.base[2] = kind, NO_ELEMENT
    # drop dimensions of size 1, merge neighbours that continue each other
    d = -1
    for k in range(ndim):
        j = perm[k]
        if shape[j] == 1:
            continue
        if d >= 0:
            for i in range(it.nop):
                if stride[i][j] != it.stride[i][d] * it.sizes[d]:
                    break
            else:
                it.sizes[d] *= shape[j]
                continue
        d += 1
        it.sizes[d] = shape[j]
        for i in range(it.nop):
            it.stride[i][d] = stride[i][j]
    if d < 0:
        d, it.sizes[0] = 0, 1
        for i in range(it.nop):
            it.stride[i][0] = ITEM_SIZE[it.dtype[i]]
    it.ndim = d + 1
    if nin == 2 and it.stride[1][0] == 0 and it.stride[2][0] == 0:
        it.scalar_forms &= 4               # a loop takes one number at a time
    if on_device:
        hooks_of(out.device_type).iterate(info, &it, kind, out, inputs)
    else:
        run_iteration(&it, info.cost, out.numel, out, inputs)
    return out


cdef TensorBase iterate_bits(const PointwiseInfo* info, int nin, int first, PyObject** inputs, const Scalar* params, TensorBase out, int mode, int code):
    """An operator that chooses between elements, in a type without loops: on their bits, which a conversion might change (NaNs)."""
    cdef PyObject* given[MAX_OPERANDS]
    cdef TensorBase r
    cdef int i
    cdef list kept = []
    for i in range(nin):
        given[i] = inputs[i]
        if i >= first:
            r = as_bits(cast_to(<TensorBase>inputs[i], code))
            kept.append(r)
            given[i] = <PyObject*>r
    r = iterate(info, nin, given, params, None, FRESH)
    set_dtype(r, code)
    if mode == FRESH:
        return r
    prepare_out(info.name.decode(), out, r.ndim, r.sizes, code, mode)
    copy_elements(out, r)
    return out


cdef inline int check_place(const PointwiseInfo* info, int known, int place) except -1:
    """The device with memory of its own that operands lie on, 0 for none: `known` from those before, `place` of the next."""
    if known == place or not has_index(place & 0xFF):
        if known and place == DEV_CPU:
            different_devices(info.name, known, place)
        return known
    if known:
        different_devices(info.name, known, place)
    return place


cdef int different_devices(const char* name, int a, int b) except -1:
    raise hinted("devices", RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {place_text(a)} and {place_text(b)}! ({name.decode()})"))


cdef void fresh_strides(int ndim, const int64_t* shape, const int* perm, int64_t* strides) noexcept:
    cdef int64_t n = 1
    cdef int k
    for k in range(ndim):
        strides[perm[k]] = n
        if shape[perm[k]] > 1:
            n *= shape[perm[k]]


cdef inline bint fast_out(TensorBase out, TensorBase a, int code) noexcept:
    return out.contiguous and out.dtype == code and same_sizes(a, out) and (out.storage is not a.storage or out.offset == a.offset) and out.numel < 4096


cdef struct Span:
    loop_t loop
    const Scalar* params
    int nop
    char* base[4]
    int64_t stride[4]


cdef void run_contiguous(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Span* s = <Span*>context
    cdef char* data[4]
    cdef int i
    for i in range(s.nop):
        data[i] = s.base[i] + begin * s.stride[i]
    s.loop(data, s.stride, end - begin, s.params)


cdef int run_large(const PointwiseInfo* info, Span* s, int64_t n, Storage s0, Storage s1, Storage s2) except -1:
    """On large operands without the GIL, on memory that is held: a block may be swapped by a resize, or its last tensor go."""
    cdef trt_block* held[3]
    cdef int64_t grain = max(<int64_t>1, GRAIN // max(info.cost, 1))
    cdef int i
    if n < HELD_NUMEL:
        parallel_for(n, grain, 1024, run_contiguous, s)
        return 0
    held[0], held[1], held[2] = s0.block, s1.block, s0.block if s2 is None else s2.block
    for i in range(3):
        trt_block_hold(held[i])
    with nogil:
        parallel_for(n, grain, 1024, run_contiguous, s)
    for i in range(3):
        block_drop(held[i])
    return 0


cdef TensorBase pointwise1(const PointwiseInfo* info, TensorBase a, const Scalar* params, TensorBase out, int mode):
    cdef Span s
    cdef int code
    cdef TensorBase r
    cdef PyObject* inputs[1]
    if a.contiguous and a.device_type == DEV_CPU and compute_code(info, a.dtype) == a.dtype and info.loops[a.dtype] != NULL and a.numel > 0:
        if info.nparams:
            check_params(info, params, a.dtype)
        code = output_code(info, a.dtype)
        r = None
        if mode == FRESH:
            r = empty_like_tensor(a, code)
        elif out is a and code == a.dtype:
            r = out
        if r is not None:
            s.base[0] = data_of(r)
            s.base[1] = data_of(a)
            s.stride[0] = ITEM_SIZE[code]
            s.stride[1] = ITEM_SIZE[a.dtype]
            if a.numel < 4096:
                info.loops[a.dtype](s.base, s.stride, a.numel, params)
                return r
            s.loop = info.loops[a.dtype]
            s.params = params
            s.nop = 2
            run_large(info, &s, a.numel, r.storage, a.storage, None)
            return r
    inputs[0] = <PyObject*>a
    return pointwise(info, 1, inputs, params, out, mode)


cdef TensorBase pointwise2(const PointwiseInfo* info, TensorBase a, TensorBase b, const Scalar* params, TensorBase out, int mode):
    cdef Span s
    cdef int code
    cdef bint whole
    cdef TensorBase r
    cdef PyObject* inputs[2]
    if (a.contiguous and a.device_type == DEV_CPU and b.device_type == DEV_CPU and a.numel > 0 and unchecked(info, params, a, b)
            and compute_code(info, a.dtype) == a.dtype and info.loops[a.dtype] != NULL and not info.promote & PROMOTE_FIRST_BOOL):
        whole = b.contiguous and a.dtype == b.dtype and not a.wrapped_number and same_sizes(a, b)
        if whole or (b.wrapped_number and a.ndim > 0 and info.scalar_forms & 4 and category[b.dtype] <= category[a.dtype]):
            code = output_code(info, a.dtype)
            r = None
            if mode == FRESH:
                r = empty_like_tensor(a, code)
            elif out is a and code == a.dtype and (not whole or out.storage is not b.storage or b.offset == out.offset):
                r = out
            if r is not None:
                if info.nparams:
                    check_params(info, params, a.dtype)
                return run_binary(info, r, a, b, code, whole, params)
    inputs[0] = <PyObject*>a
    inputs[1] = <PyObject*>b
    return pointwise(info, 2, inputs, params, out, mode)


cdef TensorBase run_binary(const PointwiseInfo* info, TensorBase r, TensorBase a, TensorBase b, int code, bint whole, const Scalar* params):
    """Contiguous operands of one type; `b` is a Python number unless `whole`."""
    cdef Span s
    cdef char number[16]
    cdef Scalar wide
    s.base[0] = data_of(r)
    s.base[1] = data_of(a)
    s.base[2] = data_of(b)
    s.stride[0] = ITEM_SIZE[code]
    s.stride[1] = ITEM_SIZE[a.dtype]
    s.stride[2] = s.stride[1]
    if info.wide_number:
        params = NULL
        if not whole and takes_wide_number(a.dtype, b):
            read_wide_number(b, &wide)
            params = &wide
    if not whole:
        convert_elements(cast_table, a.dtype, number, 0, b.dtype, s.base[2], 0, 1)
        s.base[2] = number
        s.stride[2] = 0
    if a.numel < 4096:
        info.loops[a.dtype](s.base, s.stride, a.numel, params)
        return r
    s.loop = info.loops[a.dtype]
    s.params = params
    s.nop = 3
    run_large(info, &s, a.numel, r.storage, a.storage, b.storage)
    return r


cdef TensorBase pointwise3(const PointwiseInfo* info, TensorBase a, TensorBase b, TensorBase c, const Scalar* params, TensorBase out, int mode):
    cdef PyObject* inputs[3]
    inputs[0] = <PyObject*>a
    inputs[1] = <PyObject*>b
    inputs[2] = <PyObject*>c
    return pointwise(info, 3, inputs, params, out, mode)


# ---- copies, fills, conversions ------------------------------------------------------------------------------------

cdef void convert_run_by_blocks(char** data, const int64_t* stride, int64_t n, const Scalar* types) noexcept nogil:
    """convert_run of two types whose conversion has no loop of its own."""
    convert_elements(cast_table, (<const int*><const void*>types)[0], data[0], stride[0], (<const int*><const void*>types)[1], data[1], stride[1], n)


cdef int copy_elements(TensorBase destination, TensorBase source) except -1:
    """destination[...] = source, broadcast and converted; the destination's shape stays."""
    cdef Iter it
    cdef bint on_device = has_index(destination.device_type)
    cdef int64_t stride[2][MAX_DIMS]
    cdef int perm[MAX_DIMS]
    cdef int i, j, k, d = -1, ndim = destination.ndim
    cdef PyObject* inputs[1]
    cdef Scalar row              # what choose_copy_loop says of it
    cdef loop_t loop
    if destination.device_type == DEV_META:
        return 0
    if source.storage.block == NULL:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if source.ndim > ndim and source.numel != 1:
        raise RuntimeError(f"copy_(): the source of shape {shape_text(source)} can't be broadcast to {shape_text(destination)}")
    for k in range(ndim - 1, -1, -1):
        j = k - (ndim - source.ndim)
        if j >= 0 and source.sizes[j] != 1 and source.sizes[j] != destination.sizes[k]:
            raise RuntimeError(
                f"The size of tensor a ({destination.sizes[k]}) must match the size of tensor b ({source.sizes[j]}) at non-singleton dimension {k} "
                f"(copy_: shapes {shape_text(destination)}, {shape_text(source)})")
        stride[0][k] = destination.strides[k] * ITEM_SIZE[destination.dtype]
        stride[1][k] = source.strides[j] * ITEM_SIZE[source.dtype] if j >= 0 and source.sizes[j] != 1 else 0
    if destination.numel == 0:
        return 0
    if (on_device or has_index(source.device_type)) and place_of(destination) != place_of(source) and not (on_device and source.ndim == 0 and source.device_type == DEV_CPU):
        return hooks_of(max(destination.device_type, source.device_type)).copy(destination, source, False)      # custom types are the largest numbers
    if destination.contiguous and source.contiguous and destination.dtype == source.dtype and destination.numel == source.numel and destination.numel < 4096 and not on_device:
        memmove(data_of(destination), data_of(source), destination.numel * ITEM_SIZE[source.dtype])
        return 0
    if memory_overlap(destination, source) == 1:
        return 0
    if memory_overlap(destination, source) >= 2 and destination.storage.block == source.storage.block:
        return copy_elements(destination, contiguous_copy(source))
    order_dimensions(2, ndim, destination.sizes, stride, True, perm)
    it.nop, it.scalar_forms, it.any_stride = 2, 0, 1
    it.dtype[0] = it.need[0] = destination.dtype
    it.dtype[1] = it.need[1] = source.dtype
    if cast_table[source.dtype][destination.dtype] != NULL:
        it.loop = convert_run
        it.params = <const Scalar*><const void*>cast_table[source.dtype][destination.dtype]
    else:
        it.loop = convert_run_by_blocks
        it.params = <const Scalar*><const void*>it.dtype
    it.base[0] = data_of(destination)
    it.base[1] = data_of(source)
    for k in range(ndim):
        j = perm[k]
        if destination.sizes[j] == 1:
            continue
        if d >= 0 and stride[0][j] == it.stride[0][d] * it.sizes[d] and stride[1][j] == it.stride[1][d] * it.sizes[d]:
            it.sizes[d] *= destination.sizes[j]
            continue
        d += 1
        it.sizes[d] = destination.sizes[j]
        it.stride[0][d] = stride[0][j]
        it.stride[1][d] = stride[1][j]
    if d < 0:
        d, it.sizes[0] = 0, 1
        it.stride[0][0] = ITEM_SIZE[it.dtype[0]]
        it.stride[1][0] = ITEM_SIZE[it.dtype[1]]
    inputs[0] = <PyObject*>source
    it.ndim = d + 1
    if on_device:
        it.on_host = 2 if source.device_type == DEV_CPU else 0
        return hooks_of(destination.device_type).iterate(NULL, &it, destination.dtype, destination, inputs)
    loop = choose_copy_loop(&it.ndim, it.sizes, it.stride[0], it.stride[1], ITEM_SIZE[destination.dtype], destination.dtype == source.dtype, &row)
    if loop != NULL:
        it.loop, it.params, it.scalar_forms = loop, &row, 2
        it.any_stride = ROWS if it.ndim == d else 1
    run_iteration(&it, 1, destination.numel, destination, inputs)
    return 0


cdef TensorBase as_bits(TensorBase t):
    """A tensor of a type without loops as one of integers, which are moved everywhere."""
    cdef TensorBase r = alias_of(t)
    cdef int size = ITEM_SIZE[t.dtype]
    set_dtype(r, U8 if size == 1 else I16 if size == 2 else I32 if size == 4 else I64)
    return r


cdef TensorBase on_host(TensorBase t):
    cdef TensorBase r = t if t.device_type == DEV_CPU else empty_tensor(t.ndim, t.sizes, t.dtype, DEV_CPU)
    if r is not t:
        copy_elements(r, t)
    return r


cdef TensorBase contiguous_copy(TensorBase t):
    cdef TensorBase r = empty_tensor(t.ndim, t.sizes, t.dtype, place_of(t))
    copy_elements(r, t)
    return r


cdef TensorBase contiguous_of(TensorBase t):
    return t if t.contiguous else <TensorBase?>(<object>t).contiguous() if t.keys & K_WRAPPED else contiguous_copy(t)


cdef TensorBase cast_to(TensorBase t, int dtype):
    """A copy in another type (strides preserved); `t` itself when the type is right. Not differentiable."""
    cdef TensorBase r
    if t.dtype == dtype or t.keys & K_STANDS_IN:           # which has no elements of its own
        return t if t.dtype == dtype else <TensorBase?>(<object>t).detach().to(dtype_of(dtype))
    r = empty_like_tensor(t, dtype)
    copy_elements(r, t)
    return r


cdef TensorBase unrepeated(TensorBase t):
    """A view of a tensor that has each element of its expanded dimensions once."""
    cdef int64_t sizes[MAX_DIMS]
    cdef TensorBase r = alias_of(t)
    cdef int i
    for i in range(t.ndim):
        sizes[i] = 1 if t.strides[i] == 0 and t.sizes[i] > 1 else t.sizes[i]
    set_geometry(r, t.ndim, sizes, t.strides)
    return r


cdef int fill_elements(TensorBase t, const Scalar* value) except -1:
    """t[...] = value"""
    cdef TensorBase s
    cdef char number[16]
    if t.numel == 0 or t.device_type == DEV_META:
        return 0
    if has_internal_overlap(t):
        t = unrepeated(t)
    if t.contiguous and t.numel < 4096 and t.device_type == DEV_CPU:
        store_scalar(number, t.dtype, value)
        fill_block(data_of(t), number, t.numel, ITEM_SIZE[t.dtype])
        return 0
    s = empty_tensor(0, NULL, t.dtype, DEV_CPU)
    store_scalar(data_of(s), t.dtype, value)
    return copy_elements(t, s)
