"""Batches of sequences of unequal length."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """Sequences (L_i, *) stacked to (max L, N, *), or (N, max L, *) with batch_first, filled with padding_value.

    Parameters:
        sequences (list of Tensors): the sequences, each (L, *)
        batch_first (bool, default False): whether the batch is the first dimension, not the second
        padding_value (float, default 0.0): the number behind shorter sequences
        padding_side (str, default 'right'): 'right' or 'left'

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.utils.rnn.pad_sequence([trt.tensor([1, 2]), trt.tensor([3])], batch_first=True)
        tensor([[1, 2],
                [3, 0]])
    """
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if isinstance(sequences, trt.Tensor):
        sequences = sequences.unbind(0)
    try:
        sequences = list(sequences)
    except TypeError:
        raise RuntimeError(f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}") from None
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    for position, sequence in enumerate(sequences):
        if not isinstance(sequence, trt.Tensor):
            raise TypeError(f"pad_sequence(): expected Tensor as element {position} in argument 0, but got {type(sequence).__name__}")
    longest = max(sequence.size(0) for sequence in sequences)
    trailing = tuple(sequences[0].shape[1:])
    shape = (len(sequences), longest, *trailing) if batch_first else (longest, len(sequences), *trailing)
    result = sequences[0].new_full(shape, padding_value)
    for position, sequence in enumerate(sequences):
        length = sequence.size(0)
        span = slice(0, length) if padding_side == "right" else slice(longest - length, longest)
        result[(position, span) if batch_first else (span, position)] = sequence
    return result


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The sequences of a padded batch, cut to `lengths`: undoes pad_sequence.

    Parameters:
        padded_sequences (Tensor): padded sequences, (L, N, *), or (N, L, *) with batch_first
        lengths (Tensor or list of ints): the length of each sequence
        batch_first (bool, default False): whether the batch is the first dimension, not the second

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.tensor([[1, 2], [3, 0]])
        >>> trt.nn.utils.rnn.unpad_sequence(x, trt.tensor([2, 1]), batch_first=True)
        [tensor([1, 2]), tensor([3])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [sequence[: int(length)].clone(memory_format=trt.contiguous_format) for sequence, length in zip(padded_sequences.unbind(0), lengths, strict=True)]


class PackedSequence(namedtuple("PackedSequence", ["data", "batch_sizes", "sorted_indices", "unsorted_indices"])):
    """Sequences of unequal length without padding: the first elements of all, then the second of all that go on, ...

    data: (sum of lengths, *), longest sequence first; batch_sizes: how many sequences have each step, on the CPU;
    sorted_indices, unsorted_indices: the permutations between the caller's order and that of data, or None.
    """

    __slots__ = ()

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in nn.utils.rnn."
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def is_pinned(self) -> bool:
        """Whether the data lies in page-locked memory."""
        return self.data.is_pinned()

    def pin_memory(self) -> PackedSequence:
        """The sequence in page-locked memory."""
        return type(self)(*(None if t is None else t.pin_memory() for t in self))

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequence with its data converted; permutations follow to the data's device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        permutations = [None if index is None else index.to(data.device) for index in self[2:]]
        return type(self)(data, self.batch_sizes, *permutations)

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequence on the CPU, with the other arguments of `to`."""
        return self._on("cpu", args, kwargs)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """The sequence on the current CUDA device, or on that which the arguments of `to` name."""
        return self._on("cuda", args, kwargs)

    def _on(self, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PackedSequence:
        """`to` with these arguments, and with a device of this kind where they lead to another."""
        there = self.data.new_empty(0).to(*args, **kwargs).device.type == kind
        return self.to(*args, **kwargs) if there else self.to(*args, **{**kwargs, "device": kind})

    def double(self) -> PackedSequence:
        """The sequence in float64."""
        return self.to(dtype=trt.float64)

    def float(self) -> PackedSequence:
        """The sequence in float32."""
        return self.to(dtype=trt.float32)

    def half(self) -> PackedSequence:
        """The sequence in float16."""
        return self.to(dtype=trt.float16)

    def long(self) -> PackedSequence:
        """The sequence in int64."""
        return self.to(dtype=trt.int64)

    def int(self) -> PackedSequence:
        """The sequence in int32."""
        return self.to(dtype=trt.int32)

    def short(self) -> PackedSequence:
        """The sequence in int16."""
        return self.to(dtype=trt.int16)

    def char(self) -> PackedSequence:
        """The sequence in int8."""
        return self.to(dtype=trt.int8)

    def byte(self) -> PackedSequence:
        """The sequence in uint8."""
        return self.to(dtype=trt.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device."""
        return self.data.is_cuda


def invert_permutation(permutation: Any) -> Any:
    """The permutation that undoes `permutation`; None stays None.

    Parameters:
        permutation (Tensor or None): the permutation

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.utils.rnn.invert_permutation(trt.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    order = trt.arange(permutation.numel(), device=permutation.device)
    return trt.empty_like(permutation).scatter_(0, permutation, order)


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Packs a padded batch (L, N, *) whose sequences have `lengths`; unsorted batches need enforce_sorted=False.

    Parameters:
        input (Tensor): padded sequences, (L, N, *), or (N, L, *) with batch_first
        lengths (Tensor or list of ints): the length of each sequence
        batch_first (bool, default False): whether the batch is the first dimension, not the second
        enforce_sorted (bool, default True): whether sequences must come in the order of falling length

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.tensor([[1, 2], [3, 0]])
        >>> trt.nn.utils.rnn.pack_padded_sequence(x, [2, 1], batch_first=True).data
        tensor([1, 3, 2])
    """
    if not isinstance(lengths, trt.Tensor):
        lengths = trt.tensor(lengths, dtype=trt.int64)
    if input.numel() == 0 and lengths.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    order = None
    if not enforce_sorted:
        values = lengths.tolist()
        by_length = sorted(range(len(values)), key=lambda i: -values[i])
        order = trt.tensor(by_length, dtype=trt.int64)
        lengths = lengths[order]
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    counts = [int(length) for length in lengths.tolist()]
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    if len(counts) != input.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={input.size(1)})"
        )
    if any(count <= 0 for count in counts):
        raise RuntimeError("Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0")
    if any(a < b for a, b in zip(counts, counts[1:], strict=False)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if counts[0] > input.size(0):
        raise RuntimeError(f"Expected lengths up to {input.size(0)}, the padded length, but got {counts[0]}")
    sizes = _batch_sizes(counts)
    data = trt.cat([input[step, :size] for step, size in enumerate(sizes)])
    return PackedSequence(data, trt.tensor(sizes, dtype=trt.int64), order, None)


def _batch_sizes(lengths: list[int]) -> list[int]:
    """How many of the sequences with these falling lengths reach each step."""
    sizes = []
    alive = len(lengths)
    for step in range(lengths[0]):
        while lengths[alive - 1] <= step:
            alive -= 1
        sizes.append(alive)
    return sizes


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """The padded batch (L, N, *) and the lengths (N) of a packed sequence, in the caller's order.

    Parameters:
        sequence (PackedSequence): the packed sequences
        batch_first (bool, default False): whether the batch is the first dimension, not the second
        padding_value (float, default 0.0): the number behind shorter sequences
        total_length (int or None, default None): the length of the result; None is that of the longest

    Example:
        >>> import tensorrt_lite as trt
        >>> packed = trt.nn.utils.rnn.pack_sequence([trt.tensor([1, 2]), trt.tensor([3])])
        >>> trt.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2],
                [3, 0]]), tensor([2, 1]))
    """
    sizes = [int(size) for size in sequence.batch_sizes.tolist()]
    steps = len(sizes)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    padded = sequence.data.new_full((steps, sizes[0], *sequence.data.shape[1:]), padding_value)
    for step, part in enumerate(sequence.data.split(sizes)):
        padded[step, : sizes[step]] = part
    lengths = trt.tensor([sum(size > position for size in sizes) for position in range(sizes[0])], dtype=trt.int64)
    if batch_first:
        padded = padded.transpose(0, 1)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return padded, lengths


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences (L_i, *).

    Parameters:
        sequences (list of Tensors): the sequences, each (L, *)
        enforce_sorted (bool, default True): whether sequences must come in the order of falling length

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.nn.utils.rnn.pack_sequence([trt.tensor([1, 2]), trt.tensor([3])]).batch_sizes
        tensor([2, 1])
    """
    lengths = trt.tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """The sequences of a packed sequence, in the caller's order: undoes pack_sequence.

    Parameters:
        packed_sequences (PackedSequence): the packed sequences

    Example:
        >>> import tensorrt_lite as trt
        >>> packed = trt.nn.utils.rnn.pack_sequence([trt.tensor([1, 2]), trt.tensor([3])])
        >>> trt.nn.utils.rnn.unpack_sequence(packed)
        [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


def __dir__() -> list[str]:
    return _listing.public(globals())
