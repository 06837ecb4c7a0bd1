"""uint16, uint32 and uint64, which have no loops of their own: they are computed in signed integers that give the same bits or the same order.

uint16 and uint32 go to the next wider type, which holds all of their values. uint64 is read as int64: sums, products and bits are the same modulo
2**64; for comparisons the sign bit is flipped, which orders int64 as uint64 is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.tensor import Tensor

WIDE = {trt.uint16: trt.int32, trt.uint32: trt.int64, trt.uint64: trt.int64}
_SIGN = -(2**63)


def widened(x: Tensor) -> Tensor:
    """The carrier of an unsigned array: its bits, in a signed type."""
    return x.view(trt.int64) if x.dtype == trt.uint64 else x.to(WIDE[x.dtype])


def narrowed(x: Tensor, dtype: Any) -> Tensor:
    """A carrier as the unsigned type, modulo its range."""
    return x.to(trt.int64).contiguous().view(trt.uint64) if dtype == trt.uint64 else x.to(dtype)


def ordered(x: Tensor) -> Tensor:
    """Signed numbers in the order of an unsigned array's; other arrays as they are."""
    if x.dtype not in WIDE:
        return x
    return x.view(trt.int64).bitwise_xor(_SIGN) if x.dtype == trt.uint64 else x.to(WIDE[x.dtype])


def restored(x: Tensor, dtype: Any) -> Tensor:
    """The unsigned array that `ordered` made x of; other dtypes as they are."""
    if dtype not in WIDE:
        return x
    return x.bitwise_xor(_SIGN).view(trt.uint64) if dtype == trt.uint64 else x.to(dtype)


def modular(function: Callable[..., Tensor], *operands: Tensor) -> Tensor:
    """A function that the last bits of its operands decide (sums, products, bits)."""
    return narrowed(function(*map(widened, operands)), operands[0].dtype)


def comparing(function: Callable[..., Tensor], *operands: Tensor) -> Tensor:
    """A function of the operands' order with a result of another type."""
    return function(*map(ordered, operands))


def choosing(function: Callable[..., Tensor], *operands: Tensor) -> Tensor:
    """A function that returns some of its operands' elements, by their order."""
    return restored(function(*map(ordered, operands)), operands[0].dtype)


def floor_divide(function: Callable[..., Tensor], x1: Tensor, x2: Tensor) -> Tensor:
    """Quotients. Of uint64: half the dividend by the divisor, doubled, is at most one short; a divisor beyond 2**63 goes in once or not at all."""
    if x1.dtype != trt.uint64:
        return modular(function, x1, x2)
    a, b = widened(x1), widened(x2)
    halved = a.bitwise_right_shift(1).bitwise_and(2**63 - 1)
    quotient = function(halved, trt.where(b < 0, 2**63 - 1, b)) * 2
    quotient = quotient + _not_less(a - quotient * b, b)
    return trt.where(b < 0, _not_less(a, b).to(trt.int64), quotient).view(trt.uint64)


def remainder(function: Callable[..., Tensor], x1: Tensor, x2: Tensor) -> Tensor:
    """What is left of x1 after the quotient times x2."""
    if x1.dtype != trt.uint64:
        return modular(function, x1, x2)
    quotient = floor_divide(trt.floor_divide, x1, x2).view(trt.int64)
    return (widened(x1) - quotient * widened(x2)).view(trt.uint64)


def shift_right(function: Callable[..., Tensor], x1: Tensor, x2: Tensor) -> Tensor:
    """Zeros come in from the left. Of uint64: the first bit is shifted by itself, then the rest, which has no sign, by one less."""
    if x1.dtype != trt.uint64:
        return modular(function, x1, x2)
    a, count = widened(x1), widened(x2)
    first = a.bitwise_right_shift(1).bitwise_and(2**63 - 1)
    return trt.where(count == 0, a, function(first, (count - 1).clamp(min=0))).view(trt.uint64)


def power(function: Callable[..., Tensor], x1: Tensor, x2: Tensor) -> Tensor:
    """Powers modulo the range. An exponent beyond 2**63 is replaced by one with the same power modulo 2**64: odd numbers repeat after 2**62 factors,
    even ones are 0 from 64 factors on."""
    if x1.dtype != trt.uint64:
        return modular(function, x1, x2)
    exponent = widened(x2)
    exponent = trt.where(exponent < 0, exponent.bitwise_and(2**62 - 1) + 2**62, exponent)
    return function(widened(x1), exponent).view(trt.uint64)


def _not_less(a: Tensor, b: Tensor) -> Tensor:
    """Whether a >= b, of int64 read as uint64."""
    return a.bitwise_xor(_SIGN) >= b.bitwise_xor(_SIGN)
