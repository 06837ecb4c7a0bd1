"""Forward-mode automatic differentiation: tangents that travel with the values (``torch.autograd.forward_ad``).

>>> import tensorrt_lite as trt
>>> import tensorrt_lite.autograd.forward_ad as fwAD
>>> with fwAD.dual_level():
...     x = fwAD.make_dual(trt.tensor([1.0, 2.0]), trt.tensor([1.0, 0.0]))
...     fwAD.unpack_dual(x * x).tangent.tolist()
[2.0, 0.0]

The rules by which tangents pass through operators are in ``cysrc/autograd/forward.pyx`` and the declarations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tensorrt_lite._C.autograd import forward as _forward
from tensorrt_lite._C.core import python_key as _python_key
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_mapping = _LazyModule("tensorrt_lite._transforms.mapping")

if TYPE_CHECKING:
    from tensorrt_lite import Tensor

__all__ = ["UnpackedDualTensor", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual", "dual_level"]


class UnpackedDualTensor(NamedTuple):
    """What :func:`unpack_dual` returns; ``tangent`` is None for a tensor that carries none."""

    primal: Tensor
    tangent: Tensor | None


def __getattr__(name: str) -> int:
    """`_current_level`: the number of the level that is open, -1 where none is. Programs read it to learn whether they are inside one."""
    if name == "_current_level":
        return _forward.current_level()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def enter_dual_level() -> int:
    """Open a level and return its number. RuntimeError when one is open: there is one at a time."""
    return _forward.enter_level()


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level; every tangent made in it ends. RuntimeError when `level` is not the one that is open."""
    current = _forward.current_level()
    if current < 0:
        raise RuntimeError("Dual level must be a positive number.")
    _forward.exit_level(current if level is None else level)


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of `tensor` that carries `tangent`, of the same shape: the derivative of the tensor along some direction.

    ValueError when either is not of floating or complex numbers; RuntimeError outside of a level, for another shape, and
    for a tensor that has a tangent already.
    """
    if _python_key.is_transformed([tensor, tangent]):
        dual = _mapping.make_dual_of_batch(tensor, tangent, make_dual)
        if dual is not None:
            return dual
    current = _forward.current_level()
    if current >= 0 and level is not None and level != current:
        raise RuntimeError("Invalid level given to _make_dual")
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    return _forward.make_dual(tensor, tangent)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value (a view without tangent) and the tangent of a tensor; the tensor itself and None when it has none."""
    if not isinstance(tensor, TensorBase):
        raise TypeError(f"_unpack_dual(): argument 'dual' (position 1) must be Tensor, not {type(tensor).__name__}")
    if _python_key.is_transformed([tensor]):
        found = _mapping.unpack_dual_of_batch(tensor, unpack_dual)
        if found is not None:
            return UnpackedDualTensor(*found)
    if level is not None and level != _forward.current_level() or _forward.current_level() < 0:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_forward.unpack_dual(tensor))


class dual_level(no_grad):
    """The context in which dual tensors exist; a context manager and a decorator. Levels do not nest (RuntimeError)."""

    __slots__ = ()

    def __enter__(self) -> int:  # type: ignore[override]
        return enter_dual_level()

    def __exit__(self, *error: Any) -> None:
        exit_dual_level()


def _is_fwd_grad_enabled() -> bool:
    return _forward.is_enabled()


class _set_fwd_grad_enabled:
    """Whether tangents pass through operators in this thread, set at once and restored by the context."""

    def __init__(self, mode: bool) -> None:
        self.prev = _forward.is_enabled()
        _forward.set_enabled(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: Any) -> None:
        _forward.set_enabled(self.prev)
