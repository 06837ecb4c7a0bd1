"""torch._C._functorch: questions about batched tensors, of which there are none."""

from __future__ import annotations

from typing import Any


def is_batchedtensor(tensor: Any) -> bool:
    """False."""
    return False


is_legacy_batchedtensor = is_functorch_wrapped_tensor = is_gradtrackingtensor = is_batchedtensor
