"""Datasets: map-style ones have `__getitem__` (and `__getitems__` for whole batches), iterable ones `__iter__`."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from itertools import accumulate
from types import GenericAlias
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from typing import Generic

    from typing_extensions import TypeVar

    from tensorrt_lite import Generator, Tensor

    T_co = TypeVar("T_co", covariant=True, default=Any)

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]


if TYPE_CHECKING:

    class Dataset(Generic[T_co]):
        """Base of map-style datasets, for checkers: `Dataset[T]` has samples of type T, `Dataset` of any."""

        def __getitem__(self, index: Any) -> T_co: ...
        def __iter__(self) -> Iterator[T_co]: ...  # by __getitem__, which checkers do not take for iteration
        def __add__(self, other: Dataset) -> ConcatDataset: ...
else:

    class Dataset:
        """Base of map-style datasets: a subclass gives `__getitem__`, and `__len__` for most samplers."""

        # `Dataset[T]` in annotations and bases, without the import of typing's generics.
        __class_getitem__ = classmethod(GenericAlias)

        def __getitem__(self, index: Any) -> Any:
            raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

        def __add__(self, other: Dataset) -> ConcatDataset:
            return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """Base of datasets that are streams: a subclass gives `__iter__`."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Dataset) -> ChainDataset:  # type: ignore[override]
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Samples along the first dimension of tensors, each (N, ...). Raises AssertionError when the N differ.

    Parameters:
        *tensors (Tensor): each (N, ...)

    >>> import tensorrt_lite as trt
    >>> dataset = trt.utils.data.TensorDataset(trt.arange(5), 10 * trt.arange(5))
    >>> len(dataset), dataset[3]
    (5, (tensor(3), tensor(30)))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return self.tensors[0].size(0)


class StackDataset(Dataset):
    """Samples of several datasets side by side: tuples, or dicts for keyword arguments.

    Raises ValueError without datasets, for both kinds of arguments at once, or for different lengths.

    Parameters:
        *args (Dataset): the datasets, for samples that are tuples
        **kwargs (Dataset): the datasets by name, for samples that are dicts

    >>> import tensorrt_lite as trt
    >>> dataset = trt.utils.data.StackDataset([1, 2], ["a", "b"])
    >>> dataset[1]
    (2, 'b')
    """

    def __init__(self, *args: Dataset, **kwargs: Dataset) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or ``dict``- (via ``kwargs``) like input/output, but both "
                "types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = args or kwargs
        lengths = {len(dataset) for dataset in (args or kwargs.values())}  # type: ignore[arg-type]
        if len(lengths) > 1:
            raise ValueError("Size mismatch between datasets")
        self._length = lengths.pop()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {key: dataset[index] for key, dataset in self.datasets.items()}
        return tuple(dataset[index] for dataset in self.datasets)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        if isinstance(self.datasets, dict):
            columns = [_items_of(dataset, indices) for dataset in self.datasets.values()]
            return [dict(zip(self.datasets, row, strict=True)) for row in zip(*columns, strict=True)]
        return list(zip(*(_items_of(dataset, indices) for dataset in self.datasets), strict=True))

    def __len__(self) -> int:
        return self._length


def _items_of(dataset: Any, indices: list[int]) -> list[Any]:
    """Samples of a dataset at several indices, by its batch method where it has one."""
    if not callable(getattr(dataset, "__getitems__", None)):
        return [dataset[index] for index in indices]
    items = dataset.__getitems__(indices)
    if len(items) != len(indices):
        raise ValueError(f"Nested dataset's output size mismatch. Expected {len(indices)}, got {len(items)}")
    return items


class ConcatDataset(Dataset):
    """Datasets one after the other. Raises AssertionError for none, or an iterable one.

    Parameters:
        datasets (iterable of Datasets): the datasets

    >>> import tensorrt_lite as trt
    >>> dataset = trt.utils.data.ConcatDataset([[1, 2], [3]])
    >>> len(dataset), dataset[2]
    (3, 3)
    """

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """Running sum of lengths."""
        return list(accumulate(map(len, sequence)))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> Any:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect_right(self.cumulative_sizes, idx)
        if which >= len(self.datasets):
            raise IndexError(f"index {idx} is out of range for a dataset of {len(self)} samples")
        return self.datasets[which][idx - (self.cumulative_sizes[which - 1] if which else 0)]


class ChainDataset(IterableDataset):
    """Iterable datasets one after the other. Raises AssertionError, when iterated, for a map-style one.

    Parameters:
        datasets (iterable of Datasets): the datasets
    """

    def __init__(self, datasets: Iterable[Dataset]) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from dataset

    def __len__(self) -> int:
        return sum(len(dataset) for dataset in self.datasets)  # type: ignore[arg-type]


class Subset(Dataset):
    """The samples of a dataset at the given indices.

    Raises NotImplementedError for a subclass that overrides only `__getitem__`, which batches would bypass.

    Parameters:
        dataset (Dataset): where samples come from
        indices (sequence of ints): which samples

    >>> import tensorrt_lite as trt
    >>> dataset = trt.utils.data.Subset([10, 20, 30], [2, 0])
    >>> list(dataset)
    [30, 10]
    """

    def __init__(self, dataset: Dataset, indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        own = type(self)
        if own.__getitem__ is not Subset.__getitem__ and own.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{own.__name__} overrides __getitem__ but not __getitems__. When subclassing Subset and overriding "
                "__getitem__, you must also override __getitems__ to ensure DataLoader works correctly."
            )

    def __getitem__(self, idx: Any) -> Any:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[Any]:
        return _items_of(self.dataset, [self.indices[index] for index in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Dataset, lengths: Sequence[int | float], generator: Generator | None = None) -> list[Subset]:
    """Split a dataset at random into parts of the given lengths, or of fractions that add up to 1.

    Raises ValueError when the lengths do not add up to the dataset's, or a fraction is not in [0, 1].
    """
    total = len(dataset)  # type: ignore[arg-type]
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for index, fraction in enumerate(lengths):
            if not 0 <= fraction <= 1:
                raise ValueError(f"Fraction at index {index} is not between 0 and 1")
        counts = [math.floor(total * fraction) for fraction in lengths]
        # What rounding left over goes to the first parts, one each.
        for index in range(total - sum(counts)):
            counts[index % len(counts)] += 1
        for index, count in enumerate(counts):
            if count == 0:
                warnings.warn(
                    f"Length of split at index {index} is 0. This might result in an empty dataset.", stacklevel=2
                )
        lengths = counts
    if sum(lengths) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = trt.randperm(total, generator=generator).tolist()
    ends = accumulate(lengths)
    return [Subset(dataset, order[end - count : end]) for end, count in zip(ends, lengths, strict=True)]
