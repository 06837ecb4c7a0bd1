"""Elementwise functions. Two arrays, or an array and a Python number, are brought to their common dtype and broadcast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.tensor import Tensor
from tensorrt_lite.array_api import _unsigned
from tensorrt_lite.array_api._dtypes import promote, require_array, together

Unary = Callable[[Tensor], Tensor]
Binary = Callable[[Any, Any], Tensor]


def _named(function: Any, name: str, doc: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def _unary(name: str, compute: Unary, doc: str, unsigned: Callable[..., Tensor] | None = None) -> Unary:
    """The function of one array; unsigned: how uint16, uint32 and uint64 are computed, where `compute` does not take them."""

    def function(x: Tensor, /) -> Tensor:
        if unsigned is not None and require_array(name, x).dtype in _unsigned.WIDE:
            return unsigned(compute, x)
        return compute(require_array(name, x))

    return _named(function, name, f"{doc} x: (*) -> (*).")


def _binary(name: str, compute: Binary, doc: str, unsigned: Callable[..., Tensor] | None = None) -> Binary:
    """The function of two arrays or numbers, at least one of them an array."""

    def function(x1: Any, x2: Any, /) -> Tensor:
        a, b = (x1, x2) if isinstance(x1, Tensor) and isinstance(x2, Tensor) and x1.dtype == x2.dtype else together(name, x1, x2)
        if unsigned is not None and a.dtype in _unsigned.WIDE:
            return unsigned(compute, a, b)
        return compute(a, b)

    return _named(function, name, f"{doc} x1, x2: broadcast to (*) -> (*), in the common dtype; TypeError where there is none.")


def _kept(compute: Callable[..., Tensor], *operands: Tensor) -> Tensor:
    """What unsigned arrays do not change: they are whole and not negative."""
    return operands[0].clone()


def _nonzero(compute: Callable[..., Tensor], *operands: Tensor) -> Tensor:
    """Logic on whether numbers are zero."""
    return compute(*(x != 0 for x in operands))


def _sign(x: Tensor) -> Tensor:
    if x.is_complex():
        return trt.where(x.isnan(), complex(trt.nan, trt.nan), trt.sgn(x))
    result = trt.sign(x)
    return trt.where(x.isnan(), x, result) if x.is_floating_point() else result


def _rounded(function: Unary) -> Unary:
    return lambda x: function(x) if x.is_floating_point() or x.is_complex() else x.clone()


def _remainder(a: Tensor, b: Tensor) -> Tensor:
    result = trt.remainder(a, b)
    # PyTorch's zeros have the dividend's sign
    return trt.where(result == 0, trt.copysign(result, b), result) if result.is_floating_point() else result


def _expm1(x: Tensor) -> Tensor:
    result = trt.expm1(x)
    if not x.is_complex():
        return result
    # exp(-inf) is 0 and exp(inf) infinite also where the angle is infinite or NaN
    no_angle = ~x.imag.isfinite()
    result = trt.where((x.real == -trt.inf) & no_angle, -1.0, result)
    return trt.where((x.real == trt.inf) & no_angle, complex(trt.inf, trt.nan), result)


abs = _unary("abs", trt.abs, "Magnitudes; those of complex numbers are real.", _kept)
acos = _unary("acos", trt.acos, "The inverse cosine, in radians.")
acosh = _unary("acosh", trt.acosh, "The inverse hyperbolic cosine.")
add = _binary("add", trt.add, "Sums.", _unsigned.modular)
asin = _unary("asin", trt.asin, "The inverse sine, in radians.")
asinh = _unary("asinh", trt.asinh, "The inverse hyperbolic sine.")
atan = _unary("atan", trt.atan, "The inverse tangent, in radians.")
atan2 = _binary("atan2", trt.atan2, "The angle of the point (x2, x1) from -pi to pi, in radians.")
atanh = _unary("atanh", trt.atanh, "The inverse hyperbolic tangent.")
bitwise_and = _binary("bitwise_and", trt.bitwise_and, "Bits of both.", _unsigned.modular)
bitwise_invert = _unary("bitwise_invert", trt.bitwise_not, "All bits the other way.", _unsigned.modular)
bitwise_left_shift = _binary(
    "bitwise_left_shift", trt.bitwise_left_shift, "The bits of x1 moved left by x2, which is not negative.", _unsigned.modular
)
bitwise_or = _binary("bitwise_or", trt.bitwise_or, "Bits of either.", _unsigned.modular)
bitwise_right_shift = _binary(
    "bitwise_right_shift", trt.bitwise_right_shift, "The bits of x1 moved right by x2; the sign stays.", _unsigned.shift_right
)
bitwise_xor = _binary("bitwise_xor", trt.bitwise_xor, "Bits that differ.", _unsigned.modular)
ceil = _unary("ceil", _rounded(trt.ceil), "The next integer that is not less.")
conj = _unary("conj", lambda x: trt.conj_physical(x) if x.is_complex() else x, "Complex conjugates; real numbers as they are.")
copysign = _binary("copysign", trt.copysign, "Magnitudes of x1 with the signs of x2, also of zeros and NaN.")
cos = _unary("cos", trt.cos, "The cosine of an angle in radians.")
cosh = _unary("cosh", trt.cosh, "The hyperbolic cosine.")
divide = _binary("divide", trt.div, "Quotients; of integers in the default floating-point dtype.")
equal = _binary("equal", trt.eq, "Whether elements are equal.")
exp = _unary("exp", trt.exp, "The exponential.")
expm1 = _unary("expm1", _expm1, "exp(x) - 1, exact for small x.")
floor = _unary("floor", _rounded(trt.floor), "The next integer that is not greater.")
floor_divide = _binary(
    "floor_divide", trt.floor_divide, "Quotients rounded down, with Python's results for infinities (NaN, -1).", _unsigned.floor_divide
)
greater = _binary("greater", trt.gt, "Whether x1 > x2.", _unsigned.comparing)
greater_equal = _binary("greater_equal", trt.ge, "Whether x1 >= x2.", _unsigned.comparing)
hypot = _binary("hypot", trt.hypot, "The square root of the sum of squares, without overflow between.")
imag = _unary("imag", lambda x: x.imag if x.is_complex() else trt.zeros_like(x), "Imaginary parts; zeros for real arrays.")
isfinite = _unary("isfinite", trt.isfinite, "Whether elements are neither infinite nor NaN.")
isinf = _unary("isinf", trt.isinf, "Whether elements are infinite.")
isnan = _unary("isnan", trt.isnan, "Whether elements are NaN.")
less = _binary("less", trt.lt, "Whether x1 < x2.", _unsigned.comparing)
less_equal = _binary("less_equal", trt.le, "Whether x1 <= x2.", _unsigned.comparing)
log = _unary("log", trt.log, "The natural logarithm.")
log10 = _unary("log10", trt.log10, "The logarithm to base 10.")
log1p = _unary("log1p", trt.log1p, "log(1 + x), exact for small x.")
log2 = _unary("log2", trt.log2, "The logarithm to base 2.")
logaddexp = _binary("logaddexp", trt.logaddexp, "log(exp(x1) + exp(x2)), without overflow between.")
logical_and = _binary("logical_and", trt.logical_and, "Whether both are true.", _nonzero)
logical_not = _unary("logical_not", trt.logical_not, "Whether x is false.", _nonzero)
logical_or = _binary("logical_or", trt.logical_or, "Whether one of both is true.", _nonzero)
logical_xor = _binary("logical_xor", trt.logical_xor, "Whether just one of both is true.", _nonzero)
maximum = _binary("maximum", trt.maximum, "The greater of both; NaN where one is.", _unsigned.choosing)
minimum = _binary("minimum", trt.minimum, "The lesser of both; NaN where one is.", _unsigned.choosing)
multiply = _binary("multiply", trt.mul, "Products.", _unsigned.modular)
negative = _unary("negative", trt.neg, "The opposite; of unsigned integers modulo their range.", _unsigned.modular)
nextafter = _binary("nextafter", trt.nextafter, "The next number after x1 towards x2.")
not_equal = _binary("not_equal", trt.ne, "Whether elements differ.")
positive = _unary("positive", trt.clone, "A copy.")
pow = _binary("pow", trt.pow, "x1 to the power of x2.", _unsigned.power)
real = _unary("real", lambda x: x.real, "Real parts.")
reciprocal = _unary("reciprocal", trt.reciprocal, "1 / x.")
remainder = _binary("remainder", _remainder, "What division rounded down leaves, with the sign of x2.", _unsigned.remainder)
sign = _unary("sign", _sign, "-1, 0 or 1; of complex numbers x / |x|; NaN of NaN.", lambda compute, x: (x != 0).to(x.dtype))
signbit = _unary("signbit", trt.signbit, "Whether the sign bit is set, also of zeros and NaN.", lambda compute, x: trt.zeros_like(x, dtype=trt.bool))
sin = _unary("sin", trt.sin, "The sine of an angle in radians.")
sinh = _unary("sinh", trt.sinh, "The hyperbolic sine.")
sqrt = _unary("sqrt", trt.sqrt, "The square root.")
square = _unary("square", lambda x: trt.mul(x, x), "x * x.", _unsigned.modular)
subtract = _binary("subtract", trt.sub, "Differences.", _unsigned.modular)
tan = _unary("tan", trt.tan, "The tangent of an angle in radians.")
tanh = _unary("tanh", trt.tanh, "The hyperbolic tangent.")
trunc = _unary("trunc", _rounded(trt.trunc), "The integer towards zero.")


def _round(x: Tensor) -> Tensor:
    return trt.complex(trt.round(x.real), trt.round(x.imag)) if x.is_complex() else trt.round(x)


round = _unary("round", _rounded(_round), "The nearest integer, halves to the even one; of both parts of complex numbers.")


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """Elements held between min and max, arrays or numbers that broadcast with x; None bounds nothing. x: (*) -> (*), in x's dtype; NaN where one is.

    TypeError where the bounds have another kind than x.
    """
    require_array("clip", x)
    bounds = []
    for bound in (min, max):
        if bound is not None:
            (bound,) = together("clip", x, bound)[1:]
            if promote(x.dtype, bound.dtype) != x.dtype:
                raise TypeError(f"clip(): a bound of {bound.dtype} for an array of {x.dtype}")
        bounds.append(bound)
    low, high = bounds
    if low is None and high is None:
        return x.clone()
    result = x
    if high is not None:
        result = minimum(result, high)
    if low is not None:
        result = maximum(result, low)
    return result


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """x1 where condition (bool) is true, x2 elsewhere: arrays, one of them may be a number. condition, x1, x2: broadcast to (*) -> (*)."""
    a, b = together("where", x1, x2)
    return trt.where(require_array("where", condition), a, b)
