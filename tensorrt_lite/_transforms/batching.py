"""How an operator runs on a batch: its rule, or a loop over the batch.

A rule gets a `Call` whose tensors are unwrapped and returns what the operator returns for the whole batch, with the batch dimension in front of every
tensor; what is the same for all of the batch it returns as `Plain`. It runs below the level, so what it calls may be batched at outer levels, and
autograd records it. Writes in place are a rule's result copied into the target, but for operators that are registered as writers.

Pointwise operators have one rule for all. Of others the row tells it (`dims` in cysrc/ops, rules_rows.py), or a function is registered by the operator's
name (`@rule`). Whatever has no rule is called for each element of the batch and its results are stacked, which warns once an operator and is counted in `fallbacks`.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from functools import cache, reduce
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._functions.promotion import result_type
from tensorrt_lite._C.core import python_key, transform
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_rules_rows = _LazyModule("tensorrt_lite._transforms.rules_rows")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tensorrt_lite import Tensor

_FRESH, _OUT, _INPLACE = 0, 1, 2

fallbacks: Counter[str] = Counter()  # {operator: calls that were looped over a batch}
RULES: dict[str, Callable[[Call], Any]] = {}
WRITERS: set[Callable[[Call], Any]] = set()  # rules that write to the target themselves


class Resumed:
    """A context in which a level that is off the stack is the innermost again: to run through what it recorded, or a function of its tensors."""

    def __init__(self, level: Any) -> None:
        self.level = level

    def __enter__(self) -> None:
        transform.push(self.level)

    def __exit__(self, *error: object) -> None:
        transform.pop()


class Plain:
    """A result that is the same for all of the batch."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Call:
    """A call of an operator on a batch of `size`.

    values: the arguments, tensors without their level; dims: for each the batch dimension (None: the same for all; for lists a list). mode and target: how
    results are written.
    """

    __slots__ = ("dims", "level", "mode", "name", "place", "size", "target", "values")

    def __init__(self, level: Any, name: str, place: int, arguments: Iterable[Any], target: Any, mode: int) -> None:
        self.level, self.name, self.place, self.target, self.mode = level, name, place, target, mode
        self.size: int = level.batch_size
        self.values: list[Any] = []
        self.dims: list[Any] = []
        for x in arguments:
            if isinstance(x, (list, tuple)) and any(isinstance(y, trt.Tensor) for y in x):
                pairs = [transform.unwrap(y, level) for y in x]
                self.values.append([value for value, _ in pairs])
                self.dims.append([dim for _, dim in pairs])
            else:
                value, dim = transform.unwrap(x, level)
                self.values.append(value)
                self.dims.append(dim)

    def position(self, name: str) -> int:
        """The place of an argument among the values."""
        return names_of(self.name).index(name)

    def __getitem__(self, name: str) -> Any:
        return self.values[self.position(name)]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the row's arguments."""
        return names_of(self.name)

    def type(self, name: str) -> str:
        """The type of an argument in the schema."""
        return str(python_key.row_types(self.name)[self.position(name)])

    @property
    def is_view(self) -> bool:
        """Whether the operator gives views."""
        return bool(python_key.operator_object(self.name).is_view)

    def batched(self, name: str) -> bool:
        """Whether an argument differs within the batch."""
        return self.dims[self.position(name)] is not None

    def front(self, name: str) -> Any:
        """An argument with the batch in front, expanded to it where it is the same for all. None stays None."""
        i = self.position(name)
        return None if self.values[i] is None else self.expanded(self.values[i], self.dims[i])

    def rank(self, name: str) -> int:
        """The number of dimensions of an argument's elements."""
        i = self.position(name)
        return self.values[i].dim() - (self.dims[i] is not None)

    def expanded(self, value: Tensor, dim: int | None) -> Tensor:
        """The value with the batch in front."""
        return value.unsqueeze(0).expand(self.size, *value.shape) if dim is None else to_front(value, dim)

    def run(self, /, *values: Any, **replaced: Any) -> Any:
        """The operator itself on other arguments, all of them or those named."""
        given = list(values or self.values)
        for name, value in replaced.items():
            given[self.position(name)] = value
        return transform.call_row(self.place, given)


@cache
def names_of(operator: str) -> tuple[str, ...]:
    """The names of a row's arguments."""
    return python_key.row_arguments(operator)


@cache
def place_of(operator: str) -> int:
    """The place of a row in the operators' table."""
    return transform.place_of_operator(operator)


def call_row(operator: str, *arguments: Any) -> Any:
    """A row with all its arguments."""
    return transform.call_row(place_of(operator), arguments)


def rule(*names: str) -> Callable[[Callable[[Call], Any]], Callable[[Call], Any]]:
    """Register a function as the rule of operators."""

    def register(function: Callable[[Call], Any]) -> Callable[[Call], Any]:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def writer(*names: str) -> Callable[[Callable[[Call], Any]], Callable[[Call], Any]]:
    """Register a rule that writes to the target itself and returns nothing."""

    def register(function: Callable[[Call], Any]) -> Callable[[Call], Any]:
        WRITERS.add(function)
        return rule(*names)(function)

    return register


def to_front(value: Tensor, dim: int) -> Tensor:
    """The batch dimension in front."""
    return value if dim == 0 else value.movedim(dim, 0)


def flattened(value: Tensor, first: int, count: int) -> Tensor:
    """`count` dimensions from `first` on as one, also where a size is zero."""
    shape = value.shape
    return value.reshape(*shape[:first], math.prod(shape[first : first + count]), *shape[first + count :])


def padded(value: Tensor, rank: int) -> Tensor:
    """A value with the batch in front, its elements given leading dimensions of size one up to `rank`."""
    missing = rank + 1 - value.dim()
    if missing <= 0:
        return value
    for _ in range(missing):
        value = value.unsqueeze(1)
    return value


def run_rule(level: Any, name: str, place: int, arguments: tuple[Any, ...], target: Any, mode: int) -> Any:
    """An operator at a level of vmap, which is off the stack."""
    if transform.is_pointwise(place):
        return _run_pointwise(level, name, place, arguments, target, mode)
    call = Call(level, name, place, arguments, target, mode)
    found = RULES.get(name) or _derived(name)
    if mode == _INPLACE and trt.is_grad_enabled():
        # what a Node saves of the target must not be written to
        call.values = [value.clone() if x is target and value.requires_grad else value for x, value in zip(arguments, call.values)]
    if found is None:
        result = loop(call)
    elif mode and found in WRITERS:
        found(call)
        return target
    else:
        result = found(call)
    if mode == _INPLACE:
        _write(level, name, target, result)
        return target
    return wrap_results(level, result)


@cache
def _derived(name: str) -> Callable[[Call], Any] | None:
    """The rule that an operator's row tells."""
    return _rules_rows.derived(name)


def wrap_results(level: Any, result: Any) -> Any:
    """A rule's results as tensors of the level."""
    if isinstance(result, trt.Tensor):
        return transform.wrap(result, level, 0)
    if isinstance(result, Plain):
        return result.value
    if isinstance(result, (list, tuple)):
        return type(result)(wrap_results(level, x) for x in result)
    return result


def refuse_dynamic(call: Call) -> Any:
    """RuntimeError: the results' sizes depend on elements."""
    raise RuntimeError(
        f"vmap: aten::{call.name} is a dynamic operator: the shape of its result depends on the values, which differ within the batch. Please find an alternative "
        "whose result has the same shape for all of them."
    )


def refuse_inplace(name: str) -> None:
    """Raise: a tensor that is the same for all of the batch cannot take different values."""
    raise RuntimeError(
        f"vmap: aten::{name}_(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more elements than `self`. This "
        "happened due to `other` being vmapped over but `self` not being vmapped over in a vmap. Please try to use out-of-place operators instead of "
        f"{name}_. If said operator is being called inside the PyTorch framework, please file a bug report instead."
    )


def write_result(call: Call, result: Any) -> None:
    """What a rule made, copied to where the call writes."""
    _write(call.level, call.name, call.target, result)


def _write(level: Any, name: str, target: Any, result: Any) -> None:
    value, dim = transform.unwrap(target, level)
    if isinstance(result, Plain):
        value.copy_(result.value)
        return
    if dim is None:
        refuse_inplace(name)
    to_front(value, dim).copy_(result)


# ---- pointwise -----------------------------------------------------------------------------------------------------


def _run_pointwise(level: Any, name: str, place: int, arguments: tuple[Any, ...], target: Any, mode: int) -> Any:
    values, rank, kinds, scalars = [], 0, set(), False
    for x in arguments:
        value, dim = transform.unwrap(x, level)
        values.append((value, dim))
        if isinstance(value, trt.Tensor):
            own = value.dim() - (dim is not None)
            rank = max(rank, own)
            if value.dtype is not trt.bool and not transform.is_number(value):
                kinds.add(value.dtype)
            scalars = scalars or own == 0
    promoted = _promoted(arguments) if scalars and len(kinds) > 1 else None
    given = []
    for value, dim in values:
        if dim is not None:
            value = to_front(value, dim)
            if promoted is not None and value.dim() == 1 and value.dtype not in (promoted, trt.bool):
                # an element without dimensions gives way in promotion to those that have some; in a batch it would not
                value = value.to(promoted)
            value = padded(value, rank)
        given.append(value)
    if mode == _INPLACE:
        _, dim = transform.unwrap(target, level)
        if dim is None:
            refuse_inplace(name)
        transform.call_row(place, given, given[0], _INPLACE)
        return target
    return transform.wrap(transform.call_row(place, given), level, 0)


def _promoted(arguments: tuple[Any, ...]) -> Any:
    """The type in which tensors of elements are combined; wrappers have the elements' shapes."""
    tensors = [x for x in arguments if isinstance(x, trt.Tensor) and not transform.is_number(x)]
    if len(tensors) == 2:
        return result_type(*tensors)
    ranked = [x for x in tensors if x.dtype is not trt.bool]
    groups = [[x.dtype for x in ranked if x.dim()], [x.dtype for x in ranked if not x.dim()]]
    kinds = [reduce(trt.promote_types, group) for group in groups if group]
    if len(kinds) == 1:
        return kinds[0]
    return result_type(trt.empty(1, dtype=kinds[0], device="meta"), trt.empty((), dtype=kinds[1], device="meta"))


# ---- the loop ------------------------------------------------------------------------------------------------------


def loop(call: Call) -> Any:
    """The operator for each element of the batch, its results stacked."""
    if not fallbacks[call.name]:
        warnings.warn(
            f"There is a performance drop because we have not yet implemented the batching rule for aten::{call.name}. The operator is called once for each element "
            "of the batch.",
            UserWarning,
            stacklevel=2,
        )
    fallbacks[call.name] += 1
    return by_elements(call)


def by_elements(call: Call) -> Any:
    """`loop` without its warning: for calls that an operator refuses, which says why of an element."""
    if call.size == 0:
        raise RuntimeError(f"vmap: aten::{call.name} has no batching rule, and a batch of size 0 has no element to call it for")

    def element(value: Any, dim: Any, i: int) -> Any:
        if isinstance(dim, list):
            return [element(v, d, i) for v, d in zip(value, dim)]
        return value if dim is None else value.select(dim, i)

    results = [call.run(*(element(v, d, i) for v, d in zip(call.values, call.dims))) for i in range(call.size)]
    return _stacked(results)


def _stacked(results: list[Any]) -> Any:
    first = results[0]
    if isinstance(first, trt.Tensor):
        return trt.stack(results)
    if isinstance(first, (list, tuple)):
        return type(first)(_stacked(list(part)) for part in zip(*results))
    return first


def load() -> None:
    """Register all rules."""
    from tensorrt_lite._transforms import rules_dims, rules_indexing, rules_layers, rules_products, rules_random, rules_views  # noqa: F401
