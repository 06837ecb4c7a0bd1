"""Samplers: iterables of indices, or of lists of them for batches. Each draws the random numbers PyTorch's draws."""

from __future__ import annotations

import math
from itertools import chain, islice, repeat
from types import GenericAlias
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._names import listing as _listing
from tensorrt_lite.random import Generator as _Generator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence, Sized

    from tensorrt_lite import Generator

__all__ = [
    "BatchSampler",
    "DistributedSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


def _each(indices: Any) -> Iterator[int]:
    """The elements of a tensor as ints, some thousands at a time: a list of all would take five times its memory."""
    for start in range(0, len(indices), 4096):
        yield from indices[start : start + 4096].tolist()


def _check_positive(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        raise ValueError(f"{name} should be a positive integer value, but got {name}={value}")


class Sampler:
    """Base of samplers: a subclass gives `__iter__`, and `__len__` where the number of samples is known.

    Parameters:
        data_source (default None): not used
    """

    __class_getitem__ = classmethod(GenericAlias)

    def __init__(self, data_source: Sized | None = None) -> None:
        pass

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("Subclasses of Sampler should implement __iter__.")


class SequentialSampler(Sampler):
    """All indices in order.

    Parameters:
        data_source (Dataset): what is sampled

    >>> import tensorrt_lite as trt
    >>> list(trt.utils.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler):
    """Indices in random order, or drawn with replacement; num_samples: how many, all by default.

    Without a generator each iteration seeds its own from the global one. Raises ValueError for num_samples < 1.

    Parameters:
        data_source (Dataset): what is sampled
        replacement (bool, default False): whether an index may be drawn twice
        num_samples (int or None, default None): how many are drawn; None is all
        generator (Generator or None, default None): the source of the order; None is the default one

    >>> import tensorrt_lite as trt
    >>> _ = trt.manual_seed(0)
    >>> sorted(trt.utils.data.RandomSampler("abc"))
    [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        _check_positive("num_samples", self.num_samples)

    @property
    def num_samples(self) -> int:
        """Number of indices per iteration; follows the data's length unless it was given."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        count, wanted, generator = len(self.data_source), self.num_samples, self.generator
        if generator is None:
            seed = int(trt.empty((), dtype=trt.int64).random_().item())
            generator = _Generator()
            generator.manual_seed(seed)
        if self.replacement:
            # PyTorch draws in chunks of 32, which is visible in the numbers that follow.
            for size in chain(repeat(32, wanted // 32), (wanted % 32,)):
                yield from trt.randint(high=count, size=(size,), dtype=trt.int64, generator=generator).tolist()
        else:
            for _ in range(wanted // count):
                yield from _each(trt.randperm(count, generator=generator))
            yield from _each(trt.randperm(count, generator=generator)[: wanted % count])

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices in random order.

    Parameters:
        indices (sequence of ints): the indices
        generator (Generator or None, default None): the source of the order; None is the default one

    >>> import tensorrt_lite as trt
    >>> sorted(trt.utils.data.SubsetRandomSampler([4, 7, 9]))
    [4, 7, 9]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for position in _each(trt.randperm(len(self.indices), generator=self.generator)):
            yield self.indices[position]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Indices drawn with probabilities in proportion to weights, (N,); need not add up to one.

    Raises ValueError for num_samples < 1 or weights of more than one dimension.

    Parameters:
        weights (sequence of floats): the weight of each index; they need not sum to 1
        num_samples (int): how many are drawn
        replacement (bool, default True): whether an index may be drawn twice
        generator (Generator or None, default None): the source of the order; None is the default one

    >>> import tensorrt_lite as trt
    >>> list(trt.utils.data.WeightedRandomSampler([0.0, 1.0], num_samples=3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ) -> None:
        _check_positive("num_samples", num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        self.weights = trt.as_tensor(weights, dtype=trt.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        drawn = trt.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from _each(drawn)

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler):
    """Lists of batch_size indices from another sampler; drop_last: leave out a last one that is shorter.

    Parameters:
        sampler (Sampler or iterable): where indices come from
        batch_size (int): how many indices a list has
        drop_last (bool): whether a last list that is shorter is left out

    >>> import tensorrt_lite as trt
    >>> list(trt.utils.data.BatchSampler(range(5), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Sampler | Iterable[int], batch_size: int, drop_last: bool) -> None:
        _check_positive("batch_size", batch_size)
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        while batch := list(islice(indices, self.batch_size)):
            if len(batch) < self.batch_size and self.drop_last:
                return
            yield batch

    def __len__(self) -> int:
        whole, rest = divmod(len(self.sampler), self.batch_size)  # type: ignore[arg-type]
        return whole + (rest > 0 and not self.drop_last)


class DistributedSampler(Sampler):
    """One rank's share of a dataset, every num_replicas-th index of an order that all ranks agree on.

    Call `set_epoch` before each epoch for a new order. drop_last: drop the tail instead of repeating samples.
    Raises ValueError for a rank outside [0, num_replicas), RuntimeError when neither is given and there is no group.

    Parameters:
        dataset (Dataset): where samples come from
        num_replicas (int or None, default None): how many ranks there are; None asks torch.distributed
        rank (int or None, default None): the number of this rank; None asks torch.distributed
        shuffle (bool, default True): whether the order is random, a new one each time
        seed (int, default 0): the seed of the order, the same in all ranks
        drop_last (bool, default False): whether the tail is dropped, instead of repeating samples

    >>> import tensorrt_lite as trt
    >>> list(trt.utils.data.DistributedSampler(range(6), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 5]
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if num_replicas is None or rank is None:
            distributed = getattr(_listing.root(), "distributed", None)
            if distributed is None or not distributed.is_available():
                raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
            num_replicas = distributed.get_world_size() if num_replicas is None else num_replicas
            rank = distributed.get_rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        length = len(dataset)
        self.num_samples = length // num_replicas if drop_last else math.ceil(length / num_replicas)
        self.total_size = self.num_samples * num_replicas
        self.shuffle = shuffle
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        length = len(self.dataset)
        if not self.shuffle:
            return (position % length for position in range(self.rank, self.total_size, self.num_replicas))
        generator = _Generator()
        generator.manual_seed(self.seed + self.epoch)
        order = trt.randperm(length, generator=generator)
        if self.total_size > length:
            order = order.repeat(math.ceil(self.total_size / length))
        return _each(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self) -> int:
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Choose the order of the next iteration; the same on all ranks."""
        self.epoch = epoch
