"""The thread's autocast state by functions, as PyTorch has them at the package's top level."""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING

from tensorrt_lite._C.autograd import autocast as _autocast
from tensorrt_lite._C.autograd.autocast import autocast_decrement_nesting, autocast_increment_nesting, clear_autocast_cache
from tensorrt_lite._C.core.dtype import _dtype_by_name
from tensorrt_lite._C.core.dtype import dtype as _dtype

if TYPE_CHECKING:
    from tensorrt_lite import dtype

__all__ = [
    "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache", "get_autocast_cpu_dtype", "get_autocast_dtype",
    "get_autocast_gpu_dtype", "is_autocast_cache_enabled", "is_autocast_cpu_enabled", "is_autocast_enabled", "set_autocast_cache_enabled",
    "set_autocast_cpu_dtype", "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype",
    "get_autocast_ipu_dtype", "get_autocast_xla_dtype", "is_autocast_ipu_enabled", "is_autocast_xla_enabled",
    "set_autocast_ipu_dtype", "set_autocast_ipu_enabled", "set_autocast_xla_dtype", "set_autocast_xla_enabled",
]  # fmt: skip

DEVICES = {"cpu": 0, "cuda": 1}  # and custom devices, from their registration on


# Kinds of devices that PyTorch casts for and that are not here, with the dtype it names.
_ELSEWHERE = {"mps": "float16", "xpu": "float16", "mtia": "float16", "ipu": "float16", "hpu": "bfloat16", "xla": "bfloat16", "maia": "bfloat16"}


class _Settings(threading.local):
    """What a thread has set for kinds of devices that are not here: it can be asked for, and casts nothing."""

    def __init__(self) -> None:
        self.enabled: set[str] = set()
        self.dtypes: dict[str, dtype] = {}


_elsewhere = _Settings()


def is_available(device_type: str) -> bool:
    return device_type in DEVICES


def _index(function: str, device_type: object) -> int:
    if not isinstance(device_type, str):
        raise TypeError(f"{function}(): argument 'device_type' (position 1) must be str, not {type(device_type).__name__}")
    if device_type not in DEVICES:
        raise RuntimeError(f"unknown device type for autocast: {device_type!r} is none of {', '.join(DEVICES)}")
    return DEVICES[device_type]


def _deprecated(old: str, new: str) -> None:
    warnings.warn(f"{old} is deprecated. Please use {new} instead.", DeprecationWarning, stacklevel=3)


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether autocast is on in this thread for a device type; without one for CUDA.

    Parameters:
        device_type (str or None, default None): "cpu" or "cuda"; None is "cuda"

    Example:
        >>> import tensorrt_lite as trt
        >>> with trt.autocast("cpu"):
        ...     print(trt.is_autocast_enabled("cpu"))
        True
    """
    if device_type in _ELSEWHERE:
        return device_type in _elsewhere.enabled
    return bool(_autocast.is_enabled(1 if device_type is None else _index("is_autocast_enabled", device_type)))


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Turn autocast on or off in this thread; ``set_autocast_enabled(enabled)`` means CUDA.

    Parameters:
        device_type (str or bool): "cpu" or "cuda"; a bool alone is `enabled`, for CUDA
        enabled (bool or None, default None): whether it is on

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_autocast_enabled("cpu", True)
        >>> trt.is_autocast_enabled("cpu")
        True
        >>> trt.set_autocast_enabled("cpu", False)
    """
    if enabled is None:
        device_type, enabled = "cuda", device_type  # type: ignore[assignment]
    if not isinstance(enabled, bool):
        raise TypeError(f"set_autocast_enabled(): argument 'enabled' must be bool, not {type(enabled).__name__}")
    if device_type in _ELSEWHERE:
        (_elsewhere.enabled.add if enabled else _elsewhere.enabled.discard)(device_type)
        return
    _autocast.set_enabled(_index("set_autocast_enabled", device_type), enabled)


def get_autocast_dtype(device_type: str) -> dtype:
    """The lower precision of a device type: bfloat16 on the CPU, float16 elsewhere, unless this thread has set another.

    Parameters:
        device_type (str): "cpu" or "cuda"

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.get_autocast_dtype("cpu")
        torch.bfloat16
    """
    if device_type in _ELSEWHERE:
        return _elsewhere.dtypes.get(device_type) or _dtype_by_name(_ELSEWHERE[device_type])
    return _autocast.get_dtype(_index("get_autocast_dtype", device_type))  # type: ignore[no-any-return]


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the lower precision of a device type in this thread.

    Parameters:
        device_type (str): "cpu" or "cuda"
        dtype (dtype): float16 or bfloat16

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_autocast_dtype("cpu", trt.bfloat16)
        >>> trt.get_autocast_dtype("cpu")
        torch.bfloat16
    """
    if not isinstance(dtype, _dtype):
        raise TypeError(f"set_autocast_dtype(): argument 'dtype' (position 2) must be tensorrt_lite.dtype, not {type(dtype).__name__}")
    if device_type in _ELSEWHERE:
        _elsewhere.dtypes[device_type] = dtype
        return
    _autocast.set_dtype(_index("set_autocast_dtype", device_type), dtype)


def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights are kept until the outermost context ends.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.is_autocast_cache_enabled()
        True
    """
    return bool(_autocast.is_cache_enabled())


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Whether casts of weights are kept until the outermost context ends.

    Parameters:
        enabled (bool): whether they are kept

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_autocast_cache_enabled(True)
        >>> trt.is_autocast_cache_enabled()
        True
    """
    _autocast.set_cache_enabled(enabled)


def is_autocast_cpu_enabled() -> bool:
    """Deprecated: ``is_autocast_enabled('cpu')``.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.is_autocast_cpu_enabled()
        False
    """
    _deprecated("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Deprecated: ``set_autocast_enabled('cpu', enabled)``.

    Parameters:
        enabled (bool): whether it is on

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_autocast_cpu_enabled(False)
        >>> trt.is_autocast_cpu_enabled()
        False
    """
    _deprecated("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype() -> dtype:
    """Deprecated: ``get_autocast_dtype('cpu')``.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.get_autocast_cpu_dtype()
        torch.bfloat16
    """
    _deprecated("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype: dtype) -> None:
    """Deprecated: ``set_autocast_dtype('cpu', dtype)``.

    Parameters:
        dtype (dtype): float16 or bfloat16

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_autocast_cpu_dtype(trt.bfloat16)
        >>> trt.get_autocast_cpu_dtype()
        torch.bfloat16
    """
    _deprecated("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype() -> dtype:
    """Deprecated: ``get_autocast_dtype('cuda')``.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.get_autocast_gpu_dtype()
        torch.float16
    """
    _deprecated("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype: dtype) -> None:
    """Deprecated: ``set_autocast_dtype('cuda', dtype)``.

    Parameters:
        dtype (dtype): float16 or bfloat16

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_autocast_gpu_dtype(trt.float16)
        >>> trt.get_autocast_gpu_dtype()
        torch.float16
    """
    _deprecated("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)


def is_autocast_ipu_enabled() -> bool:
    """Deprecated: ``is_autocast_enabled('ipu')``.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.is_autocast_ipu_enabled()
        False
    """
    _deprecated("is_autocast_ipu_enabled()", "is_autocast_enabled('ipu')")
    return is_autocast_enabled("ipu")


def set_autocast_ipu_enabled(enabled: bool) -> None:
    """Deprecated: ``set_autocast_enabled('ipu', enabled)``.

    Parameters:
        enabled (bool): whether it is on

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_autocast_ipu_enabled(False)
        >>> trt.is_autocast_ipu_enabled()
        False
    """
    _deprecated("set_autocast_ipu_enabled(enabled)", "set_autocast_enabled('ipu', enabled)")
    set_autocast_enabled("ipu", enabled)


def get_autocast_ipu_dtype() -> dtype:
    """Deprecated: ``get_autocast_dtype('ipu')``.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.get_autocast_ipu_dtype()
        torch.float16
    """
    _deprecated("get_autocast_ipu_dtype()", "get_autocast_dtype('ipu')")
    return get_autocast_dtype("ipu")


def set_autocast_ipu_dtype(dtype: dtype) -> None:
    """Deprecated: ``set_autocast_dtype('ipu', dtype)``.

    Parameters:
        dtype (dtype): float16 or bfloat16

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_autocast_ipu_dtype(trt.float16)
        >>> trt.get_autocast_ipu_dtype()
        torch.float16
    """
    _deprecated("set_autocast_ipu_dtype(dtype)", "set_autocast_dtype('ipu', dtype)")
    set_autocast_dtype("ipu", dtype)


def is_autocast_xla_enabled() -> bool:
    """Deprecated: ``is_autocast_enabled('xla')``.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.is_autocast_xla_enabled()
        False
    """
    _deprecated("is_autocast_xla_enabled()", "is_autocast_enabled('xla')")
    return is_autocast_enabled("xla")


def set_autocast_xla_enabled(enabled: bool) -> None:
    """Deprecated: ``set_autocast_enabled('xla', enabled)``.

    Parameters:
        enabled (bool): whether it is on

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_autocast_xla_enabled(False)
        >>> trt.is_autocast_xla_enabled()
        False
    """
    _deprecated("set_autocast_xla_enabled(enabled)", "set_autocast_enabled('xla', enabled)")
    set_autocast_enabled("xla", enabled)


def get_autocast_xla_dtype() -> dtype:
    """Deprecated: ``get_autocast_dtype('xla')``.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.get_autocast_xla_dtype()
        torch.bfloat16
    """
    _deprecated("get_autocast_xla_dtype()", "get_autocast_dtype('xla')")
    return get_autocast_dtype("xla")


def set_autocast_xla_dtype(dtype: dtype) -> None:
    """Deprecated: ``set_autocast_dtype('xla', dtype)``.

    Parameters:
        dtype (dtype): float16 or bfloat16

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_autocast_xla_dtype(trt.bfloat16)
        >>> trt.get_autocast_xla_dtype()
        torch.bfloat16
    """
    _deprecated("set_autocast_xla_dtype(dtype)", "set_autocast_dtype('xla', dtype)")
    set_autocast_dtype("xla", dtype)
