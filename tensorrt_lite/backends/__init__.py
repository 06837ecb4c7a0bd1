"""Switches and facts of backends under PyTorch's names. Each flag tells the truth about this library."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


def _module(name: str, **contents: Any) -> ModuleType:
    """A namespace that `import tensorrt_lite.backends.name` finds too."""
    module = ModuleType(f"{__name__}.{name}")
    module.__dict__.update(contents)
    sys.modules[module.__name__] = module
    return module


def _false() -> bool:
    """False: the library is built without it."""
    return False


def _true() -> bool:
    """True."""
    return True


def _cpu_capability() -> str:
    """The instruction set of the loops in use: DEFAULT, AVX2 or AVX512."""
    return _instruction_set().upper().replace("BASE", "DEFAULT")


cpu = _module("cpu", get_cpu_capability=_cpu_capability)
mkl = _module("mkl", is_available=_false)
mps = _module("mps", is_available=_false, is_built=_false)
openmp = _module("openmp", is_available=_true)
nnpack = _module("nnpack", is_available=_false)
xnnpack = _module("xnnpack", enabled=False)
quantized = _module("quantized", engine="none", supported_engines=["none"])
# einsum looks for the cheapest order of its products by itself; `enabled = False` multiplies from left to right.
opt_einsum = _module("opt_einsum", is_available=_true, enabled=True, strategy="auto")


class _Backends(ModuleType):
    """The package with the precision that its parts take where theirs says "none"."""

    @property
    def fp32_precision(self) -> str:
        """"none" (full precision), "ieee" or "tf32": `cuda.matmul.fp32_precision` where that is "none"."""
        return _fp32_precision

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        global _fp32_precision
        cuda._check_precision(value)
        _fp32_precision = value
        cuda._apply()


_fp32_precision = "none"
sys.modules[__name__].__class__ = _Backends

from tensorrt_lite.backends import cuda, cudnn, mha, mkldnn  # noqa: E402
from tensorrt_lite._C.core.isa import instruction_set as _instruction_set
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")


def __getattr__(name: str) -> object:
    raise _missing.error("backends", name)


def __dir__() -> list[str]:
    return _listing.public(globals())
