"""Types without loops under operators that are not pointwise: the boxed kernel of the key StorageOnly.

A row says by a letter for each type what its kernels are given instead (`stored` in its declaration): `b` integers of the elements' bits, which
it moves, `c` the type that the type computes in, with results converted back, `o` integers in the same order (`p`: of which results are positions), `i` int64 or the dtype that the call
names, `d` that dtype alone, `f` the default floating-point type, `t` whether elements are not zero. `.`: PyTorch has no kernel either. The kernels
themselves never meet such a type.
"""
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport strlen
from cpython.object cimport PyObject
from tensorrt_lite._C.core.dtype cimport *
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.tensor cimport (
    TensorBase, KEY_STORAGE_ONLY, K_BACKENDS, data_of, empty_tensor, hold_versions, resize_tensor, set_dtype)
from tensorrt_lite._C.core.dispatch cimport attach, tls, trt_operator, trt_thread_state, trt_value, FRESH, INPLACE, NO_OUT
from tensorrt_lite._C.core.iterator cimport as_bits, cast_to, copy_elements
from tensorrt_lite._C.core.boxing cimport register_boxed
from tensorrt_lite._C.core.row_schema cimport schema_of
from tensorrt_lite._C.core.storage cimport prepare_write

attach()

cdef enum:
    MOST_ARGUMENTS = 24

cdef extern from "stage.h" nogil:
    void store_scalar(char* destination, int dtype, const Scalar* value)


cdef int stored_type(object x, int code) except -2:
    """The type without loops that `code` or the tensors in x are of, -1 for none. RuntimeError for two of them."""
    cdef int other
    if isinstance(x, TensorBase):
        other = (<TensorBase>x).dtype
        if has_loops(other) or other == code:
            return code
        if code >= 0:
            raise_promotion(code, other)
        return other
    if isinstance(x, (list, tuple)):
        for y in x:
            code = stored_type(y, code)
    return code


cdef TensorBase flipped(TensorBase t):
    """uint64 as int64 in the same order, and back: a copy with the highest bit of each element turned."""
    cdef TensorBase r = empty_tensor(t.ndim, t.sizes, I64, DEV_CPU)
    cdef uint64_t* p
    cdef int64_t i
    if t.device_type != DEV_CPU:
        raise NotImplementedError("the order of uint64 is not implemented for CUDA")
    copy_elements(r, as_bits(t))
    p = <uint64_t*>data_of(r)
    for i in range(r.numel):
        p[i] ^= <uint64_t>1 << 63
    return r


cdef int type_given(int code, char letter, int asked) except -2:
    """The type that arguments of type `code` are converted to; -1: none. asked: the dtype that the call names, or -1."""
    if letter == c'd' or letter == c'i' and asked >= 0:
        return asked if asked < 0 or has_loops(asked) else -1
    return I64 if letter == c'i' else BOOL if letter == c't' else default_float_code() if letter == c'f' else loop_type[code]


cdef object given_as(object x, int code, char letter, int target, list pairs):
    """What a kernel is given for an argument of type `code`; `pairs` remembers (argument, what stands for it)."""
    cdef TensorBase t, r
    if isinstance(x, (list, tuple)):
        return [given_as(y, code, letter, target, pairs) for y in x]
    if not isinstance(x, TensorBase) or (<TensorBase>x).dtype != code:
        if letter == c'c' and not is_integral_or_bool_type(target) and isinstance(x, TensorBase) and (<TensorBase>x).dtype == target and (<TensorBase>x).ndim:
            raise RuntimeError(f"expected operands of one dtype, but found {dtype_of(code)} and {dtype_of(target)}")
        return x
    for known, r in pairs:
        if known is x:
            return r
    t = <TensorBase>x
    if letter == c'b':
        r = as_bits(t)
        r.wrapped_number = t.wrapped_number
    elif (letter == c'o' or letter == c'p') and code == U64:
        r = flipped(t)
    else:
        r = cast_to(t, target)
    pairs.append((x, r))
    return r


cdef object _selector_of = None


def _set_selectors(f):
    """f(row's name): the argument that chooses elements, which has a type of its own; "" without one."""
    global _selector_of
    _selector_of = f


cdef object element_value(str op, str name, object x, int code):
    """An argument of an operator that moves bits: a value without dimensions is one of the type, others must be of it. What would add is refused.

    `code` may be the type of a later argument, or of `out`, alone: bits of another type must not become the result."""
    cdef TensorBase t, r
    if name == "reduce" and x is not None or name == "accumulate" and x:
        raise NotImplementedError(f"\"{op}\" with {name} not implemented for '{dtype_label(code).decode()}'")
    if not isinstance(x, TensorBase) or (<TensorBase>x).dtype == code or name == _selector_of(op):
        return x
    t = <TensorBase>x
    if t.ndim or name == "self" or not can_cast(t.dtype, code):
        raise RuntimeError(f"{op}(): expected {name} to be of the dtype {dtype_of(code)}, but it is of {dtype_of(t.dtype)}")
    r = cast_to(t, code)
    r.wrapped_number = t.wrapped_number
    return r


cdef object result_as(object x, int code, char letter, bint first):
    """A kernel's result in the terms of type `code`."""
    cdef TensorBase r
    cdef int kind = loop_type[code]
    if isinstance(x, (tuple, list)):
        return type(x)([result_as(y, code, letter, first and i == 0) for i, y in enumerate(x)])
    if not isinstance(x, TensorBase) or letter not in (c'b', c'c', c'o'):
        return x
    r = <TensorBase>x
    if letter == c'b':
        if first:
            set_dtype(r, code)
        return r
    if letter == c'o' and code == U64:
        if not first:
            return r
        r = flipped(r)
        set_dtype(r, code)
        return r
    # an integer type's other results are positions
    if r.dtype == kind and (first or not is_integral_or_bool_type(kind)):
        return cast_to(r, code)
    if is_complex_type(code) and r.dtype == real_type[kind]:
        return cast_to(r, real_type[code])
    return r


cdef int write_result(str name, object out, object result, int mode) except -1:
    cdef TensorBase o, r
    if not isinstance(result, TensorBase):
        for x, y in zip(out, result, strict=True):
            write_result(name, x, y, mode)
        return 0
    o = <TensorBase?>out
    r = <TensorBase>result
    if not can_cast(r.dtype, o.dtype):
        raise RuntimeError(f"result type {dtype_label(r.dtype).decode()} can't be cast to the desired output type {dtype_label(o.dtype).decode()} ({name})")
    if mode != INPLACE:
        resize_tensor(o, r.ndim, r.sizes, 0)
    prepare_write(o.storage, name)
    copy_elements(o, r)
    return 0


cdef object run_stored(trt_operator* op, const trt_value* given, PyObject* out, int mode):
    cdef trt_thread_state* state = tls()
    cdef uint64_t excluded = state.excluded
    cdef const char* kinds = op.row.kinds
    cdef int n = <int>strlen(kinds), i, code = -1, asked = -1, target
    cdef trt_value v[MOST_ARGUMENTS]
    cdef Scalar bits[MOST_ARGUMENTS]
    cdef int64_t element
    cdef char letter
    cdef list kept = [], pairs = []
    cdef str name
    cdef tuple names
    for i in range(n):
        if kinds[i] == c't' or kinds[i] == c'l':
            code = stored_type(<object>given[i].p, code)
        elif kinds[i] == c'y':
            asked = <int>given[i].i
    if code < 0 and out != NULL:
        code = stored_type(<object>out, code)
    letter = c'.' if op.row.stored == NULL else op.row.stored[code]
    name = op.name.decode()
    target = type_given(code, letter, asked)
    if letter == c'.' or target < 0 or n > MOST_ARGUMENTS:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype_label(code).decode()}'")
    names = schema_of(op.row.schema).names if letter == c'b' else None
    for i in range(n):
        v[i] = given[i]
        if kinds[i] == c't' or kinds[i] == c'l':
            x = <object>given[i].p if names is None else element_value(name, names[i], <object>given[i].p, code)
            kept.append(x)
            x = given_as(x, code, letter, target, pairs)
            kept.append(x)
            v[i].p = <void*>x
        elif names is not None and (kinds[i] == c'o' or kinds[i] == c'b'):
            element_value(name, names[i], <object>given[i].p if kinds[i] == c'o' else given[i].i != 0, code)
        elif kinds[i] == c's' and letter == c'b' and given[i].p != NULL:
            # the number's bits in the type, as an integer of its size
            element = 0
            store_scalar(<char*>&element, code, <const Scalar*>given[i].p)
            bits[i].kind = CAT_INT
            bits[i].d = bits[i].im = 0
            bits[i].i = element
            v[i].p = &bits[i]
    state.excluded = excluded | ~<uint64_t>K_BACKENDS
    hold_versions(1)
    try:
        if mode == NO_OUT:
            return result_as(op.row.unpack(op, v, NULL, mode), code, letter, True)
        if letter == c'b' and mode == INPLACE:
            for x, y in pairs:
                if x is <object>out:
                    op.row.unpack(op, v, <void*>y, mode)
                    return <object>out
        result = result_as(op.row.unpack(op, v, <void*>None, FRESH), code, letter, True)
        if mode == FRESH:
            return result
        write_result(name, <object>out, result, mode)
        return <object>out
    finally:
        hold_versions(-1)
        state.excluded = excluded


register_boxed(KEY_STORAGE_ONLY, run_stored)
