"""Maps of batches."""

from __future__ import annotations

from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import DataChunk, MapDataPipe

__all__ = ["BatcherMapDataPipe"]


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Batches of batch_size items of a map of indices from 0; the last one may be shorter, or is dropped."""

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = datapipe, batch_size, drop_last, wrapper_class

    def __getitem__(self, index: int) -> Any:
        batch: list[Any] = []
        try:
            for place in range(index * self.batch_size, (index + 1) * self.batch_size):
                batch.append(self.datapipe[place])
        except IndexError as error:
            if self.drop_last or not batch:
                raise IndexError(f"Index {index} is out of bound.") from error
        return self.wrapper_class(batch)

    def __len__(self) -> int:
        whole, rest = divmod(len(self.datapipe), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)
