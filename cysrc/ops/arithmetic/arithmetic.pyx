# Entries of arithmetic that choose between declared operators by the kind of their arguments.

cdef TensorBase operand_of(object x, str op, str name):
    return <TensorBase>x if isinstance(x, TensorBase) else as_operand(x, op, name)


cdef object divided(object input, object other, object rounding_mode, object out, bint inplace):
    if rounding_mode is None:
        return entry2(&pw_arithmetic[PW_DIV], input, other, NULL, out, inplace)
    if rounding_mode == "floor":
        return entry2(&pw_arithmetic[PW_FLOOR_DIVIDE], input, other, NULL, out, inplace)
    if rounding_mode == "trunc":
        return entry2(&pw_arithmetic[PW_DIV_TRUNC], input, other, NULL, out, inplace)
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


def true_divide(input, other, *, out=None):
    """input / other."""
    return divided(input, other, None, out, False)


def true_divide_(input, other):
    """true_divide in place."""
    return divided(input, other, None, None, True)


def where(condition, input=None, other=None, *, out=None):
    """input where condition holds, other elsewhere, broadcast; with condition alone the indices where it holds, per dimension."""
    if input is None and other is None:
        return _ops.nonzero(condition, as_tuple=True)
    if not isinstance(condition, TensorBase):
        raise TypeError(f"where(): argument 'condition' (position 1) must be Tensor, not {type(condition).__name__}")
    if not isinstance(input, TensorBase) and not is_number(input):
        raise TypeError(f"where(): argument 'input' (position 2) must be Tensor, not {type(input).__name__}")
    return entry3(&pw_arithmetic[PW_WHERE], condition, input, other, NULL, out, False)


def where_method(self, condition, other):
    """self where condition holds, other elsewhere."""
    return where(condition, self, other)


cdef object clamped(object input, object min, object max, object out, bint inplace):
    cdef Scalar p[2]
    cdef bint min_number = min is not None and not isinstance(min, TensorBase) and is_number(min)
    cdef bint max_number = max is not None and not isinstance(max, TensorBase) and is_number(max)
    cdef int kind
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if max is None:
        return entry2(&pw_arithmetic[PW_CLAMP_MIN], input, min, NULL, out, inplace)
    if min is None:
        return entry2(&pw_arithmetic[PW_CLAMP_MAX], input, max, NULL, out, inplace)
    if min_number and max_number:
        to_scalar(min, &p[0])
        to_scalar(max, &p[1])
        kind = number_category(&p[0])
        if number_category(&p[1]) > kind:
            kind = number_category(&p[1])
        if not isinstance(input, TensorBase) or kind <= category[(<TensorBase>input).dtype]:
            return entry1(&pw_arithmetic[PW_CLAMP], input, p, out, inplace)
    return entry3(&pw_arithmetic[PW__CLAMP_TENSOR], input, min, max, NULL, out, inplace)



def rdiv_method(self, other):
    """other / self, by its name of old."""
    return self.reciprocal() * other


METHOD_ALIASES = {"where": where_method, "__rdiv__": rdiv_method}


cdef object power(object input, object exponent, object out, bint inplace):
    """A number as exponent takes a loop of its own unless it changes the type (or is 0, where the derivative is 0 even at 0)."""
    cdef Scalar p[1]
    cdef TensorBase x
    if isinstance(input, TensorBase) and not isinstance(exponent, TensorBase) and is_number(exponent):
        x = <TensorBase>input
        to_scalar(exponent, &p[0])
        if number_category(&p[0]) <= category[x.dtype] and x.dtype != BOOL and (p[0].d != 0 or p[0].kind == 3):
            if category[x.dtype] <= CAT_INT and p[0].d < 0:
                raise RuntimeError("Integers to negative integer powers are not allowed.")
            return entry1(&pw_arithmetic[PW__POW_NUMBER], input, p, out, inplace)
    if not isinstance(input, TensorBase) and not isinstance(exponent, TensorBase) and is_number(input) and is_number(exponent):
        raise TypeError(f"pow() received an invalid combination of arguments - got ({type(input).__name__}, {type(exponent).__name__}), but expected "
                        "a Tensor as input or exponent")
    return entry2(&pw_arithmetic[PW_POW], input, exponent, NULL, out, inplace)


def symbol_pow(self, exponent, modulo=None):
    return power(self, exponent, None, False) if is_operand(exponent) else NotImplemented


def symbol_rpow(self, base, modulo=None):
    return power(base, self, None, False) if is_operand(base) else NotImplemented


def symbol_ipow(self, exponent, modulo=None):
    return power(self, exponent, None, True) if is_operand(exponent) else NotImplemented


cdef object interpolated(object input, object end, object weight, object out, bint inplace):
    cdef Scalar p[1]
    if isinstance(weight, TensorBase):
        return entry3(&pw_arithmetic[PW__LERP_TENSOR], input, end, weight, NULL, out, inplace)
    param(weight, &p[0], "lerp", "weight")
    return entry2(&pw_arithmetic[PW_LERP], input, end, p, out, inplace)


EXTRA_SYMBOLS = {"__pow__": symbol_pow, "__rpow__": symbol_rpow, "__ipow__": symbol_ipow}
