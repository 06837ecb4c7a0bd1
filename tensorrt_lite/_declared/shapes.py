"""Sizes and dtypes of results from those of the operands, without tensors and for sizes that are symbols.

    infer("mm", Spec((n, 3), float32), Spec((3, m), float32))   ->   (Spec((n, m), float32),)

The rules are the rows' `shape`, `dtype` and `require` (tools/codegen/shapes.py has the language), which the generator writes as functions
into `_C/shape_rules.py`; `_declared/shape_functions.py` is what they call. A size is an int or any object with the arithmetic of one, whose comparisons have a
truth value: asking for it is where a tracer records a guard. Imported by the first that asks.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_shape_rules = _LazyModule("tensorrt_lite._C.shape_rules")

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Spec:
    """Sizes and dtype of a tensor. number: a Python number beside tensors, which gives way to them in promotion."""

    __slots__ = ("dtype", "number", "shape")

    def __init__(self, shape: Sequence[Any], dtype: Any, number: bool = False) -> None:
        self.shape, self.dtype, self.number = tuple(shape), dtype, number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and len(self.shape) == len(other.shape) and all(self.shape[i] == n for i, n in enumerate(other.shape)) and self.dtype == other.dtype

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Spec({self.shape}, {self.dtype})"


class NoRuleError(NotImplementedError):
    """An operator whose results' sizes are not told by its row: they depend on elements, or are not declared yet."""


@cache
def rules() -> dict[str, tuple[Callable[..., Any], Callable[..., Any], int]]:
    """{operator: (the function of sizes, that of dtypes, the number of results, 0 for a list of tensors)}."""
    return _shape_rules.RULES


def infer(operator: str, /, *arguments: Any, **named: Any) -> Any:
    """The results' Specs, a tuple (for an operator that returns a list of tensors, a list). arguments: the row's, by its schema.

    A tensor is a Spec or anything with `shape` and `dtype`. Raises what the operator raises for sizes that it refuses, NoRuleError without a rule.
    """
    if operator not in rules():
        raise NoRuleError(f"{operator}: the row does not say the sizes of its results")
    shape, dtype, count = rules()[operator]
    sizes, kinds = shape(*arguments, **named), dtype(*arguments, **named)
    if count == 1:
        return (Spec(sizes, kinds),)
    if count == 0:
        return [Spec(n, kinds) for n in sizes]
    return tuple(None if n is None else Spec(n, kind) for n, kind in zip(sizes, kinds))


def infer_call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
    """`infer` of a call that a mode received: an overload with its own arguments."""
    if not hasattr(func, "row_call"):  # a factory
        raise NoRuleError(f"{func}: factories have no rule")
    name, given = func.row_call(args, kwargs or {})
    return infer(name, *given)
