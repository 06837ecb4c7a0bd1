"""What a worker does: waits for indices, fetches the batch, sends it. The same in a process and in a thread, but for seeds and the way of messages."""

from __future__ import annotations

import copy
import importlib.util
import os
import queue
import random
import select
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite.random import Generator
from tensorrt_lite.random import manual_seed
from tensorrt_lite.utils._exception_wrapper import ExceptionWrapper
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_fetch = _LazyModule("tensorrt_lite.utils.data._utils.fetch")
_graph_settings = _LazyModule("tensorrt_lite.utils.data.graph_settings")
_transport = _LazyModule("tensorrt_lite.utils.data._utils.transport")

if TYPE_CHECKING:
    from collections.abc import Callable

    from .transport import Connection

__all__ = ["CHECK_SECONDS", "EndOfStream", "ProcessEnd", "Resume", "ThreadEnd", "WorkerInfo", "batch_memory", "get_worker_info", "process_main", "thread_main"]

CHECK_SECONDS = 5.0  # between looks whether the other end still lives, beside what the system tells of it


@dataclass(frozen=True, slots=True)
class _RNG:
    """A thread worker's own generators: Python's, this package's, NumPy's where it is installed."""

    random_generator: random.Random
    torch_generator: Any
    numpy_generator: Any = None


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """Which worker this is: `id` of `num_workers`, its `seed`, its copy of the `dataset`; for threads (`worker_method`) `rng`, generators of its own."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: _RNG | None = None
    worker_method: str | None = "multiprocessing"


@dataclass(frozen=True)
class EndOfStream:
    """What a worker answers when its iterable dataset has no more samples."""

    worker_id: int


@dataclass(frozen=True)
class Resume:
    """A new epoch: streams begin again. seed: of shuffling data pipes."""

    seed: int | None = None


_worker_info: WorkerInfo | None = None
_of_thread = threading.local()


def get_worker_info() -> WorkerInfo | None:
    """What a worker of a DataLoader is told of itself; None outside of workers."""
    return getattr(_of_thread, "info", _worker_info)


def batch_memory(like: Any, shape: tuple[int, ...]) -> Any:
    """In a worker process, an empty tensor for a large batch in memory that the message hands over; None elsewhere, and where it would not pay."""
    if _worker_info is None or type(like) is not trt.Tensor or not like.is_cpu or like.requires_grad:
        return None

    nbytes, stride = like.element_size(), []
    for n in reversed(shape):
        stride.append(nbytes // like.element_size())
        nbytes *= n
    if nbytes <= _transport.INLINE_BYTES:
        return None
    return trt.empty(0, dtype=like.dtype, device="cpu").set_(_transport.new_batch_storage(nbytes), 0, shape, stride[::-1])


# ---- the two ends that a worker may have


class ProcessEnd:
    """A worker process's end of its connection. `get` raises EOFError when the loader is done with it, or is gone."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._parent = os.getppid()
        self._poll = select.poll()
        self._poll.register(connection.fileno(), select.POLLIN)

    def get(self) -> Any:
        from multiprocessing import parent_process

        while not self._poll.poll(1000 * CHECK_SECONDS):
            parent = parent_process()
            if os.getppid() != self._parent or (parent is not None and not parent.is_alive()):
                raise EOFError
        try:
            return self._connection.recv()
        except ConnectionResetError as error:  # the loader is gone, with batches unread
            raise EOFError from error

    def put(self, message: Any) -> None:
        try:
            self._connection.send(message)
        except OSError as error:
            raise EOFError from error


class ThreadEnd:
    """A worker thread's queues."""

    def __init__(self, tasks: queue.SimpleQueue[Any], results: queue.SimpleQueue[Any]) -> None:
        self._tasks, self._results = tasks, results

    def get(self) -> Any:
        message = self._tasks.get()
        if message is None:
            raise EOFError
        return message

    def put(self, message: Any) -> None:
        self._results.put(message)


# ---- seeds


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four words by NumPy's own way of spreading seeds: those that a worker's NumPy is seeded with."""
    from numpy.random import SeedSequence

    return SeedSequence([worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]).generate_state(4).tolist()  # type: ignore[no-any-return]


class _SeedNumpy:
    """On `sys.meta_path`, where NumPy's generator is not loaded yet: seeds it once it is. Loading it for that alone would take 70 ms and 15 MB a worker."""

    def __init__(self, base_seed: int, worker_id: int) -> None:
        self._seeds = base_seed, worker_id

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != "numpy.random":
            return None
        sys.meta_path.remove(self)  # type: ignore[arg-type]
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module: Any) -> None:
                run(module)
                module.seed(_generate_state(*self._seeds))

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _seed_process(base_seed: int, worker_id: int) -> int:
    seed = base_seed + worker_id
    random.seed(seed)
    manual_seed(seed)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(_generate_state(base_seed, worker_id))
    else:
        sys.meta_path.insert(0, _SeedNumpy(base_seed, worker_id))  # type: ignore[arg-type]
    return seed


def _generators(base_seed: int, worker_id: int) -> _RNG:
    seed = base_seed + worker_id
    numpy = sys.modules.get("numpy")
    return _RNG(random.Random(seed), Generator().manual_seed(seed), None if numpy is None else numpy.random.default_rng(_generate_state(base_seed, worker_id)))


# ---- the loop


@dataclass
class Job:
    """What a worker is given: the dataset and how to make batches of it."""

    iterable: bool
    dataset: Any
    auto_collation: bool
    collate_fn: Callable[[Any], Any]
    drop_last: bool
    base_seed: int
    init_fn: Callable[[int], Any] | None
    num_workers: int
    shared_seed: int | None  # of shuffling data pipes


def process_main(job: Job, worker_id: int, connection: Connection, inherited: list[int]) -> None:
    """What a worker process runs. inherited: the loader's own ends of connections, which a forked child has and must not keep open."""
    global _worker_info
    try:
        for descriptor in inherited:
            os.close(descriptor)
        trt.set_num_threads(1)
        seed = _seed_process(job.base_seed, worker_id)
        dataset = _seed_pipes(job.dataset, job.shared_seed)
        _worker_info = WorkerInfo(worker_id, job.num_workers, seed, dataset)
        _serve(job, dataset, worker_id, ProcessEnd(connection), f"in DataLoader worker process {worker_id}")
    except (KeyboardInterrupt, EOFError):
        pass  # Ctrl-C reaches the loader's process, too


def thread_main(job: Job, worker_id: int, end: ThreadEnd) -> None:
    """What a worker thread runs. The process's random state is everybody's: the thread has generators of its own."""
    rng = _generators(job.base_seed, worker_id)
    dataset = job.dataset if job.shared_seed is None else copy.deepcopy(job.dataset)  # a data pipe has one iterator
    _of_thread.info = WorkerInfo(worker_id, job.num_workers, job.base_seed + worker_id, dataset, rng, "thread")
    try:
        _serve(job, _seed_pipes(dataset, job.shared_seed), worker_id, end, f"in DataLoader worker thread {worker_id}")
    except EOFError:
        pass


def _seed_pipes(dataset: Any, seed: int | None) -> Any:
    """Data pipes that shuffle draw from one seed in all workers."""
    if seed is None:
        return dataset

    return _graph_settings.apply_random_seed(dataset, Generator().manual_seed(seed))


def _serve(job: Job, dataset: Any, worker_id: int, end: ProcessEnd | ThreadEnd, where: str) -> None:
    fetcher: Any = None
    failure: Any = None
    ended = False
    try:
        if job.init_fn is not None:
            job.init_fn(worker_id)
        fetcher = _fetch.create_fetcher(job.iterable, dataset, job.auto_collation, job.collate_fn, job.drop_last)
    except Exception:
        failure = ExceptionWrapper(where=where)
    while True:
        message = end.get()
        if isinstance(message, Resume):
            dataset, ended = _seed_pipes(dataset, message.seed), False
            try:
                fetcher = _fetch.create_fetcher(job.iterable, dataset, job.auto_collation, job.collate_fn, job.drop_last)
            except Exception:
                failure = ExceptionWrapper(where=where)
            continue
        epoch, place, index = message
        if ended:
            continue
        data: Any
        if failure is not None:
            data, failure = failure, None
        else:
            try:
                data = fetcher.fetch(index)
            except Exception as error:
                if job.iterable and isinstance(error, StopIteration):
                    data, ended = EndOfStream(worker_id), True
                else:
                    data = ExceptionWrapper(where=where)
        _answer(end, epoch, place, worker_id, data, where)
        del data, message, index  # the batch goes before the next one is made


def _answer(end: ProcessEnd | ThreadEnd, epoch: int, place: int, worker_id: int, data: Any, where: str) -> None:
    try:
        end.put((epoch, place, worker_id, data))
    except EOFError:
        raise
    except Exception:  # what cannot be pickled; an exception of a class that cannot be becomes a RuntimeError
        wrapper = ExceptionWrapper(where=where)
        if isinstance(data, ExceptionWrapper):
            wrapper = data
            wrapper.exc_type = RuntimeError
        end.put((epoch, place, worker_id, wrapper))
