# Comparisons of whole tensors, composed of declared operators.


cdef object array_operand(object other):
    """A NumPy array as a tensor over its memory, for `==` and `!=`, which NumPy leaves to us; None for anything else."""
    from sys import modules
    numpy = modules.get("numpy")
    if numpy is None or not isinstance(other, numpy.ndarray):
        return None
    try:
        return _ops.as_tensor(other)
    except TypeError:
        return None


def isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """|input - other| <= atol + rtol * |other|, elementwise; equal values and, on demand, NaNs are close."""
    cdef TensorBase a = as_tensor_arg(input, "isclose", "input"), b = as_tensor_arg(other, "isclose", "other")
    if a.dtype != b.dtype:
        raise RuntimeError(f"{dtype_text(a.dtype)} did not match {dtype_text(b.dtype)}")
    if rtol < 0:
        raise RuntimeError(f"rtol must be greater than or equal to zero, but got {rtol}")
    if atol < 0:
        raise RuntimeError(f"atol must be greater than or equal to zero, but got {atol}")
    close = _ops.eq(input, other)
    if equal_nan and category[a.dtype] >= CAT_FLOAT:
        close = _ops.bitwise_or(close, _ops.bitwise_and(_ops.isnan(input), _ops.isnan(other)))
    if rtol == 0 and atol == 0:
        return close
    if category[a.dtype] <= CAT_INT:
        other = other.to(dtype_of(default_float_code()))
    if a.dtype == BOOL:
        input = input.to(dtype_of(default_float_code()))
    allowed = _ops.add(_ops.abs(_ops.mul(other, rtol)), atol)
    difference = _ops.abs(_ops.sub(input, other))
    near = _ops.le(difference, allowed)
    return _ops.bitwise_or(close, _ops.bitwise_and(_ops.isfinite(difference), near))


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements of isclose hold."""
    return bool(_ops.all(isclose(input, other, rtol, atol, equal_nan)).item())


def equal(input, other):
    """Whether both tensors have the same shape and elements."""
    cdef TensorBase a = as_tensor_arg(input, "equal", "input"), b = as_tensor_arg(other, "equal", "other")
    return same_sizes(a, b) and bool(_ops.all(_ops.eq(input, other)).item())


def symbol_invert(self):
    """~t: bitwise not of integers and bools."""
    if category[(<TensorBase?>self).dtype] > CAT_INT:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return bitwise_not(self)


EXTRA_SYMBOLS = {"__invert__": symbol_invert}
