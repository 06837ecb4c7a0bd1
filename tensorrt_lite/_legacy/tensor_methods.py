"""Methods of Tensor that few programs call: functions of Python over the elements, and what is left of removed or foreign ones.

`METHODS` and `PROPERTIES` become attributes of Tensor (tensor.py).
"""

from __future__ import annotations

from math import prod as _prod
import warnings

from tensorrt_lite import _ops
from tensorrt_lite._C.core.dtype import _dtype_by_name
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_legacy_removed = _LazyModule("tensorrt_lite._legacy.removed")
_typed_storage = _LazyModule("tensorrt_lite._legacy.typed_storage")
_listing = _LazyModule("tensorrt_lite._names.listing")

TYPE_CHECKING = False  # `typing` and what it imports would be a quarter of the package's import time
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from tensorrt_lite import Tensor


def _write_elements(name: str, self: Tensor, others: tuple[Tensor, ...], function: Callable[..., Any]) -> Tensor:
    """Each element becomes what the function makes of it and of the others' elements there; nothing is written where one of its calls fails."""
    if not callable(function):
        raise TypeError(f"'{type(function).__name__}' object is not callable")
    if self.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    if self.is_meta:
        return self
    if not self.is_cpu:
        raise TypeError(f"{name} is only implemented on CPU tensors")
    for other in others:
        if not isinstance(other, TensorBase):
            raise TypeError(f"{name}(): expected a Tensor for 'other', got {type(other).__name__}")
        if other.dtype != self.dtype or not other.is_cpu:
            raise TypeError(f"{name}: expected {self.type()} for 'other' (got {other.type()})")
    operands = [self, *(other.detach().expand(self.shape) for other in others)]
    results = list(map(function, *(operand.reshape(-1).tolist() for operand in operands)))
    if any(isinstance(result, str) or not hasattr(type(result), "__float__") and not isinstance(result, complex) for result in results):
        wrong = next(r for r in results if isinstance(r, str) or not hasattr(type(r), "__float__") and not isinstance(r, complex))
        raise TypeError(f"must be real number, not {type(wrong).__name__}")
    if not self.is_floating_point() and not self.is_complex() and any(isinstance(result, float) for result in results):
        raise TypeError("'float' object cannot be interpreted as an integer")
    return self.copy_(_ops.tensor(results, dtype=self.dtype).reshape(self.shape))


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:  # noqa: A002 (PyTorch's name)
    """Replace each element by callable(element), a Python number. CPU tensors without gradient (TypeError, RuntimeError); slow."""
    return _write_elements("apply_", self, (), callable)


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:  # noqa: A002
    """Replace each element by callable(element, tensor's element); tensor has the same dtype and expands to this shape. CPU; slow."""
    return _write_elements("map_", self, (tensor,), callable)


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:  # noqa: A002
    """Replace each element by callable(element, x's element, y's element). CPU; slow."""
    return _write_elements("map2_", self, (x, y), callable)


def as_strided_(self: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Give the tensor itself another shape, strides and offset in its storage. RuntimeError where they leave it, or a gradient is recorded."""
    if self.requires_grad:
        raise RuntimeError("as_strided_(): the tensor requires a gradient, which this does not record; use as_strided")
    view = self.as_strided(size, stride, storage_offset)
    return self.set_(self.untyped_storage(), view.storage_offset(), view.shape, view.stride())


def slice_inverse(self: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    """The tensor of src's shape, strides and offset over this one's storage: what was sliced (dim, start, end, step) to get this one."""
    return self.as_strided(src.shape, src.stride(), src.storage_offset())


def const_data_ptr(self: Tensor) -> int:
    """The address of the first element, to read from."""
    return self.data_ptr()


def dequantize(self: Tensor) -> Tensor:
    """The tensor as float32: itself where it is that already; of a list of tensors, a tuple of such."""
    if isinstance(self, (tuple, list)):
        return tuple(map(dequantize, self))
    return self.to(_dtype_by_name("float32"))


def is_distributed(self: Tensor) -> bool:
    """False: tensors lie in one process."""
    return False


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What `load_state_dict` puts in place of this parameter or buffer: `other` detached, or (assign=False) this one with other's values, detached."""
    return other.detach() if assign else self.copy_(other).detach()


def reinforce(self: Tensor, reward: Any) -> NoReturn:
    """RuntimeError: removed; use `distributions`."""
    raise RuntimeError(
        "reinforce() was removed.\nUse torch.distributions instead.\nSee https://pytorch.org/docs/main/distributions.html\n\n"
        "Instead of:\n\nprobs = policy_network(state)\naction = probs.multinomial()\nnext_state, reward = env.step(action)\naction.reinforce(reward)\n"
        "action.backward()\n\nUse:\n\nprobs = policy_network(state)\n# NOTE: categorical is equivalent to what used to be called multinomial\n"
        "m = torch.distributions.Categorical(probs)\naction = m.sample()\nnext_state, reward = env.step(action)\nloss = -m.log_prob(action) * reward\n"
        "loss.backward()\n"
    )


def resize(self: Tensor, *sizes: Any) -> Tensor:
    """A view of another shape with as many elements (deprecated: use resize_ or reshape). RuntimeError where their number differs.

    Parameters:
        *sizes (int): the new shape, of as many elements

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.arange(4).resize(2, 2)
        tensor([[0, 1],
                [2, 3]])
    """
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    shape = sizes[0] if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    return _resized(self, tuple(shape))


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """A view of the tensor's shape, which has as many elements (deprecated: use resize_as_ or reshape)."""
    warnings.warn("non-inplace resize_as is deprecated", stacklevel=2)
    return _resized(self, tuple(tensor.shape))


def _resized(self: Tensor, shape: tuple[int, ...]) -> Tensor:
    if _prod(shape) != self.numel():
        sizes = "x".join(map(str, shape))
        raise RuntimeError(
            f"requested resize to {sizes} ({_prod(shape)} elements in total), but the given tensor has a size of {'x'.join(map(str, self.shape))} "
            f"({self.numel()} elements). autograd's resize can only change the shape of a given tensor, while preserving the number of elements. "
        )
    return self.contiguous().view(shape)


def storage_type(self: Tensor) -> type | None:
    """The class of `storage()`, such as FloatStorage; None for types that have none (float8, uint16 to uint64, complex32)."""
    name = _typed_storage.STORAGE_OF_DTYPE.get(self.dtype.name)
    return None if name is None else getattr(_listing.root(), name)


def _refusal(device: str, error: type[Exception], text: str) -> Any:
    def move(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
        raise error(text)

    move.__name__ = move.__qualname__ = device
    move.__doc__ = f"{error.__name__}: there are no {device.upper()} devices here."
    return move


ipu = _refusal("ipu", RuntimeError, "PyTorch is not linked with support for ipu devices")
mtia = _refusal("mtia", AssertionError, "Torch not compiled with MTIA enabled.")
xpu = _refusal("xpu", AssertionError, "Torch not compiled with XPU enabled")


def _removed(name: str, *arguments: Any) -> NoReturn:
    getattr(_legacy_removed, name)(*arguments)
    raise AssertionError(name)  # they all raise


def eig(self: Tensor, eigenvectors: bool = False) -> NoReturn:
    """RuntimeError: removed; use `linalg.eig`."""
    _removed("eig", self)


def lstsq(self: Tensor, other: Tensor) -> NoReturn:
    """RuntimeError: removed; use `linalg.lstsq`."""
    _removed("lstsq", self, other)


def solve(self: Tensor, other: Tensor) -> NoReturn:
    """RuntimeError: removed; use `linalg.solve`."""
    _removed("solve", self, other)


def symeig(self: Tensor, eigenvectors: bool = False) -> NoReturn:
    """RuntimeError: removed; use `linalg.eigh`."""
    _removed("symeig", self)


METHODS = {
    f.__name__: f
    for f in (
        apply_, map_, map2_, as_strided_, slice_inverse, const_data_ptr, dequantize, is_distributed, module_load, reinforce, resize, resize_as, storage_type,
        ipu, mtia, xpu, eig, lstsq, solve, symeig,
    )
}  # fmt: skip


def _never(self: Tensor) -> bool:
    """False: there are no such tensors here."""
    return False


def _no_name(self: Tensor) -> None:
    """None: tensors have no names."""
    return None


def _volatile(self: Tensor) -> bool:
    """False, with a warning: removed; use `no_grad`."""
    warnings.warn("volatile was removed (Variable.volatile is always False)", stacklevel=2)
    return False


def _set_volatile(self: Tensor, value: Any) -> None:
    warnings.warn("volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", stacklevel=2)


# name: (getter, setter)
PROPERTIES = {
    **{f"is_{kind}": (_never,) for kind in ("ipu", "maia", "mtia", "vulkan", "xla")},
    "name": (_no_name,),
    "volatile": (_volatile, _set_volatile),
}
