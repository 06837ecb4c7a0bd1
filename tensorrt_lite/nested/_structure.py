"""How a jagged tensor's values divide into sequences: offsets, lengths, and what follows from them, computed once and shared."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule

_nn = LazyModule("tensorrt_lite.nn")

_numbers = itertools.count(1)


class NestedInt:
    """The size of a ragged dimension: an unknown number of which only the identity is known.

    Equal to itself alone, at least 2, times an int a multiple of itself; what is not decided by that raises ValueError.
    """

    __slots__ = ("_number", "_factor")
    _ragged = True

    def __init__(self, number: int, factor: int = 1) -> None:
        self._number, self._factor = number, factor

    def __repr__(self) -> str:
        return f"j{self._number}" if self._factor == 1 else f"{self._factor}*j{self._number}"

    def __hash__(self) -> int:
        return hash((self._number, self._factor))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NestedInt) and self._number == other._number and self._factor == other._factor

    def __mul__(self, factor: int) -> NestedInt:
        if not isinstance(factor, int):
            return NotImplemented
        return NestedInt(self._number, self._factor * factor)

    __rmul__ = __mul__

    def __ge__(self, other: Any) -> bool:
        if isinstance(other, NestedInt) and other._number == self._number:
            return self._factor >= other._factor
        if isinstance(other, int) and other <= 2:
            return True
        raise ValueError(f"ge: relation of {self} and {other} is indeterminate")

    def __le__(self, other: Any) -> bool:
        if isinstance(other, NestedInt) and other._number == self._number:
            return self._factor <= other._factor
        if isinstance(other, int) and other < 2:
            return False
        raise ValueError(f"le: relation of {self} and {other} is indeterminate")

    def __lt__(self, other: Any) -> bool:
        return not self.__ge__(other)

    def __gt__(self, other: Any) -> bool:
        return not self.__le__(other)

    def __bool__(self) -> bool:
        return True


class Structure:
    """offsets: (B + 1,) integers, where sequences start; lengths: (B,) or None where each ends as the next one starts.

    Sequence i is values[offsets[i] : offsets[i] + lengths[i]] along the ragged dimension. Two tensors with one structure have the same ragged size.
    """

    def __init__(self, offsets: Any, lengths: Any) -> None:
        self.offsets, self.lengths = offsets, lengths
        self.size = NestedInt(next(_numbers))

    @cached_property
    def batch(self) -> int:
        return int(self.offsets.numel()) - 1

    @cached_property
    def starts(self) -> list[int]:
        return self.offsets.tolist()[:-1]  # type: ignore[no-any-return]

    @cached_property
    def counts(self) -> list[int]:
        """The sequences' lengths."""
        if self.lengths is not None:
            return self.lengths.tolist()  # type: ignore[no-any-return]
        bounds = self.offsets.tolist()
        return [b - a for a, b in itertools.pairwise(bounds)]

    @cached_property
    def counts_tensor(self) -> Any:
        return self.offsets.diff() if self.lengths is None else self.lengths

    @cached_property
    def longest(self) -> int:
        return max(self.counts, default=0)

    @cached_property
    def shortest(self) -> int:
        return min(self.counts, default=0)

    @cached_property
    def total(self) -> int:
        return sum(self.counts)

    @cached_property
    def end(self) -> int:
        """Where the last sequence ends."""
        return max((a + n for a, n in zip(self.starts, self.counts, strict=True)), default=0)

    @cached_property
    def sequence(self) -> Any:
        """The number of the sequence that each row of the compacted values belongs to: int64 (total,)."""
        numbers = trt.arange(self.batch, device=self.offsets.device)
        return numbers.repeat_interleave(self.counts_tensor.to(trt.int64))

    @cached_property
    def position(self) -> Any:
        """The place of each row of the compacted values in its sequence: int64 (total,)."""
        counts = self.counts_tensor.to(trt.int64)
        first = counts.cumsum(0) - counts
        return trt.arange(self.total, device=self.offsets.device) - first.index_select(0, self.sequence)

    @cached_property
    def rows(self) -> Any:
        """The compacted values' places among the values, None where they are all of them in order: int64 (total,)."""
        if self.lengths is None and self.total == self.end and (not self.starts or self.starts[0] == 0):
            return None
        return self.offsets[:-1].to(trt.int64).index_select(0, self.sequence) + self.position

    @cached_property
    def padded_rows(self) -> Any:
        """Where the rows of the compacted values stand in (B * longest) padded ones: int64 (total,)."""
        return self.sequence * self.longest + self.position

    @cached_property
    def compact(self) -> Structure:
        """The same sequences without gaps between them; this object where there are none."""
        if self.rows is None:
            return self
        offsets = _nn.functional.pad(self.counts_tensor.cumsum(0), (1, 0)).to(self.offsets.dtype)
        made = structure_of(offsets, None)
        made.size = self.size
        return made


def structure_of(offsets: Any, lengths: Any = None) -> Structure:
    """The structure of these tensors, the same object for the same tensors."""
    holder = offsets if lengths is None else lengths
    found = holder.__dict__.get("_jagged_structure")
    if found is None or found.offsets is not offsets:
        found = holder.__dict__["_jagged_structure"] = Structure(offsets, lengths)
    return found  # type: ignore[no-any-return]
