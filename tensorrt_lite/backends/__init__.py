"""Switches and facts of backends under PyTorch's names. Each flag tells the truth about this library.

`cuda.matmul.allow_tf32`, the `cudnn` flags and their like can be set, because programs set them; nothing here reads them.
"""

from __future__ import annotations

from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

_LEVELS = ("DEFAULT", "AVX2", "AVX512")


def _module(name: str, **contents: Any) -> ModuleType:
    """A namespace that `import tensorrt_lite.backends.name` finds too."""
    import sys

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
    from tensorrt_lite._C.ops.support import instruction_set

    return _LEVELS[instruction_set()]


def _none() -> None:
    """None: the library is built without it."""


class _Flags:
    """Settable values; `context` sets some of them for a `with` block."""

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    @contextmanager
    def context(self, **values: Any) -> Iterator[None]:
        before = {name: getattr(self, name) for name in values}
        self.__dict__.update(values)
        try:
            yield
        finally:
            self.__dict__.update(before)


cpu = _module("cpu", get_cpu_capability=_cpu_capability)
mkldnn = _module("mkldnn", is_available=_false, enabled=False, deterministic=False, allow_tf32=False)
mkl = _module("mkl", is_available=_false)
mps = _module("mps", is_available=_false, is_built=_false)
openmp = _module("openmp", is_available=_true)
nnpack = _module("nnpack", is_available=_false)
xnnpack = _module("xnnpack", enabled=False)
quantized = _module("quantized", engine="none", supported_engines=["none"])
# einsum looks for the cheapest order of its products by itself; `enabled = False` multiplies from left to right.
opt_einsum = _module("opt_einsum", is_available=_true, enabled=True, strategy="auto")
cuda = _module(
    "cuda",
    is_built=_false,
    matmul=_Flags(
        allow_tf32=False, allow_fp16_reduced_precision_reduction=True, allow_bf16_reduced_precision_reduction=True, allow_fp16_accumulation=False,
        fp32_precision="none",
    ),
    flash_sdp_enabled=_false, mem_efficient_sdp_enabled=_false, cudnn_sdp_enabled=_false, math_sdp_enabled=_true, is_flash_attention_available=_false,
)  # fmt: skip
cudnn = _module("cudnn", is_available=_false, version=_none, enabled=True, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True, fp32_precision="none")


@contextmanager
def _cudnn_flags(enabled: bool = False, benchmark: bool = False, benchmark_limit: int = 10, deterministic: bool = False, allow_tf32: bool = True, fp32_precision: str = "none") -> Iterator[None]:
    """Sets cudnn's flags inside a `with` block."""
    values = {
        "enabled": enabled, "benchmark": benchmark, "benchmark_limit": benchmark_limit, "deterministic": deterministic, "allow_tf32": allow_tf32,
        "fp32_precision": fp32_precision,
    }  # fmt: skip
    before = {name: getattr(cudnn, name) for name in values}
    cudnn.__dict__.update(values)
    try:
        yield
    finally:
        cudnn.__dict__.update(before)


cudnn.flags = _cudnn_flags
