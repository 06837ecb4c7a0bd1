"""Switches of the autograd mode of the current thread: no_grad, enable_grad, set_grad_enabled, inference_mode, set_multithreading_enabled.

Each is a context manager and a decorator for functions, generator functions and (``no_grad``, ``enable_grad``) plain
``@no_grad`` without parentheses. Entering and leaving is one call into the dispatcher's thread state.
"""

from __future__ import annotations

import warnings
from functools import wraps
from types import CodeType

from tensorrt_lite._C.autograd.thread_snapshot import is_multithreading_enabled
from tensorrt_lite._C.autograd.thread_snapshot import set_multithreading_enabled as _set_multithreading_enabled
from tensorrt_lite._C.core.dispatch import (
    _set_grad_enabled,
    _set_inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
)

__all__ = ["no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "set_multithreading_enabled", "enforce_grad_layout_policy"]

_GENERATOR_FLAG = 0x20


def _is_generator_function(function) -> bool:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return isinstance(code, CodeType) and bool(code.co_flags & _GENERATOR_FLAG)


def _decorate(make_context, function):
    """Run every call of ``function`` inside a fresh context; a generator only while its own code runs."""
    if isinstance(function, type):
        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or methods. To preserve the "
            "current behavior of class decoration, you can directly decorate the `__init__` method and nothing else.",
            FutureWarning,
            stacklevel=3,
        )

        def make_instance(*args, **kwargs):
            with make_context():
                return function(*args, **kwargs)

        return make_instance
    if not _is_generator_function(function):

        @wraps(function)
        def call(*args, **kwargs):
            with make_context():
                return function(*args, **kwargs)

        return call

    @wraps(function)
    def generate(*args, **kwargs):
        generator = function(*args, **kwargs)
        try:
            with make_context():
                value = generator.send(None)
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    with make_context():
                        generator.close()
                    raise
                except BaseException as error:
                    with make_context():
                        value = generator.throw(error)
                else:
                    with make_context():
                        value = generator.send(sent)
        except StopIteration as stop:
            return stop.value

    return generate


class no_grad:
    """Record no Nodes inside: results have requires_grad=False."""

    __slots__ = ("_before",)

    def __new__(cls, function=None):
        if function is None:
            return object.__new__(cls)
        return _decorate(cls, function)

    def __enter__(self) -> None:
        self._before = is_grad_enabled()
        _set_grad_enabled(False)

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        _set_grad_enabled(self._before)

    def __call__(self, function):
        return _decorate(type(self), function)

    def clone(self):
        """A fresh context of the same kind."""
        return type(self)()


class enable_grad(no_grad):
    """Record Nodes inside, also within ``no_grad``."""

    __slots__ = ()

    def __enter__(self) -> None:
        self._before = is_grad_enabled()
        _set_grad_enabled(True)


class set_grad_enabled:
    """Switch recording on or off, at once and until the end of the ``with`` block, or for a decorated function. mode: bool."""

    __slots__ = ("_before", "mode")

    def __init__(self, mode: bool) -> None:
        self._before = is_grad_enabled()
        self.mode = mode
        _set_grad_enabled(mode)

    def __call__(self, function):
        _set_grad_enabled(self._before)
        return _decorate(self.clone, function)

    def __enter__(self) -> None:
        _set_grad_enabled(self.mode)

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        _set_grad_enabled(self._before)

    def __str__(self) -> str:
        return f"{type(self).__name__}(mode={self.mode})"

    __repr__ = __str__

    def clone(self):
        """A fresh context of the same mode (which switches at once, as the constructor does)."""
        return type(self)(self.mode)


class inference_mode:
    """Record no Nodes, and mark new tensors as inference tensors, which autograd never sees again. mode: bool."""

    __slots__ = ("_before", "mode")

    def __new__(cls, mode=True):
        if mode is True or mode is False or not callable(mode):
            return object.__new__(cls)
        return _decorate(cls, mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = bool(mode)

    def __enter__(self) -> None:
        self._before = (is_inference_mode_enabled(), is_grad_enabled())
        _set_inference_mode(self.mode)
        _set_grad_enabled(not self.mode)

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        _set_inference_mode(self._before[0])
        _set_grad_enabled(self._before[1])

    def __call__(self, function):
        return _decorate(self.clone, function)

    def clone(self):
        """A fresh context of the same mode."""
        return type(self)(self.mode)


class set_multithreading_enabled:
    """Whether backward passes that this thread begins run Nodes on other devices than the CPU in those devices' threads, which they do by default.

    At once and until the end of the ``with`` block, or for a decorated function. mode: bool; with False every Node and hook runs in the calling thread.
    """

    __slots__ = ("_before", "mode")

    def __init__(self, mode: bool) -> None:
        self._before = is_multithreading_enabled()
        self.mode = mode
        _set_multithreading_enabled(mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        _set_multithreading_enabled(self._before)

    def __call__(self, function):
        _set_multithreading_enabled(self._before)
        return _decorate(self.clone, function)

    def clone(self):
        """A fresh context of the same mode (which switches at once, as the constructor does)."""
        return type(self)(self.mode)


class enforce_grad_layout_policy:
    """PyTorch's switch of the strides that accumulated gradients get. Accepted without effect: here a gradient keeps the strides that it was computed with.

    A context manager and a decorator. enable: bool.
    """

    __slots__ = ("enable",)

    def __init__(self, enable: bool = True) -> None:
        if not isinstance(enable, bool):
            raise TypeError(f"enforce_grad_layout_policy(): argument 'enable' must be bool, not {type(enable).__name__}")
        self.enable = enable

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        pass

    def __call__(self, function):
        return _decorate(lambda: type(self)(self.enable), function)
