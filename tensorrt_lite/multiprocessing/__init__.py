"""Python's ``multiprocessing``, whose queues and pipes pass CUDA tensors by reference: the receiver sees the sender's memory.

Tensors on the CPU are passed by value. A process that has used CUDA must start others with ``get_context("spawn")``.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from tensorrt_lite.multiprocessing import reductions

__all__ = [*multiprocessing.__all__, "reductions"]  # type: ignore[attr-defined]

reductions.init_reductions()


def __getattr__(name: str) -> object:
    from tensorrt_lite._missing import error

    raise error("multiprocessing", name)
