"""Symbolic numbers in their eager meaning: the classes that programs ask `isinstance` of, and the functions that compute with plain numbers.

Nothing here is ever traced, so that every size is an int; a SymInt around a node delegates to it. Imported on first use.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = [
    "SymBool", "SymFloat", "SymInt", "sym_constrain_range", "sym_constrain_range_for_size", "sym_float", "sym_fresh_size", "sym_int", "sym_ite", "sym_max",
    "sym_min", "sym_not", "sym_sqrt", "sym_sum",
]  # fmt: skip


class SymInt:
    """An integer that stands for its node: `int()` and comparison ask the node."""

    def __init__(self, node: Any) -> None:
        self.node = node

    def __int__(self) -> int:
        return int(self.node.int_())

    __index__ = __int__

    def __bool__(self) -> bool:
        return bool(self.node.bool_())

    def __repr__(self) -> str:
        return str(self.node)


class SymFloat:
    """A floating-point number that stands for its node."""

    def __init__(self, node: Any) -> None:
        self.node = node

    def __float__(self) -> float:
        return float(self.node.float_())

    def __bool__(self) -> bool:
        return bool(self.node.bool_())

    def __repr__(self) -> str:
        return str(self.node)


class SymBool:
    """A truth value that stands for its node."""

    def __init__(self, node: Any) -> None:
        self.node = node

    def __bool__(self) -> bool:
        return bool(self.node.bool_())

    def __repr__(self) -> str:
        return str(self.node)


def sym_int(a: Any) -> int:
    """a as an int, rounded towards zero.

    Parameters:
        a (number): the number

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sym_int(3.7)
        3
    """
    return int(a)


def sym_float(a: Any) -> float:
    """a as a float; what has a method `__sym_float__` answers by it.

    Parameters:
        a (number): the number

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sym_float(3)
        3.0
    """
    return a.__sym_float__() if hasattr(a, "__sym_float__") else float(a)


def sym_not(a: Any) -> bool:
    """Whether a is false.

    Parameters:
        a (bool): the condition

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sym_not(True)
        False
    """
    return a.__sym_not__() if hasattr(a, "__sym_not__") else not a


def sym_max(a: Any, b: Any) -> Any:
    """The greater of two numbers, a float where either is one. TypeError for what is no number.

    Parameters:
        a (number): the first number
        b (number): the second number

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sym_max(3, 5)
        5
    """
    _check_numbers("sym_max", a, b)
    return float(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The lesser of two numbers, a float where either is one. TypeError for what is no number.

    Parameters:
        a (number): the first number
        b (number): the second number

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sym_min(3, 5)
        3
    """
    _check_numbers("sym_min", a, b)
    return float(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


def _check_numbers(function: str, *values: Any) -> None:
    for value in values:
        if not isinstance(value, (int, float, SymInt, SymFloat)):
            raise TypeError(f"{function}: expected numbers, got {type(value).__name__}")


def sym_sum(*args: Any) -> Any:
    """The sum of numbers, given one by one or as one list.

    Parameters:
        *args (number or list): the numbers, or one list of them

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sym_sum([1, 2, 3])
        6
    """
    values = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    return sum(values)


def sym_sqrt(a: Any) -> float:
    """The square root. ValueError for negative numbers.

    Parameters:
        a (number): the number, not negative

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sym_sqrt(9)
        3.0
    """
    return a.__sym_sqrt__() if hasattr(a, "__sym_sqrt__") else math.sqrt(a)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """t where b is true, else f. AssertionError unless b is a bool, and t and f are of one type.

    Parameters:
        b (bool): the condition
        t (object): the value where it is true
        f (object): the value elsewhere

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sym_ite(True, 1, 2)
        1
    """
    if not isinstance(b, (bool, SymBool)):
        raise AssertionError(f"expected a bool, got {type(b)}")
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return b.__sym_ite__(t, f) if hasattr(b, "__sym_ite__") else t if b else f


def sym_fresh_size(expr: Any) -> Any:
    """The size itself.

    Parameters:
        expr (int): the size

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sym_fresh_size(3)
        3
    """
    return expr


def sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """RuntimeError unless min <= size <= max.

    Parameters:
        size (int): the number
        min (int or None, default None): the lower bound
        max (int or None, default None): the upper bound

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sym_constrain_range(5, min=0, max=10) is None
        True
    """
    low = -(2**63) if min is None else min
    high = 2**63 - 1 if max is None else max
    if low > high:
        raise RuntimeError(f"Max must be greater than min, got min={low} max={high}")
    if not low <= int(size) <= high:
        raise RuntimeError(f"Invalid value range for {int(size)} between [{low}, {high}].")


def sym_constrain_range_for_size(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    """RuntimeError unless min <= size <= max; max is greater than 2, since sizes 0 and 1 are taken for granted nowhere.

    Parameters:
        size (int): the number
        min (int or None, default None): the lower bound
        max (int or None, default None): the upper bound

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sym_constrain_range_for_size(5, min=0, max=10) is None
        True
    """
    if max is not None and max <= 2:
        raise RuntimeError(f"Max value to constrain_range_for_size must be greater than 2. got: {max}")
    sym_constrain_range(size, min=0 if min is None else min, max=max)
