"""The context `autocast`, and the decorators of custom Functions that go with it. Which operators cast, and how, their rows say (cysrc/ops)."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite._names import listing as _names
import tensorrt_lite.amp._state as _state

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_cuda = LazyModule("tensorrt_lite.cuda")

_LOWER = (trt.bfloat16, trt.float16)


def _lower(device_type: str) -> tuple[Any, ...]:
    """The lower precisions of another device than CUDA; a custom one's are its own."""
    return _LOWER if device_type == "cpu" else tuple(getattr(_names.root(), device_type).get_amp_supported_dtype())


def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for a device type: for "cpu", "cuda" and custom devices."""
    return _state.is_available(device_type)


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """`func`, which runs inside the context at every call."""

    @functools.wraps(func)
    def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return decorate_autocast


class autocast:
    """A context, or decorator, in which this thread's operators choose their precision: products and convolutions run in `dtype`, losses, norms and
    what needs float32's range in float32, the rest in the dtype of their arguments.

    device_type: "cpu", "cuda" or a custom one, which casts as CUDA does; tensors of other devices are untouched. dtype: bfloat16 or float16, on CUDA any; None: the thread's (`get_autocast_dtype`), at
    first bfloat16 on the CPU and float16 on CUDA. enabled: False turns it off inside. cache_enabled: whether the cast of a weight is kept until the
    outermost context ends; one that is written to meanwhile is cast again. Forms with out=, in-place forms and float64 are left as they are.

    Warns, and is off, for another dtype on the CPU or where there is no GPU. RuntimeError for another device type, and for bfloat16 on a
    GPU without it.

    >>> import tensorrt_lite as trt
    >>> x = trt.ones(2, 2)
    >>> with trt.autocast("cpu", dtype=trt.bfloat16):
    ...     product = x @ x
    >>> product.dtype, (x + x).dtype
    (torch.bfloat16, torch.float32)
    """

    def __init__(self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.device = device_type
        self.fast_dtype = _state.get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = _state.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and device_type == "cuda" and not _cuda.is_available():
            warnings.warn("CUDA is not available. Disabling autocast.", stacklevel=2)
            enabled = False
        elif enabled and device_type == "cuda" and self.fast_dtype is trt.bfloat16 and not _cuda.is_bf16_supported():
            raise RuntimeError("Current CUDA Device does not support bfloat16. Please switch dtype to float16.")
        elif enabled and device_type != "cuda" and self.fast_dtype not in _lower(device_type):
            name = device_type.upper()
            warnings.warn(
                f"In {name} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{name} Autocast only supports dtypes of {', '.join(map(str, _lower(device_type)))} currently.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = enabled
        self._before: list[tuple[bool, bool, Any]] = []

    def __enter__(self) -> autocast:
        state = (_state.is_autocast_cache_enabled(), _state.is_autocast_enabled(self.device), _state.get_autocast_dtype(self.device))
        _state.set_autocast_dtype(self.device, self.fast_dtype)
        _state.set_autocast_enabled(self.device, bool(self._enabled))
        _state.autocast_increment_nesting()
        _state.set_autocast_cache_enabled(self._cache_enabled)
        self._before.append(state)
        return self

    def __exit__(self, *exc: object) -> bool:
        cache_enabled, enabled, dtype = self._before.pop()
        if _state.autocast_decrement_nesting() == 0:
            _state.clear_autocast_cache()
        _state.set_autocast_enabled(self.device, enabled)
        _state.set_autocast_dtype(self.device, dtype)
        _state.set_autocast_cache_enabled(cache_enabled)
        return False

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(func):
            raise TypeError(
                f"autocast()(func) requires a callable, but got {type(func).__name__}. Did you mean to use autocast as a context manager?"
            )
        return autocast_decorator(self, func)


def autocasts() -> list[autocast]:
    """Contexts that bring back this thread's state as it is now, for what runs later or in another thread."""
    cache = _state.is_autocast_cache_enabled()
    made = []
    for device_type in _state.DEVICES:
        context = autocast(device_type, _state.get_autocast_dtype(device_type), False, cache)
        context._enabled = _state.is_autocast_enabled(device_type)
        made.append(context)
    return made


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """Floating-point tensors of the device type, but no float64, in another dtype; also in containers."""
    if isinstance(value, trt.Tensor):
        wanted = value.is_floating_point() and value.device.type == device_type and value.dtype is not trt.float64
        return value.to(dtype) if wanted else value
    if isinstance(value, (str, bytes)) or hasattr(value, "__array_interface__"):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, Iterable):
        cast = (_cast(v, device_type, dtype) for v in value)
        return type(value)(cast) if isinstance(value, (list, tuple)) else cast  # type: ignore[call-arg]
    return value


def _checked_type(device_type: object) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: Any = None) -> Callable[..., Any]:
    """Decorates the ``forward`` of a custom Function. With `cast_inputs`, a dtype, it runs with autocast off on tensors of this dtype where autocast is
    on outside; without, in the state that is outside. ``backward`` then gets the same state by `custom_bwd`."""
    _checked_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        on = _state.is_autocast_enabled(device_type)
        args[0]._dtype = _state.get_autocast_dtype(device_type)
        args[0]._fwd_used_autocast = on and cast_inputs is None
        if cast_inputs is None or not on:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Callable[..., Any]:
    """Decorates the ``backward`` of a custom Function: it runs in the state of autocast in which ``forward`` ran. See `custom_fwd`."""
    _checked_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd
