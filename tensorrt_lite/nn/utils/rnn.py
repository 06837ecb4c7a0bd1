"""Batches of sequences of unequal length."""

from __future__ import annotations

from typing import Any

import tensorrt_lite as trt


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """Sequences (L_i, *) stacked to (max L, N, *), or (N, max L, *) with batch_first, filled with padding_value."""
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if isinstance(sequences, trt.Tensor):
        sequences = sequences.unbind(0)
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
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
    """The sequences of a padded batch, cut to `lengths`: undoes pad_sequence."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [sequence[: int(length)] for sequence, length in zip(padded_sequences.unbind(0), lengths, strict=True)]
