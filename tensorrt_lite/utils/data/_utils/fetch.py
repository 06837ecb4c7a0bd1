"""From what the sampler yields to a batch: a fetcher for each kind of dataset, in the process and in workers."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt

from .collate import default_collate
from .worker import batch_memory
from tensorrt_lite.utils.data.dataset import Subset as _Subset
from tensorrt_lite.utils.data.dataset import TensorDataset as _TensorDataset

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["create_fetcher"]


class _BaseDatasetFetcher:
    """`fetch` gives the batch (with auto_collation, for a list of indices) or the sample; StopIteration where a stream has ended."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        self.dataset, self.auto_collation, self.collate_fn, self.drop_last = dataset, auto_collation, collate_fn, drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        raise NotImplementedError


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """The next samples of a stream."""

    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        count = len(possibly_batched_index)
        samples = list(islice(self.dataset_iter, count))
        self.ended = len(samples) < count
        if not samples or (self.ended and self.drop_last):
            raise StopIteration
        return self.collate_fn(samples)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Samples at indices."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(self.dataset[possibly_batched_index])
        if callable(getattr(self.dataset, "__getitems__", None)):
            return self.collate_fn(self.dataset.__getitems__(possibly_batched_index))
        return self.collate_fn([self.dataset[index] for index in possibly_batched_index])


class _RowsFetcher(_BaseDatasetFetcher):
    """One gather per tensor of a TensorDataset: the same batch as stacking samples, without a view per sample."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        dataset, indices = self.dataset, possibly_batched_index
        if type(dataset) is _Subset:
            indices, dataset = [dataset.indices[index] for index in indices], dataset.dataset
        rows = trt.tensor(list(indices), dtype=trt.int64)
        return [_rows_of(tensor, rows) for tensor in dataset.tensors]


def _rows_of(tensor: Any, rows: Any) -> Any:
    out = batch_memory(tensor, (len(rows), *tensor.shape[1:])) if tensor.dim() and rows.numel() else None
    if out is None:
        return tensor[rows]
    if rows.min() < 0:
        rows = rows.where(rows >= 0, rows + len(tensor))
    return trt.index_select(tensor, 0, rows, out=out)


def create_fetcher(iterable: bool, dataset: Any, auto_collation: bool, collate_fn: Callable[[Any], Any], drop_last: bool) -> _BaseDatasetFetcher:
    """The fetcher of a dataset."""
    kind: type[_BaseDatasetFetcher] = _IterableDatasetFetcher if iterable else _MapDatasetFetcher
    base = dataset.dataset if type(dataset) is _Subset else dataset
    if auto_collation and type(base) is _TensorDataset and collate_fn is default_collate:
        kind = _RowsFetcher
    return kind(dataset, auto_collation, collate_fn, drop_last)
