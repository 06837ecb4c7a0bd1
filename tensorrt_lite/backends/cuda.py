"""How products and attention are computed on CUDA: the flags of PyTorch's `torch.backends.cuda`, each with what it selects here."""

from __future__ import annotations

import enum
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tensorrt_lite._C.ops.attention import _enable_kernels
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_settings = _LazyModule("tensorrt_lite._functions.settings")

if TYPE_CHECKING:
    from collections.abc import Iterator

_PRECISIONS = ("none", "ieee", "tf32")


def is_built() -> bool:
    """True: the backend is part of every build, its kernels are compiled at first use. `cuda.is_available()` tells whether there is a device."""
    return True


def _flag(name: str, text: str) -> property:
    def read(self: Any) -> bool:
        return bool(self._values[name])

    def write(self: Any, value: Any) -> None:
        if isinstance(value, (tuple, list)) and len(value) == 2:
            value = value[0]  # the second, whether k may be split, is always yes
        if not isinstance(value, bool):
            raise RuntimeError(f"{name} expects a bool, but got {type(value).__name__}")
        self._values[name] = value
        _apply()

    return property(read, write, doc=text)


class _Matmul:
    """Precision of matrix products. Products of float32 are float32 unless tf32 is allowed; sums of half types are kept in float32 throughout by the kernels
    here, so that the other flags concern cuBLASLt alone."""

    def __init__(self) -> None:
        object.__setattr__(self, "_values", {
            "allow_fp16_reduced_precision_reduction": True, "allow_bf16_reduced_precision_reduction": True, "allow_fp16_accumulation": False, "fp32_precision": "none",
        })  # fmt: skip

    allow_fp16_reduced_precision_reduction = _flag(
        "allow_fp16_reduced_precision_reduction", "Whether cuBLASLt may add slices of a deep float16 product in float16; kernels here add them in float32."
    )
    allow_bf16_reduced_precision_reduction = _flag("allow_bf16_reduced_precision_reduction", "The same for bfloat16.")
    allow_fp16_accumulation = _flag("allow_fp16_accumulation", "Whether cuBLASLt keeps the sums of float16 products in float16; kernels here do not.")

    @property
    def allow_tf32(self) -> bool:
        """Whether float32 products may run on tensor cores with factors rounded to 10 bits of fraction (compute capability 8.0 and newer), by the kernels
        here or cuBLASLt's; sums stay float32. False at first."""
        return self.fp32_precision == "tf32"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"set_allow_tf32_cublas expects a bool, but got {type(value).__name__}")
        self.fp32_precision = "tf32" if value else "ieee"

    @property
    def fp32_precision(self) -> str:
        """"ieee", "tf32", or "none" for what `backends.fp32_precision` says. `set_float32_matmul_precision` sets it too: "highest" means ieee."""
        own: str = self._values["fp32_precision"]
        return sys.modules["tensorrt_lite.backends"].fp32_precision if own == "none" else own

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        _check_precision(value)
        self._values["fp32_precision"] = value

        if (self.fp32_precision == "tf32") != (_settings._precision != "highest"):
            _settings._precision = "high" if self.fp32_precision == "tf32" else "highest"
            if _settings._precision == "highest":
                sys.modules["tensorrt_lite.backends.mkldnn"].matmul.fp32_precision = "ieee"
        _apply()

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(getattr(type(self), name, None), property):
            raise AttributeError(f"Unknown attribute {name}")
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Unknown attribute {name}")


def _check_precision(value: str) -> None:
    if value not in _PRECISIONS:
        raise RuntimeError(f"Unknown precision: {value}")


matmul = _Matmul()


# ---- libraries


class _BlasBackend(enum.Enum):
    Default = "default"
    Cublas = "cublas"
    Cublaslt = "cublaslt"
    Own = "own"


class _LinalgBackend(enum.Enum):
    Default = "default"


_blas = _BlasBackend.Default
_workspace: int | None = None


def preferred_blas_library(backend: str | _BlasBackend | None = None) -> _BlasBackend:
    """Who multiplies matrices on CUDA; returns the choice, after setting it where `backend` is given.

    "default": cuBLASLt where its library is found (NVIDIA's wheel nvidia-cublas, CUDA's folders, the path in TENSORRT_LITE_CUBLASLT), the kernels of
    cuda_src/gemm.cuh otherwise and for what it does not take: integers, matrices without a dense dimension. "cublaslt" or "cublas": the same, with a
    RuntimeError where there is no library. "own": the kernels of cuda_src/gemm.cuh always. RuntimeError for other names.
    """
    global _blas
    if backend is None:
        return _blas
    if isinstance(backend, str):
        names = {b.value: b for b in _BlasBackend}
        if backend not in names:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(names)}.")
        backend = names[backend]
    if not isinstance(backend, _BlasBackend):
        raise RuntimeError("Unknown input value type.")
    if backend in (_BlasBackend.Cublas, _BlasBackend.Cublaslt):
        from tensorrt_lite.cuda._libraries import cublaslt

        if cublaslt() is None:
            raise RuntimeError("Cannot set preferred backend to cuBLASLt: libcublasLt was not found (pip install nvidia-cublas, or TENSORRT_LITE_CUBLASLT=path)")
    _blas = backend
    _apply()
    return _blas


def preferred_linalg_library(backend: str | None = None) -> _LinalgBackend:
    """Always "default": there is no cuSOLVER or MAGMA to choose. RuntimeError for their names."""
    if backend not in (None, "default", _LinalgBackend.Default):
        raise RuntimeError(f"Cannot set preferred linalg library to {backend!r}: linear algebra on CUDA uses no library")
    return _LinalgBackend.Default


def cublaslt_workspace_size(size: int | None = None) -> int:
    """The most bytes of scratch memory that a product by cuBLASLt may take from the caching allocator; sets it first where `size` is given.

    At first CUBLASLT_WORKSPACE_SIZE (in KiB), or 32 MiB, which is what devices of compute capability 9.0 want.
    """
    global _workspace
    if size is not None:
        if size < 0:
            raise RuntimeError(f"cublaslt_workspace_size: expected a size of 0 or more bytes, got {size}")
        _workspace = size
        _apply()
    if _workspace is None:
        try:
            _workspace = int(os.environ.get("CUBLASLT_WORKSPACE_SIZE", "32768")) * 1024
        except ValueError:
            raise RuntimeError(f"CUBLASLT_WORKSPACE_SIZE: expected a number of KiB, got {os.environ['CUBLASLT_WORKSPACE_SIZE']!r}") from None
    return _workspace


def _apply() -> None:
    """Tell the loaded kernels; cuda/_kernels.py calls it once they are."""
    product = sys.modules.get("tensorrt_lite._C.cuda.matmul")
    if product is None:
        return
    product._set_options(
        matmul.allow_tf32, matmul.allow_fp16_reduced_precision_reduction, matmul.allow_bf16_reduced_precision_reduction, matmul.allow_fp16_accumulation,
        _blas is not _BlasBackend.Own, cublaslt_workspace_size(),
    )  # fmt: skip


# ---- attention

_attention = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}


def _set_attention(name: str, enabled: bool) -> None:
    _attention[name] = bool(enabled)
    _enable_kernels(_attention["flash"] or _attention["mem_efficient"] or _attention["cudnn"], _attention["math"])


def enable_flash_sdp(enabled: bool) -> None:
    """Allow the tiled kernel of scaled_dot_product_attention, whose memory is linear in the length, under its first name: there is one such kernel (on the
    CPU and on CUDA), used while any of the flags `flash`, `mem_efficient` and `cudnn` is set."""
    _set_attention("flash", enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """The tiled kernel under its second name; see enable_flash_sdp."""
    _set_attention("mem_efficient", enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """The tiled kernel under its third name: cuDNN is not used; see enable_flash_sdp."""
    _set_attention("cudnn", enabled)


def enable_math_sdp(enabled: bool) -> None:
    """Allow attention composed of products and softmax, which holds the weights: for what the tiled kernel does not take, or where that is disabled.
    With both disabled scaled_dot_product_attention raises RuntimeError."""
    _set_attention("math", enabled)


def flash_sdp_enabled() -> bool:
    """What `enable_flash_sdp` set."""
    return _attention["flash"]


def mem_efficient_sdp_enabled() -> bool:
    """What `enable_mem_efficient_sdp` set."""
    return _attention["mem_efficient"]


def cudnn_sdp_enabled() -> bool:
    """What `enable_cudnn_sdp` set."""
    return _attention["cudnn"]


def math_sdp_enabled() -> bool:
    """What `enable_math_sdp` set."""
    return _attention["math"]


def is_flash_attention_available() -> bool:
    """True: the tiled kernel is part of the library."""
    return True


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Accepted for programs that set it, and without effect: composed attention computes half types in float32."""


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """False; see allow_fp16_bf16_reduction_math_sdp."""
    return False


@contextmanager
def sdp_kernel(enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True) -> Iterator[None]:
    """Sets the four attention flags inside a ``with`` block; `nn.attention.sdpa_kernel` is the newer name."""
    before = dict(_attention)
    for name, value in (("flash", enable_flash), ("math", enable_math), ("mem_efficient", enable_mem_efficient), ("cudnn", enable_cudnn)):
        _set_attention(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            _set_attention(name, value)
