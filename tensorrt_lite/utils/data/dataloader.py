"""DataLoader: indices from a sampler, samples from the dataset, a batch by the collate function, in the process or by workers.

Random draws follow PyTorch's: each iterator draws one base seed, then the sampler draws what it needs when first asked.
"""

from __future__ import annotations

import math
import os
import warnings
from types import GenericAlias
from typing import TYPE_CHECKING, Any

from tensorrt_lite.utils._exception_wrapper import ExceptionWrapper

from ._iterators import _BaseDataLoaderIter, _DatasetKind, _is_pipe, _MultiProcessingDataLoaderIter, _SingleProcessDataLoaderIter
from ._utils.collate import default_collate, default_convert
from ._utils.worker import get_worker_info
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_datapipe = _LazyModule("tensorrt_lite.utils.data.datapipes.datapipe")
_graph_settings = _LazyModule("tensorrt_lite.utils.data.graph_settings")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tensorrt_lite import Generator

__all__ = ["DataLoader", "Dataset", "ExceptionWrapper", "default_collate", "get_worker_info"]


class _InfiniteConstantSampler(Sampler):
    """The sampler of iterable datasets, which are asked for the next sample rather than for an index."""

    def __init__(self) -> None:
        pass

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader:
    """Batches of a dataset: `for batch in DataLoader(dataset, batch_size, shuffle)`.

    Worker processes pass tensors through shared memory. They run as long as an iteration, with persistent_workers as long as the loader. Random numbers of
    worker i begin at a seed of the iteration's plus i. Worker threads leave the random state of the process alone and have generators of their own
    (`get_worker_info().rng`).

    An exception in a worker is raised here, with its traceback as the message. Raises ValueError for options that exclude each other.

    Parameters:
        dataset (Dataset): where samples come from
        batch_size (int or None, default 1): how many samples a batch has; None passes single samples on
        shuffle (bool or None, default None): whether the order is random, a new one each time
        sampler (Sampler, iterable or None, default None): the order, instead of shuffle
        batch_sampler (Sampler, iterable or None, default None): lists of indices, instead of batch_size, shuffle,
            sampler and drop_last
        num_workers (int, default 0): how many processes load ahead; 0 loads in this one
        collate_fn (function or None, default None): what makes a batch of a list of samples; None is default_collate()
        pin_memory (bool, default False): whether batches are in page-locked memory, where there is an accelerator
        drop_last (bool, default False): whether a last batch that is smaller is left out
        timeout (float, default 0): how many seconds to wait for a batch (RuntimeError); 0 for ever
        worker_init_fn (function or None, default None): called in each worker with its number
        multiprocessing_context (str, context or None, default None): how processes start
        generator (Generator or None, default None): the source of the order; None is the default one
        prefetch_factor (int or None, default None): how many batches each worker loads ahead; None is 2
        persistent_workers (bool, default False): whether workers live on when an iteration ends
        pin_memory_device (str, default ''): the accelerator whose memory it is; "" is the current one
        in_order (bool, default True): whether batches come in the order of the sampler, not as they are ready
        worker_threads (bool, default False): whether workers are threads of this process (not in PyTorch)

    >>> import tensorrt_lite as trt
    >>> dataset = trt.utils.data.TensorDataset(trt.arange(5), 10 * trt.arange(5))
    >>> for x, y in trt.utils.data.DataLoader(dataset, batch_size=2):
    ...     print(x, y)
    tensor([0, 1]) tensor([ 0, 10])
    tensor([2, 3]) tensor([20, 30])
    tensor([4]) tensor([40])
    """

    __class_getitem__ = classmethod(GenericAlias)
    __initialized = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable[Any] | None = None,
        batch_sampler: Sampler | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        worker_threads: bool = False,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, worker_threads)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.worker_threads = worker_threads
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self._dataset_kind = _DatasetKind.Iterable if isinstance(dataset, IterableDataset) else _DatasetKind.Map
        pipe = _is_pipe(dataset, "IterDataPipe")
        if self._dataset_kind == _DatasetKind.Iterable:
            for name, value in (("shuffle", None if pipe else shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
                if value is not None:
                    raise ValueError(f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}")
            if pipe and shuffle is not None:
                self.dataset = dataset = _graph_settings.apply_shuffle_settings(dataset, shuffle=shuffle)
                shuffle = False
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if self._dataset_kind == _DatasetKind.Iterable:
                sampler = _InfiniteConstantSampler()
            else:
                sampler = RandomSampler(dataset, generator=generator) if shuffle else SequentialSampler(dataset)
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._IterableDataset_len_called: int | None = None
        self._iterator: _BaseDataLoaderIter | None = None
        self.__initialized = True
        self.check_worker_number_rationality()

    def __setattr__(self, name: str, value: Any) -> None:
        fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
        if self.__initialized and name in fixed:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """The context that worker processes are started by; None for the default one. ValueError for unknown start methods, TypeError for other objects."""
        return self.__context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            import multiprocessing
            import multiprocessing.context

            if not self.num_workers:
                raise ValueError(f"multiprocessing_context can only be used with multi-process loading (num_workers > 0), but got num_workers={self.num_workers}")
            if isinstance(context, str):
                known = multiprocessing.get_all_start_methods()
                if context not in known:
                    raise ValueError(f"multiprocessing_context option should specify a valid start method in {known!r}, but got multiprocessing_context={context!r}")
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    f"multiprocessing_context option should be a valid context object or a string specifying the start method, but got "
                    f"multiprocessing_context={context}"
                )
        self.__context = context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def _get_iterator(self) -> _BaseDataLoaderIter:
        if self.num_workers == 0:
            return _SingleProcessDataLoaderIter(self)
        self.check_worker_number_rationality()
        return _MultiProcessingDataLoaderIter(self)

    def __iter__(self) -> _BaseDataLoaderIter:
        if not self.persistent_workers or self.num_workers == 0:
            return self._get_iterator()
        if self._iterator is None or getattr(self._iterator, "_shutdown", False):  # which a worker's death brings about
            self._iterator = self._get_iterator()
        else:
            self._iterator._reset(self)
        return self._iterator

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        # A stream's own length is trusted, and checked against what it yields.
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)

    def check_worker_number_rationality(self) -> None:
        """Warn where there are more workers than processors."""
        most = len(os.sched_getaffinity(0))
        if not self.worker_threads and self.num_workers > most:
            warnings.warn(
                f"This DataLoader will create {self.num_workers} worker processes in total. Our suggested max number of worker in current system is {most}, "
                "which is smaller than what this DataLoader is going to create. Please be aware that excessive worker creation might get DataLoader running "
                "slow or even freeze, lower the worker number to avoid potential slowness/freeze if necessary.",
                stacklevel=3,
            )


def _check_workers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool, worker_threads: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if prefetch_factor is not None and num_workers == 0:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if worker_threads and num_workers == 0:
        raise ValueError("worker_threads option needs num_workers > 0")


def __getattr__(name: str) -> Any:
    if name in ("IterDataPipe", "MapDataPipe"):  # PyTorch's module has them, too

        return getattr(_datapipe, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
