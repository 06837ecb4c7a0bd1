# Entries of arithmetic that choose between declared operators by the kind of their arguments.

cdef TensorBase operand_of(object x, str op, str name):
    return <TensorBase>x if isinstance(x, TensorBase) else as_operand(x, op, name)


cdef object divided(object input, object other, object rounding_mode, object out, bint inplace):
    if rounding_mode is None:
        return entry2(&pw_arithmetic[PW_DIV], input, other, NULL, out, inplace, ())
    if rounding_mode == "floor":
        return entry2(&pw_arithmetic[PW_FLOOR_DIVIDE], input, other, NULL, out, inplace, ())
    if rounding_mode == "trunc":
        return entry2(&pw_arithmetic[PW_DIV_TRUNC], input, other, NULL, out, inplace, ())
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


def div(input, other, *, rounding_mode=None, out=None):
    """input / other; rounded toward zero or down when rounding_mode is 'trunc' or 'floor'."""
    return divided(input, other, rounding_mode, out, False)


def div_(input, other, *, rounding_mode=None):
    """div in place."""
    return divided(input, other, rounding_mode, None, True)


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
    if not isinstance(condition, TensorBase) and not has_function(condition):
        raise TypeError(f"where(): argument 'condition' (position 1) must be Tensor, not {type(condition).__name__}")
    return entry3(&pw_arithmetic[PW_WHERE], condition, input, other, NULL, out, False, ())


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
        return entry2(&pw_arithmetic[PW_CLAMP_MIN], input, min, NULL, out, inplace, ())
    if min is None:
        return entry2(&pw_arithmetic[PW_CLAMP_MAX], input, max, NULL, out, inplace, ())
    if min_number and max_number:
        to_scalar(min, &p[0])
        to_scalar(max, &p[1])
        kind = p[0].kind if p[0].kind > p[1].kind else p[1].kind
        if not isinstance(input, TensorBase) or kind <= category[(<TensorBase>input).dtype]:
            return entry1(&pw_arithmetic[PW_CLAMP], input, p, out, inplace, (("min", min), ("max", max)))
    return entry3(&pw_arithmetic[PW__CLAMP_TENSOR], input, min, max, NULL, out, inplace, ())


def clamp(input, min=None, max=None, *, out=None):
    """input limited to [min, max], which are numbers or tensors; either may be None. RuntimeError when both are."""
    return clamped(input, min, max, out, False)


def clamp_(input, min=None, max=None):
    """clamp in place."""
    return clamped(input, min, max, None, True)


EXTRA_EXPORTS = {"true_divide": "fm", "true_divide_": "m", "divide": "fm", "divide_": "m", "clip": "fm", "clip_": "m"}
divide = div
divide_ = div_
clip = clamp
clip_ = clamp_
METHOD_ALIASES = {"where": where_method}
