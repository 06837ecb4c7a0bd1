# Entries with PyTorch's two orders of arguments, and what derivatives that PyTorch has not call.


cdef object order_of(object n):
    if isinstance(n, bool):
        raise TypeError("polygamma(): argument 'n' (position 1) must be int, not bool")
    return parse_int(n, "polygamma", "n")


def polygamma(n, input, *, out=None):
    """The n-th derivative of digamma, n >= 0."""
    cdef Scalar p[1]
    if isinstance(n, TensorBase) and not isinstance(input, TensorBase):
        n, input = input, n
    n = order_of(n)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return _ops.digamma(input, out=out)
    param(n, &p[0], "polygamma", "n")
    return entry1(&pw_special[PW_POLYGAMMA], input, p, out, False)


def polygamma_(input, n):
    """polygamma in place."""
    cdef Scalar p[1]
    n = order_of(n)
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    if n == 0:
        return _ops.digamma_(input)
    param(n, &p[0], "polygamma", "n")
    return entry1(&pw_special[PW_POLYGAMMA], input, p, None, True)


def polygamma_method(self, n):
    """The n-th derivative of digamma at self."""
    return polygamma(n, self)


def derivative_not_implemented(name, grad):
    """Stands as the derivative by an argument for which PyTorch has none."""
    raise NotImplementedError(f"the derivative for '{name}' is not implemented.")


WITHOUT_ROW = {"derivative_not_implemented": ""}
METHOD_ALIASES = {"polygamma": polygamma_method, "polygamma_": polygamma_}
FUNCTION_ALIASES = {}
