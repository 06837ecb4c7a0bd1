"""Queues over connections that pickle with `ForkingPickler`, as multiprocessing's own do."""

from __future__ import annotations

import multiprocessing.queues
import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any

__all__ = ["ConnectionWrapper", "Queue", "SimpleQueue"]


class ConnectionWrapper:
    """A connection whose objects are pickled with `ForkingPickler`; everything else is the connection's."""

    def __init__(self, conn: Any) -> None:
        self.conn = conn

    def send(self, obj: Any) -> None:
        """Send an object, its tensors by reference."""
        self.conn.send_bytes(ForkingPickler.dumps(obj, pickle.HIGHEST_PROTOCOL))

    def recv(self) -> Any:
        """The next object."""
        return pickle.loads(self.conn.recv_bytes())

    def __getattr__(self, name: str) -> Any:
        if "conn" in self.__dict__:
            return getattr(self.conn, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute 'conn'")


class Queue(multiprocessing.queues.Queue):
    """A queue of objects, whose tensors are passed by reference. ctx: a context of multiprocessing."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._reader: Any = ConnectionWrapper(self._reader)
        self._writer: Any = ConnectionWrapper(self._writer)
        self._send = self._writer.send
        self._recv = self._reader.recv


class SimpleQueue(multiprocessing.queues.SimpleQueue):
    """A queue without a thread, whose tensors are passed by reference. ctx: a context of multiprocessing; the default one where it is missing."""

    def __init__(self, *, ctx: Any = None) -> None:
        super().__init__(ctx=multiprocessing.get_context() if ctx is None else ctx)
        if not isinstance(self._reader, ConnectionWrapper):
            self._reader: Any = ConnectionWrapper(self._reader)
            self._writer: Any = ConnectionWrapper(self._writer)
