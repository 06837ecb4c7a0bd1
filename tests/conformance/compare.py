"""What a call did, and the judgement whether two libraries did the same.

An `Observed` holds PyTorch tensors whichever library ran, so the judgement never calls the library under test.
Mismatches carry a level; `strides` is counted apart because a different memory order of an output is allowed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch

from .library import Library, bare_name

# Mismatch levels that do not fail a sample.
SOFT = {"strides"}


@dataclass
class Leaf:
    """One tensor of a result."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    requires_grad: bool
    value: torch.Tensor
    # Indices of the tensors among the arguments that share this one's storage, and of the one that is this object.
    aliases: tuple[int, ...]
    identity: int | None


@dataclass
class Observed:
    """The outcome of one call: `error`, or the result's tree with the arguments' values after the call."""

    error: BaseException | None = None
    result: Any = None
    arguments: list[torch.Tensor] = field(default_factory=list)


@dataclass(frozen=True)
class Mismatch:
    level: str
    message: str


def observe(library: Library, result: Any, arguments: tuple[Any, ...]) -> Observed:
    """Turns a call's result and arguments (values of `library`) into an Observed."""
    tensors = library.tensors(*arguments)
    owners = [library.address(tensor) for tensor in tensors]

    def tree(value: Any) -> Any:
        if not library.is_tensor(value):
            if isinstance(value, (list, tuple)):
                return [tree(item) for item in value]
            return value if value is None or isinstance(value, (bool, int, float, complex, str)) else bare_name(value)
        owner = library.address(value)
        return Leaf(
            dtype=getattr(torch, bare_name(value.dtype)),
            shape=tuple(value.shape),
            strides=tuple(value.stride()),
            requires_grad=bool(value.requires_grad),
            value=library.to_torch(value),
            aliases=tuple(i for i, other in enumerate(owners) if owner is not None and other == owner),
            identity=next((i for i, other in enumerate(tensors) if other is value), None),
        )

    return Observed(result=tree(result), arguments=[library.to_torch(tensor) for tensor in tensors])


def rank_positions(observed: Observed, dim: int) -> None:
    """Replaces positions along `dim` of the first argument by the rank of the value found there, the same for equal values.

    Which of several equal elements a selection names is nobody's promise. Positions that no selection could name, out of
    range or twice in one line, stay as they are.
    """
    leaf = observed.result[1] if isinstance(observed.result, list) else observed.result
    if not isinstance(leaf, Leaf) or leaf.dtype != torch.int64 or not observed.arguments:
        return
    x, at = observed.arguments[0].detach(), leaf.value
    if at.dim() < x.dim():
        at = at.unsqueeze(dim)
    if x.dim() == 0 or at.dim() != x.dim() or at.numel() == 0:
        return
    lines, at = x.double().movedim(dim, -1), at.movedim(dim, -1)
    twice = bool((at.sort(-1).values.diff(dim=-1) == 0).any())
    if twice or int(at.min()) < 0 or int(at.max()) >= lines.shape[-1]:
        return
    ranks = torch.searchsorted(lines.sort(-1).values.contiguous(), lines.gather(-1, at).contiguous())
    leaf.value = ranks.movedim(-1, dim).reshape(leaf.value.shape)
    for i in leaf.aliases:
        observed.arguments[i] = leaf.value


class Judge:
    """Compares two Observed of one operator; `values=False` leaves values out (uninitialised memory). precision: the difference that is allowed
    of numbers whose operands were rounded on the way, relative to the largest one."""

    def __init__(self, tolerances: dict[torch.dtype, tuple[float, float]], values: bool = True, precision: float = 0.0) -> None:
        self.tolerances = tolerances
        self.values = values
        self.precision = precision

    def __call__(self, actual: Observed, expected: Observed, exact: Observed | None = None) -> list[Mismatch]:
        """`exact` is PyTorch's outcome in double precision: with it, elements as near to that as PyTorch's are right."""
        if expected.error is not None or actual.error is not None:
            return _compare_errors(actual.error, expected.error)
        found: list[Mismatch] = []
        self._tree("result", actual.result, expected.result, None if exact is None else exact.result, found)
        if not self.values:
            return found
        exact_arguments = exact.arguments if exact is not None else []
        for i, (after, wanted) in enumerate(zip(actual.arguments, expected.arguments, strict=True)):
            precise = exact_arguments[i] if i < len(exact_arguments) else None
            if after.shape != wanted.shape:
                text = f"argument {i} has shape {list(after.shape)} afterwards, PyTorch's {list(wanted.shape)}"
                found.append(Mismatch("mutation", text))
            elif message := self._unequal(after, wanted, precise):
                found.append(Mismatch("mutation", f"argument {i} after the call: {message}"))
        return found

    def _tree(self, where: str, actual: Any, expected: Any, exact: Any, found: list[Mismatch]) -> None:
        if isinstance(expected, list):
            if not isinstance(actual, list) or len(actual) != len(expected):
                text = f"{where}: {_kind(actual)} where PyTorch returns {_kind(expected)}"
                found.append(Mismatch("structure", text))
                return
            precise = exact if isinstance(exact, list) and len(exact) == len(expected) else [None] * len(expected)
            for i, (mine, theirs) in enumerate(zip(actual, expected, strict=True)):
                self._tree(f"{where}[{i}]", mine, theirs, precise[i], found)
        elif isinstance(expected, Leaf):
            if isinstance(actual, Leaf):
                self._leaf(where, actual, expected, exact.value if isinstance(exact, Leaf) else None, found)
            else:
                found.append(Mismatch("structure", f"{where}: {_kind(actual)} where PyTorch returns a tensor"))
        elif type(actual) is not type(expected):
            found.append(Mismatch("structure", f"{where}: {_kind(actual)} where PyTorch returns {_kind(expected)}"))
        elif isinstance(expected, (float, complex)):
            dtype = torch.float64 if isinstance(expected, float) else torch.complex128
            theirs = torch.tensor(expected, dtype=dtype)
            if self.values and (message := self._unequal(torch.tensor(actual, dtype=dtype), theirs)):
                found.append(Mismatch("value", f"{where}: {message}"))
        elif self.values and actual != expected:
            found.append(Mismatch("value", f"{where}: {actual!r}, PyTorch {expected!r}"))

    def _leaf(
        self, where: str, actual: Leaf, expected: Leaf, exact: torch.Tensor | None, found: list[Mismatch]
    ) -> None:
        facts = ("dtype", "shape", "requires_grad", "aliases", "identity")
        for fact in facts:
            mine, theirs = getattr(actual, fact), getattr(expected, fact)
            if mine != theirs:
                found.append(Mismatch(fact, f"{where}: {fact} {mine}, PyTorch {theirs}"))
        if actual.shape != expected.shape:
            return
        if _significant(actual) != _significant(expected):
            found.append(Mismatch("strides", f"{where}: strides {actual.strides}, PyTorch {expected.strides}"))
        if not self.values or actual.dtype != expected.dtype:
            return
        if message := self._unequal(actual.value, expected.value, exact):
            found.append(Mismatch("value", f"{where}: {message}"))

    def _unequal(
        self, actual: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor | None = None
    ) -> str | None:
        """None when equal within the tolerance, else a line with the worst element."""
        rtol, atol = self.tolerances.get(expected.dtype, (0.0, 0.0))
        actual, expected = _comparable(actual), _comparable(expected)
        if torch.equal(actual, expected):
            return None
        if self.precision and (finite := expected[expected.isfinite()]).numel() and not expected.dtype == torch.bool:
            rtol, atol = max(rtol, self.precision), max(atol, self.precision * float(finite.abs().max()))
        close = torch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=True)
        if exact is not None and exact.shape == expected.shape and exact.dtype in (torch.float64, torch.complex128):
            mine, theirs = (actual - exact).abs(), (expected - exact).abs()
            mine[actual == exact] = 0  # infinities
            close |= (mine <= theirs) | (mine.isfinite() & theirs.isnan())
        if bool(close.all()):
            return None
        wide = torch.complex128 if expected.dtype.is_complex else torch.float64
        # NaN against a number is the worst difference of all.
        size = (actual.to(wide) - expected.to(wide)).abs().nan_to_num(nan=math.inf, posinf=math.inf)
        worst = [int(i) for i in torch.unravel_index(size.masked_fill(close, -1.0).argmax(), size.shape)]
        mine, theirs = actual[tuple(worst)].item(), expected[tuple(worst)].item()
        return f"{int((~close).sum())} of {actual.numel()} differ, at {worst} {mine!r}, PyTorch {theirs!r} (rtol {rtol:g})"


def _comparable(values: torch.Tensor) -> torch.Tensor:
    """Values of a type that PyTorch hardly computes with in one that holds them (of uint64 the bits)."""
    if values.dtype in (torch.uint16, torch.uint32, torch.uint64):
        return values.to(torch.int64)
    if values.dtype is torch.complex32:
        return values.to(torch.complex64)
    return values.to(torch.float32) if values.dtype.is_floating_point and values.dtype.itemsize == 1 else values


def _kind(value: Any) -> str:
    if isinstance(value, Leaf):
        return "a tensor"
    if isinstance(value, list):
        return f"a sequence of {len(value)}"
    return f"{type(value).__name__} {value!r}"


def _significant(leaf: Leaf) -> tuple[int, ...]:
    """Strides that say where elements lie: those of dimensions with more than one element."""
    if 0 in leaf.shape:
        return ()
    return tuple(stride for size, stride in zip(leaf.shape, leaf.strides, strict=True) if size > 1)


def _compare_errors(actual: BaseException | None, expected: BaseException | None) -> list[Mismatch]:
    if expected is None:
        return [Mismatch("error", f"raises {_one_line(actual)} where PyTorch computes")]
    if actual is None:
        return [Mismatch("error", f"computes where PyTorch raises {_one_line(expected)}")]
    # A subclass is as good: the except clause that catches PyTorch's error catches it.
    if type(expected).__name__ in (cls.__name__ for cls in type(actual).__mro__):
        return []
    return [Mismatch("error", f"raises {_one_line(actual)} where PyTorch raises {_one_line(expected)}")]


def _one_line(error: BaseException | None) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}"
