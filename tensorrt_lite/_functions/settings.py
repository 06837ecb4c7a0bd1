"""Process-wide settings and the build record: threads between operators, determinism, matmul precision. Imported on first use.

Every operator here is deterministic, so that setting only fills memory that nobody has written; the precision concerns products on CUDA.
"""

from __future__ import annotations

from typing import Any

from tensorrt_lite._C.core.parallel import get_num_threads as _get_num_threads
from tensorrt_lite._C.autograd import attributes as _attributes
from tensorrt_lite._C.ops import creation as _creation
from tensorrt_lite import _ops
from tensorrt_lite import _C
from tensorrt_lite._C.core.parallel import runtime as _runtime
from tensorrt_lite._C.core.isa import COMPILED as _COMPILED
from tensorrt_lite._C.core.isa import instruction_set as _instruction_set
from tensorrt_lite._C.ops.matmul.packed import bf16_kernel as _bf16_kernel
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_cuda = _LazyModule("tensorrt_lite.backends.cuda")
_mkldnn = _LazyModule("tensorrt_lite.backends.mkldnn")

_PRECISIONS = ("highest", "high", "medium")
_DEBUG_MODES = ("default", "warn", "error")

_interop_threads: int | None = None
_deterministic = False
_warn_only = False
_precision = "highest"
_fill_memory = True


def get_num_interop_threads() -> int:
    """Threads that run operators beside each other: as many as compute inside one, unless it was set.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.get_num_interop_threads() > 0
        True
    """
    return _get_num_threads() if _interop_threads is None else _interop_threads


def set_num_interop_threads(threads: int) -> None:
    """Set the number once. TypeError for what is no int, RuntimeError for numbers below 1 and for a second call.

    Parameters:
        threads (int): how many, at least 1

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_num_interop_threads(1)
    """
    global _interop_threads
    if isinstance(threads, bool) or not isinstance(threads, int):
        raise TypeError(f"set_num_interop_threads expects an int, but got {type(threads).__name__}")
    if threads < 1:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    if _interop_threads is not None:
        raise RuntimeError("Error: cannot set number of interop threads after parallel work has started or set_num_interop_threads called")
    _interop_threads = threads


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Ask for deterministic operators: all of them are. `empty` and its kin, and `resize_`, give NaN, the largest integers and true then.

    Parameters:
        mode (bool): whether operators must be deterministic
        warn_only (bool, default False): whether an operator that isn't warns, instead of raising an error

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.use_deterministic_algorithms(True)
        >>> trt.are_deterministic_algorithms_enabled()
        True
        >>> trt.use_deterministic_algorithms(False)
    """
    global _deterministic, _warn_only
    if not isinstance(mode, bool):
        raise TypeError(f"_set_deterministic_algorithms(): argument 'mode' (position 1) must be bool, not {type(mode).__name__}")
    _deterministic, _warn_only = mode, bool(warn_only)
    _set_filling()


def _set_filling() -> None:
    """Memory that nobody has written is filled in deterministic mode, unless `utils.deterministic` turns that off."""
    filling = _deterministic and _fill_memory
    _creation._fill_undefined(filling)
    _attributes._set_fill_added(_fill_added if filling else None)


def _fill_added(tensor: Any, before: int) -> None:
    """Fill what the storage of a tensor got beyond so many bytes."""
    item = tensor.element_size()
    first, end = -(-before // item), tensor.untyped_storage().nbytes() // item
    _creation.fill_undefined(_ops.empty(0, dtype=tensor.dtype, device=tensor.device).set_(tensor.untyped_storage(), first, (end - first,), (1,)))


def are_deterministic_algorithms_enabled() -> bool:
    """What ``use_deterministic_algorithms`` set.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.are_deterministic_algorithms_enabled()
        False
    """
    return _deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether ``use_deterministic_algorithms`` asked for warnings only.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.is_deterministic_algorithms_warn_only_enabled()
        False
    """
    return _warn_only


def get_deterministic_debug_mode() -> int:
    """0 default, 1 warn, 2 error.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.get_deterministic_debug_mode()
        0
    """
    return (1 if _warn_only else 2) if _deterministic else 0


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """``use_deterministic_algorithms`` by number or name: default, warn, error. RuntimeError for others.

    Parameters:
        debug_mode (int or str): 0 or "default", 1 or "warn", 2 or "error"

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_deterministic_debug_mode("default")
        >>> trt.get_deterministic_debug_mode()
        0
    """
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}")
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_float32_matmul_precision() -> str:
    """What ``set_float32_matmul_precision`` set.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.get_float32_matmul_precision()
        'highest'
    """
    return _precision


def set_float32_matmul_precision(precision: str) -> None:
    """What products of float32 matrices may leave out for speed. highest: nothing. high: where the processor has AMX, larger ones take a number as the sum of two bfloat16
    (16 bits), on CUDA as tf32 (`backends.cuda.matmul.fp32_precision`); medium: with AMX as one bfloat16 (8 bits), on CUDA as tf32. Sums are float32 always.

    Parameters:
        precision (str): "highest", "high" or "medium"

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_float32_matmul_precision("high")
        >>> trt.get_float32_matmul_precision()
        'high'
        >>> trt.set_float32_matmul_precision("highest")
    """
    global _precision
    if not isinstance(precision, str):
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {type(precision).__name__}")
    if precision not in _PRECISIONS:
        import warnings

        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current setFloat32MatmulPrecision call has no effect.", stacklevel=2
        )
        return
    _mkldnn.matmul.fp32_precision = {"highest": "ieee", "high": "tf32", "medium": "bf16"}[precision]
    _cuda.matmul.fp32_precision = "ieee" if precision == "highest" else "tf32"
    _precision = precision


def _build_info() -> dict[str, Any]:
    """What was compiled and what runs: the facts that `tensorrt_lite.info` prints."""
    record: dict[str, Any] = {
        "compiler": _C.COMPILER,
        "debug": _C.DEBUG,
        "sources": _C.SOURCES,
        "instruction_set": _instruction_set(),
        "instruction_sets": list(_COMPILED),
        "bfloat16_products": _bf16_kernel(),
        "openmp_threads": _get_num_threads(),
        "openmp_runtime": _runtime(),
        "cuda": {"available": False, "driver": None, "devices": []},
    }
    try:
        from tensorrt_lite._C.core.blas import library

        path, configuration = library()
    except ImportError:
        return record
    words = configuration.split()
    record["blas"] = {"library": path, "config": configuration, "threads": _get_num_threads()}
    if len(words) > 2:
        record["blas"]["core"] = words[-2]
    return record
