"""The flags of PyTorch's `torch.backends.cudnn`. cuDNN is not used: convolution, normalisation and recurrent layers on CUDA have kernels of their own
(cuda_src), which are deterministic and compute float32 in float32. The flags can be set, because programs set them, and say here what they select."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tensorrt_lite.backends.cuda import _check_precision

if TYPE_CHECKING:
    from collections.abc import Iterator

# name: (first value, type)
_FLAGS: dict[str, tuple[Any, type]] = {
    "enabled": (True, bool), "benchmark": (False, bool), "benchmark_limit": (10, int), "deterministic": (False, bool), "allow_tf32": (True, bool),
    "fp32_precision": ("none", str),
}  # fmt: skip
_values = {name: first for name, (first, _) in _FLAGS.items()}


def is_available() -> bool:
    """False: cuDNN is not used."""
    return False


def version() -> None:
    """None: there is no cuDNN whose version could be told."""
    return None


def is_acceptable(tensor: Any) -> bool:
    """False: no tensor goes to cuDNN."""
    return False


@contextmanager
def flags(
    enabled: bool = False, benchmark: bool = False, benchmark_limit: int = 10, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none"
) -> Iterator[None]:
    """Sets the flags inside a ``with`` block."""
    module, before = sys.modules[__name__], dict(_values)
    given = (enabled, benchmark, benchmark_limit, deterministic, allow_tf32, fp32_precision)
    try:
        for name, value in zip(_FLAGS, given):
            setattr(module, name, value)
        yield
    finally:
        _values.update(before)


def _property(name: str, text: str) -> property:
    kind = _FLAGS[name][1]

    def read(self: Any) -> Any:
        return _values[name]

    def write(self: Any, value: Any) -> None:
        if type(value) is not kind:
            raise RuntimeError(f"set_{name}_cudnn expects {'an int' if kind is int else f'a {kind.__name__}'}, but got {type(value).__name__}")
        if kind is str:
            _check_precision(value)
        _values[name] = value

    return property(read, write, doc=text)


class _Layer:
    """`cudnn.conv` and `cudnn.rnn`: their fp32_precision, kept for programs that set it; the layers compute float32 in float32 ("ieee")."""

    def __init__(self) -> None:
        self.fp32_precision = "ieee"


class _Module(ModuleType):
    """The module with its flags as checked attributes."""

    enabled = _property("enabled", "Kept: the kernels here run either way.")
    benchmark = _property("benchmark", "Kept: kernels are chosen by their shapes, not by timing them.")
    benchmark_limit = _property("benchmark_limit", "Kept, like `benchmark`.")
    deterministic = _property("deterministic", "Kept: the kernels here are deterministic either way.")
    allow_tf32 = _property("allow_tf32", "Kept: convolutions of float32 are float32 either way.")
    fp32_precision = _property("fp32_precision", "Kept, like `allow_tf32`.")


conv, rnn = _Layer(), _Layer()
sys.modules[__name__].__class__ = _Module
