"""torch.overrides: `__torch_function__` for classes and modes.

Every public function, method and property that takes or makes tensors hands its call to the innermost `TorchFunctionMode` of
the thread, then to the classes of its arguments, before it runs. `func` is the public object (`trt.add`, `Tensor.add`,
`F.relu`, `Tensor.grad.__get__`); arguments are those of the call, of PyTorch's functions written in Python with defaults filled in.

>>> import tensorrt_lite as trt
>>> class Log(TorchFunctionMode):
...     def __torch_function__(self, func, types, args=(), kwargs=None):
...         print(resolve_name(func))
...         return func(*args, **(kwargs or {}))
>>> with Log():
...     total = trt.ones(2) + 1
tensorrt_lite.ones
tensorrt_lite.Tensor.add
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import Any, TypeVar

import tensorrt_lite as trt
from tensorrt_lite._C.core import overrides as _core
from tensorrt_lite._C.core.overrides import PublicFunction, PublicProperty
from tensorrt_lite._names.listing import public_name
from tensorrt_lite._C.core import dispatch as _dispatch


__all__ = [
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "resolve_name",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "wrap_torch_function",
    "enable_reentrant_dispatch",
    "redispatch_function",
    "TorchFunctionMode",
    "BaseTorchFunctionMode",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])


# ---- modes ---------------------------------------------------------------------------------------------------------


class TorchFunctionMode:
    """Inside `with mode:` every public function of this thread calls `mode.__torch_function__(func, types, args, kwargs)` instead.

    While it runs, the mode is off the stack: calls inside go to the mode around it; `with self:` puts it back for them.
    """

    inner: TorchFunctionMode

    def __init__(self) -> None:
        pass

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Any:
        _core.push_mode(self)
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        _core.pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Any:
        """An instance; deprecated, `with Mode():` does it."""
        warnings.warn("`Mode.push()` is no longer necessary and can be replaced with just `with Mode()`", stacklevel=2)
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that calls every function as it was called."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_function_mode() -> Any:
    """The innermost mode of this thread, None without."""
    stack = _core.modes()
    return stack[-1] if stack else None


def _get_current_function_mode_stack() -> list[Any]:
    """The modes of this thread, the outermost first."""
    return list(_core.modes())


def _push_mode(mode: Any) -> None:
    _core.push_mode(mode)


def _pop_mode() -> Any:
    return _core.pop_mode()


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    mode = _core.pop_mode()
    try:
        yield mode
    finally:
        _core.push_mode(mode)


# ---- asking --------------------------------------------------------------------------------------------------------


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether a mode is active or one of the arguments has a `__torch_function__` of its own."""
    return bool(_core.has_overrides(relevant_args))


def has_torch_function_unary(obj: Any) -> bool:
    """`has_torch_function((obj,))` without the tuple."""
    return bool(_core.has_overrides((obj,)))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """`has_torch_function(relevant_args)` of arguments given one by one."""
    return bool(_core.has_overrides(relevant_args))


def handle_torch_function(public_api: Callable[..., Any], relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """The result of the first override that has one: the innermost mode, then the relevant arguments, subclasses first.

    TypeError when all of them answer NotImplemented.
    """
    result = _core.call_overrides(public_api, relevant_args, args, kwargs)
    if result is NotImplemented:
        raise TypeError(f"no implementation found for '{_core.full_name(public_api)}' on types that implement __torch_function__: []")
    return result


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[_Function], _Function]:
    """A decorator: the function asks the arguments that `dispatcher`, of the same signature, returns."""

    def inner(func: _Function) -> _Function:
        @functools.wraps(func)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return func(*args, **kwargs)

        return wrapped  # type: ignore[return-value]

    return inner


def redispatch_function(func: Callable[..., Any], types: Any, args: Any, kwargs: Any) -> Any:
    """Run `func` without asking overrides about this call; functions that it calls ask as usual."""
    if isinstance(func, PublicFunction):
        return func.impl(*args, **(kwargs or {}))
    with _core.skip_one():
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Inside, calls made by a `__torch_dispatch__` run as the user's do."""
    before = _dispatch._exclude_keys(0)
    try:
        yield
    finally:
        _dispatch._exclude_keys(before)


def is_tensor_like(inp: Any) -> bool:
    """Whether inp is a tensor or has a `__torch_function__`."""
    return type(inp) is trt.Tensor or hasattr(inp, "__torch_function__")


# ---- what can be overridden ----------------------------------------------------------------------------------------


def _namespaces() -> list[tuple[str, Any]]:
    from tensorrt_lite import fft, linalg, special
    from tensorrt_lite.nn import functional, init

    spaces: list[tuple[str, Any]] = [("tensorrt_lite", trt), ("tensorrt_lite.nn.functional", functional), ("tensorrt_lite.nn.init", init)]
    spaces += [("tensorrt_lite.Tensor", trt.Tensor), ("tensorrt_lite.linalg", linalg), ("tensorrt_lite.fft", fft), ("tensorrt_lite.special", special)]
    return spaces


@functools.cache
def _members() -> tuple[dict[Any, list[Any]], dict[Any, str]]:
    """{namespace: overridable functions} and {function: name}."""
    functions: dict[Any, list[Any]] = {}
    names: dict[Any, str] = {}
    for space_name, space in _namespaces():
        found = functions.setdefault(space, [])
        for name in dir(space):
            if name.startswith("__") and space is not trt.Tensor or isinstance(member := getattr(space, name, None), ModuleType):
                continue
            if isinstance(member, PublicProperty):
                for access in ("__get__", "__set__", "__delete__"):
                    names[getattr(member, access)] = f"{space_name}.{name}.{access}"
                functions.setdefault(member, []).append(member.__get__)
            elif isinstance(member, PublicFunction):
                if not name.startswith("__") or member.__name__ == name:  # Tensor.__neg__ is Tensor.neg, and named so
                    names.setdefault(member, f"{space_name}.{name}")
                if space is trt.Tensor or not name.startswith("_") and not name.endswith("_"):
                    found.append(member)
    return functions, names


def get_overridable_functions() -> dict[Any, list[Callable[..., Any]]]:
    """{module, class or property: what of it asks `__torch_function__`}."""
    return {space: list(found) for space, found in _members()[0].items()}


def resolve_name(f: Any) -> str | None:
    """The name under which a function given to `__torch_function__` is public (`tensorrt_lite.Tensor.add`), None for others."""
    try:
        name = _members()[1].get(f)
        return name.replace("tensorrt_lite", public_name(), 1) if name else name
    except TypeError:  # not hashable
        return None


@functools.cache
def _tensor_methods() -> set[Any]:
    methods: set[Any] = {m for m in vars(trt.Tensor).values() if isinstance(m, PublicFunction)}
    return methods | {getattr(m, a) for m in vars(trt.Tensor).values() if isinstance(m, PublicProperty) for a in ("__get__", "__set__", "__delete__")}


def is_tensor_method_or_property(func: Callable[..., Any]) -> bool:
    """Whether a function given to `__torch_function__` is a method of Tensor or the access to one of its properties."""
    return func in _tensor_methods() or getattr(func, "__name__", "") == "__get__"


@functools.cache
def get_testing_overrides() -> dict[Callable[..., Any], Callable[..., Any]]:
    """{overridable function: a lambda with its parameters that returns -1}."""
    table: dict[Callable[..., Any], Callable[..., Any]] = {}
    for functions in _members()[0].values():
        for f in functions:
            table[f] = _stand_in(f)
    return table


def _stand_in(f: Callable[..., Any]) -> Callable[..., Any]:
    if not isinstance(f, PublicFunction):
        return lambda self: -1
    parameters, names, starred = [], {}, False
    for i, p in enumerate(inspect.signature(f).parameters.values()):
        if p.kind is p.KEYWORD_ONLY and not starred:
            parameters.append("*")
            starred = True
        prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        starred = starred or p.kind is p.VAR_POSITIONAL
        if p.default is not p.empty:
            names[f"d{i}"] = p.default
        parameters.append(f"{prefix}{p.name}" + ("" if p.default is p.empty else f"=d{i}"))
    return eval(f"lambda {', '.join(parameters)}: -1", names)  # type: ignore[no-any-return]


@functools.cache
def get_ignored_functions() -> set[Callable[..., Any]]:
    """Public functions of the package and members of Tensor that never ask `__torch_function__`."""
    ignored: set[Any] = set()
    for space_name, space in _namespaces():
        for name in dir(space):
            member = getattr(space, name, None)
            if not callable(member) or isinstance(member, (PublicFunction, ModuleType)) or name.startswith("_") and space is not trt.Tensor:
                continue
            try:
                ignored.add(member)
            except TypeError:
                pass
    return ignored
