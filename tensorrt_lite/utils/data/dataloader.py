"""DataLoader in the process itself: indices from a sampler, samples from the dataset, a batch by the collate function.

Random draws follow PyTorch's: each iterator draws one base seed, then the sampler draws what it needs when first asked.
"""

from __future__ import annotations

import math
import warnings
from itertools import islice
from types import GenericAlias
from typing import TYPE_CHECKING, Any

import tensorrt_lite as trt

from .collate import default_collate, default_convert
from .dataset import IterableDataset, Subset, TensorDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tensorrt_lite import Generator

__all__ = ["DataLoader", "get_worker_info"]


def get_worker_info() -> None:
    """What PyTorch tells a worker process about itself: None, as in the main process, where loading happens."""


class _InfiniteConstantSampler(Sampler):
    """The sampler of iterable datasets, which are asked for the next sample rather than for an index."""

    def __init__(self) -> None:
        pass

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader:
    """Batches of a dataset: `for batch in DataLoader(dataset, batch_size, shuffle)`.

    batch_size None passes single samples on; sampler or batch_sampler replace the order; collate_fn turns a list of
    samples into a batch. With num_workers the same batches are loaded here, with a warning; worker_init_fn is not called, and random
    numbers of the dataset are this process's. Raises ValueError for options that exclude each other.
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
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self._is_iterable = isinstance(dataset, IterableDataset)
        if self._is_iterable:
            for name, value in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
                if value is not None:
                    raise ValueError(
                        f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={value}"
                    )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")
        if sampler is None:
            if self._is_iterable:
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
        self._promised_samples: int | None = None
        self.__initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        fixed = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
        if self.__initialized and name in fixed:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    def __iter__(self) -> Iterator[Any]:
        return _LoaderIterator(self)

    def __len__(self) -> int:
        if not self._is_iterable:
            return len(self.batch_sampler if self._auto_collation else self.sampler)  # type: ignore[arg-type]
        # A stream's own length is trusted, and checked against what it yields.
        length = self._promised_samples = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else math.ceil(length / self.batch_size)


def _check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool, context: Any
) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers > 0:
        warnings.warn(
            f"DataLoader(num_workers={num_workers}): there are no worker processes, samples are loaded in this one (docs/gaps.md)", stacklevel=3
        )
        return
    if prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing. "
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if persistent_workers:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if context is not None:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
            f"but got num_workers={num_workers}"
        )


class _LoaderIterator:
    """One pass over a loader."""

    def __init__(self, loader: DataLoader) -> None:
        if loader.timeout != 0 and loader.num_workers == 0:
            raise AssertionError("timeout option needs worker processes: it must be 0 with num_workers=0")
        self._loader = loader
        self._indices = iter(loader.batch_sampler if loader._auto_collation else loader.sampler)  # type: ignore[arg-type]
        # Unused here, where no workers are seeded from it, but the draw is part of PyTorch's random stream.
        self._base_seed = trt.empty((), dtype=trt.int64).random_(generator=loader.generator).item()
        self._stream = iter(loader.dataset) if loader._is_iterable else None
        self._ended = False
        self._num_yielded = 0
        self._fetch = self._choose_fetch()
        self._pin = loader.pin_memory and _can_pin()

    def _choose_fetch(self) -> Callable[[Any], Any]:
        loader = self._loader
        if loader._is_iterable:
            return self._fetch_stream
        if not loader._auto_collation:
            return lambda index: loader.collate_fn(loader.dataset[index])
        base = loader.dataset.dataset if type(loader.dataset) is Subset else loader.dataset
        if type(base) is TensorDataset and loader.collate_fn is default_collate:
            return self._fetch_rows
        if callable(getattr(loader.dataset, "__getitems__", None)):
            return lambda indices: loader.collate_fn(loader.dataset.__getitems__(indices))
        return lambda indices: loader.collate_fn([loader.dataset[index] for index in indices])

    def _fetch_rows(self, indices: Any) -> list[Any]:
        """One gather per tensor: the same batch as stacking samples, without a view per sample."""
        dataset = self._loader.dataset
        if type(dataset) is Subset:
            indices = [dataset.indices[index] for index in indices]
            dataset = dataset.dataset
        rows = trt.tensor(list(indices), dtype=trt.int64)
        return [tensor[rows] for tensor in dataset.tensors]

    def _fetch_stream(self, indices: Any) -> Any:
        loader = self._loader
        if self._ended:
            raise StopIteration
        if not loader._auto_collation:
            return loader.collate_fn(next(self._stream))  # type: ignore[arg-type]
        samples = list(islice(self._stream, len(indices)))  # type: ignore[arg-type]
        self._ended = len(samples) < len(indices)
        if not samples or (self._ended and loader.drop_last):
            raise StopIteration
        return loader.collate_fn(samples)

    def __iter__(self) -> _LoaderIterator:
        return self

    def __next__(self) -> Any:
        batch = self._fetch(next(self._indices))
        if self._pin:
            batch = _pinned(batch)
        self._num_yielded += 1
        promised = self._loader._promised_samples
        if promised is not None and self._loader._is_iterable and self._num_yielded > promised:
            warnings.warn(
                f"Length of IterableDataset {self._loader.dataset} was reported to be {promised} (when accessing "
                f"len(dataloader)), but {self._num_yielded} samples have been fetched.",
                stacklevel=2,
            )
        return batch

    def __len__(self) -> int:
        return len(self._loader)


def _can_pin() -> bool:
    if trt.cuda.is_available():
        return True
    warnings.warn(
        "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.",
        stacklevel=4,
    )
    return False


def _pinned(data: Any) -> Any:
    """The batch with its tensors in page-locked memory."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, dict):
        return {key: _pinned(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(_pinned, data))
    if isinstance(data, (list, tuple)):
        return type(data)(map(_pinned, data))
    return data
