"""Causal masks that say where their diagonal lies, for queries and keys of different numbers: PyTorch's `torch.nn.attention.bias`."""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.tensor import Tensor
from tensorrt_lite.nn import functional as F

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """Which corner the diagonal starts from: UPPER_LEFT, where query i sees keys 0 to i, or LOWER_RIGHT, where the last query sees all keys."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """The mask (seq_len_q, seq_len_kv) of a variant, which `scaled_dot_product_attention` takes as `attn_mask`; other operators refuse it (TypeError).

    >>> import tensorrt_lite as trt
    >>> from tensorrt_lite.nn.attention.bias import causal_lower_right
    >>> causal_lower_right(2, 3)
    tensor([[ True,  True, False],
            [ True,  True,  True]])
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        return Tensor._make_subclass(cls, trt.empty(0))

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn("Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2)

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as a tensor of booleans, on the CPU without a device."""
        offset = 0 if self.variant == CausalVariant.UPPER_LEFT else self.seq_len_kv - self.seq_len_q
        return trt.ones(self.seq_len_q, self.seq_len_kv, dtype=trt.bool, device=device).tril(offset)

    @staticmethod
    def _dispatch(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: CausalBias,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """Attention under the mask. ValueError beside is_causal."""
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        causal = attn_mask.variant == CausalVariant.UPPER_LEFT or attn_mask.seq_len_q == attn_mask.seq_len_kv
        mask = None if causal else attn_mask._materialize(query.device)
        return F.scaled_dot_product_attention(query, key, value, mask, dropout_p, causal, scale=scale, enable_gqa=enable_gqa)

    @classmethod
    def __torch_function__(cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        if func is F.scaled_dot_product_attention:
            return cls._dispatch(*args, **kwargs or {})
        return super().__torch_function__(func, types, args, kwargs or {})

    def __repr__(self, *, tensor_contents: object = None) -> str:
        return repr(self._materialize())


def _causal(variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        raise AssertionError(f"causal_{variant.name.lower()} only supports 2D tensors")
    return CausalBias(variant, *size)


def causal_upper_left(*size: int) -> CausalBias:
    """The mask of `is_causal=True`, for `size` queries and keys: query i sees keys 0 to i.

    >>> from tensorrt_lite.nn.attention.bias import causal_upper_left
    >>> causal_upper_left(2, 3)
    tensor([[ True, False, False],
            [ True,  True, False]])
    """
    return _causal(CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask under which the last of `size` queries sees all keys, as queries do that come behind cached keys. AssertionError unless `size` is two numbers."""
    return _causal(CausalVariant.LOWER_RIGHT, size)
