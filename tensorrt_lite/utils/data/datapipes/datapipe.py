"""The two kinds of data pipes, streams and maps. A registered pipe is a method of its kind: `functional_datapipe`.

A stream has one valid iterator at a time, since its buffers are the pipe's: a second one makes the first raise. `reset` runs when an iterator is
made.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ..dataset import Dataset, IterableDataset

__all__ = ["DFIterDataPipe", "DataChunk", "IterDataPipe", "MapDataPipe"]


class DataChunk(list[Any]):
    """A batch of elements, as a list."""

    def __init__(self, items: Iterable[Any]) -> None:
        super().__init__(items)
        self.items = list(self)

    def as_str(self, indent: str = "") -> str:
        """The elements in brackets."""
        return f"{indent}[{', '.join(map(str, self))}]"

    def raw_iterator(self) -> Iterator[Any]:
        """The elements as they were given."""
        return iter(self.items)


class _PipeIterator:
    """An iterator of a stream, which is valid until the next one is made; attributes are those of the stream."""

    def __init__(self, pipe: Any, inner: Iterator[Any], number: int) -> None:
        self._pipe, self._inner, self._number = pipe, inner, number

    def __iter__(self) -> _PipeIterator:
        return self

    def __next__(self) -> Any:
        pipe = self._pipe
        if not pipe._is_valid_iterator(self._number):
            raise RuntimeError(
                f"This iterator has been invalidated because another iterator has been created from the same IterDataPipe: {_call_text(pipe)}\n"
                "This may be caused multiple references to the same IterDataPipe. We recommend using `.fork()` if that is necessary."
            )
        try:
            element = next(self._inner)
        except StopIteration:
            raise
        except Exception as error:
            error.add_note(f"This exception is thrown by __iter__ of {_call_text(pipe)}")
            raise
        pipe._number_of_samples_yielded += 1
        return element

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pipe, name)


def _call_text(pipe: Any) -> str:
    """How the pipe was made, as far as its attributes tell."""
    parameters = [p for p in inspect.signature(type(pipe).__init__).parameters.values() if p.name not in ("self", "args", "kwargs")]
    shown = []
    for parameter in parameters:
        value = vars(pipe).get(parameter.name, parameter.default)
        if value is parameter.default:
            continue
        shown.append(f"{parameter.name}={value}")
    return f"{type(pipe).__name__}({', '.join(shown)})"


def _hooked(iterate: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    @functools.wraps(iterate)
    def __iter__(self: Any) -> Iterator[Any]:
        number = self._new_iterator()
        return _PipeIterator(self, _next_calls(self) if (inner := iterate(self)) is self else inner, number)

    __iter__._hooked = True  # type: ignore[attr-defined]
    return __iter__


def _next_calls(pipe: Any) -> Iterator[Any]:
    """The elements of a stream that is its own iterator."""
    while True:
        try:
            element = pipe.__next__()
        except StopIteration:
            return
        yield element


class _Pipe:
    """What both kinds have: the methods that pipes have been registered as, hooks of pickling and of text."""

    functions: dict[str, Callable[..., Any]]
    reduce_ex_hook: Callable[[Any], Any] | None = None
    getstate_hook: Callable[[Any], Any] | None = None
    str_hook: Callable[[Any], str] | None = None
    repr_hook: Callable[[Any], str] | None = None
    _kind: type[Any]

    def __getattr__(self, name: str) -> Any:
        function = self.functions.get(name)
        if function is None:
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return functools.update_wrapper(functools.partial(function, self), function, assigned=("__doc__",), updated=())

    @classmethod
    def register_function(cls, function_name: str, function: Callable[..., Any]) -> None:
        """Make a function of a pipe a method of all."""
        cls.functions[function_name] = function

    @classmethod
    def register_datapipe_as_function(cls, function_name: str, cls_to_register: Callable[..., Any], enable_df_api_tracing: bool = False) -> None:
        """Make a class, which takes a pipe first, a method of all. An exception where there is one of this name."""
        if function_name in cls.functions:
            raise Exception(f"Unable to add DataPipe function name {function_name} as it is already taken")  # noqa: TRY002 (PyTorch's type)

        @functools.wraps(cls_to_register, assigned=("__doc__",), updated=())
        def make(source: Any, *args: Any, **kwargs: Any) -> Any:
            return cls_to_register(source, *args, **kwargs)

        cls.functions[function_name] = make

    @classmethod
    def set_reduce_ex_hook(cls, hook_fn: Callable[[Any], Any] | None) -> None:
        """Have pickling ask a function first, which may raise NotImplementedError; None ends that. RuntimeError for a second one."""
        if cls._kind.reduce_ex_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing reduce_ex_hook")
        cls._kind.reduce_ex_hook = hook_fn

    @classmethod
    def set_getstate_hook(cls, hook_fn: Callable[[Any], Any] | None) -> None:
        """Have a function choose what of a pipe's state is pickled; None ends that. RuntimeError for a second one."""
        if cls._kind.getstate_hook is not None and hook_fn is not None:
            raise RuntimeError("Attempt to override existing getstate_hook")
        cls._kind.getstate_hook = hook_fn

    def __getstate__(self) -> Any:
        hook = self._kind.getstate_hook
        return self.__dict__ if hook is None else hook(self.__dict__)

    def __reduce_ex__(self, protocol: Any) -> Any:
        hook = self._kind.reduce_ex_hook
        if hook is not None:
            try:
                return hook(self)
            except NotImplementedError:
                pass
        return super().__reduce_ex__(protocol)

    def __repr__(self) -> str:
        return type(self).__qualname__ if self.repr_hook is None else self.repr_hook(self)  # type: ignore[misc]

    def __str__(self) -> str:
        return type(self).__qualname__ if self.str_hook is None else self.str_hook(self)  # type: ignore[misc]

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.functions]


class IterDataPipe(_Pipe, IterableDataset):
    """Base of streams: a subclass gives `__iter__`, `__len__` where it is known, and `reset` where it has buffers."""

    functions: dict[str, Callable[..., Any]] = {}
    _valid_iterator_id: int | None = None
    _number_of_samples_yielded = 0

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        iterate = cls.__dict__.get("__iter__")
        if iterate is not None and not hasattr(iterate, "_hooked"):
            cls.__iter__ = _hooked(iterate)  # type: ignore[method-assign]

    def __iter__(self) -> Iterator[Any]:
        return self  # type: ignore[return-value]

    def reset(self) -> None:
        """Go back to the beginning: called when an iterator is made."""

    def _new_iterator(self) -> int:
        """The number of an iterator that is about to be made."""
        self._valid_iterator_id = 0 if self._valid_iterator_id is None else self._valid_iterator_id + 1
        self._number_of_samples_yielded = 0
        self.reset()
        return self._valid_iterator_id

    def _is_valid_iterator(self, number: int) -> bool:
        return self._valid_iterator_id == number


IterDataPipe._kind = IterDataPipe
IterDataPipe.__iter__ = _hooked(IterDataPipe.__iter__)  # type: ignore[method-assign]


class DFIterDataPipe(IterDataPipe):
    """Base of streams of data frames."""

    def _is_dfpipe(self) -> bool:
        return True


class MapDataPipe(_Pipe, Dataset):
    """Base of maps: a subclass gives `__getitem__`, and `__len__`."""

    functions: dict[str, Callable[..., Any]] = {}


MapDataPipe._kind = MapDataPipe
