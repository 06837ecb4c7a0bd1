"""Forward-mode automatic differentiation, which is not implemented: every entry raises NotImplementedError.

``tensorrt_lite.autograd.functional.jvp`` computes Jacobian-vector products by differentiating twice in reverse mode.
"""

from __future__ import annotations

__all__ = ["dual_level", "make_dual", "unpack_dual", "enter_dual_level", "exit_dual_level"]

_MESSAGE = "forward-mode automatic differentiation is not implemented; autograd.functional.jvp computes Jacobian-vector products in reverse mode"


class dual_level:
    """The context of forward-mode differentiation. Raises NotImplementedError."""

    def __init__(self) -> None:
        raise NotImplementedError(_MESSAGE)


def make_dual(tensor, tangent, *, level=None):
    """A tensor with a tangent. Raises NotImplementedError."""
    raise NotImplementedError(_MESSAGE)


def unpack_dual(tensor, *, level=None):
    """The tensor and tangent of a dual tensor. Raises NotImplementedError."""
    raise NotImplementedError(_MESSAGE)


def enter_dual_level() -> int:
    """Raises NotImplementedError."""
    raise NotImplementedError(_MESSAGE)


def exit_dual_level(*, level=None) -> None:
    """Raises NotImplementedError."""
    raise NotImplementedError(_MESSAGE)
