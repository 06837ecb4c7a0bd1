# Entries of functions with optional arguments, and functions that are compositions of declared operators.
import builtins as _builtins


cdef object squared(object input, object out, bint inplace):
    """A bool tensor becomes int64."""
    if isinstance(input, TensorBase) and (<TensorBase>input).dtype == BOOL:
        return _ops.pow_(input, 2) if inplace else _ops.pow(input, 2, out=out)
    return entry1(&pw_math[PW_SQUARE], input, NULL, out, inplace)


cdef object conjugated(object input, object out, bint inplace):
    """A real tensor is returned as it is."""
    if out is None and not inplace and isinstance(input, TensorBase) and category[(<TensorBase>input).dtype] <= CAT_FLOAT:
        return input
    return entry1(&pw_math[PW_CONJ_PHYSICAL], input, NULL, out, inplace)


cdef object rounded(object input, object decimals, object out, bint inplace):
    cdef Scalar p[2]
    cdef int64_t d = parse_int(decimals, "round", "decimals")
    if d == 0:
        return entry1(&pw_math[PW_ROUND], input, NULL, out, inplace)
    param(d, &p[0], "round", "decimals")
    param(10.0 ** (-d if d < 0 else d), &p[1], "round", "decimals")
    return entry1(&pw_math[PW__ROUND_DECIMALS], input, p, out, inplace)


cdef int real_param(object x, Scalar* s, str op, str name) except -1:
    """A parameter of a row that PyTorch's operator takes as a float."""
    s.kind, s.d, s.im = 2, parse_double(x, op, name), 0
    s.i = 0
    return 0


cdef object logit_of(object input, object eps, object out, bint inplace):
    cdef Scalar p[1]
    if eps is None:
        return entry1(&pw_math[PW_LOGIT], input, NULL, out, inplace)
    real_param(eps, &p[0], "logit", "eps")
    if p[0].d < 0:
        if isinstance(input, TensorBase):
            check_number(&p[0], (<TensorBase>input).dtype if category[(<TensorBase>input).dtype] >= CAT_FLOAT else default_float_code())
        return entry1(&pw_math[PW_LOGIT], input, NULL, out, inplace)
    return entry1(&pw_math[PW__LOGIT_EPS], input, p, out, inplace)


cdef object numbers_for_nan(object input, object nan, object posinf, object neginf, object out, bint inplace):
    cdef Scalar p[3]
    cdef double largest = 0
    if isinstance(input, TensorBase) and category[(<TensorBase>input).dtype] >= CAT_FLOAT:
        largest = LARGEST[real_type[(<TensorBase>input).dtype]]
    real_param(0.0 if nan is None else nan, &p[0], "nan_to_num", "nan")
    real_param(largest if posinf is None else posinf, &p[1], "nan_to_num", "posinf")
    real_param(-largest if neginf is None else neginf, &p[2], "nan_to_num", "neginf")
    if isinstance(input, TensorBase) and category[(<TensorBase>input).dtype] == CAT_COMPLEX:
        parts = numbers_for_nan(_ops.view_as_real(input), nan, posinf, neginf, None, inplace)
        return input if inplace else deliver_result("nan_to_num", _ops.view_as_complex(parts), out)
    return entry1(&pw_math[PW_NAN_TO_NUM], input, p, out, inplace)


def angle_backward(grad, input):
    """The gradient of angle: zero for real numbers, i z / |z|^2 for complex ones."""
    if category[(<TensorBase?>input).dtype] != CAT_COMPLEX:
        return _ops.zeros_like(grad)
    size = _ops.abs(input)
    return _ops.where(size == 0, 0, grad * input * 1j / (size * size))


def positive(input):
    """input itself; RuntimeError on bool tensors."""
    if isinstance(input, TensorBase) and (<TensorBase>input).dtype == BOOL:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def conj(input):
    """The complex conjugate; input itself where it is real."""
    if isinstance(input, TensorBase) and category[(<TensorBase>input).dtype] != CAT_COMPLEX:
        return input
    return entry1(&pw_math[PW_CONJ_PHYSICAL], input, NULL, None, False)


def real(input):
    """The real part: a view of complex tensors, input itself otherwise."""
    as_tensor_arg(input, "real", "input")
    return input.real


def imag(input):
    """The imaginary part as a view; RuntimeError on real tensors."""
    as_tensor_arg(input, "imag", "input")
    return input.imag


def complex(real, imag, *, out=None):
    """real + i imag, of two tensors of the same floating type."""
    cdef TensorBase a = as_tensor_arg(real, "complex", "real"), b = as_tensor_arg(imag, "complex", "imag")
    if a.dtype not in (F16, F32, F64) or b.dtype not in (F16, F32, F64):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {dtype_text(a.dtype)} and "
                           f"{dtype_text(b.dtype)}")
    if a.dtype != b.dtype:
        raise RuntimeError(f"Expected object of scalar type {dtype_text(a.dtype)} but got scalar type "
                           f"{dtype_text(b.dtype)} for second argument")
    first, second = _ops.broadcast_pair(real, imag)
    if out is not None and isinstance(out, TensorBase) and (<TensorBase>out).dtype != to_complex(a.dtype):
        raise RuntimeError(f"Expected object of scalar type {dtype_text(to_complex(a.dtype))} but got scalar type "
                           f"{dtype_text((<TensorBase>out).dtype)} for argument 'out'")
    return deliver_result("complex", _ops.view_as_complex(_ops.stack((first, second), -1)), out)


def broadcast_pair(first, second):
    """Both tensors expanded to their common shape."""
    cdef PyObject* pair[2]
    cdef int64_t shape[MAX_DIMS]
    cdef int i, n
    pair[0] = <PyObject*>(<TensorBase?>first)
    pair[1] = <PyObject*>(<TensorBase?>second)
    n = broadcast_shapes("broadcast", 2, pair, shape)
    sizes = tuple([shape[i] for i in range(n)])
    return _ops.expand(first, sizes), _ops.expand(second, sizes)


def polar(abs, angle, *, out=None):
    """abs (cos(angle) + i sin(angle))"""
    cdef TensorBase a = as_tensor_arg(abs, "polar", "abs"), b = as_tensor_arg(angle, "polar", "angle")
    if not (a.dtype == F32 or a.dtype == F64 or a.dtype == F16) or not (b.dtype == F32 or b.dtype == F64 or b.dtype == F16):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {dtype_text(a.dtype)} and {dtype_text(b.dtype)}")
    if out is None and (a.requires_grad or b.requires_grad) and a.dtype == b.dtype:
        return op__polar(a, b)
    if a.dtype == F16 and b.dtype == F16:
        raise NotImplementedError("\"polar_cpu\" not implemented for 'Half'")
    if a.dtype != b.dtype:
        raise RuntimeError(f"Expected object of scalar type {dtype_text(a.dtype)} but got scalar type "
                           f"{dtype_text(b.dtype)} for second argument")
    return complex(abs * _ops.cos(angle), abs * _ops.sin(angle), out=out)


cdef TensorBase polar_impl(TensorBase self, TensorBase angle):
    cdef object a = alias_of(self), b = alias_of(angle)
    return <TensorBase?>complex(a * _ops.cos(b), a * _ops.sin(b))


def float_power(input, exponent, *, out=None):
    """input ** exponent in double precision (complex128 where either is complex)."""
    cdef bint is_complex = False
    cdef object kind
    for x in (input, exponent):
        if isinstance(x, TensorBase):
            is_complex = is_complex or category[(<TensorBase>x).dtype] == CAT_COMPLEX
        elif isinstance(x, _builtins.complex):
            is_complex = True
    kind = dtype_of(C128 if is_complex else F64)
    if out is not None and isinstance(out, TensorBase) and dtype_of((<TensorBase>out).dtype) is not kind:
        raise RuntimeError(f"the output given to float_power has dtype {dtype_of((<TensorBase>out).dtype).name} but the operation's result requires dtype {kind.name}")
    a = input.to(kind) if isinstance(input, TensorBase) else input
    b = exponent.to(kind) if isinstance(exponent, TensorBase) else exponent
    return _ops.pow(a, b, out=out)


def float_power_(input, exponent):
    """float_power in place; the tensor must be float64 or complex128 already."""
    cdef int wanted = F64
    if category[(<TensorBase?>input).dtype] == CAT_COMPLEX or isinstance(exponent, _builtins.complex) or (
            isinstance(exponent, TensorBase) and category[(<TensorBase>exponent).dtype] == CAT_COMPLEX):
        wanted = C128
    if (<TensorBase>input).dtype != wanted:
        raise RuntimeError(f"the base given to float_power_ has dtype {dtype_of((<TensorBase>input).dtype).name} but the operation's result requires dtype {dtype_of(wanted).name}")
    return _ops.pow_(input, exponent.to(dtype_of(wanted)) if isinstance(exponent, TensorBase) else exponent)


cdef bint scales_by_integers(TensorBase x, TensorBase n) noexcept:
    return is_floating_type(x.dtype) and has_loops(x.dtype) and is_integral_type(n.dtype)


cdef object integer_ldexp(object x, object n):
    """x * 2 ** n in x's type, which for bfloat16 can't hold every exponent."""
    if (<TensorBase>x).dtype != BF16:
        return _ops._ldexp_of_integers(x, n)
    return _ops._ldexp_of_integers(x.to(dtype_of(F32)), n).to(dtype_of(BF16))


def ldexp(input, other, *, out=None):
    """input * 2 ** other"""
    cdef TensorBase a = as_tensor_arg(input, "ldexp", "input"), b
    if isinstance(other, TensorBase) and scales_by_integers(a, other):
        return deliver_result("ldexp", integer_ldexp(input, other), out)
    if out is None and isinstance(other, TensorBase):
        b = other
        if (a.requires_grad or b.requires_grad) and a.dtype == b.dtype and (a.dtype == F32 or a.dtype == F64):
            return op__ldexp(a, b, NULL, None, FRESH)
    return _ops.mul(input, _ops.pow(2.0, other), out=out)


def ldexp_(input, other):
    """ldexp in place."""
    if isinstance(other, TensorBase) and scales_by_integers(<TensorBase?>input, other):
        return _ops.copy_(input, integer_ldexp(input, other))
    return _ops.mul_(input, _ops.pow(2.0, other))


WITHOUT_ROW = {"angle_backward": "", "broadcast_pair": ""}
EXTRA_SYMBOLS = {"__pos__": positive}
METHOD_ALIASES = {}
FUNCTION_ALIASES = {}
