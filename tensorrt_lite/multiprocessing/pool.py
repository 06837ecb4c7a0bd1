"""A pool of processes, whose tasks and results pass tensors by reference."""

from __future__ import annotations

import gc
import multiprocessing.pool
from typing import Any

from tensorrt_lite.multiprocessing.queue import SimpleQueue

__all__ = ["Pool", "clean_worker"]


def clean_worker(*args: Any, **kwargs: Any) -> None:
    """What a process of the pool runs; tensors in cycles are let go of at its end."""
    multiprocessing.pool.worker(*args, **kwargs)  # type: ignore[attr-defined]
    gc.collect()


class Pool(multiprocessing.pool.Pool):
    """multiprocessing's Pool over this package's queues."""

    def _setup_queues(self) -> None:
        self._inqueue: Any = SimpleQueue(ctx=self._ctx)  # type: ignore[attr-defined]
        self._outqueue: Any = SimpleQueue(ctx=self._ctx)  # type: ignore[attr-defined]
        self._quick_put = self._inqueue._writer.send
        self._quick_get = self._outqueue._reader.recv
