"""Shares of a stream for workers."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import length_of

__all__ = ["SHARDING_PRIORITIES", "ShardingFilterIterDataPipe"]


class SHARDING_PRIORITIES(IntEnum):  # noqa: N801 (PyTorch's name)
    """Which shares are made first: among ranks, then among the workers of one."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


class _ShardingIterDataPipe(IterDataPipe):
    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: SHARDING_PRIORITIES) -> None:
        raise NotImplementedError


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(_ShardingIterDataPipe):
    """Each worker's share of the elements, every n-th; all of them until `apply_sharding`, which loaders call, has said how many workers there are."""

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        super().__init__()
        self.source_datapipe, self.sharding_group_filter = source_datapipe, sharding_group_filter
        self.groups: dict[int, tuple[int, int]] = {}
        self.num_of_instances, self.instance_id = 1, 0

    def apply_sharding(self, num_of_instances: int, instance_id: int, sharding_group: SHARDING_PRIORITIES = SHARDING_PRIORITIES.DEFAULT) -> None:
        """Take share instance_id of num_of_instances; shares of several groups multiply."""
        if instance_id >= num_of_instances:
            raise ValueError(f"instance_id({instance_id}) should be smaller than num_of_instances({num_of_instances})")
        default = SHARDING_PRIORITIES.DEFAULT
        if self.groups and (sharding_group == default) != (default in self.groups):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = (num_of_instances, instance_id)
        self.num_of_instances, self.instance_id = 1, 0
        for key in sorted(self.groups, reverse=True):
            if self.sharding_group_filter is None or key == self.sharding_group_filter:
                count, place = self.groups[key]
                self.instance_id += self.num_of_instances * place
                self.num_of_instances *= count

    def __iter__(self) -> Iterator[Any]:
        for place, element in enumerate(self.source_datapipe):
            if place % self.num_of_instances == self.instance_id:
                yield element

    def __len__(self) -> int:
        whole, rest = divmod(length_of(self, self.source_datapipe), self.num_of_instances)
        return whole + (self.instance_id < rest)
