"""torch.onnx: what packages register for an exporter that is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
    """No effect: there is no export."""


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """No effect: there is no export."""
