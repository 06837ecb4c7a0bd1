"""The flags of PyTorch's `torch.backends.mkldnn`. oneDNN is not used. `mkldnn.matmul.fp32_precision` says what products of float32 on the CPU may leave out, as
`set_float32_matmul_precision` does; the other flags can be set, because programs set them."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tensorrt_lite._C.ops.matmul.packed import set_f32_precision as _set_f32_precision

if TYPE_CHECKING:
    from collections.abc import Iterator

VERBOSE_OFF, VERBOSE_ON, VERBOSE_ON_CREATION = 0, 1, 2
_LEVELS = {"none": "highest", "ieee": "highest", "tf32": "high", "bf16": "medium"}  # as set_float32_matmul_precision calls them
_flags: dict[str, Any] = {"enabled": False, "deterministic": False, "allow_tf32": None, "fp32_precision": "none"}


def is_available() -> bool:
    """False: oneDNN is not used."""
    return False


def _check_precision(value: Any) -> None:
    if value not in _LEVELS:
        raise RuntimeError(f"Unknown precision: {value}")


class _Precision:
    """`mkldnn.matmul`, `conv` and `rnn`: their fp32_precision, where it is "none" that of `mkldnn`."""

    def __init__(self) -> None:
        self._own = "none"

    @property
    def fp32_precision(self) -> str:
        """"none", "ieee", "tf32" (16 bits of a number on the CPU, see `set_float32_matmul_precision`) or "bf16". `matmul` counts also where a convolution or a recurrent layer multiplies matrices; `conv` and `rnn` are kept."""
        precision: str = _flags["fp32_precision"] if self._own == "none" else self._own
        return precision

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        _check_precision(value)
        self._own = value
        _apply()


matmul, conv, rnn = _Precision(), _Precision(), _Precision()


def _apply() -> None:
    _set_f32_precision(_LEVELS[matmul.fp32_precision])


def set_flags(_enabled: Any = None, _deterministic: Any = None, _allow_tf32: Any = None, _fp32_precision: Any = "none") -> tuple[Any, Any, Any, Any]:
    """Sets the flags that are given; returns what they were."""
    before = (_flags["enabled"], _flags["deterministic"], _flags["allow_tf32"], _flags["fp32_precision"])
    if _fp32_precision is not None:
        _check_precision(_fp32_precision)
        _flags["fp32_precision"] = _fp32_precision
        _apply()
    for name, value in (("enabled", _enabled), ("deterministic", _deterministic), ("allow_tf32", _allow_tf32)):
        if value is not None:
            _flags[name] = value
    return before


@contextmanager
def flags(enabled: bool = False, deterministic: bool = False, allow_tf32: bool | None = True, fp32_precision: str = "none") -> Iterator[None]:
    """Sets the flags inside a ``with`` block."""
    before = set_flags(enabled, deterministic, allow_tf32, fp32_precision)
    try:
        yield
    finally:
        _flags.update(zip(("enabled", "deterministic", "allow_tf32", "fp32_precision"), before))
        _apply()


class verbose:  # noqa: N801
    """A ``with`` block for oneDNN's messages, of which there are none."""

    def __init__(self, level: int) -> None:
        self.level = level

    def __enter__(self) -> verbose | None:
        return None if self.level == VERBOSE_OFF else self

    def __exit__(self, *error: object) -> bool:
        return False


def _property(name: str, text: str) -> property:
    def read(self: Any) -> Any:
        return _flags[name]

    def write(self: Any, value: Any) -> None:
        set_flags(**{"_fp32_precision": None, f"_{name}": value})

    return property(read, write, doc=text)


class _Module(ModuleType):
    """The module with its flags as attributes."""

    enabled = _property("enabled", "Kept: the kernels here run either way.")
    deterministic = _property("deterministic", "Kept: the kernels here are deterministic either way.")
    allow_tf32 = _property("allow_tf32", "Kept; `matmul.fp32_precision` is what counts.")
    fp32_precision = _property("fp32_precision", 'The precision of what says "none" itself.')


sys.modules[__name__].__class__ = _Module
