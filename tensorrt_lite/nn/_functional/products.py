"""Grouped products, and products of scaled float8 matrices, under the names of nn.functional."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite import _ops

if TYPE_CHECKING:
    from tensorrt_lite import Tensor


class ScalingType(Enum):
    """What one scale is of: a tensor, a row, or a block of elements."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(Enum):
    """How scales of blocks lie in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def grouped_mm(mat_a: Any, mat_b: Any, *, offs: Any = None, bias: Any = None, out_dtype: Any = None) -> Tensor:
    """Products of groups of rows, columns or depths, which end at offs, or of batches."""
    return _ops._grouped_mm(mat_a, mat_b, offs, bias, out_dtype)


def _single(value: Any) -> Any:
    """The one entry of a list, or what is none."""
    if isinstance(value, (list, tuple)):
        if len(value) != 1:
            raise NotImplementedError("scaled_mm: scales of several levels are not implemented (docs/gaps.md)")
        return value[0]
    return value


def scaled_mm(
    mat_a: Any,
    mat_b: Any,
    scale_a: Any,
    scale_recipe_a: Any,
    scale_b: Any,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Any = None,
    output_dtype: Any = trt.bfloat16,
    contraction_dim: Any = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """The product of float8 matrices, each with a scale for the tensor or for each row (column)."""
    recipes = [_single(recipe) for recipe in (scale_recipe_a, scale_recipe_b)]
    swizzles = [_single(swizzle) for swizzle in (swizzle_a, swizzle_b)]
    whole = recipes == [ScalingType.TensorWise] * 2
    if not whole and recipes != [ScalingType.RowWise] * 2 or any(s not in (None, SwizzleType.NO_SWIZZLE) for s in swizzles) or contraction_dim:
        raise NotImplementedError(
            "scaled_mm: scales of blocks, swizzled ones and contraction_dim are not implemented (docs/gaps.md)"
        )
    a, b = _single(scale_a), _single(scale_b)
    if not whole:
        a, b = a.reshape(-1, 1), b.reshape(1, -1)
    return _ops._scaled_mm(mat_a, mat_b, a, b, bias, None, output_dtype, use_fast_accum)


def scaled_grouped_mm(
    mat_a: Any,
    mat_b: Any,
    scale_a: Any,
    scale_recipe_a: Any,
    scale_b: Any,
    scale_recipe_b: Any,
    swizzle_a: Any = None,
    swizzle_b: Any = None,
    bias: Any = None,
    offs: Any = None,
    output_dtype: Any = trt.bfloat16,
    contraction_dim: Any = (),
    use_fast_accum: bool = False,
) -> Tensor:
    """grouped_mm of scaled float8 matrices: a product of CUDA alone, as in PyTorch, which is not there."""
    raise NotImplementedError("scaled_grouped_mm is not implemented (docs/gaps.md)")
