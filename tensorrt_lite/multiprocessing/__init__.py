"""Python's ``multiprocessing``, whose queues and pipes pass tensors by reference: the receiver sees the sender's memory.

Tensors on the CPU move to shared memory when they are first sent, or by ``share_memory_``. Gradients are not sent. A process that has used CUDA
must start others with ``get_context("spawn")``; its tensors have to outlive their use by the receivers.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from tensorrt_lite._C.core import mapped as _mapped
from tensorrt_lite.multiprocessing import reductions
from tensorrt_lite.multiprocessing.reductions import init_reductions
from tensorrt_lite.multiprocessing.spawn import (
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    _prctl_pr_set_pdeathsig,
    spawn,
    start_processes,
)
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_missing = _LazyModule("tensorrt_lite._names.missing")
_spawn = _LazyModule("tensorrt_lite.multiprocessing.spawn")

__all__ = [
    *multiprocessing.__all__,  # type: ignore[attr-defined]
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
]

init_reductions()


def get_all_sharing_strategies() -> set[str]:
    """Ways to hand shared memory on: "file_descriptor" and "file_system"."""
    return set(_mapped.STRATEGIES)


def get_sharing_strategy() -> str:
    """The way in force in this process."""
    return _mapped.sharing_strategy()


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how this process hands shared memory on from now on. AssertionError for unknown ways.

    "file_descriptor", the default, leaves nothing behind however a process ends, and takes an open file for each storage. "file_system" takes none; its
    files in /dev/shm are removed with the last process that uses them, and those of killed processes when the program ends.
    """
    if new_strategy not in _mapped.STRATEGIES:
        raise AssertionError(f"invalid sharing strategy '{new_strategy}', expected one of {get_all_sharing_strategies()}")
    _mapped.set_sharing_strategy(new_strategy)


def _set_thread_name(name: str) -> None:
    """Name the calling thread for the system's tools; 15 bytes are kept."""
    _spawn._prctl(15, name.encode()[:15])


def _get_thread_name() -> str:
    import ctypes

    name = ctypes.create_string_buffer(16)
    _spawn._prctl(16, name)
    return name.value.decode(errors="replace")


def __getattr__(name: str) -> object:
    raise _missing.error("multiprocessing", name)
