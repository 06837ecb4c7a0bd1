"""NestedTensor: tensors that agree in all sizes but one, their values joined along that dimension (layout `jagged`)."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._subclasses.composite_tensor import CompositeTensor, registering
from tensorrt_lite._size import Size
from tensorrt_lite.nested._structure import Structure, structure_of


class NestedTensor(CompositeTensor):
    """(B, ..., j, ...): B tensors whose sizes along the ragged dimension differ.

    values: without the batch dimension, the sequences one behind the other along the ragged one; structure: where each starts and ends. Operators run on
    `values`, which is what autograd sees. Made by the functions of `tensorrt_lite.nested`.
    """

    _values: Any
    _structure: Structure
    _ragged_idx: int
    _noun = "nested tensors of the jagged layout"

    @staticmethod
    def __new__(cls, values: Any, structure: Structure, ragged_idx: int = 1) -> NestedTensor:
        made = trt.Tensor._make_wrapper_subclass(cls, (0,), dtype=values.dtype, device=values.device)
        made._values, made._structure, made._ragged_idx = values, structure, ragged_idx
        return made  # type: ignore[no-any-return]

    def __init__(self, values: Any, structure: Structure, ragged_idx: int = 1) -> None:
        pass

    @property
    def _part(self) -> Any:
        return self._values

    def _with_part(self, part: Any) -> NestedTensor:
        return NestedTensor(part, self._structure, self._ragged_idx)

    # ---- geometry ----

    @property
    def shape(self) -> Size:
        sizes = list(self._values.shape)
        sizes[self._ragged_idx - 1] = self._structure.size
        return Size([self._structure.batch, *sizes])

    @property
    def ndim(self) -> int:
        return int(self._values.ndim) + 1

    @property
    def layout(self) -> Any:
        return trt.jagged

    @property
    def is_nested(self) -> bool:
        return True

    @property
    def _offsets(self) -> Any:
        return self._structure.offsets

    @property
    def _lengths(self) -> Any:
        return self._structure.lengths

    def values(self) -> Any:
        """The sequences' elements, joined along the ragged dimension; gradients flow back through it. With holes, those are in it."""
        return self._values.view_as(self._values) if self._values.requires_grad else self._values.detach()

    def offsets(self) -> Any:
        """(B + 1,): where each sequence starts, and where the last one ends."""
        return self._structure.offsets

    def lengths(self) -> Any:
        """(B,): the sequences' lengths where there may be holes between them, else None."""
        return self._structure.lengths

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Any:
        """(B, ..., longest, ...) with `padding` behind each sequence; output_size: the same or larger sizes (RuntimeError for smaller ones)."""
        return table["to_padded_tensor"](None, (self, padding, output_size), {})

    def _get_max_seqlen(self) -> int:
        return self._structure.longest

    def _get_min_seqlen(self) -> int:
        return self._structure.shortest

    _max_seqlen = property(_get_max_seqlen)
    _min_seqlen = property(_get_min_seqlen)

    # ---- parts ----

    def _rows(self) -> Any:
        """The compacted values with the ragged dimension in front: (total, ...)."""
        rows = self._values if self._ragged_idx == 1 else self._values.movedim(self._ragged_idx - 1, 0)
        index = self._structure.rows
        if index is not None:
            return rows.index_select(0, index)
        return rows if rows.shape[0] == self._structure.total else rows.narrow(0, 0, self._structure.total)

    def _compacted(self) -> NestedTensor:
        """The same sequences without holes between them."""
        if self._structure.rows is None and self._values.shape[self._ragged_idx - 1] == self._structure.total:
            return self
        return from_rows(self._rows(), self._structure.compact, self._ragged_idx)

    def _sequences(self) -> list[Any]:
        """The B tensors, views of the values."""
        dim, s = self._ragged_idx - 1, self._structure
        if s.rows is None and self._values.shape[dim] == s.total:
            return list(self._values.split(s.counts, dim)) if s.batch else []
        return [self._values.narrow(dim, start, count) for start, count in zip(s.starts, s.counts, strict=True)]

    def _padded(self, value: Any, length: int | None = None) -> Any:
        """(B, ..., longest, ...) with `value` behind each sequence's end."""
        s, rows = self._structure, self._rows()
        length = s.longest if length is None else length
        places = s.padded_rows if length == s.longest else s.sequence * length + s.position
        filled = trt.full((s.batch * length, *rows.shape[1:]), value, dtype=rows.dtype, device=rows.device).index_copy(0, places, rows)
        out = filled.reshape(s.batch, length, *rows.shape[1:])
        return out if self._ragged_idx == 1 else out.movedim(1, self._ragged_idx)

    def _from_padded(self, padded: Any) -> NestedTensor:
        """The sequences of this structure in a tensor like `_padded`'s, whose other sizes may differ."""
        dense = padded if self._ragged_idx == 1 else padded.movedim(self._ragged_idx, 1)
        s = self._structure.compact
        return from_rows(
            dense.reshape(dense.shape[0] * dense.shape[1], *dense.shape[2:]).index_select(0, s.sequence * dense.shape[1] + s.position),
            s,
            self._ragged_idx,
        )

    # ---- the object ----

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        history = f", grad_fn={self.grad_fn}" if self.grad_fn is not None else f", requires_grad={self.requires_grad}" if self.requires_grad else ""
        return f"NestedTensor(size={tuple(self.shape)}, offsets={self._structure.offsets}{history}, contiguous={self.is_contiguous()})"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _rebuild, (self._values.detach(), self._structure.offsets, self._structure.lengths, self._ragged_idx, self.requires_grad)

    def __deepcopy__(self, memo: Any) -> Any:
        if id(self) not in memo:
            if not self.is_leaf:
                raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment")
            memo[id(self)] = self._with_part(self._values.detach().clone().requires_grad_(self.requires_grad))
        return memo[id(self)]


def _rebuild(values: Any, offsets: Any, lengths: Any, ragged_idx: int, requires_grad: bool) -> NestedTensor:
    return NestedTensor(values.requires_grad_(requires_grad), structure_of(offsets, lengths), ragged_idx)


def from_rows(rows: Any, structure: Structure, ragged_idx: int) -> NestedTensor:
    """Around rows (total, ...), whose first dimension is put in the ragged one's place."""
    return NestedTensor(rows if ragged_idx == 1 else rows.movedim(0, ragged_idx - 1), structure, ragged_idx)


def from_sequences(sequences: list[Any], structure: Structure | None = None, ragged_idx: int | None = None) -> NestedTensor:
    """Around copies of tensors that differ in one size at most; gradients reach them. RuntimeError for others."""
    if ragged_idx is None:
        shapes = [tuple(t.shape) for t in sequences]
        ranks = {len(shape) for shape in shapes}
        if ranks == {0}:
            raise RuntimeError("nested tensors of the jagged layout need tensors with a dimension at least")
        different = [d for d in range(len(shapes[0])) if len({shape[d] for shape in shapes}) > 1] if len(ranks) == 1 else []
        if len(ranks) > 1 or len(different) > 1:
            raise RuntimeError(f"the sizes of tensors of a nested tensor must differ in one dimension only (layout jagged), got {shapes}")
        ragged_idx = different[0] + 1 if different else 1
    dim = ragged_idx - 1
    if structure is None:
        counts = [t.shape[dim] for t in sequences]
        offsets = trt.tensor([0, *counts], dtype=trt.int64, device=sequences[0].device).cumsum(0)
        structure = structure_of(offsets)
        structure.counts = counts
    return NestedTensor(trt.cat(sequences, dim), structure, ragged_idx)


table: dict[str, Any] = {}
NestedTensor._table = table
operator = registering(table)
