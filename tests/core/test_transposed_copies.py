"""Copies between orders of dimensions, whose tiles are transposed in squares of registers with a remainder at the edges."""

from __future__ import annotations

import numpy as np
import pytest

import tensorrt_lite as trt


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_transposed_copies_move_every_element(dtype: str) -> None:
    """Squares have 8 or 16 rows: sizes around their multiples, contiguous and as parts of larger matrices."""
    for rows in (1, 7, 8, 9, 15, 16, 17, 33, 64, 130):
        for cols in (1, 8, 15, 16, 31, 65, 129):
            whole = np.arange((rows + 3) * (cols + 5)).reshape(rows + 3, cols + 5).astype(dtype)
            x = trt.tensor(whole)
            assert np.array_equal(x.t().contiguous().numpy(), whole.T)
            part = x[1 : rows + 1, 2 : cols + 2]
            assert np.array_equal(part.t().contiguous().numpy(), whole[1 : rows + 1, 2 : cols + 2].T)
            target = trt.zeros(cols, rows + 1, dtype=x.dtype)
            target[:, 1:].copy_(part.t())
            assert np.array_equal(target.numpy()[:, 1:], whole[1 : rows + 1, 2 : cols + 2].T) and not target[:, 0].any()


@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_images_change_between_memory_formats(dtype: str) -> None:
    for size in ((2, 3, 9, 11), (1, 64, 28, 28), (3, 17, 16, 5), (2, 130, 7, 7)):
        values = np.arange(np.prod(size)).reshape(size).astype(dtype)
        last = trt.tensor(values).contiguous(memory_format=trt.channels_last)
        assert np.array_equal(last.permute(0, 2, 3, 1).numpy(), values.transpose(0, 2, 3, 1))
        assert np.array_equal(last.contiguous().numpy(), values)
