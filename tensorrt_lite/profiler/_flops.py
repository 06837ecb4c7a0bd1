"""Floating-point operations of calls, from the shapes of their arguments. A multiplication and the addition after it are two."""

from __future__ import annotations

from math import prod
from typing import Any


def flops_of(name: str, arguments: list[Any]) -> int | None:
    """Of a call of the operator with arguments as `Recording.records` describes them; None for operators that are not counted."""
    count = _COUNTS.get(name.rstrip("_"))
    if count is None:
        return None
    try:
        return int(count(arguments))
    except (IndexError, TypeError, ValueError, ZeroDivisionError):
        return None  # other arguments than the formula knows


def _sizes(argument: Any) -> list[int]:
    if not isinstance(argument, tuple) or argument[0] == "value":
        raise TypeError("no tensor")
    return argument[0]


def _pointwise(arguments: list[Any]) -> int:
    shapes = [argument[0] for argument in arguments if isinstance(argument, tuple) and argument[0] != "value"]
    rank = max(len(shape) for shape in shapes)
    return prod(max(shape[d - rank + len(shape)] if d - rank + len(shape) >= 0 else 1 for shape in shapes) for d in range(rank))


def _matrices(a: list[int], b: list[int]) -> int:
    return 2 * prod(a) * (b[-1] if len(b) > 1 else 1)


def _matmul(arguments: list[Any]) -> int:
    return _matrices(_sizes(arguments[0]), _sizes(arguments[1]))


def _added(arguments: list[Any]) -> int:
    return _matrices(_sizes(arguments[1]), _sizes(arguments[2]))


def _linear(arguments: list[Any]) -> int:
    x, weight = _sizes(arguments[0]), _sizes(arguments[1])
    return 2 * prod(x) * (weight[0] if len(weight) > 1 else 1)


def _convolution(arguments: list[Any]) -> int:
    x, weight = _sizes(arguments[0]), _sizes(arguments[1])
    rank = len(weight) - 2
    stride, padding, dilation = (argument[1] if len(argument[1]) == rank else argument[1] * rank for argument in arguments[3:6])
    output = [(x[d - rank] + 2 * padding[d] - dilation[d] * (weight[d - rank] - 1) - 1) // stride[d] + 1 for d in range(rank)]
    batch = x[0] if len(x) == rank + 2 else 1
    return 2 * batch * prod(output) * prod(weight)


def _attention(arguments: list[Any]) -> int:
    query, key, value = (_sizes(argument) for argument in arguments[:3])
    return 2 * prod(query) * key[-2] + 2 * prod(query[:-1]) * key[-2] * value[-1]


_COUNTS = {
    **dict.fromkeys(("aten::add", "aten::mul"), _pointwise),
    **dict.fromkeys(("aten::mm", "aten::bmm", "aten::matmul", "aten::mv", "aten::dot"), _matmul),
    **dict.fromkeys(("aten::addmm", "aten::baddbmm", "aten::addmv"), _added),
    "aten::linear": _linear,
    "aten::convolution": _convolution,
    "aten::_attention": _attention,
}  # fmt: skip
