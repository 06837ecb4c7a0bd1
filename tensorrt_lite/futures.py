"""torch.futures: results that another thread delivers later."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value that is set once, from any thread. devices: those whose streams a value's tensors come from; values are passed on as they are."""

    def __init__(self, *, devices: list[int | str | Any] | None = None) -> None:
        self._changed = threading.Condition()
        self._is_done = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[Any]], None]] = []
        self._devices = list(devices or ())

    def done(self) -> bool:
        """Whether there is a value or an exception."""
        return self._is_done

    def wait(self) -> T:
        """The value, as soon as it is there; raises the exception that was set instead."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_done)
        return self.value()

    def value(self) -> T:
        """The value of a future that is done, or its exception. RuntimeError before."""
        if not self._is_done:
            raise RuntimeError("Future.value(): the future is not completed")
        if self._error is not None:
            raise self._error
        return cast(T, self._result)

    def _complete(self, result: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._is_done:
                raise RuntimeError("Future can only be marked completed or with error once.")
            self._result, self._error, self._is_done = result, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback(self)

    def set_result(self, result: T) -> None:
        """Make the future done; callbacks run in this thread. RuntimeError where it is done."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Make the future done with an exception, which `wait` raises. TypeError for what is none."""
        if not isinstance(result, BaseException):
            raise TypeError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback(self)` once the future is done: at once where it is. What a callback raises is printed."""

        def guarded(future: Future[Any]) -> None:
            try:
                callback(future)
            except Exception:
                import traceback

                traceback.print_exc()

        self._when_done(guarded)

    def _when_done(self, callback: Callable[[Future[Any]], None]) -> None:
        with self._changed:
            if not self._is_done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future of what `callback(self)` returns once this one is done, or of what it raises."""
        following: Future[S] = Future(devices=self._devices)

        def run(future: Future[Any]) -> None:
            try:
                result = callback(future)
            except Exception as error:
                following.set_exception(error)
            else:
                following.set_result(result)

        self._when_done(run)
        return following


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of the list itself, done once all of them are."""
    collected: Future[list[Future[Any]]] = Future()
    left = len(futures)
    lock = threading.Lock()

    def count(_: Future[Any]) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            collected.set_result(futures)

    if not futures:
        collected.set_result(futures)
    for future in futures:
        future._when_done(count)
    return collected


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The values of all, in order; raises the first exception among them."""
    return [future.wait() for future in collect_all(futures).wait()]


def __dir__() -> list[str]:
    return sorted(__all__)
