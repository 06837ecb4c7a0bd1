"""One pass over a loader: in the process, or by workers, whose batches come in the sampler's order whichever is ready first."""

from __future__ import annotations

import os
import queue
import sys
import warnings
from itertools import cycle
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite.random import Generator
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite.utils._exception_wrapper import ExceptionWrapper

from ._utils.fetch import create_fetcher
from ._utils.pin_memory import pin_memory
from ._utils.worker import CHECK_SECONDS, EndOfStream, Job, Resume

_accelerator = LazyModule("tensorrt_lite.accelerator")
_cuda = LazyModule("tensorrt_lite.cuda")
_graph_settings = LazyModule("tensorrt_lite.utils.data.graph_settings")
_workers = LazyModule("tensorrt_lite.utils.data._utils.workers")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .dataloader import DataLoader

__all__ = ["_BaseDataLoaderIter", "_DatasetKind", "_MultiProcessingDataLoaderIter", "_SingleProcessDataLoaderIter"]


class _DatasetKind:
    """Whether a dataset is indexed or streamed."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool) -> Any:
        return create_fetcher(kind == _DatasetKind.Iterable, dataset, auto_collation, collate_fn, drop_last)


class _BaseDataLoaderIter:
    """What both kinds have: the sampler's iterator, the base seed, the check of a stream's promised length."""

    def __init__(self, loader: DataLoader) -> None:
        # not the loader itself, which may hold this object: the two would keep each other's workers alive
        self._generator = loader.generator
        self._promised = loader._IterableDataset_len_called
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._collate_fn = loader.collate_fn
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._timeout = loader.timeout
        self._persistent_workers = loader.persistent_workers
        self._seed_pipes()
        self._pin_memory = loader.pin_memory and _can_pin(loader)
        self._sampler_iter: Iterator[Any] = iter(self._index_sampler)
        self._base_seed = _new_seed(loader.generator)
        self._num_yielded = 0

    def _seed_pipes(self) -> None:
        """Data pipes that shuffle draw from one seed in all workers, drawn anew for each pass."""
        self._shared_seed: int | None = None
        if _is_pipe(self._dataset, "IterDataPipe"):
            seed = self._shared_seed = _new_seed(self._generator)
            self._dataset = _graph_settings.apply_random_seed(self._dataset, Generator().manual_seed(seed))

    def _reset(self, loader: DataLoader, first_iter: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._promised = loader._IterableDataset_len_called
        self._seed_pipes()

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __iter__(self) -> _BaseDataLoaderIter:
        return self

    def __next__(self) -> Any:
        data = self._next_data()
        self._num_yielded += 1
        promised = self._promised
        if promised is not None and self._dataset_kind == _DatasetKind.Iterable and self._num_yielded > promised:
            text = (
                f"Length of IterableDataset {self._dataset} was reported to be {promised}(when accessing len(dataloader)), but {self._num_yielded} samples "
                "have been fetched. "
            )
            if self._num_workers:
                text += (
                    "For multiprocessing data-loading, this could be caused by not properly configuring the IterableDataset replica at each worker: "
                    "get_worker_info() tells a worker its share."
                )
            warnings.warn(text, stacklevel=2)
        return data

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("{} cannot be pickled", type(self).__name__)


def _new_seed(generator: Any) -> int:
    return int(trt.empty((), dtype=trt.int64, device="cpu").random_(generator=generator).item())


def _is_pipe(dataset: Any, kind: str) -> bool:
    """Whether a dataset is a data pipe; without loading them for those that are none."""
    module = sys.modules.get("tensorrt_lite.utils.data.datapipes.datapipe")
    return module is not None and isinstance(dataset, getattr(module, kind))


def _can_pin(loader: DataLoader) -> bool:
    if loader.pin_memory_device:
        warnings.warn(
            f"pin_memory_device is deprecated, the current accelerator will be used as the device,ignore pin_memory_device='{loader.pin_memory_device}'.",
            stacklevel=6,
        )
    if _cuda.is_available():
        return True
    warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.", stacklevel=6)
    return False


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads where it is asked."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        if self._timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0: the option is for worker processes")
        if _is_pipe(self._dataset, "IterDataPipe") or _is_pipe(self._dataset, "MapDataPipe"):
            _graph_settings.apply_sharding(self._dataset, 1, 0)
        self._dataset_fetcher = _DatasetKind.create_fetcher(self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn, self._drop_last)

    def _next_data(self) -> Any:
        data = self._dataset_fetcher.fetch(self._next_index())
        return pin_memory(data) if self._pin_memory else data


class _Task:
    """A batch that a worker has been asked for."""

    __slots__ = ("data", "done", "worker")

    def __init__(self, worker: int) -> None:
        self.worker, self.done, self.data = worker, False, None


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Loads by workers. Tasks are numbered in the sampler's order and dealt out in turn; prefetch_factor of them are out per worker."""

    _shutdown = True  # of an object whose making has failed

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor or 0
        self._in_order = loader.in_order
        if self._prefetch_factor <= 0:
            raise AssertionError("prefetch_factor must be greater than 0 for MultiProcessingDataLoaderIter")
        init_fn = loader.worker_init_fn
        if _is_pipe(self._dataset, "IterDataPipe") or _is_pipe(self._dataset, "MapDataPipe"):
            init_fn = _graph_settings.ShardingInit(init_fn)
        job = Job(
            self._dataset_kind == _DatasetKind.Iterable, self._dataset, self._auto_collation, self._collate_fn, self._drop_last, self._base_seed, init_fn,
            self._num_workers, self._shared_seed,
        )  # fmt: skip

        self._pool = _workers.Threads(job) if loader.worker_threads else _workers.Processes(loader.multiprocessing_context, job)
        self._workers = self._pool.members
        self._owner = os.getpid()
        self._shutdown = False
        self._pinning = _workers.PinningThread(self._pool, _accelerator.current_device_index()) if self._pin_memory else None
        self._messages: Any = self._pinning or self._pool
        self._epoch = 0
        self._reset(loader, first_iter=True)

    def _reset(self, loader: DataLoader, first_iter: bool = False) -> None:
        super()._reset(loader, first_iter)
        self._send_idx = 0  # of the next task that is sent
        self._rcvd_idx = 0  # of the next task whose batch is yielded
        self._tasks: dict[int, _Task] = {}
        self._tasks_outstanding = 0
        self._workers_status = [True] * self._num_workers
        self._workers_num_tasks = [0] * self._num_workers
        self._turn = cycle(range(self._num_workers))
        self._epoch += 1  # batches of an epoch that was left early are recognised by it
        if not first_iter:
            for worker in range(self._num_workers):
                self._pool.send(worker, Resume(self._shared_seed))
        for _ in range(self._prefetch_factor * self._num_workers):
            self._try_put_index()

    def _try_put_index(self) -> None:
        """Send the next task to the worker whose turn it is, among those whose streams go on."""
        active = sum(self._workers_status)
        if not active:
            return
        try:
            index = self._next_index()
        except StopIteration:
            return
        most = self._prefetch_factor * self._num_workers // active
        for worker in self._turn:
            if self._workers_status[worker] and (self._in_order or self._workers_num_tasks[worker] < most):
                break
        self._pool.send(worker, (self._epoch, self._send_idx, index))
        self._tasks[self._send_idx] = _Task(worker)
        self._workers_num_tasks[worker] += 1
        self._tasks_outstanding += 1
        self._send_idx += 1

    def _get_message(self) -> Any:
        while True:
            try:
                return self._messages.get(self._timeout or CHECK_SECONDS)
            except queue.Empty:
                if self._timeout:
                    raise RuntimeError(f"DataLoader timed out after {self._timeout} seconds") from None

    def _next_data(self) -> Any:
        try:
            return self._wait_for_data()
        except RuntimeError:
            if self._pool.failed:  # its tasks come no more
                self._shutdown_workers()
            raise

    def _wait_for_data(self) -> Any:
        while True:
            task = self._next_task()
            if task is None:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            if task.done:
                del self._tasks[self._rcvd_idx]
                self._rcvd_idx += 1
                return self._yielded(task)
            epoch, place, worker, data = self._get_message()
            if epoch != self._epoch:
                continue
            self._tasks_outstanding -= 1
            if isinstance(data, EndOfStream):
                self._workers_status[worker] = False
                if not self._persistent_workers:
                    self._pool.stop(worker)
                self._try_put_index()
                continue
            task = self._tasks[place]
            task.data, task.done = data, True
            if not self._in_order:
                del self._tasks[place]
                return self._yielded(task)

    def _next_task(self) -> _Task | None:
        """The task whose batch comes next. Those of a worker whose stream has ended come no more."""
        if self._shutdown:
            return None
        while self._rcvd_idx < self._send_idx:
            task = self._tasks.get(self._rcvd_idx)
            if task is not None and (task.done or self._workers_status[task.worker]):
                return task
            self._tasks.pop(self._rcvd_idx, None)
            self._rcvd_idx += 1
        return None

    def _yielded(self, task: _Task) -> Any:
        self._workers_num_tasks[task.worker] -= 1
        self._try_put_index()
        if isinstance(task.data, ExceptionWrapper):
            task.data.reraise()
        return task.data

    def _shutdown_workers(self) -> None:
        """End the workers; nothing the second time, and in a process that was forked meanwhile."""
        if self._shutdown or self._owner != os.getpid():
            return
        self._shutdown = True
        (self._pinning or self._pool).close()

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self._shutdown_workers()
